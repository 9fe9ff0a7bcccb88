//! What the tests share: a gate with small tools, and a client that sends lines.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use toolgate_gate::{FnTool, Gate, GateParts, MemorySink, Session, ToolSpec};
use toolgate_mcp::{ClientApprover, GateServer, ServerDescription, ToolsOnly, serve_streams};
use toolgate_policy::{Layer, LayerRules, RawPolicy, RawRule};
use toolgate_proto::{AbsPath, Output, Principal, SourceId, Workspace};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Echo {
    /// What to say.
    text: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EmptyInput {}

/// A gate with three tools: `echo` is allowed, `write` asks, `slow` waits until it is cancelled.
pub(crate) struct ServerFixture {
    pub(crate) gate: Arc<Gate>,
    pub(crate) session: Session,
    pub(crate) records: Arc<MemorySink>,
}

impl ServerFixture {
    pub(crate) fn new() -> Self {
        let records = Arc::new(MemorySink::new());
        let mut rules = LayerRules::new(Layer::User, AbsPath::root());
        rules.allow = ["echo", "slow"].map(RawRule::from).to_vec();
        let gate = Arc::new(Gate::new(
            GateParts::default()
                .with_policy(RawPolicy::default().with_layers(vec![rules]))
                .with_approvers(vec![Arc::new(ClientApprover)])
                .with_sinks(vec![Arc::clone(&records) as Arc<dyn toolgate_gate::Sink>]),
        ));
        for name in ["echo", "write"] {
            let tool = FnTool::new(ToolSpec::new(name, "Says it."), |input: Echo, _| async move {
                Ok(Output::text(input.text))
            });
            gate.register(SourceId::Sdk, tool).unwrap();
        }
        let slow = FnTool::new(
            ToolSpec::new("slow", "Waits."),
            |_: EmptyInput, cleared: toolgate_gate::Cleared| async move {
                for part in 1..=3 {
                    cleared.progress().report_fraction(f64::from(part) / 4.0, format!("step {part}"));
                }
                cleared.cancel().cancelled().await;
                Ok(Output::text("never sent"))
            },
        );
        gate.register(SourceId::Sdk, slow).unwrap();
        let root = AbsPath::root();
        let workspace = Workspace::new(root);
        let principal = Principal::new("mcp").with_name("tester");
        Self { gate, session: Session::new("test".into(), principal, workspace), records }
    }

    pub(crate) fn server(&self, page_size: usize) -> GateServer {
        let about = ServerDescription::new("stage", "1").with_page_size(page_size);
        GateServer::new(Arc::clone(&self.gate), self.session.clone(), Arc::new(ToolsOnly), about).unwrap()
    }

    pub(crate) fn client(&self) -> Client {
        Client::of(self.server(100))
    }
}

/// A client that writes and reads lines, and nothing else.
pub(crate) struct Client {
    read: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: WriteHalf<DuplexStream>,
    pub(crate) serving: tokio::task::JoinHandle<std::io::Result<()>>,
    /// What came before it was asked for.
    early: VecDeque<Value>,
}

impl Client {
    pub(crate) fn of(server: GateServer) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (source, sink) = tokio::io::split(theirs);
        let serving = tokio::spawn(serve_streams(server, Box::pin(source), Box::pin(sink)));
        let (read, write) = tokio::io::split(ours);
        Self { read: BufReader::new(read).lines(), write, serving, early: VecDeque::new() }
    }

    pub(crate) async fn line(&mut self, line: &str) {
        self.write.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.line(&message.to_string()).await;
    }

    pub(crate) async fn next(&mut self) -> Value {
        if let Some(early) = self.early.pop_front() {
            return early;
        }
        serde_json::from_str(&self.read.next_line().await.unwrap().expect("the server went on")).unwrap()
    }

    /// The reply to a request; what comes before it is kept.
    pub(crate) async fn reply(&mut self, id: u64) -> Value {
        let mut others = VecDeque::new();
        let reply = loop {
            let message = self.next().await;
            if message["id"] == id && message.get("method").is_none() {
                break message;
            }
            others.push_back(message);
        };
        self.early = others;
        reply
    }

    pub(crate) async fn ask(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })).await;
        self.reply(id).await
    }

    /// Opens a connection in the old way.
    pub(crate) async fn initialize(&mut self, capabilities: Value) -> Value {
        let reply = self
            .ask(
                0,
                "initialize",
                json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities,
                "clientInfo": { "name": "test", "version": "1" } }),
            )
            .await;
        self.send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
        reply
    }

    /// Ends the input, and waits for the server to end.
    pub(crate) async fn end(mut self) {
        self.write.shutdown().await.unwrap();
        drop(self.write);
        self.serving.await.unwrap().unwrap();
    }
}

/// What every request of the new era carries.
pub(crate) fn meta(capabilities: Value) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": capabilities,
    })
}
