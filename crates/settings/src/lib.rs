//! Every `KURIER_*` variable the programs read: name, unit, default and range, in one place.
//!
//! A program asks for the groups it needs; the same variable means the same everywhere. Reading the
//! environment itself is left to `process`. Faults are collected there and told all at once.

use std::{ops::RangeInclusive, time::Duration};

use broker::BrokerConfig;
use domain::{breaker::BreakerLimits, destination::DestinationPolicy, retry::RetryPolicy};
use process::Environment;
use store::StoreConfig;

mod catalogue;

pub use catalogue::{VARIABLES, Variable};

const MILLISECOND: Duration = Duration::from_millis(1);
const DAY: Duration = Duration::from_hours(24);

/// Largest payload that can be configured: RabbitMQ never sees it, but dispatchers hold it in memory.
const PAYLOAD_BYTES_CEILING: u64 = 64 * 1024 * 1024;

/// The database: `DATABASE_URL`, and at most `connections_max` connections.
pub fn database(
    env: &mut Environment,
    application_name: &'static str,
    connections_max: u32,
) -> StoreConfig {
    StoreConfig {
        database_url: env.text("DATABASE_URL"),
        application_name,
        connections_max,
    }
}

/// The broker: `AMQP_URL`, the namespace of its names, and the delay unit.
pub fn broker(env: &mut Environment, connection_name: &str) -> BrokerConfig {
    let amqp_url = env.text("AMQP_URL");
    let defaults = BrokerConfig::new(amqp_url);
    let config = BrokerConfig {
        namespace: env.parsed_with(
            "KURIER_BROKER_NAMESPACE",
            defaults.namespace.clone(),
            "1 to 64 letters, digits, '-', '_' and '.'",
            namespace,
        ),
        delay_unit: env.duration_ms(
            "KURIER_DELAY_UNIT_MS",
            defaults.delay_unit,
            MILLISECOND..=Duration::from_mins(1),
        ),
        confirm_timeout: env.duration_ms(
            "KURIER_CONFIRM_TIMEOUT_MS",
            defaults.confirm_timeout,
            Duration::from_millis(100)..=Duration::from_secs(30),
        ),
        connection_name: connection_name.to_owned(),
        ..defaults
    };
    if !config.amqp_url.is_empty() && config.check().is_err() {
        env.report(
            "AMQP_URL",
            "is not a valid address",
            "amqp://user:password@host:5672/vhost",
        );
    }
    config
}

fn namespace(text: &str) -> Result<String, &'static str> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if text.len() <= 64 && text.chars().all(allowed) {
        Ok(text.to_owned())
    } else {
        Err("not a name for queues and exchanges")
    }
}

/// Attempts a delivery may use up where its endpoint does not say.
pub fn max_attempts(env: &mut Environment) -> u32 {
    env.integer("KURIER_MAX_ATTEMPTS", 5, 1..=1000)
}

/// Limit of one attempt, from connect to the last byte, where its endpoint does not say.
pub fn attempt_timeout(env: &mut Environment) -> Duration {
    env.duration_ms(
        "KURIER_ATTEMPT_TIMEOUT_MS",
        Duration::from_secs(15),
        MILLISECOND..=Duration::from_mins(10),
    )
}

/// Base and cap of the exponential backoff where the endpoint does not say.
pub fn retry(env: &mut Environment) -> RetryPolicy {
    RetryPolicy::FullJitter {
        base: env.duration_ms(
            "KURIER_RETRY_BASE_MS",
            Duration::from_secs(30),
            Duration::ZERO..=DAY,
        ),
        cap: env.duration_ms(
            "KURIER_RETRY_CAP_MS",
            Duration::from_hours(1),
            Duration::ZERO..=DAY,
        ),
    }
}

