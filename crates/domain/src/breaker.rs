//! The circuit breaker of one endpoint, as a value: the row in the database is read, moved by these
//! functions and written back. It does not admit or hold anything; [`crate::gate`] does.
//!
//! ```text
//!              failures reach the threshold
//!   closed ──────────────────────────────────► open ◄──┐
//!     ▲                                         │      │ probe failed: cooldown doubled
//!     │ probe succeeded: cooldown back to base  │ cooled down: one probe starts
//!     └────────────────────────────── half_open ◄┘─────┘
//! ```

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::{judge::HealthEffect, names::names};

/// p95 above which an endpoint gets the lower opening threshold.
pub const SLOW_P95: Duration = Duration::from_secs(5);

names! {
    /// Whether an endpoint is being called.
    pub enum BreakerState: "breaker state" {
        /// Called as usual; consecutive failures are counted.
        Closed = "closed",
        /// Not called until the cooldown is over.
        Open = "open",
        /// One probe is out; nothing else is sent.
        HalfOpen = "half_open",
    }
}

/// What moves one endpoint's breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerLimits {
    /// Consecutive failures that open it; zero counts as one.
    pub failure_threshold: u32,
    /// The wait after opening.
    pub cooldown: Duration,
    /// What doubling cannot exceed.
    pub cooldown_cap: Duration,
}

impl BreakerLimits {
    /// The same limits with half the threshold (rounded up) if the endpoint is slow: its p95 is
    /// above [`SLOW_P95`]. A slow endpoint that fails costs more than a fast one.
    #[must_use]
    pub fn for_latency(self, p95: Option<Duration>) -> BreakerLimits {
        if p95.is_none_or(|p95| p95 <= SLOW_P95) {
            return self;
        }
        BreakerLimits {
            failure_threshold: self.failure_threshold.div_ceil(2),
            ..self
        }
    }

    fn base_cooldown(&self) -> Duration {
        self.cooldown.min(self.cooldown_cap)
    }

    fn doubled(&self, cooldown: Duration) -> Duration {
        cooldown
            .saturating_mul(2)
            .clamp(self.base_cooldown(), self.cooldown_cap)
    }
}

/// One endpoint's breaker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Breaker {
    /// Where it stands.
    pub state: BreakerState,
    /// Failures since the last success.
    pub consecutive_failures: u32,
    /// When it opened last; `None` while closed.
    pub opened_at: Option<DateTime<Utc>>,
    /// The wait that started, or will start, at `opened_at`.
    pub cooldown: Duration,
    /// Until when the probe that is out may report; `None` unless half-open.
    pub probe_deadline: Option<DateTime<Utc>>,
    /// When a probe closed it last; starts the ramp of [`crate::gate::release_room`].
    pub recovered_at: Option<DateTime<Utc>>,
}

impl Breaker {
    /// The breaker of an endpoint that has not been called yet.
    pub fn new(limits: &BreakerLimits) -> Breaker {
        Breaker {
            state: BreakerState::Closed,
            consecutive_failures: 0,
            opened_at: None,
            cooldown: limits.base_cooldown(),
            probe_deadline: None,
            recovered_at: None,
        }
    }

    /// Whether the cooldown since `opened_at` is over. Without an `opened_at` nothing is left to
    /// wait for.
    pub fn cooled_down(&self, now: DateTime<Utc>) -> bool {
        self.opened_at.is_none_or(|opened_at| {
            now.signed_duration_since(opened_at)
                .to_std()
                .is_ok_and(|elapsed| elapsed >= self.cooldown)
        })
    }

    /// Whether one probe may start now: the cooldown is over, or the probe that is out missed its
    /// deadline and can be taken over.
    pub fn probe_due(&self, now: DateTime<Utc>) -> bool {
        match self.state {
            BreakerState::Closed => false,
            BreakerState::Open => self.cooled_down(now),
            BreakerState::HalfOpen => self.probe_deadline.is_none_or(|deadline| now > deadline),
        }
    }

    /// Half-open with one probe out until `deadline`; unchanged when no probe is due.
    #[must_use]
    pub fn start_probe(self, now: DateTime<Utc>, deadline: DateTime<Utc>) -> Breaker {
        if !self.probe_due(now) {
            return self;
        }
        Breaker {
            state: BreakerState::HalfOpen,
            probe_deadline: Some(deadline),
            ..self
        }
    }

    /// The breaker after an attempt with this `effect`. While it is not closed only the holder of
    /// the probe (`by_probe`) moves it; late results of older attempts change nothing.
    #[must_use]
    pub fn record(
        self,
        effect: HealthEffect,
        by_probe: bool,
        limits: &BreakerLimits,
        now: DateTime<Utc>,
    ) -> Breaker {
        match self.state {
            BreakerState::Closed => self.record_closed(effect, limits, now),
            BreakerState::Open | BreakerState::HalfOpen if by_probe => {
                self.record_probe(effect, limits, now)
            }
            BreakerState::Open | BreakerState::HalfOpen => self,
        }
    }

    fn record_closed(
        mut self,
        effect: HealthEffect,
        limits: &BreakerLimits,
        now: DateTime<Utc>,
    ) -> Breaker {
        match effect {
            HealthEffect::Neutral => return self,
            HealthEffect::Success => self.consecutive_failures = 0,
            HealthEffect::Failure => {
                self.consecutive_failures = self.consecutive_failures.saturating_add(1);
            }
        }
        if self.consecutive_failures >= limits.failure_threshold.max(1) {
            return self.open(limits.base_cooldown(), now);
        }
        self
    }

    fn record_probe(
        mut self,
        effect: HealthEffect,
        limits: &BreakerLimits,
        now: DateTime<Utc>,
    ) -> Breaker {
        match effect {
            HealthEffect::Success => Breaker {
                recovered_at: Some(now),
                ..Breaker::new(limits)
            },
            HealthEffect::Failure => {
                self.consecutive_failures = self.consecutive_failures.saturating_add(1);
                let cooldown = limits.doubled(self.cooldown);
                self.open(cooldown, now)
            }
            // It proved neither health nor failure: wait as long again and ask once more.
            HealthEffect::Neutral => {
                let cooldown = self.cooldown;
                self.open(cooldown, now)
            }
        }
    }

    fn open(self, cooldown: Duration, now: DateTime<Utc>) -> Breaker {
        Breaker {
            state: BreakerState::Open,
            consecutive_failures: self.consecutive_failures,
            opened_at: Some(now),
            cooldown,
            probe_deadline: None,
            recovered_at: None,
        }
    }
}

#[cfg(test)]
mod tests;
