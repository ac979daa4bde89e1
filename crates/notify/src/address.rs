//! Which IP addresses a webhook may reach.
//!
//! A person who adds a webhook makes this server connect to a host of their
//! choice, which they may not be able to reach themselves. So the resolved
//! address is checked, not the name, and the connection goes to exactly the
//! address that was checked.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// What an IP address belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressScope {
    /// The internet.
    Public,
    /// This machine or a private network: only for webhooks of administrators.
    Private,
    /// Never a receiver: link-local addresses, where clouds serve credentials,
    /// and what is not the address of one machine.
    Forbidden,
}

/// Resolves a host to the addresses that a webhook may reach. `plain` is for
/// unencrypted connections, which may only go to this machine.
pub(crate) async fn resolve(
    host: &str,
    port: u16,
    may_reach_private: bool,
    plain: bool,
) -> Result<Vec<SocketAddr>, String> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let found = tokio::net::lookup_host((bare, port)).await;
    let found = found.map_err(|error| format!("cannot resolve `{host}`: {error}"))?;
    let all: Vec<_> = found.collect();
    let fine = |address: &SocketAddr| match scope_of(address.ip()) {
        AddressScope::Forbidden => false,
        _ if plain => address.ip().to_canonical().is_loopback() && may_reach_private,
        AddressScope::Public => true,
        AddressScope::Private => may_reach_private,
    };
    let some: Vec<_> = all.iter().copied().filter(fine).collect();
    match (some.is_empty(), all.is_empty()) {
        (false, _) => Ok(some),
        (true, true) => Err(format!("`{host}` has no address")),
        (true, false) => Err(
            if all
                .iter()
                .any(|one| scope_of(one.ip()) == AddressScope::Forbidden)
            {
                format!("`{host}` resolves to an address that no webhook may reach")
            } else {
                format!(
                    "`{host}` resolves to an address of this machine or its network, which only an \
                 administrator's webhook may reach"
                )
            },
        ),
    }
}

fn scope_of(address: IpAddr) -> AddressScope {
    match address.to_canonical() {
        IpAddr::V4(address) => scope_of_v4(address),
        IpAddr::V6(address) => scope_of_v6(address),
    }
}

fn scope_of_v4(address: Ipv4Addr) -> AddressScope {
    // The metadata services of Azure and Alibaba, at public addresses.
    const CLOUDS: [Ipv4Addr; 2] = [
        Ipv4Addr::new(168, 63, 129, 16),
        Ipv4Addr::new(100, 100, 100, 200),
    ];
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        _ if CLOUDS.contains(&address) => AddressScope::Forbidden,
        (0 | 224..=255, ..) | (169, 254, _) | (192, 0, 0) => AddressScope::Forbidden,
        (10 | 127, ..) | (172, 16..=31, _) | (192, 168, _) => AddressScope::Private,
        // Carrier-grade NAT and benchmarks; then documentation.
        (100, 64..=127, _) | (198, 18 | 19, _) => AddressScope::Private,
        (192, 0, 2) | (198, 51, 100) | (203, 0, 113) => AddressScope::Forbidden,
        _ => AddressScope::Public,
    }
}

fn scope_of_v6(address: Ipv6Addr) -> AddressScope {
    const AMAZON: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
    let groups = address.segments();
    let four = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        scope_of_v4(Ipv4Addr::new(a, b, c, d))
    };
    match groups {
        _ if address == AMAZON => AddressScope::Forbidden,
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressScope::Private,
        // IPv4-compatible addresses and NAT64.
        [0, 0, 0, 0, 0, 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => four(high, low),
        [0x2002, high, low, ..] => four(high, low),
        [0xfc00..=0xfdff, ..] => AddressScope::Private,
        // Global unicast.
        [0x2000..=0x3fff, ..] => AddressScope::Public,
        _ => AddressScope::Forbidden,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_their_scope() {
        use AddressScope::{Forbidden, Private, Public};
        for (address, scope) in [
            ("93.184.216.34", Public),
            ("2606:2800:220:1::1", Public),
            ("127.0.0.1", Private),
            ("127.255.255.254", Private),
            ("10.1.2.3", Private),
            ("172.16.0.1", Private),
            ("172.32.0.1", Public),
            ("192.168.1.1", Private),
            ("100.64.0.1", Private),
            ("::1", Private),
            ("fd12::1", Private),
            ("0.0.0.0", Forbidden),
            ("169.254.169.254", Forbidden),
            ("168.63.129.16", Forbidden),
            ("100.100.100.200", Forbidden),
            ("192.0.0.192", Forbidden),
            ("224.0.0.1", Forbidden),
            ("255.255.255.255", Forbidden),
            ("::", Forbidden),
            ("fe80::1", Forbidden),
            ("fec0::1", Forbidden),
            ("ff02::1", Forbidden),
            ("fd00:ec2::254", Forbidden),
            ("::ffff:169.254.169.254", Forbidden),
            ("::ffff:127.0.0.1", Private),
            ("::169.254.169.254", Forbidden),
            ("64:ff9b::a9fe:a9fe", Forbidden),
            ("64:ff9b::7f00:1", Private),
            ("2002:a9fe:a9fe::1", Forbidden),
            ("2002:7f00:1::1", Private),
        ] {
            assert_eq!(scope_of(address.parse().unwrap()), scope, "{address}");
        }
    }
}
