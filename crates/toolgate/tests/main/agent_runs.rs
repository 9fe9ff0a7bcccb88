//! `toolgate run`, as people and scripts use it.

use super::agent_fixture::{PROTOCOLS, ScriptedModel, frames, result_of};
use super::cli_fixture::CliFixture;
use serde_json::{Value, json};

#[test]
fn the_answer_is_printed_and_standard_input_is_part_of_the_prompt() {
    for protocol in PROTOCOLS {
        let (fixture, model) =
            (CliFixture::new(), ScriptedModel::new(&json!({ "turns": [{ "text": "It is fine." }] })));
        let mut command = model.command(&fixture, protocol, &["run", "-p", "review this"]);
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"the piped diff\n").unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "It is fine.\n", "{protocol}");
        let asked = model.requests()[0].to_string();
        assert!(asked.contains("review this") && asked.contains("the piped diff"));
        assert_eq!(model.seen()["violations"], json!([]), "{protocol}");
    }
}

/// Results come back in one message, in the order of the calls, whatever each call does.
#[test]
fn results_match_calls_one_to_one_in_order() {
    for protocol in PROTOCOLS {
        let fixture = CliFixture::new();
        fixture.write("a.txt", "alpha\n");
        let read = |name: &str| json!({ "name": "Read", "input": { "file_path": fixture.path(name) } });
        let tools = json!([
            read("a.txt"), read("missing.txt"), { "name": "NoSuchTool", "input": {} },
            { "name": "Bash", "input": { "command": "touch denied" } }, { "name": "ls", "input": {} },
        ]);
        let script = json!({ "turns": [{ "tools": tools }, { "text": "Seen." }] });
        let model = ScriptedModel::new(&script);
        let run = model.run(&fixture, protocol, &["run", "-p", "--output-format", "stream-json", "go"]);
        let result = result_of(&run);
        assert_eq!(result["result"], "Seen.", "{protocol}: {}", run.stderr);
        assert_eq!(model.seen()["violations"], json!([]), "{protocol}");
        let frames = frames(&run);
        let ids = |kind: &str, block: &str, key: &str| -> Vec<Value> {
            let of_kind = frames.iter().filter(|frame| frame["type"] == kind);
            let blocks = of_kind.map(|frame| frame["message"]["content"][0].clone());
            blocks.filter(|content| content["type"] == block).map(|content| content[key].clone()).collect()
        };
        let (calls, results) =
            (ids("assistant", "tool_use", "id"), ids("user", "tool_result", "tool_use_id"));
        assert_eq!((calls.len(), &calls), (5, &results), "{protocol}");
        let denied: Vec<&Value> = result["permission_denials"]
            .as_array()
            .unwrap()
            .iter()
            .map(|denial| &denial["tool_name"])
            .collect();
        assert_eq!(denied, ["Bash"], "{protocol}");
        assert!(!fixture.path("denied").exists());
    }
}

#[test]
fn turns_and_budget_end_a_run() {
    let fixture = CliFixture::new();
    let turns: Vec<Value> = (0..9)
        .map(|_| json!({ "tools": [{ "name": "ls", "input": {} }], "usage": { "input_tokens": 100_000, "output_tokens": 0 } }))
        .collect();
    let script = json!({ "turns": turns });
    let model = ScriptedModel::new(&script);
    let stream = ["run", "-p", "--output-format", "stream-json"];
    let args = [&stream[..], &["--max-turns", "2", "go"]].concat();
    let run = model.run(&fixture, "anthropic", &args);
    assert_eq!((run.code, &result_of(&run)["subtype"]), (1, &json!("error_max_turns")));
    assert_eq!(model.requests().len(), 2);
    // 100 000 tokens of this model cost $0.30: the second request reaches the budget, and there is no third.
    let model = ScriptedModel::new(&script);
    let args = [&stream[..], &["--max-budget-usd", "0.5", "--model", "claude-sonnet-5", "go"]].concat();
    let run = model.run(&fixture, "anthropic", &args);
    let result = result_of(&run);
    assert_eq!((run.code, &result["subtype"]), (1, &json!("error_max_budget_usd")));
    assert!((result["total_cost_usd"].as_f64().unwrap() - 0.6).abs() < 1e-9);
    assert_eq!(model.requests().len(), 2);
    let args = ["run", "-p", "--max-budget-usd", "1", "--model", "unknown-model", "go"];
    let run = model.run(&fixture, "anthropic", &args);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("TOOLGATE_MODEL_PRICE"), "{}", run.stderr);
}

