//! How long a search over 1 000 tools takes, through the gate:
//! `cargo run --release -p toolgate-tools --no-default-features --example tool_search_speed`.

#![expect(clippy::print_stdout, reason = "it prints its figures")]

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use toolgate_gate::{CallOptions, FnTool, Gate, GateParts, ToolSpec};
use toolgate_proto::{AbsPath, Output, SourceId, ToolCall};
use toolgate_tools::ToolSearchTool;

/// Tools to search in.
const TOOL_COUNT: usize = 1_000;
/// Searches whose median counts.
const SEARCH_COUNT: usize = 201;

/// Input of the tools.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EmptyToolInput {}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let gate = Arc::new(Gate::new(GateParts::default()));
    gate.register(SourceId::Builtin, ToolSearchTool::new(Arc::downgrade(&gate)))?;
    for number in 0..TOOL_COUNT {
        let name = format!("mcp__server_{}__do_{number}", number % 20);
        let text = format!("Does the thing with number {number} for the warehouse in region {}", number % 37);
        let spec = ToolSpec::new(name.as_str(), text).with_input_schema(json!({ "type": "object" }));
        let tool = FnTool::new(spec, |_: EmptyToolInput, _| async { Ok(Output::text("done")) });
        let source =
            SourceId::Mcp { server: format!("server_{}", number % 20), tool: format!("do_{number}") };
        gate.register(source, tool)?;
    }
    let session = toolgate_testkit::session_in(&toolgate_files::resolve(&AbsPath::new(dir.path())?).real);
    let mut times: Vec<Duration> = Vec::with_capacity(SEARCH_COUNT);
    for number in 0..SEARCH_COUNT {
        let query = json!({ "query": format!("warehouse region {}", number % 37) }).to_string();
        let call = ToolCall::new("call", "ToolSearch", query);
        let started = Instant::now();
        gate.call(&session, call, CallOptions::default()).await.result?;
        times.push(started.elapsed());
    }
    times.sort_unstable();
    let at = |part: usize| times.get(part).copied().unwrap_or_default().as_secs_f64() * 1e3;
    println!(
        "{TOOL_COUNT} tools: a search takes {:.2} ms (median), {:.2} ms (slowest)",
        at(SEARCH_COUNT / 2),
        at(SEARCH_COUNT - 1)
    );
    Ok(())
}
