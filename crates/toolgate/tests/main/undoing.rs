//! `toolgate undo` and `toolgate redo`.

use super::cli_fixture::{CliFixture, CliRun};
use serde_json::{Value, json};

/// Makes a call that changes a file, with this call id.
fn change(fixture: &CliFixture, id: &str, tool: &str, input: &Value) -> CliRun {
    let output = fixture.run(&[
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
    assert_eq!(output.code, 0, "{}", output.stderr);
    output
}

fn write(fixture: &CliFixture, id: &str, name: &str, text: &str) {
    change(fixture, id, "write_file", &json!({ "path": name, "content": text, "overwrite": true }));
}

fn text(fixture: &CliFixture, name: &str) -> Option<String> {
    std::fs::read_to_string(fixture.path(name)).ok()
}

#[test]
fn the_last_call_is_undone_and_redone() {
    let fixture = CliFixture::new();
    fixture.write("a.txt", "one\ntwo\n");
    change(
        &fixture,
        "c1",
        "edit_file",
        &json!({ "path": "a.txt", "edits": [{ "target": "two", "replacement": "2" }] }),
    );
    write(&fixture, "c2", "new/b.txt", "b\n");

    let output = fixture.run(&["undo"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(
        output.stdout.starts_with("undid c2  (session ") && output.stdout.contains("removed   new/b.txt"),
        "{}",
        output.stdout
    );
    assert!(output.stderr.contains("`toolgate redo` reverts this"), "{}", output.stderr);
    assert_eq!((text(&fixture, "a.txt"), text(&fixture, "new/b.txt")), (Some("one\n2\n".into()), None));

    let output = fixture.run(&["undo"]);
    assert!(
        output.stdout.contains("undid c1") && output.stdout.contains("restored  a.txt  (+1 -1 lines)"),
        "{}",
        output.stdout
    );
    assert_eq!(text(&fixture, "a.txt").unwrap(), "one\ntwo\n");

    let output = fixture.run(&["redo", "--steps", "2"]);
    assert!(
        output.stdout.contains("redid c1") && output.stdout.contains("created   new/b.txt"),
        "{}",
        output.stdout
    );
    assert_eq!(
        (text(&fixture, "a.txt").unwrap(), text(&fixture, "new/b.txt").unwrap()),
        ("one\n2\n".into(), "b\n".into())
    );
}

#[test]
fn a_dry_run_prints_the_diff_and_changes_nothing() {
    let fixture = CliFixture::new();
    fixture.write("a.txt", "one\n");
    write(&fixture, "c1", "a.txt", "1\n");
    let output = fixture.run(&["undo", "--dry-run"]);
    assert_eq!(output.code, 0);
    assert!(
        output.stdout.contains("would undo c1") && output.stdout.contains("@@ -1,1 +1,1 @@\n-1\n+one\n"),
        "{}",
        output.stdout
    );
    assert!(output.stderr.contains("no file was changed"), "{}", output.stderr);
    assert_eq!(text(&fixture, "a.txt").unwrap(), "1\n");
    let output = fixture.run(&["--json", "undo", "--dry-run"]);
    let value: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(
        (&value["way"], &value["done"], &value["calls"][0]["call"]),
        (&json!("undo"), &json!(false), &json!("c1"))
    );
    assert!(value["files"][0]["diff"].as_str().unwrap().contains("+one"));
}

#[test]
fn a_file_changed_after_the_call_is_overwritten_only_by_force_and_can_be_restored() {
    let fixture = CliFixture::new();
    fixture.write("a.txt", "one\n");
    fixture.write("b.txt", "one\n");
    write(&fixture, "c1", "a.txt", "1\n");
    fixture.write("a.txt", "mine\n");
    let output = fixture.run(&["undo", "c1"]);
    assert_eq!(output.code, 1);
    assert!(
        output.stderr.contains("a.txt` has been modified since by another program or call")
            && output.stderr.contains("--force"),
        "{}",
        output.stderr
    );
    assert_eq!(text(&fixture, "a.txt").unwrap(), "mine\n");
    let output = fixture.run(&["undo", "c1", "--dry-run"]);
    assert_eq!(output.code, 1);
    assert!(
        output.stdout.contains("-mine\n+one") && output.stdout.contains("conflict: `"),
        "{}",
        output.stdout
    );
    let output = fixture.run(&["--json", "undo", "c1"]);
    assert_eq!(
        serde_json::from_str::<Value>(&output.stdout).unwrap()["conflicts"][0]["forcible"],
        json!(true)
    );

    let output = fixture.run(&["undo", "c1", "--force"]);
    assert_eq!(output.code, 0);
    // What was overwritten comes back by the command that is named.
    assert!(
        output.stderr.contains("`toolgate undo` brings the overwritten content back"),
        "{}",
        output.stderr
    );
    assert_eq!(text(&fixture, "a.txt").unwrap(), "one\n");
    assert_eq!(fixture.run(&["undo"]).code, 0);
    assert_eq!(text(&fixture, "a.txt").unwrap(), "mine\n");
}

#[test]
fn a_damaged_journal_is_named() {
    let fixture = CliFixture::new();
    write(&fixture, "c1", "a.txt", "1\n");
    let log = fixture.beside("state").join("journal/changes.jsonl");
    let recorded = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, format!("no json\n{recorded}")).unwrap();
    let output = fixture.run(&["undo", "--list"]);
    assert!(output.stdout.contains("a.txt") && output.stderr.contains("1 line of "), "{}", output.stderr);
    std::fs::write(&log, "no json\n{}\n").unwrap();
    let output = fixture.run(&["undo"]);
    assert_eq!(output.code, 1);
    assert!(
        output.stderr.contains("2 lines of ") && output.stderr.contains("changes.jsonl cannot be read"),
        "{}",
        output.stderr
    );
}

#[test]
fn calls_and_sessions_are_selected_by_a_part_of_their_id() {
    let fixture = CliFixture::new();
    write(&fixture, "call_aa11", "a", "x");
    write(&fixture, "call_bb22", "b", "x");
    write(&fixture, "call_bb23", "c", "x");
    let output = fixture.run(&["undo", "--list"]);
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert!(lines.len() == 3 && lines[0].contains("call_bb23"), "{}", output.stdout);
    let listed = fixture.run(&["--json", "undo", "--list"]);
    let newest: Value = serde_json::from_str(listed.stdout.lines().next().unwrap()).unwrap();

    for (args, code, expected) in [
        (vec!["undo", "bb2"], 2, "matches the call `call_bb22` and `call_bb23`"),
        (vec!["undo", "zz"], 2, "no recorded change belongs to a call `zz`"),
        (vec!["redo", "call_aa11"], 1, "`call_aa11` is not undone"),
        (vec!["undo", "--session", "unknown"], 2, "no recorded change belongs to a session `unknown`"),
        (vec!["undo", "--steps", "2", "call_aa11"], 2, "cannot be used with"),
    ] {
        let output = fixture.run(&args);
        assert_eq!(output.code, code, "{args:?}: {}", output.stderr);
        assert!(output.stderr.contains(expected), "{args:?}: {}", output.stderr);
    }
    assert_eq!(fixture.run(&["undo", "aa11"]).code, 0);
    assert_eq!(fixture.run(&["undo", "--session", newest["session"].as_str().unwrap()]).code, 0);
    assert_eq!(["a", "b", "c"].map(|name| text(&fixture, name).is_some()), [false, true, false]);
}

#[test]
fn changes_in_another_workspace_need_everywhere() {
    let fixture = CliFixture::new();
    write(&fixture, "c1", "sub/a", "x");
    std::fs::create_dir(fixture.path("other")).unwrap();
    let output = fixture.run(&["--cwd", "other", "undo"]);
    assert_eq!(output.code, 1);
    assert!(
        output.stderr.contains("nothing to undo in") && output.stderr.contains("--everywhere"),
        "{}",
        output.stderr
    );
    assert!(text(&fixture, "sub/a").is_some());
    assert_eq!(fixture.run(&["--cwd", "other", "undo", "--everywhere"]).code, 0);
    assert!(text(&fixture, "sub/a").is_none());
}

#[test]
fn an_edit_that_would_break_settings_is_refused_with_the_violations() {
    let fixture = CliFixture::new();
    let content = "{ \"permissions\": { \"deny\": \"x\", \"allow\": 3 } }";
    let input = json!({ "path": "sub/managed-settings.json", "content": content }).to_string();
    let output = fixture.run(&[
        "--toolset",
        "plain",
        "--permission-mode",
        "acceptEdits",
        "call",
        "write_file",
        &input,
    ]);
    assert_eq!(output.code, 1, "{}", output.stdout);
    for part in ["the new content is not valid", "permissions.deny", "permissions.allow"] {
        assert!(output.stderr.contains(part), "{}", output.stderr);
    }
    assert_eq!(text(&fixture, "sub/managed-settings.json"), None);
}

#[test]
fn without_changes_undo_explains_what_can_be_undone() {
    let fixture = CliFixture::new();
    let output = fixture.run(&["undo"]);
    assert_eq!((output.code, output.stdout.as_str()), (1, ""));
    assert!(
        output.stderr.contains("there is nothing to undo") && output.stderr.contains("hint:"),
        "{}",
        output.stderr
    );
    assert!(
        fixture.run(&["redo"]).stderr.contains("only changes that `toolgate undo` reverted can be redone")
    );
    let output = fixture.run(&["undo", "--list"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, ""));
    // A command that changed something is named, with the setting that would have recorded it.
    fixture.run_unasked("Bash", r#"{"command":"touch made"}"#);
    assert!(fixture.path("made").exists());
    let output = fixture.run(&["undo"]);
    assert_eq!(output.code, 1);
    for part in [
        "there is nothing to undo",
        "cannot be undone: `touch made`",
        "`shell.snapshots`",
        "if they run in the sandbox",
    ] {
        assert!(output.stderr.contains(part), "{}", output.stderr);
    }
}

#[test]
fn changes_of_an_mcp_client_can_be_undone() {
    let fixture = CliFixture::new();
    fixture.write("a.txt", "one\n");
    let messages = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" },
        } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
            "name": "Read", "arguments": { "file_path": fixture.path("a.txt") },
        } }),
        json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {
            "name": "Edit",
            "arguments": { "file_path": fixture.path("a.txt"), "old_string": "one", "new_string": "1" },
        } }),
    ];
    let input: String = messages.iter().map(|message| format!("{message}\n")).collect();
    let output = fixture.run_with_input(&["--permission-mode", "acceptEdits", "mcp", "serve"], &input);
    assert_eq!(text(&fixture, "a.txt").unwrap(), "1\n", "{}{}", output.stdout, output.stderr);
    assert_eq!(fixture.run(&["undo"]).code, 0);
    assert_eq!(text(&fixture, "a.txt").unwrap(), "one\n");
}

