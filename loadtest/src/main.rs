//! Load tests whose results are ratios: what Kurier does against what its bare parts can do on the same machine.
//!
//! Measures only. It judges no figure and keeps none.

mod bare;
mod cli;
mod compare;
mod cpu;
mod limit;
mod listening;
mod measurement;
mod receiver;
mod run;
mod script;
mod send;
mod services;

use std::process::ExitCode;

use clap::Parser;
use tokio::runtime::{Builder, Runtime};

use crate::cli::{Cli, Command};

fn main() -> ExitCode {
    match measure(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure(command: Command) -> anyhow::Result<()> {
    let runtime = runtime_for(&command)?;
    match command {
        Command::Limit(options) => runtime.block_on(limit::limit(&options)),
        Command::Run(options) => runtime.block_on(run::run(&options)),
        Command::Compare(options) => runtime.block_on(compare::compare(&options)),
        Command::Receiver(options) => runtime.block_on(receiver::serve(&options)),
    }
}

/// The receiver gets one thread: it must never be able to take both cores from what is measured.
fn runtime_for(command: &Command) -> std::io::Result<Runtime> {
    let mut builder = match command {
        Command::Receiver(_) => Builder::new_current_thread(),
        _ => Builder::new_multi_thread(),
    };
    builder.enable_all().build()
}
