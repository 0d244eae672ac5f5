//! When a delivery is tried again.

use std::time::Duration;

use acceptance::{Event, World};
use chrono::{DateTime, Utc};
use scripted_receiver::{Reply, Request, Script};
use sqlx::FromRow;

/// What a retry may be late beyond the delay unit: one batch, on a busy machine.
const SLACK_MS: i64 = 1_000;
/// Attempts' times are kept in whole milliseconds.
const ROUNDING_MS: i64 = 1;

/// Notes every due time that is promised, at the moment it is.
const NOTE_DUE_TIMES: &str = "
    CREATE TABLE promised (delivery_id uuid, failed_attempts integer, due_at timestamptz, noted_at timestamptz)";
const NOTE_FUNCTION: &str = "
    CREATE FUNCTION note_promise() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO promised VALUES (NEW.id, NEW.attempt_count, NEW.next_attempt_at, now());
        RETURN NULL;
    END $$";
const NOTE_TRIGGER: &str = "
    CREATE TRIGGER note_promise AFTER UPDATE ON kurier.deliveries FOR EACH ROW
    WHEN (NEW.status = 'failed' AND OLD.status = 'in_flight') EXECUTE FUNCTION note_promise()";

#[derive(Debug, FromRow)]
struct Promise {
    failed_attempts: i32,
    due_at: DateTime<Utc>,
    noted_at: DateTime<Utc>,
    started_at: DateTime<Utc>,
}

impl Promise {
    fn wait_ms(&self) -> i64 {
        (self.due_at - self.noted_at).num_milliseconds()
    }

    fn lateness_ms(&self) -> i64 {
        (self.started_at - self.due_at).num_milliseconds()
    }
}

async fn note_promises(world: &World) {
    for statement in [NOTE_DUE_TIMES, NOTE_FUNCTION, NOTE_TRIGGER] {
        world.execute(statement).await;
    }
}

/// Each promised due time with the attempt that followed.
async fn promises(world: &World) -> Vec<Promise> {
    world
        .rows(
            "SELECT p.failed_attempts, p.due_at, p.noted_at, a.started_at
            FROM promised AS p
            INNER JOIN kurier.delivery_attempts AS a
                ON a.delivery_id = p.delivery_id AND a.attempt_number = p.failed_attempts + 1",
        )
        .await
}

fn gap(requests: &[Request]) -> Duration {
    requests[1].at - requests[0].at
}

#[tokio::test]
async fn no_retry_comes_before_its_time_and_none_much_after_it() {
    const COUNT: u32 = 150;
    const BREAKER: &str = "1000000";
    let world = World::with(&[
        ("KURIER_RETRY_BASE_MS", "150"),
        ("KURIER_RETRY_CAP_MS", "1000"),
        ("KURIER_MAX_ATTEMPTS", "1000"),
        ("KURIER_BREAKER_THRESHOLD", BREAKER),
    ])
    .await;
    note_promises(&world).await;
    world.endpoint("/in").await;
    let failing = Script::failing(7, 0.6, Reply::status(503));
    world.receiver.script("/in", failing);
    let (_relay, _dispatcher) = (world.relay().await, world.dispatcher().await);
    world.commit_many("order.paid", COUNT).await;
    world.until_status("delivered", COUNT as usize).await;
    world.assert_no_leftovers().await;

    let promises = promises(&world).await;
    assert!(promises.len() > COUNT as usize / 2, "{}", promises.len());
    for promise in promises {
        let ceiling_ms = (150 << promise.failed_attempts.min(10)).min(1_000);
        let waits = 0..=ceiling_ms;
        assert!(waits.contains(&promise.wait_ms()), "{promise:?}");
        let late = -ROUNDING_MS..=100 + SLACK_MS;
        assert!(late.contains(&promise.lateness_ms()), "{promise:?}");
    }
}

