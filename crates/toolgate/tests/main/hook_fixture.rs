//! A fixture for hooks: a project, a tool that repeats its input, and settings.

use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use toolgate::settings::SettingsOptions;
use toolgate::{AbsPath, CallOptions, CallOutcome, FnTool, Output, Refusal, ToolCall, ToolSpec, Toolgate};

pub(super) struct HookFixture {
    dir: tempfile::TempDir,
}

/// Input of the tool `Deploy`.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct Given {
    /// The result repeats it; `fail` fails.
    command: String,
}

impl HookFixture {
    pub(super) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    pub(super) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    pub(super) fn options(&self) -> SettingsOptions {
        let mut options = SettingsOptions::new(AbsPath::new(self.path("")).unwrap());
        options.managed_dirs = vec![AbsPath::new(self.path("managed")).unwrap()];
        options
    }

    /// A toolgate with the tool `Deploy` and these settings, as if given with `--settings`.
    pub(super) fn toolgate(&self, settings: &Value) -> Toolgate {
        let mut options = self.options();
        options.extra = Some(settings.to_string());
        self.build(options)
    }

    pub(super) fn build(&self, options: SettingsOptions) -> Toolgate {
        let path = std::env::var("PATH").unwrap_or_default();
        let tool = FnTool::new(ToolSpec::new("Deploy", "Deploys."), |given: Given, _| async move {
            match given.command.as_str() {
                "fail" => Err(Refusal::new(toolgate::Code::ToolFailed, "failed on request")),
                command => Ok(Output::text(format!("did {command}"))),
            }
        });
        Toolgate::builder(self.path(""))
            .settings(options)
            .session("ses_test")
            .env([("PATH".to_owned(), path)].into())
            .approval_timeout(Duration::from_secs(300))
            .tool(tool)
            .build()
            .unwrap()
    }

    /// Settings with one hook.
    pub(super) fn hook(event: &str, handler: Value) -> Value {
        json!({ "permissions": { "allow": ["Deploy"] }, "hooks": { event: [{ "hooks": [handler] }] } })
    }

    pub(super) fn call(toolgate: &Toolgate, command: &str) -> CallOutcome {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let call = ToolCall::new("call_1", "Deploy", json!({ "command": command }).to_string());
        runtime.block_on(async {
            let outcome = toolgate.call_with_options(call, CallOptions::default()).await;
            assert!(toolgate.wait_for_background_hooks(Duration::from_secs(300)).await);
            outcome
        })
    }
}

/// The text that the model gets.
pub(super) fn text(outcome: &CallOutcome) -> String {
    match &outcome.result {
        Ok(output) => output.model_text(),
        Err(refusal) => {
            let partial = refusal.partial.as_ref().map(|partial| partial.model_text()).unwrap_or_default();
            format!("{partial}\n{}\n{}", refusal.reason, refusal.hint)
        }
    }
}
