//! `kurier event`: writing an event by hand, seeing what became of one, letting a parked one be
//! tried again. Payloads go in and are never shown.

mod payload;
mod send;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use domain::text::safe_text;
use serde::Serialize;
use serde_json::json;
use store::{DeliveryFilter, DeliveryView, EventView, Store};
use uuid::Uuid;

use crate::{
    delivery,
    input::Input,
    output::{Output, fields_table, records_table},
};

/// An event has one delivery for each endpoint subscribed; more of them are not shown at once.
const DELIVERIES_MAX: u32 = 1000;

/// Parked events shown at once.
const PARKED_MAX: u32 = 1000;

const PARKED_COLUMNS: &[&str] = &[
    "id",
    "event_type",
    "payload_bytes",
    "parked_at",
    "parked_reason",
];

/// Longest reason shown, in characters.
const REASON_CHARS_MAX: usize = 500;

/// What can be done with events.
#[derive(Subcommand)]
pub(crate) enum Command {
    /// Write an event to the outbox, as an application would
    Send(send::Arguments),
    /// Show one event and its deliveries, without its payload
    Show(OneEvent),
    /// List the events the relay has set aside, the latest first
    Parked,
    /// Let the relay try a parked event again
    Retry(OneEvent),
}

/// Which event.
#[derive(Args)]
pub(crate) struct OneEvent {
    /// The event's id
    id: String,
}

const FIELDS: &[&str] = &[
    "id",
    "tenant",
    "event_type",
    "aggregate_type",
    "aggregate_id",
    "content_type",
    "payload_bytes",
    "traceparent",
    "created_at",
    "processed_at",
    "parked_at",
    "parked_reason",
];

#[derive(Serialize)]
struct EventDocument {
    #[serde(flatten)]
    event: EventView,
    progress: Progress,
    deliveries: Vec<DeliveryView>,
}

/// How far the relay has got with an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Progress {
    /// The relay has not finished with it.
    Waiting,
    /// The relay cannot publish it and has set it aside.
    Parked,
    /// It has become deliveries.
    Expanded,
    /// Nobody wanted it.
    NotSubscribed,
}

/// Runs one of the commands.
pub(crate) async fn run(command: Command, input: Input, output: Output) -> anyhow::Result<()> {
    match command {
        Command::Send(arguments) => send::run(arguments, input, output).await,
        Command::Show(one) => {
            let (id, store) = one.open(input)?;
            show(&store, id, output).await
        }
        Command::Parked => parked(&input.into_store()?, output).await,
        Command::Retry(one) => {
            let (id, store) = one.open(input)?;
            retry(&store, id).await?;
            show(&store, id, output).await
        }
    }
}

impl OneEvent {
    fn open(&self, mut input: Input) -> anyhow::Result<(Uuid, Store)> {
        let id = input.parsed("ID", Some(&self.id)).unwrap_or_default();
        Ok((id, input.into_store()?))
    }
}

async fn show(store: &Store, id: Uuid, output: Output) -> anyhow::Result<()> {
    let event = find(store, id).await?;
    let filter = DeliveryFilter {
        event_id: Some(id),
        limit: DELIVERIES_MAX,
        ..DeliveryFilter::default()
    };
    let deliveries = store.deliveries(&filter).await?;
    let document = EventDocument {
        progress: progress(&event, &deliveries),
        event,
        deliveries,
    };
    output.document(&document, || event_text(&document))
}

async fn parked(store: &Store, output: Output) -> anyhow::Result<()> {
    let events = store.parked_events(PARKED_MAX).await?;
    output.document(&events, || records_table(&json!(events), PARKED_COLUMNS))
}

async fn retry(store: &Store, id: Uuid) -> anyhow::Result<()> {
    if !store.unpark_event(id).await? {
        find(store, id).await?;
        bail!("event {id} is not parked");
    }
    Ok(())
}

async fn find(store: &Store, id: Uuid) -> anyhow::Result<EventView> {
    let event = store.event(id).await?;
    event.with_context(|| format!("there is no event {id}"))
}

fn progress(event: &EventView, deliveries: &[DeliveryView]) -> Progress {
    match (event.parked_at, event.processed_at) {
        (Some(_), _) => Progress::Parked,
        (None, None) => Progress::Waiting,
        (None, Some(_)) if deliveries.is_empty() => Progress::NotSubscribed,
        (None, Some(_)) => Progress::Expanded,
    }
}

fn event_text(document: &EventDocument) -> String {
    let fields = fields_table(&json!(document.event), FIELDS);
    let sentence = match document.progress {
        Progress::Waiting => "waiting for the relay".to_owned(),
        Progress::Parked => format!("parked: {}", parked_reason(&document.event)),
        Progress::NotSubscribed => "no endpoint was subscribed".to_owned(),
        Progress::Expanded => format!("deliveries: {}", document.deliveries.len()),
    };
    if document.deliveries.is_empty() {
        return format!("{fields}\n\n{sentence}");
    }
    let deliveries = records_table(&json!(document.deliveries), delivery::COLUMNS);
    format!("{fields}\n\n{sentence}\n\n{deliveries}")
}

fn parked_reason(event: &EventView) -> String {
    let reason = event.parked_reason.as_deref().unwrap_or_default();
    safe_text(reason.as_bytes(), REASON_CHARS_MAX)
}
