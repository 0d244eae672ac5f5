//! One attempt: sign, send, hand the observation on. It decides nothing.

use std::{
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use broker::{Acks, Receipt};
use domain::{
    outcome::{FailureClass, Outcome},
    signing::{SigningSecret, signature_header},
};
use futures_util::FutureExt as _;
use http::{
    HeaderMap, HeaderName, HeaderValue,
    header::{CONTENT_TYPE, InvalidHeaderValue},
};
use process::failpoint;
use signals::{
    DispatcherMetrics,
    labels::ErrorClass,
    trace::{ActiveSpan, Attempt, Origin, Tracing},
};
use store::Claimed;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use url::Url;

use crate::{
    client::{Client, Observation, Request},
    clock::DatabaseClock,
    endpoints::{Endpoint, Target},
};

const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");
const DELIVERY_TIMESTAMP: HeaderName = HeaderName::from_static("x-delivery-timestamp");
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// A claimed delivery on its way to be sent.
pub(crate) struct Job {
    pub(crate) claimed: Claimed,
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) clock: DatabaseClock,
    pub(crate) is_probe: bool,
    pub(crate) receipt: Receipt,
    /// The place among the attempts that run at once; free again when this is dropped.
    pub(crate) slot: OwnedSemaphorePermit,
    /// The claim's span.
    pub(crate) traceparent: Option<String>,
    /// For a trace of its own, if there is none.
    pub(crate) trace_bytes: [u8; 24],
}

/// An attempt that has ended, to be judged and settled.
pub(crate) struct Finished {
    pub(crate) claimed: Claimed,
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) clock: DatabaseClock,
    pub(crate) is_probe: bool,
    pub(crate) receipt: Receipt,
    pub(crate) started: Instant,
    pub(crate) observation: Observation,
}

/// Sends jobs and passes on what was observed.
pub(crate) struct Sender {
    pub(crate) client: Client,
    pub(crate) tracing: Tracing,
    pub(crate) metrics: DispatcherMetrics,
    pub(crate) lease_margin: Duration,
    pub(crate) acks: Acks,
    pub(crate) results: mpsc::Sender<Finished>,
}

impl Sender {
    /// Sends one job and hands its result to the settlement.
    pub(crate) async fn send(&self, job: Job) {
        if job.clock.elapsed() >= self.lease_margin {
            // Too late to end within the lease: somebody else is to take it.
            tracing::warn!(delivery_id = %job.claimed.id, "not started within its lease");
            return self.acks.ack([job.receipt]);
        }
        failpoint::reach("dispatcher.claimed");
        let started = Instant::now();
        let running = self.metrics.attempt_started();
        let attempt = AssertUnwindSafe(self.attempt(&job)).catch_unwind();
        let Ok(observation) = attempt.await else {
            // A fault of our own charges nobody; the lease runs out and the sweep takes over.
            tracing::error!(delivery_id = %job.claimed.id, "attempt panicked");
            return self.acks.ack([job.receipt]);
        };
        drop(running);
        failpoint::reach("dispatcher.sent");
        self.finish(job, started, observation).await;
    }

    async fn finish(&self, job: Job, started: Instant, observation: Observation) {
        let finished = Finished {
            claimed: job.claimed,
            endpoint: job.endpoint,
            clock: job.clock,
            is_probe: job.is_probe,
            receipt: job.receipt,
            started,
            observation,
        };
        // The settlement ends only after every sender is gone.
        if self.results.send(finished).await.is_err() {
            tracing::error!("settlement has ended; the attempt will be repeated");
        }
        drop(job.slot);
    }

    async fn attempt(&self, job: &Job) -> Observation {
        let (url, secrets) = match &job.endpoint.target {
            Target::Usable { url, secrets } => (url, secrets),
            Target::Unusable { class, error } => return Observation::unsent(*class, error.clone()),
        };
        let mut span = self.span(job, url);
        let observation = match request(job, url, secrets, &span) {
            Ok(request) => self.client.send(request).await,
            Err(error) => Observation::unsent(FailureClass::Configuration, error.to_owned()),
        };
        close(&mut span, &observation.outcome);
        observation
    }

