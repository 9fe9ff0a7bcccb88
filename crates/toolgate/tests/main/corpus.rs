//! Known ways in which hooks and confirmations of agent runtimes failed, really executed.
//!
//! The cases stand in the policy's corpus.
//! Rules about the text of commands are judged there; here the tool `DeployInput` stands in for the command, and rules for
//! the command are rules for it.

use super::hook_desk::HookDesk;
use serde_json::{Value, json};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolgate::{
    ApprovalAnswer, ApprovalBus, ApprovalReply, ApprovalResponder, CallOptions, ToolCall, Toolgate,
};

fn cases(class: &str) -> Vec<Value> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../policy/tests/corpus/misc.jsonl");
    let text = std::fs::read_to_string(file).unwrap();
    let all = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    all.filter(|case| case["class"] == class).collect()
}

/// A shell line that ends as the case says.
fn script(desk: &HookDesk, index: usize, outcome: &Value) -> Value {
    if outcome["timeout"] == true {
        return json!({ "type": "command", "command": "sleep 100", "timeout": 0.2 });
    }
    if outcome.get("spawn_error").is_some() {
        let file = desk.write("not-executable", "#!/bin/sh\n");
        return json!({ "type": "command", "command": file, "args": [] });
    }
    let write = |name: &str| {
        let path = desk.write(&format!("{name}-{index}"), outcome[name].as_str().unwrap_or_default());
        path.display().to_string()
    };
    let end = match outcome["signal"].as_i64() {
        Some(signal) => format!("kill -{signal} $$"),
        None => format!("exit {}", outcome["exit"].as_i64().unwrap_or(0)),
    };
    let line = format!("cat {}; cat {} >&2; {end}", write("stdout"), write("stderr"));
    json!({ "type": "command", "command": line })
}

#[test]
fn hooks_of_the_corpus() {
    let mut judged = 0;
    for case in cases("hook") {
        let (input, policy) = (&case["input"], &case["policy"]);
        // The input that the hook writes is denied by a rule on its text, which the stand-in cannot have; that a
        // rewritten input is judged again is shown by the next test.
        if policy["deny"] == json!(["Bash(touch *)"]) {
            continue;
        }
        let desk = HookDesk::new();
        let outcomes = match &input["outcome"] {
            Value::Array(outcomes) => outcomes.clone(),
            one => vec![one.clone()],
        };
        let mut handlers: Vec<Value> =
            outcomes.iter().enumerate().map(|(index, outcome)| script(&desk, index, outcome)).collect();
        if policy["hook_required"] == false {
            handlers.iter_mut().for_each(|handler| handler["onFailure"] = json!("continue"));
        }
        let stand_in = |rules: &Value| match rules.as_array().is_some_and(|rules| !rules.is_empty()) {
            true => json!(["Deploy"]),
            false => json!([]),
        };
        let matcher = if input["matcher"] == "Write" { "Write" } else { "Deploy" };
        let settings = json!({
            "permissions": { "allow": stand_in(&policy["allow"]), "deny": stand_in(&policy["deny"]) },
            "hooks": { "PreToolUse": [{ "matcher": matcher, "hooks": handlers }] },
        });
        let toolgate = desk.toolgate(&settings);
        let ran = HookDesk::call(&toolgate, "npm run deploy").result.is_ok();
        // A consent answers the question that no rule asked, which the corpus counts as asked for.
        assert_eq!(ran, case["expect"] == "allow", "{case}");
        judged += 1;
    }
    assert!(judged >= 14, "{judged}");
}

