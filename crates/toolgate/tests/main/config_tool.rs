//! `Config`: which settings a model may see and change, where a change goes, and that the user decides.

use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};
use toolgate::settings::merge::key_rules;
use toolgate::settings::schema::settings_schema;
use toolgate::settings::{ModelAccess, SettingsOptions, model_access};
use toolgate::{
    AbsPath, ApprovalAnswer, ApprovalRequest, Approver, BoxFuture, CallResult, Code, Mode, Toolgate,
};

/// A user who approves everything, and remembers what was shown.
#[derive(Default, Clone)]
struct ApprovingUser {
    diffs: Arc<Mutex<Vec<String>>>,
}

impl Approver for ApprovingUser {
    fn name(&self) -> &str {
        "user"
    }

    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        self.diffs.lock().unwrap().push(request.card.diff.clone().unwrap_or_default());
        Box::pin(std::future::ready(ApprovalAnswer::Once))
    }
}

/// A project, the user's settings and managed ones, in a directory of their own.
struct ConfigFixture {
    dir: tempfile::TempDir,
}

impl ConfigFixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for name in ["ws", "config", "state", "managed"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        Self { dir }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn options(&self, trusted: bool) -> SettingsOptions {
        let abs = |name: &str| AbsPath::new(self.path(name)).unwrap();
        let mut options = SettingsOptions::new(abs("ws"));
        options.config_dir = Some(abs("config"));
        options.state_dir = Some(abs("state"));
        options.managed_dirs = vec![abs("managed")];
        options.trust_workspace = trusted;
        options
    }

    /// Every file and its content, except those of the state directory.
    fn files(&self) -> Vec<(String, String)> {
        fn walk(dir: &Path, out: &mut Vec<(String, String)>) {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, out);
                } else {
                    out.push((path.display().to_string(), std::fs::read_to_string(&path).unwrap()));
                }
            }
        }
        let mut out = Vec::new();
        ["ws", "config", "managed"].iter().for_each(|name| walk(&self.path(name), &mut out));
        out.sort();
        out
    }
}

async fn config(toolgate: &Toolgate, input: Value) -> CallResult {
    toolgate.call("call", "Config", &input.to_string()).await.result
}

/// A value that the schema accepts for a key.
fn sample(key: &str) -> Value {
    let schema = key.split('.').fold(settings_schema(), |schema, name| &schema["properties"][name]);
    let text = schema.to_string();
    match key {
        "shell.onTimeout" => json!("background"),
        "bashOutputMaxChars" => json!(8000),
        _ if text.contains("\"integer\"") => json!(7),
        _ if text.contains("\"boolean\"") => json!(true),
        _ => json!("text"),
    }
}

#[tokio::test]
async fn every_setting_is_changeable_by_declaration_or_refused_without_a_trace() {
    let fixture = ConfigFixture::new();
    fixture
        .write("config/settings.json", "{ // mine\n  \"permissions\": { \"deny\": [\"Read(.env)\"] }\n}\n");
    let user = ApprovingUser::default();
    let toolgate = Toolgate::builder(fixture.path("ws"))
        .settings(fixture.options(false))
        .approver(user.clone())
        .build()
        .unwrap();
    let mut changed = 0;
    for key in key_rules() {
        let name = key.name();
        let before = fixture.files();
        let result = config(&toolgate, json!({ "setting": name, "value": sample(&name) })).await;
        match model_access(&name).unwrap() {
            ModelAccess::Change => {
                result.unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
                let read = config(&toolgate, json!({ "setting": name })).await.unwrap();
                assert_eq!(read.structured.unwrap()["value"], sample(&name), "{name}");
                changed += 1;
            }
            ModelAccess::Read | ModelAccess::Withheld => {
                assert_eq!(result.unwrap_err().code, Code::Config, "{name}");
                assert_eq!(fixture.files(), before, "{name}");
            }
        }
    }
    assert_eq!(user.diffs.lock().unwrap().len(), changed, "only changes that can be made are asked about");
    assert!(user.diffs.lock().unwrap().iter().all(|diff| diff.contains("\n+  ")));
    let text = std::fs::read_to_string(fixture.path("config/settings.json")).unwrap();
    assert!(text.contains("// mine") && text.contains("Read(.env)"), "{text}");
    assert!(!fixture.path("ws/.toolgate").exists(), "an untrusted project's settings would have no effect");
}

