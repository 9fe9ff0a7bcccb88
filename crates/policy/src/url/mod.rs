//! URLs of fetches: one parse, and what is unusual about it.
//!
//! [`FetchTarget::parse`] parses a URL as browsers do (WHATWG) and notes what an approver should see.
//! [`address_class`] classifies an IP address, so that a fetch cannot be turned against private hosts (SSRF).
//! [`Policy::vet_chain`](crate::Policy::vet_chain) applies both to a chain of redirects and to every address that its
//! hosts resolve to.

mod confusable;
mod redirects;

pub use redirects::{FetchObjection, MAX_REDIRECTS, RedirectDecision, RedirectHop};
pub use toolgate_proto::address::{AddressClass, classify_address as address_class};

use serde::{Deserialize, Serialize};
use toolgate_proto::address::classify_host;
use url::{Host, Url};

/// How fetches are judged when no rule matches.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
#[non_exhaustive]
pub struct FetchSettings {
    /// Hosts that need no allow rule, written as in domain rules (`docs.rs`, `*.example.com`).
    #[serde(alias = "allowed_domains")]
    pub allowed_domains: Vec<String>,
    /// Hosts that are denied, written the same way.
    #[serde(alias = "blocked_domains")]
    pub blocked_domains: Vec<String>,
    /// No public host needs an allow rule over https.
    #[serde(alias = "auto_approve_https")]
    pub auto_approve_https: bool,
    /// Private hosts and IP addresses that are not denied as private, on every port or on one (`127.0.0.1:8080`).
    #[serde(alias = "allow_private")]
    pub allow_private: Vec<String>,
}

impl FetchSettings {
    /// Sets the hosts that are fetched without approval.
    pub fn with_allowed_domains(mut self, domains: Vec<String>) -> Self {
        self.allowed_domains = domains;
        self
    }

    /// Sets the hosts that are refused.
    pub fn with_blocked_domains(mut self, domains: Vec<String>) -> Self {
        self.blocked_domains = domains;
        self
    }

    /// Says whether every public host is fetched over HTTPS without approval.
    pub fn with_auto_approve_https(mut self, approved: bool) -> Self {
        self.auto_approve_https = approved;
        self
    }

    /// Sets the hosts that may have private addresses.
    pub fn with_allow_private(mut self, hosts: Vec<String>) -> Self {
        self.allow_private = hosts;
        self
    }
}

/// Documentation hosts as a default for [`FetchSettings::allowed_domains`]. Each has one publisher: on a host where
/// anyone can publish, a request could carry data to an attacker.
pub const DOCUMENTATION_HOSTS: &[&str] =
    &["docs.rs", "doc.rust-lang.org", "crates.io", "developer.mozilla.org", "docs.python.org"];

/// Hosts that developers read most, as another default. On some of them anyone can publish.
pub const COMMON_HOSTS: &[&str] =
    &["docs.rs", "crates.io", "github.com", "stackoverflow.com", "developer.mozilla.org"];

/// A URL that can be fetched, as far as its text shows.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchTarget {
    /// The parsed URL.
    pub url: Url,
    /// Its host, without a trailing dot.
    pub host: Host<String>,
    /// The port that would be connected to: the one of the URL, or the default of its scheme.
    pub port: u16,
    /// What an approver should see before it is fetched; any entry makes the fetch ask.
    pub oddities: Vec<String>,
    /// The host contains look-alike characters, so only a rule that spells it out allows it.
    pub confusable: bool,
}

/// A longer URL asks, because it may carry data out of the workspace.
const MAX_UNASKED_URL_BYTES: usize = 2048;