#[test]
fn an_input_that_a_hook_or_a_person_rewrote_is_judged_again() {
    let desk = HookDesk::new();
    let rewrite = r#"echo '{"decision":"approve","updatedInput":{"path":"/etc"}}'"#;
    let settings = json!({
        "permissions": { "ask": ["WebSearch"] },
        "hooks": { "PreToolUse": [{ "matcher": "ls", "hooks": [{ "type": "command", "command": rewrite }] }] },
    });
    let toolgate = desk.toolgate(&settings);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // The hook's consent may answer the question about the place outside; a deny of it stands.
    let closed = runtime.block_on(toolgate.call("c", "ls", "{}"));
    assert_eq!(closed.record.effects[0].location(), "/etc");
    let mut denied = settings;
    denied["permissions"]["deny"] = json!(["ls(*)"]);
    let toolgate = desk.toolgate(&denied);
    assert!(runtime.block_on(toolgate.call("c", "ls", "{}")).result.is_err());
}

#[test]
fn confirmations_of_the_corpus() {
    for case in cases("confirm") {
        let ran = confirm(&case["input"], &case["policy"]);
        assert_eq!(ran, case["expect"] == "allow", "{case}");
    }
}

/// Asks about a listing of a directory outside, answers as the case says, and tells whether it ran.
fn confirm(input: &Value, policy: &Value) -> bool {
    let desk = HookDesk::new();
    let bus = ApprovalBus::new("host");
    let mut requests = bus.requests();
    let toolgate = Toolgate::builder(desk.path(""))
        .approver(bus.clone())
        .approval_timeout(Duration::from_millis(400))
        .build()
        .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let cancel = CancellationToken::new();
        let limits = CallOptions::default().with_cancel(cancel.clone());
        let calling = toolgate.call_with_options(ToolCall::new("c", "ls", r#"{"path":"/etc"}"#), limits);
        let answering = async {
            let request = requests.next().await;
            if input["cancelled"] == true {
                cancel.cancel();
            }
            let reply = &input["reply"];
            if reply.is_null() {
                return;
            }
            let answer = match reply.get("updatedInput") {
                // Granted by a rule there: inside the workspace here. Denied there: outside here.
                Some(_) if policy["deny"] == json!([]) => {
                    ApprovalAnswer::Revise { input: object(json!({ "path": "." })) }
                }
                Some(_) => ApprovalAnswer::Revise { input: object(json!({ "path": "/" })) },
                None => ApprovalAnswer::Once,
            };
            let own = reply["id"] == input["request_id"];
            let shown = input.get("shown").is_none_or(|shown| *shown == input["effective"]);
            let _ = bus.reply(ApprovalReply {
                request: if own { request.id.clone() } else { "another".to_owned() },
                input_sha256: if shown {
                    request.input_sha256.clone()
                } else {
                    "of what was shown".to_owned()
                },
                answer,
                from: if reply["from"] == "subagent" {
                    ApprovalResponder::Agent
                } else {
                    ApprovalResponder::Person
                },
            });
        };
        let (closed, ()) = tokio::join!(calling, answering);
        closed.result.is_ok()
    })
}

fn object(value: Value) -> serde_json::Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[test]
fn project_settings_of_the_corpus_wait_for_trust() {
    let mut seen = 0;
    for case in cases("self-modify") {
        let input = &case["input"];
        if input["kind"] != "project_settings" || input["trusted"] == true {
            continue;
        }
        let desk = HookDesk::new();
        // The corpus writes a handler without its group and kind; whatever is there must not run.
        let text = input["text"]
            .as_str()
            .unwrap()
            .replace(r#"[{"command":"./x"}]"#, r#"[{"hooks":[{"type":"command","command":"touch told"}]}]"#);
        desk.write(".toolgate/settings.json", &text.replace("SessionStart", "PreToolUse"));
        let toolgate = desk.build(desk.options());
        let _ = HookDesk::call(&toolgate, "ship");
        assert!(!desk.path("told").exists(), "{case}");
        let waits = toolgate.settings().effective_values(None);
        assert!(waits.iter().any(|value| value.waits.is_some()), "{case}");
        assert!(toolgate.settings().env().is_empty(), "{case}");
        seen += 1;
    }
    assert_eq!(seen, 2);
}
