//! What is wrong with a configuration, told without giving away what a variable holds.

use std::fmt;

/// Longest part of a value that a fault repeats, in characters.
const SHOWN_CHARS: usize = 60;

/// Parts of a name that tell that its value may hold a secret.
const CONFIDENTIAL: &[&str] = &["URL", "KEY", "SECRET", "TOKEN", "PASSWORD", "HEADERS"];

/// One variable that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFault {
    name: String,
    problem: String,
    expected: String,
}

impl ConfigFault {
    pub(super) fn new(name: &str, problem: &str, expected: &str) -> Self {
        Self {
            name: name.to_owned(),
            problem: problem.to_owned(),
            expected: expected.to_owned(),
        }
    }

    /// A value that cannot be read. A confidential one is not shown, nor is the parser's message,
    /// which may repeat it.
    pub(super) fn of_value(name: &str, value: &str, problem: &str, expected: &str) -> Self {
        if is_confidential(name) {
            return Self::new(name, "cannot be read", expected);
        }
        let shown: String = value.chars().take(SHOWN_CHARS).collect();
        Self::new(name, &format!("is {shown:?}: {problem}"), expected)
    }

    pub(super) fn misspelt(name: &str, meant: &str) -> Self {
        Self::new(
            name,
            "is not a variable of this program",
            &format!("{meant}, perhaps"),
        )
    }

    /// The variable's name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {}; expected {}",
            self.name, self.problem, self.expected
        )
    }
}

/// Everything that is wrong; at least one fault.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFaults(Vec<ConfigFault>);

impl ConfigFaults {
    pub(super) fn none_or(faults: Vec<ConfigFault>) -> Result<(), Self> {
        if faults.is_empty() {
            Ok(())
        } else {
            Err(Self(faults))
        }
    }

    /// The faults in the order in which they were found.
    pub fn iter(&self) -> impl Iterator<Item = &ConfigFault> {
        self.0.iter()
    }
}

/// One line for each fault, without a newline after the last.
impl fmt::Display for ConfigFaults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(f, "{separator}{fault}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigFaults {}

fn is_confidential(name: &str) -> bool {
    CONFIDENTIAL.iter().any(|part| name.contains(part))
}
