//! The circuit breaker of an endpoint, over all replicas.

use std::time::Duration;

use acceptance::{Endpoint, Event, RELAY, World};
use scripted_receiver::{Gate, Reply};

/// Turns of the release to wait for, to see that it lets nothing out.
const RELEASE_TURNS: u32 = 10;

/// Breakers open after three failures, for a time long enough to change the receiver's script in.
const SETTINGS: [(&str, &str); 4] = [
    ("KURIER_BREAKER_THRESHOLD", "3"),
    ("KURIER_BREAKER_COOLDOWN_MS", "1500"),
    ("KURIER_DISPATCH_CONCURRENCY", "20"),
    ("KURIER_MAX_ATTEMPTS", "1000"),
];

async fn until_state(world: &World, endpoint: &Endpoint, state: &str) {
    let id = endpoint.id;
    let query =
        format!("SELECT state = '{state}' FROM kurier.endpoint_health WHERE endpoint_id = '{id}'");
    world
        .until(&format!("a breaker that is {state}"), &query)
        .await;
}

/// Waits until the breaker is open and nothing is under way any more.
async fn until_opened(world: &World, endpoint: &Endpoint) {
    until_state(world, endpoint, "open").await;
    let id = endpoint.id;
    let query = format!(
        "SELECT NOT EXISTS (
            SELECT FROM kurier.deliveries WHERE endpoint_id = '{id}' AND status = 'in_flight'
        )"
    );
    world.until("the last attempts to end", &query).await;
}

/// Waits until the release has looked at what is held this often.
async fn until_released(world: &World, turns: u32) {
    let mut seen = String::new();
    for _ in 0..turns {
        let query = format!(
            "SELECT last_run_at::text <> '{seen}' FROM kurier.chores WHERE name = 'release'"
        );
        world.until("a turn of the release", &query).await;
        seen = world
            .value("SELECT last_run_at::text FROM kurier.chores WHERE name = 'release'")
            .await;
    }
}

async fn charged(world: &World, endpoint: &Endpoint) -> u64 {
    let deliveries = world.deliveries_to(endpoint).await;
    let attempts = deliveries.iter().map(|delivery| delivery.attempt_count);
    attempts.map(|count| u64::try_from(count).unwrap()).sum()
}

#[tokio::test]
async fn after_the_cooldown_one_probe_goes_out_and_its_success_lets_all_that_waited_go() {
    const WAITING: u32 = 2_000;
    let world = World::with(&SETTINGS).await;
    let endpoint = world
        .endpoint_with("/in", &["--event-type", "order.*"])
        .await;
    let healthy = world
        .endpoint_with("/healthy", &["--event-type", "user.*"])
        .await;
    world.receiver.script("/in", Reply::status(500));
    let _relay = world.relay().await;
    let _dispatchers = (world.dispatcher().await, world.dispatcher().await);
    world.commit_many("order.paid", WAITING).await;
    until_opened(&world, &endpoint).await;
    let gate = Gate::closed();
    world.receiver.script("/in", Reply::ok().behind(&gate));
    let before = world.receiver.tally("/in").arrived;
    assert!(before <= 100, "{before} requests before the breaker opened");

    world.receiver.wait_for("/in", before + 1).await;
    world.commit_many("user.joined", 50).await;
    let query = format!(
        "SELECT count(*) = 50 FROM kurier.deliveries WHERE endpoint_id = '{}' AND status = 'delivered'",
        healthy.id
    );
    world
        .until("the healthy endpoint's deliveries", &query)
        .await;
    until_released(&world, RELEASE_TURNS).await;
    assert_eq!(world.receiver.tally("/in").arrived, before + 1);
    assert_eq!(charged(&world, &endpoint).await, before);

    gate.open();
    world.assert_no_leftovers().await;
    let tally = world.receiver.tally("/in");
    assert_eq!(tally.ids_accepted, u64::from(WAITING));
    assert_eq!(tally.duplicates(), 0);
    assert_eq!(charged(&world, &endpoint).await, tally.arrived);
    until_state(&world, &endpoint, "closed").await;
}

#[tokio::test]
async fn a_probe_whose_dispatcher_was_killed_is_followed_by_another_after_its_deadline() {
    let world = World::with(&SETTINGS).await;
    let endpoint = world.endpoint("/in").await;
    world.receiver.script("/in", Reply::status(500));
    let _relay = world.relay().await;
    let mut first = world.dispatcher().await;
    world.commit_many("order.paid", 50).await;
    until_opened(&world, &endpoint).await;
    let gate = Gate::closed();
    world.receiver.script("/in", Reply::ok().behind(&gate));
    let before = world.receiver.tally("/in").arrived;
    world.receiver.wait_for("/in", before + 1).await;
    let deadline: String = world
        .value("SELECT probe_deadline::text FROM kurier.endpoint_health")
        .await;
    first.kill().await;

    let _second = world.dispatcher().await;
    world.receiver.wait_for("/in", before + 2).await;
    let query = format!("SELECT now() > '{deadline}'::timestamptz");
    assert!(world.value::<bool>(&query).await, "not before {deadline}");
    until_released(&world, RELEASE_TURNS).await;
    assert_eq!(world.receiver.tally("/in").arrived, before + 2);
    gate.open();
    world.assert_no_leftovers().await;
    assert_eq!(world.receiver.tally("/in").ids_accepted, 50);
}

