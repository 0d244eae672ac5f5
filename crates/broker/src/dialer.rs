//! Opens sessions with the broker for as long as it takes. Does not use them.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::{Instant, sleep, timeout};

use crate::{BrokerError, backoff::Backoff};

/// Longest time one try may take, from the TCP connection to the last declaration.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

type Opening<S> = BoxFuture<'static, Result<S, BrokerError>>;

/// Opens one session after another, with growing pauses between failures.
pub(crate) struct Dialer<S> {
    open: Box<dyn Fn() -> Opening<S> + Send + Sync>,
    backoff: Backoff,
    /// The try under way. It is kept here so that a caller who stops waiting does not undo it.
    opening: Option<Opening<S>>,
    opened_at: Option<Instant>,
}

impl<S: Send + 'static> Dialer<S> {
    pub(crate) fn new(open: impl Fn() -> Opening<S> + Send + Sync + 'static) -> Self {
        Self {
            open: Box::new(open),
            backoff: Backoff::default(),
            opening: None,
            opened_at: None,
        }
    }

    /// The next session. Never fails; the wait can be abandoned and resumed at any point.
    pub(crate) async fn session(&mut self) -> S {
        loop {
            match self.attempt().await {
                Ok(session) => {
                    self.opened_at = Some(Instant::now());
                    return session;
                }
                Err(error) => tracing::warn!(%error, "no session with the broker, trying again"),
            }
        }
    }

    /// Gives up the try under way.
    pub(crate) fn hang_up(&mut self) {
        self.opening = None;
    }

    async fn attempt(&mut self) -> Result<S, BrokerError> {
        let opening = match self.opening.take() {
            Some(opening) => opening,
            None => self.start(),
        };
        let outcome = self.opening.insert(opening).await;
        self.opening = None;
        outcome
    }

    fn start(&mut self) -> Opening<S> {
        if let Some(opened_at) = self.opened_at.take() {
            self.backoff.after_session_of(opened_at.elapsed());
        }
        let (pause, opening) = (self.backoff.next(), (self.open)());
        Box::pin(async move {
            sleep(pause).await;
            timeout(OPEN_TIMEOUT, opening)
                .await
                .unwrap_or(Err(BrokerError::TimedOut(OPEN_TIMEOUT)))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    };

    use super::*;

    /// Fails the given number of times before each success.
    fn stubborn(failures: u32) -> (Dialer<u32>, Arc<AtomicU32>) {
        let tries = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&tries);
        let dialer = Dialer::new(move || {
            let attempt = counted.fetch_add(1, Relaxed) + 1;
            let failed = Err(BrokerError::Unavailable("test".to_owned()));
            Box::pin(async move {
                if attempt > failures {
                    Ok(attempt)
                } else {
                    failed
                }
            })
        });
        (dialer, tries)
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_comes_however_often_opening_fails() {
        let (mut dialer, tries) = stubborn(20);
        assert_eq!(dialer.session().await, 21);
        assert_eq!(tries.load(Relaxed), 21);
    }

    #[tokio::test(start_paused = true)]
    async fn an_abandoned_wait_goes_on_where_it_stopped() {
        let (mut dialer, tries) = stubborn(6);
        let mut waits = 0;
        while timeout(Duration::from_millis(50), dialer.session())
            .await
            .is_err()
        {
            waits += 1;
        }
        assert!(waits > 6, "the pauses are longer than one wait");
        assert_eq!(tries.load(Relaxed), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn a_try_that_hangs_is_given_up() {
        let calls = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&calls);
        let mut dialer = Dialer::new(move || {
            let first = counted.fetch_add(1, Relaxed) == 0;
            Box::pin(async move {
                if first {
                    std::future::pending::<()>().await;
                }
                Ok(())
            })
        });
        dialer.session().await;
        assert_eq!(calls.load(Relaxed), 2);
    }
}