#[tokio::test]
async fn a_fixed_schedule_is_followed() {
    let world = World::start().await;
    note_promises(&world).await;
    let schedule = &["--retry-schedule-ms", "250,500"];
    world.endpoint_with("/in", schedule).await;
    let failures = [500, 502, 503].map(Reply::status);
    world.receiver.script(
        "/in",
        Vec::from(failures)
            .into_iter()
            .chain([Reply::ok()])
            .collect::<Vec<_>>(),
    );
    let (_relay, _dispatcher) = (world.relay().await, world.dispatcher().await);
    world.commit(&Event::json("order.paid", "{}")).await;
    world.until_status("delivered", 1).await;

    let mut promises = promises(&world).await;
    promises.sort_by_key(|promise| promise.failed_attempts);
    let waits: Vec<i64> = promises.iter().map(Promise::wait_ms).collect();
    assert_eq!(waits, [250, 500, 500]);
    assert!(promises.iter().all(|p| p.lateness_ms() >= -ROUNDING_MS));
}

#[tokio::test]
async fn a_receiver_that_asks_for_patience_gets_it() {
    let world = World::start().await;
    let endpoint = world.endpoint("/in").await;
    let limited = Reply::status(429).header("retry-after", "1");
    world.receiver.script("/in", [limited, Reply::ok()]);
    let (_relay, _dispatcher) = (world.relay().await, world.dispatcher().await);
    world.commit(&Event::json("order.paid", "{}")).await;
    world.until_status("delivered", 1).await;

    let requests = world.receiver.requests("/in");
    assert!(
        gap(&requests) >= Duration::from_secs(1),
        "{:?}",
        gap(&requests)
    );
    assert_eq!(world.attempts_at(&endpoint).await.len(), 2);
    let failures: i32 = world
        .value("SELECT consecutive_failures FROM kurier.endpoint_health")
        .await;
    assert_eq!(failures, 0);
}

#[tokio::test]
async fn a_short_wait_is_not_held_up_by_a_long_one() {
    let world = World::with(&[("KURIER_DELAY_UNIT_MS", "1000")]).await;
    note_promises(&world).await;
    let hour = Reply::status(503).header("retry-after", "3600");
    world.receiver.script("/hour", hour);
    world.endpoint("/hour").await;
    let schedule = &["--retry-schedule-ms", "2000"];
    world.endpoint_with("/seconds", schedule).await;
    world
        .receiver
        .script("/seconds", [Reply::status(503), Reply::ok()]);
    let (_relay, _dispatcher) = (world.relay().await, world.dispatcher().await);
    world.commit(&Event::json("order.paid", "{}")).await;
    world.until_status("delivered", 1).await;

    let promises = promises(&world).await;
    let [promise] = promises.as_slice() else {
        panic!("{promises:?}")
    };
    assert_eq!(promise.wait_ms(), 2_000);
    let late = -ROUNDING_MS..=1_000 + SLACK_MS;
    assert!(late.contains(&promise.lateness_ms()), "{promise:?}");
    assert_eq!(world.receiver.tally("/hour").arrived, 1);
}

/// With a unit of 1 ms the broker's timers cover four seconds.
#[tokio::test]
async fn a_wait_beyond_the_brokers_timers_ends_when_it_is_due() {
    let world = World::with(&[
        ("KURIER_DELAY_UNIT_MS", "1"),
        ("KURIER_SWEEP_GRACE_MS", "500"),
    ])
    .await;
    note_promises(&world).await;
    world.endpoint("/in").await;
    let long = Reply::status(503).header("retry-after", "6");
    world.receiver.script("/in", [long, Reply::ok()]);
    let (_relay, _dispatcher) = (world.relay().await, world.dispatcher().await);
    world.commit(&Event::json("order.paid", "{}")).await;
    world.until_status("delivered", 1).await;
    world.assert_no_leftovers().await;

    let promises = promises(&world).await;
    assert_eq!(promises.len(), 1);
    assert_eq!(promises[0].wait_ms(), 6_000);
    let late = -ROUNDING_MS..=SLACK_MS;
    assert!(late.contains(&promises[0].lateness_ms()), "{promises:?}");
    assert_eq!(world.receiver.tally("/in").arrived, 2);
}
