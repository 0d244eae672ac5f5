//! The list of all variables, for the documentation and for telling misspellings. It reads nothing.

/// One variable as documented. The unit is part of the name.
#[derive(Debug, Clone, Copy)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// Its default as one would write it; empty if there is none.
    pub default: &'static str,
    /// What it is for.
    pub meaning: &'static str,
}

const fn variable(name: &'static str, default: &'static str, meaning: &'static str) -> Variable {
    Variable {
        name,
        default,
        meaning,
    }
}

/// Every `KURIER_*` variable.
pub const VARIABLES: &[Variable] = &[
    variable(
        "KURIER_HEALTH_ADDR",
        "",
        "address of `/livez` and `/readyz`; no server without it",
    ),
    variable(
        "KURIER_LOG_FORMAT",
        "",
        "`json` or `text`; text on a terminal, JSON elsewhere",
    ),
    variable(
        "KURIER_SHUTDOWN_GRACE_MS",
        "25000",
        "time to finish what is in flight after SIGTERM",
    ),
    variable(
        "KURIER_BROKER_NAMESPACE",
        "kurier",
        "first part of every queue's and exchange's name",
    ),
    variable(
        "KURIER_DELAY_UNIT_MS",
        "1000",
        "smallest delay of a retry; delays are rounded up to it",
    ),
    variable(
        "KURIER_CONFIRM_TIMEOUT_MS",
        "10000",
        "how long a publish waits for the broker's confirms",
    ),
    variable(
        "KURIER_ATTEMPT_TIMEOUT_MS",
        "15000",
        "limit of one attempt, from connect to the last byte",
    ),
    variable(
        "KURIER_MAX_ATTEMPTS",
        "5",
        "attempts before a delivery becomes a dead letter",
    ),
    variable(
        "KURIER_RETRY_BASE_MS",
        "30000",
        "base of the exponential backoff",
    ),
    variable(
        "KURIER_RETRY_CAP_MS",
        "3600000",
        "cap of the exponential backoff",
    ),
    variable(
        "KURIER_BREAKER_THRESHOLD",
        "10",
        "consecutive failures that open a breaker",
    ),
    variable(
        "KURIER_BREAKER_COOLDOWN_MS",
        "300000",
        "first cooldown of an opened breaker",
    ),
    variable(
        "KURIER_BREAKER_COOLDOWN_CAP_MS",
        "3600000",
        "longest cooldown of a breaker",
    ),
    variable(
        "KURIER_ALLOWED_NETWORKS",
        "",
        "private networks that may be called, as CIDRs, comma-separated",
    ),
    variable(
        "KURIER_ALLOW_HTTP",
        "false",
        "whether endpoints may be called without TLS",
    ),
    variable(
        "KURIER_PAYLOAD_BYTES_MAX",
        "1048576",
        "largest payload; larger events are parked",
    ),
    variable(
        "KURIER_RELAY_BATCH",
        "500",
        "events of one turn of the relay",
    ),
    variable(
        "KURIER_SWEEP_INTERVAL_MS",
        "5000",
        "how often the sweep looks for what stands still",
    ),
    variable(
        "KURIER_SWEEP_GRACE_MS",
        "30000",
        "how long past its time a message may be before it counts as lost",
    ),
    variable(
        "KURIER_RELEASE_INTERVAL_MS",
        "1000",
        "how often held deliveries are looked at",
    ),
    variable(
        "KURIER_HELD_AGE_MAX_MS",
        "259200000",
        "how long a delivery may be held before it is given up",
    ),
    variable(
        "KURIER_RETENTION_DAYS",
        "30",
        "how many days of finished deliveries and payloads are kept",
    ),
    variable(
        "KURIER_DISPATCH_CONCURRENCY",
        "256",
        "attempts that one dispatcher runs at once",
    ),
    variable(
        "KURIER_LEASE_MARGIN_MS",
        "10000",
        "how much longer than the attempt limit a claimed delivery stays out of others' reach",
    ),
];
