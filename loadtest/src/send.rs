//! Signed POSTs through a client set up as the dispatcher's, and nothing else: no retry, no breaker, no checks.

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, ensure};
use base64::{Engine, prelude::BASE64_STANDARD};
use bytes::Bytes;
use hmac::{Hmac, KeyInit, Mac};
use reqwest::{Client, RequestBuilder, StatusCode, redirect};
use rustls::{ClientConfig, RootCertStore};
use sha2::Sha256;
use uuid::Uuid;

const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(15);
const IDLE_CONNECTION_MAX: Duration = Duration::from_millis(3_500);
/// More than there are requests at one time, so that no connection is opened twice.
const IDLE_CONNECTIONS_PER_HOST_MAX: usize = 1_024;

/// A client of fixed endpoint and key.
#[derive(Clone)]
pub(crate) struct Sender {
    client: Client,
    url: String,
    key: Hmac<Sha256>,
}

/// What the one attempt measured.
pub(crate) struct Sent {
    pub(crate) status_code: i32,
    pub(crate) duration_ms: i32,
}

impl Sender {
    pub(crate) fn new(url: String) -> anyhow::Result<Self> {
        let key = Hmac::new_from_slice(&[7; 32])?;
        Ok(Self {
            client: client()?,
            url,
            key,
        })
    }

    /// Sends one event; anything but a 2xx is an error.
    pub(crate) async fn post(&self, event_id: Uuid, payload: Bytes) -> anyhow::Result<Sent> {
        let begin = Instant::now();
        let status = self
            .exchange(event_id, payload)
            .await
            .map_err(reqwest::Error::without_url)?;
        ensure!(status.is_success(), "the bare receiver answered {status}");
        let duration_ms = begin
            .elapsed()
            .as_millis()
            .try_into()
            .context("a very long attempt")?;
        Ok(Sent {
            status_code: status.as_u16().into(),
            duration_ms,
        })
    }

    /// Sends the request and reads the answer to its end.
    async fn exchange(&self, event_id: Uuid, payload: Bytes) -> reqwest::Result<StatusCode> {
        let mut response = self.request(event_id, payload).send().await?;
        while response.chunk().await?.is_some() {}
        Ok(response.status())
    }

    fn request(&self, event_id: Uuid, payload: Bytes) -> RequestBuilder {
        let id = event_id.to_string();
        let timestamp = unix_seconds().to_string();
        let signature = self.signature(&id, &timestamp, &payload);
        self.client
            .post(&self.url)
            .body(payload)
            .header("content-type", "application/json")
            .header("user-agent", concat!("Kurier/", env!("CARGO_PKG_VERSION")))
            .header("webhook-id", &id)
            .header("webhook-timestamp", &timestamp)
            .header("webhook-signature", signature)
            .header("x-delivery-timestamp", &timestamp)
            .header("idempotency-key", &id)
            .header("traceparent", TRACEPARENT)
    }

    /// The Standard Webhooks signature of id, timestamp and body.
    fn signature(&self, id: &str, timestamp: &str, payload: &[u8]) -> String {
        let mut mac = self.key.clone();
        for part in [id.as_bytes(), b".", timestamp.as_bytes(), b".", payload] {
            mac.update(part);
        }
        format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()))
    }
}

/// A trace context of the usual size.
pub(crate) const TRACEPARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A client with the dispatcher's settings.
pub(crate) fn client() -> anyhow::Result<Client> {
    let client = Client::builder()
        .tls_backend_preconfigured(tls()?)
        .http1_only()
        .no_proxy()
        .referer(false)
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .timeout(ATTEMPT_TIMEOUT)
        .pool_idle_timeout(IDLE_CONNECTION_MAX)
        .pool_max_idle_per_host(IDLE_CONNECTIONS_PER_HOST_MAX);
    Ok(client.build()?)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a signature carries the time it was made at"
)]
fn unix_seconds() -> u64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    since_epoch.unwrap_or_default().as_secs()
}

fn tls() -> anyhow::Result<ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots: RootCertStore = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect();
    let versions =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    Ok(versions.with_root_certificates(roots).with_no_client_auth())
}
