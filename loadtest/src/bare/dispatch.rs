//! The bare dispatcher: take a batch, claim it, send it, settle it, acknowledge it; a few batches at a time.

use anyhow::ensure;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use super::queue::{Incoming, Taken, ack_up_to};
use super::store::Claim;
use super::{BATCH_SIZE, BareStore, Settlement};
use crate::send::{Sender, Sent};

/// Requests of one batch that are out at one time.
const REQUESTS_PER_BATCH: usize = 50;

/// Batches at work at one time, one of them next to be acknowledged. Few, so that messages gather to full batches
/// meanwhile.
const BATCHES_AT_WORK: usize = 3;

/// A batch at work and the tag to acknowledge when it is done.
type AtWork = (JoinHandle<anyhow::Result<()>>, u64);

/// Dispatches until so many deliveries are settled and acknowledged.
pub(crate) async fn dispatch_all(
    store: &BareStore,
    mut incoming: Incoming,
    sender: &Sender,
    deliveries: usize,
) -> anyhow::Result<()> {
    let (started, finishing) = mpsc::channel(BATCHES_AT_WORK - 1);
    let tasks = TaskTracker::new();
    let acks = tasks.spawn(ack_in_order(incoming.channel(), finishing));
    let mut taken = 0;
    while taken < deliveries {
        let Ok(place) = started.reserve().await else {
            break;
        };
        let batch = incoming.take(BATCH_SIZE.min(deliveries - taken)).await?;
        taken += batch.delivery_ids.len();
        place.send(begin(&tasks, store, sender, batch));
    }
    drop(started);
    acks.await?
}

fn begin(tasks: &TaskTracker, store: &BareStore, sender: &Sender, batch: Taken) -> AtWork {
    let (store, sender, last_tag) = (store.clone(), sender.clone(), batch.last_tag);
    let work = async move { deliver(&store, &sender, &batch.delivery_ids).await };
    (tasks.spawn(work), last_tag)
}

/// An ack covers all earlier messages, so that batches are acknowledged in the order they were taken.
async fn ack_in_order(
    channel: lapin::Channel,
    mut finishing: mpsc::Receiver<AtWork>,
) -> anyhow::Result<()> {
    while let Some((batch, last_tag)) = finishing.recv().await {
        batch.await??;
        ack_up_to(&channel, last_tag).await?;
    }
    Ok(())
}

async fn deliver(store: &BareStore, sender: &Sender, ids: &[Uuid]) -> anyhow::Result<()> {
    let token = Uuid::now_v7();
    let claims = store.claim(ids, token).await?;
    ensure!(
        claims.len() == ids.len(),
        "{} of {} claimed",
        claims.len(),
        ids.len()
    );
    let sends = stream::iter(claims).map(|claim| send(sender, claim));
    let sent: Vec<(Uuid, Sent)> = sends
        .buffer_unordered(REQUESTS_PER_BATCH)
        .try_collect()
        .await?;
    store.settle(&Settlement::of(&sent), token).await
}

async fn send(sender: &Sender, claim: Claim) -> anyhow::Result<(Uuid, Sent)> {
    let sent = sender
        .post(claim.event_id, Bytes::from(claim.payload))
        .await?;
    Ok((claim.id, sent))
}

impl Settlement {
    fn of(sent: &[(Uuid, Sent)]) -> Self {
        Self {
            ids: sent.iter().map(|(id, _)| *id).collect(),
            status_codes: sent.iter().map(|(_, sent)| sent.status_code).collect(),
            durations_ms: sent.iter().map(|(_, sent)| sent.duration_ms).collect(),
        }
    }
}
