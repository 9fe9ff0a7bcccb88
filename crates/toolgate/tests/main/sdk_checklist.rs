//! The checklist of the third design, one test for each of its points, by name.
//!
//! Its nineteen inputs are here; that of a tool of an MCP server is any object, which the point about names covers.
//! Two fields are left out on purpose: `answers` of `AskUserQuestion`, because a model cannot answer for the user, and
//! `team_name` of `Agent`.

use super::cli_fixture::CliFixture;
use serde_json::{Value, json};
use std::path::Path;
use toolgate::agent::subagent::SubagentSource;
use toolgate::mcp::client::{ServerListOrigin, read_servers};
use toolgate::settings::SettingsOptions;
use toolgate::{
    AbsPath, ApprovalAnswer, ApprovalRequest, Approver, BoxFuture, CallOutcome, Code, DefinitionFormat,
    ToolCall, Toolgate, render,
};

/// Approves everything.
struct ChecklistApprover;

impl Approver for ChecklistApprover {
    fn name(&self) -> &str {
        "yes"
    }

    fn ask<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(std::future::ready(ApprovalAnswer::Once))
    }
}

fn toolgate_in(dir: &Path) -> Toolgate {
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = toolgate::ShellConfig::default();
    shell.environment = std::collections::BTreeMap::from([("PATH".to_owned(), path)]);
    Toolgate::builder(dir).tool_group("all").shell_config(shell).approver(ChecklistApprover).build().unwrap()
}

/// The same with the tools that need more than a workspace: settings, a server with resources, agents. The runtime is
/// that in which the server is started.
fn full_toolgate_in(dir: &Path) -> (tokio::runtime::Runtime, Toolgate) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let root = AbsPath::new(dir.canonicalize().unwrap()).unwrap();
    let list = json!({ "docs": { "command": "/no/such/server" } });
    let env = std::collections::BTreeMap::new();
    let origin = ServerListOrigin::new("test", &root, &env).with_trusted(true);
    let (servers, problems) = read_servers(&list, &origin);
    assert!(problems.is_empty());
    let mut settings = SettingsOptions::new(root.clone());
    settings.config_dir = Some(root.join("config"));
    let builder = Toolgate::builder(dir).tool_group("all").settings(settings).mcp_servers(servers);
    let toolgate = runtime.block_on(async { builder.source(SubagentSource::default()).build().unwrap() });
    (runtime, toolgate)
}

fn call(toolgate: &Toolgate, name: &str, input: &Value) -> CallOutcome {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(toolgate.call("c", name, &input.to_string()))
}

fn code(outcome: &CallOutcome) -> Option<Code> {
    outcome.result.as_ref().err().map(|refusal| refusal.code)
}

