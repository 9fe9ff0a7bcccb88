//! The prompt tool: a tool that answers permission requests.

use super::hook_fixture::HookFixture;
use serde_json::{Value, json};
use toolgate::{Code, FnTool, Output, PromptTool, Refusal, ToolSpec, Toolgate};

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct PromptInput {
    /// The tool.
    tool_name: String,
    /// Its input.
    input: serde_json::Map<String, Value>,
    /// The call.
    tool_use_id: String,
}

/// Calls `ls /etc` with a prompt tool that gives this answer, and returns how the call ended.
fn answered(answer: Result<&'static str, &'static str>, deny_prompt: bool) -> Result<String, Code> {
    let fixture = HookFixture::new();
    let asks = FnTool::new(ToolSpec::new("Approve", "Approves."), move |asked: PromptInput, _| async move {
        assert_eq!((asked.tool_name.as_str(), asked.tool_use_id.as_str()), ("ls", "c"));
        assert!(asked.input.contains_key("path"));
        match answer {
            Ok("panic") => panic!("panics on request"),
            Ok(text) => Ok(Output::text(text)),
            Err(reason) => Err(Refusal::new(Code::ToolFailed, reason)),
        }
    });
    let prompt = PromptTool::new("Approve");
    let mut builder = Toolgate::builder(fixture.path("")).tool(asks).approver(prompt.clone());
    if deny_prompt {
        builder = builder.deny("Approve");
    }
    let toolgate = builder.build().unwrap();
    prompt.connect(&toolgate);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let outcome = runtime.block_on(toolgate.call("c", "ls", r#"{"path":"/etc"}"#));
    outcome.result.map(|output| output.model_text()).map_err(|refusal| refusal.code)
}

#[test]
fn the_answer_of_a_prompt_tool_decides_and_every_failure_refuses() {
    let echo = json!({ "behavior": "allow", "updatedInput": { "path": "/etc" } }).to_string();
    assert!(answered(Ok(r#"{"behavior":"allow"}"#), false).unwrap().contains("passwd"));
    assert!(
        answered(Ok(echo.leak()), false).unwrap().contains("passwd"),
        "the same input as an update allows the call"
    );
    let inside = r#"{"behavior":"allow","updatedInput":{"path":"."}}"#;
    assert!(!answered(Ok(inside), false).unwrap().contains("passwd"), "a revised input is what runs");
    for (answer, code) in [
        (Ok(r#"{"behavior":"deny","message":"no"}"#), Code::Declined),
        (Ok(r#"{"behavior":"perhaps"}"#), Code::ApprovalLost),
        (Ok("yes"), Code::ApprovalLost),
        (Ok(""), Code::ApprovalLost),
        (Ok(r#"{"behavior":"allow","behavior":"deny"}"#), Code::ApprovalLost),
        (
            Ok(r#"{"behavior":"allow","updatedPermissions":[{"type":"setMode","mode":"bypass"}]}"#),
            Code::ApprovalLost,
        ),
        (Err("broken"), Code::ApprovalLost),
        (Ok("panic"), Code::ApprovalLost),
    ] {
        assert_eq!(answered(answer, false), Err(code), "{answer:?}");
    }
    // A rule that denies the prompt tool counts.
    assert_eq!(answered(Ok(r#"{"behavior":"allow"}"#), true), Err(Code::ApprovalLost));
}
