//! The cost of hooks: a call with hooks for other tools, and a command hook compared with a plain start of its program.
//!
//! Run with `cargo bench --package toolgate --bench hooks`.

#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "a benchmark fails by panicking")]

use divan::Bencher;
use serde_json::{Value, json};
use toolgate::settings::SettingsOptions;
use toolgate::{AbsPath, FnTool, Output, ToolSpec, Toolgate};

fn main() {
    divan::main();
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct HookBenchInput {}

fn toolgate(dir: &std::path::Path, settings: &Value) -> Toolgate {
    let mut options = SettingsOptions::new(AbsPath::new(dir).unwrap());
    options.managed_dirs.clear();
    options.sources.clear();
    options.extra = Some(settings.to_string());
    let env = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into();
    let tool = FnTool::new(ToolSpec::new("Probe", "Does nothing."), |_: HookBenchInput, _| async {
        Ok(Output::text(""))
    });
    Toolgate::builder(dir).settings(options).env(env).tool(tool).allow("Probe").build().unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

/// A whole call, with hooks configured for other tools. The difference from zero hooks is the cost of dispatch.
#[divan::bench(args = [0, 1, 20])]
fn call_with_hooks_for_other_tools(bencher: Bencher<'_, '_>, count: usize) {
    let dir = tempfile::tempdir().unwrap();
    let group = |index: usize| json!({ "matcher": format!("Other{index}|More{index}"), "hooks": [{ "type": "command", "command": "true" }] });
    let groups: Vec<Value> = (0..count).map(group).collect();
    let hooks = json!({ "PreToolUse": groups, "PostToolUse": groups });
    let toolgate = toolgate(dir.path(), &json!({ "hooks": hooks }));
    let runtime = runtime();
    bencher.bench_local(|| runtime.block_on(toolgate.call("c", "Probe", "{}")).result.unwrap());
}

/// A call with one hook that runs a program.
#[divan::bench]
fn call_with_a_command_hook(bencher: Bencher<'_, '_>) {
    let dir = tempfile::tempdir().unwrap();
    let handler = json!({ "type": "command", "command": "/bin/true", "args": [] });
    let toolgate = toolgate(dir.path(), &json!({ "hooks": { "PreToolUse": [{ "hooks": [handler] }] } }));
    let runtime = runtime();
    bencher.bench_local(|| runtime.block_on(toolgate.call("c", "Probe", "{}")).result.unwrap());
}

/// The same program, started without toolgate.
#[divan::bench]
fn plain_start_of_the_same_program(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| {
        let output = std::process::Command::new("/bin/true")
            .env_clear()
            .stdin(std::process::Stdio::piped())
            .output()
            .unwrap();
        assert!(output.status.success());
    });
}

/// A call with one hook that is a shell command line, as most are.
#[divan::bench]
fn call_with_a_shell_hook(bencher: Bencher<'_, '_>) {
    let dir = tempfile::tempdir().unwrap();
    let handler = json!({ "type": "command", "command": ":" });
    let toolgate = toolgate(dir.path(), &json!({ "hooks": { "PreToolUse": [{ "hooks": [handler] }] } }));
    let runtime = runtime();
    bencher.bench_local(|| runtime.block_on(toolgate.call("c", "Probe", "{}")).result.unwrap());
}

/// The same shell, started without toolgate.
#[divan::bench]
fn plain_start_of_the_same_shell(bencher: Bencher<'_, '_>) {
    bencher.bench_local(|| {
        let output = std::process::Command::new("/bin/bash")
            .args(["-c", ":"])
            .env_clear()
            .stdin(std::process::Stdio::piped())
            .output()
            .unwrap();
        assert!(output.status.success());
    });
}
