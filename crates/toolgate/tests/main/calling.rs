//! `toolgate call`, as a new user would try it.

use super::desk::Desk;
use serde_json::Value;
use std::process::Stdio;

#[test]
fn a_file_is_read_and_the_exit_code_is_zero() {
    let desk = Desk::new();
    let path = desk.write("a.txt", "one\ntwo\n");
    let said = desk.run(&["call", "Read", &format!(r#"{{"file_path":"{}"}}"#, path.display())]);
    assert_eq!((said.code, said.out.as_str()), (0, "     1\tone\n     2\ttwo\n\n"), "{}", said.err);
    let said = desk.run(&["--toolset", "plain", "call", "read_file", r#"{"path":"a.txt"}"#]);
    assert_eq!((said.code, said.out.as_str()), (0, "one\ntwo\n\n"));
}

#[test]
fn the_input_may_come_from_standard_input() {
    let desk = Desk::new();
    desk.write("a.txt", "one\n");
    let said = desk.run_with_input(&["call", "ls", "-"], r#"{"path":"."}"#);
    assert_eq!(said.code, 0);
    assert!(said.out.contains("a.txt"));
}

#[test]
fn each_refusal_has_its_words_and_its_exit_code() {
    let desk = Desk::new();
    desk.write("src/main.rs", "fn main() {}\n");
    let missing = format!(r#"{{"file_path":"{}"}}"#, desk.path("src/mian.rs").display());
    for (args, code, says) in [
        (vec!["call", "Read", "{"], 2, "not valid JSON: unexpected end of input"),
        (vec!["call", "Read", "[]"], 2, "must be a JSON object, got an array"),
        (vec!["call", "Read", r#"{"file_path":1}"#], 2, "`/file_path` is the number 1, but must be a string"),
        (vec!["call", "Read", r#"{"file_path":"x"}"#], 2, "must be an absolute path"),
        (vec!["call", "Raed", "{}"], 2, "did you mean `Read`?"),
        (vec!["call", "Read", &missing], 1, "main.rs`?"),
        (vec!["call", "ls", r#"{"path":"/etc"}"#], 4, "nobody can be"),
        (vec!["--permission-mode", "deny", "call", "ls"], 3, "mode deny"),
        (vec!["--permission-mode", "dontAsk", "call", "ls", r#"{"path":"/etc"}"#], 3, "TG-402"),
        (vec!["--disallowed-tools", "Read", "call", "Read", &missing], 2, "there is no tool `Read` here"),
        (vec!["--tools", "ls", "call", "Read", &missing], 2, "the tools are ls"),
        (vec!["--cwd", "/no/such/place", "call", "ls"], 2, "there is no such directory"),
        (vec!["--permission-mode", "sometimes", "call", "ls"], 2, "no permission mode"),
        (vec!["call", "ls", "--timeout=-1"], 2, "timeout"),
    ] {
        let said = desk.run(&args);
        assert_eq!(said.code, code, "{args:?}: {}{}", said.out, said.err);
        assert!(said.err.contains(says), "{args:?}: {}", said.err);
    }
}

#[test]
fn every_form_of_a_result_is_one_line_of_json() {
    let desk = Desk::new();
    desk.write("a.txt", "x\n");
    for (form, key) in
        [("anthropic", "tool_use_id"), ("openai", "tool_call_id"), ("mcp", "content"), ("json", "record")]
    {
        let said = desk.run(&["call", "ls", "--form", form, "--id", "call_7"]);
        let value: Value = serde_json::from_str(&said.out).unwrap();
        assert!(value.get(key).is_some(), "{form}: {}", said.out);
        assert_eq!(said.out.lines().count(), 1);
    }
}

#[test]
fn an_interrupt_cancels_and_leaves_a_record() {
    let desk = Desk::new();
    // A listing of the whole machine takes long enough to be interrupted.
    let child = desk
        .command(&["--cwd", "/", "call", "ls", r#"{"recursive":true,"maxDepth":64}"#])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The ledger's file is opened just before the call; the signal is sent until it is heard.
    while !desk.beside("state/ledger/ledger.jsonl").exists() {
        std::thread::yield_now();
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    let pid = child.id().to_string();
    std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{err}");
    assert!(err.contains("TG-801 CancelledError"), "{err}");
    assert!(desk.run(&["log"]).out.contains("TG-801"));
}

#[test]
fn a_closed_pipe_is_no_error() {
    let desk = Desk::new();
    for index in 0..2000 {
        desk.write(&format!("file_with_a_rather_long_name_{index}"), "");
    }
    let said = desk.command(&["call", "ls"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut said = said;
    drop(said.stdout.take());
    let output = said.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn without_a_place_for_records_the_call_goes_on_and_says_so() {
    let desk = Desk::new();
    let blocked = desk.beside("blocked");
    std::fs::write(&blocked, "a file where a directory should be").unwrap();
    let output = desk.command(&["call", "ls"]).env("TOOLGATE_STATE_DIR", blocked.join("x")).output().unwrap();
    assert!(output.status.success());
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.contains("no record is kept") && err.contains("TOOLGATE_STATE_DIR"), "{err}");
    let output = desk
        .command(&["--quiet", "call", "ls"])
        .env("TOOLGATE_STATE_DIR", blocked.join("x"))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn what_could_fool_the_eye_is_made_visible() {
    let desk = Desk::new();
    let path = desk.write("a.txt", "a\u{1b}[31mb\u{202e}c\n");
    let said = desk.run(&["call", "Read", &format!(r#"{{"file_path":"{}"}}"#, path.display())]);
    assert!(said.out.contains(r"a\u{1b}[31mb\u{202e}c"), "{}", said.out);
}

#[test]
fn a_batch_of_calls_comes_back_in_order() {
    let desk = Desk::new();
    desk.write("a.txt", "one\n");
    desk.write("b.txt", "two\n");
    let lines = [
        r#"{"id":"x","tool":"read_file","input":{"path":"a.txt"}}"#,
        r#"{"tool":"read_file","input":"{\"path\":"}"#,
        "",
        r#"{"id":"z","tool":"read_file","input":{"path":"b.txt"}}"#,
    ]
    .join("\n");
    let args = ["--toolset", "plain", "call", "--batch", "-", "--form", "openai"];
    let said = desk.run_with_input(&args, &lines);
    assert_eq!(said.code, 2, "the code of the first that failed: {}", said.err);
    let answers: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ids: Vec<&str> = answers.iter().map(|answer| answer["tool_call_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["x", "call_2", "z"]);
    assert!(answers[0]["content"].as_str().unwrap().starts_with("one"));
    assert!(answers[1]["content"].as_str().unwrap().contains("not valid JSON"));
    assert!(answers[2]["content"].as_str().unwrap().starts_with("two"));

    let said = desk.run_with_input(&args, r#"{"tool":"ls","extra":1}"#);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("-:1: `extra` is no field of a line"), "{}", said.err);
    let output = desk.command(&["call", "ls"]).env("TOOLGATE_MAX_TOOL_CONCURRENCY", "many").output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.contains("TOOLGATE_MAX_TOOL_CONCURRENCY is `many`"), "{err}");
}

#[test]
fn what_a_batch_has_no_room_for_is_in_a_private_file() {
    let desk = Desk::new();
    let mut lines = Vec::new();
    for name in ["a", "b", "c", "d", "e"] {
        let numbered: Vec<String> =
            (0..900).map(|line| format!("{name}{line:04}-{}", "x".repeat(94))).collect();
        desk.write(name, &numbered.join("\n"));
        lines.push(format!(r#"{{"tool":"read_file","input":{{"path":"{name}"}}}}"#));
    }
    let args = ["--toolset", "plain", "call", "--batch", "-", "--form", "json"];
    let said = desk.run_with_input(&args, &lines.join("\n"));
    assert_eq!(said.code, 0, "{}", said.err);
    let value: Value = serde_json::from_str(said.out.lines().next().unwrap()).unwrap();
    let path = value["record"]["outcome"]["spilled"].as_str().unwrap().to_owned();
    let text = value["output"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("were left out here") && text.contains(&path), "{text}");
    assert!(std::path::Path::new(&path).starts_with(desk.beside("state/results")));
    let whole = std::fs::read_to_string(&path).unwrap();
    assert!(whole.contains("a0450-") && !text.contains("a0450-"));
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

/// A command that leaves a server behind, in a program that ends: nothing is left of it.
#[test]
fn nothing_outlives_the_program() {
    let desk = Desk::new();
    let mark = format!("mark-{}", std::process::id());
    let input = format!(r#"{{ "command": "setsid sleep 1234.{} & echo {mark}" }}"#, std::process::id());
    let said = desk.run_unasked("Bash", &input);
    assert!(
        said.out.contains(&mark) && said.out.contains("still run, as task_1"),
        "{}{}",
        said.out,
        said.err
    );
    assert!(said.err.contains("has ended with it"), "{}", said.err);
    let wanted = format!("1234.{}", std::process::id());
    let left = std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == wanted.as_bytes())
    });
    assert_eq!(left.count(), 0);
}
