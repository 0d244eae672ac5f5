//! What came of a run, as a document and as text.

use std::fmt;
use std::time::Duration;

use chrono::{DateTime, Utc};
use hdrhistogram::Histogram;
use serde::Serialize;

use super::database::Counts;
use crate::cli::{Rate, RunOptions};
use crate::cpu::CpuSeconds;
use crate::measurement::{Measurement, table};
use crate::receiver::Totals;

/// The result of one run.
#[derive(Serialize)]
pub(crate) struct Report {
    pub(crate) load: Load,
    pub(crate) drain: Measurement,
    pub(crate) latency_ms: Latency,
    pub(crate) outcome: Outcome,
}

/// What was asked for.
#[derive(Serialize)]
pub(crate) struct Load {
    events: u32,
    payload_bytes: u32,
    endpoints: u32,
    relays: u32,
    dispatchers: u32,
    stored: bool,
    /// Events a second; absent when as many as possible were written.
    rate_per_second: Option<f64>,
    scripts: Vec<String>,
}

/// From the event's transaction to the recorded delivery, in milliseconds.
#[derive(Serialize)]
pub(crate) struct Latency {
    p50: f64,
    p99: f64,
    p999: f64,
    max: f64,
}

/// What became of the deliveries.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Outcome {
    expected: u64,
    delivered: u64,
    dead_letters: u64,
    /// Neither delivered nor a dead letter when patience was at its end.
    unfinished: u64,
    requests: u64,
    /// Accepted by the receiver more than once.
    duplicates: u64,
    /// Without a delivery row though the event is processed, or recorded as delivered though the receiver never
    /// accepted it.
    lost: u64,
}

impl Report {
    pub(crate) fn new(
        options: &RunOptions,
        begin: DateTime<Utc>,
        counts: &Counts,
        totals: Totals,
        latencies_us: &Histogram<u64>,
        cpu: Vec<CpuSeconds>,
    ) -> Self {
        let outcome = Outcome::new(options, counts, totals);
        let elapsed = counts.last_delivered_at.map(|last| (last - begin).to_std());
        let elapsed = elapsed.and_then(Result::ok).unwrap_or(Duration::ZERO);
        Self {
            load: Load::from(options),
            drain: Measurement::new("kurier", outcome.delivered, elapsed, cpu),
            latency_ms: Latency::from(latencies_us),
            outcome,
        }
    }
}

impl Outcome {
    fn new(options: &RunOptions, counts: &Counts, totals: Totals) -> Self {
        let count = |number: i64| number.max(0).unsigned_abs();
        let endpoints = u64::from(options.endpoints);
        let expected = u64::from(options.events) * endpoints;
        let delivered = count(counts.delivered);
        let dead_letters = count(counts.dead_letters);
        let waiting = count(counts.events_waiting) * endpoints;
        let without_row = expected.saturating_sub(waiting + count(counts.deliveries));
        Self {
            expected,
            delivered,
            dead_letters,
            unfinished: expected.saturating_sub(delivered + dead_letters),
            requests: totals.arrived,
            duplicates: totals.accepted - totals.ids_accepted,
            lost: without_row + delivered.saturating_sub(totals.ids_accepted),
        }
    }
}

impl From<&RunOptions> for Load {
    fn from(options: &RunOptions) -> Self {
        let rate_per_second = match options.rate {
            Rate::Max => None,
            Rate::PerSecond(rate) => Some(rate),
        };
        Self {
            events: options.events,
            payload_bytes: options.payload_bytes,
            endpoints: options.endpoints,
            relays: options.relays,
            dispatchers: options.dispatchers,
            stored: options.stored,
            rate_per_second,
            scripts: options.scripts.iter().map(ToString::to_string).collect(),
        }
    }
}

impl From<&Histogram<u64>> for Latency {
    fn from(latencies_us: &Histogram<u64>) -> Self {
        let ms = |us: u64| Duration::from_micros(us).as_secs_f64() * 1_000.0;
        Self {
            p50: ms(latencies_us.value_at_quantile(0.5)),
            p99: ms(latencies_us.value_at_quantile(0.99)),
            p999: ms(latencies_us.value_at_quantile(0.999)),
            max: ms(latencies_us.max()),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (latency, outcome) = (&self.latency_ms, &self.outcome);
        writeln!(f, "{}\n", table(std::slice::from_ref(&self.drain)))?;
        writeln!(
            f,
            "latency: p50 {:.1} ms, p99 {:.1} ms, p99.9 {:.1} ms, max {:.1} ms",
            latency.p50, latency.p99, latency.p999, latency.max
        )?;
        write!(
            f,
            "of {} deliveries: {} delivered, {} dead letters, {} unfinished; {} requests, {} duplicates, {} lost",
            outcome.expected,
            outcome.delivered,
            outcome.dead_letters,
            outcome.unfinished,
            outcome.requests,
            outcome.duplicates,
            outcome.lost
        )
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    /// 10 events to 2 endpoints: 20 deliveries.
    fn outcome(counts: &Counts, accepted: u64, ids_accepted: u64) -> Outcome {
        let line = "loadtest run --database-url x --amqp-url x --events 10 --endpoints 2";
        let Command::Run(options) = Cli::parse_from(line.split(' ')).command else {
            unreachable!("the line says run");
        };
        Outcome::new(
            &options,
            counts,
            Totals {
                arrived: accepted,
                accepted,
                ids_accepted,
            },
        )
    }

    fn counts(deliveries: i64, delivered: i64, dead_letters: i64, events_waiting: i64) -> Counts {
        let last_delivered_at = None;
        Counts {
            deliveries,
            delivered,
            dead_letters,
            last_delivered_at,
            events_waiting,
        }
    }

    #[test]
    fn nothing_is_lost_when_every_delivery_is_finished_and_known_to_the_receiver() {
        let outcome = outcome(&counts(20, 19, 1, 0), 21, 19);
        assert_eq!(
            (outcome.lost, outcome.unfinished, outcome.duplicates),
            (0, 0, 2)
        );
    }

    #[test]
    fn what_waits_is_unfinished_and_not_lost() {
        let outcome = outcome(&counts(14, 4, 0, 3), 4, 4);
        assert_eq!((outcome.lost, outcome.unfinished), (0, 16));
    }

    #[test]
    fn a_processed_event_without_its_deliveries_is_lost() {
        assert_eq!(outcome(&counts(18, 18, 0, 0), 18, 18).lost, 2);
    }

    #[test]
    fn a_delivery_the_receiver_never_accepted_is_lost() {
        assert_eq!(outcome(&counts(20, 20, 0, 0), 19, 19).lost, 1);
    }
}
