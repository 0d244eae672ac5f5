//! Events as an application writes them: plain SQL in a transaction of its own.

use sqlx::PgExecutor;
use uuid::Uuid;

/// An event to be written to the outbox.
#[derive(Debug, Clone)]
pub struct Event {
    tenant: String,
    kind: String,
    json: Option<String>,
    bytes: Option<Vec<u8>>,
    content_type: String,
    traceparent: Option<String>,
}

impl Event {
    /// An event with this JSON text as its payload.
    pub fn json(event_type: &str, payload: impl Into<String>) -> Self {
        Self {
            tenant: String::new(),
            kind: event_type.to_owned(),
            json: Some(payload.into()),
            bytes: None,
            content_type: "application/json".to_owned(),
            traceparent: None,
        }
    }

    /// An event with these bytes as its payload.
    pub fn bytes(event_type: &str, payload: impl Into<Vec<u8>>, content_type: &str) -> Self {
        Self {
            json: None,
            bytes: Some(payload.into()),
            content_type: content_type.to_owned(),
            ..Self::json(event_type, "")
        }
    }

    /// Whose event it is.
    #[must_use]
    pub fn tenant(mut self, tenant: &str) -> Self {
        tenant.clone_into(&mut self.tenant);
        self
    }

    /// The trace it is part of.
    #[must_use]
    pub fn traceparent(mut self, traceparent: &str) -> Self {
        self.traceparent = Some(traceparent.to_owned());
        self
    }

    /// Writes it within the caller's transaction and returns its id.
    ///
    /// # Panics
    /// When the database refuses it.
    pub async fn write(&self, transaction: impl PgExecutor<'_>) -> Uuid {
        sqlx::query_scalar(
            "INSERT INTO kurier.outbox_events
                (tenant, event_type, payload, payload_bytes, content_type, traceparent)
            VALUES ($1, $2, $3::json, $4, $5, $6)
            RETURNING id",
        )
        .bind(&self.tenant)
        .bind(&self.kind)
        .bind(&self.json)
        .bind(&self.bytes)
        .bind(&self.content_type)
        .bind(&self.traceparent)
        .fetch_one(transaction)
        .await
        .expect("the outbox takes the event")
    }
}
