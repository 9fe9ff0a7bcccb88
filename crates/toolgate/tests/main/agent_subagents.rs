//! Subagents: never a permission that the session lacks, and every call of theirs on record.

use super::agent_fixture::{PROTOCOLS, ScriptedModel, frames, result_of};
use super::cli_fixture::CliFixture;
use serde_json::{Value, json};

const STREAM: [&str; 4] = ["run", "-p", "--output-format", "stream-json"];

fn tool_names(body: &Value) -> Vec<String> {
    let tools = body["tools"].as_array().unwrap();
    tools
        .iter()
        .map(|tool| tool["name"].as_str().or(tool["function"]["name"].as_str()).unwrap().to_owned())
        .collect()
}

fn agent_call(kind: &str) -> Value {
    let input = json!({
        "description": "look around", "prompt": "find the word", "subagent_type": kind, "run_in_background": false,
    });
    json!({ "tools": [{ "name": "Agent", "input": input, "id": "toolu_parent" }] })
}

#[test]
fn a_subagent_reads_reports_and_is_on_record() {
    for protocol in PROTOCOLS {
        let fixture = CliFixture::new();
        fixture.write("a.txt", "tangerine\n");
        let read = json!({ "tools": [{ "name": "Read", "input": { "file_path": fixture.path("a.txt") }, "id": "toolu_inner" }] });
        let write = json!({ "tools": [{ "name": "Write", "input": { "file_path": fixture.path("b.txt"), "content": "x" } }] });
        let script = json!({ "lanes": [
            { "when": { "system_contains": "subagent that finds things out" },
              "turns": [read, write, { "text": "The word is tangerine." }] },
            { "turns": [agent_call("Explore"), { "text": "Thanks." }] },
        ] });
        let model = ScriptedModel::new(&script);
        let run = model.run(
            &fixture,
            protocol,
            &[&STREAM[..], &["--allowedTools", "Agent,Write", "--", "go"]].concat(),
        );
        assert_eq!(result_of(&run)["result"], "Thanks.", "{protocol}: {} {}", run.stdout, run.stderr);
        assert_eq!(model.seen()["violations"], json!([]), "{protocol}");
        let inner =
            model.requests().into_iter().find(|body| body.to_string().contains("finds things out")).unwrap();
        let shown = tool_names(&inner);
        assert!(shown.contains(&"Read".to_owned()) && !shown.contains(&"Write".to_owned()), "{shown:?}");
        assert!(!fixture.path("b.txt").exists(), "a tool that is not shown does not run either");
        let frames = frames(&run);
        let find = |subtype: &str| frames.iter().find(|frame| frame["subtype"] == subtype).unwrap();
        assert_eq!(find("task_started")["tool_use_id"], "toolu_parent");
        assert_eq!(find("task_notification")["status"], "completed");
        assert!(
            frames
                .iter()
                .any(|frame| frame["parent_tool_use_id"] == "toolu_parent" && frame["type"] == "assistant")
        );
        let result = frames
            .iter()
            .find(|frame| frame["message"]["content"][0]["tool_use_id"] == "toolu_parent")
            .unwrap();
        let text = result["message"]["content"][0]["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("tangerine") && text.contains("agentId: agent-"), "{text}");
        let records = fixture.run(&["log", "--json"]).stdout;
        let record = records.lines().find(|line| line.contains("toolu_inner")).unwrap();
        assert!(record.contains(r#""parent":"toolu_parent""#) && record.contains("subagent"), "{record}");
    }
}

/// The type asks for more than the session has: it does not get it.
#[test]
fn rules_and_mode_hold_for_subagents() {
    let fixture = CliFixture::new();
    fixture.write("secret.txt", "tangerine\n");
    let agents = json!({ "loose": { "description": "d", "prompt": "You are the loose one.", "permissionMode": "bypassPermissions" } });
    let calls = json!({ "tools": [
        { "name": "Read", "input": { "file_path": fixture.path("secret.txt") }, "id": "toolu_r" },
        { "name": "Write", "input": { "file_path": fixture.path("w.txt"), "content": "x" }, "id": "toolu_w" },
    ] });
    let script = json!({ "lanes": [
        { "when": { "system_contains": "the loose one" }, "turns": [calls, { "text": "Tried." }] },
        { "turns": [agent_call("loose"), { "text": "Ok." }] },
    ] });
    let model = ScriptedModel::new(&script);
    let agents = agents.to_string();
    let more =
        ["--agents", &agents, "--allowedTools", "Agent", "--disallowedTools", "Read(secret.txt)", "--", "go"];
    let run = model.run(&fixture, "anthropic", &[&STREAM[..], &more].concat());
    assert_eq!(result_of(&run)["result"], "Ok.", "{} {}", run.stdout, run.stderr);
    assert!(!fixture.path("w.txt").exists());
    let results: Vec<Value> = frames(&run)
        .into_iter()
        .filter(|frame| frame["type"] == "user" && frame["parent_tool_use_id"] == "toolu_parent")
        .map(|frame| frame["message"]["content"][0].clone())
        .collect();
    assert_eq!(results.len(), 2);
    assert!(results.iter().all(|result| result["is_error"] == json!(true)), "{results:?}");
    assert!(!results[0].to_string().contains("tangerine"));
}

#[test]
fn depth_and_budget_limit_subagents() {
    let fixture = CliFixture::new();
    let script = json!({ "lanes": [
        { "when": { "system_contains": "another agent gave you one task" },
          "turns": [{ "text": "Deep.", "usage": { "input_tokens": 1_000_000 } }] },
        { "turns": [agent_call("general-purpose"), { "text": "never asked" }] },
    ] });
    let model = ScriptedModel::new(&script);
    let more = ["--allowedTools", "Agent", "--max-budget-usd", "1", "--model", "claude-sonnet-5", "--", "go"];
    let mut command = model.command(&fixture, "anthropic", &[&STREAM[..], &more].concat());
    command.env("CLAUDE_CODE_MAX_SUBAGENT_SPAWN_DEPTH", "1");
    let run = super::cli_fixture::cli_run(command.output().unwrap());
    assert_eq!(result_of(&run)["subtype"], "error_max_budget_usd", "{} {}", run.stdout, run.stderr);
    let requests = model.requests();
    assert!(
        !tool_names(&requests[1]).contains(&"Agent".to_owned()),
        "an agent at the limit starts no further one"
    );
    assert!(tool_names(&requests[0]).contains(&"Agent".to_owned()));
}

/// A type that could do more than its definition says is no type.
#[test]
fn a_misspelling_in_a_type_makes_it_unusable_and_is_named() {
    let fixture = CliFixture::new();
    let model = ScriptedModel::new(&json!({ "lanes": [{ "turns": [{ "text": "Ok." }] }] }));
    for (entry, says) in [
        (json!({ "tool": ["Read"] }), "agent `x`: unknown key `tool`; did you mean `tools`?"),
        (json!({ "disalowedTools": ["Bash"] }), "did you mean `disallowedTools`?"),
        (
            json!({ "disallowedTools": ["Bahs"] }),
            "unknown tool `Bahs` in `disallowedTools`; did you mean `Bash`?",
        ),
    ] {
        let mut agent = json!({ "description": "d", "prompt": "p" });
        agent.as_object_mut().unwrap().extend(entry.as_object().unwrap().clone());
        let agents = json!({ "x": agent }).to_string();
        let run = model.run(&fixture, "anthropic", &["run", "-p", "--agents", &agents, "--", "go"]);
        assert!(run.code == 2 && run.stderr.contains(says), "{agents}: {run:?}");
    }
    let ultra = fixture.run(&["run", "-p", "--effort", "ultra", "--", "go"]);
    assert!(ultra.code == 2 && ultra.stderr.contains("low, medium, high"), "{ultra:?}");
    for (name, field) in [("keyed", "disalowedTools: Bash"), ("listed", "disallowedTools: Bahs(rm *)")] {
        let text = format!("---\nname: {name}\ndescription: d\ntools: Reed, Grep\n{field}\n---\nprompt\n");
        fixture.write(&format!(".toolgate/agents/{name}.md"), &text);
    }
    let lint = fixture.run(&["skill", "lint", &fixture.path(".toolgate").to_string_lossy()]);
    assert_eq!(lint.code, 1, "{lint:?}");
    for (part, count) in [
        ("5: error: `disalowedTools` is not a known field and has no effect; write `disallowedTools`", 1),
        ("5: error: unknown tool `Bahs` in `disallowedTools`; did you mean `Bash`?", 1),
        ("4: warning: unknown tool `Reed` in `tools`; did you mean `Read`?", 2),
    ] {
        assert_eq!(lint.stdout.matches(part).count(), count, "{part}: {lint:?}");
    }
    let run = model.run(&fixture, "anthropic", &[&STREAM[..], &["--", "go"]].concat());
    assert!(run.stderr.contains("agent `keyed` of ") && run.stderr.contains("agent `listed` of "), "{run:?}");
    let offered = model.requests()[0]["tools"].to_string();
    assert!(!offered.contains("- keyed:") && !offered.contains("- listed:"), "{offered}");
}

/// The advice to add a rule would end in the same refusal.
#[test]
fn an_unknown_type_is_refused_before_the_question() {
    let fixture = CliFixture::new();
    let script = json!({ "lanes": [{ "turns": [agent_call("nope"), { "text": "Ok." }] }] });
    let model = ScriptedModel::new(&script);
    let run = model.run(&fixture, "anthropic", &[&STREAM[..], &["--", "go"]].concat());
    assert!(run.stdout.contains("there is no agent type `nope`"), "{run:?}");
    assert!(!run.stdout.contains("TG-502"), "{run:?}");
}

#[test]
fn files_define_types_and_a_stronger_source_counts() {
    let fixture = CliFixture::new();
    fixture.write("a.txt", "tangerine\n");
    fixture.write(
        ".claude/agents/team/reader.md",
        "---\nname: reader\ndescription: reads one file\ntools: Read\nmaxTurns: 2\npermissionMode: plan\n---\nYou are the file reader.\n",
    );
    fixture.write(
        ".toolgate/agents/guarded.md",
        "---\nname: guarded\ndescription: d\nhooks:\n  PreToolUse: []\n---\nYou have hooks.\n",
    );
    fixture.write(
        ".toolgate/agents/taken.md",
        "---\nname: taken\ndescription: written-on-disk\n---\nI am from a file.\n",
    );
    let read = json!({ "tools": [{ "name": "Read", "input": { "file_path": fixture.path("a.txt") } }] });
    let endless: Vec<Value> = (0..5).map(|_| read.clone()).collect();
    let script = json!({ "lanes": [
        { "when": { "system_contains": "You are the file reader." }, "turns": endless },
        { "turns": [agent_call("reader"), { "text": "Read." }] },
    ] });
    let model = ScriptedModel::new(&script);
    let given = json!({ "taken": { "description": "of the command line", "prompt": "p" } }).to_string();
    let more = ["--agents", &given, "--allowedTools", "Agent", "--", "go"];
    let run = model.run(&fixture, "anthropic", &[&STREAM[..], &more].concat());
    assert_eq!(result_of(&run)["result"], "Read.", "{} {}", run.stdout, run.stderr);
    let requests = model.requests();
    let inner: Vec<&Value> =
        requests.iter().filter(|body| body["system"].to_string().contains("the file reader")).collect();
    assert_eq!(inner.len(), 2, "maxTurns of the file holds");
    let shown = tool_names(inner[0]);
    assert!(shown.contains(&"Read".to_owned()), "{shown:?}");
    assert!(
        !["Write", "Bash", "Agent", "Glob"].iter().any(|tool| shown.contains(&(*tool).to_owned())),
        "{shown:?}"
    );
    let offered = requests[0]["tools"].to_string();
    assert!(offered.contains("reads one file") && offered.contains("of the command line"), "{offered}");
    assert!(!offered.contains("written-on-disk") && !offered.contains("guarded"), "{offered}");
    assert!(run.stderr.contains("agent `guarded`") && run.stderr.contains("hooks"), "{}", run.stderr);
    let init = frames(&run).into_iter().find(|frame| frame["subtype"] == "init").unwrap();
    assert!(init["agents"].as_array().unwrap().contains(&json!("reader")), "{init}");
}

#[test]
fn a_turn_goes_on_with_the_results_of_agents_in_the_background() {
    for protocol in PROTOCOLS {
        let fixture = CliFixture::new();
        // The background is the default.
        let input = json!({ "description": "look", "prompt": "find the word" });
        let launch = json!({ "tools": [{ "name": "Agent", "input": input, "id": "toolu_parent" }] });
        let script = json!({ "lanes": [
            { "when": { "system_contains": "another agent gave you one task" },
              "turns": [{ "text": "The word is tangerine.", "delay_ms": 300 }] },
            { "turns": [launch, { "text": "I wait." }, { "text": "It is tangerine." }] },
        ] });
        let model = ScriptedModel::new(&script);
        let run =
            model.run(&fixture, protocol, &[&STREAM[..], &["--allowedTools", "Agent", "--", "go"]].concat());
        assert_eq!(
            result_of(&run)["result"],
            "It is tangerine.",
            "{protocol}: {} {}",
            run.stdout,
            run.stderr
        );
        assert_eq!(model.seen()["violations"], json!([]), "{protocol}");
        let frames = frames(&run);
        let started = frames.iter().find(|frame| frame["subtype"] == "task_started").unwrap();
        assert_eq!(started["is_backgrounded"], true);
        let launched = frames.iter().find(|frame| frame["tool_use_result"]["status"] == "async_launched");
        assert!(launched.is_some(), "{}", run.stdout);
        let last = model.requests().last().unwrap().to_string();
        assert!(last.contains("task-notification") && last.contains("The word is tangerine."), "{last}");
        // What came in between is part of the stored session.
        let model = ScriptedModel::new(&json!({ "turns": [{ "text": "Again." }] }));
        model.run(&fixture, protocol, &[&STREAM[..], &["--continue", "next"]].concat());
        assert!(model.requests()[0].to_string().contains("task-notification"), "{protocol}");
    }
}

#[test]
fn a_message_to_an_agent_that_does_not_exist_is_refused() {
    let fixture = CliFixture::new();
    let script = json!({ "lanes": [
        { "when": { "system_contains": "another agent gave you one task" },
          "turns": [{ "text": "First." }, { "text": "Second." }] },
        { "turns": [agent_call("general-purpose"),
                    { "tools": [{ "name": "SendMessage", "input": { "to": "agent-unknown", "message": "more" } }] },
                    { "text": "Done." }] },
    ] });
    let model = ScriptedModel::new(&script);
    let run =
        model.run(&fixture, "anthropic", &[&STREAM[..], &["--allowedTools", "Agent", "--", "go"]].concat());
    assert_eq!(result_of(&run)["result"], "Done.", "{} {}", run.stdout, run.stderr);
    let answer = model.requests().last().unwrap().to_string();
    assert!(answer.contains("there is no agent `agent-unknown`"), "{answer}");
}

#[test]
fn the_main_conversation_can_be_of_a_type() {
    let fixture = CliFixture::new();
    fixture.write("a.txt", "tangerine\n");
    let agents = json!({ "reader": {
        "description": "d", "prompt": "You are the reader.", "tools": ["Read"], "model": "claude-haiku-4-5", "permissionMode": "plan",
    } });
    let write = json!({ "tools": [{ "name": "Write", "input": { "file_path": fixture.path("w.txt"), "content": "x" } }] });
    let model = ScriptedModel::new(&json!({ "turns": [write, { "text": "I may not." }] }));
    let agents = agents.to_string();
    let more = ["--agents", &agents, "--agent", "reader", "--allowedTools", "Write", "--", "go"];
    let run = model.run(&fixture, "anthropic", &[&STREAM[..], &more].concat());
    assert_eq!(result_of(&run)["result"], "I may not.", "{} {}", run.stdout, run.stderr);
    let request = &model.requests()[0];
    let shown = tool_names(request);
    assert!(shown.contains(&"Read".to_owned()), "{shown:?}");
    assert!(
        !["Write", "Bash", "Agent", "Glob"].iter().any(|tool| shown.contains(&(*tool).to_owned())),
        "{shown:?}"
    );
    assert_eq!(request["model"], "claude-haiku-4-5");
    assert!(request["system"].to_string().contains("You are the reader."));
    assert!(!fixture.path("w.txt").exists(), "a tool that the type does not have does not run");
    let run = model.run(&fixture, "anthropic", &[&STREAM[..], &["--agent", "unknown", "--", "go"]].concat());
    assert!(run.code == 2 && run.stderr.contains("there is no agent type `unknown`"), "{}", run.stderr);
}

/// A repository with one commit in the workspace of a fixture.
fn make_repository(fixture: &CliFixture) {
    fixture.write("a.txt", "one\n");
    for args in [
        &["init", "-q", "-b", "main"][..],
        &["add", "a.txt"],
        &["-c", "user.name=t", "-c", "user.email=t@example.invalid", "commit", "-q", "-m", "first"],
    ] {
        let status = std::process::Command::new("git").args(args).current_dir(fixture.path("")).status();
        assert!(status.unwrap().success(), "git {args:?}");
    }
}

fn worktrees(fixture: &CliFixture) -> Vec<String> {
    let entries = std::fs::read_dir(fixture.path(".worktrees")).into_iter().flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned());
    names.filter(|name| !name.starts_with('.')).collect()
}

#[test]
fn an_isolated_subagent_works_in_a_worktree_that_is_removed_if_unchanged() {
    let isolated = |what: &str| {
        let input = json!({ "description": what, "prompt": "do it", "isolation": "worktree", "run_in_background": false });
        json!({ "tools": [{ "name": "Agent", "input": input, "id": "toolu_parent" }] })
    };
    let run = |turns: Value, fixture: &CliFixture, more: &[&str]| {
        let script = json!({ "lanes": [
            { "when": { "system_contains": "another agent gave you one task" }, "turns": turns },
            { "turns": [isolated("work"), { "text": "Done." }] },
        ] });
        let model = ScriptedModel::new(&script);
        let run = model.run(fixture, "anthropic", &[&STREAM[..], more, &["--", "go"]].concat());
        assert_eq!(result_of(&run)["result"], "Done.", "{} {}", run.stdout, run.stderr);
        (model.requests(), fixture.run(&["log", "--json"]).stdout)
    };
    let allowed = ["--allowedTools", "Agent,EnterWorktree,Bash(touch *)"];
    // It only reads: nothing is left, and the prompt names the directory in which it worked.
    let fixture = CliFixture::new();
    make_repository(&fixture);
    let (requests, records) = run(json!([{ "text": "Read all." }]), &fixture, &allowed);
    let inner =
        requests.iter().find(|body| body["system"].to_string().contains("gave you one task")).unwrap();
    let prompt = inner["system"].to_string();
    assert!(prompt.contains("/.worktrees/agent-"), "{prompt}");
    let answer = requests.last().unwrap().to_string();
    assert!(answer.contains("had no changes and was removed"), "{answer}");
    assert_eq!(worktrees(&fixture), [""; 0]);
    for tool in ["EnterWorktree", "ExitWorktree"] {
        let record = records.lines().find(|line| line.contains(&format!(r#""tool":"{tool}""#))).unwrap();
        assert!(record.contains(r#""parent":"toolu_parent""#) && record.contains("subagent"), "{record}");
    }
    // It writes: the checkout is as it was, and the worktree is kept and named.
    let write = json!({ "tools": [{ "name": "Bash", "input": { "command": "touch new.txt" } }] });
    let edits = ["--permission-mode", "acceptEdits", "--allowedTools", "Agent,Bash(touch *)"];
    let (requests, _) = run(json!([write, { "text": "Wrote." }]), &fixture, &edits);
    let kept = worktrees(&fixture);
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert!(fixture.path(".worktrees").join(&kept[0]).join("new.txt").exists());
    assert!(!fixture.path("new.txt").exists());
    let answer = requests.last().unwrap().to_string();
    assert!(answer.contains("its changes are in the git worktree") && answer.contains(&kept[0]), "{answer}");
    // Without the right to make one there is no agent.
    let (requests, _) = run(json!([{ "text": "never" }]), &fixture, &["--allowedTools", "Agent"]);
    let answer = requests.last().unwrap().to_string();
    assert!(answer.contains("the agent got no git worktree of its own"), "{answer}");
    assert_eq!(worktrees(&fixture), kept);
    // Where there is no repository, that is said.
    let bare = CliFixture::new();
    let (requests, _) = run(json!([{ "text": "never" }]), &bare, &allowed);
    assert!(requests.last().unwrap().to_string().contains("is in no git repository"));
}

#[test]
fn isolated_subagents_work_side_by_side() {
    let fixture = CliFixture::new();
    make_repository(&fixture);
    let call = |id: &str| {
        let input =
            json!({ "description": id, "prompt": id, "isolation": "worktree", "run_in_background": false });
        json!({ "name": "Agent", "input": input, "id": id })
    };
    let write =
        json!({ "tools": [{ "name": "Bash", "input": { "command": "touch same.txt" } }], "delay_ms": 300 });
    let script = json!({ "lanes": [
        { "when": { "system_contains": "another agent gave you one task" },
          "turns": [write, write, { "text": "Wrote." }, { "text": "Wrote." }] },
        { "turns": [{ "tools": [call("left"), call("right")] }, { "text": "Both." }] },
    ] });
    let model = ScriptedModel::new(&script);
    let more = ["--permission-mode", "acceptEdits", "--allowedTools", "Agent,Bash(touch *)", "--", "go"];
    let run = model.run(&fixture, "anthropic", &[&STREAM[..], &more].concat());
    assert_eq!(result_of(&run)["result"], "Both.", "{} {}", run.stdout, run.stderr);
    let kept = worktrees(&fixture);
    assert_eq!(kept.len(), 2, "{} {}", run.stdout, run.stderr);
    for name in kept {
        assert!(fixture.path(".worktrees").join(name).join("same.txt").exists());
    }
    assert!(!fixture.path("same.txt").exists());
    let frames = frames(&run);
    let at = |subtype: &str, nth: usize| {
        frames.iter().enumerate().filter(|(_, frame)| frame["subtype"] == subtype).nth(nth).unwrap().0
    };
    assert!(at("task_started", 1) < at("task_notification", 0), "the second began before the first ended");
}
