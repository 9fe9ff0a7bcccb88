//! The client that the official conformance suite is run against.
//!
//! It puts the suite's server behind a gate, as any server, and calls its tools through that gate.
//!
//! Usage: `conformance_client SCENARIO VERSION CONTEXT URL`; the suite appends the URL.

#![forbid(unsafe_code)]
#![expect(clippy::print_stderr, clippy::expect_used, reason = "a program for tests fails loudly")]

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use toolgate_gate::{CallOptions, Gate, GateParts, Session};
use toolgate_mcp::client::{
    CoordinatorOptions, McpCoordinator, OauthOptions, PinStore, ServerListOrigin, ServerRequestHandler,
    SignInBrowser, SignInOptions, read_servers,
};
use toolgate_mcp::{ClientInputRequest, ProtocolEra};
use toolgate_policy::RawPolicy;
use toolgate_proto::{AbsPath, Mode, Principal, ToolCall, ToolDefinition, Workspace};

const SERVER: &str = "suite";

/// Says yes to everything, with the defaults of the form.
#[derive(Debug)]
struct Agreeable;

impl ServerRequestHandler for Agreeable {
    fn supports_sampling(&self) -> bool {
        true
    }

    fn answer<'a>(&'a self, _: &'a str, request: &'a ClientInputRequest) -> BoxFuture<'a, Option<Value>> {
        let request = request.to_json();
        let answer = match request.get("method").and_then(Value::as_str) {
            Some("elicitation/create") => {
                let schema = request.pointer("/params/requestedSchema").cloned().unwrap_or_default();
                json!({ "action": "accept", "content": filled(&schema, true) })
            }
            Some("sampling/createMessage") => {
                json!({ "role": "assistant", "model": "none", "stopReason": "endTurn",
                "content": { "type": "text", "text": "yes" } })
            }
            _ => json!({ "roots": [] }),
        };
        Box::pin(std::future::ready(Some(answer)))
    }
}

/// Follows the sign-in page's redirect without showing it to anyone.
#[derive(Debug)]
struct Headless;

impl SignInBrowser for Headless {
    fn redirect_uri(&self) -> String {
        "http://localhost:3000/callback".to_owned()
    }

    fn visit<'a>(&'a self, url: &'a str) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            let reply =
                toolgate_net::http_client()?.get(url).send().await.map_err(|error| error.to_string())?;
            let back = reply.headers().get("location").and_then(|location| location.to_str().ok());
            back.map(str::to_owned).ok_or_else(|| "the page sent us nowhere".to_owned())
        })
    }
}

/// Values that fit a schema: the defaults where there are any.
fn filled(schema: &Value, all: bool) -> Map<String, Value> {
    let required = schema.get("required").and_then(Value::as_array);
    let properties = schema.get("properties").and_then(Value::as_object);
    let wanted =
        |name: &str| all || required.is_some_and(|names| names.iter().any(|required| required == name));
    let value = |schema: &Value| match (schema.get("default"), schema.get("type").and_then(Value::as_str)) {
        (Some(default), _) => default.clone(),
        (None, Some("boolean")) => json!(true),
        (None, Some("number" | "integer")) => json!(5),
        (None, Some("array")) => json!([]),
        (None, Some("object")) => json!({}),
        _ => schema.get("enum").and_then(|options| options.get(0)).cloned().unwrap_or_else(|| json!("test")),
    };
    properties
        .into_iter()
        .flatten()
        .filter(|(name, _)| wanted(name))
        .map(|(name, schema)| (name.clone(), value(schema)))
        .collect()
}

