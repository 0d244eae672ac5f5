//! What Kurier promises its users, each promise held against the real programs.

mod bad_input;
mod breaker;
mod fan_out;
mod judging;
mod pause;
mod payload;
mod readme;
mod replicas;
mod retries;
mod shutdown;
mod tracing;
