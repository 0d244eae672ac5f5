//! One turn of the relay: lock, expand, publish, mark.
//!
//! The outbox rows stay locked by one connection from beginning to end, the deliveries are committed
//! by another in between. A crash anywhere unlocks the rows, and whoever repeats the turn finds the
//! deliveries it needs and publishes their messages again.

use std::time::{Duration, Instant};

use broker::{Hint, PublishFault, Publisher};
use process::failpoint;
use signals::{
    RelayMetrics,
    labels::{EventOutcome, HintOrigin, HintOutcome},
    trace::Tracing,
};
use store::{Store, StoreError};

use crate::{
    RelayConfig,
    expand::{DELIVERIES_MAX, Expander, Expansion},
    subscribers::Subscribers,
};

/// Deliveries inserted by one statement, at the most.
const INSERT_MAX: usize = 5_000;

/// What a turn came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// There was nothing to do.
    Idle,
    /// Events were taken: there may be more.
    Worked,
}

/// Why a turn came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    /// The database failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The broker did not take everything. What it did not take is published again next turn.
    #[error("{failed} of {all} messages not published: {fault}")]
    Publish {
        /// Messages that were not confirmed.
        failed: usize,
        /// Messages of the turn.
        all: usize,
        /// What happened to the first.
        fault: PublishFault,
    },
}

/// The relay's working parts. Owned by one task.
pub struct Relay {
    store: Store,
    publisher: Publisher,
    subscribers: Subscribers,
    tracing: Tracing,
    metrics: RelayMetrics,
    batch: u32,
    max_attempts: u32,
    payload_bytes_max: u64,
}

impl Relay {
    /// Connects to nothing yet.
    pub fn new(
        store: Store,
        config: &RelayConfig,
        tracing: Tracing,
        metrics: RelayMetrics,
    ) -> Relay {
        Relay {
            store,
            publisher: Publisher::new(config.broker.clone()),
            subscribers: Subscribers::unread(),
            tracing,
            metrics,
            batch: config.settings.batch,
            max_attempts: config.max_attempts,
            payload_bytes_max: config.payload_bytes_max,
        }
    }

    /// One turn.
    pub async fn step(&mut self) -> Result<Turn, TurnError> {
        let started = Instant::now();
        let locked = self.store.lock_waiting_events(self.batch).await?;
        if locked.events.is_empty() {
            return Ok(Turn::Idle);
        }
        self.subscribers.refresh(&self.store).await?;
        let expansion = self.expander().expand(&locked.events);
        for chunk in expansion.deliveries.chunks(INSERT_MAX) {
            self.store.insert_deliveries(chunk).await?;
        }
        failpoint::reach("relay.expanded");
        let outcomes = self.publish(&expansion.hints).await;
        failpoint::reach("relay.published");
        let fault = first_fault(&outcomes);
        self.count(&expansion);
        let parked = expansion.parked.clone();
        let processed = expansion.processed(&outcomes);
        locked.finish(&processed, &parked).await?;
        self.metrics.turn(started.elapsed());
        fault.map_or(Ok(Turn::Worked), Err)
    }

    fn expander(&self) -> Expander<'_> {
        Expander {
            subscribers: &self.subscribers,
            tracing: &self.tracing,
            max_attempts: self.max_attempts,
            payload_bytes_max: self.payload_bytes_max,
            deliveries_max: DELIVERIES_MAX,
        }
    }

    async fn publish(&mut self, hints: &[Hint]) -> Vec<Result<(), PublishFault>> {
        let outcomes = self.publisher.publish(hints).await;
        if self.publisher.take_work_queue_created() {
            note_wiped_broker(&self.store).await;
        }
        count_hints(&self.metrics, HintOrigin::Relay, &outcomes);
        outcomes
    }

    fn count(&self, expansion: &Expansion) {
        for parked in &expansion.parked {
            tracing::warn!(event_id = %parked.id, reason = parked.reason, "event parked");
        }
        let parked = expansion.parked.len() as u64;
        self.metrics.events(EventOutcome::Parked, parked);
        self.metrics
            .events(EventOutcome::Unrouted, expansion.unrouted);
        self.metrics.events(
            EventOutcome::Expanded,
            expansion.expanded_count() - expansion.unrouted,
        );
    }

    /// Ends its connection to the broker.
    pub async fn close(self) {
        self.publisher.close().await;
    }
}

/// The queue had to be created: whatever was on its way is lost and has to be found. The relay's
/// own chores look at the request at once.
pub(crate) async fn note_wiped_broker(store: &Store) {
    tracing::warn!("the work queue was missing and was created: everything due is published again");
    if let Err(error) = store.request_full_sweep().await {
        tracing::warn!(%error, "full sweep not requested; the ordinary sweep takes over");
    }
}

pub(crate) fn count_hints(
    metrics: &RelayMetrics,
    origin: HintOrigin,
    outcomes: &[Result<(), PublishFault>],
) {
    let failed = outcomes.iter().filter(|outcome| outcome.is_err()).count();
    metrics.hints(
        origin,
        HintOutcome::Confirmed,
        (outcomes.len() - failed) as u64,
    );
    metrics.hints(origin, HintOutcome::Failed, failed as u64);
}

pub(crate) fn first_fault(outcomes: &[Result<(), PublishFault>]) -> Option<TurnError> {
    let mut faults = outcomes.iter().filter_map(|outcome| outcome.err());
    let fault = faults.next()?;
    Some(TurnError::Publish {
        failed: 1 + faults.count(),
        all: outcomes.len(),
        fault,
    })
}

/// Wait before looking again when there was nothing, so that an idle relay costs little and an event
/// is still taken within milliseconds.
pub(crate) const IDLE_WAIT_FIRST: Duration = Duration::from_millis(5);
/// Longest such wait.
pub(crate) const IDLE_WAIT_CAP: Duration = Duration::from_millis(25);
