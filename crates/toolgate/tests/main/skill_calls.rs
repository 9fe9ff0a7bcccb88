//! Skills in use: the tool `Skill`, `toolgate skill run`, prompts over MCP, and the boundary that holds for all of them.

use super::cli_fixture::CliFixture;
use super::mcp_serve::{answered, opening, reply, request};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::Path;
use toolgate::settings::SettingsOptions;
use toolgate::skills::{CapabilityPlaces, SkillOptions};
use toolgate::{AbsPath, CancellationToken, Code, Toolgate, ToolgateBuilder, Verdict};

fn write_skill(root: &Path, name: &str, text: &str) {
    let path = root.join(".claude/skills").join(name).join("SKILL.md");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// A workspace whose home has the user's skills, which may pre-approve tools.
struct SkillFixture {
    dir: tempfile::TempDir,
}

impl SkillFixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["ws", "home"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        Self { dir }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn builder(&self) -> ToolgateBuilder {
        let mut settings = SettingsOptions::new(AbsPath::new(self.path("ws")).unwrap());
        settings.managed_dirs.clear();
        settings.home = Some(AbsPath::new(self.path("home")).unwrap());
        let places = CapabilityPlaces::of_settings(&settings, &[]);
        let env = [("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned())];
        Toolgate::builder(self.path("ws")).skills(SkillOptions::new(places)).env(env.into())
    }
}

async fn call_skill(toolgate: &Toolgate, name: &str, args: &str) -> Result<String, toolgate::Refusal> {
    let input = json!({ "skill": name, "args": args }).to_string();
    toolgate.call("call_1", "Skill", &input).await.result.map(|output| output.model_text())
}

async fn load(toolgate: &Toolgate, name: &str, args: &str) -> Result<String, toolgate::Refusal> {
    toolgate.load_skill(name, args, CancellationToken::new()).await.map(|loaded| loaded.text)
}

fn verdict(toolgate: &Toolgate, command: &str) -> &'static str {
    toolgate.check("Bash", &json!({ "command": command }).to_string()).unwrap().verdict.as_str()
}

#[tokio::test]
async fn a_model_loads_a_skill_by_a_rule_and_sees_only_what_it_may_use() {
    let fixture = SkillFixture::new();
    write_skill(&fixture.path("ws"), "review", "---\ndescription: Reviews\n---\nReview $0 and\n$1.\n");
    write_skill(
        &fixture.path("ws"),
        "private",
        "---\ndescription: Mine\ndisable-model-invocation: true\n---\nx",
    );
    let toolgate = fixture.builder().build().unwrap();
    let listed = toolgate.tools().into_iter().find(|tool| tool.name.as_str() == "Skill").unwrap().description;
    assert!(listed.contains("- review: Reviews") && !listed.contains("private"), "{listed}");
    let refusal = call_skill(&toolgate, "review", "a").await.unwrap_err();
    assert_eq!(refusal.code, Code::ApprovalUnavailable, "loading a skill needs a rule");

    let toolgate = fixture.builder().allow("Skill(review *)").allow("Skill(private)").build().unwrap();
    let text = call_skill(&toolgate, "review", "'my file' $0").await.unwrap();
    assert!(text.ends_with("Review my file and\n$0.\n"), "{text}");
    let input = json!({ "skill": "private" }).to_string();
    let refusal = toolgate.call("c", "Skill", &input).await.result.unwrap_err();
    assert!(refusal.reason.contains("only the user may use skill `private`"), "{refusal}");
    assert!(load(&toolgate, "private", "").await.is_ok());
    let toolgate = fixture.builder().allow("Skill").deny("Skill(review *)").build().unwrap();
    assert_eq!(call_skill(&toolgate, "review", "a").await.unwrap_err().code, Code::DeniedByRule);
    assert_eq!(load(&toolgate, "review", "a").await.unwrap_err().code, Code::DeniedByRule);
    let refusal = call_skill(&toolgate, "revue", "").await.unwrap_err();
    assert!(refusal.code == Code::SkillNotFound && refusal.hint.contains("`review`"), "{refusal:?}");
}

#[tokio::test]
async fn without_skills_there_is_no_tool() {
    let fixture = SkillFixture::new();
    assert!(fixture.builder().build().unwrap().tools().iter().all(|tool| tool.name.as_str() != "Skill"));
}

#[tokio::test]
async fn commands_run_through_the_gate_and_anything_but_allow_ends_the_loading() {
    let fixture = SkillFixture::new();
    let home = fixture.path("home");
    std::fs::write(fixture.path("ws/notes.txt"), "remember the milk\n").unwrap();
    write_skill(
        &home,
        "status",
        "---\ndescription: d\n---\nNow: !`cat notes.txt` See @notes.txt and @missing.txt.\n",
    );
    write_skill(&home, "maker", "---\ndescription: d\nallowed-tools: Bash(touch *)\n---\n!`touch made-$0`\n");
    write_skill(&home, "bold", "---\ndescription: d\n---\n!`touch bold`\n");
    write_skill(&home, "failing", "---\ndescription: d\n---\n!`cat nothing-here`\n");
    write_skill(&home, "forking", "---\ndescription: d\ncontext: fork\n---\nx\n");
    let toolgate = fixture.builder().allow("Skill").build().unwrap();
    let text = call_skill(&toolgate, "status", "").await.unwrap();
    assert!(text.contains("Now: remember the milk See @notes.txt and @missing.txt."), "{text}");
    assert_eq!(text.matches("remember the milk").count(), 2, "the file is attached: {text}");

    let refusal = call_skill(&toolgate, "bold", "").await.unwrap_err();
    assert!(refusal.reason.contains("line 4, `touch bold`"), "{refusal}");
    assert!(!fixture.path("ws/bold").exists());
    assert_eq!(call_skill(&toolgate, "failing", "").await.unwrap_err().code, Code::ShellFailed);
    let refusal = call_skill(&toolgate, "forking", "").await.unwrap_err();
    assert!(refusal.reason.contains("no agents can be started here"), "{refusal}");

    // What a skill asks for counts for its own commands, and a deny of the user's still counts more.
    call_skill(&toolgate, "maker", "one").await.unwrap();
    assert!(fixture.path("ws/made-one").exists());
    assert_eq!(verdict(&toolgate, "touch x"), "ask", "without turns nothing outlives the loading");
    let strict = fixture.builder().allow("Skill").deny("Bash(touch *)").build().unwrap();
    assert_eq!(call_skill(&strict, "maker", "two").await.unwrap_err().code, Code::DeniedByRule);
    assert!(!fixture.path("ws/made-two").exists());
}

#[tokio::test]
async fn pre_approvals_end_with_the_turn_and_denials_hold() {
    let fixture = SkillFixture::new();
    let text = "---\ndescription: d\nallowed-tools: Bash(touch *)\ndisallowed-tools: Write\n---\nx\n";
    write_skill(&fixture.path("home"), "mine", text);
    write_skill(&fixture.path("ws"), "theirs", text);
    let toolgate = fixture.builder().allow("Skill").build().unwrap();
    let has_write = || toolgate.tools().iter().any(|tool| tool.name.as_str() == "Write");
    toolgate.begin_turn();
    call_skill(&toolgate, "mine", "").await.unwrap();
    assert_eq!((verdict(&toolgate, "touch x"), has_write()), ("allow", false));
    toolgate.begin_turn();
    assert_eq!((verdict(&toolgate, "touch x"), has_write()), ("ask", true));
    // A rule that cannot be read stops the skill, and nothing else.
    write_skill(&fixture.path("home"), "bad", "---\ndescription: d\ndisallowed-tools: Bash((\n---\nx\n");
    assert_eq!(call_skill(&toolgate, "bad", "").await.unwrap_err().code, Code::SkillFailed);
    assert_eq!(verdict(&toolgate, "ls"), "allow");
    // A project that is not trusted may restrict, and not loosen.
    let text = call_skill(&toolgate, "theirs", "").await.unwrap();
    assert!(text.contains("`allowed-tools` of skill `theirs` has no effect"), "{text}");
    assert_eq!((verdict(&toolgate, "touch x"), has_write()), ("ask", false));
}

#[tokio::test]
async fn disabled_shell_execution_runs_nothing() {
    let fixture = SkillFixture::new();
    let body = "---\ndescription: d\nallowed-tools: Bash\n---\nA !`touch ran` B\n```!\ntouch ran\n```\n";
    write_skill(&fixture.path("home"), "s", body);
    let mut settings = SettingsOptions::new(AbsPath::new(fixture.path("ws")).unwrap());
    settings.managed_dirs.clear();
    settings.extra = Some(r#"{"disableSkillShellExecution": true}"#.to_owned());
    let toolgate = fixture.builder().settings(settings).allow("Skill").allow("Bash").build().unwrap();
    let text = call_skill(&toolgate, "s", "").await.unwrap();
    assert_eq!(text.matches("[shell command execution disabled by policy]").count(), 2, "{text}");
    assert!(!fixture.path("ws/ran").exists());
}

#[tokio::test]
async fn a_skill_that_changes_is_loaded_as_it_is_now() {
    let fixture = SkillFixture::new();
    let home = fixture.path("home");
    write_skill(&home, "s", "---\ndescription: one\n---\nfirst");
    let toolgate = fixture.builder().allow("Skill").build().unwrap();
    assert!(call_skill(&toolgate, "s", "").await.unwrap().ends_with("first"));
    write_skill(&home, "s", "---\ndescription: two\n---\nsecond");
    assert!(call_skill(&toolgate, "s", "").await.unwrap().ends_with("second"));
    // A directory below the workspace brings its skills when a file there is read.
    write_skill(&fixture.path("ws/sub"), "nested", "---\ndescription: n\n---\nnested text");
    write_skill(&fixture.path("ws/sub"), "s", "---\ndescription: n\n---\nother text");
    std::fs::write(fixture.path("ws/sub/a.txt"), "x").unwrap();
    assert!(call_skill(&toolgate, "nested", "").await.is_err());
    let input = json!({ "file_path": fixture.path("ws/sub/a.txt") }).to_string();
    assert!(toolgate.call("r", "Read", &input).await.result.is_ok());
    assert!(call_skill(&toolgate, "nested", "").await.unwrap().ends_with("nested text"));
    assert!(call_skill(&toolgate, "sub:s", "").await.unwrap().ends_with("other text"));
    assert!(call_skill(&toolgate, "s", "").await.unwrap().ends_with("second"));
}

#[tokio::test]
async fn a_prompt_that_names_a_skill_becomes_its_text() {
    let fixture = SkillFixture::new();
    write_skill(
        &fixture.path("ws"),
        "greet",
        "---\ndescription: d\nuser-invocable: true\n---\nGreet $ARGUMENTS.\n",
    );
    write_skill(&fixture.path("ws"), "hidden", "---\ndescription: d\nuser-invocable: false\n---\nx\n");
    let toolgate = fixture.builder().build().unwrap();
    let expand = async |prompt: &str| toolgate.expand_prompt(prompt, CancellationToken::new()).await;
    let loaded = expand("/greet the $ARGUMENTS !`touch x` world").await.unwrap().unwrap();
    assert!(loaded.text.ends_with("Greet the $ARGUMENTS !`touch x` world.\n"), "{}", loaded.text);
    for prompt in ["hello", "/unknown x", "/"] {
        assert!(expand(prompt).await.unwrap().is_none(), "{prompt}");
    }
    assert!(expand("/hidden").await.is_err());
}

#[test]
fn the_program_lists_runs_and_refuses_skills() {
    let fixture = CliFixture::new();
    fixture.write(
        ".claude/skills/hello/SKILL.md",
        "---\ndescription: Says hello\n---\nHello $ARGUMENTS from !`echo here`.\n",
    );
    let run = fixture.run(&["skill", "run", "hello", "big", "world"]);
    assert_eq!(run.code, 0, "{}", run.stderr);
    assert!(run.stdout.contains("Hello big world from here."), "{}", run.stdout);
    let run = fixture.run(&["skill", "run", "hello", "--", "--deep", "x"]);
    assert!(run.stdout.contains("Hello --deep x"), "{}", run.stdout);
    let denied = fixture.run(&["--disallowed-tools", "Skill(hello *)", "skill", "run", "hello", "x"]);
    assert_eq!(denied.code, 3, "{}", denied.stderr);
    let disabled =
        fixture.run(&["--settings", r#"{"disabledTools":["Skill"]}"#, "skill", "run", "hello", "x"]);
    assert!(disabled.code == 3 && disabled.stderr.contains("`disabledTools`"), "{disabled:?}");
    // A mode that asks nothing does not keep the user from a skill of theirs.
    assert_eq!(fixture.run(&["--permission-mode", "dontAsk", "skill", "run", "hello", "x"]).code, 0);
    let denied = fixture.run(&["--disallowed-tools", "Bash(echo *)", "skill", "run", "hello"]);
    assert!(denied.code != 0 && denied.stderr.contains("line 4, `echo here`"), "{}", denied.stderr);
    assert!(fixture.run(&["tools", "Skill"]).stdout.contains("- hello: Says hello"));
    let log = fixture.run(&["log", "--json"]);
    assert!(log.stdout.contains("echo here"), "commands of skills are in the ledger: {}", log.stdout);
}

#[test]
fn trust_covers_the_requests_of_a_projects_skills_as_they_were_shown() {
    let fixture = CliFixture::new();
    let write = |rule: &str| {
        let text = format!("---\ndescription: d\nallowed-tools: {rule}\n---\n!`touch made`\n");
        fixture.write(".claude/skills/maker/SKILL.md", &text);
    };
    write("Bash(touch *)");
    let untrusted = fixture.run(&["skill", "run", "maker"]);
    assert!(untrusted.code != 0 && !fixture.path("made").exists(), "{}", untrusted.stderr);
    let shown = fixture.run(&["trust", "show"]);
    assert!(shown.stdout.contains("skill `maker`: allowed-tools Bash(touch *)"), "{}", shown.stdout);
    assert_eq!(fixture.run(&["trust", "add", "--yes"]).code, 0);
    let trusted = fixture.run(&["skill", "run", "maker"]);
    assert!(trusted.code == 0 && fixture.path("made").exists(), "{}", trusted.stderr);
    std::fs::remove_file(fixture.path("made")).unwrap();
    write("Bash");
    let changed = fixture.run(&["skill", "run", "maker"]);
    assert!(changed.code != 0 && !fixture.path("made").exists(), "{}", changed.stderr);
}

#[test]
fn skills_are_a_tool_and_prompts_over_mcp() {
    let fixture = CliFixture::new();
    let text = "---\ndescription: Reviews\narguments: file depth\nallowed-tools: Write\n---\nReview $file to $depth.\n";
    fixture.write(".claude/skills/review/SKILL.md", text);
    fixture.write(".claude/commands/fix.md", "Fix $ARGUMENTS now with !`touch nothing`.\n");
    let get = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let input = opening()
        + &request(1, "prompts/list", json!({}))
        + &request(2, "prompts/get", get("review", json!({ "file": "my 'file'.rs", "depth": "3" })))
        + &request(3, "prompts/get", get("fix", json!({ "arguments": "it" })))
        + &request(4, "tools/call", get("Skill", json!({ "skill": "review", "args": "a b" })));
    let command = fixture.command(&["mcp", "serve", "--quiet", "--allowed-tools", "Skill(review *)"]);
    let out = answered(command, &input, 5);
    let prompts = reply(&out, 1)["result"]["prompts"].clone();
    assert_eq!(
        (prompts[0]["name"].as_str(), prompts[1]["name"].as_str()),
        (Some("fix"), Some("review")),
        "{out}"
    );
    assert_eq!(prompts[1]["arguments"][0]["name"], "file");
    let text = reply(&out, 2)["result"]["messages"][0]["content"]["text"].as_str().unwrap().to_owned();
    assert!(text.ends_with("Review my 'file'.rs to 3.\n"), "{text}");
    let description = reply(&out, 2)["result"]["description"].as_str().unwrap().to_owned();
    assert!(
        description.starts_with("Reviews\n[`allowed-tools` of skill `review` has no effect"),
        "{description}"
    );
    assert!(reply(&out, 3)["error"]["message"].as_str().unwrap().contains("`touch nothing`"), "{out}");
    let text = reply(&out, 4)["result"]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(text.contains("Review a to b.\n"), "{text}");
}

#[test]
fn settings_say_how_each_skill_is_offered() {
    let fixture = CliFixture::new();
    for name in ["alpha", "beta", "gamma", "delta"] {
        fixture.write(&format!(".claude/skills/{name}/SKILL.md"), "---\ndescription: Does it\n---\nText.\n");
    }
    let choices = r#"{"skillOverrides":{"beta":"name-only","gamma":"user-invocable-only","delta":"off"}}"#;
    let run =
        |args: &[&str]| fixture.run(&[&["--settings", choices, "--allowed-tools", "Skill"], args].concat());
    let listed = run(&["tools", "Skill"]).stdout;
    assert!(listed.contains("- alpha: Does it") && listed.contains("- beta\n"), "{listed}");
    assert!(!listed.contains("gamma") && !listed.contains("delta"), "{listed}");
    assert_eq!(run(&["call", "Skill", r#"{"skill":"beta"}"#]).code, 0);
    for name in ["gamma", "delta"] {
        let refused = run(&["call", "Skill", &format!(r#"{{"skill":"{name}"}}"#)]);
        assert_ne!(refused.code, 0, "{refused:?}");
        assert!(refused.stderr.contains("`alpha`"), "what is offered is suggested: {refused:?}");
        assert_eq!(
            refused.stderr.matches("gamma").count() + refused.stderr.matches("delta").count(),
            1,
            "{refused:?}"
        );
    }
    assert_eq!(run(&["skill", "run", "gamma"]).code, 0);
    assert_ne!(run(&["skill", "run", "delta"]).code, 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a skill of a project says about itself, no verdict is looser after it was loaded; whatever a skill of
    /// the user's says, a deny, an ask of a rule and a protection stay.
    #[test]
    fn no_front_matter_makes_a_verdict_looser_than_the_session_allows(
        rules in proptest::collection::vec(
            proptest::sample::select(vec![
                "Bash", "Bash(*)", "Bash(rm *)", "Write", "Edit(/**)", "Read(//**)", "WebFetch", "Skill", "mcp__x", "*",
                "Bash(touch:*)", "Agent", "Read", "Bash(cat *)", "((", "Edit(~/.ssh/**)", "Bash(mkdir *)", "Edit",
                "Write(.claude/**)", "Edit(**/.git/**)",
            ]),
            0..6,
        ),
        is_project in any::<bool>(),
    ) {
        let fixture = SkillFixture::new();
        let text = format!("---\ndescription: d\nallowed-tools: {:?}\npermissionMode: bypass\nmode: bypass\n---\nx\n", rules);
        write_skill(&fixture.path(if is_project { "ws" } else { "home" }), "s", &text);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let deny = ["Bash(rm *)", "WebFetch", "Read(secret.txt)"];
            let builder = deny.iter().fold(fixture.builder().allow("Skill"), |builder, rule| builder.deny(*rule));
            let toolgate = builder.ask("Bash(mkdir *)").build().unwrap();
            toolgate.begin_turn();
            let path = |name: &str| fixture.path(name);
            let calls = [
                ("Bash", json!({ "command": "rm x" })),
                ("Bash", json!({ "command": "touch x" })),
                ("Read", json!({ "file_path": path("ws/secret.txt") })),
                ("WebFetch", json!({ "url": "https://example.com/", "prompt": "p" })),
                ("Write", json!({ "file_path": path("ws/a.txt"), "content": "x" })),
                ("Bash", json!({ "command": "cat secret.txt" })),
                // Asked about whatever is allowed: an explicit rule, and files that decide what is allowed or run.
                ("Bash", json!({ "command": "mkdir x" })),
                ("Write", json!({ "file_path": path("ws/.claude/settings.json"), "content": "{}" })),
                ("Write", json!({ "file_path": path("ws/.git/hooks/pre-commit"), "content": "x" })),
            ];
            let held_count = 3;
            let strictness = |toolgate: &Toolgate| -> Vec<usize> {
                let judge = |(tool, input): &(&str, Value)| match toolgate.check(*tool, &input.to_string()) {
                    Ok(judgement) => match judgement.verdict {
                        Verdict::Allow(_) => 0,
                        Verdict::Ask(_) => 1,
                        Verdict::Deny(_) => 2,
                    },
                    Err(_) => 2,
                };
                calls.iter().map(judge).collect()
            };
            let before = strictness(&toolgate);
            call_skill(&toolgate, "s", "").await.unwrap();
            let after = strictness(&toolgate);
            for (at, ((before, after), (tool, input))) in before.iter().zip(&after).zip(&calls).enumerate() {
                let is_strict = is_project || at >= calls.len() - held_count;
                let is_held = if is_strict { after >= before } else { *before < 2 || *after == 2 };
                assert!(!is_strict || *before > 0 || is_project, "{tool} {input} is asked about");
                assert!(is_held, "{tool} {input}: {before} became {after} with {rules:?}");
            }
        });
    }
}
