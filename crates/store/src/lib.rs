//! Everything that knows SQL: one function for one statement, each statement tagged with its
//! function's name so that logs and `pg_stat_statements` name it.
//!
//! It stores verdicts and never computes one: retry rules, the breaker and the gate live in
//! `domain`. It knows nothing of HTTP and AMQP. Times are the database's own: callers hand in
//! durations, never clock readings.

mod answered;
mod attempts;
mod chores;
mod claim;
mod connect;
mod endpoints;
mod error;
mod events;
mod expand;
mod health;
mod hints;
mod listing;
mod migrate;
mod outbox;
mod release;
mod settle;
mod subscriptions;
mod sweep;
mod units;

pub use attempts::{AttemptRecord, Settled, SettledStatus};
pub use chores::Chore;
pub use claim::{Claim, Claimed, LeaseTerms, Payload};
pub use connect::{Store, StoreConfig};
pub use endpoints::{Endpoint, EndpointConfig, EndpointSecret, NewEndpoint};
pub use error::StoreError;
pub use events::{EventView, NewEvent};
pub use expand::NewDelivery;
pub use health::{Health, HealthChange, closed_breaker};
pub use hints::LostHint;
pub use listing::{AttemptView, DeliveryFilter, DeliveryView};
pub use migrate::{SchemaState, migrate};
pub use outbox::{LockedEvents, Parked, WaitingEvent};
pub use release::HeldEndpoint;
pub use settle::Settlement;
pub use subscriptions::{BreakerReading, SubscriptionRow, SubscriptionRows};
pub use sweep::SweepTerms;
