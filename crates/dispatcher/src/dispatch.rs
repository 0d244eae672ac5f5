//! The dispatcher's loop: owns the intake and the places for attempts, and fills the places.
//!
//! It takes no more than it has places for, so what is claimed is about to be sent. Draining is
//! taking all places back.

use std::{collections::HashMap, sync::Arc, time::Duration, time::Instant};

use broker::{Acks, Intake, Message, Receipt};
use process::{Dependency, Shutdown};
use rand::{RngExt as _, rngs::StdRng};
use signals::{DispatcherMetrics, labels::BreakerState, labels::ClaimOutcome, trace::Origin};
use store::{Claimed, Store};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::{
    admit::{Admitted, take_probes},
    claim::Claimer,
    clock::DatabaseClock,
    send::{Job, Sender},
};

/// Deliveries claimed in one statement, at the most.
const BATCH_MAX: usize = 200;

/// How often broker and database are looked at while nothing arrives: an idle dispatcher must be
/// able to say that it is ready.
const IDLE_LOOK: Duration = Duration::from_millis(500);

/// The dispatch task.
pub(crate) struct Dispatcher {
    pub(crate) intake: Intake,
    pub(crate) acks: Acks,
    pub(crate) claimer: Claimer,
    pub(crate) sender: Arc<Sender>,
    pub(crate) store: Store,
    pub(crate) metrics: DispatcherMetrics,
    pub(crate) broker: Dependency,
    pub(crate) shutdown: Shutdown,
    pub(crate) concurrency: u16,
    pub(crate) chance: StdRng,
}

/// A message with the place its attempt will take.
struct Ticket {
    receipt: Receipt,
    slot: OwnedSemaphorePermit,
    /// The trace as the message carries it, then the claim's span in it.
    traceparent: Option<String>,
}

type Batch = HashMap<Uuid, Ticket>;

impl Dispatcher {
    /// Runs until the process drains, then until everything it took is settled.
    pub(crate) async fn run(mut self, settled: oneshot::Receiver<()>) -> anyhow::Result<()> {
        let slots = Arc::new(Semaphore::new(usize::from(self.concurrency)));
        let attempts = TaskTracker::new();
        while let Some(batch) = self.next_batch(&slots).await {
            self.dispatch(batch, &attempts).await;
        }
        self.intake.stop().await;
        attempts.close();
        attempts.wait().await;
        drop(self.sender);
        // Settlement and retry are done when their end of this is gone; only then are the acks
        // out and the messages that were never claimed can go back.
        let _ = settled.await;
        self.intake.close().await;
        Ok(())
    }

    /// Waits for a place and a message, then takes whatever else is here at once.
    async fn next_batch(&mut self, slots: &Arc<Semaphore>) -> Option<Batch> {
        let shutdown = self.shutdown.clone();
        let first = tokio::select! {
            biased;
            () = shutdown.draining() => return None,
            first = self.first_message(slots) => first?,
        };
        let mut batch = Batch::new();
        self.add(&mut batch, first.0, first.1);
        while batch.len() < BATCH_MAX {
            let Ok(slot) = Arc::clone(slots).try_acquire_owned() else {
                break;
            };
            let Some(message) = self.intake.try_next() else {
                break;
            };
            self.add(&mut batch, message, slot);
        }
        Some(batch)
    }

    async fn first_message(
        &mut self,
        slots: &Arc<Semaphore>,
    ) -> Option<(Message, OwnedSemaphorePermit)> {
        let slot = Arc::clone(slots).acquire_owned().await.ok()?;
        loop {
            let message = tokio::time::timeout(IDLE_LOOK, self.intake.next()).await;
            self.look_at_broker().await;
            match message {
                Ok(message) => return Some((message, slot)),
                Err(_nothing_arrived) => self.claimer.look_at_database().await,
            }
        }
    }

    async fn look_at_broker(&mut self) {
        if self.intake.is_connected() {
            self.broker.succeeded();
        } else {
            self.broker.is_away("not connected");
        }
        if self.intake.take_work_queue_created() {
            request_full_sweep(&self.store).await;
        }
    }

