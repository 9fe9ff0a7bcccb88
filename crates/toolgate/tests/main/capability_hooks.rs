//! Hooks and models of skills and agents: for the turn, for the life of an agent, and only where they are trusted.

use super::agent_fixture::ScriptedModel;
use super::cli_fixture::{CliFixture, CliRun};
use serde_json::{Value, json};
use std::path::Path;

/// A file with a hook for `Bash`: it notes each call, and refuses those that name `bad`.
fn guarded(fields: &str, body: &str) -> String {
    format!(
        "---\n{fields}\nhooks:\n  PreToolUse:\n    - matcher: Bash\n      hooks:\n        - type: command\n          \
         command: sh guard.sh\n---\n{body}\n"
    )
}

const GUARD: &str = "echo hook >> ran\nif grep -q bad; then echo 'not that one' >&2; exit 2; fi\n";

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn ran(fixture: &CliFixture) -> String {
    std::fs::read_to_string(fixture.path("ran")).unwrap_or_default()
}

fn touch(name: &str) -> Value {
    json!({ "tools": [{ "name": "Bash", "input": { "command": format!("touch {name}") } }] })
}

fn run(fixture: &CliFixture, script: &Value, args: &[&str]) -> (CliRun, Vec<Value>) {
    let model = ScriptedModel::new(script);
    let run = model.run(fixture, "anthropic", &[&["run", "-p"], args].concat());
    (run, model.requests())
}

