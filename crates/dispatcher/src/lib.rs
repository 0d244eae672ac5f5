//! The dispatcher: claim → admit → send → judge → settle → ack.
//!
//! ```text
//!   intake ──► claim ──► admit ──► send (one task each) ──► judge ──► settle ──► ack
//!                          │                                            │
//!                          └► held, acked                               └► retry published, acked
//! ```
//!
//! It keeps nothing: what it does not finish is found again by its lease. It never names a queue and
//! contains no SQL.

mod admit;
mod claim;
mod client;
mod clock;
mod config;
mod dispatch;
mod endpoints;
mod fault;
mod judge;
mod resolver;
mod retry;
mod send;
mod settle;

use std::sync::Arc;

use anyhow::Context as _;
use broker::{Acks, Intake, Publisher, topology::Topology};
use process::{Context, Dependency, Health, Shutdown};
use rand::{SeedableRng as _, rngs::StdRng};
use signals::{DispatcherMetrics, Tracing};
use store::Store;
use tokio::sync::{mpsc, oneshot};

pub use config::{Defaults, DispatcherConfig};

use crate::{
    claim::Claimer,
    client::Client,
    dispatch::Dispatcher,
    endpoints::EndpointCache,
    retry::{Retrier, Retry},
    send::{Finished, Sender},
    settle::Settler,
};

/// Results that wait for settlement, at the most: a database that is slow slows the sending down.
const UNSETTLED_MAX: usize = 1024;
/// Retries that wait for publication, at the most.
const UNPUBLISHED_MAX: usize = 1024;

/// Runs the dispatcher within a process.
pub async fn serve(config: DispatcherConfig, mut context: Context) -> anyhow::Result<()> {
    let intake = Intake::new(config.broker.clone());
    let parts = Parts::new(config, &context, intake.acks())?;
    let (settle_tx, settle_rx) = mpsc::channel(UNSETTLED_MAX);
    let (retry_tx, retry_rx) = mpsc::channel(UNPUBLISHED_MAX);
    let (settled_tx, settled_rx) = oneshot::channel();
    let dispatcher = parts.dispatcher(intake, settle_tx)?;
    let settler = parts.settler(retry_tx);
    let retrier = parts.retrier();
    let tasks = &mut context.tasks;
    tasks.spawn("dispatch", dispatcher.run(settled_rx));
    tasks.spawn("settle", settler.run(settle_rx));
    tasks.spawn("retry", retrier.run(retry_rx, settled_tx));
    Ok(context.tasks.supervise().await?)
}

/// What the tasks are made of.
struct Parts {
    config: DispatcherConfig,
    store: Store,
    acks: Acks,
    metrics: DispatcherMetrics,
    tracing: Tracing,
    health: Health,
    shutdown: Shutdown,
}

impl Parts {
    fn new(config: DispatcherConfig, context: &Context, acks: Acks) -> anyhow::Result<Parts> {
        Ok(Parts {
            store: Store::new(&config.database)?,
            config,
            acks,
            metrics: DispatcherMetrics::new(&opentelemetry::global::meter("kurier")),
            tracing: Tracing::new(context.tracing_enabled),
            health: context.health.clone(),
            shutdown: context.shutdown.clone(),
        })
    }

    fn dispatcher(
        &self,
        intake: Intake,
        results: mpsc::Sender<Finished>,
    ) -> anyhow::Result<Dispatcher> {
        Ok(Dispatcher {
            intake,
            acks: self.acks.clone(),
            claimer: self.claimer(),
            sender: Arc::new(self.sender(results)?),
            store: self.store.clone(),
            metrics: self.metrics.clone(),
            broker: Dependency::new(self.health.clone(), "broker"),
            shutdown: self.shutdown.clone(),
            concurrency: self.config.concurrency,
            chance: seeded(),
        })
    }

    fn claimer(&self) -> Claimer {
        let DispatcherConfig {
            destinations,
            defaults,
            lease_margin,
            ..
        } = &self.config;
        Claimer {
            store: self.store.clone(),
            endpoints: EndpointCache::new(destinations.clone(), defaults.clone()),
            database: Dependency::new(self.health.clone(), "claims"),
            shutdown: self.shutdown.clone(),
            attempt_timeout: defaults.attempt_timeout,
            lease_margin: *lease_margin,
        }
    }

    fn sender(&self, results: mpsc::Sender<Finished>) -> anyhow::Result<Sender> {
        let client = Client::new(&self.config.destinations, self.config.concurrency)
            .context("cannot set up the HTTP client")?;
        Ok(Sender {
            client,
            tracing: self.tracing.clone(),
            metrics: self.metrics.clone(),
            lease_margin: self.config.lease_margin,
            acks: self.acks.clone(),
            results,
        })
    }

    fn settler(&self, retries: mpsc::Sender<Retry>) -> Settler {
        let broker = &self.config.broker;
        Settler {
            store: self.store.clone(),
            acks: self.acks.clone(),
            retries,
            metrics: self.metrics.clone(),
            database: Dependency::expected(self.health.clone(), "settlements"),
            shutdown: self.shutdown.clone(),
            horizon: Topology::new(&broker.namespace, broker.delay_unit).horizon(),
            chance: seeded(),
        }
    }

    fn retrier(&self) -> Retrier {
        Retrier {
            publisher: Publisher::new(self.config.broker.clone()),
            store: self.store.clone(),
            acks: self.acks.clone(),
            metrics: self.metrics.clone(),
        }
    }
}

/// The one place where chance comes in.
fn seeded() -> StdRng {
    StdRng::from_rng(&mut rand::make_rng::<StdRng>())
}
