//! Hooks of tasks: `TaskCreated` may remove what was added, `TaskCompleted` may keep a task open.

use super::hook_fixture::HookFixture;
use serde_json::{Value, json};
use toolgate::{CallOutcome, Code, Toolgate};

async fn call(toolgate: &Toolgate, tool: &str, input: Value) -> CallOutcome {
    toolgate.call("call", tool, &input.to_string()).await
}

/// A toolgate with one hook, a shell command line.
fn with_hook(fixture: &HookFixture, event: &str, command: &str) -> Toolgate {
    let handler = json!({ "type": "command", "command": command });
    // A matcher has no meaning for tasks.
    fixture.toolgate(&json!({ "hooks": { event: [{ "matcher": "Nothing", "hooks": [handler] }] } }))
}

#[tokio::test]
async fn a_hook_can_take_back_a_new_task() {
    let fixture = HookFixture::new();
    let command = "cat > seen; grep -q 'forbidden' seen && { echo 'not this one' >&2; exit 2; }; exit 0";
    let toolgate = with_hook(&fixture, "TaskCreated", command);
    let refused = call(&toolgate, "TaskCreate", json!({ "subject": "forbidden", "description": "d" })).await;
    let refusal = refused.result.unwrap_err();
    assert_eq!(refusal.code, Code::HookDenied);
    assert!(refusal.reason.contains("not this one"), "{refusal}");
    assert_eq!(refused.record.hooks[0].event, "TaskCreated");
    let seen: Value = serde_json::from_str(&std::fs::read_to_string(fixture.path("seen")).unwrap()).unwrap();
    assert_eq!(seen["hook_event_name"], "TaskCreated");
    assert_eq!((&seen["task_id"], &seen["task_subject"]), (&json!("1"), &json!("forbidden")));
    assert_eq!(seen["task_description"], "d");
    let list = call(&toolgate, "TaskList", json!({})).await.result.unwrap();
    assert_eq!(list.structured.unwrap()["tasks"], json!([]));
    let made = call(&toolgate, "TaskCreate", json!({ "subject": "fine", "description": "d" })).await;
    assert!(made.result.is_ok());
}

#[tokio::test]
async fn a_hook_that_denies_or_fails_keeps_a_task_open() {
    for (command, code) in [
        ("echo 'the tests fail' >&2; exit 2", Code::HookDenied),
        ("exit 1", Code::HookFailed),
        (r#"echo '{"continue": false, "stopReason": "enough"}'"#, Code::HookStopped),
        (r#"echo '{"decision": "block", "reason": "no"}'"#, Code::HookDenied),
    ] {
        let fixture = HookFixture::new();
        let toolgate = with_hook(&fixture, "TaskCompleted", command);
        call(&toolgate, "TaskCreate", json!({ "subject": "s", "description": "d" })).await.result.unwrap();
        let input = json!({ "taskId": "1", "status": "completed" });
        let outcome = call(&toolgate, "TaskUpdate", input).await;
        assert_eq!(outcome.result.unwrap_err().code, code, "{command}");
        let task = call(&toolgate, "TaskGet", json!({ "taskId": "1" })).await.result.unwrap();
        assert_eq!(task.structured.unwrap()["task"]["status"], "pending", "{command}");
        // Other changes need no hook.
        let claimed = call(&toolgate, "TaskUpdate", json!({ "taskId": "1", "status": "in_progress" })).await;
        assert!(claimed.result.is_ok(), "{command}");
    }
    let fixture = HookFixture::new();
    let toolgate = with_hook(&fixture, "TaskCompleted", "echo x >> runs");
    call(&toolgate, "TaskCreate", json!({ "subject": "s", "description": "d" })).await.result.unwrap();
    for _ in 0..2 {
        let input = json!({ "taskId": "1", "status": "completed" });
        call(&toolgate, "TaskUpdate", input).await.result.unwrap();
    }
    let runs = std::fs::read_to_string(fixture.path("runs")).unwrap();
    assert_eq!(runs, "x\n", "a completed task is not completed again");
}
