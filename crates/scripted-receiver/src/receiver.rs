//! The receiver as its users see it: start, script, look, wait, stop.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::ledger::Ledger;
use crate::serve::accept_all;
use crate::{Request, Script, Tally};

/// What is awaited for longer than this is taken to be missing.
pub const WAIT_MAX: Duration = Duration::from_secs(30);

/// A listening receiver. Dropping it closes its port and every connection at once.
pub struct Receiver {
    address: SocketAddr,
    ledger: Arc<Ledger>,
    tasks: JoinSet<()>,
}

impl Receiver {
    /// Listens on a free loopback port and keeps every request.
    pub async fn start() -> io::Result<Self> {
        Self::start_on(0).await
    }

    /// Listens on this loopback port (0: a free one) and keeps every request.
    pub async fn start_on(port: u16) -> io::Result<Self> {
        Self::listen(port, Ledger::new(true)).await
    }

    /// Listens on this loopback port (0: a free one) and keeps counts only, for millions of requests.
    pub async fn start_counting(port: u16) -> io::Result<Self> {
        Self::listen(port, Ledger::new(false)).await
    }

    async fn listen(port: u16, ledger: Arc<Ledger>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        let address = listener.local_addr()?;
        let mut tasks = JoinSet::new();
        tasks.spawn(accept_all(listener, Arc::clone(&ledger)));
        Ok(Self {
            address,
            ledger,
            tasks,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of a path, which begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Replaces the script of a path; a path that has none answers 200.
    pub fn script(&self, path: &str, script: impl Into<Script>) {
        self.ledger.set_script(path, script.into());
    }

    /// The requests of a path in order of arrival; always empty when only counts are kept.
    pub fn requests(&self, path: &str) -> Vec<Request> {
        self.ledger.requests(path)
    }

    /// The counts of a path.
    pub fn tally(&self, path: &str) -> Tally {
        self.ledger.tally(path)
    }

    /// The counts of one webhook-id on a path.
    pub fn tally_of(&self, path: &str, webhook_id: &str) -> Tally {
        self.ledger.tally_of(path, webhook_id)
    }

    /// The counts of every path that was scripted or asked for, in no order.
    pub fn tallies(&self) -> Vec<(String, Tally)> {
        self.ledger.tallies()
    }

    /// Waits until at least `n` requests have arrived at the path, and returns all there are.
    ///
    /// # Panics
    /// When they have not arrived after [`WAIT_MAX`].
    pub async fn wait_for(&self, path: &str, n: u64) -> Vec<Request> {
        let what = format!("{n} requests at {path}");
        self.wait_until(&what, |receiver| receiver.tally(path).arrived >= n)
            .await;
        self.requests(path)
    }

    /// Waits until a request with this webhook-id has arrived at the path.
    ///
    /// # Panics
    /// When it has not arrived after [`WAIT_MAX`].
    pub async fn wait_for_id(&self, path: &str, webhook_id: &str) {
        let what = format!("webhook-id {webhook_id} at {path}");
        self.wait_until(&what, |receiver| {
            receiver.tally_of(path, webhook_id).arrived > 0
        })
        .await;
    }

    /// Waits until `condition` holds, asked again after every arrival and every end of a request.
    ///
    /// # Panics
    /// When it does not hold after [`WAIT_MAX`]; the message names `what` and shows the counts.
    pub async fn wait_until(&self, what: &str, condition: impl Fn(&Self) -> bool) {
        let mut changes = self.ledger.changes();
        let holds = async {
            while !condition(self) {
                // The ledger keeps the sender, so there is always a next change to wait for.
                let _ = changes.changed().await;
            }
        };
        let in_time = tokio::time::timeout(WAIT_MAX, holds).await.is_ok();
        assert!(
            in_time,
            "waited {WAIT_MAX:?} for {what}; there is {:?}",
            self.tallies()
        );
    }

    /// Closes the port and every connection, and returns when they are closed.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
    }
}
