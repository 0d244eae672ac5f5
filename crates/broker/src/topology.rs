//! Every exchange, queue and binding as data, and the way a delayed hint takes through them.
//!
//! Does no I/O; `declare` puts it into practice.
//!
//! A delay is a binary number of units. Each bit has a level: a topic exchange and a queue whose
//! messages all expire after `2^level` units. The routing key spells the bits, highest first. A
//! level's exchange sends a message into its queue if the bit is set, otherwise straight on to the
//! next lower exchange; an expired message is dead-lettered there too; below level 0 lies the work
//! exchange. So a message waits once for each set bit, and since all messages of a queue share one
//! time to live, none blocks behind a longer wait.

use std::{fmt::Write as _, time::Duration};

/// How many bits a delay has: with a unit of one second the levels cover 4,095 seconds.
pub const LEVEL_COUNT: u32 = 12;

const UNITS_MAX: u128 = (1 << LEVEL_COUNT) - 1;

/// How often the broker may return a message to the work queue (consumers dying with it in hand)
/// before it goes to quarantine.
const WORK_DELIVERY_LIMIT: u32 = 50;
/// Nobody consumes the delay queues.
const DELAY_DELIVERY_LIMIT: u32 = 50;
/// People look into the quarantine and put messages back; newer brokers would drop a message
/// after 20 such looks.
const QUARANTINE_DELIVERY_LIMIT: u32 = 1_000_000;

/// Where to publish a hint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route<'a> {
    /// The exchange to publish to.
    pub exchange: &'a str,
    /// The bits of the delay, highest first, separated by dots; empty for no delay.
    pub routing_key: String,
}

/// How an exchange chooses among its bindings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeKind {
    /// To all of them.
    Fanout,
    /// To those whose pattern fits the routing key.
    Topic,
}

/// A durable exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Its name.
    pub name: String,
    /// How it chooses.
    pub kind: ExchangeKind,
}

/// Where a queue's rejected or expired messages go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetterTarget {
    /// The exchange; empty for the default exchange, which routes by queue name.
    pub exchange: String,
    /// A routing key that replaces the message's own, if any.
    pub routing_key: Option<String>,
}

/// A durable quorum queue. One with a dead-letter target hands its messages over at least once
/// and refuses new ones rather than dropping old ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// How often a message may come back before it is dead-lettered.
    pub delivery_limit: u32,
    /// Where dead letters go; `None` drops them.
    pub dead_letter: Option<DeadLetterTarget>,
    /// How long a message stays before it is dead-lettered.
    pub message_ttl: Option<Duration>,
}

/// What a binding leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Destination {
    /// The exchange of this name.
    Exchange(String),
    /// The queue of this name.
    Queue(String),
}

/// From an exchange to a queue or another exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// Name of the exchange.
    pub source: String,
    /// Which routing keys it takes.
    pub pattern: String,
    /// Where they go.
    pub destination: Destination,
}

/// All names of one namespace and delay unit.
///
/// The unit is part of the delay names: another unit needs other queues, since a queue's time to
/// live cannot be changed.
#[derive(Clone, Debug)]
pub struct Topology {
    work: String,
    quarantine: String,
    /// Exchange and queue of each level carry the same name.
    levels: Vec<String>,
    unit: Duration,
}

impl Topology {
    /// The unit counts in whole milliseconds, at least one.
    pub fn new(namespace: &str, delay_unit: Duration) -> Self {
        let unit_ms = u64::try_from(delay_unit.as_millis())
            .unwrap_or(u64::MAX)
            .max(1);
        let level = |n| format!("{namespace}.delay.{unit_ms}ms.{n:02}");
        Self {
            work: format!("{namespace}.work"),
            quarantine: format!("{namespace}.quarantine"),
            levels: (0..LEVEL_COUNT).map(level).collect(),
            unit: Duration::from_millis(unit_ms),
        }
    }

    /// The queue dispatchers consume.
    pub fn work_queue(&self) -> &str {
        &self.work
    }

    /// The queue undecodable messages end in.
    pub fn quarantine_queue(&self) -> &str {
        &self.quarantine
    }

    /// The exchange that leads to the work queue. It has the queue's name.
    pub fn work_exchange(&self) -> &str {
        &self.work
    }

