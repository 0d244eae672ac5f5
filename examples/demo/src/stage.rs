//! Everything a run creates: a database, a broker namespace, programs, a receiver, log files. It knows
//! how to remove them again, however far it got.

use std::{
    fs::OpenOptions,
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

use scripted_receiver::Receiver;
use sqlx::PgPool;
use uuid::Uuid;

use crate::{Programs, Services, database, namespace, programs::Program};

/// What a run works with. Programs that are still running when it is dropped are killed.
pub struct Stage {
    services: Services,
    name: String,
    folder: PathBuf,
    programs: Programs,
    running: Vec<Program>,
    receiver: Option<Receiver>,
}

impl Stage {
    /// Only a name, and a folder for logs; nothing is created at the services yet.
    pub fn new(services: Services) -> anyhow::Result<Stage> {
        let id = Uuid::new_v4().simple().to_string();
        let name = format!("kurier_demo_{}", &id[..12]);
        let folder = std::env::temp_dir().join(&name);
        std::fs::create_dir(&folder)?;
        let programs = Programs::new(&services, &name, &folder)?;
        Ok(Stage {
            services,
            name,
            folder,
            programs,
            running: Vec::new(),
            receiver: None,
        })
    }

    /// The name of the database and of the broker namespace.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Kurier's programs, configured for this run.
    pub fn programs(&self) -> &Programs {
        &self.programs
    }

    /// Creates the database, empty.
    pub async fn create_database(&self) -> anyhow::Result<PgPool> {
        database::create(&self.services, &self.name).await
    }

    /// The receiver; started when it is first asked for.
    pub async fn receiver(&mut self) -> std::io::Result<&Receiver> {
        let receiver = match self.receiver.take() {
            Some(receiver) => receiver,
            None => Receiver::start().await?,
        };
        Ok(self.receiver.insert(receiver))
    }

    pub(crate) fn started_receiver(&self) -> Option<&Receiver> {
        self.receiver.as_ref()
    }

    /// Starts a relay and a dispatcher.
    pub fn start_programs(&mut self) -> anyhow::Result<()> {
        for name in ["outbox-relay", "dispatcher"] {
            self.running.push(self.programs.start(name)?);
        }
        Ok(())
    }

    pub(crate) fn ensure_programs_run(&mut self) -> anyhow::Result<()> {
        self.running
            .iter_mut()
            .try_for_each(Program::ensure_running)
    }

    /// Writes the programs' variables to a file that only its owner can read, and says what to do
    /// with it.
    pub(crate) fn how_to_look_around(&self) -> anyhow::Result<String> {
        let path = self.folder.join("environment");
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        writeln!(
            file,
            "PATH={}:$PATH",
            quoted(&self.programs.folder().to_string_lossy())
        )?;
        for (name, value) in self.programs.environment() {
            writeln!(file, "export {name}={}", quoted(value))?;
        }
        Ok(looking_around(&path, &self.folder))
    }

    /// Stops the programs, then removes the database, the namespace and the logs. Every step is tried;
    /// the first failure is told.
    pub async fn clear(&mut self) -> anyhow::Result<()> {
        let mut outcomes = Vec::new();
        for program in self.running.drain(..) {
            outcomes.push(program.stop().await);
        }
        if let Some(receiver) = self.receiver.take() {
            receiver.stop().await;
        }
        outcomes.push(database::drop(&self.services, &self.name).await);
        outcomes.push(namespace::remove(&self.services.amqp_url, &self.name).await);
        outcomes.push(std::fs::remove_dir_all(&self.folder).map_err(Into::into));
        outcomes.into_iter().collect()
    }
}

fn looking_around(environment: &Path, logs: &Path) -> String {
    format!(
        "\nEverything is left running until Ctrl-C. In another terminal:\n
  source {}
  kurier doctor
  kurier endpoint list
  kurier delivery list --status held
  kurier delivery list --status dead_letter
  kurier event send --event-type order.placed --payload '{{\"order\": 1000}}'\n
Logs: {}",
        environment.display(),
        logs.display()
    )
}

/// For a POSIX shell.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_reaches_the_shell_as_it_is() {
        assert_eq!(quoted("a b$c"), "'a b$c'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
    }
}
