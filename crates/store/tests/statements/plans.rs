//! What the statements read: the partitions of their ids, by index, also right after a table was
//! born, when nothing is known of it. The server's own counters are asked, so it is the statements
//! and connections of the programs that are judged, the plans they keep included.

use std::time::Duration;

use domain::delivery::HoldReason;
use store::{Settled, SettledStatus};
use uuid::Uuid;

use crate::rig::Rig;

/// Enough for a wrong plan to read a thousand times too much.
const ROWS: u32 = 50_000;
const BATCH: usize = 200;
/// More than the five after which PostgreSQL may keep one plan for all values.
const BATCHES: usize = 8;

impl Rig {
    /// Deliveries and events of today that were never analysed, and never will be.
    async fn fill(&self) -> Vec<Uuid> {
        let endpoint = self.endpoint().await;
        self.execute(
            "DO $$ DECLARE partition regclass; BEGIN
                FOR partition IN SELECT inhrelid FROM pg_inherits LOOP
                    IF (SELECT relkind FROM pg_class WHERE oid = partition) = 'r' THEN
                        EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = false)', partition);
                    END IF;
                END LOOP;
            END $$",
        )
        .await;
        self.execute(&format!(
            "INSERT INTO kurier.outbox_events (event_type, payload)
            SELECT 'a', '{{}}' FROM generate_series(1, {ROWS})"
        ))
        .await;
        self.execute(&format!(
            "INSERT INTO kurier.deliveries
                (id, event_id, endpoint_id, status, max_attempts, next_attempt_at, hint_at, created_at)
            SELECT kurier.uuid_v7(), id, '{endpoint}', 'pending', 5, now(), now(), created_at
            FROM kurier.outbox_events"
        ))
        .await;
        let wanted = BATCH * BATCHES;
        self.values(&format!(
            "SELECT id FROM kurier.deliveries ORDER BY random() LIMIT {wanted}"
        ))
        .await
    }

    /// Rows read one by one from any partition of the outbox, deliveries and attempts, and
    /// partitions of deliveries that were looked into, since the database was made.
    async fn reads(&self, table: &str) -> (i64, i64) {
        sqlx::query_as(
            "SELECT coalesce(sum(seq_tup_read), 0)::bigint, count(*) FILTER (WHERE idx_scan > 0)
            FROM pg_stat_user_tables WHERE relname ~ ('^' || $1 || '_([0-9]{8}|default|random)$')",
        )
        .bind(table)
        .fetch_one(&self.pool)
        .await
        .unwrap()
    }

    /// A server tells what a session has read at its end at the latest.
    async fn end_sessions(&self) {
        self.store.close().await;
        self.until(
            "SELECT count(*) = 0 FROM pg_stat_activity
            WHERE datname = current_database() AND application_name = 'store-test'",
        )
        .await;
    }

    async fn reset_counters(&self) {
        self.execute("SELECT pg_stat_reset()").await;
    }
}

fn failed(delivery_id: Uuid, lease_token: Uuid) -> Settled {
    Settled {
        delivery_id,
        endpoint_id: Uuid::nil(),
        lease_token,
        status: SettledStatus::Failed {
            retry_after: Duration::ZERO,
            hint_after: Duration::ZERO,
        },
        attempt: None,
        error: None,
    }
}

#[tokio::test]
async fn claiming_and_settling_read_only_their_rows_and_their_day_on_a_table_never_analysed() {
    let rig = Rig::start().await;
    let ids = rig.fill().await;
    rig.reset_counters().await;
    for batch in ids.chunks(BATCH) {
        let token = rig.claim(batch).await;
        let batch: Vec<Settled> = batch.iter().map(|id| failed(*id, token)).collect();
        let settlement = rig.store.begin_settlement(&batch).await.unwrap();
        assert_eq!(settlement.settled.len(), BATCH);
        settlement.commit().await.unwrap();
    }
    rig.end_sessions().await;
    for table in ["outbox_events", "deliveries", "delivery_attempts"] {
        let (read_one_by_one, _) = rig.reads(table).await;
        assert_eq!(read_one_by_one, 0, "rows of {table} read without an index");
    }
    let (_, partitions) = rig.reads("deliveries").await;
    assert_eq!(partitions, 1, "partitions of deliveries looked into");
}

#[tokio::test]
async fn holding_and_giving_back_read_only_their_rows_on_a_table_never_analysed() {
    let rig = Rig::start().await;
    let ids = rig.fill().await;
    rig.reset_counters().await;
    for batch in ids.chunks(BATCH) {
        let token = rig.claim(batch).await;
        rig.store.give_back(token, batch).await.unwrap();
        let token = rig.claim(batch).await;
        let held: Vec<_> = batch.iter().map(|id| (*id, HoldReason::Paused)).collect();
        assert_eq!(rig.store.hold(token, &held).await.unwrap(), BATCH as u64);
    }
    rig.end_sessions().await;
    assert_eq!(rig.reads("deliveries").await, (0, 1));
}

#[tokio::test]
async fn a_turn_of_the_relay_reads_only_what_waits() {
    let rig = Rig::start().await;
    rig.fill().await;
    rig.reset_counters().await;
    for _ in 0..BATCHES {
        let turn = rig.store.lock_waiting_events(500).await.unwrap();
        let ids: Vec<Uuid> = turn.events.iter().map(|event| event.id).collect();
        assert_eq!(ids.len(), 500);
        turn.finish(&ids, &[]).await.unwrap();
    }
    rig.end_sessions().await;
    assert_eq!(rig.reads("outbox_events").await.0, 0);
}
