//! `toolgate log`: filters, verification of the hash chain, following, and file permissions.

use super::cli_fixture::CliFixture;
use serde_json::Value;
use std::io::Write;

fn with_calls() -> CliFixture {
    let fixture = CliFixture::new();
    let path = fixture.write("a.txt", "x\n");
    fixture.run(&["call", "ls"]);
    fixture.run(&["call", "Read", &format!(r#"{{"file_path":"{}"}}"#, path.display())]);
    fixture.run(&["call", "ls", r#"{"path":"/etc"}"#]);
    fixture.run(&["call", "Nonsense"]);
    fixture
}

#[test]
fn every_call_is_logged_and_can_be_filtered() {
    let fixture = with_calls();
    let count = |args: &[&str]| fixture.run(&[&["log"], args].concat()).stdout.lines().count();
    assert_eq!(count(&[]), 4);
    assert_eq!(count(&["--tool", "ls"]), 2);
    assert_eq!(count(&["--verdict", "ask"]), 1);
    assert_eq!(count(&["-n", "1"]), 1);
    assert_eq!(count(&["--since", "1h"]), 4);
    assert_eq!(count(&["--until", "2001-01-01"]), 0);
    let first: Value =
        serde_json::from_str(fixture.run(&["--json", "log"]).stdout.lines().next().unwrap()).unwrap();
    let session = first["record"]["session"].as_str().unwrap();
    assert_eq!(count(&["--session", session]), 1);
    assert_eq!(first["record"]["principal"]["edge"], "cli");
    for (args, expected) in
        [(["--since", "yesterday"], "invalid time"), (["--verdict", "maybe"], "unknown verdict")]
    {
        let output = fixture.run(&[&["log"], &args[..]].concat());
        assert_eq!(output.code, 2);
        assert!(output.stderr.contains(expected), "{}", output.stderr);
    }
}

#[test]
fn a_failure_is_told_from_a_refusal() {
    let fixture = with_calls();
    fixture.run(&["--allowed-tools", "Bash(false)", "call", "Bash", r#"{"command":"false"}"#]);
    let count = |args: &[&str]| fixture.run(&[&["log"], args].concat()).stdout.lines().count();
    assert_eq!(count(&["--outcome", "done"]), 2);
    assert_eq!(count(&["--outcome", "failed"]), 1);
    assert_eq!(count(&["--outcome", "refused"]), 2);
    assert_eq!(count(&["--project", "."]), 5);
    assert_eq!(count(&["--project", ".."]), 5);
    assert_eq!(count(&["--project", "/etc"]), 0);
    let log = fixture.run(&["--json", "log", "--outcome", "done"]).stdout;
    assert!(!log.contains("TG-"), "an allowed call has no code of a refusal: {log}");
}

#[test]
fn a_record_tells_failed_and_cancelled_from_refused() {
    let fixture = CliFixture::new();
    let bash = |command: &str, options: &[&str]| {
        let input = serde_json::json!({ "command": command }).to_string();
        let args = [
            &[
                "--json",
                "--allowed-tools",
                "Bash(false)",
                "--allowed-tools",
                "Bash(sleep *)",
                "call",
                "Bash",
                &input,
            ],
            options,
        ];
        let result: Value = serde_json::from_str(&fixture.run(&args.concat()).stdout).unwrap();
        result["record"]["outcome"]["outcome"].as_str().unwrap().to_owned()
    };
    let mut expected = vec![bash("false", &[])];
    assert_eq!(expected, ["failed"]);
    // A call that runs out of time before its command starts is refused, so a busy machine gets more time.
    for timeout in ["0.2", "2", "20", "200"] {
        expected.push(bash("sleep 600", &["--timeout", timeout]));
        if expected.last().is_some_and(|outcome| outcome == "failed") {
            break;
        }
    }
    assert_eq!(expected.last().unwrap(), "failed");
    expected.push(bash("npm publish", &[]));
    assert_eq!(expected.last().unwrap(), "refused");
    let logged = fixture.run(&["--json", "log"]).stdout;
    let outcomes: Vec<String> = logged
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .map(|line: Value| line["record"]["outcome"]["outcome"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(outcomes, expected);
}

#[test]
fn show_has_the_input_before_and_after_a_rewrite() {
    let fixture = CliFixture::new();
    let rewrite =
        r#"echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"path":"after"}}}'"#;
    let settings = serde_json::json!({
        "hooks": { "PreToolUse": [{ "hooks": [{ "type": "command", "command": rewrite }] }] },
    });
    fixture.run(&["--settings", &settings.to_string(), "call", "ls", r#"{"path":"before"}"#]);
    let shown = fixture.run(&["log", "show", "1"]).stdout;
    let words = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [r#"asked for { "path": "before" }"#, r#"ran with { "path": "after" }"#, "revised by hook: "]
    {
        assert!(words.contains(part), "{part} is not in\n{shown}");
    }
    fixture.run(&["call", "ls"]);
    let shown = fixture.run(&["log", "show", "2"]).stdout;
    assert!(shown.contains("\ninput ") && !shown.contains("asked for"), "{shown}");
}

#[test]
fn show_and_report_have_the_decision_and_the_change() {
    let fixture = with_calls();
    let path = fixture.path("new.txt");
    let input = format!(r#"{{"file_path":"{}","content":"<b>```one\n"}}"#, path.display());
    fixture.run(&["--allowed-tools", "Edit", "call", "Write", &input]);
    let shown = fixture.run(&["log", "show", "5"]);
    for part in
        ["tool         Write", "verdict      allow: ", "allow rule `Edit`", "outcome      done", "+<b>```one"]
    {
        assert!(shown.stdout.contains(part), "{part} is not in\n{}", shown.stdout);
    }
    let record: Value = serde_json::from_str(&fixture.run(&["--json", "log", "show", "5"]).stdout).unwrap();
    assert_eq!(record["record"]["tool"], "Write");
    let session = record["record"]["session"].as_str().unwrap();
    let markdown = fixture.run(&["log", "report", session]).stdout;
    for part in ["1 call: 1 done", "## 1. `Write: write ", "````diff", "+<b>```one"] {
        assert!(markdown.contains(part), "{part} is not in\n{markdown}");
    }
    let html = fixture.run(&["log", "report", session, "--format", "html"]).stdout;
    assert!(html.contains("+&lt;b&gt;```one") && !html.contains("<b>"), "{html}");
    for (args, expected) in
        [(["show", "999"], "no call `999`"), (["report", "nothing"], "no call of a session")]
    {
        let output = fixture.run(&[&["log"], &args[..]].concat());
        assert_eq!(output.code, 2);
        assert!(output.stderr.contains(expected), "{}", output.stderr);
    }
}

#[test]
fn an_id_of_a_session_is_told_from_that_of_a_call() {
    let fixture = with_calls();
    let listed = fixture.run(&["--json", "log"]).stdout;
    let first: Value = serde_json::from_str(listed.lines().next().unwrap()).unwrap();
    let session = first["record"]["session"].as_str().unwrap();
    let shown = fixture.run(&["log", "show", session]);
    let hint = format!("`{session}` is a session, not a call\n  hint: `toolgate log report {session}`");
    assert!(shown.code == 2 && shown.stderr.contains(&hint), "{shown:?}");
    assert_eq!(fixture.run(&["log", "report", session]).code, 0);
    let unknown = fixture.run(&["log", "show", "nothing"]);
    assert!(unknown.code == 2 && unknown.stderr.contains("`toolgate log` lists the calls"), "{unknown:?}");
}

#[test]
fn tampering_is_detected_and_located() {
    let fixture = with_calls();
    let output = fixture.run(&["log", "--verify"]);
    assert_eq!(output.code, 0);
    assert!(output.stdout.contains("4 records in 1 file: hash chain intact"), "{}", output.stdout);
    let ledger = fixture.beside("state/ledger/ledger.jsonl");
    let text = std::fs::read_to_string(&ledger).unwrap();
    std::fs::write(&ledger, text.replacen("a.txt", "b.txt", 1)).unwrap();
    let output = fixture.run(&["log", "--verify"]);
    assert_eq!(output.code, 1);
    assert!(output.stdout.contains("ledger.jsonl:2: the line was changed"), "{}", output.stdout);
}

#[test]
fn follow_prints_new_records() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;
    let fixture = with_calls();
    let mut child = fixture.command(&["log", "--follow"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..4 {
        lines.next().unwrap().unwrap();
    }
    fixture.run(&["call", "ls", r#"{"path":"a-new-call"}"#]);
    let line = lines.next().unwrap().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(line.contains("a-new-call"), "{line}");
}

#[test]
fn records_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = with_calls();
    let mode = |name: &str| std::fs::metadata(fixture.beside(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("state/ledger"), 0o700);
    assert_eq!(mode("state/ledger/ledger.jsonl"), 0o600);
}

/// The ledger is filled by a line that a crash would leave, which belongs to no record.
#[test]
fn a_new_ledger_file_is_started_at_16_mib() {
    const ROTATION_BYTES: u64 = 16 * 1024 * 1024;
    let fixture = CliFixture::new();
    fixture.run(&["call", "ls"]);
    let ledger = fixture.beside("state/ledger/ledger.jsonl");
    let fill_to = |len: u64| {
        let missing = len - std::fs::metadata(&ledger).unwrap().len();
        let mut file = std::fs::OpenOptions::new().append(true).open(&ledger).unwrap();
        file.write_all(&vec![b'x'; usize::try_from(missing).unwrap()]).unwrap();
    };
    let closed = fixture.beside("state/ledger/ledger-000001.jsonl");
    // There is room for one more record of a few kilobytes, and then there is none.
    fill_to(ROTATION_BYTES - 64 * 1024);
    fixture.run(&["call", "ls"]);
    assert!(!closed.exists());
    fill_to(ROTATION_BYTES - 10);
    fixture.run(&["call", "ls"]);
    assert!(closed.exists());
    let output = fixture.run(&["log", "--verify"]);
    assert!(output.stdout.contains("3 records in 2 files: hash chain intact"), "{}", output.stdout);
}

#[test]
fn an_external_anchor_is_written_and_compared() {
    let fixture = CliFixture::new();
    let anchor = fixture.beside("anchor.log");
    let config = fixture.beside("home/.config/toolgate");
    std::fs::create_dir_all(&config).unwrap();
    let settings = serde_json::json!({ "ledger": { "required": true, "anchor": anchor } }).to_string();
    std::fs::write(config.join("settings.json"), &settings).unwrap();
    // A project must not choose a file that toolgate writes.
    fixture.write(".toolgate/settings.json", r#"{"ledger":{"anchor":"/etc/toolgate-anchor-of-a-project"}}"#);
    let call = || fixture.run(&["call", "ls", "{}"]);
    for _ in 0..3 {
        let called = call();
        assert_eq!(called.code, 0, "{}", called.stderr);
    }
    assert_eq!(std::fs::read_to_string(&anchor).unwrap().lines().count(), 3);
    assert_eq!(fixture.run(&["log", "--verify"]).code, 0);
    // The whole state directory is put back: only the anchor knows.
    std::fs::remove_dir_all(fixture.beside("state")).unwrap();
    std::fs::create_dir_all(fixture.beside("state")).unwrap();
    assert_eq!(call().code, 0);
    let verified = fixture.run(&["log", "--verify"]);
    assert!(
        verified.code == 1 && verified.stdout.contains("records 2 to 3 are missing"),
        "{}",
        verified.stdout
    );
    let text = std::fs::read_to_string(&anchor).unwrap();
    let verified = fixture.run_with_input(&["log", "--verify", "--anchor", "-"], &text);
    assert!(verified.code == 1 && verified.stdout.contains("external anchor"), "{}", verified.stdout);
    // A place that cannot be written refuses the call.
    std::fs::remove_file(&anchor).unwrap();
    std::fs::create_dir(&anchor).unwrap();
    let refused = call();
    assert!(refused.code != 0 && refused.stderr.contains("TG-605"), "{} {}", refused.code, refused.stderr);
}

#[test]
fn a_required_ledger_that_cannot_be_opened_refuses_calls() {
    let fixture = CliFixture::new();
    std::fs::remove_dir_all(fixture.beside("state/ledger")).ok();
    std::fs::write(fixture.beside("state/ledger"), "").unwrap();
    assert_eq!(fixture.run(&["call", "ls", "{}"]).code, 0, "without the setting a note is enough");
    fixture.write(".toolgate/settings.json", r#"{"ledger":{"required":true}}"#);
    let refused = fixture.run(&["call", "ls", "{}"]);
    assert!(refused.code != 0 && refused.stderr.contains("TG-605"), "{} {}", refused.code, refused.stderr);
}
