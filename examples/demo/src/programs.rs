//! Kurier's programs as processes: how they are configured, started, watched and stopped.

use std::{
    fs::File,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context as _, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::{
    process::{Child, Command},
    time::timeout,
};

use crate::Services;

/// Small, so that retries need no patience; part of the delay queues' names.
pub(crate) const DELAY_UNIT: Duration = Duration::from_millis(100);

/// How long a program may take to finish what is in flight.
const STOPPED_WITHIN: Duration = Duration::from_secs(10);

/// How much is shown of the log of a program that ended by itself.
const LAST_LINES: usize = 10;

/// Where the programs are and what they are told.
pub struct Programs {
    folder: PathBuf,
    logs: PathBuf,
    environment: Vec<(&'static str, String)>,
}

/// A running program; killed if it is dropped.
pub(crate) struct Program {
    name: &'static str,
    log: PathBuf,
    child: Child,
}

impl Programs {
    /// The programs that lie beside this one, working in the database and broker namespace `name`.
    pub(crate) fn new(services: &Services, name: &str, logs: &Path) -> anyhow::Result<Programs> {
        let folder = std::env::current_exe()?
            .ancestors()
            .skip(1)
            .find(|folder| folder.join("kurier").is_file())
            .context("the program kurier does not lie beside this one: build it first")?
            .to_owned();
        let milliseconds = |duration: Duration| duration.as_millis().to_string();
        let environment = vec![
            ("DATABASE_URL", services.url_of(name).into()),
            ("AMQP_URL", services.amqp_url.clone()),
            ("KURIER_BROKER_NAMESPACE", name.to_owned()),
            ("KURIER_DELAY_UNIT_MS", milliseconds(DELAY_UNIT)),
            ("KURIER_BREAKER_COOLDOWN_MS", "4000".to_owned()),
            ("KURIER_RELEASE_INTERVAL_MS", "200".to_owned()),
            // The receiver listens on the loopback interface, without TLS.
            ("KURIER_ALLOW_HTTP", "true".to_owned()),
            ("KURIER_ALLOWED_NETWORKS", "127.0.0.0/8".to_owned()),
        ];
        Ok(Programs {
            folder,
            logs: logs.to_owned(),
            environment,
        })
    }

    /// What the programs are told, as variables. Holds passwords.
    pub fn environment(&self) -> &[(&'static str, String)] {
        &self.environment
    }

    /// Where the programs lie.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Runs `kurier ARGUMENTS --json`, which must succeed, and reads what it prints. That can hold a
    /// signing secret.
    pub async fn kurier(&self, arguments: &[&str]) -> anyhow::Result<Value> {
        let output = self
            .command("kurier")
            .args(arguments)
            .arg("--json")
            .output()
            .await
            .context("cannot run kurier")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "kurier {} failed: {errors}",
            arguments.join(" ")
        );
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    pub(crate) fn start(&self, name: &'static str) -> anyhow::Result<Program> {
        let log = self.logs.join(name).with_extension("log");
        let out = File::create(&log)?;
        let child = self
            .command(name)
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        Ok(Program { name, log, child })
    }

    /// Settings of whoever runs the demo would change its story, so they are not passed on.
    fn command(&self, name: &str) -> Command {
        let mut command = Command::new(self.folder.join(name));
        for variable in settings::VARIABLES {
            command.env_remove(variable.name);
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.kill_on_drop(true);
        command
    }
}

impl Program {
    /// Fails when it has ended by itself.
    pub(crate) fn ensure_running(&mut self) -> anyhow::Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("{} ended ({status}): {}", self.name, self.last_words()),
        }
    }

    /// The end of its log.
    fn last_words(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LAST_LINES)..].join("\n")
    }

    /// Asks it to end and waits until it has. How it ended says nothing: whoever interrupts the demo
    /// from a terminal interrupts it too, and a second signal makes it hurry.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        let pid = self
            .child
            .id()
            .and_then(|pid| Pid::from_raw(pid.try_into().ok()?));
        let Some(pid) = pid else { return Ok(()) };
        kill_process(pid, Signal::TERM)?;
        let ended = timeout(STOPPED_WITHIN, self.child.wait()).await;
        ended.with_context(|| format!("{} does not end", self.name))??;
        Ok(())
    }
}
