//! `toolgate call`, as a new user would try it.

use super::cli_fixture::CliFixture;
use serde_json::{Value, json};
use std::process::Stdio;

#[test]
fn a_file_is_read_and_the_exit_code_is_zero() {
    let fixture = CliFixture::new();
    let path = fixture.write("a.txt", "one\ntwo\n");
    let output = fixture.run(&["call", "Read", &format!(r#"{{"file_path":"{}"}}"#, path.display())]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "     1\tone\n     2\ttwo\n"), "{}", output.stderr);
    let output = fixture.run(&["--toolset", "plain", "call", "read_file", r#"{"path":"a.txt"}"#]);
    assert_eq!((output.code, output.stdout.as_str()), (0, "one\ntwo\n"));
}

#[test]
fn the_input_may_come_from_standard_input() {
    let fixture = CliFixture::new();
    fixture.write("a.txt", "one\n");
    let output = fixture.run_with_input(&["call", "ls", "-"], r#"{"path":"."}"#);
    assert_eq!(output.code, 0);
    assert!(output.stdout.contains("a.txt"));
}

#[test]
fn each_refusal_has_its_message_and_exit_code() {
    let fixture = CliFixture::new();
    fixture.write("src/main.rs", "fn main() {}\n");
    let missing = format!(r#"{{"file_path":"{}"}}"#, fixture.path("src/mian.rs").display());
    for (args, code, expected) in [
        (vec!["call", "Read", "{"], 2, "not valid JSON: unexpected end of input"),
        (vec!["call", "Read", "[]"], 2, "must be a JSON object, got an array"),
        (vec!["call", "Read", r#"{"file_path":1}"#], 2, "`file_path` is the number 1, but must be a string"),
        (vec!["call", "Read", r#"{"file_path":"x"}"#], 2, "must be an absolute path"),
        (vec!["call", "Raed", "{}"], 2, "did you mean `Read`?"),
        (vec!["call", "Read", &missing], 1, "main.rs`?"),
        (vec!["call", "ls", r#"{"path":"/etc"}"#], 4, "no approver is available"),
        (vec!["--permission-mode", "deny", "call", "ls"], 3, "mode deny"),
        (vec!["--permission-mode", "dontAsk", "call", "ls", r#"{"path":"/etc"}"#], 3, "TG-402"),
        (
            vec!["--disallowed-tools", "Read", "call", "Read", &missing],
            2,
            "tool `Read` is denied by a rule (deny rule `Read` from cli)",
        ),
        (vec!["--tools", "ls", "call", "Read", &missing], 2, "the tools are ls"),
        (vec!["--cwd", "/no/such/place", "call", "ls"], 2, "there is no such directory"),
        (vec!["--permission-mode", "sometimes", "call", "ls"], 2, "unknown permission mode `sometimes`"),
        (vec!["call", "ls", "--timeout=-1"], 2, "timeout"),
    ] {
        let output = fixture.run(&args);
        assert_eq!(output.code, code, "{args:?}: {}{}", output.stdout, output.stderr);
        assert!(output.stderr.contains(expected), "{args:?}: {}", output.stderr);
    }
}

#[test]
fn each_json_format_of_a_result_is_one_line() {
    let fixture = CliFixture::new();
    fixture.write("a.txt", "x\n");
    for (form, key) in
        [("anthropic", "tool_use_id"), ("openai", "tool_call_id"), ("mcp", "content"), ("json", "record")]
    {
        let output = fixture.run(&["call", "ls", "--form", form, "--id", "call_7"]);
        let value: Value = serde_json::from_str(&output.stdout).unwrap();
        assert!(value.get(key).is_some(), "{form}: {}", output.stdout);
        assert_eq!(output.stdout.lines().count(), 1);
    }
}

#[test]
fn a_signal_cancels_and_leaves_a_record_and_no_temporary_file() {
    for signal in ["-INT", "-TERM"] {
        let fixture = CliFixture::new();
        let temporary = fixture.beside("temporary");
        std::fs::create_dir(&temporary).unwrap();
        // The command says when it runs, and does not end by itself.
        let input = r#"{"command":"touch started; sleep 1000"}"#;
        let child = fixture
            .command(&["call", "Bash", input, "--permission-mode", "bypass"])
            .env("TOOLGATE_SANDBOXED", "1")
            .env("TMPDIR", &temporary)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        while !fixture.path("started").exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert_ne!(
            std::fs::read_dir(&temporary).unwrap().count(),
            0,
            "the directory of commands is elsewhere"
        );
        let pid = child.id().to_string();
        std::process::Command::new("kill").args([signal, &pid]).status().unwrap();
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(130), "{signal}: {err}");
        assert!(err.contains("TG-801 CancelledError"), "{signal}: {err}");
        assert!(fixture.run(&["log"]).stdout.contains("TG-801"), "{signal}");
        assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0, "{signal}");
    }
}

#[test]
fn a_closed_stdout_is_not_an_error() {
    let fixture = CliFixture::new();
    for index in 0..2000 {
        fixture.write(&format!("file_with_a_rather_long_name_{index}"), "");
    }
    let mut child =
        fixture.command(&["call", "ls"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn a_call_runs_without_a_writable_state_directory_and_a_note_says_so() {
    let fixture = CliFixture::new();
    let blocked = fixture.beside("blocked");
    std::fs::write(&blocked, "a file where a directory should be").unwrap();
    let output =
        fixture.command(&["call", "ls"]).env("TOOLGATE_STATE_DIR", blocked.join("x")).output().unwrap();
    assert!(output.status.success());
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.contains("calls are not recorded") && err.contains("TOOLGATE_STATE_DIR"), "{err}");
    let output = fixture
        .command(&["--quiet", "call", "ls"])
        .env("TOOLGATE_STATE_DIR", blocked.join("x"))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
}

#[test]
fn invisible_characters_in_a_result_are_escaped() {
    let fixture = CliFixture::new();
    let path = fixture.write("a.txt", "a\u{1b}[31mb\u{202e}c\n");
    let output = fixture.run(&["call", "Read", &format!(r#"{{"file_path":"{}"}}"#, path.display())]);
    assert!(output.stdout.contains(r"a\u{1b}[31mb\u{202e}c"), "{}", output.stdout);
}

#[test]
fn results_of_a_batch_are_in_the_order_of_its_calls() {
    let fixture = CliFixture::new();
    fixture.write("a.txt", "one\n");
    fixture.write("b.txt", "two\n");
    let lines = [
        r#"{"id":"x","tool":"read_file","input":{"path":"a.txt"}}"#,
        r#"{"tool":"read_file","input":"{\"path\":"}"#,
        "",
        r#"{"id":"z","tool":"read_file","input":{"path":"b.txt"}}"#,
    ]
    .join("\n");
    let args = ["--toolset", "plain", "call", "--batch", "-", "--form", "openai"];
    let output = fixture.run_with_input(&args, &lines);
    assert_eq!(output.code, 2, "the code of the first that failed: {}", output.stderr);
    let answers: Vec<Value> = output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let ids: Vec<&str> = answers.iter().map(|answer| answer["tool_call_id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["x", "call_2", "z"]);
    assert!(answers[0]["content"].as_str().unwrap().starts_with("one"));
    assert!(answers[1]["content"].as_str().unwrap().contains("not valid JSON"));
    assert!(answers[2]["content"].as_str().unwrap().starts_with("two"));

    let output = fixture.run_with_input(&args, r#"{"tool":"ls","extra":1}"#);
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("-:1: unknown field `extra`"), "{}", output.stderr);
    let output =
        fixture.command(&["call", "ls"]).env("TOOLGATE_MAX_TOOL_CONCURRENCY", "many").output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert!(err.contains("invalid TOOLGATE_MAX_TOOL_CONCURRENCY `many`"), "{err}");
}

#[test]
fn oversized_results_of_a_batch_are_in_private_files() {
    let fixture = CliFixture::new();
    let mut lines = Vec::new();
    for name in ["a", "b", "c", "d", "e"] {
        let numbered: Vec<String> =
            (0..900).map(|line| format!("{name}{line:04}-{}", "x".repeat(94))).collect();
        fixture.write(name, &numbered.join("\n"));
        lines.push(format!(r#"{{"tool":"read_file","input":{{"path":"{name}"}}}}"#));
    }
    let args = ["--toolset", "plain", "call", "--batch", "-", "--form", "json"];
    let output = fixture.run_with_input(&args, &lines.join("\n"));
    assert_eq!(output.code, 0, "{}", output.stderr);
    let value: Value = serde_json::from_str(output.stdout.lines().next().unwrap()).unwrap();
    let path = value["record"]["outcome"]["spilled"].as_str().unwrap().to_owned();
    let text = value["output"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("were left out here") && text.contains(&path), "{text}");
    assert!(std::path::Path::new(&path).starts_with(fixture.beside("state/results")));
    let whole = std::fs::read_to_string(&path).unwrap();
    assert!(whole.contains("a0450-") && !text.contains("a0450-"));
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
}

/// The background processes of a command end with the program.
#[test]
fn no_process_outlives_the_program() {
    let fixture = CliFixture::new();
    let mark = format!("mark-{}", std::process::id());
    let input = format!(r#"{{ "command": "setsid sleep 1234.{} & echo {mark}" }}"#, std::process::id());
    let output = fixture.run_unasked("Bash", &input);
    assert!(
        output.stdout.contains(&mark) && output.stdout.contains("still run, as task_1"),
        "{}{}",
        output.stdout,
        output.stderr
    );
    assert!(output.stderr.contains("the background task ended with it"), "{}", output.stderr);
    let wanted = format!("1234.{}", std::process::id());
    let left = std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line.split(|byte| *byte == 0).any(|word| word == wanted.as_bytes())
    });
    assert_eq!(left.count(), 0);
}

#[test]
fn a_result_ends_with_one_line_end() {
    let fixture = CliFixture::new();
    for (command, stdout) in
        [("echo hi", "hi\n"), ("true", ""), ("printf hi", "hi\n"), ("echo; echo", "\n\n")]
    {
        let input = json!({ "command": command }).to_string();
        let run = fixture.run_unasked("Bash", &input);
        assert_eq!((run.code, run.stdout.as_str()), (0, stdout), "{command}: {}", run.stderr);
        fixture.write(
            "calls.jsonl",
            &json!({ "id": "c", "tool": "Bash", "input": { "command": command } }).to_string(),
        );
        let args = ["call", "--batch", "calls.jsonl", "--form", "text", "--permission-mode", "bypass"];
        let run = super::cli_fixture::cli_run(
            fixture.command(&args).env("TOOLGATE_SANDBOXED", "1").output().unwrap(),
        );
        assert_eq!(run.stdout, format!("== c Bash\n{stdout}"), "{command}: {}", run.stderr);
    }
}

#[test]
fn a_failure_without_output_has_no_blank_line_and_a_hint_that_fits() {
    let fixture = CliFixture::new();
    for (command, before, hint) in [
        ("exit 3", "", "it printed nothing"),
        ("echo out; exit 3", "out\n", "see its output"),
        ("printf out; exit 3", "out\n", "see its output"),
    ] {
        let run = fixture.run_unasked("Bash", &json!({ "command": command }).to_string());
        let wanted = format!("{before}the command ended with ");
        assert!(run.code == 1 && run.stderr.starts_with(&wanted), "{command}: {run:?}");
        assert!(run.stderr.contains(&format!("\n  hint: {hint}")), "{command}: {run:?}");
    }
}

#[test]
fn a_format_that_is_named_replaces_that_of_json() {
    let fixture = CliFixture::new();
    fixture.write("calls.jsonl", "{\"id\":\"c\",\"tool\":\"ls\"}\n");
    for (form, pointer) in [
        ("anthropic", "/tool_use_id"),
        ("openai", "/tool_call_id"),
        ("mcp", "/isError"),
        ("json", "/record/call"),
    ] {
        for target in [&["ls", "{}"][..], &["--batch", "calls.jsonl"]] {
            let run = fixture.run(&[&["--json", "call", "--form", form][..], target].concat());
            let value: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
            assert!(run.code == 0 && value.pointer(pointer).is_some(), "{form} {target:?}: {run:?}");
        }
    }
    for target in [&["Write", "{\"file_path\":\"a\",\"content\":\"x\"}"][..], &["--batch", "calls.jsonl"]] {
        let run = fixture.run(&[&["--json", "call", "--form", "text"][..], target].concat());
        assert!(run.code == 2 && run.stdout.contains("leave one of them out"), "{run:?}");
    }
    assert!(!fixture.path("a").exists());
}

#[test]
fn an_invalid_line_of_a_batch_has_one_position() {
    let fixture = CliFixture::new();
    for (line, message) in [
        ("{\"tool\":\n", "c.jsonl:2: not valid JSON: unexpected end of input\n"),
        ("{\"tool\":", "c.jsonl:2: not valid JSON: unexpected end of input"),
        ("{\"tool\":\"ls\",}\n", "c.jsonl:2: not valid JSON: trailing comma (column 14)\n"),
    ] {
        fixture.write("c.jsonl", &format!("\n{line}"));
        let run = fixture.run(&["call", "--batch", "c.jsonl"]);
        assert!(run.code == 2 && run.stderr.contains(message) && !run.stderr.contains("line "), "{run:?}");
    }
}
