//! Hooks of settings around calls, instructions in files, and options that say where a project's settings are.

use super::agent_fixture::{ScriptedModel, frames, result_of};
use super::cli_fixture::CliFixture;
use serde_json::{Value, json};

const STREAM: [&str; 4] = ["run", "-p", "--output-format", "stream-json"];

fn hook(command: &str) -> Value {
    json!({ "hooks": [{ "type": "command", "command": command }] })
}

fn matched(matcher: &str, command: &str) -> Value {
    json!({ "matcher": matcher, "hooks": [{ "type": "command", "command": command }] })
}

#[test]
fn hooks_of_settings_run_for_the_events_of_an_agent() {
    let fixture = CliFixture::new();
    let agent = json!({ "description": "d", "prompt": "look", "run_in_background": false });
    let script = json!({ "lanes": [
        { "when": { "system_contains": "another agent gave you one task" }, "turns": [{ "text": "Nothing." }] },
        { "turns": [{ "tools": [{ "name": "Agent", "input": agent }] }, { "text": "Done." }, { "text": "More." }] },
    ] });
    let stop = r#"test -e stopped || { touch stopped; echo '{"decision":"block","reason":"you forgot the peel"}'; }"#;
    let settings = json!({ "hooks": {
        "SessionStart": [matched("startup", "echo it is monday"), matched("resume", "touch resumed")],
        "UserPromptSubmit": [hook("cat > prompt.json; echo remember the milk")],
        "SubagentStart": [matched("Explore", "touch explored"), matched("general-purpose", "touch started")],
        "SubagentStop": [hook("cat > agent.json")],
        "Stop": [hook(stop), hook("exit 1")],
        "SessionEnd": [hook("cat > end.json")],
    } });
    let model = ScriptedModel::new(&script);
    let settings = settings.to_string();
    let more = ["--settings", &settings, "--allowedTools", "Agent", "--include-hook-events", "--", "go"];
    let run = model.run(&fixture, "anthropic", &[&STREAM[..], &more].concat());
    assert_eq!(result_of(&run)["result"], "More.", "{} {}", run.stdout, run.stderr);
    let first = model.requests()[0].to_string();
    assert!(first.contains("it is monday") && first.contains("remember the milk"), "{first}");
    let last = model.requests().last().unwrap().to_string();
    assert!(last.contains("you forgot the peel"), "{last}");
    let read = |name: &str| -> Value {
        serde_json::from_str(&std::fs::read_to_string(fixture.path(name)).unwrap()).unwrap()
    };
    assert_eq!(read("prompt.json")["prompt"], "go");
    assert_eq!(
        (&read("agent.json")["agent_type"], &read("end.json")["reason"]),
        (&json!("general-purpose"), &json!("other"))
    );
    // The transcript of the subagent is where the SDKs look for it, beside that of the session.
    let stopped = read("agent.json");
    let transcript = stopped["agent_transcript_path"].as_str().unwrap();
    let session = stopped["transcript_path"].as_str().unwrap().strip_suffix(".jsonl").unwrap();
    let id = stopped["agent_id"].as_str().unwrap();
    assert_eq!(transcript, format!("{session}/subagents/agent-{id}.jsonl"));
    let lines: Vec<Value> = std::fs::read_to_string(transcript)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let kinds: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["user", "assistant"]);
    assert!(lines.iter().all(|line| line["isSidechain"] == true && line["agentId"] == id), "{lines:?}");
    assert_eq!(lines[1]["parentUuid"], lines[0]["uuid"]);
    assert!(lines[1]["message"].to_string().contains("Nothing."));
    let main = std::fs::read_to_string(format!("{session}.jsonl")).unwrap();
    assert!(!main.contains("\"isSidechain\":true") && fixture.path("started").exists());
    assert!(!fixture.path("explored").exists());
    assert!(!fixture.path("resumed").exists());
    let started = frames(&run).into_iter().filter(|frame| frame["subtype"] == "hook_started");
    let started: Vec<String> =
        started.map(|frame| frame["hook_event"].as_str().unwrap().to_owned()).collect();
    assert!(
        started.contains(&"SessionStart".to_owned()) && started.contains(&"Stop".to_owned()),
        "{started:?}"
    );
    assert!(!run.stderr.contains("never run"), "{}", run.stderr);
}

#[test]
fn a_guard_of_prompts_that_fails_refuses_them_and_one_of_an_untrusted_project_does_not_run() {
    let fixture = CliFixture::new();
    let guard = |command: &str| json!({ "hooks": { "UserPromptSubmit": [hook(command)] } }).to_string();
    let model = ScriptedModel::new(&json!({ "turns": [{ "text": "Fine." }] }));
    for command in ["exit 1", "exit 2", "/nonexistent/guard"] {
        let settings = guard(command);
        let more = ["--settings", &settings, "--", "go"];
        let run = model.run(&fixture, "anthropic", &[&STREAM[..], &more].concat());
        assert!(
            result_of(&run)["result"].as_str().unwrap().contains("a hook blocked the prompt"),
            "{command}"
        );
        assert!(model.requests().is_empty(), "{command}");
    }
    fixture.write(".claude/settings.json", &guard("touch ran"));
    let run = model.run(&fixture, "anthropic", &[&STREAM[..], &["go"]].concat());
    assert_eq!(result_of(&run)["result"], "Fine.");
    assert!(!fixture.path("ran").exists());
    // Once trusted it runs; changed, it guards until it is trusted again.
    assert_eq!(fixture.run(&["trust", "add", "--yes"]).code, 0);
    model.play(&json!({ "turns": [{ "text": "Fine." }] }));
    model.run(&fixture, "anthropic", &[&STREAM[..], &["go"]].concat());
    assert!(fixture.path("ran").exists());
    fixture.write(".claude/settings.json", &guard("touch other"));
    model.play(&json!({ "turns": [{ "text": "Fine." }] }));
    let run = model.run(&fixture, "anthropic", &[&STREAM[..], &["go"]].concat());
    assert!(!fixture.path("other").exists() && model.requests().is_empty(), "{}", run.stdout);
}

