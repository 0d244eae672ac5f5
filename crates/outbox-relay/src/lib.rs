//! The outbox relay: takes committed events, writes a delivery for each subscribed endpoint, has the
//! broker confirm a message for each, and only then marks the event processed. Beside that it does
//! the chores: the sweep, the release of held deliveries, and the partitions' upkeep.
//!
//! It knows no secrets of endpoints and speaks no HTTP. Several relays may run: rows are locked,
//! chores are taken by one of them at a time.

mod chores;
mod config;
mod expand;
mod repeat;
mod subscribers;
mod turn;

use anyhow::Context as _;
use process::{Context, Dependency};
use signals::{RelayMetrics, Tracing};
use store::Store;

pub use chores::Chores;
pub use config::RelayConfig;
pub use turn::{Relay, Turn};

/// How long the program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Until it is told to stop.
    Forever,
    /// Until nothing is left to do.
    Once,
}

/// Runs the relay within a process.
pub async fn serve(config: RelayConfig, mut context: Context, mode: Mode) -> anyhow::Result<()> {
    let store = Store::new(&config.database)?;
    let metrics = RelayMetrics::new(&opentelemetry::global::meter("kurier"));
    let tracing = Tracing::new(context.tracing_enabled);
    let relay = Relay::new(store.clone(), &config, tracing, metrics.clone());
    let chores = Chores::new(store, &config, metrics);
    if mode == Mode::Once {
        drain(relay, chores).await?;
        context.shutdown.drain();
        return Ok(());
    }
    let outbox = Dependency::new(context.health.clone(), "outbox");
    let upkeep = Dependency::new(context.health.clone(), "upkeep");
    context.tasks.spawn(
        "relay",
        repeat::turns(relay, context.shutdown.clone(), outbox),
    );
    context.tasks.spawn(
        "chores",
        repeat::chores(chores, context.shutdown.clone(), upkeep),
    );
    Ok(context.tasks.supervise().await?)
}

/// Works until a turn finds nothing, then does every chore once.
async fn drain(mut relay: Relay, mut chores: Chores) -> anyhow::Result<()> {
    while relay.step().await.context("cannot drain the outbox")? != Turn::Idle {}
    chores.all().await.context("cannot do the chores")?;
    relay.close().await;
    chores.close().await;
    Ok(())
}
