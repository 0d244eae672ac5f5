//! Name resolution that hands out permitted addresses only, or none at all.
//!
//! The client connects to nothing but what comes from here, so a name cannot be checked as one
//! address and connected to as another. Address literals never reach a resolver; the client checks
//! those itself.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use domain::destination::{DestinationPolicy, DestinationRefused};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// Resolves through the system and checks the whole answer.
pub(crate) struct GuardedResolver {
    policy: Arc<DestinationPolicy>,
}

/// Why a name has no address to connect to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResolveError {
    /// The system's resolver failed.
    #[error("the name cannot be resolved")]
    Lookup(#[source] io::Error),
    /// The name has no address, or a forbidden one.
    #[error(transparent)]
    Refused(#[from] DestinationRefused),
}

impl GuardedResolver {
    pub(crate) fn new(policy: Arc<DestinationPolicy>) -> GuardedResolver {
        GuardedResolver { policy }
    }
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = Arc::clone(&self.policy);
        Box::pin(async move {
            let addresses = lookup(&policy, name.as_str()).await?;
            Ok(Box::new(addresses.into_iter()) as Addrs)
        })
    }
}

async fn lookup(policy: &DestinationPolicy, name: &str) -> Result<Vec<SocketAddr>, ResolveError> {
    let found = tokio::net::lookup_host((query(policy, name), 0))
        .await
        .map_err(ResolveError::Lookup)?;
    let found: Vec<SocketAddr> = found.collect();
    let addresses: Vec<IpAddr> = found.iter().map(SocketAddr::ip).collect();
    policy.check_addresses(&addresses)?;
    Ok(found)
}

/// The name to ask for. A search list must not turn a public name into one of the cluster's own, so
/// it is asked for as absolute; unless one's own network may be called, where short names are usual.
fn query(policy: &DestinationPolicy, name: &str) -> String {
    let own_names = policy
        .allowed_networks
        .iter()
        .any(|network| !network.addr().is_loopback());
    if own_names || !name.contains('.') {
        name.to_owned()
    } else {
        format!("{name}.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(networks: &[&str]) -> DestinationPolicy {
        DestinationPolicy {
            allowed_networks: networks
                .iter()
                .map(|network| network.parse().unwrap())
                .collect(),
            allow_http: true,
        }
    }

    #[test]
    fn public_names_are_asked_for_as_absolute() {
        assert_eq!(
            query(&policy(&[]), "hooks.example.com"),
            "hooks.example.com."
        );
        assert_eq!(
            query(&policy(&["127.0.0.0/8"]), "hooks.example.com"),
            "hooks.example.com."
        );
        assert_eq!(
            query(&policy(&["10.0.0.0/8"]), "receiver.default"),
            "receiver.default"
        );
    }

    #[tokio::test]
    async fn one_forbidden_address_refuses_the_whole_answer() {
        let refused = lookup(&policy(&[]), "localhost").await;
        assert!(matches!(
            refused,
            Err(ResolveError::Refused(DestinationRefused::ForbiddenAddress))
        ));
        let allowed = lookup(&policy(&["127.0.0.0/8", "::1/128"]), "localhost")
            .await
            .unwrap();
        assert!(allowed.iter().all(|address| address.ip().is_loopback()));
    }
}
