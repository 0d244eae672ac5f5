//! The breaker's promises, one by one and over random histories.

use proptest::prelude::*;

use super::*;

const LIMITS: BreakerLimits = BreakerLimits {
    failure_threshold: 3,
    cooldown: Duration::from_mins(5),
    cooldown_cap: Duration::from_secs(1000),
};

fn at(seconds: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(seconds, 0).unwrap()
}

fn failed(breaker: Breaker, times: u32, now: DateTime<Utc>) -> Breaker {
    (0..times).fold(breaker, |breaker, _| {
        breaker.record(HealthEffect::Failure, false, &LIMITS, now)
    })
}

/// Opened at second zero.
fn opened() -> Breaker {
    failed(Breaker::new(&LIMITS), 3, at(0))
}

fn probing() -> Breaker {
    opened().start_probe(at(300), at(320))
}

#[test]
fn it_opens_at_the_threshold_and_not_one_failure_before() {
    let nearly = failed(Breaker::new(&LIMITS), 2, at(0));
    assert_eq!(nearly.state, BreakerState::Closed);
    let opened = failed(nearly, 1, at(5));
    assert_eq!(opened.state, BreakerState::Open);
    assert_eq!(opened.opened_at, Some(at(5)));
    assert_eq!(opened.cooldown, LIMITS.cooldown);
}

#[test]
fn a_success_starts_the_count_again_and_a_neutral_result_leaves_it() {
    let nearly = failed(Breaker::new(&LIMITS), 2, at(0));
    let neutral = nearly
        .clone()
        .record(HealthEffect::Neutral, false, &LIMITS, at(1));
    assert_eq!(neutral, nearly);
    let healthy = nearly.record(HealthEffect::Success, false, &LIMITS, at(1));
    assert_eq!(healthy.consecutive_failures, 0);
    assert_eq!(failed(healthy, 2, at(2)).state, BreakerState::Closed);
}

#[test]
fn a_threshold_of_zero_opens_at_the_first_failure_and_not_at_a_success() {
    let limits = BreakerLimits {
        failure_threshold: 0,
        ..LIMITS
    };
    let healthy = Breaker::new(&limits).record(HealthEffect::Success, false, &limits, at(0));
    assert_eq!(healthy.state, BreakerState::Closed);
    let failed = healthy.record(HealthEffect::Failure, false, &limits, at(0));
    assert_eq!(failed.state, BreakerState::Open);
}

#[test]
fn a_failure_count_at_its_limit_stays_there() {
    let limits = BreakerLimits {
        failure_threshold: u32::MAX,
        ..LIMITS
    };
    let mut breaker = Breaker::new(&limits);
    breaker.consecutive_failures = u32::MAX;
    let breaker = breaker.record(HealthEffect::Failure, false, &limits, at(0));
    assert_eq!(breaker.consecutive_failures, u32::MAX);
    assert_eq!(breaker.state, BreakerState::Open);
}

#[test]
fn a_probe_is_due_when_the_cooldown_ends_and_not_a_second_before() {
    assert!(!Breaker::new(&LIMITS).probe_due(at(1_000_000)));
    assert!(!opened().probe_due(at(299)));
    assert!(opened().probe_due(at(300)));
    // A clock that went backwards is no reason to call.
    assert!(!opened().probe_due(at(-1)));
}

#[test]
fn a_probe_that_never_reports_can_be_taken_over_past_its_deadline() {
    assert_eq!(probing().state, BreakerState::HalfOpen);
    assert!(!probing().probe_due(at(320)));
    assert!(probing().probe_due(at(321)));
    let taken_over = probing().start_probe(at(321), at(340));
    assert_eq!(taken_over.probe_deadline, Some(at(340)));
}

#[test]
fn a_probe_that_is_not_due_does_not_start() {
    assert_eq!(opened().start_probe(at(299), at(310)), opened());
    assert_eq!(probing().start_probe(at(320), at(400)), probing());
    let closed = Breaker::new(&LIMITS);
    assert_eq!(closed.clone().start_probe(at(0), at(20)), closed);
}

#[test]
fn a_successful_probe_closes_it_and_brings_the_cooldown_back_to_its_base() {
    let mut breaker = probing();
    breaker.cooldown = Duration::from_mins(10);
    let closed = breaker.record(HealthEffect::Success, true, &LIMITS, at(310));
    let expected = Breaker {
        recovered_at: Some(at(310)),
        ..Breaker::new(&LIMITS)
    };
    assert_eq!(closed, expected);
}

#[test]
fn a_failed_probe_doubles_the_cooldown_up_to_the_cap() {
    let mut breaker = opened();
    let mut cooldowns = Vec::new();
    for round in 1..=4 {
        let now = at(round * 1000);
        breaker = breaker
            .start_probe(now, now)
            .record(HealthEffect::Failure, true, &LIMITS, now);
        assert_eq!(breaker.state, BreakerState::Open);
        assert_eq!(breaker.opened_at, Some(now));
        cooldowns.push(breaker.cooldown.as_secs());
    }
    assert_eq!(cooldowns, [600, 1000, 1000, 1000]);
}

