//! Telemetry, received by a small OTLP collector on loopback with its own protobuf decoder.

use super::cli_fixture::CliFixture;
use super::newcomer::{is_as_shown, page_blocks};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use toolgate::Toolgate;
use toolgate::telemetry::{TelemetryOptions, TelemetrySink};

/// The path and body of each request to the collector.
type Got = Arc<Mutex<Vec<(String, Vec<u8>)>>>;

fn collector() -> (String, Got) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let got = Got::default();
    let kept = Arc::clone(&got);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let kept = Arc::clone(&kept);
            std::thread::spawn(move || serve(stream, &kept));
        }
    });
    (address, got)
}

fn serve(stream: TcpStream, got: &Got) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut first = String::new();
        if reader.read_line(&mut first).unwrap_or(0) == 0 {
            return;
        }
        let path = first.split(' ').nth(1).unwrap().to_owned();
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            match line.trim().split_once(": ") {
                Some((name, value)) => headers.insert(name.to_ascii_lowercase(), value.to_owned()),
                None => break,
            };
        }
        assert_eq!(headers["content-type"], "application/x-protobuf");
        assert_eq!(headers["x-from"], "test");
        let mut body = vec![0; headers["content-length"].parse().unwrap()];
        reader.read_exact(&mut body).unwrap();
        got.lock().unwrap().push((path, body));
        let answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";
        reader.get_mut().write_all(answer).unwrap();
    }
}

/// A field of a protobuf message, decoded without its schema.
#[derive(Debug, Clone)]
enum Field {
    Number(u64),
    Bytes(Vec<u8>),
}

#[derive(Debug, Clone, Default)]
struct Message(Vec<(u64, Field)>);

impl Message {
    fn read(mut bytes: &[u8]) -> Self {
        fn varint(bytes: &mut &[u8]) -> u64 {
            let mut value = 0;
            for shift in (0..64).step_by(7) {
                let (first, rest) = bytes.split_first().unwrap();
                *bytes = rest;
                value |= u64::from(first & 0x7f) << shift;
                if first & 0x80 == 0 {
                    break;
                }
            }
            value
        }
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let key = varint(&mut bytes);
            let field = match key & 7 {
                0 => Field::Number(varint(&mut bytes)),
                1 => {
                    let (number, rest) = bytes.split_at(8);
                    bytes = rest;
                    Field::Number(u64::from_le_bytes(number.try_into().unwrap()))
                }
                2 => {
                    let length = usize::try_from(varint(&mut bytes)).unwrap();
                    let (inner, rest) = bytes.split_at(length);
                    bytes = rest;
                    Field::Bytes(inner.to_vec())
                }
                5 => {
                    let (number, rest) = bytes.split_at(4);
                    bytes = rest;
                    Field::Number(u64::from(u32::from_le_bytes(number.try_into().unwrap())))
                }
                other => panic!("wire type {other}"),
            };
            fields.push((key >> 3, field));
        }
        Self(fields)
    }

    fn all(&self, number: u64) -> impl Iterator<Item = Message> + '_ {
        self.0.iter().filter(move |(field, _)| *field == number).filter_map(|(_, field)| match field {
            Field::Bytes(bytes) => Some(Message::read(bytes)),
            Field::Number(_) => None,
        })
    }

    fn text(&self, number: u64) -> String {
        String::from_utf8(self.bytes(number)).unwrap()
    }

    fn bytes(&self, number: u64) -> Vec<u8> {
        self.0
            .iter()
            .find_map(|(field, value)| match value {
                Field::Bytes(bytes) if *field == number => Some(bytes.clone()),
                _ => None,
            })
            .unwrap_or_default()
    }

    fn number(&self, number: u64) -> u64 {
        self.0
            .iter()
            .find_map(|(field, value)| match value {
                Field::Number(value) if *field == number => Some(*value),
                _ => None,
            })
            .unwrap_or(0)
    }

    /// `key` and `value.string_value` of attributes in this field.
    fn attributes(&self, number: u64) -> BTreeMap<String, String> {
        self.all(number)
            .map(|pair| {
                let value = pair.all(2).next().unwrap_or_default();
                let text = value.text(1);
                (pair.text(1), if text.is_empty() { value.number(3).to_string() } else { text })
            })
            .collect()
    }
}

/// The spans or metrics of all requests to a path: resource, scope and item are the fields 1, 2 and 2.
fn things(got: &Got, path: &str) -> Vec<Message> {
    let got = got.lock().unwrap();
    let bodies = got.iter().filter(|(at, _)| at == path);
    bodies
        .flat_map(|(_, body)| Message::read(body).all(1).collect::<Vec<_>>())
        .flat_map(|resource| resource.all(2).collect::<Vec<_>>())
        .flat_map(|scope| scope.all(2).collect::<Vec<_>>())
        .collect()
}

