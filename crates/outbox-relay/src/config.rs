//! What the relay reads from its environment.

use broker::BrokerConfig;
use process::Environment;
use settings::RelaySettings;
use store::StoreConfig;

/// Connections to the database: the locked outbox rows, the deliveries beside them, the chores, and
/// one to spare.
const CONNECTIONS_MAX: u32 = 4;

/// The relay's configuration.
pub struct RelayConfig {
    /// The database.
    pub database: StoreConfig,
    /// The broker.
    pub broker: BrokerConfig,
    /// Batch sizes and intervals.
    pub settings: RelaySettings,
    /// Attempts of deliveries to endpoints that have no limit of their own.
    pub max_attempts: u32,
    /// Largest payload that is sent.
    pub payload_bytes_max: u64,
}

impl RelayConfig {
    /// Reads it all; faults are collected in `env`.
    pub fn read(env: &mut Environment) -> RelayConfig {
        let config = RelayConfig {
            database: settings::database(env, "outbox-relay", CONNECTIONS_MAX),
            broker: settings::broker(env, "outbox-relay"),
            settings: settings::relay(env),
            max_attempts: settings::max_attempts(env),
            payload_bytes_max: settings::payload_bytes_max(env),
        };
        settings::refuse_misspelt(env);
        config
    }
}