/// Every field of every input, filled in.
fn inputs(dir: &Path) -> Vec<(&'static str, Value)> {
    let file = dir.join("a.txt");
    vec![
        (
            "Bash",
            json!({ "command": "true", "timeout": 1000, "description": "Do nothing", "run_in_background": false }),
        ),
        ("Read", json!({ "file_path": file, "offset": 1, "limit": 2 })),
        ("Read", json!({ "file_path": dir.join("a.pdf"), "pages": "1-5" })),
        ("Write", json!({ "file_path": file, "content": "text" })),
        ("Edit", json!({ "file_path": file, "old_string": "a", "new_string": "b", "replace_all": true })),
        ("Glob", json!({ "pattern": "**/*.rs", "path": dir })),
        (
            "Grep",
            json!({ "pattern": "x", "path": dir, "glob": "*.rs", "output_mode": "content", "-B": 1, "-A": 2, "-C": 3,
                "-n": true, "-i": false, "type": "rust", "head_limit": 4, "offset": 0, "multiline": false }),
        ),
        (
            "NotebookEdit",
            json!({ "notebook_path": dir.join("n.ipynb"), "new_source": "1", "cell_id": "c",
            "cell_type": "code", "edit_mode": "replace" }),
        ),
        ("TodoWrite", json!({ "todos": [{ "content": "a", "status": "pending", "activeForm": "doing a" }] })),
        (
            "AskUserQuestion",
            json!({ "questions": [{ "question": "which?", "header": "Choice", "multiSelect": false, "options": [
                { "label": "one", "description": "the first" }, { "label": "two", "description": "the second" },
            ] }] }),
        ),
        ("TaskOutput", json!({ "task_id": "task_1", "block": false, "timeout": 10 })),
        ("TaskStop", json!({ "task_id": "task_1" })),
        ("ExitPlanMode", json!({ "plan": "- do it" })),
        ("WebFetch", json!({ "url": "https://example.com/", "prompt": "what is it?" })),
        ("WebSearch", json!({ "query": "words", "allowed_domains": ["example.com"], "blocked_domains": [] })),
        (
            "Agent",
            json!({ "description": "Look", "prompt": "look at it", "subagent_type": "Explore", "model": "haiku",
                "resume": "agent_1", "run_in_background": true, "max_turns": 3, "name": "looker", "mode": "plan" }),
        ),
        ("Config", json!({ "setting": "shell.onTimeout", "value": "stop" })),
        ("Config", json!({ "setting": "shell.onTimeout" })),
        ("ListMcpResourcesTool", json!({ "server": "docs" })),
        ("ReadMcpResourceTool", json!({ "server": "docs", "uri": "file:///a" })),
    ]
}

#[test]
fn checklist_schema_completeness() {
    let dir = tempfile::tempdir().unwrap();
    let (_runtime, toolgate) = full_toolgate_in(dir.path());
    let inputs = inputs(dir.path());
    let named: std::collections::BTreeSet<&str> = inputs.iter().map(|(name, _)| *name).collect();
    assert_eq!(named.len(), 18, "{named:?}");
    for (name, input) in inputs {
        let tools = toolgate.tools();
        let tool = tools.iter().find(|tool| tool.name.as_str() == name).unwrap_or_else(|| panic!("{name}"));
        for field in input.as_object().unwrap().keys() {
            assert!(tool.input_schema["properties"].get(field).is_some(), "{name}: {field}");
        }
    }
}

#[test]
fn checklist_json_round_trip() {
    let dir = tempfile::tempdir().unwrap();
    let (_runtime, toolgate) = full_toolgate_in(dir.path());
    for (name, input) in inputs(dir.path()) {
        let text = input.to_string();
        let intended = toolgate
            .gate()
            .derive_intent(toolgate.session(), &ToolCall::new("c", name, text.clone()))
            .unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
        let again = serde_json::to_string(&intended.input).unwrap();
        let value: Value = serde_json::from_str(&again).unwrap();
        assert_eq!(value, input, "{name}");
        // One field more is no input of the tool.
        let mut more = input.clone();
        more["no_such_field"] = json!(1);
        let refused =
            toolgate.gate().derive_intent(toolgate.session(), &ToolCall::new("c", name, more.to_string()));
        assert_eq!(refused.unwrap_err().code, Code::InvalidInput, "{name}");
    }
}

#[test]
fn checklist_tool_definition_format() {
    let dir = tempfile::tempdir().unwrap();
    let definitions = toolgate_in(dir.path()).definitions(DefinitionFormat::Openai);
    let definitions = definitions.as_array().unwrap();
    assert!(definitions.len() >= 15);
    for definition in definitions {
        assert_eq!(definition["type"], "function");
        let function = &definition["function"];
        let name = function["name"].as_str().unwrap();
        assert!(
            name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)),
            "{name}"
        );
        assert!(!function["description"].as_str().unwrap().is_empty(), "{name}");
        assert_eq!(function["parameters"]["type"], "object", "{name}");
    }
}

