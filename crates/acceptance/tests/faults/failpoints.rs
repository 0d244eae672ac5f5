//! kill -9 at every hand-over. The program dies there, starts again, and everything arrives.

use acceptance::{DISPATCHER, Launch, RELAY};
use scripted_receiver::{Reply, Script};

use crate::load::Load;

const EVENTS: u32 = 120;

/// Starts it and waits until it has killed itself.
async fn dies_at(launch: Launch, failpoint: &str) {
    let mut program = launch.env("KURIER_FAILPOINT", failpoint).spawn();
    assert_eq!(program.wait_exit().await, None, "not killed: it ended");
}

async fn relay_dies_at(failpoint: &str) {
    let mut load = Load::new(&[]).await;
    let _dispatcher = load.world.dispatcher().await;
    load.write(EVENTS).await;
    dies_at(load.world.launch(RELAY), failpoint).await;
    let _relay = load.world.relay().await;
    load.assert_all_arrived(0).await;
    assert_eq!(load.arrived(), u64::from(EVENTS));
}

#[tokio::test]
async fn a_relay_killed_between_expanding_and_publishing_loses_and_repeats_nothing() {
    relay_dies_at("relay.expanded").await;
    relay_dies_at("relay.expanded:2").await;
}

#[tokio::test]
async fn a_relay_killed_between_publishing_and_marking_loses_and_repeats_nothing() {
    relay_dies_at("relay.published").await;
    relay_dies_at("relay.published:2").await;
}

/// Dies with one event in hand and nothing else in flight; more events follow. Returns the requests
/// beyond one for each event.
async fn dispatcher_dies_at(failpoint: &str, replies: impl Into<Script>) -> u64 {
    let mut load = Load::new(&[]).await;
    load.world.receiver.script(&load.endpoint.path, replies);
    let _relay = load.world.relay().await;
    load.write(1).await;
    dies_at(load.world.launch(DISPATCHER), failpoint).await;
    load.write(EVENTS).await;
    let _dispatcher = load.world.dispatcher().await;
    load.assert_all_arrived(1).await;
    load.arrived() - load.written()
}

#[tokio::test]
async fn a_dispatcher_killed_before_its_request_leaves_repeats_nothing() {
    let repeated = dispatcher_dies_at("dispatcher.claimed", Reply::ok()).await;
    assert_eq!(repeated, 0);
}

#[tokio::test]
async fn a_dispatcher_killed_after_its_answer_came_repeats_that_one_request() {
    let repeated = dispatcher_dies_at("dispatcher.sent", Reply::ok()).await;
    assert_eq!(repeated, 1);
}

#[tokio::test]
async fn a_dispatcher_killed_after_settling_repeats_nothing() {
    let repeated = dispatcher_dies_at("dispatcher.settled", Reply::ok()).await;
    assert_eq!(repeated, 0);
}

#[tokio::test]
async fn a_failure_settled_by_a_dispatcher_killed_before_or_after_publishing_is_retried_once() {
    for failpoint in ["dispatcher.settled", "dispatcher.published"] {
        let replies = [Reply::status(503), Reply::ok()];
        let repeated = dispatcher_dies_at(failpoint, replies).await;
        assert_eq!(repeated, 1, "{failpoint}");
    }
}

#[tokio::test]
async fn a_sweep_killed_between_marking_and_publishing_is_made_up_for_by_the_next() {
    let mut load = Load::new(&[]).await;
    let mut relay = load.world.relay().await;
    load.write(EVENTS).await;
    let all_processed = "SELECT bool_and(processed_at IS NOT NULL) FROM kurier.outbox_events";
    load.world.until("all published", all_processed).await;
    relay.kill().await;
    load.world.broker.purge_work().await;

    dies_at(load.world.launch(RELAY), "sweep.marked").await;
    let (_relay, _dispatcher) = (load.world.relay().await, load.world.dispatcher().await);
    load.assert_all_arrived(0).await;
    assert_eq!(load.arrived(), u64::from(EVENTS));
}

#[tokio::test]
async fn a_release_killed_between_marking_and_publishing_is_made_up_for_by_the_sweep() {
    let mut load = Load::new(&[]).await;
    let id = load.endpoint.id.to_string();
    load.world.kurier(&["endpoint", "pause", &id]).await;
    let mut relay = load.world.relay().await;
    load.write(EVENTS).await;
    load.world.until_status("held", EVENTS as usize).await;
    relay.kill().await;
    load.world.kurier(&["endpoint", "resume", &id]).await;

    dies_at(load.world.launch(RELAY), "release.marked").await;
    load.world.until_status("pending", EVENTS as usize).await;
    let (_relay, _dispatcher) = (load.world.relay().await, load.world.dispatcher().await);
    load.assert_all_arrived(0).await;
    assert_eq!(load.arrived(), u64::from(EVENTS));
}
