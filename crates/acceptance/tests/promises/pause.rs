//! Endpoints that an operator pauses, and waits that last too long.

use acceptance::{Event, RELAY, World};

#[tokio::test]
async fn nothing_is_sent_to_a_paused_endpoint_and_everything_once_it_is_resumed() {
    let world = World::start().await;
    let endpoint = world.endpoint("/in").await;
    let other = world.endpoint("/other").await;
    let id = endpoint.id.to_string();
    let (_relay, _dispatcher) = (world.relay().await, world.dispatcher().await);
    world.kurier(&["endpoint", "pause", &id]).await;
    world.commit_many("order.paid", 20).await;
    world.until_status("held", 20).await;
    world.until_status("delivered", 20).await;

    let held = world.deliveries_to(&endpoint).await;
    let paused = |reason: &Option<String>| reason.as_deref() == Some("paused");
    assert!(
        held.iter()
            .all(|held| paused(&held.reason) && held.attempt_count == 0)
    );
    assert_eq!(world.receiver.tally("/in").arrived, 0);
    assert_eq!(world.receiver.tally(&other.path).arrived, 20);
    world.kurier(&["endpoint", "resume", &id]).await;
    world.assert_no_leftovers().await;
    let tally = world.receiver.tally("/in");
    assert_eq!((tally.ids_accepted, tally.duplicates()), (20, 0));
}

#[tokio::test]
async fn deliveries_already_in_the_queue_are_held_too_when_their_endpoint_is_paused() {
    let world = World::start().await;
    let endpoint = world.endpoint("/in").await;
    let id = endpoint.id.to_string();
    let _relay = world.relay().await;
    world.commit_many("order.paid", 20).await;
    world.until_status("pending", 20).await;
    world.kurier(&["endpoint", "pause", &id]).await;
    let _dispatcher = world.dispatcher().await;
    world.until_status("held", 20).await;

    assert_eq!(world.receiver.tally("/in").arrived, 0);
    world.kurier(&["endpoint", "resume", &id]).await;
    world.assert_no_leftovers().await;
    assert_eq!(world.receiver.tally("/in").ids_accepted, 20);
}

#[tokio::test]
async fn a_wait_that_is_too_long_ends_as_a_dead_letter_that_says_why() {
    let world = World::with(&[("KURIER_HELD_AGE_MAX_MS", "3600000")]).await;
    let endpoint = world.endpoint("/in").await;
    let id = endpoint.id.to_string();
    world.kurier(&["endpoint", "pause", &id]).await;
    let mut relay = world.relay().await;
    world.commit(&Event::json("order.paid", "1")).await;
    world.until_status("held", 1).await;
    let an_hour_passes =
        "UPDATE kurier.deliveries SET waiting_since = waiting_since - interval '1 hour'";
    world.execute(an_hour_passes).await;
    world.commit(&Event::json("order.paid", "2")).await;
    world.until_status("held", 2).await;
    assert_eq!(relay.terminate().await, Some(0));
    let ended = world.launch(RELAY).args(&["--once"]).run().await;
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);

    let deliveries = world.deliveries_to(&endpoint).await;
    let reasons = deliveries.iter().map(|delivery| delivery.reason.as_deref());
    assert!(
        reasons.eq([Some("wait_expired"), Some("paused")]),
        "{deliveries:?}"
    );
    assert_eq!(deliveries[0].status, "dead_letter");
    assert_eq!(deliveries[0].attempt_count, 0);
    let error = deliveries[0].last_error.as_deref().expect("an explanation");
    assert!(error.contains("paused"), "{error}");
    assert_eq!(world.receiver.tally("/in").arrived, 0);
}
