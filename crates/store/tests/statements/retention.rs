//! Retention: what is over goes, what somebody may still need stays.

use crate::rig::Rig;

const KEEP_DAYS: u32 = 30;
const MOST: u32 = 100;

/// How one old delivery stands, as columns and values.
const DELIVERED: &str = "status = 'delivered', delivered_at = now(), hint_at = NULL";
const NEEDED: [&str; 4] = [
    "status = 'pending'",
    "status = 'in_flight', lease_token = gen_random_uuid(), lease_until = now()",
    "status = 'held', reason = 'paused', held_since = now(), hint_at = NULL",
    "status = 'dead_letter', reason = 'rejected', dead_lettered_at = now(), hint_at = NULL",
];

impl Rig {
    /// A processed event of so many days ago with one attempted delivery, each in its day's partition.
    async fn old_day(&self, days_ago: i32) {
        let day = format!("(now() AT TIME ZONE 'UTC')::date - {days_ago}");
        let noon = format!("((({day})::timestamp + interval '12 hours') AT TIME ZONE 'UTC')");
        for statement in [
            format!(
                "SELECT kurier.create_partition(t, k, {day}) FROM (VALUES
                    ('outbox_events', 'id'), ('deliveries', 'id'), ('delivery_attempts', 'delivery_id')) AS p (t, k)"
            ),
            format!(
                "INSERT INTO kurier.outbox_events (id, event_type, payload, created_at, processed_at)
                VALUES (kurier.first_id_at({noon}), 'a', '1', {noon}, {noon})"
            ),
            format!(
                "INSERT INTO kurier.deliveries
                    (id, event_id, endpoint_id, status, max_attempts, next_attempt_at, hint_at, created_at)
                SELECT id, id, id, 'pending', 5, now(), now(), created_at FROM kurier.outbox_events
                WHERE id = kurier.first_id_at({noon})"
            ),
            format!(
                "INSERT INTO kurier.delivery_attempts
                    (delivery_id, attempt_number, endpoint_id, started_at, duration_ms)
                VALUES (kurier.first_id_at({noon}), 1, gen_random_uuid(), {noon}, 1)"
            ),
        ] {
            self.execute(&statement).await;
        }
    }

    /// An event with a random id, processed so many days ago, with one delivery of its own.
    async fn old_random(&self, days_ago: i32, delivery: &str) {
        let past = format!("now() - {days_ago} * interval '1 day'");
        self.execute(&format!(
            "WITH event AS (
                INSERT INTO kurier.outbox_events (id, event_type, payload, created_at, processed_at)
                VALUES (overlay(gen_random_uuid()::text PLACING 'f' FROM 1 FOR 1)::uuid, 'a', '1', {past}, {past})
                RETURNING id, created_at
            )
            INSERT INTO kurier.deliveries
                (id, event_id, endpoint_id, status, max_attempts, next_attempt_at, hint_at, created_at)
            SELECT kurier.first_id_at(created_at), id, id, 'pending', 5, now(), now(), created_at FROM event"
        ))
        .await;
        self.execute(&format!(
            "UPDATE kurier.deliveries SET {delivery} WHERE status = 'pending'"
        ))
        .await;
    }

    async fn rows_left(&self) -> (i64, i64, i64) {
        let count = async |table: &str| {
            self.value::<i64>(&format!("SELECT count(*) FROM kurier.{table}"))
                .await
        };
        (
            count("outbox_events").await,
            count("deliveries").await,
            count("delivery_attempts").await,
        )
    }
}

#[tokio::test]
async fn days_past_their_retention_are_dropped_and_younger_ones_kept() {
    let rig = Rig::start().await;
    rig.old_day(31).await;
    rig.old_day(30).await;
    rig.execute(&format!("UPDATE kurier.deliveries SET {DELIVERED}"))
        .await;
    let (dropped, deleted) = rig.store.drop_expired(KEEP_DAYS, MOST).await.unwrap();
    assert_eq!((dropped, deleted), (2, 0));
    assert_eq!(rig.rows_left().await, (1, 1, 1));
    assert_eq!(
        rig.store.drop_expired(KEEP_DAYS, MOST).await.unwrap(),
        (0, 0)
    );
}

#[tokio::test]
async fn a_day_that_somebody_may_still_need_is_kept_with_its_payloads() {
    let rig = Rig::start().await;
    rig.old_day(40).await;
    for needed in NEEDED {
        rig.execute(
            "UPDATE kurier.deliveries SET reason = NULL, held_since = NULL, lease_token = NULL, lease_until = NULL,
                hint_at = now(), status = 'pending'"
        )
        .await;
        rig.execute(&format!("UPDATE kurier.deliveries SET {needed}"))
            .await;
        let dropped = rig.store.drop_expired(KEEP_DAYS, MOST).await.unwrap();
        assert_eq!(dropped, (0, 0), "{needed}");
        assert_eq!(rig.rows_left().await, (1, 1, 1), "{needed}");
    }
}

#[tokio::test]
async fn events_nobody_has_expanded_or_that_are_parked_are_kept() {
    let rig = Rig::start().await;
    for state in [
        "processed_at = NULL",
        "processed_at = NULL, parked_at = now(), parked_reason = 'too large'",
    ] {
        rig.old_day(40).await;
        rig.execute(&format!("UPDATE kurier.deliveries SET {DELIVERED}"))
            .await;
        rig.execute(&format!("UPDATE kurier.outbox_events SET {state}"))
            .await;
        let (dropped, _) = rig.store.drop_expired(KEEP_DAYS, MOST).await.unwrap();
        assert_eq!(dropped, 1, "the deliveries' day only");
        assert_eq!(rig.rows_left().await, (1, 0, 0));
        rig.execute("DELETE FROM kurier.outbox_events").await;
    }
}

#[tokio::test]
async fn events_with_random_ids_are_deleted_only_when_finished_and_old() {
    let rig = Rig::start().await;
    rig.old_random(31, DELIVERED).await;
    rig.old_random(29, DELIVERED).await;
    for needed in NEEDED {
        rig.old_random(40, needed).await;
        rig.execute("UPDATE kurier.deliveries SET next_attempt_at = now()")
            .await;
    }
    let (_, deleted) = rig.store.drop_expired(KEEP_DAYS, MOST).await.unwrap();
    assert_eq!(deleted, 1);
    assert_eq!(rig.rows_left().await.0, 5);
}

#[tokio::test]
async fn no_more_are_deleted_at_once_than_asked_for() {
    let rig = Rig::start().await;
    for _ in 0..3 {
        rig.old_random(40, DELIVERED).await;
    }
    assert_eq!(rig.store.drop_expired(KEEP_DAYS, 2).await.unwrap().1, 2);
    assert_eq!(rig.store.drop_expired(KEEP_DAYS, 2).await.unwrap().1, 1);
}
