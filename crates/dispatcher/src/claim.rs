//! Claiming a batch, with the endpoints it needs. Own faults are waited out here: they put work off
//! and are never charged to anybody.

use std::{collections::HashMap, sync::Arc, time::Duration};

use process::{Dependency, Shutdown};
use store::{Claim, LeaseTerms, Store, StoreError};
use uuid::Uuid;

use crate::endpoints::{Endpoint, EndpointCache};

/// Claims deliveries for the dispatcher.
pub(crate) struct Claimer {
    pub(crate) store: Store,
    pub(crate) endpoints: EndpointCache,
    pub(crate) database: Dependency,
    pub(crate) shutdown: Shutdown,
    pub(crate) attempt_timeout: Duration,
    pub(crate) lease_margin: Duration,
}

impl Claimer {
    /// Claims what it can of `ids`, trying until the database answers. `None` when the process
    /// drains before that.
    pub(crate) async fn claim(&mut self, ids: &[Uuid], token: Uuid) -> Option<Claim> {
        loop {
            match self.try_claim(ids, token).await {
                Ok(claim) => {
                    self.database.succeeded();
                    return Some(claim);
                }
                Err(error @ (StoreError::Unavailable(_) | StoreError::Schema(_))) => {
                    self.wait_out(error).await?;
                }
                Err(error) => return self.claim_each(ids, token, &error).await,
            }
        }
    }

    /// For times without claims.
    pub(crate) async fn look_at_database(&mut self) {
        match self.store.ping().await {
            Ok(()) => self.database.succeeded(),
            Err(error) => drop(self.database.failed(&error)),
        }
    }

    /// One row that cannot be read must not take its batch with it. It is left to the sweep, and
    /// to whoever reads this log.
    async fn claim_each(&mut self, ids: &[Uuid], token: Uuid, error: &StoreError) -> Option<Claim> {
        let [id] = ids else {
            let mut claim = Vec::with_capacity(ids.len());
            for id in ids {
                claim.extend(Box::pin(self.claim(std::slice::from_ref(id), token)).await?);
            }
            return Some(claim);
        };
        tracing::error!(delivery_id = %id, %error, "delivery cannot be claimed");
        Some(Vec::new())
    }

    async fn try_claim(&mut self, ids: &[Uuid], token: Uuid) -> Result<Claim, StoreError> {
        let terms = LeaseTerms {
            token,
            attempt_timeout: self.attempt_timeout,
            margin: self.lease_margin,
        };
        let claim = self.store.claim(ids, &terms).await?;
        let wanted: HashMap<Uuid, i64> = claim
            .iter()
            .filter_map(|claimed| Some((claimed.endpoint_id, claimed.endpoint_version?)))
            .collect();
        self.endpoints.load(&wanted, &self.store).await?;
        Ok(claim)
    }

    /// The endpoint of a claimed delivery.
    pub(crate) fn endpoint(&self, id: Uuid) -> Arc<Endpoint> {
        self.endpoints.get(id)
    }

    /// Waits before the next try; `None` when the process drains meanwhile.
    async fn wait_out(&mut self, error: StoreError) -> Option<()> {
        let wait = self.database.failed(&error);
        tokio::select! {
            () = tokio::time::sleep(wait) => Some(()),
            () = self.shutdown.draining() => None,
        }
    }
}
