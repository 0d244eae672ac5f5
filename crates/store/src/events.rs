//! Events by hand: writing one, and looking at one without its payload.

use chrono::{DateTime, Utc};
use serde::Serialize;
use uuid::Uuid;

use crate::{Store, StoreError, answered::Answered as _};

/// An event to be written.
#[derive(Debug, Clone, Default)]
pub struct NewEvent {
    /// Its id; the database makes one when it is `None`.
    pub id: Option<Uuid>,
    /// Whose event it is.
    pub tenant: String,
    /// Its type.
    pub event_type: String,
    /// What it is about, for ordering and for people.
    pub aggregate_type: Option<String>,
    /// Which one it is about.
    pub aggregate_id: Option<String>,
    /// JSON text, sent byte for byte as given here.
    pub payload: String,
    /// The trace it belongs to.
    pub traceparent: Option<String>,
}

/// An event as operators see it: everything but its payload; the fields are the columns' names.
#[derive(Debug, Clone, Serialize, sqlx::FromRow)]
#[expect(missing_docs, reason = "the columns of kurier.outbox_events")]
pub struct EventView {
    pub id: Uuid,
    pub tenant: String,
    pub event_type: String,
    pub aggregate_type: Option<String>,
    pub aggregate_id: Option<String>,
    pub content_type: String,
    pub payload_bytes: i64,
    pub traceparent: Option<String>,
    pub created_at: DateTime<Utc>,
    pub processed_at: Option<DateTime<Utc>>,
    pub parked_at: Option<DateTime<Utc>>,
    pub parked_reason: Option<String>,
}

impl Store {
    /// Writes an event, as an application would. Returns its id.
    pub async fn add_event(&self, event: &NewEvent) -> Result<Uuid, StoreError> {
        Ok(sqlx::query_scalar(
            "/* kurier.add_event */
            SELECT kurier.enqueue($1, $2::text::json, $3, $4, $5, $6, $7)",
        )
        .bind(&event.event_type)
        .bind(&event.payload)
        .bind(&event.aggregate_type)
        .bind(&event.aggregate_id)
        .bind(&event.tenant)
        .bind(&event.traceparent)
        .bind(event.id)
        .fetch_one(&self.pool)
        .answered()
        .await?)
    }

    /// One event without its payload.
    pub async fn event(&self, id: Uuid) -> Result<Option<EventView>, StoreError> {
        Ok(sqlx::query_as(
            "/* kurier.event */
            SELECT id, tenant, event_type, aggregate_type, aggregate_id, content_type,
                coalesce(octet_length(payload_bytes), octet_length(payload::text))::bigint AS payload_bytes,
                traceparent, created_at, processed_at, parked_at, parked_reason
            FROM kurier.outbox_events WHERE id = $1",
        )
        .bind(id)
        .fetch_optional(&self.pool)
        .answered()
        .await?)
    }

    /// Events waiting to be expanded and the age of the oldest in seconds; events set aside.
    pub async fn outbox_backlog(&self) -> Result<(i64, f64, i64), StoreError> {
        Ok(sqlx::query_as(
            "/* kurier.outbox_backlog */
            SELECT waiting.count, waiting.oldest_seconds, parked.count
            FROM (
                SELECT count(*) AS count,
                    coalesce(extract(epoch FROM now() - min(created_at)), 0)::double precision AS oldest_seconds
                FROM kurier.outbox_events WHERE processed_at IS NULL AND parked_at IS NULL
            ) AS waiting
            CROSS JOIN (SELECT count(*) AS count FROM kurier.outbox_events WHERE parked_at IS NOT NULL) AS parked",
        )
        .fetch_one(&self.pool)
        .answered()
        .await?)
    }

    /// Events set aside, the latest first.
    pub async fn parked_events(&self, most: u32) -> Result<Vec<EventView>, StoreError> {
        Ok(sqlx::query_as(
            "/* kurier.parked_events */
            SELECT id, tenant, event_type, aggregate_type, aggregate_id, content_type,
                coalesce(octet_length(payload_bytes), octet_length(payload::text))::bigint AS payload_bytes,
                traceparent, created_at, processed_at, parked_at, parked_reason
            FROM kurier.outbox_events WHERE parked_at IS NOT NULL ORDER BY parked_at DESC LIMIT $1",
        )
        .bind(i64::from(most))
        .fetch_all(&self.pool)
        .answered()
        .await?)
    }

    /// Lets a parked event be tried again. Returns whether it was parked.
    pub async fn unpark_event(&self, id: Uuid) -> Result<bool, StoreError> {
        let done = sqlx::query(
            "/* kurier.unpark_event */
            UPDATE kurier.outbox_events SET parked_at = NULL, parked_reason = NULL
            WHERE id = $1 AND parked_at IS NOT NULL",
        )
        .bind(id)
        .execute(&self.pool)
        .answered()
        .await?;
        Ok(done.rows_affected() == 1)
    }

    /// The database's clock.
    pub async fn clock(&self) -> Result<DateTime<Utc>, StoreError> {
        Ok(
            sqlx::query_scalar("/* kurier.clock */ SELECT clock_timestamp()")
                .fetch_one(&self.pool)
                .answered()
                .await?,
        )
    }
}
