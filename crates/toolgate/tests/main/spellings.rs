//! Spellings that people bring from other products.

use super::cli_fixture::CliFixture;

#[test]
fn options_are_accepted_in_camel_case() {
    let fixture = CliFixture::new();
    for option in ["--allowedTools", "--allowed-tools"] {
        let output = fixture.run(&[option, "Bash(npm test)", "check", "Bash", r#"{"command":"npm test"}"#]);
        assert_eq!(output.code, 0, "{option}: {}", output.stderr);
    }
    for option in ["--disallowedTools", "--disallowed-tools"] {
        let output = fixture.run(&["check", "Bash", r#"{"command":"ls"}"#, option, "Bash(ls *)"]);
        assert_eq!(output.code, 3, "{option}: {}", output.stderr);
    }
    assert_eq!(fixture.run(&["--permissionMode", "deny", "check", "ls"]).code, 3);
}

#[test]
fn older_names_of_the_file_tools_can_be_called() {
    let fixture = CliFixture::new();
    let file = fixture.write("a.txt", "one\ntwo\n").display().to_string();
    let input = serde_json::json!({ "file_path": file, "limit": 1.0, "offset": 2.0 }).to_string();
    let output = fixture.run(&["call", "FileRead", &input]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("two") && !output.stdout.contains("one"), "{}", output.stdout);
    let input = serde_json::json!({ "file_path": file, "limit": 1.5 }).to_string();
    assert_eq!(fixture.run(&["call", "Read", &input]).code, 2, "not an integer");
    let new = fixture.path("b.txt").display().to_string();
    let input = serde_json::json!({ "file_path": new, "content": "x" }).to_string();
    assert_eq!(fixture.run_unasked("FileWrite", &input).code, 0);
    let input = serde_json::json!({ "file_path": new, "old_string": "x", "new_string": "y" }).to_string();
    let output = fixture.run(&["check", "FileEdit", &input]);
    assert_eq!(output.code, 4, "{}", output.stderr);
}

#[test]
fn a_list_of_tools_means_these_tools() {
    let fixture = CliFixture::new();
    let names = |args: &[&str]| -> Vec<String> {
        let output = fixture.run(args);
        output.stdout.lines().filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
    };
    assert_eq!(names(&["--tools", "Read", "tools"]), ["Read"]);
    assert_eq!(names(&["--tools", "Read,LS", "tools"]), ["Read", "ls"]);
    assert_eq!(names(&["--toolset", "plain", "--tools", "read_file", "tools"]), ["read_file"]);
    assert_eq!(fixture.run(&["--tools", "Read", "call", "ls"]).code, 2, "another tool is hidden");
    assert_eq!(names(&["--tools", "read_file", "tools"]), ["Read"]);
    let none = fixture.run(&["--tools", "PowerShell", "tools"]);
    assert_eq!((none.code, none.stdout.as_str()), (0, ""));
    assert!(none.stderr.contains("no tool is offered") && none.stderr.contains("tools --all"), "{none:?}");
}

#[test]
fn the_example_of_a_tool_works_as_it_is_printed() {
    let fixture = CliFixture::new();
    fixture.write("src/main.rs", "fn main() {}\n");
    for (options, tool) in [(&["--toolset", "plain"][..], "read_file"), (&[], "ls")] {
        let shown = fixture.run(&[options, &["tools", tool]].concat()).stdout;
        let example = shown.lines().find_map(|line| line.trim().strip_prefix("toolgate ")).unwrap();
        let (words, input) = example.split_once(" '").unwrap();
        let mut args: Vec<&str> = words.split(' ').collect();
        args.push(input.trim_end_matches('\''));
        let output = fixture.run(&args);
        assert!(!output.stderr.contains("there is no tool"), "{args:?}: {output:?}");
    }
}

#[test]
fn a_server_can_listen_on_localhost() {
    let fixture = CliFixture::new();
    let output = fixture.run(&["mcp", "serve", "--http", "localhost:99999"]);
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("such as localhost:8765"), "{}", output.stderr);
    let mut child = fixture
        .command(&["mcp", "serve", "--http", "localhost:0"])
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    use std::io::BufRead;
    let mut lines = std::io::BufReader::new(child.stderr.take().unwrap()).lines();
    let served =
        lines.find(|line| line.as_ref().is_ok_and(|line| line.contains("serving on http://127.0.0.1:")));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(served.is_some());
}

#[test]
fn the_depth_of_a_listing_counts_levels_below_the_directory() {
    let fixture = CliFixture::new();
    fixture.write("a/b/c.txt", "");
    for (input, shown, hidden) in [
        (r#"{"maxDepth":0}"#, "d a/", "b/"),
        (r#"{"recursive":true,"maxDepth":0}"#, "d a/", "b/"),
        (r#"{"maxDepth":1}"#, "d b/", "c.txt"),
        (r#"{"maxDepth":2}"#, "c.txt", "nothing"),
        (r#"{"recursive":true}"#, "c.txt", "nothing"),
    ] {
        let output = fixture.run(&["call", "ls", input]);
        assert!(
            output.stdout.contains(shown) && !output.stdout.contains(hidden),
            "{input}: {}",
            output.stdout
        );
    }
}
