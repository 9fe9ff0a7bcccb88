//! The hostile server, a resolver that asks its DNS, and a judge by the one table of addresses.

use futures_util::future::BoxFuture;
use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use toolgate_net::web::{HopJudge, NameResolver, RedirectVerdict};
use toolgate_proto::address::may_connect;
use toolgate_proto::host_pattern::parse_host;
use url::Url;

/// The hostile server with its DNS; ends when it is dropped.
pub(crate) struct TestServer {
    child: Child,
    pub(crate) port: u16,
    pub(crate) dns: SocketAddr,
}

impl TestServer {
    pub(crate) fn start() -> Self {
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scripts/web/hostile_server.py");
        let mut child = Command::new("python3")
            .arg(script)
            .args(["--port", "0", "--dns", "0"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the tests of the web client need python3");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ports = line.trim().strip_prefix("ready ").expect("the server is ready");
        let (port, dns) = ports.split_once(' ').expect("one port for HTTP and one for DNS");
        let dns = SocketAddr::from((Ipv4Addr::LOCALHOST, dns.parse().unwrap()));
        Self { child, port: port.parse().unwrap(), dns }
    }

    /// The body of a plain request, by a client that shares nothing with the one under test.
    pub(crate) async fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        let request = format!("GET {path} HTTP/1.0\r\nHost: x\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer.split_once("\r\n\r\n").unwrap().1.to_owned()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks one DNS server, for A and AAAA.
pub(crate) struct DnsResolver(pub(crate) SocketAddr);

impl NameResolver for DnsResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, String>> {
        Box::pin(async move {
            let mut addresses = Vec::new();
            for kind in [1_u16, 28] {
                addresses.extend(ask(self.0, name, kind).await.map_err(|error| error.to_string())?);
            }
            Ok(addresses)
        })
    }
}

async fn ask(server: SocketAddr, name: &str, kind: u16) -> std::io::Result<Vec<IpAddr>> {
    let socket = UdpSocket::bind("127.0.0.1:0").await?;
    let mut question = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    for label in name.split('.') {
        question.push(u8::try_from(label.len()).unwrap());
        question.extend_from_slice(label.as_bytes());
    }
    question.push(0);
    question.extend_from_slice(&kind.to_be_bytes());
    question.extend_from_slice(&[0, 1]);
    socket.send_to(&question, server).await?;
    let mut answer = vec![0; 2048];
    let wait = Duration::from_secs(30);
    let length = tokio::time::timeout(wait, socket.recv(&mut answer)).await??;
    let count = u16::from_be_bytes([answer[6], answer[7]]);
    let mut at = question.len();
    let mut addresses = Vec::new();
    for _ in 0..count {
        let size = usize::from(u16::from_be_bytes([answer[at + 10], answer[at + 11]]));
        let data = &answer[at + 12..(at + 12 + size).min(length)];
        match data.len() {
            4 => addresses.push(IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(data).unwrap()))),
            16 => addresses.push(IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(data).unwrap()))),
            _ => {}
        }
        at += 12 + size;
    }
    Ok(addresses)
}

/// Lets named hosts through, and of others the public addresses.
#[derive(Default)]
pub(crate) struct TableJudge {
    pub(crate) named: HashSet<String>,
}

impl HopJudge for TableJudge {
    fn check_redirect(&self, from: &str, location: &str) -> RedirectVerdict {
        let from = Url::parse(from).unwrap();
        match from.join(location) {
            Ok(to) if to.host() == from.host() => RedirectVerdict::Follow(to.to_string()),
            Ok(to) => RedirectVerdict::Report(to.to_string()),
            Err(error) => RedirectVerdict::Refuse(error.to_string()),
        }
    }

    fn check_addresses(&self, url: &str, addresses: &[IpAddr]) -> Result<(), String> {
        let url = Url::parse(url).unwrap();
        let host = parse_host(url.host_str().unwrap().trim_matches(['[', ']'])).unwrap();
        let is_named = self.named.contains(url.host_str().unwrap());
        match addresses.iter().find(|address| !may_connect(&host, is_named, **address)) {
            Some(address) => Err(format!("{address} is not public")),
            None => Ok(()),
        }
    }
}
