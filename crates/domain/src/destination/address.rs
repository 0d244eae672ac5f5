//! Which addresses belong to the public internet, by the IANA special-purpose registries (RFC 6890
//! and its successors, both families). Ranges those registries call "globally reachable" but that
//! hold no web server (AS112, AMT, relay anycast) count as not public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

const NOT_PUBLIC_V4: [Ipv4Net; 19] = [
    v4([0, 0, 0, 0], 8),        // "this network"
    v4([10, 0, 0, 0], 8),       // private use
    v4([100, 64, 0, 0], 10),    // shared address space behind carriers' NAT
    v4([127, 0, 0, 0], 8),      // loopback
    v4([168, 63, 129, 16], 32), // Azure's host agent: a public number routed to the platform
    v4([169, 254, 0, 0], 16),   // link-local, cloud metadata
    v4([172, 16, 0, 0], 12),    // private use
    v4([192, 0, 0, 0], 24),     // protocol assignments, DNS64 discovery
    v4([192, 0, 2, 0], 24),     // documentation
    v4([192, 31, 196, 0], 24),  // AS112
    v4([192, 52, 193, 0], 24),  // AMT
    v4([192, 88, 99, 0], 24),   // 6to4 relay anycast
    v4([192, 168, 0, 0], 16),   // private use
    v4([192, 175, 48, 0], 24),  // AS112
    v4([198, 18, 0, 0], 15),    // benchmarking
    v4([198, 51, 100, 0], 24),  // documentation
    v4([203, 0, 113, 0], 24),   // documentation
    v4([224, 0, 0, 0], 4),      // multicast
    v4([240, 0, 0, 0], 4),      // reserved, limited broadcast
];

/// The only block of IPv6 that is assigned for the public internet. What is outside is not public:
/// loopback, unspecified, mapped and compatible IPv4, NAT64, discard-only, segment routing, unique
/// local, link-local, site-local, multicast.
const GLOBAL_UNICAST_V6: Ipv6Net = v6([0x2000, 0, 0], 3);

const NOT_PUBLIC_V6: [Ipv6Net; 5] = [
    v6([0x2001, 0, 0], 23), // protocol assignments: Teredo, benchmarking, ORCHID
    v6([0x2001, 0xdb8, 0], 32), // documentation
    v6([0x2002, 0, 0], 16), // 6to4: an IPv4 address in disguise
    v6([0x2620, 0x4f, 0x8000], 48), // AS112
    v6([0x3fff, 0, 0], 20), // documentation
];

/// Whether an address is one that anybody on the internet could own.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !NOT_PUBLIC_V4.iter().any(|range| range.contains(&address))
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    GLOBAL_UNICAST_V6.contains(&address)
        && !NOT_PUBLIC_V6.iter().any(|range| range.contains(&address))
        && !is_isatap(address)
}

/// ISATAP: an interface id of `0:5efe` or `200:5efe` tunnels to the IPv4 address behind it,
/// whatever the prefix.
fn is_isatap(address: Ipv6Addr) -> bool {
    let [.., universal, marker, _, _] = address.segments();
    matches!(universal, 0 | 0x200) && marker == 0x5efe
}

const fn v4([a, b, c, d]: [u8; 4], prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6([a, b, c]: [u16; 3], prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), prefix)
}
