//! A database of its own on the given server, and what is read from it. Writes no events.

use std::time::Duration;

use chrono::{DateTime, Utc};
use futures_util::TryStreamExt;
use hdrhistogram::Histogram;
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, PgPool};
use url::Url;

use crate::services::Services;

const CONNECTIONS_MAX: u32 = 2;

const FINISHED: &str =
    "SELECT count(*) FROM kurier.deliveries WHERE status IN ('delivered', 'dead_letter')";

const COUNTS: &str = "
    SELECT count(*) AS deliveries,
        count(*) FILTER (WHERE status = 'delivered') AS delivered,
        count(*) FILTER (WHERE status = 'dead_letter') AS dead_letters,
        max(delivered_at) AS last_delivered_at,
        (SELECT count(*) FROM kurier.outbox_events WHERE processed_at IS NULL) AS events_waiting
    FROM kurier.deliveries";

const LATENCIES: &str = "
    SELECT (extract(epoch FROM delivered_at - created_at) * 1000000)::bigint
    FROM kurier.deliveries WHERE delivered_at IS NOT NULL";

/// What the database holds when a run is over.
#[derive(sqlx::FromRow)]
pub(crate) struct Counts {
    pub(crate) deliveries: i64,
    pub(crate) delivered: i64,
    pub(crate) dead_letters: i64,
    pub(crate) last_delivered_at: Option<DateTime<Utc>>,
    pub(crate) events_waiting: i64,
}

/// One database, which exists until [`FreshDatabase::remove`].
pub(crate) struct FreshDatabase {
    pub(crate) url: Url,
    pub(crate) pool: PgPool,
    name: String,
}

impl FreshDatabase {
    /// Creates it empty. The name is trusted to be an identifier.
    pub(crate) async fn create(services: &Services, name: &str) -> anyhow::Result<Self> {
        administer(services, format!("CREATE DATABASE {name}")).await?;
        let mut url = services.database_url.clone();
        url.set_path(name);
        let options = PgPoolOptions::new().max_connections(CONNECTIONS_MAX);
        let pool = options
            .connect_with(services.connect_options()?.database(name))
            .await?;
        Ok(Self {
            url,
            pool,
            name: name.to_owned(),
        })
    }

    /// Drops it, whoever is still connected.
    pub(crate) async fn remove(self, services: &Services) -> anyhow::Result<()> {
        self.pool.close().await;
        administer(
            services,
            format!("DROP DATABASE {} WITH (FORCE)", self.name),
        )
        .await
    }

    /// The database's own clock.
    pub(crate) async fn now(&self) -> anyhow::Result<DateTime<Utc>> {
        Ok(sqlx::query_scalar("SELECT clock_timestamp()")
            .fetch_one(&self.pool)
            .await?)
    }

    /// Deliveries that are delivered or dead letters.
    pub(crate) async fn finished(&self) -> anyhow::Result<u64> {
        let finished: i64 = sqlx::query_scalar(FINISHED).fetch_one(&self.pool).await?;
        Ok(finished.try_into()?)
    }

    pub(crate) async fn counts(&self) -> anyhow::Result<Counts> {
        Ok(sqlx::query_as(COUNTS).fetch_one(&self.pool).await?)
    }

    /// Microseconds from an event's transaction to its recorded delivery.
    pub(crate) async fn latencies_us(&self) -> anyhow::Result<Histogram<u64>> {
        let mut histogram = Histogram::new(3)?;
        let mut rows = sqlx::query_scalar::<_, i64>(LATENCIES).fetch(&self.pool);
        while let Some(latency_us) = rows.try_next().await? {
            histogram.record(latency_us.max(0).unsigned_abs())?;
        }
        Ok(histogram)
    }
}

async fn administer(services: &Services, statement: String) -> anyhow::Result<()> {
    let options = PgPoolOptions::new()
        .max_connections(1)
        .acquire_timeout(Duration::from_secs(10));
    let pool = options.connect_with(services.connect_options()?).await?;
    sqlx::raw_sql(AssertSqlSafe(statement))
        .execute(&pool)
        .await?;
    pool.close().await;
    Ok(())
}
