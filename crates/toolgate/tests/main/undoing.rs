//! `toolgate undo` and `toolgate redo`, as a new user would try them.

use super::desk::{Desk, Said};
use serde_json::{Value, json};

/// A call that changes a file, under the id given.
fn change(desk: &Desk, id: &str, tool: &str, input: &Value) -> Said {
    let said = desk.run(&[
        "--toolset",
        "plain",
        "--permission-mode",
        "acceptEdits",
        "call",
        tool,
        &input.to_string(),
        "--id",
        id,
    ]);
    assert_eq!(said.code, 0, "{}", said.err);
    said
}

fn write(desk: &Desk, id: &str, name: &str, text: &str) {
    change(desk, id, "write_file", &json!({ "path": name, "content": text, "overwrite": true }));
}

fn text(desk: &Desk, name: &str) -> Option<String> {
    std::fs::read_to_string(desk.path(name)).ok()
}

#[test]
fn the_last_call_is_undone_and_redone() {
    let desk = Desk::new();
    desk.write("a.txt", "one\ntwo\n");
    change(
        &desk,
        "c1",
        "edit_file",
        &json!({ "path": "a.txt", "edits": [{ "target": "two", "replacement": "2" }] }),
    );
    write(&desk, "c2", "new/b.txt", "b\n");

    let said = desk.run(&["undo"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(
        said.out.starts_with("undid c2  (session ") && said.out.contains("removed   new/b.txt"),
        "{}",
        said.out
    );
    assert!(said.err.contains("`toolgate redo` takes this back"), "{}", said.err);
    assert_eq!((text(&desk, "a.txt"), text(&desk, "new/b.txt")), (Some("one\n2\n".into()), None));

    let said = desk.run(&["undo"]);
    assert!(
        said.out.contains("undid c1") && said.out.contains("restored  a.txt  (+1 -1 lines)"),
        "{}",
        said.out
    );
    assert_eq!(text(&desk, "a.txt").unwrap(), "one\ntwo\n");

    let said = desk.run(&["redo", "--steps", "2"]);
    assert!(said.out.contains("redid c1") && said.out.contains("created   new/b.txt"), "{}", said.out);
    assert_eq!(
        (text(&desk, "a.txt").unwrap(), text(&desk, "new/b.txt").unwrap()),
        ("one\n2\n".into(), "b\n".into())
    );
}

#[test]
fn a_dry_run_shows_the_diff_and_touches_nothing() {
    let desk = Desk::new();
    desk.write("a.txt", "one\n");
    write(&desk, "c1", "a.txt", "1\n");
    let said = desk.run(&["undo", "--dry-run"]);
    assert_eq!(said.code, 0);
    assert!(
        said.out.contains("would undo c1") && said.out.contains("@@ -1,1 +1,1 @@\n-1\n+one\n"),
        "{}",
        said.out
    );
    assert!(said.err.contains("nothing was changed"), "{}", said.err);
    assert_eq!(text(&desk, "a.txt").unwrap(), "1\n");
    let said = desk.run(&["--json", "undo", "--dry-run"]);
    let value: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        (&value["way"], &value["done"], &value["calls"][0]["call"]),
        (&json!("undo"), &json!(false), &json!("c1"))
    );
    assert!(value["files"][0]["diff"].as_str().unwrap().contains("+one"));
}

#[test]
fn somebody_elses_work_is_only_overwritten_by_force_and_comes_back() {
    let desk = Desk::new();
    desk.write("a.txt", "one\n");
    desk.write("b.txt", "one\n");
    write(&desk, "c1", "a.txt", "1\n");
    desk.write("a.txt", "mine\n");
    let said = desk.run(&["undo", "c1"]);
    assert_eq!(said.code, 1);
    assert!(
        said.err.contains("a.txt` has been modified since by another program or call")
            && said.err.contains("--force"),
        "{}",
        said.err
    );
    assert_eq!(text(&desk, "a.txt").unwrap(), "mine\n");
    let said = desk.run(&["undo", "c1", "--dry-run"]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains("-mine\n+one") && said.out.contains("but `"), "{}", said.out);
    let said = desk.run(&["--json", "undo", "c1"]);
    assert_eq!(serde_json::from_str::<Value>(&said.out).unwrap()["conflicts"][0]["forcible"], json!(true));

    assert_eq!(desk.run(&["undo", "c1", "--force"]).code, 0);
    assert_eq!(text(&desk, "a.txt").unwrap(), "one\n");
    assert_eq!(desk.run(&["undo"]).code, 0);
    assert_eq!(text(&desk, "a.txt").unwrap(), "mine\n");
}

#[test]
fn calls_and_sessions_are_found_by_a_part_of_their_id_and_listed() {
    let desk = Desk::new();
    write(&desk, "call_aa11", "a", "x");
    write(&desk, "call_bb22", "b", "x");
    write(&desk, "call_bb23", "c", "x");
    let said = desk.run(&["undo", "--list"]);
    let lines: Vec<&str> = said.out.lines().collect();
    assert!(lines.len() == 3 && lines[0].contains("call_bb23"), "{}", said.out);
    let listed = desk.run(&["--json", "undo", "--list"]);
    let newest: Value = serde_json::from_str(listed.out.lines().next().unwrap()).unwrap();

    for (args, code, says) in [
        (vec!["undo", "bb2"], 2, "may mean the call `call_bb22` or `call_bb23`"),
        (vec!["undo", "zz"], 2, "no change by a call `zz` is remembered"),
        (vec!["redo", "call_aa11"], 1, "`call_aa11` is not undone"),
        (vec!["undo", "--session", "nobody"], 2, "no change by a session `nobody`"),
        (vec!["undo", "--steps", "2", "call_aa11"], 2, "cannot be used with"),
    ] {
        let said = desk.run(&args);
        assert_eq!(said.code, code, "{args:?}: {}", said.err);
        assert!(said.err.contains(says), "{args:?}: {}", said.err);
    }
    assert_eq!(desk.run(&["undo", "aa11"]).code, 0);
    assert_eq!(desk.run(&["undo", "--session", newest["session"].as_str().unwrap()]).code, 0);
    assert_eq!(["a", "b", "c"].map(|name| text(&desk, name).is_some()), [false, true, false]);
}

#[test]
fn another_workspace_is_left_alone_unless_it_is_meant() {
    let desk = Desk::new();
    write(&desk, "c1", "sub/a", "x");
    std::fs::create_dir(desk.path("other")).unwrap();
    let said = desk.run(&["--cwd", "other", "undo"]);
    assert_eq!(said.code, 1);
    assert!(said.err.contains("nothing to undo in") && said.err.contains("--everywhere"), "{}", said.err);
    assert!(text(&desk, "sub/a").is_some());
    assert_eq!(desk.run(&["--cwd", "other", "undo", "--everywhere"]).code, 0);
    assert!(text(&desk, "sub/a").is_none());
}

#[test]
fn an_edit_that_would_break_settings_is_refused_with_the_violations() {
    let desk = Desk::new();
    let content = "{ \"permissions\": { \"deny\": \"x\", \"allow\": 3 } }";
    let input = json!({ "path": "sub/managed-settings.json", "content": content }).to_string();
    let said =
        desk.run(&["--toolset", "plain", "--permission-mode", "acceptEdits", "call", "write_file", &input]);
    assert_eq!(said.code, 1, "{}", said.out);
    for part in ["its new content is not valid", "permissions.deny", "permissions.allow"] {
        assert!(said.err.contains(part), "{}", said.err);
    }
    assert_eq!(text(&desk, "sub/managed-settings.json"), None);
}

#[test]
fn with_nothing_to_undo_it_says_what_would_be() {
    let desk = Desk::new();
    let said = desk.run(&["undo"]);
    assert_eq!((said.code, said.out.as_str()), (1, ""));
    assert!(said.err.contains("there is nothing to undo") && said.err.contains("hint:"), "{}", said.err);
    assert!(desk.run(&["redo"]).err.contains("redo makes again what `toolgate undo` took back"));
    let said = desk.run(&["undo", "--list"]);
    assert_eq!((said.code, said.out.as_str()), (0, ""));
}

#[test]
fn what_an_mcp_client_changes_is_undone_too() {
    let desk = Desk::new();
    desk.write("a.txt", "one\n");
    let messages = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" },
        } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "Read", "arguments": { "file_path": desk.path("a.txt") },
        } }),
        json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
            "name": "Edit",
            "arguments": { "file_path": desk.path("a.txt"), "old_string": "one", "new_string": "1" },
        } }),
    ];
    let input: String = messages.iter().map(|message| format!("{message}\n")).collect();
    let said = desk.run_with_input(&["--permission-mode", "acceptEdits", "mcp", "serve"], &input);
    assert_eq!(text(&desk, "a.txt").unwrap(), "1\n", "{}{}", said.out, said.err);
    assert_eq!(desk.run(&["undo"]).code, 0);
    assert_eq!(text(&desk, "a.txt").unwrap(), "one\n");
}
