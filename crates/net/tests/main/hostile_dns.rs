//! Names whose answers lead inside.

use crate::main::test_server::{DnsResolver, TableJudge, TestServer};
use futures_util::future::BoxFuture;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use toolgate_net::web::{FetchError, FetchOptions, NameResolver, WebClient, WebClientConfig};
use toolgate_proto::address::is_public;

fn client(resolver: Arc<dyn NameResolver>) -> WebClient {
    let mut config = WebClientConfig::default();
    config.resolver = resolver;
    config.requests_per_minute = 0;
    WebClient::new(config)
}

/// Fetches without a limit that a busy machine could reach.
async fn fetch(client: &WebClient, url: &str) -> FetchError {
    fetch_within(client, url, Duration::from_secs(300)).await
}

async fn fetch_within(client: &WebClient, url: &str, connect: Duration) -> FetchError {
    let mut options = FetchOptions::default();
    options.limits.connect = connect;
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
    // The first answer is public and unreachable here; the second would be the server itself.
    let resolver = Arc::new(RebindingResolver {
        asked: AtomicUsize::new(0),
        first: "203.0.114.1".parse().unwrap(),
        later: "127.0.0.1".parse().unwrap(),
    });
    let client = client(Arc::clone(&resolver) as Arc<dyn NameResolver>);
    let url = format!("http://rebind.test:{}/ok", server.port);
    let error = fetch_within(&client, &url, Duration::from_millis(400)).await;
    let is_unreached = matches!(&error, FetchError::TimedOut { .. } | FetchError::Unreachable { .. });
    assert!(is_unreached && resolver.asked.load(Ordering::SeqCst) == 1, "{error}");
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
