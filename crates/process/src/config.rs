//! Configuration from environment variables, read once into typed values.
//!
//! This is the only place that reads the process environment. Reading does not stop at the first
//! fault: every method answers with a usable value, faults are collected, and
//! [`Environment::finish`] tells them all. It knows names and shapes, not what a value is for.

mod faults;
mod spelling;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

pub use faults::{ConfigFault, ConfigFaults};

/// Exit code of a program whose configuration is wrong (`EX_USAGE` of sysexits).
pub const EXIT_USAGE: u8 = 64;

/// One variable of the process, for the few places that must look before a configuration is read.
#[expect(
    clippy::disallowed_methods,
    reason = "this is the one home of the environment"
)]
pub(crate) fn process_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A snapshot of environment variables, the faults found in it, and the names that were asked for.
///
/// An empty value counts as unset.
#[derive(Default)]
pub struct Environment {
    values: BTreeMap<String, OsString>,
    asked: BTreeSet<String>,
    faults: Vec<ConfigFault>,
}

impl Environment {
    /// The variables of this process; those whose name is not UTF-8 are left out.
    pub fn from_process() -> Self {
        Self::from_values(
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value))),
        )
    }

    /// Given variables, for tests.
    pub fn from_pairs<N: Into<String>, V: Into<OsString>>(
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        Self::from_values(
            pairs
                .into_iter()
                .map(|(name, value)| (name.into(), value.into())),
        )
    }

    fn from_values(values: impl Iterator<Item = (String, OsString)>) -> Self {
        Self {
            values: values.filter(|(_, value)| !value.is_empty()).collect(),
            ..Self::default()
        }
    }

    /// A required text. Empty, with a fault, if it is missing.
    pub fn text(&mut self, name: &str) -> String {
        self.optional_text(name).unwrap_or_else(|| {
            if !self.has_fault(name) {
                self.report(name, "is not set", "a value");
            }
            String::new()
        })
    }

    /// A text that may be missing.
    pub fn optional_text(&mut self, name: &str) -> Option<String> {
        self.asked.insert(name.to_owned());
        let value = self.values.get(name)?;
        let text = value.to_str().map(str::to_owned);
        if text.is_none() {
            self.report(name, "is not valid UTF-8", "text");
        }
        text
    }

    /// Any value that can be read from text, or `default`.
    pub fn parsed<T: FromStr<Err: Display>>(&mut self, name: &str, default: T) -> T {
        self.parsed_with(name, default, "a valid value", str::parse)
    }

    /// A value read by `parse`, or `default`; `expected` describes what would be right.
    pub fn parsed_with<T, E: Display>(
        &mut self,
        name: &str,
        default: T,
        expected: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> T {
        let Some(text) = self.optional_text(name) else {
            return default;
        };
        parse(text.trim()).unwrap_or_else(|error| {
            self.report_value(name, &text, &error.to_string(), expected);
            default
        })
    }

    /// A number within `range`, or `default`.
    pub fn integer<T>(&mut self, name: &str, default: T, range: RangeInclusive<T>) -> T
    where
        T: FromStr<Err: Display> + PartialOrd + Display,
    {
        let expected = format!("a whole number from {} to {}", range.start(), range.end());
        self.parsed_with(name, default, &expected, |text| {
            let number: T = text.parse().map_err(|error: T::Err| error.to_string())?;
            let within = range.contains(&number);
            within
                .then_some(number)
                .ok_or_else(|| "out of range".to_owned())
        })
    }

    /// A duration in whole milliseconds within `range`, or `default`.
    pub fn duration_ms(
        &mut self,
        name: &str,
        default: Duration,
        range: RangeInclusive<Duration>,
    ) -> Duration {
        let range_ms = whole_ms(*range.start())..=whole_ms(*range.end());
        Duration::from_millis(self.integer(name, whole_ms(default), range_ms))
    }

    /// `true`, `false`, `1` or `0`, or `default`.
    pub fn flag(&mut self, name: &str, default: bool) -> bool {
        self.parsed_with(name, default, "true, false, 1 or 0", |text| match text {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            _ => Err("neither true nor false"),
        })
    }

    /// Values separated by commas, space around them ignored; empty if it is missing.
    ///
    /// Each wrong element is a fault of its own, named by its place from 1.
    pub fn list<T: FromStr<Err: Display>>(&mut self, name: &str) -> Vec<T> {
        let text = self.optional_text(name).unwrap_or_default();
        let elements = text.split(',').map(str::trim).enumerate();
        elements
            .filter(|_| !text.is_empty())
            .filter_map(|(index, element)| self.list_element(name, index + 1, element))
            .collect()
    }

    fn list_element<T: FromStr<Err: Display>>(
        &mut self,
        name: &str,
        place: usize,
        element: &str,
    ) -> Option<T> {
        let parsed = element.parse();
        let report = |error: T::Err| {
            let problem = format!("element {place}: {error}");
            self.report_value(name, element, &problem, "valid values separated by commas");
        };
        parsed.map_err(report).ok()
    }

    /// An address to listen on, such as `0.0.0.0:8080`, that may be missing.
    pub fn socket_addr(&mut self, name: &str) -> Option<SocketAddr> {
        self.parsed_with(
            name,
            None,
            "an IP address and a port, such as 0.0.0.0:8080",
            |text| text.parse().map(Some),
        )
    }

    /// Reports a fault the caller found, for example between two variables.
    pub fn report(&mut self, name: &str, problem: &str, expected: &str) {
        self.faults.push(ConfigFault::new(name, problem, expected));
    }

    /// Reports every variable that begins with `prefix`, that nobody has asked for and that looks
    /// like a misspelling of one that was, or of one of `also_known`: those that other programs read
    /// from the same environment.
    ///
    /// Call it last. The variables Kubernetes sets for services are not reported, since a service
    /// may well be called like the prefix.
    pub fn refuse_misspelt(&mut self, prefix: &str, also_known: &[&str]) {
        let known: Vec<&str> = self
            .asked
            .iter()
            .map(String::as_str)
            .chain(also_known.iter().copied())
            .collect();
        let unknown = self
            .values
            .keys()
            .filter(|name| name.starts_with(prefix) && !known.contains(&name.as_str()))
            .filter(|name| !spelling::is_service_link(name));
        let faults: Vec<_> = unknown
            .filter_map(|name| Some((name, spelling::nearest(name, &known)?)))
            .map(|(name, meant)| ConfigFault::misspelt(name, meant))
            .collect();
        self.faults.extend(faults);
    }

    /// All faults, or none.
    pub fn finish(self) -> Result<(), ConfigFaults> {
        ConfigFaults::none_or(self.faults)
    }

    fn has_fault(&self, name: &str) -> bool {
        self.faults.iter().any(|fault| fault.name() == name)
    }

    fn report_value(&mut self, name: &str, value: &str, problem: &str, expected: &str) {
        self.faults
            .push(ConfigFault::of_value(name, value, problem, expected));
    }
}

/// A duration in milliseconds, cut to what a variable can hold.
fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
