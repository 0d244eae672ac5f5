//! Starting the real programs, built beside the test.

use std::{
    collections::BTreeMap,
    env,
    fs::File,
    path::{Path, PathBuf},
    process::Stdio,
};

use tokio::process::Command;

use crate::Program;

/// The relay's program.
pub const RELAY: &str = "outbox-relay";
/// The dispatcher's program.
pub const DISPATCHER: &str = "dispatcher";
/// The operator's command line.
pub const KURIER: &str = "kurier";

/// A program about to be started, with the settings of its world.
pub struct Launch {
    program: &'static str,
    arguments: Vec<String>,
    environment: BTreeMap<String, String>,
    log: PathBuf,
}

/// How a program ended that was run to its end.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code; none when a signal ended it.
    pub code: Option<i32>,
    /// What it printed on standard output.
    pub stdout: String,
    /// What it printed on standard error.
    pub stderr: String,
}

impl Launch {
    pub(crate) fn new(
        program: &'static str,
        environment: BTreeMap<String, String>,
        log: PathBuf,
    ) -> Self {
        Self {
            program,
            arguments: Vec::new(),
            environment,
            log,
        }
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(ToString::to_string);
        self.arguments.extend(arguments);
        self
    }

    /// Sets one variable of its environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Takes one variable out of its environment.
    #[must_use]
    pub fn without(mut self, name: &str) -> Self {
        self.environment.remove(name);
        self
    }

    /// Starts it and waits until `/readyz` says it is ready.
    ///
    /// # Panics
    /// When it ends or is not ready in time.
    pub async fn start(self) -> Program {
        let mut program = self.spawn();
        program.wait_ready().await;
        program
    }

    /// Starts it and waits for nothing.
    pub fn spawn(self) -> Program {
        let log = File::create(&self.log).expect("a log file");
        let child = self
            .command()
            .stdout(log.try_clone().expect("a log file"))
            .stderr(log)
            .spawn()
            .expect("the program starts");
        Program::new(self.program, child, self.log)
    }

    /// Runs it to its end.
    pub async fn run(self) -> Ended {
        let output = self.command().output().await.expect("the program runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Ended {
            code: output.status.code(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        }
    }

    fn command(&self) -> Command {
        let mut command = Command::new(executable(self.program));
        command
            .args(&self.arguments)
            .env_clear()
            .envs(&self.environment)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        command
    }
}

/// Tests lie in `deps`, one folder below the programs.
fn executable(program: &str) -> PathBuf {
    let test = env::current_exe().expect("this test has a path");
    let folder = test.parent().and_then(Path::parent).expect("two folders");
    let path = folder.join(program);
    assert!(
        path.is_file(),
        "{} is missing: `cargo build --workspace --bins`, or run these tests by `./run test`",
        path.display()
    );
    path
}