    fn span(&self, job: &Job, url: &Url) -> ActiveSpan {
        self.tracing.attempt(
            Origin::now(job.traceparent.as_deref()),
            &Attempt {
                method: "POST",
                host: url.host_str().unwrap_or_default(),
                port: url.port_or_known_default().unwrap_or_default(),
                delivery_id: &job.claimed.id,
                endpoint_id: &job.claimed.endpoint_id,
                event_type: job.claimed.event_type.as_deref().unwrap_or_default(),
                number: job.claimed.attempt_count + 1,
            },
        )
    }
}

/// The bytes signed are the bytes sent are the bytes stored.
fn request(
    job: &Job,
    url: &Url,
    secrets: &[SigningSecret],
    span: &ActiveSpan,
) -> Result<Request, &'static str> {
    let payload = job
        .claimed
        .payload
        .as_ref()
        .ok_or("the event's payload is no longer stored: it cannot be sent")?;
    let timestamp = job.clock.now().timestamp();
    let event_id = job.claimed.event_id.to_string();
    let signature = signature_header(&event_id, timestamp, &payload.body, secrets);
    let headers = headers(
        &event_id,
        timestamp,
        &signature,
        &payload.content_type,
        &span.traceparent_or_fresh(job.trace_bytes),
    )
    .map_err(|_| "the event's content type cannot be sent as a header")?;
    Ok(Request {
        url: url.clone(),
        headers,
        body: payload.body.clone(),
        timeout: job.endpoint.timeout,
    })
}

fn headers(
    event_id: &str,
    timestamp: i64,
    signature: &str,
    content_type: &str,
    traceparent: &str,
) -> Result<HeaderMap, InvalidHeaderValue> {
    let event_id = HeaderValue::from_str(event_id)?;
    let timestamp = HeaderValue::from(timestamp);
    Ok(HeaderMap::from_iter([
        (WEBHOOK_ID, event_id.clone()),
        (WEBHOOK_TIMESTAMP, timestamp.clone()),
        (WEBHOOK_SIGNATURE, HeaderValue::from_str(signature)?),
        (DELIVERY_TIMESTAMP, timestamp),
        (IDEMPOTENCY_KEY, event_id),
        (TRACEPARENT, HeaderValue::from_str(traceparent)?),
        (CONTENT_TYPE, HeaderValue::from_str(content_type)?),
    ]))
}

fn close(span: &mut ActiveSpan, outcome: &Outcome) {
    if let Outcome::Response { status, .. } = outcome {
        span.answered(*status);
    }
    span.failed(error_label(outcome));
}

/// The outcome's kind of error as a metric label.
pub(crate) fn error_label(outcome: &Outcome) -> ErrorClass {
    match outcome {
        Outcome::Response { status, .. } => match status {
            200..=299 => ErrorClass::None,
            300..=399 => ErrorClass::Redirect,
            429 => ErrorClass::RateLimited,
            400..=499 => ErrorClass::ClientError,
            500..=599 => ErrorClass::ServerError,
            _ => ErrorClass::UnexpectedStatus,
        },
        Outcome::Failure(class) => match class {
            FailureClass::Dns => ErrorClass::Dns,
            FailureClass::ForbiddenAddress => ErrorClass::ForbiddenAddress,
            FailureClass::Connect => ErrorClass::Connect,
            FailureClass::Tls => ErrorClass::Tls,
            FailureClass::Timeout => ErrorClass::Timeout,
            FailureClass::ConnectionClosed => ErrorClass::ConnectionClosed,
            FailureClass::Protocol => ErrorClass::Protocol,
            FailureClass::Configuration => ErrorClass::Configuration,
        },
    }
}
