//! What the database has on record: deliveries and attempts as operators find them.

use chrono::{DateTime, Utc};
use sqlx::{FromRow, PgPool};
use uuid::Uuid;

/// A row of `kurier.deliveries`.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
#[expect(missing_docs, reason = "the columns' names")]
pub struct DeliveryRow {
    pub id: Uuid,
    pub event_id: Uuid,
    pub status: String,
    pub reason: Option<String>,
    pub attempt_count: i32,
    pub next_attempt_at: DateTime<Utc>,
    pub last_error: Option<String>,
    pub last_status_code: Option<i32>,
}

/// A row of `kurier.delivery_attempts`.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
#[expect(missing_docs, reason = "the columns' names")]
pub struct AttemptRow {
    pub delivery_id: Uuid,
    pub attempt_number: i32,
    pub started_at: DateTime<Utc>,
    pub duration_ms: i32,
    pub status_code: Option<i32>,
    pub error_class: Option<String>,
    pub error: Option<String>,
    pub response_body: Option<String>,
}

pub(crate) async fn deliveries(pool: &PgPool, endpoint_id: Uuid) -> Vec<DeliveryRow> {
    sqlx::query_as(
        "SELECT id, event_id, status, reason, attempt_count, next_attempt_at, last_error, last_status_code
        FROM kurier.deliveries WHERE endpoint_id = $1 ORDER BY id",
    )
    .bind(endpoint_id)
    .fetch_all(pool)
    .await
    .expect("the deliveries can be read")
}

pub(crate) async fn attempts(pool: &PgPool, endpoint_id: Uuid) -> Vec<AttemptRow> {
    sqlx::query_as(
        "SELECT delivery_id, attempt_number, started_at, duration_ms, status_code, error_class, error, response_body
        FROM kurier.delivery_attempts WHERE endpoint_id = $1 ORDER BY delivery_id, attempt_number",
    )
    .bind(endpoint_id)
    .fetch_all(pool)
    .await
    .expect("the attempts can be read")
}
