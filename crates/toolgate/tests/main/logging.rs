//! `toolgate log`: filters, verification of the hash chain, following, and file permissions.

use super::cli_fixture::CliFixture;
use serde_json::Value;

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
fn tampering_is_detected_and_located() {
    let fixture = with_calls();
    let output = fixture.run(&["log", "--verify"]);
    assert_eq!(output.code, 0);
    assert!(output.stdout.contains("4 records in 1 files: hash chain intact"), "{}", output.stdout);
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
