//! Names whose answers lead inside.

use crate::main::test_server::{DnsResolver, TableJudge, TestServer};
use futures_util::future::BoxFuture;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use toolgate_net::web::{
    FetchError, FetchOptions, FetchOutcome, NameResolver, ProxyTable, WebClient, WebClientConfig,
};
use toolgate_proto::address::{is_public, may_connect};
use toolgate_proto::host_pattern::parse_host;

fn client(resolver: Arc<dyn NameResolver>) -> WebClient {
    build_client(resolver, ProxyTable::default())
}

fn build_client(resolver: Arc<dyn NameResolver>, proxies: ProxyTable) -> WebClient {
    let mut config = WebClientConfig::default();
    config.resolver = resolver;
    config.requests_per_minute = 0;
    config.proxies = proxies;
    WebClient::new(config)
}

/// A client whose connections go to a proxy on loopback, which notes the address of each and refuses it: nothing is sent
/// to a public address.
struct DialRecorder {
    client: WebClient,
    dialled: Arc<Mutex<Vec<String>>>,
}

impl DialRecorder {
    fn start(resolver: Arc<dyn NameResolver>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let proxy = format!("http://{}", listener.local_addr().unwrap());
        let dialled = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&dialled);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                let mut request = String::new();
                stream.read_line(&mut request).unwrap();
                noted.lock().unwrap().extend(request.split(' ').nth(1).map(str::to_owned));
                let mut line = request;
                while !line.trim().is_empty() {
                    line.clear();
                    stream.read_line(&mut line).unwrap();
                }
                let refusal = b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n";
                stream.get_mut().write_all(refusal).unwrap();
            }
        });
        let environment = BTreeMap::from([("http_proxy".to_owned(), proxy)]);
        let proxies = ProxyTable::from_environment(&environment).unwrap();
        Self { client: build_client(resolver, proxies), dialled }
    }

    /// The addresses that were dialled since the last look.
    fn take_dialled(&self) -> Vec<String> {
        std::mem::take(&mut *self.dialled.lock().unwrap())
    }
}

/// Fetches without a limit that a busy machine could reach.
async fn fetch(client: &WebClient, url: &str) -> FetchError {
    let mut options = FetchOptions::default();
    options.limits.connect = Duration::from_secs(300);
    options.limits.total = Duration::from_secs(300);
    client.fetch(url, &options, &TableJudge::default(), &|_| ()).await.expect_err(url)
}

#[tokio::test]
async fn names_that_lead_inside_are_refused_before_a_connection() {
    let server = TestServer::start();
    let client = client(Arc::new(DnsResolver(server.dns)));
    for name in ["mixed", "mapped", "nat64", "ula", "zero", "link", "cgnat", "bench"] {
        let error = fetch(&client, &format!("http://{name}.test:{}/ok", server.port)).await;
        assert!(matches!(&error, FetchError::Refused(_)), "{name}: {error}");
    }
    let error = fetch(&client, "http://none.test/").await;
    assert!(matches!(&error, FetchError::Unresolved { .. }), "{error}");
    // The limit of the connection ends it: that of the whole is far beyond the bound.
    let mut options = FetchOptions::default();
    options.limits.connect = Duration::from_millis(400);
    options.limits.total = Duration::from_secs(3600);
    let judge = TableJudge::default();
    let slow = client.fetch("http://slow.test/", &options, &judge, &|_| ());
    let error =
        tokio::time::timeout(Duration::from_secs(300), slow).await.expect("no limit holds").unwrap_err();
    assert!(matches!(&error, FetchError::TimedOut { .. }), "{error}");
}

#[tokio::test]
async fn a_public_name_is_let_through_and_one_that_is_bound_again_reaches_nothing_inside() {
    let server = TestServer::start();
    let recorder = DialRecorder::start(Arc::new(DnsResolver(server.dns)));
    let public = vec![format!("93.184.216.34:{}", server.port)];
    fetch(&recorder.client, &format!("http://public.test:{}/ok", server.port)).await;
    assert_eq!(recorder.take_dialled(), public);
    // The first answer is public, every later one this machine.
    let url = format!("http://rebind.test:{}/ok", server.port);
    fetch(&recorder.client, &url).await;
    assert_eq!(recorder.take_dialled(), public);
    for _ in 0..3 {
        let error = fetch(&recorder.client, &url).await;
        assert!(matches!(&error, FetchError::Refused(_)), "{error}");
    }
    assert_eq!(recorder.take_dialled(), Vec::<String>::new());
    assert_eq!(server.get("/_log").await, "[]");
}

/// Counts the look-ups, and answers the second one differently.
struct RebindingResolver {
    asked: AtomicUsize,
    first: IpAddr,
    later: IpAddr,
}

impl NameResolver for RebindingResolver {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, String>> {
        let answer = if self.asked.fetch_add(1, Ordering::SeqCst) == 0 { self.first } else { self.later };
        Box::pin(std::future::ready(Ok(vec![answer])))
    }
}

#[tokio::test]
async fn a_name_is_resolved_once_and_the_vetted_address_is_used() {
    let server = TestServer::start();
    // The first answer is public; the second would be the server itself.
    let resolver = Arc::new(RebindingResolver {
        asked: AtomicUsize::new(0),
        first: "93.184.216.34".parse().unwrap(),
        later: "127.0.0.1".parse().unwrap(),
    });
    let recorder = DialRecorder::start(Arc::clone(&resolver) as Arc<dyn NameResolver>);
    fetch(&recorder.client, &format!("http://rebind.test:{}/ok", server.port)).await;
    assert_eq!(recorder.take_dialled(), [format!("93.184.216.34:{}", server.port)]);
    assert_eq!(resolver.asked.load(Ordering::SeqCst), 1);
}

