//! Capped doubling waits for loops that talk to a service that is away.
//!
//! It only counts: the caller sleeps, so that it can stop waiting when the process drains.

use std::time::Duration;

/// How long to wait before the next try.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    cap: Duration,
    next: Duration,
}

impl Backoff {
    /// Waits `first`, then twice as long each time, never longer than `cap`.
    pub const fn new(first: Duration, cap: Duration) -> Self {
        Self {
            first,
            cap,
            next: first,
        }
    }

    /// The wait after one more failure.
    pub fn next_delay(&mut self) -> Duration {
        let delay = self.next.min(self.cap);
        self.next = delay.saturating_mul(2);
        delay
    }

    /// It worked: the next failure waits `first` again.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delays_ms(backoff: &mut Backoff, count: usize) -> Vec<u128> {
        (0..count)
            .map(|_| backoff.next_delay().as_millis())
            .collect()
    }

    #[test]
    fn waits_double_up_to_the_cap_and_stay_there() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(350));
        assert_eq!(delays_ms(&mut backoff, 4), [100, 200, 350, 350]);
    }

    #[test]
    fn a_success_starts_over() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
        delays_ms(&mut backoff, 3);
        backoff.reset();
        assert_eq!(delays_ms(&mut backoff, 2), [100, 200]);
    }

    #[test]
    fn a_cap_below_the_first_wait_holds() {
        let mut backoff = Backoff::new(Duration::from_secs(2), Duration::from_secs(1));
        assert_eq!(delays_ms(&mut backoff, 2), [1_000, 1_000]);
    }

    #[test]
    fn an_endless_cap_does_not_overflow() {
        let mut backoff = Backoff::new(Duration::MAX, Duration::MAX);
        backoff.next_delay();
        assert_eq!(backoff.next_delay(), Duration::MAX);
    }
}
