//! Log lines on standard error, and the cap on crates that would print what must not be printed.

use std::io::{self, IsTerminal};
use std::str::FromStr;

use tracing::Subscriber;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::{EnvFilter, FilterExt, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};
use tracing_subscriber::util::SubscriberInitExt;

use crate::config;

/// Crates that print URLs, queries or bodies below warnings, by the beginning of their targets.
const CAPPED: &[&str] = &[
    "amq_protocol",
    "axum",
    "h2",
    "hickory",
    "hyper",
    "opentelemetry",
    "reqwest",
    "rustls",
    "sqlx",
    "tokio_rustls",
    "tower",
];

/// Crates whose errors all come back to their callers, which log what they mean. Their own lines would
/// say ERROR where nothing is wrong (a queue that is looked for and has to be created, for example).
const SILENCED: &[&str] = &["lapin"];

/// The shape of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

impl LogFormat {
    /// Text on a terminal, JSON anywhere else.
    pub fn suited_to_stderr() -> Self {
        if io::stderr().is_terminal() {
            Self::Text
        } else {
            Self::Json
        }
    }
}

impl FromStr for LogFormat {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "json" => Ok(Self::Json),
            "text" => Ok(Self::Text),
            _ => Err("no such format"),
        }
    }
}

/// Installs the process's logger, with `RUST_LOG` as its filter.
pub(super) fn init(format: LogFormat) {
    let directives = config::process_variable("RUST_LOG");
    let installed = subscriber(format, directives.as_deref(), io::stderr).try_init();
    if installed.is_err() {
        tracing::debug!("a logger is installed already");
    }
}

/// A logger that writes to `writer` what `directives` let through, and never what is capped.
fn subscriber<W>(
    format: LogFormat,
    directives: Option<&str>,
    writer: W,
) -> impl Subscriber + Send + Sync
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let ansi = format == LogFormat::Text && io::stderr().is_terminal();
    let filter = env_filter(directives).and(cap());
    Registry::default().with(lines(format, ansi, writer).with_filter(filter))
}

fn lines<S, W>(format: LogFormat, ansi: bool, writer: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: Subscriber + for<'s> LookupSpan<'s>,
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let layer = tracing_subscriber::fmt::layer()
        .with_writer(writer)
        .with_ansi(ansi);
    match format {
        LogFormat::Json => layer.json().flatten_event(true).boxed(),
        LogFormat::Text => layer.boxed(),
    }
}

/// Directives that cannot be read count as none: a typing error there must not stop a program.
fn env_filter(directives: Option<&str>) -> EnvFilter {
    let given = directives.and_then(|text| EnvFilter::try_new(text).ok());
    given.unwrap_or_else(|| EnvFilter::new("info"))
}

fn cap() -> Targets {
    let capped = CAPPED.iter().map(|target| (*target, LevelFilter::WARN));
    let silenced = SILENCED.iter().map(|target| (*target, LevelFilter::OFF));
    Targets::new()
        .with_default(LevelFilter::TRACE)
        .with_targets(capped.chain(silenced))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Captured(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("captured lines").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(format: LogFormat, directives: Option<&str>, log: impl FnOnce()) -> String {
        let captured = Captured::default();
        let writer = captured.clone();
        let subscriber = subscriber(format, directives, move || writer.clone());
        tracing::subscriber::with_default(subscriber, log);
        let bytes = captured.0.lock().expect("captured lines").clone();
        String::from_utf8(bytes).expect("log lines in UTF-8")
    }

    fn log_payloads_everywhere() {
        tracing::trace!(target: "hyper::proto::h1::io", "canary");
        tracing::debug!(target: "hyper_util::client::legacy", "canary");
        tracing::trace!(target: "reqwest::connect", "canary");
        tracing::debug!(target: "h2::codec::framed_read", "canary");
        tracing::debug!(target: "rustls::client::hs", "canary");
        tracing::info!(target: "sqlx::query", "canary");
        tracing::trace!(target: "lapin::channel", "canary");
        tracing::info!(target: "opentelemetry-otlp", "canary");
    }

    #[test]
    fn rust_log_cannot_make_noisy_crates_print_payloads() {
        for directives in [
            "trace",
            "hyper=trace,hyper_util=trace,reqwest=trace,h2=trace",
            "rustls=trace,sqlx=trace,sqlx::query=trace,lapin=trace,opentelemetry=trace",
        ] {
            let lines = logged(LogFormat::Text, Some(directives), log_payloads_everywhere);
            assert_eq!(lines, "", "{directives}");
        }
    }

    #[test]
    fn warnings_of_noisy_crates_are_still_heard() {
        let lines = logged(LogFormat::Text, None, || {
            tracing::warn!(target: "sqlx::query", "slow statement");
            tracing::error!(target: "lapin::channel", "no queue");
        });
        assert!(lines.contains("slow statement") && !lines.contains("no queue"));
    }

    #[test]
    fn other_crates_follow_rust_log() {
        let log = || {
            tracing::debug!(target: "ours", "quiet");
            tracing::info!(target: "ours", "loud");
        };
        let by_default = logged(LogFormat::Text, None, log);
        assert!(by_default.contains("loud") && !by_default.contains("quiet"));
        assert!(logged(LogFormat::Text, Some("trace"), log).contains("quiet"));
        assert_eq!(logged(LogFormat::Text, Some("ours=error"), log), "");
    }

    #[test]
    fn unreadable_directives_fall_back_to_info() {
        let lines = logged(LogFormat::Text, Some("ours=loud=very"), || {
            tracing::info!(target: "ours", "heard");
        });
        assert!(lines.contains("heard"));
    }

    #[test]
    fn json_lines_are_one_object_each() {
        let lines = logged(LogFormat::Json, None, || {
            tracing::info!(count = 3, "counted");
        });
        let line: serde_json::Value = serde_json::from_str(lines.trim_end()).expect("one object");
        assert_eq!(line["message"], "counted");
        assert_eq!(line["count"], 3);
        assert_eq!(line["level"], "INFO");
    }
}
