//! What a host changes during a session: permissions with an answer, prompts in the queue, what it is told.

use super::agent_fixture::ScriptedModel;
use super::cli_fixture::CliFixture;
use super::host_controls::{HOST, HostedProgram};
use serde_json::{Value, json};
use std::path::Path;

/// Answers the next question of the agent with a yes and changes of permissions.
fn allow_with(host: &mut HostedProgram, updates: &Value) {
    let question = host.wait_for(|frame| frame["request"]["subtype"] == "can_use_tool");
    let answer = json!({ "behavior": "allow", "updatedInput": question["request"]["input"], "updatedPermissions": updates });
    let response = json!({ "subtype": "success", "request_id": question["request_id"], "response": answer });
    host.send(&json!({ "type": "control_response", "response": response }));
}

fn read_list(file: &Path, list: &str) -> Value {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let settings: Value = serde_json::from_str(&text).unwrap_or_default();
    settings["permissions"][list].clone()
}

fn rule_update(kind: &str, rule: &str, behavior: &str, destination: &str) -> Value {
    let rules = json!([{ "toolName": "Write", "ruleContent": rule }]);
    json!({ "type": kind, "rules": rules, "behavior": behavior, "destination": destination })
}

#[test]
fn permission_updates_are_written_to_the_file_that_they_name() {
    let fixture = CliFixture::new();
    let write = |name: &str| json!({ "tools": [{ "name": "Write", "input": { "file_path": fixture.path(name), "content": "x" } }] });
    std::fs::create_dir(fixture.beside("other")).unwrap();
    std::fs::write(fixture.beside("other/far.txt"), "tangerine").unwrap();
    let read_far = json!({ "tools": [{ "name": "Read", "input": { "file_path": fixture.beside("other/far.txt") }, "id": "toolu_far" }] });
    let turns = ["a", "b", "c", "d", "e"].map(write).to_vec();
    let turns: Vec<Value> = turns.into_iter().chain([read_far, json!({ "text": "Done." })]).collect();
    let model = ScriptedModel::new(&json!({ "turns": turns }));
    let more = ["--permission-prompt-tool", "stdio"];
    let mut host = HostedProgram::start(model.command(&fixture, "anthropic", &[&HOST[..], &more].concat()));
    host.request("initialize", &json!({}));
    host.prompt("write");
    let user = fixture.beside("home/.claude/settings.json");
    let (project, local) =
        (fixture.path(".claude/settings.json"), fixture.path(".claude/settings.local.json"));
    allow_with(&mut host, &json!([rule_update("addRules", "z/**", "allow", "userSettings")]));
    allow_with(&mut host, &json!([rule_update("addRules", "y/**", "deny", "projectSettings")]));
    allow_with(&mut host, &json!([rule_update("addRules", "x/**", "ask", "localSettings")]));
    // Replaced and removed in the file as well.
    allow_with(
        &mut host,
        &json!([
            rule_update("replaceRules", "w/**", "allow", "userSettings"),
            rule_update("removeRules", "x/**", "ask", "localSettings"),
        ]),
    );
    let dir = fixture.beside("other");
    allow_with(
        &mut host,
        &json!([
            { "type": "addDirectories", "directories": [dir], "destination": "localSettings" },
            { "type": "setMode", "mode": "acceptEdits", "destination": "session" },
        ]),
    );
    let result = host.wait_for(|frame| frame["type"] == "result");
    assert_eq!(result["result"], "Done.");
    assert_eq!(read_list(&user, "allow"), json!(["Write(w/**)"]));
    assert_eq!(read_list(&project, "deny"), json!(["Write(y/**)"]));
    assert_eq!(read_list(&local, "ask"), json!([]));
    assert_eq!(read_list(&local, "additionalDirectories"), json!([dir]));
    let far = host.frames.iter().find(|frame| frame["message"]["content"][0]["tool_use_id"] == "toolu_far");
    assert!(far.unwrap().to_string().contains("tangerine"), "the directory is of the workspace now");
    for name in ["a", "b", "c", "d", "e"] {
        assert!(fixture.path(name).exists(), "{name}");
    }
    // What was written holds in the next session: the deny rule at once.
    model.play(&json!({ "turns": [write("y/no"), { "text": "No." }] }));
    let result = host.run_turn("again");
    assert_eq!(result["permission_denials"].as_array().map(Vec::len), Some(1), "{result}");
    assert_eq!(host.finish(), 0);
}

