//! The tasks of a process, each with a name, none of which may end unnoticed.
//!
//! A task that ends, fails or panics before the process drains is a fault: the process stops with an
//! error, and whatever runs it starts it anew. No task is restarted here.

use std::any::Any;
use std::collections::HashMap;

use tokio::task::{Id, JoinError, JoinSet};

use crate::lifecycle::Shutdown;

/// Why the tasks did not end as they should.
#[derive(Debug, thiserror::Error)]
pub enum TaskFault {
    /// A task ended although nobody had asked it to.
    #[error("task {0} ended before it was asked to")]
    Ended(&'static str),
    /// A task failed.
    #[error("task {0} failed")]
    Failed(&'static str, #[source] anyhow::Error),
    /// A task panicked.
    #[error("task {0} panicked: {1}")]
    Panicked(&'static str, String),
    /// Tasks were still running when the process was told to abort.
    #[error("aborted before these tasks had finished: {0}")]
    Interrupted(String),
}

/// Starts and watches the tasks of a process.
///
/// Work is waited for when the process stops; background tasks run for as long as there is work, and
/// are then cancelled.
#[derive(Debug)]
pub struct Tasks {
    shutdown: Shutdown,
    work: JoinSet<anyhow::Result<()>>,
    background: JoinSet<anyhow::Result<()>>,
    names: HashMap<Id, (Role, &'static str)>,
}

/// Whether the process waits for a task to end by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Work,
    Background,
}

impl Tasks {
    /// No tasks yet; a fault makes `shutdown` drain.
    pub fn new(shutdown: Shutdown) -> Self {
        Self {
            shutdown,
            work: JoinSet::new(),
            background: JoinSet::new(),
            names: HashMap::new(),
        }
    }

    /// Starts work: it must watch [`Shutdown::draining`] and end by itself.
    pub fn spawn(
        &mut self,
        name: &'static str,
        task: impl Future<Output = anyhow::Result<()>> + Send + 'static,
    ) {
        let handle = self.work.spawn(task);
        self.names.insert(handle.id(), (Role::Work, name));
    }

    /// Starts a task that serves the others and is cancelled once they have ended.
    pub fn spawn_background(
        &mut self,
        name: &'static str,
        task: impl Future<Output = anyhow::Result<()>> + Send + 'static,
    ) {
        let handle = self.background.spawn(task);
        self.names.insert(handle.id(), (Role::Background, name));
    }

    /// Waits until all work has ended, or until the process aborts.
    ///
    /// The first fault makes the process drain and is returned; the faults after it are logged.
    pub async fn supervise(mut self) -> Result<(), TaskFault> {
        let mut first = None;
        while !self.work.is_empty() {
            match self.next_fault().await {
                Some(fault) if first.is_none() => first = Some(self.drain_for(fault)),
                Some(fault) => log_another(fault),
                None => {}
            }
        }
        first.map_or(Ok(()), Err)
    }

    /// Waits for one task to end, or for the abort, which ends them all.
    async fn next_fault(&mut self) -> Option<TaskFault> {
        let ended = tokio::select! {
            Some(ended) = self.work.join_next_with_id() => ended,
            Some(ended) = self.background.join_next_with_id() => ended,
            () = self.shutdown.aborted() => return Some(self.interrupt()),
        };
        self.judge(ended)
    }

    fn judge(&mut self, ended: Result<(Id, anyhow::Result<()>), JoinError>) -> Option<TaskFault> {
        let id = ended.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let name = self.names.remove(&id).map_or("unnamed", |(_, name)| name);
        match ended {
            Ok((_, Ok(()))) if self.shutdown.is_draining() => None,
            Ok((_, Ok(()))) => Some(TaskFault::Ended(name)),
            Ok((_, Err(error))) => Some(TaskFault::Failed(name, error)),
            Err(error) => Some(TaskFault::Panicked(name, panic_text(error))),
        }
    }

    /// Cancels all work, without waiting for tasks that do not listen.
    fn interrupt(&mut self) -> TaskFault {
        self.work = JoinSet::new();
        let of_work = |(role, name)| (role == Role::Work).then_some(name);
        let mut names: Vec<_> = self
            .names
            .drain()
            .filter_map(|(_, task)| of_work(task))
            .collect();
        names.sort_unstable();
        TaskFault::Interrupted(names.join(", "))
    }

    /// Says only that it drains: the cause is told by whoever is given the fault.
    fn drain_for(&self, fault: TaskFault) -> TaskFault {
        tracing::warn!("draining because of a task's fault");
        self.shutdown.drain();
        fault
    }
}

fn log_another(fault: TaskFault) {
    let error = anyhow::Error::from(fault);
    tracing::error!(error = format!("{error:#}"), "another fault while draining");
}

fn panic_text(error: JoinError) -> String {
    match error.try_into_panic() {
        Ok(panic) => payload_text(&*panic),
        Err(cancelled) => cancelled.to_string(),
    }
}

fn payload_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned())
}
