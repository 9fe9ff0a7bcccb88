//! A tool of your own: a type for its input, an intent, and what it does.
//!
//! Run with `cargo run --package toolgate --example tool`.

use toolgate::{CallContext, CallResult, Cleared, Effect, Intent, Output, Tool, ToolSpec, Toolgate};

struct WordCount;

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Input {
    /// The text to count.
    text: String,
}

impl Tool for WordCount {
    type Input = Input;

    fn spec(&self) -> ToolSpec {
        ToolSpec::new("word_count", "Counts the words of a text.").read_only()
    }

    fn intent(&self, _input: &Input, _scene: &CallContext) -> Intent {
        Intent::new("count words", [Effect::State { name: "nothing".into() }])
    }

    async fn run(&self, input: Input, _cleared: Cleared) -> CallResult {
        Ok(Output::text(input.text.split_whitespace().count().to_string()))
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // No rule speaks of the new tool by itself, so this program allows it.
    let toolgate = Toolgate::builder("/").tool(WordCount).allow("word_count").build()?;
    let closed = toolgate.call("call_1", "word_count", r#"{"text": "one boundary, one record"}"#).await;
    assert_eq!(closed.result?.model_text(), "4");
    Ok(())
}
