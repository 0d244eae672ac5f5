//! The two stages of shutdown, and the signals that begin them.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// Tells every part of the process that it is to stop. Clones share one state.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    draining: CancellationToken,
    aborted: CancellationToken,
}

impl Shutdown {
    /// Not stopping, and deaf to signals: for [`run`](crate::run) and for tests.
    pub fn new() -> Self {
        Self::default()
    }

    /// Begins to drain: no new work from here on.
    pub fn drain(&self) {
        self.draining.cancel();
    }

    /// Gives up what is still running; drains first if that has not begun.
    pub fn abort(&self) {
        self.draining.cancel();
        self.aborted.cancel();
    }

    /// Whether the process takes no new work any more.
    pub fn is_draining(&self) -> bool {
        self.draining.is_cancelled()
    }

    /// Whether what is still running is to be given up.
    pub fn is_aborted(&self) -> bool {
        self.aborted.is_cancelled()
    }

    /// Waits until the process drains.
    pub async fn draining(&self) {
        self.draining.cancelled().await;
    }

    /// Waits until what is still running is to be given up.
    pub async fn aborted(&self) {
        self.aborted.cancelled().await;
    }
}

/// Listens for SIGTERM and SIGINT from now on; the returned future turns them into `shutdown`'s
/// stages and ends with the second.
///
/// Draining that began without a signal is bounded by `grace` as well.
pub(crate) fn watch_signals(
    shutdown: Shutdown,
    grace: Duration,
) -> io::Result<impl Future<Output = ()> + Send + 'static> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            name = next_signal(&mut terminate, &mut interrupt) => {
                tracing::info!(signal = name, grace_ms = grace.as_millis(), "draining");
            }
            () = shutdown.draining() => {}
        }
        shutdown.drain();
        tokio::select! {
            name = next_signal(&mut terminate, &mut interrupt) => {
                tracing::warn!(signal = name, "aborting at the second signal");
            }
            () = tokio::time::sleep(grace) => {
                tracing::warn!("aborting at the end of the grace period");
            }
        }
        shutdown.abort();
    })
}

async fn next_signal(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}
