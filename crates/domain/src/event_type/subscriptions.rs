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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Endpoint = (u32, String, Vec<EventPattern>);

    fn endpoint(key: u32, tenant: &str, patterns: &[&str]) -> Endpoint {
        let patterns = patterns
            .iter()
            .map(|text| EventPattern::parse(text).unwrap());
        (key, tenant.to_owned(), patterns.collect())
    }

    #[test]
    fn an_endpoint_with_several_matching_patterns_is_found_once() {
        let subscriptions = Subscriptions::new([
            endpoint(7, "", &["*", "order.*", "order.item.*", "order.item.added"]),
            endpoint(3, "", &["order.item.added", "order.item.added"]),
        ]);
        assert_eq!(subscriptions.matching("", "order.item.added"), [7, 3]);
    }

    #[test]
    fn an_endpoint_without_patterns_gets_everything_of_its_tenant_only() {
        let subscriptions = Subscriptions::new([endpoint(1, "a", &[]), endpoint(2, "b", &[])]);
        assert_eq!(subscriptions.matching("a", "order.paid"), [1]);
        assert_eq!(subscriptions.matching("b", ""), [2]);
        assert!(subscriptions.matching("", "order.paid").is_empty());
    }

    /// What the index must agree with: ask every endpoint.
    fn asked_one_by_one(endpoints: &[Endpoint], tenant: &str, event_type: &str) -> Vec<u32> {
        let wants = |patterns: &[EventPattern]| {
            patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches(event_type))
        };
        endpoints
            .iter()
            .filter(|(_, of, patterns)| of == tenant && wants(patterns))
            .map(|(key, ..)| *key)
            .collect()
    }

    fn any_endpoint() -> impl Strategy<Value = (String, Vec<EventPattern>)> {
        // Few letters, so that patterns and types often meet; types also have stray dots.
        let pattern = prop_oneof![
            Just("*".to_owned()),
            "[ab](\\.[ab]){0,2}",
            "[ab](\\.[ab]){0,2}\\.\\*",
            "a?\\.{1,2}a\\.\\*",
        ];
        let pattern = pattern.prop_map(|text| EventPattern::parse(&text).unwrap());
        ("[xy]", proptest::collection::vec(pattern, 0..4))
    }

    proptest! {
        #[test]
        fn the_index_finds_what_asking_every_endpoint_finds(
            endpoints in proptest::collection::vec(any_endpoint(), 0..20),
            tenant in "[xyz]",
            event_type in "[ab.]{0,7}",
        ) {
            let endpoints: Vec<Endpoint> = (0..)
                .zip(endpoints)
                .map(|(key, (tenant, patterns))| (key, tenant, patterns))
                .collect();
            let subscriptions: Subscriptions<u32> = endpoints.iter().cloned().collect();
            prop_assert_eq!(
                subscriptions.matching(&tenant, &event_type),
                asked_one_by_one(&endpoints, &tenant, &event_type)
            );
        }
    }
}
