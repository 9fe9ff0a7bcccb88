//! `ToolSearch`: many tools of MCP servers, few definitions.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use toolgate::{DefinitionFormat, FnTool, Output, SourceId, ToolSpec, Toolgate};

/// A tool without input.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoInput {}

/// A gate with so many tools of a server behind it.
fn gate_with_tools(count: usize, budget: usize) -> (tempfile::TempDir, Toolgate) {
    let dir = tempfile::tempdir().unwrap();
    let toolgate = Toolgate::builder(dir.path()).defer_tools_beyond(budget).build().unwrap();
    for number in 0..count {
        let name = format!("mcp__big__tool_{number}");
        let spec =
            ToolSpec::new(name.as_str(), format!("Does the thing with number {number} of the warehouse"))
                .with_input_schema(
                    json!({ "type": "object", "properties": {}, "additionalProperties": false }),
                );
        let tool = FnTool::new(spec, |_: NoInput, _| async { Ok(Output::text("done")) });
        let source = SourceId::Mcp { server: "big".to_owned(), tool: format!("tool_{number}") };
        toolgate.gate().register(source, tool).unwrap();
    }
    (dir, toolgate)
}

fn names(toolgate: &Toolgate) -> Vec<String> {
    toolgate.tools().into_iter().map(|tool| tool.name.as_str().to_owned()).collect()
}

#[tokio::test]
async fn a_thousand_tools_are_found_and_not_listed() {
    let (_dir, toolgate) = gate_with_tools(1_000, 10_000);
    let definitions = toolgate.definitions(DefinitionFormat::Anthropic).to_string();
    assert!(definitions.len() <= 15_000, "{} bytes", definitions.len());
    assert!(names(&toolgate).contains(&"ToolSearch".to_owned()));
    let found = toolgate.call("1", "ToolSearch", r#"{"query":"warehouse 417"}"#).await.result.unwrap();
    assert!(found.model_text().contains("mcp__big__tool_417"), "{}", found.model_text());
    assert!(names(&toolgate).contains(&"mcp__big__tool_417".to_owned()));
    let input = r#"{"query":"select:mcp__big__tool_3,mcp__big__tool_4"}"#;
    toolgate.call("2", "ToolSearch", input).await.result.unwrap();
    assert!(names(&toolgate).contains(&"mcp__big__tool_4".to_owned()));
    // A tool that is not listed can be called by name, and is judged as any other.
    let refusal = toolgate.call("3", "mcp__big__tool_9", "{}").await.result.unwrap_err();
    assert_ne!(refusal.kind, "ToolNotFoundError");
}

#[tokio::test]
async fn few_tools_are_listed_and_need_no_search() {
    let (_dir, toolgate) = gate_with_tools(3, 10_000);
    assert!(names(&toolgate).contains(&"mcp__big__tool_2".to_owned()));
    assert!(!names(&toolgate).contains(&"ToolSearch".to_owned()));
}
