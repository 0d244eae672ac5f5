//! Spans join into one trace by text alone, and vanish without a trace when nothing is exported.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use opentelemetry::global::BoxedTracer;
use opentelemetry::trace::{SpanId, SpanKind, Status, TracerProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, Sampler, SdkTracerProvider, SpanData};
use signals::labels::ErrorClass;
use signals::trace::Attempt;
use signals::{ActiveSpan, Origin, Tracing, names};

const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

/// A tracing whose ended spans are kept for the test.
fn recorded(sampler: Sampler) -> (Tracing, InMemorySpanExporter) {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder()
        .with_sampler(sampler)
        .with_simple_exporter(exporter.clone())
        .build();
    let tracer = BoxedTracer::new(Box::new(provider.tracer("test")));
    (Tracing::with_tracer(tracer), exporter)
}

fn example() -> Attempt<'static> {
    Attempt {
        method: "POST",
        host: "receiver.example",
        port: 443,
        delivery_id: &"delivery-1",
        endpoint_id: &"endpoint-1",
        event_type: "order.paid",
        number: 2,
    }
}

fn attributes(span: &SpanData) -> BTreeMap<String, String> {
    let pair = |attribute: &opentelemetry::KeyValue| {
        (attribute.key.to_string(), attribute.value.to_string())
    };
    span.attributes.iter().map(pair).collect()
}

fn parent_of(span: &ActiveSpan) -> String {
    span.traceparent().expect("a traceparent")
}

#[test]
fn the_whole_way_is_one_trace_with_the_catalogues_names_kinds_and_attributes() {
    let (tracing, exporter) = recorded(Sampler::AlwaysOn);
    let expand = tracing.expand(Origin::now(Some(PARENT)), &"event-1", "order.paid");
    let publish = tracing.publish(Origin::now(Some(&parent_of(&expand))), &"delivery-1");
    let claim = tracing.claim(Origin::now(Some(&parent_of(&publish))), &"delivery-1");
    let mut attempt = tracing.attempt(Origin::now(Some(&parent_of(&claim))), &example());
    attempt.answered(503);
    attempt.failed(ErrorClass::ServerError);
    let sent = attempt.traceparent_or_fresh([7; 24]);
    [expand, publish, claim, attempt]
        .into_iter()
        .for_each(ActiveSpan::end);

    let spans = exporter.get_finished_spans().expect("spans are kept");
    let told: Vec<_> = spans
        .iter()
        .map(|span| (span.name.as_ref(), span.span_kind.clone()))
        .collect();
    assert_eq!(
        told,
        [
            ("kurier.expand", SpanKind::Internal),
            ("kurier.publish", SpanKind::Producer),
            ("kurier.claim", SpanKind::Consumer),
            ("kurier.attempt", SpanKind::Client),
        ]
    );
    let mut parent = SpanId::from_hex("00f067aa0ba902b7").expect("the application's span");
    for (span, entry) in spans.iter().zip(names::SPANS) {
        assert_eq!(span.parent_span_id, parent, "{}", span.name);
        assert_eq!(span.span_context.trace_id().to_string(), PARENT[3..35]);
        assert_eq!(span.name, entry.name);
        for key in attributes(span).keys() {
            assert!(
                entry.attributes.contains(&key.as_str()),
                "{key} of {}",
                span.name
            );
        }
        parent = span.span_context.span_id();
    }
    assert_eq!(sent, format!("{}-{parent}-01", &PARENT[..35]));
    let attempt = attributes(&spans[3]);
    assert_eq!(attempt.len(), names::ATTEMPT.attributes.len());
    assert_eq!(attempt["http.response.status_code"], "503");
    assert_eq!(attempt["error.type"], "server_error");
    assert_eq!(attempt["kurier.attempt.number"], "2");
    assert_eq!(spans[3].status, Status::error("server_error"));
}

#[test]
fn an_event_without_trace_begins_one() {
    let (tracing, exporter) = recorded(Sampler::AlwaysOn);
    let span = tracing.expand(Origin::now(None), &"event-1", "order.paid");
    let traceparent = parent_of(&span);
    span.end();
    let spans = exporter.get_finished_spans().expect("spans are kept");
    assert_eq!(spans[0].parent_span_id, SpanId::INVALID);
    assert_eq!(
        traceparent[3..35],
        spans[0].span_context.trace_id().to_string()
    );
}

#[test]
fn an_unsampled_trace_stays_unsampled_and_is_still_passed_on() {
    let (tracing, exporter) = recorded(Sampler::ParentBased(Box::new(Sampler::AlwaysOn)));
    let unsampled = PARENT.replace("-01", "-00");
    let span = tracing.publish(Origin::now(Some(&unsampled)), &"delivery-1");
    let traceparent = parent_of(&span);
    span.end();
    assert!(traceparent.starts_with(&PARENT[..35]) && traceparent.ends_with("-00"));
    assert!(
        exporter
            .get_finished_spans()
            .expect("spans are kept")
            .is_empty()
    );
}

#[test]
fn a_span_of_a_batch_has_the_times_it_was_given() {
    let (tracing, exporter) = recorded(Sampler::AlwaysOn);
    let started_at = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
    let ended_at = started_at + Duration::from_millis(5);
    tracing
        .publish(Origin::at(None, started_at), &"delivery-1")
        .end_at(ended_at);
    let spans = exporter.get_finished_spans().expect("spans are kept");
    assert_eq!(spans.len(), 1);
    assert_eq!(
        (spans[0].start_time, spans[0].end_time),
        (started_at, ended_at)
    );
}

#[test]
fn without_exporter_a_parent_is_passed_on_unchanged_and_none_stays_none() {
    let tracing = Tracing::off();
    let with_parent = tracing.claim(Origin::now(Some(PARENT)), &"delivery-1");
    let without = tracing.expand(Origin::now(None), &"event-1", "order.paid");
    assert_eq!(with_parent.traceparent().as_deref(), Some(PARENT));
    assert_eq!(with_parent.traceparent_or_fresh([7; 24]), PARENT);
    assert_eq!(without.traceparent(), None);
}

#[test]
fn without_exporter_a_request_gets_a_fresh_unsampled_traceparent() {
    let attempt = Tracing::off().attempt(Origin::now(None), &example());
    let fresh = format!("00-{}-{}-00", "07".repeat(16), "07".repeat(8));
    assert_eq!(attempt.traceparent_or_fresh([7; 24]), fresh);
}

#[test]
fn a_broken_parent_is_not_passed_on() {
    let broken = format!("{PARENT}\r\nx-injected: 1");
    let span = Tracing::off().attempt(Origin::now(Some(&broken)), &example());
    assert_eq!(span.traceparent(), None);
}
