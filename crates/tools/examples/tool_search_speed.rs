//! How large the definitions are with 1 000 tools behind `ToolSearch`, and how long a search through the gate takes:
//! `cargo run --release -p toolgate-tools --no-default-features --example tool_search_speed`.

#![expect(clippy::print_stdout, reason = "it prints its figures")]

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use toolgate_gate::{CallOptions, FnTool, Gate, GateParts, ToolSpec, Visibility};
use toolgate_proto::{AbsPath, DefinitionFormat, Output, SourceId, ToolCall, render_definitions};
use toolgate_tools::{ToolSearchTool, Toolset, register};

/// Tools to search in.
const TOOL_COUNT: usize = 1_000;
/// Searches whose median counts.
const SEARCH_COUNT: usize = 201;
/// Bytes of definitions beyond which tools of servers wait for a search.
const MAX_REMOTE_BYTES: usize = 10_000;

/// Input of the tools.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EmptyToolInput {}

/// A schema of the size that tools of servers have.
fn tool_schema() -> Value {
    let property = |text: &str| json!({ "type": "string", "description": text });
    json!({ "type": "object", "required": ["warehouse"], "properties": {
        "warehouse": property("The identifier of the warehouse, as the list of warehouses shows it"),
        "filter": property("Only articles whose name contains this text; all of them if it is missing"),
        "order": { "type": "string", "enum": ["name", "amount", "changed"], "description": "The order of the result" },
        "limit": { "type": "integer", "minimum": 1, "maximum": 1000, "description": "The most articles of one result" },
    } })
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let visibility = Visibility::default().with_max_remote_bytes(Some(MAX_REMOTE_BYTES));
    let gate = Arc::new(Gate::new(GateParts::default().with_visibility(visibility)));
    register(&gate, Toolset::Claude)?;
    gate.register(SourceId::Builtin, ToolSearchTool::new(Arc::downgrade(&gate)))?;
    for number in 0..TOOL_COUNT {
        let name = format!("mcp__server_{}__do_{number}", number % 20);
        let text = format!(
            "Does the thing with number {number} for the warehouse in region {}. Returns the articles with their names, \
             amounts and the time of the last change, one in each line.",
            number % 37
        );
        let spec = ToolSpec::new(name.as_str(), text).with_input_schema(tool_schema());
        let tool = FnTool::new(spec, |_: EmptyToolInput, _| async { Ok(Output::text("done")) });
        let source =
            SourceId::Mcp { server: format!("server_{}", number % 20), tool: format!("do_{number}") };
        gate.register(source, tool)?;
    }
    let top = toolgate_files::resolve(&AbsPath::new(dir.path())?).real;
    let session = toolgate_testkit::session_in(&top);
    let definitions = render_definitions(&gate.definitions(&session), DefinitionFormat::Anthropic);
    println!(
        "{TOOL_COUNT} tools: the definitions have {} bytes (at most 15000 wanted)",
        definitions.to_string().len()
    );
    let mut times: Vec<Duration> = Vec::with_capacity(SEARCH_COUNT);
    for number in 0..SEARCH_COUNT {
        // One that has found nothing yet: what was found is not searched again.
        let session = toolgate_testkit::session_in(&top);
        let query = json!({ "query": format!("warehouse region {}", number % 37) }).to_string();
        let call = ToolCall::new("call", "ToolSearch", query);
        let started = Instant::now();
        let found = gate.call(&session, call, CallOptions::default()).await.result?;
        times.push(started.elapsed());
        if !found.model_text().contains("mcp__server_") {
            return Err("nothing was found".into());
        }
    }
    times.sort_unstable();
    let at = |part: usize| times.get(part).copied().unwrap_or_default().as_secs_f64() * 1e3;
    println!(
        "{TOOL_COUNT} tools: a search takes {:.2} ms (median), {:.2} ms (slowest) (at most 2 wanted)",
        at(SEARCH_COUNT / 2),
        at(SEARCH_COUNT - 1)
    );
    Ok(())
}
