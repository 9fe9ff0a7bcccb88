//! HTTP hooks: the event is posted to a server on this machine.
//!
//! Only loopback addresses are accepted: an event contains file contents and commands, and a hook in settings must not
//! become a way to send them elsewhere.

use super::command::to_millis;
use super::output::parse_output;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;
use toolgate_gate::{HookAnswer, HookEvent, HookFailure};
use toolgate_net::{HookHttpError, HookHttpRequest, post_hook};
use toolgate_proto::address::loopback_addresses;
use toolgate_proto::wildcard::WildcardPattern;
use url::Url;

/// A hook that posts to a server.
#[derive(Debug, Clone)]
pub(super) struct HttpHook {
    /// The loopback addresses to try in order; `localhost` has two.
    addresses: Vec<SocketAddr>,
    /// The Host header.
    host: String,
    /// Path and query.
    target: String,
    /// Further headers, with variables replaced.
    headers: Vec<(String, String)>,
}

impl HttpHook {
    /// Parses a URL. It must be plain HTTP to a loopback address, and match an entry of each `allowed` list.
    pub(super) fn parse(url: &str, allowed: &[Vec<String>]) -> Result<Self, String> {
        let parsed = Url::parse(url).map_err(|error| format!("invalid URL `{url}`: {error}"))?;
        if parsed.scheme() != "http" {
            return Err(format!(
                "the URL `{url}` must start with `http://`; a hook server runs on this machine and needs no TLS"
            ));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err("the URL contains a password; put it into a header".to_owned());
        }
        if let Some(list) =
            allowed.iter().find(|list| !list.iter().any(|pattern| WildcardPattern::new(pattern).matches(url)))
        {
            return Err(format!("the URL `{url}` is not in `allowedHttpHookUrls` ({})", list.join(", ")));
        }
        let port = parsed.port_or_known_default().unwrap_or(80);
        let ips = parsed.host().map(|host| loopback_addresses(&host)).unwrap_or_default();
        if ips.is_empty() {
            return Err(format!("the URL `{url}` is not on this machine; use localhost, 127.0.0.1 or [::1]"));
        }
        let mut target = parsed.path().to_owned();
        if let Some(query) = parsed.query() {
            target.push('?');
            target.push_str(query);
        }
        let host = parsed.host_str().unwrap_or("localhost");
        Ok(Self {
            addresses: ips.into_iter().map(|ip| SocketAddr::new(ip, port)).collect(),
            host: format!("{host}:{port}"),
            target,
            headers: Vec::new(),
        })
    }

    /// Adds headers. A variable that is not in `allowed`, or not set, is replaced by nothing.
    pub(super) fn with_headers(
        mut self,
        headers: &BTreeMap<String, String>,
        allowed: &[String],
        env: &BTreeMap<String, String>,
    ) -> Self {
        let value_of = |name: &str| match allowed.iter().any(|allowed| allowed == name) {
            true => env.get(name).cloned().unwrap_or_default(),
            false => String::new(),
        };
        self.headers =
            headers.iter().map(|(name, value)| (name.clone(), interpolate(value, &value_of))).collect();
        self
    }

    /// Posts an event and parses the response. Any status other than success is a failure.
    pub(super) async fn post_event(
        &self,
        event: HookEvent,
        body: Vec<u8>,
        timeout: Duration,
    ) -> Result<HookAnswer, HookFailure> {
        let mut last = HookFailure::Unreachable("its URL has no address".to_owned());
        for address in &self.addresses {
            let post = HookHttpRequest {
                address: *address,
                host: self.host.clone(),
                target: self.target.clone(),
                headers: self.headers.clone(),
                body: body.clone(),
                timeout,
            };
            match post_hook(post).await {
                Ok(reply) if (200..300).contains(&reply.status) => return parse_output(event, &reply.body),
                Ok(reply) => {
                    return Err(HookFailure::Unreachable(format!(
                        "its server answered with status {}",
                        reply.status
                    )));
                }
                Err(HookHttpError::Unreachable(why)) => {
                    last = HookFailure::Unreachable(format!("its server is unreachable: {why}"));
                }
                Err(HookHttpError::TimedOut) => return Err(HookFailure::TimedOut(to_millis(timeout))),
                Err(HookHttpError::TooMuchOutput) => {
                    return Err(HookFailure::Unreadable("it is longer than 1 MiB".to_owned()));
                }
                Err(HookHttpError::BadRequest(why)) => {
                    return Err(HookFailure::Misconfigured(format!("the request cannot be made: {why}")));
                }
                Err(HookHttpError::NotLoopback(ip)) => {
                    return Err(HookFailure::Misconfigured(format!("{ip} is not on this machine")));
                }
            }
        }
        Err(last)
    }
}

/// Replaces `$NAME` and `${NAME}`; a `$` without a name stays.
fn interpolate(text: &str, value_of: &impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        out.push_str(before);
        let braced = after.strip_prefix('{').and_then(|inner| inner.split_once('}'));
        let (name, tail) = match braced {
            Some((name, tail)) => (name, tail),
            None => {
                let end =
                    after.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(after.len());
                after.split_at_checked(end).unwrap_or((after, ""))
            }
        };
        if name.is_empty() {
            out.push('$');
        } else {
            out.push_str(&value_of(name));
        }
        rest = tail;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_urls_are_accepted() {
        for (url, fine) in [
            ("http://localhost:8080/hook", true),
            ("http://127.0.0.1:8080/hook?a=b", true),
            ("http://[::1]:8080/", true),
            ("http://127.1.2.3/", true),
            ("http://[::ffff:127.0.0.1]/", true),
            ("http://[::ffff:10.0.0.1]/", false),
            ("http://a.localhost/", false),
            ("https://localhost/", false),
            ("http://localhost.evil.example/", false),
            ("http://192.168.1.1/", false),
            ("http://0.0.0.0/", false),
            ("http://user:pw@localhost/", false),
            ("file:///etc/passwd", false),
            ("localhost:8080", false),
        ] {
            assert_eq!(HttpHook::parse(url, &[]).is_ok(), fine, "{url}");
        }
        let allowed = [vec!["http://localhost:8080/*".to_owned()]];
        assert!(HttpHook::parse("http://localhost:8080/a", &allowed).is_ok());
        assert!(HttpHook::parse("http://localhost:8081/a", &allowed).is_err());
        assert!(HttpHook::parse("http://localhost:8080/a", &[vec![]]).is_err());
    }

    #[test]
    fn headers_contain_only_allowed_variables() {
        let env = BTreeMap::from([("KEY".to_owned(), "k".to_owned()), ("OTHER".to_owned(), "o".to_owned())]);
        let headers = BTreeMap::from([("x".to_owned(), "a $KEY ${KEY}b $OTHER $ $$KEY".to_owned())]);
        let server = HttpHook::parse("http://localhost/", &[]).unwrap();
        let server = server.with_headers(&headers, &["KEY".to_owned()], &env);
        assert_eq!(server.headers, [("x".to_owned(), "a k kb  $ $k".to_owned())]);
    }
}