#[test]
fn checklist_bash_timeout() {
    let dir = tempfile::tempdir().unwrap();
    let toolgate = toolgate_in(dir.path());
    assert_eq!(code(&call(&toolgate, "Bash", &json!({ "command": "true", "timeout": 600_000 }))), None);
    assert_eq!(
        code(&call(&toolgate, "Bash", &json!({ "command": "true", "timeout": 600_001 }))),
        Some(Code::BadArgument)
    );
    let stopped = call(&toolgate, "Bash", &json!({ "command": "sleep 600", "timeout": 100 }));
    assert_eq!(code(&stopped), Some(Code::ShellTimedOut));
}

#[test]
fn checklist_file_edit_uniqueness() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("a.txt");
    std::fs::write(&file, "one two one\n").unwrap();
    let toolgate = toolgate_in(dir.path());
    assert_eq!(code(&call(&toolgate, "Read", &json!({ "file_path": file }))), None);
    let edit = |old: &str, all: bool| {
        let input = json!({ "file_path": file, "old_string": old, "new_string": "1", "replace_all": all });
        code(&call(&toolgate, "Edit", &input))
    };
    assert_eq!(edit("three", false), Some(Code::EditTargetNotFound));
    assert_eq!(edit("one", false), Some(Code::EditTargetAmbiguous));
    assert_eq!(edit("two", false), None);
    assert_eq!(edit("one", true), None);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "1 1 1\n");
}

#[test]
fn checklist_grep_flags() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.rs"), "zero\nOne\ntwo\none\nthree\n").unwrap();
    std::fs::write(dir.path().join("b.txt"), "one\n").unwrap();
    let toolgate = toolgate_in(dir.path());
    for (flags, expected) in [
        (json!({ "pattern": "one", "output_mode": "content", "glob": "*.rs", "-n": true }), "a.rs:4:one"),
        (json!({ "pattern": "one", "output_mode": "content", "type": "rust", "-n": false }), "a.rs:one"),
        (
            json!({ "pattern": "one", "output_mode": "content", "glob": "*.rs", "-i": true }),
            "a.rs:2:One\na.rs:4:one",
        ),
        (
            json!({ "pattern": "one", "output_mode": "content", "glob": "*.rs", "-B": 1 }),
            "a.rs-3-two\na.rs:4:one",
        ),
        (
            json!({ "pattern": "One", "output_mode": "content", "glob": "*.rs", "-A": 1 }),
            "a.rs:2:One\na.rs-3-two",
        ),
        (
            json!({ "pattern": "two", "output_mode": "content", "-C": 1 }),
            "a.rs-2-One\na.rs:3:two\na.rs-4-one",
        ),
        (
            json!({ "pattern": "One.two", "output_mode": "content", "multiline": true }),
            "a.rs:2:One\na.rs:3:two",
        ),
        (json!({ "pattern": "t", "output_mode": "content", "glob": "*.rs", "head_limit": 1 }), "a.rs:3:two"),
        (json!({ "pattern": "t", "output_mode": "content", "glob": "*.rs", "offset": 1 }), "a.rs:5:three"),
        (json!({ "pattern": "one", "output_mode": "count", "glob": "*.rs" }), "a.rs:1"),
        (json!({ "pattern": "One", "output_mode": "files_with_matches" }), "a.rs"),
    ] {
        let outcome = call(&toolgate, "Grep", &flags);
        let text = outcome.result.unwrap().model_text();
        assert!(text.contains(expected), "{flags}: {text}");
    }
}

#[test]
fn checklist_mcp_tool_naming() {
    let fixture = CliFixture::new();
    let servers = json!({ "mcpServers": { "files": {
        "command": env!("CARGO_BIN_EXE_toolgate"), "args": ["mcp", "serve", "--quiet"],
    } } })
    .to_string();
    let listed = fixture.run(&["--mcp-config", &servers, "--strict-mcp-config", "tools", "--json"]);
    assert!(listed.stdout.contains("\"mcp__files__Read\""), "{}{}", listed.stdout, listed.stderr);
}

