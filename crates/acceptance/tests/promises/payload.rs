//! What a receiver gets: the very bytes, the promised headers, signatures it can verify.

use std::time::SystemTime;

use acceptance::{Endpoint, Event, Verifier, World};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use ed25519_dalek::{Signature, VerifyingKey};
use scripted_receiver::{Reply, Request};

/// Everything that a JSON library would write differently.
const AWKWARD: &str = r#"{"b":1,"a":1,"a":2,"n":12345678901234567890,"f":1.10,"e":1e2,"u":"\u003c\/é","z":"\u0000","s":  "x"}"#;

/// A wait long enough to restart both programs in it.
const SLOW_RETRY: [&str; 2] = ["--retry-schedule-ms", "1500"];

async fn assert_verified(request: &Request, endpoint: &Endpoint) {
    let mut altered = request.clone();
    altered.body = [&request.body[..], b" "].concat().into();
    for verifier in [Verifier::Python, Verifier::JavaScript] {
        assert!(verifier.accepts(request, &endpoint.secret).await);
        assert!(!verifier.accepts(&altered, &endpoint.secret).await);
    }
}

#[tokio::test]
async fn the_bytes_given_arrive_signed_at_first_after_a_failure_and_after_a_restart() {
    let world = World::start().await;
    let endpoint = world.endpoint_with("/in", &SLOW_RETRY).await;
    let script = [Reply::status(500), Reply::status(500), Reply::ok()];
    world.receiver.script("/in", script);
    let (mut relay, mut dispatcher) = (world.relay().await, world.dispatcher().await);
    world.commit(&Event::json("order.paid", AWKWARD)).await;
    world.receiver.wait_for("/in", 2).await;
    world.until_status("failed", 1).await;
    assert_eq!(relay.terminate().await, Some(0));
    assert_eq!(dispatcher.terminate().await, Some(0));
    let (_relay, _dispatcher) = (world.relay().await, world.dispatcher().await);
    world.until_status("delivered", 1).await;
    world.assert_no_leftovers().await;

    let requests = world.receiver.requests("/in");
    assert_eq!(requests.len(), 3);
    for request in &requests {
        assert_eq!(request.body, AWKWARD.as_bytes());
        assert_verified(request, &endpoint).await;
    }
}

#[tokio::test]
async fn bytes_that_are_no_json_arrive_with_their_own_content_type() {
    let world = World::start().await;
    world.endpoint("/in").await;
    world
        .receiver
        .script("/in", [Reply::status(503), Reply::ok()]);
    let (_relay, _dispatcher) = (world.relay().await, world.dispatcher().await);
    let bytes: Vec<u8> = (0..=255).collect();
    let content_type = "application/x-protobuf; proto=order.v1";
    world
        .commit(&Event::bytes("order.paid", bytes.clone(), content_type))
        .await;
    world.until_status("delivered", 1).await;
    world.assert_no_leftovers().await;

    let requests = world.receiver.requests("/in");
    assert_eq!(requests.len(), 2);
    for request in &requests {
        assert_eq!(request.body, bytes);
        assert_eq!(request.header("content-type"), Some(content_type));
    }
}

#[tokio::test]
async fn an_empty_body_arrives_as_one_and_its_signature_verifies() {
    let world = World::start().await;
    let endpoint = world.endpoint("/in").await;
    let (_relay, _dispatcher) = (world.relay().await, world.dispatcher().await);
    world
        .commit(&Event::bytes("order.paid", [], "text/plain"))
        .await;
    world.until_status("delivered", 1).await;

    let requests = world.receiver.requests("/in");
    assert_eq!(requests[0].header("content-length"), Some("0"));
    assert!(
        Verifier::Python
            .accepts(&requests[0], &endpoint.secret)
            .await
    );
}

