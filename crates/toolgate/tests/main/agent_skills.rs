//! Skills, agents and output styles in `toolgate run`.

use super::agent_fixture::ScriptedModel;
use super::cli_fixture::{CliFixture, CliRun};
use super::plugins::write_file;
use serde_json::{Value, json};

/// Runs a prompt against a script, and returns what the model was sent as well.
fn run_prompt(fixture: &CliFixture, script: &Value, args: &[&str]) -> (CliRun, Vec<Value>) {
    let model = ScriptedModel::new(script);
    let run = model.run(fixture, "anthropic", &[&["run", "-p"], args].concat());
    (run, model.requests())
}

fn answer(text: &str) -> Value {
    json!({ "turns": [{ "text": text }] })
}

#[test]
fn a_prompt_that_names_a_skill_is_replaced_by_its_text() {
    let fixture = CliFixture::new();
    fixture.write(".claude/commands/fix.md", "---\ndescription: Fixes\n---\nFix $0 carefully.\n");
    fixture.write(".claude/skills/bold/SKILL.md", "---\ndescription: d\n---\n!`touch made`\n");
    let (run, sent) = run_prompt(&fixture, &answer("Done."), &["/fix lib.rs"]);
    assert_eq!((run.code, run.stdout.trim()), (0, "Done."), "{run:?}");
    let text = sent[0]["messages"].to_string();
    assert!(text.contains("Fix lib.rs carefully.") && !text.contains("/fix"), "{text}");

    // Several names give several texts, each with the arguments; what is no name is an argument.
    fixture.write(".claude/commands/check.md", "---\ndescription: Checks\n---\nCheck $ARGUMENTS.\n");
    let (run, sent) = run_prompt(&fixture, &answer("Done."), &["/fix /check /etc/hosts"]);
    assert_eq!(run.code, 0, "{run:?}");
    let text = sent[0]["messages"].to_string();
    assert!(text.contains("Fix /etc/hosts carefully.\\n\\nCheck /etc/hosts."), "{text}");

    // A skill that cannot be loaded does not reach the model, and neither does its name.
    let (run, sent) = run_prompt(&fixture, &answer("No."), &["/bold"]);
    assert!(run.code == 1 && run.stderr.contains("`touch made`"), "{run:?}");
    assert!(sent.is_empty() && !fixture.path("made").exists());

    // What is no name of a skill is a text.
    let (run, sent) = run_prompt(&fixture, &answer("Yes."), &["/etc/hosts is a file"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(sent[0]["messages"].to_string().contains("/etc/hosts is a file"));
}

#[test]
fn what_a_skill_pre_approves_holds_in_its_turn_only() {
    let fixture = CliFixture::new();
    let text = "---\ndescription: d\nallowed-tools: Bash(touch *)\n---\nMake it.\n";
    let skill = fixture.beside("home/.claude/skills/maker/SKILL.md");
    std::fs::create_dir_all(skill.parent().unwrap()).unwrap();
    std::fs::write(skill, text).unwrap();
    let touch = |name: &str| json!({ "tools": [{ "name": "Bash", "input": { "command": format!("touch {name}") } }] });
    let script =
        json!({ "turns": [touch("one"), { "text": "Made." }, touch("two"), { "text": "Refused." }] });
    let model = ScriptedModel::new(&script);
    let run = |args: &[&str]| model.run(&fixture, "anthropic", &[&["run", "-p"], args].concat());
    let first = run(&["/maker"]);
    assert_eq!(first.code, 0, "{first:?}");
    assert!(fixture.path("one").exists(), "{first:?}");
    let second = run(&["--continue", "again"]);
    assert_eq!(second.code, 0, "{second:?}");
    assert!(!fixture.path("two").exists(), "the turn of the skill is over");
}

#[test]
fn an_output_style_is_in_the_system_prompt_of_the_main_conversation() {
    let fixture = CliFixture::new();
    fixture.write(".claude/output-styles/pirate.md", "---\nname: pirate\n---\nSpeak like a pirate.\n");
    let kept = "---\nname: calm\nkeep-coding-instructions: true\n---\nStay calm.\n";
    fixture.write(".claude/output-styles/calm.md", kept);
    let system = |args: &[&str]| {
        let (run, sent) = run_prompt(&fixture, &answer("Aye."), &[args, &["hello"]].concat());
        assert_eq!(run.code, 0, "{run:?}");
        sent[0]["system"].to_string()
    };
    let plain = system(&[]);
    assert!(plain.contains("How calls are judged") && !plain.contains("pirate"));
    let replaced = system(&["--output-style", "pirate"]);
    assert!(replaced.contains("Speak like a pirate.") && !replaced.contains("How calls are judged"));
    assert!(replaced.contains("working directory"));
    let kept = system(&["--settings", r#"{"outputStyle":"calm"}"#]);
    assert!(kept.contains("Stay calm.") && kept.contains("How calls are judged"));
    let none = system(&["--settings", r#"{"outputStyle":"calm"}"#, "--output-style", "default"]);
    assert!(!none.contains("Stay calm."));
    let (run, _) = run_prompt(&fixture, &answer("x"), &["--output-style", "nothing", "hello"]);
    assert!(run.code == 2 && run.stderr.contains("there is no output style `nothing`"), "{run:?}");

    // The model that a plugin requests counts only once the plugin is approved.
    let dir = fixture.beside("styled");
    write_file(&dir, "output-styles/loud.md", "---\nname: loud\nforce-for-plugin: true\n---\nSHOUT.\n");
    let dir = dir.display().to_string();
    assert!(!system(&["--plugin-dir", &dir]).contains("SHOUT."));
    assert_eq!(fixture.run(&["plugin", "approve", &dir, "--yes"]).code, 0);
    assert!(system(&["--plugin-dir", &dir]).contains("SHOUT."));
}

#[test]
fn agents_of_files_and_plugins_can_be_started() {
    let fixture = CliFixture::new();
    let agent =
        |text: &str| format!("---\nname: critic\ndescription: Criticises\ntools: Read\n---\n{text}\n");
    fixture.write(".claude/agents/critic.md", &agent("You are the critic of the project."));
    let dir = fixture.beside("team");
    write_file(&dir, "agents/critic.md", &agent("You are the critic of the plugin."));
    let dir = dir.display().to_string();
    for (kind, system) in [("critic", "critic of the project"), ("team:critic", "critic of the plugin")] {
        let input = json!({ "description": "look", "prompt": "look at it", "subagent_type": kind, "run_in_background": false });
        let call = json!({ "tools": [{ "name": "Agent", "input": input }] });
        let script = json!({ "lanes": [
            { "when": { "system_contains": system }, "turns": [{ "text": "It is bad." }] },
            { "turns": [call, { "text": "Thanks." }] },
        ] });
        let args = ["--plugin-dir", dir.as_str(), "--allowedTools", "Agent", "--", "go"];
        let (run, sent) = run_prompt(&fixture, &script, &args);
        assert_eq!(run.stdout.trim(), "Thanks.", "{kind}: {run:?}");
        assert!(sent.iter().any(|body| body["system"].to_string().contains(system)), "{kind}");
    }
}

#[test]
fn a_skill_with_a_context_of_its_own_is_the_task_of_a_subagent() {
    let fixture = CliFixture::new();
    let text = "---\ndescription: d\ncontext: fork\n---\nCount the files in $0.\n";
    fixture.write(".claude/skills/count/SKILL.md", text);
    let script = json!({ "lanes": [
        { "when": { "system_contains": "You are a subagent" }, "turns": [{ "text": "There are seven." }] },
        { "turns": [{ "text": "Seven, then." }] },
    ] });
    let (run, sent) = run_prompt(&fixture, &script, &["--allowedTools", "Agent", "--", "/count src"]);
    assert_eq!((run.code, run.stdout.trim()), (0, "Seven, then."), "{run:?}");
    let task = sent.iter().find(|body| body["system"].to_string().contains("You are a subagent")).unwrap();
    assert!(task["messages"].to_string().contains("Count the files in src."));
    let main = sent.iter().find(|body| body["messages"].to_string().contains("Its answer")).unwrap();
    assert!(main["messages"].to_string().contains("There are seven."));

    // A rule against the agent holds for the skill as well.
    let (run, sent) =
        run_prompt(&fixture, &script, &["--disallowedTools", "Agent(general-purpose)", "--", "/count src"]);
    assert!(run.code == 1 && sent.is_empty(), "{run:?}");
}
