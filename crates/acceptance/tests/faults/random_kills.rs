//! kill -9 of relay and dispatcher at random moments under load.

use std::{collections::HashSet, time::Duration};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use uuid::Uuid;

use crate::load::Load;

const EVENTS: u32 = 3_000;
const LATENCY: Duration = Duration::from_millis(20);
const KILLS: u32 = 8;
/// A kill comes after so many further requests at the most.
const REQUESTS_BETWEEN_MAX: u64 = 300;

#[tokio::test]
async fn kills_at_random_moments_lose_nothing_and_repeat_no_more_than_was_in_flight() {
    let seed = Uuid::new_v4().as_u64_pair().0;
    println!("seed {seed}");
    let mut chance = StdRng::seed_from_u64(seed);
    let mut load = Load::new(&[("KURIER_DISPATCH_CONCURRENCY", "16")]).await;
    load.answer_after(LATENCY);
    let (mut relay, mut dispatcher) = (load.world.relay().await, load.world.dispatcher().await);
    load.write(EVENTS / 2).await;
    // A lease outlives its holder; it counts once, with the kill that cut it off.
    let mut cut_off = HashSet::new();
    for kill in 1..=KILLS {
        let requests = load.arrived() + chance.random_range(1..REQUESTS_BETWEEN_MAX);
        load.wait_arrived(requests.min(load.written())).await;
        if kill == KILLS / 2 {
            load.write(EVENTS / 2).await;
        }
        if chance.random() {
            relay.kill().await;
            relay = load.world.relay().await;
        } else {
            dispatcher.kill().await;
            cut_off.extend(load.leases().await);
            dispatcher = load.world.dispatcher().await;
        }
    }
    let in_flight = cut_off.len() as u64;
    load.assert_all_arrived(in_flight).await;
    println!("{} duplicates of {in_flight} in flight", load.duplicates());
}
