//! Every decision the product takes, as pure functions: what an attempt's outcome means, when to
//! try again, whether an endpoint may be called, where it may point, and how a body is signed.
//!
//! Nothing here does I/O, reads a clock or the environment, or draws a random number: time and
//! chance are arguments, so every decision can be repeated exactly.

pub mod breaker;
pub mod delivery;
pub mod destination;
pub mod event_type;
pub mod gate;
pub mod judge;
mod names;
pub mod outcome;
pub mod retry;
pub mod retry_after;
pub mod signing;
pub mod text;

pub use names::UnknownName;
pub use retry_after::RETRY_AFTER_MAX;
pub use text::{ERROR_TEXT_CHARS_MAX, RESPONSE_CAPTURE_BYTES_MAX};
