//! Signatures as Standard Webhooks defines them: `v1` (HMAC-SHA256) and `v1a` (ed25519) over
//! `{id}.{timestamp}.{body}`. It does not store, encrypt or rotate secrets.

mod secret;

use base64::{Engine, engine::general_purpose::STANDARD};
use ed25519_dalek::ed25519::signature::MultipartSigner;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use secret::Key;

pub use secret::{SecretError, SigningSecret};

/// The value of `webhook-signature`: one signature for each secret, in their order, separated by
/// single spaces. `message_id` and `timestamp_unix_seconds` are what `webhook-id` and
/// `webhook-timestamp` say, `body` the very bytes that are sent.
pub fn signature_header(
    message_id: &str,
    timestamp_unix_seconds: i64,
    body: &[u8],
    secrets: &[SigningSecret],
) -> String {
    let prefix = format!("{message_id}.{timestamp_unix_seconds}.");
    let signatures: Vec<String> = secrets
        .iter()
        .map(|secret| signature(prefix.as_bytes(), body, secret))
        .collect();
    signatures.join(" ")
}

/// Signs prefix and body where they lie: the body is never copied to stand behind its prefix.
fn signature(prefix: &[u8], body: &[u8], secret: &SigningSecret) -> String {
    match &secret.0 {
        Key::Hmac(key) => {
            let mut mac =
                Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
            mac.update(prefix);
            mac.update(body);
            format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
        }
        Key::Ed25519(key) => {
            let signature = key.multipart_sign(&[prefix, body]);
            format!("v1a,{}", STANDARD.encode(signature.to_bytes()))
        }
    }
}
