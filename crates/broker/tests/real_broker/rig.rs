//! What each test needs: a namespace of its own on the broker, taken away again at the end.

use std::{collections::BTreeSet, panic::AssertUnwindSafe, time::Duration};

use anyhow::{Context as _, Result};
use broker::{BrokerConfig, Hint, Intake, Message, PublishFault, Publisher, topology::Topology};
use futures_util::FutureExt as _;
use lapin::{
    Channel, Connection, ConnectionProperties,
    options::{ExchangeDeleteOptions, QueueDeleteOptions},
};
use tokio::time::timeout;
use uuid::Uuid;

/// Short, so that tests are quick, and long enough to tell a delay from none.
pub(crate) const UNIT: Duration = Duration::from_millis(200);
/// Nothing here takes this long unless it has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Rig {
    pub(crate) config: BrokerConfig,
    pub(crate) topology: Topology,
    /// For what only an operator would do to the broker.
    pub(crate) operator: Channel,
    connection: Connection,
}

/// Runs a test in a namespace of its own and cleans up, whether it passes, fails or panics.
pub(crate) async fn with_rig(test: impl AsyncFnOnce(&Rig) -> Result<()>) -> Result<()> {
    let rig = Rig::new().await?;
    let outcome = AssertUnwindSafe(timeout(PATIENCE * 2, test(&rig)))
        .catch_unwind()
        .await;
    rig.clean_up().await;
    match outcome {
        Ok(outcome) => outcome.context("the test hangs")?,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

impl Rig {
    #[expect(
        clippy::disallowed_methods,
        reason = "only the test runner knows the address"
    )]
    async fn new() -> Result<Self> {
        let amqp_url = std::env::var("AMQP_URL").context(
            "AMQP_URL is not set: these tests need a RabbitMQ, run them by `./run test`",
        )?;
        let connection = Connection::connect(&amqp_url, ConnectionProperties::default()).await?;
        let config = BrokerConfig {
            namespace: format!("test-{}", Uuid::new_v4().simple()),
            delay_unit: UNIT,
            ..BrokerConfig::new(amqp_url)
        };
        config.check()?;
        Ok(Self {
            topology: Topology::new(&config.namespace, config.delay_unit),
            operator: connection.create_channel().await?,
            config,
            connection,
        })
    }

    pub(crate) fn publisher(&self) -> Publisher {
        Publisher::new(self.config.clone())
    }

    pub(crate) fn intake(&self) -> Intake {
        Intake::new(self.config.clone())
    }

    /// The configuration with another way to the broker.
    pub(crate) fn config_by(&self, amqp_url: &str) -> BrokerConfig {
        BrokerConfig {
            amqp_url: amqp_url.to_owned(),
            ..self.config.clone()
        }
    }

    async fn clean_up(self) {
        let Ok(channel) = self.connection.create_channel().await else {
            return;
        };
        for queue in self.topology.queues() {
            let name = queue.name.as_str().into();
            let _ = channel
                .queue_delete(name, QueueDeleteOptions::default())
                .await;
        }
        for exchange in self.topology.exchanges() {
            let name = exchange.name.as_str().into();
            let _ = channel
                .exchange_delete(name, ExchangeDeleteOptions::default())
                .await;
        }
        let _ = self.connection.close(200, "bye".into()).await;
    }
}

pub(crate) fn hint_after(units: u32) -> Hint {
    Hint {
        delivery_id: Uuid::new_v4(),
        traceparent: None,
        delay: UNIT * units,
    }
}

pub(crate) fn hints(count: usize) -> Vec<Hint> {
    (0..count).map(|_| hint_after(0)).collect()
}

pub(crate) fn ids(hints: &[Hint]) -> BTreeSet<Uuid> {
    hints.iter().map(|hint| hint.delivery_id).collect()
}

/// Publishes and insists that every hint was confirmed.
pub(crate) async fn publish_all(publisher: &mut Publisher, hints: &[Hint]) {
    let outcomes = publisher.publish(hints).await;
    assert_eq!(outcomes, vec![Ok(()); hints.len()]);
}

/// Publishes until everything is confirmed, as a caller does while the broker is in trouble.
pub(crate) async fn publish_until_confirmed(publisher: &mut Publisher, hints: &[Hint]) {
    let mut left = hints.to_vec();
    while !left.is_empty() {
        let outcomes = publisher.publish(&left).await;
        let unconfirmed =
            |(hint, outcome): (Hint, Result<(), PublishFault>)| outcome.err().map(|_| hint);
        left = left
            .into_iter()
            .zip(outcomes)
            .filter_map(unconfirmed)
            .collect();
    }
}

pub(crate) async fn next(intake: &mut Intake) -> Result<Message> {
    timeout(PATIENCE, intake.next())
        .await
        .context("no message arrives")
}

/// Takes messages until each of these deliveries has come; acknowledges all of them.
pub(crate) async fn receive_all(intake: &mut Intake, mut expected: BTreeSet<Uuid>) -> Result<()> {
    let acks = intake.acks();
    while !expected.is_empty() {
        let message = next(intake).await?;
        expected.remove(&message.delivery_id);
        acks.ack([message.receipt]);
    }
    Ok(())
}
