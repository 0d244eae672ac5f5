//! The receiver as a process of its own, so that its CPU time can be told apart; both ends of the conversation.
//!
//! It writes its port as the first line and answers every line it reads with its totals; end of input ends it.

use std::process::Stdio;

use anyhow::Context;
use scripted_receiver::Receiver;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines, stdin, stdout};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::cli::ReceiverOptions;
use crate::cpu::Party;
use crate::script::EndpointScript;

/// The sums of all paths; an id counts once for each path.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
pub(crate) struct Totals {
    /// Requests that arrived whole.
    pub(crate) arrived: u64,
    /// Requests answered 2xx.
    pub(crate) accepted: u64,
    /// Different webhook-ids answered 2xx.
    pub(crate) ids_accepted: u64,
}

/// The child's side: serves until its input ends.
pub(crate) async fn serve(options: &ReceiverOptions) -> anyhow::Result<()> {
    let receiver = Receiver::start_counting(options.port).await?;
    for (seed, script) in (0..).zip(&options.scripts) {
        receiver.script(&format!("/{seed}"), script.script(seed));
    }
    write_line(&receiver.address().port().to_string()).await?;
    let mut requests = BufReader::new(stdin()).lines();
    while requests.next_line().await?.is_some() {
        write_line(&serde_json::to_string(&totals(&receiver))?).await?;
    }
    Ok(())
}

async fn write_line(line: &str) -> std::io::Result<()> {
    let mut out = stdout();
    out.write_all(line.as_bytes()).await?;
    out.write_all(b"\n").await?;
    out.flush().await
}

fn totals(receiver: &Receiver) -> Totals {
    receiver
        .tallies()
        .iter()
        .fold(Totals::default(), |sum, (_, tally)| Totals {
            arrived: sum.arrived + tally.arrived,
            accepted: sum.accepted + tally.accepted,
            ids_accepted: sum.ids_accepted + tally.ids_accepted,
        })
}

/// The parent's side: a running receiver, killed when dropped.
pub(crate) struct ReceiverProcess {
    child: Child,
    requests: ChildStdin,
    answers: Lines<BufReader<ChildStdout>>,
    port: u16,
}

impl ReceiverProcess {
    /// Starts this very program as a receiver.
    pub(crate) async fn start(scripts: &[EndpointScript]) -> anyhow::Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("receiver");
        for script in scripts {
            command.args(["--script", &script.to_string()]);
        }
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().context("cannot start the receiver")?;
        let requests = child.stdin.take().context("the receiver has no input")?;
        let output = child.stdout.take().context("the receiver has no output")?;
        let mut answers = BufReader::new(output).lines();
        let port = answers
            .next_line()
            .await?
            .context("the receiver ended at once")?
            .parse()?;
        Ok(Self {
            child,
            requests,
            answers,
            port,
        })
    }

    /// The address of the endpoint with this number, from 0.
    pub(crate) fn url(&self, endpoint: u32) -> String {
        format!("http://127.0.0.1:{}/{endpoint}", self.port)
    }

    /// What has arrived so far.
    pub(crate) async fn totals(&mut self) -> anyhow::Result<Totals> {
        self.requests.write_all(b"\n").await?;
        let line = self
            .answers
            .next_line()
            .await?
            .context("the receiver has ended")?;
        Ok(serde_json::from_str(&line)?)
    }

    /// The receiver as a party whose CPU time is read.
    pub(crate) fn party(&self) -> Party {
        Party {
            name: "receiver",
            roots: self.child.id().map(|pid| vec![pid]),
        }
    }
}
