//! Which event types an endpoint is subscribed to. It does not know what an endpoint is.

mod subscriptions;

use std::{fmt, str::FromStr};

pub use subscriptions::Subscriptions;

/// Longest pattern, in bytes.
pub const PATTERN_BYTES_MAX: usize = 128;

/// Event types an endpoint wants: everything (`*`), everything below a segment (`order.*` has
/// `order.paid` and `order.item.added`, not `order`), or exactly one (`order.paid`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EventPattern(Kind);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Kind {
    Everything,
    /// The text before the `*`, its dot included.
    Below(String),
    Exactly(String),
}

/// Why a text is no [`EventPattern`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Empty, or longer than [`PATTERN_BYTES_MAX`].
    #[error("an event type pattern has 1 to {PATTERN_BYTES_MAX} bytes")]
    Length,
    /// A character that event types do not have.
    #[error("an event type pattern has letters, digits and _ . : / - only")]
    Character,
    /// A `*` elsewhere than alone or as the last segment.
    #[error("a * stands alone or as the last segment, as in order.*")]
    Wildcard,
}

impl EventPattern {
    /// Reads a pattern.
    pub fn parse(text: &str) -> Result<EventPattern, PatternError> {
        if text.is_empty() || text.len() > PATTERN_BYTES_MAX {
            return Err(PatternError::Length);
        }
        if text == "*" {
            return Ok(EventPattern(Kind::Everything));
        }
        let below = text.strip_suffix('*');
        let literal = below.unwrap_or(text);
        check_characters(literal)?;
        match below {
            Some(prefix) if prefix.len() > 1 && prefix.ends_with('.') => {
                Ok(EventPattern(Kind::Below(prefix.to_owned())))
            }
            Some(_) => Err(PatternError::Wildcard),
            None => Ok(EventPattern(Kind::Exactly(literal.to_owned()))),
        }
    }

    /// Whether an event of this type is wanted.
    pub fn matches(&self, event_type: &str) -> bool {
        match &self.0 {
            Kind::Everything => true,
            Kind::Below(prefix) => {
                event_type.len() > prefix.len() && event_type.starts_with(prefix.as_str())
            }
            Kind::Exactly(wanted) => event_type == wanted,
        }
    }
}

fn check_characters(literal: &str) -> Result<(), PatternError> {
    let wrong = literal
        .bytes()
        .find(|byte| !(byte.is_ascii_alphanumeric() || b"_.:/-".contains(byte)));
    match wrong {
        None => Ok(()),
        Some(b'*') => Err(PatternError::Wildcard),
        Some(_) => Err(PatternError::Character),
    }
}

impl FromStr for EventPattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<EventPattern, PatternError> {
        EventPattern::parse(text)
    }
}

impl fmt::Display for EventPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Everything => formatter.write_str("*"),
            Kind::Below(prefix) => write!(formatter, "{prefix}*"),
            Kind::Exactly(wanted) => formatter.write_str(wanted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> EventPattern {
        EventPattern::parse(text).unwrap()
    }

    #[test]
    fn a_segment_wildcard_takes_everything_below_but_not_the_segment_itself() {
        let orders = pattern("order.*");
        assert!(orders.matches("order.paid"));
        assert!(orders.matches("order.item.added"));
        assert!(!orders.matches("order"));
        assert!(!orders.matches("order."));
        assert!(!orders.matches("orders.paid"));
        assert!(!orders.matches("Order.paid"));
    }

    #[test]
    fn a_lone_wildcard_takes_everything_and_a_literal_only_itself() {
        assert!(pattern("*").matches("anything at all"));
        assert!(pattern("order.paid").matches("order.paid"));
        assert!(!pattern("order.paid").matches("order.paid.twice"));
        assert!(!pattern("order.paid").matches("order"));
    }

    #[test]
    fn a_pattern_is_shown_as_it_was_written() {
        for text in ["*", "order.*", "order.item.*", "a:b/c-d_e.F9"] {
            assert_eq!(pattern(text).to_string(), text);
        }
    }

    #[test]
    fn malformed_patterns_are_refused_with_their_kind() {
        let refused = |text: &str| EventPattern::parse(text).unwrap_err();
        for text in [
            "order*",
            "*.paid",
            "order.*.paid",
            "**",
            "order.**",
            ".*",
            "order/*",
            "a*b",
        ] {
            assert_eq!(refused(text), PatternError::Wildcard, "{text}");
        }
        for text in ["order paid", "order\n", "ordér", "order,paid", "order\0"] {
            assert_eq!(refused(text), PatternError::Character, "{text:?}");
        }
        assert_eq!(refused(""), PatternError::Length);
        assert_eq!(
            refused(&"a".repeat(PATTERN_BYTES_MAX + 1)),
            PatternError::Length
        );
        assert!(EventPattern::parse(&"a".repeat(PATTERN_BYTES_MAX)).is_ok());
    }
}