#[test]
fn a_probe_that_proves_nothing_opens_it_again_for_the_same_time() {
    let opened = probing().record(HealthEffect::Neutral, true, &LIMITS, at(310));
    assert_eq!(opened.state, BreakerState::Open);
    assert_eq!(opened.opened_at, Some(at(310)));
    assert_eq!(opened.cooldown, LIMITS.cooldown);
    assert_eq!(opened.probe_deadline, None);
}

#[test]
fn late_results_of_older_attempts_do_not_move_it_once_it_is_open() {
    for effect in [
        HealthEffect::Success,
        HealthEffect::Failure,
        HealthEffect::Neutral,
    ] {
        assert_eq!(opened().record(effect, false, &LIMITS, at(9)), opened());
        assert_eq!(probing().record(effect, false, &LIMITS, at(9)), probing());
    }
}

#[test]
fn a_slow_endpoint_gets_half_the_threshold() {
    let limits = BreakerLimits {
        failure_threshold: 10,
        ..LIMITS
    };
    let threshold = |p95| limits.for_latency(p95).failure_threshold;
    assert_eq!(threshold(None), 10);
    assert_eq!(threshold(Some(SLOW_P95)), 10);
    assert_eq!(threshold(Some(SLOW_P95 + Duration::from_millis(1))), 5);
    let odd = BreakerLimits {
        failure_threshold: 1,
        ..LIMITS
    };
    assert_eq!(odd.for_latency(Some(Duration::MAX)).failure_threshold, 1);
}

#[test]
fn durations_that_overflow_wait_for_ever_or_up_to_the_cap() {
    let limits = BreakerLimits {
        failure_threshold: 1,
        cooldown: Duration::MAX,
        cooldown_cap: Duration::MAX,
    };
    let opened = Breaker::new(&limits).record(HealthEffect::Failure, false, &limits, at(0));
    assert!(!opened.probe_due(DateTime::<Utc>::MAX_UTC));
    let again = opened.record(HealthEffect::Failure, true, &limits, at(0));
    assert_eq!(again.cooldown, Duration::MAX);
}

/// What can happen to one endpoint, in any order.
#[derive(Debug, Clone)]
enum Step {
    TimePasses { seconds: i64 },
    SomeoneAsksForTheProbe,
    TheHolderReports(HealthEffect),
    AnOlderAttemptReports(HealthEffect),
}

fn any_step() -> impl Strategy<Value = Step> {
    let effect = prop_oneof![
        1 => Just(HealthEffect::Success),
        4 => Just(HealthEffect::Failure),
        1 => Just(HealthEffect::Neutral),
    ];
    prop_oneof![
        (0..1500_i64).prop_map(|seconds| Step::TimePasses { seconds }),
        Just(Step::SomeoneAsksForTheProbe),
        effect.clone().prop_map(Step::TheHolderReports),
        effect.prop_map(Step::AnOlderAttemptReports),
    ]
}

/// The world around one breaker: a clock, and the deadline of the one attempt that holds the probe.
struct World {
    breaker: Breaker,
    now: DateTime<Utc>,
    held_until: Option<DateTime<Utc>>,
}

impl World {
    fn take(&mut self, step: &Step) {
        match step {
            Step::TimePasses { seconds } => self.now += chrono::TimeDelta::seconds(*seconds),
            Step::SomeoneAsksForTheProbe => self.ask_for_the_probe(),
            Step::TheHolderReports(effect) => {
                if self.held_until.take().is_some() {
                    self.record(*effect, true);
                }
            }
            Step::AnOlderAttemptReports(effect) => self.report_late(*effect),
        }
    }

    fn ask_for_the_probe(&mut self) {
        if !self.breaker.probe_due(self.now) {
            return;
        }
        let free = self.held_until.is_none_or(|deadline| deadline < self.now);
        assert!(free, "a second probe while the first may still report");
        let deadline = self.now + chrono::TimeDelta::seconds(20);
        self.breaker = self.breaker.clone().start_probe(self.now, deadline);
        self.held_until = Some(deadline);
    }

    fn report_late(&mut self, effect: HealthEffect) {
        let before = self.breaker.clone();
        self.record(effect, false);
        if before.state != BreakerState::Closed {
            assert_eq!(
                before, self.breaker,
                "moved by an attempt that held no probe"
            );
        }
    }

    fn record(&mut self, effect: HealthEffect, by_probe: bool) {
        let breaker = self.breaker.clone();
        self.breaker = breaker.record(effect, by_probe, &LIMITS, self.now);
    }

    fn check(&self) {
        let breaker = &self.breaker;
        assert!((LIMITS.cooldown..=LIMITS.cooldown_cap).contains(&breaker.cooldown));
        let closed = breaker.state == BreakerState::Closed;
        assert_eq!(
            closed,
            breaker.consecutive_failures < LIMITS.failure_threshold
        );
        assert_eq!(closed, breaker.opened_at.is_none());
        let half_open = breaker.state == BreakerState::HalfOpen;
        assert_eq!(half_open, breaker.probe_deadline.is_some());
        assert_eq!(half_open, self.held_until.is_some());
        assert!(closed || breaker.recovered_at.is_none());
    }
}

proptest! {
    #[test]
    fn only_one_probe_moves_an_open_breaker_whatever_happens(
        steps in proptest::collection::vec(any_step(), 0..200),
    ) {
        let mut world = World { breaker: Breaker::new(&LIMITS), now: at(0), held_until: None };
        for step in &steps {
            world.take(step);
            world.check();
        }
    }
}
