//! What the dispatcher reads from its environment.

use std::time::Duration;

use broker::BrokerConfig;
use domain::{breaker::BreakerLimits, destination::DestinationPolicy, retry::RetryPolicy};
use process::Environment;
use store::StoreConfig;

/// Connections to the database: claims, settlements, holds and probes, and one to spare.
const CONNECTIONS_MAX: u32 = 4;

/// The dispatcher's configuration.
pub struct DispatcherConfig {
    /// The database.
    pub database: StoreConfig,
    /// The broker.
    pub broker: BrokerConfig,
    /// Which addresses may be called.
    pub destinations: DestinationPolicy,
    /// What endpoints that do not say otherwise go by.
    pub defaults: Defaults,
    /// Attempts at once.
    pub concurrency: u16,
    /// How much longer than the attempt limit a lease lasts.
    pub lease_margin: Duration,
}

/// The installation's defaults for what an endpoint may set itself.
#[derive(Debug, Clone)]
pub struct Defaults {
    /// Limit of one attempt.
    pub attempt_timeout: Duration,
    /// When to try again.
    pub retry: RetryPolicy,
    /// When to stop calling.
    pub breaker: BreakerLimits,
}

impl DispatcherConfig {
    /// Reads it all; faults are collected in `env`.
    pub fn read(env: &mut Environment) -> DispatcherConfig {
        let concurrency = settings::dispatch_concurrency(env);
        let broker = BrokerConfig {
            // Enough that the next batch is already here when attempts end.
            prefetch: concurrency.saturating_mul(2),
            ..settings::broker(env, "dispatcher")
        };
        let config = DispatcherConfig {
            database: settings::database(env, "dispatcher", CONNECTIONS_MAX),
            broker,
            destinations: settings::destinations(env),
            defaults: Defaults {
                attempt_timeout: settings::attempt_timeout(env),
                retry: settings::retry(env),
                breaker: settings::breaker(env),
            },
            concurrency,
            lease_margin: settings::lease_margin(env),
        };
        settings::refuse_misspelt(env);
        config
    }
}
