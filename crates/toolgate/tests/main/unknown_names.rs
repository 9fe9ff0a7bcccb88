//! Names of tools, servers, subcommands and modes that do not exist: the message says what was meant.

use super::cli_fixture::CliFixture;
use serde_json::Value;

/// A workspace with the configured server `calc`.
fn with_server() -> CliFixture {
    let fixture = CliFixture::new();
    let program = env!("CARGO_BIN_EXE_toolgate");
    assert_eq!(fixture.run(&["mcp", "add", "calc", program, "mcp", "serve", "--quiet"]).code, 0);
    fixture
}

#[test]
fn a_tool_of_an_unknown_server_names_the_servers() {
    let fixture = with_server();
    for (name, hint) in [
        ("mcp__calk__add", "did you mean `mcp__calc__add`?"),
        ("mcp__nothing__add", "the configured servers are `calc`; see `toolgate mcp list`"),
    ] {
        let called = fixture.run(&["call", name, "{}"]);
        let wanted = format!("there is no tool `{name}` here [TG-101 ToolNotFoundError]\n  hint: {hint}\n");
        assert_eq!((called.code, called.stderr.as_str()), (2, wanted.as_str()));
        let described = fixture.run(&["tools", name]);
        assert!(described.code == 2 && described.stderr.contains(hint), "{described:?}");
        // A result for a model does not name what the user configured.
        let called = fixture.run(&["call", name, "{}", "--form", "anthropic"]);
        assert!(!called.stdout.contains("calc") && called.stderr.contains(hint), "{called:?}");
    }
    let none = CliFixture::new().run(&["call", "mcp__calk__add", "{}"]);
    assert!(none.stderr.contains("hint: no MCP server is configured; `toolgate mcp add`"), "{none:?}");
}

#[test]
fn a_tool_of_a_server_with_an_invalid_entry_says_what_is_wrong_with_it() {
    let fixture = with_server();
    fixture.write(".mcp.json", r#"{"mcpServers":{"typo":{"comand":"npx"},"empty":{}}}"#);
    for (name, hint) in [
        ("mcp__typo__add", "unknown key `comand`; did you mean `command`?"),
        ("mcp__empty__add", "correct its entry, then see `toolgate mcp list`"),
    ] {
        let server = name.split("__").nth(1).unwrap();
        for args in [&["call", name, "{}"][..], &["tools", name]] {
            let run = fixture.run(args);
            let wanted = format!("server `{server}` cannot start: needs a `command` or a `url`");
            assert!(run.code == 2 && run.stderr.contains(&wanted), "{run:?}");
            assert!(run.stderr.contains(&format!("\n  hint: {hint}\n")), "{run:?}");
        }
    }
    let added = fixture.run(&["mcp", "add-json", "j", r#"{"comand":"npx"}"#]);
    let wanted =
        "server `j`: needs a `command` or a `url`\n  hint: unknown key `comand`; did you mean `command`?\n";
    assert!(added.code == 2 && added.stderr.ends_with(wanted), "{added:?}");
    let added = fixture.run(&["mcp", "add-json", "j", "{}"]);
    assert!(added.stderr.ends_with("server `j`: needs a `command` or a `url`\n"), "{added:?}");
}

#[test]
fn an_unknown_name_of_a_described_tool_is_compared_with_the_tools() {
    let fixture = CliFixture::new();
    for (name, hint) in [
        ("read", "did you mean `Read`?"),
        ("read_file", "did you mean `Read`?"),
        ("Bahs", "did you mean `Bash`?"),
        ("nonsense", "`toolgate tools` lists the tools"),
    ] {
        let run = fixture.run(&["tools", name]);
        let wanted = format!("unknown tool `{name}`\n  hint: {hint}\n");
        assert!(run.code == 2 && run.stderr.ends_with(&wanted), "{run:?}");
    }
}

#[test]
fn a_missing_subcommand_is_an_error_that_lists_them() {
    let fixture = CliFixture::new();
    for (args, names) in [
        (&["skill"][..], "list, show, run, lint"),
        (&["plugin"], "add, list, show, approve"),
        (&["mcp"], "serve, add, add-json"),
    ] {
        let run = fixture.run(&[&["--json"], args].concat());
        let error: Value = serde_json::from_str(&run.stdout).unwrap();
        let message = error["error"]["message"].as_str().unwrap();
        assert!(message.starts_with(&format!("a subcommand is needed: {names}")), "{args:?}: {message}");
        assert!(run.code == 2 && !message.contains("help"), "{message}");
    }
}

#[test]
fn advice_is_given_once_and_fits_the_command() {
    let fixture = CliFixture::new();
    fixture.write("c.rules", "allow tool ls\n");
    let run = fixture.run(&["policy", "fmt", "c.rules"]);
    assert!(run.code == 2 && run.stderr.contains("only settings files"), "{run:?}");
    assert!(!run.stderr.contains("no call runs"), "{run:?}");
    let settings = r#"{"permissions":{"defaultMode":"accept"}}"#;
    let run = fixture.run(&["--settings", settings, "check", "ls"]);
    assert_eq!(run.stderr.matches("use ").count(), 1, "{run:?}");
    assert!(run.stderr.contains("unknown permission mode `accept`\n"), "{run:?}");
    let run = fixture.run(&["--permission-prompt-tool", "x", "ask", r#"{"tool":"x"}"#]);
    assert!(run.code == 4 && run.stderr.contains("`ask` asks nowhere else"), "{run:?}");
}

#[test]
fn rows_of_a_check_that_are_the_same_are_printed_once() {
    let fixture = CliFixture::new();
    let run = fixture.run(&["check", "Bash", r#"{"command":"for i in 1 2; do make $i; done"}"#]);
    let lines: Vec<&str> = run.stdout.lines().collect();
    let count = |part: &str| lines.iter().filter(|line| line.contains(part)).count();
    assert_eq!((count("allow rules      no rule"), count("ask    make $i")), (1, 1), "{}", run.stdout);
}
