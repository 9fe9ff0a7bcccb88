//! A server that misbehaves on purpose, and a gate that may reach it and nothing else that is not public.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use toolgate_gate::{CallOptions, CallOutcome, Gate, GateParts};
use toolgate_policy::RawPolicy;
use toolgate_policy::url::FetchSettings;
use toolgate_proto::{Output, Refusal, ToolCall};
use toolgate_testkit::GateFixture;
use toolgate_tools::{Toolset, register};

/// A program of `scripts/web` that serves on loopback until it is dropped.
pub(crate) struct ScriptServer {
    child: Child,
    pub(crate) port: u16,
}

impl ScriptServer {
    pub(crate) fn start(script: &str, arguments: &[&str]) -> Self {
        let mut child = Command::new("python3")
            .arg(script_path(script))
            .args(["--port", "0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .expect("the tests of the web tools need python3");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port =
            line.trim().strip_prefix("ready ").expect("the server says that it is ready").parse().unwrap();
        Self { child, port }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The requests that the server has seen.
    pub(crate) fn log(&self) -> Vec<Value> {
        serde_json::from_str(&http_get(self.port, "/_log")).unwrap()
    }
}

impl Drop for ScriptServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The path of a program in `scripts/web`.
pub(crate) fn script_path(script: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scripts/web").join(script)
}

/// The body of a plain request, by a client that shares nothing with the one under test.
fn http_get(port: u16, path: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// Both toolsets behind a gate whose rules name one server.
pub(crate) fn web_gate(ports: &[u16]) -> Arc<Gate> {
    web_gate_with(ports, |_| ())
}

pub(crate) fn web_gate_with(ports: &[u16], change: impl FnOnce(&mut RawPolicy)) -> Arc<Gate> {
    let hosts: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let mut policy = RawPolicy::default()
        .with_fetch(FetchSettings::default().with_allowed_domains(hosts.clone()).with_allow_private(hosts));
    change(&mut policy);
    let gate = Gate::new(GateParts::default().with_policy(policy));
    register(&gate, Toolset::Claude).unwrap();
    register(&gate, Toolset::Plain).unwrap();
    Arc::new(gate)
}

/// A session of its own behind a gate.
pub(crate) fn web_session(gate: &Arc<Gate>) -> GateFixture {
    GateFixture::new(Arc::clone(gate)).unwrap()
}

/// Fetches with the claude toolset. What is slow on purpose gets little time, and the rest enough for a busy machine.
pub(crate) async fn fetch(fixture: &GateFixture, url: &str) -> Result<Output, Refusal> {
    let seconds = if url.contains("/slow/") { 3 } else { 100 };
    fixture.call("WebFetch", &json!({ "url": url, "timeout": seconds })).await
}

/// The page of a result, without the marks around it.
pub(crate) fn page_of(output: &Output) -> String {
    let text = output.model_text();
    let is_marked = text.starts_with("[web content ");
    let start = text.find("\n\n").filter(|_| is_marked).map_or(0, |at| at + 2);
    let end = text.rfind("\n\n[end ").unwrap_or(text.len());
    text[start..end].to_owned()
}

/// A call with options of its own.
pub(crate) async fn call_with(
    fixture: &GateFixture,
    tool: &str,
    input: &Value,
    options: CallOptions,
) -> CallOutcome {
    fixture.gate.call(&fixture.session, ToolCall::new("call_x", tool, input.to_string()), options).await
}
