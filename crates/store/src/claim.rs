//! Claiming: the only way to come to act on a delivery.

use std::time::Duration;

use bytes::Bytes;
use chrono::{DateTime, Utc};
use domain::{breaker::Breaker, delivery::HoldReason, gate::GateFacts};
use uuid::Uuid;

use crate::{
    Store, StoreError,
    answered::Answered as _,
    health::{BreakerRow, closed_breaker},
    units::{bounds, count, duration, milliseconds},
};

/// Under what terms deliveries are claimed.
#[derive(Debug, Clone, Copy)]
pub struct LeaseTerms {
    /// Names this claim; every later write is guarded by it.
    pub token: Uuid,
    /// Attempt limit of endpoints that have none of their own.
    pub attempt_timeout: Duration,
    /// How much longer than the attempt limit the lease lasts.
    pub margin: Duration,
}

/// What to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Payload {
    /// For the `Content-Type` header.
    pub content_type: String,
    /// The very bytes the application wrote.
    pub body: Bytes,
}

/// A delivery that this process may now act on, until its lease ends.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// The delivery.
    pub id: Uuid,
    /// Its event.
    pub event_id: Uuid,
    /// Where it goes.
    pub endpoint_id: Uuid,
    /// Guards every later write.
    pub lease_token: Uuid,
    /// Version of the endpoint's configuration; `None` when the endpoint is gone.
    pub endpoint_version: Option<i64>,
    /// What the gate goes by.
    pub gate: GateFacts,
    /// Attempts used up so far.
    pub attempt_count: u32,
    /// Attempts it may use up.
    pub max_attempts: u32,
    /// The trace its attempts belong to.
    pub traceparent: Option<String>,
    /// The event's type.
    pub event_type: Option<String>,
    /// `None` when the event is no longer stored.
    pub payload: Option<Payload>,
    /// Time since the event was written, by the database's clock.
    pub age: Duration,
    /// The database's time of the claim.
    pub now: DateTime<Utc>,
}

/// The claimed part of what was asked for. The rest is leased by somebody, finished, held or not due.
pub type Claim = Vec<Claimed>;

#[derive(sqlx::FromRow)]
struct Row {
    id: Uuid,
    event_id: Uuid,
    #[sqlx(flatten)]
    breaker: ClaimedBreaker,
    endpoint_version: Option<i64>,
    paused: bool,
    disabled: bool,
    attempt_count: i32,
    max_attempts: i32,
    traceparent: Option<String>,
    event_type: Option<String>,
    content_type: Option<String>,
    body: Option<Vec<u8>>,
    age_ms: i64,
    now: DateTime<Utc>,
}

#[derive(sqlx::FromRow)]
struct ClaimedBreaker {
    endpoint_id: Uuid,
    state: Option<String>,
    consecutive_failures: Option<i32>,
    opened_at: Option<DateTime<Utc>>,
    cooldown_seconds: Option<f64>,
    probe_deadline: Option<DateTime<Utc>>,
    recovered_at: Option<DateTime<Utc>>,
}

