//! What scripts rely on: exit codes, ids, formats, errors as JSON, installed completions.

use super::cli_fixture::{CliFixture, cli_run};
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The lines of an output as JSON.
fn parse_lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_batch_check_can_require_that_all_calls_are_allowed() {
    let fixture = CliFixture::new();
    let line =
        |command: &str| json!({ "id": command, "tool": "Bash", "input": { "command": command } }).to_string();
    let deny = r#"{"permissions":{"deny":["Bash(rm *)"]}}"#;
    for (commands, code) in
        [(vec!["ls"], 0), (vec!["ls", "npm publish"], 4), (vec!["npm publish", "rm x", "ls"], 3)]
    {
        let lines: Vec<String> = commands.iter().map(|command| line(command)).collect();
        fixture.write("calls.jsonl", &lines.join("\n"));
        let args = ["--settings", deny, "check", "--batch", "calls.jsonl"];
        assert_eq!(fixture.run(&args).code, 0, "without the flag the verdicts are the result");
        assert_eq!(fixture.run(&[&args[..], &["--require-allow"]].concat()).code, code, "{commands:?}");
    }
}

#[test]
fn a_batch_check_names_the_hooks_that_it_did_not_run() {
    let fixture = CliFixture::new();
    let settings =
        r#"{"hooks":{"PreToolUse":[{"matcher":"Bash","hooks":[{"type":"command","command":"exit 2"}]}]}}"#;
    let call = |settings: Value| {
        let input = json!({ "command": "ls" });
        let mut line = json!({ "id": "a", "tool": "Bash", "input": input });
        if !settings.is_null() {
            line["settings"] = settings;
        }
        line.to_string()
    };
    let ls = json!({ "id": "b", "tool": "ls", "input": {} }).to_string();
    let own: Value = serde_json::from_str(settings).unwrap();
    fixture.write("calls.jsonl", &[call(Value::Null), ls, call(own)].join("\n"));
    let output = fixture.run(&["--settings", settings, "check", "--batch", "calls.jsonl"]);
    let unasked: Vec<bool> =
        parse_lines(&output.stdout).iter().map(|line| line["unaskedHooks"].is_array()).collect();
    assert_eq!(unasked, [true, false, true], "{}", output.stdout);
    assert!(output.stderr.contains("hooks were not run"), "{}", output.stderr);
}

#[test]
fn malformed_lines_keep_their_ids() {
    let fixture = CliFixture::new();
    fixture.write("calls.jsonl", "{\"id\": \"a\", \"tool\": 1}\n{\"id\": 7, \"tool\": \"ls\", \"x\": 1}\n{\"id\": \"c\", \"tool\": \nno json\n");
    let output = fixture.run(&["check", "--batch", "calls.jsonl", "--require-allow"]);
    assert_eq!(output.code, 2);
    let found: Vec<(Value, Value)> = parse_lines(&output.stdout)
        .into_iter()
        .map(|line| (line["id"].clone(), line["line"].clone()))
        .collect();
    let expected = [(json!("a"), 1), (json!(7), 2), (json!("c"), 3), (Value::Null, 4)];
    assert_eq!(found, expected.map(|(id, line)| (id, json!(line))));
}

#[test]
fn a_batch_check_honours_the_additional_directories_of_a_line() {
    let fixture = CliFixture::new();
    let other = fixture.beside("home").join("other");
    std::fs::create_dir_all(&other).unwrap();
    let input = json!({ "file_path": other.join("x.txt") });
    let line = json!({ "tool": "Read", "input": input, "settings": {} });
    let with = json!({ "tool": "Read", "input": input, "settings": { "permissions": { "additionalDirectories": [other] } } });
    let output = fixture.run_with_input(&["check", "--batch", "-"], &format!("{line}\n{with}\n"));
    let verdicts: Vec<Value> =
        parse_lines(&output.stdout).iter().map(|line| line["verdict"].clone()).collect();
    assert_eq!(verdicts, ["ask", "allow"], "{}", output.stdout);
}