/// A value that is null is one that is not given.
fn without_nulls(arguments: Option<&Value>) -> Value {
    let given = arguments.and_then(Value::as_object).into_iter().flatten();
    let given = given.filter(|(_, value)| !value.is_null());
    Value::Object(given.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// The calls to make: those that the scenario names, or one of each tool.
fn calls(context: &Value, tools: &[ToolDefinition]) -> Vec<(String, Value)> {
    if let Some(named) = context.get("toolCalls").and_then(Value::as_array) {
        let joined = |call: &Value| {
            format!("mcp__{SERVER}__{}", call.get("name").and_then(Value::as_str).unwrap_or(""))
        };
        return named.iter().map(|call| (joined(call), without_nulls(call.get("arguments")))).collect();
    }
    let remote = tools.iter().filter(|tool| tool.name.as_str().starts_with("mcp__"));
    remote.map(|tool| (tool.name.to_string(), Value::Object(filled(&tool.input_schema, false)))).collect()
}

#[tokio::main]
async fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let mut next = || arguments.next().unwrap_or_default();
    let (scenario, version, context, url) = (next(), next(), next(), next());
    let context: Value = serde_json::from_str(&context).unwrap_or_default();

    let gate =
        Arc::new(Gate::new(GateParts::default().with_policy(RawPolicy::default().with_mode(Mode::Bypass))));
    let root = AbsPath::root();
    let workspace = Workspace::new(root.clone());
    let session = Session::new("conformance".into(), Principal::new("sdk"), workspace);

    let mut oauth = Map::new();
    for (ours, theirs) in [("clientId", "client_id"), ("clientSecret", "client_secret")] {
        if let Some(value) = context.get(theirs) {
            oauth.insert(ours.to_owned(), value.clone());
        }
    }
    let entry = json!({ "type": "http", "url": url, "alwaysLoad": true, "roots": true, "oauth": oauth });
    let env = BTreeMap::new();
    let origin = ServerListOrigin::new("conformance", &root, &env).with_trusted(true);
    let (servers, _) = read_servers(&json!({ SERVER: entry }), &origin);
    let pins = PinStore::open(None).expect("no file is read");
    for server in &servers {
        let era = if version.as_str() >= "2026-07-28" { ProtocolEra::Modern } else { ProtocolEra::Legacy };
        pins.remember_era(&format!("conformance#{SERVER}"), &server.launch_digest(), era);
    }
    let browser = Arc::new(Headless);
    let document = Some("https://conformance-test.local/client-metadata.json".to_owned());
    let sign_in = Some(SignInOptions::new(browser).with_client_metadata_url(document));
    let access = OauthOptions::default().with_sign_in(sign_in);
    let setup = CoordinatorOptions::new(pins)
        .with_access(access)
        .with_env(env)
        .with_roots(vec![root])
        .with_ready_timeout(Duration::from_secs(20))
        .with_answerer(Arc::new(Agreeable));
    let coordinator = McpCoordinator::new(servers, setup);
    gate.add_source(coordinator.clone()).expect("the names are free");
    coordinator.wait_until_ready().await;

    let mut well = true;
    for state in coordinator.states() {
        well &= state.era.is_some();
        eprintln!("{scenario} {version}: {:?} {:?} {:?}", state.era, state.error, state.problems);
    }
    let mut made = calls(&context, &gate.definitions(&session));
    if scenario == "http-standard-headers" {
        let reading = json!({ "server": SERVER, "uri": "file:///path/to/file%20name.txt" });
        made.extend([
            ("ListMcpResourcesTool".to_owned(), json!({})),
            ("ReadMcpResourceTool".to_owned(), reading),
        ]);
    }
    for (number, (name, arguments)) in made.into_iter().enumerate() {
        let call = ToolCall::new(format!("call_{number}"), name.clone(), arguments.to_string());
        let limits = CallOptions::default().with_timeout(Some(Duration::from_secs(20)));
        let closed = gate.call(&session, call, limits).await;
        match closed.result {
            Ok(output) => eprintln!("{name}: {}", output.model_text()),
            Err(refusal) => {
                well = false;
                eprintln!("{name}: {refusal}");
            }
        }
    }
    coordinator.close().await;
    if well { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
