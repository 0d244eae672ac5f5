//! From a batch of events to the deliveries and messages they become. It reads and writes nothing.

use std::collections::HashMap;

use broker::Hint;
use domain::delivery::delivery_id;
use signals::trace::{ActiveSpan, Origin, Tracing};
use store::{NewDelivery, Parked, WaitingEvent};
use uuid::Uuid;

use crate::subscribers::{Recipient, Subscribers};

/// An expansion takes no further event once it has so many deliveries. One event alone can exceed it,
/// by as many endpoints as are subscribed to it.
pub(crate) const DELIVERIES_MAX: usize = 10_000;

/// What a batch of events becomes.
#[derive(Default)]
pub(crate) struct Expansion {
    /// A row for each pair of event and endpoint.
    pub(crate) deliveries: Vec<NewDelivery>,
    /// A message for each delivery whose gate is open.
    pub(crate) hints: Vec<Hint>,
    /// Which event each message belongs to.
    hinted_events: Vec<Uuid>,
    /// Events that go on, published or not. Those that are neither here nor parked are left for the
    /// next turn.
    expanded: Vec<Uuid>,
    /// Events that cannot.
    pub(crate) parked: Vec<Parked>,
    /// Events nobody is subscribed to; they are expanded too, to nothing.
    pub(crate) unrouted: u64,
    /// One span for each message, open until it is published.
    publish_spans: Vec<ActiveSpan>,
}

/// What an expansion goes by.
pub(crate) struct Expander<'a> {
    pub(crate) subscribers: &'a Subscribers,
    pub(crate) tracing: &'a Tracing,
    pub(crate) max_attempts: u32,
    pub(crate) payload_bytes_max: u64,
    pub(crate) deliveries_max: usize,
}

impl Expander<'_> {
    pub(crate) fn expand(&self, events: &[WaitingEvent]) -> Expansion {
        let mut expansion = Expansion::default();
        for event in events {
            if expansion.deliveries.len() >= self.deliveries_max {
                break;
            }
            match self.refusal(event) {
                Some(reason) => expansion.parked.push(Parked {
                    id: event.id,
                    reason,
                }),
                None => self.expand_event(event, &mut expansion),
            }
        }
        expansion
    }

    fn refusal(&self, event: &WaitingEvent) -> Option<String> {
        let bytes = u64::try_from(event.payload_bytes).unwrap_or(u64::MAX);
        (bytes > self.payload_bytes_max).then(|| {
            format!(
                "payload_too_large: {bytes} bytes, {} allowed; raise KURIER_PAYLOAD_BYTES_MAX or send less, then retry",
                self.payload_bytes_max
            )
        })
    }

    fn expand_event(&self, event: &WaitingEvent, expansion: &mut Expansion) {
        let span = self.tracing.expand(
            Origin::now(event.traceparent.as_deref()),
            &event.id,
            &event.event_type,
        );
        let traceparent = span.traceparent();
        let recipients = self
            .subscribers
            .recipients(&event.tenant, &event.event_type);
        expansion.expanded.push(event.id);
        expansion.unrouted += u64::from(recipients.is_empty());
        for recipient in recipients {
            self.add_delivery(event, recipient, traceparent.as_deref(), expansion);
        }
    }

    fn add_delivery(
        &self,
        event: &WaitingEvent,
        recipient: Recipient,
        traceparent: Option<&str>,
        expansion: &mut Expansion,
    ) {
        let id = delivery_id(event.id, recipient.endpoint_id, event.created_at);
        let mut delivery = NewDelivery {
            id,
            event_id: event.id,
            endpoint_id: recipient.endpoint_id,
            held: recipient.held,
            max_attempts: recipient.max_attempts.unwrap_or(self.max_attempts),
            traceparent: traceparent.map(str::to_owned),
            created_at: event.created_at,
        };
        if recipient.held.is_none() {
            let span = self.tracing.publish(Origin::now(traceparent), &id);
            delivery.traceparent = span.traceparent();
            expansion.publish_spans.push(span);
            expansion.hinted_events.push(event.id);
            expansion.hints.push(Hint {
                delivery_id: id,
                traceparent: delivery.traceparent.clone(),
                delay: std::time::Duration::ZERO,
            });
        }
        expansion.deliveries.push(delivery);
    }
}