#[tokio::test]
async fn an_ed25519_signature_verifies_by_the_public_key_that_was_shown() {
    let world = World::start().await;
    let signing = &["--signing", "ed25519"];
    let endpoint = world.endpoint_with("/in", signing).await;
    let (_relay, _dispatcher) = (world.relay().await, world.dispatcher().await);
    let binary: Vec<u8> = (0..=255).collect();
    let binary = Event::bytes("order.paid", binary, "application/octet-stream");
    world.commit(&Event::json("order.paid", AWKWARD)).await;
    world.commit(&binary).await;
    world.until_status("delivered", 2).await;

    let public_key = endpoint.public_key.expect("a public key");
    let requests = world.receiver.requests("/in");
    assert_eq!(requests.len(), 2);
    for request in &requests {
        assert_verified_by(&public_key, request);
    }
}

fn assert_verified_by(public_key: &str, request: &Request) {
    let header = |name| request.header(name).expect("a promised header");
    let (id, timestamp) = (header("webhook-id"), header("webhook-timestamp"));
    let signed = [format!("{id}.{timestamp}.").as_bytes(), &request.body].concat();
    let signature = decoded(header("webhook-signature"), "v1a,");
    let public_key = decoded(public_key, "whpk_").try_into().expect("32 bytes");
    let key = VerifyingKey::from_bytes(&public_key).expect("a key");
    let signature = Signature::from_slice(&signature).expect("a signature");
    let verified = key.verify_strict(&signed, &signature);
    assert!(verified.is_ok(), "{verified:?}");
}

fn decoded(text: &str, prefix: &str) -> Vec<u8> {
    let text = text.strip_prefix(prefix).expect(prefix);
    STANDARD.decode(text).expect("base64")
}

#[tokio::test]
async fn every_attempt_carries_the_promised_headers_and_a_fresh_timestamp() {
    let world = World::start().await;
    let schedule = &["--retry-schedule-ms", "1100"];
    world.endpoint_with("/in", schedule).await;
    world
        .receiver
        .script("/in", [Reply::status(500), Reply::ok()]);
    let (_relay, _dispatcher) = (world.relay().await, world.dispatcher().await);
    let id = world.commit(&Event::json("order.paid", AWKWARD)).await;
    world.until_status("delivered", 1).await;

    let requests = world.receiver.requests("/in");
    for request in &requests {
        assert_eq!(request.header("webhook-id"), Some(&*id.to_string()));
        assert_eq!(request.header("idempotency-key"), Some(&*id.to_string()));
        assert_eq!(request.header("content-type"), Some("application/json"));
        let length = AWKWARD.len().to_string();
        assert_eq!(request.header("content-length"), Some(&*length));
        let agent = request.header("user-agent").expect("a user agent");
        assert!(agent.starts_with("Kurier/0."), "{agent}");
        let traceparent = request.header("traceparent").expect("a trace context");
        assert_eq!(traceparent.len(), 55, "{traceparent}");
        let age_seconds = age_seconds(request);
        assert!((-1..=5).contains(&age_seconds), "{age_seconds}");
        assert_eq!(
            request.header("x-delivery-timestamp"),
            request.header("webhook-timestamp")
        );
    }
    assert_ne!(
        requests[0].header("webhook-timestamp"),
        requests[1].header("webhook-timestamp")
    );
}

/// How old the request's own timestamp was when it arrived. Both clocks count whole seconds, and
/// the sender's is the database's: a request sent on the turn of a second may seem to come early.
fn age_seconds(request: &Request) -> i64 {
    let timestamp = request.header("webhook-timestamp").expect("a timestamp");
    let timestamp: i64 = timestamp.parse().expect("whole seconds");
    #[expect(
        clippy::disallowed_methods,
        reason = "receivers look at their own clock"
    )]
    let arrived = SystemTime::now() - request.at.elapsed();
    let since_epoch = arrived.duration_since(SystemTime::UNIX_EPOCH);
    i64::try_from(since_epoch.expect("after 1970").as_secs()).expect("in range") - timestamp
}