#[test]
fn a_batch_of_calls_prints_the_requested_format_with_ids() {
    let fixture = CliFixture::new();
    fixture
        .write("calls.jsonl", "{\"id\": \"one\", \"tool\": \"ls\"}\n{\"id\": \"two\", \"tool\": \"Reed\"}\n");
    let run = |form: &str| fixture.run(&["call", "--batch", "calls.jsonl", "--form", form]).stdout;
    let text = run("text");
    assert!(text.starts_with("== one ls\n- calls.jsonl") && text.contains("== two Reed\n"), "{text}");
    let id_of = |form: &str, pointer: &str| -> Vec<Value> {
        parse_lines(&run(form))
            .iter()
            .map(|line| line.pointer(pointer).cloned().unwrap_or_default())
            .collect()
    };
    for (form, pointer) in [
        ("anthropic", "/tool_use_id"),
        ("openai", "/tool_call_id"),
        ("mcp", "/_meta/toolgate~1call"),
        ("json", "/record/call"),
    ] {
        assert_eq!(id_of(form, pointer), ["one", "two"], "{form}");
    }
}

/// Each command waits for a file that is made only when all eight are running.
#[test]
fn eight_commands_of_a_batch_that_only_read_run_at_once() {
    const MAX_WAIT: Duration = Duration::from_secs(60);
    let fixture = CliFixture::new();
    let name = toolgate_files::generate_id("go_");
    let wait = format!("until [ -e {name} ]; do sleep 0.05; done; echo answer");
    let line = |number: usize| {
        json!({ "id": number.to_string(), "tool": "Bash", "input": { "command": format!("{wait} {number}") } })
            .to_string()
    };
    fixture.write("calls.jsonl", &(0..8).map(line).collect::<Vec<_>>().join("\n"));
    let args = ["call", "--batch", "calls.jsonl", "--form", "text"];
    let mut batch = fixture.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    let mut running = 0;
    while running < 8 && begun.elapsed() < MAX_WAIT && batch.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(20));
        running = (0..8).filter(|number| is_running(&format!("{wait} {number}"))).count();
    }
    fixture.write(&name, "");
    let output = cli_run(batch.wait_with_output().unwrap());
    assert_eq!(running, 8, "{}{}", output.stdout, output.stderr);
    for number in 0..8 {
        assert!(output.stdout.contains(&format!("== {number} Bash\nanswer {number}\n")), "{}", output.stdout);
    }
}

/// Whether a process has this text as one of its arguments.
fn is_running(argument: &str) -> bool {
    std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        let arguments = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        arguments.split(|byte| *byte == 0).any(|one| one == argument.as_bytes())
    })
}

#[test]
fn errors_are_json_with_the_option_json() {
    let fixture = CliFixture::new();
    fixture.write("bad.json", "{");
    for (args, part) in [
        (vec!["--json", "check", "--batch", "missing.jsonl"], "missing.jsonl"),
        (vec!["--json", "--settings", "bad.json", "call", "ls"], "not valid JSON"),
        (vec!["--json", "bogus"], "unrecognized subcommand 'bogus'"),
        (vec!["call", "ls", "--json", "--bogus"], "--bogus"),
        (vec!["--json", "--permission-mode", "sometimes", "tools"], "unknown permission mode `sometimes`"),
    ] {
        let output = fixture.run(&args);
        assert_eq!((output.code, output.stderr.as_str()), (2, ""), "{args:?}");
        let value: Value = serde_json::from_str(&output.stdout).unwrap();
        assert!(value["error"]["message"].as_str().unwrap().contains(part), "{args:?}: {value}");
        assert_eq!(value["error"]["exitCode"], 2);
        assert!(value["error"]["hint"].is_string() || args.contains(&"missing.jsonl"), "{args:?}: {value}");
    }
}

