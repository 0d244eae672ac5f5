//! `loadtest run`: the real programs under load, in a database and a broker namespace made for this run.

mod database;
mod namespace;
mod programs;
mod progress;
mod report;
mod stage;
mod writer;

pub(crate) use report::Report;

use crate::cli::RunOptions;
use crate::services::Services;
use stage::Stage;

/// Runs the load and prints what came of it.
pub(crate) async fn run(options: &RunOptions) -> anyhow::Result<()> {
    let services = Services::find(&options.services)?;
    let report = measure(&services, options).await?;
    if options.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        println!("{report}");
    }
    Ok(())
}

/// Runs the load and removes everything it made, whether it went well or not.
pub(crate) async fn measure(services: &Services, options: &RunOptions) -> anyhow::Result<Report> {
    let mut stage = Stage::set_up(services, options).await?;
    let report = stage.play(services, options).await;
    let torn_down = stage.tear_down(services).await;
    report.and_then(|report| torn_down.map(|()| report))
}
