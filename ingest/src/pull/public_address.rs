//! Check that an address belongs to the public internet. A vendor's response must not direct a pull to the operator's
//! own network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// DNS resolver that returns only public addresses.
pub(super) struct PublicResolver;

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<_> = found.filter(|address| is_public(address.ip())).collect();
            if public.is_empty() {
                return Err("its address is not public".into());
            }
            Ok(Box::new(public.into_iter()) as Addrs)
        })
    }
}

/// True if a URL has no host, or if any address of its host is not public. False if the host name cannot be resolved.
pub(super) async fn leads_to_private_address(url: &Url) -> bool {
    match url.host_str().map(|host| host.trim_start_matches('[').trim_end_matches(']')) {
        None => true,
        Some(host) => match host.parse() {
            Ok(address) => !is_public(address),
            Err(_) => tokio::net::lookup_host((host, 0))
                .await
                .is_ok_and(|mut found| found.any(|address| !is_public(address.ip()))),
        },
    }
}

/// True for addresses of the public internet.
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    // Special addresses, in the order of the patterns: "this network", carrier-grade NAT, IETF protocol assignments,
    // benchmarks, and multicast together with reserved addresses.
    let special = matches!(
        address.octets(),
        [0, ..] | [100, 64..=127, ..] | [192, 0, 0, _] | [198, 18..=19, ..] | [224..=255, ..]
    );
    !(special || address.is_private() || address.is_loopback() || address.is_link_local())
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let [first, second, third, fourth, fifth, sixth, seventh, eighth] = address.segments();
    let embedded =
        |high: u16, low: u16| is_public_v4(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
    match (first, second, third, fourth, fifth, sixth) {
        // IPv6 addresses that contain an IPv4 address: mapped or compatible, NAT64, and 6to4. The IPv4 address decides.
        (0, 0, 0, 0, 0, 0 | 0xffff) | (0x64, 0xff9b, 0, 0, 0, 0) => embedded(seventh, eighth),
        (0x2002, ..) => embedded(second, third),
        // Global unicast addresses are public, except Teredo, which also contains an IPv4 address.
        (0x2001, 0, ..) => false,
        (0x2000..=0x3fff, ..) => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_own_networks_are_not_public() {
        for address in
            ["8.8.8.8", "172.15.0.1", "100.63.0.1", "2606:4700::1111", "::ffff:1.1.1.1", "64:ff9b::808:808"]
        {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "255.255.255.255",
            "224.0.0.1",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "fec0::1",
            "ff02::1",
            "::ffff:169.254.169.254",
            "::10.0.0.1",
            "64:ff9b::a00:1",
            "2002:a00:1::",
            "2001:0:1::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
    }
}
