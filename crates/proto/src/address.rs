//! Address classes: the one table of IP addresses and host names that are not of the public network.
//!
//! Policy, the fetch tool, the proxy of the sandbox and the scheduler ask this table. It is the defence against
//! server-side request forgery (SSRF): a public name that resolves to a loopback, private or metadata address must not
//! give a call access to this machine, its network, or the credentials of its cloud.
//!
//! ```
//! use toolgate_proto::address::{AddressClass, classify_address};
//!
//! let metadata = "169.254.169.254".parse().unwrap();
//! assert_eq!(classify_address(metadata), AddressClass::Metadata);
//! // NAT64 of the same address.
//! assert_eq!(classify_address("64:ff9b::a9fe:a9fe".parse().unwrap()), AddressClass::Metadata);
//! ```

use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use url::Host;

/// The class of an address: the part of the network to which it belongs. Against SSRF, only [`AddressClass::Public`] may be
/// reached by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AddressClass {
    /// The public network: the only class that calls may access unless a rule or setting names the host.
    Public,
    /// Loopback: this machine, or an address that embeds one of its own. A refusal asks for this class; a grant for this machine
    /// asks [`IpAddr::is_loopback`], because a translator may route `64:ff9b::127.0.0.1` to another machine.
    Loopback,
    /// Unspecified (`0.0.0.0/8`, `::`); connecting to it reaches this machine.
    Unspecified,
    /// Private networks (RFC 1918, unique local IPv6 addresses), and names that resolve there.
    Private,
    /// Link-local: the machines on the same link.
    LinkLocal,
    /// The metadata service of a cloud, which issues credentials.
    Metadata,
    /// Shared address space behind carrier-grade NAT (RFC 6598).
    Shared,
    /// Multicast: groups of receivers.
    Multicast,
    /// Reserved: for documentation, benchmarks, tunnels, or future use.
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
            Self::Shared => "a shared address (carrier-grade NAT)",
            Self::Multicast => "a multicast address",
            Self::Reserved => "a reserved address",
        })
    }
}

/// Whether an address belongs to the public network, and embeds no address that does not.
pub fn is_public(address: IpAddr) -> bool {
    classify_address(address) == AddressClass::Public
}

/// The names and addresses by which clients on this machine call it; an IPv6 address without brackets.
pub const LOOPBACK_HOSTS: [&str; 3] = [LOCALHOST, "127.0.0.1", "::1"];
/// The one name that is this machine without being resolved.
const LOCALHOST: &str = "localhost";

/// Classifies a host: an address by its own class, a name by its top-level domain. A public name may still resolve to a
/// private address, so whatever connects has to classify the resolved address as well.
pub fn classify_host(host: &Host<String>) -> AddressClass {
    match host {
        Host::Ipv4(address) => classify_v4(*address),
        Host::Ipv6(address) => classify_v6(*address),
        Host::Domain(name) => classify_name(name),
    }
}

/// Classifies a name by its top-level domain, without resolving it.
fn classify_name(name: &str) -> AddressClass {
    let Some((_, top)) = name.rsplit_once('.') else {
        // Without a dot, a search domain or the hosts file decides.
        return if name == LOCALHOST { AddressClass::Loopback } else { AddressClass::Private };
    };
    match top {
        LOCALHOST => AddressClass::Loopback,
        "internal" if name.starts_with("metadata") => AddressClass::Metadata,
        "local" | "internal" | "localdomain" | "intranet" | "lan" | "home" | "corp" | "private" => {
            AddressClass::Private
        }
        "arpa" if name.ends_with("home.arpa") => AddressClass::Private,
        _ => AddressClass::Public,
    }
}

/// Whether a host certainly is another machine, as far as its text shows, before a name is resolved.
///
/// An address never is: a public one may be this machine's own. Nor is a name under `test`, which cannot be registered and
/// which development servers use for this machine; for [`classify_host`] it is public, because the check of the resolved
/// address finds out where it leads.
pub fn is_certainly_remote(host: &Host<String>) -> bool {
    match host {
        Host::Domain(name) => classify_name(name) == AddressClass::Public && !name.ends_with(".test"),
        Host::Ipv4(_) | Host::Ipv6(_) => false,
    }
}

