//! The demo: a shop writes orders, Kurier delivers their events to five endpoints of which four give
//! trouble, and in the end every order is accounted for.
//!
//! It plays the application, the receivers and the operator; all that Kurier does is done by the real
//! programs. Whatever way it ends, the programs are stopped and what it created is removed.

mod audit;
mod database;
mod endpoints;
mod namespace;
mod programs;
mod screen;
mod services;
mod shop;
mod stage;
mod state;
mod stop;
mod summary;

use std::time::Duration;

use anyhow::{anyhow, bail};
use tokio::time::{Instant, MissedTickBehavior, interval};

pub use programs::Programs;
pub use services::Services;
pub use stage::Stage;

use crate::{endpoints::PARTS, screen::Screen, shop::Shop, state::State, stop::Stop};

/// One look at the deliveries; every fourth writes an order.
const TICK: Duration = Duration::from_millis(200);
const TICKS_PER_ORDER: u64 = 4;

/// What has not come to rest by then never will.
const STORY_TIME_MAX: Duration = Duration::from_mins(1);

/// Runs the demo and prints it. Whether everything is accounted for is the result.
pub async fn run(keep: bool) -> anyhow::Result<bool> {
    let mut stage = Stage::new(Services::from_environment()?)?;
    let mut stop = Stop::listen()?;
    let ended = tokio::select! {
        ended = play(&mut stage) => ended,
        () = stop.asked() => Err(anyhow!("interrupted")),
    };
    if keep && ended.is_ok() {
        println!("{}", stage.how_to_look_around()?);
        stop.asked().await;
    }
    println!("removing what the demo created");
    match (ended, stage.clear().await) {
        (ended, Ok(())) => ended,
        (Ok(_), Err(left)) => Err(left.context("not everything could be removed")),
        (Err(error), Err(left)) => Err(error.context(format!("{left:#}; and before that"))),
    }
}

/// From an empty stage to the summary.
async fn play(stage: &mut Stage) -> anyhow::Result<bool> {
    println!("database and broker namespace: {}", stage.name());
    let pool = stage.create_database().await?;
    println!("kurier migrate");
    stage.programs().kurier(&["migrate"]).await?;
    for part in PARTS {
        println!("kurier endpoint add: {}, which {}", part.name, part.conduct);
        part.register(stage).await?;
    }
    println!("starting outbox-relay and dispatcher\n");
    stage.start_programs()?;
    let mut shop = Shop::open(pool.clone()).await?;
    let last = tell(stage, &mut shop, &pool).await?;
    let audit = audit::audit(&audit::facts(stage, &pool, &shop).await?);
    println!("\n{}", summary::text(&shop, &last, &audit));
    Ok(audit.nothing_is_wrong())
}

/// Writes all orders and shows what becomes of them, until everything has come to rest.
async fn tell(stage: &mut Stage, shop: &mut Shop, pool: &sqlx::PgPool) -> anyhow::Result<State> {
    let started = Instant::now();
    let mut screen = Screen::new();
    let mut ticks = interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for tick in 0_u64.. {
        ticks.tick().await;
        if tick.is_multiple_of(TICKS_PER_ORDER) {
            shop.write_next_order().await?;
        }
        stage.ensure_programs_run()?;
        let now = state::read(pool).await?;
        screen.show(&now, shop, started.elapsed())?;
        if shop.is_closed() && now.is_at_rest() {
            return Ok(now);
        }
        if started.elapsed() > STORY_TIME_MAX {
            break;
        }
    }
    bail!("deliveries did not come to rest within {STORY_TIME_MAX:?}")
}
