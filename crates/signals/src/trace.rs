//! The spans along a delivery's way, and the context that joins them into one trace.
//!
//! The parent of every span comes as text, because it has travelled through a row or a message. When
//! nothing is exported no span is made: a valid parent is passed on as it came, and an invalid one is
//! dropped, since an application's column can hold anything.

use std::fmt::Display;
use std::sync::Arc;
use std::time::SystemTime;

use opentelemetry::global::{self, BoxedSpan, BoxedTracer};
use opentelemetry::trace::{Span as _, SpanBuilder, SpanKind, Status, TraceContextExt, Tracer};
use opentelemetry::{Context, KeyValue};

use crate::labels::ErrorClass;
use crate::names::{self, Span, attribute};
use crate::traceparent::TraceContext;

/// Name of the instrumentation scope.
const SCOPE: &str = "kurier";

/// Where a span begins: its parent, and when.
#[derive(Debug, Clone, Copy, Default)]
pub struct Origin<'a> {
    /// The parent's `traceparent`, if there is one.
    pub traceparent: Option<&'a str>,
    /// When the work began; `None` is now.
    pub started_at: Option<SystemTime>,
}

impl<'a> Origin<'a> {
    /// Begins now, under `traceparent`.
    pub fn now(traceparent: Option<&'a str>) -> Self {
        Self {
            traceparent,
            started_at: None,
        }
    }

    /// Began at `started_at`, under `traceparent`: for work that was done in a batch.
    pub fn at(traceparent: Option<&'a str>, started_at: SystemTime) -> Self {
        Self {
            traceparent,
            started_at: Some(started_at),
        }
    }
}

/// What an attempt's span tells about its request.
#[derive(Clone, Copy)]
pub struct Attempt<'a> {
    /// The request's method.
    pub method: &'a str,
    /// The receiver's host, without userinfo, path and query.
    pub host: &'a str,
    /// The receiver's port.
    pub port: u16,
    /// The delivery's id.
    pub delivery_id: &'a dyn Display,
    /// The endpoint's id.
    pub endpoint_id: &'a dyn Display,
    /// The event's type.
    pub event_type: &'a str,
    /// The attempt's number, from 1.
    pub number: u32,
}

/// Starts the catalogue's spans, or none at all when nothing is exported.
#[derive(Debug, Clone)]
pub struct Tracing {
    tracer: Option<Arc<BoxedTracer>>,
}

impl Tracing {
    /// Spans go to the global tracer provider if `exported`, nowhere otherwise.
    pub fn new(exported: bool) -> Self {
        if exported {
            Self::with_tracer(global::tracer(SCOPE))
        } else {
            Self::off()
        }
    }

    /// Spans go to `tracer`.
    pub fn with_tracer(tracer: BoxedTracer) -> Self {
        Self {
            tracer: Some(Arc::new(tracer)),
        }
    }

    /// No spans.
    pub fn off() -> Self {
        Self { tracer: None }
    }

    /// An outbox event becomes its deliveries.
    pub fn expand(
        &self,
        origin: Origin<'_>,
        event_id: &dyn Display,
        event_type: &str,
    ) -> ActiveSpan {
        self.start(&names::EXPAND, SpanKind::Internal, origin, || {
            vec![
                KeyValue::new(attribute::EVENT_ID, event_id.to_string()),
                KeyValue::new(attribute::EVENT_TYPE, event_type.to_owned()),
            ]
        })
    }

    /// A hint for a delivery goes to the broker.
    pub fn publish(&self, origin: Origin<'_>, delivery_id: &dyn Display) -> ActiveSpan {
        self.start(&names::PUBLISH, SpanKind::Producer, origin, || {
            messaging_attributes("send", delivery_id)
        })
    }

    /// A hint came from the broker, and its delivery is claimed.
    pub fn claim(&self, origin: Origin<'_>, delivery_id: &dyn Display) -> ActiveSpan {
        self.start(&names::CLAIM, SpanKind::Consumer, origin, || {
            messaging_attributes("process", delivery_id)
        })
    }

    /// A request goes to a receiver.
    pub fn attempt(&self, origin: Origin<'_>, attempt: &Attempt<'_>) -> ActiveSpan {
        self.start(&names::ATTEMPT, SpanKind::Client, origin, || {
            attempt_attributes(attempt)
        })
    }

