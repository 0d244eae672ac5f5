//! The relay's hold on the outbox: a batch of waiting rows, locked until it is marked.

use chrono::{DateTime, Utc};
use sqlx::{Postgres, Transaction};
use uuid::Uuid;

use crate::{Store, StoreError, answered::Answered as _};

/// An event that nobody has expanded yet. Its payload stays in the database.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct WaitingEvent {
    /// The event.
    pub id: Uuid,
    /// Whose event it is.
    pub tenant: String,
    /// Its type, matched against the endpoints' patterns.
    pub event_type: String,
    /// The trace it was written in, if its application gave one.
    pub traceparent: Option<String>,
    /// When its transaction began.
    pub created_at: DateTime<Utc>,
    /// Size of the body in bytes.
    pub payload_bytes: i64,
}

/// An event set aside because it can never be published, with the reason shown to operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parked {
    /// The event.
    pub id: Uuid,
    /// Why; never part of the payload.
    pub reason: String,
}

/// A batch of waiting events. Dropping it, or losing the process, unlocks them for another relay.
pub struct LockedEvents {
    transaction: Transaction<'static, Postgres>,
    /// The events, oldest first.
    pub events: Vec<WaitingEvent>,
}

impl Store {
    /// Locks up to `most` waiting events that no other relay holds.
    pub async fn lock_waiting_events(&self, most: u32) -> Result<LockedEvents, StoreError> {
        let mut transaction = self.pool.begin().answered().await?;
        let events = sqlx::query_as(
            "/* kurier.lock_waiting_events */
            SELECT id, tenant, event_type, traceparent, created_at,
                coalesce(octet_length(payload_bytes), octet_length(payload::text))::bigint AS payload_bytes
            FROM kurier.outbox_events
            WHERE processed_at IS NULL AND parked_at IS NULL
            ORDER BY created_at
            LIMIT $1
            FOR NO KEY UPDATE SKIP LOCKED",
        )
        .bind(i64::from(most))
        .fetch_all(&mut *transaction)
        .answered()
        .await?;
        Ok(LockedEvents {
            transaction,
            events,
        })
    }
}

impl LockedEvents {
    /// Marks what was published and parks what cannot be; everything else is left for the next turn.
    pub async fn finish(mut self, processed: &[Uuid], parked: &[Parked]) -> Result<(), StoreError> {
        if !processed.is_empty() {
            self.mark_processed(processed).await?;
        }
        if !parked.is_empty() {
            self.park(parked).await?;
        }
        self.transaction.commit().answered().await?;
        Ok(())
    }

    async fn mark_processed(&mut self, ids: &[Uuid]) -> Result<(), StoreError> {
        sqlx::query(
            "/* kurier.mark_processed */
            UPDATE kurier.outbox_events SET processed_at = clock_timestamp()
            WHERE id = ANY ($1) AND processed_at IS NULL",
        )
        .bind(ids)
        .execute(&mut *self.transaction)
        .answered()
        .await?;
        Ok(())
    }

    async fn park(&mut self, parked: &[Parked]) -> Result<(), StoreError> {
        let ids: Vec<Uuid> = parked.iter().map(|event| event.id).collect();
        let reasons: Vec<&str> = parked.iter().map(|event| event.reason.as_str()).collect();
        sqlx::query(
            "/* kurier.park */
            UPDATE kurier.outbox_events AS e
            SET parked_at = clock_timestamp(), parked_reason = p.reason
            FROM unnest($1::uuid[], $2::text[]) AS p (id, reason)
            WHERE e.id = p.id AND e.processed_at IS NULL",
        )
        .bind(ids)
        .bind(reasons)
        .execute(&mut *self.transaction)
        .answered()
        .await?;
        Ok(())
    }
}
