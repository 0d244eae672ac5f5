//! The host as it was written, held against what the `url` crate made of it. That crate quietly
//! turns decimal, octal, hex, short and full-width spellings into the address they mean; here each
//! of them is refused, so that what an operator reads is what is called.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::Url;

use super::DestinationRefused;

/// A host, told apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Host {
    /// A literal in canonical form.
    Address(IpAddr),
    /// A name in lower-case ASCII, without the final dot of a rooted name.
    Name(String),
}

/// Splits `host:port`, the host keeping the brackets of an IPv6 literal.
pub(super) fn split_port(authority: &str) -> Result<(&str, Option<u16>), DestinationRefused> {
    if authority.contains('@') {
        return Err(DestinationRefused::UserInfo);
    }
    let host_end = authority.find(']').map_or(0, |bracket| bracket + 1);
    let colon = authority[host_end..].find(':').map(|at| at + host_end);
    let (host, port) = authority.split_at(colon.unwrap_or(authority.len()));
    if host.is_empty() {
        return Err(DestinationRefused::Form);
    }
    let port = port.strip_prefix(':').map(read_port).transpose()?;
    Ok((host, port))
}

/// 1 to 65535, written without sign or leading zeros.
fn read_port(text: &str) -> Result<u16, DestinationRefused> {
    let port: u16 = text.parse().map_err(|_| DestinationRefused::Port)?;
    if port == 0 || port.to_string() != text {
        return Err(DestinationRefused::Port);
    }
    Ok(port)
}

/// Reads the host as written and checks that `url`, parsed from the same text, says the same.
pub(super) fn read(written: &str, url: &Url) -> Result<Host, DestinationRefused> {
    match url.host().ok_or(DestinationRefused::Form)? {
        url::Host::Ipv4(address) => same_ipv4(written, address),
        url::Host::Ipv6(address) => same_ipv6(written, address),
        url::Host::Domain(ascii) => same_name(written, ascii),
    }
}

fn same_ipv4(written: &str, address: Ipv4Addr) -> Result<Host, DestinationRefused> {
    if written.parse() != Ok(address) {
        return Err(DestinationRefused::AddressForm);
    }
    Ok(Host::Address(address.into()))
}

fn same_ipv6(written: &str, address: Ipv6Addr) -> Result<Host, DestinationRefused> {
    let literal = written
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    if literal.and_then(|literal| literal.parse().ok()) != Some(address) {
        return Err(DestinationRefused::AddressForm);
    }
    Ok(Host::Address(address.into()))
}

/// Label by label: one in ASCII stays as it is but for its case, any other becomes punycode. A
/// full-width or circled spelling of an ASCII name, a dot of another script and an escaped byte
/// all fail this.
fn same_name(written: &str, ascii: &str) -> Result<Host, DestinationRefused> {
    let same_label = |(written, ascii): (&str, &str)| {
        if written.is_ascii() {
            written.eq_ignore_ascii_case(ascii)
        } else {
            ascii.starts_with("xn--")
        }
    };
    let same_count = written.split('.').count() == ascii.split('.').count();
    if !same_count || !written.split('.').zip(ascii.split('.')).all(same_label) {
        return Err(DestinationRefused::Name);
    }
    Ok(Host::Name(
        ascii.strip_suffix('.').unwrap_or(ascii).to_owned(),
    ))
}
