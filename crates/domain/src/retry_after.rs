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

#[cfg(test)]
mod tests {
    use chrono::TimeZone;
    use proptest::prelude::*;

    use super::*;

    /// A minute before the example date of RFC 9110.
    fn now() -> DateTime<Utc> {
        Utc.with_ymd_and_hms(1994, 11, 6, 8, 48, 37).unwrap()
    }

    fn wait(field: &str) -> Option<Duration> {
        parse(field, now())
    }

    #[test]
    fn whole_seconds_are_obeyed_up_to_a_day() {
        assert_eq!(wait("0"), Some(Duration::ZERO));
        assert_eq!(wait("120"), Some(Duration::from_mins(2)));
        assert_eq!(wait("007"), Some(Duration::from_secs(7)));
        assert_eq!(wait("86400"), Some(RETRY_AFTER_MAX));
        assert_eq!(wait("86401"), Some(RETRY_AFTER_MAX));
        assert_eq!(wait("99999999999999999999999999"), Some(RETRY_AFTER_MAX));
    }

    #[test]
    fn the_three_forms_of_an_http_date_are_obeyed_up_to_a_day() {
        let minute = Some(Duration::from_mins(1));
        assert_eq!(wait("Sun, 06 Nov 1994 08:49:37 GMT"), minute);
        assert_eq!(wait("Sunday, 06-Nov-94 08:49:37 GMT"), minute);
        assert_eq!(wait("Sun Nov  6 08:49:37 1994"), minute);
        assert_eq!(wait("Fri, 06 Nov 2015 08:49:37 GMT"), Some(RETRY_AFTER_MAX));
    }

    #[test]
    fn a_date_that_is_not_ahead_asks_for_nothing() {
        assert_eq!(wait("Sun, 06 Nov 1994 08:48:37 GMT"), None);
        assert_eq!(wait("Sun, 06 Nov 1994 08:48:36 GMT"), None);
        let second = Some(Duration::from_secs(1));
        assert_eq!(wait("Sun, 06 Nov 1994 08:48:38 GMT"), second);
    }

    #[test]
    fn anything_else_is_as_if_it_had_not_been_sent() {
        let malformed = [
            "",
            " ",
            "+5",
            "-5",
            "120.5",
            "1e300",
            "5, 10",
            "5 ",
            " 5",
            "soon",
            "0x10",
            "５",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "1994-11-06T08:49:37Z",
        ];
        for field in malformed {
            assert_eq!(wait(field), None, "{field:?}");
        }
    }

    proptest! {
        #[test]
        fn no_field_asks_for_more_than_a_day_or_breaks_the_reader(field in ".*") {
            prop_assert!(wait(&field).is_none_or(|wait| wait <= RETRY_AFTER_MAX));
        }
    }
}
