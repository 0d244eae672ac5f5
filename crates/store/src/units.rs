//! Conversions between Rust's durations and counts and PostgreSQL's numbers, saturating.

use std::time::Duration;

use uuid::Uuid;

use crate::StoreError;

/// Whole milliseconds for a `bigint`, rounded up so that nothing becomes earlier than asked.
pub(crate) fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos().div_ceil(1_000_000)).unwrap_or(i64::MAX)
}

/// A stored count of milliseconds; what is negative counts as nothing.
pub(crate) fn duration(milliseconds: i64) -> Duration {
    Duration::from_millis(u64::try_from(milliseconds).unwrap_or(0))
}

/// A count for an `integer`.
pub(crate) fn integer(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// A stored `integer` that is never negative.
pub(crate) fn count(stored: i32) -> u32 {
    u32::try_from(stored).unwrap_or(0)
}

/// The smallest and the largest id: with them a statement touches only the partitions it needs. Where
/// rows are found by a join, they are compared as `>= ALL (ARRAY[..])`: that names the partitions but
/// cannot be looked up in an index, which would read everything between the two.
pub(crate) fn bounds(ids: &[Uuid]) -> Option<(Uuid, Uuid)> {
    Some((*ids.iter().min()?, *ids.iter().max()?))
}

/// Reads one of the domain's names back from a text column.
pub(crate) fn named<T: std::str::FromStr>(text: &str) -> Result<T, StoreError> {
    text.parse()
        .map_err(|_| StoreError::Corrupt(format!("unexpected name {text:?}")))
}
