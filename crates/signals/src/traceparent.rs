//! The W3C `traceparent` text: read strictly, written canonically.
//!
//! `tracestate` is not carried: no part of the way has a place for it.

use std::fmt;
use std::str::FromStr;

use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

/// Length of a version 00 `traceparent`, in bytes.
const LEN: usize = 55;

/// The sampled bit of the flags.
const SAMPLED: u8 = 0x01;

/// A trace, the span within it that is the parent, and the flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceContext {
    trace_id: u128,
    span_id: u64,
    flags: u8,
}

/// The text is not a `traceparent`.
///
/// It does not repeat the text, which came from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidTraceparent;

impl fmt::Display for InvalidTraceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a W3C traceparent")
    }
}

impl std::error::Error for InvalidTraceparent {}

impl TraceContext {
    /// A new trace that nobody records, from 24 random bytes.
    pub fn unsampled(random: [u8; 24]) -> Self {
        let (trace, span) = random.split_at(16);
        // An id of zeros is invalid; a set bit avoids it without a second draw.
        Self {
            trace_id: trace
                .iter()
                .fold(0, |id, byte| id << 8 | u128::from(*byte))
                .max(1),
            span_id: span
                .iter()
                .fold(0, |id, byte| id << 8 | u64::from(*byte))
                .max(1),
            flags: 0,
        }
    }

    /// Whether the trace's origin records it.
    pub fn is_sampled(self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The context of a span, if it has one.
    pub(crate) fn of(span: &SpanContext) -> Option<Self> {
        span.is_valid().then(|| Self {
            trace_id: u128::from_be_bytes(span.trace_id().to_bytes()),
            span_id: u64::from_be_bytes(span.span_id().to_bytes()),
            flags: span.trace_flags().to_u8(),
        })
    }

    /// This context as the remote parent of a span.
    pub(crate) fn as_remote_parent(self) -> SpanContext {
        SpanContext::new(
            TraceId::from_bytes(self.trace_id.to_be_bytes()),
            SpanId::from_bytes(self.span_id.to_be_bytes()),
            TraceFlags::new(self.flags),
            true,
            TraceState::default(),
        )
    }
}

impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            trace_id,
            span_id,
            flags,
        } = self;
        write!(f, "00-{trace_id:032x}-{span_id:016x}-{flags:02x}")
    }
}

impl FromStr for TraceContext {
    type Err = InvalidTraceparent;

    /// Version 00 has exactly four fields; a later version may have more, which are not kept.
    fn from_str(text: &str) -> Result<Self, InvalidTraceparent> {
        let (fields, rest) = text.split_at_checked(LEN).ok_or(InvalidTraceparent)?;
        let mut fields = fields.split('-');
        let version: u8 = hex(fields.next(), 2)?;
        let parsed = Self {
            trace_id: hex(fields.next(), 32)?,
            span_id: hex(fields.next(), 16)?,
            flags: hex(fields.next(), 2)?,
        };
        let complete = match version {
            0 => rest.is_empty(),
            0xff => false,
            _ => rest.is_empty() || rest.starts_with('-'),
        };
        let valid = complete && parsed.trace_id != 0 && parsed.span_id != 0;
        valid.then_some(parsed).ok_or(InvalidTraceparent)
    }
}

/// A field of exactly `digits` lower-case hexadecimal digits.
fn hex<T: TryFrom<u128>>(field: Option<&str>, digits: usize) -> Result<T, InvalidTraceparent> {
    let field = field
        .filter(|field| field.len() == digits)
        .ok_or(InvalidTraceparent)?;
    if !field
        .bytes()
        .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    {
        return Err(InvalidTraceparent);
    }
    let value = u128::from_str_radix(field, 16).map_err(|_| InvalidTraceparent)?;
    T::try_from(value).map_err(|_| InvalidTraceparent)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn parse(text: &str) -> Result<String, InvalidTraceparent> {
        text.parse::<TraceContext>()
            .map(|context| context.to_string())
    }

    #[test]
    fn a_valid_text_survives_unchanged() {
        let unknown_flags = "00-00000000000000000000000000000001-0000000000000001-fe";
        assert_eq!(parse(TEXT).as_deref(), Ok(TEXT));
        assert_eq!(parse(unknown_flags).as_deref(), Ok(unknown_flags));
    }

    #[test]
    fn a_later_version_is_read_by_its_first_four_fields() {
        let later = TEXT.replacen("00-", "cc-", 1);
        assert_eq!(parse(&later).as_deref(), Ok(TEXT));
        assert_eq!(parse(&format!("{later}-what-follows")).as_deref(), Ok(TEXT));
        assert!(parse(&format!("{later}0")).is_err());
    }

    #[test]
    fn anything_else_is_refused() {
        let refused = [
            "",
            "00",
            &TEXT[..54],
            &format!("{TEXT}0"),
            &format!("{TEXT}-00"),
            &format!(" {}", &TEXT[..54]),
            &TEXT.replacen("00-", "ff-", 1),
            &TEXT.to_uppercase(),
            &TEXT.replace('-', "_"),
            &TEXT.replace('4', "+"),
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-é",
        ];
        for text in refused {
            assert_eq!(parse(text), Err(InvalidTraceparent), "{text}");
        }
    }

    #[test]
    fn a_fresh_context_is_unsampled_and_never_all_zeros() {
        let zeros = TraceContext::unsampled([0; 24]).to_string();
        assert_eq!(
            zeros,
            "00-00000000000000000000000000000001-0000000000000001-00"
        );
        let ones = TraceContext::unsampled([0xff; 24]);
        assert!(!ones.is_sampled());
        assert_eq!(parse(&ones.to_string()), Ok(ones.to_string()));
    }
}
