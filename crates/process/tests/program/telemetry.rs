//! What leaves a program over OTLP, as a collector receives it.

use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use opentelemetry::global;
use opentelemetry::trace::{Span as _, Tracer};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::resource::v1::Resource;
use prost::Message;
use tokio::runtime::Runtime;

use crate::support::{Running, is_program, program, run_program};

/// One request to the collector.
#[derive(Clone)]
struct Export {
    path: String,
    authorization: Option<String>,
    body: Bytes,
}

type Received = Arc<Mutex<Vec<Export>>>;

/// A collector on a free port, for as long as the test keeps it.
struct Collector {
    url: String,
    received: Received,
    _runtime: Runtime,
}

impl Collector {
    fn start() -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let any_port = tokio::net::TcpListener::bind("127.0.0.1:0");
        let listener = runtime.block_on(any_port).expect("a free port");
        let addr = listener.local_addr().expect("its address");
        let received = Received::default();
        let router = Router::new().fallback(receive).with_state(received.clone());
        runtime.spawn(async move { axum::serve(listener, router).await });
        Self {
            url: format!("http://{addr}"),
            received,
            _runtime: runtime,
        }
    }

    fn all(&self) -> Vec<Export> {
        self.received.lock().expect("what was received").clone()
    }

    fn on(&self, path: &str) -> Vec<Export> {
        self.all()
            .into_iter()
            .filter(|export| export.path == path)
            .collect()
    }
}

async fn receive(State(received): State<Received>, uri: Uri, headers: HeaderMap, body: Bytes) {
    let authorization = headers
        .get("authorization")
        .and_then(|value| value.to_str().ok());
    received.lock().expect("what was received").push(Export {
        path: uri.path().to_owned(),
        authorization: authorization.map(str::to_owned),
        body,
    });
}

/// Runs the program of `test` to its end: its exit code and its standard error.
fn run_to_end(test: &str, variables: &[(&str, &str)]) -> (Option<i32>, String) {
    Running::start(program(&format!("telemetry::{test}"), variables)).wait()
}

/// A program that makes one span and counts one thing.
fn run_telling_program() {
    run_program(|context| async move {
        let mut span = global::tracer("example").start("example.work");
        span.end();
        let counter = global::meter("example")
            .u64_counter("example.things")
            .build();
        counter.add(3, &[]);
        println!("tracing {}", context.tracing_enabled);
        Ok(())
    });
}

fn attribute(resource: Option<&Resource>, key: &str) -> Option<String> {
    let attributes = &resource?.attributes;
    let found = attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::StringValue(text) => Some(text.clone()),
        _ => None,
    }
}

#[test]
fn spans_and_metrics_are_flushed_at_the_end_past_any_proxy() {
    if is_program() {
        run_telling_program();
    }
    let collector = Collector::start();
    let dead_proxy = "http://127.0.0.1:9";
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str()),
        (
            "OTEL_EXPORTER_OTLP_HEADERS",
            "authorization=Bearer%20example",
        ),
        (
            "OTEL_RESOURCE_ATTRIBUTES",
            "deployment.environment.name=test",
        ),
        ("HTTP_PROXY", dead_proxy),
        ("http_proxy", dead_proxy),
        ("ALL_PROXY", dead_proxy),
    ];
    let test = "spans_and_metrics_are_flushed_at_the_end_past_any_proxy";
    let (code, stderr) = run_to_end(test, &variables);
    assert_eq!(code, Some(0), "{stderr}");

    let traces = collector.on("/v1/traces");
    assert_eq!(traces.len(), 1);
    assert_eq!(traces[0].authorization.as_deref(), Some("Bearer example"));
    let told = ExportTraceServiceRequest::decode(traces[0].body.clone()).expect("spans");
    let spans = &told.resource_spans[0].scope_spans[0].spans;
    assert_eq!(spans[0].name, "example.work");
    let resource = told.resource_spans[0].resource.as_ref();
    assert_eq!(
        attribute(resource, "service.name").as_deref(),
        Some("example")
    );
    assert_eq!(
        attribute(resource, "service.version").as_deref(),
        Some("1.2.3")
    );
    assert_eq!(
        attribute(resource, "deployment.environment.name").as_deref(),
        Some("test")
    );
    assert!(attribute(resource, "service.instance.id").is_some());

    let metrics = collector.on("/v1/metrics");
    let told = ExportMetricsServiceRequest::decode(metrics[0].body.clone()).expect("metrics");
    assert_eq!(
        told.resource_metrics[0].scope_metrics[0].metrics[0].name,
        "example.things"
    );
}

