//! A tool of the embedding program: a type for its input, an intent, and a run.
//!
//! Run with `cargo run --package toolgate --example tool`.

use toolgate::schemars::JsonSchema;
use toolgate::serde::Deserialize;
use toolgate::{CallContext, CallResult, Cleared, Intent, Output, Tool, ToolSpec, Toolgate};

struct WordCount;

// A program that depends on serde and schemars itself needs neither `crate`.
#[derive(Deserialize, JsonSchema)]
#[serde(crate = "toolgate::serde", deny_unknown_fields)]
#[schemars(crate = "toolgate::schemars")]
struct WordCountInput {
    /// The text to count.
    text: String,
}

impl Tool for WordCount {
    type Input = WordCountInput;

    fn spec(&self) -> ToolSpec {
        ToolSpec::new("word_count", "Counts the words of a text.").read_only()
    }

    fn intent(&self, _input: &WordCountInput, _context: &CallContext) -> Intent {
        // It touches no file, no process and no network, so policy allows it without a rule.
        Intent::none("count words")
    }

    async fn run(&self, input: WordCountInput, _cleared: Cleared) -> CallResult {
        Ok(Output::text(input.text.split_whitespace().count().to_string()))
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let toolgate = Toolgate::builder("/").tool(WordCount).build()?;
    let outcome = toolgate.call("call_1", "word_count", r#"{"text": "one boundary, one record"}"#).await;
    assert_eq!(outcome.result?.model_text(), "4");
    Ok(())
}
