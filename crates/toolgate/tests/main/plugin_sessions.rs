//! Plugins that come, go and change while a session runs.

use super::cli_fixture::CliFixture;
use super::plugins::{installed_root, write_file};
use std::time::{Duration, Instant};
use toolgate::mcp::client::{CoordinatorOptions, McpCoordinator, PinStore};
use toolgate::mcp_servers::{DiscoveredServers, ServerDiscoveryOptions};
use toolgate::settings::SettingsOptions;
use toolgate::{AbsPath, Toolgate};

const TOOL: &str = "mcp__plugin_helper_inner__ls";

/// A workspace with the plugin `helper` installed: an MCP server, which is this program, and a language server.
fn helper_fixture() -> CliFixture {
    let fixture = CliFixture::new();
    let dir = fixture.beside("helper");
    let program = env!("CARGO_BIN_EXE_toolgate");
    let server = serde_json::json!({ "inner": { "command": program, "args": ["mcp", "serve", "--quiet"] } });
    write_file(&dir, ".mcp.json", &server.to_string());
    let language = r#"{ "toy": { "command": "${CLAUDE_PLUGIN_ROOT}/lsp.sh", "extensionToLanguage": { ".toy": "toy" } } }"#;
    write_file(&dir, ".lsp.json", language);
    write_file(&dir, "lsp.sh", "#!/bin/sh\nexit 1\n");
    for index in 0..12 {
        write_file(&dir, &format!("skills/s{index}/SKILL.md"), "---\ndescription: d\n---\nText.\n");
    }
    assert_eq!(fixture.run(&["plugin", "add", &dir.display().to_string(), "--yes"]).code, 0);
    fixture
}

/// A session in the workspace, with a coordinator that follows the plugins.
fn session(fixture: &CliFixture) -> (Toolgate, McpCoordinator) {
    let root = AbsPath::new(fixture.path("")).unwrap();
    let mut options = SettingsOptions::new(root.clone());
    options.managed_dirs.clear();
    options.state_dir = Some(AbsPath::new(fixture.beside("state")).unwrap());
    let env =
        [("PATH", std::env::var("PATH").unwrap()), ("HOME", fixture.beside("home").display().to_string())]
            .map(|(name, value)| (name.to_owned(), value));
    let toolgate = Toolgate::builder(fixture.path(""))
        .settings(options)
        .language_servers(true)
        .allow("mcp__plugin_helper_inner")
        .env(env.clone().into())
        .build()
        .unwrap();
    let setup = CoordinatorOptions::new(PinStore::in_memory()).with_env(env.clone().into());
    let coordinator = McpCoordinator::new(Vec::new(), setup);
    toolgate.add_source(coordinator.clone()).unwrap();
    let mut discovery = ServerDiscoveryOptions::new(root);
    discovery.env = env.into();
    toolgate.follow_plugin_servers(&coordinator, move |settings| {
        DiscoveredServers::discover(&discovery, settings).unwrap().servers
    });
    (toolgate, coordinator)
}

/// Waits until something is so.
async fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(120);
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn is_running(process: u32) -> bool {
    std::path::Path::new(&format!("/proc/{process}")).exists()
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_of_a_plugin_come_and_go_with_it() {
    let fixture = helper_fixture();
    assert_eq!(fixture.run(&["plugin", "disable", "helper"]).code, 0);
    let (toolgate, coordinator) = session(&fixture);
    let has_tool = || toolgate.tools().iter().any(|tool| tool.name.as_str() == TOOL);
    let call = || toolgate.call("c", TOOL, "{}");
    assert!(!has_tool() && call().await.result.is_err());

    // Switched on while the session runs.
    assert_eq!(fixture.run(&["plugin", "enable", "helper"]).code, 0);
    wait_for("the tools of the server are listed", has_tool).await;
    let called = call().await;
    assert!(called.result.is_ok(), "{:?}", called.result);
    let process = coordinator.states()[0].process.unwrap();
    assert!(is_running(process));
    #[cfg(feature = "lsp")]
    assert!(
        toolgate.tools().iter().any(|tool| tool.name.as_str() == "LSP"),
        "a language server came with it"
    );

    // Changed while the session runs: not one more call, and the process ends.
    let skill = installed_root(&fixture).join("skills/s3/SKILL.md");
    let text = std::fs::read_to_string(&skill).unwrap();
    std::fs::write(&skill, "---\ndescription: d\n---\nOther.\n").unwrap();
    let refusal = call().await.result.unwrap_err();
    assert!(refusal.reason.contains("plugin") || !has_tool(), "{refusal}");
    wait_for("the server is ended", || coordinator.states().is_empty() && !is_running(process)).await;
    assert!(!has_tool());

    // As it was approved again: the server comes back.
    std::fs::write(&skill, text).unwrap();
    wait_for("the tools are back", has_tool).await;
    assert!(call().await.result.is_ok());
    assert_eq!(fixture.run(&["plugin", "remove", "helper"]).code, 0);
    assert!(call().await.result.is_err(), "the call after the removal");
    wait_for("the server is ended for good", || coordinator.states().is_empty()).await;
    toolgate.close_sources().await;
}

#[tokio::test]
async fn a_change_of_any_file_is_seen_by_the_next_call() {
    let fixture = helper_fixture();
    let hooks = r#"{ "hooks": { "PreToolUse": [{ "matcher": "ls", "hooks": [{ "type": "command", "command": "true" }] }] } }"#;
    let dir = fixture.beside("helper");
    write_file(&dir, "hooks/hooks.json", hooks);
    write_file(&dir, "data/notes.txt", "one\n");
    assert_eq!(fixture.run(&["plugin", "update", "--yes"]).code, 0);
    let (toolgate, _) = session(&fixture);
    let root = installed_root(&fixture);
    for round in 0..3 {
        // Often enough that the files are watched, not looked at.
        for _ in 0..5 {
            let called = toolgate.call("c", "ls", r#"{"path":"."}"#).await;
            assert!(called.result.is_ok(), "{round}: {:?}", called.result);
        }
        std::fs::write(root.join("data/notes.txt"), "two\n").unwrap();
        let refusal = toolgate.call("c", "ls", r#"{"path":"."}"#).await.result.unwrap_err();
        assert!(refusal.reason.contains("changed after you approved it"), "{round}: {refusal}");
        std::fs::write(root.join("data/notes.txt"), "one\n").unwrap();
    }
}
