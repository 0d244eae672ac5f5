//! Settling in batches: what was judged is stored, the endpoints' health moved with it, in one
//! transaction; only then are retries handed on and messages acknowledged.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use broker::{Acks, Hint, Receipt};
use domain::{
    breaker::BreakerState,
    judge::{HealthEffect, Verdict},
};
use process::{Dependency, Shutdown, failpoint};
use rand::{RngExt as _, rngs::StdRng};
use signals::{
    DispatcherMetrics,
    labels::{self, AttemptOutcome},
};
use store::{Health, HealthChange, Settled, Store, StoreError};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::{
    judge::Judged,
    retry::Retry,
    send::{Finished, error_label},
};

/// Attempts settled in one transaction, at the most.
const BATCH_MAX: usize = 200;

/// Why an endpoint that answered 410 is disabled.
const GONE: &str = "the endpoint answered 410 Gone";

/// The settlement task.
pub(crate) struct Settler {
    pub(crate) store: Store,
    pub(crate) acks: Acks,
    pub(crate) retries: mpsc::Sender<Retry>,
    pub(crate) metrics: DispatcherMetrics,
    pub(crate) database: Dependency,
    pub(crate) shutdown: Shutdown,
    pub(crate) horizon: Duration,
    pub(crate) chance: StdRng,
}

/// What a committed settlement came to.
struct Committed {
    settled: HashSet<Uuid>,
    breakers_moved: Vec<BreakerState>,
}

impl Settler {
    /// Settles until every sender is gone.
    pub(crate) async fn run(mut self, mut results: mpsc::Receiver<Finished>) -> anyhow::Result<()> {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        while results.recv_many(&mut batch, BATCH_MAX).await > 0 {
            let judged: Vec<Judged> = batch
                .drain(..)
                .map(|finished| self.judge(finished))
                .collect();
            self.settle(judged).await;
        }
        Ok(())
    }

    fn judge(&mut self, finished: Finished) -> Judged {
        Judged::new(finished, self.chance.random(), self.horizon)
    }

    /// Tries until the database answers. What it refuses is tried alone; what it refuses even then
    /// is left to its lease's end.
    async fn settle(&mut self, mut batch: Vec<Judged>) {
        loop {
            match self.try_settle(&mut batch).await {
                Ok(committed) => {
                    self.database.succeeded();
                    failpoint::reach("dispatcher.settled");
                    return self.conclude(batch, committed).await;
                }
                Err(error @ (StoreError::Unavailable(_) | StoreError::Schema(_))) => {
                    let wait = self.database.failed(&error);
                    tokio::select! {
                        () = tokio::time::sleep(wait) => {}
                        () = self.shutdown.aborted() => return,
                    }
                }
                Err(error) => return self.settle_each(batch, &error).await,
            }
        }
    }

    async fn settle_each(&mut self, batch: Vec<Judged>, error: &StoreError) {
        if let [judged] = batch.as_slice() {
            tracing::error!(delivery_id = %judged.settled.delivery_id, %error, "attempt cannot be settled");
            return self
                .acks
                .ack(batch.into_iter().map(|judged| judged.receipt));
        }
        for judged in batch {
            Box::pin(self.settle(vec![judged])).await;
        }
    }

    async fn try_settle(&self, batch: &mut [Judged]) -> Result<Committed, StoreError> {
        batch.iter_mut().for_each(Judged::date_back);
        let rows: Vec<Settled> = batch.iter().map(|judged| judged.settled.clone()).collect();
        let mut settlement = self.store.begin_settlement(&rows).await?;
        let counted: Vec<&Judged> = batch
            .iter()
            .filter(|judged| settlement.settled.contains(&judged.settled.delivery_id))
            .collect();
        let health = settlement
            .lock_health(&moved(&counted), &succeeded(&counted))
            .await?;
        let breakers_before: Vec<BreakerState> =
            health.iter().map(|health| health.breaker.state).collect();
        let changes: Vec<HealthChange> = health
            .iter()
            .filter_map(|health| change(health, &counted))
            .collect();
        settlement.save_health(&changes).await?;
        settlement.disable_endpoints(&gone(&counted), GONE).await?;
        let settled = std::mem::take(&mut settlement.settled);
        settlement.commit().await?;
        let breakers_moved = changes
            .iter()
            .zip(breakers_before)
            .map(|(change, before)| (change.breaker.state, before))
            .filter_map(|(after, before)| (after != before).then_some(after))
            .collect();
        Ok(Committed {
            settled,
            breakers_moved,
        })
    }

