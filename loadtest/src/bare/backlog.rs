//! The bare loop: a stored backlog of events goes through relay and dispatcher until every delivery is recorded.

use tokio::try_join;
use uuid::Uuid;

use super::dispatch::dispatch_all;
use super::relay::relay_all;
use super::{BATCH_SIZE, BareQueue, BareStore};
use crate::send::Sender;

/// A JSON payload of exactly this size, at least 12 bytes.
pub(crate) fn payload(bytes: u32) -> String {
    let frame = "{\"pad\":\"\"}";
    let padding = (bytes as usize).saturating_sub(frame.len());
    format!("{{\"pad\":\"{}\"}}", "x".repeat(padding))
}

/// Time-ordered ids, as Kurier makes them.
pub(crate) fn new_ids(count: u32) -> Vec<Uuid> {
    (0..count).map(|_| Uuid::now_v7()).collect()
}

/// Stores events in batches, one after the other.
pub(crate) async fn store_events(
    store: &BareStore,
    ids: &[Uuid],
    payload: &str,
) -> anyhow::Result<()> {
    for batch in ids.chunks(BATCH_SIZE) {
        store.insert_events(batch, payload).await?;
    }
    Ok(())
}

/// Drains so many stored events, one delivery each.
pub(crate) async fn drain(
    store: &BareStore,
    queue: &BareQueue,
    sender: &Sender,
    count: u32,
) -> anyhow::Result<()> {
    let incoming = queue.consume().await?;
    let count = count as usize;
    let dispatching = dispatch_all(store, incoming, sender, count);
    try_join!(relay_all(store, queue, count), dispatching)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_is_json_of_the_size_asked_for() {
        for bytes in [12, 13, 1_024] {
            let payload = payload(bytes);
            assert_eq!(payload.len(), bytes as usize);
            assert!(serde_json::from_str::<serde_json::Value>(&payload).is_ok());
        }
    }
}
