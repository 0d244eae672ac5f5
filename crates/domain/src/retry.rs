//! How long to wait after a failed attempt. It does not decide whether there is another attempt;
//! [`crate::judge`] does.

use std::time::Duration;

use crate::retry_after::RETRY_AFTER_MAX;

/// How the waits between the attempts of one delivery are spread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RetryPolicy {
    /// After the n-th failed attempt, a uniform draw from zero to `min(cap, base × 2^n)`. Drawing
    /// from the whole range keeps many deliveries that failed together from returning together.
    FullJitter {
        /// What is doubled.
        base: Duration,
        /// The longest wait.
        cap: Duration,
    },
    /// After the n-th failed attempt, the n-th entry; the last one repeats. Made by
    /// [`RetryPolicy::schedule`], which sees to it that there is one.
    Schedule(Vec<Duration>),
}

/// A schedule needs at least one wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a retry schedule needs at least one wait")]
pub struct EmptySchedule;

impl RetryPolicy {
    /// A fixed schedule, which must not be empty.
    pub fn schedule(waits: Vec<Duration>) -> Result<RetryPolicy, EmptySchedule> {
        if waits.is_empty() {
            return Err(EmptySchedule);
        }
        Ok(RetryPolicy::Schedule(waits))
    }

    /// The wait after `failed_attempts` failures (1 after the first), `chance` being uniform in
    /// `[0, 1)`. Every input has an answer: what would overflow is the longest wait instead.
    pub fn delay(&self, failed_attempts: u32, chance: f64) -> Duration {
        match self {
            RetryPolicy::FullJitter { base, cap } => {
                scaled(ceiling(*base, *cap, failed_attempts), chance)
            }
            RetryPolicy::Schedule(waits) => scheduled(waits, failed_attempts),
        }
    }
}

/// `min(cap, base × 2^doublings)`.
fn ceiling(base: Duration, cap: Duration, doublings: u32) -> Duration {
    let factor = 1_u128.checked_shl(doublings).unwrap_or(u128::MAX);
    let grown = base.as_nanos().saturating_mul(factor);
    Duration::from_nanos_u128(grown.min(cap.as_nanos()))
}

/// `ceiling × chance`, never more than the ceiling.
fn scaled(ceiling: Duration, chance: f64) -> Duration {
    let seconds = ceiling.as_secs_f64() * chance.clamp(0.0, 1.0);
    // Only the float's rounding can leave Duration's range, and only upwards.
    Duration::try_from_secs_f64(seconds).map_or(ceiling, |delay| delay.min(ceiling))
}

/// The entry for the n-th failure. A schedule that was built empty by hand waits as long as any
/// wait may be: an instant retry would loop hot.
fn scheduled(waits: &[Duration], failed_attempts: u32) -> Duration {
    let position = usize::try_from(failed_attempts.saturating_sub(1)).unwrap_or(usize::MAX);
    waits
        .get(position)
        .or(waits.last())
        .copied()
        .unwrap_or(RETRY_AFTER_MAX)
}
