//! An HTTP proxy on loopback through which a sandboxed command reaches allowed hosts, and no others.
//!
//! A command that may connect only to the proxy's port has no other network access, and no name resolution of its own.
//! The proxy checks the requested host, resolves it itself, and refuses loopback and private addresses unless they were
//! allowed as addresses: a public name must not resolve to the local network (SSRF, DNS rebinding).
//! Where the environment names a proxy of its own, the connection to a vetted address goes through that.
//! It does not inspect what is sent inside a `CONNECT` tunnel.

use crate::upstream_proxy::{UpstreamChoice, UpstreamQuery};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use toolgate_proto::address::{AddressClass, classify_address, classify_host, may_connect};
use toolgate_proto::host_pattern::{Host, HostPattern, host_address, parse_host};

/// The most bytes of a request line and its headers.
const MAX_HEAD_BYTES: u64 = 32 * 1024;
/// The most connections at one time; further ones are closed at once.
const MAX_CONNECTIONS: usize = 128;
/// The most refused hosts that are kept.
const MAX_REFUSED_HOSTS: usize = 100;
/// How long a connection to a server may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// How long a client may take between two parts of its headers.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);

/// A running proxy. Dropping it ends it.
#[derive(Debug)]
pub struct SandboxProxy {
    /// Where it listens.
    address: SocketAddr,
    /// Shared with the threads of the proxy.
    state: Arc<ProxyState>,
}

/// What the rules decide about a requested host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostDecision {
    /// It is allowed, listed or not.
    Allow {
        /// The user named it as a host that is not public, so it may resolve to a private address.
        is_named_private: bool,
    },
    /// It is denied even if it is listed; the reason for the user.
    Deny(String),
    /// No rule matches: the list of hosts decides.
    NoMatch,
}

/// A host that a command requested and the proxy refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedHost {
    /// Its name or address.
    pub host: String,
    /// The rule or setting that denies it; `None` if nothing allows it.
    pub denied: Option<String>,
}

impl RefusedHost {
    /// The reason for the user, and how to allow the host. `file` is the settings file to edit.
    pub fn message(&self, file: Option<&str>) -> String {
        let host = &self.host;
        let place = file.map(|file| format!(" in {file}")).unwrap_or_default();
        match &self.denied {
            Some(reason) => format!("connecting to `{host}` is denied: {reason}"),
            None => format!(
                "commands may not connect to `{host}`; to allow it: add it to \
                 `sandbox.network.allowedDomains`{place}, or add an allow rule `WebFetch(domain:{host})`"
            ),
        }
    }
}

/// Which hosts a proxy allows, both in the form of [`HostPattern`]. An allowed text that is not a host pattern allows nothing;
/// a denied one denies every host, because what it was meant to deny is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProxyHosts {
    /// Allowed hosts.
    pub allowed: Vec<String>,
    /// Denied hosts; they take precedence.
    pub denied: Vec<String>,
}

/// The rules about hosts and ports.
type HostDecisionFn = Box<dyn Fn(&str, u16) -> HostDecision + Send + Sync>;

/// What the threads of a proxy share.
struct ProxyState {
    /// Allowed hosts.
    hosts: Vec<HostPattern>,
    /// Denied hosts; they take precedence.
    denied: Vec<HostPattern>,
    /// Called for every requested host.
    rules: HostDecisionFn,
    /// Called for every connection that is allowed.
    upstream: UpstreamChoice,
    /// The proxy was dropped.
    ended: AtomicBool,
    /// Open connections.
    connections: AtomicUsize,
    /// Refused hosts in order, each once.
    refused: Mutex<Vec<RefusedHost>>,
}

impl std::fmt::Debug for ProxyState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProxyState").field("hosts", &self.hosts).finish_non_exhaustive()
    }
}

impl ProxyState {
    /// Whether the user named an allowed host that is not public; the refusal if it is not allowed.
    fn check_host(&self, host: &Host<String>, port: u16) -> Result<bool, RefusedHost> {
        let refused = |denied| Err(RefusedHost { host: host_text(host), denied });
        if self.denied.iter().any(|pattern| pattern.matches(host)) {
            return refused(Some("it is in `sandbox.network.deniedDomains`".to_owned()));
        }
        match (self.rules)(&host_text(host), port) {
            HostDecision::Deny(reason) => refused(Some(reason)),
            HostDecision::Allow { is_named_private } => Ok(is_named_private),
            HostDecision::NoMatch if self.hosts.iter().any(|pattern| pattern.grants(host)) => {
                Ok(classify_host(host) != AddressClass::Public
                    && self.hosts.contains(&HostPattern::Exactly(host.clone())))
            }
            HostDecision::NoMatch => refused(None),
        }
    }
}

