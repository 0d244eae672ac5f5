//! A service this process cannot work without, as seen by one loop: how long to wait after a
//! failure, and what the probes say meanwhile. It talks to no service itself.

use std::fmt::Display;
use std::time::Duration;

use crate::backoff::Backoff;
use crate::health::Health;

/// Failures in a row after which the process no longer counts as alive: a connection pool that has
/// got stuck comes back with a restart only, and a service that is away loses nothing by one.
const FAILURES_UNTIL_DEAD: u32 = 30;

/// First and longest wait between tries.
const WAIT_FIRST: Duration = Duration::from_millis(50);
const WAIT_CAP: Duration = Duration::from_secs(5);

/// Reports one dependency's state from the loop that uses it.
#[derive(Debug)]
pub struct Dependency {
    health: Health,
    name: &'static str,
    backoff: Backoff,
    failures: u32,
    was_ready: bool,
}

impl Dependency {
    /// Not ready until the first success.
    pub fn new(health: Health, name: &'static str) -> Self {
        health.set_ready(name, false, "not used yet");
        Self {
            health,
            name,
            backoff: Backoff::new(WAIT_FIRST, WAIT_CAP),
            failures: 0,
            was_ready: false,
        }
    }

    /// Ready until the first failure: for what is used only when work arrives.
    pub fn expected(health: Health, name: &'static str) -> Self {
        let mut dependency = Self::new(health, name);
        dependency.succeeded();
        dependency
    }

    /// It worked. Cheap when it worked before.
    pub fn succeeded(&mut self) {
        if self.was_ready {
            return;
        }
        if self.failures > 0 {
            tracing::info!(
                dependency = self.name,
                failures = self.failures,
                "back again"
            );
        }
        self.health.set_ready(self.name, true, "in use");
        self.health.set_live(self.name, true, "in use");
        self.backoff.reset();
        self.failures = 0;
        self.was_ready = true;
    }

    /// It is not there, and something else already brings it back: not ready, but alive. Said once.
    pub fn is_away(&mut self, detail: &str) {
        if !self.was_ready && self.failures > 0 {
            return;
        }
        self.failures = 1;
        self.was_ready = false;
        self.health.set_ready(self.name, false, detail);
        tracing::warn!(dependency = self.name, detail, "not available");
    }

    /// It failed; the error's text goes to logs and probes and must hold no secrets. Returns how
    /// long to wait before the next try.
    pub fn failed(&mut self, error: &dyn Display) -> Duration {
        let wait = self.backoff.next_delay();
        self.failures = self.failures.saturating_add(1);
        self.was_ready = false;
        self.health.set_ready(self.name, false, error.to_string());
        let live = self.failures < FAILURES_UNTIL_DEAD;
        self.health.set_live(
            self.name,
            live,
            format!("{} failures in a row", self.failures),
        );
        tracing::warn!(dependency = self.name, failures = self.failures, %error, "not available");
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Shutdown;

    #[test]
    fn readiness_follows_every_failure_and_liveness_only_many_in_a_row() {
        let health = Health::new(Shutdown::new());
        let mut dependency = Dependency::new(health.clone(), "database");
        assert!(!health.is_ready() && health.is_live());
        dependency.succeeded();
        assert!(health.is_ready());
        for _ in 1..FAILURES_UNTIL_DEAD {
            dependency.failed(&"away");
        }
        assert!(!health.is_ready() && health.is_live());
        dependency.failed(&"away");
        assert!(!health.is_live());
        dependency.succeeded();
        assert!(health.is_ready() && health.is_live());
    }

    #[test]
    fn what_is_used_only_when_work_arrives_is_ready_until_it_fails() {
        let health = Health::new(Shutdown::new());
        let mut dependency = Dependency::expected(health.clone(), "settlements");
        assert!(health.is_ready());
        dependency.failed(&"away");
        assert!(!health.is_ready());
    }

    #[test]
    fn what_is_brought_back_by_something_else_never_costs_the_process_its_life() {
        let health = Health::new(Shutdown::new());
        let mut dependency = Dependency::new(health.clone(), "broker");
        dependency.succeeded();
        (0..=FAILURES_UNTIL_DEAD).for_each(|_| dependency.is_away("not connected"));
        assert!(!health.is_ready() && health.is_live());
        dependency.succeeded();
        assert!(health.is_ready());
    }

    #[test]
    fn waits_grow_up_to_their_cap_and_begin_anew_after_a_success() {
        let mut dependency = Dependency::new(Health::new(Shutdown::new()), "broker");
        assert_eq!(dependency.failed(&"away"), WAIT_FIRST);
        let longest = (0..20).map(|_| dependency.failed(&"away")).max();
        assert_eq!(longest, Some(WAIT_CAP));
        dependency.succeeded();
        assert_eq!(dependency.failed(&"away"), WAIT_FIRST);
    }
}
