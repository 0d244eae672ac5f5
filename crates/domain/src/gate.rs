//! The one gate of an endpoint: asked before anything is sent, and asked again how much of what
//! waits may be let out.
//!
//! Whatever makes a delivery wait belongs here. Rate limits, the concurrency limit and strict order
//! join as further [`GateFacts`] and with the reasons [`HoldReason`] has for them, never as a
//! second way to wait. It does not move the breaker; [`crate::breaker`] does.

use chrono::{DateTime, Utc};

use crate::{
    breaker::{Breaker, BreakerState},
    delivery::HoldReason,
};

/// How many held deliveries are let out in the first second after a recovery.
pub const RAMP_START: u32 = 10;

/// What an endpoint's gate depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateFacts {
    /// Switched off, by an operator or by the endpoint's own 410.
    pub disabled: bool,
    /// Paused by an operator.
    pub paused: bool,
    /// The endpoint's breaker as stored.
    pub breaker: Breaker,
}

/// The gate's answer to one delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Send it.
    Open,
    /// Send it as the one probe, if the claim of the probe succeeds.
    Probe,
    /// Let it wait.
    Hold(HoldReason),
}

/// Whether a delivery may be sent now. What an operator decided goes before what was measured.
pub fn admit(facts: &GateFacts, now: DateTime<Utc>) -> Admission {
    if facts.disabled {
        Admission::Hold(HoldReason::Disabled)
    } else if facts.paused {
        Admission::Hold(HoldReason::Paused)
    } else if facts.breaker.state == BreakerState::Closed {
        Admission::Open
    } else if facts.breaker.probe_due(now) {
        Admission::Probe
    } else {
        Admission::Hold(HoldReason::BreakerOpen)
    }
}

/// How many held deliveries may be let out now, at most `most`. After a recovery the room grows
/// with time, so that an endpoint just back on its feet does not get its whole backlog at once.
pub fn release_room(facts: &GateFacts, now: DateTime<Utc>, most: u32) -> u32 {
    match admit(facts, now) {
        Admission::Hold(_) => 0,
        Admission::Probe => most.min(1),
        Admission::Open => facts
            .breaker
            .recovered_at
            .map_or(most, |recovered_at| ramp(recovered_at, now).min(most)),
    }
}

/// [`RAMP_START`], doubled for each whole second since the recovery.
fn ramp(recovered_at: DateTime<Utc>, now: DateTime<Utc>) -> u32 {
    let seconds = now.signed_duration_since(recovered_at).num_seconds().max(0);
    let doublings = u32::try_from(seconds).unwrap_or(u32::MAX);
    RAMP_START.saturating_mul(1_u32.checked_shl(doublings).unwrap_or(u32::MAX))
}