#[test]
fn instructions_of_files_survive_compaction_and_reach_subagents_that_do_work() {
    let fixture = CliFixture::new();
    fixture.write("CLAUDE.md", "always say tangerine\n");
    let agent = |kind: &str| {
        let input = json!({ "description": "d", "prompt": "look", "subagent_type": kind, "run_in_background": false });
        json!({ "tools": [{ "name": "Agent", "input": input }], "usage": { "input_tokens": 10 } })
    };
    let full = json!({ "tools": [{ "name": "ls", "input": {} }], "usage": { "input_tokens": 190_000 } });
    let script = json!({ "lanes": [
        { "when": { "system_contains": "another agent gave you one task" }, "turns": [{ "text": "Worked." }] },
        { "when": { "system_contains": "finds things out" }, "turns": [{ "text": "Found." }] },
        { "turns": [agent("general-purpose"), agent("Explore"), full, { "text": "SUMMARY" }, { "text": "Done." }] },
    ] });
    let model = ScriptedModel::new(&script);
    let more = ["--allowedTools", "Agent", "--", "go"];
    let run = model.run(&fixture, "anthropic", &[&STREAM[..], &more].concat());
    assert_eq!(result_of(&run)["result"], "Done.", "{} {}", run.stdout, run.stderr);
    let requests = model.requests();
    let find = |words: &str| requests.iter().find(|body| body["system"].to_string().contains(words)).unwrap();
    assert!(find("gave you one task")["messages"].to_string().contains("always say tangerine"));
    assert!(!find("finds things out")["messages"].to_string().contains("always say tangerine"));
    let last = requests.last().unwrap()["messages"].to_string();
    assert!(last.contains("SUMMARY") && last.contains("always say tangerine"), "{last}");
}

/// A worktree with another branch: the settings of the checkout count, and its rules mean the worktree's files.
#[test]
fn project_settings_can_come_from_another_checkout() {
    let fixture = CliFixture::new();
    let checkout = fixture.beside("checkout");
    std::fs::create_dir_all(checkout.join(".claude/agents")).unwrap();
    let rules = json!({ "permissions": { "deny": ["Read(/secret.txt)"] }, "hooks": { "Stop": [hook("touch stopped")] } });
    std::fs::write(checkout.join(".claude/settings.json"), rules.to_string()).unwrap();
    std::fs::write(checkout.join(".claude/agents/rev.md"), "---\nname: rev\ndescription: d\n---\nx\n")
        .unwrap();
    fixture.write("secret.txt", "tangerine\n");
    let own = json!({ "permissions": { "deny": ["Read(/open.txt)"] } });
    fixture.write(".claude/settings.json", &own.to_string());
    fixture.write("open.txt", "apple\n");
    let root = checkout.to_str().unwrap();
    assert_eq!(fixture.run(&["trust", "add", "--yes", "--cwd", root]).code, 0);
    let read = |name: &str, id: &str| json!({ "name": "Read", "input": { "file_path": fixture.path(name) }, "id": id });
    let calls = json!({ "tools": [read("secret.txt", "toolu_s"), read("open.txt", "toolu_o")] });
    let model = ScriptedModel::new(&json!({ "turns": [calls, { "text": "Done." }] }));
    let more = ["--project-config-root", root, "--", "go"];
    let run = model.run(&fixture, "anthropic", &[&STREAM[..], &more].concat());
    assert_eq!(result_of(&run)["result"], "Done.", "{} {}", run.stdout, run.stderr);
    assert!(!run.stdout.contains("tangerine") && run.stdout.contains("apple"), "{}", run.stdout);
    assert!(checkout.join("stopped").exists(), "hooks run where their files are");
    let init = frames(&run).into_iter().find(|frame| frame["subtype"] == "init").unwrap();
    assert!(init["agents"].as_array().unwrap().contains(&json!("rev")), "{init}");
    let wrong = fixture.run(&["--project-config-root", "/nonexistent", "tools"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
}

#[test]
fn the_log_of_a_run_has_its_events_and_no_word_of_the_conversation() {
    let fixture = CliFixture::new();
    let turns = json!([{ "error": 500, "headers": { "retry-after-ms": "5" } },
        { "text": "tangerine", "tools": [{ "name": "ls", "input": {} }] }, { "text": "Done." }]);
    let model = ScriptedModel::new(&json!({ "turns": turns }));
    let run = model.run(&fixture, "anthropic", &["run", "-p", "--debug-file", "run.log", "say tangerine"]);
    assert_eq!(run.stdout.trim(), "Done.", "{}", run.stderr);
    let log = std::fs::read_to_string(fixture.path("run.log")).unwrap();
    for words in ["request to claude-sonnet-4-5", "retry 1 of 10", "call ls", "block text"] {
        assert!(log.contains(words), "{words}: {log}");
    }
    assert!(!log.contains("tangerine"), "{log}");
}
