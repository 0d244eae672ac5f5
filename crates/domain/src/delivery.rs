//! What a delivery is called and which states it can be in. It does not say which state follows
//! which: the guarded statements of the store are those arrows.

use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

use crate::names::names;

/// Largest number of milliseconds the first 48 bits of an id can hold.
const UNIX_MILLISECONDS_MAX: i64 = (1 << 48) - 1;

names! {
    /// Where a delivery stands.
    pub enum Status: "delivery status" {
        /// Ready to be claimed for its first attempt, or given back unattempted.
        Pending = "pending",
        /// Claimed under a lease.
        InFlight = "in_flight",
        /// An attempt failed; the next one has its due time.
        Failed = "failed",
        /// Waiting at its endpoint's gate, for a [`HoldReason`].
        Held = "held",
        /// Accepted by the receiver. Final.
        Delivered = "delivered",
        /// Given up, for a [`DeadLetterReason`]. Final until it is replayed.
        DeadLetter = "dead_letter",
    }
}

names! {
    /// Why a delivery waits at its endpoint's gate.
    pub enum HoldReason: "hold reason" {
        /// The endpoint's circuit breaker is not closed.
        BreakerOpen = "breaker_open",
        /// An operator paused the endpoint.
        Paused = "paused",
        /// The endpoint is switched off, by an operator or by its own 410.
        Disabled = "disabled",
        /// No tokens are left in one of the endpoint's rate windows.
        RateLimited = "rate_limited",
        /// The endpoint's concurrency limit is reached.
        Busy = "busy",
        /// An earlier delivery of the same key is not finished.
        Ordered = "ordered",
    }
}

names! {
    /// Why a delivery was given up.
    pub enum DeadLetterReason: "dead letter reason" {
        /// Every permitted attempt failed in a way that could have passed.
        AttemptsExhausted = "attempts_exhausted",
        /// The receiver refused in a way that repeating does not change.
        Rejected = "rejected",
        /// The receiver says the endpoint no longer exists (410).
        EndpointGone = "endpoint_gone",
        /// The endpoint leads to an address that must not be called.
        ForbiddenAddress = "forbidden_address",
        /// The endpoint cannot be called as it is configured.
        Configuration = "configuration",
        /// It was held longer than the maximum age.
        WaitExpired = "wait_expired",
    }
}

/// The id of the one delivery of an event to an endpoint, the same whoever computes it.
///
/// A version 8 UUID: the first 48 bits are the event's time in unix milliseconds (clamped to what
/// they hold), so that ids sort and partition by time; the rest comes from the SHA-256 of event id
/// and endpoint id.
pub fn delivery_id(event_id: Uuid, endpoint_id: Uuid, event_created_at: DateTime<Utc>) -> Uuid {
    let milliseconds = event_created_at
        .timestamp_millis()
        .clamp(0, UNIX_MILLISECONDS_MAX);
    let digest = Sha256::new()
        .chain_update(event_id.as_bytes())
        .chain_update(endpoint_id.as_bytes())
        .finalize();
    let mut bytes = [0; 16];
    bytes[..6].copy_from_slice(&milliseconds.to_be_bytes()[2..]);
    bytes[6..].copy_from_slice(&digest[..10]);
    Builder::from_custom_bytes(bytes).into_uuid()
}

#[cfg(test)]
mod tests {
    use chrono::TimeZone;
    use proptest::prelude::*;

    use super::*;

    fn at(milliseconds: i64) -> DateTime<Utc> {
        Utc.timestamp_millis_opt(milliseconds).unwrap()
    }

    #[test]
    fn an_id_is_the_same_for_every_program_and_version() {
        let id = delivery_id(
            Uuid::from_u128(1),
            Uuid::from_u128(2),
            at(1_767_225_600_123),
        );
        assert_eq!(id.to_string(), "019b76da-a87b-88d6-8721-debb423cf880");
    }

    #[test]
    fn times_that_do_not_fit_are_clamped() {
        let first_six = |milliseconds| {
            let id = delivery_id(Uuid::nil(), Uuid::nil(), at(milliseconds));
            id.as_bytes()[..6].to_vec()
        };
        assert_eq!(first_six(-1), [0; 6]);
        assert_eq!(first_six(0), [0; 6]);
        assert_eq!(first_six(1), [0, 0, 0, 0, 0, 1]);
        // The year 10889, which PostgreSQL can hold, is where 48 bits end.
        let end = DateTime::<Utc>::MAX_UTC;
        let id = delivery_id(Uuid::nil(), Uuid::nil(), end);
        assert_eq!(id.as_bytes()[..6], [0xff; 6]);
    }

    #[test]
    fn names_are_read_back_as_what_was_written() {
        for status in Status::ALL {
            assert_eq!(status.as_str().parse(), Ok(*status));
        }
        for reason in HoldReason::ALL {
            assert_eq!(reason.as_str().parse(), Ok(*reason));
        }
        for reason in DeadLetterReason::ALL {
            assert_eq!(reason.as_str().parse(), Ok(*reason));
        }
        let unknown = "Pending".parse::<Status>().unwrap_err();
        assert_eq!(unknown.to_string(), "not a known delivery status");
    }

    proptest! {
        #[test]
        fn an_id_is_a_version_8_uuid_that_begins_with_the_events_time(
            event in any::<u128>(),
            endpoint in any::<u128>(),
            milliseconds in 0..=4_102_444_800_000_i64,
        ) {
            let (event, endpoint) = (Uuid::from_u128(event), Uuid::from_u128(endpoint));
            let id = delivery_id(event, endpoint, at(milliseconds));
            prop_assert_eq!(id.get_version_num(), 8);
            prop_assert_eq!(id.get_variant(), uuid::Variant::RFC4122);
            prop_assert_eq!(id.as_u128() >> 80, milliseconds.unsigned_abs().into());
            prop_assert_eq!(id, delivery_id(event, endpoint, at(milliseconds)));
            if event != endpoint {
                prop_assert_ne!(id, delivery_id(endpoint, event, at(milliseconds)));
            }
        }
    }
}
