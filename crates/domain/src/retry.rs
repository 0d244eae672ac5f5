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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BASE: Duration = Duration::from_secs(30);
    const CAP: Duration = Duration::from_hours(1);
    const NEARLY_ONE: f64 = 1.0 - f64::EPSILON;

    const JITTER: RetryPolicy = RetryPolicy::FullJitter {
        base: BASE,
        cap: CAP,
    };

    fn seconds(seconds: &[u64]) -> Vec<Duration> {
        seconds.iter().copied().map(Duration::from_secs).collect()
    }

    #[test]
    fn the_ceiling_doubles_from_twice_the_base_up_to_the_cap() {
        let ceilings: Vec<Duration> = (1..=8).map(|n| ceiling(BASE, CAP, n)).collect();
        let expected = seconds(&[60, 120, 240, 480, 960, 1920, 3600, 3600]);
        assert_eq!(ceilings, expected);
    }

    #[test]
    fn the_ceiling_saturates_for_any_count_and_duration() {
        assert_eq!(ceiling(BASE, CAP, u32::MAX), CAP);
        assert_eq!(
            ceiling(Duration::MAX, Duration::MAX, u32::MAX),
            Duration::MAX
        );
        assert_eq!(ceiling(Duration::ZERO, CAP, u32::MAX), Duration::ZERO);
        // 2^40 does not fit 32 bits, yet the wait it makes is below the cap.
        let nanosecond = Duration::from_nanos(1);
        assert_eq!(ceiling(nanosecond, CAP, 40), Duration::from_nanos(1 << 40));
        assert_eq!(ceiling(nanosecond, CAP, 42), CAP);
    }

    #[test]
    fn the_draw_covers_the_whole_range_from_zero() {
        assert_eq!(JITTER.delay(1, 0.0), Duration::ZERO);
        assert_eq!(JITTER.delay(1, 0.5), Duration::from_secs(30));
        assert!(JITTER.delay(1, NEARLY_ONE) > Duration::from_millis(59_999));
        assert!(JITTER.delay(1, NEARLY_ONE) <= Duration::from_mins(1));
    }

    #[test]
    fn jitter_spreads_evenly_over_many_draws() {
        const DRAWS: u32 = 10_000;
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut buckets = [0_u32; 10];
        let mut sum = Duration::ZERO;
        for _ in 0..DRAWS {
            let delay = JITTER.delay(3, pseudo_random(&mut state));
            buckets[usize::try_from(delay.as_secs() / 24).unwrap()] += 1;
            sum += delay;
        }
        // Half of 240 s; the standard error of the mean is 0.7 s, that of a bucket 30 draws.
        let mean = sum / DRAWS;
        assert!(
            (Duration::from_secs(117)..Duration::from_secs(123)).contains(&mean),
            "{mean:?}"
        );
        assert!(
            buckets.iter().all(|draws| (850..1150).contains(draws)),
            "{buckets:?}"
        );
    }

    /// Uniform in `[0, 1)`, by Marsaglia's xorshift with a fixed seed.
    fn pseudo_random(state: &mut u64) -> f64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        let high_bits = u32::try_from(*state >> 32).unwrap();
        f64::from(high_bits) / (f64::from(u32::MAX) + 1.0)
    }

    #[test]
    fn a_schedule_gives_its_entries_in_turn_and_repeats_the_last() {
        let policy = RetryPolicy::schedule(seconds(&[60, 300, 900])).unwrap();
        let delays: Vec<Duration> = (1..=5).map(|n| policy.delay(n, 0.7)).collect();
        assert_eq!(delays, seconds(&[60, 300, 900, 900, 900]));
        assert_eq!(policy.delay(u32::MAX, 0.7), Duration::from_mins(15));
        assert_eq!(policy.delay(0, 0.7), Duration::from_mins(1));
    }

    #[test]
    fn an_empty_schedule_is_refused_and_never_retries_at_once() {
        assert_eq!(RetryPolicy::schedule(Vec::new()), Err(EmptySchedule));
        let by_hand = RetryPolicy::Schedule(Vec::new());
        assert_eq!(by_hand.delay(1, 0.0), RETRY_AFTER_MAX);
    }

    fn any_duration() -> impl Strategy<Value = Duration> {
        (any::<u64>(), 0..1_000_000_000_u32)
            .prop_map(|(seconds, nanoseconds)| Duration::new(seconds, nanoseconds))
    }

    proptest! {
        #[test]
        fn every_delay_lies_between_zero_and_its_ceiling(
            base in any_duration(),
            cap in any_duration(),
            failed_attempts in any::<u32>(),
            chance in any::<f64>(),
        ) {
            let delay = RetryPolicy::FullJitter { base, cap }.delay(failed_attempts, chance);
            prop_assert!(delay <= ceiling(base, cap, failed_attempts));
            prop_assert!(delay <= cap);
        }

        #[test]
        fn ceilings_never_shrink_as_failures_add_up(
            base in any_duration(),
            cap in any_duration(),
            failed_attempts in 0..200_u32,
        ) {
            let earlier = ceiling(base, cap, failed_attempts);
            prop_assert!(earlier <= ceiling(base, cap, failed_attempts + 1));
        }
    }
}
