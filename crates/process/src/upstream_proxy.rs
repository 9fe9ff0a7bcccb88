//! A proxy of the environment behind the proxy of the sandbox, as networks without direct access have one.
//!
//! It is asked for a tunnel (`CONNECT`) to an address that was vetted here. The name is not handed over: the proxy would
//! resolve it again, and could be answered differently.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::Duration;
use toolgate_proto::host_pattern::Host;

/// The most bytes of the proxy's answer.
const MAX_ANSWER_BYTES: usize = 16 * 1024;

/// A proxy that tunnels.
#[derive(Clone, PartialEq, Eq)]
pub struct UpstreamProxy {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The value of `Proxy-Authorization`.
    pub authorization: Option<String>,
}

/// Without the credentials.
impl std::fmt::Debug for UpstreamProxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "UpstreamProxy({}:{})", self.host, self.port)
    }
}

/// A connection that is about to be made, as a choice of proxies sees it.
#[derive(Debug, Clone, Copy)]
pub struct UpstreamQuery<'a> {
    /// `https` for a tunnel, `http` for a plain request.
    pub scheme: &'static str,
    /// The host that was requested.
    pub host: &'a Host<String>,
    /// Its addresses, each of them vetted.
    pub addresses: &'a [IpAddr],
}

/// Chooses the proxy of a connection; `None` connects directly. An error is why the proxy that the environment names cannot
/// be used: to bypass it would defeat its purpose.
pub type UpstreamChoice =
    Box<dyn Fn(&UpstreamQuery<'_>) -> Result<Option<UpstreamProxy>, String> + Send + Sync>;

impl UpstreamProxy {
    /// A connection to an address through the proxy.
    pub(crate) fn tunnel(&self, address: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
        self.open_tunnel(address, timeout).map_err(|error| {
            io::Error::new(error.kind(), format!("through the proxy {}:{}: {error}", self.host, self.port))
        })
    }

    fn open_tunnel(&self, address: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
        let mut stream = Err(io::Error::new(io::ErrorKind::NotFound, "it has no address"));
        for place in (self.host.as_str(), self.port).to_socket_addrs()? {
            stream = TcpStream::connect_timeout(&place, timeout);
            if stream.is_ok() {
                break;
            }
        }
        let mut stream = stream?;
        stream.set_read_timeout(Some(timeout))?;
        let mut request = format!("CONNECT {address} HTTP/1.1\r\nHost: {address}\r\n");
        if let Some(authorization) = &self.authorization {
            request.push_str(&format!("Proxy-Authorization: {authorization}\r\n"));
        }
        request.push_str("\r\n");
        stream.write_all(request.as_bytes())?;
        let status = read_answer(&mut stream)?;
        stream.set_read_timeout(None)?;
        let code = status.split(' ').nth(1).unwrap_or_default();
        if code.len() == 3 && code.starts_with('2') {
            return Ok(stream);
        }
        let status: String = status.chars().filter(|c| !c.is_control()).take(100).collect();
        Err(io::Error::other(format!("it answered `{status}`")))
    }
}

/// The first line of the proxy's answer. Its head is read byte by byte, so that nothing of what the server sends first is
/// taken.
fn read_answer(stream: &mut TcpStream) -> io::Result<String> {
    let mut answer = Vec::new();
    let mut byte = [0];
    while !answer.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        answer.extend_from_slice(&byte);
        if answer.len() > MAX_ANSWER_BYTES {
            return Err(io::Error::other("its answer is too long"));
        }
    }
    Ok(String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::{HostDecision, ProxyHosts, SandboxProxy};
    use std::io::{BufRead, BufReader};
    use std::net::TcpListener;
    use std::sync::mpsc;

    /// A proxy that gives one answer to each connection, and passes on what it was asked.
    fn upstream(answer: &'static str) -> (UpstreamProxy, mpsc::Receiver<Vec<String>>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, asked) = mpsc::channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let lines = BufReader::new(&stream).lines().map_while(Result::ok);
                let _ = sender.send(lines.take_while(|line| !line.is_empty()).collect());
                let _ = (&stream).write_all(answer.as_bytes());
            }
        });
        let authorization = Some("Basic c2VjcmV0".to_owned());
        (UpstreamProxy { host: "127.0.0.1".to_owned(), port, authorization }, asked)
    }

    #[test]
    fn a_tunnel_names_the_vetted_address_and_keeps_what_the_server_sends_first() {
        let (proxy, asked) = upstream("HTTP/1.1 200 Connected\r\nX: y\r\n\r\nhello");
        let address = "93.184.216.34:443".parse().unwrap();
        let mut stream = proxy.tunnel(address, Duration::from_secs(20)).unwrap();
        let mut first = [0; 5];
        stream.read_exact(&mut first).unwrap();
        assert_eq!(&first, b"hello");
        let head = asked.recv().unwrap();
        assert_eq!(head[0], "CONNECT 93.184.216.34:443 HTTP/1.1");
        assert!(head.contains(&"Proxy-Authorization: Basic c2VjcmV0".to_owned()));
    }

    /// What the proxy of the sandbox answers to a request.
    fn ask_sandbox_proxy(upstream: UpstreamChoice, request: &str) -> String {
        let allowed = ["93.184.216.34", "*.lan"].map(str::to_owned).to_vec();
        let hosts = ProxyHosts { allowed, denied: Vec::new() };
        let proxy = SandboxProxy::start(&hosts, |_, _| HostDecision::NoMatch, upstream).unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn an_allowed_host_is_reached_through_the_proxy_and_a_refused_one_not_at_all() {
        let (proxy, asked) = upstream("HTTP/1.1 200 Connected\r\n\r\nHTTP/1.1 200 OK\r\n\r\nthe page");
        let choice = |proxy: &UpstreamProxy| -> UpstreamChoice {
            let proxy = proxy.clone();
            Box::new(move |query| {
                assert_eq!(query.addresses, ["93.184.216.34".parse::<IpAddr>().unwrap()]);
                Ok(Some(proxy.clone()))
            })
        };
        let page = ask_sandbox_proxy(choice(&proxy), "GET http://93.184.216.34/x HTTP/1.1\r\n\r\n");
        assert!(page.ends_with("the page"), "{page}");
        assert_eq!(asked.recv().unwrap()[0], "CONNECT 93.184.216.34:80 HTTP/1.1");
        for refused in ["http://10.0.0.1/", "http://127.0.0.1/", "http://other.example/"] {
            let answer = ask_sandbox_proxy(choice(&proxy), &format!("GET {refused} HTTP/1.1\r\n\r\n"));
            assert!(answer.starts_with("HTTP/1.1 403"), "{refused}: {answer}");
        }
        assert!(asked.try_recv().is_err(), "the proxy of the environment saw a host that is not allowed");
    }

    #[test]
    fn a_proxy_that_cannot_be_used_is_not_bypassed() {
        let unusable: UpstreamChoice = Box::new(|_| Err("https_proxy: socks5 is not supported".to_owned()));
        let answer = ask_sandbox_proxy(unusable, "CONNECT 93.184.216.34:443 HTTP/1.1\r\n\r\n");
        assert!(answer.starts_with("HTTP/1.1 502") && answer.contains("socks5 is not supported"), "{answer}");
    }

    #[test]
    fn a_refusal_of_the_proxy_is_an_error_without_credentials() {
        for answer in ["HTTP/1.1 407 Authenticate\r\n\r\n", "nonsense\r\n\r\n", "HTTP/1.1 2000 x\r\n\r\n", ""]
        {
            let (proxy, _asked) = upstream(answer);
            let address = "93.184.216.34:443".parse().unwrap();
            let error = proxy.tunnel(address, Duration::from_secs(20)).unwrap_err().to_string();
            assert!(error.starts_with("through the proxy 127.0.0.1:"), "{error}");
            assert!(!error.contains("c2VjcmV0") && !format!("{proxy:?}").contains("c2VjcmV0"), "{error}");
        }
    }
}
