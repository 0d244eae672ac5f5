//! Work that one process at a time does, at a common pace however many run.

use std::time::Duration;

use crate::{Store, StoreError, answered::Answered as _, units::milliseconds};

/// The chores, as named in `kurier.chores`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Chore {
    /// Find what should be moving and is not.
    Sweep,
    /// Let held deliveries out.
    Release,
    /// End waits that have become too long.
    Expire,
    /// Create partitions ahead and drop old ones.
    Partitions,
}

/// Partitions are created this far ahead, so that days without a running relay do no harm.
const PARTITION_DAYS_AHEAD: i32 = 7;

impl Chore {
    /// Its name in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Chore::Sweep => "sweep",
            Chore::Release => "release",
            Chore::Expire => "expire",
            Chore::Partitions => "partitions",
        }
    }
}

impl Store {
    /// Whether this process is to do the chore now: true for one caller in each interval.
    pub async fn take_chore(&self, chore: Chore, interval: Duration) -> Result<bool, StoreError> {
        let taken = sqlx::query(
            "/* kurier.take_chore */
            UPDATE kurier.chores SET last_run_at = now()
            WHERE name = $1 AND last_run_at <= now() - $2 * interval '1 millisecond'",
        )
        .bind(chore.as_str())
        .bind(milliseconds(interval))
        .execute(&self.pool)
        .answered()
        .await?;
        Ok(taken.rows_affected() == 1)
    }

    /// Asks for a sweep of everything that is due, because the broker has lost its messages.
    pub async fn request_full_sweep(&self) -> Result<(), StoreError> {
        sqlx::query(
            "/* kurier.request_full_sweep */
            UPDATE kurier.chores SET last_run_at = '-infinity' WHERE name = 'full_sweep'",
        )
        .execute(&self.pool)
        .answered()
        .await?;
        Ok(())
    }

    /// Whether a full sweep was asked for and this process is the one to do it.
    pub async fn take_full_sweep(&self) -> Result<bool, StoreError> {
        let taken = sqlx::query(
            "/* kurier.take_full_sweep */
            UPDATE kurier.chores SET last_run_at = now()
            WHERE name = 'full_sweep' AND last_run_at = '-infinity'",
        )
        .execute(&self.pool)
        .answered()
        .await?;
        Ok(taken.rows_affected() == 1)
    }

    /// Creates the partitions of the coming days. Returns how many were missing.
    pub async fn create_partitions(&self) -> Result<i32, StoreError> {
        Ok(
            sqlx::query_scalar(
                "/* kurier.create_partitions */ SELECT kurier.create_partitions($1)",
            )
            .bind(PARTITION_DAYS_AHEAD)
            .fetch_one(&self.pool)
            .answered()
            .await?,
        )
    }

    /// Drops partitions older than `keep_days` that nothing needs, and deletes up to `most` events
    /// that share a partition. Returns how many partitions were dropped and events deleted.
    pub async fn drop_expired(&self, keep_days: u32, most: u32) -> Result<(i32, i32), StoreError> {
        let dropped = sqlx::query_scalar(
            "/* kurier.drop_partitions */
            SELECT kurier.drop_partitions((now() AT TIME ZONE 'UTC')::date - $1)",
        )
        .bind(i32::try_from(keep_days).unwrap_or(i32::MAX))
        .fetch_one(&self.pool)
        .answered()
        .await?;
        let deleted = sqlx::query_scalar(
            "/* kurier.delete_unpartitioned */
            SELECT kurier.delete_unpartitioned(now() - $1 * interval '1 day', $2)",
        )
        .bind(f64::from(keep_days))
        .bind(i32::try_from(most).unwrap_or(i32::MAX))
        .fetch_one(&self.pool)
        .answered()
        .await?;
        Ok((dropped, deleted))
    }
}
