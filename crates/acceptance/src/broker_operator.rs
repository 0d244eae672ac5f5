//! What only an operator does to the broker: looking into queues, putting something odd in, and
//! removing a test's queues.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use broker::topology::Topology;
use lapin::{
    BasicProperties, Channel, Connection, ConnectionProperties,
    options::{
        BasicPublishOptions, ExchangeDeleteOptions, QueueDeclareOptions, QueueDeleteOptions,
        QueuePurgeOptions,
    },
    types::FieldTable,
};
use tokio::time::sleep;

use crate::world::PATIENCE;

/// How often a queue is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// A connection to the broker that every call makes for itself, so that it also works after the
/// broker was restarted.
pub struct BrokerOperator {
    amqp_url: String,
    topology: Topology,
}

impl BrokerOperator {
    pub(crate) fn new(amqp_url: String, topology: Topology) -> Self {
        Self { amqp_url, topology }
    }

    /// Messages of the work queue that no dispatcher has taken.
    pub async fn work_ready(&self) -> u32 {
        self.ready(self.topology.work_queue()).await
    }

    /// Messages nobody could decode.
    pub async fn quarantine_ready(&self) -> u32 {
        self.ready(self.topology.quarantine_queue()).await
    }

    /// Waits until the work queue is empty: nothing is left to be taken.
    ///
    /// # Panics
    /// When it is not in time.
    pub async fn wait_work_empty(&self) {
        let started = Instant::now();
        while self.work_ready().await > 0 {
            assert!(started.elapsed() < PATIENCE, "messages in the work queue");
            sleep(LOOK).await;
        }
    }

    /// Waits until the quarantine holds `count` messages.
    ///
    /// # Panics
    /// When it does not in time.
    pub async fn wait_quarantined(&self, count: u32) {
        let started = Instant::now();
        while self.quarantine_ready().await != count {
            assert!(started.elapsed() < PATIENCE, "not {count} in quarantine");
            sleep(LOOK).await;
        }
    }

    /// Puts `body` into the work queue as it is.
    pub async fn publish_to_work(&self, body: &[u8]) {
        self.within(async |channel| {
            let exchange = self.topology.work_exchange().into();
            let options = BasicPublishOptions::default();
            let properties = BasicProperties::default();
            channel
                .basic_publish(exchange, "".into(), options, body, properties)
                .await?
                .await?;
            Ok(())
        })
        .await;
    }

    /// Takes every message away that no dispatcher has taken, as if the broker had lost it.
    pub async fn purge_work(&self) {
        self.within(async |channel| {
            let queue = self.topology.work_queue().into();
            channel
                .queue_purge(queue, QueuePurgeOptions::default())
                .await?;
            Ok(())
        })
        .await;
    }

    /// Deletes every queue and exchange of the namespace, as if the broker had been wiped.
    pub async fn delete_all(&self) {
        self.within(async |channel| {
            delete_all(channel, &self.topology).await;
            Ok(())
        })
        .await;
    }

    /// The same from where nobody waits for an answer.
    pub(crate) async fn clean_up(amqp_url: &str, topology: &Topology) -> Result<()> {
        let connection = connect(amqp_url).await?;
        let channel = connection.create_channel().await?;
        delete_all(&channel, topology).await;
        Ok(connection.close(200, "done".into()).await?)
    }

    async fn ready(&self, queue: &str) -> u32 {
        let options = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::default()
        };
        self.within(async |channel| {
            let found = channel
                .queue_declare(queue.into(), options, FieldTable::default())
                .await?;
            Ok(found.message_count())
        })
        .await
    }

    async fn within<T>(&self, act: impl AsyncFnOnce(&Channel) -> Result<T>) -> T {
        let done = async {
            let connection = connect(&self.amqp_url).await?;
            let channel = connection.create_channel().await?;
            let done = act(&channel).await?;
            connection.close(200, "done".into()).await?;
            anyhow::Ok(done)
        };
        done.await.expect("the broker does what its operator asks")
    }
}

async fn connect(amqp_url: &str) -> Result<Connection> {
    Connection::connect(amqp_url, ConnectionProperties::default())
        .await
        .context("cannot reach the broker that AMQP_URL names")
}

/// What is not there needs no deleting.
async fn delete_all(channel: &Channel, topology: &Topology) {
    for queue in topology.queues() {
        let _ = channel
            .queue_delete(queue.name.as_str().into(), QueueDeleteOptions::default())
            .await;
    }
    for exchange in topology.exchanges() {
        let name = exchange.name.as_str().into();
        let _ = channel
            .exchange_delete(name, ExchangeDeleteOptions::default())
            .await;
    }
}
