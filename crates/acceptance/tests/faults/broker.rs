//! The broker fails under load: wiped, stopped, killed, disconnected, out of memory. Everything
//! arrives afterwards, nobody has to do anything, and no program ends or spins meanwhile.

use std::time::Duration;

use acceptance::{PrivateService, Program};
use tokio::time::sleep;

use crate::load::{CpuWatch, Load};

/// Written before the fault and during it.
const EVENTS: u32 = 1_000;
const EVENTS_MEANWHILE: u32 = 200;
/// So many have arrived when the fault comes.
const MID_LOAD: u64 = 100;
/// An answer takes this long, so that the load lasts while an operator's command runs.
const LATENCY: Duration = Duration::from_millis(50);

/// How long the broker is away. The promise speaks of a minute; what may go wrong (waits that grow,
/// connections given up, confirms timed out) does so within these seconds too.
const AWAY: Duration = Duration::from_secs(15);

/// A relay and a dispatcher in the middle of their work on a broker of their own.
struct Scene {
    // Dropped in this order: the programs, their world, the broker it lives on.
    relay: Program,
    dispatcher: Program,
    load: Load,
    broker: PrivateService,
}

impl Scene {
    async fn mid_load() -> Self {
        let broker = PrivateService::rabbitmq().await;
        let concurrency = [("KURIER_DISPATCH_CONCURRENCY", "8")];
        let mut load = Load::on(None, Some(&broker), &concurrency).await;
        load.answer_after(LATENCY);
        let (relay, dispatcher) = (load.world.relay().await, load.world.dispatcher().await);
        load.write(EVENTS).await;
        load.wait_arrived(MID_LOAD).await;
        Self {
            relay,
            dispatcher,
            load,
            broker,
        }
    }

    /// Lets the broker be away, and writes events meanwhile, which it cannot take.
    async fn stay_away(&mut self) {
        let watch = CpuWatch::start(&[&self.relay, &self.dispatcher]);
        self.load.write(EVENTS_MEANWHILE).await;
        sleep(AWAY).await;
        watch.assert_idle(&mut [&mut self.relay, &mut self.dispatcher]);
        let waiting: i64 = self
            .load
            .world
            .value("SELECT count(*) FROM kurier.outbox_events WHERE processed_at IS NULL")
            .await;
        assert!(waiting >= EVENTS_MEANWHILE.into(), "only {waiting} wait");
    }

    /// No program failed, so no request is repeated: results are recorded as ever.
    async fn assert_recovered(mut self) {
        self.load.assert_all_arrived(0).await;
        assert!(self.relay.is_running() && self.dispatcher.is_running());
        self.relay.wait_ready().await;
        self.dispatcher.wait_ready().await;
    }
}

#[tokio::test]
async fn queues_deleted_in_mid_load_are_declared_again_and_what_they_held_arrives() {
    let mut scene = Scene::mid_load().await;
    scene.load.world.broker.delete_all().await;
    scene.load.assert_mid_load();
    scene.load.write(EVENTS_MEANWHILE).await;
    scene.assert_recovered().await;
}

#[tokio::test]
async fn a_broker_that_has_lost_everything_is_filled_again() {
    let mut scene = Scene::mid_load().await;
    scene.broker.wipe().await;
    scene.load.assert_mid_load();
    scene.load.write(EVENTS_MEANWHILE).await;
    scene.broker.start().await;
    scene.assert_recovered().await;
}

#[tokio::test]
async fn a_broker_killed_in_mid_load_is_used_again_when_it_is_back() {
    let mut scene = Scene::mid_load().await;
    scene.broker.kill().await;
    scene.load.assert_mid_load();
    scene.load.write(EVENTS_MEANWHILE).await;
    scene.broker.start().await;
    scene.assert_recovered().await;
}

#[tokio::test]
async fn a_broker_stopped_for_a_while_costs_neither_a_delivery_nor_a_restart_nor_cpu_time() {
    let mut scene = Scene::mid_load().await;
    scene.broker.stop().await;
    scene.load.assert_mid_load();
    scene.stay_away().await;
    scene.broker.start().await;
    scene.assert_recovered().await;
}

#[tokio::test]
async fn connections_closed_by_the_brokers_operator_are_opened_again() {
    let mut scene = Scene::mid_load().await;
    let close = ["close_all_connections", "by the test"];
    scene.broker.rabbitmqctl(&close).await;
    scene.load.assert_mid_load();
    scene.load.write(EVENTS_MEANWHILE).await;
    scene.broker.rabbitmqctl(&close).await;
    scene.assert_recovered().await;
}

#[tokio::test]
async fn a_broker_out_of_memory_delays_and_loses_nothing() {
    let mut scene = Scene::mid_load().await;
    let watermark = async |scene: &Scene, share| {
        let set = ["set_vm_memory_high_watermark", share];
        scene.broker.rabbitmqctl(&set).await;
    };
    watermark(&scene, "0").await;
    scene.load.assert_mid_load();
    scene.stay_away().await;
    watermark(&scene, "0.4").await;
    scene.assert_recovered().await;
}
