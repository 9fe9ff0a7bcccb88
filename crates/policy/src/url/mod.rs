//! Addresses on the network: one parse, and what it may mean.
//!
//! [`FetchTarget::parse`] reads an address as browsers do and keeps what a person should know of it.
//! [`address_class`] says whether an IP address is one that a fetch may reach; the fetch tool asks it of every address
//! that a name resolves to, and [`Policy::vet_chain`](crate::Policy::vet_chain) asks it of a whole chain of redirects.

mod confusable;
mod redirects;

pub use redirects::{FetchObjection, MAX_REDIRECTS, RedirectHop};
pub use toolgate_proto::address::{AddressClass, classify_address as address_class};

use serde::{Deserialize, Serialize};
use toolgate_proto::address::classify_host;
use url::{Host, Url};

/// How fetches are judged where no rule speaks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct FetchSettings {
    /// Hosts that may be fetched from without asking, in the form of domain rules (`docs.rs`, `*.example.com`).
    #[serde(alias = "allowed_domains")]
    pub allowed_domains: Vec<String>,
    /// Hosts that may not be fetched from.
    #[serde(alias = "blocked_domains")]
    pub blocked_domains: Vec<String>,
    /// Every public host may be fetched from over https.
    #[serde(alias = "auto_approve_https")]
    pub auto_approve_https: bool,
    /// Private hosts and addresses that may be reached.
    #[serde(alias = "allow_private")]
    pub allow_private: Vec<String>,
}

/// Documentation hosts that nobody else can publish under, as a default for `allowed_domains`.
/// Hosts where anyone can publish are left out on purpose: an approved one is a way out for data.
pub const DOCUMENTATION_HOSTS: &[&str] =
    &["docs.rs", "doc.rust-lang.org", "crates.io", "developer.mozilla.org", "docs.python.org"];

/// An address that can be fetched, as far as its text tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchTarget {
    /// The address, parsed.
    pub url: Url,
    /// Its host; a trailing dot is gone.
    pub host: Host<String>,
    /// The port that would be used.
    pub port: u16,
    /// What a person should look at before it is fetched.
    pub oddities: Vec<String>,
    /// The host reads like another one.
    pub confusable: bool,
}

/// Longest address that is fetched unasked: a longer one carries data.
const MAX_UNASKED_URL_BYTES: usize = 2048;

impl FetchTarget {
    /// Reads an address. An error says, in words, why it can never be fetched.
    pub fn parse(text: &str) -> Result<Self, String> {
        let url = Url::parse(text).map_err(|error| format!("the address cannot be read: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("`{}:` is not fetched, only http and https are", url.scheme()));
        }
        let host = match url.host().map(|host| host.to_owned()) {
            Some(Host::Domain(name)) => {
                let name = name.strip_suffix('.').unwrap_or(&name).to_owned();
                if name.is_empty() || name.split('.').any(str::is_empty) {
                    return Err("the host has an empty label".to_owned());
                }
                Host::Domain(name)
            }
            Some(address) => address,
            None => return Err("the address names no host".to_owned()),
        };
        let port = url.port_or_known_default().unwrap_or(0);
        let oddities = oddities(text, &url);
        let confusable = match &host {
            Host::Domain(name) => confusable::is_confusable_host(name),
            Host::Ipv4(_) | Host::Ipv6(_) => false,
        };
        Ok(Self { url, host, port, oddities, confusable })
    }

    /// Whether the host is not of the public network, as far as its name tells.
    pub fn private_class(&self) -> Option<AddressClass> {
        host_class(&self.host)
    }

    /// The host as rules spell it.
    pub fn host_text(&self) -> String {
        self.host.to_string()
    }
}

/// Why a host is not of the public network, by its name alone.
pub(crate) fn host_class(host: &Host<String>) -> Option<AddressClass> {
    let class = classify_host(host);
    (class != AddressClass::Public).then_some(class)
}

/// What makes an address one that people and parsers read differently.
fn oddities(text: &str, url: &Url) -> Vec<String> {
    let mut out = Vec::new();
    if !url.username().is_empty() || url.password().is_some() || authority(text).contains('@') {
        out.push("the address holds a user name, which can look like a host".to_owned());
    }
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        out.push("the address holds blanks or control characters".to_owned());
    }
    if authority(text).contains('\\') || text.split(['?', '#']).next().is_some_and(|path| path.contains('\\'))
    {
        out.push("the address holds a backslash, which parsers read differently".to_owned());
    }
    if authority(text).contains('%') {
        out.push("the host is written with escapes".to_owned());
    }
    let scheme_end = text.find(':').and_then(|at| text.get(at + 1..)).unwrap_or("");
    if !scheme_end.starts_with("//") || scheme_end.starts_with("///") {
        out.push("the address does not have two slashes after its scheme".to_owned());
    }
    if text.len() > MAX_UNASKED_URL_BYTES {
        out.push(format!("the address is {} characters long and may carry data", text.len()));
    }
    if let Some(Host::Ipv4(address)) = url.host()
        && !authority(text).contains(&address.to_string())
    {
        out.push(format!("the host is another way to write {address}"));
    }
    out
}

/// The part between `//` and the next delimiter, as written.
fn authority(text: &str) -> &str {
    let rest = text.find("//").and_then(|at| text.get(at + 2..)).unwrap_or("");
    rest.split(['/', '?', '#']).next().unwrap_or(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_addresses_are_seen() {
        for odd in [
            "https://user@docs.example.com/",
            "https://docs.example.com\\.evil.example/",
            "https://a.b%2ec.d/",
            "https://docs.example.com\t.evil.example/",
            "http:/docs.example.com/",
            "http://2130706433/",
            "http:///docs.example.com/",
        ] {
            assert!(FetchTarget::parse(odd).is_ok_and(|target| !target.oddities.is_empty()), "{odd}");
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
    fn private_hosts_are_known_by_name() {
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
