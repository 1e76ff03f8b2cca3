//! Client address of a request: the peer of the socket or, behind a trusted proxy, an address from `X-Forwarded-For`.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use axum::http::HeaderMap;
use ipnet::IpNet;

/// Network that has its own limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ClientNetwork {
    V4([u8; 4]),
    V6Net64([u8; 8]),
    V6Net48([u8; 6]),
}

impl ClientNetwork {
    /// Returns the client's network (IPv4 address or IPv6 /64), and for IPv6 also the surrounding /48.
    pub(crate) fn containing(address: IpAddr) -> (Self, Option<Self>) {
        match address.to_canonical() {
            IpAddr::V4(address) => (Self::V4(address.octets()), None),
            IpAddr::V6(address) => (Self::V6Net64(first(address)), Some(Self::V6Net48(first(address)))),
        }
    }

    /// Octets of the network. Networks of different kinds never have equal octets, because the number of octets
    /// differs.
    pub(crate) fn octets(&self) -> &[u8] {
        match self {
            Self::V4(octets) => octets,
            Self::V6Net64(octets) => octets,
            Self::V6Net48(octets) => octets,
        }
    }
}

fn first<const N: usize>(address: Ipv6Addr) -> [u8; N] {
    let mut octets = [0; N];
    octets.copy_from_slice(&address.octets()[..N]);
    octets
}

/// Client address of a request: the peer of the socket. If the peer is a trusted proxy, the client address is the
/// rightmost untrusted hop in `X-Forwarded-For`.
pub(crate) fn resolve_client_address(peer: SocketAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let mut client = peer.ip().to_canonical();
    if !is_trusted_proxy(client, trusted) {
        return client;
    }
    let lines: Vec<&str> =
        headers.get_all("x-forwarded-for").iter().map(|line| line.to_str().unwrap_or("?")).collect();
    let joined = lines.join(",");
    for hop in joined.rsplit(',').map(str::trim) {
        match parse_hop(hop) {
            Some(address) if is_trusted_proxy(client, trusted) => client = address,
            _ => break,
        }
    }
    client
}

/// True if the address belongs to a trusted proxy.
pub(crate) fn is_trusted_proxy(address: IpAddr, trusted: &[IpNet]) -> bool {
    trusted.iter().any(|net| net.contains(&address.to_canonical()))
}

fn parse_hop(text: &str) -> Option<IpAddr> {
    let address =
        text.parse::<IpAddr>().ok().or_else(|| text.parse::<SocketAddr>().ok().map(|socket| socket.ip()));
    address.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_is_the_last_untrusted_hop() {
        let check = |peer: &str, lines: &[&str], expected: &str| {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append("x-forwarded-for", line.parse().expect("a header"));
            }
            let trusted = ["10.0.0.0/8".parse().expect("a net")];
            let peer = peer.parse().expect("a socket address");
            assert_eq!(
                resolve_client_address(peer, &headers, &trusted).to_string(),
                expected,
                "{peer} {lines:?}"
            );
        };
        check("1.2.3.4:5", &["9.9.9.9"], "1.2.3.4");
        check("10.0.0.1:5", &[], "10.0.0.1");
        check("10.0.0.1:5", &["6.6.6.6, 9.9.9.9"], "9.9.9.9");
        check("10.0.0.1:5", &["6.6.6.6", "9.9.9.9, 10.2.2.2"], "9.9.9.9");
        check("10.0.0.1:5", &["9.9.9.9, nonsense"], "10.0.0.1");
        check("10.0.0.1:5", &["9.9.9.9, unknown, 10.2.2.2"], "10.2.2.2");
        check("[::ffff:10.0.0.1]:5", &["9.9.9.9:443"], "9.9.9.9");
    }
}
