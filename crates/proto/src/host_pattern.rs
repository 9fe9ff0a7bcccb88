//! Host patterns: the one parser and matcher for domain rules, host lists in settings and the sandbox proxy.
//!
//! A host is parsed once, as the WHATWG URL standard does: letter case, punycode, a trailing dot and the many
//! spellings of an IPv4 address are gone before anything is compared.
//! Names are then compared label by label; a comparison of text suffixes would let `evilexample.com` pass for
//! `example.com`.
//!
//! ```
//! use toolgate_proto::host_pattern::{HostPattern, parse_host};
//!
//! let pattern = HostPattern::parse("*.example.com").unwrap();
//! assert!(pattern.matches(&parse_host("Docs.Example.com.").unwrap()));
//! assert!(!pattern.matches(&parse_host("example.com").unwrap()));
//! ```

use crate::wildcard::WildcardPattern;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
pub use url::Host;

/// Which hosts a rule or a setting names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostPattern {
    /// `*`: every host.
    Every,
    /// This name or address.
    Exactly(Host<String>),
    /// `*.example.com`: every name one or more labels below this one, but not the name itself.
    Below(String),
    /// `api.*.example.com`: names with as many labels as the pattern, each matching its own.
    Labels(Vec<WildcardPattern>),
}

/// Why a text is no host pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostPatternError {
    /// It cannot be parsed as a host.
    InvalidHost,
    /// A label with a wildcard has characters that no label has, or is empty.
    InvalidLabel,
    /// `*.` stands before an address.
    BelowAddress,
}

impl fmt::Display for HostPatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::InvalidHost => "this is not a host name or an address",
            Self::InvalidLabel => "this is not a host pattern",
            Self::BelowAddress => "an address has no subdomains",
        })
    }
}

impl std::error::Error for HostPatternError {}

impl HostPattern {
    /// Parses a host, or a pattern with `*`, without a port.
    pub fn parse(text: &str) -> Result<Self, HostPatternError> {
        if !text.contains('*') {
            return parse_host(text).map(Self::Exactly).ok_or(HostPatternError::InvalidHost);
        }
        let text = text.strip_suffix('.').unwrap_or(text);
        if text == "*" {
            return Ok(Self::Every);
        }
        match text.strip_prefix("*.").filter(|below| !below.contains('*')) {
            Some(below) => match parse_host(below).ok_or(HostPatternError::InvalidHost)? {
                Host::Domain(name) => Ok(Self::Below(name)),
                Host::Ipv4(_) | Host::Ipv6(_) => Err(HostPatternError::BelowAddress),
            },
            None => {
                let labels: Option<Vec<WildcardPattern>> = text.split('.').map(parse_label).collect();
                labels.map(Self::Labels).ok_or(HostPatternError::InvalidLabel)
            }
        }
    }

    /// Whether the pattern names a host. Lists that deny use this: `*` names addresses, too.
    pub fn matches(&self, host: &Host<String>) -> bool {
        match (self, host) {
            (Self::Every, _) => true,
            (Self::Exactly(own), host) => own == host,
            (Self::Below(parent), Host::Domain(name)) => is_below(name, parent),
            (Self::Labels(labels), Host::Domain(name)) => matches_labels(labels, name),
            (Self::Below(_) | Self::Labels(_), Host::Ipv4(_) | Host::Ipv6(_)) => false,
        }
    }

    /// Whether the pattern grants access to a host. Lists that allow use this: an address has to be spelled out, because
    /// `*` is written with names in mind, and a name can be checked against other lists where an address cannot.
    pub fn grants(&self, host: &Host<String>) -> bool {
        match (self, host) {
            (Self::Every, Host::Ipv4(_) | Host::Ipv6(_)) => false,
            (Self::Every | Self::Exactly(_) | Self::Below(_) | Self::Labels(_), _) => self.matches(host),
        }
    }
}

/// Parses a host: a name, an IPv4 address in any spelling, or an IPv6 address with or without brackets.
pub fn parse_host(text: &str) -> Option<Host<String>> {
    if let Ok(address) = text.parse::<Ipv6Addr>() {
        return Some(Host::Ipv6(address));
    }
    // A URL would end at the first four of these, and decode the last.
    if text.contains(['/', '?', '#', '@', '\\', '%']) {
        return None;
    }
    let is_host_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    match Host::parse(text.strip_suffix('.').unwrap_or(text)).ok()? {
        Host::Domain(name) if name.split('.').any(str::is_empty) || !name.chars().all(is_host_char) => None,
        host => Some(host),
    }
}

