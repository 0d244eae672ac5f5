//! The catalogue of what the programs tell about themselves: every metric and span name, the labels
//! each may carry, and the typed ways to record them.
//!
//! It does not export anything and does not know an exporter: it speaks to the OpenTelemetry API
//! only. Nothing here accepts free text as a metric label, and no span attribute takes a path, a
//! query or a payload.

pub mod labels;
pub mod metrics;
pub mod names;
pub mod trace;
pub mod traceparent;

pub use metrics::{DispatcherMetrics, RelayMetrics};
pub use trace::{ActiveSpan, Origin, Tracing};
pub use traceparent::TraceContext;