#[tokio::test]
async fn no_rule_and_no_mode_changes_a_setting_without_the_user() {
    let fixture = ConfigFixture::new();
    for mode in [Mode::Default, Mode::AcceptEdits, Mode::Bypass, Mode::DontAsk, Mode::Plan, Mode::Deny] {
        let toolgate = Toolgate::builder(fixture.path("ws"))
            .settings(fixture.options(true))
            .mode(mode)
            .allow("Config")
            .allow("Edit")
            .allow("Write")
            .build()
            .unwrap();
        let refusal = config(&toolgate, json!({ "setting": "model", "value": "x" })).await.unwrap_err();
        assert!(
            [Code::ApprovalUnavailable, Code::ProtectedPath, Code::DeniedByMode].contains(&refusal.code),
            "{mode}: {refusal}"
        );
        assert!(fixture.files().is_empty(), "{mode}");
    }
}

#[tokio::test]
async fn a_change_goes_to_the_narrowest_file_that_counts() {
    let fixture = ConfigFixture::new();
    fixture.write("ws/.toolgate/settings.json", r#"{ "model": "of the team" }"#);
    let build = |trusted: bool| {
        let builder = Toolgate::builder(fixture.path("ws")).settings(fixture.options(trusted));
        builder.approver(ApprovingUser::default()).build().unwrap()
    };
    let toolgate = build(true);
    let output = config(&toolgate, json!({ "setting": "model", "value": "mine" })).await.unwrap();
    assert!(output.model_text().contains("settings.local.json"), "{}", output.model_text());
    let local = std::fs::read_to_string(fixture.path("ws/.toolgate/settings.local.json")).unwrap();
    assert!(local.contains("\"mine\""), "{local}");
    let read = config(&toolgate, json!({ "setting": "model" })).await.unwrap();
    assert_eq!(read.structured.unwrap()["value"], "mine");
    assert!(!fixture.path("config/settings.json").exists());
    // A symlink in the project must not redirect the write.
    std::fs::remove_file(fixture.path("ws/.toolgate/settings.local.json")).unwrap();
    std::fs::write(fixture.path("victim.json"), "{}").unwrap();
    std::os::unix::fs::symlink(fixture.path("victim.json"), fixture.path("ws/.toolgate/settings.local.json"))
        .unwrap();
    assert!(config(&build(true), json!({ "setting": "model", "value": "evil" })).await.is_err());
    assert_eq!(std::fs::read_to_string(fixture.path("victim.json")).unwrap(), "{}");
}

#[tokio::test]
async fn managed_settings_are_read_only_and_credentials_are_not_shown() {
    let fixture = ConfigFixture::new();
    fixture.write("managed/managed-settings.json", r#"{ "model": "of the company" }"#);
    fixture.write(
        "config/settings.json",
        r#"{ "env": { "API_KEY": "hunter2" }, "permissions": { "ask": ["ls"] } }"#,
    );
    let builder = Toolgate::builder(fixture.path("ws")).settings(fixture.options(false));
    let toolgate = builder.approver(ApprovingUser::default()).build().unwrap();
    let before = fixture.files();
    let refusal = config(&toolgate, json!({ "setting": "model", "value": "mine" })).await.unwrap_err();
    assert!(refusal.reason.contains("managed settings"), "{refusal}");
    for hidden in ["env", "env.API_KEY", "hooks", "mcpServers"] {
        let refusal = config(&toolgate, json!({ "setting": hidden })).await.unwrap_err();
        assert!(!refusal.to_string().contains("hunter2"), "{refusal}");
    }
    let read = config(&toolgate, json!({ "setting": "permissions.ask" })).await.unwrap();
    assert_eq!(read.structured.unwrap()["value"], json!(["ls"]));
    let unset = config(&toolgate, json!({ "setting": "shell.onTimeout" })).await.unwrap();
    assert_eq!(unset.structured.unwrap()["value"], Value::Null);
    let near = config(&toolgate, json!({ "setting": "shell.onTimeOut" })).await.unwrap_err();
    assert!(near.hint.contains("shell.onTimeout"), "{near}");
    let bad = config(&toolgate, json!({ "setting": "shell.onTimeout", "value": "later" })).await.unwrap_err();
    assert!(bad.reason.contains("\"stop\""), "{bad}");
    assert_eq!(fixture.files(), before);
}

#[tokio::test]
async fn a_managed_plan_mode_cannot_be_left() {
    let fixture = ConfigFixture::new();
    fixture.write("managed/managed-settings.json", r#"{ "permissions": { "defaultMode": "plan" } }"#);
    let builder = Toolgate::builder(fixture.path("ws")).settings(fixture.options(false));
    let toolgate = builder.mode(Mode::Bypass).approver(ApprovingUser::default()).build().unwrap();
    let refusal = toolgate.call("1", "ExitPlanMode", r#"{"plan":"1. go"}"#).await.result.unwrap_err();
    assert_eq!(refusal.code, Code::DeniedByMode);
}
