//! Pages in a real browser: what is seen of them, and what they cannot reach.

use crate::main::web_fixture::{page_of, web_gate, web_gate_with, web_session};
use base64::Engine;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::{Arc, Mutex};
use toolgate_proto::{Code, Output, OutputBlock};
use toolgate_tools::{WebConfig, set_web_config};

/// Whether there is a browser. Where the tools of the tests are required, it must be there.
pub(crate) fn has_browser() -> bool {
    let known = ["/usr/lib/chromium/chromium", "/usr/bin/chromium", "/opt/google/chrome/chrome"];
    let found = known.iter().any(|path| Path::new(path).exists());
    let required = std::env::var_os("TOOLGATE_TEST_TOOLS").is_some_and(|value| value == "required");
    assert!(found || !required, "there is no Chromium; run scripts/install-test-tools.sh");
    if !found {
        println!("skipped: there is no Chromium; run scripts/install-test-tools.sh");
    }
    found
}

/// A server on loopback with fixed pages, which notes what it is asked for.
pub(crate) struct FixedPageServer {
    pub(crate) port: u16,
    seen: Arc<Mutex<Vec<String>>>,
}

impl FixedPageServer {
    /// Each page is a path, a content type and a body; `$PORT` in a body is the server's port. A type that starts with
    /// `redirect:` is the target of a redirect.
    pub(crate) fn start(pages: &[(&str, &str, &str)]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let pages: Vec<(String, String, String)> = pages
            .iter()
            .map(|(path, kind, body)| {
                let fill = |text: &str| text.replace("$PORT", &port.to_string());
                ((*path).to_owned(), fill(kind), fill(body))
            })
            .collect();
        let log = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (pages, log) = (pages.clone(), Arc::clone(&log));
                std::thread::spawn(move || serve(&stream, &pages, &log));
            }
        });
        Self { port, seen }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The request lines so far.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

fn serve(stream: &TcpStream, pages: &[(String, String, String)], log: &Mutex<Vec<String>>) {
    let mut lines = BufReader::new(stream).lines();
    let Some(Ok(first)) = lines.next() else { return };
    // The whole head is read, or closing the connection would look like a failure to the client.
    let _ = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).count();
    log.lock().unwrap().push(first.clone());
    let path = first.split(' ').nth(1).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    let answer = match pages.iter().find(|(known, _, _)| known == path) {
        Some((_, kind, _)) if kind.starts_with("redirect:") => {
            format!(
                "HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                &kind[9..]
            )
        }
        Some((_, kind, body)) => format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        ),
        None => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned(),
    };
    let _ = (&mut &*stream).write_all(answer.as_bytes());
}

/// The images of a result, decoded.
fn images(output: &Output) -> Vec<image::DynamicImage> {
    let mut found = Vec::new();
    for block in &output.content {
        if let OutputBlock::Image { data, .. } = block {
            let bytes = base64::engine::general_purpose::STANDARD.decode(data).unwrap();
            found.push(image::load_from_memory(&bytes).unwrap());
        }
    }
    found
}

/// The colour at a place of an image.
fn colour(image: &image::DynamicImage, x: u32, y: u32) -> [u8; 3] {
    let image::Rgb(colour) = *image.to_rgb8().get_pixel(x, y);
    colour
}

