//! Where deliveries may go: which URLs may be registered and which addresses may be called. It
//! does not resolve names: whoever connects resolves the name as absolute (no search list), has
//! the whole answer checked with [`DestinationPolicy::check_addresses`] on every attempt, checks
//! address literals the same way, and connects to nothing but what was checked.

mod address;
mod host;
mod name;

use std::net::IpAddr;

use ipnet::IpNet;
use url::Url;

use host::Host;

/// Longest URL, in bytes.
pub const URL_BYTES_MAX: usize = 2048;

/// Ports below this one belong to well-known services.
const UNPRIVILEGED_PORT_MIN: u16 = 1024;

/// Well-known services above [`UNPRIVILEGED_PORT_MIN`] that do harm when they are sent an HTTP
/// request: databases, caches, queues, container and cluster control, remote desktops.
const SERVICE_PORTS: [u16; 31] = [
    1433, 1521, 2049, 2181, 2375, 2376, 2379, 2380, 3306, 3389, 4369, 5432, 5671, 5672, 5900, 5984,
    6000, 6379, 6443, 6660, 6667, 6697, 8500, 9042, 9092, 9200, 9300, 10250, 10255, 11211, 27017,
];

/// Which destinations this installation permits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DestinationPolicy {
    /// Networks that may be called although they are not public: one's own.
    pub allowed_networks: Vec<IpNet>,
    /// Whether `http` is permitted besides `https`.
    pub allow_http: bool,
}

/// Why a destination is refused. The messages repeat nothing of the URL: its userinfo and query
/// can be secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DestinationRefused {
    /// More than [`URL_BYTES_MAX`] bytes.
    #[error("the url is longer than {URL_BYTES_MAX} bytes")]
    Length,
    /// Whitespace, control characters, backslashes, or characters outside ASCII that are not
    /// letters or digits of a host name.
    #[error("the url has characters that must be percent-encoded")]
    Character,
    /// Not an absolute URL with a host.
    #[error("the url is not well-formed")]
    Form,
    /// A scheme that is not permitted here.
    #[error("the url's scheme is not permitted")]
    Scheme,
    /// A user name or password.
    #[error("the url must not carry a user name or password")]
    UserInfo,
    /// A port that is malformed or belongs to another service.
    #[error("the url's port is not permitted")]
    Port,
    /// An address in another spelling than the canonical one.
    #[error("the url's address is not in its canonical form")]
    AddressForm,
    /// A host that is not a valid DNS name.
    #[error("the url's host is not a valid name")]
    Name,
    /// A name that does not exist in the public DNS.
    #[error("the url's host is a local or special-use name")]
    LocalName,
    /// An address that is not public and not in an allowed network.
    #[error("the address is not a permitted destination")]
    ForbiddenAddress,
    /// A name without any address.
    #[error("the name has no address")]
    NoAddress,
}

impl DestinationPolicy {
    /// Checks a URL at registration and again before each attempt. The URL returned is the one to
    /// use: its host is in ASCII and without the final dot of a rooted name.
    pub fn check_url(&self, text: &str) -> Result<Url, DestinationRefused> {
        if text.len() > URL_BYTES_MAX {
            return Err(DestinationRefused::Length);
        }
        let (authority, rest) = split(text)?;
        check_characters(authority, rest)?;
        let (host, port) = host::split_port(authority)?;
        let mut url = Url::parse(text).map_err(|_| DestinationRefused::Form)?;
        self.check_scheme(&url)?;
        check_port(port)?;
        match host::read(host, &url)? {
            Host::Address(address) => self.check_address(address)?,
            Host::Name(name) => {
                self.check_name(&name)?;
                url.set_host(Some(&name))
                    .map_err(|_| DestinationRefused::Name)?;
            }
        }
        Ok(url)
    }

    /// Checks one address that is about to be connected to.
    pub fn check_address(&self, address: IpAddr) -> Result<(), DestinationRefused> {
        if self.is_allowed_network(address) || address::is_public(address) {
            return Ok(());
        }
        Err(DestinationRefused::ForbiddenAddress)
    }

    /// Checks a resolver's whole answer: one forbidden address refuses all of it, since a name
    /// that leads to both is an attempt to get past this check.
    pub fn check_addresses(&self, addresses: &[IpAddr]) -> Result<(), DestinationRefused> {
        if addresses.is_empty() {
            return Err(DestinationRefused::NoAddress);
        }
        addresses
            .iter()
            .try_for_each(|address| self.check_address(*address))
    }

    /// A mapped address is judged as the IPv4 address it leads to.
    fn is_allowed_network(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.allowed_networks
            .iter()
            .any(|network| network.contains(&address))
    }

    fn check_scheme(&self, url: &Url) -> Result<(), DestinationRefused> {
        match url.scheme() {
            "https" => Ok(()),
            "http" if self.allow_http => Ok(()),
            _ => Err(DestinationRefused::Scheme),
        }
    }

    /// Local names lead to one's own network, so they follow what is allowed of it: `localhost`
    /// with a loopback network, the other ones with any network that is not loopback.
    fn check_name(&self, name: &str) -> Result<(), DestinationRefused> {
        let reachable = match name::scope(name)? {
            name::Scope::Public => true,
            name::Scope::Loopback => self.allowed_networks.iter().any(is_loopback),
            name::Scope::OwnNetwork => !self.allowed_networks.iter().all(is_loopback),
            name::Scope::Nowhere => false,
        };
        reachable.then_some(()).ok_or(DestinationRefused::LocalName)
    }
}

fn is_loopback(network: &IpNet) -> bool {
    network.network().is_loopback()
}

/// Authority and everything after it. The `url` crate repairs much that is malformed; what it would
/// repair is found in the text as it was written.
fn split(text: &str) -> Result<(&str, &str), DestinationRefused> {
    let (scheme, after) = text.split_once("://").ok_or(DestinationRefused::Form)?;
    if !scheme.eq_ignore_ascii_case("https") && !scheme.eq_ignore_ascii_case("http") {
        return Err(DestinationRefused::Scheme);
    }
    let end = after.find(['/', '?', '#']).unwrap_or(after.len());
    Ok(after.split_at(end))
}

/// Letters and digits outside ASCII are for host names only; a path or query encodes them.
fn check_characters(authority: &str, rest: &str) -> Result<(), DestinationRefused> {
    let plain = |char: char| char.is_ascii_graphic() && char != '\\';
    let fine = authority
        .chars()
        .all(|char| plain(char) || (!char.is_ascii() && char.is_alphanumeric()))
        && rest.chars().all(plain);
    fine.then_some(()).ok_or(DestinationRefused::Character)
}

/// 80, 443 (or none), and what is above the well-known ports and not another service's.
fn check_port(port: Option<u16>) -> Result<(), DestinationRefused> {
    match port {
        None | Some(80 | 443) => Ok(()),
        Some(port) if port >= UNPRIVILEGED_PORT_MIN && !SERVICE_PORTS.contains(&port) => Ok(()),
        Some(_) => Err(DestinationRefused::Port),
    }
}
