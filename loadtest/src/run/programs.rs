//! The programs under test, as processes: configured by environment, awaited until ready, watched, and stopped.

use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use reqwest::Client;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

const READY_WITHIN: Duration = Duration::from_secs(30);
const READY_POLL: Duration = Duration::from_millis(20);
const STOPPED_WITHIN: Duration = Duration::from_secs(30);

/// A master key for the secrets of a database that is thrown away.
const MASTER_KEYS: &str = "loadtest:BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";

/// Settings of the load test itself, which no program knows.
const OWN_SETTINGS: [&str; 2] = ["KURIER_POSTGRES_PID", "KURIER_RABBITMQ_PID"];

/// Where the programs are and what they are told. Their logs stay behind, as the only trace of a run.
pub(crate) struct Programs {
    folder: PathBuf,
    logs: PathBuf,
    environment: Vec<(&'static str, String)>,
}

/// A running program.
pub(crate) struct Program {
    name: String,
    log: PathBuf,
    child: Child,
    health: SocketAddr,
}

impl Programs {
    /// Takes the programs that lie beside this one. Other `KURIER_*` settings are passed on as they are.
    pub(crate) fn beside_this(
        database_url: &str,
        amqp_url: &str,
        namespace: &str,
    ) -> anyhow::Result<Self> {
        let executable = std::env::current_exe()?;
        let folder = executable
            .parent()
            .context("this program lies in no folder")?
            .to_owned();
        let logs = std::env::temp_dir().join(namespace);
        std::fs::create_dir_all(&logs)?;
        let environment = vec![
            ("DATABASE_URL", database_url.to_owned()),
            ("AMQP_URL", amqp_url.to_owned()),
            ("KURIER_BROKER_NAMESPACE", namespace.to_owned()),
            ("KURIER_MASTER_KEYS", MASTER_KEYS.to_owned()),
            ("KURIER_ALLOW_HTTP", "true".to_owned()),
            ("KURIER_ALLOWED_NETWORKS", "127.0.0.0/8".to_owned()),
        ];
        Ok(Self {
            folder,
            logs,
            environment,
        })
    }

    pub(crate) async fn migrate(&self) -> anyhow::Result<()> {
        self.kurier(&["migrate"]).await
    }

    /// Adds an endpoint that gets every event.
    pub(crate) async fn add_endpoint(&self, url: &str) -> anyhow::Result<()> {
        self.kurier(&["endpoint", "add", "--url", url, "--json"])
            .await
    }

    /// Its output holds the endpoint's secret and is not shown.
    async fn kurier(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let output = self.command("kurier")?.args(arguments).output().await?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "kurier {} failed: {errors}",
            arguments[0]
        );
        Ok(())
    }

    /// Starts one program and waits until it says that it is ready.
    pub(crate) async fn start(&self, binary: &str, number: u32) -> anyhow::Result<Program> {
        let name = format!("{binary}-{number}");
        let log = self.logs.join(format!("{name}.log"));
        let (out, health) = (File::create(&log)?, free_address()?);
        let mut command = self.command(binary)?;
        command.env("KURIER_HEALTH_ADDR", health.to_string());
        command
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out);
        let child = command
            .spawn()
            .with_context(|| format!("cannot start {binary}"))?;
        let mut program = Program {
            name,
            log,
            child,
            health,
        };
        program.await_ready().await?;
        Ok(program)
    }

    fn command(&self, binary: &str) -> anyhow::Result<Command> {
        let path = self.folder.join(binary);
        ensure!(
            path.exists(),
            "{} is not there; build it with the same profile",
            path.display()
        );
        let mut command = Command::new(path);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        for name in OWN_SETTINGS {
            command.env_remove(name);
        }
        command.kill_on_drop(true);
        Ok(command)
    }
}

impl Program {
    /// Its process, while it runs.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.child.id()
    }

    /// Fails when it has ended by itself.
    pub(crate) fn ensure_running(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("{} ended ({status}); see {}", self.name, self.log.display()),
        }
    }

    async fn await_ready(&mut self) -> anyhow::Result<()> {
        let url = format!("http://{}/readyz", self.health);
        let client = crate::send::client()?;
        let ready = async {
            while !is_ready(&client, &url).await {
                self.ensure_running()?;
                sleep(READY_POLL).await;
            }
            anyhow::Ok(())
        };
        let result = timeout(READY_WITHIN, ready).await;
        result.unwrap_or_else(|_| {
            bail!(
                "{} is not ready after {READY_WITHIN:?}; see {}",
                self.name,
                self.log.display()
            )
        })
    }

    /// Asks it to end and waits until it has, with success.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        self.ensure_running()?;
        let pid = self
            .pid()
            .and_then(|pid| Pid::from_raw(pid.try_into().ok()?));
        kill_process(pid.context("the program has no pid")?, Signal::TERM)?;
        let status = timeout(STOPPED_WITHIN, self.child.wait()).await;
        let status = status.with_context(|| format!("{} does not end", self.name))??;
        ensure!(
            status.success(),
            "{} ended with {status}; see {}",
            self.name,
            self.log.display()
        );
        Ok(())
    }
}

async fn is_ready(client: &Client, url: &str) -> bool {
    let answer = client.get(url).send().await;
    answer.is_ok_and(|response| response.status().is_success())
}

/// An address nobody listens on right now.
fn free_address() -> std::io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}
