//! Admission: what of a claimed batch may be sent now, and what has to wait.

use std::collections::{HashMap, HashSet};

use domain::{
    breaker::Breaker,
    delivery::HoldReason,
    gate::{Admission, admit},
};
use store::{Claimed, Health, HealthChange, Store, StoreError};
use uuid::Uuid;

use crate::{claim::Claimer, clock::DatabaseClock};

/// A claimed batch, sorted out.
#[derive(Default)]
pub(crate) struct Admitted {
    /// To be sent.
    pub(crate) open: Vec<Claimed>,
    /// To be sent as its endpoint's one probe.
    pub(crate) probes: Vec<Claimed>,
    /// To be held, with the reason.
    pub(crate) held: Vec<(Uuid, HoldReason)>,
}

impl Admitted {
    /// Asks each delivery's gate. At most one delivery for each endpoint is put up as a probe.
    pub(crate) fn sort(claim: Vec<Claimed>) -> Admitted {
        let mut admitted = Admitted::default();
        let mut probed = HashSet::new();
        for claimed in claim {
            match admit(&claimed.gate, claimed.now) {
                Admission::Open => admitted.open.push(claimed),
                Admission::Probe if probed.insert(claimed.endpoint_id) => {
                    admitted.probes.push(claimed);
                }
                Admission::Probe => admitted.held.push((claimed.id, HoldReason::BreakerOpen)),
                Admission::Hold(reason) => admitted.held.push((claimed.id, reason)),
            }
        }
        admitted
    }

    /// Keeps only the probes that `won` their endpoint's one place; the others wait.
    pub(crate) fn keep_probes(&mut self, won: &HashSet<Uuid>) {
        let (probes, lost) = std::mem::take(&mut self.probes)
            .into_iter()
            .partition(|probe| won.contains(&probe.endpoint_id));
        self.probes = probes;
        let lost: Vec<Claimed> = lost;
        self.held.extend(
            lost.into_iter()
                .map(|probe| (probe.id, HoldReason::BreakerOpen)),
        );
    }
}

/// Takes the one probe's place of each endpoint, unless another replica was faster. Returns the
/// endpoints won.
pub(crate) async fn take_probes(
    store: &Store,
    claimer: &Claimer,
    probes: &[Claimed],
    clock: &DatabaseClock,
) -> Result<HashSet<Uuid>, StoreError> {
    let tokens: HashMap<Uuid, Uuid> = probes
        .iter()
        .map(|probe| (probe.endpoint_id, probe.lease_token))
        .collect();
    let endpoint_ids: Vec<Uuid> = tokens.keys().copied().collect();
    let (mut settlement, health) = store.begin_health(&endpoint_ids).await?;
    let changes: Vec<HealthChange> = health
        .into_iter()
        .filter(|health| health.breaker.probe_due(health.now))
        .map(|health| start_probe(health, &tokens, claimer, clock))
        .collect();
    settlement.save_health(&changes).await?;
    settlement.commit().await?;
    Ok(changes.iter().map(|change| change.endpoint_id).collect())
}

/// The probe may report for as long as its lease lasts.
fn start_probe(
    health: Health,
    tokens: &HashMap<Uuid, Uuid>,
    claimer: &Claimer,
    clock: &DatabaseClock,
) -> HealthChange {
    let endpoint = claimer.endpoint(health.endpoint_id);
    let left = (endpoint.timeout + claimer.lease_margin).saturating_sub(clock.elapsed());
    let breaker: Breaker = health.breaker.start_probe(health.now, health.now + left);
    HealthChange {
        endpoint_id: health.endpoint_id,
        breaker,
        probe_token: tokens.get(&health.endpoint_id).copied(),
        failure_threshold: endpoint.breaker.failure_threshold,
        succeeded: false,
        failed: false,
    }
}
