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

/// A misspelled key that restricts must not start the server with more than its entry says.
#[test]
fn a_misspelled_key_of_an_entry_is_named_wherever_the_entry_comes_from() {
    let fixture = CliFixture::new();
    let program = env!("CARGO_BIN_EXE_toolgate");
    let entry = serde_json::json!({ "command": program, "args": ["mcp", "serve"], "excludTools": ["Write"] });
    let refused = fixture.run(&["mcp", "add-json", "inner", &entry.to_string()]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.stderr.contains("`excludTools`; did you mean `excludeTools`?"), "{refused:?}");
    assert!(fixture.run(&["mcp", "list"]).stdout.contains("no servers are configured"));
    let list = serde_json::json!({ "mcpServers": { "inner": entry } }).to_string();
    let settings = format!("--settings={list}");
    let given = format!("--mcp-config={list}");
    fixture.write(".mcp.json", &list);
    for options in [vec![settings.as_str()], vec![given.as_str()], vec!["--trust-workspace"]] {
        let listed = fixture.run(&[&options[..], &["mcp", "list"]].concat());
        assert_eq!((listed.code, listed.stdout.as_str()), (1, ""), "{options:?}: {listed:?}");
        assert!(listed.stderr.contains("did you mean `excludeTools`?"), "{options:?}: {listed:?}");
        let tools = fixture.run(&[&options[..], &["tools"]].concat());
        assert!(!tools.stdout.contains("mcp__inner"), "{options:?}: {tools:?}");
    }
    // A key of another product is noted where entries are shown, and nowhere else.
    let other = serde_json::json!({ "command": program, "args": ["mcp", "serve", "-q"], "autoApprove": [] });
    let added = fixture.run(&["mcp", "add-json", "other", &other.to_string()]);
    assert!(added.code == 0 && added.stderr.contains("`autoApprove` is not a known key"), "{added:?}");
    std::fs::remove_file(fixture.path(".mcp.json")).unwrap();
    let listed = fixture.run(&["mcp", "list"]);
    assert!(listed.code == 0 && listed.stderr.contains("`autoApprove` is not a known key"), "{listed:?}");
    assert_eq!(fixture.run(&["call", "ls"]).stderr, "");
}

