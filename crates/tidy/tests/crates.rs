//! What each crate must not depend on. Who may depend on a library from outside is in deny.toml.

use tidy::{assert_none, text_files};

/// A crate, and the names that must not stand in its manifest's tables of dependencies.
const FORBIDDEN: [(&str, &[&str]); 6] = [
    (
        "domain",
        &[
            "broker", "lapin", "process", "rand", "reqwest", "sqlx", "store", "tokio",
        ],
    ),
    ("store", &["axum", "broker", "lapin", "process", "reqwest"]),
    (
        "broker",
        &["axum", "domain", "process", "reqwest", "sqlx", "store"],
    ),
    ("process", &["broker", "domain", "lapin", "sqlx", "store"]),
    ("outbox-relay", &["lapin", "reqwest", "sqlx"]),
    ("dispatcher", &["lapin", "sqlx"]),
];

fn names(line: &str, dependency: &str) -> bool {
    line.strip_prefix(dependency)
        .is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
}

#[test]
fn no_crate_knows_what_it_must_not() {
    let files = text_files();
    let mut faults = Vec::new();
    for (krate, forbidden) in FORBIDDEN {
        let path = format!("crates/{krate}/Cargo.toml");
        let manifest = files.iter().find(|file| file.path == path);
        let manifest = manifest.unwrap_or_else(|| panic!("{path} is missing"));
        for (number, line) in manifest.numbered_lines() {
            if forbidden.iter().any(|dependency| names(line, dependency)) {
                faults.push(format!("{path}:{number}: {line}"));
            }
        }
    }
    assert_none("a crate depends on what it must not know", &faults);
}
