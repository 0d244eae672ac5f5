//! What every program does around its own work, in the one order that is right.

use std::fmt::Display;
use std::io::Write;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use tokio::runtime::Runtime;

use crate::config::{ConfigFaults, EXIT_USAGE, Environment};
use crate::health::Health;
use crate::lifecycle::{Shutdown, Tasks, watch_signals};
use crate::telemetry::{self, LogFormat, Telemetry};

/// Time to finish what is in flight before it is given up, unless the environment says otherwise.
/// It is longer than one attempt may take, and shorter than Kubernetes waits before it kills.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(25);

/// Longest wait for blocking calls once everything else has ended.
const RUNTIME_STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// Who a program is.
#[derive(Debug, Clone, Copy)]
pub struct ProgramInfo {
    /// Its name in logs, traces and metrics.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
}

/// What a program's body works with.
#[derive(Debug)]
pub struct Context {
    /// When to stop.
    pub shutdown: Shutdown,
    /// Where components say whether they live and are ready.
    pub health: Health,
    /// Where tasks are started; the body usually ends with [`Tasks::supervise`].
    pub tasks: Tasks,
    /// Whether spans are exported.
    pub tracing_enabled: bool,
}

/// What is the same for every program, from `KURIER_*` variables.
struct Settings {
    health_addr: Option<SocketAddr>,
    log_format: LogFormat,
    shutdown_grace: Duration,
}

impl Settings {
    fn read(env: &mut Environment) -> Self {
        #[cfg(debug_assertions)]
        check_failpoint(env);
        let grace_range = Duration::from_millis(1)..=Duration::from_hours(1);
        Self {
            health_addr: env.socket_addr("KURIER_HEALTH_ADDR"),
            log_format: env.parsed_with(
                "KURIER_LOG_FORMAT",
                LogFormat::suited_to_stderr(),
                "json or text",
                str::parse,
            ),
            shutdown_grace: env.duration_ms(
                "KURIER_SHUTDOWN_GRACE_MS",
                SHUTDOWN_GRACE,
                grace_range,
            ),
        }
    }
}

/// The failpoint itself is read where it is reached; here it is only told when it is wrong.
#[cfg(debug_assertions)]
fn check_failpoint(env: &mut Environment) {
    use crate::failpoint::{Failpoint, VARIABLE};

    env.parsed_with(VARIABLE, None, "name or name:N", |text| {
        text.parse::<Failpoint>().map(Some)
    });
}

/// Runs a program: configuration, logs and telemetry, runtime, signals and health around `body`.
///
/// `read` takes its configuration from the environment. If anything in it is wrong, all faults are
/// printed and the exit code is 64, before anything is started. Otherwise it is 0 if `body` succeeds
/// and 1 if it fails, with the chain of causes printed once. What has not been exported is flushed
/// in either case.
pub fn run<C, F>(
    info: ProgramInfo,
    read: impl FnOnce(&mut Environment) -> C,
    body: impl FnOnce(C, Context) -> F,
) -> ExitCode
where
    F: Future<Output = anyhow::Result<()>>,
{
    let mut env = Environment::from_process();
    let settings = Settings::read(&mut env);
    let config = read(&mut env);
    if let Err(faults) = env.finish() {
        return refuse_config(info, &faults);
    }
    let telemetry = telemetry::init(info.name, info.version, settings.log_format);
    let ended = run_body(info, &settings, &telemetry, |context| body(config, context));
    let code = report_end(&ended);
    telemetry.shutdown();
    code
}

/// The runtime's worker threads are as many as `TOKIO_WORKER_THREADS` says, or as there are cores.
fn run_body<F>(
    info: ProgramInfo,
    settings: &Settings,
    telemetry: &Telemetry,
    body: impl FnOnce(Context) -> F,
) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>>,
{
    let runtime = Runtime::new().context("cannot start the async runtime")?;
    let ended = runtime.block_on(async {
        let context = start(settings, telemetry).await?;
        tracing::info!(program = info.name, version = info.version, "started");
        body(context).await
    });
    runtime.shutdown_timeout(RUNTIME_STOP_TIMEOUT);
    ended
}

async fn start(settings: &Settings, telemetry: &Telemetry) -> anyhow::Result<Context> {
    let shutdown = Shutdown::new();
    let health = Health::new(shutdown.clone());
    let mut tasks = Tasks::new(shutdown.clone());
    let signals = watch_signals(shutdown.clone(), settings.shutdown_grace)
        .context("cannot listen for signals")?;
    tasks.spawn_background("signals", async {
        signals.await;
        Ok(())
    });
    if let Some(addr) = settings.health_addr {
        health.serve(addr, &mut tasks).await?;
    }
    Ok(Context {
        shutdown,
        health,
        tasks,
        tracing_enabled: telemetry.tracing_enabled(),
    })
}

/// Logging is not set up yet, and whoever reads this wants plain lines.
fn refuse_config(info: ProgramInfo, faults: &ConfigFaults) -> ExitCode {
    print_to_stderr(format_args!(
        "{}: the configuration is wrong:\n{faults}",
        info.name
    ));
    ExitCode::from(EXIT_USAGE)
}

fn report_end(ended: &anyhow::Result<()>) -> ExitCode {
    match ended {
        Ok(()) => {
            tracing::info!("stopped");
            ExitCode::SUCCESS
        }
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "stopped by an error");
            ExitCode::FAILURE
        }
    }
}

/// A closed standard error is no reason to panic.
fn print_to_stderr(text: impl Display) {
    let _ = writeln!(std::io::stderr(), "{text}");
}
