//! Approval cards as a user sees them, at the sizes of a small and of a large terminal, compared with kept screens.
//!
//! `TOOLGATE_UPDATE_SCREENS=1` writes the screens in `tests/fixtures/cards`; look at what changed before you keep it.

use super::cli_fixture::CliFixture;
use super::tmux_session::TmuxSession;
use serde_json::{Value, json};
use std::path::Path;

/// The last row of an approval prompt.
const PROMPT: &str = "[e] edit the input";

/// A server with one tool that writes files.
const SERVER: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {}
    if message["method"] == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                  "serverInfo": {"name": "files", "version": "1"}}
    elif message["method"] == "tools/list":
        text = {"type": "string"}
        schema = {"type": "object", "properties": {"path": text, "content": text, "url": text}}
        result = {"tools": [{"name": "write_file", "description": "Writes a file", "inputSchema": schema}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

/// The calls behind a card, of which the last is asked about.
fn calls(name: &str, at: &dyn Fn(&str) -> String) -> Vec<Value> {
    let call = |tool: &str, input: Value| json!({ "tool": tool, "input": input });
    match name {
        "edit" => vec![
            call("Read", json!({ "file_path": at("src/main.rs") })),
            call(
                "Edit",
                json!({
                    "file_path": at("src/main.rs"),
                    "old_string": "    println!(\"hello\");\n",
                    "new_string": "    let name = std::env::args().nth(1);\n    println!(\"hello, {name:?}\");\n",
                }),
            ),
        ],
        "write" => {
            let content: String =
                (0..400).map(|row| format!("pub const ROW_{row}: u32 = {row};\n")).collect();
            vec![call(
                "Write",
                json!({ "file_path": at("src/generated_table_of_rows.rs"), "content": content }),
            )]
        }
        "bash" => vec![call(
            "Bash",
            json!({
                "command": "cd src && npm ci && npm run build; make all && git push origin main",
                "description": "Build everything and push",
            }),
        )],
        "foreign" => {
            let content = format!("# Notes\n\n{}", "- one line of the notes\n".repeat(12));
            let input = json!({ "path": at("notes/today.md"), "content": content, "url": "https://example.com/upload" });
            vec![call("mcp__files__write_file", input)]
        }
        _ => (0..4)
            .map(|n| {
                let content = format!("fn f{n}() {{}}\n");
                call("Write", json!({ "file_path": at(&format!("src/f{n}.rs")), "content": content }))
            })
            .collect(),
    }
}

/// The screen with the card, in terms that are the same in every run.
fn show_card(name: &str, size: (usize, usize)) -> String {
    let fixture = CliFixture::of_fixed_length();
    fixture.write("src/main.rs", "fn main() {\n    println!(\"hello\");\n}\n");
    let at = |path: &str| fixture.path(path).display().to_string();
    let calls: Vec<String> = calls(name, &at).iter().map(Value::to_string).collect();
    fixture.write("calls.jsonl", &format!("{}\n", calls.join("\n")));
    if name == "foreign" {
        let server = fixture.write("server.py", SERVER).display().to_string();
        let added = fixture.run(&["mcp", "add", "files", "--", "python3", &server]);
        assert_eq!(added.code, 0, "{}", added.stderr);
    }
    let session = TmuxSession::start(&fixture, size);
    session.clear();
    session.enter_line("toolgate call --batch calls.jsonl >out");
    let screen = session.wait_for(PROMPT);
    // The counter of a batch may be printed after the keys.
    let screen =
        if name == "batch" { session.wait_until(|screen| screen.contains("of 4"), "of 4") } else { screen };
    for part in ["wants to", "  risk ", "  reason ", "[y] yes, once", "[n] no"] {
        assert!(screen.contains(part), "{name}: `{part}` is not on the screen:\n{screen}");
    }
    assert!(screen.lines().all(|row| row.chars().count() <= size.0), "{screen}");
    // As long as the path of the fixture, so that rows break where they broke.
    let root = fixture.path("").display().to_string();
    let root = root.trim_end_matches('/');
    let shown = "/home/user/project";
    assert_eq!(root.len(), shown.len());
    // Calls of a batch that arrive together are asked about in any order.
    let screen = regex::Regex::new(r"\bf[0-3]\b").unwrap().replace_all(&screen, "f0").into_owned();
    screen.replace(root, shown).trim_end().to_owned() + "\n"
}

#[test]
fn cards_are_as_they_were_looked_at() {
    if !TmuxSession::is_available() {
        println!("skipped: there is no tmux; run scripts/install-test-tools.sh");
        return;
    }
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cards");
    let is_update = std::env::var_os("TOOLGATE_UPDATE_SCREENS").is_some();
    let mut changed = Vec::new();
    for name in ["edit", "write", "bash", "foreign", "batch"] {
        for size in [(80, 24), (120, 40)] {
            let file = kept.join(format!("{name}-{}x{}.txt", size.0, size.1));
            let screen = show_card(name, size);
            if is_update {
                std::fs::create_dir_all(&kept).unwrap();
                std::fs::write(&file, &screen).unwrap();
            } else if std::fs::read_to_string(&file).unwrap_or_default() != screen {
                changed.push(format!("{}:\n{screen}", file.display()));
            }
        }
    }
    assert!(changed.is_empty(), "the screens changed:\n{}", changed.join("\n"));
}
