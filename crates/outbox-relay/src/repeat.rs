//! The loops around a turn and around the chores: pace, backoff and stopping.

use std::time::Duration;

use process::{Dependency, Shutdown, backoff::Backoff};

use crate::{
    Chores, Relay, Turn,
    turn::{IDLE_WAIT_CAP, IDLE_WAIT_FIRST},
};

/// Takes turns until the process drains; the turn under way is finished.
pub(crate) async fn turns(
    mut relay: Relay,
    shutdown: Shutdown,
    mut outbox: Dependency,
) -> anyhow::Result<()> {
    let mut idle = Backoff::new(IDLE_WAIT_FIRST, IDLE_WAIT_CAP);
    while !shutdown.is_draining() {
        let wait = match relay.step().await {
            Ok(turn) => {
                outbox.succeeded();
                wait_after(turn, &mut idle)
            }
            Err(error) => outbox.failed(&error),
        };
        pause(wait, &shutdown).await;
    }
    relay.close().await;
    Ok(())
}

fn wait_after(turn: Turn, idle: &mut Backoff) -> Duration {
    match turn {
        Turn::Idle => idle.next_delay(),
        Turn::Worked => {
            idle.reset();
            Duration::ZERO
        }
    }
}

/// Does the chores until the process drains.
pub(crate) async fn chores(
    mut chores: Chores,
    shutdown: Shutdown,
    mut upkeep: Dependency,
) -> anyhow::Result<()> {
    let pace = chores.pace();
    while !shutdown.is_draining() {
        let wait = match chores.step().await {
            Ok(()) => {
                upkeep.succeeded();
                pace
            }
            Err(error) => upkeep.failed(&error),
        };
        pause(wait, &shutdown).await;
    }
    chores.close().await;
    Ok(())
}

async fn pause(wait: Duration, shutdown: &Shutdown) {
    tokio::select! {
        () = tokio::time::sleep(wait) => {}
        () = shutdown.draining() => {}
    }
}
