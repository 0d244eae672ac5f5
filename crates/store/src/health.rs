//! The endpoints' health rows, read under a lock, moved by the domain, written back.

use std::time::Duration;

use chrono::{DateTime, Utc};
use domain::breaker::{Breaker, BreakerState};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::{
    StoreError,
    answered::Answered as _,
    units::{count, integer, named},
};

/// One endpoint's health, locked by the transaction that read it.
#[derive(Debug, Clone)]
pub struct Health {
    /// The endpoint.
    pub endpoint_id: Uuid,
    /// Its breaker.
    pub breaker: Breaker,
    /// The lease under which the one probe is out.
    pub probe_token: Option<Uuid>,
    /// The database's time of this reading.
    pub now: DateTime<Utc>,
}

/// What an endpoint's health becomes.
#[derive(Debug, Clone)]
pub struct HealthChange {
    /// The endpoint.
    pub endpoint_id: Uuid,
    /// The breaker to store.
    pub breaker: Breaker,
    /// The lease of the one probe; given if and only if the breaker is half-open.
    pub probe_token: Option<Uuid>,
    /// The threshold the breaker was judged by, for operators to see.
    pub failure_threshold: u32,
    /// Something succeeded.
    pub succeeded: bool,
    /// Something failed.
    pub failed: bool,
}

/// The columns of a breaker.
#[derive(sqlx::FromRow)]
pub(crate) struct BreakerRow {
    pub(crate) endpoint_id: Uuid,
    pub(crate) state: String,
    pub(crate) consecutive_failures: i32,
    pub(crate) opened_at: Option<DateTime<Utc>>,
    pub(crate) cooldown_seconds: f64,
    pub(crate) probe_deadline: Option<DateTime<Utc>>,
    pub(crate) recovered_at: Option<DateTime<Utc>>,
}

impl BreakerRow {
    pub(crate) fn into_breaker(self) -> Result<Breaker, StoreError> {
        Ok(Breaker {
            state: named(&self.state)?,
            consecutive_failures: count(self.consecutive_failures),
            opened_at: self.opened_at,
            cooldown: Duration::try_from_secs_f64(self.cooldown_seconds).unwrap_or(Duration::MAX),
            probe_deadline: self.probe_deadline,
            recovered_at: self.recovered_at,
        })
    }
}

/// The breaker of an endpoint that has never had any trouble.
pub fn closed_breaker() -> Breaker {
    Breaker {
        state: BreakerState::Closed,
        consecutive_failures: 0,
        opened_at: None,
        cooldown: Duration::ZERO,
        probe_deadline: None,
        recovered_at: None,
    }
}

#[derive(sqlx::FromRow)]
struct HealthRow {
    #[sqlx(flatten)]
    breaker: BreakerRow,
    probe_token: Option<Uuid>,
    now: DateTime<Utc>,
}

/// Locks the health rows that these results can move, in the order of their ids: all of `moved`,
/// and of `succeeded` those which are not simply healthy and up to date.
pub(crate) async fn lock_health(
    connection: &mut PgConnection,
    moved: &[Uuid],
    succeeded: &[Uuid],
) -> Result<Vec<Health>, StoreError> {
    let rows: Vec<HealthRow> = sqlx::query_as(
        "/* kurier.lock_health */
        SELECT endpoint_id, state, consecutive_failures, opened_at, cooldown_seconds, probe_deadline, recovered_at,
            probe_token, clock_timestamp() AS now
        FROM kurier.endpoint_health
        WHERE endpoint_id = ANY ($1)
            OR (
                endpoint_id = ANY ($2)
                AND (
                    state <> 'closed'
                    OR consecutive_failures > 0
                    OR last_success_at IS NULL
                    OR last_success_at < now() - interval '1 second'
                )
            )
        ORDER BY endpoint_id
        FOR NO KEY UPDATE",
    )
    .bind(moved)
    .bind(succeeded)
    .fetch_all(connection)
    .answered()
    .await?;
    rows.into_iter()
        .map(|row| {
            Ok(Health {
                endpoint_id: row.breaker.endpoint_id,
                breaker: row.breaker.into_breaker()?,
                probe_token: row.probe_token,
                now: row.now,
            })
        })
        .collect()
}

/// Writes locked health rows back.
pub(crate) async fn save_health(
    connection: &mut PgConnection,
    changes: &[HealthChange],
) -> Result<(), StoreError> {
    sqlx::query(
        "/* kurier.save_health */
        UPDATE kurier.endpoint_health AS h
        SET state = c.state,
            consecutive_failures = c.consecutive_failures,
            failure_threshold = c.failure_threshold,
            opened_at = c.opened_at,
            cooldown_seconds = c.cooldown_seconds,
            probe_token = c.probe_token,
            probe_deadline = c.probe_deadline,
            recovered_at = c.recovered_at,
            last_success_at = CASE WHEN c.succeeded THEN clock_timestamp() ELSE h.last_success_at END,
            last_failure_at = CASE WHEN c.failed THEN clock_timestamp() ELSE h.last_failure_at END
        FROM unnest(
            $1::uuid[], $2::text[], $3::integer[], $4::integer[], $5::timestamptz[], $6::double precision[],
            $7::uuid[], $8::timestamptz[], $9::timestamptz[], $10::boolean[], $11::boolean[]
        ) AS c (
            endpoint_id, state, consecutive_failures, failure_threshold, opened_at, cooldown_seconds,
            probe_token, probe_deadline, recovered_at, succeeded, failed
        )
        WHERE h.endpoint_id = c.endpoint_id",
    )
    .bind(column(changes, |change| change.endpoint_id))
    .bind(column(changes, |change| change.breaker.state.as_str()))
    .bind(column(changes, |change| integer(change.breaker.consecutive_failures)))
    .bind(column(changes, |change| integer(change.failure_threshold)))
    .bind(column(changes, |change| change.breaker.opened_at))
    .bind(column(changes, |change| change.breaker.cooldown.as_secs_f64()))
    .bind(column(changes, |change| change.probe_token))
    .bind(column(changes, |change| change.breaker.probe_deadline))
    .bind(column(changes, |change| change.breaker.recovered_at))
    .bind(column(changes, |change| change.succeeded))
    .bind(column(changes, |change| change.failed))
    .execute(connection)
    .answered()
    .await?;
    Ok(())
}

fn column<T>(changes: &[HealthChange], pick: impl Fn(&HealthChange) -> T) -> Vec<T> {
    changes.iter().map(pick).collect()
}
