//! The program `dispatcher`: configuration, and the dispatcher around it.

use std::process::ExitCode;

use clap::Parser;
use dispatcher::{DispatcherConfig, serve};
use process::ProgramInfo;

/// Takes deliveries from the broker and sends them, signed. Stateless: run as many as needed.
/// Configured by environment variables.
#[derive(Parser)]
#[command(version)]
struct Arguments {}

const PROGRAM: ProgramInfo = ProgramInfo {
    name: "dispatcher",
    version: env!("CARGO_PKG_VERSION"),
};

fn main() -> ExitCode {
    let Arguments {} = Arguments::parse();
    process::run(PROGRAM, DispatcherConfig::read, serve)
}
