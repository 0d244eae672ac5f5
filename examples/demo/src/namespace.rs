//! Removes what the programs declared at the broker: only names that begin with the demo's own.

use broker::topology::Topology;
use lapin::{
    Connection, ConnectionProperties,
    options::{ExchangeDeleteOptions, QueueDeleteOptions},
};

use crate::programs::DELAY_UNIT;

/// Deletes every queue and exchange of the namespace; those that do not exist are no error.
pub(crate) async fn remove(amqp_url: &str, namespace: &str) -> anyhow::Result<()> {
    let topology = Topology::new(namespace, DELAY_UNIT);
    let connection = Connection::connect(amqp_url, ConnectionProperties::default()).await?;
    let channel = connection.create_channel().await?;
    for queue in topology.queues() {
        channel
            .queue_delete(queue.name.into(), QueueDeleteOptions::default())
            .await?;
    }
    for exchange in topology.exchanges() {
        channel
            .exchange_delete(exchange.name.into(), ExchangeDeleteOptions::default())
            .await?;
    }
    connection.close(200, "done".into()).await?;
    Ok(())
}
