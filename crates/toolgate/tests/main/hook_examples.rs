//! The examples of the documents and configurations written for Claude Code, as they stand.

use super::desk::Desk;
use super::hook_desk::{HookDesk, text};
use serde_json::{Value, json};
use std::path::Path;
use toolgate::{CallOutcome, Code, FnTool, Output, ToolSpec, Toolgate};

/// The files of a document's example: each stands under a comment that names it.
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

/// A trusted project with these files. Tools that are not there yet are stood in for by ones that do the same.
fn project(desk: &HookDesk, files: &[(String, String)]) -> Toolgate {
    use std::os::unix::fs::PermissionsExt;
    for (name, content) in files {
        let path = desk.write(name, content);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut options = desk.options();
    options.trust_workspace = true;
    options.extra = Some(json!({ "permissions": { "allow": ["Bash", "Write"] } }).to_string());
    let toolgate = desk.build(options);
    // A collision means that the real tool is there, which is better.
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
        let closed = toolgate.call("c", tool, &input.to_string()).await;
        assert!(toolgate.wait_for_background_hooks(std::time::Duration::from_secs(20)).await);
        closed
    })
}

fn bash(toolgate: &Toolgate, command: &str) -> CallOutcome {
    call(toolgate, "Bash", json!({ "command": command }))
}

fn write(toolgate: &Toolgate, desk: &HookDesk, name: &str, content: &str) -> CallOutcome {
    call(toolgate, "Write", json!({ "file_path": desk.path(name), "content": content }))
}

#[test]
fn the_guard_blocks_git_push() {
    let desk = HookDesk::new();
    let toolgate = project(&desk, &example("hooks.md", "git-push"));
    for command in
        ["git push", "git push origin main", "git -c x=y push", "true && git push", "echo a; git  push -f"]
    {
        let closed = bash(&toolgate, command);
        assert_eq!(closed.result.as_ref().unwrap_err().code, Code::HookDenied, "{command}");
        assert!(text(&closed).contains("pull request"), "{}", text(&closed));
    }
    assert!(text(&bash(&toolgate, "echo legit pushups")).contains("legit pushups"));
}

#[test]
fn the_formatter_formats_and_says_so() {
    let desk = HookDesk::new();
    let toolgate = project(&desk, &example("hooks.md", "formatter"));
    let closed = write(&toolgate, &desk, "a.txt", "one  \ntwo\t\n");
    assert!(text(&closed).contains("was formatted after your change"), "{}", text(&closed));
    assert_eq!(std::fs::read_to_string(desk.path("a.txt")).unwrap(), "one\ntwo\n");
    assert!(!text(&write(&toolgate, &desk, "b.txt", "tidy\n")).contains("formatted"));
}

#[test]
fn the_scanner_keeps_secrets_out() {
    let desk = HookDesk::new();
    let toolgate = project(&desk, &example("hooks.md", "secrets"));
    let key = format!("key = \"AKIA{}\"\n", "A".repeat(16));
    let closed = write(&toolgate, &desk, "a.txt", &key);
    assert_eq!(closed.result.as_ref().unwrap_err().code, Code::HookDenied);
    assert!(!desk.path("a.txt").exists());
    assert!(write(&toolgate, &desk, "b.txt", "key = env(\"KEY\")\n").result.is_ok());
}

#[test]
fn the_project_of_the_settings_document() {
    let desk = Desk::new();
    for (name, content) in example("settings.md", "project") {
        desk.write(&name, &content);
    }
    assert_eq!(desk.run(&["check", "WebFetch", r#"{"url":"https://a.example"}"#]).code, 3);
    assert_eq!(desk.run(&["check", "WebSearch", r#"{"query":"x"}"#]).code, 4);
    let outside = ["check", "ls", r#"{"path":"/etc"}"#];
    assert_eq!(desk.run(&outside).code, 4, "the allow rule waits");
    assert_eq!(desk.run(&["trust", "add", "--yes"]).code, 0);
    assert_eq!(desk.run(&outside).code, 0);
}

fn configuration(name: &str) -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/claude").join(name);
    vec![(".claude/settings.json".to_owned(), std::fs::read_to_string(path).unwrap())]
}

#[test]
fn a_configuration_that_audits_runs_unchanged() {
    let desk = HookDesk::new();
    let toolgate = project(&desk, &configuration("audit.json"));
    assert!(bash(&toolgate, "echo hello").result.is_ok());
    assert!(write(&toolgate, &desk, "a.txt", "x\n").result.is_ok());
    let log = std::fs::read_to_string(desk.path("audit.log")).unwrap();
    assert_eq!(log, "PreToolUse Bash: echo hello\nPostToolUse Bash\nPostToolUse Write\n");
    // What toolgate does not raise or know is said, not silently dropped.
    let notes: Vec<String> = toolgate.notes().0.iter().map(ToString::to_string).collect();
    for part in ["`hooks.Notification` is for a host program", "`hooks.Stop`", "`statusLine` is not known"] {
        assert!(notes.iter().any(|note| note.contains(part)), "{part}: {notes:?}");
    }
}

#[test]
fn a_configuration_that_protects_runs_unchanged() {
    let desk = HookDesk::new();
    let toolgate = project(&desk, &configuration("protect.json"));
    let closed = write(&toolgate, &desk, ".env", "KEY=1\n");
    assert_eq!(closed.result.as_ref().unwrap_err().code, Code::HookDenied);
    assert!(text(&closed).contains("protected: .env"), "{}", text(&closed));
    assert!(write(&toolgate, &desk, "main.py", "print()\n").result.is_ok());
    let closed = bash(&toolgate, "rm -rf build");
    assert!(closed.result.is_err() && text(&closed).contains("use trash instead"), "{}", text(&closed));
    assert!(bash(&toolgate, "echo fine").result.is_ok());
}

#[test]
fn a_configuration_that_rewrites_and_adds_runs_unchanged() {
    let desk = HookDesk::new();
    let toolgate = project(&desk, &configuration("context.json"));
    assert!(
        text(&bash(&toolgate, "npm test")).contains("pnpm test"),
        "{}",
        text(&bash(&toolgate, "npm test"))
    );
    assert!(text(&write(&toolgate, &desk, "a.txt", "x\n")).contains("wrote a.txt"));
    assert!(!text(&write(&toolgate, &desk, "b.txt", "x\n")).contains("wrote b.txt"), "once a session");
}
