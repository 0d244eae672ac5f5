//! The `Retry-After` field of a response (RFC 9110, section 10.2.3), read strictly. What cannot be
//! read is as if it had not been sent.

use std::time::Duration;

use chrono::{DateTime, Utc};

/// The longest wait a receiver can ask for: 24 hours. What it asks beyond that is cut.
pub const RETRY_AFTER_MAX: Duration = Duration::from_hours(24);

/// The wait asked for: whole seconds, or an HTTP date in one of its three forms counted from `now`.
/// `None` for anything else and for a date that has passed; never more than [`RETRY_AFTER_MAX`].
pub fn parse(field: &str, now: DateTime<Utc>) -> Option<Duration> {
    seconds(field)
        .or_else(|| until_date(field, now))
        .map(|wait| wait.min(RETRY_AFTER_MAX))
}

/// `1*DIGIT`. More digits than fit mean "very long", so they saturate instead of failing.
fn seconds(field: &str) -> Option<Duration> {
    let all_digits = !field.is_empty() && field.bytes().all(|byte| byte.is_ascii_digit());
    all_digits.then(|| Duration::from_secs(field.parse().unwrap_or(u64::MAX)))
}

fn until_date(field: &str, now: DateTime<Utc>) -> Option<Duration> {
    let date = DateTime::<Utc>::from(httpdate::parse_http_date(field).ok()?);
    let wait = date.signed_duration_since(now).to_std().ok()?;
    (!wait.is_zero()).then_some(wait)
}
