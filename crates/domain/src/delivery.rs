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