#[test]
fn checklist_error_format() {
    let dir = tempfile::tempdir().unwrap();
    let toolgate = toolgate_in(dir.path());
    let outcome = call(&toolgate, "Read", &json!({ "file_path": dir.path().join("missing") }));
    let message = render::openai_message(&outcome.record.call, &outcome.result);
    assert_eq!((&message["role"], &message["tool_call_id"]), (&json!("tool"), &json!("c")));
    assert!(message["content"].as_str().unwrap().starts_with("Error: "), "{message}");
    let block = render::anthropic_result(&outcome.record.call, &outcome.result);
    assert_eq!(block["is_error"], true, "{block}");
}

/// A PDF file with one line on each page.
fn pdf(pages: usize) -> Vec<u8> {
    let kids: Vec<String> = (0..pages).map(|page| format!("{} 0 R", 4 + 2 * page)).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{}] /Count {pages} >>", kids.join(" ")),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>".to_owned(),
    ];
    for page in 0..pages {
        let text = format!("BT /F1 12 Tf 72 700 Td (Here is page {}) Tj ET", page + 1);
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >> /Contents {} 0 R >>",
            5 + 2 * page
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{text}\nendstream", text.len()));
    }
    let mut out = "%PDF-1.4\n".to_owned();
    let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for (index, object) in objects.iter().enumerate() {
        table.push_str(&format!("{:010} 00000 n \n", out.len()));
        out.push_str(&format!("{} 0 obj\n{object}\nendobj\n", index + 1));
    }
    let start = out.len();
    let size = objects.len() + 1;
    format!("{out}{table}trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n").into_bytes()
}

#[test]
fn checklist_pdf_support() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("book.pdf");
    std::fs::write(&file, pdf(5)).unwrap();
    let toolgate = toolgate_in(dir.path());
    let outcome = call(&toolgate, "Read", &json!({ "file_path": file, "pages": "2-3" }));
    let text = outcome.result.unwrap().model_text();
    assert!(text.contains("Here is page 2") && text.contains("Here is page 3"), "{text}");
    assert!(!text.contains("Here is page 1") && !text.contains("Here is page 4"), "{text}");
    assert!(call(&toolgate, "Read", &json!({ "file_path": file, "pages": "9" })).result.is_err());
}

#[test]
fn checklist_path_validation() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.txt"), "a\n").unwrap();
    let toolgate = toolgate_in(dir.path());
    for (name, input) in [
        ("Read", json!({ "file_path": "a.txt" })),
        ("Write", json!({ "file_path": "a.txt", "content": "b" })),
        ("Edit", json!({ "file_path": "./a.txt", "old_string": "a", "new_string": "b" })),
        ("MultiEdit", json!({ "file_path": "a.txt", "edits": [{ "old_string": "a", "new_string": "b" }] })),
        ("NotebookEdit", json!({ "notebook_path": "a.ipynb", "new_source": "" })),
    ] {
        let outcome = call(&toolgate, name, &input);
        assert_eq!(code(&outcome), Some(Code::BadArgument), "{name}");
    }
    assert_eq!(std::fs::read_to_string(dir.path().join("a.txt")).unwrap(), "a\n");
}

#[test]
fn checklist_background_tasks() {
    let dir = tempfile::tempdir().unwrap();
    let toolgate = toolgate_in(dir.path());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    runtime.block_on(async {
        let input = json!({ "command": "echo from the background", "run_in_background": true });
        let started = toolgate.call("a", "Bash", &input.to_string()).await.result.unwrap();
        let id = started.structured.unwrap()["backgroundTaskId"].as_str().unwrap().to_owned();
        let input = json!({ "task_id": id, "block": true, "timeout": 600_000 });
        let output = toolgate.call("b", "TaskOutput", &input.to_string()).await.result.unwrap();
        assert!(output.model_text().contains("from the background"), "{}", output.model_text());
    });
}
