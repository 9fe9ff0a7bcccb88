//! Trust, grants, and settings that change while calls are made.

use super::cli_fixture::CliFixture;
use super::hook_fixture::{HookFixture, text};
use serde_json::{Value, json};
use toolgate::settings::grants::GrantFile;
use toolgate::{AbsPath, ApprovalAnswer, ApprovalBus, ApprovalReply, ApprovalResponder, Code, ToolCall};

const SEARCH: [&str; 3] = ["check", "WebSearch", r#"{"query":"x"}"#];

#[test]
fn trust_is_bound_to_the_files_of_settings_and_hooks() {
    let fixture = CliFixture::new();
    let settings = |allow: &str, deny: &str| {
        json!({ "permissions": { "allow": [allow], "deny": [deny] },
                "hooks": { "PreToolUse": [{ "hooks": [{ "type": "command", "command": "./guard.sh --fast" }] }] } })
        .to_string()
    };
    fixture.write(".claude/settings.json", &settings("WebSearch", "Nothing"));
    fixture.write("guard.sh", "exit 0\n");
    assert_eq!(fixture.run(&SEARCH).code, 4, "nothing is trusted yet");
    let output = fixture.run(&["trust"]);
    for part in ["permissions.allow [\"WebSearch\"]", "hooks", "script guard.sh", "not trusted"] {
        assert!(output.stdout.contains(part), "{part}: {}", output.stdout);
    }
    assert_eq!(fixture.run(&["trust", "add"]).code, 2, "there is no terminal to confirm at");
    assert_eq!(fixture.run(&["trust", "add", "--yes"]).code, 0);
    assert_eq!(fixture.run(&SEARCH).code, 0);
    assert!(
        fixture
            .run(&["trust", "list"])
            .stdout
            .contains(fixture.path("").to_str().unwrap().trim_end_matches('/'))
    );

    // Files are bound as a whole: a changed script, allow rule or deny rule ends trust with a note. A new deny rule
    // applies at once.
    for (file, changed) in [
        ("guard.sh", "exit 0 # changed\n".to_owned()),
        (".claude/settings.json", settings("Web*", "Nothing")),
        (".claude/settings.json", settings("WebSearch", "ls")),
    ] {
        let before = std::fs::read_to_string(fixture.path(file)).unwrap();
        fixture.write(file, &changed);
        let output = fixture.run(&SEARCH);
        assert_eq!(output.code, 4, "{file}");
        assert!(
            output.stderr.contains("this project changed after you trusted it"),
            "{file}: {}",
            output.stderr
        );
        assert!(
            output.stderr.contains(&format!("`{file}`")),
            "the note names what changed: {}",
            output.stderr
        );
        // The hook of the project screens every call, so every call is refused until the change is confirmed.
        let output = fixture.run(&["check", "ls"]);
        let (word, refused) = if changed.contains("\"ls\"") { ("DENY", false) } else { ("ALLOW", true) };
        assert!(output.code == 3 && output.stdout.starts_with(word), "{file} {output:?}");
        assert!(!refused || output.stdout.contains("the call is refused all the same"), "{file} {output:?}");
        fixture.write(file, &before);
        assert_eq!(fixture.run(&SEARCH).code, 0, "{file}: as it was when it was trusted");
    }
    assert_eq!(fixture.run(&["trust", "remove"]).code, 0);
    assert_eq!(fixture.run(&SEARCH).code, 4);
    assert_eq!(fixture.run(&["trust", "remove"]).code, 2);
}

#[test]
fn settings_that_grant_need_trust_and_settings_that_restrict_do_not() {
    let fixture = CliFixture::new();
    let marker = fixture.path("marker");
    fixture.write(
        ".toolgate/settings.json",
        &json!({
            "permissions": { "allow": ["WebSearch"], "deny": ["WebFetch"], "additionalDirectories": ["/etc"], "defaultMode": "acceptEdits" },
            "env": { "API_BASE_URL": "http://evil.example" },
            "mcpServers": { "x": { "command": "./x" } },
            "disableAllHooks": true,
            "hooks": { "PreToolUse": [{ "hooks": [{ "type": "command", "command": format!("touch {}", marker.display()) }] }] },
        })
        .to_string(),
    );
    let output = fixture.run(&["call", "ls"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(!marker.exists(), "a hook of an untrusted project ran");
    for key in [
        "permissions.allow",
        "permissions.additionalDirectories",
        "permissions.defaultMode",
        "hooks",
        "env",
        "mcpServers",
        "disableAllHooks",
    ] {
        assert!(
            output.stderr.contains(&format!("`{key}` has no effect until you trust this project")),
            "{key}: {}",
            output.stderr
        );
    }
    assert_eq!(fixture.run(&["check", "WebFetch", r#"{"url":"https://a.example"}"#]).code, 3);
    assert_eq!(fixture.run(&["call", "ls", r#"{"path":"/etc"}"#]).code, 4);
    let output = fixture.run(&["--trust-workspace", "call", "ls"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(!marker.exists(), "its own switch disables its hooks");
    assert_eq!(fixture.run(&["--trust-workspace", "call", "ls", r#"{"path":"/etc"}"#]).code, 0);
}

#[test]
fn managed_settings_have_the_last_word() {
    let fixture = HookFixture::new();
    fixture.write(
        "managed/managed-settings.json",
        r#"{"permissions":{"disableBypassPermissionsMode":"disable"}}"#,
    );
    fixture.write("managed/managed-settings.d/20-rules.json", r#"{"allowManagedPermissionRulesOnly":true}"#);
    fixture.write("managed/managed-settings.d/10-hooks.json", &json!({
        "allowManagedHooksOnly": true,
        "hooks": { "PreToolUse": [{ "hooks": [{ "type": "command", "command": "echo managed >> marker" }] }] },
    }).to_string());
    fixture.write("managed/managed-settings.d/ignored.txt", "not json");
    let mut options = fixture.options();
    options.extra = Some(
        json!({
            "permissions": { "allow": ["Deploy"], "defaultMode": "bypass" },
            "disableAllHooks": true,
            "hooks": { "PreToolUse": [{ "hooks": [{ "type": "command", "command": "echo mine >> marker" }] }] },
        })
        .to_string(),
    );
    let toolgate = fixture.build(options);
    assert_eq!(toolgate.gate().policy().mode(), toolgate::Mode::Default);
    let outcome = HookFixture::call(&toolgate, "ship");
    assert_eq!(
        outcome.result.unwrap_err().code,
        Code::ApprovalUnavailable,
        "allow rules that are not managed are ignored"
    );
    assert_eq!(std::fs::read_to_string(fixture.path("marker")).unwrap(), "managed\n");
}

#[test]
fn a_changed_file_applies_from_the_next_call_on() {
    let fixture = HookFixture::new();
    let toolgate = fixture.build(fixture.options());
    assert!(HookFixture::call(&toolgate, "a").result.is_err());
    let file = ".toolgate/settings.json";
    let deny = |rules: Value| json!({ "permissions": { "deny": rules } }).to_string();
    // The project is not trusted, so only its deny rules have an effect.
    fixture.write(file, &deny(json!(["Deploy"])));
    assert_eq!(HookFixture::call(&toolgate, "b").result.unwrap_err().code, Code::UnknownTool);
    fixture.write(file, &deny(json!([])));
    assert_eq!(HookFixture::call(&toolgate, "c").result.unwrap_err().code, Code::ApprovalUnavailable);
    // An unreadable file closes the gate, because it may contain a deny rule.
    fixture.write(file, "{ \"permissions\": { \"deny\": [");
    let outcome = HookFixture::call(&toolgate, "d");
    assert_eq!(outcome.result.as_ref().unwrap_err().code, Code::UnusablePolicy);
    assert!(text(&outcome).contains("settings.json:1"), "{}", text(&outcome));
    std::fs::remove_file(fixture.path(file)).unwrap();
    assert_eq!(HookFixture::call(&toolgate, "e").result.unwrap_err().code, Code::ApprovalUnavailable);
    // The directory disappears and appears again.
    std::fs::remove_dir(fixture.path(".toolgate")).unwrap();
    assert_eq!(HookFixture::call(&toolgate, "f").result.unwrap_err().code, Code::ApprovalUnavailable);
    fixture.write(".toolgate/settings.local.json", &deny(json!(["Deploy"])));
    assert_eq!(HookFixture::call(&toolgate, "g").result.unwrap_err().code, Code::UnknownTool);
}

#[test]
fn a_granted_rule_is_written_to_local_settings_and_applies_without_trust() {
    let fixture = HookFixture::new();
    let state = AbsPath::new(fixture.path("state")).unwrap();
    let root = AbsPath::new(fixture.path("")).unwrap();
    let kept = "{\n  // mine\n  \"permissions\": {\n    \"allow\": [\n      \"Other\"\n    ]\n  },\n  \"env\": {}\n}\n";
    let file = fixture.write(".toolgate/settings.local.json", kept);
    let store = GrantFile::in_dir(&state);
    store.add(&root, &["Deploy".to_owned()]).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("// mine") && text.contains("\"Other\"") && text.contains("\"Deploy\""), "{text}");
    let mut options = fixture.options();
    options.state_dir = Some(state.clone());
    let toolgate = fixture.build(options);
    assert!(HookFixture::call(&toolgate, "ship").result.is_ok(), "what the user granted is active");
    assert!(
        toolgate.notes().0.iter().any(|note| note.message.contains("permissions.allow")),
        "`Other` is inactive"
    );
    // A revoked rule is removed from the file, and has no effect on the next call.
    assert!(store.revoke(&root, "Deploy").unwrap());
    assert!(!store.revoke(&root, "Deploy").unwrap());
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("\"Other\"") && !text.contains("Deploy"), "{text}");
    assert_eq!(HookFixture::call(&toolgate, "ship").result.unwrap_err().code, Code::ApprovalUnavailable);
    // The same rule written by another program is inactive.
    std::fs::write(&file, kept.replace("Other", "Deploy")).unwrap();
    assert_eq!(HookFixture::call(&toolgate, "ship").result.unwrap_err().code, Code::ApprovalUnavailable);
}

#[test]
fn no_rule_is_written_through_a_symlink() {
    let fixture = HookFixture::new();
    fixture.write("elsewhere.json", "{}");
    std::fs::create_dir(fixture.path(".toolgate")).unwrap();
    std::os::unix::fs::symlink("../elsewhere.json", fixture.path(".toolgate/settings.local.json")).unwrap();
    let store = GrantFile::in_dir(&AbsPath::new(fixture.path("state")).unwrap());
    assert!(store.add(&AbsPath::new(fixture.path("")).unwrap(), &["Deploy".to_owned()]).is_err());
    assert_eq!(std::fs::read_to_string(fixture.path("elsewhere.json")).unwrap(), "{}");
}

#[test]
fn grants_are_listed_and_revoked_on_the_command_line() {
    let fixture = CliFixture::new();
    assert!(fixture.run(&["grants"]).stderr.contains("no rule was granted permanently"));
    let store = GrantFile::in_dir(&AbsPath::new(fixture.beside("state")).unwrap());
    let root = AbsPath::new(fixture.path("")).unwrap();
    store.add(&root, &["WebSearch".to_owned(), "WebFetch".to_owned()]).unwrap();
    assert_eq!(fixture.run(&SEARCH).code, 0);
    let output = fixture.run(&["grants"]);
    assert!(
        output.stdout.contains("WebSearch") && output.stdout.contains("settings.local.json"),
        "{}",
        output.stdout
    );
    assert_eq!(fixture.run(&["grants", "revoke", "WebSearch"]).code, 0);
    assert_eq!(fixture.run(&SEARCH).code, 4);
    assert_eq!(fixture.run(&["grants", "revoke", "WebSearch"]).code, 2);
    assert_eq!(fixture.run(&["grants", "revoke", "--all"]).code, 0);
    assert_eq!(fixture.run(&["grants", "--json"]).stdout, "");
}

#[tokio::test]
async fn the_host_is_asked_before_the_call_is_refused() {
    let fixture = HookFixture::new();
    let bus = ApprovalBus::new("host");
    let mut requests = bus.requests();
    let toolgate = toolgate::Toolgate::builder(fixture.path("")).approver(bus.clone()).build().unwrap();
    let call = ToolCall::new("c", "ls", r#"{"path":"/etc"}"#);
    let calling = toolgate.call_with_options(call, toolgate::CallOptions::default());
    let answering = async {
        let request = requests.next().await;
        bus.reply(ApprovalReply::new(
            &request.id,
            &request.input_sha256,
            ApprovalAnswer::Once,
            ApprovalResponder::User,
        ))
        .unwrap();
    };
    let (outcome, ()) = tokio::join!(calling, answering);
    assert!(outcome.result.is_ok());
    assert_eq!(outcome.record.approval.unwrap().by, "host");
}

#[test]
fn root_cannot_skip_approval_outside_a_sandbox() {
    let fixture = CliFixture::new();
    let id = std::process::Command::new("id").arg("-u").output().unwrap();
    let root = id.stdout.starts_with(b"0\n");
    let output = fixture.run(&["--dangerously-skip-permissions", "call", "ls", r#"{"path":"/etc"}"#]);
    assert_eq!(output.code, if root { 2 } else { 0 }, "{}", output.stderr);
    assert_eq!(output.stderr.contains("approval cannot be skipped for root"), root);
    let output = fixture
        .command(&["--dangerously-skip-permissions", "call", "ls", r#"{"path":"/etc"}"#])
        .env("TOOLGATE_SANDBOXED", "1")
        .output()
        .unwrap();
    assert!(output.status.success());
    // A check shows the verdict of policy, and says that a call would be refused all the same.
    let check = ["--dangerously-skip-permissions", "check", "ls", r#"{"path":"/etc"}"#];
    let output = fixture.run(&check);
    let wanted = if root { 3 } else { 0 };
    assert_eq!((output.code, output.stdout.starts_with("ALLOW")), (wanted, true), "{output:?}");
    assert_eq!(output.stdout.contains("the call is refused all the same"), root, "{output:?}");
    assert_eq!(output.stdout.contains("TOOLGATE_SANDBOXED=1"), root, "{output:?}");
    let output = fixture.run(&[&["--json"], &check[..]].concat());
    let judgement: serde_json::Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(judgement["callRefused"].is_string(), root, "{output:?}");
    fixture.write("calls.jsonl", r#"{"id":1,"tool":"ls","input":{"path":"/etc"}}"#);
    let batch = ["--dangerously-skip-permissions", "check", "--batch", "calls.jsonl", "--require-allow"];
    let output = fixture.run(&batch);
    assert_eq!((output.code, output.stdout.contains("callRefused")), (wanted, root), "{output:?}");
    let output = fixture.command(&check).env("TOOLGATE_SANDBOXED", "1").output().unwrap();
    assert!(output.stderr.is_empty(), "{output:?}");
}

#[test]
fn each_effective_value_names_its_file_and_line() {
    let fixture = CliFixture::new();
    let file = fixture.write(
        ".toolgate/settings.json",
        "{\n  \"permissions\": {\n    \"deny\": [\n      \"WebFetch\"\n    ],\n    \"allow\": [\"WebSearch\"]\n  },\n  \"colour\": 1\n}\n",
    );
    let output = fixture.run(&["settings", "show"]);
    assert_eq!(output.code, 0);
    let line =
        |part: &str| output.stdout.lines().find(|line| line.contains(part)).unwrap_or_default().to_owned();
    assert!(line("WebFetch").contains(&format!("project {}:4", file.display())), "{}", output.stdout);
    assert!(line("WebSearch").contains("no effect: this project is not trusted"), "{}", output.stdout);
    assert!(output.stderr.contains("unknown key `colour`"), "{}", output.stderr);
    let value: Value = serde_json::from_str(&fixture.run(&["--json", "settings"]).stdout).unwrap();
    let mode = &value["values"][0];
    assert_eq!(
        (mode["key"].as_str(), mode["value"].as_str(), mode["layer"].as_str()),
        (Some("permissions.defaultMode"), Some("default"), Some("default"))
    );
    assert_eq!(fixture.run(&["settings", "check", ".toolgate/settings.json"]).code, 0);
    fixture.write("bad.json", "{\n\"hooks\": {\n\"PreToolUse\": [{\"hooks\": [{\"type\": \"comand\"}]}]}}");
    let output = fixture.run(&["settings", "check", "bad.json"]);
    assert_eq!(output.code, 2);
    assert!(
        output.stdout.contains("bad.json:3") && output.stdout.contains("\"command\""),
        "{}",
        output.stdout
    );
}

/// Trust activates what needs it, and the list says apart what no trust activates.
#[test]
fn a_key_that_no_project_can_set_is_listed_with_the_file_where_it_counts() {
    let fixture = CliFixture::new();
    let own = fixture.beside("home").join(".config/toolgate/settings.json");
    for (settings, key) in [
        (r#"{"apiKeyHelper":"echo x"}"#, "apiKeyHelper"),
        (r#"{"ledger":{"anchor":"/tmp/anchor"}}"#, "ledger.anchor"),
        (r#"{"statusLine":{"type":"command","command":"x"}}"#, "statusLine"),
        (r#"{"enableAllProjectMcpServers":true}"#, "enableAllProjectMcpServers"),
        (r#"{"web":{"search":{"provider":"brave"}}}"#, "web.search.provider"),
        (r#"{"allowManagedHooksOnly":true}"#, "allowManagedHooksOnly"),
    ] {
        fixture.write(".toolgate/settings.json", settings);
        let place = match key {
            "allowManagedHooksOnly" => "managed-settings.json".to_owned(),
            _ => own.display().to_string(),
        };
        let shown = fixture.run(&["trust"]);
        let line = shown.stdout.lines().find(|line| line.contains(key)).unwrap_or_default();
        assert!(line.contains("never taken from a project") && line.ends_with(&place), "{shown:?}");
        assert!(shown.stdout.contains("no settings, hooks or servers that need trust"), "{shown:?}");
        assert!(fixture.run(&["trust", "add", "--yes"]).stdout.contains(line), "{key}");
        let shown: serde_json::Value =
            serde_json::from_str(&fixture.run(&["trust", "--json"]).stdout).unwrap();
        assert_eq!(shown["brings"], serde_json::json!([]), "{shown}");
        assert!(shown["ignored"][0]["countsIn"].as_str().unwrap().ends_with(&place), "{shown}");
    }
}

#[test]
fn trust_does_not_depend_on_which_sources_are_selected() {
    let fixture = CliFixture::new();
    let settings = json!({ "permissions": { "allow": ["WebSearch"] } }).to_string();
    fixture.write(".claude/settings.json", &settings);
    fixture.write(".claude/settings.local.json", "{ \"env\": { \"A\": \"b\" } }");
    let search = |sources: &[&str]| fixture.run(&[sources, &SEARCH].concat());
    for sources in [&["--setting-sources", "user"][..], &["--setting-sources", "project"], &[]] {
        let added = fixture.run(&[sources, &["trust", "add", "--yes"]].concat());
        assert_eq!(added.code, 0, "{sources:?}: {added:?}");
        for (selected, code) in [
            (&["--setting-sources", "user"][..], 4),
            (&["--setting-sources", "local"], 4),
            (&["--setting-sources", "project"], 0),
            (&[], 0),
        ] {
            let found = search(selected);
            assert_eq!(found.code, code, "{sources:?} {selected:?}: {found:?}");
            assert!(!found.stderr.contains("changed after you trusted it"), "{selected:?}: {found:?}");
        }
        assert_eq!(fixture.run(&["trust", "remove"]).code, 0);
    }

    // The note comes where something of the project is in use, and names a file.
    assert_eq!(fixture.run(&["trust", "add", "--yes"]).code, 0);
    fixture.write(".claude/settings.local.json", "{ \"env\": { \"A\": \"c\" } }");
    let found = search(&[]);
    let note = format!("{}:1: this project changed", fixture.path(".claude/settings.local.json").display());
    assert!(found.code == 4 && found.stderr.contains(&note), "{found:?}");
    assert!(!search(&["--setting-sources", "user"]).stderr.contains("changed after you trusted it"));
}

#[test]
fn hooks_that_were_removed_after_trust_refuse_the_calls_that_they_screened() {
    let fixture = CliFixture::new();
    let hooks = |command: &str| {
        let group = json!({ "matcher": "Write", "hooks": [{ "type": "command", "command": command }] });
        json!({ "hooks": { "PreToolUse": [group] } }).to_string()
    };
    let file = ".toolgate/settings.json";
    fixture.write(file, &hooks("true"));
    let write = |sources: &[&str]| {
        let input = format!(r#"{{"file_path":"{}","content":"x"}}"#, fixture.path("new.txt").display());
        let output =
            fixture.run(&[sources, &["--permission-mode", "acceptEdits", "call", "Write", &input]].concat());
        let _ = std::fs::remove_file(fixture.path("new.txt"));
        output
    };
    assert_eq!(fixture.run(&["trust", "add", "--yes"]).code, 0);
    assert_eq!(write(&[]).code, 0);
    for (what, text) in [("emptied", Some("{}")), ("other", Some(r#"{"env":{"A":"b"}}"#)), ("removed", None)]
    {
        match text {
            Some(text) => drop(fixture.write(file, text)),
            None => std::fs::remove_file(fixture.path(file)).unwrap(),
        }
        let refused = write(&[]);
        assert!(refused.code != 0 && refused.stderr.contains("toolgate trust add"), "{what}: {refused:?}");
        assert!(refused.stderr.contains("the hooks are gone"), "{what}: {refused:?}");
        assert_eq!(fixture.run(&["call", "ls"]).code, 0, "{what}: no hook screened it");
        // Without the project's settings its hooks never ran.
        let unscreened = write(&["--setting-sources", "user"]);
        assert_eq!((unscreened.code, unscreened.stderr.as_str()), (0, ""), "{what}");
    }
    assert!(fixture.run(&["trust"]).stdout.contains("stay refused until you run `toolgate trust add`"));
    assert_eq!(fixture.run(&["trust", "add", "--yes"]).code, 0);
    assert_eq!(write(&[]).code, 0);
    // A project that is not trusted any more has no hooks that could refuse.
    fixture.write(file, &hooks("true"));
    assert_eq!(fixture.run(&["trust", "add", "--yes"]).code, 0);
    std::fs::remove_file(fixture.path(file)).unwrap();
    assert_ne!(write(&[]).code, 0);
    assert_eq!(fixture.run(&["trust", "remove"]).code, 0);
    assert_eq!(write(&[]).code, 0);
}

#[test]
fn the_users_file_grants_nothing_where_it_is_read_as_that_of_the_project() {
    let fixture = CliFixture::new();
    let group = json!({ "hooks": [{ "type": "command", "command": "touch hooked" }] });
    let settings = json!({
        "permissions": { "allow": ["Bash(touch *)"], "deny": ["Bash(rm *)"] }, "hooks": { "PreToolUse": [group] },
    });
    let home = fixture.beside("home");
    std::fs::create_dir_all(home.join(".claude")).unwrap();
    std::fs::write(home.join(".claude/settings.json"), settings.to_string()).unwrap();
    let run = |args: &[&str]| fixture.run(&[&["--cwd", home.to_str().unwrap()], args].concat());
    assert_eq!(run(&["trust", "workspace", "--yes"]).code, 0);
    let check = |sources: &[&str], command: &str| {
        run(&[sources, &["check", "Bash", &json!({ "command": command }).to_string()]].concat()).code
    };
    for (sources, touch) in
        [(&[][..], 0), (&["--setting-sources", "user,project"], 0), (&["--setting-sources", "project"], 4)]
    {
        assert_eq!(check(sources, "touch x"), touch, "{sources:?}");
        assert_eq!(check(sources, "rm x"), 3, "it restricts in any case: {sources:?}");
    }
    run(&["--setting-sources", "project", "call", "Bash", r#"{"command":"touch x"}"#]);
    assert!(!home.join("hooked").exists() && !home.join("x").exists());
}