    /// A delivery named twice in one batch is taken once.
    fn add(&self, batch: &mut Batch, message: Message, slot: OwnedSemaphorePermit) {
        let ticket = Ticket {
            receipt: message.receipt,
            slot,
            traceparent: message.traceparent,
        };
        if let Some(repeated) = batch.insert(message.delivery_id, ticket) {
            self.acks.ack([repeated.receipt]);
        }
    }

    /// Claims a batch, holds what may not be sent, and starts an attempt for each of the rest.
    async fn dispatch(&mut self, mut batch: Batch, attempts: &TaskTracker) {
        let spans = self.start_claim_spans(&mut batch);
        let token = uuid::Builder::from_random_bytes(self.chance.random()).into_uuid();
        let ids: Vec<Uuid> = batch.keys().copied().collect();
        let asked_at = Instant::now();
        let Some(claim) = self.claimer.claim(&ids, token).await else {
            return;
        };
        drop(spans);
        self.metrics
            .claims(ClaimOutcome::Refused, (ids.len() - claim.len()) as u64);
        let Some(clock) = claim
            .first()
            .map(|first| DatabaseClock::new(first.now, asked_at))
        else {
            return self
                .acks
                .ack(batch.into_values().map(|ticket| ticket.receipt));
        };
        let admitted = self.admit(claim, token, &clock).await;
        let is_probe = |is_probe: bool| move |claimed: Claimed| (claimed, is_probe);
        let open = admitted.open.into_iter().map(is_probe(false));
        let probes = admitted.probes.into_iter().map(is_probe(true));
        for (claimed, is_probe) in open.chain(probes) {
            if let Some(ticket) = batch.remove(&claimed.id) {
                self.start_attempt(claimed, is_probe, ticket, clock, attempts);
            }
        }
        // What is left is held, or was not to be had: the row says when it is looked at again.
        self.acks
            .ack(batch.into_values().map(|ticket| ticket.receipt));
    }

    /// One span for each message; they end when they are dropped.
    fn start_claim_spans(&self, batch: &mut Batch) -> Vec<signals::trace::ActiveSpan> {
        let tracing = &self.sender.tracing;
        batch
            .iter_mut()
            .map(|(id, ticket)| {
                let span = tracing.claim(Origin::now(ticket.traceparent.as_deref()), id);
                ticket.traceparent = span.traceparent();
                span
            })
            .collect()
    }

    async fn admit(&mut self, claim: Vec<Claimed>, token: Uuid, clock: &DatabaseClock) -> Admitted {
        let mut admitted = Admitted::sort(claim);
        if !admitted.probes.is_empty() {
            let won = take_probes(&self.store, &self.claimer, &admitted.probes, clock).await;
            let won = won.unwrap_or_else(|error| {
                tracing::warn!(%error, "no probe started");
                std::collections::HashSet::new()
            });
            admitted.keep_probes(&won);
            (0..won.len()).for_each(|_| self.metrics.breaker_moved(BreakerState::HalfOpen));
        }
        let sent = admitted.open.len() + admitted.probes.len();
        self.metrics.claims(ClaimOutcome::Claimed, sent as u64);
        self.metrics
            .claims(ClaimOutcome::Held, admitted.held.len() as u64);
        // If this fails their leases run out, and they come here again.
        if let Err(error) = self.store.hold(token, &admitted.held).await {
            tracing::warn!(%error, "deliveries not held yet");
        }
        admitted
    }

    fn start_attempt(
        &mut self,
        claimed: Claimed,
        is_probe: bool,
        ticket: Ticket,
        clock: DatabaseClock,
        attempts: &TaskTracker,
    ) {
        let job = Job {
            endpoint: self.claimer.endpoint(claimed.endpoint_id),
            claimed,
            clock,
            is_probe,
            receipt: ticket.receipt,
            slot: ticket.slot,
            traceparent: ticket.traceparent,
            trace_bytes: self.chance.random(),
        };
        let sender = Arc::clone(&self.sender);
        attempts.spawn(async move { sender.send(job).await });
    }
}

/// The queue had to be created: what was on its way is lost, and the relay has to find it.
pub(crate) async fn request_full_sweep(store: &Store) {
    tracing::warn!("the work queue was missing and was created: asking for a full sweep");
    if let Err(error) = store.request_full_sweep().await {
        tracing::warn!(%error, "full sweep not requested; the ordinary sweep takes over");
    }
}
