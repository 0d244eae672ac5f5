//! The bare relay: lock a batch of events, insert its deliveries, publish, mark processed.

use anyhow::Context;
use uuid::Uuid;

use super::store::{lock_events, mark_processed};
use super::{BareQueue, BareStore};

/// Events of one turn: more than a dispatcher's batch, since a turn waits for two commits and for the broker's confirms
/// before the next begins.
const EVENTS_PER_TURN: usize = 500;

/// Relays until so many events are through.
pub(crate) async fn relay_all(
    store: &BareStore,
    queue: &BareQueue,
    events: usize,
) -> anyhow::Result<()> {
    let mut relayed = 0;
    while relayed < events {
        let batch = turn(store, queue).await?;
        relayed += batch.context("the backlog ended too early")?;
    }
    Ok(())
}

/// One turn: the locks are held on one connection, the deliveries are committed on another, so that they are there
/// when their messages arrive. Returns the size of the batch, if there was one.
async fn turn(store: &BareStore, queue: &BareQueue) -> anyhow::Result<Option<usize>> {
    let mut locked = store.pool.begin().await?;
    let events = lock_events(&mut locked, EVENTS_PER_TURN).await?;
    if events.is_empty() {
        return Ok(None);
    }
    let deliveries: Vec<Uuid> = events.iter().map(|_| Uuid::now_v7()).collect();
    store.insert_deliveries(&deliveries, &events).await?;
    queue.publish(&deliveries).await?;
    mark_processed(&mut locked, &events).await?;
    locked.commit().await?;
    Ok(Some(events.len()))
}
