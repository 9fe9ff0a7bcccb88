//! A source of tools that come and go: registered under its own name, so that nobody else's tool is touched.
//!
//! Run with `cargo run --package toolgate --example source`.

use serde_json::{Map, Value, json};
use toolgate::{DefinitionFormat, FnTool, Output, SourceId, ToolSpec, Toolgate};

/// What a plugin would bring: a name, a description and a schema, known only at run time.
fn bring(toolgate: &Toolgate, name: &str) -> Result<(), toolgate::RegisterError> {
    let mut spec = ToolSpec::new(name, format!("Says hello from {name}."));
    spec.input_schema = Some(json!({ "type": "object", "properties": {}, "additionalProperties": false }));
    let tool = FnTool::new(spec, |_: Map<String, Value>, _| async { Ok(Output::text("hello")) });
    toolgate.gate().register(plugin(), tool)
}

fn plugin() -> SourceId {
    SourceId::Plugin { plugin: "greeter".into() }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let toolgate = Toolgate::builder("/").allow("greet").build()?;
    let mut events = toolgate.events();
    bring(&toolgate, "greet")?;
    assert!(matches!(events.recv().await?, toolgate::Event::ToolsChanged));
    assert!(toolgate.definitions(DefinitionFormat::Openai).to_string().contains("\"greet\""));
    assert_eq!(toolgate.call("call_1", "greet", "{}").await.result?.model_text(), "hello");

    // A built-in tool's name is taken, and both owners are named.
    let Err(collision) = bring(&toolgate, "Read") else { anyhow::bail!("two tools of one name") };
    assert_eq!(collision.to_string(), "`Read` from plugin `greeter` collides with `Read` from built-in");

    assert!(toolgate.gate().unregister(&plugin(), "greet"));
    assert!(toolgate.call("call_2", "greet", "{}").await.result.is_err());
    Ok(())
}
