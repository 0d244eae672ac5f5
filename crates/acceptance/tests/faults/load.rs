//! Events under way while something goes wrong, and the count of what came of them.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use acceptance::{Endpoint, PrivateService, Program, World};
use scripted_receiver::Reply;
use uuid::Uuid;

/// Recovery within seconds: leases of two seconds, and messages that are missed after one.
const SETTINGS: [(&str, &str); 7] = [
    ("KURIER_ATTEMPT_TIMEOUT_MS", "1000"),
    ("KURIER_LEASE_MARGIN_MS", "1000"),
    ("KURIER_SWEEP_INTERVAL_MS", "100"),
    ("KURIER_SWEEP_GRACE_MS", "1000"),
    ("KURIER_CONFIRM_TIMEOUT_MS", "2000"),
    ("KURIER_RELAY_BATCH", "50"),
    ("KURIER_MAX_ATTEMPTS", "20"),
];

/// A program that waits for a service may use this share of one processor.
const IDLE_CPU_SHARE: f64 = 0.25;

const PATH: &str = "/in";

/// A world with one endpoint and the events written so far.
pub(crate) struct Load {
    pub(crate) world: World,
    pub(crate) endpoint: Endpoint,
    events: HashSet<Uuid>,
}

impl Load {
    /// On the shared services, with further settings.
    pub(crate) async fn new(changes: &[(&str, &str)]) -> Self {
        Self::on(None, None, changes).await
    }

    /// On services of the test's own where they are given.
    pub(crate) async fn on(
        postgres: Option<&PrivateService>,
        rabbitmq: Option<&PrivateService>,
        changes: &[(&str, &str)],
    ) -> Self {
        let settings = [SETTINGS.as_slice(), changes].concat();
        let world = World::on_services(postgres, rabbitmq, &settings).await;
        Self {
            endpoint: world.endpoint(PATH).await,
            world,
            events: HashSet::new(),
        }
    }

    /// Answers that take this long, so that there is always something in flight.
    pub(crate) fn answer_after(&self, latency: Duration) {
        self.world.receiver.script(PATH, Reply::ok().after(latency));
    }

    /// There is still work: what was done to the programs was done under load.
    pub(crate) fn assert_mid_load(&self) {
        let (arrived, written) = (self.arrived(), self.written());
        assert!(arrived < written, "all {written} had arrived already");
    }

    pub(crate) async fn write(&mut self, count: u32) {
        self.events
            .extend(self.world.commit_many("order.paid", count).await);
    }

    /// How many events were written.
    pub(crate) fn written(&self) -> u64 {
        self.events.len() as u64
    }

    pub(crate) fn arrived(&self) -> u64 {
        self.world.receiver.tally(PATH).arrived
    }

    pub(crate) async fn wait_arrived(&self, requests: u64) {
        self.world
            .receiver
            .wait_until(&format!("{requests} requests"), |_| {
                self.arrived() >= requests
            })
            .await;
    }

    /// Deliveries that a dispatcher has taken and not settled, with what names its claim.
    pub(crate) async fn leases(&self) -> Vec<(Uuid, Uuid)> {
        let query = "SELECT id, lease_token FROM kurier.deliveries WHERE lease_token IS NOT NULL";
        self.world.rows(query).await
    }

    /// Requests beyond the first that was accepted.
    pub(crate) fn duplicates(&self) -> u64 {
        self.world.receiver.tally(PATH).duplicates()
    }

    /// Everything written has arrived and is on record as delivered, with as many attempts as it
    /// says and no more duplicates than these; no work is left over.
    pub(crate) async fn assert_all_arrived(&self, duplicates_max: u64) {
        self.world.assert_no_leftovers().await;
        let deliveries = self.world.deliveries_to(&self.endpoint).await;
        let delivered: HashSet<Uuid> = deliveries
            .iter()
            .filter(|delivery| delivery.status == "delivered")
            .map(|delivery| delivery.event_id)
            .collect();
        assert!(delivered == self.events, "{}", self.world.standing().await);
        let accepted = self.world.receiver.tally(PATH).ids_accepted;
        assert_eq!(accepted, self.written(), "accepted");
        assert!(
            self.duplicates() <= duplicates_max,
            "{} duplicates, {duplicates_max} allowed",
            self.duplicates()
        );
        self.assert_attempts_add_up().await;
    }

    async fn assert_attempts_add_up(&self) {
        let inconsistent: i64 = self
            .world
            .value(
                "SELECT count(*) FROM kurier.deliveries AS d WHERE d.attempt_count <> (
                    SELECT count(*) FROM kurier.delivery_attempts AS a
                    WHERE a.delivery_id = d.id AND a.attempt_number <= d.attempt_count
                ) OR EXISTS (
                    SELECT FROM kurier.delivery_attempts AS a
                    WHERE a.delivery_id = d.id AND a.attempt_number > d.attempt_count
                )",
            )
            .await;
        assert_eq!(inconsistent, 0, "deliveries whose attempts do not add up");
    }
}

/// The CPU time of programs while a service is away.
pub(crate) struct CpuWatch {
    started: Instant,
    before: Vec<Duration>,
}

impl CpuWatch {
    pub(crate) fn start(programs: &[&Program]) -> Self {
        Self {
            started: Instant::now(),
            before: programs.iter().map(|program| program.cpu_time()).collect(),
        }
    }

    /// None of them has ended, and none spins.
    pub(crate) fn assert_idle(&self, programs: &mut [&mut Program]) {
        let limit = self.started.elapsed().mul_f64(IDLE_CPU_SHARE);
        for (program, before) in programs.iter_mut().zip(&self.before) {
            assert!(program.is_running(), "it has ended");
            let used = program.cpu_time().saturating_sub(*before);
            assert!(used < limit, "{used:?} of CPU time, {limit:?} allowed");
        }
    }
}
