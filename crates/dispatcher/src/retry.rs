//! Publishing retries: apart from the settlement, so that a slow broker never holds it up.

use broker::{Acks, Hint, Publisher, Receipt};
use process::failpoint;
use signals::{
    DispatcherMetrics,
    labels::{HintOrigin, HintOutcome},
};
use store::Store;
use tokio::sync::{mpsc, oneshot};

use crate::dispatch::request_full_sweep;

/// Retries published in one batch, at the most.
const BATCH_MAX: usize = 200;

/// How often a retry is published before it is left to the sweep. The row says when it is due, so
/// giving up loses nothing but punctuality.
const TRIES: usize = 3;

/// A retry to be timed by the broker, and the message whose work is done then.
pub(crate) struct Retry {
    pub(crate) hint: Hint,
    pub(crate) receipt: Receipt,
}

/// The retry task.
pub(crate) struct Retrier {
    pub(crate) publisher: Publisher,
    pub(crate) store: Store,
    pub(crate) acks: Acks,
    pub(crate) metrics: DispatcherMetrics,
}

impl Retrier {
    /// Publishes until the settlement is gone; `settled` is dropped then.
    pub(crate) async fn run(
        mut self,
        mut retries: mpsc::Receiver<Retry>,
        settled: oneshot::Sender<()>,
    ) -> anyhow::Result<()> {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        while retries.recv_many(&mut batch, BATCH_MAX).await > 0 {
            let (hints, receipts) = batch
                .drain(..)
                .map(|retry| (retry.hint, retry.receipt))
                .unzip();
            self.publish(hints).await;
            failpoint::reach("dispatcher.published");
            let receipts: Vec<Receipt> = receipts;
            self.acks.ack(receipts);
        }
        self.publisher.close().await;
        drop(settled);
        Ok(())
    }

    async fn publish(&mut self, mut hints: Vec<Hint>) {
        for _ in 0..TRIES {
            let outcomes = self.publisher.publish(&hints).await;
            if self.publisher.take_work_queue_created() {
                request_full_sweep(&self.store).await;
            }
            let asked = hints.len();
            let mut failed = outcomes.iter().map(Result::is_err);
            hints.retain(|_| failed.next().unwrap_or(false));
            self.count(HintOutcome::Confirmed, asked - hints.len());
            if hints.is_empty() {
                return;
            }
        }
        self.count(HintOutcome::Failed, hints.len());
        tracing::warn!(
            retries = hints.len(),
            "not published; the sweep takes over when they are due"
        );
    }

    fn count(&self, outcome: HintOutcome, count: usize) {
        self.metrics.hints(HintOrigin::Retry, outcome, count as u64);
    }
}
