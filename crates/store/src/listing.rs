//! Deliveries and attempts as operators see them; the fields are the columns' names.

use chrono::{DateTime, Utc};
use serde::Serialize;
use uuid::Uuid;

use crate::{Store, StoreError, answered::Answered as _};

/// Which deliveries to list.
#[derive(Debug, Clone, Default)]
pub struct DeliveryFilter {
    /// Of this endpoint.
    pub endpoint_id: Option<Uuid>,
    /// Of this event.
    pub event_id: Option<Uuid>,
    /// In this status.
    pub status: Option<&'static str>,
    /// Older than this delivery: the last of the page before.
    pub before: Option<Uuid>,
    /// At the most.
    pub limit: u32,
}

#[derive(Debug, Clone, Serialize, sqlx::FromRow)]
#[expect(missing_docs, reason = "the columns of kurier.deliveries")]
/// One delivery.
pub struct DeliveryView {
    pub id: Uuid,
    pub event_id: Uuid,
    pub endpoint_id: Uuid,
    pub status: String,
    pub reason: Option<String>,
    pub attempt_count: i32,
    pub max_attempts: i32,
    pub next_attempt_at: DateTime<Utc>,
    pub held_since: Option<DateTime<Utc>>,
    pub delivered_at: Option<DateTime<Utc>>,
    pub dead_lettered_at: Option<DateTime<Utc>>,
    pub last_error: Option<String>,
    pub last_status_code: Option<i32>,
    pub last_response_ms: Option<i32>,
    pub created_at: DateTime<Utc>,
}

#[derive(Debug, Clone, Serialize, sqlx::FromRow)]
#[expect(missing_docs, reason = "the columns of kurier.delivery_attempts")]
/// One attempt.
pub struct AttemptView {
    pub attempt_number: i32,
    pub started_at: DateTime<Utc>,
    pub duration_ms: i32,
    pub status_code: Option<i32>,
    pub error_class: Option<String>,
    pub error: Option<String>,
    pub response_body: Option<String>,
}

impl Store {
    /// Deliveries, newest first.
    pub async fn deliveries(
        &self,
        filter: &DeliveryFilter,
    ) -> Result<Vec<DeliveryView>, StoreError> {
        let range = match filter.event_id {
            Some(event_id) => self.delivery_ids_of(event_id).await?,
            None => None,
        };
        let mut transaction = self.pool.begin().answered().await?;
        // What is not filtered by has no part in the plan, so each call needs one of its own.
        sqlx::query("SET LOCAL plan_cache_mode = force_custom_plan")
            .execute(&mut *transaction)
            .answered()
            .await?;
        let deliveries = sqlx::query_as(
            "/* kurier.deliveries */
            SELECT id, event_id, endpoint_id, status, reason, attempt_count, max_attempts, next_attempt_at, held_since,
                delivered_at, dead_lettered_at, last_error, last_status_code, last_response_ms, created_at
            FROM kurier.deliveries
            WHERE ($1::uuid IS NULL OR endpoint_id = $1)
                AND ($2::uuid IS NULL OR event_id = $2)
                AND ($6::uuid IS NULL OR id BETWEEN $6 AND $7)
                AND ($3::text IS NULL OR status = $3)
                AND ($4::uuid IS NULL OR id < $4)
            ORDER BY id DESC
            LIMIT $5",
        )
        .bind(filter.endpoint_id)
        .bind(filter.event_id)
        .bind(filter.status)
        .bind(filter.before)
        .bind(i64::from(filter.limit))
        .bind(range.map(|(first, _)| first))
        .bind(range.map(|(_, last)| last))
        .fetch_all(&mut *transaction)
        .answered()
        .await?;
        transaction.commit().answered().await?;
        Ok(deliveries)
    }

    /// The range of ids that an event's deliveries can have, since they begin with its time. `None`
    /// when the event is no longer stored.
    async fn delivery_ids_of(&self, event_id: Uuid) -> Result<Option<(Uuid, Uuid)>, StoreError> {
        Ok(sqlx::query_as(
            "/* kurier.delivery_ids_of */
            SELECT kurier.first_id_at(created_at), kurier.first_id_at(created_at + interval '1 millisecond')
            FROM kurier.outbox_events WHERE id = $1",
        )
        .bind(event_id)
        .fetch_optional(&self.pool)
        .answered()
        .await?)
    }

    /// One delivery.
    pub async fn delivery(&self, id: Uuid) -> Result<Option<DeliveryView>, StoreError> {
        Ok(sqlx::query_as(
            "/* kurier.delivery */
            SELECT id, event_id, endpoint_id, status, reason, attempt_count, max_attempts, next_attempt_at, held_since,
                delivered_at, dead_lettered_at, last_error, last_status_code, last_response_ms, created_at
            FROM kurier.deliveries WHERE id = $1",
        )
        .bind(id)
        .fetch_optional(&self.pool)
        .answered()
        .await?)
    }

    /// The attempts of one delivery, first to last.
    pub async fn attempts(&self, delivery_id: Uuid) -> Result<Vec<AttemptView>, StoreError> {
        Ok(sqlx::query_as(
            "/* kurier.attempts */
            SELECT attempt_number, started_at, duration_ms, status_code, error_class, error, response_body
            FROM kurier.delivery_attempts WHERE delivery_id = $1 ORDER BY attempt_number",
        )
        .bind(delivery_id)
        .fetch_all(&self.pool)
        .answered()
        .await?)
    }

    /// How many deliveries are in each status; finished ones are not counted.
    pub async fn open_deliveries(&self) -> Result<Vec<(String, i64)>, StoreError> {
        Ok(sqlx::query_as(
            "/* kurier.open_deliveries */
            SELECT status, count(*) FROM (
                SELECT status FROM kurier.deliveries WHERE hint_at IS NOT NULL
                UNION ALL
                SELECT status FROM kurier.deliveries WHERE held_since IS NOT NULL
                UNION ALL
                SELECT status FROM kurier.deliveries WHERE dead_lettered_at IS NOT NULL
            ) AS open GROUP BY status ORDER BY status",
        )
        .fetch_all(&self.pool)
        .answered()
        .await?)
    }
}
