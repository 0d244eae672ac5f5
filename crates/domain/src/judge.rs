//! From fact to decision: what an attempt's [`Outcome`] means for its delivery, for the endpoint's
//! health and for the endpoint itself. It does not carry any of it out.

mod status_rules;

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::{
    delivery::DeadLetterReason,
    outcome::{FailureClass, Outcome},
    retry::RetryPolicy,
    retry_after,
};

pub use status_rules::{StatusRules, StatusSet, StatusSetError};

/// Which attempt of a delivery this was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {
    /// 1 for the first.
    pub number: u32,
    /// How many there may be.
    pub max_attempts: u32,
}

/// What to do about an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judgement {
    /// What happens to the delivery.
    pub verdict: Verdict,
    /// What the breaker learns.
    pub health: HealthEffect,
    /// Whether the endpoint is to be switched off.
    pub disable_endpoint: bool,
}

/// What happens to a delivery after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Accepted.
    Delivered,
    /// To be tried again, not before this wait.
    Retry {
        /// Counted from the moment of judgement.
        after: Duration,
    },
    /// Given up.
    DeadLetter(DeadLetterReason),
}

/// What an attempt says about its endpoint's health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HealthEffect {
    /// It works.
    Success,
    /// It does not.
    Failure,
    /// Nothing: it asked for patience, or the fault is not the endpoint's.
    Neutral,
}

/// Judges one attempt. `chance` is uniform in `[0, 1)` and feeds the jitter; a `Retry-After` is
/// obeyed for every status that is retried, and never shortens the backoff.
pub fn judge(
    outcome: &Outcome,
    attempt: Attempt,
    policy: &RetryPolicy,
    rules: &StatusRules,
    now: DateTime<Utc>,
    chance: f64,
) -> Judgement {
    let class = classify(outcome, rules);
    let verdict = match class {
        Class::Success => Verdict::Delivered,
        Class::Permanent(reason) => Verdict::DeadLetter(reason),
        Class::Transient if attempt.number >= attempt.max_attempts => {
            Verdict::DeadLetter(DeadLetterReason::AttemptsExhausted)
        }
        Class::Transient => Verdict::Retry {
            after: wait(outcome, attempt, policy, now, chance),
        },
    };
    Judgement {
        verdict,
        health: health(outcome, class),
        disable_endpoint: class == Class::Permanent(DeadLetterReason::EndpointGone),
    }
}

/// Whether repeating an attempt can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Success,
    Transient,
    Permanent(DeadLetterReason),
}

fn classify(outcome: &Outcome, rules: &StatusRules) -> Class {
    match outcome {
        Outcome::Response { status, .. } => classify_status(*status, rules),
        Outcome::Failure(FailureClass::ForbiddenAddress) => {
            Class::Permanent(DeadLetterReason::ForbiddenAddress)
        }
        Outcome::Failure(FailureClass::Configuration) => {
            Class::Permanent(DeadLetterReason::Configuration)
        }
        Outcome::Failure(
            FailureClass::Dns
            | FailureClass::Connect
            | FailureClass::Tls
            | FailureClass::Timeout
            | FailureClass::ConnectionClosed
            | FailureClass::Protocol,
        ) => Class::Transient,
    }
}

/// Success first, so that no rule can turn it into anything else; then the endpoint's own rules;
/// then ours. A status no HTTP response can have is a protocol failure.
fn classify_status(status: u16, rules: &StatusRules) -> Class {
    match status {
        200..=299 => Class::Success,
        _ if rules.reject.contains(status) => Class::Permanent(DeadLetterReason::Rejected),
        _ if rules.retry.contains(status) => Class::Transient,
        410 => Class::Permanent(DeadLetterReason::EndpointGone),
        408 | 425 | 429 | 500.. | ..100 => Class::Transient,
        _ => Class::Permanent(DeadLetterReason::Rejected),
    }
}

/// The longer of the backoff and what the receiver asked for.
fn wait(
    outcome: &Outcome,
    attempt: Attempt,
    policy: &RetryPolicy,
    now: DateTime<Utc>,
    chance: f64,
) -> Duration {
    let asked = match outcome {
        Outcome::Response { retry_after, .. } => retry_after
            .as_deref()
            .and_then(|field| retry_after::parse(field, now)),
        Outcome::Failure(_) => None,
    };
    policy
        .delay(attempt.number, chance)
        .max(asked.unwrap_or_default())
}

fn health(outcome: &Outcome, class: Class) -> HealthEffect {
    match (class, outcome) {
        (Class::Success, _) => HealthEffect::Success,
        (
            Class::Permanent(
                DeadLetterReason::EndpointGone
                | DeadLetterReason::ForbiddenAddress
                | DeadLetterReason::Configuration,
            ),
            _,
        )
        | (_, Outcome::Response { status: 429, .. }) => HealthEffect::Neutral,
        (Class::Permanent(_) | Class::Transient, _) => HealthEffect::Failure,
    }
}

#[cfg(test)]
mod tests;
