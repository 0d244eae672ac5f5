//! An endpoint's own reading of HTTP statuses. It cannot change what success is.

use std::{fmt, ops::RangeInclusive, str::FromStr};

/// Statuses an endpoint wants retried or rejected against the usual rules. If a status stands in
/// both, it is rejected: a wrong reject is repaired by a replay, a wrong retry burdens the receiver.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusRules {
    /// Retried although they would be rejected.
    pub retry: StatusSet,
    /// Rejected although they would be retried.
    pub reject: StatusSet,
}

/// HTTP statuses, written like `404,409,500-599`. The empty text is the empty set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StatusSet(Vec<RangeInclusive<u16>>);

/// Why a text is no [`StatusSet`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StatusSetError {
    /// Not of the form `404,409,500-599`.
    #[error("expected http statuses and ranges such as 404,409,500-599")]
    Form,
    /// A status that no response can have.
    #[error("an http status lies between 100 and 599")]
    OutOfRange,
    /// A range whose end is before its start.
    #[error("a range of http statuses must not run backwards")]
    Backwards,
    /// 2xx: success is success for every endpoint.
    #[error("2xx is always a success and cannot be overridden")]
    Success,
}

impl StatusSet {
    /// Whether the set has this status.
    pub fn contains(&self, status: u16) -> bool {
        self.0.iter().any(|range| range.contains(&status))
    }

    /// Whether the set has no status at all.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromStr for StatusSet {
    type Err = StatusSetError;

    fn from_str(text: &str) -> Result<StatusSet, StatusSetError> {
        if text.trim().is_empty() {
            return Ok(StatusSet::default());
        }
        text.split(',')
            .map(|part| range(part.trim()))
            .collect::<Result<_, _>>()
            .map(StatusSet)
    }
}

impl fmt::Display for StatusSet {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, range) in self.0.iter().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            match (range.start(), range.end()) {
                (start, end) if start == end => write!(formatter, "{comma}{start}")?,
                (start, end) => write!(formatter, "{comma}{start}-{end}")?,
            }
        }
        Ok(())
    }
}

fn range(part: &str) -> Result<RangeInclusive<u16>, StatusSetError> {
    let (start, end) = part.split_once('-').unwrap_or((part, part));
    let (start, end) = (status(start)?, status(end)?);
    if start > end {
        return Err(StatusSetError::Backwards);
    }
    if start < 300 && end >= 200 {
        return Err(StatusSetError::Success);
    }
    Ok(start..=end)
}

fn status(text: &str) -> Result<u16, StatusSetError> {
    let three_digits = text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_digit());
    if !three_digits {
        return Err(StatusSetError::Form);
    }
    let status = text.parse().map_err(|_| StatusSetError::Form)?;
    match status {
        100..=599 => Ok(status),
        _ => Err(StatusSetError::OutOfRange),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> StatusSet {
        text.parse().unwrap()
    }

    #[test]
    fn a_set_has_its_statuses_and_the_ends_of_its_ranges() {
        let set = set("404, 409,500-599");
        for status in [404, 409, 500, 599] {
            assert!(set.contains(status), "{status}");
        }
        for status in [403, 405, 410, 499, 600] {
            assert!(!set.contains(status), "{status}");
        }
    }

    #[test]
    fn a_set_is_shown_as_it_is_read() {
        for text in ["", "404", "404,409,500-599", "100-199,300"] {
            assert_eq!(set(text).to_string(), text);
        }
        assert_eq!(set(" 404 , 500-500 ").to_string(), "404,500");
        assert!(set(" ").is_empty());
    }

    #[test]
    fn malformed_sets_are_refused_with_their_kind() {
        let refused = |text: &str| text.parse::<StatusSet>().unwrap_err();
        for text in [
            ",",
            "404,",
            "4xx",
            "40",
            "4040",
            "+40",
            "404-",
            "-404",
            "404-405-406",
            "404;5",
        ] {
            assert_eq!(refused(text), StatusSetError::Form, "{text}");
        }
        for text in ["099", "000", "600", "500-600"] {
            assert_eq!(refused(text), StatusSetError::OutOfRange, "{text}");
        }
        assert_eq!(refused("500-499"), StatusSetError::Backwards);
    }

    #[test]
    fn success_cannot_be_overridden() {
        for text in ["200", "299", "199-200", "299-300", "100-599"] {
            assert_eq!(
                text.parse::<StatusSet>(),
                Err(StatusSetError::Success),
                "{text}"
            );
        }
        assert!("100-199,300-599".parse::<StatusSet>().is_ok());
    }
}