const HTML: &str = "text/html; charset=utf-8";

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_seen_as_a_browser_shows_it() {
    if !has_browser() {
        return;
    }
    let server = FixedPageServer::start(&[
        (
            "/",
            HTML,
            "<title>t</title><body style='margin:0;background:#00ff00'><div id=a style='height:2000px'></div>\
             <script src=/change.js></script>",
        ),
        ("/change.js", "text/javascript", "alert(1); document.body.style.background = '#0000ff'"),
    ]);
    let fixture = web_session(&web_gate(&[server.port]));
    let output = fixture.call("Screenshot", &json!({ "url": server.url("/") })).await.unwrap();
    let shown = images(&output);
    assert_eq!(shown.len(), 1);
    assert_eq!((shown[0].width(), shown[0].height()), (1280, 800));
    assert_eq!(colour(&shown[0], 640, 400), [0, 0, 255]);
    assert!(output.model_text().contains("1280×800 pixels"), "{}", output.model_text());
    // The whole page is in parts that providers accept, and each toolset has the tool.
    let whole =
        json!({ "url": server.url("/"), "full": true, "format": "jpeg", "width": 400, "height": 300 });
    let output = fixture.call("screenshot", &whole).await.unwrap();
    let shown = images(&output);
    assert_eq!(shown.iter().map(image::DynamicImage::height).collect::<Vec<_>>(), [1568, 432]);
    assert!(
        output.content.iter().any(
            |block| matches!(block, OutputBlock::Image { media_type, .. } if media_type == "image/jpeg")
        )
    );
    let structured = output.structured.unwrap();
    assert_eq!((&structured["width"], &structured["height"]), (&json!(400), &json!(2000)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_reaches_only_its_own_host() {
    if !has_browser() {
        return;
    }
    let other = FixedPageServer::start(&[("/x", HTML, "secret")]);
    let on_six = TcpListener::bind(("::1", other.port)).ok();
    let datagrams = UdpSocket::bind(("127.0.0.1", other.port)).unwrap();
    datagrams.set_nonblocking(true).unwrap();
    let page = "<!doctype html><link rel=dns-prefetch href=//prefetch.test><link rel=preconnect href='http://127.0.0.1:$OTHER'>
        <iframe src='file:///etc/passwd'></iframe><img src='http://127.0.0.1:$OTHER/x'><img src='http://localhost:$OTHER/x'>
        <img src='http://[::1]:$OTHER/x'><img src='http://0.0.0.0:$OTHER/x'><h1 id=done>start</h1>
        <script>
        const urls = ['http://169.254.169.254/latest/', 'http://10.0.0.5/', 'http://[fe80::1]/', 'http://127.0.0.1:$OTHER/x'];
        navigator.sendBeacon('http://127.0.0.1:$OTHER/x', 'x');
        try { new WebSocket('ws://127.0.0.1:$OTHER/x') } catch (e) {}
        try {
            const peer = new RTCPeerConnection({ iceServers: [{ urls: 'stun:127.0.0.1:$OTHER' }] });
            peer.createDataChannel('x');
            peer.createOffer().then(offer => peer.setLocalDescription(offer));
        } catch (e) {}
        Promise.allSettled(urls.map(url => fetch(url, { mode: 'no-cors' }).then(answer => answer.status === 403)))
            .then(() => fetch('/own')).then(() => done.textContent = 'finished');
        </script>"
        .replace("$OTHER", &other.port.to_string());
    let server = FixedPageServer::start(&[("/", HTML, &page), ("/own", "text/plain", "own")]);
    let fixture = web_session(&web_gate(&[server.port]));
    let input = json!({ "url": server.url("/"), "wait": 3_000, "timeout": 100 });
    let output = fixture.call("Screenshot", &input).await.unwrap();
    assert!(
        server.seen().iter().any(|line| line.starts_with("GET /own ")),
        "the page ran: {:?}",
        server.seen()
    );
    assert_eq!(other.seen(), Vec::<String>::new(), "nothing went to a host that no rule allows");
    let mut buffer = [0; 2_000];
    assert_eq!(
        datagrams.recv(&mut buffer).unwrap_err().kind(),
        std::io::ErrorKind::WouldBlock,
        "no datagram left"
    );
    if let Some(listener) = on_six {
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err(), "nothing connected by IPv6");
    }
    let refused = &output.structured.as_ref().unwrap()["refusedHosts"];
    let refused: Vec<&str> = refused.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(refused.contains(&"169.254.169.254") && refused.contains(&"localhost"), "{refused:?}");
    assert!(output.model_text().contains("was not allowed to reach"), "{}", output.model_text());
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_run_before_a_rendered_text_is_read() {
    if !has_browser() {
        return;
    }
    let server = FixedPageServer::start(&[
        (
            "/",
            HTML,
            "<title>App</title><main id=app></main><script>fetch('/data').then(a => a.text()).then(t => \
             { app.innerHTML = '<h1>Made by a script</h1><p>' + t + '</p>' })</script>",
        ),
        ("/data", "text/plain", "the answer is 42"),
        ("/away", "redirect:http://localhost:$PORT/", ""),
    ]);
    let fixture = web_session(&web_gate(&[server.port]));
    let plain = fixture.call("WebFetch", &json!({ "url": server.url("/") })).await.unwrap();
    assert!(!plain.model_text().contains("the answer"), "{}", plain.model_text());
    let input = json!({ "url": server.url("/"), "render": true, "screenshot": true });
    let rendered = fixture.call("WebFetch", &input).await.unwrap();
    assert!(page_of(&rendered).contains("the answer is 42"), "{}", rendered.model_text());
    assert!(rendered.model_text().starts_with("[web content "), "{}", rendered.model_text());
    assert_eq!(images(&rendered).len(), 1);
    let input = json!({ "url": server.url("/"), "screenshot": true });
    let beside = fixture.call("web_fetch", &input).await.unwrap();
    assert_eq!(images(&beside).len(), 1);
    // A redirect to a host that no rule allows leads nowhere.
    let refusal = fixture.call("Screenshot", &json!({ "url": server.url("/away") })).await.unwrap_err();
    assert_eq!(refusal.code, Code::Fetch);
    assert!(refusal.reason.contains("`localhost`"), "{refusal}");
    let refusal = fixture
        .call("WebFetch", &json!({ "url": server.url("/missing"), "render": true }))
        .await
        .unwrap_err();
    assert_eq!(refusal.code, Code::Http, "{refusal}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_local_page_loads_what_the_call_may_read_and_no_host() {
    if !has_browser() {
        return;
    }
    let server = FixedPageServer::start(&[("/x", HTML, "x")]);
    let fixture = web_session(&web_gate(&[server.port]));
    let write = |name: &str, text: &str| {
        let path = fixture.root.join(name);
        std::fs::create_dir_all(path.parent().unwrap().as_path()).unwrap();
        std::fs::write(path.as_path(), text).unwrap();
    };
    // Each half of the page is green if it should be.
    write("site/style.css", "body { margin: 0; background: #00ff00 }");
    write("site/.env", "SECRET=1");
    write("site/late.txt", "late");
    write("outside.txt", "outside");
    write(
        "site/a page.html",
        &"<link rel=stylesheet href=style.css><div id=d style='height:400px;background:#ff0000'></div><script>
          const tries = ['/.env', '/%2e%2e/outside.txt', '/..%2foutside.txt', 'http://127.0.0.1:$PORT/x', 'file:///etc/passwd'];
          Promise.all(tries.map(url => fetch(url).then(a => a.status === 200).catch(() => false)))
              .then(got => setTimeout(() => fetch('late.txt').then(late => {
                  d.style.background = got.some(x => x) || late.status !== 200 ? '#ff0000' : '#0000ff' }), 300))</script>"
            .replace("$PORT", &server.port.to_string()),
    );
    let input = json!({ "path": "site/a page.html", "wait": 4_000, "timeout": 100 });
    let output = fixture.call("Screenshot", &input).await.unwrap();
    let shown = images(&output);
    assert_eq!(colour(&shown[0], 640, 200), [0, 0, 255], "nothing else was readable");
    assert_eq!(colour(&shown[0], 640, 600), [0, 255, 0], "the style sheet was loaded");
    assert_eq!(server.seen(), Vec::<String>::new());
    let refusal = fixture.call("Screenshot", &json!({ "path": "none.html" })).await.unwrap_err();
    assert_eq!(refusal.code, Code::FileNotFound, "{refusal}");
}

#[tokio::test]
async fn addresses_of_the_browser_itself_are_refused() {
    let fixture = web_session(&web_gate(&[]));
    for url in [
        "file:///etc/passwd",
        "chrome://version",
        "view-source:http://a.example/",
        "data:text/html,x",
        "about:blank",
    ] {
        let refusal = fixture.call("Screenshot", &json!({ "url": url })).await.unwrap_err();
        assert_eq!(refusal.code, Code::BadArgument, "{url}: {refusal}");
    }
    for input in [json!({}), json!({ "url": "http://a.example/", "path": "x" })] {
        let refusal = fixture.call("Screenshot", &input).await.unwrap_err();
        assert_eq!(refusal.code, Code::BadArgument, "{refusal}");
    }
    let refusal = fixture.call("Screenshot", &json!({ "url": "http://169.254.169.254/" })).await.unwrap_err();
    assert_ne!(refusal.code, Code::Fetch, "judged before a browser is started: {refusal}");
}

/// A proxy as a company has one: it tunnels, notes which place it was asked for, and answers every request with one page.
fn company_proxy(page: &'static str) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = Arc::clone(&seen);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let log = Arc::clone(&log);
            std::thread::spawn(move || {
                let mut reader = BufReader::new(stream.try_clone().unwrap());
                let mut answers = ["HTTP/1.1 200 Connected\r\n\r\n".to_owned(), http_page(page)].into_iter();
                let mut head = Vec::new();
                loop {
                    let mut line = String::new();
                    if reader.read_line(&mut line).unwrap_or(0) == 0 {
                        return;
                    }
                    if !line.trim().is_empty() {
                        head.push(line.trim().to_owned());
                        continue;
                    }
                    log.lock().unwrap().push(std::mem::take(&mut head).join("\n"));
                    let Some(answer) = answers.next() else { return };
                    if (&stream).write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (port, seen)
}

fn http_page(page: &str) -> String {
    let length = page.len();
    format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{page}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_of_the_environment_is_used_and_sees_vetted_addresses_only() {
    let page = "<!doctype html><title>t</title><p>through the proxy<img src='http://10.0.0.5/x'><img src='http://other.test/y'>";
    let (port, seen) = company_proxy(page);
    // Nothing is sent there: the proxy answers itself.
    let url = "http://93.184.216.34:8080/page";
    let gate =
        web_gate_with(&[], |policy| policy.fetch.allowed_domains.push("93.184.216.34:8080".to_owned()));
    let fixture = web_session(&gate);
    let mut config = WebConfig::default();
    config.environment.insert("http_proxy".to_owned(), format!("http://user:word@127.0.0.1:{port}"));
    set_web_config(&fixture.session, config);
    let mut calls = vec![("WebFetch", json!({ "url": url }))];
    if has_browser() {
        calls.push(("WebFetch", json!({ "url": url, "render": true, "timeout": 100 })));
        calls.push(("Screenshot", json!({ "url": url, "timeout": 100 })));
    }
    for (tool, input) in calls {
        seen.lock().unwrap().clear();
        let output = fixture.call(tool, &input).await.unwrap();
        let seen = seen.lock().unwrap().clone();
        let tunnels: Vec<&String> = seen.iter().filter(|head| head.starts_with("CONNECT ")).collect();
        assert!(!tunnels.is_empty(), "{tool} did not use the proxy: {seen:?}");
        for tunnel in tunnels {
            assert!(tunnel.starts_with("CONNECT 93.184.216.34:8080 HTTP/1.1"), "{tool}: {tunnel}");
            assert!(tunnel.contains("Proxy-Authorization: Basic dXNlcjp3b3Jk"), "{tool}: {tunnel}");
        }
        if tool == "WebFetch" {
            assert!(page_of(&output).contains("through the proxy"), "{}", output.model_text());
        }
        assert!(!output.model_text().contains("word@"), "{}", output.model_text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_of_the_environment_that_cannot_be_used_is_not_bypassed() {
    if !has_browser() {
        return;
    }
    let gate =
        web_gate_with(&[], |policy| policy.fetch.allowed_domains.push("93.184.216.34:8080".to_owned()));
    let fixture = web_session(&gate);
    let mut config = WebConfig::default();
    config.environment.insert("all_proxy".to_owned(), "socks5://user:word@127.0.0.1:1".to_owned());
    set_web_config(&fixture.session, config);
    for tool in ["WebFetch", "Screenshot"] {
        let input = json!({ "url": "http://93.184.216.34:8080/", "timeout": 100 });
        let refusal = fixture.call(tool, &input).await.unwrap_err();
        assert!(!refusal.to_string().contains("word"), "{tool}: {refusal}");
        assert_eq!(refusal.code, Code::Fetch, "{tool}: {refusal}");
    }
}
