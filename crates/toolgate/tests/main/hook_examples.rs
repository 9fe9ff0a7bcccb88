//! The examples of the documents, and configurations written for Claude Code, run unchanged.

use super::cli_fixture::CliFixture;
use super::hook_fixture::{HookFixture, text};
use serde_json::{Value, json};
use std::path::Path;
use toolgate::{CallOutcome, Code, FnTool, Output, ToolSpec, Toolgate};

/// The files of an example in a document, each below a comment with its name.
fn example(document: &str, name: &str) -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(document);
    let document = std::fs::read_to_string(path).unwrap();
    let head = format!("<!-- example {name}: ");
    let mut files = Vec::new();
    for part in document.split(&head).skip(1) {
        let (file, rest) = part.split_once(" -->\n```").unwrap();
        let (_, rest) = rest.split_once('\n').unwrap();
        let (content, _) = rest.split_once("\n```").unwrap();
        files.push((file.to_owned(), format!("{content}\n")));
    }
    assert!(!files.is_empty(), "{name} is not in the document");
    files
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Shell {
    /// The command.
    command: String,
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Put {
    /// Where.
    file_path: String,
    /// What.
    content: String,
}

/// A trusted project with these files. Missing built-in tools are replaced by simple ones.
fn project(fixture: &HookFixture, files: &[(String, String)]) -> Toolgate {
    use std::os::unix::fs::PermissionsExt;
    for (name, content) in files {
        let path = fixture.write(name, content);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut options = fixture.options();
    options.trust_workspace = true;
    options.extra = Some(json!({ "permissions": { "allow": ["Bash", "Write"] } }).to_string());
    let toolgate = fixture.build(options);
    // Registration fails if the built-in tool exists, which is then used.
    let _ = toolgate.register(FnTool::new(ToolSpec::new("Bash", "Runs."), |shell: Shell, _| async move {
        let output = std::process::Command::new("bash").args(["-c", &shell.command]).output().unwrap();
        Ok(Output::text(String::from_utf8_lossy(&output.stdout).into_owned()))
    }));
    let _ = toolgate.register(FnTool::new(ToolSpec::new("Write", "Writes."), |put: Put, _| async move {
        std::fs::write(&put.file_path, &put.content).unwrap();
        Ok(Output::text("written"))
    }));
    toolgate
}

fn call(toolgate: &Toolgate, tool: &str, input: Value) -> CallOutcome {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let outcome = toolgate.call("c", tool, &input.to_string()).await;
        assert!(toolgate.wait_for_background_hooks(std::time::Duration::from_secs(300)).await);
        outcome
    })
}

fn bash(toolgate: &Toolgate, command: &str) -> CallOutcome {
    call(toolgate, "Bash", json!({ "command": command }))
}

fn write(toolgate: &Toolgate, fixture: &HookFixture, name: &str, content: &str) -> CallOutcome {
    call(toolgate, "Write", json!({ "file_path": fixture.path(name), "content": content }))
}

#[test]
fn the_guard_blocks_git_push() {
    let fixture = HookFixture::new();
    let toolgate = project(&fixture, &example("hooks.md", "git-push"));
    for command in
        ["git push", "git push origin main", "git -c x=y push", "true && git push", "echo a; git  push -f"]
    {
        let outcome = bash(&toolgate, command);
        assert_eq!(outcome.result.as_ref().unwrap_err().code, Code::HookDenied, "{command}");
        assert!(text(&outcome).contains("pull request"), "{}", text(&outcome));
    }
    assert!(text(&bash(&toolgate, "echo legit pushups")).contains("legit pushups"));
}

#[test]
fn the_formatter_formats_and_informs_the_model() {
    let fixture = HookFixture::new();
    let toolgate = project(&fixture, &example("hooks.md", "formatter"));
    let outcome = write(&toolgate, &fixture, "a.txt", "one  \ntwo\t\n");
    assert!(text(&outcome).contains("was formatted after your change"), "{}", text(&outcome));
    assert_eq!(std::fs::read_to_string(fixture.path("a.txt")).unwrap(), "one\ntwo\n");
    assert!(!text(&write(&toolgate, &fixture, "b.txt", "tidy\n")).contains("formatted"));
}