#[test]
fn the_json_result_and_the_errors_of_usage() {
    let (fixture, model) = (CliFixture::new(), ScriptedModel::new(&json!({ "turns": [{ "text": "ok" }] })));
    let run = model.run(&fixture, "anthropic", &["-p", "hi", "--output-format", "json"]);
    let result: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!((&result["result"], &result["num_turns"], run.code), (&json!("ok"), &json!(1), 0));
    assert!(result["session_id"].is_string());
    let run = fixture.run(&["run", "-p", "hi"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("ANTHROPIC_API_KEY"), "{}", run.stderr);
    let run = model.run(&fixture, "anthropic", &["run", "-p"]);
    assert!(run.code == 2 && run.stderr.contains("there is no prompt"), "{}", run.stderr);
    let run = model.run(&fixture, "anthropic", &["-p", "hi", "--no-such-flag"]);
    assert_eq!(run.code, 2);
    assert!(fixture.run(&["-v"]).stdout.starts_with("toolgate "));
}

#[test]
fn instructions_import_no_file_that_the_rules_for_reading_withhold() {
    let fixture = CliFixture::new();
    fixture.write("CLAUDE.md", "Answer briefly.\n@.env\n@notes/plan.md\n@secrets/prod.md\n@public.md\n");
    fixture.write(".env", "TOKEN=from-env\n");
    fixture.write("notes/plan.md", "the denied plan\n");
    fixture.write("secrets/prod.md", "the password of production\n");
    fixture.write("public.md", "the public page\n");
    fixture.write(".claude/settings.local.json", r#"{"permissions":{"deny":["Read(notes/**)"]}}"#);
    let model = ScriptedModel::new(&json!({ "turns": [{ "text": "ok" }] }));
    let run = model.run(&fixture, "anthropic", &["-p", "hi"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    let text = model.requests()[0].to_string();
    assert!(text.contains("the public page"), "{text}");
    for withheld in ["from-env", "the denied plan", "the password of production"] {
        assert!(!text.contains(withheld), "{withheld}");
    }
    assert!(run.stderr.contains("plan.md") && run.stderr.contains("left out"), "{}", run.stderr);
}

#[test]
fn instructions_of_the_project_go_to_the_model_once() {
    let fixture = CliFixture::new();
    fixture.write("CLAUDE.md", "Always answer in rhyme.\n@more.md\n");
    fixture.write("more.md", "Use British spelling.\n");
    let script = json!({ "turns": [{ "tools": [{ "name": "ls", "input": {} }] }, { "text": "ok" }] });
    let model = ScriptedModel::new(&script);
    assert_eq!(model.run(&fixture, "anthropic", &["-p", "hi"]).code, 0);
    for body in model.requests() {
        let text = body["messages"].to_string();
        assert_eq!(text.matches("Always answer in rhyme.").count(), 1);
        assert!(text.contains("British spelling"));
        assert_eq!(
            body.to_string().matches("cache_control").count(),
            4.min(2 + body["messages"].as_array().unwrap().len())
        );
    }
    let model = ScriptedModel::new(&json!({ "turns": [{ "text": "ok" }] }));
    assert_eq!(model.run(&fixture, "anthropic", &["-p", "hi", "--setting-sources="]).code, 0);
    assert!(!model.requests()[0].to_string().contains("rhyme"));
}