#[test]
fn an_update_that_cannot_be_applied_is_no_yes() {
    for update in [
        rule_update("addRules", "a/**", "allow", "nowhere"),
        rule_update("addRules", "a/**", "perhaps", "session"),
        rule_update("removeRules", "never-there", "allow", "session"),
        json!({ "type": "addDirectories", "directories": ["/nonexistent"], "destination": "session" }),
        json!({ "type": "fly", "destination": "session" }),
    ] {
        let fixture = CliFixture::new();
        let call = json!({ "name": "Write", "input": { "file_path": fixture.path("a"), "content": "x" } });
        let model = ScriptedModel::new(&json!({ "turns": [{ "tools": [call] }, { "text": "Done." }] }));
        let more = ["--permission-prompt-tool", "stdio"];
        let mut host =
            HostedProgram::start(model.command(&fixture, "anthropic", &[&HOST[..], &more].concat()));
        host.request("initialize", &json!({}));
        host.prompt("write");
        allow_with(&mut host, &json!([update]));
        let result = host.wait_for(|frame| frame["type"] == "result");
        assert_eq!(result["permission_denials"].as_array().map(Vec::len), Some(1), "{update}: {result}");
        assert!(!fixture.path("a").exists(), "{update}");
    }
}

/// A host that approved a part of an input, or returned the part as its input, would change what is written.
#[test]
fn a_call_that_does_not_fit_into_a_frame_is_refused_and_never_cut() {
    let fixture = CliFixture::new();
    let long = "tangerine\n".repeat(95_000);
    let call =
        json!({ "name": "Write", "input": { "file_path": fixture.path("long.txt"), "content": long } });
    for (more, initialize) in [
        (vec!["--permission-prompt-tool", "stdio"], json!({})),
        (
            vec!["--allowedTools", "Write"],
            json!({ "hooks": { "PreToolUse": [{ "matcher": "Write", "hookCallbackIds": ["hook_0"] }] } }),
        ),
    ] {
        let model = ScriptedModel::new(&json!({ "turns": [{ "tools": [call] }, { "text": "Done." }] }));
        let mut host =
            HostedProgram::start(model.command(&fixture, "anthropic", &[&HOST[..], &more].concat()));
        host.request("initialize", &initialize);
        let result = host.run_turn("write");
        assert_eq!(result["result"], "Done.", "{more:?}");
        assert!(!host.frames.iter().any(|frame| frame["type"] == "control_request"), "{more:?}");
        assert!(!fixture.path("long.txt").exists(), "{more:?}");
        let request = model.requests()[1].to_string();
        assert!(request.contains("longer than a frame may be"), "{more:?}");
        assert_eq!(host.finish(), 0);
    }
}

