//! `kurier endpoint`: registering endpoints, looking at them, pausing and resuming them.
//!
//! A URL's query can hold a secret, so it is shown whole only where one endpoint is asked for as
//! JSON; everywhere else `?...` stands for it.

mod add;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use store::{Endpoint, Store};
use url::Url;
use uuid::Uuid;

use crate::{input::Input, output::Output};

/// What can be done with endpoints.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Register an endpoint; prints its id and, this once, its signing secret
    Add(Box<add::Arguments>),
    /// List all endpoints, oldest first
    List,
    /// Show one endpoint with its health
    Show(OneEndpoint),
    /// Stop deliveries to an endpoint; they wait until it is resumed
    Pause(OneEndpoint),
    /// Let deliveries flow again to an endpoint that was paused or disabled
    Resume(OneEndpoint),
}

/// Which endpoint.
#[derive(clap::Args)]
pub(crate) struct OneEndpoint {
    /// The endpoint's id
    id: String,
}

const COLUMNS: &[&str] = &[
    "id",
    "tenant",
    "url",
    "event_types",
    "state",
    "consecutive_failures",
    "paused_at",
    "disabled_at",
    "description",
];

const FIELDS: &[&str] = &[
    "id",
    "tenant",
    "url",
    "description",
    "event_types",
    "paused_at",
    "disabled_at",
    "disabled_reason",
    "attempt_timeout_ms",
    "max_attempts",
    "retry_base_ms",
    "retry_cap_ms",
    "retry_schedule_ms",
    "retry_statuses",
    "reject_statuses",
    "state",
    "consecutive_failures",
    "failure_threshold",
    "opened_at",
    "cooldown_seconds",
    "last_failure_at",
    "last_success_at",
    "created_at",
    "updated_at",
];

/// Runs one of the commands.
pub(crate) async fn run(command: Command, input: Input, output: Output) -> anyhow::Result<()> {
    match command {
        Command::Add(arguments) => add::run(*arguments, input, output).await,
        Command::List => list(input, output).await,
        Command::Show(one) => {
            let (id, store) = one.open(input)?;
            show(&store, id, output).await
        }
        Command::Pause(one) => {
            let (id, store) = one.open(input)?;
            require(id, store.pause_endpoint(id).await?)?;
            show(&store, id, output).await
        }
        Command::Resume(one) => {
            let (id, store) = one.open(input)?;
            require(id, store.resume_endpoint(id).await?)?;
            show(&store, id, output).await
        }
    }
}

impl OneEndpoint {
    fn open(&self, mut input: Input) -> anyhow::Result<(Uuid, Store)> {
        let id = input.parsed("ID", Some(&self.id)).unwrap_or_default();
        Ok((id, input.into_store()?))
    }
}

async fn list(input: Input, output: Output) -> anyhow::Result<()> {
    let store = input.into_store()?;
    let endpoints = store
        .endpoints(None)
        .await
        .context("cannot list endpoints")?;
    let shown: Vec<Endpoint> = endpoints.into_iter().map(without_secrets).collect();
    output.records(&shown, COLUMNS)
}

async fn show(store: &Store, id: Uuid, output: Output) -> anyhow::Result<()> {
    let found = store.endpoints(Some(id)).await?.pop();
    let endpoint = found.with_context(|| not_found(id))?;
    if output.json {
        output.record(&endpoint, FIELDS)
    } else {
        output.record(&without_secrets(endpoint), FIELDS)
    }
}

fn require(id: Uuid, exists: bool) -> anyhow::Result<()> {
    if !exists {
        bail!(not_found(id));
    }
    Ok(())
}

fn not_found(id: Uuid) -> String {
    format!("there is no endpoint {id}")
}

fn without_secrets(endpoint: Endpoint) -> Endpoint {
    Endpoint {
        url: url_without_secrets(&endpoint.url),
        ..endpoint
    }
}

/// The URL without user name and password, and with `?...` for its query and fragment.
fn url_without_secrets(text: &str) -> String {
    let Ok(mut url) = Url::parse(text) else {
        return "(not a URL)".to_owned();
    };
    let shortened = url.query().is_some() || url.fragment().is_some();
    url.set_query(shortened.then_some("..."));
    url.set_fragment(None);
    // Neither can fail: what has no host has no user either.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shown_url_has_no_user_and_only_a_sign_of_its_query() {
        let shown = url_without_secrets("https://user:pass@hooks.example/in?key=s3cret#part");
        assert_eq!(shown, "https://hooks.example/in?...");
        assert_eq!(
            url_without_secrets("https://hooks.example/in"),
            "https://hooks.example/in"
        );
        assert_eq!(
            url_without_secrets("https://hooks.example/in#key"),
            "https://hooks.example/in?..."
        );
        assert_eq!(url_without_secrets("s3cret"), "(not a URL)");
    }
}
