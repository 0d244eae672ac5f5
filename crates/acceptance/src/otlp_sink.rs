//! A collector of the tests' own: takes spans and metrics by OTLP over HTTP and keeps them.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    routing::post,
};
use opentelemetry_proto::tonic::{
    collector::{metrics::v1::ExportMetricsServiceRequest, trace::v1::ExportTraceServiceRequest},
    common::v1::{AnyValue, KeyValue, any_value},
    metrics::v1::{Metric, metric::Data},
    resource::v1::Resource,
};
use prost::Message as _;
use tokio::{net::TcpListener, sync::watch, task::JoinSet, time::timeout};

use crate::world::PATIENCE;

/// A span as it was exported.
#[derive(Debug, Clone)]
pub struct Span {
    /// Its name.
    pub name: String,
    /// Its trace, as 32 hexadecimal digits.
    pub trace_id: String,
    /// Itself, as 16 hexadecimal digits.
    pub span_id: String,
    /// Its parent; empty for none.
    pub parent_span_id: String,
    /// Its attributes as text.
    pub attributes: BTreeMap<String, String>,
    /// The program it came from.
    pub service_name: String,
}

/// The last state of one process's histogram, all its series together.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Point {
    /// How many values there were.
    pub count: u64,
    /// The upper bounds of its buckets.
    pub bounds: Vec<f64>,
}

#[derive(Default)]
struct Received {
    spans: Vec<Span>,
    /// By the metric's name and the process's instance id.
    points: BTreeMap<(String, String), Point>,
    raw: Vec<Bytes>,
}

/// Listens on loopback until it is dropped.
pub struct OtlpSink {
    address: SocketAddr,
    shelf: Arc<Shelf>,
    _serving: JoinSet<()>,
}

struct Shelf {
    received: Mutex<Received>,
    changes: watch::Sender<()>,
}

impl OtlpSink {
    /// A sink on a free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("its address");
        let shelf = Arc::new(Shelf {
            received: Mutex::default(),
            changes: watch::Sender::new(()),
        });
        let router = router(Arc::clone(&shelf));
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let served = axum::serve(listener, router).await;
            served.expect("the sink serves");
        });
        Self {
            address,
            shelf,
            _serving: serving,
        }
    }

    /// What makes a program export everything to this sink, quickly.
    pub fn settings(&self) -> [(&'static str, String); 4] {
        [
            (
                "OTEL_EXPORTER_OTLP_ENDPOINT",
                format!("http://{}", self.address),
            ),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf".to_owned()),
            ("OTEL_BSP_SCHEDULE_DELAY", "50".to_owned()),
            ("OTEL_METRIC_EXPORT_INTERVAL", "100".to_owned()),
        ]
    }

    /// The spans so far.
    pub fn spans(&self) -> Vec<Span> {
        self.shelf.read(|received| received.spans.clone())
    }

    /// The state of one metric, process by process.
    pub fn points(&self, metric: &str) -> Vec<Point> {
        self.shelf.read(|received| {
            let points = received.points.iter();
            points
                .filter(|((name, _), _)| name == metric)
                .map(|(_, point)| point.clone())
                .collect()
        })
    }

    /// Whether these bytes stand anywhere in what was exported.
    pub fn contains(&self, needle: &[u8]) -> bool {
        self.shelf.read(|received| {
            let mut windows = received
                .raw
                .iter()
                .flat_map(|body| body.windows(needle.len()));
            windows.any(|window| window == needle)
        })
    }

    /// Waits until `condition` holds, asked again after every export.
    ///
    /// # Panics
    /// When it does not hold in time; the message names `what` and the spans there are.
    pub async fn wait_until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        let mut changes = self.shelf.changes.subscribe();
        let holds = async {
            while !condition(self) {
                // The shelf keeps the sender, so there is always a next change to wait for.
                let _ = changes.changed().await;
            }
        };
        let in_time = timeout(PATIENCE, holds).await.is_ok();
        assert!(in_time, "waited for {what}; there is {:#?}", self.spans());
    }
}

impl Shelf {
    fn read<T>(&self, read: impl FnOnce(&Received) -> T) -> T {
        read(&self.received.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn put(&self, put: impl FnOnce(&mut Received)) {
        put(&mut self.received.lock().unwrap_or_else(PoisonError::into_inner));
        self.changes.send_replace(());
    }
}

fn router(shelf: Arc<Shelf>) -> Router {
    Router::new()
        .route("/v1/traces", post(take_spans))
        .route("/v1/metrics", post(take_metrics))
        .layer(DefaultBodyLimit::disable())
        .with_state(shelf)
}

async fn take_spans(State(shelf): State<Arc<Shelf>>, body: Bytes) {
    let request = ExportTraceServiceRequest::decode(body.clone()).expect("spans");
    shelf.put(|received| {
        received.raw.push(body);
        received.spans.extend(spans(request));
    });
}

async fn take_metrics(State(shelf): State<Arc<Shelf>>, body: Bytes) {
    let request = ExportMetricsServiceRequest::decode(body.clone()).expect("metrics");
    shelf.put(|received| {
        received.raw.push(body);
        for of_process in request.resource_metrics {
            let instance = resource(of_process.resource.as_ref(), "service.instance.id");
            for metric in of_process.scope_metrics.into_iter().flat_map(|s| s.metrics) {
                let key = (metric.name.clone(), instance.clone());
                received.points.insert(key, point(&metric));
            }
        }
    });
}

fn spans(request: ExportTraceServiceRequest) -> impl Iterator<Item = Span> {
    request.resource_spans.into_iter().flat_map(|of_process| {
        let service_name = resource(of_process.resource.as_ref(), "service.name");
        let spans = of_process.scope_spans.into_iter().flat_map(|s| s.spans);
        spans.map(move |span| Span {
            name: span.name,
            trace_id: hexadecimal(&span.trace_id),
            span_id: hexadecimal(&span.span_id),
            parent_span_id: hexadecimal(&span.parent_span_id),
            attributes: texts(&span.attributes),
            service_name: service_name.clone(),
        })
    })
}

/// The programs export cumulative values, so the last state is the whole.
fn point(metric: &Metric) -> Point {
    match &metric.data {
        Some(Data::Histogram(histogram)) => Point {
            count: histogram
                .data_points
                .iter()
                .map(|series| series.count)
                .sum(),
            bounds: histogram
                .data_points
                .first()
                .map_or_else(Vec::new, |series| series.explicit_bounds.clone()),
        },
        _ => Point::default(),
    }
}

fn resource(resource: Option<&Resource>, key: &str) -> String {
    let attributes = resource.map_or(&[][..], |resource| &resource.attributes);
    texts(attributes).remove(key).unwrap_or_default()
}

fn texts(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    attributes
        .iter()
        .map(|pair| (pair.key.clone(), text(pair.value.as_ref())))
        .collect()
}

fn text(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(any_value::Value::StringValue(text)) => text.clone(),
        Some(any_value::Value::IntValue(number)) => number.to_string(),
        other => format!("{other:?}"),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16);
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(digit).collect()
}
