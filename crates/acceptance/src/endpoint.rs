//! A registered endpoint, as a test needs it.

use serde_json::Value;
use uuid::Uuid;

/// An endpoint registered by `kurier endpoint add`.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Its id.
    pub id: Uuid,
    /// Its signing secret, `whsec_...` or `whsk_...`.
    pub secret: String,
    /// Its public key, `whpk_...`, when it signs by ed25519.
    pub public_key: Option<String>,
    /// The path its URL names at the world's receiver.
    pub path: String,
}

impl Endpoint {
    pub(crate) fn from_answer(answer: &Value, path: &str) -> Self {
        let text = |name: &str| answer[name].as_str().map(str::to_owned);
        Self {
            id: text("id").and_then(|id| id.parse().ok()).expect("an id"),
            secret: text("secret").expect("a secret"),
            public_key: text("public_key"),
            path: path.to_owned(),
        }
    }
}
