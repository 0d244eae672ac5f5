//! Programs under test: a test starts its own binary again, and there is the program it watches.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, ExitCode, Stdio};

use process::{Context, Environment, ProgramInfo};
use rustix::process::{Pid, Signal, kill_process};

/// Set in a child: it is the program, not the test.
const CHILD: &str = "TEST_IS_PROGRAM";

/// Whether this process is the program of its test.
pub(crate) fn is_program() -> bool {
    Environment::from_process().flag(CHILD, false)
}

/// Runs a program with `body` and leaves with its exit code.
pub(crate) fn run_program<F>(body: impl FnOnce(Context) -> F)
where
    F: Future<Output = anyhow::Result<()>>,
{
    let info = ProgramInfo {
        name: "example",
        version: "1.2.3",
    };
    leave(process::run(info, |_| (), |(), context| body(context)));
}

/// A test cannot return the code, so the process leaves with it.
pub(crate) fn leave(code: ExitCode) -> ! {
    let known = (0..=u8::MAX).find(|number| code == ExitCode::from(*number));
    std::process::exit(known.map_or(-1, i32::from))
}

/// The program of `test`, not yet started: no variables but the given ones.
pub(crate) fn program(test: &str, variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("this test's binary"));
    command
        .args(["--exact", "--nocapture", test])
        .env_clear()
        .env(CHILD, "1")
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A program that runs; it is killed if the test ends before it.
pub(crate) struct Running {
    child: Child,
    stdout: BufReader<ChildStdout>,
}

impl Running {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.spawn().expect("the program starts");
        let stdout = BufReader::new(child.stdout.take().expect("its standard output"));
        Self { child, stdout }
    }

    /// Waits until the program has printed a line that ends with `line`.
    pub(crate) fn await_line(&mut self, line: &str) {
        let mut read = String::new();
        while !read.trim_end().ends_with(line) {
            read.clear();
            let bytes = self.stdout.read_line(&mut read).expect("a line");
            assert_ne!(bytes, 0, "the program ended before it printed {line:?}");
        }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("the program runs");
    }

    /// Waits for the end: the exit code and what was printed to standard error.
    pub(crate) fn wait(mut self) -> (Option<i32>, String) {
        let mut stderr = String::new();
        let mut pipe = self.child.stderr.take().expect("its standard error");
        pipe.read_to_string(&mut stderr).expect("text");
        let status = self.child.wait().expect("the program ends");
        (status.code(), stderr)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already when the test succeeded.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
