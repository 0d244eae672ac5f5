//! What the sweep and the release hand back: deliveries whose message has to be published.

use std::time::Duration;

use uuid::Uuid;

use crate::units::duration;

/// A delivery that needs a new message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostHint {
    /// The delivery.
    pub delivery_id: Uuid,
    /// The trace it belongs to.
    pub traceparent: Option<String>,
    /// How long until it is due.
    pub delay: Duration,
    /// Whether somebody had claimed it and never came back.
    pub lease_expired: bool,
}

#[derive(sqlx::FromRow)]
pub(crate) struct HintRow {
    id: Uuid,
    traceparent: Option<String>,
    delay_ms: i64,
    lease_expired: bool,
}

impl From<HintRow> for LostHint {
    fn from(row: HintRow) -> LostHint {
        LostHint {
            delivery_id: row.id,
            traceparent: row.traceparent,
            delay: duration(row.delay_ms),
            lease_expired: row.lease_expired,
        }
    }
}