impl Store {
    /// Claims those of `ids` that are due and free, and reads all that an attempt needs: one
    /// statement. Rows are locked in the order of their ids, so claims never deadlock. A claim whose
    /// answer was lost can be repeated under the same token.
    pub async fn claim(&self, ids: &[Uuid], terms: &LeaseTerms) -> Result<Claim, StoreError> {
        let Some((first, last)) = bounds(ids) else {
            return Ok(Vec::new());
        };
        let rows: Vec<Row> = sqlx::query_as(
            "/* kurier.claim */
            WITH due AS MATERIALIZED (
                SELECT d.id, e.version, e.attempt_timeout_ms,
                    coalesce(e.paused_at IS NOT NULL, false) AS paused,
                    coalesce(e.disabled_at IS NOT NULL, false) AS disabled,
                    h.state, h.consecutive_failures, h.opened_at, h.cooldown_seconds, h.probe_deadline, h.recovered_at,
                    o.event_type, o.content_type, o.payload, o.payload_bytes
                FROM kurier.deliveries AS d
                LEFT JOIN kurier.endpoints AS e ON e.id = d.endpoint_id
                LEFT JOIN kurier.endpoint_health AS h ON h.endpoint_id = d.endpoint_id
                LEFT JOIN kurier.outbox_events AS o ON o.id = d.event_id
                WHERE d.id = ANY ($1) AND d.id BETWEEN $2 AND $3
                    AND (
                        (d.status IN ('pending', 'failed') AND d.next_attempt_at <= now())
                        OR (d.status = 'in_flight' AND (d.lease_until < now() OR d.lease_token = $4))
                    )
                ORDER BY d.id
                FOR NO KEY UPDATE OF d
            )
            UPDATE kurier.deliveries AS d
            SET status = 'in_flight',
                lease_token = $4,
                lease_until = now() + (coalesce(due.attempt_timeout_ms, $5) + $6) * interval '1 millisecond'
            FROM due
            WHERE d.id = due.id AND d.id >= ALL (ARRAY[$2]) AND d.id <= ALL (ARRAY[$3])
            RETURNING d.id, d.event_id, d.endpoint_id, d.attempt_count, d.max_attempts, d.traceparent,
                due.version AS endpoint_version, due.paused, due.disabled,
                due.state, due.consecutive_failures, due.opened_at, due.cooldown_seconds, due.probe_deadline,
                due.recovered_at, due.event_type, due.content_type,
                coalesce(due.payload_bytes, convert_to(due.payload::text, 'UTF8')) AS body,
                (extract(epoch FROM now() - d.created_at) * 1000)::bigint AS age_ms,
                now() AS now",
        )
        .bind(ids)
        .bind(first)
        .bind(last)
        .bind(terms.token)
        .bind(milliseconds(terms.attempt_timeout))
        .bind(milliseconds(terms.margin))
        .fetch_all(&self.pool)
        .answered()
        .await?;
        rows.into_iter()
            .map(|row| row.into_claimed(terms.token))
            .collect()
    }

    /// Puts claimed deliveries into waiting, because their endpoint's gate is closed. Charges nothing.
    pub async fn hold(&self, token: Uuid, held: &[(Uuid, HoldReason)]) -> Result<u64, StoreError> {
        let ids: Vec<Uuid> = held.iter().map(|(id, _)| *id).collect();
        let reasons: Vec<&str> = held.iter().map(|(_, reason)| reason.as_str()).collect();
        let Some((first, last)) = bounds(&ids) else {
            return Ok(0);
        };
        let done = sqlx::query(
            "/* kurier.hold */
            UPDATE kurier.deliveries AS d
            SET status = 'held', reason = h.reason, held_since = now(), hint_at = NULL,
                lease_token = NULL, lease_until = NULL
            FROM unnest($1::uuid[], $2::text[]) AS h (id, reason)
            WHERE d.id = h.id AND d.id >= ALL (ARRAY[$3]) AND d.id <= ALL (ARRAY[$4])
                AND d.lease_token = $5 AND d.status = 'in_flight'",
        )
        .bind(&ids)
        .bind(reasons)
        .bind(first)
        .bind(last)
        .bind(token)
        .execute(&self.pool)
        .answered()
        .await?;
        Ok(done.rows_affected())
    }
}

impl Row {
    fn into_claimed(self, lease_token: Uuid) -> Result<Claimed, StoreError> {
        let endpoint_id = self.breaker.endpoint_id;
        let gate = GateFacts {
            disabled: self.disabled,
            paused: self.paused,
            breaker: self.breaker.into_breaker()?,
        };
        let payload = self
            .body
            .zip(self.content_type)
            .map(|(body, content_type)| Payload {
                content_type,
                body: body.into(),
            });
        Ok(Claimed {
            id: self.id,
            event_id: self.event_id,
            endpoint_id,
            lease_token,
            endpoint_version: self.endpoint_version,
            gate,
            attempt_count: count(self.attempt_count),
            max_attempts: count(self.max_attempts),
            traceparent: self.traceparent,
            event_type: self.event_type,
            payload,
            age: duration(self.age_ms),
            now: self.now,
        })
    }
}

impl ClaimedBreaker {
    /// An endpoint without a health row has never had any trouble.
    fn into_breaker(self) -> Result<Breaker, StoreError> {
        let Some(state) = self.state else {
            return Ok(closed_breaker());
        };
        BreakerRow {
            endpoint_id: self.endpoint_id,
            state,
            consecutive_failures: self.consecutive_failures.unwrap_or(0),
            opened_at: self.opened_at,
            cooldown_seconds: self.cooldown_seconds.unwrap_or(0.0),
            probe_deadline: self.probe_deadline,
            recovered_at: self.recovered_at,
        }
        .into_breaker()
    }
}
