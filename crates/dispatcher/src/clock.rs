//! The database's clock, read at the claim and carried on by a monotonic one.

use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};

/// A reading of the database's clock and the instant it arrived.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DatabaseClock {
    read: DateTime<Utc>,
    at: Instant,
}

impl DatabaseClock {
    /// `read` is what the database said to a question asked at `asked_at`.
    pub(crate) fn new(read: DateTime<Utc>, asked_at: Instant) -> DatabaseClock {
        DatabaseClock { read, at: asked_at }
    }

    /// The database's time now, as far as can be told from here.
    pub(crate) fn now(&self) -> DateTime<Utc> {
        self.read + self.at.elapsed()
    }

    /// Time since the question was asked.
    pub(crate) fn elapsed(&self) -> Duration {
        self.at.elapsed()
    }
}
