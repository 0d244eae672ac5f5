//! Settling: attempt, status, next due time and the endpoint's health in one transaction.

use std::collections::HashSet;

use sqlx::{Postgres, Transaction};
use uuid::Uuid;

use crate::{
    AttemptRecord, Health, HealthChange, Settled, Store, StoreError,
    answered::Answered as _,
    health::{lock_health, save_health},
    units::{bounds, integer, milliseconds},
};

/// An open transaction that has settled deliveries and may still move the endpoints' health.
/// Nothing counts before [`Settlement::commit`].
pub struct Settlement {
    transaction: Transaction<'static, Postgres>,
    /// The deliveries whose lease still held. The others belong to somebody else by now.
    pub settled: HashSet<Uuid>,
}

impl Store {
    /// Settles a batch: every delivery whose lease still holds gets its status and its attempt.
    pub async fn begin_settlement(&self, batch: &[Settled]) -> Result<Settlement, StoreError> {
        let mut transaction = self.pool.begin().answered().await?;
        let settled = settle(&mut transaction, batch).await?;
        Ok(Settlement {
            transaction,
            settled,
        })
    }

    /// Opens a transaction on the health of these endpoints, without any delivery.
    pub async fn begin_health(
        &self,
        endpoint_ids: &[Uuid],
    ) -> Result<(Settlement, Vec<Health>), StoreError> {
        let mut settlement = Settlement {
            transaction: self.pool.begin().answered().await?,
            settled: HashSet::new(),
        };
        let health = settlement.lock_health(endpoint_ids, &[]).await?;
        Ok((settlement, health))
    }
}

impl Settlement {
    /// Reads and locks the health these results can move: all of `moved`, and of `succeeded` those
    /// which are not simply healthy.
    pub async fn lock_health(
        &mut self,
        moved: &[Uuid],
        succeeded: &[Uuid],
    ) -> Result<Vec<Health>, StoreError> {
        lock_health(&mut self.transaction, moved, succeeded).await
    }

    /// Writes health back.
    pub async fn save_health(&mut self, changes: &[HealthChange]) -> Result<(), StoreError> {
        if changes.is_empty() {
            return Ok(());
        }
        save_health(&mut self.transaction, changes).await
    }

    /// Disables endpoints that asked for it; those already disabled keep their first reason.
    pub async fn disable_endpoints(
        &mut self,
        endpoint_ids: &[Uuid],
        reason: &str,
    ) -> Result<(), StoreError> {
        if endpoint_ids.is_empty() {
            return Ok(());
        }
        sqlx::query(
            "/* kurier.disable_endpoints */
            UPDATE kurier.endpoints SET disabled_at = now(), disabled_reason = $2
            WHERE id = ANY ($1) AND disabled_at IS NULL",
        )
        .bind(endpoint_ids)
        .bind(reason)
        .execute(&mut *self.transaction)
        .answered()
        .await?;
        Ok(())
    }

    /// Makes it all count.
    pub async fn commit(self) -> Result<(), StoreError> {
        self.transaction.commit().answered().await?;
        Ok(())
    }
}

