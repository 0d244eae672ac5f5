//! Names, units and labels of every metric and span, as data.
//!
//! The documentation's table is checked against these lists, and the recorders in
//! [`metrics`](crate::metrics) and [`trace`](crate::trace) take their names from here. Units are
//! UCUM codes; a unit in braces counts things.

use crate::labels::{
    AttemptOutcome, BreakerState, ClaimOutcome, DeadLetterReason, ErrorClass, EventOutcome,
    HintOrigin, HintOutcome, SweepKind,
};

/// How a metric's values combine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// A sum that only grows.
    Counter,
    /// A distribution.
    Histogram,
    /// A sum that grows and shrinks.
    UpDownCounter,
    /// The last value seen.
    Gauge,
}

impl MetricKind {
    /// The kind as the documentation writes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Histogram => "histogram",
            Self::UpDownCounter => "up-down counter",
            Self::Gauge => "gauge",
        }
    }
}

/// A label's key and all the values it can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Label {
    /// The attribute's key.
    pub key: &'static str,
    /// Every value that is ever exported.
    pub values: &'static [&'static str],
}

/// One metric of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Metric {
    /// The instrument's name.
    pub name: &'static str,
    /// How its values combine.
    pub kind: MetricKind,
    /// UCUM unit.
    pub unit: &'static str,
    /// What a series may be told apart by.
    pub labels: &'static [Label],
    /// Upper bounds of a histogram's buckets, in the metric's unit; empty for other kinds.
    pub boundaries: &'static [f64],
    /// What it tells, in one sentence.
    pub description: &'static str,
}

impl Metric {
    const fn counter(
        name: &'static str,
        unit: &'static str,
        labels: &'static [Label],
        description: &'static str,
    ) -> Self {
        Self {
            name,
            kind: MetricKind::Counter,
            unit,
            labels,
            boundaries: &[],
            description,
        }
    }

    const fn seconds(
        name: &'static str,
        boundaries: &'static [f64],
        labels: &'static [Label],
        description: &'static str,
    ) -> Self {
        Self {
            name,
            kind: MetricKind::Histogram,
            unit: "s",
            labels,
            boundaries,
            description,
        }
    }
}

/// Bucket bounds for work within one attempt's limit: 1 ms to 15 s.
pub const WORK_SECONDS: &[f64] = &[
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0,
];

/// Bucket bounds for a delivery's whole way, retries and waits included: 1 ms to 24 h.
pub const DELAY_SECONDS: &[f64] = &[
    0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 300.0,
    900.0, 1_800.0, 3_600.0, 14_400.0, 43_200.0, 86_400.0,
];

/// Outbox events that left a relay's turn.
pub const OUTBOX_EVENTS: Metric = Metric::counter(
    "kurier.outbox.events",
    "{event}",
    &[EventOutcome::LABEL],
    "Outbox events that a relay finished with, by what became of them.",
);

/// Length of a relay's turn.
pub const OUTBOX_TURN_DURATION: Metric = Metric::seconds(
    "kurier.outbox.turn.duration",
    WORK_SECONDS,
    &[],
    "Time of one relay turn that found events, from locking them to marking them processed.",
);

/// Hints handed to the broker.
pub const HINTS_PUBLISHED: Metric = Metric::counter(
    "kurier.hints.published",
    "{message}",
    &[HintOrigin::LABEL, HintOutcome::LABEL],
    "Broker messages published, by why and by whether the broker confirmed them.",
);

/// Deliveries asked for by hints.
pub const CLAIMS: Metric = Metric::counter(
    "kurier.claims",
    "{delivery}",
    &[ClaimOutcome::LABEL],
    "Deliveries a dispatcher tried to claim, by what became of the claim.",
);

/// Length of an attempt.
pub const ATTEMPT_DURATION: Metric = Metric::seconds(
    "kurier.attempt.duration",
    WORK_SECONDS,
    &[AttemptOutcome::LABEL, ErrorClass::LABEL],
    "Time of one HTTP attempt, from connecting to the last byte read.",
);

/// Time from commit to delivery.
pub const DELIVERY_DELAY: Metric = Metric::seconds(
    "kurier.delivery.delay",
    DELAY_SECONDS,
    &[],
    "Time from the event's commit to its recorded delivery, retries and waits included.",
);

/// Deliveries given up.
pub const DEAD_LETTERED: Metric = Metric::counter(
    "kurier.deliveries.dead_lettered",
    "{delivery}",
    &[DeadLetterReason::LABEL],
    "Deliveries given up, by reason.",
);

/// Moves of circuit breakers.
pub const BREAKER_TRANSITIONS: Metric = Metric::counter(
    "kurier.breaker.transitions",
    "{transition}",
    &[BreakerState::LABEL],
    "Moves of circuit breakers, by the state they moved to.",
);

