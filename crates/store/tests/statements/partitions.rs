//! Partitions: there before they are needed.

use crate::rig::Rig;

const TABLES: [&str; 3] = ["outbox_events", "deliveries", "delivery_attempts"];

impl Rig {
    async fn partition_of(&self, table: &str) -> String {
        self.value(&format!(
            "SELECT c.relname::text FROM kurier.{table} AS t INNER JOIN pg_class AS c ON c.oid = t.tableoid"
        ))
        .await
    }
}

#[tokio::test]
async fn every_table_has_partitions_from_yesterday_to_a_week_ahead() {
    let rig = Rig::start().await;
    for table in TABLES {
        let there: bool = rig
            .value(&format!(
                "SELECT bool_and(
                    to_regclass(format('kurier.{table}_%s', to_char((now() AT TIME ZONE 'UTC')::date + n, 'YYYYMMDD')))
                    IS NOT NULL)
                FROM generate_series(-1, 7) AS n"
            ))
            .await;
        assert!(there, "{table}");
    }
    assert_eq!(rig.store.create_partitions().await.unwrap(), 0);
}

#[tokio::test]
async fn partitions_asked_for_by_two_at_once_are_created_once() {
    let rig = Rig::start().await;
    rig.execute(
        "DO $$ BEGIN
            EXECUTE 'DROP TABLE kurier.deliveries_' || to_char((now() AT TIME ZONE 'UTC')::date + 7, 'YYYYMMDD');
        END $$",
    )
    .await;
    let other = rig.another_store();
    let (first, second) = tokio::join!(rig.store.create_partitions(), other.create_partitions());
    assert_eq!(first.unwrap() + second.unwrap(), 1);
}

#[tokio::test]
async fn rows_that_came_before_their_partition_move_into_it() {
    let rig = Rig::start().await;
    rig.execute(
        "INSERT INTO kurier.outbox_events (id, event_type, payload, created_at)
        VALUES (kurier.first_id_at('2099-03-01 12:00Z'), 'a', '1', '2099-03-01 12:00Z')",
    )
    .await;
    rig.execute(
        "INSERT INTO kurier.deliveries
            (id, event_id, endpoint_id, status, max_attempts, next_attempt_at, hint_at, created_at)
        SELECT id, id, id, 'pending', 5, now(), now(), created_at FROM kurier.outbox_events",
    )
    .await;
    rig.execute(
        "INSERT INTO kurier.delivery_attempts (delivery_id, attempt_number, endpoint_id, started_at, duration_ms)
        SELECT id, 1, endpoint_id, now(), 1 FROM kurier.deliveries",
    )
    .await;
    for (table, key) in TABLES.into_iter().zip(["id", "id", "delivery_id"]) {
        assert_eq!(rig.partition_of(table).await, format!("{table}_default"));
        let create = format!("SELECT kurier.create_partition('{table}', '{key}', '2099-03-01')");
        assert!(rig.value::<bool>(&create).await);
        assert_eq!(rig.partition_of(table).await, format!("{table}_20990301"));
        assert!(!rig.value::<bool>(&create).await, "only once");
    }
}

#[tokio::test]
async fn a_day_begins_and_ends_at_midnight_utc() {
    let rig = Rig::start().await;
    rig.execute("SELECT kurier.create_partition('outbox_events', 'id', '2099-03-01')")
        .await;
    for (moment, partition) in [
        ("2099-02-28 23:59:59.999Z", "outbox_events_default"),
        ("2099-03-01 00:00:00Z", "outbox_events_20990301"),
        ("2099-03-01 23:59:59.999Z", "outbox_events_20990301"),
        ("2099-03-02 00:00:00Z", "outbox_events_default"),
    ] {
        rig.execute(&format!(
            "INSERT INTO kurier.outbox_events (id, event_type, payload)
            VALUES (kurier.first_id_at('{moment}'), 'a', '1')"
        ))
        .await;
        assert_eq!(
            rig.partition_of("outbox_events").await,
            partition,
            "{moment}"
        );
        rig.execute("DELETE FROM kurier.outbox_events").await;
    }
}