#[test]
fn a_collector_gets_spans_and_metrics_by_the_conventions() {
    let (endpoint, got) = collector();
    let mut options = TelemetryOptions::new(endpoint);
    options.headers.insert("x-from".to_owned(), "test".to_owned());
    options.interval = Duration::from_secs(3600);
    let telemetry = Arc::new(TelemetrySink::start(options).unwrap());
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("secret-name.txt"), "secret content").unwrap();
    let toolgate = Toolgate::builder(dir.path().canonicalize().unwrap())
        .sink(Arc::clone(&telemetry))
        .session("ses_1")
        .build()
        .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let path = dir.path().canonicalize().unwrap().join("secret-name.txt");
        let input = serde_json::json!({ "file_path": path }).to_string();
        assert!(toolgate.call("good", "Read", &input).await.result.is_ok());
        assert!(toolgate.call("bad", "Read", "{}").await.result.is_err());
        assert!(toolgate.call("odd", "made-up-by-a-model", "{}").await.result.is_err());
    });
    telemetry.shutdown().unwrap();

    let spans = things(&got, "/v1/traces");
    let named = |name: &str| -> Vec<&Message> { spans.iter().filter(|span| span.text(5) == name).collect() };
    let calls = named("execute_tool Read");
    assert_eq!(calls.len(), 2);
    let good = calls.iter().find(|span| span.attributes(9)["gen_ai.tool.call.id"] == "good").unwrap();
    let attributes = good.attributes(9);
    for (key, value) in [
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "Read"),
        ("gen_ai.tool.type", "function"),
        ("gen_ai.conversation.id", "ses_1"),
        ("toolgate.verdict", "allow"),
    ] {
        assert_eq!(attributes[key], value, "{attributes:?}");
    }
    let stages: Vec<String> = spans
        .iter()
        .filter(|span| span.bytes(4) == good.bytes(2) && span.bytes(1) == good.bytes(1))
        .map(|span| span.text(5))
        .collect();
    assert_eq!(stages, ["resolve", "validate", "screen", "judge", "settle", "guard", "run", "finish"]);
    assert!(good.number(7) <= good.number(8), "it ends after it starts");
    let bad = calls.iter().find(|span| span.attributes(9)["gen_ai.tool.call.id"] == "bad").unwrap();
    assert_eq!(bad.attributes(9)["error.type"], "ValidationError");
    assert_eq!(bad.all(15).next().unwrap().number(3), 2, "the status is an error");

    let metrics = things(&got, "/v1/metrics");
    let names: Vec<String> = metrics.iter().map(|metric| metric.text(1)).collect();
    for name in ["toolgate.calls", "gen_ai.client.operation.duration", "toolgate.output.size"] {
        assert!(names.iter().any(|got| got == name), "{names:?}");
    }
    let counted = metrics.iter().find(|metric| metric.text(1) == "toolgate.calls").unwrap();
    let points: Vec<Message> = counted.all(7).flat_map(|sum| sum.all(1).collect::<Vec<_>>()).collect();
    assert_eq!(points.iter().map(|point| point.number(6)).sum::<u64>(), 3);
    let tools: Vec<String> =
        points.iter().map(|point| point.attributes(7)["gen_ai.tool.name"].clone()).collect();
    assert!(tools.contains(&"unknown".to_owned()) && !tools.contains(&"made-up-by-a-model".to_owned()));

    let wire: Vec<u8> = got.lock().unwrap().iter().flat_map(|(_, body)| body.clone()).collect();
    let wire = String::from_utf8_lossy(&wire).into_owned();
    assert!(!wire.contains("secret"), "neither inputs nor outputs are sent");
}

/// The page shows a real trace: the program exports one, the small collector prints it, and that is on the page.
#[test]
fn the_trace_on_the_page_is_what_the_collector_prints() {
    let fixture = CliFixture::new();
    let file = fixture.write("a.txt", "one\n");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/otlp-collector.py");
    let mut collector = Command::new("python3").arg(script).arg("0").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(collector.stdout.take().unwrap()).lines().map_while(Result::ok);
    let listening = lines.next().unwrap();
    let endpoint = listening.strip_prefix("listening on ").unwrap();
    let input = serde_json::json!({ "file_path": file }).to_string();
    let called = fixture
        .command(&["call", "Read", &input])
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        .output()
        .unwrap();
    // The program has exported everything before it ends, and the collector answers after it has printed.
    collector.kill().unwrap();
    collector.wait().unwrap();
    assert!(called.status.success(), "{}", String::from_utf8_lossy(&called.stderr));
    let (metrics, trace): (Vec<String>, Vec<String>) = lines.partition(|line| line.starts_with("metric "));
    let printed = [trace, metrics].concat().join("\n");
    let blocks = page_blocks();
    let shown = blocks.iter().find(|block| block.page == "telemetry.md" && block.mark == "text").unwrap();
    assert!(is_as_shown(&shown.lines, &printed), "the collector printed:\n{printed}");
}
