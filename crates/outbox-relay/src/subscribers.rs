//! Who gets which event, and whether their gate is open: read again whenever anything changed.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use domain::{
    delivery::HoldReason,
    event_type::{EventPattern, Subscriptions},
    gate::{Admission, GateFacts, admit},
};
use store::{BreakerReading, Store, StoreError, SubscriptionRow};
use uuid::Uuid;

/// A snapshot of all subscriptions.
pub(crate) struct Subscribers {
    version: i64,
    subscriptions: Subscriptions<Uuid>,
    endpoints: HashMap<Uuid, Subscriber>,
}

struct Subscriber {
    max_attempts: Option<u32>,
    gate: GateFacts,
    read_at: DateTime<Utc>,
}

/// Where an event goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Recipient {
    pub(crate) endpoint_id: Uuid,
    pub(crate) max_attempts: Option<u32>,
    /// Why it is to wait, if its gate is closed.
    pub(crate) held: Option<HoldReason>,
}

impl Subscribers {
    /// Nobody; the first refresh reads them all.
    pub(crate) fn unread() -> Subscribers {
        Subscribers {
            version: i64::MIN,
            subscriptions: Subscriptions::new([]),
            endpoints: HashMap::new(),
        }
    }

    /// So many endpoints that get everything.
    #[cfg(test)]
    pub(crate) fn of_everything(endpoints: u128) -> Subscribers {
        let rows = (0..endpoints).map(|id| SubscriptionRow {
            endpoint_id: Uuid::from_u128(id),
            ..tests::row(&[])
        });
        let rows: Vec<SubscriptionRow> = rows.collect();
        Subscribers {
            version: 0,
            endpoints: rows.iter().map(subscriber).collect(),
            subscriptions: rows.into_iter().filter_map(subscription).collect(),
        }
    }

    /// Brings the snapshot up to date: the breakers always, the rest when something changed.
    pub(crate) async fn refresh(&mut self, store: &Store) -> Result<(), StoreError> {
        if store.configuration_version().await? != self.version {
            let read = store.subscriptions().await?;
            self.endpoints = read.rows.iter().map(subscriber).collect();
            self.subscriptions = read.rows.into_iter().filter_map(subscription).collect();
            self.version = read.version;
        }
        self.overlay(store.breakers_not_closed().await?);
        Ok(())
    }

    fn overlay(&mut self, readings: Vec<BreakerReading>) {
        let closed = store::closed_breaker();
        for subscriber in self.endpoints.values_mut() {
            subscriber.gate.breaker.clone_from(&closed);
        }
        for reading in readings {
            if let Some(subscriber) = self.endpoints.get_mut(&reading.endpoint_id) {
                subscriber.gate.breaker = reading.breaker;
                subscriber.read_at = reading.now;
            }
        }
    }

    /// The endpoints an event goes to.
    pub(crate) fn recipients(&self, tenant: &str, event_type: &str) -> Vec<Recipient> {
        self.subscriptions
            .matching(tenant, event_type)
            .into_iter()
            .filter_map(|endpoint_id| self.recipient(endpoint_id))
            .collect()
    }

    fn recipient(&self, endpoint_id: Uuid) -> Option<Recipient> {
        let subscriber = self.endpoints.get(&endpoint_id)?;
        let held = match admit(&subscriber.gate, subscriber.read_at) {
            // Which of them becomes the probe is settled when they are claimed.
            Admission::Open | Admission::Probe => None,
            Admission::Hold(reason) => Some(reason),
        };
        Some(Recipient {
            endpoint_id,
            max_attempts: subscriber.max_attempts,
            held,
        })
    }
}

fn subscriber(row: &SubscriptionRow) -> (Uuid, Subscriber) {
    let subscriber = Subscriber {
        max_attempts: row.max_attempts,
        gate: row.gate.clone(),
        read_at: DateTime::UNIX_EPOCH,
    };
    (row.endpoint_id, subscriber)
}

/// Patterns are checked when they are registered. One that somebody wrote past that check matches
/// nothing; an endpoint left without any must not turn into one that gets everything.
fn subscription(row: SubscriptionRow) -> Option<(Uuid, String, Vec<EventPattern>)> {
    let meant_everything = row.event_types.is_empty();
    let patterns: Vec<EventPattern> = row
        .event_types
        .iter()
        .filter_map(|text| match text.parse() {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                tracing::error!(endpoint_id = %row.endpoint_id, %error, "stored event pattern ignored");
                None
            }
        })
        .collect();
    (meant_everything || !patterns.is_empty()).then_some((row.endpoint_id, row.tenant, patterns))
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn row(event_types: &[&str]) -> SubscriptionRow {
        SubscriptionRow {
            endpoint_id: Uuid::nil(),
            tenant: String::new(),
            event_types: event_types.iter().map(ToString::to_string).collect(),
            max_attempts: None,
            gate: GateFacts {
                disabled: false,
                paused: false,
                breaker: store::closed_breaker(),
            },
        }
    }

    #[test]
    fn an_endpoint_whose_patterns_are_all_broken_gets_nothing_instead_of_everything() {
        assert!(subscription(row(&["a..*b"])).is_none());
        assert!(subscription(row(&[])).is_some());
        assert_eq!(subscription(row(&["a..*b", "order.*"])).unwrap().2.len(), 1);
    }
}