#[test]
fn completions_offer_values_and_can_be_installed_with_man_pages() {
    let fixture = CliFixture::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = fixture.run(&["completions", shell]).stdout;
        for value in ["acceptEdits", "anthropic", "NotebookEdit", "plain"] {
            assert!(script.contains(value), "{shell}: {value}");
        }
        assert!(script.contains("disallowedTools"), "{shell}: the other spelling of an option");
        assert!(!script.contains("reference of all commands"), "{shell}: a hidden command");
    }
    let script = fixture.run(&["completions", "bash"]).stdout;
    assert!(!script.contains("toolgate__reference") && script.contains("\"allow ask deny\""), "{script}");
    let output = fixture.run(&["completions", "bash", "--install"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let share = fixture.beside("home").join(".local/share");
    let script = std::fs::read_to_string(share.join("bash-completion/completions/toolgate")).unwrap();
    assert!(script.contains("_toolgate"));
    let page = std::fs::read_to_string(share.join("man/man1/toolgate-policy-test.1")).unwrap();
    assert!(page.contains(".TH") && page.contains("watch") && page.contains("Examples"), "{page}");
    assert!(share.join("man/man1/toolgate.1").exists());
    let output = fixture.run(&["completions", "--install"]);
    assert_eq!(output.code, 2, "without $SHELL the shell is unknown");
}

#[test]
fn the_help_of_ask_documents_its_input() {
    let help = CliFixture::new().run(&["ask", "--help"]).stdout;
    for field in [
        "tool",
        "input",
        "description",
        "risk",
        "reason",
        "locations",
        "warnings",
        "suggestions",
        "diff",
        "commands",
        "updatedInput",
        "lost",
        "130",
    ] {
        assert!(help.contains(field), "{field} is not in\n{help}");
    }
}

#[test]
fn a_risk_profile_denies_dangers_instead_of_asking() {
    let fixture = CliFixture::new();
    let verdict = |profile: &str| {
        let settings =
            json!({ "permissions": { "allow": ["Bash(rm *)"], "riskProfile": profile } }).to_string();
        fixture.run(&["--settings", &settings, "check", "Bash", r#"{"command":"rm -rf /"}"#]).code
    };
    assert_eq!((verdict("ask"), verdict("critical"), verdict("high")), (4, 3, 3));
    // The advice names the setting, and its file.
    let file = fixture.beside("home").join(".config/toolgate/settings.json");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, r#"{"permissions":{"riskProfile":"critical"}}"#).unwrap();
    let output = fixture.run(&["check", "Bash", r#"{"command":"rm -rf /"}"#]);
    let advice = format!("remove or raise `permissions.riskProfile` in {}:1", file.display());
    assert!(output.code == 3 && output.stdout.contains(&advice), "{}", output.stdout);
    std::fs::remove_file(file).unwrap();
    let settings = r#"{"permissions":{"riskProfile":"sometimes"}}"#;
    assert_eq!(fixture.run(&["--settings", settings, "check", "ls"]).code, 2);
}

#[test]
fn ask_says_why_there_is_no_answer_and_which_field_is_wrong() {
    let fixture = CliFixture::new();
    let ask = |args: &[&str], question: &str| {
        // Without a controlling terminal there is no terminal to ask at.
        let mut command = std::process::Command::new("setsid");
        command.args(["--wait", env!("CARGO_BIN_EXE_toolgate"), "ask", question]).args(args);
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.current_dir(fixture.path("")).stdin(std::process::Stdio::null());
        super::cli_fixture::cli_run(command.output().unwrap())
    };
    for question in [
        r#"{"tool": "Bash", "suggestions": ["Bash(ls)"]}"#,
        r#"{"tool": "Bash", "suggestions": [{"rule": "Bash(ls)", "wider": "Bash(ls *)"}]}"#,
    ] {
        let output = ask(&[], question);
        assert_eq!((output.code, output.stdout.as_str()), (4, ""), "{output:?}");
        assert!(output.stderr.contains("there is no terminal to ask at"), "{output:?}");
    }
    // Exit code 0 means that every question was allowed.
    for nothing in ["", " \n ", "-"] {
        let output = ask(&[], nothing);
        assert_eq!((output.code, output.stdout.as_str()), (2, ""), "{output:?}");
        assert!(output.stderr.contains("there is no question"), "{output:?}");
    }
    let json = ask(&["--json"], r#"{"tool": "Bash"}"#);
    assert!(json.code == 4 && json.stdout.contains(r#""exitCode":4"#), "{json:?}");
    for (question, message) in [
        (
            r#"{"tool": "Bash", "suggestions": [{"name": "Bash(ls)"}]}"#,
            "line 1: field `suggestions`: each must be a rule",
        ),
        (r#"{"tool": "Bash", "locations": "/x"}"#, "line 1: field `locations`: invalid type"),
        (r#"{"tool": "Bash", "warnings": ["x"]}"#, "line 1: field `warnings`: "),
        (r#"{"tool": "Bash", "resaon": "x"}"#, "line 1: unknown field `resaon`"),
        (r#"{"input": {}}"#, "line 1: missing field `tool`"),
    ] {
        let output = ask(&[], question);
        assert!(output.code == 2 && output.stderr.contains(message), "{message}: {output:?}");
    }
}
