//! Traces, metrics and logs: what they show, and what they must never show.

use acceptance::{ClosedPort, Event, OtlpSink, Program, Span, World};
use scripted_receiver::Reply;

const TRACE_ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const APPLICATION_SPAN_ID: &str = "00f067aa0ba902b7";

/// What must not be found anywhere but in the request itself.
const PAYLOAD_CANARY: &str = "canary-of-the-payload";
const QUERY_CANARY: &str = "canary-of-the-query";

fn traceparent() -> String {
    format!("00-{TRACE_ID}-{APPLICATION_SPAN_ID}-01")
}

async fn exporting_world(sink: &OtlpSink) -> World {
    let exporting = sink.settings();
    let mut settings: Vec<(&str, &str)> = exporting
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    settings.push(("RUST_LOG", "trace"));
    World::with(&settings).await
}

/// One delivery that takes three attempts, with everything exported; both programs have ended.
async fn deliver_at_the_third_attempt(world: &World) -> [Program; 2] {
    let script = [Reply::status(500), Reply::status(502), Reply::ok()];
    world.receiver.script("/in", script);
    let mut programs = [world.relay().await, world.dispatcher().await];
    let payload = format!(r#"{{"click_id":"{PAYLOAD_CANARY}"}}"#);
    let event = Event::json("order.paid", payload).traceparent(&traceparent());
    world.commit(&event).await;
    world.until_status("delivered", 1).await;
    world.assert_no_leftovers().await;
    for program in &mut programs {
        assert_eq!(program.terminate().await, Some(0));
    }
    programs
}

fn named(spans: &[Span], name: &str) -> Vec<Span> {
    let mut named: Vec<Span> = spans
        .iter()
        .filter(|span| span.name == name)
        .cloned()
        .collect();
    named.sort_by_key(|span| span.attributes.get("kurier.attempt.number").cloned());
    named
}

#[tokio::test]
async fn one_trace_leads_from_the_applications_transaction_over_every_attempt_to_the_receiver() {
    let sink = OtlpSink::start().await;
    let world = exporting_world(&sink).await;
    world.endpoint("/in").await;
    deliver_at_the_third_attempt(&world).await;

    let spans = sink.spans();
    assert!(
        spans.iter().all(|span| span.trace_id == TRACE_ID),
        "{spans:#?}"
    );
    let expand = named(&spans, "kurier.expand");
    let publish = named(&spans, "kurier.publish");
    let (claims, attempts) = (
        named(&spans, "kurier.claim"),
        named(&spans, "kurier.attempt"),
    );
    assert_eq!((expand.len(), publish.len()), (1, 1), "{spans:#?}");
    assert_eq!((claims.len(), attempts.len()), (3, 3), "{spans:#?}");
    assert_eq!(expand[0].parent_span_id, APPLICATION_SPAN_ID);
    assert_eq!(publish[0].parent_span_id, expand[0].span_id);
    for claim in &claims {
        assert_eq!(claim.parent_span_id, publish[0].span_id);
    }
    for attempt in &attempts {
        let claim = claims
            .iter()
            .filter(|c| c.span_id == attempt.parent_span_id);
        assert_eq!(claim.count(), 1, "{attempt:#?}");
        assert_eq!(attempt.service_name, "dispatcher");
    }
    assert_eq!(expand[0].service_name, "outbox-relay");
}

#[tokio::test]
async fn an_attempts_span_says_what_was_called_and_the_receiver_gets_its_context() {
    let sink = OtlpSink::start().await;
    let world = exporting_world(&sink).await;
    let endpoint = world.endpoint("/in").await;
    deliver_at_the_third_attempt(&world).await;

    let requests = world.receiver.requests("/in");
    let attempts = named(&sink.spans(), "kurier.attempt");
    let statuses = ["500", "502", "200"];
    assert_eq!((requests.len(), attempts.len()), (3, 3));
    for ((attempt, request), status) in attempts.iter().zip(&requests).zip(statuses) {
        let context = format!("00-{TRACE_ID}-{}-01", attempt.span_id);
        assert_eq!(request.header("traceparent"), Some(&*context));
        let attribute = |key: &str| attempt.attributes.get(key).map(String::as_str);
        assert_eq!(attribute("http.response.status_code"), Some(status));
        assert_eq!(attribute("http.request.method"), Some("POST"));
        assert_eq!(attribute("server.address"), Some("127.0.0.1"));
        let id = endpoint.id.to_string();
        assert_eq!(attribute("kurier.endpoint.id"), Some(&*id));
    }
}

#[tokio::test]
async fn the_durations_of_attempts_and_whole_deliveries_are_exported() {
    let sink = OtlpSink::start().await;
    let world = exporting_world(&sink).await;
    world.endpoint("/in").await;
    deliver_at_the_third_attempt(&world).await;

    let attempts = sink.points("kurier.attempt.duration");
    let delays = sink.points("kurier.delivery.delay");
    assert_eq!(attempts.iter().map(|point| point.count).sum::<u64>(), 3);
    assert_eq!(delays.iter().map(|point| point.count).sum::<u64>(), 1);
    for point in attempts.iter().chain(&delays) {
        assert_eq!(point.bounds.first(), Some(&0.001), "bounds in seconds");
    }
}

#[tokio::test]
async fn payload_query_and_secret_are_in_no_log_span_or_metric() {
    let sink = OtlpSink::start().await;
    let world = exporting_world(&sink).await;
    let url = world.receiver.url(&format!("/in?key={QUERY_CANARY}"));
    let endpoint = world.endpoint_at(&url, "/in", &[]).await;
    let port = ClosedPort::take();
    let refused = format!("http://{}/?key={QUERY_CANARY}", port.address());
    world
        .endpoint_at(&refused, "/refused", &["--max-attempts", "1"])
        .await;
    let script = [Reply::status(500), Reply::reset(), Reply::ok()];
    world.receiver.script("/in", script);
    let programs = [world.relay().await, world.dispatcher().await];
    let payload = format!(r#"{{"click_id":"{PAYLOAD_CANARY}"}}"#);
    world.commit(&Event::json("order.paid", payload)).await;
    world.assert_no_leftovers().await;
    sink.wait_until("a delivery's delay", |sink| {
        !sink.points("kurier.delivery.delay").is_empty()
    })
    .await;

    let request = &world.receiver.requests("/in")[0];
    let query = request.query.as_deref().expect("the query is sent");
    assert!(query.contains(QUERY_CANARY));
    let key = endpoint.secret.strip_prefix("whsec_").expect("a secret");
    let signature = request.header("webhook-signature").expect("a signature");
    for canary in [PAYLOAD_CANARY, QUERY_CANARY, key, signature] {
        assert!(!sink.contains(canary.as_bytes()), "{canary} was exported");
        for program in &programs {
            assert!(program.log().contains("started"));
            assert!(!program.log().contains(canary), "{canary} was logged");
        }
    }
    let errors: Vec<(Option<String>,)> = world
        .rows("SELECT error FROM kurier.delivery_attempts UNION ALL SELECT last_error FROM kurier.deliveries")
        .await;
    assert!(!format!("{errors:?}").contains(QUERY_CANARY), "{errors:?}");
}
