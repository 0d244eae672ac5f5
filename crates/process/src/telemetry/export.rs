//! The OTLP exporters, as the `OTEL_*` variables ask for them.

use opentelemetry::{Key, KeyValue, Value, global};
use opentelemetry_http::HttpError;
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::SdkTracerProvider;
use uuid::Uuid;

use super::client::ExportClient;
use crate::config::process_variable;

/// Describes this process; what the environment says goes before what the program says.
///
/// Every process has an instance id, since the counters of two replicas would otherwise be mixed up.
pub(super) fn resource(service_name: &str, service_version: &str) -> Resource {
    let detected = Resource::builder().build();
    let from_environment = detected
        .iter()
        .filter(|(key, value)| !is_made_up_name(key, value))
        .map(|(key, value)| KeyValue::new(key.clone(), value.clone()));
    Resource::builder_empty()
        .with_attributes([
            KeyValue::new("service.name", service_name.to_owned()),
            KeyValue::new("service.version", service_version.to_owned()),
            KeyValue::new("service.instance.id", Uuid::new_v4().to_string()),
        ])
        .with_attributes(from_environment)
        .build()
}

/// Whether this is the name the SDK gives a service that has none.
fn is_made_up_name(key: &Key, value: &Value) -> bool {
    key.as_str() == "service.name" && value.as_str().starts_with("unknown_service")
}

/// The global tracer provider, if spans are to be exported.
pub(super) fn install_tracer(resource: &Resource) -> Option<SdkTracerProvider> {
    if !is_wanted("TRACES") {
        return None;
    }
    let exporter = span_exporter().map_err(|_| refuse("traces")).ok()?;
    let provider = SdkTracerProvider::builder()
        .with_resource(resource.clone())
        .with_batch_exporter(exporter)
        .build();
    global::set_tracer_provider(provider.clone());
    global::set_text_map_propagator(TraceContextPropagator::new());
    Some(provider)
}

/// The global meter provider, if metrics are to be exported.
pub(super) fn install_meter(resource: &Resource) -> Option<SdkMeterProvider> {
    if !is_wanted("METRICS") {
        return None;
    }
    let exporter = metric_exporter().map_err(|_| refuse("metrics")).ok()?;
    let provider = SdkMeterProvider::builder()
        .with_resource(resource.clone())
        .with_periodic_exporter(exporter)
        .build();
    global::set_meter_provider(provider.clone());
    Some(provider)
}

fn span_exporter() -> Result<SpanExporter, HttpError> {
    let client = ExportClient::new()?;
    Ok(SpanExporter::builder()
        .with_http()
        .with_http_client(client)
        .build()?)
}

fn metric_exporter() -> Result<MetricExporter, HttpError> {
    let client = ExportClient::new()?;
    Ok(MetricExporter::builder()
        .with_http()
        .with_http_client(client)
        .build()?)
}

/// Whether the environment names an endpoint for `signal` and does not switch it off.
fn is_wanted(signal: &str) -> bool {
    let is = |name: &str, word: &str| {
        process_variable(name).is_some_and(|value| value.eq_ignore_ascii_case(word))
    };
    let endpoint = process_variable(&format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"))
        .or_else(|| process_variable("OTEL_EXPORTER_OTLP_ENDPOINT"));
    endpoint.is_some()
        && !is("OTEL_SDK_DISABLED", "true")
        && !is(&format!("OTEL_{signal}_EXPORTER"), "none")
}

/// The error itself is not told: it may repeat the endpoint's URL.
fn refuse(signal: &str) {
    tracing::warn!(
        signal,
        "telemetry is not exported: the OTEL_EXPORTER_OTLP_* variables cannot be used"
    );
}