#[test]
fn prompts_without_a_turn_go_with_the_next_one_and_priorities_order_the_queue() {
    let fixture = CliFixture::new();
    let hang = json!({ "text": "This one takes a while.", "hang_after": 1 });
    let script = json!({ "turns": [hang, { "text": "Two." }, { "text": "Three." }] });
    let model = ScriptedModel::new(&script);
    let more = ["--include-partial-messages"];
    let mut host = HostedProgram::start(model.command(&fixture, "anthropic", &[&HOST[..], &more].concat()));
    host.request("initialize", &json!({}));
    host.prompt("first");
    // The model has been asked: the script goes on with its next turn.
    host.wait_for(|frame| frame["type"] == "stream_event");
    let prompt = |text: &str, more: Value| {
        let mut frame = json!({ "type": "user", "message": { "role": "user", "content": text } });
        frame.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        frame
    };
    host.send(&prompt("the last", json!({ "priority": "later" })));
    host.send(&prompt("by the way", json!({ "shouldQuery": false })));
    host.send(&prompt("the next", json!({})));
    let before = host.frames.len();
    host.request("interrupt", &json!({}));
    host.wait_for_since(before, |frame| frame["terminal_reason"] == "aborted_streaming");
    host.wait_for(|frame| frame["result"] == "Two.");
    host.wait_for_since(before, |frame| frame["result"] == "Three.");
    let requests = model.requests();
    let last_message = |body: &Value| body["messages"].as_array().unwrap().last().unwrap().to_string();
    let second = last_message(&requests[1]);
    assert!(second.contains("by the way") && second.contains("the next"), "{second}");
    assert!(last_message(&requests[2]).contains("the last"));
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_host_chooses_skills_and_whether_it_sees_the_words_of_subagents() {
    for forwards in [false, true] {
        let fixture = CliFixture::new();
        for name in ["alpha", "beta"] {
            fixture.write(
                &format!(".claude/skills/{name}/SKILL.md"),
                &format!("---\ndescription: does {name}\n---\nx\n"),
            );
        }
        let input = json!({ "description": "d", "prompt": "look", "run_in_background": false });
        let ls = json!({ "text": "Looking.", "tools": [{ "name": "ls", "input": {} }] });
        let script = json!({ "lanes": [
            { "when": { "system_contains": "another agent gave you one task" }, "turns": [ls, { "text": "Nothing." }] },
            { "turns": [{ "tools": [{ "name": "Agent", "input": input, "id": "toolu_p" }] }, { "text": "Done." }] },
        ] });
        let model = ScriptedModel::new(&script);
        let more = ["--allowedTools", "Agent", "--include-hook-events"];
        let mut host =
            HostedProgram::start(model.command(&fixture, "anthropic", &[&HOST[..], &more].concat()));
        let hooks = json!({ "Stop": [{ "hookCallbackIds": ["hook_0"] }], "SubagentStop": [{ "matcher": "Plan", "hookCallbackIds": ["hook_1"] }] });
        host.request(
            "initialize",
            &json!({ "skills": ["beta"], "forwardSubagentText": forwards, "hooks": hooks }),
        );
        host.prompt("go");
        let asked = host.wait_for(|frame| frame["request"]["subtype"] == "hook_callback");
        assert_eq!(asked["request"]["callback_id"], "hook_0", "the matcher of the other names another type");
        let response = json!({ "subtype": "success", "request_id": asked["request_id"], "response": {} });
        host.send(&json!({ "type": "control_response", "response": response }));
        assert_eq!(host.wait_for(|frame| frame["type"] == "result")["result"], "Done.");
        let inner = host.frames.iter().filter(|frame| frame["parent_tool_use_id"] == "toolu_p");
        let kinds: Vec<&Value> = inner.map(|frame| &frame["message"]["content"][0]["type"]).collect();
        assert_eq!(kinds.contains(&&json!("text")), forwards, "{kinds:?}");
        assert!(kinds.contains(&&json!("tool_use")) && kinds.contains(&&json!("tool_result")), "{kinds:?}");
        let progress = host.frames.iter().find(|frame| frame["subtype"] == "task_progress").unwrap();
        assert!(progress["usage"]["total_tokens"].as_u64().unwrap() > 0, "{progress}");
        let init = host.frames.iter().find(|frame| frame["subtype"] == "init").unwrap();
        assert_eq!(init["skills"], json!(["beta"]));
        let request = model.requests()[0].to_string();
        assert!(request.contains("does beta") && !request.contains("does alpha"));
        let ended: Vec<(&Value, &Value)> = host
            .frames
            .iter()
            .filter(|frame| frame["subtype"] == "hook_response")
            .map(|frame| (&frame["hook_event"], &frame["outcome"]))
            .collect();
        assert_eq!(
            ended,
            [(&json!("Stop"), &json!("success"))],
            "one that its matcher leaves out does not run"
        );
        assert_eq!(host.finish(), 0);
    }
}

#[test]
fn an_interrupt_does_not_wait_for_a_hook() {
    let fixture = CliFixture::new();
    let model = ScriptedModel::new(&json!({ "turns": [{ "text": "One." }, { "text": "Two." }] }));
    for event in ["UserPromptSubmit", "Stop"] {
        let mut host = HostedProgram::start(model.command(&fixture, "anthropic", &HOST));
        host.request("initialize", &json!({ "hooks": { event: [{ "hookCallbackIds": ["hook_0"] }] } }));
        host.prompt("go");
        host.wait_for(|frame| frame["request"]["subtype"] == "hook_callback");
        let (before, since) = (host.frames.len(), std::time::Instant::now());
        host.request("interrupt", &json!({}));
        let result = host.wait_for_since(before, |frame| frame["type"] == "result");
        assert_eq!(result["subtype"], "error_during_execution", "{event}");
        // A callback has a minute for its answer.
        assert!(since.elapsed().as_secs() < 50, "{event}");
        let withdrawn = host.frames.iter().any(|frame| frame["type"] == "control_cancel_request");
        assert!(withdrawn, "{event}: the host is told that its answer is no longer wanted");
    }
}
