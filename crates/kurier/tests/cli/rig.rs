//! What each test needs: a database of its own, dropped at the end, and the program run against it.

use std::{
    panic::AssertUnwindSafe,
    process::{Output, Stdio},
    str::FromStr,
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, PgConnection, postgres::PgConnectOptions};
use tokio::{io::AsyncWriteExt as _, process::Command};
use uuid::Uuid;

pub(crate) const EXIT_USAGE: i32 = 64;

/// Shared by all tests, for nothing here can remove queues again. Declaring them twice is harmless.
const NAMESPACE: &str = "kurier-cli-test";

/// A database of its own and the program's environment.
pub(crate) struct Rig {
    name: String,
    server: PgConnection,
    /// For what only an application or a relay would write.
    pub(crate) database: PgConnection,
    variables: Vec<(String, String)>,
}

/// What a run of the program left.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a test on a database of its own, without a schema, and drops it whatever comes of the test.
pub(crate) async fn with_empty_database(
    test: impl AsyncFnOnce(&mut Rig) -> Result<()>,
) -> Result<()> {
    let mut rig = Rig::new().await?;
    let outcome = catch_unwind(test(&mut rig)).await;
    rig.drop_database().await?;
    outcome.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// The same with the schema in place.
pub(crate) async fn with_database(test: impl AsyncFnOnce(&mut Rig) -> Result<()>) -> Result<()> {
    with_empty_database(async |rig: &mut Rig| {
        rig.json(&["migrate"]).await?;
        test(rig).await
    })
    .await
}

async fn catch_unwind(test: impl Future<Output = Result<()>>) -> std::thread::Result<Result<()>> {
    let mut test = Box::pin(test);
    std::future::poll_fn(|context| {
        let step = std::panic::catch_unwind(AssertUnwindSafe(|| test.as_mut().poll(context)));
        match step {
            Ok(poll) => poll.map(Ok),
            Err(panic) => std::task::Poll::Ready(Err(panic)),
        }
    })
    .await
}

#[expect(
    clippy::disallowed_methods,
    reason = "the tests are told where the services are"
)]
fn service(name: &str) -> Result<String> {
    std::env::var(name).with_context(|| {
        format!("{name} is not set: these tests need services, run them by `./run test`")
    })
}

impl Rig {
    async fn new() -> Result<Self> {
        let (server_url, amqp_url) = (service("DATABASE_URL")?, service("AMQP_URL")?);
        let mut server = PgConnection::connect(&server_url).await?;
        let name = format!("kurier_cli_{}", Uuid::new_v4().simple());
        sqlx::query(AssertSqlSafe(format!("CREATE DATABASE {name}")))
            .execute(&mut server)
            .await?;
        let options = PgConnectOptions::from_str(&server_url)?.database(&name);
        let database = PgConnection::connect_with(&options).await?;
        let variables = [
            ("DATABASE_URL", with_database_name(&server_url, &name)?),
            ("AMQP_URL", amqp_url),
            ("KURIER_BROKER_NAMESPACE", NAMESPACE.to_owned()),
        ];
        Ok(Self {
            server,
            database,
            variables: variables
                .map(|(name, value)| (name.to_owned(), value))
                .into(),
            name,
        })
    }

    async fn drop_database(mut self) -> Result<()> {
        self.database.close().await?;
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        sqlx::query(AssertSqlSafe(drop))
            .execute(&mut self.server)
            .await?;
        Ok(self.server.close().await?)
    }

    /// Sets a variable of the program.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    /// Runs the program to its end.
    pub(crate) async fn run(&self, arguments: &[&str]) -> Result<Run> {
        self.run_with_stdin(arguments, b"").await
    }

    /// Runs the program with something to read.
    pub(crate) async fn run_with_stdin(&self, arguments: &[&str], stdin: &[u8]) -> Result<Run> {
        run(&self.variables, arguments, stdin).await
    }

    /// Runs the program with `--json`, which must succeed, and reads its one document.
    pub(crate) async fn json(&self, arguments: &[&str]) -> Result<Value> {
        let arguments: Vec<&str> = arguments.iter().copied().chain(["--json"]).collect();
        let run = self.run(&arguments).await?;
        ensure!(run.code == Some(0), "{arguments:?}: {run:?}");
        serde_json::from_str(&run.stdout).context("not one JSON document")
    }

    /// Registers an endpoint and returns its id.
    pub(crate) async fn endpoint(&self) -> Result<String> {
        let url = "https://hooks.example/in?key=s3cret";
        let added = self.json(&["endpoint", "add", "--url", url]).await?;
        text(&added["id"])
    }
}

/// Runs the program with these variables and no others.
pub(crate) async fn run(
    variables: &[(String, String)],
    arguments: &[&str],
    stdin: &[u8],
) -> Result<Run> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_kurier"))
        .args(arguments)
        .env_clear()
        .envs(variables.iter().cloned())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut pipe = child.stdin.take().context("no standard input")?;
    // A program that does not read has closed it.
    let _ = pipe.write_all(stdin).await;
    drop(pipe);
    let Output {
        status,
        stdout,
        stderr,
    } = child.wait_with_output().await?;
    Ok(Run {
        code: status.code(),
        stdout: String::from_utf8(stdout)?,
        stderr: String::from_utf8(stderr)?,
    })
}

/// The text of a JSON string.
pub(crate) fn text(value: &Value) -> Result<String> {
    let text = value
        .as_str()
        .with_context(|| format!("{value} is not a text"))?;
    Ok(text.to_owned())
}

/// The server's URL with another database in its path.
fn with_database_name(server_url: &str, name: &str) -> Result<String> {
    let mut url = url::Url::parse(server_url)?;
    url.set_path(name);
    Ok(url.into())
}
