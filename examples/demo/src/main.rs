//! The program `demo`: its arguments, and an exit code that says whether everything is accounted for.

use std::process::ExitCode;

use clap::Parser;
use process::config::{ConfigFaults, EXIT_USAGE};

/// Delivers real events to a receiver with every kind of trouble, and checks that nothing got lost.
///
/// Needs `DATABASE_URL` and `AMQP_URL`; works in a database and a broker namespace of its own, which
/// are removed at the end.
#[derive(Parser)]
struct Arguments {
    /// Leave everything running when the demo is over, until Ctrl-C.
    #[arg(long)]
    keep: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match Box::pin(demo::run(arguments.keep)).await {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("demo: {error:#}");
            exit_code(&error)
        }
    }
}

fn exit_code(error: &anyhow::Error) -> ExitCode {
    if error.is::<ConfigFaults>() {
        ExitCode::from(EXIT_USAGE)
    } else {
        ExitCode::FAILURE
    }
}
