//! The proxies of the environment: `https_proxy`, `http_proxy`, `all_proxy` and `no_proxy`, in lower or upper case.

use percent_encoding::percent_decode_str;
use std::collections::BTreeMap;
use std::net::IpAddr;
use toolgate_proto::host_pattern::{Host, HostPattern, host_address, parse_host};
use url::Url;

/// Which proxy a request goes through.
#[derive(Debug, Clone, Default)]
pub struct ProxyTable {
    /// For http.
    http: Option<WebProxy>,
    /// For https.
    https: Option<WebProxy>,
    /// Hosts that are reached without a proxy.
    direct: Vec<HostPattern>,
}

/// A proxy that tunnels (`CONNECT`).
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WebProxy {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The value of `Proxy-Authorization`.
    pub authorization: Option<String>,
}

/// Without the credentials.
impl std::fmt::Debug for WebProxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WebProxy({}:{})", self.host, self.port)
    }
}

impl ProxyTable {
    /// Reads the proxies from an environment. An error names a variable whose proxy cannot be used: to bypass it would
    /// defeat its purpose.
    pub fn from_environment(environment: &BTreeMap<String, String>) -> Result<Self, String> {
        let variable = |name: &str| {
            let value = environment.get(name).or_else(|| environment.get(&name.to_ascii_uppercase()));
            value.map(|value| value.trim()).filter(|value| !value.is_empty())
        };
        let proxy = |name: &str| match variable(name).or_else(|| variable("all_proxy")) {
            Some(value) => parse_proxy(value).map(Some).map_err(|problem| format!("{name}: {problem}")),
            None => Ok(None),
        };
        let mut direct = Vec::new();
        for entry in variable("no_proxy").unwrap_or_default().split(',').map(str::trim) {
            let name = entry.strip_prefix('.').unwrap_or(entry);
            // A bare name means the host and everything below it.
            direct.extend(HostPattern::parse(name).ok());
            direct.extend(HostPattern::parse(&format!("*.{name}")).ok().filter(|_| !name.is_empty()));
        }
        Ok(Self { http: proxy("http_proxy")?, https: proxy("https_proxy")?, direct })
    }

    /// The proxy for a request; `None` goes direct. Loopback is never reached through a proxy.
    pub fn find(&self, scheme: &str, host: &Host<String>, addresses: &[IpAddr]) -> Option<&WebProxy> {
        let is_local = !addresses.is_empty() && addresses.iter().all(IpAddr::is_loopback);
        if is_local || self.direct.iter().any(|pattern| pattern.matches(host)) {
            return None;
        }
        if scheme == "https" { self.https.as_ref() } else { self.http.as_ref() }
    }
}

/// Parses the value of a variable, with or without a scheme.
fn parse_proxy(text: &str) -> Result<WebProxy, String> {
    let text = if text.contains("://") { text.to_owned() } else { format!("http://{text}") };
    // The text may contain a password, so it does not appear in messages.
    let url = Url::parse(&text).map_err(|error| format!("not a valid proxy URL: {error}"))?;
    if url.scheme() != "http" {
        return Err(format!("proxies with the scheme `{}` are not supported; use http", url.scheme()));
    }
    let host = url.host_str().and_then(|host| parse_host(host.trim_matches(['[', ']'])));
    let host = host.ok_or_else(|| "the proxy URL has no host".to_owned())?;
    let authorization = (!url.username().is_empty()).then(|| {
        use base64::Engine;
        let decode = |text| percent_decode_str(text).decode_utf8_lossy();
        let pair = format!("{}:{}", decode(url.username()), decode(url.password().unwrap_or_default()));
        format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair))
    });
    let host = host_address(&host).map_or_else(|| host.to_string(), |address| address.to_string());
    Ok(WebProxy { host, port: url.port_or_known_default().unwrap_or(80), authorization })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(pairs: &[(&str, &str)]) -> Result<ProxyTable, String> {
        let environment =
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        ProxyTable::from_environment(&environment)
    }

    #[test]
    fn proxies_are_chosen_by_scheme_and_exception() {
        let table = table(&[
            ("HTTPS_PROXY", "http://user:p%40ss@proxy.example:3128"),
            ("http_proxy", "10.0.0.1:8080"),
            ("no_proxy", ".corp.example, localhost"),
        ])
        .unwrap();
        let find = |scheme, host: &str| table.find(scheme, &parse_host(host).unwrap(), &[]).cloned();
        let secure = find("https", "docs.rs").unwrap();
        assert_eq!((secure.host.as_str(), secure.port), ("proxy.example", 3128));
        assert_eq!(secure.authorization.as_deref(), Some("Basic dXNlcjpwQHNz"));
        assert_eq!(find("http", "docs.rs").unwrap().host, "10.0.0.1");
        assert_eq!(find("https", "git.corp.example"), None);
        assert_eq!(find("https", "corp.example"), None);
        assert!(find("https", "evilcorp.example").is_some());
        let loopback = ["127.0.0.1".parse().unwrap()];
        assert_eq!(table.find("https", &parse_host("a.example").unwrap(), &loopback), None);
        assert!(!format!("{table:?}").contains("dXNlcjpwQHNz"));
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_an_error_without_its_password() {
        for bad in ["socks5://user:secret@proxy:1", "https://user:secret@proxy:1", "http://us er:secret@"] {
            let problem = table(&[("https_proxy", bad)]).unwrap_err();
            assert!(!problem.contains("secret"), "{problem}");
        }
    }
}
