//! The life of one process: its configuration, logs and telemetry, signals and tasks, and health.
//!
//! Nothing here knows what the process is for. A program gives [`run`] its way to read a
//! configuration and its body; everything around them is the same for every program.

pub mod backoff;
pub mod config;
pub mod dependency;
pub mod failpoint;
pub mod health;
pub mod lifecycle;
pub mod telemetry;

mod program;

pub use config::Environment;
pub use dependency::Dependency;
pub use health::Health;
pub use lifecycle::{Shutdown, Tasks};
pub use program::{Context, ProgramInfo, run};
pub use telemetry::Telemetry;
