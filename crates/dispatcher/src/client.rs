//! The one HTTP client: sends a prepared request and reports what it observed. It neither signs nor
//! judges.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::{Bytes, BytesMut};
use domain::{
    RESPONSE_CAPTURE_BYTES_MAX,
    destination::DestinationPolicy,
    outcome::{FailureClass, Outcome},
    text::safe_text,
};
use http::{
    HeaderMap,
    header::{CONTENT_LENGTH, RETRY_AFTER},
};
use reqwest::{Method, Response, redirect, retry};
use url::Url;

use crate::{fault, resolver::GuardedResolver};

/// Common servers close idle connections after 5 s; ours go first.
const IDLE_TIMEOUT: Duration = Duration::from_millis(3_500);

/// How long a body is read for once the status has decided. What is still on its way then is dropped
/// together with its connection.
const BODY_TIME_MAX: Duration = Duration::from_secs(2);

/// What one request observed.
#[derive(Debug)]
pub(crate) struct Observation {
    pub(crate) outcome: Outcome,
    pub(crate) duration: Duration,
    /// Without URL and payload; `None` for a success.
    pub(crate) error: Option<String>,
    /// The answer's beginning, for failures.
    pub(crate) response_body: Option<String>,
}

/// A request ready to be sent.
pub(crate) struct Request {
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// Limit from connect to the last byte.
    pub(crate) timeout: Duration,
}

/// Sends requests. Cloning is cheap and shares the connections.
#[derive(Clone)]
pub(crate) struct Client {
    http: reqwest::Client,
}

impl Client {
    pub(crate) fn new(policy: &DestinationPolicy, concurrency: u16) -> anyhow::Result<Client> {
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(tls_config()?)
            .dns_resolver(GuardedResolver::new(Arc::new(policy.clone())))
            .no_proxy()
            .redirect(redirect::Policy::none())
            .referer(false)
            .retry(retry::never())
            .http1_only()
            .http1_ignore_invalid_headers_in_responses(true)
            .pool_idle_timeout(IDLE_TIMEOUT)
            // No fewer than can be in use at once, or they are opened and closed all the time.
            .pool_max_idle_per_host(usize::from(concurrency))
            .user_agent(concat!("Kurier/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(reqwest::Error::without_url)?;
        Ok(Client { http })
    }

    /// Sends one request, once. Never fails: a failure is an observation.
    pub(crate) async fn send(&self, request: Request) -> Observation {
        let started = Instant::now();
        let answered = self
            .http
            .request(Method::POST, request.url)
            .headers(request.headers)
            // The client leaves it out of a request with an empty body.
            .header(CONTENT_LENGTH, request.body.len())
            .body(request.body)
            .timeout(request.timeout)
            .send()
            .await;
        match answered {
            Ok(response) => observe(response, started).await,
            Err(error) => Observation::failure(&error, started),
        }
    }
}

/// The status decides; whatever happens to the body afterwards changes nothing.
async fn observe(response: Response, started: Instant) -> Observation {
    let status = response.status().as_u16();
    let retry_after = response
        .headers()
        .get(RETRY_AFTER)
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    let outcome = Outcome::response(status, retry_after);
    let body = capture(response).await;
    let failed = outcome.error_class().is_some();
    Observation {
        outcome,
        duration: started.elapsed(),
        error: failed.then(|| format!("answered with status {status}")),
        response_body: failed.then(|| safe_text(&body, RESPONSE_CAPTURE_BYTES_MAX)),
    }
}

/// Reads the body's beginning: bounded in bytes and in time, never decompressed.
async fn capture(mut response: Response) -> BytesMut {
    let mut body = BytesMut::new();
    let reading = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            let room = RESPONSE_CAPTURE_BYTES_MAX - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if chunk.len() >= room {
                break;
            }
        }
    };
    // Time up is as good as the end: what was read so far is kept.
    let _ = tokio::time::timeout(BODY_TIME_MAX, reading).await;
    body
}

impl Observation {
    fn failure(error: &reqwest::Error, started: Instant) -> Observation {
        let (class, text) = fault::classify(error);
        Observation {
            outcome: Outcome::Failure(class),
            duration: started.elapsed(),
            error: Some(text),
            response_body: None,
        }
    }

    /// Nothing was sent, because it must not or cannot be.
    pub(crate) fn unsent(class: FailureClass, error: String) -> Observation {
        Observation {
            outcome: Outcome::Failure(class),
            duration: Duration::ZERO,
            error: Some(error),
            response_body: None,
        }
    }
}

fn tls_config() -> anyhow::Result<rustls::ClientConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let roots = rustls::RootCertStore {
        roots: webpki_roots::TLS_SERVER_ROOTS.into(),
    };
    Ok(rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth())
}
