//! One subscription to the work queue on a connection of its own, and the suspicion that it has
//! gone deaf. Lives until its first fault; does not replace itself.

use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _, future::BoxFuture};
use lapin::{
    Channel,
    message::Delivery,
    options::{BasicCancelOptions, BasicConsumeOptions, BasicGetOptions, BasicQosOptions},
    types::FieldTable,
};
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use crate::{BrokerConfig, BrokerError, declare, hint, link::Link, topology::Topology};

/// Two looks in a row that find messages ready and none arriving prove a deaf consumer.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5);

/// A message as it came in.
pub(crate) struct Arrival {
    pub(crate) tag: u64,
    pub(crate) redelivered: bool,
    /// `None` if the body is not one of ours.
    pub(crate) delivery_id: Option<Uuid>,
    pub(crate) traceparent: Option<String>,
    pub(crate) body_bytes: usize,
}

impl From<Delivery> for Arrival {
    fn from(delivery: Delivery) -> Self {
        Self {
            tag: delivery.delivery_tag,
            redelivered: delivery.redelivered,
            delivery_id: hint::delivery_id(&delivery.data),
            traceparent: hint::traceparent(&delivery.properties),
            body_bytes: delivery.data.len(),
        }
    }
}

/// What happened next.
pub(crate) enum Turn {
    /// A message arrived.
    Arrival(Arrival),
    /// The queue was looked at and holds this many ready messages.
    Look(u32),
    /// The subscription is over.
    Fault(BrokerError),
}

/// An open subscription.
pub(crate) struct Consumer {
    link: Link,
    channel: Channel,
    deliveries: lapin::Consumer,
    work_queue: String,
    next_look: BoxFuture<'static, Result<u32, BrokerError>>,
    work_queue_created: bool,
}

impl Consumer {
    /// Connects, declares the topology and subscribes.
    pub(crate) async fn open(
        config: &BrokerConfig,
        topology: &Topology,
    ) -> Result<Self, BrokerError> {
        let link = Link::open(config).await?;
        let work_queue_created = declare::declare(link.connection(), topology).await?;
        let channel = link.connection().create_channel().await?;
        channel
            .basic_qos(config.prefetch, BasicQosOptions::default())
            .await?;
        let work_queue = topology.work_queue().to_owned();
        let deliveries = subscribe(&channel, &work_queue).await?;
        let next_look = look_later(channel.clone(), work_queue.clone());
        Ok(Self {
            link,
            channel,
            deliveries,
            work_queue,
            next_look,
            work_queue_created,
        })
    }

    /// Waits for what happens next; nothing is lost if the wait is abandoned.
    pub(crate) async fn turn(&mut self) -> Turn {
        tokio::select! {
            biased;
            delivery = self.deliveries.next() => arrived(delivery),
            looked = &mut self.next_look => {
                self.next_look = look_later(self.channel.clone(), self.work_queue.clone());
                looked.map_or_else(Turn::Fault, Turn::Look)
            }
        }
    }

    /// What has arrived already, without waiting.
    pub(crate) fn turn_now(&mut self) -> Option<Turn> {
        self.deliveries.next().now_or_never().map(arrived)
    }

    /// Ends the subscription; what had arrived before can still be taken and acknowledged.
    pub(crate) async fn cancel(&mut self) -> Result<(), BrokerError> {
        let cancel = self
            .channel
            .basic_cancel(self.deliveries.tag(), BasicCancelOptions::default());
        answer_in_time(cancel).await
    }

    pub(crate) fn link(&self) -> &Link {
        &self.link
    }

    pub(crate) fn channel(&self) -> &Channel {
        &self.channel
    }

    pub(crate) fn work_queue_created(&self) -> bool {
        self.work_queue_created
    }

    /// Ends the connection once the queue has every acknowledgement.
    pub(crate) async fn close(mut self) {
        if let Err(error) = self.flush_acks().await {
            tracing::debug!(%error, "some acknowledged messages may come again");
        }
        self.link.close().await;
    }

    /// With 32 acknowledgements on their way through a quorum queue's log, the broker's channel
    /// keeps further ones to itself, and forgets them if it ends meanwhile. A command that waits
    /// for the log makes it pass them on, and `basic.get` is one that a cancelled consumer can
    /// still give. A message it yields goes back when the channel ends.
    async fn flush_acks(&mut self) -> Result<(), BrokerError> {
        let queue = self.work_queue.as_str().into();
        let get = self.channel.basic_get(queue, BasicGetOptions::default());
        answer_in_time(get).await.map(drop)
    }
}

async fn subscribe(channel: &Channel, queue: &str) -> lapin::Result<lapin::Consumer> {
    let broker_chooses_tag = "".into();
    let options = BasicConsumeOptions::default();
    channel
        .basic_consume(
            queue.into(),
            broker_chooses_tag,
            options,
            FieldTable::default(),
        )
        .await
}

/// `None` means that the broker cancelled the consumer; polled again it would hang for ever.
fn arrived(delivery: Option<lapin::Result<Delivery>>) -> Turn {
    match delivery {
        Some(Ok(delivery)) => Turn::Arrival(delivery.into()),
        Some(Err(error)) => Turn::Fault(error.into()),
        None => Turn::Fault(BrokerError::Unavailable(
            "the consumer was cancelled".to_owned(),
        )),
    }
}

/// Counts the ready messages after a pause. Uses the consumer's own channel, so that a channel
/// that only looks connected is found out too.
fn look_later(channel: Channel, queue: String) -> BoxFuture<'static, Result<u32, BrokerError>> {
    Box::pin(async move {
        sleep(LOOK_INTERVAL).await;
        answer_in_time(declare::ready_messages(&channel, &queue)).await
    })
}

async fn answer_in_time<T>(
    answer: impl Future<Output = lapin::Result<T>>,
) -> Result<T, BrokerError> {
    let answer = timeout(ANSWER_TIMEOUT, answer).await;
    Ok(answer.map_err(|_| BrokerError::TimedOut(ANSWER_TIMEOUT))??)
}

/// Decides whether a consumer has gone deaf: messages are ready, there is room for them, and yet
/// none arrives between two looks. A single look proves nothing, a message may be on its way.
#[derive(Debug, Default)]
pub(crate) struct Deafness {
    heard_since_look: bool,
    suspected: bool,
}

impl Deafness {
    pub(crate) fn hear(&mut self) {
        self.heard_since_look = true;
    }

    /// Takes in one look at the queue; true if the consumer is deaf.
    pub(crate) fn look(&mut self, ready: u32, has_room: bool) -> bool {
        let silent = !std::mem::take(&mut self.heard_since_look);
        let starving = ready > 0 && has_room;
        let deaf = self.suspected && silent && starving;
        self.suspected = starving;
        deaf
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ready_messages_that_do_not_arrive_between_two_looks_prove_deafness() {
        let mut deafness = Deafness::default();
        assert!(!deafness.look(1, true));
        assert!(deafness.look(1, true));
    }

    #[test]
    fn a_message_between_two_looks_clears_the_suspicion() {
        let mut deafness = Deafness::default();
        deafness.look(1, true);
        deafness.hear();
        assert!(!deafness.look(1, true));
        assert!(deafness.look(1, true));
    }

    #[test]
    fn an_empty_queue_or_a_full_window_is_no_reason() {
        let mut deafness = Deafness::default();
        for (ready, has_room) in [
            (0, true),
            (1, false),
            (0, true),
            (1, true),
            (0, true),
            (1, true),
        ] {
            assert!(!deafness.look(ready, has_room));
        }
    }
}
