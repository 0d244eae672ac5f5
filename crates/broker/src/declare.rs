//! Puts the topology into practice on a connection. Declaring what exists already changes nothing.

use futures_util::future::try_join_all;
use lapin::{
    Channel, Connection,
    options::{ExchangeBindOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions},
    types::{AMQPValue, FieldTable},
};

use crate::{
    BrokerError,
    error::is_not_found,
    topology::{Binding, Destination, Exchange, ExchangeKind, Queue, Topology},
};

/// Declares everything; true if the work queue was missing, so the broker is new or was wiped.
pub(crate) async fn declare(
    connection: &Connection,
    topology: &Topology,
) -> Result<bool, BrokerError> {
    let work_queue_missing = work_queue_depth(connection, topology).await?.is_none();
    let channel = connection.create_channel().await?;
    let (exchanges, queues, bindings) =
        (topology.exchanges(), topology.queues(), topology.bindings());
    try_join_all(
        exchanges
            .iter()
            .map(|exchange| declare_exchange(&channel, exchange)),
    )
    .await?;
    try_join_all(queues.iter().map(|queue| declare_queue(&channel, queue))).await?;
    try_join_all(
        bindings
            .iter()
            .map(|binding| declare_binding(&channel, binding)),
    )
    .await?;
    Ok(work_queue_missing)
}

/// Ready messages in the work queue; `None` if there is no such queue. The question costs a
/// channel of its own, because the broker closes the channel when the answer is no.
pub(crate) async fn work_queue_depth(
    connection: &Connection,
    topology: &Topology,
) -> Result<Option<u32>, BrokerError> {
    let channel = connection.create_channel().await?;
    match ready_messages(&channel, topology.work_queue()).await {
        Ok(ready) => Ok(Some(ready)),
        Err(error) if is_not_found(&error) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Ready messages in a queue; the channel is closed if there is no such queue.
pub(crate) async fn ready_messages(channel: &Channel, queue: &str) -> lapin::Result<u32> {
    let passive = QueueDeclareOptions {
        passive: true,
        ..QueueDeclareOptions::default()
    };
    let queue = channel
        .queue_declare(queue.into(), passive, FieldTable::default())
        .await?;
    Ok(queue.message_count())
}

async fn declare_exchange(channel: &Channel, exchange: &Exchange) -> lapin::Result<()> {
    let kind = match exchange.kind {
        ExchangeKind::Fanout => lapin::ExchangeKind::Fanout,
        ExchangeKind::Topic => lapin::ExchangeKind::Topic,
    };
    let durable = ExchangeDeclareOptions {
        durable: true,
        ..ExchangeDeclareOptions::default()
    };
    let name = exchange.name.as_str().into();
    channel
        .exchange_declare(name, kind, durable, FieldTable::default())
        .await
}

async fn declare_queue(channel: &Channel, queue: &Queue) -> lapin::Result<()> {
    let durable = QueueDeclareOptions {
        durable: true,
        ..QueueDeclareOptions::default()
    };
    channel
        .queue_declare(queue.name.as_str().into(), durable, queue_arguments(queue))
        .await?;
    Ok(())
}

async fn declare_binding(channel: &Channel, binding: &Binding) -> lapin::Result<()> {
    let (source, pattern) = (
        binding.source.as_str().into(),
        binding.pattern.as_str().into(),
    );
    let arguments = FieldTable::default();
    match &binding.destination {
        Destination::Queue(queue) => {
            let options = QueueBindOptions::default();
            channel
                .queue_bind(queue.as_str().into(), source, pattern, options, arguments)
                .await
        }
        Destination::Exchange(exchange) => {
            let options = ExchangeBindOptions::default();
            channel
                .exchange_bind(
                    exchange.as_str().into(),
                    source,
                    pattern,
                    options,
                    arguments,
                )
                .await
        }
    }
}

/// At-least-once dead lettering needs version 3.10 with the `stream_queue` feature flag, which new
/// nodes have on; it also needs `reject-publish`, or the broker falls back to at most once.
fn queue_arguments(queue: &Queue) -> FieldTable {
    let mut arguments = FieldTable::default();
    let mut set = |name: &str, value: AMQPValue| {
        arguments.insert(name.into(), value);
    };
    set("x-queue-type", text("quorum"));
    set(
        "x-delivery-limit",
        AMQPValue::LongLongInt(queue.delivery_limit.into()),
    );
    if let Some(ttl) = queue.message_ttl {
        let ttl_ms = i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX);
        set("x-message-ttl", AMQPValue::LongLongInt(ttl_ms));
    }
    if let Some(target) = &queue.dead_letter {
        set("x-dead-letter-exchange", text(&target.exchange));
        set("x-dead-letter-strategy", text("at-least-once"));
        set("x-overflow", text("reject-publish"));
        if let Some(routing_key) = &target.routing_key {
            set("x-dead-letter-routing-key", text(routing_key));
        }
    }
    arguments
}

fn text(value: &str) -> AMQPValue {
    AMQPValue::LongString(value.into())
}
