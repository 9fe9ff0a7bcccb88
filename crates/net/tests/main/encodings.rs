//! Content encodings and bombs.

use crate::main::test_server::{TableJudge, TestServer};
use std::io::Write;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use toolgate_net::web::{FetchError, FetchOptions, FetchOutcome, WebClient, WebPage};

fn judge() -> TableJudge {
    let mut judge = TableJudge::default();
    judge.named.insert("127.0.0.1".to_owned());
    judge
}

/// Fetches one response that is sent byte for byte.
async fn fetch_coded(coding: &str, body: Vec<u8>) -> Result<std::sync::Arc<WebPage>, FetchError> {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let head =
        format!("HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {}\r\n\r\n", body.len());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 4096];
        let _ = stream.read(&mut request).await;
        let _ = stream.write_all(head.as_bytes()).await;
        let _ = stream.write_all(&body).await;
    });
    let client = WebClient::default();
    match client.fetch(&url, &FetchOptions::default(), &judge(), &|_| ()).await? {
        FetchOutcome::Page(page) => Ok(page),
        other => panic!("{other:?}"),
    }
}

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    coder.write_all(data).unwrap();
    coder.finish().unwrap()
}

#[tokio::test]
async fn offered_encodings_are_decoded_and_broken_ones_are_errors() {
    let text = "some text, again and again. ".repeat(2_000).into_bytes();
    let zlib = {
        let mut coder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        coder.write_all(&text).unwrap();
        coder.finish().unwrap()
    };
    let bare = {
        let mut coder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::fast());
        coder.write_all(&text).unwrap();
        coder.finish().unwrap()
    };
    let zstd = zstd::encode_all(text.as_slice(), 1).unwrap();
    let coded = [
        ("gzip", gzip(&text)),
        ("x-gzip", gzip(&text)),
        ("deflate", zlib),
        ("deflate", bare),
        ("zstd", zstd),
    ];
    for (coding, body) in coded {
        let page = fetch_coded(coding, body.clone()).await.unwrap();
        assert_eq!(page.body, text, "{coding}");
        assert!(page.wire_bytes < text.len() as u64 && !page.is_cut, "{coding}");
        // Half of it is no page.
        let half = body[..body.len() / 2].to_vec();
        let error = fetch_coded(coding, half).await.map(|page| page.body.len()).unwrap_err();
        assert!(matches!(error, FetchError::Incomplete { .. }), "{coding}: {error}");
    }
    for (coding, body) in
        [("gzip, gzip", gzip(&gzip(&text))), ("x-foo", text.clone()), ("br, gzip", text.clone())]
    {
        let error = fetch_coded(coding, body).await.map(|page| page.body.len()).unwrap_err();
        assert_eq!(error, FetchError::UnknownCoding(coding.to_owned()));
    }
    assert_eq!(fetch_coded("identity", text.clone()).await.unwrap().body, text);
}

#[tokio::test]
async fn a_bomb_is_cut_at_the_limit_and_little_of_it_is_kept() {
    let server = TestServer::start();
    let client = WebClient::default();
    let url = format!("http://127.0.0.1:{}/bomb/gzip?mb=300", server.port);
    let outcome = client.fetch(&url, &FetchOptions::default(), &judge(), &|_| ()).await.unwrap();
    let FetchOutcome::Page(page) = outcome else { panic!("{outcome:?}") };
    assert!(page.is_cut && page.body.len() == 64_000 && page.wire_bytes < 50_000);
    // A large page that is compressed as pages are keeps all that the limit allows.
    let words: String =
        (0..1_500_000_u64).map(|number| format!("{:x} ", number.wrapping_mul(0x9e37_79b9))).collect();
    let page = fetch_coded("gzip", gzip(words.as_bytes())).await.unwrap();
    assert!(page.is_cut && page.body.len() == 5_000_000);
}