/// The relay lets nothing out here, so that what arrives at the broker is new, and all at once.
#[tokio::test]
async fn of_many_new_events_after_the_cooldown_one_is_the_probe_and_the_others_wait() {
    const NEW: u32 = 500;
    let world = World::with(&SETTINGS).await;
    let endpoint = world.endpoint("/in").await;
    world.receiver.script("/in", Reply::status(500));
    let never = world
        .launch(RELAY)
        .env("KURIER_RELEASE_INTERVAL_MS", "600000");
    let mut relay = never.start().await;
    let _dispatchers = (
        world.dispatcher().await,
        world.dispatcher().await,
        world.dispatcher().await,
    );
    world.commit_many("order.paid", 3).await;
    until_opened(&world, &endpoint).await;
    let gate = Gate::closed();
    world.receiver.script("/in", Reply::ok().behind(&gate));
    let cooled_down = "SELECT now() > opened_at + cooldown_seconds * interval '1 second'
        FROM kurier.endpoint_health";
    world.until("the cooldown to be over", cooled_down).await;
    let before = world.receiver.tally("/in").arrived;
    world.commit_many("order.paid", NEW).await;

    world.until_status("in_flight", 1).await;
    world.until_status("held", NEW as usize + 2).await;
    world.receiver.wait_for("/in", before + 1).await;
    assert_eq!(world.receiver.tally("/in").arrived, before + 1);
    assert_eq!(relay.terminate().await, Some(0));
    gate.open();
    let _relay = world.relay().await;
    world.assert_no_leftovers().await;
    let tally = world.receiver.tally("/in");
    assert_eq!(
        (tally.ids_accepted, tally.duplicates()),
        (u64::from(NEW) + 3, 0)
    );
}

const NOTE_COOLDOWNS: [&str; 3] = [
    "CREATE TABLE cooldowns (seconds double precision, noted_at timestamptz)",
    "CREATE FUNCTION note_cooldown() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO cooldowns VALUES (NEW.cooldown_seconds, now());
        RETURN NULL;
    END $$",
    "CREATE TRIGGER note_cooldown AFTER UPDATE ON kurier.endpoint_health FOR EACH ROW
    WHEN (NEW.state = 'open' AND OLD.state <> 'open') EXECUTE FUNCTION note_cooldown()",
];

#[tokio::test]
async fn every_failed_probe_doubles_the_cooldown_up_to_its_cap_and_a_success_ends_it() {
    let world = World::with(&[
        ("KURIER_BREAKER_THRESHOLD", "1"),
        ("KURIER_BREAKER_COOLDOWN_MS", "250"),
        ("KURIER_BREAKER_COOLDOWN_CAP_MS", "750"),
        ("KURIER_RETRY_CAP_MS", "0"),
    ])
    .await;
    for statement in NOTE_COOLDOWNS {
        world.execute(statement).await;
    }
    let endpoint = world.endpoint("/in").await;
    let [one, two, three, four] = [500, 502, 503, 504].map(Reply::status);
    world
        .receiver
        .script("/in", [one, two, three, four, Reply::ok()]);
    let (_relay, _dispatcher) = (world.relay().await, world.dispatcher().await);
    world.commit(&Event::json("order.paid", "{}")).await;
    world.assert_no_leftovers().await;

    let noted: Vec<(f64,)> = world
        .rows("SELECT seconds FROM cooldowns ORDER BY noted_at")
        .await;
    assert_eq!(noted, [(0.25,), (0.5,), (0.75,), (0.75,)]);
    let requests = world.receiver.requests("/in");
    assert_eq!(requests.len(), 5);
    for (pair, (cooldown,)) in requests.windows(2).zip(noted) {
        let gap = pair[1].at - pair[0].at;
        assert!(
            gap >= Duration::from_secs_f64(cooldown),
            "{gap:?} after {cooldown} s"
        );
    }
    until_state(&world, &endpoint, "closed").await;
    let health: Vec<(f64, i32)> = world
        .rows("SELECT cooldown_seconds, consecutive_failures FROM kurier.endpoint_health")
        .await;
    assert_eq!(health, [(0.25, 0)]);
}