/// Sorted by id, so that settlements lock in one order.
async fn settle(
    transaction: &mut Transaction<'static, Postgres>,
    batch: &[Settled],
) -> Result<HashSet<Uuid>, StoreError> {
    let mut sorted: Vec<&Settled> = batch.iter().collect();
    sorted.sort_unstable_by_key(|settled| settled.delivery_id);
    let ids = column(&sorted, |settled| settled.delivery_id);
    let Some((first, last)) = bounds(&ids) else {
        return Ok(HashSet::new());
    };
    let settled: Vec<Uuid> = sqlx::query_scalar(
        "/* kurier.settle */
        WITH given AS MATERIALIZED (
            SELECT * FROM unnest(
                $1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::bigint[], $7::bigint[],
                $8::integer[], $9::bigint[], $10::integer[], $11::integer[], $12::text[], $13::text[], $14::text[]
            ) AS g (
                id, endpoint_id, lease_token, status, reason, retry_after_ms, hint_after_ms,
                attempt_number, started_ago_ms, duration_ms, status_code, error_class, error, response_body
            )
        ), settled AS (
            UPDATE kurier.deliveries AS d
            SET status = g.status,
                reason = g.reason,
                lease_token = NULL,
                lease_until = NULL,
                attempt_count = coalesce(g.attempt_number, d.attempt_count),
                next_attempt_at = coalesce(now() + g.retry_after_ms * interval '1 millisecond', d.next_attempt_at),
                hint_at = now() + g.hint_after_ms * interval '1 millisecond',
                waiting_since = CASE WHEN g.status = 'failed' THEN now() ELSE d.waiting_since END,
                delivered_at = CASE WHEN g.status = 'delivered' THEN clock_timestamp() END,
                dead_lettered_at = CASE WHEN g.status = 'dead_letter' THEN clock_timestamp() END,
                last_error = g.error,
                last_status_code = g.status_code,
                last_response_ms = g.duration_ms
            FROM given AS g
            WHERE d.id = g.id AND d.id >= ALL (ARRAY[$15]) AND d.id <= ALL (ARRAY[$16])
                AND d.lease_token = g.lease_token AND d.status = 'in_flight'
            RETURNING d.id
        ), recorded AS (
            INSERT INTO kurier.delivery_attempts (
                delivery_id, attempt_number, endpoint_id, started_at, duration_ms, status_code, error_class, error,
                response_body
            )
            SELECT g.id, g.attempt_number, g.endpoint_id,
                clock_timestamp() - g.started_ago_ms * interval '1 millisecond',
                g.duration_ms, g.status_code, g.error_class, g.error, g.response_body
            FROM given AS g
            INNER JOIN settled AS s ON s.id = g.id
            WHERE g.attempt_number IS NOT NULL
        )
        SELECT id FROM settled",
    )
    .bind(&ids)
    .bind(column(&sorted, |settled| settled.endpoint_id))
    .bind(column(&sorted, |settled| settled.lease_token))
    .bind(column(&sorted, |settled| settled.status.as_str()))
    .bind(column(&sorted, |settled| settled.status.reason()))
    .bind(column(&sorted, |settled| settled.status.waits().map(|(retry, _)| milliseconds(retry))))
    .bind(column(&sorted, |settled| settled.status.waits().map(|(_, hint)| milliseconds(hint))))
    .bind(column(&sorted, |settled| attempt(settled).map(|attempt| integer(attempt.number))))
    .bind(column(&sorted, |settled| attempt(settled).map(|attempt| milliseconds(attempt.started_ago))))
    .bind(column(&sorted, |settled| attempt(settled).map(|attempt| whole_milliseconds(attempt.duration))))
    .bind(column(&sorted, |settled| attempt(settled).and_then(|attempt| attempt.status_code.map(i32::from))))
    .bind(column(&sorted, |settled| attempt(settled).and_then(|attempt| attempt.error_class)))
    .bind(column(&sorted, |settled| error_of(settled)))
    .bind(column(&sorted, |settled| attempt(settled).and_then(|attempt| attempt.response_body.as_deref())))
    .bind(first)
    .bind(last)
    .fetch_all(&mut **transaction)
    .answered()
    .await?;
    Ok(settled.into_iter().collect())
}

fn whole_milliseconds(duration: std::time::Duration) -> i32 {
    i32::try_from(duration.as_millis()).unwrap_or(i32::MAX)
}

fn attempt(settled: &Settled) -> Option<&AttemptRecord> {
    settled.attempt.as_ref()
}

fn error_of(settled: &Settled) -> Option<&str> {
    attempt(settled).map_or(settled.error.as_deref(), |attempt| attempt.error.as_deref())
}

fn column<'a, T>(batch: &[&'a Settled], pick: impl Fn(&'a Settled) -> T) -> Vec<T> {
    batch.iter().map(|settled| pick(settled)).collect()
}
