//! What is recorded is what the catalogue says: names, units, labels, boundaries, attributes.

use std::collections::BTreeSet;
use std::time::Duration;

use opentelemetry::metrics::MeterProvider;
use opentelemetry_sdk::metrics::data::{
    AggregatedMetrics, Metric, MetricData, ResourceMetrics, ScopeMetrics, SumDataPoint,
};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, SdkMeterProvider};
use signals::labels::{
    AttemptOutcome, BreakerState, ClaimOutcome, DeadLetterReason, ErrorClass, EventOutcome,
    HintOrigin, HintOutcome, SweepKind,
};
use signals::names::{self, MetricKind};
use signals::{DispatcherMetrics, RelayMetrics};

/// Everything that `record` recorded, as exported.
fn exported(record: impl FnOnce(&RelayMetrics, &DispatcherMetrics)) -> Vec<ResourceMetrics> {
    let exporter = InMemoryMetricExporter::default();
    let provider = SdkMeterProvider::builder()
        .with_periodic_exporter(exporter.clone())
        .build();
    let meter = provider.meter("test");
    record(&RelayMetrics::new(&meter), &DispatcherMetrics::new(&meter));
    provider.force_flush().expect("metrics are collected");
    exporter.get_finished_metrics().expect("metrics are kept")
}

fn record_everything(relay: &RelayMetrics, dispatcher: &DispatcherMetrics) {
    record_all_of_the_relay(relay);
    record_all_of_the_dispatcher(dispatcher);
}

fn record_all_of_the_relay(relay: &RelayMetrics) {
    for outcome in EventOutcome::ALL {
        relay.events(*outcome, 1);
    }
    for kind in SweepKind::ALL {
        relay.swept(*kind, 1);
    }
    for (origin, outcome) in every_pair(HintOrigin::ALL, HintOutcome::ALL) {
        relay.hints(origin, outcome, 1);
    }
    relay.turn(Duration::from_millis(3));
}

fn record_all_of_the_dispatcher(dispatcher: &DispatcherMetrics) {
    for outcome in ClaimOutcome::ALL {
        dispatcher.claims(*outcome, 1);
    }
    for reason in DeadLetterReason::ALL {
        dispatcher.dead_lettered(*reason, 1);
    }
    for state in BreakerState::ALL {
        dispatcher.breaker_moved(*state);
    }
    for (outcome, error) in every_pair(AttemptOutcome::ALL, ErrorClass::ALL) {
        dispatcher.attempt(outcome, error, Duration::from_millis(3));
    }
    dispatcher.delivered(Duration::from_secs(3));
    dispatcher.leases_lost(1);
    drop(dispatcher.attempt_started());
}

fn every_pair<A: Copy, B: Copy>(first: &[A], second: &[B]) -> impl Iterator<Item = (A, B)> {
    first.iter().flat_map(|a| second.iter().map(|b| (*a, *b)))
}

fn metrics(exported: &[ResourceMetrics]) -> impl Iterator<Item = &Metric> {
    exported
        .iter()
        .flat_map(ResourceMetrics::scope_metrics)
        .flat_map(ScopeMetrics::metrics)
}

/// The kind of an exported metric, its labels' keys and values, and its boundaries.
fn shape(metric: &Metric) -> (MetricKind, BTreeSet<(String, String)>, Vec<f64>) {
    match metric.data() {
        AggregatedMetrics::U64(MetricData::Sum(sum)) => {
            let labels = sum
                .data_points()
                .flat_map(|point| point.attributes().map(pair));
            (MetricKind::Counter, labels.collect(), Vec::new())
        }
        AggregatedMetrics::I64(MetricData::Sum(sum)) => {
            assert!(!sum.is_monotonic());
            (MetricKind::UpDownCounter, BTreeSet::new(), Vec::new())
        }
        AggregatedMetrics::F64(MetricData::Histogram(histogram)) => {
            let labels = histogram
                .data_points()
                .flat_map(|point| point.attributes().map(pair));
            let bounds = histogram
                .data_points()
                .next()
                .expect("a point")
                .bounds()
                .collect();
            (MetricKind::Histogram, labels.collect(), bounds)
        }
        other => panic!("no metric of the catalogue is of this kind: {other:?}"),
    }
}

fn pair(label: &opentelemetry::KeyValue) -> (String, String) {
    (label.key.to_string(), label.value.to_string())
}

fn catalogued_labels(metric: &names::Metric) -> BTreeSet<(String, String)> {
    let pairs = |label: &names::Label| {
        let key = label.key;
        label
            .values
            .iter()
            .map(move |value| (key.to_owned(), (*value).to_owned()))
            .collect::<Vec<_>>()
    };
    metric.labels.iter().flat_map(pairs).collect()
}

#[test]
fn everything_in_the_catalogue_is_recorded_as_it_says_and_nothing_else() {
    let exported = exported(record_everything);
    let mut seen: Vec<_> = metrics(&exported)
        .map(|metric| metric.name().to_owned())
        .collect();
    let mut catalogued: Vec<_> = names::METRICS
        .iter()
        .map(|metric| metric.name.to_owned())
        .collect();
    seen.sort_unstable();
    catalogued.sort_unstable();
    assert_eq!(seen, catalogued);

    for metric in metrics(&exported) {
        let name = metric.name();
        let entry = names::METRICS
            .iter()
            .find(|entry| entry.name == name)
            .expect("an entry");
        let expected = (
            entry.kind,
            catalogued_labels(entry),
            entry.boundaries.to_vec(),
        );
        assert_eq!(shape(metric), expected, "{name}");
        assert_eq!(
            (metric.unit(), metric.description()),
            (entry.unit, entry.description)
        );
    }
}

#[test]
fn an_attempt_that_was_dropped_is_not_in_flight_any_more() {
    let exported = exported(|_, dispatcher| {
        let ended = dispatcher.attempt_started();
        std::mem::forget(dispatcher.attempt_started());
        drop(ended);
    });
    let metric = metrics(&exported).next().expect("one metric");
    let AggregatedMetrics::I64(MetricData::Sum(sum)) = metric.data() else {
        panic!("an up-down counter");
    };
    assert_eq!(sum.data_points().map(SumDataPoint::value).sum::<i64>(), 1);
}

#[test]
fn histogram_boundaries_rise_over_the_whole_range() {
    assert!(names::WORK_SECONDS.is_sorted_by(|low, high| low < high));
    assert!(names::DELAY_SECONDS.is_sorted_by(|low, high| low < high));
    let ends = |bounds: &[f64]| (bounds.first().copied(), bounds.last().copied());
    assert_eq!(ends(names::WORK_SECONDS), (Some(0.001), Some(15.0)));
    assert_eq!(ends(names::DELAY_SECONDS), (Some(0.001), Some(86_400.0)));
}
