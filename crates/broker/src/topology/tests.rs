//! Walks messages through the declared data as a broker would.

use super::*;

const UNIT: Duration = Duration::from_secs(1);

/// Topic matching as AMQP defines it, for patterns whose only `#` comes last.
fn fits(pattern: &str, key: &str) -> bool {
    let mut words = key.split('.');
    for wanted in pattern.split('.') {
        if wanted == "#" {
            return true;
        }
        match words.next() {
            Some(word) if wanted == "*" || wanted == word => {}
            _ => return false,
        }
    }
    words.next().is_none()
}

/// Follows a route to the work queue and adds up the times to live on the way.
fn walk(
    topology: &Topology,
    queues: &[Queue],
    bindings: &[Binding],
    route: &Route<'_>,
) -> Duration {
    let mut waited = Duration::ZERO;
    let mut exchange = route.exchange.to_owned();
    loop {
        let mut onward = bindings.iter().filter(|binding| {
            let takes_all = binding.source == topology.work_exchange();
            binding.source == exchange && (takes_all || fits(&binding.pattern, &route.routing_key))
        });
        let binding = onward.next().expect("a way on");
        assert_eq!(
            onward.next(),
            None,
            "one way only, or the hint would double"
        );
        match &binding.destination {
            Destination::Queue(name) if name == topology.work_queue() => return waited,
            Destination::Exchange(name) => exchange.clone_from(name),
            Destination::Queue(name) => {
                let queue = queues
                    .iter()
                    .find(|queue| queue.name == *name)
                    .expect("declared");
                waited += queue.message_ttl.expect("a delay queue");
                exchange.clone_from(&queue.dead_letter.as_ref().expect("a target").exchange);
            }
        }
    }
}

#[test]
fn every_delay_waits_exactly_its_own_time() {
    let topology = Topology::new("n", UNIT);
    let (queues, bindings) = (topology.queues(), topology.bindings());
    for units in 0..=4095 {
        let delay = UNIT * units;
        let route = topology.route(delay).expect("covered");
        assert_eq!(
            walk(&topology, &queues, &bindings, &route),
            delay,
            "{units} units"
        );
    }
}

#[test]
fn a_delay_between_two_units_is_rounded_up() {
    let topology = Topology::new("n", UNIT);
    let nanosecond = Duration::from_nanos(1);
    assert_eq!(topology.route(nanosecond), topology.route(UNIT));
    assert_eq!(
        topology.route(UNIT * 4 + nanosecond),
        topology.route(UNIT * 5)
    );
    assert_ne!(
        topology.route(UNIT * 5 + nanosecond),
        topology.route(UNIT * 5)
    );
}

#[test]
fn the_horizon_is_covered_and_nothing_past_it() {
    for unit in [Duration::from_millis(1), UNIT] {
        let topology = Topology::new("n", unit);
        assert_eq!(topology.horizon(), unit * 4095);
        let past = topology.horizon() + Duration::from_nanos(1);
        assert!(
            topology.covers(topology.horizon()) && topology.route(topology.horizon()).is_some()
        );
        assert!(!topology.covers(past) && topology.route(past).is_none());
        assert!(topology.route(Duration::MAX).is_none());
    }
}

#[test]
fn no_delay_goes_straight_to_the_work_exchange() {
    let topology = Topology::new("n", UNIT);
    let route = topology.route(Duration::ZERO).expect("covered");
    assert_eq!((route.exchange, route.routing_key.as_str()), ("n.work", ""));
}

#[test]
fn a_message_enters_at_its_highest_bit() {
    let topology = Topology::new("n", Duration::from_millis(250));
    let route = topology
        .route(Duration::from_millis(1250))
        .expect("covered");
    assert_eq!(route.exchange, "n.delay.250ms.02");
    assert_eq!(route.routing_key, "0.0.0.0.0.0.0.0.0.1.0.1");
}

#[test]
fn another_unit_or_namespace_shares_no_delay_queue() {
    let names = |namespace, unit| Topology::new(namespace, unit).levels;
    let seconds = names("n", UNIT);
    assert_eq!(seconds[7], "n.delay.1000ms.07");
    for others in [names("n", UNIT * 2), names("m", UNIT)] {
        assert!(others.iter().all(|name| !seconds.contains(name)));
    }
}

#[test]
fn a_unit_of_nothing_counts_as_one_millisecond() {
    let topology = Topology::new("n", Duration::ZERO);
    assert_eq!(topology.horizon(), Duration::from_millis(4095));
}

#[test]
fn every_queue_has_a_delivery_limit_and_all_but_the_quarantine_a_dead_letter_target() {
    let topology = Topology::new("n", UNIT);
    for queue in topology.queues() {
        assert!(queue.delivery_limit > 0);
        assert_eq!(
            queue.dead_letter.is_none(),
            queue.name == topology.quarantine_queue()
        );
    }
}
