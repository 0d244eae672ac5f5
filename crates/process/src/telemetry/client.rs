//! The HTTP client that exports, which never uses a proxy from the environment and says rarely that
//! it fails.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use reqwest::blocking::{Client, ClientBuilder};
use reqwest::redirect::Policy;

/// At most one log line about failed exports in this time.
const COMPLAINT_INTERVAL: Duration = Duration::from_mins(5);

/// Bound of one export; the exporter's own `OTEL_EXPORTER_OTLP_TIMEOUT` bounds its retries.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// A blocking client, as the SDK's exporting threads need one.
pub(super) struct ExportClient {
    http: Client,
    last_complaint: Mutex<Option<Instant>>,
}

impl ExportClient {
    /// The client is made on a thread of its own, since a blocking one may not be made where an
    /// async runtime is running.
    pub(super) fn new() -> Result<Self, HttpError> {
        // The provider that is installed already, if any, does as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let built = thread::spawn(build).join();
        let http = built.map_err(|_| "the thread that makes the client panicked")??;
        Ok(Self {
            http,
            last_complaint: Mutex::new(None),
        })
    }

    fn complain(&self, problem: &str) {
        let now = Instant::now();
        let mut last = self
            .last_complaint
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| now.duration_since(last) >= COMPLAINT_INTERVAL) {
            *last = Some(now);
            tracing::warn!(problem, "telemetry cannot be exported");
        }
    }
}

/// A machine without CA certificates can still export over plain HTTP: there the client trusts none.
fn build() -> reqwest::Result<Client> {
    builder()
        .build()
        .or_else(|_| builder().tls_certs_only([]).build())
}

fn builder() -> ClientBuilder {
    Client::builder()
        .no_proxy()
        .redirect(Policy::none())
        .timeout(REQUEST_TIMEOUT)
}

/// Without the client's settings: the SDK prints its exporters.
impl fmt::Debug for ExportClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExportClient")
    }
}

#[async_trait]
impl HttpClient for ExportClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = self.http.send_bytes(request).await;
        match &answer {
            Ok(response) if response.status().is_success() => {}
            Ok(response) => self.complain(&format!("answered with {}", response.status())),
            // The error's text holds the endpoint's URL.
            Err(_) => self.complain("the endpoint cannot be reached"),
        }
        answer
    }
}
