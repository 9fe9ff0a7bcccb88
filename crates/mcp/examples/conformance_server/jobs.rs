//! Tools that take long enough to become tasks.

use super::rounds::{content, elicit, once_answered};
use super::tools::{none, put};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use toolgate_gate::{Cleared, Gate};
use toolgate_mcp::{ClientConversation, ClientInputRequest};
use toolgate_proto::{CallResult, Code, Output, Refusal};

/// Long enough to become a task.
const A_WHILE: Duration = Duration::from_millis(1_200);

async fn work(cleared: &Cleared, time: Duration) -> Result<(), Refusal> {
    tokio::select! {
        () = tokio::time::sleep(time) => Ok(()),
        () = cleared.cancel().cancelled() => Err(Refusal::new(Code::Cancelled, "cancelled")),
    }
}

async fn ask(cleared: &Cleared, message: &str) -> Result<Value, Refusal> {
    let failed = |why: String| Refusal::new(Code::ToolFailed, why);
    let conversation = ClientConversation::of(cleared.context(), cleared.call())
        .ok_or_else(|| failed("there is no client".to_owned()))?;
    let question = ClientInputRequest::from_json(elicit(message, "answer", "string")).map_err(failed)?;
    conversation.ask(question).await.map_err(failed)
}

pub(crate) fn register(gate: &Arc<Gate>) {
    let named =
        json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
    put(gate, "greet", named, |input, _| {
        Box::pin(async move {
            let name = input.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
            Ok(Output::text(format!("Hello, {name}!")))
        })
    });
    let timed = json!({ "type": "object", "properties": {
        "seconds": { "type": "number" }, "label": { "type": "string" } }, "required": ["seconds"] });
    put(gate, "slow_compute", timed, |input, cleared| {
        Box::pin(async move {
            let seconds = input.get("seconds").and_then(Value::as_f64).unwrap_or(0.0).clamp(0.0, 60.0);
            work(&cleared, Duration::from_secs_f64(seconds)).await?;
            Ok(Output::text(format!("computed for {seconds} s")))
        })
    });
    put(gate, "failing_job", none(), |_, cleared| {
        Box::pin(async move {
            work(&cleared, A_WHILE).await?;
            Err(Refusal::new(Code::ToolFailed, "this job always fails"))
        })
    });
    put(gate, "protocol_error_job", none(), |_, cleared| {
        Box::pin(async move {
            work(&cleared, A_WHILE).await?;
            crash()
        })
    });
    put(gate, "test_tool_with_task", none(), |_, cleared| {
        Box::pin(async move {
            let asked = [("user_name", elicit("What is your name?", "name", "string"))];
            let greeting = once_answered(&cleared, &asked, None, |said| content(said, "user_name", "name"))?;
            work(&cleared, A_WHILE).await?;
            Ok(greeting)
        })
    });
    let file = json!({ "type": "object", "properties": { "filename": { "type": "string" } } });
    put(gate, "confirm_delete", file, |_, cleared| {
        Box::pin(async move {
            work(&cleared, A_WHILE).await?;
            let answer = ask(&cleared, "Delete it?").await?;
            Ok(Output::text(format!("answered: {answer}")))
        })
    });
    put(gate, "multi_input", none(), |_, cleared| {
        Box::pin(async move {
            work(&cleared, A_WHILE).await?;
            let (first, second) =
                tokio::join!(ask(&cleared, "What is your name?"), ask(&cleared, "How old are you?"));
            Ok(Output::text(format!("answered: {} {}", first?, second?)))
        })
    });
}

/// What the gate makes of a tool that breaks.
#[expect(clippy::panic, reason = "the fixture is a tool that breaks")]
fn crash() -> CallResult {
    panic!("this job breaks")
}
