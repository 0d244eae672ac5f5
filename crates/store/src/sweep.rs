//! The sweep: deliveries that should be moving and are not.

use std::time::Duration;

use crate::{
    LostHint, Store, StoreError, answered::Answered as _, hints::HintRow, units::milliseconds,
};

/// What counts as lost.
#[derive(Debug, Clone, Copy)]
pub struct SweepTerms {
    /// How long past its time a message may be before it counts as lost.
    pub grace: Duration,
    /// Whether deliveries that merely wait in line count too. Not while the queue is long: a
    /// backlog is no reason to publish again.
    pub queue_is_short: bool,
    /// Deliveries at the most.
    pub most: u32,
}

/// How many of the oldest are looked at for each one that may be taken: more than can be in flight
/// at once, so those being worked on never hide what is lost.
const LOOK_AT_MIN: i64 = 20_000;

impl Store {
    /// Takes deliveries whose lease has run out, and those whose message is overdue, and marks them
    /// as published now. The caller publishes; should it crash before, the next sweep finds them.
    /// The predicate is checked again in the update: whoever moved on in the meantime is left alone.
    pub async fn sweep(&self, terms: &SweepTerms) -> Result<Vec<LostHint>, StoreError> {
        let rows: Vec<HintRow> = sqlx::query_as(
            "/* kurier.sweep */
            WITH oldest AS MATERIALIZED (
                SELECT id, status, hint_at, lease_until
                FROM kurier.deliveries
                WHERE hint_at IS NOT NULL AND hint_at < now()
                ORDER BY hint_at
                LIMIT $4
            ), lost AS MATERIALIZED (
                SELECT id, status FROM oldest
                WHERE (status = 'in_flight' AND lease_until < now())
                    OR (status <> 'in_flight' AND $2 AND hint_at < now() - $1 * interval '1 millisecond')
                ORDER BY hint_at
                LIMIT $3
            )
            UPDATE kurier.deliveries AS d
            SET status = CASE WHEN d.attempt_count = 0 THEN 'pending' ELSE 'failed' END,
                hint_at = greatest(now(), d.next_attempt_at),
                lease_token = NULL,
                lease_until = NULL
            FROM lost
            WHERE d.id = lost.id
                AND (
                    (d.status = 'in_flight' AND d.lease_until < now())
                    OR (
                        d.status IN ('pending', 'failed') AND $2
                        AND d.hint_at < now() - $1 * interval '1 millisecond'
                    )
                )
            RETURNING d.id, d.traceparent,
                greatest(0, ceil(extract(epoch FROM d.next_attempt_at - now()) * 1000))::bigint AS delay_ms,
                lost.status = 'in_flight' AS lease_expired",
        )
        .bind(milliseconds(terms.grace))
        .bind(terms.queue_is_short)
        .bind(i64::from(terms.most))
        .bind(LOOK_AT_MIN.max(i64::from(terms.most)))
        .fetch_all(&self.pool)
        .answered()
        .await?;
        Ok(rows.into_iter().map(LostHint::from).collect())
    }

    /// Turns held deliveries that have waited longer than `wait_max` into dead letters. Returns how many.
    pub async fn expire_held(&self, wait_max: Duration, most: u32) -> Result<u64, StoreError> {
        let done = sqlx::query(
            "/* kurier.expire_held */
            WITH expired AS MATERIALIZED (
                SELECT id FROM kurier.deliveries
                WHERE held_since IS NOT NULL AND waiting_since < now() - $1 * interval '1 millisecond'
                LIMIT $2
            )
            UPDATE kurier.deliveries AS d
            SET status = 'dead_letter', reason = 'wait_expired', held_since = NULL, dead_lettered_at = now(),
                last_error = coalesce(d.last_error, 'waited too long: ' || d.reason)
            FROM expired
            WHERE d.id = expired.id AND d.status = 'held'",
        )
        .bind(milliseconds(wait_max))
        .bind(i64::from(most))
        .execute(&self.pool)
        .answered()
        .await?;
        Ok(done.rows_affected())
    }
}
