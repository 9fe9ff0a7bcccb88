//! `WebFetch(domain:host)`: rules for hosts.
//!
//! [`HostPattern`] says which hosts a rule names; this module adds ports, and an index over many rules.

use super::syntax::{self, RuleSyntaxError};
use std::collections::HashMap;
use toolgate_proto::host_pattern::{Host, HostPattern, matches_labels};
use toolgate_proto::wildcard::WildcardPattern;

/// A host pattern, and the port if the rule names one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DomainPattern {
    pub(crate) hosts: HostPattern,
    pub(crate) port: DomainPorts,
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
    /// Parses the content of a `WebFetch(domain:…)` rule.
    pub(crate) fn parse(content: &str) -> Result<Self, RuleSyntaxError> {
        let bad = |message: String| RuleSyntaxError::new(message, intended_rule(content));
        let Some(text) = content.strip_prefix("domain:") else {
            return Err(bad("the content of a WebFetch rule begins with `domain:`".to_owned()));
        };
        Self::parse_host(text).map_err(bad)
    }

    /// Parses a host with or without a port, as lists of hosts in settings have them. The error says what is wrong.
    pub(crate) fn parse_host(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() || text.contains(['/', '@', '?', '#', ' ', '\\', '%']) {
            return Err("a host is expected here, not a URL".to_owned());
        }
        let (host, port) = split_port(text).ok_or("the port is not a number from 1 to 65535")?;
        let hosts = HostPattern::parse(host).map_err(|problem| problem.to_string())?;
        Ok(Self { hosts, port })
    }
}

/// What to write instead of a content that is not a domain pattern: the host that it names, or an example.
fn intended_rule(content: &str) -> String {
    let text = content.trim();
    match intended_host(text.strip_prefix("domain:").unwrap_or(text)) {
        Some(host) => {
            format!("did you mean `{}`?", syntax::write_rule("WebFetch", &format!("domain:{host}")))
        }
        None => "write `WebFetch(domain:example.com)`".to_owned(),
    }
}

/// The host that a text names which is not a host alone: that of an address, for example.
pub(crate) fn intended_host(text: &str) -> Option<&str> {
    let text = text.trim();
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest).trim_start_matches('/');
    let authority = rest.split(['/', '?', '#', ' ', '\\']).next().unwrap_or(rest);
    let host = authority.rsplit('@').next().unwrap_or(authority).trim_end_matches([')', ',', ';']);
    let is_host = split_port(host).is_some_and(|(name, _)| HostPattern::parse(name).is_ok());
    // One word without a dot is more likely a field or a mistake than a host.
    let is_likely = host.contains('.') || host.starts_with("localhost") || host.starts_with('[');
    (is_host && is_likely).then_some(host)
}

/// Splits a port from a host pattern.
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
    /// Adds a pattern to the index of its kind.
    pub(crate) fn add(&mut self, id: u32, pattern: DomainPattern) {
        self.any = true;
        let port = pattern.port;
        match pattern.hosts {
            HostPattern::Every => self.every.push((id, port)),
            HostPattern::Exactly(host) => self.exact.entry(host).or_default().push((id, port)),
            HostPattern::Below(name) => self.below.entry(name).or_default().push((id, port)),
            HostPattern::Labels(labels) => self.labels.push((id, port, labels)),
        }
    }

    /// Whether there are no domain rules.
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
        let labels = self.labels.iter().filter(|(_, _, labels)| matches_labels(labels, name));
        let labels = labels.map(|(id, ports, _)| (*id, *ports));
        let open = below.copied().chain(labels).chain(self.every.iter().copied());
        exact.chain(open.map(|(id, ports)| DomainHit { id, ports, named: false }))
    }
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
    fn a_refused_rule_is_answered_with_the_host_that_it_names() {
        for (rule, meant) in [
            ("*.evil.org", "*.evil.org"),
            ("evil.org:8443", "evil.org:8443"),
            ("https://evil.org/a?b", "evil.org"),
            ("domain:https://user@evil.org/a", "evil.org"),
            ("domain:evil.org/a", "evil.org"),
            ("//evil.org", "evil.org"),
            ("localhost:3000", "localhost:3000"),
            ("domain:", "example.com"),
            ("nonsense", "example.com"),
            ("domain:a.b:99999", "example.com"),
        ] {
            let fix = DomainPattern::parse(rule).unwrap_err().fix;
            assert!(fix.contains(&format!("`WebFetch(domain:{meant})`")), "{rule}: {fix}");
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
