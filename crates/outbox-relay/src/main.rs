//! The program `outbox-relay`: arguments, configuration, and the relay around them.

use std::process::ExitCode;

use clap::Parser;
use outbox_relay::{Mode, RelayConfig, serve};
use process::ProgramInfo;

/// Moves committed events from the outbox to the broker, and looks after deliveries that should be
/// moving and are not. Configured by environment variables.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Drain what is there, do every chore once, and exit 0.
    #[arg(long)]
    once: bool,
}

const PROGRAM: ProgramInfo = ProgramInfo {
    name: "outbox-relay",
    version: env!("CARGO_PKG_VERSION"),
};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let mode = if arguments.once {
        Mode::Once
    } else {
        Mode::Forever
    };
    process::run(PROGRAM, RelayConfig::read, |config, context| {
        serve(config, context, mode)
    })
}
