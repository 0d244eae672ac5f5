//! Endpoints: registering them, reading them, pausing them, and their configuration for attempts.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;
use uuid::Uuid;

use crate::{
    Store, StoreError,
    answered::Answered as _,
    units::{count, duration, integer, milliseconds},
};

/// An endpoint to be registered. What is `None` follows the installation's default.
#[derive(Debug, Clone, Default)]
pub struct NewEndpoint {
    /// Whose events it gets.
    pub tenant: String,
    /// Where deliveries go; already checked.
    pub url: String,
    /// For people.
    pub description: String,
    /// Patterns; none means every event type.
    pub event_types: Vec<String>,
    /// Limit of one attempt.
    pub attempt_timeout: Option<Duration>,
    /// Attempts before a delivery is given up.
    pub max_attempts: Option<u32>,
    /// Base of the exponential backoff.
    pub retry_base: Option<Duration>,
    /// Cap of the exponential backoff.
    pub retry_cap: Option<Duration>,
    /// A fixed schedule instead of the backoff.
    pub retry_schedule: Option<Vec<Duration>>,
    /// Statuses to retry although they are permanent by default.
    pub retry_statuses: String,
    /// Statuses to reject although they are retried by default.
    pub reject_statuses: String,
    /// Consecutive failures that open the breaker.
    pub breaker_threshold: Option<u32>,
    /// The signing secret, `whsec_...` or `whsk_...`.
    pub secret: String,
}

/// An endpoint as operators see it; the fields are the columns' names.
#[derive(Debug, Clone, Serialize, sqlx::FromRow)]
#[expect(
    missing_docs,
    reason = "the columns of kurier.endpoints and kurier.endpoint_health"
)]
pub struct Endpoint {
    pub id: Uuid,
    pub tenant: String,
    pub url: String,
    pub description: String,
    pub event_types: Vec<String>,
    pub paused_at: Option<DateTime<Utc>>,
    pub disabled_at: Option<DateTime<Utc>>,
    pub disabled_reason: Option<String>,
    pub attempt_timeout_ms: Option<i64>,
    pub max_attempts: Option<i32>,
    pub retry_base_ms: Option<i64>,
    pub retry_cap_ms: Option<i64>,
    pub retry_schedule_ms: Option<Vec<i64>>,
    pub retry_statuses: String,
    pub reject_statuses: String,
    pub state: String,
    pub consecutive_failures: i32,
    pub failure_threshold: i32,
    pub opened_at: Option<DateTime<Utc>>,
    pub cooldown_seconds: f64,
    pub last_failure_at: Option<DateTime<Utc>>,
    pub last_success_at: Option<DateTime<Utc>>,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

/// A signing secret in its text form. Its `Debug` form shows nothing.
#[derive(Clone)]
pub struct EndpointSecret(pub String);

impl std::fmt::Debug for EndpointSecret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("EndpointSecret(..)")
    }
}

/// What an attempt needs to know of its endpoint, as stored.
#[derive(Debug, Clone)]
pub struct EndpointConfig {
    /// The endpoint.
    pub id: Uuid,
    /// Moves with every change to the endpoint or its secrets.
    pub version: i64,
    /// Where to.
    pub url: String,
    /// Limit of one attempt.
    pub attempt_timeout: Option<Duration>,
    /// Base of the exponential backoff.
    pub retry_base: Option<Duration>,
    /// Cap of the exponential backoff.
    pub retry_cap: Option<Duration>,
    /// A fixed schedule instead of the backoff.
    pub retry_schedule: Option<Vec<Duration>>,
    /// Statuses to retry.
    pub retry_statuses: String,
    /// Statuses to reject.
    pub reject_statuses: String,
    /// Consecutive failures that open the breaker.
    pub breaker_threshold: Option<u32>,
    /// First cooldown of the breaker.
    pub breaker_cooldown: Option<Duration>,
    /// Longest cooldown of the breaker.
    pub breaker_cooldown_cap: Option<Duration>,
    /// The secrets valid now, newest first.
    pub secrets: Vec<EndpointSecret>,
}

#[derive(sqlx::FromRow)]
struct ConfigRow {
    id: Uuid,
    version: i64,
    url: String,
    attempt_timeout_ms: Option<i64>,
    retry_base_ms: Option<i64>,
    retry_cap_ms: Option<i64>,
    retry_schedule_ms: Option<Vec<i64>>,
    retry_statuses: String,
    reject_statuses: String,
    breaker_threshold: Option<i32>,
    breaker_cooldown_ms: Option<i64>,
    breaker_cooldown_cap_ms: Option<i64>,
    secrets: Vec<String>,
}

