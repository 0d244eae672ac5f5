//! The command line. Values are checked here, so that the rest takes them as given.

use std::str::FromStr;

use clap::{Args, Parser, Subcommand};

use crate::script::EndpointScript;

/// What the bare parts can do on this machine, and how near Kurier comes.
#[derive(Parser)]
#[command(name = "loadtest", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Measures the bare parts, one by one and together, without any of Kurier's own code.
    Limit(LimitOptions),
    /// Runs relay, dispatchers and a receiver under load, in a database and broker namespace of their own.
    Run(RunOptions),
    /// Drains the same backlog through the bare loop and through Kurier, and prints the ratio.
    Compare(CompareOptions),
    /// The receiver the other commands start as a process of its own.
    #[command(hide = true)]
    Receiver(ReceiverOptions),
}

/// The services under load.
#[derive(Args, Clone)]
pub(crate) struct ServiceOptions {
    /// PostgreSQL server; the user must be allowed to create databases.
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    pub(crate) database_url: String,
    /// RabbitMQ server.
    #[arg(long, env = "AMQP_URL", hide_env_values = true)]
    pub(crate) amqp_url: String,
    /// Process whose tree counts as PostgreSQL; found by the port it listens on when not given.
    #[arg(long, env = "KURIER_POSTGRES_PID")]
    pub(crate) postgres_pid: Option<u32>,
    /// Process whose tree counts as RabbitMQ; found by the port it listens on when not given.
    #[arg(long, env = "KURIER_RABBITMQ_PID")]
    pub(crate) rabbitmq_pid: Option<u32>,
}

#[derive(Args)]
pub(crate) struct LimitOptions {
    #[command(flatten)]
    pub(crate) services: ServiceOptions,
    /// Rows, messages or requests of each measurement.
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) count: u32,
    /// Size of each event's payload.
    #[arg(long, default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(12..))]
    pub(crate) payload_bytes: u32,
    /// Print one JSON document instead of the table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args, Clone)]
pub(crate) struct RunOptions {
    #[command(flatten)]
    pub(crate) services: ServiceOptions,
    /// How many events to write.
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) events: u32,
    /// Size of each event's payload.
    #[arg(long, default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(12..))]
    pub(crate) payload_bytes: u32,
    /// Endpoints, each subscribed to every event.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) endpoints: u32,
    /// Events written a second, or `max`.
    #[arg(long, default_value = "max", conflicts_with = "stored")]
    pub(crate) rate: Rate,
    /// Relay processes.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) relays: u32,
    /// Dispatcher processes.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) dispatchers: u32,
    /// What the next endpoint does: `ok`, `fail:P`, `hang:P` (share of requests, 0 to 1) or `latency:MS`.
    #[arg(long = "script", value_name = "SCRIPT")]
    pub(crate) scripts: Vec<EndpointScript>,
    /// Store all events before the relays start: a drain test.
    #[arg(long)]
    pub(crate) stored: bool,
    /// Give up when nothing has moved for this long.
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) patience_seconds: u64,
    /// Print one JSON document instead of the table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct CompareOptions {
    #[command(flatten)]
    pub(crate) services: ServiceOptions,
    /// How many events to drain, by each of the two.
    #[arg(long, default_value_t = 50_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) events: u32,
    /// Size of each event's payload.
    #[arg(long, default_value_t = 1_024, value_parser = clap::value_parser!(u32).range(12..))]
    pub(crate) payload_bytes: u32,
    /// Print one JSON document instead of the tables.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Args)]
pub(crate) struct ReceiverOptions {
    /// Loopback port; 0 for a free one.
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,
    /// The script of path `/0`, then of `/1` and so on; every other path answers 200.
    #[arg(long = "script")]
    pub(crate) scripts: Vec<EndpointScript>,
}

/// How fast events are written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rate {
    /// As fast as one connection takes them.
    Max,
    /// So many a second.
    PerSecond(f64),
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "max" {
            return Ok(Self::Max);
        }
        match text.parse::<f64>() {
            Ok(rate) if rate.is_finite() && rate > 0.0 => Ok(Self::PerSecond(rate)),
            _ => Err("a rate is `max` or a number above 0".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_rate_is_max_or_above_zero() {
        assert_eq!("max".parse(), Ok(Rate::Max));
        assert_eq!("2.5".parse(), Ok(Rate::PerSecond(2.5)));
        for text in ["0", "-1", "inf", "NaN", "fast"] {
            assert!(text.parse::<Rate>().is_err(), "{text}");
        }
    }
}
