//! From an event to its deliveries.

use chrono::{DateTime, Utc};
use domain::delivery::HoldReason;
use uuid::Uuid;

use crate::{Store, StoreError, answered::Answered as _, units::integer};

/// A delivery to be written: one pair of event and endpoint.
#[derive(Debug, Clone)]
pub struct NewDelivery {
    /// Computed from event and endpoint, so that a repeated turn finds its row.
    pub id: Uuid,
    /// The event.
    pub event_id: Uuid,
    /// The endpoint.
    pub endpoint_id: Uuid,
    /// Born waiting, because the endpoint's gate is closed.
    pub held: Option<HoldReason>,
    /// Attempts it may use up.
    pub max_attempts: u32,
    /// The trace its attempts belong to.
    pub traceparent: Option<String>,
    /// The event's own time.
    pub created_at: DateTime<Utc>,
}

impl Store {
    /// Writes the deliveries of a batch of events and commits. Those already written stay as they are.
    pub async fn insert_deliveries(&self, deliveries: &[NewDelivery]) -> Result<(), StoreError> {
        let column =
            |pick: fn(&NewDelivery) -> Uuid| deliveries.iter().map(pick).collect::<Vec<_>>();
        let reasons: Vec<Option<&str>> = deliveries
            .iter()
            .map(|delivery| delivery.held.map(HoldReason::as_str))
            .collect();
        let max_attempts: Vec<i32> = deliveries
            .iter()
            .map(|delivery| integer(delivery.max_attempts))
            .collect();
        let traceparents: Vec<Option<&str>> = deliveries
            .iter()
            .map(|delivery| delivery.traceparent.as_deref())
            .collect();
        let created_at: Vec<DateTime<Utc>> = deliveries
            .iter()
            .map(|delivery| delivery.created_at)
            .collect();
        sqlx::query(
            "/* kurier.insert_deliveries */
            INSERT INTO kurier.deliveries (
                id, event_id, endpoint_id, status, reason, max_attempts, next_attempt_at, hint_at, held_since,
                traceparent, created_at
            )
            SELECT n.id, n.event_id, n.endpoint_id,
                CASE WHEN n.reason IS NULL THEN 'pending' ELSE 'held' END,
                n.reason, n.max_attempts, now(),
                CASE WHEN n.reason IS NULL THEN now() END,
                CASE WHEN n.reason IS NOT NULL THEN now() END,
                n.traceparent, n.created_at
            FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::integer[], $6::text[], $7::timestamptz[])
                AS n (id, event_id, endpoint_id, reason, max_attempts, traceparent, created_at)
            ON CONFLICT (id) DO NOTHING",
        )
        .bind(column(|delivery| delivery.id))
        .bind(column(|delivery| delivery.event_id))
        .bind(column(|delivery| delivery.endpoint_id))
        .bind(reasons)
        .bind(max_attempts)
        .bind(traceparents)
        .bind(created_at)
        .execute(&self.pool)
        .answered()
        .await?;
        Ok(())
    }
}