impl SandboxProxy {
    /// Starts a proxy. `rules` decide first, then `hosts`; `upstream` says which proxy of the environment an allowed
    /// connection goes through.
    pub fn start(
        hosts: &ProxyHosts,
        rules: impl Fn(&str, u16) -> HostDecision + Send + Sync + 'static,
        upstream: UpstreamChoice,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let state = Arc::new(ProxyState {
            hosts: parse_patterns(&hosts.allowed),
            denied: parse_denied_patterns(&hosts.denied),
            rules: Box::new(rules),
            upstream,
            ended: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            refused: Mutex::default(),
        });
        let shared = Arc::clone(&state);
        std::thread::Builder::new()
            .name("toolgate-proxy".to_owned())
            .stack_size(128 * 1024)
            .spawn(move || accept(&listener, &shared))?;
        Ok(Self { address, state })
    }

    /// The port on loopback.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The hosts that were refused so far, at most 100.
    pub fn refused(&self) -> Vec<RefusedHost> {
        self.state.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The value for `http_proxy` and similar environment variables.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for SandboxProxy {
    fn drop(&mut self) {
        self.state.ended.store(true, Ordering::SeqCst);
        // Wakes the listener, which then sees that the proxy has ended.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
    }
}

/// Accepts connections until the proxy is dropped, and serves each on its own thread.
fn accept(listener: &TcpListener, state: &Arc<ProxyState>) {
    for client in listener.incoming() {
        if state.ended.load(Ordering::SeqCst) {
            return;
        }
        let Ok(client) = client else { continue };
        if state.connections.fetch_add(1, Ordering::SeqCst) >= MAX_CONNECTIONS {
            state.connections.fetch_sub(1, Ordering::SeqCst);
            continue;
        }
        let shared = Arc::clone(state);
        let serving = std::thread::Builder::new().stack_size(256 * 1024).spawn(move || {
            // An error means that the client or the server closed the connection.
            let _ = serve(&client, &shared);
            shared.connections.fetch_sub(1, Ordering::SeqCst);
        });
        if serving.is_err() {
            state.connections.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// A parsed request.
#[derive(Debug, PartialEq, Eq)]
struct ProxyRequest {
    /// A name or an address.
    host: Host<String>,
    /// From the request; 80 if an `http://` address has none.
    port: u16,
    /// The request line and headers for the server; empty for a `CONNECT` tunnel.
    head: String,
}

/// Serves one connection: reads the request, checks the host, connects and relays.
fn serve(client: &TcpStream, state: &ProxyState) -> io::Result<()> {
    client.set_read_timeout(Some(HEAD_TIMEOUT))?;
    let mut reader = BufReader::new(client.take(MAX_HEAD_BYTES));
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        let line = line.trim_end_matches(['\r', '\n']).to_owned();
        if line.is_empty() {
            break;
        }
        lines.push(line);
    }
    let body_start = reader.buffer().to_vec();
    let Some(request) = parse_request(&lines) else {
        return send_response(
            client,
            "400 Bad Request",
            "toolgate: the proxy accepts CONNECT and absolute http:// requests only",
        );
    };
    let is_named = match state.check_host(&request.host, request.port) {
        Ok(is_named) => is_named,
        Err(refused) => {
            let message = format!("toolgate: {}", refused.message(None));
            let mut known = state.refused.lock().unwrap_or_else(PoisonError::into_inner);
            if !known.contains(&refused) && known.len() < MAX_REFUSED_HOSTS {
                known.push(refused);
            }
            drop(known);
            return send_response(client, "403 Forbidden", &message);
        }
    };
    let server = match connect(&request, is_named, &state.upstream) {
        Ok(server) => server,
        Err(error) => {
            return send_response(
                client,
                "502 Bad Gateway",
                &format!("toolgate: {}: {error}", host_text(&request.host)),
            );
        }
    };
    client.set_read_timeout(None)?;
    if request.head.is_empty() {
        (&mut &*client).write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
    } else {
        (&mut &server).write_all(request.head.as_bytes())?;
    }
    (&mut &server).write_all(&body_start)?;
    relay(client, &server)
}

/// Parses a `CONNECT` request, or one with an absolute `http://` address; `None` for anything else.
fn parse_request(lines: &[String]) -> Option<ProxyRequest> {
    let (first, headers) = lines.split_first()?;
    let mut parts = first.split(' ');
    let (method, target, version) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || !version.starts_with("HTTP/1.") {
        return None;
    }
    if method == "CONNECT" {
        let (host, port) = parse_authority(target, None)?;
        return Some(ProxyRequest { host, port, head: String::new() });
    }
    let rest = target.strip_prefix("http://")?;
    let (server, path) = match rest.split_once('/') {
        Some((server, path)) => (server, format!("/{path}")),
        None => (rest, "/".to_owned()),
    };
    let (host, port) = parse_authority(server, Some(80))?;
    let mut head = format!("{method} {path} {version}\r\nHost: {server}\r\nConnection: close\r\n");
    for header in headers {
        let name = header.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
        // The server gets the host that was checked, not the one of the client's header.
        if !matches!(name.as_str(), "host" | "connection" | "keep-alive") && !name.starts_with("proxy-") {
            head.push_str(header);
            head.push_str("\r\n");
        }
    }
    head.push_str("\r\n");
    Some(ProxyRequest { host, port, head })
}

/// Parses `host:port`; the host is a name or an address without user information.
fn parse_authority(text: &str, default: Option<u16>) -> Option<(Host<String>, u16)> {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']')?;
            (host, after.strip_prefix(':'))
        }
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = match port {
        Some(port) => port.parse().ok()?,
        None => default?,
    };
    let plain = host.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':'));
    let parsed = parse_host(host).filter(|_| plain)?;
    // `127.1` and `2130706433` are written to get past a list that compares text, and by no ordinary client.
    let spelled_oddly = matches!(&parsed, Host::Ipv4(ip) if ip.to_string() != host.trim_end_matches('.'));
    (!spelled_oddly).then_some((parsed, port))
}

