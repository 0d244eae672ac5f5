//! The five endpoints and the part each plays. How Kurier deals with them is left to Kurier.

use scripted_receiver::{Reply, Script};

use crate::Stage;

/// One endpoint.
pub(crate) struct Part {
    /// Its description at Kurier, and its path at the receiver.
    pub(crate) name: &'static str,
    /// What it does, for people.
    pub(crate) conduct: &'static str,
    /// The event types it is subscribed to; none means all.
    event_types: &'static [&'static str],
    /// Settings of its own, as `kurier endpoint add` takes them.
    settings: &'static [&'static str],
    script: fn() -> Script,
}

/// All of them.
pub(crate) const PARTS: &[Part] = &[
    Part {
        name: "healthy",
        conduct: "answers 200",
        event_types: &[],
        settings: &[],
        script: || Reply::ok().into(),
    },
    Part {
        name: "flaky",
        conduct: "fails twice before it answers 200",
        event_types: &["order.placed"],
        settings: &["--retry-schedule-ms", "300"],
        script: || [Reply::status(503), Reply::status(503), Reply::ok()].into(),
    },
    Part {
        name: "dead",
        conduct: "resets every connection",
        event_types: &["order.placed"],
        settings: &[
            "--retry-schedule-ms",
            "1000",
            "--max-attempts",
            "10",
            "--breaker-threshold",
            "3",
        ],
        script: || Reply::reset().into(),
    },
    Part {
        name: "gone",
        conduct: "answers 410: it no longer exists",
        event_types: &["order.placed"],
        settings: &[],
        script: || Reply::status(410).into(),
    },
    Part {
        name: "misled",
        conduct: "answers 404: it was registered with a wrong path",
        event_types: &["order.refunded"],
        settings: &[],
        script: || Reply::status(404).into(),
    },
];

impl Part {
    /// Whether it is to get events of this type.
    pub(crate) fn wants(&self, event_type: &str) -> bool {
        self.event_types.is_empty() || self.event_types.contains(&event_type)
    }

    /// Its path at the receiver.
    pub(crate) fn path(&self) -> String {
        format!("/{}", self.name)
    }

    /// Has the receiver play it, and registers it as an operator would.
    pub(crate) async fn register(&self, stage: &mut Stage) -> anyhow::Result<()> {
        let receiver = stage.receiver().await?;
        receiver.script(&self.path(), (self.script)());
        let url = receiver.url(&self.path());
        let mut arguments = vec!["endpoint", "add", "--url", &url, "--description", self.name];
        for event_type in self.event_types {
            arguments.extend(["--event-type", event_type]);
        }
        arguments.extend(self.settings);
        stage.programs().kurier(&arguments).await?;
        Ok(())
    }
}