    /// The longest delay the levels cover.
    pub fn horizon(&self) -> Duration {
        self.unit * ((1 << LEVEL_COUNT) - 1)
    }

    /// Whether the broker can time this delay.
    pub fn covers(&self, delay: Duration) -> bool {
        delay <= self.horizon()
    }

    /// The way of a hint with this delay, which is rounded up to whole units; `None` if the levels
    /// do not cover it.
    pub fn route(&self, delay: Duration) -> Option<Route<'_>> {
        let units = delay.as_nanos().div_ceil(self.unit.as_nanos());
        if units > UNITS_MAX {
            return None;
        }
        let exchange = match units.checked_ilog2() {
            None => self.work_exchange(),
            Some(highest_bit) => &self.levels[highest_bit as usize],
        };
        Some(Route {
            exchange,
            routing_key: routing_key(units),
        })
    }

    /// Every exchange.
    pub fn exchanges(&self) -> Vec<Exchange> {
        let work = Exchange {
            name: self.work.clone(),
            kind: ExchangeKind::Fanout,
        };
        let level = |name: &String| Exchange {
            name: name.clone(),
            kind: ExchangeKind::Topic,
        };
        std::iter::once(work)
            .chain(self.levels.iter().map(level))
            .collect()
    }

    /// Every queue, targets of dead letters before those that send them.
    pub fn queues(&self) -> Vec<Queue> {
        let mut queues = vec![self.quarantine_definition(), self.work_definition()];
        queues.extend((0..LEVEL_COUNT).map(|level| self.level_definition(level)));
        queues
    }

    /// Every binding.
    pub fn bindings(&self) -> Vec<Binding> {
        let mut bindings = vec![Binding {
            source: self.work.clone(),
            pattern: String::new(),
            destination: Destination::Queue(self.work.clone()),
        }];
        bindings.extend((0..LEVEL_COUNT).flat_map(|level| self.level_bindings(level)));
        bindings
    }

    fn quarantine_definition(&self) -> Queue {
        Queue {
            name: self.quarantine.clone(),
            delivery_limit: QUARANTINE_DELIVERY_LIMIT,
            dead_letter: None,
            message_ttl: None,
        }
    }

    fn work_definition(&self) -> Queue {
        Queue {
            name: self.work.clone(),
            delivery_limit: WORK_DELIVERY_LIMIT,
            dead_letter: Some(DeadLetterTarget {
                exchange: String::new(),
                routing_key: Some(self.quarantine.clone()),
            }),
            message_ttl: None,
        }
    }

    fn level_definition(&self, level: u32) -> Queue {
        Queue {
            name: self.levels[level as usize].clone(),
            delivery_limit: DELAY_DELIVERY_LIMIT,
            dead_letter: Some(DeadLetterTarget {
                exchange: self.exchange_below(level).to_owned(),
                routing_key: None,
            }),
            message_ttl: Some(self.unit * (1 << level)),
        }
    }

    fn level_bindings(&self, level: u32) -> [Binding; 2] {
        let name = &self.levels[level as usize];
        let binding = |bit, destination| Binding {
            source: name.clone(),
            pattern: bit_pattern(level, bit),
            destination,
        };
        [
            binding('1', Destination::Queue(name.clone())),
            binding(
                '0',
                Destination::Exchange(self.exchange_below(level).to_owned()),
            ),
        ]
    }

    fn exchange_below(&self, level: u32) -> &str {
        match level.checked_sub(1) {
            None => &self.work,
            Some(below) => &self.levels[below as usize],
        }
    }
}

/// The bits of a delay from the highest level to the lowest, as dot-separated words.
fn routing_key(units: u128) -> String {
    let mut key = String::new();
    if units == 0 {
        return key;
    }
    for level in (0..LEVEL_COUNT).rev() {
        let separator = if level == 0 { "" } else { "." };
        let _ = write!(key, "{}{separator}", (units >> level) & 1);
    }
    key
}

/// Fits the routing keys whose word for this level is this bit.
fn bit_pattern(level: u32, bit: char) -> String {
    let higher_levels = (LEVEL_COUNT - 1 - level) as usize;
    let lower_levels = if level == 0 { "" } else { ".#" };
    format!("{}{bit}{lower_levels}", "*.".repeat(higher_levels))
}

#[cfg(test)]
mod tests;
