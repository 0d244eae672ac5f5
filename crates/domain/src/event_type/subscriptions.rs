//! Who gets an event, found by looking up what its type could match instead of asking every
//! endpoint.

use std::collections::HashMap;

use super::{EventPattern, Kind};

/// The subscriptions of all tenants' endpoints, `K` being whatever stands for an endpoint.
#[derive(Debug, Clone, Default)]
pub struct Subscriptions<K> {
    keys: Vec<K>,
    tenants: HashMap<String, Tenant>,
}

/// One tenant's patterns; the numbers are positions in [`Subscriptions::keys`].
#[derive(Debug, Clone, Default)]
struct Tenant {
    everything: Vec<usize>,
    below: HashMap<String, Vec<usize>>,
    exactly: HashMap<String, Vec<usize>>,
}

impl<K: Copy> Subscriptions<K> {
    /// Subscriptions from endpoints: key, tenant and patterns. One without patterns gets
    /// everything its tenant has.
    pub fn new(
        endpoints: impl IntoIterator<Item = (K, String, Vec<EventPattern>)>,
    ) -> Subscriptions<K> {
        let mut subscriptions = Subscriptions {
            keys: Vec::new(),
            tenants: HashMap::new(),
        };
        for (key, tenant, patterns) in endpoints {
            let position = subscriptions.keys.len();
            subscriptions.keys.push(key);
            let tenant = subscriptions.tenants.entry(tenant).or_default();
            tenant.subscribe(position, patterns);
        }
        subscriptions
    }

    /// The endpoints of `tenant` that want `event_type`, each once, in the order they were given.
    pub fn matching(&self, tenant: &str, event_type: &str) -> Vec<K> {
        let Some(tenant) = self.tenants.get(tenant) else {
            return Vec::new();
        };
        let mut positions = tenant.matching(event_type);
        positions.sort_unstable();
        positions.dedup();
        positions
            .into_iter()
            .map(|position| self.keys[position])
            .collect()
    }
}

impl<K: Copy> FromIterator<(K, String, Vec<EventPattern>)> for Subscriptions<K> {
    fn from_iter<I: IntoIterator<Item = (K, String, Vec<EventPattern>)>>(endpoints: I) -> Self {
        Subscriptions::new(endpoints)
    }
}

impl Tenant {
    fn subscribe(&mut self, position: usize, patterns: Vec<EventPattern>) {
        if patterns.is_empty() {
            self.everything.push(position);
        }
        for EventPattern(kind) in patterns {
            match kind {
                Kind::Everything => self.everything.push(position),
                Kind::Below(prefix) => self.below.entry(prefix).or_default().push(position),
                Kind::Exactly(wanted) => self.exactly.entry(wanted).or_default().push(position),
            }
        }
    }

    /// Positions of everything that matches, with repeats where an endpoint has several patterns.
    fn matching(&self, event_type: &str) -> Vec<usize> {
        let below = prefixes(event_type).filter_map(|prefix| self.below.get(prefix));
        let exactly = self.exactly.get(event_type);
        std::iter::once(&self.everything)
            .chain(below)
            .chain(exactly)
            .flatten()
            .copied()
            .collect()
    }
}

/// `order.` and `order.item.` for `order.item.added`; a dot at the very end has nothing below it.
fn prefixes(event_type: &str) -> impl Iterator<Item = &str> {
    event_type
        .match_indices('.')
        .map(|(dot, _)| &event_type[..=dot])
        .filter(|prefix| prefix.len() < event_type.len())
}
