//! SIGTERM: what is under way is finished and recorded, the rest is given back.

use std::time::{Duration, Instant};

use acceptance::{Event, World};
use scripted_receiver::{Gate, Reply};

/// The attempt limit of these worlds, and how long a program may take to end after it.
const ATTEMPT_LIMIT: Duration = Duration::from_secs(2);
const TIME_TO_END: Duration = Duration::from_secs(5);

#[tokio::test]
async fn stopping_relay_and_dispatcher_under_load_loses_nothing_and_repeats_nothing() {
    const EVENTS: u32 = 3_000;
    let world = World::with(&[("KURIER_RELAY_BATCH", "50")]).await;
    world.endpoint("/in").await;
    let latency = Duration::from_millis(50);
    world.receiver.script("/in", Reply::ok().after(latency));
    let (mut relay, mut dispatcher) = (world.relay().await, world.dispatcher().await);
    world.commit_many("order.paid", EVENTS).await;
    world.receiver.wait_for("/in", 300).await;
    let asked = Instant::now();
    relay.ask_to_stop();
    dispatcher.ask_to_stop();
    assert_eq!(relay.wait_exit().await, Some(0));
    assert_eq!(dispatcher.wait_exit().await, Some(0));
    assert!(asked.elapsed() < ATTEMPT_LIMIT + TIME_TO_END);
    let leased: i64 = world
        .value("SELECT count(*) FROM kurier.deliveries WHERE lease_token IS NOT NULL")
        .await;
    assert_eq!(leased, 0);
    let so_far = world.receiver.tally("/in").arrived;
    assert!(so_far < u64::from(EVENTS), "there was nothing left to do");

    let (_relay, _dispatcher) = (world.relay().await, world.dispatcher().await);
    world.assert_no_leftovers().await;
    assert_eq!(world.receiver.tally("/in").arrived, u64::from(EVENTS));
    assert_eq!(world.receiver.tally("/in").ids_accepted, u64::from(EVENTS));
}

#[tokio::test]
async fn an_answer_that_comes_after_sigterm_is_recorded() {
    let world = World::start().await;
    let endpoint = world.endpoint("/in").await;
    let gate = Gate::closed();
    world.receiver.script("/in", Reply::ok().behind(&gate));
    let _relay = world.relay().await;
    let mut dispatcher = world.dispatcher().await;
    world.commit(&Event::json("order.paid", "{}")).await;
    world.receiver.wait_for("/in", 1).await;
    dispatcher.ask_to_stop();
    dispatcher.wait_unready().await;
    gate.open();

    assert_eq!(dispatcher.wait_exit().await, Some(0));
    assert_eq!(world.deliveries_to(&endpoint).await[0].status, "delivered");
    world.assert_no_leftovers().await;
}

#[tokio::test]
async fn a_receiver_that_never_answers_delays_the_end_by_the_attempt_limit_and_is_recorded() {
    let world = World::start().await;
    let endpoint = world.endpoint("/in").await;
    world.receiver.script("/in", [Reply::hang(), Reply::ok()]);
    let _relay = world.relay().await;
    let mut dispatcher = world.dispatcher().await;
    world.commit(&Event::json("order.paid", "{}")).await;
    world.receiver.wait_for("/in", 1).await;
    let asked = Instant::now();

    assert_eq!(dispatcher.terminate().await, Some(0));
    assert!(asked.elapsed() < ATTEMPT_LIMIT + TIME_TO_END);
    let attempts = world.attempts_at(&endpoint).await;
    assert_eq!(attempts.len(), 1);
    assert_eq!(attempts[0].error_class.as_deref(), Some("timeout"));
    let _dispatcher = world.dispatcher().await;
    world.until_status("delivered", 1).await;
    world.assert_no_leftovers().await;
}
