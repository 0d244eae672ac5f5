//! `kurier event send`: one event into the outbox.

use anyhow::Context as _;
use clap::Args;
use domain::event_type::{EventPattern, Subscriptions};
use serde::Serialize;
use store::{NewEvent, Store, SubscriptionRow};
use uuid::Uuid;

use super::payload::{self, PayloadSource};
use crate::{
    input::Input,
    output::{self, Output},
};

/// Every value is a text here: it is read further down, so that all faults are told at once.
#[derive(Args, Default)]
#[command(
    override_usage = "kurier event send --event-type <TYPE> (--payload <JSON> | --payload-file <FILE>) [OPTIONS]"
)]
pub(crate) struct Arguments {
    /// What happened, such as order.paid (required)
    #[arg(long, value_name = "TYPE")]
    event_type: Option<String>,
    #[command(flatten)]
    payload: PayloadSource,
    /// Whose event it is
    #[arg(long)]
    tenant: Option<String>,
    /// What kind of thing it is about
    #[arg(long)]
    aggregate_type: Option<String>,
    /// Which one it is about
    #[arg(long)]
    aggregate_id: Option<String>,
    /// The event's id; the database makes one without it
    #[arg(long, value_name = "UUID")]
    id: Option<String>,
}

#[derive(Serialize)]
struct Sent {
    id: Uuid,
    subscribed_endpoints: usize,
}

/// Writes the event, and warns when no endpoint is subscribed to it now.
pub(crate) async fn run(
    arguments: Arguments,
    mut input: Input,
    output: Output,
) -> anyhow::Result<()> {
    let event = new_event(arguments, &mut input);
    let store = input.into_store()?;
    let subscribed_endpoints = count_subscribed(&store, &event).await?;
    let id = store
        .add_event(&event)
        .await
        .context("cannot write the event")?;
    if subscribed_endpoints == 0 {
        output::say(format_args!(
            "kurier: warning: no endpoint is subscribed to {:?} now; the event was written all the same",
            event.event_type
        ));
    }
    let sent = Sent {
        id,
        subscribed_endpoints,
    };
    output.record(&sent, &["id", "subscribed_endpoints"])
}

/// Meaningless where faults were found.
fn new_event(arguments: Arguments, input: &mut Input) -> NewEvent {
    NewEvent {
        id: input.parsed("--id", arguments.id.as_deref()),
        tenant: arguments.tenant.unwrap_or_default(),
        event_type: event_type(arguments.event_type, input),
        aggregate_type: arguments.aggregate_type,
        aggregate_id: arguments.aggregate_id,
        payload: payload::read(arguments.payload, input),
        traceparent: None,
    }
}

/// A type is written like a pattern that means exactly one.
fn event_type(text: Option<String>, input: &mut Input) -> String {
    let text = input.required("--event-type", text);
    if text.contains('*') {
        input.refuse("--event-type", "an event has one type, without a *");
    } else if !text.is_empty() {
        input.parsed::<EventPattern>("--event-type", Some(&text));
    }
    text
}

async fn count_subscribed(store: &Store, event: &NewEvent) -> anyhow::Result<usize> {
    let subscriptions = store
        .subscriptions()
        .await
        .context("cannot read who is subscribed")?;
    let endpoints = subscriptions.rows.into_iter().filter_map(subscriber);
    let subscriptions: Subscriptions<Uuid> = endpoints.collect();
    Ok(subscriptions
        .matching(&event.tenant, &event.event_type)
        .len())
}

/// An endpoint with its patterns; `None` if one of them cannot be read, for then it gets nothing.
fn subscriber(row: SubscriptionRow) -> Option<(Uuid, String, Vec<EventPattern>)> {
    let patterns = row.event_types.iter().map(|text| text.parse());
    Some((
        row.endpoint_id,
        row.tenant,
        patterns.collect::<Result<_, _>>().ok()?,
    ))
}

#[cfg(test)]
mod tests {
    use process::Environment;

    use super::*;

    fn read(arguments: Arguments) -> Result<NewEvent, String> {
        let mut input = Input::new(Environment::default());
        let event = new_event(arguments, &mut input);
        input.finish().map_err(|faults| faults.to_string())?;
        Ok(event)
    }

    fn arguments(event_type: &str, payload: &str) -> Arguments {
        Arguments {
            event_type: Some(event_type.to_owned()),
            payload: PayloadSource::text(payload),
            ..Arguments::default()
        }
    }

    #[test]
    fn the_payload_is_kept_as_it_was_given() {
        let text = "{ \"b\":1.0,\"a\":\"\\u00e9\" }\n";
        assert_eq!(read(arguments("order.paid", text)).unwrap().payload, text);
    }

    #[test]
    fn every_wrong_argument_is_named_in_one_answer_without_the_payload() {
        let told = read(Arguments {
            id: Some("7".to_owned()),
            ..arguments("order.*", "{\"card\": s3cret}")
        })
        .unwrap_err();
        for named in ["--event-type", "--payload", "--id"] {
            assert!(told.contains(named), "{named} is missing in:\n{told}");
        }
        assert!(!told.contains("s3cret"), "{told}");
    }

    #[test]
    fn what_must_be_there_is_named_when_it_is_missing() {
        let told = read(Arguments::default()).unwrap_err();
        assert!(told.contains("--event-type: is missing"), "{told}");
        assert!(told.contains("--payload"), "{told}");
    }

    #[test]
    fn an_event_type_is_as_long_as_the_database_allows() {
        assert!(read(arguments(&"a".repeat(128), "{}")).is_ok());
        assert!(read(arguments(&"a".repeat(129), "{}")).is_err());
    }
}
