//! Which addresses a webhook may reach.
//!
//! Whoever sets one up makes this server connect to a place that they choose,
//! and may not be able to reach themselves. So the address is looked at, not
//! the name, and the connection goes to the address that was looked at.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// What an address belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Anybody can reach it.
    Public,
    /// This machine, or a network of its own: only for administrators.
    Inside,
    /// Nobody has a receiver there: the machine's own link, where clouds hand
    /// out credentials, and what is no address of one machine.
    Never,
}

/// Finds addresses for a name, and leaves out those that may not be reached.
/// `plain` is for what is not encrypted, and goes to this machine only.
pub(super) async fn find(
    host: &str,
    port: u16,
    inside: bool,
    plain: bool,
) -> Result<Vec<SocketAddr>, String> {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let found = tokio::net::lookup_host((bare, port)).await;
    let found = found.map_err(|error| format!("`{host}` is not found: {error}"))?;
    let all: Vec<_> = found.collect();
    let fine = |address: &SocketAddr| match of(address.ip()) {
        Reach::Never => false,
        _ if plain => address.ip().to_canonical().is_loopback() && inside,
        Reach::Public => true,
        Reach::Inside => inside,
    };
    let some: Vec<_> = all.iter().copied().filter(fine).collect();
    match (some.is_empty(), all.is_empty()) {
        (false, _) => Ok(some),
        (true, true) => Err(format!("`{host}` is not found")),
        (true, false) => Err(match all.iter().any(|one| of(one.ip()) == Reach::Never) {
            true => format!("`{host}` leads to an address that no webhook may reach"),
            false => format!(
                "`{host}` leads to an address inside this machine or its network, which only an \
                 administrator's webhook may reach"
            ),
        }),
    }
}

pub(super) fn of(address: IpAddr) -> Reach {
    match address.to_canonical() {
        IpAddr::V4(address) => of_four(address),
        IpAddr::V6(address) => of_six(address),
    }
}

fn of_four(address: Ipv4Addr) -> Reach {
    // Where Azure and Alibaba answer their machines, among others' addresses.
    const CLOUDS: [Ipv4Addr; 2] = [
        Ipv4Addr::new(168, 63, 129, 16),
        Ipv4Addr::new(100, 100, 100, 200),
    ];
    let [a, b, c, _] = address.octets();
    match (a, b, c) {
        _ if CLOUDS.contains(&address) => Reach::Never,
        (0 | 224..=255, ..) | (169, 254, _) | (192, 0, 0) => Reach::Never,
        (10 | 127, ..) | (172, 16..=31, _) | (192, 168, _) => Reach::Inside,
        // Carriers' networks, tests of networks, documentation.
        (100, 64..=127, _) | (198, 18 | 19, _) => Reach::Inside,
        (192, 0, 2) | (198, 51, 100) | (203, 0, 113) => Reach::Never,
        _ => Reach::Public,
    }
}

fn of_six(address: Ipv6Addr) -> Reach {
    const AMAZON: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);
    let groups = address.segments();
    let four = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        of_four(Ipv4Addr::new(a, b, c, d))
    };
    match groups {
        _ if address == AMAZON => Reach::Never,
        [0, 0, 0, 0, 0, 0, 0, 1] => Reach::Inside,
        // Older ways to write an address of version four, and translations.
        [0, 0, 0, 0, 0, 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => four(high, low),
        [0x2002, high, low, ..] => four(high, low),
        [0xfc00..=0xfdff, ..] => Reach::Inside,
        // Everything in use that anybody can reach.
        [0x2000..=0x3fff, ..] => Reach::Public,
        _ => Reach::Never,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_known_for_what_they_are() {
        use Reach::{Inside, Never, Public};
        for (address, reach) in [
            ("93.184.216.34", Public),
            ("2606:2800:220:1::1", Public),
            ("127.0.0.1", Inside),
            ("127.255.255.254", Inside),
            ("10.1.2.3", Inside),
            ("172.16.0.1", Inside),
            ("172.32.0.1", Public),
            ("192.168.1.1", Inside),
            ("100.64.0.1", Inside),
            ("::1", Inside),
            ("fd12::1", Inside),
            ("0.0.0.0", Never),
            ("169.254.169.254", Never),
            ("168.63.129.16", Never),
            ("100.100.100.200", Never),
            ("192.0.0.192", Never),
            ("224.0.0.1", Never),
            ("255.255.255.255", Never),
            ("::", Never),
            ("fe80::1", Never),
            ("fec0::1", Never),
            ("ff02::1", Never),
            ("fd00:ec2::254", Never),
            ("::ffff:169.254.169.254", Never),
            ("::ffff:127.0.0.1", Inside),
            ("::169.254.169.254", Never),
            ("64:ff9b::a9fe:a9fe", Never),
            ("64:ff9b::7f00:1", Inside),
            ("2002:a9fe:a9fe::1", Never),
            ("2002:7f00:1::1", Inside),
        ] {
            assert_eq!(of(address.parse().unwrap()), reach, "{address}");
        }
    }
}
