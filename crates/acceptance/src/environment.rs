//! What the test runner tells the tests, and the settings they give to the programs.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

/// Settings of every program of a world, unless the test says otherwise: everything quick, and a
/// receiver on loopback allowed.
const SETTINGS: [(&str, &str); 12] = [
    ("KURIER_ALLOW_HTTP", "true"),
    ("KURIER_ALLOWED_NETWORKS", "127.0.0.0/8"),
    ("KURIER_ATTEMPT_TIMEOUT_MS", "2000"),
    ("KURIER_DELAY_UNIT_MS", "100"),
    ("KURIER_HEALTH_ADDR", "127.0.0.1:0"),
    ("KURIER_LEASE_MARGIN_MS", "2000"),
    ("KURIER_LOG_FORMAT", "text"),
    ("KURIER_RELEASE_INTERVAL_MS", "50"),
    ("KURIER_RETRY_BASE_MS", "100"),
    ("KURIER_RETRY_CAP_MS", "400"),
    ("KURIER_SWEEP_INTERVAL_MS", "250"),
    ("RUST_LOG", "info"),
];

const DELAY_UNIT: &str = "KURIER_DELAY_UNIT_MS";

/// A variable that only the test runner knows.
///
/// # Panics
/// When it is not set.
#[expect(
    clippy::disallowed_methods,
    reason = "the test runner speaks through the environment"
)]
pub(crate) fn required(name: &str) -> String {
    std::env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set: run these tests by `./run test`"))
}

/// Where services go that a test starts: what the test runner removes, even after a test that was
/// killed, or else a temporary folder.
#[expect(
    clippy::disallowed_methods,
    reason = "the test runner speaks through the environment"
)]
pub(crate) fn folder_for_services() -> PathBuf {
    std::env::var("KURIER_TEST_DIR").map_or_else(|_| std::env::temp_dir(), PathBuf::from)
}

/// The settings above with `changes`.
pub(crate) fn settings(changes: &[(&str, &str)]) -> BTreeMap<String, String> {
    SETTINGS
        .iter()
        .chain(changes)
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

/// The delay unit among `settings`.
pub(crate) fn delay_unit(settings: &BTreeMap<String, String>) -> Duration {
    let milliseconds = settings[DELAY_UNIT].parse().expect("a number");
    Duration::from_millis(milliseconds)
}
