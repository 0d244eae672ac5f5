//! The chores: sweep, release, expiry of long waits, and the partitions' upkeep.
//!
//! Any number of relays may run; each chore is taken by one of them in each interval.

use std::time::{Duration, Instant};

use broker::{Hint, Publisher};
use domain::gate::release_room;
use process::failpoint;
use settings::RelaySettings;
use signals::{
    RelayMetrics,
    labels::{DeadLetterReason, HintOrigin, SweepKind},
};
use store::{Chore, HeldEndpoint, LostHint, Store, SweepTerms};
use uuid::Uuid;

use crate::{
    RelayConfig,
    turn::{TurnError, count_hints, first_fault, note_wiped_broker},
};

/// Deliveries published again in one go.
const SWEEP_BATCH: u32 = 1000;

/// With more than this many messages ready, what waits is waiting in line and not lost.
const SHORT_QUEUE: u32 = 1000;

/// Held deliveries let out in one turn, for one endpoint and for all.
const RELEASE_MOST_EACH: u32 = 2000;
const RELEASE_MOST: u32 = 10_000;

/// Long waits are looked at this often, and so many ended at once.
const EXPIRE_INTERVAL: Duration = Duration::from_mins(1);
const EXPIRE_BATCH: u32 = 10_000;

/// Partitions are looked at this often; events that share a partition are deleted so many at once.
const PARTITIONS_INTERVAL: Duration = Duration::from_hours(1);
const DELETE_BATCH: u32 = 10_000;

/// The chores' working parts. Owned by one task, with a publisher of its own.
pub struct Chores {
    store: Store,
    publisher: Publisher,
    metrics: RelayMetrics,
    settings: RelaySettings,
}

impl Chores {
    /// Connects to nothing yet.
    pub fn new(store: Store, config: &RelayConfig, metrics: RelayMetrics) -> Chores {
        Chores {
            store,
            publisher: Publisher::new(config.broker.clone()),
            metrics,
            settings: config.settings,
        }
    }

    /// How long to wait between two looks at what is due.
    pub(crate) fn pace(&self) -> Duration {
        let shortest = self
            .settings
            .release_interval
            .min(self.settings.sweep_interval);
        (shortest / 4).clamp(Duration::from_millis(5), Duration::from_millis(250))
    }

    /// Does the chores that are due and that no other relay does.
    pub async fn step(&mut self) -> Result<(), TurnError> {
        if self.store.take_full_sweep().await? {
            self.full_sweep().await?;
        }
        if self
            .store
            .take_chore(Chore::Sweep, self.settings.sweep_interval)
            .await?
        {
            self.sweep(self.settings.sweep_grace).await?;
        }
        if self
            .store
            .take_chore(Chore::Release, self.settings.release_interval)
            .await?
        {
            self.release().await?;
        }
        if self
            .store
            .take_chore(Chore::Expire, EXPIRE_INTERVAL)
            .await?
        {
            self.expire().await?;
        }
        if self
            .store
            .take_chore(Chore::Partitions, PARTITIONS_INTERVAL)
            .await?
        {
            self.keep_partitions().await?;
        }
        Ok(())
    }

    /// Does every chore, due or not.
    pub async fn all(&mut self) -> Result<(), TurnError> {
        self.sweep(self.settings.sweep_grace).await?;
        self.release().await?;
        self.expire().await?;
        self.keep_partitions().await
    }

    /// A full sweep that fails is asked for again.
    async fn full_sweep(&mut self) -> Result<(), TurnError> {
        let swept = self.sweep(Duration::ZERO).await;
        if swept.is_err() {
            self.store.request_full_sweep().await?;
        }
        swept
    }

    /// Publishes again what should be moving and is not. A grace of zero takes everything that was
    /// due when the sweep began, however long the queue: the broker has lost it all.
    async fn sweep(&mut self, grace: Duration) -> Result<(), TurnError> {
        let started = Instant::now();
        loop {
            let terms = SweepTerms {
                // What this sweep has published itself is younger than the sweep.
                grace: grace.max(started.elapsed()),
                queue_is_short: grace.is_zero() || self.queue_is_short().await,
                most: SWEEP_BATCH,
            };
            let lost = self.store.sweep(&terms).await?;
            failpoint::reach("sweep.marked");
            let expired = lost.iter().filter(|hint| hint.lease_expired).count();
            self.metrics.swept(SweepKind::LeaseExpired, expired as u64);
            self.metrics
                .swept(SweepKind::Overdue, (lost.len() - expired) as u64);
            self.publish(HintOrigin::Sweep, &lost).await?;
            if lost.len() < SWEEP_BATCH as usize {
                return Ok(());
            }
        }
    }

