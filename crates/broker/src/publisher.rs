//! Publishes hints and finds out what became of each. Does not try again: the caller knows
//! whether it still matters.

use std::{collections::HashSet, sync::Arc};

use futures_util::{FutureExt as _, StreamExt as _, stream::FuturesUnordered};
use lapin::{
    Channel, Confirmation,
    message::BasicReturnMessage,
    options::{BasicPublishOptions, ConfirmSelectOptions},
};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use crate::{
    BrokerConfig, BrokerError, Hint, PublishFault,
    declare::{declare, work_queue_depth},
    dialer::Dialer,
    hint,
    link::Link,
    topology::{Route, Topology},
};

/// More unconfirmed messages at once gain nothing and cost the broker memory.
const IN_FLIGHT_MAX: usize = 1000;

const MANDATORY: BasicPublishOptions = BasicPublishOptions {
    mandatory: true,
    immediate: false,
};

type Outcome = Result<(), PublishFault>;

/// Publishes over one connection and channel of its own.
///
/// One task owns it: on a channel shared by several, lapin can attach confirmations and returns
/// to the wrong message.
pub struct Publisher {
    shared: Arc<(BrokerConfig, Topology)>,
    dialer: Dialer<Session>,
    session: Option<Session>,
    work_queue_created: bool,
    blocked: bool,
}

impl Publisher {
    /// Connects only when something is first published or asked.
    pub fn new(config: BrokerConfig) -> Self {
        let topology = Topology::new(&config.namespace, config.delay_unit);
        let shared = Arc::new((config, topology));
        let template = Arc::clone(&shared);
        let dialer = Dialer::new(move || {
            let shared = Arc::clone(&template);
            Box::pin(async move { Session::open(&shared.0, &shared.1).await })
        });
        Self {
            shared,
            dialer,
            session: None,
            work_queue_created: false,
            blocked: false,
        }
    }

    /// Publishes all hints and reports each one's fate, in their order.
    ///
    /// Takes no longer than the confirm timeout, (re)connecting included; what is not confirmed by
    /// then has failed. Hints are published concurrently, so they may arrive in any order.
    pub async fn publish(&mut self, hints: &[Hint]) -> Vec<Outcome> {
        let deadline = self.deadline();
        let mut outcomes = Vec::with_capacity(hints.len());
        for batch in hints.chunks(IN_FLIGHT_MAX) {
            outcomes.extend(self.publish_batch(batch, deadline).await);
        }
        outcomes
    }

    /// Ready messages in the work queue. Takes no longer than the confirm timeout.
    pub async fn work_backlog(&mut self) -> Result<u32, BrokerError> {
        let deadline = self.deadline();
        let late = BrokerError::TimedOut(self.shared.0.confirm_timeout);
        let Some(session) = self.take_session(deadline).await else {
            return Err(late);
        };
        let depth = work_queue_depth(session.link.connection(), &self.shared.1);
        let ready = timeout_at(deadline, depth).await.map_err(|_| late)??;
        // Without the queue the session is dropped, so that the next call declares it again.
        let ready = ready.ok_or_else(|| BrokerError::Unavailable("no work queue".to_owned()))?;
        self.session = Some(session);
        Ok(ready)
    }

    /// True once after this process found the work queue missing: the broker is new or was wiped,
    /// and what it should hold must be published again.
    pub fn take_work_queue_created(&mut self) -> bool {
        std::mem::take(&mut self.work_queue_created)
    }

    /// Whether there is a connection, as far as is known.
    pub fn is_connected(&self) -> bool {
        self.session.as_ref().is_some_and(Session::is_usable)
    }

    /// Whether the broker had stopped reading what is published (memory or disk alarm) when last
    /// seen.
    pub fn is_blocked(&self) -> bool {
        self.blocked
            || self
                .session
                .as_ref()
                .is_some_and(|session| session.link.is_blocked())
    }

    /// Ends the connection.
    pub async fn close(self) {
        if let Some(session) = self.session {
            session.link.close().await;
        }
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.shared.0.confirm_timeout
    }

    /// The session is taken out while it is in use: a caller who stops waiting drops it, and with
    /// it the confirmations that nobody waits for.
    async fn publish_batch(&mut self, hints: &[Hint], deadline: Instant) -> Vec<Outcome> {
        let Some(session) = self.take_session(deadline).await else {
            return self.unpublished(hints);
        };
        let outcomes = session.publish(&self.shared.1, hints, deadline).await;
        self.note_blocked(session.link.is_blocked());
        if outcomes.iter().copied().all(keeps_session) {
            self.session = Some(session);
        }
        outcomes
    }

    async fn take_session(&mut self, deadline: Instant) -> Option<Session> {
        if let Some(session) = self.session.take_if(|session| session.is_usable()) {
            return Some(session);
        }
        self.session = None;
        let session = timeout_at(deadline, self.dialer.session()).await.ok()?;
        self.work_queue_created |= session.work_queue_created;
        Some(session)
    }

