//! Who is subscribed to what, as the relay needs it.

use chrono::{DateTime, Utc};
use domain::{breaker::Breaker, gate::GateFacts};
use uuid::Uuid;

use crate::{
    Store, StoreError,
    answered::Answered as _,
    health::{BreakerRow, closed_breaker},
    units::count,
};

/// One endpoint as a subscriber.
#[derive(Debug, Clone)]
pub struct SubscriptionRow {
    /// The endpoint.
    pub endpoint_id: Uuid,
    /// Whose endpoint it is.
    pub tenant: String,
    /// Its patterns as stored; none means everything.
    pub event_types: Vec<String>,
    /// Its own limit of attempts, if it has one.
    pub max_attempts: Option<u32>,
    /// Its gate, with a closed breaker.
    pub gate: GateFacts,
}

/// All subscriptions, and the version of the configuration they were read at.
#[derive(Debug, Clone)]
pub struct SubscriptionRows {
    /// Compare with [`Store::configuration_version`].
    pub version: i64,
    /// Every endpoint.
    pub rows: Vec<SubscriptionRow>,
}

/// One endpoint's breaker as it was at a moment.
#[derive(Debug, Clone)]
pub struct BreakerReading {
    /// The endpoint.
    pub endpoint_id: Uuid,
    /// Its breaker.
    pub breaker: Breaker,
    /// The database's time of this reading.
    pub now: DateTime<Utc>,
}

#[derive(sqlx::FromRow)]
struct ReadingRow {
    #[sqlx(flatten)]
    breaker: BreakerRow,
    now: DateTime<Utc>,
}

impl ReadingRow {
    fn into_reading(self) -> Result<BreakerReading, StoreError> {
        Ok(BreakerReading {
            endpoint_id: self.breaker.endpoint_id,
            breaker: self.breaker.into_breaker()?,
            now: self.now,
        })
    }
}

#[derive(sqlx::FromRow)]
struct Row {
    id: Uuid,
    tenant: String,
    event_types: Vec<String>,
    max_attempts: Option<i32>,
    paused: bool,
    disabled: bool,
}

impl Store {
    /// A number that moves with every change to any endpoint.
    pub async fn configuration_version(&self) -> Result<i64, StoreError> {
        Ok(sqlx::query_scalar(
            "/* kurier.configuration_version */ SELECT version FROM kurier.configuration",
        )
        .fetch_one(&self.pool)
        .answered()
        .await?)
    }

    /// Reads every endpoint as a subscriber. The version is read first: a change in between makes
    /// the next comparison differ, never the other way round.
    pub async fn subscriptions(&self) -> Result<SubscriptionRows, StoreError> {
        let version = self.configuration_version().await?;
        let rows: Vec<Row> = sqlx::query_as(
            "/* kurier.subscriptions */
            SELECT id, tenant, event_types, max_attempts,
                paused_at IS NOT NULL AS paused, disabled_at IS NOT NULL AS disabled
            FROM kurier.endpoints",
        )
        .fetch_all(&self.pool)
        .answered()
        .await?;
        let rows = rows.into_iter().map(Row::into_subscription).collect();
        Ok(SubscriptionRows { version, rows })
    }

    /// The breakers that are not closed.
    pub async fn breakers_not_closed(&self) -> Result<Vec<BreakerReading>, StoreError> {
        let rows: Vec<ReadingRow> = sqlx::query_as(
            "/* kurier.breakers_not_closed */
            SELECT endpoint_id, state, consecutive_failures, opened_at, cooldown_seconds, probe_deadline, recovered_at,
                now() AS now
            FROM kurier.endpoint_health
            WHERE state <> 'closed'",
        )
        .fetch_all(&self.pool)
        .answered()
        .await?;
        rows.into_iter().map(ReadingRow::into_reading).collect()
    }
}

impl Row {
    fn into_subscription(self) -> SubscriptionRow {
        SubscriptionRow {
            endpoint_id: self.id,
            tenant: self.tenant,
            event_types: self.event_types,
            max_attempts: self.max_attempts.map(count),
            gate: GateFacts {
                disabled: self.disabled,
                paused: self.paused,
                breaker: closed_breaker(),
            },
        }
    }
}
