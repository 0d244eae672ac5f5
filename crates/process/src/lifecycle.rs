//! How a process stops: signals, the two stages of shutdown, and the tasks that must not end before.
//!
//! First the process drains: it takes no new work and finishes what it has. A second signal, or the
//! end of the grace period, aborts what is still running. Nothing here decides what draining means
//! for a piece of work.

mod shutdown;
mod tasks;

pub use shutdown::Shutdown;
pub(crate) use shutdown::watch_signals;
pub use tasks::{TaskFault, Tasks};
