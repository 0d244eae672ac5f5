//! What each answer of a receiver leads to.

use std::time::Duration;

use acceptance::{ClosedPort, Endpoint, Event, World};
use scripted_receiver::{Reply, Script};

/// A receiver's behaviour, and what is to be on record in the end.
struct Case {
    path: &'static str,
    arguments: &'static [&'static str],
    replies: Vec<Reply>,
    /// The delivery's status and reason.
    ends: (&'static str, Option<&'static str>),
    attempts: Vec<Attempt>,
}

/// An attempt's status code and error class.
type Attempt = (Option<i32>, Option<&'static str>);

fn delivered(path: &'static str, replies: Vec<Reply>, attempts: &[Attempt]) -> Case {
    Case {
        path,
        arguments: &[],
        replies,
        ends: ("delivered", None),
        attempts: attempts.to_vec(),
    }
}

fn rejected(path: &'static str, reply: Reply, attempts: &[Attempt]) -> Case {
    Case {
        ends: ("dead_letter", Some("rejected")),
        ..delivered(path, vec![reply], attempts)
    }
}

/// Two attempts, both of which end like this.
fn exhausted(path: &'static str, reply: Reply, attempts: &[Attempt]) -> Case {
    Case {
        arguments: &["--max-attempts", "2", "--attempt-timeout-ms", "500"],
        ends: ("dead_letter", Some("attempts_exhausted")),
        ..delivered(path, vec![reply], attempts)
    }
}

const OK: Attempt = (Some(200), None);
const CLOSED: Attempt = (None, Some("connection_closed"));
const TIMEOUT: Attempt = (None, Some("timeout"));
const GARBAGE: Attempt = (None, Some("protocol"));

fn failed(status: i32) -> Attempt {
    let class = match status {
        300..=399 => "http_3xx",
        400..=499 => "http_4xx",
        _ => "http_5xx",
    };
    (Some(status), Some(class))
}

fn statuses() -> Vec<Case> {
    let status = Reply::status;
    vec![
        delivered("/200", vec![Reply::ok()], &[OK]),
        delivered("/299", vec![status(299)], &[(Some(299), None)]),
        delivered(
            "/500-500-200",
            vec![status(500), status(500), Reply::ok()],
            &[failed(500), failed(500), OK],
        ),
        delivered("/408", vec![status(408), Reply::ok()], &[failed(408), OK]),
        delivered("/425", vec![status(425), Reply::ok()], &[failed(425), OK]),
        delivered("/429", vec![status(429), Reply::ok()], &[failed(429), OK]),
        rejected("/404", status(404), &[failed(404)]),
        rejected("/401", status(401), &[failed(401)]),
        rejected("/304", status(304), &[failed(304)]),
        exhausted("/503", status(503), &[failed(503), failed(503)]),
        exhausted("/999", status(999), &[GARBAGE, GARBAGE]),
        Case {
            ends: ("dead_letter", Some("endpoint_gone")),
            ..rejected("/410", status(410), &[failed(410)])
        },
    ]
}

fn overridden() -> Vec<Case> {
    let status = Reply::status;
    vec![
        Case {
            arguments: &["--retry-statuses", "404,409"],
            ..delivered(
                "/retried-404",
                vec![status(404), Reply::ok()],
                &[failed(404), OK],
            )
        },
        Case {
            arguments: &["--reject-statuses", "500-503"],
            ..rejected("/rejected-503", status(503), &[failed(503)])
        },
    ]
}

fn hostile() -> Vec<Case> {
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf";
    vec![
        exhausted("/hang", Reply::hang(), &[TIMEOUT, TIMEOUT]),
        exhausted("/close", Reply::close(), &[CLOSED, CLOSED]),
        exhausted("/reset", Reply::reset(), &[CLOSED, CLOSED]),
        exhausted("/garbage", Reply::raw("HELLO\r\n\r\n"), &[GARBAGE, GARBAGE]),
        delivered("/cut-body", vec![Reply::raw(cut)], &[OK]),
        delivered("/stalled-body", vec![Reply::raw_then_hang(cut)], &[OK]),
        delivered(
            "/drip",
            vec![Reply::drip("x", Duration::from_millis(10))],
            &[OK],
        ),
        delivered(
            "/flood",
            vec![Reply::drip(vec![b'x'; 65_536], Duration::ZERO)],
            &[OK],
        ),
    ]
}

async fn assert_ended(world: &World, endpoint: &Endpoint, case: &Case) {
    let path = case.path;
    let deliveries = world.deliveries_to(endpoint).await;
    let [delivery] = deliveries.as_slice() else {
        panic!("{path}: {deliveries:?}")
    };
    let ends = (delivery.status.as_str(), delivery.reason.as_deref());
    assert_eq!(ends, case.ends, "{path}: {delivery:?}");
    let recorded = world.attempts_at(endpoint).await;
    let attempts: Vec<_> = recorded
        .iter()
        .map(|attempt| (attempt.status_code, attempt.error_class.as_deref()))
        .collect();
    assert_eq!(attempts, case.attempts, "{path}: {recorded:?}");
    assert_eq!(
        delivery.attempt_count,
        i32::try_from(attempts.len()).unwrap()
    );
    let numbers = recorded.iter().map(|attempt| attempt.attempt_number);
    assert!(numbers.eq(1..=delivery.attempt_count), "{path}");
    let arrived = world.receiver.tally(path).arrived;
    assert_eq!(arrived, attempts.len() as u64, "{path}");
}

async fn assert_all_end_as_promised(cases: Vec<Case>) {
    let world = World::start().await;
    let mut endpoints = Vec::new();
    for case in &cases {
        let script = Script::from(case.replies.clone());
        world.receiver.script(case.path, script);
        endpoints.push(world.endpoint_with(case.path, case.arguments).await);
    }
    let (_relay, _dispatcher) = (world.relay().await, world.dispatcher().await);
    world.commit(&Event::json("order.paid", "{}")).await;
    world.assert_no_leftovers().await;
    for (endpoint, case) in endpoints.iter().zip(&cases) {
        assert_ended(&world, endpoint, case).await;
    }
}

#[tokio::test]
async fn statuses_are_judged_as_promised() {
    assert_all_end_as_promised(statuses()).await;
}

#[tokio::test]
async fn an_endpoint_can_have_statuses_judged_otherwise() {
    assert_all_end_as_promised(overridden()).await;
}

#[tokio::test]
async fn a_hostile_receiver_costs_an_attempt_and_no_more() {
    assert_all_end_as_promised(hostile()).await;
}

#[tokio::test]
async fn a_redirect_is_never_followed() {
    let world = World::start().await;
    let endpoint = world.endpoint("/in").await;
    let elsewhere = world.receiver.url("/elsewhere");
    let redirects = [301, 302, 303, 307, 308].map(|status| {
        let reply = Reply::status(status);
        reply.header("location", &elsewhere)
    });
    let count = redirects.len();
    world.receiver.script("/in", redirects);
    let (_relay, _dispatcher) = (world.relay().await, world.dispatcher().await);
    world.commit_many("order.paid", 5).await;

    world.until_status("dead_letter", count).await;
    world.assert_no_leftovers().await;
    assert_eq!(world.receiver.tally("/elsewhere").arrived, 0);
    assert_eq!(world.attempts_at(&endpoint).await.len(), count);
}

#[tokio::test]
async fn an_endpoint_that_is_gone_is_disabled_and_its_events_wait_until_it_is_resumed() {
    let world = World::start().await;
    let endpoint = world.endpoint("/in").await;
    world
        .receiver
        .script("/in", [Reply::status(410), Reply::ok()]);
    let (_relay, _dispatcher) = (world.relay().await, world.dispatcher().await);
    world.commit(&Event::json("order.paid", "1")).await;
    world.until_status("dead_letter", 1).await;
    world.commit_many("order.paid", 3).await;
    world.until_status("held", 3).await;

    let held = world.deliveries_to(&endpoint).await;
    let disabled = |reason: &Option<String>| reason.as_deref() == Some("disabled");
    assert_eq!(held.iter().filter(|held| disabled(&held.reason)).count(), 3);
    let id = endpoint.id.to_string();
    let shown = world.kurier(&["endpoint", "show", &id]).await;
    assert!(shown["disabled_at"].is_string(), "{shown}");
    assert_eq!(world.receiver.tally("/in").arrived, 1);
    world.kurier(&["endpoint", "resume", &id]).await;
    world.until_status("delivered", 3).await;
    world.assert_no_leftovers().await;
}

#[tokio::test]
async fn what_a_receiver_answered_is_kept_short_and_safe() {
    let world = World::start().await;
    let endpoint = world.endpoint_with("/in", &["--max-attempts", "1"]).await;
    let body = [&b"a\0b\xff\r\n"[..], &b"x".repeat(100_000)].concat();
    world.receiver.script("/in", Reply::status(500).body(body));
    let port = ClosedPort::take();
    let url = format!("http://{}/", port.address());
    let closed = world
        .endpoint_at(&url, "/closed", &["--max-attempts", "1"])
        .await;
    let (_relay, _dispatcher) = (world.relay().await, world.dispatcher().await);
    world.commit(&Event::json("order.paid", "{}")).await;
    world.until_status("dead_letter", 2).await;

    let answered = &world.attempts_at(&endpoint).await[0];
    let kept = answered.response_body.as_deref().expect("the answer");
    assert!(kept.starts_with('a') && kept.chars().count() <= 16 * 1024);
    assert!(!kept.contains(['\0', '\r']), "{:?}", &kept[..10]);
    let refused = &world.attempts_at(&closed).await[0];
    assert_eq!(refused.error_class.as_deref(), Some("connect"));
    for attempt in [answered, refused] {
        let error = attempt.error.as_deref().expect("an error");
        assert!(error.chars().count() <= 200, "{error}");
        assert!(!error.contains("http://"), "{error}");
    }
}