    /// A broker that cannot be asked gets nothing published again either.
    async fn queue_is_short(&mut self) -> bool {
        let backlog = self.publisher.work_backlog().await;
        if self.publisher.take_work_queue_created() {
            note_wiped_broker(&self.store).await;
        }
        backlog.is_ok_and(|ready| ready <= SHORT_QUEUE)
    }

    /// Lets held deliveries out as far as their endpoints' gates have room.
    async fn release(&mut self) -> Result<(), TurnError> {
        let rooms = rooms(&self.store.endpoints_with_held().await?);
        let released = self.store.release(&rooms).await?;
        failpoint::reach("release.marked");
        self.metrics
            .swept(SweepKind::Released, released.len() as u64);
        self.publish(HintOrigin::Release, &released).await
    }

    async fn expire(&mut self) -> Result<(), TurnError> {
        let expired = self
            .store
            .expire_held(self.settings.held_age_max, EXPIRE_BATCH)
            .await?;
        self.metrics.swept(SweepKind::Expired, expired);
        self.metrics
            .dead_lettered(DeadLetterReason::WaitExpired, expired);
        Ok(())
    }

    async fn keep_partitions(&mut self) -> Result<(), TurnError> {
        self.store.create_partitions().await?;
        let (partitions, events) = self
            .store
            .drop_expired(self.settings.retention_days, DELETE_BATCH)
            .await?;
        if partitions > 0 || events > 0 {
            tracing::info!(partitions, events, "what was past its retention is gone");
        }
        Ok(())
    }

    async fn publish(&mut self, origin: HintOrigin, lost: &[LostHint]) -> Result<(), TurnError> {
        let hints: Vec<Hint> = lost.iter().map(hint).collect();
        let outcomes = self.publisher.publish(&hints).await;
        count_hints(&self.metrics, origin, &outcomes);
        first_fault(&outcomes).map_or(Ok(()), Err)
    }

    /// Ends its connection to the broker.
    pub async fn close(self) {
        self.publisher.close().await;
    }
}

fn hint(lost: &LostHint) -> Hint {
    Hint {
        delivery_id: lost.delivery_id,
        traceparent: lost.traceparent.clone(),
        delay: lost.delay,
    }
}

/// How many deliveries each endpoint may let out. One turn's bound is shared evenly, so that a long
/// backlog of some never starves the others.
fn rooms(held: &[HeldEndpoint]) -> Vec<(Uuid, u32)> {
    let endpoints = u32::try_from(held.len()).unwrap_or(u32::MAX).max(1);
    let share = (RELEASE_MOST / endpoints).clamp(1, RELEASE_MOST_EACH);
    held.iter()
        .map(|endpoint| {
            (
                endpoint.endpoint_id,
                release_room(&endpoint.gate, endpoint.now, share),
            )
        })
        .filter(|(_, room)| *room > 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;
    use domain::gate::GateFacts;

    fn held(id: u128, paused: bool) -> HeldEndpoint {
        HeldEndpoint {
            endpoint_id: Uuid::from_u128(id),
            gate: GateFacts {
                disabled: false,
                paused,
                breaker: store::closed_breaker(),
            },
            now: DateTime::UNIX_EPOCH,
        }
    }

    #[test]
    fn one_turn_is_shared_evenly_and_lets_nothing_out_behind_a_closed_gate() {
        let endpoints: Vec<HeldEndpoint> = (0..8).map(|id| held(id, id == 0)).collect();
        let rooms = rooms(&endpoints);
        assert_eq!(rooms.len(), 7);
        assert!(
            rooms
                .iter()
                .all(|(id, room)| !id.is_nil() && *room == RELEASE_MOST / 8)
        );
    }

    #[test]
    fn one_endpoint_alone_gets_no_more_than_its_own_bound() {
        assert_eq!(
            rooms(&[held(1, false)]),
            [(Uuid::from_u128(1), RELEASE_MOST_EACH)]
        );
    }
}
