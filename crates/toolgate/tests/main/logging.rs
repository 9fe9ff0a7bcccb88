//! `toolgate log`: what was called, and whether the ledger is whole.

use super::desk::Desk;
use serde_json::Value;

fn with_calls() -> Desk {
    let desk = Desk::new();
    let path = desk.write("a.txt", "x\n");
    desk.run(&["call", "ls"]);
    desk.run(&["call", "Read", &format!(r#"{{"file_path":"{}"}}"#, path.display())]);
    desk.run(&["call", "ls", r#"{"path":"/etc"}"#]);
    desk.run(&["call", "Nonsense"]);
    desk
}

#[test]
fn every_call_is_there_and_can_be_filtered() {
    let desk = with_calls();
    let count = |args: &[&str]| desk.run(&[&["log"], args].concat()).out.lines().count();
    assert_eq!(count(&[]), 4);
    assert_eq!(count(&["--tool", "ls"]), 2);
    assert_eq!(count(&["--verdict", "ask"]), 1);
    assert_eq!(count(&["-n", "1"]), 1);
    assert_eq!(count(&["--since", "1h"]), 4);
    assert_eq!(count(&["--until", "2001-01-01"]), 0);
    let first: Value =
        serde_json::from_str(desk.run(&["--json", "log"]).out.lines().next().unwrap()).unwrap();
    let session = first["record"]["session"].as_str().unwrap();
    assert_eq!(count(&["--session", session]), 1);
    assert_eq!(first["record"]["principal"]["edge"], "cli");
    for (args, says) in [(["--since", "yesterday"], "is no time"), (["--verdict", "maybe"], "is no verdict")]
    {
        let said = desk.run(&[&["log"], &args[..]].concat());
        assert_eq!(said.code, 2);
        assert!(said.err.contains(says), "{}", said.err);
    }
}

#[test]
fn tampering_is_found_and_named() {
    let desk = with_calls();
    let said = desk.run(&["log", "--verify"]);
    assert_eq!(said.code, 0);
    assert!(said.out.contains("4 records in 1 files: the chain holds"), "{}", said.out);
    let ledger = desk.beside("state/ledger/ledger.jsonl");
    let text = std::fs::read_to_string(&ledger).unwrap();
    std::fs::write(&ledger, text.replacen("a.txt", "b.txt", 1)).unwrap();
    let said = desk.run(&["log", "--verify"]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains("ledger.jsonl:2: the line was changed"), "{}", said.out);
}

#[test]
fn following_shows_a_call_as_it_is_made() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;
    let desk = with_calls();
    let mut child = desk.command(&["log", "--follow"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for _ in 0..4 {
        lines.next().unwrap().unwrap();
    }
    desk.run(&["call", "ls", r#"{"path":"a-new-call"}"#]);
    let line = lines.next().unwrap().unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(line.contains("a-new-call"), "{line}");
}

#[test]
fn records_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let desk = with_calls();
    let mode = |name: &str| std::fs::metadata(desk.beside(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("state/ledger"), 0o700);
    assert_eq!(mode("state/ledger/ledger.jsonl"), 0o600);
}
