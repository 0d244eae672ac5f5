//! What one endpoint does under load, as it is written on the command line.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use scripted_receiver::{Reply, Script};

/// One endpoint's behaviour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum EndpointScript {
    /// Always 200, at once.
    Ok,
    /// 503 for this share of the requests.
    Fail(f64),
    /// No answer for this share of the requests.
    Hang(f64),
    /// 200 after so many milliseconds.
    LatencyMs(u64),
}

impl EndpointScript {
    /// The receiver's script; `seed` decides which requests fail.
    pub(crate) fn script(self, seed: u64) -> Script {
        match self {
            Self::Ok => Reply::ok().into(),
            Self::Fail(share) => Script::failing(seed, share, Reply::status(503)),
            Self::Hang(share) => Script::failing(seed, share, Reply::hang()),
            Self::LatencyMs(ms) => Reply::ok().after(Duration::from_millis(ms)).into(),
        }
    }
}

impl fmt::Display for EndpointScript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok => f.write_str("ok"),
            Self::Fail(share) => write!(f, "fail:{share}"),
            Self::Hang(share) => write!(f, "hang:{share}"),
            Self::LatencyMs(ms) => write!(f, "latency:{ms}"),
        }
    }
}

impl FromStr for EndpointScript {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, value) = text.split_once(':').unwrap_or((text, ""));
        match (kind, share(value), value.parse()) {
            ("ok", _, _) if value.is_empty() => Ok(Self::Ok),
            ("fail", Some(share), _) => Ok(Self::Fail(share)),
            ("hang", Some(share), _) => Ok(Self::Hang(share)),
            ("latency", _, Ok(ms)) => Ok(Self::LatencyMs(ms)),
            _ => Err("expected `ok`, `fail:P`, `hang:P` (0 to 1) or `latency:MS`".to_owned()),
        }
    }
}

fn share(text: &str) -> Option<f64> {
    text.parse()
        .ok()
        .filter(|share| (0.0..=1.0).contains(share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_reads_back_as_it_was_written() {
        for text in ["ok", "fail:0.25", "fail:1", "hang:0", "latency:40"] {
            assert_eq!(text.parse::<EndpointScript>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn shares_outside_zero_to_one_and_other_words_are_refused() {
        for text in [
            "fail:1.01",
            "hang:-0.1",
            "fail",
            "latency:",
            "latency:x",
            "ok:1",
            "slow",
            "",
        ] {
            assert!(text.parse::<EndpointScript>().is_err(), "{text}");
        }
    }
}
