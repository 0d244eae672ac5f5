//! What the statements read: the partitions of their ids, by index, also right after a table was
//! born, when nothing is known of it. The server's own counters are asked, so it is the statements
//! and connections of the programs that are judged, the plans they keep included.

use std::time::Duration;

use domain::delivery::HoldReason;
use sqlx::AssertSqlSafe;
use store::{Settled, SettledStatus};
use uuid::Uuid;

use crate::rig::Rig;

/// Enough for a wrong plan to read a thousand times too much.
const ROWS: u32 = 50_000;
const BATCH: usize = 200;
/// More than the five after which PostgreSQL may keep one plan for all values.
const BATCHES: usize = 8;

/// Rows that were read, and partitions that were looked into.
#[derive(Debug, sqlx::FromRow)]
struct Reads {
    without_index: i64,
    by_index: i64,
    partitions: i64,
}

impl Reads {
    /// No row but those that were named, each so many times at the most.
    fn assert_only_named(&self, times: usize) {
        let named = i64::try_from(BATCH * BATCHES * times).unwrap();
        assert_eq!(self.without_index, 0, "{self:?}");
        assert!(self.by_index <= named, "{self:?}, {named} expected at most");
    }
}

const NEVER_ANALYSE: &str = "
    DO $$ DECLARE partition regclass; BEGIN
        FOR partition IN SELECT inhrelid FROM pg_inherits LOOP
            IF (SELECT relkind FROM pg_class WHERE oid = partition) = 'r' THEN
                EXECUTE format('ALTER TABLE %s SET (autovacuum_enabled = false)', partition);
            END IF;
        END LOOP;
    END $$";

impl Rig {
    /// Deliveries and events of today that were never analysed, and never will be. Returns some of
    /// the deliveries, from all over the table.
    async fn fill(&self) -> Vec<Uuid> {
        let endpoint = self.endpoint().await;
        let mut filling = self.session().await;
        for statement in [
            NEVER_ANALYSE.to_owned(),
            format!(
                "INSERT INTO kurier.outbox_events (event_type, payload)
                SELECT 'a', '{{}}' FROM generate_series(1, {ROWS})"
            ),
            format!(
                "INSERT INTO kurier.deliveries
                    (id, event_id, endpoint_id, status, max_attempts, next_attempt_at, hint_at, created_at)
                SELECT kurier.uuid_v7(), id, '{endpoint}', 'pending', 5, now(), now(), created_at
                FROM kurier.outbox_events"
            ),
        ] {
            let statement = sqlx::query(AssertSqlSafe(statement));
            statement.execute(&mut filling).await.unwrap();
        }
        let sample = "SELECT id FROM kurier.deliveries ORDER BY random() LIMIT $1";
        let ids = sqlx::query_scalar(sample)
            .bind(i64::try_from(BATCH * BATCHES).unwrap())
            .fetch_all(&mut filling)
            .await
            .unwrap();
        self.end_sessions().await;
        self.execute("SELECT pg_stat_reset()").await;
        ids
    }

    /// What was read of a partitioned table since it was filled.
    async fn reads(&self, table: &str) -> Reads {
        sqlx::query_as(
            "SELECT coalesce(sum(seq_tup_read), 0)::bigint AS without_index,
                coalesce(sum(idx_tup_fetch), 0)::bigint AS by_index,
                count(*) FILTER (WHERE idx_scan > 0) AS partitions
            FROM pg_stat_user_tables WHERE relname ~ ('^' || $1 || '_([0-9]{8}|default|random)$')",
        )
        .bind(table)
        .fetch_one(&self.pool)
        .await
        .unwrap()
    }

    /// What a session has read is counted at its end at the latest.
    async fn end_sessions(&self) {
        self.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
            WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        .await;
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
    for batch in ids.chunks(BATCH) {
        let token = rig.claim(batch).await;
        let batch: Vec<Settled> = batch.iter().map(|id| failed(*id, token)).collect();
        let settlement = rig.store.begin_settlement(&batch).await.unwrap();
        assert_eq!(settlement.settled.len(), BATCH);
        settlement.commit().await.unwrap();
    }
    rig.end_sessions().await;
    // Found, locked and updated by the claim, updated by the settlement.
    let deliveries = rig.reads("deliveries").await;
    deliveries.assert_only_named(4);
    assert_eq!(deliveries.partitions, 1);
    rig.reads("outbox_events").await.assert_only_named(1);
    rig.reads("delivery_attempts").await.assert_only_named(0);
}

#[tokio::test]
async fn holding_reads_only_its_rows_on_a_table_never_analysed() {
    let rig = Rig::start().await;
    let ids = rig.fill().await;
    for batch in ids.chunks(BATCH) {
        let token = rig.claim(batch).await;
        let held: Vec<_> = batch.iter().map(|id| (*id, HoldReason::Paused)).collect();
        assert_eq!(rig.store.hold(token, &held).await.unwrap(), BATCH as u64);
    }
    rig.end_sessions().await;
    let deliveries = rig.reads("deliveries").await;
    deliveries.assert_only_named(4);
    assert_eq!(deliveries.partitions, 1);
}

#[tokio::test]
async fn a_turn_of_the_relay_reads_only_what_waits() {
    let rig = Rig::start().await;
    rig.fill().await;
    for _ in 0..BATCHES {
        let turn = rig.store.lock_waiting_events(200).await.unwrap();
        let ids: Vec<Uuid> = turn.events.iter().map(|event| event.id).collect();
        assert_eq!(ids.len(), BATCH);
        turn.finish(&ids, &[]).await.unwrap();
    }
    rig.end_sessions().await;
    // Passing over what is already done included.
    rig.reads("outbox_events").await.assert_only_named(10);
}
