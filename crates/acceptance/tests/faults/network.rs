//! The network between the programs and their services is cut, refuses, or swallows everything.

use std::time::Duration;

use acceptance::{DISPATCHER, Program, RELAY, TcpProxy};

use crate::load::Load;

const EVENTS: u32 = 600;
const MID_LOAD: u64 = 100;
const CUTS: u64 = 3;
const LATENCY: Duration = Duration::from_millis(20);
const CONCURRENCY: [(&str, &str); 1] = [("KURIER_DISPATCH_CONCURRENCY", "8")];
/// Requests that can be on their way at one moment: under way, or answered and not recorded yet.
const IN_FLIGHT_MAX: u64 = 2 * 8;

/// Which service the programs reach by way of the proxy.
#[derive(Clone, Copy)]
enum Way {
    Broker,
    Database,
}

struct Scene {
    relay: Program,
    dispatcher: Program,
    load: Load,
    proxy: TcpProxy,
}

impl Scene {
    async fn mid_load(way: Way) -> Self {
        let mut load = Load::new(&CONCURRENCY).await;
        load.answer_after(LATENCY);
        let (variable, url) = match way {
            Way::Broker => ("AMQP_URL", load.world.amqp_url().to_owned()),
            Way::Database => ("DATABASE_URL", load.world.database_url().to_owned()),
        };
        let proxy = TcpProxy::before(&authority(&url)).await.expect("a proxy");
        let url = proxy.reroute(&url);
        let relay = load.world.launch(RELAY).env(variable, &url).start().await;
        let dispatcher = load.world.launch(DISPATCHER).env(variable, &url);
        let dispatcher = dispatcher.start().await;
        load.write(EVENTS).await;
        load.wait_arrived(MID_LOAD).await;
        Self {
            relay,
            dispatcher,
            load,
            proxy,
        }
    }

    async fn wait_unready(&mut self) {
        self.relay.wait_unready().await;
        self.dispatcher.wait_unready().await;
    }

    async fn assert_recovered(mut self, duplicates_max: u64) {
        self.load.write(EVENTS).await;
        self.load.assert_all_arrived(duplicates_max).await;
        assert!(self.relay.is_running() && self.dispatcher.is_running());
    }
}

/// Host and port of a URL.
fn authority(url: &str) -> String {
    let (_, rest) = url.split_once("://").expect("a URL");
    let authority = rest.split('/').next().expect("something");
    let host_and_port = authority.rsplit('@').next().expect("something");
    host_and_port.to_owned()
}

#[tokio::test]
async fn connections_to_the_broker_that_are_cut_again_and_again_cost_nothing() {
    let scene = Scene::mid_load(Way::Broker).await;
    for cut in 1..=CUTS {
        scene.proxy.cut();
        scene.load.wait_arrived(MID_LOAD + cut * 50).await;
    }
    scene.assert_recovered(0).await;
}

#[tokio::test]
async fn a_broker_that_swallows_everything_is_noticed_and_used_again() {
    let scene = Scene::mid_load(Way::Broker).await;
    scene.proxy.freeze();
    scene.dispatcher.wait_unready().await;
    scene.proxy.cut();
    scene.proxy.thaw();
    scene.assert_recovered(0).await;
}

#[tokio::test]
async fn connections_to_the_database_that_are_cut_repeat_no_more_than_was_in_flight() {
    let scene = Scene::mid_load(Way::Database).await;
    for cut in 1..=CUTS {
        scene.proxy.cut();
        scene.load.wait_arrived(MID_LOAD + cut * 50).await;
    }
    scene.assert_recovered(CUTS * IN_FLIGHT_MAX).await;
}

#[tokio::test]
async fn a_database_out_of_reach_is_waited_for() {
    let mut scene = Scene::mid_load(Way::Database).await;
    scene.proxy.refuse();
    scene.wait_unready().await;
    scene.proxy.accept();
    scene.assert_recovered(IN_FLIGHT_MAX).await;
}

#[tokio::test]
async fn a_database_that_swallows_everything_is_noticed_and_used_again() {
    let mut scene = Scene::mid_load(Way::Database).await;
    scene.proxy.freeze();
    scene.wait_unready().await;
    scene.proxy.cut();
    scene.proxy.thaw();
    scene.assert_recovered(IN_FLIGHT_MAX).await;
}

#[tokio::test]
async fn a_database_server_that_lost_its_power_is_not_waited_for_for_ever() {
    let scene = Scene::mid_load(Way::Database).await;
    scene.proxy.abandon();
    scene.load.assert_mid_load();
    // Only now is it known that nobody waits any more for what will never be answered.
    scene
        .load
        .wait_arrived(scene.load.arrived() + 2 * IN_FLIGHT_MAX)
        .await;
    scene.assert_recovered(IN_FLIGHT_MAX).await;
}
