//! `toolgate mcp add`, `list`, `get`, `test`, `approve`, `remove`.

use super::cli_fixture::CliFixture;
use serde_json::Value;

#[test]
fn a_server_is_added_tested_and_removed() {
    let fixture = CliFixture::new();
    let program = env!("CARGO_BIN_EXE_toolgate");
    assert_eq!(
        fixture.run(&["mcp", "list"]).stdout.trim(),
        "no servers are configured; add one with `toolgate mcp add NAME COMMAND`"
    );
    let added = fixture.run(&["mcp", "add", "-e", "KEY=value", "inner", program, "mcp", "serve", "--quiet"]);
    assert_eq!(added.code, 0, "{}", added.stderr);
    let got: Value = serde_json::from_str(&fixture.run(&["mcp", "get", "inner"]).stdout).unwrap();
    assert_eq!(got["args"], serde_json::json!(["mcp", "serve", "--quiet"]));
    assert_eq!(got["env"], serde_json::json!(["KEY"]), "a value may be a secret");
    let tested = fixture.run(&["mcp", "test", "inner", "--json"]);
    assert_eq!(tested.code, 0, "{}{}", tested.stdout, tested.stderr);
    let tested: Value = serde_json::from_str(&tested.stdout).unwrap();
    assert_eq!(tested["connected"], true);
    assert!(tested["definitionBytes"].as_u64().unwrap() > 100);
    let called = fixture.run(&["call", "mcp__inner__ls", "{}", "--allowed-tools", "mcp__inner__ls"]);
    assert_eq!(called.code, 0, "{}", called.stderr);
    assert_eq!(fixture.run(&["mcp", "remove", "inner"]).code, 0);
    assert_eq!(fixture.run(&["mcp", "get", "inner"]).code, 2);
}

#[test]
fn servers_of_a_project_need_approval() {
    let fixture = CliFixture::new();
    let program = env!("CARGO_BIN_EXE_toolgate");
    let entry = serde_json::json!({ "mcpServers": { "inner": { "command": program, "args": ["mcp", "serve", "--quiet"] } } });
    fixture.write(".mcp.json", &entry.to_string());
    let not_approved = fixture.run(&["mcp", "test", "inner", "--json"]);
    assert_eq!(not_approved.code, 1, "{}", not_approved.stdout);
    assert_eq!(serde_json::from_str::<Value>(&not_approved.stdout).unwrap()["held"], true);
    assert!(fixture.run(&["mcp", "list"]).stdout.contains("not approved: run `toolgate mcp approve inner`"));
    assert_eq!(fixture.run(&["mcp", "approve", "inner"]).code, 0);
    assert_eq!(fixture.run(&["mcp", "test", "inner", "--json"]).code, 0);
    // The project changes the launch command, which needs approval again.
    fixture.write(".mcp.json", &entry.to_string().replace("--quiet", "--trust-workspace"));
    let not_approved = fixture.run(&["mcp", "test", "inner", "--json"]);
    let report: Value = serde_json::from_str(&not_approved.stdout)
        .unwrap_or_else(|_| panic!("{} {}", not_approved.code, not_approved.stderr));
    assert_eq!(report["held"], true, "{report}");
}

#[test]
fn invalid_server_commands_have_clear_errors() {
    let fixture = CliFixture::new();
    for (args, expected) in [
        (vec!["mcp", "add", "a__b", "cmd"], "a name has"),
        (vec!["mcp", "add-json", "x", "{}"], "needs a `command`"),
        (vec!["mcp", "add-json", "x", "{"], "JSON"),
        (vec!["mcp", "remove", "unknown"], "no server `unknown` in your list"),
        (vec!["mcp", "test", "unknown"], "unknown server `unknown`"),
        (vec!["mcp", "list", "--mcp-config", "missing.json"], "no such file"),
        (vec!["mcp", "serve", "--http", "0.0.0.0:0"], "--allow-remote"),
    ] {
        let output = fixture.run(&args);
        assert_eq!(output.code, 2, "{args:?}: {}", output.stderr);
        assert!(output.stderr.contains(expected), "{args:?}: {}", output.stderr);
    }
    let missing = r#"{"mcpServers": {"gone": {"command": "/no/such/program"}}}"#;
    let output = fixture.run(&["mcp", "test", "--mcp-config", missing, "--strict-mcp-config"]);
    assert_eq!(output.code, 1);
    assert!(output.stdout.contains("cannot be started"), "{}", output.stdout);
}