/// Keys of other products that restrict: read where they are clear, and never ignored.
#[test]
fn restricting_keys_in_other_spellings_are_not_ignored() {
    let fixture = CliFixture::new();
    let program = env!("CARGO_BIN_EXE_toolgate");
    let entry = |key: &str, value: Value| {
        let mut entry = serde_json::json!({ "command": program, "args": ["mcp", "serve", "-q"] });
        entry[key] = value;
        entry
    };
    for (key, value) in [
        ("disabledTools", serde_json::json!(["Write"])),
        ("allowedTools", serde_json::json!(["Read"])),
        ("tools", serde_json::json!(["Read"])),
        ("exclude", serde_json::json!(["Write"])),
    ] {
        let entry = entry(key, value);
        let refused = fixture.run(&["mcp", "add-json", "inner", &entry.to_string()]);
        let part = format!("unknown key `{key}`; did you mean `");
        assert!(refused.code == 2 && refused.stderr.contains(&part), "{refused:?}");
        let list = serde_json::json!({ "mcpServers": { "inner": entry } }).to_string();
        let file = fixture.write("settings.json", &list);
        let checked = fixture.run(&["settings", "check", file.to_str().unwrap()]);
        assert!(format!("{}{}", checked.stdout, checked.stderr).contains(&part), "{checked:?}");
        let tools = fixture.run(&["--settings", &list, "tools"]);
        assert!(!tools.stdout.contains("mcp__inner"), "{tools:?}");
    }
    let list =
        |entry: Value| format!("--settings={}", serde_json::json!({ "mcpServers": { "inner": entry } }));
    let off = fixture.run(&[&list(entry("enabled", Value::Bool(false))), "mcp", "list"]);
    assert!(off.code == 0 && off.stdout.contains("no servers are configured"), "{off:?}");
    let names = serde_json::json!(["mcp__inner__Write", "Edit"]);
    let tools = fixture.run(&[&list(entry("excludeTools", names)), "mcp", "test", "inner"]);
    assert_eq!(tools.code, 0, "{tools:?}");
    for (tool, is_offered) in [("Write", false), ("Edit", false), ("Read", true)] {
        assert_eq!(tools.stdout.contains(&format!("mcp__inner__{tool} ")), is_offered, "{tools:?}");
    }
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
fn a_server_of_the_users_works_in_every_project_and_with_a_renewed_token() {
    let fixture = CliFixture::new();
    let program = env!("CARGO_BIN_EXE_toolgate");
    let add = |token: &str| {
        let token = format!("SERVICE_TOKEN={token}");
        fixture.run(&["mcp", "add", "-e", &token, "inner", program, "mcp", "serve", "--quiet"])
    };
    assert_eq!(add("one").code, 0);
    fixture.write("other/file.txt", "");
    let other = fixture.path("other");
    let test = |cwd: &std::path::Path| {
        fixture.run(&["--cwd", cwd.to_str().unwrap(), "mcp", "test", "inner", "--json"])
    };
    assert_eq!(test(&fixture.path("")).code, 0);
    let elsewhere = test(&other);
    assert_eq!(elsewhere.code, 0, "{}{}", elsewhere.stdout, elsewhere.stderr);
    // The token is renewed in the list itself.
    let list = fixture.beside("home/.config/toolgate/mcp.json");
    let text = std::fs::read_to_string(&list).unwrap();
    assert!(text.contains("\"one\""));
    std::fs::write(&list, text.replace("\"one\"", "\"two\"")).unwrap();
    assert_eq!(test(&other).code, 0);
    // Another argument is another server.
    std::fs::write(&list, text.replace("--quiet", "--no-builtin-tools")).unwrap();
    let changed = test(&other);
    assert_eq!(changed.code, 1, "{}", changed.stdout);
    assert_eq!(serde_json::from_str::<Value>(&changed.stdout).unwrap()["held"], true);
}

#[test]
fn the_tools_of_servers_are_listed_with_the_others() {
    let fixture = CliFixture::new();
    let program = env!("CARGO_BIN_EXE_toolgate");
    assert_eq!(fixture.run(&["mcp", "add", "inner", program, "mcp", "serve", "--quiet"]).code, 0);
    assert_eq!(fixture.run(&["mcp", "add", "gone", "/no/such/program"]).code, 0);
    let listed = fixture.run(&["tools"]);
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    assert!(listed.stdout.contains("Read") && listed.stdout.contains("mcp__inner__ls"), "{}", listed.stdout);
    assert!(listed.stderr.contains("server `gone`"), "{}", listed.stderr);
    let one = fixture.run(&["tools", "mcp__inner__ls"]);
    assert!(one.code == 0 && one.stdout.contains("source: "), "{}{}", one.stdout, one.stderr);
    assert!(!one.stderr.contains("gone"), "another server is not started: {}", one.stderr);
    let built_in = fixture.run(&["tools", "Read"]);
    assert!(built_in.code == 0 && !built_in.stderr.contains("gone"), "{}", built_in.stderr);
    let own = fixture.run(&["tools", "--no-servers"]);
    assert!(own.code == 0 && !own.stdout.contains("mcp__inner__ls"), "{}", own.stdout);

    let states = fixture.run(&["mcp", "list", "--status"]);
    assert_eq!(states.code, 0, "{}", states.stderr);
    let line = |name: &str| states.stdout.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(line("inner").contains("connected, tools: "), "{}", states.stdout);
    assert!(line("gone").contains("cannot be started"), "{}", states.stdout);
    let states: Value =
        serde_json::from_str(&fixture.run(&["mcp", "list", "--status", "--json"]).stdout).unwrap();
    let of = |name: &str| {
        let servers = states["servers"].as_array().unwrap();
        servers.iter().find(|server| server["name"] == name).unwrap().clone()
    };
    assert_eq!(
        (&of("inner")["connected"], &of("gone")["connected"]),
        (&Value::Bool(true), &Value::Bool(false))
    );
    assert!(of("inner")["tools"].as_array().unwrap().iter().any(|tool| tool == "mcp__inner__ls"));
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

#[test]
fn a_damaged_list_is_named_with_the_way_to_repair_it() {
    let fixture = CliFixture::new();
    let program = env!("CARGO_BIN_EXE_toolgate");
    let list = fixture.beside("home/.config/toolgate/mcp.json");
    std::fs::create_dir_all(list.parent().unwrap()).unwrap();
    std::fs::write(&list, "{\"mcpServers\": {\n \"a\": {\"command\": \"x\",}\n").unwrap();
    let entry =
        serde_json::json!({ "mcpServers": { "inner": { "command": program, "args": ["mcp", "serve"] } } });
    let is_named = |text: &str| {
        let repair = "repair it, or move it away and add the servers again with `toolgate mcp add`";
        text.contains(list.to_str().unwrap()) && text.contains("line 2, column 23") && text.contains(repair)
    };
    for with_project in [false, true] {
        if with_project {
            fixture.write(".mcp.json", &entry.to_string());
        }
        let listed = fixture.run(&["mcp", "list"]);
        assert_eq!(listed.code, 1, "{}", listed.stdout);
        assert!(
            is_named(&listed.stderr) && !listed.stdout.contains("no servers are configured"),
            "{listed:?}"
        );
        assert_eq!(listed.stdout.contains("inner"), with_project, "{listed:?}");
    }
    let listed = fixture.run(&["mcp", "list", "--json"]);
    let value: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert!(listed.code == 1 && is_named(value["problems"][0].as_str().unwrap()), "{value}");
    for args in [
        &["mcp", "test"][..],
        &["mcp", "test", "a"],
        &["mcp", "get", "a"],
        &["mcp", "remove", "a"],
        &["call", "mcp__a__x"],
    ] {
        let output = fixture.run(args);
        assert!(output.code != 0 && is_named(&output.stderr), "{args:?} {output:?}");
    }
}

#[test]
fn a_call_waits_for_a_server_no_longer_than_its_timeout() {
    let fixture = CliFixture::new();
    assert_eq!(fixture.run(&["mcp", "add", "slow", "/bin/sleep", "100"]).code, 0);
    // Without its own limit the call would wait for the server's, and have the server's error.
    let output = fixture.run(&["call", "mcp__slow__x", "{}", "--timeout", "0.5", "--form", "json"]);
    assert_eq!(output.code, 1, "{output:?}");
    let value: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(value["refusal"]["kind"], "TimeoutError", "{value}");
    assert!(output.stderr.contains("server `slow` is still starting"), "{}", output.stderr);
}
