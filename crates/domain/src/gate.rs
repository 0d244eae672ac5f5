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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::breaker::BreakerLimits;

    const LIMITS: BreakerLimits = BreakerLimits {
        failure_threshold: 10,
        cooldown: Duration::from_mins(5),
        cooldown_cap: Duration::from_hours(1),
    };

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(seconds, 0).unwrap()
    }

    fn closed() -> GateFacts {
        GateFacts {
            disabled: false,
            paused: false,
            breaker: Breaker::new(&LIMITS),
        }
    }

    fn opened_at_zero() -> GateFacts {
        let mut facts = closed();
        facts.breaker.state = BreakerState::Open;
        facts.breaker.opened_at = Some(at(0));
        facts
    }

    fn recovered_at_zero() -> GateFacts {
        let mut facts = closed();
        facts.breaker.recovered_at = Some(at(0));
        facts
    }

    #[test]
    fn what_an_operator_decided_goes_before_the_breaker() {
        let mut facts = opened_at_zero();
        assert_eq!(
            admit(&facts, at(0)),
            Admission::Hold(HoldReason::BreakerOpen)
        );
        facts.paused = true;
        assert_eq!(admit(&facts, at(300)), Admission::Hold(HoldReason::Paused));
        facts.disabled = true;
        assert_eq!(
            admit(&facts, at(300)),
            Admission::Hold(HoldReason::Disabled)
        );
        assert_eq!(release_room(&facts, at(300), 100), 0);
    }

    #[test]
    fn an_open_breaker_holds_everything_until_its_cooldown_is_over() {
        let facts = opened_at_zero();
        assert_eq!(
            admit(&facts, at(299)),
            Admission::Hold(HoldReason::BreakerOpen)
        );
        assert_eq!(release_room(&facts, at(299), 100), 0);
        assert_eq!(admit(&facts, at(300)), Admission::Probe);
        assert_eq!(release_room(&facts, at(300), 100), 1);
        assert_eq!(release_room(&facts, at(300), 0), 0);
    }

    #[test]
    fn while_the_probe_is_out_nothing_else_is_let_out() {
        let mut facts = opened_at_zero();
        facts.breaker = facts.breaker.start_probe(at(300), at(320));
        assert_eq!(
            admit(&facts, at(320)),
            Admission::Hold(HoldReason::BreakerOpen)
        );
        assert_eq!(release_room(&facts, at(320), 100), 0);
        assert_eq!(admit(&facts, at(321)), Admission::Probe);
        assert_eq!(release_room(&facts, at(321), 100), 1);
    }

    #[test]
    fn a_gate_that_was_never_shut_has_all_the_room_asked_for() {
        assert_eq!(admit(&closed(), at(0)), Admission::Open);
        assert_eq!(release_room(&closed(), at(0), 500), 500);
        assert_eq!(release_room(&closed(), at(0), u32::MAX), u32::MAX);
    }

    #[test]
    fn after_a_recovery_the_room_doubles_every_second() {
        let facts = recovered_at_zero();
        let rooms: Vec<u32> = (0..6)
            .map(|second| release_room(&facts, at(second), 200))
            .collect();
        assert_eq!(rooms, [10, 20, 40, 80, 160, 200]);
        assert_eq!(release_room(&facts, at(0), 9), 9);
    }

    #[test]
    fn the_ramp_saturates_and_survives_a_clock_that_is_behind() {
        let facts = recovered_at_zero();
        for seconds in [28, 29, 31, 32, 33, i64::from(u32::MAX), 1 << 40] {
            assert!(
                release_room(&facts, at(seconds), u32::MAX) >= 10 << 28,
                "{seconds}"
            );
        }
        assert_eq!(
            release_room(&facts, DateTime::<Utc>::MAX_UTC, u32::MAX),
            u32::MAX
        );
        assert_eq!(release_room(&facts, at(-5), u32::MAX), RAMP_START);
    }
}