/// When a breaker opens and for how long, where the endpoint does not say.
pub fn breaker(env: &mut Environment) -> BreakerLimits {
    let cooldowns: RangeInclusive<Duration> = MILLISECOND..=DAY;
    let limits = BreakerLimits {
        failure_threshold: env.integer("KURIER_BREAKER_THRESHOLD", 10, 1..=1_000_000),
        cooldown: env.duration_ms(
            "KURIER_BREAKER_COOLDOWN_MS",
            Duration::from_mins(5),
            cooldowns.clone(),
        ),
        cooldown_cap: env.duration_ms(
            "KURIER_BREAKER_COOLDOWN_CAP_MS",
            Duration::from_hours(1),
            cooldowns,
        ),
    };
    if limits.cooldown_cap < limits.cooldown {
        env.report(
            "KURIER_BREAKER_COOLDOWN_CAP_MS",
            "is shorter than KURIER_BREAKER_COOLDOWN_MS",
            "at least the first cooldown",
        );
    }
    limits
}

/// Which addresses may be called.
pub fn destinations(env: &mut Environment) -> DestinationPolicy {
    DestinationPolicy {
        allowed_networks: env.list("KURIER_ALLOWED_NETWORKS"),
        allow_http: env.flag("KURIER_ALLOW_HTTP", false),
    }
}

/// Largest payload in bytes; what is larger is set aside, never sent.
pub fn payload_bytes_max(env: &mut Environment) -> u64 {
    env.integer(
        "KURIER_PAYLOAD_BYTES_MAX",
        1024 * 1024,
        1..=PAYLOAD_BYTES_CEILING,
    )
}

/// How the relay works through the outbox and looks after deliveries.
#[derive(Debug, Clone, Copy)]
pub struct RelaySettings {
    /// Events of one turn.
    pub batch: u32,
    /// How often the sweep looks for what stands still.
    pub sweep_interval: Duration,
    /// How long past its time a message may be before it counts as lost.
    pub sweep_grace: Duration,
    /// How often held deliveries are looked at.
    pub release_interval: Duration,
    /// How long a delivery may be held.
    pub held_age_max: Duration,
    /// How many days of finished deliveries and their payloads are kept.
    pub retention_days: u32,
}

/// The relay's own settings.
pub fn relay(env: &mut Environment) -> RelaySettings {
    let interval = Duration::from_millis(10)..=Duration::from_mins(10);
    RelaySettings {
        batch: env.integer("KURIER_RELAY_BATCH", 500, 1..=1000),
        sweep_interval: env.duration_ms(
            "KURIER_SWEEP_INTERVAL_MS",
            Duration::from_secs(5),
            interval.clone(),
        ),
        sweep_grace: env.duration_ms(
            "KURIER_SWEEP_GRACE_MS",
            Duration::from_secs(30),
            Duration::from_millis(100)..=Duration::from_hours(1),
        ),
        release_interval: env.duration_ms(
            "KURIER_RELEASE_INTERVAL_MS",
            Duration::from_secs(1),
            interval,
        ),
        held_age_max: env.duration_ms(
            "KURIER_HELD_AGE_MAX_MS",
            Duration::from_hours(72),
            Duration::from_secs(1)..=Duration::from_hours(24 * 365),
        ),
        retention_days: env.integer("KURIER_RETENTION_DAYS", 30, 1..=3650),
    }
}

/// Attempts one dispatcher runs at once. With the payload's cap it bounds the memory it needs.
pub fn dispatch_concurrency(env: &mut Environment) -> u16 {
    env.integer("KURIER_DISPATCH_CONCURRENCY", 256, 1..=8192)
}

/// How much longer than the attempt limit a lease lasts: an attempt that could not start within it
/// is left to others.
pub fn lease_margin(env: &mut Environment) -> Duration {
    env.duration_ms(
        "KURIER_LEASE_MARGIN_MS",
        Duration::from_secs(10),
        Duration::from_millis(100)..=Duration::from_mins(10),
    )
}

/// Refuses `KURIER_*` variables that look like a misspelling of one of ours. Call it last.
pub fn refuse_misspelt(env: &mut Environment) {
    let names: Vec<&str> = VARIABLES.iter().map(|variable| variable.name).collect();
    env.refuse_misspelt("KURIER_", &names);
}
