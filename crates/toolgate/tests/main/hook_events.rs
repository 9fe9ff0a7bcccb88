//! Events around calls: each is raised in its place with the fields of its type, and hosts see hooks start and end.

use super::agent_fixture::{ScriptedModel, frames, result_of};
use super::cli_fixture::CliFixture;
use super::host_controls::{HOST, HostedProgram};
use super::plugins::write_file;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const STREAM: [&str; 4] = ["run", "-p", "--output-format", "stream-json"];

fn hook(command: &str) -> Value {
    json!([{ "hooks": [{ "type": "command", "command": command }] }])
}

/// The lines of a file that hooks appended to, once there are `count`.
fn read_events(fixture: &CliFixture, name: &str, count: usize) -> Vec<Value> {
    let started = Instant::now();
    loop {
        let text = std::fs::read_to_string(fixture.path(name)).unwrap_or_default();
        let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        if lines.len() >= count || started.elapsed() > Duration::from_secs(60) {
            return lines;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_frame_tells_of_a_hook_when_it_starts_and_another_when_it_has_ended() {
    let fixture = CliFixture::new();
    let script = json!({ "turns": [{ "tools": [{ "name": "ls", "input": {} }] }, { "text": "Done." }] });
    let model = ScriptedModel::new(&script);
    // Each hook waits for a file that is made only after the frame of its start was seen.
    let wait = |name: &str| format!("cat >/dev/null; while ! test -e {name}; do sleep 0.05; done");
    let settings = json!({ "hooks": {
        "SessionStart": hook(&wait("first")), "PreToolUse": hook(&wait("second")),
        "PostToolUse": hook("exit 1"), "Stop": hook("true"),
    } });
    let settings = settings.to_string();
    let more = ["--settings", &settings, "--include-hook-events"];
    let mut host = HostedProgram::start(model.command(&fixture, "anthropic", &[&HOST[..], &more].concat()));
    host.prompt("go");
    for (event, file) in [("SessionStart", "first"), ("PreToolUse", "second")] {
        let started = host.wait_for(|frame| frame["subtype"] == "hook_started");
        assert_eq!(started["hook_event"], event);
        assert!(
            !host
                .frames
                .iter()
                .any(|frame| frame["hook_id"] == started["hook_id"] && frame["subtype"] == "hook_response")
        );
        fixture.write(file, "");
        let ended = host.wait_for(|frame| frame["subtype"] == "hook_response");
        assert_eq!((&ended["hook_id"], &ended["outcome"]), (&started["hook_id"], &json!("success")));
        assert_eq!(ended["hook_name"], started["hook_name"]);
    }
    host.wait_for(|frame| frame["type"] == "result");
    let ends: Vec<(&str, &str)> = host
        .frames
        .iter()
        .filter(|frame| frame["subtype"] == "hook_response")
        .map(|frame| (frame["hook_event"].as_str().unwrap(), frame["outcome"].as_str().unwrap()))
        .collect();
    let wanted = [
        ("SessionStart", "success"),
        ("PreToolUse", "success"),
        ("PostToolUse", "error"),
        ("Stop", "success"),
    ];
    assert_eq!(ends, wanted);
    assert_eq!(host.finish(), 0);
}

#[test]
fn a_hook_that_an_interrupt_gives_up_ends_as_cancelled() {
    let fixture = CliFixture::new();
    let model = ScriptedModel::new(&json!({ "turns": [{ "tools": [{ "name": "ls", "input": {} }] }] }));
    let settings = json!({ "hooks": { "PreToolUse": hook("sleep 600") } }).to_string();
    let more = ["--settings", &settings, "--include-hook-events"];
    let mut host = HostedProgram::start(model.command(&fixture, "anthropic", &[&HOST[..], &more].concat()));
    host.prompt("go");
    let started = host.wait_for(|frame| frame["subtype"] == "hook_started");
    let from = host.frames.len();
    host.request("interrupt", &json!({}));
    let ended = host.wait_for_since(from, |frame| frame["subtype"] == "hook_response");
    assert_eq!((&ended["hook_id"], &ended["outcome"]), (&started["hook_id"], &json!("cancelled")));
}

#[test]
fn a_notification_tells_of_a_question_and_of_a_session_that_waits() {
    let fixture = CliFixture::new();
    let path = fixture.path("a.txt");
    let write = json!({ "name": "Write", "input": { "file_path": path, "content": "x" } });
    let model = ScriptedModel::new(&json!({ "turns": [{ "tools": [write] }, { "text": "Done." }] }));
    let group = |matcher: &str, command: &str| json!({ "matcher": matcher, "hooks": [{ "type": "command", "command": command }] });
    let settings = json!({ "hooks": { "Notification": [
        group("permission_prompt", "cat >> asked; echo >> asked"),
        group("idle_prompt", "cat >> idle; echo >> idle"),
    ] } });
    let settings = settings.to_string();
    let more = ["--settings", &settings, "--permission-prompt-tool", "stdio"];
    let mut command = model.command(&fixture, "anthropic", &[&HOST[..], &more].concat());
    command.env("TOOLGATE_IDLE_NOTIFICATION_MS", "200");
    let mut host = HostedProgram::start(command);
    host.request("initialize", &json!({}));
    host.prompt("go");
    let asked = host.wait_for(|frame| frame["request"]["subtype"] == "can_use_tool");
    let inputs = read_events(&fixture, "asked", 1);
    assert_eq!(inputs[0]["notification_type"], "permission_prompt", "before the answer: {inputs:?}");
    assert!(inputs[0]["message"].as_str().unwrap().contains("Write"), "{inputs:?}");
    assert!(!fixture.path("idle").exists(), "a session that works does not wait for its user");
    host.send(&json!({ "type": "control_response", "response": {
        "subtype": "success", "request_id": asked["request_id"],
        "response": { "behavior": "deny", "message": "no" },
    } }));
    host.wait_for(|frame| frame["type"] == "result");
    let inputs = read_events(&fixture, "idle", 1);
    assert_eq!((inputs.len(), &inputs[0]["notification_type"]), (1, &json!("idle_prompt")));
    assert_eq!(host.finish(), 0);
}

#[test]
fn each_event_around_calls_has_the_fields_of_its_type() {
    let fixture = CliFixture::new();
    fixture.write("CLAUDE.md", "be brief\n");
    fixture.write("CLAUDE.local.md", "be kind\n");
    fixture.write("sub/file.txt", "x");
    fixture.write(".claude/commands/fix.md", "---\ndescription: Fixes\n---\nFix $0 carefully.\n");
    let cd = json!({ "name": "Bash", "input": { "command": "cd sub" } });
    let full = json!({ "tools": [cd], "usage": { "input_tokens": 190_000 } });
    let script = json!({ "turns": [full, { "text": "SUMMARY" }, { "text": "Done." }, { "error": 400 }] });
    let model = ScriptedModel::new(&script);
    let log = hook(r#"cat >> "$CLAUDE_PROJECT_DIR/events"; echo >> "$CLAUDE_PROJECT_DIR/events""#);
    let events = ["InstructionsLoaded", "UserPromptExpansion", "CwdChanged", "PostCompact", "StopFailure"];
    let hooks: serde_json::Map<String, Value> =
        events.iter().map(|event| ((*event).to_owned(), log.clone())).collect();
    let settings = json!({ "hooks": hooks, "permissions": { "allow": ["Bash(cd *)"] } }).to_string();
    let more = ["--settings", &settings, "--", "/fix lib.rs"];
    let run = model.run(&fixture, "anthropic", &[&STREAM[..], &more].concat());
    assert_eq!(result_of(&run)["result"], "Done.", "{} {}", run.stdout, run.stderr);
    let failing = ["--settings", &settings, "--", "again"];
    model.run(&fixture, "anthropic", &[&STREAM[..], &failing].concat());
    let inputs = read_events(&fixture, "events", 8);
    let of = |event: &str| -> Vec<Value> {
        inputs.iter().filter(|event_input| event_input["hook_event_name"] == event).cloned().collect()
    };
    let loaded = of("InstructionsLoaded");
    let kinds: Vec<(&Value, &Value)> =
        loaded.iter().map(|it| (&it["memory_type"], &it["load_reason"])).collect();
    let start = json!("session_start");
    let (project, local) = (json!("Project"), json!("Local"));
    assert_eq!(
        kinds,
        [(&project, &start), (&local, &start), (&project, &start), (&local, &start)],
        "{inputs:?}"
    );
    assert!(loaded[0]["file_path"].as_str().unwrap().ends_with("/CLAUDE.md"));
    let expanded = &of("UserPromptExpansion")[0];
    assert_eq!(
        (
            &expanded["expansion_type"],
            &expanded["command_name"],
            &expanded["command_args"],
            &expanded["prompt"]
        ),
        (&json!("slash_command"), &json!("fix"), &json!("lib.rs"), &json!("/fix lib.rs"))
    );
    let changed = &of("CwdChanged")[0];
    assert!(
        changed["new_cwd"].as_str().unwrap().ends_with("/sub")
            && !changed["old_cwd"].as_str().unwrap().ends_with("/sub")
    );
    let compacted = &of("PostCompact")[0];
    assert_eq!(compacted["trigger"], "auto");
    assert!(compacted["compact_summary"].as_str().unwrap().contains("SUMMARY"), "{compacted}");
    let failed = of("StopFailure");
    assert_eq!((failed.len(), &failed[0]["error"]), (1, &json!("invalid_request")), "{inputs:?}");
    assert!(!failed[0]["error_details"].as_str().unwrap().is_empty());
}

#[test]
fn a_guard_of_commands_keeps_their_programs_from_running() {
    let fixture = CliFixture::new();
    fixture.write(".claude/skills/bold/SKILL.md", "---\ndescription: d\n---\n!`touch made`\n");
    let model = ScriptedModel::new(&json!({ "turns": [{ "text": "Done." }] }));
    let guarded = json!({ "hooks": { "UserPromptExpansion": hook("echo not today >&2; exit 2") },
        "permissions": { "allow": ["Bash(touch *)"] } });
    let guarded = guarded.to_string();
    let run =
        model.run(&fixture, "anthropic", &[&STREAM[..], &["--settings", &guarded, "--", "/bold"]].concat());
    assert!(result_of(&run)["result"].as_str().unwrap().contains("not today"), "{}", run.stdout);
    assert!(model.requests().is_empty() && !fixture.path("made").exists());
}

#[test]
fn hooks_of_a_model_change_see_it_and_can_refuse_it() {
    let fixture = CliFixture::new();
    let model = ScriptedModel::new(&json!({ "turns": [{ "text": "Done." }] }));
    let deny = r#"cat >> before; echo >> before; grep -q opus before && echo '{"hookSpecificOutput":{"hookEventName":"PreModelSwitch","permissionDecision":"deny","permissionDecisionReason":"too dear"}}' || true"#;
    let context = r#"cat > after; echo '{"hookSpecificOutput":{"hookEventName":"PostModelSwitch","additionalContext":"you are small now"}}'"#;
    let settings =
        json!({ "hooks": { "PreModelSwitch": hook(deny), "PostModelSwitch": hook(context) } }).to_string();
    let command = model.command(&fixture, "anthropic", &[&HOST[..], &["--settings", &settings]].concat());
    let mut host = HostedProgram::start(command);
    assert_eq!(host.request("set_model", &json!({ "model": "haiku" }))["subtype"], "success");
    let after = &read_events(&fixture, "after", 1)[0];
    assert_eq!(
        (&after["to_model"], &after["requested_model"], &after["source"], &after["pricing"]),
        (&json!("claude-haiku-4-5"), &json!("haiku"), &json!("sdk"), &json!("catalog"))
    );
    let refused = host.request("set_model", &json!({ "model": "opus" }));
    assert!(refused["error"].as_str().unwrap().contains("too dear"), "{refused}");
    assert_eq!(host.run_turn("go")["subtype"], "success");
    let sent = &model.requests()[0];
    assert_eq!(sent["model"], "claude-haiku-4-5");
    assert!(sent["messages"].to_string().contains("you are small now"), "{sent}");
    assert_eq!(host.finish(), 0);
}

#[test]
fn the_reason_is_given_for_an_event_that_is_never_raised() {
    let fixture = CliFixture::new();
    let model = ScriptedModel::new(&json!({ "turns": [{ "text": "Done." }] }));
    let settings =
        json!({ "hooks": { "FileChanged": hook("true"), "Notification": hook("true") } }).to_string();
    let run = model.run(&fixture, "anthropic", &["run", "-p", "--settings", &settings, "--", "go"]);
    assert!(
        run.stderr.contains("`hooks.FileChanged` is not raised: files are not watched"),
        "{}",
        run.stderr
    );
    assert!(!run.stderr.contains("Notification"), "{}", run.stderr);
}

/// A plugin whose hooks leave files in the workspace.
fn write_plugin(fixture: &CliFixture) -> String {
    let dir = fixture.beside("watcher");
    let run = |name: &str| hook(&format!("sh \"${{CLAUDE_PLUGIN_ROOT}}/note.sh\" {name}"));
    let hooks = json!({ "hooks": {
        "SessionStart": run("SessionStart"), "UserPromptSubmit": run("UserPromptSubmit"), "Stop": run("Stop"),
        "SessionEnd": run("SessionEnd"),
    } });
    write_file(&dir, ".claude-plugin/plugin.json", r#"{ "name": "watcher" }"#);
    write_file(&dir, "hooks/hooks.json", &hooks.to_string());
    write_file(
        &dir,
        "note.sh",
        "cat > /dev/null\necho \"$1 $CLAUDE_PLUGIN_ROOT\" >> \"$CLAUDE_PROJECT_DIR/noted\"\n",
    );
    dir.display().to_string()
}

#[test]
fn hooks_of_a_plugin_run_for_the_events_of_an_agent_and_refuse_prompts_once_it_changed() {
    let fixture = CliFixture::new();
    let dir = write_plugin(&fixture);
    let model = ScriptedModel::new(&json!({ "turns": [{ "text": "Done." }] }));
    let go = |more: &[&str]| {
        model.play(&json!({ "turns": [{ "text": "Done." }] }));
        model.run(&fixture, "anthropic", &[&STREAM[..], more, &["--plugin-dir", &dir, "--", "go"]].concat())
    };
    let noted = || std::fs::read_to_string(fixture.path("noted")).unwrap_or_default();
    // Before the yes nothing of it runs, and nothing is refused.
    let run = go(&[]);
    assert_eq!((&result_of(&run)["result"], noted().as_str()), (&json!("Done."), ""));
    assert_eq!(fixture.run(&["plugin", "approve", &dir, "--yes"]).code, 0);
    let run = go(&["--include-hook-events"]);
    assert_eq!(result_of(&run)["result"], "Done.", "{}", run.stderr);
    let events = ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"];
    let wanted: String = events.map(|event| format!("{event} {dir}\n")).concat();
    assert_eq!(noted(), wanted);
    assert!(!run.stderr.contains("never run"), "{}", run.stderr);
    let started = frames(&run).into_iter().filter(|frame| frame["subtype"] == "hook_started").count();
    assert!(started >= 3, "{}", run.stdout);
    // Switched off by settings, they neither run nor refuse.
    let run = go(&["--settings", r#"{"disableAllHooks":true}"#]);
    assert_eq!((&result_of(&run)["result"], noted()), (&json!("Done."), wanted.clone()));
    // Changed, they do not run, and the prompts that one of them screened are refused.
    write_file(std::path::Path::new(&dir), "note.sh", "touch \"$CLAUDE_PROJECT_DIR/pwned\"\n");
    let run = go(&[]);
    let result = result_of(&run)["result"].as_str().unwrap().to_owned();
    assert!(result.contains("changed after you approved it"), "{result}");
    assert!(model.requests().is_empty() && !fixture.path("pwned").exists());
    assert_eq!(noted(), wanted);
}

#[test]
fn a_plugin_that_changes_during_a_session_guards_the_next_prompt() {
    let fixture = CliFixture::new();
    let dir = write_plugin(&fixture);
    assert_eq!(fixture.run(&["plugin", "approve", &dir, "--yes"]).code, 0);
    let model = ScriptedModel::new(&json!({ "turns": [{ "text": "One." }, { "text": "Two." }] }));
    let command = model.command(&fixture, "anthropic", &[&HOST[..], &["--plugin-dir", &dir]].concat());
    let mut host = HostedProgram::start(command);
    assert_eq!(host.run_turn("go")["result"], "One.");
    write_file(std::path::Path::new(&dir), "note.sh", "touch \"$CLAUDE_PROJECT_DIR/pwned\"\n");
    let refused = host.run_turn("go on");
    assert!(refused["result"].as_str().unwrap().contains("changed after you approved it"), "{refused}");
    host.finish();
    assert!(!fixture.path("pwned").exists());
    assert_eq!(model.requests().len(), 1);
}