    fn unpublished(&self, hints: &[Hint]) -> Vec<Outcome> {
        let fault = |hint: &Hint| {
            if self.shared.1.covers(hint.delay) {
                PublishFault::Unavailable
            } else {
                PublishFault::BeyondHorizon
            }
        };
        hints.iter().map(|hint| Err(fault(hint))).collect()
    }

    fn note_blocked(&mut self, blocked: bool) {
        if blocked && !self.blocked {
            tracing::warn!("the broker has blocked publishing");
        }
        self.blocked = blocked;
    }
}

/// After a returned message the topology needs declaring again, after the others the state of the
/// channel is unknown.
fn keeps_session(outcome: Outcome) -> bool {
    matches!(
        outcome,
        Ok(()) | Err(PublishFault::Rejected | PublishFault::BeyondHorizon)
    )
}

/// A connection with a channel in confirm mode and the topology declared.
struct Session {
    link: Link,
    channel: Channel,
    work_queue_created: bool,
}

impl Session {
    async fn open(config: &BrokerConfig, topology: &Topology) -> Result<Self, BrokerError> {
        let link = Link::open(config).await?;
        let work_queue_created = declare(link.connection(), topology).await?;
        let channel = link.connection().create_channel().await?;
        channel
            .confirm_select(ConfirmSelectOptions::default())
            .await?;
        Ok(Self {
            link,
            channel,
            work_queue_created,
        })
    }

    fn is_usable(&self) -> bool {
        self.link.is_connected() && self.channel.status().connected()
    }

    /// Puts all hints on the wire together and gathers their confirmations.
    async fn publish(
        &self,
        topology: &Topology,
        hints: &[Hint],
        deadline: Instant,
    ) -> Vec<Outcome> {
        let mut tally = Tally::new(hints.len());
        let mut confirmations = FuturesUnordered::new();
        for (index, hint) in hints.iter().enumerate() {
            match topology.route(hint.delay) {
                Some(route) => confirmations.push(self.send(index, hint, route)),
                None => tally.outcomes[index] = Err(PublishFault::BeyondHorizon),
            }
        }
        let gathering = tally.gather(&mut confirmations);
        if timeout_at(deadline, gathering).await.is_err() {
            // A confirmation that is here but not looked at may carry the return of a message
            // that counts as confirmed.
            tally.gather(&mut confirmations).now_or_never();
        }
        tally.finish(hints)
    }

    async fn send(
        &self,
        index: usize,
        hint: &Hint,
        route: Route<'_>,
    ) -> (usize, lapin::Result<Confirmation>) {
        let (exchange, routing_key) = (route.exchange.into(), route.routing_key.into());
        let (body, properties) = (hint::body(hint), hint::properties(hint));
        let sent = self
            .channel
            .basic_publish(exchange, routing_key, MANDATORY, &body, properties)
            .await;
        let confirmation = match sent {
            Ok(confirmation) => confirmation.await,
            Err(error) => Err(error),
        };
        (index, confirmation)
    }
}

/// The fates of one batch, as far as they are known.
struct Tally {
    outcomes: Vec<Outcome>,
    /// By message id, since a return can come attached to another message's confirmation.
    returned: HashSet<Uuid>,
}

impl Tally {
    fn new(hint_count: usize) -> Self {
        let outcomes = vec![Err(PublishFault::TimedOut); hint_count];
        Self {
            outcomes,
            returned: HashSet::new(),
        }
    }

    async fn gather(
        &mut self,
        confirmations: &mut FuturesUnordered<
            impl Future<Output = (usize, lapin::Result<Confirmation>)>,
        >,
    ) {
        while let Some((index, confirmation)) = confirmations.next().await {
            self.outcomes[index] = self.judge(confirmation);
        }
    }

    fn judge(&mut self, confirmation: lapin::Result<Confirmation>) -> Outcome {
        let (outcome, returned) = match confirmation {
            Ok(Confirmation::Ack(returned)) => (Ok(()), returned),
            Ok(Confirmation::Nack(returned)) => (Err(PublishFault::Rejected), returned),
            Ok(Confirmation::NotRequested) | Err(_) => (Err(PublishFault::Unavailable), None),
        };
        self.returned.extend(returned.as_ref().and_then(message_id));
        outcome
    }

    fn finish(mut self, hints: &[Hint]) -> Vec<Outcome> {
        if self.returned.is_empty() {
            return self.outcomes;
        }
        for (hint, outcome) in hints.iter().zip(&mut self.outcomes) {
            if outcome.is_ok() && self.returned.contains(&hint.delivery_id) {
                *outcome = Err(PublishFault::Returned);
            }
        }
        self.outcomes
    }
}

fn message_id(returned: &BasicReturnMessage) -> Option<Uuid> {
    let id = returned.delivery.properties.message_id().as_ref()?;
    Uuid::try_parse(id.as_str()).ok()
}
