//! Several relays and dispatchers side by side.

use acceptance::{DISPATCHER, Launch, OtlpSink, Program, World};
use scripted_receiver::Reply;
use std::time::Duration;

const EVENTS: u32 = 1_000;

fn exporting(launch: Launch, sink: &OtlpSink) -> Launch {
    let settings = sink.settings();
    settings
        .iter()
        .fold(launch, |launch, (name, value)| launch.env(name, value))
}

#[tokio::test]
async fn replicas_share_the_work_and_none_repeats_the_work_of_another() {
    let sink = OtlpSink::start().await;
    let world = World::with(&[("KURIER_DISPATCH_CONCURRENCY", "10")]).await;
    world.endpoint("/in").await;
    let latency = Duration::from_millis(20);
    world.receiver.script("/in", Reply::ok().after(latency));
    let mut relays = [world.relay().await, world.relay().await];
    let mut dispatchers: Vec<Program> = Vec::new();
    for _ in 0..3 {
        let launch = exporting(world.launch(DISPATCHER), &sink);
        dispatchers.push(launch.start().await);
    }
    let ids = world.commit_many("order.paid", EVENTS).await;
    world.assert_no_leftovers().await;
    for program in relays.iter_mut().chain(&mut dispatchers) {
        assert_eq!(program.terminate().await, Some(0));
    }

    let tally = world.receiver.tally("/in");
    assert_eq!(tally.arrived, u64::from(EVENTS));
    for id in ids {
        let of_id = world.receiver.tally_of("/in", &id.to_string());
        assert_eq!((of_id.arrived, of_id.in_flight_max), (1, 1), "{id}");
    }
    let shares: Vec<u64> = sink
        .points("kurier.attempt.duration")
        .iter()
        .map(|point| point.count)
        .collect();
    assert_eq!(shares.iter().sum::<u64>(), u64::from(EVENTS));
    assert!(
        shares.len() == 3 && shares.iter().all(|share| *share > 0),
        "{shares:?}"
    );
}
