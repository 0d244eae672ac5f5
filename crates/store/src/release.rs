//! Release: letting held deliveries out again, the other half of the gate.

use chrono::{DateTime, Utc};
use domain::gate::GateFacts;
use uuid::Uuid;

use crate::{
    LostHint, Store, StoreError, answered::Answered as _, health::BreakerRow, hints::HintRow,
    units::integer,
};

/// An endpoint that has held deliveries, with what its gate goes by.
#[derive(Debug, Clone)]
pub struct HeldEndpoint {
    /// The endpoint.
    pub endpoint_id: Uuid,
    /// What the gate goes by.
    pub gate: GateFacts,
    /// The database's time of this reading.
    pub now: DateTime<Utc>,
}

#[derive(sqlx::FromRow)]
struct Row {
    #[sqlx(flatten)]
    breaker: BreakerRow,
    paused: bool,
    disabled: bool,
    now: DateTime<Utc>,
}

impl Store {
    /// The endpoints that have held deliveries: one index probe for each of them, however many they hold.
    pub async fn endpoints_with_held(&self) -> Result<Vec<HeldEndpoint>, StoreError> {
        let rows: Vec<Row> = sqlx::query_as(
            "/* kurier.endpoints_with_held */
            WITH RECURSIVE held AS (
                (
                    SELECT endpoint_id FROM kurier.deliveries
                    WHERE held_since IS NOT NULL ORDER BY endpoint_id LIMIT 1
                )
                UNION ALL
                SELECT (
                    SELECT d.endpoint_id FROM kurier.deliveries AS d
                    WHERE d.held_since IS NOT NULL AND d.endpoint_id > h.endpoint_id
                    ORDER BY d.endpoint_id LIMIT 1
                )
                FROM held AS h WHERE h.endpoint_id IS NOT NULL
            )
            SELECT e.id AS endpoint_id, e.paused_at IS NOT NULL AS paused, e.disabled_at IS NOT NULL AS disabled,
                h.state, h.consecutive_failures, h.opened_at, h.cooldown_seconds, h.probe_deadline, h.recovered_at,
                now() AS now
            FROM held
            INNER JOIN kurier.endpoints AS e ON e.id = held.endpoint_id
            INNER JOIN kurier.endpoint_health AS h ON h.endpoint_id = e.id",
        )
        .fetch_all(&self.pool)
        .answered()
        .await?;
        rows.into_iter().map(Row::into_held).collect()
    }

    /// Lets out held deliveries, for each endpoint as many as it has room for, oldest due first.
    /// The caller publishes; should it crash before, the sweep finds them.
    pub async fn release(&self, rooms: &[(Uuid, u32)]) -> Result<Vec<LostHint>, StoreError> {
        let endpoint_ids: Vec<Uuid> = rooms.iter().map(|(id, _)| *id).collect();
        if rooms.is_empty() {
            return Ok(Vec::new());
        }
        let counts: Vec<i32> = rooms.iter().map(|(_, room)| integer(*room)).collect();
        let rows: Vec<HintRow> = sqlx::query_as(
            "/* kurier.release */
            WITH let_out AS MATERIALIZED (
                SELECT d.id
                FROM unnest($1::uuid[], $2::integer[]) AS r (endpoint_id, room)
                CROSS JOIN LATERAL (
                    SELECT h.id FROM kurier.deliveries AS h
                    WHERE h.endpoint_id = r.endpoint_id AND h.held_since IS NOT NULL
                    ORDER BY h.next_attempt_at, h.id
                    LIMIT r.room
                ) AS d
            )
            UPDATE kurier.deliveries AS d
            SET status = CASE WHEN d.attempt_count = 0 THEN 'pending' ELSE 'failed' END,
                reason = NULL,
                held_since = NULL,
                hint_at = greatest(now(), d.next_attempt_at)
            FROM let_out
            WHERE d.id = let_out.id AND d.status = 'held'
            RETURNING d.id, d.traceparent,
                greatest(0, ceil(extract(epoch FROM d.next_attempt_at - now()) * 1000))::bigint AS delay_ms,
                false AS lease_expired",
        )
        .bind(endpoint_ids)
        .bind(counts)
        .fetch_all(&self.pool)
        .answered()
        .await?;
        Ok(rows.into_iter().map(LostHint::from).collect())
    }
}

impl Row {
    fn into_held(self) -> Result<HeldEndpoint, StoreError> {
        Ok(HeldEndpoint {
            endpoint_id: self.breaker.endpoint_id,
            gate: GateFacts {
                disabled: self.disabled,
                paused: self.paused,
                breaker: self.breaker.into_breaker()?,
            },
            now: self.now,
        })
    }
}
