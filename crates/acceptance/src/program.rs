//! A running program: its readiness, its log, and the ways to end it.

use std::{fs, net::SocketAddr, path::PathBuf, thread, time::Duration};

use rustix::{
    param::clock_ticks_per_second,
    process::{Pid, Signal, kill_process},
};
use tokio::{
    process::Child,
    time::{sleep, timeout},
};

use crate::{health, world::PATIENCE};

/// How often a program's state is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// Where in `/proc/ID/stat` behind the name the user time is, with the system time following.
const USER_TIME: usize = 11;
/// What is shown of a log when a test fails.
const LOG_BYTES_SHOWN: usize = 16 * 1024;

/// A program started by [`Launch`](crate::Launch). Dropping it kills it; after a failed test its log is
/// shown.
pub struct Program {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

impl Program {
    pub(crate) fn new(name: &'static str, child: Child, log: PathBuf) -> Self {
        Self { name, child, log }
    }

    /// What it has printed so far.
    pub fn log(&self) -> String {
        let bytes = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Its process id; none once its end was awaited.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// The CPU time it has used so far.
    ///
    /// # Panics
    /// When it has ended.
    pub fn cpu_time(&self) -> Duration {
        let id = self.id().expect("it has not ended");
        let stat = fs::read_to_string(format!("/proc/{id}/stat")).expect("it runs");
        let (_, after_name) = stat.rsplit_once(')').expect("its name");
        let ticks: u64 = after_name
            .split_whitespace()
            .skip(USER_TIME)
            .take(2)
            .map(|ticks| ticks.parse::<u64>().expect("a number"))
            .sum();
        Duration::from_millis(ticks * 1000 / clock_ticks_per_second())
    }

    /// Whether it has not ended yet.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Whether `/readyz` answers 200.
    pub async fn is_ready(&self) -> bool {
        self.health("/readyz").await == Some(200)
    }

    /// Whether `/livez` answers 200.
    pub async fn is_live(&self) -> bool {
        self.health("/livez").await == Some(200)
    }

    /// Waits until it is ready.
    ///
    /// # Panics
    /// When it ends or is not ready in time.
    pub async fn wait_ready(&mut self) {
        let ready = async {
            while !self.is_ready().await {
                let ended = self.child.try_wait().expect("its state can be asked");
                assert!(ended.is_none(), "{} ended: {ended:?}", self.name);
                sleep(LOOK).await;
            }
        };
        let in_time = timeout(PATIENCE, ready).await.is_ok();
        assert!(in_time, "{} is not ready after {PATIENCE:?}", self.name);
    }

    /// Waits until it is no longer ready: it drains, or has ended.
    ///
    /// # Panics
    /// When it stays ready.
    pub async fn wait_unready(&self) {
        let unready = async {
            while self.is_ready().await {
                sleep(LOOK).await;
            }
        };
        let in_time = timeout(PATIENCE, unready).await.is_ok();
        assert!(in_time, "{} is still ready after {PATIENCE:?}", self.name);
    }

    /// Waits until its log contains `text`.
    ///
    /// # Panics
    /// When it does not in time.
    pub async fn wait_log(&self, text: &str) {
        let told = async {
            while !self.log().contains(text) {
                sleep(LOOK).await;
            }
        };
        let in_time = timeout(PATIENCE, told).await.is_ok();
        assert!(in_time, "{} does not log {text:?}", self.name);
    }

    /// SIGKILL, and waits until it is gone.
    pub async fn kill(&mut self) {
        self.child.kill().await.expect("it can be killed");
    }

    /// SIGTERM, and returns at once.
    pub fn ask_to_stop(&self) {
        self.signal(Signal::TERM);
    }

    /// SIGTERM, and waits for its end; returns its exit code, none when a signal ended it.
    ///
    /// # Panics
    /// When it has not ended in time.
    pub async fn terminate(&mut self) -> Option<i32> {
        self.ask_to_stop();
        self.wait_exit().await
    }

    /// Waits for its end, whatever brings it; returns its exit code, none when a signal ended it.
    ///
    /// # Panics
    /// When it has not ended in time.
    pub async fn wait_exit(&mut self) -> Option<i32> {
        let Ok(ended) = timeout(PATIENCE, self.child.wait()).await else {
            panic!("{} has not ended after {PATIENCE:?}", self.name)
        };
        ended.expect("its end can be awaited").code()
    }

    /// SIGSTOP: it stands still with all its connections open.
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
    }

    /// SIGCONT: it goes on.
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let id = self.id().expect("it has not ended");
        let id = Pid::from_raw(id.try_into().expect("a process id")).expect("not zero");
        kill_process(id, signal).expect("it can be signalled");
    }

    async fn health(&self, path: &str) -> Option<u16> {
        health::status(self.health_address()?, path).await
    }

    /// It takes a free port and says in its log which.
    fn health_address(&self) -> Option<SocketAddr> {
        let log = self.log();
        let line = log
            .lines()
            .find(|line| line.contains("serving health checks"))?;
        line.rsplit_once("addr=")?.1.trim().parse().ok()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if thread::panicking() {
            let log = self.log();
            let shown = log.floor_char_boundary(log.len().saturating_sub(LOG_BYTES_SHOWN));
            eprintln!("--- {}\n{}", self.name, &log[shown..]);
        }
    }
}