/// The address that a host is, if it is not a name.
pub fn host_address(host: &Host<String>) -> Option<IpAddr> {
    match host {
        Host::Domain(_) => None,
        Host::Ipv4(address) => Some(IpAddr::V4(*address)),
        Host::Ipv6(address) => Some(IpAddr::V6(*address)),
    }
}

/// Whether a name has `parent` behind one or more labels of its own.
fn is_below(name: &str, parent: &str) -> bool {
    name.strip_suffix(parent).is_some_and(|labels| labels.len() > 1 && labels.ends_with('.'))
}

/// Whether a name has as many labels as there are patterns, and each matches.
pub fn matches_labels(labels: &[WildcardPattern], name: &str) -> bool {
    !name.is_empty()
        && name.split('.').count() == labels.len()
        && name.split('.').zip(labels).all(|(label, pattern)| !label.is_empty() && pattern.matches(label))
}

/// A label of a pattern, with or without `*`.
fn parse_label(text: &str) -> Option<WildcardPattern> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '*');
    (!text.is_empty() && text.chars().all(is_plain)).then(|| WildcardPattern::new(&text.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_compared_label_by_label() {
        for (pattern, host, matches) in [
            ("example.com", "example.com", true),
            ("Example.COM.", "example.com", true),
            ("example.com", "a.example.com", false),
            ("*.example.com", "a.b.example.com", true),
            ("*.example.com", "example.com", false),
            ("*.example.com", "evilexample.com", false),
            ("*.EXAMPLE.com", "a.example.com", true),
            ("example.*", "example.org", true),
            ("example.*", "example.evil.com", false),
            ("api.*.example.com", "api.eu.example.com", true),
            ("xn--bcher-kva.example", "bücher.example", true),
            ("127.0.0.1", "2130706433", true),
            ("127.0.0.1", "0x7f.1", true),
            ("::1", "[0:0:0:0:0:0:0:1]", true),
            ("[::1]", "::1", true),
            ("*", "anything.example", true),
            ("*", "127.0.0.1", true),
            ("10.*", "10.0.0.1", false),
        ] {
            let (pattern, host) = (HostPattern::parse(pattern).unwrap(), parse_host(host).unwrap());
            assert_eq!(pattern.matches(&host), matches, "{pattern:?} / {host}");
        }
    }

    #[test]
    fn an_address_is_granted_only_where_it_is_spelled_out() {
        let address = parse_host("93.184.216.34").unwrap();
        assert!(!HostPattern::Every.grants(&address) && HostPattern::Every.matches(&address));
        assert!(HostPattern::parse("93.184.216.34").unwrap().grants(&address));
        assert!(HostPattern::Every.grants(&parse_host("example.com").unwrap()));
    }

    #[test]
    fn what_is_not_a_host_is_rejected() {
        for (text, error) in [
            ("", HostPatternError::InvalidHost),
            ("https://a.b", HostPatternError::InvalidHost),
            ("a.b:80", HostPatternError::InvalidHost),
            ("user@a.b", HostPatternError::InvalidHost),
            ("a b", HostPatternError::InvalidHost),
            ("a..b", HostPatternError::InvalidHost),
            ("a.b..", HostPatternError::InvalidHost),
            ("ex%61mple.com", HostPatternError::InvalidHost),
            ("*.10.0.0.1", HostPatternError::BelowAddress),
            ("a.*.b/c", HostPatternError::InvalidLabel),
            ("*..b.*", HostPatternError::InvalidLabel),
            ("a.b)", HostPatternError::InvalidHost),
            ("a.b,c.d", HostPatternError::InvalidHost),
            ("*.a.b)", HostPatternError::InvalidHost),
        ] {
            assert_eq!(HostPattern::parse(text), Err(error), "{text}");
        }
    }

    proptest::proptest! {
        /// Whatever is below a name ends in the name, and has more labels.
        #[test]
        fn a_subdomain_has_more_labels(name in "[a-z]{1,3}(\\.[a-z]{1,3}){0,3}", parent in "[a-z]{1,3}(\\.[a-z]{1,3}){0,2}") {
            let (name, parent) = (name.as_str(), parent.as_str());
            let (own, above): (Vec<&str>, Vec<&str>) = (name.split('.').collect(), parent.split('.').collect());
            let expected = own.len() > above.len() && own.ends_with(&above);
            proptest::prop_assert_eq!(is_below(name, parent), expected);
        }
    }
}
