//! Takes hints in from the work queue, for ever. Does not know what a delivery is.

use std::{future::pending, sync::Arc};

use uuid::Uuid;

use crate::{
    Acks, BrokerConfig, BrokerError, Receipt,
    consumer::{Arrival, Consumer, Deafness, Turn},
    dialer::Dialer,
    topology::Topology,
};

/// A hint that has arrived. It may arrive more than once.
#[derive(Debug)]
pub struct Message {
    /// The delivery to look at.
    pub delivery_id: Uuid,
    /// W3C trace context to continue.
    pub traceparent: Option<String>,
    /// Whether the broker has handed this message out before.
    pub redelivered: bool,
    /// To be given to [`Acks::ack`] when the work is done.
    pub receipt: Receipt,
}

/// Consumes the work queue over a connection of its own.
///
/// Whatever happens to the broker, the subscription is rebuilt in the background of
/// [`next`](Self::next), with pauses of up to five seconds. At most `prefetch` messages are out
/// unacknowledged; those go back to the queue when the connection ends.
pub struct Intake {
    prefetch: u16,
    dialer: Dialer<Consumer>,
    consumer: Option<Consumer>,
    acks: Acks,
    deafness: Deafness,
    work_queue_created: bool,
    quarantined_count: u64,
    blocked: bool,
    stopped: bool,
}

impl Intake {
    /// Connects only when [`next`](Self::next) is first awaited.
    pub fn new(config: BrokerConfig) -> Self {
        let topology = Topology::new(&config.namespace, config.delay_unit);
        let prefetch = config.prefetch;
        let shared = Arc::new((config, topology));
        let dialer = Dialer::new(move || {
            let shared = Arc::clone(&shared);
            Box::pin(async move { Consumer::open(&shared.0, &shared.1).await })
        });
        Self {
            prefetch,
            dialer,
            consumer: None,
            acks: Acks::default(),
            deafness: Deafness::default(),
            work_queue_created: false,
            quarantined_count: 0,
            blocked: false,
            stopped: false,
        }
    }

    /// The next message, however long it takes; after [`stop`](Self::stop) there is none.
    ///
    /// Cancel-safe: a wait that is dropped loses neither a message nor progress in reconnecting.
    /// Reconnecting advances only while this is awaited.
    pub async fn next(&mut self) -> Message {
        loop {
            let turn = match &mut self.consumer {
                _ if self.stopped => pending().await,
                Some(consumer) => consumer.turn().await,
                None => {
                    let consumer = self.dialer.session().await;
                    self.begin(consumer);
                    continue;
                }
            };
            if let Some(message) = self.take(turn) {
                return message;
            }
        }
    }

    /// A message that is here already, without waiting.
    pub fn try_next(&mut self) -> Option<Message> {
        if self.stopped {
            return None;
        }
        loop {
            let turn = self.consumer.as_mut()?.turn_now()?;
            if let Some(message) = self.take(turn) {
                return Some(message);
            }
        }
    }

    /// A handle that acknowledges this intake's messages from any task.
    pub fn acks(&self) -> Acks {
        self.acks.clone()
    }

    /// Whether the subscription stands, as far as is known.
    pub fn is_connected(&self) -> bool {
        self.consumer
            .as_ref()
            .is_some_and(|consumer| consumer.link().is_connected())
    }

    /// Whether the broker has stopped reading from this connection (memory or disk alarm).
    pub fn is_blocked(&self) -> bool {
        self.consumer
            .as_ref()
            .is_some_and(|consumer| consumer.link().is_blocked())
    }

    /// True once after this process found the work queue missing: the broker is new or was wiped,
    /// and what it should hold must be published again.
    pub fn take_work_queue_created(&mut self) -> bool {
        std::mem::take(&mut self.work_queue_created)
    }

    /// How many undecodable messages this process has sent to the quarantine queue.
    pub fn quarantined_count(&self) -> u64 {
        self.quarantined_count
    }

    /// Takes no more messages, and gives back those that have arrived but were not handed out.
    /// The messages that are out can still be acknowledged.
    pub async fn stop(&mut self) {
        self.stopped = true;
        self.dialer.hang_up();
        let Some(consumer) = &mut self.consumer else {
            return;
        };
        if let Err(error) = consumer.cancel().await {
            tracing::warn!(%error, "the consumer could not be cancelled");
            self.abandon();
            return;
        }
        self.give_back_waiting();
    }

    /// Sends what was acknowledged, then ends the connection; the rest goes back to the queue.
    pub async fn close(mut self) {
        if let Some(consumer) = self.consumer.take() {
            consumer.close().await;
        }
        self.acks.end();
    }

    fn begin(&mut self, consumer: Consumer) {
        self.work_queue_created |= consumer.work_queue_created();
        self.acks.begin(consumer.channel().clone());
        self.deafness = Deafness::default();
        self.consumer = Some(consumer);
        tracing::info!("consuming the work queue");
    }

    fn abandon(&mut self) {
        self.consumer = None;
        self.acks.end();
    }

    fn take(&mut self, turn: Turn) -> Option<Message> {
        match turn {
            Turn::Arrival(arrival) => return self.accept(arrival),
            Turn::Look(ready) => self.look(ready),
            Turn::Fault(fault) => self.fail(&fault),
        }
        None
    }

    fn fail(&mut self, fault: &BrokerError) {
        tracing::warn!(error = %fault, "lost the work queue, subscribing again");
        self.abandon();
    }

    fn look(&mut self, ready: u32) {
        self.note_blocked();
        let has_room = self.acks.outstanding() < u64::from(self.prefetch);
        if self.deafness.look(ready, has_room) {
            let reason = "messages are ready and none arrives";
            self.fail(&BrokerError::Unavailable(reason.to_owned()));
        }
    }

    fn note_blocked(&mut self) {
        let blocked = self.is_blocked();
        if blocked && !self.blocked {
            tracing::warn!("the broker has blocked the consuming connection");
        }
        self.blocked = blocked;
    }

    fn accept(&mut self, arrival: Arrival) -> Option<Message> {
        self.deafness.hear();
        let receipt = self.acks.receive(arrival.tag);
        let Some(delivery_id) = arrival.delivery_id else {
            self.quarantine(&receipt, arrival.body_bytes);
            return None;
        };
        Some(Message {
            delivery_id,
            traceparent: arrival.traceparent,
            redelivered: arrival.redelivered,
            receipt,
        })
    }

    /// Alone and at first sight: waiting for a batch would make its neighbours suffer.
    fn quarantine(&mut self, receipt: &Receipt, body_bytes: usize) {
        self.quarantined_count += 1;
        tracing::warn!(
            body_bytes,
            "undecodable message sent to the quarantine queue"
        );
        let requeue = false;
        self.acks.reject(receipt, requeue);
    }

    fn give_back_waiting(&mut self) {
        let Some(consumer) = &mut self.consumer else {
            return;
        };
        while let Some(Turn::Arrival(arrival)) = consumer.turn_now() {
            let receipt = self.acks.receive(arrival.tag);
            let requeue = true;
            self.acks.reject(&receipt, requeue);
        }
    }
}
