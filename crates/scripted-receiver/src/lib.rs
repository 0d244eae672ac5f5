//! A webhook endpoint whose behaviour is written down beforehand: for tests, the demo and the load test.
//!
//! Every path of one loopback listener follows its own script, one reply for each request, the last one for ever.
//! What arrives is recorded, and whoever waits for it awaits a signal. The receiver checks nothing: it verifies no
//! signature and judges no request, that is for the test to do.
//!
//! ```no_run
//! # async fn example() -> std::io::Result<()> {
//! use scripted_receiver::{Receiver, Reply};
//!
//! let receiver = Receiver::start().await?;
//! receiver.script("/orders", [Reply::status(500), Reply::hang(), Reply::ok()]);
//! // ... have something sent to `receiver.url("/orders")` ...
//! let requests = receiver.wait_for("/orders", 3).await;
//! assert_eq!(requests[0].webhook_id(), requests[2].webhook_id());
//! # Ok(())
//! # }
//! ```

mod body;
mod ledger;
mod receiver;
mod reply;
mod request;
mod script;
mod serve;

pub use ledger::Tally;
pub use receiver::{Receiver, WAIT_MAX};
pub use reply::{Gate, Reply};
pub use request::Request;
pub use script::Script;
pub use serve::BODY_BYTES_MAX;
