//! What one attempt leaves behind.

use std::time::Duration;

use domain::delivery::DeadLetterReason;
use uuid::Uuid;

/// The record of one attempt.
#[derive(Debug, Clone)]
pub struct AttemptRecord {
    /// 1 for the first.
    pub number: u32,
    /// Time since it started, when the settlement begins: the start is stored by the database's clock.
    pub started_ago: Duration,
    /// From connect to the last byte.
    pub duration: Duration,
    /// Status of the answer, if there was one.
    pub status_code: Option<u16>,
    /// Class of the error; `None` for a success.
    pub error_class: Option<&'static str>,
    /// What went wrong, 200 characters at the most, without URL and payload.
    pub error: Option<String>,
    /// What a failed attempt was answered, safe for a text column.
    pub response_body: Option<String>,
}

/// What becomes of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettledStatus {
    /// Over and done with.
    Delivered,
    /// Waiting for its retry.
    Failed {
        /// How long until it is due.
        retry_after: Duration,
        /// When the sweep starts to look after it, should no message arrive.
        hint_after: Duration,
    },
    /// Given up, kept for repair and replay.
    DeadLetter(DeadLetterReason),
}

/// One claimed delivery's end, guarded by the lease it was claimed under.
#[derive(Debug, Clone)]
pub struct Settled {
    /// The delivery.
    pub delivery_id: Uuid,
    /// Its endpoint.
    pub endpoint_id: Uuid,
    /// The claim's token.
    pub lease_token: Uuid,
    /// The verdict.
    pub status: SettledStatus,
    /// The attempt; `None` when nothing was tried and none is charged.
    pub attempt: Option<AttemptRecord>,
    /// Why, for operators, when there is no attempt to say it.
    pub error: Option<String>,
}

impl SettledStatus {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            SettledStatus::Delivered => "delivered",
            SettledStatus::Failed { .. } => "failed",
            SettledStatus::DeadLetter(_) => "dead_letter",
        }
    }

    pub(crate) fn reason(self) -> Option<&'static str> {
        match self {
            SettledStatus::DeadLetter(reason) => Some(reason.as_str()),
            SettledStatus::Delivered | SettledStatus::Failed { .. } => None,
        }
    }

    pub(crate) fn waits(self) -> Option<(Duration, Duration)> {
        match self {
            SettledStatus::Failed {
                retry_after,
                hint_after,
            } => Some((retry_after, hint_after)),
            SettledStatus::Delivered | SettledStatus::DeadLetter(_) => None,
        }
    }
}
