//! `kurier delivery`: deliveries and their attempts, to be looked at and not changed.

use anyhow::Context as _;
use clap::{Args, Subcommand};
use domain::delivery::Status;
use serde::Serialize;
use serde_json::Value;
use store::{AttemptView, DeliveryFilter, DeliveryView};
use uuid::Uuid;

use crate::{
    input::Input,
    output::{Output, fields_table, records_table},
};

const LIMIT_DEFAULT: u32 = 100;
const LIMIT_MAX: u32 = 1000;

/// What can be done with deliveries.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// List deliveries, newest first
    List(ListArguments),
    /// Show one delivery with its attempts
    Show(ShowArguments),
}

/// Which deliveries to list.
#[derive(Args, Default)]
pub(crate) struct ListArguments {
    /// Only to this endpoint
    #[arg(long, value_name = "ID")]
    endpoint: Option<String>,
    /// Only of this event
    #[arg(long, value_name = "ID")]
    event: Option<String>,
    /// Only in this status
    #[arg(
        long,
        value_name = "pending|in_flight|failed|held|delivered|dead_letter"
    )]
    status: Option<String>,
    /// At the most so many (1 to 1000; 100 by default)
    #[arg(long, value_name = "N")]
    limit: Option<String>,
    /// Only older than this delivery: the last of the page before
    #[arg(long, value_name = "ID")]
    before: Option<String>,
}

/// Which delivery to show.
#[derive(Args)]
pub(crate) struct ShowArguments {
    /// The delivery's id
    id: String,
    /// Also what the receiver answered to failed attempts; it may repeat what it was sent
    #[arg(long)]
    response_bodies: bool,
}

/// The columns of a list of deliveries.
pub(crate) const COLUMNS: &[&str] = &[
    "id",
    "event_id",
    "endpoint_id",
    "status",
    "reason",
    "attempt_count",
    "max_attempts",
    "next_attempt_at",
    "last_status_code",
    "last_error",
];

const FIELDS: &[&str] = &[
    "id",
    "event_id",
    "endpoint_id",
    "status",
    "reason",
    "attempt_count",
    "max_attempts",
    "next_attempt_at",
    "held_since",
    "delivered_at",
    "dead_lettered_at",
    "last_error",
    "last_status_code",
    "last_response_ms",
    "created_at",
];

const ATTEMPT_COLUMNS: &[&str] = &[
    "attempt_number",
    "started_at",
    "duration_ms",
    "status_code",
    "error_class",
    "error",
];

#[derive(Serialize)]
struct DeliveryDocument {
    #[serde(flatten)]
    delivery: DeliveryView,
    attempts: Vec<Value>,
}

/// Runs one of the commands.
pub(crate) async fn run(command: Command, input: Input, output: Output) -> anyhow::Result<()> {
    match command {
        Command::List(arguments) => list(&arguments, input, output).await,
        Command::Show(arguments) => show(&arguments, input, output).await,
    }
}

async fn list(arguments: &ListArguments, mut input: Input, output: Output) -> anyhow::Result<()> {
    let filter = filter(arguments, &mut input);
    let store = input.into_store()?;
    let deliveries = store
        .deliveries(&filter)
        .await
        .context("cannot list deliveries")?;
    output.records(&deliveries, COLUMNS)
}

fn filter(arguments: &ListArguments, input: &mut Input) -> DeliveryFilter {
    let status: Option<Status> = input.parsed("--status", arguments.status.as_deref());
    let limit = input.integer("--limit", arguments.limit.as_deref(), 1..=LIMIT_MAX);
    DeliveryFilter {
        endpoint_id: input.parsed("--endpoint", arguments.endpoint.as_deref()),
        event_id: input.parsed("--event", arguments.event.as_deref()),
        status: status.map(Status::as_str),
        before: input.parsed("--before", arguments.before.as_deref()),
        limit: limit.unwrap_or(LIMIT_DEFAULT),
    }
}

async fn show(arguments: &ShowArguments, mut input: Input, output: Output) -> anyhow::Result<()> {
    let id: Uuid = input.parsed("ID", Some(&arguments.id)).unwrap_or_default();
    let store = input.into_store()?;
    let delivery = store.delivery(id).await?;
    let delivery = delivery.with_context(|| format!("there is no delivery {id}"))?;
    let attempts = store.attempts(id).await?;
    let document = DeliveryDocument {
        delivery,
        attempts: shown_attempts(&attempts, arguments.response_bodies)?,
    };
    output.document(&document, || {
        delivery_text(&document, arguments.response_bodies)
    })
}

/// A receiver may answer with what it was sent, so its answers are only shown when asked for.
fn shown_attempts(attempts: &[AttemptView], response_bodies: bool) -> anyhow::Result<Vec<Value>> {
    attempts
        .iter()
        .map(|attempt| {
            let mut value = serde_json::to_value(attempt)?;
            if let Some(fields) = value.as_object_mut().filter(|_| !response_bodies) {
                fields.remove("response_body");
            }
            Ok(value)
        })
        .collect()
}

fn delivery_text(document: &DeliveryDocument, response_bodies: bool) -> String {
    let fields = fields_table(&serde_json::json!(document), FIELDS);
    if document.attempts.is_empty() {
        return format!("{fields}\n\nno attempt yet");
    }
    let mut columns = ATTEMPT_COLUMNS.to_vec();
    columns.extend(response_bodies.then_some("response_body"));
    let attempts = records_table(&serde_json::json!(document.attempts), &columns);
    format!("{fields}\n\n{attempts}")
}

#[cfg(test)]
mod tests {
    use process::Environment;

    use super::*;

    fn read(arguments: &ListArguments) -> Result<DeliveryFilter, String> {
        let mut input = Input::new(Environment::default());
        let filter = filter(arguments, &mut input);
        input.finish().map_err(|faults| faults.to_string())?;
        Ok(filter)
    }

    fn limited(limit: &str) -> ListArguments {
        ListArguments {
            limit: Some(limit.to_owned()),
            ..ListArguments::default()
        }
    }

    #[test]
    fn a_page_has_between_one_and_a_thousand_deliveries() {
        assert_eq!(
            read(&ListArguments::default()).unwrap().limit,
            LIMIT_DEFAULT
        );
        assert_eq!(read(&limited("1")).unwrap().limit, 1);
        assert_eq!(read(&limited("1000")).unwrap().limit, LIMIT_MAX);
        assert!(read(&limited("0")).is_err());
        assert!(read(&limited("1001")).is_err());
    }

    #[test]
    fn every_wrong_filter_is_named_in_one_answer() {
        let wrong = || Some("wrong".to_owned());
        let arguments = ListArguments {
            endpoint: wrong(),
            event: wrong(),
            status: wrong(),
            limit: wrong(),
            before: wrong(),
        };
        let told = read(&arguments).unwrap_err();
        for named in ["--endpoint", "--event", "--status", "--limit", "--before"] {
            assert!(told.contains(named), "{named} is missing in:\n{told}");
        }
    }
}
