//! Known failures of hooks and confirmations in other agent runtimes, executed end to end.
//!
//! The cases are in the corpus of the policy crate, which judges rules about the text of commands. Here the tool
//! `Deploy` replaces the command, and rules for the command are rules for the tool.

use super::hook_fixture::HookFixture;
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

/// A hook that ends as the case describes.
fn script(fixture: &HookFixture, index: usize, outcome: &Value) -> Value {
    if outcome["timeout"] == true {
        return json!({ "type": "command", "command": "sleep 100", "timeout": 0.2 });
    }
    if outcome.get("spawn_error").is_some() {
        let file = fixture.write("not-executable", "#!/bin/sh\n");
        return json!({ "type": "command", "command": file, "args": [] });
    }
    let write = |name: &str| {
        let path = fixture.write(&format!("{name}-{index}"), outcome[name].as_str().unwrap_or_default());
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
        // This case denies the rewritten input by a rule about its text, which `Deploy` cannot have; the next test
        // covers that a rewritten input is judged again.
        if policy["deny"] == json!(["Bash(touch *)"]) {
            continue;
        }
        let fixture = HookFixture::new();
        let outcomes = match &input["outcome"] {
            Value::Array(outcomes) => outcomes.clone(),
            one => vec![one.clone()],
        };
        let mut handlers: Vec<Value> =
            outcomes.iter().enumerate().map(|(index, outcome)| script(&fixture, index, outcome)).collect();
        if policy["hook_required"] == false {
            handlers.iter_mut().for_each(|handler| handler["onFailure"] = json!("continue"));
        }
        let deploy_rules = |rules: &Value| match rules.as_array().is_some_and(|rules| !rules.is_empty()) {
            true => json!(["Deploy"]),
            false => json!([]),
        };
        let matcher = if input["matcher"] == "Write" { "Write" } else { "Deploy" };
        let settings = json!({
            "permissions": { "allow": deploy_rules(&policy["allow"]), "deny": deploy_rules(&policy["deny"]) },
            "hooks": { "PreToolUse": [{ "matcher": matcher, "hooks": handlers }] },
        });
        let toolgate = fixture.toolgate(&settings);
        let ran = HookFixture::call(&toolgate, "npm run deploy").result.is_ok();
        // The approval of a hook counts where no rule matches.
        assert_eq!(ran, case["expect"] == "allow", "{case}");
        judged += 1;
    }
    assert!(judged >= 14, "{judged}");
}

#[test]
fn an_input_that_a_hook_or_the_user_rewrote_is_judged_again() {
    let fixture = HookFixture::new();
    let rewrite = r#"echo '{"decision":"approve","updatedInput":{"path":"/etc"}}'"#;
    let settings = json!({
        "permissions": { "ask": ["WebSearch"] },
        "hooks": { "PreToolUse": [{ "matcher": "ls", "hooks": [{ "type": "command", "command": rewrite }] }] },
    });
    let toolgate = fixture.toolgate(&settings);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // The approval of the hook covers the path outside the workspace; a deny rule still applies.
    let outcome = runtime.block_on(toolgate.call("c", "ls", "{}"));
    assert_eq!(outcome.record.effects[0].location(), "/etc");
    let mut denied = settings;
    denied["permissions"]["deny"] = json!(["ls(*)"]);
    let toolgate = fixture.toolgate(&denied);
    assert!(runtime.block_on(toolgate.call("c", "ls", "{}")).result.is_err());
}

#[test]
fn confirmations_of_the_corpus() {
    for case in cases("confirm") {
        let is_allowed = case["expect"] == "allow";
        // An answer that counts may take its time on a busy machine; where none does, the time has to pass.
        let timeout = if is_allowed { Duration::from_secs(600) } else { Duration::from_millis(400) };
        let ran = confirm(&case["input"], &case["policy"], timeout);
        assert_eq!(ran, is_allowed, "{case}");
    }
}

/// Lists a directory outside the workspace, answers the question as the case describes, and returns whether it ran.
fn confirm(input: &Value, policy: &Value, timeout: Duration) -> bool {
    let fixture = HookFixture::new();
    let bus = ApprovalBus::new("host");
    let mut requests = bus.requests();
    let toolgate =
        Toolgate::builder(fixture.path("")).approver(bus.clone()).approval_timeout(timeout).build().unwrap();
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
                // An input that the corpus allows is inside the workspace here, one that it denies is outside.
                Some(_) if policy["deny"] == json!([]) => {
                    ApprovalAnswer::Revise { input: object(json!({ "path": "." })) }
                }
                Some(_) => ApprovalAnswer::Revise { input: object(json!({ "path": "/" })) },
                None => ApprovalAnswer::Once,
            };
            let own = reply["id"] == input["request_id"];
            let shown = input.get("shown").is_none_or(|shown| *shown == input["effective"]);
            let _ = bus.reply(ApprovalReply::new(
                if own { request.id.as_str() } else { "another" },
                if shown { request.input_sha256.as_str() } else { "of what was shown" },
                answer,
                if reply["from"] == "subagent" { ApprovalResponder::Agent } else { ApprovalResponder::User },
            ));
        };
        let (outcome, ()) = tokio::join!(calling, answering);
        outcome.result.is_ok()
    })
}

fn object(value: Value) -> serde_json::Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[test]
fn project_settings_of_the_corpus_are_inactive_without_trust() {
    let mut seen = 0;
    for case in cases("self-modify") {
        let input = &case["input"];
        if input["kind"] != "project_settings" || input["trusted"] == true {
            continue;
        }
        let fixture = HookFixture::new();
        // The corpus has a handler without group and type, which must not run either.
        let text = input["text"].as_str().unwrap().replace(
            r#"[{"command":"./x"}]"#,
            r#"[{"hooks":[{"type":"command","command":"touch marker"}]}]"#,
        );
        fixture.write(".toolgate/settings.json", &text.replace("SessionStart", "PreToolUse"));
        let toolgate = fixture.build(fixture.options());
        let _ = HookFixture::call(&toolgate, "ship");
        assert!(!fixture.path("marker").exists(), "{case}");
        let values = toolgate.settings().effective_values(None);
        assert!(values.iter().any(|value| value.inactive_reason.is_some()), "{case}");
        assert!(toolgate.settings().env().is_empty(), "{case}");
        seen += 1;
    }
    assert_eq!(seen, 2);
}
