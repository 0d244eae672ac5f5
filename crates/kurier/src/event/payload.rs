//! Where an event's payload comes from, and what it must be: JSON text, not too large. It is kept
//! byte for byte, and no fault repeats any of it.

use std::{
    fs::File,
    io::{self, Read},
};

use clap::Args;
use serde::de::IgnoredAny;

use crate::input::Input;

/// Exactly one of the two.
#[derive(Args, Default)]
pub(crate) struct PayloadSource {
    /// The payload itself
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// A file that holds the payload, - for standard input
    #[arg(long, value_name = "FILE")]
    payload_file: Option<String>,
}

/// The payload. Empty, with a fault, if it cannot be had or is not fit to be sent.
pub(crate) fn read(source: PayloadSource, input: &mut Input) -> String {
    let bytes_max = settings::payload_bytes_max(&mut input.env);
    let (argument, bytes) = match (source.payload, source.payload_file) {
        (Some(text), None) => ("--payload", Ok(text.into_bytes())),
        (None, Some(file)) => ("--payload-file", read_file(&file, bytes_max)),
        (None, None) => (
            "--payload",
            Err("or --payload-file must be given".to_owned()),
        ),
        (Some(_), Some(_)) => {
            let both = "cannot be given together with --payload-file";
            ("--payload", Err(both.to_owned()))
        }
    };
    bytes
        .and_then(|bytes| check(bytes, bytes_max))
        .unwrap_or_else(|problem| {
            input.refuse(argument, problem);
            String::new()
        })
}

/// Reads one byte more than allowed at the most: enough to see that it is too much.
fn read_file(file: &str, bytes_max: u64) -> Result<Vec<u8>, String> {
    let read = || -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let reader: Box<dyn Read> = match file {
            "-" => Box::new(io::stdin().lock()),
            path => Box::new(File::open(path)?),
        };
        reader.take(bytes_max + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    read().map_err(|error| format!("cannot be read: {error}"))
}

fn check(bytes: Vec<u8>, bytes_max: u64) -> Result<String, String> {
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    if length > bytes_max {
        return Err(format!(
            "is larger than {bytes_max} bytes (KURIER_PAYLOAD_BYTES_MAX)"
        ));
    }
    let text = String::from_utf8(bytes).map_err(|_| "is not UTF-8".to_owned())?;
    serde_json::from_str::<IgnoredAny>(&text).map_err(|error| format!("is not JSON: {error}"))?;
    Ok(text)
}

#[cfg(test)]
impl PayloadSource {
    pub(crate) fn text(payload: &str) -> Self {
        Self {
            payload: Some(payload.to_owned()),
            payload_file: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use process::Environment;

    use super::*;

    fn told(source: PayloadSource, bytes_max: &str) -> Result<String, String> {
        let env = Environment::from_pairs([("KURIER_PAYLOAD_BYTES_MAX", bytes_max)]);
        let mut input = Input::new(env);
        let payload = read(source, &mut input);
        input.finish().map_err(|faults| faults.to_string())?;
        Ok(payload)
    }

    #[test]
    fn a_payload_may_have_the_largest_size_and_not_one_byte_more() {
        let exact = PayloadSource::text("\"1234567\"");
        assert_eq!(told(exact, "9").unwrap(), "\"1234567\"");
        let larger = PayloadSource::text("\"12345678\"");
        assert!(
            told(larger, "9")
                .unwrap_err()
                .contains("larger than 9 bytes")
        );
    }

    #[test]
    fn where_json_breaks_is_told_and_what_it_holds_is_not() {
        let broken = told(PayloadSource::text("{\"card\": s3cret}"), "100").unwrap_err();
        assert_eq!(
            broken,
            "--payload: is not JSON: expected value at line 1 column 10"
        );
    }

    #[test]
    fn deep_nesting_is_no_fault() {
        let deep = format!("{}{}", "[".repeat(2000), "]".repeat(2000));
        assert!(told(PayloadSource::text(&deep), "4000").is_ok());
    }

    #[test]
    fn a_payload_comes_from_one_place() {
        let both = PayloadSource {
            payload_file: Some("-".to_owned()),
            ..PayloadSource::text("{}")
        };
        assert!(
            told(both, "9")
                .unwrap_err()
                .contains("together with --payload-file")
        );
        assert!(told(PayloadSource::default(), "9").is_err());
    }

    #[test]
    fn a_file_that_is_not_there_is_a_fault_of_its_argument() {
        let missing = PayloadSource {
            payload_file: Some("no/such/file".to_owned()),
            ..PayloadSource::default()
        };
        let told = told(missing, "9").unwrap_err();
        assert!(told.starts_with("--payload-file: cannot be read"), "{told}");
    }
}