#[test]
fn the_environments_service_name_and_sampler_go_first() {
    if is_program() {
        run_telling_program();
    }
    let collector = Collector::start();
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str()),
        ("OTEL_SERVICE_NAME", "renamed"),
        ("OTEL_TRACES_SAMPLER", "always_off"),
    ];
    let test = "the_environments_service_name_and_sampler_go_first";
    assert_eq!(run_to_end(test, &variables).0, Some(0));
    assert!(collector.on("/v1/traces").is_empty());
    let metrics = collector.on("/v1/metrics");
    let told = ExportMetricsServiceRequest::decode(metrics[0].body.clone()).expect("metrics");
    let resource = told.resource_metrics[0].resource.as_ref();
    assert_eq!(
        attribute(resource, "service.name").as_deref(),
        Some("renamed")
    );
}

#[test]
fn one_signals_endpoint_exports_that_signal_alone() {
    if is_program() {
        run_telling_program();
    }
    let collector = Collector::start();
    let own = format!("{}/own/path", collector.url);
    let variables = [("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", own.as_str())];
    let test = "one_signals_endpoint_exports_that_signal_alone";
    assert_eq!(run_to_end(test, &variables).0, Some(0));
    let paths: Vec<_> = collector
        .all()
        .into_iter()
        .map(|export| export.path)
        .collect();
    assert_eq!(paths, ["/own/path"]);
}

#[test]
fn a_disabled_sdk_exports_nothing() {
    if is_program() {
        run_telling_program();
    }
    let collector = Collector::start();
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str()),
        ("OTEL_SDK_DISABLED", "true"),
    ];
    let name = "telemetry::a_disabled_sdk_exports_nothing";
    let mut running = Running::start(program(name, &variables));
    running.await_line("tracing false");
    assert_eq!(running.wait().0, Some(0));
    assert!(collector.all().is_empty());
}

#[test]
fn without_an_endpoint_tracing_is_off() {
    if is_program() {
        run_telling_program();
    }
    let name = "telemetry::without_an_endpoint_tracing_is_off";
    let mut running = Running::start(program(name, &[]));
    running.await_line("tracing false");
    assert_eq!(running.wait().0, Some(0));
}

#[test]
fn an_absent_collector_costs_a_line_for_each_signal_and_its_url_is_not_told() {
    if is_program() {
        run_telling_program();
    }
    let nobody = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr());
    let url = format!("http://user:canary@{}", nobody.expect("a free port"));
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()),
        ("OTEL_METRIC_EXPORT_INTERVAL", "1"),
        ("RUST_LOG", "trace"),
    ];
    let test = "an_absent_collector_costs_a_line_for_each_signal_and_its_url_is_not_told";
    let (code, stderr) = run_to_end(test, &variables);
    assert_eq!(code, Some(0));
    assert_eq!(
        stderr.matches("telemetry cannot be exported").count(),
        2,
        "{stderr}"
    );
    assert!(!stderr.contains("canary"), "{stderr}");
}

#[test]
fn an_endpoint_that_is_no_url_stops_nothing() {
    if is_program() {
        run_telling_program();
    }
    let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", "http://not a url")];
    let (code, stderr) = run_to_end("an_endpoint_that_is_no_url_stops_nothing", &variables);
    assert_eq!(code, Some(0));
    assert!(stderr.contains("telemetry is not exported"), "{stderr}");
}
