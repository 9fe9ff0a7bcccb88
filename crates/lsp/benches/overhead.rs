//! What the tool costs beside the answer of the server itself: a question through the gate and the same question asked
//! directly, 500 files opened, and an idle server.
//!
//! Run with `cargo bench -p toolgate-lsp --bench overhead`. Needs Python for the fake server.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a bench fails by panicking, makes its own files and prints its figures"
)]

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use toolgate_gate::{Gate, GateParts};
use toolgate_lsp::{
    LaunchOptions, LspSandbox, LspServerEntry, LspSource, MessageReader, PoolOptions, ServerPool,
    StartPermission, frame_message,
};
use toolgate_process::{ServerLaunch, ServerProcess};
use toolgate_proto::AbsPath;
use toolgate_testkit::GateFixture;

/// The fake server of the tests.
const FAKE_SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake_server.py");
/// Questions that are measured.
const QUESTION_COUNT: usize = 1_000;
/// Files that are opened.
const FILE_COUNT: usize = 500;

struct AllowedStart;

impl StartPermission for AllowedStart {
    fn check_start(&self, _: &LspServerEntry) -> Result<Option<LspSandbox>, String> {
        Ok(None)
    }
}

fn environment() -> BTreeMap<String, String> {
    BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap_or_default())])
}

/// The median and the 95th percentile, in microseconds.
fn percentiles(mut times: Vec<Duration>) -> (u128, u128) {
    times.sort();
    (times[times.len() / 2].as_micros(), times[times.len() * 95 / 100].as_micros())
}

/// The server without toolgate around it.
struct DirectServer {
    _process: ServerProcess,
    output: MessageReader<tokio::net::unix::pipe::Receiver>,
    input: tokio::net::unix::pipe::Sender,
    next: u64,
}

impl DirectServer {
    async fn start(root: &AbsPath) -> Self {
        let args = vec![FAKE_SERVER.to_owned(), "good".to_owned()];
        let launch = ServerLaunch::new("python3", args, root.clone());
        let (process, output, input) = ServerProcess::start(&launch, &environment()).unwrap();
        let mut server = Self { _process: process, output: MessageReader::new(output), input, next: 0 };
        server.ask("initialize", json!({})).await;
        server
    }

    async fn send(&mut self, message: Value) {
        self.input.write_all(&frame_message(message.to_string().as_bytes())).await.unwrap();
    }

    async fn open(&mut self, path: &AbsPath) {
        let text = std::fs::read_to_string(path).unwrap();
        let document = json!({ "uri": format!("file://{path}"), "version": 1, "text": text });
        self.send(json!({ "method": "textDocument/didOpen", "params": { "textDocument": document } })).await;
    }

    async fn ask(&mut self, method: &str, params: Value) {
        self.next += 1;
        self.send(json!({ "id": self.next, "method": method, "params": params })).await;
        loop {
            let body = self.output.read_message().await.unwrap().unwrap();
            if serde_json::from_slice::<Value>(&body).unwrap()["id"] == self.next {
                return;
            }
        }
    }
}

/// The CPU time of this process, in milliseconds.
fn cpu_millis() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit_once(") ").unwrap().1.split(' ').collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    ticks * 10
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(measure());
}

async fn measure() {
    let mut entry = LspServerEntry::new("fake", "python3");
    entry.args = vec![FAKE_SERVER.to_owned(), "good".to_owned()];
    entry.languages = BTreeMap::from([(".fake".to_owned(), "fake".to_owned())]);
    let temp_dir = AbsPath::new(std::env::temp_dir()).unwrap();
    let launch = LaunchOptions::new(environment(), temp_dir, Arc::new(AllowedStart));
    let pool = ServerPool::new(PoolOptions::new(vec![entry], launch));
    let gate = Arc::new(Gate::new(GateParts::default()));
    gate.add_source(LspSource::new("LSP", Arc::clone(&pool))).unwrap();
    let fixture = GateFixture::new(gate).unwrap();
    let files: Vec<AbsPath> =
        (0..FILE_COUNT).map(|index| fixture.root.join(format!("f{index}.fake"))).collect();
    for file in &files {
        std::fs::write(file, "target and more text\n".repeat(100)).unwrap();
    }
    let mut direct = DirectServer::start(&fixture.root).await;
    direct.open(&files[0]).await;
    let position = json!({ "line": 0, "character": 0 });
    let params = json!({ "textDocument": { "uri": format!("file://{}", files[0]) }, "position": position });
    let question = json!({ "operation": "hover", "filePath": files[0], "line": 1, "character": 1 });
    fixture.call("LSP", &question).await.unwrap();

    // Taken in turns, so that both meet the same load of the machine.
    let (mut alone, mut gated) = (Vec::new(), Vec::new());
    for _ in 0..QUESTION_COUNT {
        let started = Instant::now();
        direct.ask("textDocument/hover", params.clone()).await;
        alone.push(started.elapsed());
        let started = Instant::now();
        fixture.call("LSP", &question).await.unwrap();
        gated.push(started.elapsed());
    }
    let (alone, gated) = (percentiles(alone), percentiles(gated));
    println!("hover, server alone: p50 {} µs, p95 {} µs", alone.0, alone.1);
    println!("hover through the gate: p50 {} µs, p95 {} µs", gated.0, gated.1);
    println!("overhead at p50: {} µs (bar 1000)", gated.0.saturating_sub(alone.0));

    let started = Instant::now();
    for file in &files {
        direct.open(file).await;
        let params = json!({ "textDocument": { "uri": format!("file://{file}") } });
        direct.ask("textDocument/documentSymbol", params).await;
    }
    let alone = started.elapsed();
    let started = Instant::now();
    for file in &files {
        fixture.call("LSP", &json!({ "operation": "documentSymbol", "filePath": file })).await.unwrap();
    }
    let gated = started.elapsed();
    println!(
        "{FILE_COUNT} files opened and listed: server alone {} ms, through the gate {} ms, more: {} ms (bar 1000)",
        alone.as_millis(),
        gated.as_millis(),
        gated.saturating_sub(alone).as_millis()
    );

    let before = cpu_millis();
    tokio::time::sleep(Duration::from_secs(5)).await;
    println!("5 s with an idle server: {} ms of CPU time (bar 0)", cpu_millis() - before);
    pool.close().await;
}