/// Attempts whose lease was gone when they wanted to record their result.
pub const LEASES_LOST: Metric = Metric::counter(
    "kurier.leases.lost",
    "{lease}",
    &[],
    "Attempts whose lease was no longer theirs when they wanted to record a result.",
);

/// Deliveries the sweep set moving again.
pub const SWEEP_REPUBLISHED: Metric = Metric::counter(
    "kurier.sweep.republished",
    "{delivery}",
    &[SweepKind::LABEL],
    "Deliveries the sweep found standing still and set moving again, by what held them up.",
);

/// Attempts running now.
pub const ATTEMPTS_IN_FLIGHT: Metric = Metric {
    name: "kurier.attempts.in_flight",
    kind: MetricKind::UpDownCounter,
    unit: "{attempt}",
    labels: &[],
    boundaries: &[],
    description: "Attempts that have started and not yet ended.",
};

/// Every metric.
pub const METRICS: &[Metric] = &[
    OUTBOX_EVENTS,
    OUTBOX_TURN_DURATION,
    HINTS_PUBLISHED,
    CLAIMS,
    ATTEMPT_DURATION,
    DELIVERY_DELAY,
    DEAD_LETTERED,
    BREAKER_TRANSITIONS,
    LEASES_LOST,
    SWEEP_REPUBLISHED,
    ATTEMPTS_IN_FLIGHT,
];

/// One span of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The span's name.
    pub name: &'static str,
    /// Its kind: internal, producer, consumer or client.
    pub kind: &'static str,
    /// Every attribute it can carry.
    pub attributes: &'static [&'static str],
    /// What it covers, in one sentence.
    pub description: &'static str,
}

/// Span attribute keys: semantic conventions where they have one, `kurier.*` otherwise.
pub mod attribute {
    /// The kind of failure, or the status code that was one.
    pub const ERROR_TYPE: &str = "error.type";
    /// The method of the request.
    pub const HTTP_REQUEST_METHOD: &str = "http.request.method";
    /// The status code of the answer.
    pub const HTTP_RESPONSE_STATUS_CODE: &str = "http.response.status_code";
    /// The attempt's number, from 1.
    pub const ATTEMPT_NUMBER: &str = "kurier.attempt.number";
    /// The delivery's id.
    pub const DELIVERY_ID: &str = "kurier.delivery.id";
    /// The endpoint's id.
    pub const ENDPOINT_ID: &str = "kurier.endpoint.id";
    /// The event's id.
    pub const EVENT_ID: &str = "kurier.event.id";
    /// The event's type.
    pub const EVENT_TYPE: &str = "kurier.event.type";
    /// The kind of messaging operation.
    pub const MESSAGING_OPERATION_TYPE: &str = "messaging.operation.type";
    /// The messaging system.
    pub const MESSAGING_SYSTEM: &str = "messaging.system";
    /// The receiver's host name, without path and query.
    pub const SERVER_ADDRESS: &str = "server.address";
    /// The receiver's port.
    pub const SERVER_PORT: &str = "server.port";
}

/// An event becomes its deliveries.
pub const EXPAND: Span = Span {
    name: "kurier.expand",
    kind: "internal",
    attributes: &[
        attribute::EVENT_ID,
        attribute::EVENT_TYPE,
        attribute::ERROR_TYPE,
    ],
    description: "The relay turns one outbox event into its deliveries.",
};

/// A hint goes to the broker.
pub const PUBLISH: Span = Span {
    name: "kurier.publish",
    kind: "producer",
    attributes: &[
        attribute::MESSAGING_SYSTEM,
        attribute::MESSAGING_OPERATION_TYPE,
        attribute::DELIVERY_ID,
        attribute::ERROR_TYPE,
    ],
    description: "A hint for one delivery is published and confirmed.",
};

/// A hint is taken from the broker.
pub const CLAIM: Span = Span {
    name: "kurier.claim",
    kind: "consumer",
    attributes: &[
        attribute::MESSAGING_SYSTEM,
        attribute::MESSAGING_OPERATION_TYPE,
        attribute::DELIVERY_ID,
        attribute::ERROR_TYPE,
    ],
    description: "A hint is received and its delivery claimed.",
};

/// A request goes to a receiver.
pub const ATTEMPT: Span = Span {
    name: "kurier.attempt",
    kind: "client",
    attributes: &[
        attribute::HTTP_REQUEST_METHOD,
        attribute::HTTP_RESPONSE_STATUS_CODE,
        attribute::SERVER_ADDRESS,
        attribute::SERVER_PORT,
        attribute::DELIVERY_ID,
        attribute::ENDPOINT_ID,
        attribute::EVENT_TYPE,
        attribute::ATTEMPT_NUMBER,
        attribute::ERROR_TYPE,
    ],
    description: "One HTTP attempt at one delivery.",
};

/// Every span.
pub const SPANS: &[Span] = &[EXPAND, PUBLISH, CLAIM, ATTEMPT];
