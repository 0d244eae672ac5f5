//! Typed recorders for the catalogue's metrics, one for each program.
//!
//! They only record: what is counted, and when, is the caller's decision. Without an installed
//! exporter every call is a no-op of the OpenTelemetry API.

use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Counter, Histogram, Meter, UpDownCounter};

use crate::labels::{
    AttemptOutcome, BreakerState, ClaimOutcome, DeadLetterReason, ErrorClass, EventOutcome,
    HintOrigin, HintOutcome, SweepKind,
};
use crate::names::{self, Metric};

/// What the relay counts.
#[derive(Debug, Clone)]
pub struct RelayMetrics {
    events: Counter<u64>,
    turn_duration: Histogram<f64>,
    hints: Counter<u64>,
    sweep: Counter<u64>,
    dead_lettered: Counter<u64>,
}

impl RelayMetrics {
    /// The relay's instruments on `meter`.
    pub fn new(meter: &Meter) -> Self {
        Self {
            events: counter(meter, &names::OUTBOX_EVENTS),
            turn_duration: histogram(meter, &names::OUTBOX_TURN_DURATION),
            hints: counter(meter, &names::HINTS_PUBLISHED),
            sweep: counter(meter, &names::SWEEP_REPUBLISHED),
            dead_lettered: counter(meter, &names::DEAD_LETTERED),
        }
    }

    /// `count` outbox events are finished with.
    pub fn events(&self, outcome: EventOutcome, count: u64) {
        self.events
            .add(count, &[label(&EventOutcome::LABEL, outcome.as_str())]);
    }

    /// A turn that found events took `elapsed`.
    pub fn turn(&self, elapsed: Duration) {
        self.turn_duration.record(elapsed.as_secs_f64(), &[]);
    }

    /// `count` hints were handed to the broker.
    pub fn hints(&self, origin: HintOrigin, outcome: HintOutcome, count: u64) {
        self.hints.add(count, &hint_labels(origin, outcome));
    }

    /// The sweep set `count` deliveries moving again.
    pub fn swept(&self, kind: SweepKind, count: u64) {
        self.sweep
            .add(count, &[label(&SweepKind::LABEL, kind.as_str())]);
    }

    /// `count` deliveries were given up while sweeping or expanding.
    pub fn dead_lettered(&self, reason: DeadLetterReason, count: u64) {
        self.dead_lettered
            .add(count, &[label(&DeadLetterReason::LABEL, reason.as_str())]);
    }
}

/// What the dispatcher counts.
#[derive(Debug, Clone)]
pub struct DispatcherMetrics {
    hints: Counter<u64>,
    claims: Counter<u64>,
    attempt_duration: Histogram<f64>,
    delivery_delay: Histogram<f64>,
    dead_lettered: Counter<u64>,
    breaker: Counter<u64>,
    leases_lost: Counter<u64>,
    in_flight: UpDownCounter<i64>,
}

impl DispatcherMetrics {
    /// The dispatcher's instruments on `meter`.
    pub fn new(meter: &Meter) -> Self {
        Self {
            hints: counter(meter, &names::HINTS_PUBLISHED),
            claims: counter(meter, &names::CLAIMS),
            attempt_duration: histogram(meter, &names::ATTEMPT_DURATION),
            delivery_delay: histogram(meter, &names::DELIVERY_DELAY),
            dead_lettered: counter(meter, &names::DEAD_LETTERED),
            breaker: counter(meter, &names::BREAKER_TRANSITIONS),
            leases_lost: counter(meter, &names::LEASES_LOST),
            in_flight: up_down_counter(meter, &names::ATTEMPTS_IN_FLIGHT),
        }
    }

    /// `count` hints were handed to the broker.
    pub fn hints(&self, origin: HintOrigin, outcome: HintOutcome, count: u64) {
        self.hints.add(count, &hint_labels(origin, outcome));
    }

    /// `count` deliveries were asked for.
    pub fn claims(&self, outcome: ClaimOutcome, count: u64) {
        self.claims
            .add(count, &[label(&ClaimOutcome::LABEL, outcome.as_str())]);
    }

    /// An attempt took `elapsed` and ended so; [`ErrorClass::None`] stands for a success.
    pub fn attempt(&self, outcome: AttemptOutcome, error: ErrorClass, elapsed: Duration) {
        let labels = [
            label(&AttemptOutcome::LABEL, outcome.as_str()),
            label(&ErrorClass::LABEL, error.as_str()),
        ];
        self.attempt_duration.record(elapsed.as_secs_f64(), &labels);
    }

    /// A delivery was recorded `delay` after its event was committed.
    pub fn delivered(&self, delay: Duration) {
        self.delivery_delay.record(delay.as_secs_f64(), &[]);
    }

    /// `count` deliveries were given up.
    pub fn dead_lettered(&self, reason: DeadLetterReason, count: u64) {
        self.dead_lettered
            .add(count, &[label(&DeadLetterReason::LABEL, reason.as_str())]);
    }

    /// A breaker moved.
    pub fn breaker_moved(&self, to: BreakerState) {
        self.breaker
            .add(1, &[label(&BreakerState::LABEL, to.as_str())]);
    }

    /// `count` attempts found their lease gone.
    pub fn leases_lost(&self, count: u64) {
        self.leases_lost.add(count, &[]);
    }

    /// Counts an attempt as running until the guard is dropped.
    pub fn attempt_started(&self) -> InFlight {
        self.in_flight.add(1, &[]);
        InFlight(self.in_flight.clone())
    }
}

/// An attempt that runs; dropping it, by a panic or a cancellation too, ends it.
#[derive(Debug)]
#[must_use = "the attempt counts as ended when this is dropped"]
pub struct InFlight(UpDownCounter<i64>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.add(-1, &[]);
    }
}

fn label(of: &names::Label, value: &'static str) -> KeyValue {
    KeyValue::new(of.key, value)
}

fn hint_labels(origin: HintOrigin, outcome: HintOutcome) -> [KeyValue; 2] {
    [
        label(&HintOrigin::LABEL, origin.as_str()),
        label(&HintOutcome::LABEL, outcome.as_str()),
    ]
}

fn counter(meter: &Meter, metric: &Metric) -> Counter<u64> {
    meter
        .u64_counter(metric.name)
        .with_unit(metric.unit)
        .with_description(metric.description)
        .build()
}

fn up_down_counter(meter: &Meter, metric: &Metric) -> UpDownCounter<i64> {
    meter
        .i64_up_down_counter(metric.name)
        .with_unit(metric.unit)
        .with_description(metric.description)
        .build()
}

/// The boundaries are given because the SDK's own are meant for milliseconds.
fn histogram(meter: &Meter, metric: &Metric) -> Histogram<f64> {
    meter
        .f64_histogram(metric.name)
        .with_unit(metric.unit)
        .with_description(metric.description)
        .with_boundaries(metric.boundaries.to_vec())
        .build()
}
