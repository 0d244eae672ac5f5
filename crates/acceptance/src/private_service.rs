//! A broker or database that one test has for itself, to be stopped, killed and wiped at will.

use std::{path::PathBuf, process};

use tokio::process::Command;
use uuid::Uuid;

use crate::environment;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dev/services.sh");

/// Started by `dev/services.sh`; dropping it stops it and removes its data.
pub struct PrivateService {
    name: &'static str,
    variable: &'static str,
    folder: PathBuf,
    url: String,
}

impl PrivateService {
    /// A RabbitMQ node.
    pub async fn rabbitmq() -> Self {
        Self::begin("rabbitmq", "AMQP_URL").await
    }

    /// A PostgreSQL server.
    pub async fn postgres() -> Self {
        Self::begin("postgres", "DATABASE_URL").await
    }

    async fn begin(name: &'static str, variable: &'static str) -> Self {
        let folder = environment::folder_for_services().join(Uuid::new_v4().simple().to_string());
        let mut service = Self {
            name,
            variable,
            folder,
            url: String::new(),
        };
        service.url = service.start().await;
        service
    }

    /// How it is reached, before and after it was away.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Starts it again with the data it had, and returns how it is reached.
    pub async fn start(&self) -> String {
        let printed = self.order(&format!("start-{}", self.name), &[]).await;
        let mut lines = printed.lines();
        lines
            .find_map(|line| line.strip_prefix(self.variable)?.strip_prefix('='))
            .expect("its URL")
            .to_owned()
    }

    /// Stops it in order.
    pub async fn stop(&self) {
        self.order(&format!("stop-{}", self.name), &[]).await;
    }

    /// SIGKILL.
    pub async fn kill(&self) {
        self.order(&format!("kill-{}", self.name), &[]).await;
    }

    /// SIGKILL, and everything it held is gone.
    pub async fn wipe(&self) {
        self.order(&format!("wipe-{}", self.name), &[]).await;
    }

    /// What an operator of RabbitMQ does.
    pub async fn rabbitmqctl(&self, arguments: &[&str]) {
        self.order("rabbitmqctl", arguments).await;
    }

    async fn order(&self, command: &str, arguments: &[&str]) -> String {
        let output = Command::new(SCRIPT)
            .arg(command)
            .arg(&self.folder)
            .args(arguments)
            .output()
            .await
            .expect("the script runs");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {stderr}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for PrivateService {
    fn drop(&mut self) {
        let removed = process::Command::new(SCRIPT)
            .arg("remove")
            .arg(&self.folder)
            .output();
        if !removed.is_ok_and(|output| output.status.success()) {
            eprintln!("{} is not removed: {}", self.name, self.folder.display());
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
