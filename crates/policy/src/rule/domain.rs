//! `WebFetch(domain:host)`: which hosts may be fetched from.
//!
//! Hosts are compared label by label after one WHATWG parse, never as text with a suffix.

use super::grammar::RuleSyntaxError;
use std::collections::HashMap;
use toolgate_proto::wildcard::WildcardPattern;
use url::Host;

/// A host pattern, and the port if the rule names one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DomainPattern {
    pub(crate) hosts: DomainHosts,
    pub(crate) port: DomainPorts,
}

/// Which hosts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DomainHosts {
    /// Every host (`domain:*`).
    Every,
    /// This host.
    Exactly(Host<String>),
    /// Any host one or more labels below this one (`*.example.com`).
    Below(String),
    /// As many labels as the pattern has, each fitting its own.
    Labels(Vec<WildcardPattern>),
}

/// Which ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DomainPorts {
    /// None named: the usual ones.
    Usual,
    /// Exactly this one.
    Only(u16),
    /// `:*`.
    Every,
}

impl DomainPattern {
    pub(crate) fn parse(content: &str) -> Result<Self, RuleSyntaxError> {
        let bad = |message: &str| RuleSyntaxError::new(message, "write `WebFetch(domain:example.com)`");
        let Some(text) = content.strip_prefix("domain:") else {
            return Err(bad("the content of a WebFetch rule begins with `domain:`"));
        };
        let text = text.trim();
        if text.is_empty() || text.contains(['/', '@', '?', '#', ' ', '\\', '%']) {
            return Err(bad("a domain rule takes a host, not an address"));
        }
        let (host, port) = split_port(text).ok_or_else(|| bad("the port is no number from 1 to 65535"))?;
        let host = host.strip_suffix('.').unwrap_or(host);
        let hosts = if host == "*" {
            DomainHosts::Every
        } else if let Some(below) = host.strip_prefix("*.")
            && !below.contains('*')
        {
            match Host::parse(below).map_err(|_| bad("this is no host name"))? {
                Host::Domain(name) => DomainHosts::Below(name),
                Host::Ipv4(_) | Host::Ipv6(_) => return Err(bad("an address has no sub-domains")),
            }
        } else if host.contains('*') {
            let labels: Option<Vec<WildcardPattern>> = host.split('.').map(parse_label).collect();
            DomainHosts::Labels(labels.ok_or_else(|| bad("this is no host pattern"))?)
        } else {
            DomainHosts::Exactly(Host::parse(host).map_err(|_| bad("this is no host name"))?)
        };
        Ok(Self { hosts, port })
    }
}

fn parse_label(text: &str) -> Option<WildcardPattern> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '*');
    (!text.is_empty() && text.chars().all(plain)).then(|| WildcardPattern::new(&text.to_ascii_lowercase()))
}

fn split_port(text: &str) -> Option<(&str, DomainPorts)> {
    // An IPv6 address without brackets has more than one colon and no port.
    let at = match text.rfind(']') {
        Some(close) => text.get(close..)?.find(':').map(|at| close + at),
        None if text.matches(':').count() == 1 => text.find(':'),
        None => None,
    };
    let Some(at) = at else { return Some((text, DomainPorts::Usual)) };
    let (host, port) = (text.get(..at)?, text.get(at + 1..)?);
    if port == "*" {
        return Some((host, DomainPorts::Every));
    }
    let port = port.parse().ok().filter(|port| *port > 0)?;
    Some((host, DomainPorts::Only(port)))
}

/// Domain rules of one action.
#[derive(Debug, Clone, Default)]
pub(crate) struct DomainIndex {
    exact: HashMap<Host<String>, Vec<(u32, DomainPorts)>>,
    below: HashMap<String, Vec<(u32, DomainPorts)>>,
    labels: Vec<(u32, DomainPorts, Vec<WildcardPattern>)>,
    every: Vec<(u32, DomainPorts)>,
    any: bool,
}

/// A domain rule that fits a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DomainHit {
    pub(crate) id: u32,
    pub(crate) ports: DomainPorts,
    /// The rule spells this very host.
    pub(crate) named: bool,
}

impl DomainIndex {
    pub(crate) fn add(&mut self, id: u32, pattern: DomainPattern) {
        self.any = true;
        let port = pattern.port;
        match pattern.hosts {
            DomainHosts::Every => self.every.push((id, port)),
            DomainHosts::Exactly(host) => self.exact.entry(host).or_default().push((id, port)),
            DomainHosts::Below(name) => self.below.entry(name).or_default().push((id, port)),
            DomainHosts::Labels(labels) => self.labels.push((id, port, labels)),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.any
    }

    /// Every rule that fits the host, in no particular order.
    pub(crate) fn hits<'a>(&'a self, host: &'a Host<String>) -> impl Iterator<Item = DomainHit> + 'a {
        let exact = self.exact.get(host).into_iter().flatten();
        let exact = exact.map(|(id, ports)| DomainHit { id: *id, ports: *ports, named: true });
        let name = match host {
            Host::Domain(name) => name.as_str(),
            Host::Ipv4(_) | Host::Ipv6(_) => "",
        };
        let parents = name.match_indices('.').filter_map(|(at, _)| name.get(at + 1..));
        let below = parents.filter_map(|parent| self.below.get(parent)).flatten();
        let labels = self.labels.iter().filter(|(_, _, labels)| fits_labels(labels, name));
        let labels = labels.map(|(id, ports, _)| (*id, *ports));
        let open = below.copied().chain(labels).chain(self.every.iter().copied());
        exact.chain(open.map(|(id, ports)| DomainHit { id, ports, named: false }))
    }
}

fn fits_labels(labels: &[WildcardPattern], name: &str) -> bool {
    !name.is_empty()
        && name.split('.').count() == labels.len()
        && name.split('.').zip(labels).all(|(label, pattern)| !label.is_empty() && pattern.matches(label))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rule: &str, host: &str) -> bool {
        let mut index = DomainIndex::default();
        index.add(0, DomainPattern::parse(rule).unwrap());
        index.hits(&Host::parse(host).unwrap()).next().is_some()
    }

    #[test]
    fn hosts_are_compared_by_label() {
        for (rule, host, fits) in [
            ("domain:example.com", "example.com", true),
            ("domain:Example.COM.", "example.com", true),
            ("domain:example.com", "a.example.com", false),
            ("domain:*.example.com", "a.b.example.com", true),
            ("domain:*.example.com", "example.com", false),
            ("domain:*.example.com", "evilexample.com", false),
            ("domain:example.*", "example.org", true),
            ("domain:example.*", "example.evil.com", false),
            ("domain:xn--bcher-kva.example", "bücher.example", true),
            ("domain:127.0.0.1", "2130706433", true),
            ("domain:[::1]", "[0:0:0:0:0:0:0:1]", true),
            ("domain:localhost:3000", "localhost", true),
            ("domain:*", "anything.example", true),
        ] {
            assert_eq!(check(rule, host), fits, "{rule} / {host}");
        }
    }

    #[test]
    fn addresses_and_nonsense_are_refused() {
        for rule in
            ["domain:", "example.com", "domain:https://a.b", "domain:a.b/c", "domain:a.b:99999", "domain:a b"]
        {
            assert!(DomainPattern::parse(rule).is_err(), "{rule}");
        }
    }
}