#[test]
fn commands_that_undo_does_not_cover_are_named() {
    let fixture = CliFixture::new();
    let path = fixture.path("a.txt").display().to_string();
    let write = serde_json::json!({ "file_path": path, "content": "one\n" }).to_string();
    assert_eq!(fixture.run_unasked("Write", &write).code, 0);
    let undo = |args: &[&str]| fixture.run(&[&["undo"], args].concat());
    assert!(!undo(&["--dry-run"]).stderr.contains("cannot be undone"));
    // A command that only reads changes nothing.
    assert_eq!(fixture.run_unasked("Bash", r#"{"command":"cat a.txt"}"#).code, 0);
    assert!(!undo(&["--dry-run"]).stderr.contains("cannot be undone"));
    assert_eq!(fixture.run_unasked("Bash", r#"{"command":"echo two > b.txt && echo done"}"#).code, 0);
    let run = undo(&["--dry-run", "--json"]);
    let value: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(value["notCovered"][0]["command"], "echo two > b.txt && echo done", "{run:?}");
    let run = undo(&[]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stderr.contains("commands ran whose changes cannot be undone"), "{run:?}");
    assert!(run.stderr.contains("`echo two > b.txt && echo done`"), "{run:?}");
    assert!(!fixture.path("a.txt").exists() && fixture.path("b.txt").exists());
}

#[test]
fn tools_of_servers_that_undo_does_not_cover_are_named() {
    let fixture = CliFixture::new();
    let program = env!("CARGO_BIN_EXE_toolgate");
    assert_eq!(fixture.run(&["mcp", "add", "inner", program, "mcp", "serve", "--quiet"]).code, 0);
    let path = fixture.path("a.txt").display().to_string();
    let write = serde_json::json!({ "file_path": path, "content": "one\n" }).to_string();
    assert_eq!(fixture.run_unasked("Write", &write).code, 0);
    let called = fixture.run(&["call", "mcp__inner__ls", "{}", "--allowed-tools", "mcp__inner__ls"]);
    assert_eq!(called.code, 0, "{called:?}");
    let run = fixture.run(&["undo"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stderr.contains("since then tools ran whose changes cannot be undone"), "{run:?}");
    assert!(run.stderr.contains("`mcp__inner__ls`"), "{run:?}");
    let run = fixture.run(&["undo"]);
    assert!(run.stderr.contains("tools ran here whose changes cannot be undone"), "{run:?}");
    assert!(!run.stderr.contains("shell.snapshots"), "{run:?}");
}

#[test]
fn what_a_command_changed_is_undone() {
    // A command line, and the files of the workspace before and after it.
    type Files = &'static [(&'static str, &'static str)];
    let before: Files =
        &[("a.txt", "one\n"), ("b.txt", "two\n"), ("dir/c.txt", "three\n"), ("dir/d.txt", "four\n")];
    for (command, after) in [
        (
            "echo more >> a.txt",
            &[("a.txt", "one\nmore\n"), ("b.txt", "two\n"), ("dir/c.txt", "three\n"), ("dir/d.txt", "four\n")]
                as Files,
        ),
        (
            "sed -i s/two/2/ b.txt",
            &[("a.txt", "one\n"), ("b.txt", "2\n"), ("dir/c.txt", "three\n"), ("dir/d.txt", "four\n")],
        ),
        ("rm -r dir; echo x > new.txt", &[("a.txt", "one\n"), ("b.txt", "two\n"), ("new.txt", "x\n")]),
        (
            "mv dir moved",
            &[("a.txt", "one\n"), ("b.txt", "two\n"), ("moved/c.txt", "three\n"), ("moved/d.txt", "four\n")],
        ),
        ("mv a.txt b.txt", &[("b.txt", "one\n"), ("dir/c.txt", "three\n"), ("dir/d.txt", "four\n")]),
        (
            "python3 -c \"import os; open('b.txt', 'w').write('new'); os.rename('a.txt', 'z.txt'); os.makedirs('x/y'); open('x/y/f', 'w').write('f')\"",
            &[
                ("b.txt", "new"),
                ("dir/c.txt", "three\n"),
                ("dir/d.txt", "four\n"),
                ("x/y/f", "f"),
                ("z.txt", "one\n"),
            ],
        ),
        (
            "truncate -s 0 a.txt && chmod 600 b.txt",
            &[("a.txt", ""), ("b.txt", "two\n"), ("dir/c.txt", "three\n"), ("dir/d.txt", "four\n")],
        ),
        (
            "echo failed > a.txt; exit 3",
            &[("a.txt", "failed\n"), ("b.txt", "two\n"), ("dir/c.txt", "three\n"), ("dir/d.txt", "four\n")],
        ),
    ] {
        let fixture = CliFixture::new();
        for (name, content) in before {
            fixture.write(name, content);
        }
        let settings = r#"{"shell":{"snapshots":true}}"#;
        let input = json!({ "command": command }).to_string();
        let args = ["--settings", settings, "call", "Bash", &input, "--permission-mode", "bypass"];
        let ran = fixture.command(&args).env("TOOLGATE_SANDBOXED", "1").output().unwrap();
        let ran = super::cli_fixture::cli_run(ran);
        assert!(!ran.stdout.contains("not recorded"), "{command}: {}", ran.stdout);
        let files = || {
            let mut found = Vec::new();
            let mut pending = vec![fixture.path("")];
            while let Some(dir) = pending.pop() {
                for entry in std::fs::read_dir(dir).unwrap().flatten() {
                    if entry.path().is_dir() {
                        pending.push(entry.path());
                    } else {
                        let name = entry.path().strip_prefix(fixture.path("")).unwrap().display().to_string();
                        found.push((name, std::fs::read_to_string(entry.path()).unwrap()));
                    }
                }
            }
            found.sort();
            found
        };
        let named = |files: Files| -> Vec<(String, String)> {
            files.iter().map(|(name, content)| ((*name).to_owned(), (*content).to_owned())).collect()
        };
        assert_eq!(files(), named(after), "{command}: {}{}", ran.stdout, ran.stderr);
        let undone = fixture.run(&["undo"]);
        assert_eq!(undone.code, 0, "{command}: {}{}", undone.stdout, undone.stderr);
        assert!(!undone.stderr.contains("cannot be undone"), "{command}: {}", undone.stderr);
        assert_eq!(files(), named(before), "{command}: {}", undone.stdout);
        let redone = fixture.run(&["redo"]);
        assert_eq!(redone.code, 0, "{command}: {}", redone.stderr);
        assert_eq!(files(), named(after), "{command}: {}", redone.stdout);
    }
}

/// Runs a command with snapshots and further settings of the sandbox.
fn run_with_snapshots(fixture: &CliFixture, command: &str, sandbox: &Value) -> super::cli_fixture::CliRun {
    let settings = json!({ "shell": { "snapshots": true }, "sandbox": sandbox }).to_string();
    let input = json!({ "command": command }).to_string();
    let args = ["--settings", &settings, "call", "Bash", &input, "--permission-mode", "bypass"];
    super::cli_fixture::cli_run(fixture.command(&args).env("TOOLGATE_SANDBOXED", "1").output().unwrap())
}

#[test]
fn a_mode_that_a_command_changed_is_restored() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = CliFixture::new();
    let path = fixture.write("a.sh", "one\n");
    let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    let set_mode = |mode| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    set_mode(0o640);
    for (command, shown) in [
        ("chmod 755 a.sh", "a.sh  (mode 755 → 640)"),
        ("echo x > a.sh; chmod 755 a.sh", "lines, mode 755 → 640)"),
    ] {
        run_with_snapshots(&fixture, command, &json!({}));
        assert_eq!(mode(), 0o755, "{command}");
        let undone = fixture.run(&["undo"]);
        assert!(undone.stdout.contains(shown), "{command}: {}", undone.stdout);
        assert_eq!(mode(), 0o640, "{command}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\n");
        fixture.run(&["redo"]);
        assert_eq!(mode(), 0o755, "{command}");
        fixture.run(&["undo"]);
    }
    // A mode that was set since is the user's.
    run_with_snapshots(&fixture, "echo x > a.sh; chmod 755 a.sh", &json!({}));
    set_mode(0o600);
    assert!(!fixture.run(&["undo"]).stdout.contains("mode"));
    assert_eq!((mode(), std::fs::read_to_string(&path).unwrap().as_str()), (0o600, "one\n"));
}

#[test]
fn what_a_snapshot_leaves_out_is_named() {
    let fixture = CliFixture::new();
    fixture.write("a.txt", "one\n");
    let big = fixture.write("big", "");
    std::fs::File::options().write(true).open(&big).unwrap().set_len(20 << 20).unwrap();
    for name in ["a-link", "b-link"] {
        std::os::unix::fs::symlink("a.txt", fixture.path(name)).unwrap();
    }
    // A symlink and a large file that stay as they are are not named.
    let ran = run_with_snapshots(&fixture, "echo two > a.txt; : >> big", &json!({}));
    assert!(!ran.stdout.contains("does not cover"), "{}", ran.stdout);
    assert!(!fixture.run(&["undo"]).stdout.contains("not undone"));
    let ran = run_with_snapshots(&fixture, "echo two > a.txt; echo x >> big; ln -sfn big a-link", &json!({}));
    let note = "does not cover 2 files that the command changed: `";
    assert!(ran.stdout.contains(note) && !ran.stdout.contains("b-link"), "{}", ran.stdout);
    let shown = fixture.run(&["log", "show", "2"]).stdout;
    for undone in [fixture.run(&["undo", "--dry-run"]), fixture.run(&["undo"])] {
        for part in ["big  (not undone: larger than 16 MiB)", "a-link  (not undone: a symlink)"] {
            assert!(undone.stdout.contains(part), "{part} is not in\n{}", undone.stdout);
        }
        assert!(!undone.stdout.contains("b-link"), "{}", undone.stdout);
    }
    assert!(shown.contains("big` (larger than 16 MiB)"), "{shown}");
}

#[test]
fn a_change_that_no_snapshot_keeps_is_not_answered_with_the_setting_that_is_on() {
    let fixture = CliFixture::new();
    fixture.write("a.txt", "one\n");
    std::os::unix::fs::symlink("a.txt", fixture.path("a-link")).unwrap();
    let ran = run_with_snapshots(&fixture, "unlink a-link", &json!({}));
    assert!(!fixture.path("a-link").exists(), "{ran:?}");
    let undone = fixture.run(&["undo"]);
    let hint = "`unlink a-link` changed what no snapshot keeps, so restore it by hand: ";
    assert!(undone.code == 1 && undone.stderr.contains(hint), "{}", undone.stderr);
    assert!(undone.stderr.contains("a-link` (a symlink)"), "{}", undone.stderr);
    assert!(!undone.stderr.contains("shell.snapshots"), "{}", undone.stderr);
    // A command that ran without it, while the setting is on now.
    fixture.run_unasked("Bash", r#"{"command":"touch made"}"#);
    let undone = fixture.run(&["--settings", r#"{"shell":{"snapshots":true}}"#, "undo"]);
    let hint = "cannot be undone: `touch made`; `shell.snapshots` is on";
    assert!(undone.stderr.contains(hint), "{}", undone.stderr);
}

#[test]
fn snapshots_that_cannot_be_made_are_not_silent() {
    let fixture = CliFixture::new();
    let off = json!({ "enabled": false });
    let ran = run_with_snapshots(&fixture, "touch made", &off);
    assert!(
        ran.stdout.contains("not recorded") && ran.stdout.contains("outside the sandbox"),
        "{}",
        ran.stdout
    );
    let settings = json!({ "shell": { "snapshots": true }, "sandbox": off }).to_string();
    let doctor = fixture.run(&["--settings", &settings, "doctor"]).stdout;
    assert!(doctor.contains("`shell.snapshots` has no effect"), "{doctor}");
}

#[test]
fn undoing_a_forced_undo_makes_the_call_undoable_again() {
    let fixture = CliFixture::new();
    fixture.write("a.txt", "one\n");
    write(&fixture, "edit-u", "a.txt", "two\n");
    fixture.write("a.txt", "two\nuser\n");
    let undo = |args: &[&str]| fixture.run(&[&["undo"], args].concat());
    assert_eq!(undo(&["--force"]).code, 0);
    assert_eq!(undo(&[]).code, 0);
    assert_eq!(text(&fixture, "a.txt").unwrap(), "two\nuser\n");
    // The edit is in the file, so it is what can be undone, and the line of the user is a conflict.
    assert!(undo(&["--list"]).stdout.contains("edit-u"));
    for args in [&[][..], &["edit-u"]] {
        let run = undo(args);
        assert_eq!(run.code, 1, "{run:?}");
        assert!(run.stderr.contains("modified since") && run.stderr.contains("--force"), "{run:?}");
    }
    // Only the undo itself can be redone.
    let redone = fixture.run(&["redo", "-n", "9"]);
    assert_eq!((redone.code, text(&fixture, "a.txt").unwrap().as_str()), (0, "one\n"), "{redone:?}");
    assert_eq!(undo(&[]).code, 0);
    assert_eq!(undo(&["edit-u", "--force"]).code, 0);
    assert_eq!(text(&fixture, "a.txt").unwrap(), "one\n");
}

#[test]
fn the_log_says_which_content_of_a_changed_file_is_left() {
    let fixture = CliFixture::new();
    fixture.write("a.txt", "one\n");
    write(&fixture, "edit-1", "a.txt", "two\n");
    write(&fixture, "edit-2", "a.txt", "three\n");
    fixture.write("a.txt", "user\n");
    let show = |call: &str| fixture.run(&["log", "show", call]).stdout;
    // What the first call wrote was stored when the second replaced it.
    assert!(show("edit-1").contains("-one\n+two\n"), "{}", show("edit-1"));
    let shown = show("edit-2");
    assert!(shown.contains("changed since by another program"), "{shown}");
    let (_, command) = shown.split_once("`toolgate ").unwrap();
    let words: Vec<&str> = command.split('`').next().unwrap().split_whitespace().collect();
    let run = fixture.run(&words);
    assert!(run.stdout.contains("-user\n+two\n"), "{words:?}: {run:?}");
}

#[test]
fn a_run_over_several_sessions_is_taken_back_as_its_note_says() {
    let fixture = CliFixture::new();
    for (name, content) in [("a", "1"), ("b", "1"), ("a", "2"), ("b", "2")] {
        write(&fixture, &format!("{name}{content}"), name, content);
    }
    let texts = || ["a", "b"].map(|name| text(&fixture, name).unwrap());
    let undone = fixture.run(&["undo", "-n", "2"]);
    assert!(undone.stderr.contains("`toolgate redo -n 2` reverts this"), "{}", undone.stderr);
    assert_eq!(texts(), ["1", "1"]);
    assert_eq!(fixture.run(&["redo", "-n", "2"]).code, 0);
    assert_eq!(texts(), ["2", "2"]);
    // Another content is overwritten in one file, and comes back with all of the run.
    fixture.write("a", "mine");
    let undone = fixture.run(&["undo", "-n", "2", "--force"]);
    assert!(
        undone.stderr.contains("`toolgate undo` brings the overwritten content back"),
        "{}",
        undone.stderr
    );
    assert_eq!(texts(), ["1", "1"]);
    assert_eq!(fixture.run(&["undo"]).code, 0);
    assert_eq!(texts(), ["mine", "2"]);
}
