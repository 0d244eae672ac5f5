//! The endpoints' configuration, parsed once for each version of it.

use std::{collections::HashMap, sync::Arc, time::Duration, time::Instant};

use domain::{
    breaker::BreakerLimits,
    destination::{DestinationPolicy, DestinationRefused},
    judge::StatusRules,
    outcome::FailureClass,
    retry::RetryPolicy,
    signing::SigningSecret,
};
use store::{EndpointConfig, Store, StoreError};
use url::Url;
use uuid::Uuid;

use crate::Defaults;

/// Endpoints kept at once; with more, all are read again.
const CACHED_MAX: usize = 10_000;

/// Secrets expire by time and not by a change, so nothing is kept longer than this.
const CACHED_FOR: Duration = Duration::from_secs(10);

/// What an attempt needs to know of its endpoint.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) target: Target,
    pub(crate) timeout: Duration,
    pub(crate) retry: RetryPolicy,
    pub(crate) rules: StatusRules,
    pub(crate) breaker: BreakerLimits,
}

/// Where to send and how to sign, or why that cannot be.
#[derive(Debug)]
pub(crate) enum Target {
    Usable {
        url: Url,
        secrets: Vec<SigningSecret>,
    },
    Unusable {
        class: FailureClass,
        error: String,
    },
}

/// Parsed endpoints by id, each good for one version.
pub(crate) struct EndpointCache {
    policy: DestinationPolicy,
    defaults: Defaults,
    cached: HashMap<Uuid, Cached>,
}

struct Cached {
    version: i64,
    read_at: Instant,
    endpoint: Arc<Endpoint>,
}

impl EndpointCache {
    pub(crate) fn new(policy: DestinationPolicy, defaults: Defaults) -> EndpointCache {
        EndpointCache {
            policy,
            defaults,
            cached: HashMap::new(),
        }
    }

    /// Reads those of the wanted endpoints that are not here in the wanted version.
    pub(crate) async fn load(
        &mut self,
        wanted: &HashMap<Uuid, i64>,
        store: &Store,
    ) -> Result<(), StoreError> {
        let mut missing = self.missing(wanted);
        if self.cached.len() + missing.len() > CACHED_MAX {
            self.cached.clear();
            missing = self.missing(wanted);
        }
        if missing.is_empty() {
            return Ok(());
        }
        let read_at = Instant::now();
        for config in store.endpoint_configs(&missing).await? {
            let cached = Cached {
                version: config.version,
                read_at,
                endpoint: Arc::new(self.prepare(&config)),
            };
            self.cached.insert(config.id, cached);
        }
        Ok(())
    }

    /// The endpoint as last loaded; one that is gone cannot be used.
    pub(crate) fn get(&self, id: Uuid) -> Arc<Endpoint> {
        self.cached.get(&id).map_or_else(
            || Arc::new(self.unusable("the endpoint no longer exists".into())),
            |cached| Arc::clone(&cached.endpoint),
        )
    }

    fn missing(&self, wanted: &HashMap<Uuid, i64>) -> Vec<Uuid> {
        let stale = |id: &Uuid, version: &i64| !self.is_fresh(*id, *version);
        wanted
            .iter()
            .filter(|(id, version)| stale(id, version))
            .map(|(id, _)| *id)
            .collect()
    }

    fn is_fresh(&self, id: Uuid, version: i64) -> bool {
        self.cached.get(&id).is_some_and(|cached| {
            cached.version >= version && cached.read_at.elapsed() < CACHED_FOR
        })
    }

    fn prepare(&self, config: &EndpointConfig) -> Endpoint {
        let target = self
            .target(config)
            .unwrap_or_else(|(class, error)| Target::Unusable { class, error });
        match self.rules(config) {
            Ok((retry, rules)) => Endpoint {
                target,
                timeout: config
                    .attempt_timeout
                    .unwrap_or(self.defaults.attempt_timeout),
                retry,
                rules,
                breaker: self.breaker(config),
            },
            Err(error) => self.unusable(error),
        }
    }

    fn target(&self, config: &EndpointConfig) -> Result<Target, (FailureClass, String)> {
        let url = self.policy.check_url(&config.url).map_err(|refused| {
            let class = match refused {
                DestinationRefused::ForbiddenAddress | DestinationRefused::LocalName => {
                    FailureClass::ForbiddenAddress
                }
                _ => FailureClass::Configuration,
            };
            (class, refused.to_string())
        })?;
        let secrets: Result<Vec<SigningSecret>, _> = config
            .secrets
            .iter()
            .map(|secret| SigningSecret::parse(&secret.0))
            .collect();
        let broken = |what: &str| (FailureClass::Configuration, what.to_owned());
        match secrets {
            Ok(secrets) if secrets.is_empty() => Err(broken(
                "the endpoint has no valid signing secret: give it one, then replay",
            )),
            Ok(secrets) => Ok(Target::Usable { url, secrets }),
            Err(_) => Err(broken(
                "a signing secret of the endpoint cannot be read: replace it, then replay",
            )),
        }
    }

    fn rules(&self, config: &EndpointConfig) -> Result<(RetryPolicy, StatusRules), String> {
        let rules = StatusRules {
            retry: config
                .retry_statuses
                .parse()
                .map_err(|error| format!("retry_statuses: {error}"))?,
            reject: config
                .reject_statuses
                .parse()
                .map_err(|error| format!("reject_statuses: {error}"))?,
        };
        let retry = match &config.retry_schedule {
            Some(schedule) => RetryPolicy::schedule(schedule.clone())
                .map_err(|error| format!("retry_schedule_ms: {error}"))?,
            None => self.backoff(config),
        };
        Ok((retry, rules))
    }

    fn backoff(&self, config: &EndpointConfig) -> RetryPolicy {
        match &self.defaults.retry {
            RetryPolicy::FullJitter { base, cap } => RetryPolicy::FullJitter {
                base: config.retry_base.unwrap_or(*base),
                cap: config.retry_cap.unwrap_or(*cap),
            },
            schedule @ RetryPolicy::Schedule(_) => schedule.clone(),
        }
    }

    fn breaker(&self, config: &EndpointConfig) -> BreakerLimits {
        let defaults = self.defaults.breaker;
        BreakerLimits {
            failure_threshold: config
                .breaker_threshold
                .unwrap_or(defaults.failure_threshold),
            cooldown: config.breaker_cooldown.unwrap_or(defaults.cooldown),
            cooldown_cap: config.breaker_cooldown_cap.unwrap_or(defaults.cooldown_cap),
        }
    }

    fn unusable(&self, error: String) -> Endpoint {
        Endpoint {
            target: Target::Unusable {
                class: FailureClass::Configuration,
                error,
            },
            timeout: self.defaults.attempt_timeout,
            retry: self.defaults.retry.clone(),
            rules: StatusRules::default(),
            breaker: self.defaults.breaker,
        }
    }
}
