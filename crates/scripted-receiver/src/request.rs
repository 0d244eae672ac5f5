//! One request as it arrived.

use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, Method};

/// A request whose last body byte has arrived.
#[derive(Clone, Debug)]
pub struct Request {
    /// When the request was complete.
    pub at: Instant,
    /// Its method.
    pub method: Method,
    /// The path it was scripted by.
    pub path: String,
    /// The query as sent, without the question mark.
    pub query: Option<String>,
    /// All headers, repeated ones in their order.
    pub headers: HeaderMap,
    /// The body, byte by byte.
    pub body: Bytes,
}

impl Request {
    /// The first header of that name, when it is there and readable text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The event id by the Standard Webhooks convention; empty when the header is missing.
    pub fn webhook_id(&self) -> &str {
        webhook_id(&self.headers)
    }
}

pub(crate) fn webhook_id(headers: &HeaderMap) -> &str {
    headers
        .get("webhook-id")
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}
