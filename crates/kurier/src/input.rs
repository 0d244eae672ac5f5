//! Arguments and variables, read into typed values; every fault in them is told at once.
//!
//! The command line parser only takes the arguments apart. Their values are read here, beside the
//! environment's, so that one run names everything that has to be corrected. It does not know what
//! a value is for.

use std::{
    fmt::{self, Display},
    ops::RangeInclusive,
    str::FromStr,
};

use process::Environment;
use store::Store;

/// Longest part of a value that a fault repeats, in characters.
const SHOWN_CHARS: usize = 60;

/// One command needs one connection; the doctor asks several things at once.
const CONNECTIONS_MAX: u32 = 8;

/// What a command is given, and what is wrong with it.
pub(crate) struct Input {
    pub(crate) env: Environment,
    faults: Vec<String>,
}

/// Everything wrong with a command's arguments and variables. The program exits 64.
#[derive(Debug, thiserror::Error)]
pub(crate) struct UsageFaults(Vec<String>);

impl Input {
    pub(crate) fn new(env: Environment) -> Self {
        let faults = Vec::new();
        Self { env, faults }
    }

    /// Notes what is wrong with an argument.
    pub(crate) fn refuse(&mut self, argument: &str, problem: impl Display) {
        self.faults.push(format!("{argument}: {problem}"));
    }

    /// An argument that must be there. Empty, with a fault, if it is not.
    pub(crate) fn required(&mut self, argument: &str, text: Option<String>) -> String {
        text.filter(|text| !text.is_empty()).unwrap_or_else(|| {
            self.refuse(argument, "is missing");
            String::new()
        })
    }

    /// A value read from its text.
    pub(crate) fn parsed<T>(&mut self, argument: &str, text: Option<&str>) -> Option<T>
    where
        T: FromStr<Err: Display>,
    {
        let read = |text: &str| text.parse().map_err(|error: T::Err| shown(text, error));
        self.accept(argument, text.map(read))
    }

    /// A whole number within `range`.
    pub(crate) fn integer<T>(
        &mut self,
        argument: &str,
        text: Option<&str>,
        range: RangeInclusive<T>,
    ) -> Option<T>
    where
        T: FromStr + PartialOrd + Display,
    {
        self.accept(argument, text.map(|text| whole_number(text, &range)))
    }

    /// Whole numbers within `range`, separated by commas. Every wrong one is a fault.
    pub(crate) fn integers<T>(
        &mut self,
        argument: &str,
        text: Option<&str>,
        range: &RangeInclusive<T>,
    ) -> Option<Vec<T>>
    where
        T: FromStr + PartialOrd + Display,
    {
        let numbers = text?.split(',').map(|element| whole_number(element, range));
        let numbers: Vec<_> = numbers.collect();
        let accept = |number| self.accept(argument, Some(number));
        Some(numbers.into_iter().filter_map(accept).collect())
    }

    fn accept<T>(&mut self, argument: &str, value: Option<Result<T, String>>) -> Option<T> {
        value?
            .map_err(|problem| self.refuse(argument, problem))
            .ok()
    }

    /// The database, from `DATABASE_URL`; with everything wrong if anything is.
    pub(crate) fn into_store(mut self) -> Result<Store, UsageFaults> {
        let store = open_store(&mut self.env);
        self.finish()?;
        store.ok_or_else(|| UsageFaults(vec!["DATABASE_URL cannot be used".to_owned()]))
    }

    /// Nothing, or everything that is wrong.
    pub(crate) fn finish(mut self) -> Result<(), UsageFaults> {
        if let Err(variables) = self.env.finish() {
            self.faults
                .extend(variables.iter().map(ToString::to_string));
        }
        if self.faults.is_empty() {
            Ok(())
        } else {
            Err(UsageFaults(self.faults))
        }
    }
}

/// Prepares the database connection. `None`, with a fault of `DATABASE_URL`, if that is not possible.
pub(crate) fn open_store(env: &mut Environment) -> Option<Store> {
    let config = settings::database(env, "kurier", CONNECTIONS_MAX);
    if config.database_url.is_empty() {
        return None;
    }
    let store = Store::new(&config);
    if store.is_err() {
        env.report("DATABASE_URL", "cannot be read", "a valid postgres:// URL");
    }
    store.ok()
}

fn whole_number<T>(text: &str, range: &RangeInclusive<T>) -> Result<T, String>
where
    T: FromStr + PartialOrd + Display,
{
    let number = text.trim().parse().ok().filter(|n| range.contains(n));
    number.ok_or_else(|| {
        let (start, end) = (range.start(), range.end());
        shown(
            text,
            format_args!("expected a whole number from {start} to {end}"),
        )
    })
}

/// A problem together with the value that has it, cut and escaped.
fn shown(text: &str, problem: impl Display) -> String {
    let text: String = text.chars().take(SHOWN_CHARS).collect();
    format!("{text:?}: {problem}")
}

impl Display for UsageFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_slice() {
            [fault] => f.write_str(fault),
            faults => {
                write!(f, "{} faults:", faults.len())?;
                faults.iter().try_for_each(|fault| write!(f, "\n  {fault}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input() -> Input {
        Input::new(Environment::default())
    }

    #[test]
    fn a_number_is_taken_at_both_edges_of_its_range_and_not_beyond() {
        let mut input = input();
        assert_eq!(input.integer("--n", Some("1"), 1..=3), Some(1));
        assert_eq!(input.integer("--n", Some("3"), 1..=3), Some(3));
        assert_eq!(input.integer("--n", None, 1..=3), None);
        assert!(input.faults.is_empty());
        for wrong in ["0", "4", "-1", "2.5", "two", ""] {
            assert_eq!(input.integer("--n", Some(wrong), 1..=3), None, "{wrong}");
        }
        assert_eq!(input.faults.len(), 6);
    }

    #[test]
    fn every_wrong_element_of_a_list_is_a_fault() {
        let mut input = input();
        let numbers = input.integers("--list", Some("1, 2,x,9"), &(1..=5));
        assert_eq!(numbers, Some(vec![1, 2]));
        assert_eq!(
            input.faults,
            [
                "--list: \"x\": expected a whole number from 1 to 5",
                "--list: \"9\": expected a whole number from 1 to 5",
            ]
        );
    }

    #[test]
    fn faults_of_arguments_and_of_variables_are_told_together() {
        let mut input = Input::new(Environment::from_pairs([("KURIER_ALLOW_HTTP", "perhaps")]));
        input.required("--url", None);
        input.env.flag("KURIER_ALLOW_HTTP", false);
        let told = input.finish().unwrap_err().to_string();
        assert_eq!(
            told,
            "2 faults:\n  --url: is missing\n  KURIER_ALLOW_HTTP is \"perhaps\": neither true nor \
             false; expected true, false, 1 or 0"
        );
    }

    #[test]
    fn a_long_value_is_cut_and_escaped_in_its_fault() {
        let told = shown(&format!("\x1b{}", "a".repeat(SHOWN_CHARS)), "wrong");
        assert_eq!(
            told,
            format!("\"\\u{{1b}}{}\": wrong", "a".repeat(SHOWN_CHARS - 1))
        );
    }
}