impl FetchTarget {
    /// Parses a URL. An error is the reason why it can never be fetched.
    ///
    /// ```
    /// use toolgate_policy::url::FetchTarget;
    ///
    /// let target = FetchTarget::parse("https://docs.rs@evil.example/").unwrap();
    /// assert_eq!(target.host_text(), "evil.example");
    /// assert_eq!(target.oddities, ["the URL contains a user name, which can be mistaken for the host"]);
    /// assert!(FetchTarget::parse("file:///etc/passwd").is_err());
    /// ```
    pub fn parse(text: &str) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|error| format!("the URL is not valid: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("scheme `{}` is not supported; use http or https", url.scheme()));
        }
        let host = match url.host().map(|host| host.to_owned()) {
            Some(Host::Domain(name)) => {
                let name = name.strip_suffix('.').unwrap_or(&name).to_owned();
                if name.is_empty() || name.split('.').any(str::is_empty) {
                    return Err("the host name has an empty label".to_owned());
                }
                Host::Domain(name)
            }
            Some(address) => address,
            None => return Err("the URL has no host".to_owned()),
        };
        let port = url.port_or_known_default().unwrap_or(0);
        let oddities = oddities(text, &url);
        let confusable = match &host {
            Host::Domain(name) => confusable::is_confusable_host(name),
            Host::Ipv4(_) | Host::Ipv6(_) => false,
        };
        Ok(Self { url, host, port, oddities, confusable })
    }

    /// The class of a host that is not public, as far as its name or literal address shows; `None` if it is public.
    pub fn private_class(&self) -> Option<AddressClass> {
        host_class(&self.host)
    }

    /// The host as rules and messages spell it.
    pub fn host_text(&self) -> String {
        self.host.to_string()
    }
}

/// The class of a host that is not public, without name resolution. A name without a dot counts as private.
pub(crate) fn host_class(host: &Host<String>) -> Option<AddressClass> {
    let class = classify_host(host);
    (class != AddressClass::Public).then_some(class)
}

/// What makes users and parsers read a URL differently.
fn oddities(text: &str, url: &Url) -> Vec<String> {
    let mut out = Vec::new();
    if !url.username().is_empty() || url.password().is_some() || authority(text).contains('@') {
        out.push("the URL contains a user name, which can be mistaken for the host".to_owned());
    }
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        out.push("the URL contains whitespace or control characters".to_owned());
    }
    if authority(text).contains('\\') || text.split(['?', '#']).next().is_some_and(|path| path.contains('\\'))
    {
        out.push("the URL contains a backslash, which parsers treat differently".to_owned());
    }
    if authority(text).contains('%') {
        out.push("the host is percent-encoded".to_owned());
    }
    let scheme_end = text.find(':').and_then(|at| text.get(at + 1..)).unwrap_or("");
    if !scheme_end.starts_with("//") || scheme_end.starts_with("///") {
        out.push("the URL does not have exactly two slashes after its scheme".to_owned());
    }
    if text.len() > MAX_UNASKED_URL_BYTES {
        out.push(format!("the URL is {} bytes long and may carry data out", text.len()));
    }
    if let Some(Host::Ipv4(address)) = url.host()
        && !authority(text).contains(&address.to_string())
    {
        out.push(format!("the host is an unusual spelling of {address}"));
    }
    out
}

/// The authority as written: the part between `//` and the next delimiter.
fn authority(text: &str) -> &str {
    let rest = text.find("//").and_then(|at| text.get(at + 2..)).unwrap_or("");
    rest.split(['/', '?', '#']).next().unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusual_urls_are_detected() {
        for unusual in [
            "https://user@docs.example.com/",
            "https://docs.example.com\\.evil.example/",
            "https://a.b%2ec.d/",
            "https://docs.example.com\t.evil.example/",
            "http:/docs.example.com/",
            "http://2130706433/",
            "http:///docs.example.com/",
        ] {
            assert!(FetchTarget::parse(unusual).is_ok_and(|target| !target.oddities.is_empty()), "{unusual}");
        }
        for plain in [
            "https://docs.example.com/a@b.html",
            "https://docs.example.com/?u=https://x/",
            "https://docs.example.com/a:b@c",
            "https://bücher.example/",
            "https://docs.example.com/~ann/(x)/'y'.html",
            "http://93.184.216.34/",
        ] {
            let target = FetchTarget::parse(plain).unwrap();
            assert_eq!(target.oddities, Vec::<String>::new(), "{plain}");
        }
        for never in
            ["file:///etc/passwd", "https://", "data:text/html,hi", "https://.example.com/", "nonsense"]
        {
            assert!(FetchTarget::parse(never).is_err(), "{never}");
        }
    }

    #[test]
    fn private_hosts_are_detected_by_name() {
        for (host, private) in [
            ("localhost", true),
            ("a.localhost", true),
            ("metadata.google.internal", true),
            ("printer.local", true),
            ("router", true),
            ("example.com", false),
            ("internal.example.com", false),
            ("127.0.0.1", true),
            ("93.184.216.34", false),
            ("[::1]", true),
        ] {
            assert_eq!(host_class(&Host::parse(host).unwrap()).is_some(), private, "{host}");
        }
    }
}
