//! `kurier`, the operator's command line: a table of contents. Each noun has a module of its own.
//!
//! Standard output carries one table, or one JSON document with `--json`, and nothing else. It does
//! not know SQL or AMQP, and it never prints a payload.

mod delivery;
mod doctor;
mod endpoint;
mod event;
mod input;
mod output;
mod schema;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use process::{Environment, config::EXIT_USAGE};

use crate::{
    input::{Input, UsageFaults},
    output::Output,
};

/// Operates Kurier: its schema, endpoints, events and deliveries, and its health.
#[derive(Parser)]
#[command(name = "kurier", version, arg_required_else_help = true)]
struct Cli {
    /// Print one JSON document instead of a table
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Bring the database's schema up to this program's version
    Migrate,
    /// Register, look at, pause and resume endpoints
    #[command(subcommand)]
    Endpoint(endpoint::Command),
    /// Write events by hand and see what became of them
    #[command(subcommand)]
    Event(event::Command),
    /// Look at deliveries and their attempts
    #[command(subcommand)]
    Delivery(delivery::Command),
    /// Check configuration, database and broker, and say how to mend what is wrong
    Doctor,
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: Shell,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(refusal) => return answer_without_command(&refusal),
    };
    let output = Output { json: cli.json };
    match Box::pin(run(cli.command, output)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report(&error),
    }
}

async fn run(command: Command, output: Output) -> anyhow::Result<()> {
    let input = Input::new(Environment::from_process());
    match command {
        Command::Migrate => schema::migrate(input, output).await,
        Command::Endpoint(command) => endpoint::run(command, input, output).await,
        Command::Event(command) => event::run(command, input, output).await,
        Command::Delivery(command) => delivery::run(command, input, output).await,
        Command::Doctor => Box::pin(doctor::run(output)).await,
        Command::Completions { shell } => print_completions(shell),
    }
}

fn print_completions(shell: Shell) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "kurier", &mut script);
    output::write_stdout(&script)
}

/// Help and version are answers; everything else clap says is a fault of the arguments.
fn answer_without_command(refusal: &clap::Error) -> ExitCode {
    // There is nobody left to tell if the terminal is gone.
    let _ = refusal.print();
    if refusal.use_stderr() {
        ExitCode::from(EXIT_USAGE)
    } else {
        ExitCode::SUCCESS
    }
}

fn report(error: &anyhow::Error) -> ExitCode {
    output::say(format_args!("kurier: {}", output::chain(error)));
    if error.is::<UsageFaults>() {
        ExitCode::from(EXIT_USAGE)
    } else {
        ExitCode::FAILURE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_are_declared_without_contradictions() {
        Cli::command().debug_assert();
    }
}
