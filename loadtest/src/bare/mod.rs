//! The bare parts: the statements, messages and requests a delivery cannot do without, and nothing around them.
//!
//! No breaker, no limit, no retry, no recovery, no telemetry: the first failure ends the measurement. What remains is
//! well batched, since Kurier is held against it.

mod backlog;
mod dispatch;
mod queue;
mod relay;
mod store;

pub(crate) use backlog::{drain, new_ids, payload, store_events};
pub(crate) use queue::{BareQueue, ack_up_to};
pub(crate) use store::{BareStore, Settlement};

/// Rows or messages of one batch.
pub(crate) const BATCH_SIZE: usize = 200;

/// Deliveries taken and not yet acknowledged.
pub(crate) const PREFETCH: u16 = 500;
