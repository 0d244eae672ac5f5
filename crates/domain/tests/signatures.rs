//! Signatures and secrets held against vectors computed elsewhere.

use base64::{Engine, engine::general_purpose::STANDARD};
use domain::signing::{SecretError, SigningSecret, signature_header};
use proptest::prelude::*;

/// The example that the Standard Webhooks libraries publish with their tests.
const PUBLISHED_SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const PUBLISHED_ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
const PUBLISHED_BODY: &[u8] = br#"{"test": 2432232314}"#;
const PUBLISHED_SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

/// One vector of `cases/signatures.json`, made with Python's hmac and cryptography; where the body
/// is text the official library agreed.
#[derive(serde::Deserialize)]
struct Vector {
    name: String,
    secret: String,
    public_key: Option<String>,
    message_id: String,
    timestamp: i64,
    body_base64: String,
    signature: String,
}

fn secret(text: &str) -> SigningSecret {
    SigningSecret::parse(text).unwrap()
}

fn encoded(prefix: &str, bytes: &[u8]) -> String {
    format!("{prefix}{}", STANDARD.encode(bytes))
}

fn refusal(text: &str) -> SecretError {
    SigningSecret::parse(text).unwrap_err()
}

#[test]
fn the_published_example_is_signed_as_published() {
    let secrets = [secret(PUBLISHED_SECRET)];
    let header = signature_header(PUBLISHED_ID, 1_614_265_330, PUBLISHED_BODY, &secrets);
    assert_eq!(header, PUBLISHED_SIGNATURE);
}

#[test]
fn every_vector_is_signed_as_other_programs_sign_it() {
    let vectors: Vec<Vector> = serde_json::from_str(include_str!("cases/signatures.json")).unwrap();
    assert_eq!(vectors.len(), 8);
    for vector in vectors {
        let secret = secret(&vector.secret);
        let body = STANDARD.decode(&vector.body_base64).unwrap();
        let header = signature_header(
            &vector.message_id,
            vector.timestamp,
            &body,
            std::slice::from_ref(&secret),
        );
        assert_eq!(header, vector.signature, "{}", vector.name);
        assert_eq!(secret.public_key(), vector.public_key, "{}", vector.name);
    }
}

#[test]
fn several_secrets_give_one_signature_each_in_their_order() {
    let (hmac, ed25519) = (
        secret(PUBLISHED_SECRET),
        SigningSecret::from_ed25519_seed([7; 32]),
    );
    let header = |secrets: &[SigningSecret]| signature_header("id", 1, b"body", secrets);
    let alone = [
        header(std::slice::from_ref(&hmac)),
        header(std::slice::from_ref(&ed25519)),
    ];
    assert!(alone[0].starts_with("v1,"));
    assert!(alone[1].starts_with("v1a,"));
    assert_eq!(header(&[hmac, ed25519]), alone.join(" "));
    assert_eq!(header(&[]), "");
}

#[test]
fn hmac_keys_have_24_to_64_bytes() {
    for length in [24, 25, 63, 64] {
        assert!(
            SigningSecret::parse(&encoded("whsec_", &vec![1; length])).is_ok(),
            "{length}"
        );
    }
    for length in [0, 23, 65] {
        let refusal = refusal(&encoded("whsec_", &vec![1; length]));
        assert_eq!(refusal, SecretError::Length, "{length}");
    }
}

#[test]
fn ed25519_keys_are_a_seed_alone_or_with_the_public_key_that_belongs_to_it() {
    for length in [0, 31, 33, 63, 65] {
        let refusal = refusal(&encoded("whsk_", &vec![1; length]));
        assert_eq!(refusal, SecretError::Length, "{length}");
    }
    assert_eq!(refusal(&encoded("whsk_", &[1; 64])), SecretError::PublicKey);
    let seed = SigningSecret::from_ed25519_seed([1; 32]);
    let public = STANDARD
        .decode(&seed.public_key().unwrap()["whpk_".len()..])
        .unwrap();
    let both = secret(&encoded("whsk_", &[&[1; 32], public.as_slice()].concat()));
    assert_eq!(both.reveal(), seed.reveal());
}

#[test]
fn only_canonical_base64_is_taken() {
    let key = STANDARD.encode([0xfb; 25]);
    let (unpadded, url_safe) = (key.trim_end_matches('='), key.replace('+', "-"));
    let (spaced, broken) = (format!("{key} "), format!("{key}\n"));
    // The last digit before the padding has bits that decode to nothing: they must be zero.
    let stray_bits = key.replace("w==", "x==");
    assert_ne!(stray_bits, key);
    for malformed in [unpadded, &url_safe, &spaced, &broken, &stray_bits, "ä"] {
        assert_eq!(
            refusal(&format!("whsec_{malformed}")),
            SecretError::Base64,
            "{malformed:?}"
        );
    }
    for unknown in ["", &key, "WHSEC_", "whpk_", " whsec_"] {
        assert_eq!(refusal(unknown), SecretError::Prefix, "{unknown:?}");
    }
}

#[test]
fn nothing_secret_is_printed() {
    let shown = format!(
        "{:?}",
        [
            secret(PUBLISHED_SECRET),
            SigningSecret::from_ed25519_seed([7; 32])
        ]
    );
    assert_eq!(shown, "[SigningSecret(hmac), SigningSecret(ed25519)]");
}

proptest! {
    #[test]
    fn a_revealed_secret_is_read_back_as_the_same(key in any::<[u8; 32]>()) {
        for made in [SigningSecret::from_hmac_key(key), SigningSecret::from_ed25519_seed(key)] {
            let read = secret(&made.reveal());
            prop_assert_eq!(read.reveal(), made.reveal());
            let header = |secret| signature_header("id", 1, b"body", &[secret]);
            prop_assert_eq!(header(read), header(made));
        }
    }

    #[test]
    fn no_text_breaks_the_reader(text in "(whsec_|whsk_)?.*") {
        let _ = SigningSecret::parse(&text);
    }
}
