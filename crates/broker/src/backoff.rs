//! How long to wait before dialling again. Keeps no clock.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(100);
/// The longest wait, and the age at which a connection counts as having worked.
pub(crate) const CAP: Duration = Duration::from_secs(5);

/// At once, then 100 ms, doubled each time up to 5 s. There is one such connection in a process,
/// so there is no herd to spread by jitter.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    next: Duration,
}

impl Backoff {
    /// The wait before the next try.
    pub(crate) fn next(&mut self) -> Duration {
        let delay = self.next;
        self.next = (delay * 2).clamp(FIRST, CAP);
        delay
    }

    /// A connection that lived this long has ended. Only one that lasted starts the series anew:
    /// a broker that accepts us and throws us out at once must not be dialled without pause.
    pub(crate) fn after_session_of(&mut self, lived: Duration) {
        if lived >= CAP {
            *self = Self::default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn milliseconds(backoff: &mut Backoff, count: usize) -> Vec<u128> {
        (0..count).map(|_| backoff.next().as_millis()).collect()
    }

    #[test]
    fn waits_double_up_to_the_cap() {
        let waits = milliseconds(&mut Backoff::default(), 9);
        assert_eq!(waits, [0, 100, 200, 400, 800, 1600, 3200, 5000, 5000]);
    }

    #[test]
    fn only_a_session_that_lasted_starts_the_series_anew() {
        let mut backoff = Backoff::default();
        milliseconds(&mut backoff, 3);
        backoff.after_session_of(CAP.checked_sub(Duration::from_nanos(1)).unwrap());
        assert_eq!(milliseconds(&mut backoff, 1), [400]);
        backoff.after_session_of(CAP);
        assert_eq!(milliseconds(&mut backoff, 2), [0, 100]);
    }
}
