//! Signing secrets in their written form. Their bytes leave only through `reveal`.

use std::{fmt, str::FromStr};

use base64::{Engine, engine::general_purpose::STANDARD};
use ed25519_dalek::SigningKey;

/// Standard Webhooks asks for 192 to 512 bits.
const HMAC_KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

const HMAC_PREFIX: &str = "whsec_";
const ED25519_PREFIX: &str = "whsk_";
const ED25519_PUBLIC_PREFIX: &str = "whpk_";

/// What signs an endpoint's deliveries. `Debug` shows only which algorithm it is for.
#[derive(Clone)]
pub struct SigningSecret(pub(super) Key);

#[derive(Clone)]
pub(super) enum Key {
    Hmac(Vec<u8>),
    Ed25519(Box<SigningKey>),
}

/// Why a text is no [`SigningSecret`]. Nothing of the text is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// It begins with neither `whsec_` nor `whsk_`.
    #[error("a signing secret begins with whsec_ or whsk_")]
    Prefix,
    /// What follows the prefix is not canonical base64.
    #[error("a signing secret is written in padded standard base64")]
    Base64,
    /// Too few or too many bytes.
    #[error("a whsec_ secret has 24 to 64 bytes, a whsk_ secret 32 or 64")]
    Length,
    /// The public half of a 64-byte `whsk_` secret does not belong to its seed.
    #[error("the public half of the whsk_ secret does not belong to its seed")]
    PublicKey,
}

impl SigningSecret {
    /// Reads `whsec_<base64>` (an HMAC-SHA256 key) or `whsk_<base64>` (an ed25519 seed, alone or
    /// followed by its public key).
    pub fn parse(text: &str) -> Result<SigningSecret, SecretError> {
        if let Some(encoded) = text.strip_prefix(HMAC_PREFIX) {
            hmac_key(decode(encoded)?)
        } else if let Some(encoded) = text.strip_prefix(ED25519_PREFIX) {
            ed25519_key(&decode(encoded)?)
        } else {
            Err(SecretError::Prefix)
        }
    }

    /// A secret for HMAC-SHA256 from 32 random bytes.
    pub fn from_hmac_key(key: [u8; 32]) -> SigningSecret {
        SigningSecret(Key::Hmac(key.to_vec()))
    }

    /// A secret for ed25519 from 32 random bytes.
    pub fn from_ed25519_seed(seed: [u8; 32]) -> SigningSecret {
        SigningSecret(Key::Ed25519(Box::new(SigningKey::from_bytes(&seed))))
    }

    /// The written form, to be shown once or encrypted. An ed25519 secret is written as its seed.
    pub fn reveal(&self) -> String {
        match &self.0 {
            Key::Hmac(key) => format!("{HMAC_PREFIX}{}", STANDARD.encode(key)),
            Key::Ed25519(key) => format!("{ED25519_PREFIX}{}", STANDARD.encode(key.as_bytes())),
        }
    }

    /// What a receiver verifies ed25519 signatures with, as `whpk_<base64>`; `None` for HMAC.
    pub fn public_key(&self) -> Option<String> {
        match &self.0 {
            Key::Hmac(_) => None,
            Key::Ed25519(key) => {
                let public = STANDARD.encode(key.verifying_key().as_bytes());
                Some(format!("{ED25519_PUBLIC_PREFIX}{public}"))
            }
        }
    }
}

fn decode(encoded: &str) -> Result<Vec<u8>, SecretError> {
    STANDARD.decode(encoded).map_err(|_| SecretError::Base64)
}

fn hmac_key(key: Vec<u8>) -> Result<SigningSecret, SecretError> {
    if !HMAC_KEY_BYTES.contains(&key.len()) {
        return Err(SecretError::Length);
    }
    Ok(SigningSecret(Key::Hmac(key)))
}

fn ed25519_key(bytes: &[u8]) -> Result<SigningSecret, SecretError> {
    let (seed, public) = bytes.split_at_checked(32).ok_or(SecretError::Length)?;
    let seed = seed.try_into().map_err(|_| SecretError::Length)?;
    let key = SigningKey::from_bytes(&seed);
    match public.len() {
        0 => {}
        32 if public == key.verifying_key().as_bytes() => {}
        32 => return Err(SecretError::PublicKey),
        _ => return Err(SecretError::Length),
    }
    Ok(SigningSecret(Key::Ed25519(Box::new(key))))
}

impl FromStr for SigningSecret {
    type Err = SecretError;

    fn from_str(text: &str) -> Result<SigningSecret, SecretError> {
        SigningSecret::parse(text)
    }
}

impl fmt::Debug for SigningSecret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self.0 {
            Key::Hmac(_) => "SigningSecret(hmac)",
            Key::Ed25519(_) => "SigningSecret(ed25519)",
        })
    }
}