fn parse_patterns(texts: &[String]) -> Vec<HostPattern> {
    texts.iter().filter_map(|text| HostPattern::parse(text).ok()).collect()
}

/// The same for denied hosts, where a text that is not a host pattern must not be ignored: every host is denied instead.
fn parse_denied_patterns(texts: &[String]) -> Vec<HostPattern> {
    let patterns = parse_patterns(texts);
    if patterns.len() == texts.len() { patterns } else { HostPattern::parse("*").into_iter().collect() }
}

/// A host as name resolution takes it: an IPv6 address without brackets.
fn host_text(host: &Host<String>) -> String {
    host_address(host).map_or_else(|| host.to_string(), |ip| ip.to_string())
}

/// Resolves the host once and connects to the first of its addresses that answers. Every address must be allowed, as for
/// the fetch tools: a name with one private address among public ones is set up for DNS rebinding.
fn connect(request: &ProxyRequest, is_named: bool, upstream: &UpstreamChoice) -> io::Result<TcpStream> {
    // One lookup: the address that was checked is the address that is connected to (no DNS rebinding).
    let found: Vec<SocketAddr> =
        (host_text(&request.host).as_str(), request.port).to_socket_addrs()?.collect();
    if let Some(refused) = found.iter().find(|found| !may_connect(&request.host, is_named, found.ip())) {
        let class = classify_address(refused.ip());
        let message = format!("the name resolves to {class}, which commands may not connect to");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, message));
    }
    let addresses: Vec<IpAddr> = found.iter().map(SocketAddr::ip).collect();
    let scheme = if request.head.is_empty() { "https" } else { "http" };
    let query = UpstreamQuery { scheme, host: &request.host, addresses: &addresses };
    let proxy = upstream(&query).map_err(io::Error::other)?;
    let mut last = io::Error::new(io::ErrorKind::NotFound, "no address");
    for address in found {
        let connected = match &proxy {
            Some(proxy) => proxy.tunnel(address, CONNECT_TIMEOUT),
            None => TcpStream::connect_timeout(&address, CONNECT_TIMEOUT),
        };
        match connected {
            Ok(server) => return Ok(server),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// Copies bytes both ways until one side closes.
fn relay(client: &TcpStream, server: &TcpStream) -> io::Result<()> {
    let (mut from_client, mut to_server) = (client.try_clone()?, server.try_clone()?);
    let up = std::thread::Builder::new().stack_size(64 * 1024).spawn(move || {
        let _ = io::copy(&mut from_client, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Write);
    })?;
    let (mut from_server, mut to_client) = (server, client);
    let _ = io::copy(&mut from_server, &mut to_client);
    let _ = client.shutdown(Shutdown::Both);
    let _ = server.shutdown(Shutdown::Both);
    let _ = up.join();
    Ok(())
}

/// Sends a short text response, which programs show or log. The header tells it apart from one of a server.
fn send_response(mut client: &TcpStream, status: &str, message: &str) -> io::Result<()> {
    let length = message.len() + 1;
    let line: String = message.chars().map(|c| if c.is_ascii_graphic() { c } else { ' ' }).collect();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\n\
         Toolgate-Refusal: {line}\r\nConnection: close\r\n\r\n"
    );
    client.write_all(head.as_bytes())?;
    client.write_all(format!("{message}\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denied_host_that_cannot_be_parsed_denies_every_host() {
        let state = state(&["example.com", "127.0.0.1"], &["evil.com:443"]);
        for name in ["example.com", "127.0.0.1", "other.example"] {
            assert!(state.denied.iter().any(|pattern| pattern.matches(&host(name))), "{name}");
        }
    }

    fn host(text: &str) -> Host<String> {
        parse_host(text).unwrap()
    }

    fn state(hosts: &[&str], denied: &[&str]) -> ProxyState {
        let owned = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        ProxyState {
            hosts: parse_patterns(&owned(hosts)),
            denied: parse_denied_patterns(&owned(denied)),
            rules: Box::new(|_, _| HostDecision::NoMatch),
            upstream: Box::new(|_| Ok(None)),
            ended: AtomicBool::new(false),
            connections: AtomicUsize::new(0),
            refused: Mutex::default(),
        }
    }

    #[test]
    fn hosts_are_compared_by_whole_names() {
        let lists = state(&["example.com", "*.crates.io", "127.0.0.1", "::1"], &["evil.*", "bad.crates.io"]);
        for (text, named) in [
            ("example.com", Some(false)),
            ("EXAMPLE.com.", Some(false)),
            ("evil-example.com", None),
            ("a.example.com", None),
            ("static.crates.io", Some(false)),
            ("bad.crates.io", None),
            ("crates.io", None),
            ("127.0.0.1", Some(true)),
            ("127.0.0.2", None),
            ("::1", Some(true)),
        ] {
            assert_eq!(lists.check_host(&host(text), 443).ok(), named, "{text}");
        }
        // `*` grants names, and denies addresses as well.
        assert_eq!(state(&["*"], &["evil.*"]).check_host(&host("evil.example"), 443).ok(), None);
        assert_eq!(state(&["*"], &[]).check_host(&host("93.184.216.34"), 443).ok(), None);
        assert_eq!(state(&["93.184.216.34"], &["*"]).check_host(&host("93.184.216.34"), 443).ok(), None);
    }

    #[test]
    fn a_request_names_one_host() {
        let read =
            |lines: &[&str]| parse_request(&lines.iter().map(|line| (*line).to_owned()).collect::<Vec<_>>());
        let tunnel = read(&["CONNECT example.com:443 HTTP/1.1", "Host: other"]).unwrap();
        assert_eq!((tunnel.host, tunnel.port, tunnel.head.as_str()), (host("example.com"), 443, ""));
        let plain = read(&["GET http://Example.com/a?b HTTP/1.1", "Host: other", "Accept: x"]).unwrap();
        assert_eq!(plain.host, host("example.com"));
        assert_eq!(
            plain.head,
            "GET /a?b HTTP/1.1\r\nHost: Example.com\r\nConnection: close\r\nAccept: x\r\n\r\n"
        );
        for bad in [
            "CONNECT example.com HTTP/1.1",
            "CONNECT user@example.com:1 HTTP/1.1",
            "CONNECT a:b:1 HTTP/1.1",
            "CONNECT a..b:1 HTTP/1.1",
            "CONNECT 127.1:1 HTTP/1.1",
            "CONNECT 2130706433:1 HTTP/1.1",
            "CONNECT 0x7f.0.0.1:1 HTTP/1.1",
            "GET /path HTTP/1.1",
            "GET http://a@b/ HTTP/1.1",
            "GET  http://a/ HTTP/1.1",
            "nonsense",
        ] {
            assert_eq!(read(&[bad]), None, "{bad}");
        }
    }

    #[test]
    fn a_name_does_not_lead_back_inside() {
        for ip in [
            "127.0.0.1",
            "10.1.2.3",
            "169.254.169.254",
            "168.63.129.16",
            "192.0.0.192",
            "240.0.0.1",
            "::1",
            "fd00::1",
            "::ffff:127.0.0.1",
            "64:ff9b::a00:1",
            "64:ff9b::5db8:d822",
            "2002:5db8:d822::",
            "2002:7f00:1::",
            "2001:0:a00:1::1",
            "100.64.0.1",
            "0.0.0.0",
        ] {
            let ip: IpAddr = ip.parse().unwrap();
            let itself = host(&ip.to_string());
            assert!(!may_connect(&host("a.example"), false, ip) && !may_connect(&itself, false, ip), "{ip}");
            assert!(may_connect(&itself, true, ip), "{ip}");
        }
        for ip in ["93.184.216.34", "2606:2800::1", "100.128.0.1"] {
            assert!(may_connect(&host("a.example"), false, ip.parse().unwrap()), "{ip}");
        }
        // `localhost` means loopback only, and a name that the user listed is no metadata service.
        assert!(!may_connect(&host("localhost"), true, "10.0.0.1".parse().unwrap()));
        assert!(may_connect(&host("nas.lan"), true, "10.0.0.1".parse().unwrap()));
        assert!(!may_connect(&host("nas.lan"), true, "169.254.169.254".parse().unwrap()));
        let request = ProxyRequest { host: host("localhost"), port: 1, head: String::new() };
        let direct: UpstreamChoice = Box::new(|_| Ok(None));
        assert_eq!(connect(&request, false, &direct).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }

    proptest::proptest! {
        #[test]
        fn a_name_reaches_what_the_table_calls_public(
            four in proptest::prelude::any::<u32>(),
            six in proptest::prelude::any::<u128>(),
            prefix in proptest::sample::select(&[0u128, 0xffff << 32, 0x64_ff9b << 96, 0x2002 << 112, 0x2001 << 112][..]),
        ) {
            let embedded = prefix | u128::from(four) << if prefix >> 112 == 0x2002 { 80 } else { 0 };
            for ip in [IpAddr::V4(four.into()), IpAddr::V6(six.into()), IpAddr::V6(embedded.into())] {
                let public = classify_address(ip) == AddressClass::Public;
                proptest::prop_assert_eq!(may_connect(&host("a.example"), false, ip), public);
                if !public {
                    proptest::prop_assert!(!may_connect(&host("localhost"), true, ip) || ip.is_loopback());
                }
            }
        }
    }

    #[test]
    fn granted_hosts_are_reached_and_others_told_why_not() {
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = server.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for client in server.incoming() {
                let mut client = client.unwrap();
                let mut line = String::new();
                BufReader::new(client.try_clone().unwrap()).read_line(&mut line).unwrap();
                write!(client, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\ngot {line}").unwrap();
            }
        });
        let rules = |host: &str, _| match host {
            "ruled.example" => HostDecision::Deny("denied by a rule".to_owned()),
            _ => HostDecision::NoMatch,
        };
        let hosts = ProxyHosts {
            allowed: vec!["127.0.0.1".into(), "*.example".into()],
            denied: vec!["evil.example".into()],
        };
        let proxy = SandboxProxy::start(&hosts, rules, Box::new(|_| Ok(None))).unwrap();
        let ask = |text: String| {
            let mut stream = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
            stream.write_all(text.as_bytes()).unwrap();
            let mut out = String::new();
            stream.read_to_string(&mut out).unwrap();
            out
        };
        assert!(
            ask(format!("GET http://127.0.0.1:{port}/x HTTP/1.1\r\n\r\n")).contains("got GET /x HTTP/1.1")
        );
        let tunnel = ask(format!("CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\nhello\r\n"));
        assert!(tunnel.contains("200 Connection established") && tunnel.contains("got hello"), "{tunnel}");
        let refused = ask("CONNECT evil.example:443 HTTP/1.1\r\n\r\n".into());
        assert!(refused.starts_with("HTTP/1.1 403") && refused.contains("deniedDomains"), "{refused}");
        assert!(ask("CONNECT ruled.example:443 HTTP/1.1\r\n\r\n".into()).contains("denied by a rule"));
        assert!(
            ask("CONNECT other.test:443 HTTP/1.1\r\n\r\n".into()).contains("WebFetch(domain:other.test)")
        );
        let refused: Vec<String> = proxy.refused().into_iter().map(|refused| refused.host).collect();
        assert_eq!(refused, ["evil.example", "ruled.example", "other.test"]);
    }
}