/// The addresses of this machine that a host names without being resolved: two for `localhost`, one for a loopback
/// address, none for every other host. An IPv4-mapped address is the IPv4 address, to which the connection is made.
///
/// It is for decisions that grant something to this machine, so it is strict: what `a.localhost` is depends on the
/// resolver. [`classify_host`], by which calls are refused, has such names as loopback.
///
/// ```
/// use toolgate_proto::address::loopback_addresses;
/// use url::Host;
///
/// let addresses = |host: &str| loopback_addresses(&Host::parse(host).unwrap());
/// assert_eq!(addresses("[::ffff:127.0.0.1]"), addresses("127.0.0.1"));
/// assert!(addresses("a.localhost").is_empty() && addresses("[64:ff9b::7f00:1]").is_empty());
/// ```
pub fn loopback_addresses<S: AsRef<str>>(host: &Host<S>) -> Vec<IpAddr> {
    let address = match host {
        Host::Domain(name) if name.as_ref() == LOCALHOST => {
            return vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        }
        Host::Domain(_) => return Vec::new(),
        Host::Ipv4(address) => IpAddr::V4(*address),
        Host::Ipv6(address) => IpAddr::V6(*address).to_canonical(),
    };
    if address.is_loopback() { vec![address] } else { Vec::new() }
}

/// Whether a URL names this machine itself, as [`loopback_addresses`] finds it. A name that only begins or ends like
/// `localhost` is another host.
///
/// ```
/// use toolgate_proto::address::is_loopback_url;
///
/// assert!(is_loopback_url("http://127.0.0.1:11434/v1") && is_loopback_url("http://[::1]/"));
/// assert!(!is_loopback_url("http://127.0.0.1.example.com/") && !is_loopback_url("http://localhost.example.com/"));
/// ```
pub fn is_loopback_url(url: &str) -> bool {
    let url = url::Url::parse(url).ok();
    url.as_ref().and_then(url::Url::host).is_some_and(|host| !loopback_addresses(&host).is_empty())
}

/// Whether an address may be connected to for a host that it belongs to: the one check of the web client and of the
/// sandbox's proxy.
///
/// A public address may. For a host that the user named although it is not public, so may the addresses that such a host
/// has: a literal address is itself, `localhost` is this machine, and another name is any machine of a private network, but
/// no metadata service.
///
/// ```
/// use toolgate_proto::address::may_connect;
/// use toolgate_proto::host_pattern::parse_host;
///
/// let host = parse_host("a.example").unwrap();
/// assert!(may_connect(&host, false, "93.184.216.34".parse().unwrap()));
/// assert!(!may_connect(&host, false, "10.0.0.1".parse().unwrap()));
/// ```
pub fn may_connect(host: &Host<String>, is_named: bool, address: IpAddr) -> bool {
    if is_public(address) {
        return true;
    }
    is_named
        && match host {
            Host::Ipv4(own) => IpAddr::V4(*own) == address,
            Host::Ipv6(own) => IpAddr::V6(*own) == address,
            Host::Domain(name) if classify_name(name) == AddressClass::Loopback => address.is_loopback(),
            Host::Domain(_) => matches!(
                classify_address(address),
                AddressClass::Private | AddressClass::Shared | AddressClass::Loopback
            ),
        }
}

/// Classifies an address. An address that embeds another has the class of the embedded one.
pub fn classify_address(address: IpAddr) -> AddressClass {
    match address {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => classify_v6(address),
    }
}