/// Always the same answer.
struct FixedResolver(Vec<IpAddr>);

impl NameResolver for FixedResolver {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, String>> {
        Box::pin(std::future::ready(Ok(self.0.clone())))
    }
}

#[test]
fn vetting_equals_the_table_for_random_answers() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner = TestRunner::new(Config { cases: 256, failure_persistence: None, ..Config::default() });
    let prefix =
        prop::sample::select(vec![0_u128, 0xffff << 32, 0x64_ff9b << 96, 0x2002 << 112, 0xfd << 120]);
    let address = prop_oneof![
        any::<u32>().prop_map(|bits| IpAddr::V4(bits.into())),
        (prefix, any::<u32>()).prop_map(|(prefix, bits)| IpAddr::V6((prefix | u128::from(bits)).into())),
        Just("127.0.0.1".parse().unwrap()),
        Just("93.184.216.34".parse().unwrap()),
    ];
    let answers = prop::collection::vec(address, 1..4);
    runner
        .run(&("[a-z]{1,8}\\.example", answers), |(name, answers)| {
            let all_public = answers.iter().all(|address| is_public(*address));
            if all_public {
                // A connection would be made to whatever is there; the check is all that is asked here.
                let url = format!("http://{name}/");
                prop_assert!(
                    toolgate_net::web::HopJudge::check_addresses(&TableJudge::default(), &url, &answers)
                        .is_ok()
                );
                return Ok(());
            }
            let client = client(Arc::new(FixedResolver(answers)));
            let error = runtime.block_on(fetch(&client, &format!("http://{name}/")));
            prop_assert!(matches!(&error, FetchError::Refused(_)), "{}", error);
            Ok(())
        })
        .unwrap();
}

/// Answers the look-ups in turn, and the last answer again and again.
struct SequenceResolver {
    asked: AtomicUsize,
    answers: Vec<Vec<IpAddr>>,
}

impl NameResolver for SequenceResolver {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, String>> {
        let number = self.asked.fetch_add(1, Ordering::SeqCst).min(self.answers.len() - 1);
        Box::pin(std::future::ready(Ok(self.answers[number].clone())))
    }
}

/// How a chain of redirects ends.
#[derive(Debug, PartialEq, Eq)]
enum RedirectEnd {
    Page,
    Refused,
    TooMany,
}

/// Every hop of a chain is resolved once and vetted by the table: the chain ends at the first hop with an address that the
/// table does not allow, and nothing is requested from that hop on.
#[test]
fn vetting_equals_the_table_for_random_chains() {
    let server = TestServer::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut runner = TestRunner::new(Config { cases: 256, failure_persistence: None, ..Config::default() });
    let inside: IpAddr = "127.0.0.1".parse().unwrap();
    // A host that the user named may be on this machine, and at none of these.
    let others =
        ["169.254.169.254", "0.0.0.0", "169.254.1.1", "224.0.0.1", "::ffff:169.254.169.254", "fe80::1"];
    let others: Vec<IpAddr> = others.iter().map(|text| text.parse().unwrap()).collect();
    let mixed = prop::sample::subsequence(others, 1..3).prop_map(move |mut answer| {
        answer.push(inside);
        answer
    });
    let answer = prop_oneof![6 => Just(vec![inside]), 1 => mixed];
    let chains = prop::collection::vec(answer, 2..9);
    let names = ("[a-z]{1,8}\\.example", prop::bool::weighted(0.8));
    runner
        .run(&(names, chains), |((name, is_named), answers)| {
            let mut judge = TableJudge::default();
            if is_named {
                judge.named.insert(name.clone());
            }
            let host = parse_host(&name).unwrap();
            let is_allowed =
                |answer: &&Vec<IpAddr>| answer.iter().all(|address| may_connect(&host, is_named, *address));
            let (hops, most) = (answers.len(), FetchOptions::default().limits.redirects + 1);
            let vetted = answers.iter().take_while(is_allowed).count();
            let (requests, lookups, end) = match vetted {
                _ if vetted >= most && hops > most => (most, most, RedirectEnd::TooMany),
                _ if vetted < hops => (vetted, vetted + 1, RedirectEnd::Refused),
                _ => (hops, hops, RedirectEnd::Page),
            };
            runtime.block_on(server.get("/_reset"));
            // The server sends one redirect more than the number says, and then the page.
            let url = format!("http://{name}:{}/redirect/chain?n={}", server.port, hops - 2);
            let resolver = Arc::new(SequenceResolver { asked: AtomicUsize::new(0), answers });
            let client = client(Arc::clone(&resolver) as Arc<dyn NameResolver>);
            let options = FetchOptions::default();
            let fetched = runtime.block_on(client.fetch(&url, &options, &judge, &|_| ()));
            let ended = match fetched {
                Ok(FetchOutcome::Page(page)) if page.hops.len() == hops => RedirectEnd::Page,
                Err(FetchError::Refused(_)) => RedirectEnd::Refused,
                Err(FetchError::TooManyRedirects(_)) => RedirectEnd::TooMany,
                other => return Err(TestCaseError::fail(format!("{other:?}"))),
            };
            prop_assert_eq!(ended, end);
            prop_assert_eq!(resolver.asked.load(Ordering::SeqCst), lookups);
            prop_assert_eq!(runtime.block_on(server.get("/_log")).matches("\"method\"").count(), requests);
            Ok(())
        })
        .unwrap();
}