#[test]
fn the_scanner_refuses_to_write_secrets() {
    let fixture = HookFixture::new();
    let toolgate = project(&fixture, &example("hooks.md", "secrets"));
    let key = format!("key = \"AKIA{}\"\n", "A".repeat(16));
    let outcome = write(&toolgate, &fixture, "a.txt", &key);
    assert_eq!(outcome.result.as_ref().unwrap_err().code, Code::HookDenied);
    assert!(!fixture.path("a.txt").exists());
    assert!(write(&toolgate, &fixture, "b.txt", "key = env(\"KEY\")\n").result.is_ok());
}

#[test]
fn the_example_of_the_settings_document_works() {
    let fixture = CliFixture::new();
    for (name, content) in example("settings.md", "project") {
        fixture.write(&name, &content);
    }
    assert_eq!(fixture.run(&["check", "WebFetch", r#"{"url":"https://a.example"}"#]).code, 3);
    assert_eq!(fixture.run(&["check", "WebSearch", r#"{"query":"x"}"#]).code, 4);
    let outside = ["check", "ls", r#"{"path":"/etc"}"#];
    assert_eq!(fixture.run(&outside).code, 4, "the allow rule is inactive");
    assert_eq!(fixture.run(&["trust", "add", "--yes"]).code, 0);
    assert_eq!(fixture.run(&outside).code, 0);
}

fn configuration(name: &str) -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/claude").join(name);
    vec![(".claude/settings.json".to_owned(), std::fs::read_to_string(path).unwrap())]
}

#[test]
fn a_configuration_that_audits_runs_unchanged() {
    let fixture = HookFixture::new();
    let toolgate = project(&fixture, &configuration("audit.json"));
    assert!(bash(&toolgate, "echo hello").result.is_ok());
    assert!(write(&toolgate, &fixture, "a.txt", "x\n").result.is_ok());
    let log = std::fs::read_to_string(fixture.path("audit.log")).unwrap();
    assert_eq!(log, "PreToolUse Bash: echo hello\nPostToolUse Bash\nPostToolUse Write\n");
    // Events that an agent raises are known, although there is none here.
    let notes: Vec<String> = toolgate.notes().0.iter().map(ToString::to_string).collect();
    assert!(!notes.iter().any(|note| note.contains("never run")), "{notes:?}");
}

#[test]
fn a_configuration_that_protects_runs_unchanged() {
    let fixture = HookFixture::new();
    let toolgate = project(&fixture, &configuration("protect.json"));
    let outcome = write(&toolgate, &fixture, ".env", "KEY=1\n");
    assert_eq!(outcome.result.as_ref().unwrap_err().code, Code::HookDenied);
    assert!(text(&outcome).contains("protected: .env"), "{}", text(&outcome));
    assert!(write(&toolgate, &fixture, "main.py", "print()\n").result.is_ok());
    let outcome = bash(&toolgate, "rm -rf build");
    assert!(outcome.result.is_err() && text(&outcome).contains("use trash instead"), "{}", text(&outcome));
    assert!(bash(&toolgate, "echo fine").result.is_ok());
}

#[test]
fn a_configuration_that_rewrites_and_adds_runs_unchanged() {
    let fixture = HookFixture::new();
    let toolgate = project(&fixture, &configuration("context.json"));
    assert!(
        text(&bash(&toolgate, "npm test")).contains("pnpm test"),
        "{}",
        text(&bash(&toolgate, "npm test"))
    );
    assert!(text(&write(&toolgate, &fixture, "a.txt", "x\n")).contains("wrote a.txt"));
    assert!(!text(&write(&toolgate, &fixture, "b.txt", "x\n")).contains("wrote b.txt"), "once a session");
}
