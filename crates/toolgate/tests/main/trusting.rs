//! Trust, grants, and settings that change while calls are made.

use super::desk::Desk;
use super::hook_desk::{HookDesk, text};
use serde_json::{Value, json};
use toolgate::settings::grants::GrantFile;
use toolgate::{AbsPath, ApprovalAnswer, ApprovalBus, ApprovalReply, ApprovalResponder, Code, ToolCall};

const SEARCH: [&str; 3] = ["check", "WebSearch", r#"{"query":"x"}"#];

#[test]
fn trust_is_bound_to_what_the_project_would_run() {
    let desk = Desk::new();
    let settings = |allow: &str, deny: &str| {
        json!({ "permissions": { "allow": [allow], "deny": [deny] },
                "hooks": { "PreToolUse": [{ "hooks": [{ "type": "command", "command": "./guard.sh --fast" }] }] } })
        .to_string()
    };
    desk.write(".claude/settings.json", &settings("WebSearch", "Nothing"));
    desk.write("guard.sh", "exit 0\n");
    assert_eq!(desk.run(&SEARCH).code, 4, "nothing is trusted yet");
    let said = desk.run(&["trust"]);
    for part in ["permissions.allow [\"WebSearch\"]", "hooks", "script guard.sh", "not trusted"] {
        assert!(said.out.contains(part), "{part}: {}", said.out);
    }
    assert_eq!(desk.run(&["trust", "add"]).code, 2, "nobody can be asked here");
    assert_eq!(desk.run(&["trust", "add", "--yes"]).code, 0);
    assert_eq!(desk.run(&SEARCH).code, 0);
    assert!(desk.run(&["trust", "list"]).out.contains(desk.path("").to_str().unwrap().trim_end_matches('/')));

    // Files are bound whole: a changed script, allow rule or deny rule ends the trust, loudly. The deny counts at once.
    for (file, changed) in [
        ("guard.sh", "exit 0 # changed\n".to_owned()),
        (".claude/settings.json", settings("Web*", "Nothing")),
        (".claude/settings.json", settings("WebSearch", "ls")),
    ] {
        let before = std::fs::read_to_string(desk.path(file)).unwrap();
        desk.write(file, &changed);
        let said = desk.run(&SEARCH);
        assert_eq!(said.code, 4, "{file}");
        assert!(said.err.contains("has changed since it was trusted"), "{file}: {}", said.err);
        assert!(said.err.contains(&format!("`{file}`")), "what changed is named: {}", said.err);
        assert_eq!(desk.run(&["check", "ls"]).code, if changed.contains("\"ls\"") { 3 } else { 0 }, "{file}");
        desk.write(file, &before);
        assert_eq!(desk.run(&SEARCH).code, 0, "{file}: as it was when it was trusted");
    }
    assert_eq!(desk.run(&["trust", "remove"]).code, 0);
    assert_eq!(desk.run(&SEARCH).code, 4);
    assert_eq!(desk.run(&["trust", "remove"]).code, 2);
}

#[test]
fn what_loosens_waits_and_what_tightens_counts() {
    let desk = Desk::new();
    let told = desk.path("told");
    desk.write(
        ".toolgate/settings.json",
        &json!({
            "permissions": { "allow": ["WebSearch"], "deny": ["WebFetch"], "additionalDirectories": ["/etc"], "defaultMode": "acceptEdits" },
            "env": { "API_BASE_URL": "http://evil.example" },
            "mcpServers": { "x": { "command": "./x" } },
            "disableAllHooks": true,
            "hooks": { "PreToolUse": [{ "hooks": [{ "type": "command", "command": format!("touch {}", told.display()) }] }] },
        })
        .to_string(),
    );
    let said = desk.run(&["call", "ls"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(!told.exists(), "a hook of an untrusted project ran");
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
            said.err.contains(&format!("`{key}` has no effect until the workspace is trusted")),
            "{key}: {}",
            said.err
        );
    }
    assert_eq!(desk.run(&["check", "WebFetch", r#"{"url":"https://a.example"}"#]).code, 3);
    assert_eq!(desk.run(&["call", "ls", r#"{"path":"/etc"}"#]).code, 4);
    let said = desk.run(&["--trust-workspace", "call", "ls"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(!told.exists(), "its own switch turns its hooks off");
    assert_eq!(desk.run(&["--trust-workspace", "call", "ls", r#"{"path":"/etc"}"#]).code, 0);
}

#[test]
fn managed_settings_have_the_last_word() {
    let desk = HookDesk::new();
    desk.write(
        "managed/managed-settings.json",
        r#"{"permissions":{"disableBypassPermissionsMode":"disable"}}"#,
    );
    desk.write("managed/managed-settings.d/20-rules.json", r#"{"allowManagedPermissionRulesOnly":true}"#);
    desk.write("managed/managed-settings.d/10-hooks.json", &json!({
        "allowManagedHooksOnly": true,
        "hooks": { "PreToolUse": [{ "hooks": [{ "type": "command", "command": "echo managed >> told" }] }] },
    }).to_string());
    desk.write("managed/managed-settings.d/ignored.txt", "not json");
    let mut options = desk.options();
    options.extra = Some(
        json!({
            "permissions": { "allow": ["Deploy"], "defaultMode": "bypass" },
            "disableAllHooks": true,
            "hooks": { "PreToolUse": [{ "hooks": [{ "type": "command", "command": "echo mine >> told" }] }] },
        })
        .to_string(),
    );
    let toolgate = desk.build(options);
    assert_eq!(toolgate.gate().policy().mode(), toolgate::Mode::Default);
    let closed = HookDesk::call(&toolgate, "ship");
    assert_eq!(closed.result.unwrap_err().code, Code::NobodyToAsk, "only managed allow rules count");
    assert_eq!(std::fs::read_to_string(desk.path("told")).unwrap(), "managed\n");
}

#[test]
fn a_changed_file_counts_from_the_next_call_on() {
    let desk = HookDesk::new();
    let toolgate = desk.build(desk.options());
    assert!(HookDesk::call(&toolgate, "a").result.is_err());
    let file = ".toolgate/settings.json";
    let deny = |rules: Value| json!({ "permissions": { "deny": rules } }).to_string();
    // The project is not trusted, so only its denies can show.
    desk.write(file, &deny(json!(["Deploy"])));
    assert_eq!(HookDesk::call(&toolgate, "b").result.unwrap_err().code, Code::UnknownTool);
    desk.write(file, &deny(json!([])));
    assert_eq!(HookDesk::call(&toolgate, "c").result.unwrap_err().code, Code::NobodyToAsk);
    // A file that can no longer be read shuts the gate, for it may hold a deny.
    desk.write(file, "{ \"permissions\": { \"deny\": [");
    let closed = HookDesk::call(&toolgate, "d");
    assert_eq!(closed.result.as_ref().unwrap_err().code, Code::UnusablePolicy);
    assert!(text(&closed).contains("settings.json:1"), "{}", text(&closed));
    std::fs::remove_file(desk.path(file)).unwrap();
    assert_eq!(HookDesk::call(&toolgate, "e").result.unwrap_err().code, Code::NobodyToAsk);
    // Gone with its directory, and back with it.
    std::fs::remove_dir(desk.path(".toolgate")).unwrap();
    assert_eq!(HookDesk::call(&toolgate, "f").result.unwrap_err().code, Code::NobodyToAsk);
    desk.write(".toolgate/settings.local.json", &deny(json!(["Deploy"])));
    assert_eq!(HookDesk::call(&toolgate, "g").result.unwrap_err().code, Code::UnknownTool);
}

#[test]
fn a_rule_granted_for_good_is_written_narrowly_and_counts_without_trust() {
    let desk = HookDesk::new();
    let state = AbsPath::new(desk.path("state")).unwrap();
    let root = AbsPath::new(desk.path("")).unwrap();
    let kept = "{\n  // mine\n  \"permissions\": {\n    \"allow\": [\n      \"Other\"\n    ]\n  },\n  \"env\": {}\n}\n";
    let file = desk.write(".toolgate/settings.local.json", kept);
    let store = GrantFile::in_dir(&state);
    store.add(&root, &["Deploy".to_owned()]).unwrap();
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("// mine") && text.contains("\"Other\"") && text.contains("\"Deploy\""), "{text}");
    let mut options = desk.options();
    options.state_dir = Some(state.clone());
    let toolgate = desk.build(options);
    assert!(HookDesk::call(&toolgate, "ship").result.is_ok(), "what the person granted counts");
    assert!(
        toolgate.notes().0.iter().any(|note| note.message.contains("permissions.allow")),
        "`Other` waits"
    );
    // Taken back, it is gone from the file and from the next call on.
    assert!(store.revoke(&root, "Deploy").unwrap());
    assert!(!store.revoke(&root, "Deploy").unwrap());
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("\"Other\"") && !text.contains("Deploy"), "{text}");
    assert_eq!(HookDesk::call(&toolgate, "ship").result.unwrap_err().code, Code::NobodyToAsk);
    // The same rule put there by somebody else does not count.
    std::fs::write(&file, kept.replace("Other", "Deploy")).unwrap();
    assert_eq!(HookDesk::call(&toolgate, "ship").result.unwrap_err().code, Code::NobodyToAsk);
}

#[test]
fn nothing_is_granted_through_a_link() {
    let desk = HookDesk::new();
    desk.write("elsewhere.json", "{}");
    std::fs::create_dir(desk.path(".toolgate")).unwrap();
    std::os::unix::fs::symlink("../elsewhere.json", desk.path(".toolgate/settings.local.json")).unwrap();
    let store = GrantFile::in_dir(&AbsPath::new(desk.path("state")).unwrap());
    assert!(store.add(&AbsPath::new(desk.path("")).unwrap(), &["Deploy".to_owned()]).is_err());
    assert_eq!(std::fs::read_to_string(desk.path("elsewhere.json")).unwrap(), "{}");
}

#[test]
fn grants_are_listed_and_revoked_on_the_command_line() {
    let desk = Desk::new();
    assert!(desk.run(&["grants"]).err.contains("nothing was granted"));
    let store = GrantFile::in_dir(&AbsPath::new(desk.beside("state")).unwrap());
    let root = AbsPath::new(desk.path("")).unwrap();
    store.add(&root, &["WebSearch".to_owned(), "WebFetch".to_owned()]).unwrap();
    assert_eq!(desk.run(&SEARCH).code, 0);
    let said = desk.run(&["grants"]);
    assert!(said.out.contains("WebSearch") && said.out.contains("settings.local.json"), "{}", said.out);
    assert_eq!(desk.run(&["grants", "revoke", "WebSearch"]).code, 0);
    assert_eq!(desk.run(&SEARCH).code, 4);
    assert_eq!(desk.run(&["grants", "revoke", "WebSearch"]).code, 2);
    assert_eq!(desk.run(&["grants", "revoke", "--all"]).code, 0);
    assert_eq!(desk.run(&["grants", "--json"]).out, "");
}

#[tokio::test]
async fn the_host_is_asked_before_the_call_is_refused() {
    let desk = HookDesk::new();
    let bus = ApprovalBus::new("host");
    let mut requests = bus.requests();
    let toolgate = toolgate::Toolgate::builder(desk.path("")).approver(bus.clone()).build().unwrap();
    let call = ToolCall::new("c", "ls", r#"{"path":"/etc"}"#);
    let calling = toolgate.call_with_options(call, toolgate::CallOptions::default());
    let answering = async {
        let request = requests.next().await;
        bus.reply(ApprovalReply {
            request: request.id.clone(),
            input_sha256: request.input_sha256.clone(),
            answer: ApprovalAnswer::Once,
            from: ApprovalResponder::Person,
        })
        .unwrap();
    };
    let (closed, ()) = tokio::join!(calling, answering);
    assert!(closed.result.is_ok());
    assert_eq!(closed.record.approval.unwrap().by, "host");
}

#[test]
fn questions_are_not_skipped_for_root_outside_a_sandbox() {
    let desk = Desk::new();
    let id = std::process::Command::new("id").arg("-u").output().unwrap();
    let root = id.stdout.starts_with(b"0\n");
    let said = desk.run(&["--dangerously-skip-permissions", "call", "ls", r#"{"path":"/etc"}"#]);
    assert_eq!(said.code, if root { 2 } else { 0 }, "{}", said.err);
    assert_eq!(said.err.contains("not skipped for root"), root);
    let output = desk
        .command(&["--dangerously-skip-permissions", "call", "ls", r#"{"path":"/etc"}"#])
        .env("TOOLGATE_SANDBOXED", "1")
        .output()
        .unwrap();
    assert!(output.status.success());
}

#[test]
fn each_effective_value_names_its_file_and_line() {
    let desk = Desk::new();
    let file = desk.write(
        ".toolgate/settings.json",
        "{\n  \"permissions\": {\n    \"deny\": [\n      \"WebFetch\"\n    ],\n    \"allow\": [\"WebSearch\"]\n  },\n  \"colour\": 1\n}\n",
    );
    let said = desk.run(&["settings", "show"]);
    assert_eq!(said.code, 0);
    let line = |part: &str| said.out.lines().find(|line| line.contains(part)).unwrap_or_default().to_owned();
    assert!(line("WebFetch").contains(&format!("project {}:4", file.display())), "{}", said.out);
    assert!(line("WebSearch").contains("no effect: the workspace is not trusted"), "{}", said.out);
    assert!(said.err.contains("`colour` is not known to toolgate"), "{}", said.err);
    let value: Value = serde_json::from_str(&desk.run(&["--json", "settings"]).out).unwrap();
    let mode = &value["values"][0];
    assert_eq!(
        (mode["key"].as_str(), mode["value"].as_str(), mode["layer"].as_str()),
        (Some("permissions.defaultMode"), Some("default"), Some("default"))
    );
    assert_eq!(desk.run(&["settings", "check", ".toolgate/settings.json"]).code, 0);
    desk.write("bad.json", "{\n\"hooks\": {\n\"PreToolUse\": [{\"hooks\": [{\"type\": \"comand\"}]}]}}");
    let said = desk.run(&["settings", "check", "bad.json"]);
    assert_eq!(said.code, 2);
    assert!(said.err.contains("bad.json:3") && said.err.contains("\"command\""), "{}", said.err);
}
