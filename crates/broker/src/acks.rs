//! Settles messages with the broker, from any task. Does not decide which.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::FutureExt as _;
use lapin::{
    Channel,
    options::{BasicAckOptions, BasicRejectOptions},
};

use crate::ack_window::{AckFrame, AckWindow};

/// Proof that a message was handed out; give it to [`Acks::ack`] once its work is done. Dropped,
/// the message stays out until the connection ends, and then goes back to the queue.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a message that is never acknowledged is delivered again"]
pub struct Receipt {
    session: u64,
    tag: u64,
}

/// Acknowledges messages of one [`Intake`](crate::Intake). Clones share everything.
#[derive(Clone, Default)]
pub struct Acks(Arc<Mutex<Ledger>>);

#[derive(Default)]
struct Ledger {
    /// Counts the channels there have been; tags start again with each.
    session: u64,
    channel: Option<Channel>,
    window: AckWindow,
}

impl Acks {
    /// Acknowledges all these messages with as few frames as possible.
    ///
    /// Never waits: the frames are queued for the connection in order. Receipts of a connection
    /// that has ended are dropped, because the broker delivers their messages again.
    pub fn ack(&self, receipts: impl IntoIterator<Item = Receipt>) {
        let mut ledger = self.lock();
        let session = ledger.session;
        let current = receipts
            .into_iter()
            .filter(|receipt| receipt.session == session);
        let frames = ledger
            .window
            .settle(current.map(|receipt| receipt.tag).collect());
        ledger.send_acks(&frames);
    }

    /// A new channel takes over.
    pub(crate) fn begin(&self, channel: Channel) {
        let mut ledger = self.lock();
        let session = ledger.session + 1;
        *ledger = Ledger {
            session,
            channel: Some(channel),
            window: AckWindow::default(),
        };
    }

    /// The channel is gone; its receipts are void.
    pub(crate) fn end(&self) {
        let mut ledger = self.lock();
        let session = ledger.session + 1;
        *ledger = Ledger {
            session,
            ..Ledger::default()
        };
    }

    /// The broker has sent this tag on the current channel.
    pub(crate) fn receive(&self, tag: u64) -> Receipt {
        let mut ledger = self.lock();
        ledger.window.receive(tag);
        Receipt {
            session: ledger.session,
            tag,
        }
    }

    /// Refuses one message: back into the queue, or else to the queue's dead-letter target.
    pub(crate) fn reject(&self, receipt: &Receipt, requeue: bool) {
        let mut ledger = self.lock();
        if receipt.session == ledger.session {
            ledger.window.settle(vec![receipt.tag]);
            ledger.send_rejection(receipt.tag, requeue);
        }
    }

    /// How many messages are out.
    pub(crate) fn outstanding(&self) -> u64 {
        self.lock().window.outstanding()
    }

    fn lock(&self) -> MutexGuard<'_, Ledger> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// lapin queues a frame when the future is first polled; the rest of it only waits for the socket.
/// Frames are queued under the lock: two tasks that overtook each other could name a tag that is
/// settled already, and the broker would close the channel.
impl Ledger {
    fn send_acks(&self, frames: &[AckFrame]) {
        let Some(channel) = &self.channel else { return };
        for frame in frames {
            let options = BasicAckOptions {
                multiple: frame.multiple,
            };
            note_failure(channel.basic_ack(frame.tag, options).now_or_never());
        }
    }

    fn send_rejection(&self, tag: u64, requeue: bool) {
        let Some(channel) = &self.channel else { return };
        note_failure(
            channel
                .basic_reject(tag, BasicRejectOptions { requeue })
                .now_or_never(),
        );
    }
}

/// A lost acknowledgement costs a repeated message; the connection's owner notices the loss.
fn note_failure(outcome: Option<lapin::Result<()>>) {
    if let Some(Err(error)) = outcome {
        tracing::debug!(%error, "acknowledgement not sent, the message will come again");
    }
}
