//! The judge's promises: every status, every failure, and what an endpoint can override.

use super::*;

const FIRST: Attempt = Attempt {
    number: 1,
    max_attempts: 5,
};
const LAST: Attempt = Attempt {
    number: 5,
    max_attempts: 5,
};
/// Half of the first ceiling of base 30 s.
const BACKOFF: Duration = Duration::from_secs(30);

fn judged_by(outcome: &Outcome, attempt: Attempt, rules: &StatusRules) -> Judgement {
    let policy = RetryPolicy::FullJitter {
        base: Duration::from_secs(30),
        cap: Duration::from_hours(1),
    };
    judge(outcome, attempt, &policy, rules, DateTime::UNIX_EPOCH, 0.5)
}

fn judged(outcome: &Outcome, attempt: Attempt) -> Judgement {
    judged_by(outcome, attempt, &StatusRules::default())
}

fn status(status: u16) -> Outcome {
    Outcome::response(status, None)
}

fn asking(status: u16, retry_after: &str) -> Outcome {
    Outcome::response(status, Some(retry_after.to_owned()))
}

fn judgement(verdict: Verdict, health: HealthEffect) -> Judgement {
    Judgement {
        verdict,
        health,
        disable_endpoint: false,
    }
}

fn retried(health: HealthEffect) -> Judgement {
    judgement(Verdict::Retry { after: BACKOFF }, health)
}

fn given_up(reason: DeadLetterReason, health: HealthEffect) -> Judgement {
    judgement(Verdict::DeadLetter(reason), health)
}

#[test]
fn every_status_has_its_judgement() {
    for code in 0..=999 {
        let expected = match code {
            200..=299 => judgement(Verdict::Delivered, HealthEffect::Success),
            410 => Judgement {
                disable_endpoint: true,
                ..given_up(DeadLetterReason::EndpointGone, HealthEffect::Neutral)
            },
            429 => retried(HealthEffect::Neutral),
            // What is not HTTP is a protocol failure, as transient as a reset.
            408 | 425 | 500..=599 | 0..=99 | 600.. => retried(HealthEffect::Failure),
            100..=499 => given_up(DeadLetterReason::Rejected, HealthEffect::Failure),
        };
        assert_eq!(judged(&status(code), FIRST), expected, "status {code}");
    }
}

#[test]
fn every_failure_has_its_judgement() {
    for class in FailureClass::ALL {
        let expected = match class {
            FailureClass::ForbiddenAddress => {
                given_up(DeadLetterReason::ForbiddenAddress, HealthEffect::Neutral)
            }
            FailureClass::Configuration => {
                given_up(DeadLetterReason::Configuration, HealthEffect::Neutral)
            }
            _ => retried(HealthEffect::Failure),
        };
        assert_eq!(
            judged(&Outcome::Failure(*class), FIRST),
            expected,
            "{class}"
        );
    }
}

#[test]
fn the_last_attempt_ends_in_a_dead_letter_and_counts_as_any_other() {
    let exhausted = |health| given_up(DeadLetterReason::AttemptsExhausted, health);
    assert_eq!(judged(&status(503), LAST), exhausted(HealthEffect::Failure));
    assert_eq!(judged(&status(429), LAST), exhausted(HealthEffect::Neutral));
    let timeout = Outcome::Failure(FailureClass::Timeout);
    assert_eq!(judged(&timeout, LAST), exhausted(HealthEffect::Failure));
}

#[test]
fn attempts_are_exhausted_at_their_maximum_and_not_one_before() {
    let verdict = |number| {
        let attempt = Attempt {
            number,
            max_attempts: 5,
        };
        judged(&status(503), attempt).verdict
    };
    assert!(matches!(verdict(4), Verdict::Retry { .. }));
    let exhausted = Verdict::DeadLetter(DeadLetterReason::AttemptsExhausted);
    assert_eq!(verdict(5), exhausted);
    assert_eq!(verdict(6), exhausted);
}

#[test]
fn a_last_attempt_keeps_the_reason_that_no_retry_would_change() {
    let rejected = given_up(DeadLetterReason::Rejected, HealthEffect::Failure);
    assert_eq!(judged(&status(404), LAST), rejected);
    assert!(judged(&status(410), LAST).disable_endpoint);
    assert_eq!(judged(&status(200), LAST).verdict, Verdict::Delivered);
}

#[test]
fn the_longer_of_retry_after_and_backoff_is_waited() {
    let after = |outcome: &Outcome| match judged(outcome, FIRST).verdict {
        Verdict::Retry { after } => after,
        other => panic!("expected a retry, not {other:?}"),
    };
    for code in [408, 425, 429, 500, 503, 599] {
        assert_eq!(
            after(&asking(code, "120")),
            Duration::from_mins(2),
            "{code}"
        );
    }
    assert_eq!(after(&asking(429, "29")), BACKOFF);
    assert_eq!(after(&asking(429, "31")), Duration::from_secs(31));
    assert_eq!(after(&asking(429, "soon")), BACKOFF);
    assert_eq!(after(&asking(503, "604800")), retry_after::RETRY_AFTER_MAX);
    let date = "Thu, 01 Jan 1970 00:02:00 GMT";
    assert_eq!(after(&asking(503, date)), Duration::from_mins(2));
}

#[test]
fn an_endpoints_own_rules_replace_the_usual_ones() {
    let rules = StatusRules {
        retry: "404,409,410".parse().unwrap(),
        reject: "429,501-599".parse().unwrap(),
    };
    let by_rules = |code| judged_by(&status(code), FIRST, &rules);
    let rejected = |health| given_up(DeadLetterReason::Rejected, health);
    assert_eq!(by_rules(404), retried(HealthEffect::Failure));
    assert_eq!(by_rules(410), retried(HealthEffect::Failure));
    assert_eq!(by_rules(500), retried(HealthEffect::Failure));
    assert_eq!(by_rules(501), rejected(HealthEffect::Failure));
    assert_eq!(by_rules(429), rejected(HealthEffect::Neutral));
    assert_eq!(by_rules(403), rejected(HealthEffect::Failure));
}

#[test]
fn a_status_in_both_rules_is_rejected() {
    let rules = StatusRules {
        retry: "503".parse().unwrap(),
        reject: "503".parse().unwrap(),
    };
    let verdict = judged_by(&status(503), FIRST, &rules).verdict;
    assert_eq!(verdict, Verdict::DeadLetter(DeadLetterReason::Rejected));
}

#[test]
fn a_retry_after_of_a_status_that_is_retried_by_rule_is_obeyed() {
    let rules = StatusRules {
        retry: "404".parse().unwrap(),
        ..StatusRules::default()
    };
    let verdict = judged_by(&asking(404, "90"), FIRST, &rules).verdict;
    let after = Duration::from_secs(90);
    assert_eq!(verdict, Verdict::Retry { after });
}