    /// The attributes are only made when the span is recorded at all.
    fn start(
        &self,
        what: &Span,
        kind: SpanKind,
        origin: Origin<'_>,
        attributes: impl FnOnce() -> Vec<KeyValue>,
    ) -> ActiveSpan {
        let parent = origin
            .traceparent
            .and_then(|text| text.parse::<TraceContext>().ok());
        let Some(tracer) = &self.tracer else {
            return ActiveSpan {
                span: None,
                context: parent,
            };
        };
        let mut builder = SpanBuilder::from_name(what.name).with_kind(kind);
        builder.start_time = origin.started_at;
        let mut span = tracer.build_with_context(builder, &parent_context(parent));
        if span.is_recording() {
            span.set_attributes(attributes());
        }
        let context = TraceContext::of(span.span_context()).or(parent);
        ActiveSpan {
            span: Some(span),
            context,
        }
    }
}

/// A span under way; it ends when dropped, at the latest.
#[derive(Debug)]
pub struct ActiveSpan {
    span: Option<BoxedSpan>,
    context: Option<TraceContext>,
}

impl ActiveSpan {
    /// What follows this span has this parent; `None` if nothing is exported and there was none.
    pub fn context(&self) -> Option<TraceContext> {
        self.context
    }

    /// [`context`](Self::context) as text, to be stored or sent.
    pub fn traceparent(&self) -> Option<String> {
        self.context.map(|context| context.to_string())
    }

    /// The header of an outgoing request, which always has one: without a trace, a fresh unsampled
    /// one is made from 24 random bytes.
    pub fn traceparent_or_fresh(&self, random: [u8; 24]) -> String {
        self.context
            .unwrap_or_else(|| TraceContext::unsampled(random))
            .to_string()
    }

    /// The receiver answered with this status code.
    pub fn answered(&mut self, status_code: u16) {
        self.set(|| KeyValue::new(attribute::HTTP_RESPONSE_STATUS_CODE, i64::from(status_code)));
    }

    /// It failed; [`ErrorClass::None`] leaves the span as it is.
    pub fn failed(&mut self, error: ErrorClass) {
        if error != ErrorClass::None {
            self.failed_with(error.as_str());
        }
    }

    /// It failed for a reason of ours, named by a word and never by a text from outside.
    pub fn failed_with(&mut self, error_type: &'static str) {
        self.set(|| KeyValue::new(attribute::ERROR_TYPE, error_type));
        if let Some(span) = &mut self.span {
            span.set_status(Status::error(error_type));
        }
    }

    /// Ends it now.
    pub fn end(self) {
        drop(self);
    }

    /// Ended at `ended_at`: for work that was done in a batch.
    pub fn end_at(mut self, ended_at: SystemTime) {
        if let Some(span) = &mut self.span {
            span.end_with_timestamp(ended_at);
        }
    }

    fn set(&mut self, attribute: impl FnOnce() -> KeyValue) {
        if let Some(span) = self.span.as_mut().filter(|span| span.is_recording()) {
            span.set_attribute(attribute());
        }
    }
}

/// A context of its own, never the thread's current one: spans here are joined by text only.
fn parent_context(parent: Option<TraceContext>) -> Context {
    let root = Context::new();
    match parent {
        Some(parent) => root.with_remote_span_context(parent.as_remote_parent()),
        None => root,
    }
}

fn messaging_attributes(operation_type: &'static str, delivery_id: &dyn Display) -> Vec<KeyValue> {
    vec![
        KeyValue::new(attribute::MESSAGING_SYSTEM, "rabbitmq"),
        KeyValue::new(attribute::MESSAGING_OPERATION_TYPE, operation_type),
        KeyValue::new(attribute::DELIVERY_ID, delivery_id.to_string()),
    ]
}

fn attempt_attributes(attempt: &Attempt<'_>) -> Vec<KeyValue> {
    vec![
        KeyValue::new(attribute::HTTP_REQUEST_METHOD, attempt.method.to_owned()),
        KeyValue::new(attribute::SERVER_ADDRESS, attempt.host.to_owned()),
        KeyValue::new(attribute::SERVER_PORT, i64::from(attempt.port)),
        KeyValue::new(attribute::DELIVERY_ID, attempt.delivery_id.to_string()),
        KeyValue::new(attribute::ENDPOINT_ID, attempt.endpoint_id.to_string()),
        KeyValue::new(attribute::EVENT_TYPE, attempt.event_type.to_owned()),
        KeyValue::new(attribute::ATTEMPT_NUMBER, i64::from(attempt.number)),
    ]
}
