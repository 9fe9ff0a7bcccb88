//! Which IP addresses belong to the public network.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AddressClass {
    /// The public network: the only class that a fetch reaches unless a rule or setting names the host.
    Public,
    /// This machine.
    Loopback,
    /// This host or network, unspecified.
    Unspecified,
    /// Private networks.
    Private,
    /// The local link.
    LinkLocal,
    /// A cloud's metadata service.
    Metadata,
    /// Space shared by a carrier's customers.
    Shared,
    /// Many receivers.
    Multicast,
    /// Reserved, documentation, benchmarking or tunnelling.
    Reserved,
}

impl fmt::Display for AddressClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "a public address",
            Self::Loopback => "a loopback address",
            Self::Unspecified => "an unspecified address",
            Self::Private => "a private address",
            Self::LinkLocal => "a link-local address",
            Self::Metadata => "a metadata service",
            Self::Shared => "an address of shared space",
            Self::Multicast => "a multicast address",
            Self::Reserved => "a reserved address",
        })
    }
}

/// What an address is for. An address that embeds another is judged by the one it leads to.
pub fn address_class(address: IpAddr) -> AddressClass {
    match address {
        IpAddr::V4(address) => class_v4(address),
        IpAddr::V6(address) => class_v6(address),
    }
}

fn class_v4(address: Ipv4Addr) -> AddressClass {
    match address.octets() {
        [169, 254, 169, 254] | [100, 100, 100, 200] | [168, 63, 129, 16] | [192, 0, 0, 192] => {
            AddressClass::Metadata
        }
        [0, ..] => AddressClass::Unspecified,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => AddressClass::Private,
        [100, 64..=127, ..] => AddressClass::Shared,
        [127, ..] => AddressClass::Loopback,
        [169, 254, ..] => AddressClass::LinkLocal,
        [192, 0, 0 | 2, _] | [192, 88, 99, _] | [198, 18 | 19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => {
            AddressClass::Reserved
        }
        [224..=239, ..] => AddressClass::Multicast,
        [240..=255, ..] => AddressClass::Reserved,
        [_, _, _, _] => AddressClass::Public,
    }
}

fn class_v6(address: Ipv6Addr) -> AddressClass {
    let segments = address.segments();
    let [_, _, _, _, _, _, high, low] = segments;
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        class_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressClass::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressClass::Loopback,
        // Mapped addresses are the IPv4 address itself; compatible ones are obsolete and never public.
        [0, 0, 0, 0, 0, 0xffff, ..] => embedded(high, low),
        [0, 0, 0, 0, 0, 0, ..] => tunnel(embedded(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => tunnel(embedded(high, low)),
        [0x64, 0xff9b, ..] => AddressClass::Reserved,
        [0x2002, high, low, ..] => tunnel(embedded(high, low)),
        [0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254] => AddressClass::Metadata,
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => AddressClass::Private,
        [0xfe80..=0xfebf, ..] => AddressClass::LinkLocal,
        [0xff00..=0xffff, ..] => AddressClass::Multicast,
        [0x2001, 0..=0x01ff | 0x0db8, ..] | [0x3fff, 0..=0x0fff, ..] => AddressClass::Reserved,
        [0x2000..=0x3fff, ..] => AddressClass::Public,
        [_, _, _, _, _, _, _, _] => AddressClass::Reserved,
    }
}

/// A tunnel to a public address is no address that a fetch needs.
fn tunnel(inner: AddressClass) -> AddressClass {
    if inner == AddressClass::Public { AddressClass::Reserved } else { inner }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_public_network_is_public() {
        for (address, class) in [
            ("127.0.0.1", AddressClass::Loopback),
            ("127.255.255.254", AddressClass::Loopback),
            ("0.0.0.0", AddressClass::Unspecified),
            ("10.0.0.1", AddressClass::Private),
            ("172.15.255.255", AddressClass::Public),
            ("172.16.0.1", AddressClass::Private),
            ("172.32.0.1", AddressClass::Public),
            ("100.63.255.255", AddressClass::Public),
            ("100.64.0.1", AddressClass::Shared),
            ("100.128.0.1", AddressClass::Public),
            ("169.254.1.1", AddressClass::LinkLocal),
            ("169.254.169.254", AddressClass::Metadata),
            ("198.18.0.1", AddressClass::Reserved),
            ("203.0.114.7", AddressClass::Public),
            ("224.0.0.1", AddressClass::Multicast),
            ("223.255.255.254", AddressClass::Public),
            ("255.255.255.255", AddressClass::Reserved),
            ("::1", AddressClass::Loopback),
            ("::", AddressClass::Unspecified),
            ("::ffff:127.0.0.1", AddressClass::Loopback),
            ("::ffff:93.184.216.34", AddressClass::Public),
            ("::127.0.0.1", AddressClass::Loopback),
            ("64:ff9b::7f00:1", AddressClass::Loopback),
            ("2002:7f00:1::", AddressClass::Loopback),
            ("2002:5db8:d822::", AddressClass::Reserved),
            ("fe80::1", AddressClass::LinkLocal),
            ("fd00:ec2::254", AddressClass::Metadata),
            ("fd12::1", AddressClass::Private),
            ("ff02::1", AddressClass::Multicast),
            ("2001:db8::1", AddressClass::Reserved),
            ("2606:2800:220:1:248:1893:25c8:1946", AddressClass::Public),
            ("4000::1", AddressClass::Reserved),
        ] {
            assert_eq!(address_class(address.parse().unwrap()), class, "{address}");
        }
    }
}
