//! The HTTP listener: which requests it accepts, and how many at once.

use super::server_fixture::{ServerFixture, meta};
use serde_json::{Value, json};
use std::net::SocketAddr;
use tokio_util::sync::CancellationToken;
use toolgate_mcp::{HttpListener, HttpOptions, serve_http};
use toolgate_proto::Code;

struct Served {
    address: SocketAddr,
    cancel: CancellationToken,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

async fn serve(options: HttpOptions) -> Served {
    let stage = ServerFixture::new();
    let listener = toolgate_net::listen_tcp(([127, 0, 0, 1], 0).into()).await.unwrap();
    let address = listener.local_addr().unwrap();
    let cancel = options.cancel.clone();
    tokio::spawn(serve_http(stage.server(100), HttpListener::Tcp(listener), options));
    Served { address, cancel }
}

async fn post(at: &Served, headers: &[(&str, &str)], body: String) -> (u16, String) {
    let client = toolgate_net::http_client().unwrap();
    let mut request = client
        .post(format!("http://{}/mcp", at.address))
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("mcp-protocol-version", "2026-07-28")
        .header("mcp-method", "tools/call")
        .header("mcp-name", "echo");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let reply = request.body(body).send().await.unwrap();
    (reply.status().as_u16(), reply.text().await.unwrap())
}

fn call(arguments: &str) -> String {
    let params: Value = json!({ "name": "echo", "_meta": meta(json!({})) });
    let mut params = params.to_string();
    params.insert_str(1, &format!("\"arguments\":{arguments},"));
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#)
}

#[tokio::test]
async fn only_those_who_are_meant_are_let_in() {
    let options = HttpOptions::default().with_token("secret");
    let served = serve(options).await;
    let good = ("authorization", "Bearer secret");
    let own = format!("http://{}", served.address);
    for (headers, expected) in [
        (vec![good], 200),
        (vec![good, ("origin", own.as_str())], 200),
        (vec![], 401),
        (vec![("authorization", "Bearer wrong")], 401),
        (vec![("authorization", "Basic secret")], 401),
        (vec![good, ("origin", "https://evil.example")], 403),
        (vec![good, ("origin", "null")], 403),
        (vec![good, ("host", "evil.example")], 403),
    ] {
        let (status, body) = post(&served, &headers, call(r#"{"text":"hi"}"#)).await;
        assert_eq!(status, expected, "{headers:?}: {body}");
        assert_eq!(body.contains("hi"), expected == 200, "{headers:?}: {body}");
    }
}

#[tokio::test]
async fn too_much_is_refused() {
    let options = HttpOptions::default().with_max_request_bytes(4096);
    let served = serve(options).await;
    let big = call(&json!({ "text": "x".repeat(8192) }).to_string());
    assert_eq!(post(&served, &[], big).await.0, 413);
    let served = serve(HttpOptions::default().with_max_requests_per_second(1)).await;
    let first = post(&served, &[], call(r#"{"text":"hi"}"#)).await.0;
    let second = post(&served, &[], call(r#"{"text":"hi"}"#)).await.0;
    assert_eq!((first, second), (200, 429));
    let served = serve(HttpOptions::default().with_max_concurrent_requests(0)).await;
    assert_eq!(post(&served, &[], call(r#"{"text":"hi"}"#)).await.0, 503);
}

#[tokio::test]
async fn arguments_are_read_strictly_over_http_as_well() {
    let served = serve(HttpOptions::default()).await;
    let (_, body) = post(&served, &[], call(r#"{"text":"a","text":"b"}"#)).await;
    assert!(body.contains(&Code::DuplicateKey.to_string()), "{body}");
}
