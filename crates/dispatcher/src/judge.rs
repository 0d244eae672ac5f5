//! From an attempt that has ended to what is stored of it: the domain's verdict in the store's terms.

use std::time::{Duration, Instant};

use broker::Receipt;
use domain::{
    judge::{Attempt, HealthEffect, Judgement, Verdict, judge},
    outcome::{FailureClass, Outcome},
};
use store::{AttemptRecord, Settled, SettledStatus};

use crate::{endpoints::Endpoint, send::Finished};
use std::sync::Arc;

/// A judged attempt, ready to be settled.
pub(crate) struct Judged {
    pub(crate) settled: Settled,
    pub(crate) judgement: Judgement,
    pub(crate) outcome: Outcome,
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) is_probe: bool,
    pub(crate) receipt: Receipt,
    pub(crate) traceparent: Option<String>,
    pub(crate) started: Instant,
    pub(crate) duration: Duration,
    /// Age of the event when it was claimed, and when that was.
    pub(crate) claimed_age: Duration,
    pub(crate) claimed_at: Instant,
}

impl Judged {
    /// Judges; `chance` in [0, 1) spreads the retries, `horizon` is how far the broker's timers reach.
    pub(crate) fn new(finished: Finished, chance: f64, horizon: Duration) -> Judged {
        let Finished {
            claimed,
            endpoint,
            clock,
            is_probe,
            receipt,
            started,
            observation,
        } = finished;
        let attempt = Attempt {
            number: claimed.attempt_count.saturating_add(1),
            max_attempts: claimed.max_attempts,
        };
        let judgement = judge(
            &observation.outcome,
            attempt,
            &endpoint.retry,
            &endpoint.rules,
            clock.now(),
            chance,
        );
        let record = AttemptRecord {
            number: attempt.number,
            started_ago: started.elapsed(),
            duration: observation.duration,
            status_code: status_code(&observation.outcome),
            error_class: observation.outcome.error_class(),
            error: observation.error.clone(),
            response_body: observation.response_body,
        };
        let settled = Settled {
            delivery_id: claimed.id,
            endpoint_id: claimed.endpoint_id,
            lease_token: claimed.lease_token,
            status: status(judgement.verdict, horizon),
            attempt: may_have_left(&observation.outcome).then_some(record),
            error: observation.error,
        };
        Judged {
            settled,
            judgement,
            outcome: observation.outcome,
            endpoint,
            is_probe,
            receipt,
            traceparent: claimed.traceparent,
            started,
            duration: observation.duration,
            claimed_age: claimed.age,
            claimed_at: started.checked_sub(clock.elapsed()).unwrap_or(started),
        }
    }

    /// The message for the retry, if there is one that the broker can time.
    pub(crate) fn retry_after(&self, horizon: Duration) -> Option<Duration> {
        match self.judgement.verdict {
            Verdict::Retry { after } if after <= horizon => Some(after),
            Verdict::Retry { .. } | Verdict::Delivered | Verdict::DeadLetter(_) => None,
        }
    }

    /// Whether this result can change its endpoint's health beyond confirming it.
    pub(crate) fn moves_health(&self) -> bool {
        self.is_probe || self.judgement.health == HealthEffect::Failure
    }
}

/// An attempt is charged only when a request may have left.
fn may_have_left(outcome: &Outcome) -> bool {
    !matches!(
        outcome,
        Outcome::Failure(FailureClass::Configuration | FailureClass::ForbiddenAddress)
    )
}

fn status_code(outcome: &Outcome) -> Option<u16> {
    match outcome {
        Outcome::Response { status, .. } => Some(*status),
        Outcome::Failure(_) => None,
    }
}

fn status(verdict: Verdict, horizon: Duration) -> SettledStatus {
    match verdict {
        Verdict::Delivered => SettledStatus::Delivered,
        Verdict::DeadLetter(reason) => SettledStatus::DeadLetter(reason),
        Verdict::Retry { after } => SettledStatus::Failed {
            retry_after: after,
            hint_after: hint_after(after, horizon),
        },
    }
}

/// When the sweep is to look after a retry. Waits that the broker cannot time stay in the database
/// until half of what it can time is left; then the sweep publishes them with the rest.
fn hint_after(retry_after: Duration, horizon: Duration) -> Duration {
    if retry_after <= horizon {
        retry_after
    } else {
        retry_after.saturating_sub(horizon / 2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sweep_takes_over_waits_the_broker_cannot_time_and_leaves_it_time_to_do_so() {
        let horizon = Duration::from_secs(4095);
        assert_eq!(hint_after(horizon, horizon), horizon);
        let longer = horizon + Duration::from_secs(1);
        let left = longer.saturating_sub(hint_after(longer, horizon));
        assert!(left <= horizon && left > Duration::from_mins(30));
    }

    #[test]
    fn what_never_left_is_not_charged() {
        assert!(!may_have_left(&Outcome::Failure(
            FailureClass::Configuration
        )));
        assert!(!may_have_left(&Outcome::Failure(
            FailureClass::ForbiddenAddress
        )));
        assert!(may_have_left(&Outcome::Failure(FailureClass::Timeout)));
        assert!(may_have_left(&Outcome::response(500, None)));
    }
}