/// The class of an IPv4 address, from the registry of special-purpose addresses and the metadata services of clouds.
fn classify_v4(address: Ipv4Addr) -> AddressClass {
    match address.octets() {
        [169, 254, 169, 254] | [100, 100, 100, 200] | [168, 63, 129, 16] | [192, 0, 0, 192] => {
            AddressClass::Metadata
        }
        [0, ..] => AddressClass::Unspecified,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => AddressClass::Private,
        [100, 64..=127, ..] => AddressClass::Shared,
        [127, ..] => AddressClass::Loopback,
        [169, 254, ..] => AddressClass::LinkLocal,
        // Protocol assignments, documentation, AS112, multicast and 6to4 relays, benchmarking.
        [192, 0, 0 | 2, _]
        | [192, 31, 196, _]
        | [192, 52, 193, _]
        | [192, 88, 99, _]
        | [192, 175, 48, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _] => AddressClass::Reserved,
        [224..=239, ..] => AddressClass::Multicast,
        [240..=255, ..] => AddressClass::Reserved,
        [_, _, _, _] => AddressClass::Public,
    }
}

/// The class of an IPv6 address. One that embeds an IPv4 address (mapped, NAT64, 6to4) is not more public than that one.
fn classify_v6(address: Ipv6Addr) -> AddressClass {
    let segments = address.segments();
    let [_, _, _, _, _, _, high, low] = segments;
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        classify_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressClass::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressClass::Loopback,
        // IPv4-mapped addresses are the IPv4 address itself; IPv4-compatible ones are obsolete and never public.
        [0, 0, 0, 0, 0, 0xffff, ..] => embedded(high, low),
        [0, 0, 0, 0, 0, 0, ..] => classify_tunnel(embedded(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => classify_tunnel(embedded(high, low)),
        [0x64, 0xff9b, ..] => AddressClass::Reserved,
        [0x2002, high, low, ..] => classify_tunnel(embedded(high, low)),
        [0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254] => AddressClass::Metadata,
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => AddressClass::Private,
        [0xfe80..=0xfebf, ..] => AddressClass::LinkLocal,
        [0xff00..=0xffff, ..] => AddressClass::Multicast,
        // Protocol assignments (Teredo among them), documentation, AS112.
        [0x2001, 0..=0x01ff | 0x0db8, ..] | [0x2620, 0x004f, 0x8000, ..] | [0x3fff, 0..=0x0fff, ..] => {
            AddressClass::Reserved
        }
        // ISATAP: under any prefix, this interface identifier embeds an IPv4 address.
        [0x2000..=0x3fff, _, _, _, 0 | 0x0200, 0x5efe, ..] => classify_tunnel(embedded(high, low)),
        [0x2000..=0x3fff, ..] => AddressClass::Public,
        [_, _, _, _, _, _, _, _] => AddressClass::Reserved,
    }
}

/// The class of a tunnel to an address. A tunnel to a public address is reserved: no ordinary client connects to it.
fn classify_tunnel(inner: AddressClass) -> AddressClass {
    if inner == AddressClass::Public { AddressClass::Reserved } else { inner }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The blocks of the IANA registries of special-purpose addresses except the mapped ones, the multicast blocks and the
    /// reserved blocks.
    const SPECIAL_V4: [(&str, u32); 21] = [
        ("0.0.0.0", 8),
        ("10.0.0.0", 8),
        ("100.64.0.0", 10),
        ("127.0.0.0", 8),
        ("169.254.0.0", 16),
        ("172.16.0.0", 12),
        ("192.0.0.0", 24),
        ("192.0.2.0", 24),
        ("192.31.196.0", 24),
        ("192.52.193.0", 24),
        ("192.88.99.0", 24),
        ("192.168.0.0", 16),
        ("192.175.48.0", 24),
        ("198.18.0.0", 15),
        ("198.51.100.0", 24),
        ("203.0.113.0", 24),
        ("224.0.0.0", 4),
        ("240.0.0.0", 4),
        ("255.255.255.255", 32),
        // Metadata services outside of those blocks.
        ("168.63.129.16", 32),
        ("100.100.100.200", 32),
    ];
    const SPECIAL_V6: [(&str, u32); 17] = [
        ("::", 96),
        ("64:ff9b::", 96),
        ("64:ff9b:1::", 48),
        ("100::", 64),
        ("100:0:0:1::", 64),
        ("2001::", 23),
        ("2001:db8::", 32),
        ("2002::", 16),
        ("2620:4f:8000::", 48),
        ("3fff::", 20),
        ("5f00::", 16),
        ("fc00::", 7),
        ("fe80::", 10),
        ("fec0::", 10),
        ("ff00::", 8),
        ("fd00:ec2::254", 128),
        ("::ffff:0:0:0", 96),
    ];

    fn within_v4(address: Ipv4Addr) -> bool {
        SPECIAL_V4.iter().any(|(block, length)| {
            let block: Ipv4Addr = block.parse().unwrap();
            (address.to_bits() ^ block.to_bits()).leading_zeros() >= *length
        })
    }

    fn within_v6(address: Ipv6Addr) -> bool {
        let listed = SPECIAL_V6.iter().any(|(block, length)| {
            let block: Ipv6Addr = block.parse().unwrap();
            (address.to_bits() ^ block.to_bits()).leading_zeros() >= *length
        });
        let isatap = address.segments()[4] & !0x0200 == 0 && address.segments()[5] == 0x5efe;
        listed || isatap || address.segments()[0] & 0xe000 != 0x2000
    }

    /// An address in one of the blocks.
    fn in_block() -> impl Strategy<Value = IpAddr> {
        let v4 = (0..SPECIAL_V4.len(), any::<u32>()).prop_map(|(index, bits)| {
            let (block, length) = SPECIAL_V4[index];
            let free = u32::MAX.checked_shr(length).unwrap_or(0);
            IpAddr::V4(Ipv4Addr::from_bits(block.parse::<Ipv4Addr>().unwrap().to_bits() | bits & free))
        });
        let v6 = (0..SPECIAL_V6.len(), any::<u128>()).prop_map(|(index, bits)| {
            let (block, length) = SPECIAL_V6[index];
            let free = u128::MAX.checked_shr(length).unwrap_or(0);
            IpAddr::V6(Ipv6Addr::from_bits(block.parse::<Ipv6Addr>().unwrap().to_bits() | bits & free))
        });
        prop_oneof![v4, v6]
    }

    proptest! {
        #[test]
        fn no_block_of_the_registries_is_public(address in in_block()) {
            prop_assert!(!is_public(address), "{}", address);
        }

        #[test]
        fn ipv4_is_public_exactly_outside_the_blocks(bits in any::<u32>()) {
            let address = Ipv4Addr::from_bits(bits);
            prop_assert_eq!(is_public(IpAddr::V4(address)), !within_v4(address));
        }

        #[test]
        fn ipv6_is_public_exactly_in_global_unicast_outside_the_blocks(
            bits in any::<u128>(),
            global in any::<bool>(),
            isatap in prop::option::weighted(0.2, any::<bool>()),
        ) {
            let mut bits = bits;
            if global {
                bits = bits & (u128::MAX >> 3) | 0x2000u128 << 112;
            }
            if let Some(local) = isatap {
                let mark: u128 = if local { 0x0200_5efe } else { 0x5efe };
                bits = bits & !(0xffff_ffffu128 << 32) | mark << 32;
            }
            let address = Ipv6Addr::from_bits(bits);
            prop_assert_eq!(is_public(IpAddr::V6(address)), !within_v6(address));
        }

        /// An address that embeds another is never more public than the embedded one.
        #[test]
        fn an_embedded_address_is_no_more_public_than_it_is(
            bits in any::<u32>(), special in 0..SPECIAL_V4.len(), of_block in any::<bool>(), rest in any::<u64>(),
        ) {
            let (block, length) = SPECIAL_V4[special];
            let inner = if of_block {
                block.parse::<Ipv4Addr>().unwrap().to_bits() | bits & u32::MAX.checked_shr(length).unwrap_or(0)
            } else {
                bits
            };
            let (low, rest) = (u128::from(inner), u128::from(rest));
            let teredo = 0x2001u128 << 112 | low << 64 | rest & !0xffff_ffff | (!low & 0xffff_ffff);
            let mapped = 0xffffu128 << 32 | low;
            let forms = [
                low,
                0x0064_ff9bu128 << 96 | low,
                0x0064_ff9b_0001u128 << 80 | rest << 32 & (u128::MAX >> 48) | low,
                0x2002u128 << 112 | low << 80 | rest,
                teredo,
                0x2606_2800u128 << 96 | 0x5efeu128 << 32 | low,
                0x2606_2800u128 << 96 | 0x0200_5efeu128 << 32 | low,
            ];
            for form in forms {
                prop_assert!(!is_public(IpAddr::V6(Ipv6Addr::from_bits(form))), "{:x}", form);
            }
            let itself = classify_address(IpAddr::V4(Ipv4Addr::from_bits(inner)));
            prop_assert_eq!(classify_address(IpAddr::V6(Ipv6Addr::from_bits(mapped))), itself);
        }
    }

    #[test]
    fn metadata_services_are_not_public() {
        for address in ["169.254.169.254", "fd00:ec2::254", "168.63.129.16", "100.100.100.200", "192.0.0.192"]
        {
            assert_eq!(classify_address(address.parse().unwrap()), AddressClass::Metadata, "{address}");
        }
    }

    #[test]
    fn private_names_are_known_by_their_top_level_domain() {
        for (name, class) in [
            ("localhost", AddressClass::Loopback),
            ("a.localhost", AddressClass::Loopback),
            ("metadata.google.internal", AddressClass::Metadata),
            ("printer.local", AddressClass::Private),
            ("router", AddressClass::Private),
            ("app.test", AddressClass::Public),
            ("nas.home.arpa", AddressClass::Private),
            ("example.com", AddressClass::Public),
            ("internal.example.com", AddressClass::Public),
            ("127.0.0.1", AddressClass::Loopback),
            ("[::1]", AddressClass::Loopback),
            ("168.63.129.16", AddressClass::Metadata),
        ] {
            assert_eq!(classify_host(&Host::parse(name).unwrap()), class, "{name}");
        }
    }

    #[test]
    fn a_host_is_this_machine_only_without_being_resolved() {
        for (host, addresses) in [
            ("localhost", &["127.0.0.1", "::1"][..]),
            ("127.0.0.1", &["127.0.0.1"]),
            ("127.9.9.9", &["127.9.9.9"]),
            ("[::1]", &["::1"]),
            ("[::ffff:127.0.0.1]", &["127.0.0.1"]),
            ("a.localhost", &[]),
            ("localhost.example.com", &[]),
            ("127.0.0.1.example.com", &[]),
            ("0.0.0.0", &[]),
            ("10.0.0.1", &[]),
            ("[::ffff:10.0.0.1]", &[]),
            ("[64:ff9b::7f00:1]", &[]),
            ("[::127.0.0.1]", &[]),
        ] {
            let expected: Vec<IpAddr> = addresses.iter().map(|text| text.parse().unwrap()).collect();
            let parsed = Host::parse(host).unwrap();
            assert_eq!(loopback_addresses(&parsed), expected, "{host}");
            assert_eq!(is_loopback_url(&format!("http://{host}:8080/v1")), !expected.is_empty(), "{host}");
            // No host is granted what this machine may do that is not refused as loopback elsewhere.
            assert!(expected.is_empty() || classify_host(&parsed) == AddressClass::Loopback, "{host}");
        }
    }

    #[test]
    fn an_embedded_loopback_address_is_not_this_machine() {
        for address in ["::127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"] {
            let address: IpAddr = address.parse().unwrap();
            assert!(
                classify_address(address) == AddressClass::Loopback && !address.is_loopback(),
                "{address}"
            );
        }
    }

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
            assert_eq!(classify_address(address.parse().unwrap()), class, "{address}");
        }
    }
}