impl Store {
    /// Registers an endpoint with its first secret. Returns its id.
    pub async fn add_endpoint(&self, endpoint: &NewEndpoint) -> Result<Uuid, StoreError> {
        let schedule: Option<Vec<i64>> = endpoint
            .retry_schedule
            .as_ref()
            .map(|waits| waits.iter().copied().map(milliseconds).collect());
        Ok(sqlx::query_scalar(
            "/* kurier.add_endpoint */
            WITH added AS (
                INSERT INTO kurier.endpoints (
                    tenant, url, description, event_types, attempt_timeout_ms, max_attempts, retry_base_ms,
                    retry_cap_ms, retry_schedule_ms, retry_statuses, reject_statuses, breaker_threshold
                )
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
                RETURNING id
            )
            INSERT INTO kurier.endpoint_secrets (endpoint_id, secret) SELECT id, $13 FROM added
            RETURNING endpoint_id",
        )
        .bind(&endpoint.tenant)
        .bind(&endpoint.url)
        .bind(&endpoint.description)
        .bind(&endpoint.event_types)
        .bind(endpoint.attempt_timeout.map(milliseconds))
        .bind(endpoint.max_attempts.map(integer))
        .bind(endpoint.retry_base.map(milliseconds))
        .bind(endpoint.retry_cap.map(milliseconds))
        .bind(schedule)
        .bind(&endpoint.retry_statuses)
        .bind(&endpoint.reject_statuses)
        .bind(endpoint.breaker_threshold.map(integer))
        .bind(&endpoint.secret)
        .fetch_one(&self.pool)
        .answered()
        .await?)
    }

    /// One endpoint, or all of them when `id` is `None`; oldest first.
    pub async fn endpoints(&self, id: Option<Uuid>) -> Result<Vec<Endpoint>, StoreError> {
        Ok(sqlx::query_as(
            "/* kurier.endpoints */
            SELECT e.id, e.tenant, e.url, e.description, e.event_types, e.paused_at, e.disabled_at, e.disabled_reason,
                e.attempt_timeout_ms, e.max_attempts, e.retry_base_ms, e.retry_cap_ms, e.retry_schedule_ms,
                e.retry_statuses, e.reject_statuses,
                h.state, h.consecutive_failures, h.failure_threshold, h.opened_at, h.cooldown_seconds,
                h.last_failure_at, h.last_success_at, e.created_at, e.updated_at
            FROM kurier.endpoints AS e
            INNER JOIN kurier.endpoint_health AS h ON h.endpoint_id = e.id
            WHERE $1::uuid IS NULL OR e.id = $1
            ORDER BY e.created_at, e.id",
        )
        .bind(id)
        .fetch_all(&self.pool)
        .answered()
        .await?)
    }

    /// Stops deliveries to an endpoint; they wait. Returns whether there is such an endpoint.
    pub async fn pause_endpoint(&self, id: Uuid) -> Result<bool, StoreError> {
        let done = sqlx::query(
            "/* kurier.pause_endpoint */
            UPDATE kurier.endpoints SET paused_at = coalesce(paused_at, now()) WHERE id = $1",
        )
        .bind(id)
        .execute(&self.pool)
        .answered()
        .await?;
        Ok(done.rows_affected() == 1)
    }

    /// Lets deliveries to an endpoint flow again, whether it was paused or disabled.
    pub async fn resume_endpoint(&self, id: Uuid) -> Result<bool, StoreError> {
        let done = sqlx::query(
            "/* kurier.resume_endpoint */
            UPDATE kurier.endpoints SET paused_at = NULL, disabled_at = NULL, disabled_reason = NULL WHERE id = $1",
        )
        .bind(id)
        .execute(&self.pool)
        .answered()
        .await?;
        Ok(done.rows_affected() == 1)
    }

    /// The configuration of these endpoints, with the secrets valid now.
    pub async fn endpoint_configs(&self, ids: &[Uuid]) -> Result<Vec<EndpointConfig>, StoreError> {
        let rows: Vec<ConfigRow> = sqlx::query_as(
            "/* kurier.endpoint_configs */
            SELECT e.id, e.version, e.url, e.attempt_timeout_ms, e.retry_base_ms, e.retry_cap_ms, e.retry_schedule_ms,
                e.retry_statuses, e.reject_statuses, e.breaker_threshold, e.breaker_cooldown_ms,
                e.breaker_cooldown_cap_ms,
                array(
                    SELECT s.secret FROM kurier.endpoint_secrets AS s
                    WHERE s.endpoint_id = e.id AND (s.expires_at IS NULL OR s.expires_at > now())
                    ORDER BY s.created_at DESC, s.id DESC
                ) AS secrets
            FROM kurier.endpoints AS e
            WHERE e.id = ANY ($1)",
        )
        .bind(ids)
        .fetch_all(&self.pool)
        .answered()
        .await?;
        Ok(rows.into_iter().map(ConfigRow::into_config).collect())
    }
}

impl ConfigRow {
    fn into_config(self) -> EndpointConfig {
        EndpointConfig {
            id: self.id,
            version: self.version,
            url: self.url,
            attempt_timeout: self.attempt_timeout_ms.map(duration),
            retry_base: self.retry_base_ms.map(duration),
            retry_cap: self.retry_cap_ms.map(duration),
            retry_schedule: self
                .retry_schedule_ms
                .map(|waits| waits.into_iter().map(duration).collect()),
            retry_statuses: self.retry_statuses,
            reject_statuses: self.reject_statuses,
            breaker_threshold: self.breaker_threshold.map(count),
            breaker_cooldown: self.breaker_cooldown_ms.map(duration),
            breaker_cooldown_cap: self.breaker_cooldown_cap_ms.map(duration),
            secrets: self.secrets.into_iter().map(EndpointSecret).collect(),
        }
    }
}
