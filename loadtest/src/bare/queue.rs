//! One quorum queue: confirmed publishing in joined batches, and consuming with multiple acks.

use std::time::Duration;

use anyhow::{Context, ensure};
use futures_util::StreamExt;
use futures_util::future::try_join_all;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions,
    ConfirmSelectOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::{AMQPValue, FieldTable, ShortString};
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, Consumer};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::PREFETCH;
use crate::send::TRACEPARENT;

const PERSISTENT: u8 = 2;

/// How long a batch may wait to be filled; small batches would take the CPU from the relay that fills them.
const FILL_MAX: Duration = Duration::from_millis(10);

/// A queue of its own, with one connection for each direction, as publishing can block a connection.
pub(crate) struct BareQueue {
    name: ShortString,
    publishing: Connection,
    consuming: Connection,
    publish_channel: Channel,
}

impl BareQueue {
    pub(crate) async fn create(amqp_url: &str) -> anyhow::Result<Self> {
        let name = format!("loadtest_bare.{}", Uuid::now_v7().simple()).into();
        let publishing = connect(amqp_url).await?;
        let consuming = connect(amqp_url).await?;
        let publish_channel = publishing.create_channel().await?;
        publish_channel
            .confirm_select(ConfirmSelectOptions::default())
            .await?;
        let queue = Self {
            name,
            publishing,
            consuming,
            publish_channel,
        };
        queue.declare().await?;
        Ok(queue)
    }

    async fn declare(&self) -> anyhow::Result<()> {
        let mut arguments = FieldTable::default();
        arguments.insert(
            "x-queue-type".into(),
            AMQPValue::LongString("quorum".into()),
        );
        let options = QueueDeclareOptions {
            durable: true,
            ..QueueDeclareOptions::default()
        };
        self.publish_channel
            .queue_declare(self.name.clone(), options, arguments)
            .await?;
        Ok(())
    }

    /// Publishes one message for each id and waits for all confirms together.
    pub(crate) async fn publish(&self, ids: &[Uuid]) -> anyhow::Result<()> {
        let mut confirms = Vec::with_capacity(ids.len());
        for id in ids {
            confirms.push(self.send(*id).await?);
        }
        for confirmation in try_join_all(confirms).await? {
            ensure!(
                matches!(confirmation, Confirmation::Ack(None)),
                "a message was not taken"
            );
        }
        Ok(())
    }

    async fn send(
        &self,
        id: Uuid,
    ) -> lapin::Result<impl Future<Output = lapin::Result<Confirmation>> + use<>> {
        let mut headers = FieldTable::default();
        headers.insert(
            "traceparent".into(),
            AMQPValue::LongString(TRACEPARENT.into()),
        );
        let properties = BasicProperties::default()
            .with_content_type("application/json".into())
            .with_delivery_mode(PERSISTENT)
            .with_message_id(id.to_string().into())
            .with_headers(headers);
        let body = format!("{{\"delivery_id\":\"{id}\"}}");
        let options = BasicPublishOptions {
            mandatory: true,
            immediate: false,
        };
        let (exchange, key) = (ShortString::default(), self.name.clone());
        self.publish_channel
            .basic_publish(exchange, key, options, body.as_bytes(), properties)
            .await
    }

    /// Begins to consume on a channel of its own.
    pub(crate) async fn consume(&self) -> anyhow::Result<Incoming> {
        let channel = self.consuming.create_channel().await?;
        channel
            .basic_qos(PREFETCH, BasicQosOptions::default())
            .await?;
        let (tag, arguments) = (ShortString::default(), FieldTable::default());
        let options = BasicConsumeOptions::default();
        let consumer = channel
            .basic_consume(self.name.clone(), tag, options, arguments)
            .await?;
        Ok(Incoming { channel, consumer })
    }

    pub(crate) async fn delete(self) -> anyhow::Result<()> {
        self.publish_channel
            .queue_delete(self.name.clone(), QueueDeleteOptions::default())
            .await?;
        for connection in [self.publishing, self.consuming] {
            connection.close(200, "done".into()).await?;
        }
        Ok(())
    }
}

async fn connect(amqp_url: &str) -> anyhow::Result<Connection> {
    let properties = ConnectionProperties::default();
    Connection::connect(amqp_url, properties)
        .await
        .context("cannot connect to RabbitMQ")
}

/// One consumer and its channel.
pub(crate) struct Incoming {
    channel: Channel,
    consumer: Consumer,
}

/// Messages taken together; acknowledging the last tag acknowledges all up to it.
pub(crate) struct Taken {
    pub(crate) delivery_ids: Vec<Uuid>,
    pub(crate) last_tag: u64,
}

impl Incoming {
    /// Waits for a first message, then for up to `limit` of them or a few milliseconds.
    pub(crate) async fn take(&mut self, limit: usize) -> anyhow::Result<Taken> {
        let (first, last_tag) = next(&mut self.consumer).await?;
        let mut taken = Taken {
            delivery_ids: vec![first],
            last_tag,
        };
        let deadline = Instant::now() + FILL_MAX;
        while taken.delivery_ids.len() < limit {
            let Ok(message) = timeout_at(deadline, next(&mut self.consumer)).await else {
                break;
            };
            let (id, tag) = message?;
            taken.delivery_ids.push(id);
            taken.last_tag = tag;
        }
        Ok(taken)
    }

    /// Ends the consumer; what it holds unacknowledged goes back to the queue.
    pub(crate) async fn close(self) -> anyhow::Result<()> {
        Ok(self.channel.close(200, "done".into()).await?)
    }

    /// The channel to acknowledge on.
    pub(crate) fn channel(&self) -> Channel {
        self.channel.clone()
    }
}

async fn next(consumer: &mut Consumer) -> anyhow::Result<(Uuid, u64)> {
    let delivery = consumer
        .next()
        .await
        .context("the consumer was cancelled")??;
    Ok((delivery_id(&delivery.data)?, delivery.delivery_tag))
}

fn delivery_id(body: &[u8]) -> anyhow::Result<Uuid> {
    #[derive(serde::Deserialize)]
    struct Body {
        delivery_id: Uuid,
    }
    Ok(serde_json::from_slice::<Body>(body)?.delivery_id)
}

/// Acknowledges everything up to this tag.
pub(crate) async fn ack_up_to(channel: &Channel, tag: u64) -> anyhow::Result<()> {
    channel
        .basic_ack(tag, BasicAckOptions { multiple: true })
        .await?;
    Ok(())
}
