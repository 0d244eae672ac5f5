//! Who gets a committed event, and who does not.

use acceptance::{Endpoint, Event, RELAY, World};
use uuid::Uuid;

/// The events that arrived at an endpoint, by id, each as often as it arrived.
fn arrived(world: &World, endpoint: &Endpoint) -> Vec<Uuid> {
    let requests = world.receiver.requests(&endpoint.path);
    let id = |request: &scripted_receiver::Request| request.webhook_id().parse().expect("an id");
    requests.iter().map(id).collect()
}

#[tokio::test]
async fn a_committed_event_arrives_at_every_subscribed_endpoint_exactly_once() {
    let world = World::start().await;
    let endpoints = [
        world.endpoint("/first").await,
        world.endpoint("/second").await,
    ];
    let (_relay, _dispatcher) = (world.relay().await, world.dispatcher().await);
    let id = world.commit(&Event::json("order.paid", r#"{"n":1}"#)).await;

    world.until_status("delivered", 2).await;
    world.assert_no_leftovers().await;
    for endpoint in &endpoints {
        assert_eq!(arrived(&world, endpoint), [id]);
    }
}

#[tokio::test]
async fn an_event_that_was_rolled_back_arrives_nowhere() {
    let world = World::start().await;
    let endpoint = world.endpoint("/in").await;
    let (_relay, _dispatcher) = (world.relay().await, world.dispatcher().await);
    let mut transaction = world.pool().begin().await.expect("a transaction");
    Event::json("order.paid", "1")
        .write(&mut *transaction)
        .await;
    transaction.rollback().await.expect("a rollback");
    let committed = world.commit(&Event::json("order.paid", "2")).await;

    world.until_status("delivered", 1).await;
    world.assert_no_leftovers().await;
    assert_eq!(arrived(&world, &endpoint), [committed]);
    let deliveries: i64 = world.value("SELECT count(*) FROM kurier.deliveries").await;
    assert_eq!(deliveries, 1);
}

#[tokio::test]
async fn an_event_committed_late_is_not_skipped_for_one_that_overtook_it() {
    let world = World::start().await;
    let endpoint = world.endpoint("/in").await;
    let (_relay, _dispatcher) = (world.relay().await, world.dispatcher().await);
    let mut slow = world.pool().begin().await.expect("a transaction");
    let written_first = Event::json("order.paid", "1").write(&mut *slow).await;
    let committed_first = world.commit(&Event::json("order.paid", "2")).await;
    world.until_status("delivered", 1).await;
    slow.commit().await.expect("a commit");

    world.until_status("delivered", 2).await;
    world.assert_no_leftovers().await;
    assert_eq!(arrived(&world, &endpoint), [committed_first, written_first]);
}

#[tokio::test]
async fn a_tenants_events_reach_its_own_endpoints_and_no_others() {
    let world = World::start().await;
    let north = world.endpoint_with("/north", &["--tenant", "north"]).await;
    let south = world.endpoint_with("/south", &["--tenant", "south"]).await;
    let nobody = world.endpoint("/nobody").await;
    let (_relay, _dispatcher) = (world.relay().await, world.dispatcher().await);
    let event = |tenant: &str| Event::json("order.paid", "{}").tenant(tenant);
    let to_north = world.commit(&event("north")).await;
    let to_south = world.commit(&event("south")).await;
    let to_nobody = world.commit(&event("")).await;

    world.until_status("delivered", 3).await;
    world.assert_no_leftovers().await;
    assert_eq!(arrived(&world, &north), [to_north]);
    assert_eq!(arrived(&world, &south), [to_south]);
    assert_eq!(arrived(&world, &nobody), [to_nobody]);
}

#[tokio::test]
async fn an_endpoint_gets_the_event_types_it_subscribed_to() {
    let world = World::start().await;
    let orders = world
        .endpoint_with("/orders", &["--event-type", "order.*"])
        .await;
    let chosen = ["--event-type", "order.paid", "--event-type", "user.*"];
    let chosen = world.endpoint_with("/chosen", &chosen).await;
    let (_relay, _dispatcher) = (world.relay().await, world.dispatcher().await);
    let paid = world.commit(&Event::json("order.paid", "{}")).await;
    let shipped = world.commit(&Event::json("order.shipped", "{}")).await;
    let joined = world.commit(&Event::json("user.joined", "{}")).await;
    world.commit(&Event::json("orders", "{}")).await;

    world.until_status("delivered", 4).await;
    world.assert_no_leftovers().await;
    let sorted = |mut ids: Vec<Uuid>| {
        ids.sort();
        ids
    };
    assert_eq!(
        sorted(arrived(&world, &orders)),
        sorted(vec![paid, shipped])
    );
    assert_eq!(sorted(arrived(&world, &chosen)), sorted(vec![paid, joined]));
}

#[tokio::test]
async fn an_event_nobody_subscribed_to_is_processed_and_can_be_looked_at() {
    let world = World::start().await;
    let orders = &["--event-type", "order.*"];
    world.endpoint_with("/orders", orders).await;
    let _relay = world.relay().await;
    let id = world.commit(&Event::json("user.joined", "{}")).await;

    world.assert_no_leftovers().await;
    let shown = world.kurier(&["event", "show", &id.to_string()]).await;
    assert_eq!(shown["progress"], "not_subscribed");
    assert!(shown["processed_at"].is_string(), "{shown}");
    assert_eq!(shown["deliveries"].as_array().map(Vec::len), Some(0));
}

#[tokio::test]
async fn a_relay_that_runs_once_drains_what_is_there_and_exits_0() {
    let world = World::with(&[("KURIER_RELAY_BATCH", "100")]).await;
    world.endpoint("/in").await;
    let ids = world.commit_many("order.paid", 250).await;
    let ended = world.launch(RELAY).args(&["--once"]).run().await;

    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    world.until_status("pending", ids.len()).await;
    assert_eq!(world.broker.work_ready().await, 250);
    let _dispatcher = world.dispatcher().await;
    world.until_status("delivered", ids.len()).await;
    world.assert_no_leftovers().await;
    assert_eq!(world.receiver.tally("/in").arrived, 250);
}

#[tokio::test]
async fn a_relay_that_runs_once_and_cannot_reach_the_broker_fails_and_loses_nothing() {
    let world = World::start().await;
    world.endpoint("/in").await;
    world.commit_many("order.paid", 3).await;
    let ended = world
        .launch(RELAY)
        .args(&["--once"])
        .env("AMQP_URL", "amqp://127.0.0.1:1")
        .env("KURIER_CONFIRM_TIMEOUT_MS", "500")
        .run()
        .await;

    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    let (_relay, _dispatcher) = (world.relay().await, world.dispatcher().await);
    world.until_status("delivered", 3).await;
    world.assert_no_leftovers().await;
}
