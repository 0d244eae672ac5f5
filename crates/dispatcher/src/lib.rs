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
use broker::{Intake, Publisher, topology::Topology};
use process::{Context, Dependency};
use rand::{SeedableRng as _, rngs::StdRng};
use signals::{DispatcherMetrics, Tracing};
use store::Store;
use tokio::sync::mpsc;

pub use config::{Defaults, DispatcherConfig};

use crate::{
    claim::Claimer, client::Client, dispatch::Dispatcher, endpoints::EndpointCache, retry::Retrier,
    send::Sender, settle::Settler,
};

/// Results that wait for settlement, at the most: a database that is slow slows the sending down.
const UNSETTLED_MAX: usize = 1024;
/// Retries that wait for publication, at the most.
const UNPUBLISHED_MAX: usize = 1024;

/// Runs the dispatcher within a process.
pub async fn serve(config: DispatcherConfig, mut context: Context) -> anyhow::Result<()> {
    let store = Store::new(&config.database)?;
    let metrics = DispatcherMetrics::new(&opentelemetry::global::meter("kurier"));
    let client = Client::new(&config.destinations, config.concurrency)
        .context("cannot set up the HTTP client")?;
    let intake = Intake::new(config.broker.clone());
    let acks = intake.acks();
    let health = &context.health;
    let dependency = |name| Dependency::new(health.clone(), name);

    let (settle_tx, settle_rx) = mpsc::channel(UNSETTLED_MAX);
    let (retry_tx, retry_rx) = mpsc::channel(UNPUBLISHED_MAX);
    let sender = Sender {
        client,
        tracing: Tracing::new(context.tracing_enabled),
        metrics: metrics.clone(),
        lease_margin: config.lease_margin,
        acks: acks.clone(),
        results: settle_tx,
    };
    let claimer = Claimer {
        store: store.clone(),
        endpoints: EndpointCache::new(config.destinations.clone(), config.defaults.clone()),
        database: dependency("claims"),
        shutdown: context.shutdown.clone(),
        attempt_timeout: config.defaults.attempt_timeout,
        lease_margin: config.lease_margin,
    };
    let dispatcher = Dispatcher {
        intake,
        acks: acks.clone(),
        claimer,
        sender: Arc::new(sender),
        store: store.clone(),
        metrics: metrics.clone(),
        broker: dependency("broker"),
        shutdown: context.shutdown.clone(),
        concurrency: config.concurrency,
        chance: seeded(),
    };
    let settler = Settler {
        store: store.clone(),
        acks: acks.clone(),
        retries: retry_tx,
        metrics: metrics.clone(),
        database: Dependency::expected(health.clone(), "settlements"),
        shutdown: context.shutdown.clone(),
        horizon: Topology::new(&config.broker.namespace, config.broker.delay_unit).horizon(),
        chance: seeded(),
    };
    let retrier = Retrier {
        publisher: Publisher::new(config.broker),
        store,
        acks,
        metrics,
    };
    let (settled_tx, settled_rx) = tokio::sync::oneshot::channel();
    context.tasks.spawn("dispatch", dispatcher.run(settled_rx));
    context.tasks.spawn("settle", settler.run(settle_rx));
    context
        .tasks
        .spawn("retry", retrier.run(retry_rx, settled_tx));
    Ok(context.tasks.supervise().await?)
}

/// The one place where chance comes in.
fn seeded() -> StdRng {
    StdRng::from_rng(&mut rand::make_rng::<StdRng>())
}
