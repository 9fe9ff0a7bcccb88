//! `toolgate mcp add`, `list`, `get`, `test`, `approve`, `remove`.

use super::desk::Desk;
use serde_json::Value;

#[test]
fn a_server_is_added_tested_and_removed() {
    let desk = Desk::new();
    let program = env!("CARGO_BIN_EXE_toolgate");
    assert_eq!(
        desk.run(&["mcp", "list"]).out.trim(),
        "no servers; add one with `toolgate mcp add NAME COMMAND`"
    );
    let added = desk.run(&["mcp", "add", "-e", "KEY=value", "inner", program, "mcp", "serve", "--quiet"]);
    assert_eq!(added.code, 0, "{}", added.err);
    let got: Value = serde_json::from_str(&desk.run(&["mcp", "get", "inner"]).out).unwrap();
    assert_eq!(got["args"], serde_json::json!(["mcp", "serve", "--quiet"]));
    assert_eq!(got["env"], serde_json::json!(["KEY"]), "a value may be a secret");
    let tested = desk.run(&["mcp", "test", "inner", "--json"]);
    assert_eq!(tested.code, 0, "{}{}", tested.out, tested.err);
    let tested: Value = serde_json::from_str(&tested.out).unwrap();
    assert_eq!(tested["connected"], true);
    assert!(tested["definitionBytes"].as_u64().unwrap() > 100);
    let called = desk.run(&["call", "mcp__inner__ls", "{}", "--allowed-tools", "mcp__inner__ls"]);
    assert_eq!(called.code, 0, "{}", called.err);
    assert_eq!(desk.run(&["mcp", "remove", "inner"]).code, 0);
    assert_eq!(desk.run(&["mcp", "get", "inner"]).code, 2);
}

#[test]
fn a_project_does_not_start_programs_by_itself() {
    let desk = Desk::new();
    let program = env!("CARGO_BIN_EXE_toolgate");
    let entry = serde_json::json!({ "mcpServers": { "inner": { "command": program, "args": ["mcp", "serve", "--quiet"] } } });
    desk.write(".mcp.json", &entry.to_string());
    let held = desk.run(&["mcp", "test", "inner", "--json"]);
    assert_eq!(held.code, 1, "{}", held.out);
    assert_eq!(serde_json::from_str::<Value>(&held.out).unwrap()["held"], true);
    assert!(desk.run(&["mcp", "list"]).out.contains("held back"));
    assert_eq!(desk.run(&["mcp", "approve", "inner"]).code, 0);
    assert_eq!(desk.run(&["mcp", "test", "inner", "--json"]).code, 0);
    // The project changes what it starts: held back again.
    desk.write(".mcp.json", &entry.to_string().replace("--quiet", "--trust-workspace"));
    let held = desk.run(&["mcp", "test", "inner", "--json"]);
    let told: Value =
        serde_json::from_str(&held.out).unwrap_or_else(|_| panic!("{} {}", held.code, held.err));
    assert_eq!(told["held"], true, "{told}");
}

#[test]
fn what_cannot_be_used_is_said() {
    let desk = Desk::new();
    for (args, says) in [
        (vec!["mcp", "add", "a__b", "cmd"], "a name has"),
        (vec!["mcp", "add-json", "x", "{}"], "needs a `command`"),
        (vec!["mcp", "add-json", "x", "{"], "JSON"),
        (vec!["mcp", "remove", "nobody"], "no list of yours"),
        (vec!["mcp", "test", "nobody"], "there is no server `nobody`"),
        (vec!["mcp", "list", "--mcp-config", "missing.json"], "there is no file"),
        (vec!["mcp", "serve", "--http", "0.0.0.0:0"], "--allow-remote"),
    ] {
        let said = desk.run(&args);
        assert_eq!(said.code, 2, "{args:?}: {}", said.err);
        assert!(said.err.contains(says), "{args:?}: {}", said.err);
    }
    let missing = r#"{"mcpServers": {"gone": {"command": "/no/such/program"}}}"#;
    let said = desk.run(&["mcp", "test", "--mcp-config", missing, "--strict-mcp-config"]);
    assert_eq!(said.code, 1);
    assert!(said.out.contains("cannot be started"), "{}", said.out);
}