impl Expansion {
    /// Events that are not parked.
    pub(crate) fn expanded_count(&self) -> u64 {
        self.expanded.len() as u64
    }

    /// The events that are done: all of whose messages the broker has confirmed.
    pub(crate) fn processed<E>(mut self, outcomes: &[Result<(), E>]) -> Vec<Uuid> {
        let mut confirmed: HashMap<Uuid, bool> =
            self.expanded.iter().map(|id| (*id, true)).collect();
        for ((event_id, outcome), mut span) in self
            .hinted_events
            .iter()
            .zip(outcomes)
            .zip(self.publish_spans.drain(..))
        {
            if outcome.is_err() {
                span.failed_with("publish_failed");
                confirmed.insert(*event_id, false);
            }
        }
        self.expanded.retain(|id| confirmed[id]);
        self.expanded
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::DateTime;

    fn event(payload_bytes: i64) -> WaitingEvent {
        WaitingEvent {
            id: Uuid::from_u128(7),
            tenant: String::new(),
            event_type: "order.paid".into(),
            traceparent: None,
            created_at: DateTime::UNIX_EPOCH,
            payload_bytes,
        }
    }

    fn expand_for(endpoints: u128, events: &[WaitingEvent]) -> Expansion {
        let expander = Expander {
            subscribers: &Subscribers::of_everything(endpoints),
            tracing: &Tracing::off(),
            max_attempts: 5,
            payload_bytes_max: 1000,
            deliveries_max: 6,
        };
        expander.expand(events)
    }

    fn expand(events: &[WaitingEvent]) -> Expansion {
        expand_for(0, events)
    }

    #[test]
    fn one_turn_is_bounded_in_deliveries_and_leaves_the_other_events_alone() {
        let events: Vec<WaitingEvent> = (0..5).map(|_| event(1)).collect();
        let two_each = expand_for(2, &events);
        assert_eq!((two_each.expanded.len(), two_each.deliveries.len()), (3, 6));
        let seven_each = expand_for(7, &events);
        assert_eq!((seven_each.expanded.len(), seven_each.hints.len()), (1, 7));
    }

    #[test]
    fn a_payload_at_the_cap_goes_on_and_one_byte_more_is_parked_alone() {
        let expansion = expand(&[event(1001), event(1000)]);
        assert_eq!(expansion.parked.len(), 1);
        assert!(
            expansion.parked[0]
                .reason
                .starts_with("payload_too_large: 1001 bytes")
        );
        assert_eq!(expansion.expanded.len(), 1);
    }

    #[test]
    fn an_event_without_subscribers_is_done_at_once() {
        let expansion = expand(&[event(1)]);
        assert_eq!(expansion.unrouted, 1);
        assert_eq!(expansion.processed::<()>(&[]), [Uuid::from_u128(7)]);
    }

    #[test]
    fn an_event_is_done_only_when_every_one_of_its_messages_is_confirmed() {
        let ids = [Uuid::from_u128(1), Uuid::from_u128(2)];
        let expansion = || Expansion {
            expanded: ids.to_vec(),
            hinted_events: vec![ids[0], ids[1], ids[1]],
            publish_spans: (0..3)
                .map(|_| Tracing::off().publish(Origin::now(None), &"x"))
                .collect(),
            ..Expansion::default()
        };
        assert_eq!(expansion().processed(&[Ok(()), Err(()), Ok(())]), [ids[0]]);
        assert_eq!(expansion().processed(&[Ok(()), Ok(()), Err(())]), [ids[0]]);
        assert_eq!(expansion().processed::<()>(&[Ok(()), Ok(()), Ok(())]), ids);
    }
}
