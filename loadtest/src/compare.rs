//! `loadtest compare`: the same backlog through the bare loop and through Kurier; their ratio is the headline figure.

use serde::Serialize;

use crate::cli::{CompareOptions, Rate, RunOptions};
use crate::measurement::{Measurement, table};
use crate::run::Report;
use crate::services::Services;
use crate::{limit, run};

#[derive(Serialize)]
struct Comparison {
    bare_loop: Measurement,
    kurier: Report,
    /// Kurier's deliveries a second for each of the bare loop's.
    ratio: f64,
}

/// Measures both and prints them with their ratio.
pub(crate) async fn compare(options: &CompareOptions) -> anyhow::Result<()> {
    let services = Services::find(&options.services)?;
    let bare_loop = limit::bare_loop(&services, options.events, options.payload_bytes);
    let bare_loop = Box::pin(bare_loop).await?;
    let kurier = run::measure(&services, &drain_of(options)).await?;
    let ratio = kurier.drain.per_second / bare_loop.per_second;
    print(
        &Comparison {
            bare_loop,
            kurier,
            ratio,
        },
        options.json,
    )
}

fn print(comparison: &Comparison, json: bool) -> anyhow::Result<()> {
    if json {
        println!("{}", serde_json::to_string_pretty(comparison)?);
    } else {
        println!("{}\n", table(std::slice::from_ref(&comparison.bare_loop)));
        println!("{}\n", comparison.kurier);
        println!("ratio: {:.2}", comparison.ratio);
    }
    Ok(())
}

/// One relay, one dispatcher and one endpoint that always accepts.
fn drain_of(options: &CompareOptions) -> RunOptions {
    RunOptions {
        services: options.services.clone(),
        events: options.events,
        payload_bytes: options.payload_bytes,
        endpoints: 1,
        rate: Rate::Max,
        relays: 1,
        dispatchers: 1,
        scripts: Vec::new(),
        stored: true,
        patience_seconds: 60,
        json: options.json,
    }
}
