//! The application of a run: writes events into the outbox, as fast as possible or at a rate.

use std::time::Duration;

use sqlx::PgPool;
use tokio::time::{Instant, interval};

use crate::cli::Rate;

/// Events of one transaction at most.
const BATCH_SIZE: u32 = 500;

/// How often a paced writer looks what is due.
const TICK: Duration = Duration::from_millis(5);

const INSERT: &str = "
    INSERT INTO kurier.outbox_events (event_type, payload)
    SELECT 'loadtest.event', $1::json FROM generate_series(1, $2)";

/// Writes so many events of the same payload.
pub(crate) async fn write(
    pool: &PgPool,
    events: u32,
    payload: &str,
    rate: Rate,
) -> anyhow::Result<()> {
    let (begin, mut ticks) = (Instant::now(), interval(TICK));
    let mut written = 0;
    while written < events {
        if rate != Rate::Max {
            ticks.tick().await;
        }
        let batch = (due(rate, begin.elapsed(), events) - written).min(BATCH_SIZE);
        insert(pool, batch, payload).await?;
        written += batch;
    }
    Ok(())
}

async fn insert(pool: &PgPool, count: u32, payload: &str) -> anyhow::Result<()> {
    if count > 0 {
        let count = i32::try_from(count)?;
        sqlx::query(INSERT)
            .bind(payload)
            .bind(count)
            .execute(pool)
            .await?;
    }
    Ok(())
}

/// How many events should have been written by now.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the value is between 0 and `events`"
)]
fn due(rate: Rate, elapsed: Duration, events: u32) -> u32 {
    match rate {
        Rate::Max => events,
        Rate::PerSecond(rate) => (rate * elapsed.as_secs_f64()).min(f64::from(events)) as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paced_writer_never_runs_ahead_of_its_rate_or_past_its_end() {
        let due_after = |ms| due(Rate::PerSecond(100.0), Duration::from_millis(ms), 50);
        assert_eq!(
            [0, 9, 10, 499, 500, 9_000].map(due_after),
            [0, 0, 1, 49, 50, 50]
        );
        assert_eq!(due(Rate::Max, Duration::ZERO, 50), 50);
    }
}
