//! Where a host name leads by its form alone. It does not resolve anything: a public name can
//! still have a private address.

use super::DestinationRefused;

/// Longest name and longest label DNS can carry, in bytes.
const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// Suffixes used inside private networks; nobody owns them in the public DNS.
const OWN_NETWORK_SUFFIXES: [&str; 10] = [
    "corp",
    "home",
    "home.arpa",
    "internal",
    "intranet",
    "lan",
    "local",
    "localdomain",
    "private",
    "svc",
];

/// Suffixes under which no HTTP endpoint can be: special uses, and the reverse lookups of `arpa`.
const NOWHERE_SUFFIXES: [&str; 5] = ["alt", "arpa", "invalid", "onion", "test"];

/// How far a name reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// A name of the public DNS.
    Public,
    /// `localhost` and what is below it.
    Loopback,
    /// A single label, or below a suffix of private networks.
    OwnNetwork,
    /// Below a suffix that leads to no host.
    Nowhere,
}

/// The scope of a name in lower-case ASCII without a final dot.
pub(super) fn scope(name: &str) -> Result<Scope, DestinationRefused> {
    if name.len() > NAME_BYTES_MAX || !name.split('.').all(is_label) {
        return Err(DestinationRefused::Name);
    }
    let below = |suffix: &&str| is_below(name, suffix);
    Ok(if is_below(name, "localhost") {
        Scope::Loopback
    } else if OWN_NETWORK_SUFFIXES.iter().any(below) {
        Scope::OwnNetwork
    } else if NOWHERE_SUFFIXES.iter().any(below) {
        Scope::Nowhere
    } else if name.contains('.') {
        Scope::Public
    } else {
        Scope::OwnNetwork
    })
}

/// Whether `name` is `suffix` or ends in `.suffix`.
fn is_below(name: &str, suffix: &str) -> bool {
    name.strip_suffix(suffix)
        .is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// Letters, digits, inner hyphens, and the underscore that real host names have too.
fn is_label(label: &str) -> bool {
    (1..=LABEL_BYTES_MAX).contains(&label.len())
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_')
}
