//! The bare tables and statements, every one over a whole batch.
//!
//! Guards are the real ones (state, lease token, rows counted); indexes and columns are only what the statements need.

use anyhow::ensure;
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{PgConnection, PgPool};
use uuid::Uuid;

const CONNECTIONS_MAX: u32 = 8;

/// One plan for each statement, by index and from the batch outwards. Without statistics the planner takes the guards
/// for so selective that it reads the whole table first, which costs a hundred times as much.
const PLANNING: [(&str, &str); 3] = [
    ("plan_cache_mode", "force_generic_plan"),
    ("enable_seqscan", "off"),
    ("random_page_cost", "1.1"),
];

const CREATE: &str = "
    CREATE SCHEMA loadtest_bare;
    CREATE TABLE loadtest_bare.events (
        id uuid PRIMARY KEY,
        event_type text NOT NULL,
        payload json NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        processed_at timestamptz
    );
    CREATE INDEX events_waiting ON loadtest_bare.events (created_at) WHERE processed_at IS NULL;
    CREATE TABLE loadtest_bare.deliveries (
        id uuid PRIMARY KEY,
        event_id uuid NOT NULL,
        status text NOT NULL,
        attempt_count integer NOT NULL DEFAULT 0,
        lease_token uuid,
        lease_until timestamptz,
        delivered_at timestamptz,
        last_status_code integer,
        last_response_ms integer
    ) WITH (fillfactor = 50);
    CREATE TABLE loadtest_bare.attempts (
        delivery_id uuid NOT NULL,
        attempt_number integer NOT NULL,
        started_at timestamptz NOT NULL,
        duration_ms integer NOT NULL,
        status_code integer NOT NULL,
        PRIMARY KEY (delivery_id, attempt_number)
    )";

const DROP: &str = "DROP SCHEMA IF EXISTS loadtest_bare CASCADE";

const INSERT_EVENTS: &str = "
    INSERT INTO loadtest_bare.events (id, event_type, payload)
    SELECT id, 'loadtest.event', $2::json FROM unnest($1::uuid[]) AS id";

const LOCK_EVENTS: &str = "
    SELECT id FROM loadtest_bare.events
    WHERE processed_at IS NULL ORDER BY created_at LIMIT $1 FOR UPDATE SKIP LOCKED";

const INSERT_DELIVERIES: &str = "
    INSERT INTO loadtest_bare.deliveries (id, event_id, status)
    SELECT id, event_id, 'pending' FROM unnest($1::uuid[], $2::uuid[]) AS row (id, event_id)";

const MARK_PROCESSED: &str =
    "UPDATE loadtest_bare.events SET processed_at = now() WHERE id = ANY ($1)";

const CLAIM: &str = "
    UPDATE loadtest_bare.deliveries AS d
    SET status = 'in_flight', lease_token = $2, lease_until = now() + interval '30 s',
        attempt_count = attempt_count + 1
    FROM loadtest_bare.events AS e
    WHERE d.id = ANY ($1) AND d.status = 'pending' AND e.id = d.event_id
    RETURNING d.id, d.event_id, e.payload::text";

const SETTLE: &str = "
    WITH result AS (
        SELECT * FROM unnest($1::uuid[], $2::integer[], $3::integer[]) AS r (id, status_code, duration_ms)
    ), settled AS (
        UPDATE loadtest_bare.deliveries AS d
        SET status = 'delivered', delivered_at = now(), lease_token = NULL, lease_until = NULL,
            last_status_code = r.status_code, last_response_ms = r.duration_ms
        FROM result AS r
        WHERE d.id = r.id AND d.lease_token = $4 AND d.status = 'in_flight'
        RETURNING d.id, d.attempt_count, r.duration_ms, r.status_code
    )
    INSERT INTO loadtest_bare.attempts (delivery_id, attempt_number, started_at, duration_ms, status_code)
    SELECT id, attempt_count, now() - duration_ms * interval '1 ms', duration_ms, status_code FROM settled";

/// One claimed delivery.
#[derive(sqlx::FromRow)]
pub(crate) struct Claim {
    pub(crate) id: Uuid,
    pub(crate) event_id: Uuid,
    pub(crate) payload: String,
}

