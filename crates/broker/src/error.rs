//! What can go wrong between this process and the broker. Nothing here carries an address or a
//! credential.

use std::time::Duration;

/// Why the broker could not be used.
#[derive(Debug, thiserror::Error)]
pub enum BrokerError {
    /// The configuration can never work; the process should not start with it.
    #[error("broker configuration: {0}")]
    Configuration(&'static str),
    /// An entity of the same name exists with other properties; someone must remove or rename it.
    #[error("the broker refuses the topology: {0}")]
    Conflict(String),
    /// The broker did not answer in time; it may have acted nevertheless.
    #[error("the broker did not answer within {0:?}")]
    TimedOut(Duration),
    /// The broker is away, or ended the connection or channel.
    #[error("the broker cannot be used: {0}")]
    Unavailable(String),
}

impl From<lapin::Error> for BrokerError {
    fn from(error: lapin::Error) -> Self {
        if amqp_reply_code(&error) == Some(PRECONDITION_FAILED) {
            return Self::Conflict(error.to_string());
        }
        Self::Unavailable(error.to_string())
    }
}

const NOT_FOUND: u16 = 404;
const PRECONDITION_FAILED: u16 = 406;

/// Whether the broker said that the named entity does not exist.
pub(crate) fn is_not_found(error: &lapin::Error) -> bool {
    amqp_reply_code(error) == Some(NOT_FOUND)
}

fn amqp_reply_code(error: &lapin::Error) -> Option<u16> {
    match error.kind() {
        lapin::ErrorKind::ProtocolError(reply) => Some(reply.get_id()),
        _ => None,
    }
}

/// Why one hint is not known to be safe with the broker. Publishing it again is always allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublishFault {
    /// No queue was bound where the message went.
    #[error("the message was returned: no queue takes it")]
    Returned,
    /// The broker refused to take the message (a queue at its limit, say).
    #[error("the broker rejected the message")]
    Rejected,
    /// No confirmation in time; the message may have arrived.
    #[error("the broker did not confirm the message in time")]
    TimedOut,
    /// No connection, or it broke before the confirmation; the message may have arrived.
    #[error("the broker cannot be used")]
    Unavailable,
    /// The delay is longer than the delay levels cover; publish again when less is left.
    #[error("the delay is longer than the broker's delay levels cover")]
    BeyondHorizon,
}