    /// After the commit: hand on the retries, acknowledge the rest, count.
    async fn conclude(&self, batch: Vec<Judged>, committed: Committed) {
        for state in committed.breakers_moved {
            self.metrics.breaker_moved(breaker_label(state));
        }
        let mut done: Vec<Receipt> = Vec::with_capacity(batch.len());
        for judged in batch {
            if committed.settled.contains(&judged.settled.delivery_id) {
                self.count(&judged);
            } else {
                self.metrics.leases_lost(1);
                tracing::warn!(delivery_id = %judged.settled.delivery_id, "lease lost: a late result is not recorded");
                done.push(judged.receipt);
                continue;
            }
            match judged.retry_after(self.horizon) {
                Some(after) => self.hand_on(judged, after).await,
                None => done.push(judged.receipt),
            }
        }
        self.acks.ack(done);
    }

    async fn hand_on(&self, judged: Judged, after: Duration) {
        let retry = Retry {
            hint: Hint {
                delivery_id: judged.settled.delivery_id,
                traceparent: judged.traceparent,
                delay: after,
            },
            receipt: judged.receipt,
        };
        if self.retries.send(retry).await.is_err() {
            tracing::error!("retry task has ended; the sweep takes over");
        }
    }

    fn count(&self, judged: &Judged) {
        let outcome = match judged.judgement.verdict {
            Verdict::Delivered => AttemptOutcome::Delivered,
            Verdict::Retry { .. } => AttemptOutcome::Retry,
            Verdict::DeadLetter(reason) => {
                self.metrics.dead_lettered(dead_letter_label(reason), 1);
                AttemptOutcome::DeadLetter
            }
        };
        self.metrics
            .attempt(outcome, error_label(&judged.outcome), judged.duration);
        if outcome == AttemptOutcome::Delivered {
            self.metrics
                .delivered(judged.claimed_age + judged.claimed_at.elapsed());
        }
    }
}

impl Judged {
    /// The store counts back from its own clock to the attempt's start.
    fn date_back(&mut self) {
        let started: Instant = self.started;
        if let Some(attempt) = &mut self.settled.attempt {
            attempt.started_ago = started.elapsed();
        }
    }
}

/// Endpoints whose health these results can move.
fn moved(batch: &[&Judged]) -> Vec<Uuid> {
    distinct(batch, Judged::moves_health)
}

/// Endpoints that at least one result confirms.
fn succeeded(batch: &[&Judged]) -> Vec<Uuid> {
    distinct(batch, |judged| {
        judged.judgement.health == HealthEffect::Success
    })
}

/// Endpoints that asked to be left alone.
fn gone(batch: &[&Judged]) -> Vec<Uuid> {
    distinct(batch, |judged| judged.judgement.disable_endpoint)
}

fn distinct(batch: &[&Judged], which: impl Fn(&Judged) -> bool) -> Vec<Uuid> {
    let chosen: HashSet<Uuid> = batch
        .iter()
        .filter(|judged| which(judged))
        .map(|judged| judged.settled.endpoint_id)
        .collect();
    chosen.into_iter().collect()
}

/// What an endpoint's health becomes, one result after the other.
fn change(health: &Health, batch: &[&Judged]) -> Option<HealthChange> {
    let of_endpoint = || {
        batch
            .iter()
            .filter(|judged| judged.settled.endpoint_id == health.endpoint_id)
    };
    let limits = of_endpoint().next()?.endpoint.breaker;
    let holds_probe =
        |judged: &Judged| judged.is_probe && health.probe_token == Some(judged.settled.lease_token);
    let breaker = of_endpoint().fold(health.breaker.clone(), |breaker, judged| {
        breaker.record(
            judged.judgement.health,
            holds_probe(judged),
            &limits,
            health.now,
        )
    });
    let any = |effect| of_endpoint().any(|judged| judged.judgement.health == effect);
    Some(HealthChange {
        endpoint_id: health.endpoint_id,
        probe_token: health
            .probe_token
            .filter(|_| breaker.state == BreakerState::HalfOpen),
        breaker,
        failure_threshold: limits.failure_threshold,
        succeeded: any(HealthEffect::Success),
        failed: any(HealthEffect::Failure),
    })
}

fn breaker_label(state: BreakerState) -> labels::BreakerState {
    match state {
        BreakerState::Closed => labels::BreakerState::Closed,
        BreakerState::Open => labels::BreakerState::Open,
        BreakerState::HalfOpen => labels::BreakerState::HalfOpen,
    }
}

fn dead_letter_label(reason: domain::delivery::DeadLetterReason) -> labels::DeadLetterReason {
    use domain::delivery::DeadLetterReason as Reason;
    match reason {
        Reason::AttemptsExhausted => labels::DeadLetterReason::AttemptsExhausted,
        Reason::Rejected => labels::DeadLetterReason::Rejected,
        Reason::EndpointGone => labels::DeadLetterReason::EndpointGone,
        Reason::ForbiddenAddress => labels::DeadLetterReason::ForbiddenAddress,
        Reason::Configuration => labels::DeadLetterReason::Configuration,
        Reason::WaitExpired => labels::DeadLetterReason::WaitExpired,
    }
}