/// The results of a claimed batch, column by column as the statement takes them.
pub(crate) struct Settlement {
    pub(crate) ids: Vec<Uuid>,
    pub(crate) status_codes: Vec<i32>,
    pub(crate) durations_ms: Vec<i32>,
}

impl Settlement {
    /// A success in no time for each delivery.
    pub(crate) fn all_ok(ids: &[Uuid]) -> Self {
        let same = |value| vec![value; ids.len()];
        Self {
            ids: ids.to_vec(),
            status_codes: same(200),
            durations_ms: same(0),
        }
    }
}

/// The bare tables of one measurement.
#[derive(Clone)]
pub(crate) struct BareStore {
    pub(crate) pool: PgPool,
}

impl BareStore {
    /// Connects and makes the tables.
    pub(crate) async fn create(options: PgConnectOptions) -> anyhow::Result<Self> {
        let options = options.options(PLANNING);
        let pool = PgPoolOptions::new()
            .max_connections(CONNECTIONS_MAX)
            .connect_with(options)
            .await?;
        let store = Self { pool };
        store.create_tables().await?;
        Ok(store)
    }

    /// Empty tables, whatever was there before.
    pub(crate) async fn create_tables(&self) -> anyhow::Result<()> {
        self.drop_tables().await?;
        sqlx::raw_sql(CREATE).execute(&self.pool).await?;
        Ok(())
    }

    pub(crate) async fn drop_tables(&self) -> anyhow::Result<()> {
        sqlx::raw_sql(DROP).execute(&self.pool).await?;
        Ok(())
    }

    pub(crate) async fn insert_events(&self, ids: &[Uuid], payload: &str) -> anyhow::Result<()> {
        let insert = sqlx::query(INSERT_EVENTS).bind(ids).bind(payload);
        expect_rows(
            "events",
            insert.execute(&self.pool).await?.rows_affected(),
            ids.len(),
        )
    }

    /// After a bulk load, as autovacuum would do it a minute later.
    pub(crate) async fn analyze(&self) -> anyhow::Result<()> {
        sqlx::raw_sql("ANALYZE loadtest_bare.events")
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    pub(crate) async fn insert_deliveries(
        &self,
        ids: &[Uuid],
        event_ids: &[Uuid],
    ) -> anyhow::Result<()> {
        let insert = sqlx::query(INSERT_DELIVERIES).bind(ids).bind(event_ids);
        expect_rows(
            "deliveries",
            insert.execute(&self.pool).await?.rows_affected(),
            ids.len(),
        )
    }

    /// Claims deliveries under one token, with what has to be sent; those not pending are left out.
    pub(crate) async fn claim(&self, ids: &[Uuid], token: Uuid) -> anyhow::Result<Vec<Claim>> {
        Ok(sqlx::query_as(CLAIM)
            .bind(ids)
            .bind(token)
            .fetch_all(&self.pool)
            .await?)
    }

    /// Records an attempt and its delivery for every result.
    pub(crate) async fn settle(&self, results: &Settlement, token: Uuid) -> anyhow::Result<()> {
        let settle = sqlx::query(SETTLE)
            .bind(&results.ids)
            .bind(&results.status_codes)
            .bind(&results.durations_ms)
            .bind(token);
        let settled = settle.execute(&self.pool).await?.rows_affected();
        expect_rows("attempts", settled, results.ids.len())
    }
}

/// Unprocessed events, locked until the transaction of this connection ends.
pub(crate) async fn lock_events(
    connection: &mut PgConnection,
    limit: usize,
) -> anyhow::Result<Vec<Uuid>> {
    let lock = sqlx::query_scalar(LOCK_EVENTS).bind(i64::try_from(limit)?);
    Ok(lock.fetch_all(connection).await?)
}

pub(crate) async fn mark_processed(
    connection: &mut PgConnection,
    ids: &[Uuid],
) -> anyhow::Result<()> {
    let mark = sqlx::query(MARK_PROCESSED)
        .bind(ids)
        .execute(connection)
        .await?;
    expect_rows("processed events", mark.rows_affected(), ids.len())
}

fn expect_rows(what: &str, rows: u64, expected: usize) -> anyhow::Result<()> {
    ensure!(
        rows == expected as u64,
        "{rows} {what} written instead of {expected}"
    );
    Ok(())
}
