//! PostgreSQL fails under load: restarted and killed. Everything that was committed arrives, and no
//! program ends.

use std::time::Duration;

use acceptance::{PrivateService, Program};
use tokio::time::sleep;

use crate::load::{CpuWatch, Load};

const EVENTS: u32 = 600;
const MID_LOAD: u64 = 100;
const LATENCY: Duration = Duration::from_millis(20);
const CONCURRENCY: [(&str, &str); 1] = [("KURIER_DISPATCH_CONCURRENCY", "8")];
/// How long it stays away while the programs are watched: longer than any wait between two tries.
const AWAY: Duration = Duration::from_secs(6);
/// Requests that can be on their way at one moment: under way, or answered and not recorded yet.
const IN_FLIGHT_MAX: u64 = 2 * 8;

/// A relay and a dispatcher in the middle of their work on a database server of their own.
struct Scene {
    // Dropped in this order: the programs, their world, the server it lives on.
    relay: Program,
    dispatcher: Program,
    load: Load,
    server: PrivateService,
}

impl Scene {
    async fn mid_load() -> Self {
        let server = PrivateService::postgres().await;
        let mut load = Load::on(Some(&server), None, &CONCURRENCY).await;
        load.answer_after(LATENCY);
        let (relay, dispatcher) = (load.world.relay().await, load.world.dispatcher().await);
        load.write(EVENTS).await;
        load.wait_arrived(MID_LOAD).await;
        Self {
            relay,
            dispatcher,
            load,
            server,
        }
    }

    /// An answer that could not be recorded before its lease ended is asked for once more.
    async fn assert_recovered(mut self) {
        self.load.write(EVENTS).await;
        self.load.assert_all_arrived(IN_FLIGHT_MAX).await;
        assert!(self.relay.is_running() && self.dispatcher.is_running());
        self.relay.wait_ready().await;
        self.dispatcher.wait_ready().await;
    }
}

#[tokio::test]
async fn a_database_restarted_in_mid_load_costs_neither_a_delivery_nor_a_restart() {
    let scene = Scene::mid_load().await;
    scene.server.stop().await;
    scene.load.assert_mid_load();
    scene.server.start().await;
    scene.assert_recovered().await;
}

#[tokio::test]
async fn a_database_killed_in_mid_load_costs_neither_a_delivery_nor_a_restart_nor_cpu_time() {
    let mut scene = Scene::mid_load().await;
    scene.server.kill().await;
    scene.load.assert_mid_load();
    let watch = CpuWatch::start(&[&scene.relay, &scene.dispatcher]);
    scene.relay.wait_unready().await;
    scene.dispatcher.wait_unready().await;
    sleep(AWAY).await;
    watch.assert_idle(&mut [&mut scene.relay, &mut scene.dispatcher]);
    scene.server.start().await;
    scene.assert_recovered().await;
}
