//! Logs to standard error, and traces and metrics over OTLP where the environment asks for them.
//!
//! The `OTEL_*` variables mean what the OpenTelemetry specification says; without an endpoint nothing
//! is exported and the global providers stay no-ops. An exporter that fails costs a log line now and
//! then, never the program's work. Span and metric names are not known here.

mod client;
mod export;
mod logs;

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::SdkTracerProvider;

pub use logs::LogFormat;

/// Longest wait for the last spans and metrics to leave.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(5);

/// The providers that are installed; to be shut down when the program has ended.
#[derive(Debug)]
#[must_use = "what has not been exported yet is lost unless this is shut down"]
pub struct Telemetry {
    tracer_provider: Option<SdkTracerProvider>,
    meter_provider: Option<SdkMeterProvider>,
}

/// Installs logging and, where the environment asks for it, the global tracer and meter providers.
///
/// To be called once, before any instrument is made: earlier ones stay no-ops. A logger that is
/// already installed, as in tests, is kept.
pub fn init(service_name: &str, service_version: &str, log_format: LogFormat) -> Telemetry {
    logs::init(log_format);
    let resource = export::resource(service_name, service_version);
    Telemetry {
        tracer_provider: export::install_tracer(&resource),
        meter_provider: export::install_meter(&resource),
    }
}

impl Telemetry {
    /// Whether spans are exported, so that a hot path can leave out making them.
    pub fn tracing_enabled(&self) -> bool {
        self.tracer_provider.is_some()
    }

    /// Exports what is left and stops, within five seconds.
    ///
    /// It works on a thread of its own: an exporter may block, and what goes wrong in it stays there.
    pub fn shutdown(self) {
        let (done, wait) = mpsc::channel();
        thread::spawn(move || {
            self.flush();
            // Nobody listens any more when it took too long.
            let _ = done.send(());
        });
        if wait.recv_timeout(FLUSH_TIMEOUT).is_err() {
            tracing::warn!("the last spans and metrics could not be exported in time");
        }
    }

    /// A failure was told by the exporting client already.
    fn flush(self) {
        if let Some(provider) = self.tracer_provider {
            let _ = provider.shutdown_with_timeout(FLUSH_TIMEOUT);
        }
        if let Some(provider) = self.meter_provider {
            let _ = provider.shutdown_with_timeout(FLUSH_TIMEOUT);
        }
    }
}