#[test]
fn hooks_of_a_skill_screen_the_calls_of_its_turn() {
    let fixture = CliFixture::new();
    fixture.write("guard.sh", GUARD);
    let text = guarded("description: d\nallowed-tools: Bash(touch *)", "Make it.");
    write(&fixture.beside("home/.claude/skills/maker/SKILL.md"), &text);
    let script = json!({ "turns": [touch("good"), touch("bad"), { "text": "Made." }] });
    let (done, sent) = run(&fixture, &script, &["/maker"]);
    assert_eq!(done.code, 0, "{done:?}");
    assert!(fixture.path("good").exists() && !fixture.path("bad").exists(), "{done:?}");
    assert_eq!(ran(&fixture), "hook\nhook\n");
    assert!(sent.last().unwrap()["messages"].to_string().contains("not that one"), "{sent:?}");
    // Without the skill the hook does not run.
    let script = json!({ "turns": [touch("bad"), { "text": "Made." }] });
    let (done, _) = run(&fixture, &script, &["--allowedTools", "Bash(touch *)", "--", "make it"]);
    assert!(done.code == 0 && fixture.path("bad").exists(), "{done:?}");
    assert_eq!(ran(&fixture), "hook\nhook\n");
    let shown = fixture.run(&["skill", "show", "maker"]);
    assert!(shown.stdout.contains("hook PreToolUse Bash: sh guard.sh, until the turn ends"), "{shown:?}");
    // Settings that switch hooks off switch these off as well, and what they guard.
    let off = ["--settings", r#"{"disableAllHooks":true}"#, "--", "/maker"];
    let (done, _) = run(&fixture, &json!({ "turns": [touch("more"), { "text": "x" }] }), &off);
    assert!(done.code == 0 && !fixture.path("more").exists(), "{done:?}");
    assert_eq!(ran(&fixture), "hook\nhook\n");
}

#[test]
fn hooks_of_a_skill_of_the_project_run_only_as_they_were_trusted() {
    let fixture = CliFixture::new();
    fixture.write("guard.sh", GUARD);
    let text = guarded("description: d\nallowed-tools: Bash(touch *)", "Make it.");
    fixture.write(".claude/skills/maker/SKILL.md", &text);
    let make = |name: &str| {
        let script = json!({ "turns": [touch(name), { "text": "Made." }] });
        let (done, _) = run(&fixture, &script, &["/maker"]);
        assert_eq!(done.code, 0, "{done:?}");
        (fixture.path(name).exists(), done.stderr)
    };
    // Neither the hooks nor what they guard.
    let (is_made, notes) = make("one");
    assert!(
        !is_made
            && notes.contains("`hooks` of skill `maker` have no effect, and neither does `allowed-tools`"),
        "{notes}"
    );
    let listed = fixture.run(&["trust", "show"]);
    assert!(listed.stdout.contains("skill `maker`: hook PreToolUse Bash: sh guard.sh"), "{listed:?}");
    assert_eq!(fixture.run(&["trust", "add", "--yes"]).code, 0);
    let (is_made, notes) = make("two");
    assert!(is_made && ran(&fixture) == "hook\n", "{notes}");
    // The script is part of what was trusted.
    fixture.write("guard.sh", "echo other >> ran\n");
    let (is_made, notes) = make("three");
    assert!(!is_made && notes.contains("guard.sh changed after you trusted it"), "{notes}");
    assert_eq!(ran(&fixture), "hook\n");
    fixture.write("guard.sh", GUARD);
    assert!(make("four").0);
    // A command whose files are not known is not covered.
    fixture.write(".claude/skills/maker/SKILL.md", &text.replace("sh guard.sh", "npx guard"));
    assert_eq!(fixture.run(&["trust", "add", "--yes"]).code, 0);
    let (is_made, notes) = make("five");
    assert!(!is_made && notes.contains("the files that they run are unknown"), "{notes}");
}

#[test]
fn hooks_of_an_agent_screen_its_calls_and_no_others() {
    let fixture = CliFixture::new();
    fixture.write("guard.sh", GUARD);
    fixture.write("stop.sh", "echo stopped >> ran\n");
    let mut text = guarded("name: worker\ndescription: Works", "You are the worker.");
    text = text.replacen(
        "\n---\nYou",
        "\n  Stop:\n    - hooks:\n        - type: command\n          command: sh stop.sh\n---\nYou",
        1,
    );
    let file = fixture.beside("home/.claude/agents/worker.md");
    write(&file, &text);
    let input = json!({ "description": "work", "prompt": "work", "subagent_type": "worker", "run_in_background": false });
    let call = json!({ "tools": [{ "name": "Agent", "input": input }] });
    let script = json!({ "lanes": [
        { "when": { "system_contains": "You are the worker." }, "turns": [touch("bad-one"), { "text": "It was refused." }] },
        { "turns": [call, touch("bad-two"), { "text": "Done." }] },
    ] });
    let args = ["--allowedTools", "Agent,Bash(touch *)", "--", "go"];
    let (done, _) = run(&fixture, &script, &args);
    assert_eq!((done.code, done.stdout.trim()), (0, "Done."), "{done:?}");
    assert!(!fixture.path("bad-one").exists(), "the hook of the agent refuses it");
    assert!(fixture.path("bad-two").exists(), "the main conversation is not the agent's");
    assert_eq!(ran(&fixture), "hook\nstopped\n");
    // In a project it needs trust; until then it is no agent at all.
    std::fs::remove_file(&file).unwrap();
    fixture.write(".claude/agents/worker.md", &text);
    let (done, _) = run(&fixture, &json!({ "turns": [{ "text": "Hi." }] }), &["hello"]);
    assert!(done.stderr.contains("agent `worker`") && done.stderr.contains("toolgate trust add"), "{done:?}");
    assert_eq!(fixture.run(&["trust", "add", "--yes"]).code, 0);
    let (done, _) = run(&fixture, &script, &args);
    assert_eq!(done.stdout.trim(), "Done.", "{done:?}");
    assert_eq!(ran(&fixture), "hook\nstopped\nhook\nstopped\n");
}

#[test]
fn the_model_of_a_skill_answers_for_the_rest_of_its_turn() {
    let fixture = CliFixture::new();
    fixture.write(".claude/skills/quick/SKILL.md", "---\ndescription: d\nmodel: haiku\n---\nBe quick.\n");
    fixture.write(".claude/skills/same/SKILL.md", "---\ndescription: d\nmodel: inherit\n---\nStay.\n");
    let models = |protocol: &str, prompt: &str| {
        let model = ScriptedModel::new(&json!({ "turns": [{ "text": "Yes." }] }));
        let done = model.run(&fixture, protocol, &["run", "-p", "--model", "claude-sonnet-5", prompt]);
        assert_eq!(done.code, 0, "{done:?}");
        model.requests()[0]["model"].as_str().unwrap().to_owned()
    };
    assert_eq!(models("anthropic", "/quick"), "claude-haiku-4-5");
    assert_eq!(models("anthropic", "/same"), "claude-sonnet-5");
    assert_eq!(models("anthropic", "hello"), "claude-sonnet-5");
    // A provider without these models answers with the one of the run.
    assert_eq!(models("chat", "/quick"), "claude-sonnet-5");
    // Loaded by the model itself, it holds from the next request on, and not for the next prompt.
    let load = json!({ "tools": [{ "name": "Skill", "input": { "skill": "quick" } }] });
    let model = ScriptedModel::new(&json!({ "turns": [load, { "text": "Quick." }, { "text": "Again." }] }));
    let args = ["run", "-p", "--model", "claude-sonnet-5", "--allowedTools", "Skill", "--"];
    let done = model.run(&fixture, "anthropic", &[&args[..], &["go"]].concat());
    assert_eq!(done.stdout.trim(), "Quick.", "{done:?}");
    let used: Vec<Value> = model.requests().iter().map(|body| body["model"].clone()).collect();
    assert_eq!(used, ["claude-sonnet-5", "claude-haiku-4-5"]);
}
