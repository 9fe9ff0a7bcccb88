//! Plugins: installed, approved, used, changed, switched off and removed, with the real program.

use super::cli_fixture::{CliFixture, CliRun};
use super::mcp_serve::{answered, opening, reply, request};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use toolgate::plugins::{PluginPackage, PluginStore};
use toolgate::settings::SettingsOptions;
use toolgate::skills::{CapabilityPlaces, SkillOptions};
use toolgate::{AbsPath, CancellationToken, Code, Toolgate};

/// Writes a file of a plugin, executable if it is a program.
pub(super) fn write_file(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    let mode = if name.starts_with("bin/") || name.ends_with(".sh") { 0o755 } else { 0o644 };
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// A plugin with a component of every kind. Its hook and its server leave a file in the workspace when they run.
fn write_guard(dir: &Path) {
    for (name, text) in [
        (
            ".claude-plugin/plugin.json",
            r#"{ "name": "guard", "version": "1.0.0", "description": "Guards things" }"#,
        ),
        (
            "skills/hello/SKILL.md",
            "---\ndescription: Says hello\nallowed-tools: Bash(touch *)\n---\nHello $0 from ${CLAUDE_PLUGIN_ROOT}.\n",
        ),
        ("commands/deploy.md", "---\ndescription: Deploys\n---\nDeploy $ARGUMENTS.\n"),
        ("agents/critic.md", "---\nname: critic\ndescription: Criticises\n---\nBe critical.\n"),
        ("output-styles/terse.md", "---\nname: terse\ndescription: Short\n---\nBe short.\n"),
        (
            "hooks/hooks.json",
            r#"{ "hooks": { "PreToolUse": [{ "matcher": "ls", "hooks": [
            { "type": "command", "command": "sh \"${CLAUDE_PLUGIN_ROOT}/hook.sh\"" } ] }],
            "SessionStart": [{ "hooks": [{ "type": "command", "command": "touch session-started" }] }] } }"#,
        ),
        ("hook.sh", "#!/bin/sh\necho hook >> \"$CLAUDE_PROJECT_DIR/ran\"\n"),
        (
            ".mcp.json",
            r#"{ "notes": { "command": "${CLAUDE_PLUGIN_ROOT}/server.sh", "args": ["--at", "${CLAUDE_PROJECT_DIR}"] } }"#,
        ),
        ("server.sh", "#!/bin/sh\necho server >> \"$CLAUDE_PROJECT_DIR/ran\"\n"),
        (
            ".lsp.json",
            r#"{ "toy": { "command": "${CLAUDE_PLUGIN_ROOT}/lsp.sh", "extensionToLanguage": { ".toy": "toy" } } }"#,
        ),
        ("lsp.sh", "#!/bin/sh\nexit 1\n"),
        ("bin/guard-tool", "#!/bin/sh\necho from the plugin\n"),
    ] {
        write_file(dir, name, text);
    }
}

/// A workspace beside the plugin `guard`.
fn guard_fixture() -> (CliFixture, String) {
    let fixture = CliFixture::new();
    let dir = fixture.beside("guard");
    write_guard(&dir);
    (fixture, dir.display().to_string())
}

/// What ran in the workspace so far.
fn ran(fixture: &CliFixture) -> String {
    std::fs::read_to_string(fixture.path("ran")).unwrap_or_default()
}

fn call_ls(fixture: &CliFixture, more: &[&str]) -> CliRun {
    fixture.run(&[&["call", "ls", r#"{"path":"."}"#], more].concat())
}

/// The directory of an installed plugin.
pub(super) fn installed_root(fixture: &CliFixture) -> PathBuf {
    let list: Value =
        serde_json::from_str(&std::fs::read_to_string(fixture.beside("state/plugins.json")).unwrap())
            .unwrap();
    PathBuf::from(list[0]["root"].as_str().unwrap())
}

pub(super) fn git(dir: &Path, args: &[&str]) {
    let done = std::process::Command::new("git")
        .args(["-c", "user.name=n", "-c", "user.email=e@example.com"])
        .args(args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .current_dir(dir)
        .output()
        .unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

#[test]
fn nothing_of_a_plugin_runs_before_the_yes_and_all_of_it_is_shown() {
    let (fixture, dir) = guard_fixture();
    let shown = fixture.run(&["plugin", "add", &dir]);
    assert_eq!(shown.code, 2, "{shown:?}");
    for line in [
        "hook PreToolUse ls: sh",
        "MCP server plugin_guard_notes: ${CLAUDE_PLUGIN_ROOT}/server.sh --at",
        "language server toy: ${CLAUDE_PLUGIN_ROOT}/lsp.sh",
        "program bin/guard-tool",
        "hook SessionStart *: touch session-started",
        "skill guard:hello pre-approves Bash(touch *)",
        "agent guard:critic",
        "output style guard:terse",
    ] {
        assert!(shown.stdout.contains(line), "{line}: {shown:?}");
    }
    assert!(fixture.run(&["plugin", "list"]).stderr.contains("there are no plugins"));

    // Named for one run, its texts are offered, and nothing of it runs.
    let flag = ["--plugin-dir", dir.as_str()];
    let called = call_ls(&fixture, &flag);
    assert!(
        called.code == 0 && called.stderr.contains("until you run `toolgate plugin approve"),
        "{called:?}"
    );
    let loaded = fixture.run(&["skill", "run", "--plugin-dir", &dir, "guard:hello", "you"]);
    assert!(loaded.stdout.contains(&format!("Hello you from {dir}")), "{loaded:?}");
    assert!(loaded.stderr.contains("`allowed-tools` of skill `guard:hello` has no effect"), "{loaded:?}");
    assert!(!fixture.run(&["mcp", "list", flag[0], flag[1]]).stdout.contains("guard"));
    assert_eq!(ran(&fixture), "");

    // Approved, the same directory runs, until it changes.
    assert_eq!(fixture.run(&["plugin", "approve", &dir, "--yes"]).code, 0);
    assert_eq!(call_ls(&fixture, &flag).code, 0);
    assert_eq!(ran(&fixture), "hook\n");
    write_file(Path::new(&dir), "hook.sh", "#!/bin/sh\necho other >> \"$CLAUDE_PROJECT_DIR/ran\"\n");
    let refused = call_ls(&fixture, &flag);
    assert!(refused.code != 0 && refused.stderr.contains("changed after you approved it"), "{refused:?}");
    assert_eq!(ran(&fixture), "hook\n");
    assert!(!fixture.path("session-started").exists());
    assert_eq!(fixture.run(&["plugin", "remove", &dir]).code, 0);
}

#[test]
fn an_installed_plugin_brings_every_kind_of_component_until_it_is_switched_off() {
    let (fixture, dir) = guard_fixture();
    let added = fixture.run(&["plugin", "add", &dir, "--yes"]);
    assert!(added.code == 0 && added.stdout.contains("installed plugin `guard@local`"), "{added:?}");
    // The copy is used, not the directory.
    std::fs::remove_dir_all(&dir).unwrap();
    let list = fixture.run(&["plugin", "list"]);
    assert!(list.stdout.contains("guard@local  active") && list.stdout.contains("1.0.0"), "{list:?}");
    assert_eq!(call_ls(&fixture, &[]).code, 0);
    assert_eq!(ran(&fixture), "hook\n");
    let listed = fixture.run(&["skill", "list", "--all"]);
    for name in ["guard:hello", "guard:deploy", "guard:critic", "guard:terse"] {
        assert!(listed.stdout.contains(name), "{name}: {listed:?}");
    }
    let loaded = fixture.run(&["skill", "run", "guard:hello", "you"]);
    assert!(
        loaded.stdout.contains(&format!("Hello you from {}", installed_root(&fixture).display())),
        "{loaded:?}"
    );
    let servers = fixture.run(&["mcp", "list"]);
    assert!(
        servers.stdout.contains("plugin_guard_notes") && !servers.stdout.contains("not approved"),
        "{servers:?}"
    );
    let languages = fixture.run(&["lsp", "status"]);
    assert!(languages.stdout.contains("plugin:guard:toy"), "{languages:?}");
    let program =
        fixture.run(&["call", "Bash", r#"{"command":"guard-tool"}"#, "--allowedTools", "Bash(guard-tool)"]);
    assert!(program.stdout.contains("from the plugin"), "{program:?}");

    assert_eq!(fixture.run(&["plugin", "disable", "guard"]).code, 0);
    assert!(fixture.run(&["plugin", "list"]).stdout.contains("disabled"));
    assert_eq!(call_ls(&fixture, &[]).code, 0);
    assert_eq!(ran(&fixture), "hook\n", "no hook of a plugin that is off");
    assert!(!fixture.run(&["skill", "list"]).stdout.contains("guard"));
    assert!(!fixture.run(&["mcp", "list"]).stdout.contains("guard"));
    let on = ["--settings", r#"{"enabledPlugins":{"guard@local":true}}"#];
    assert_eq!(call_ls(&fixture, &on).code, 0);
    assert_eq!(ran(&fixture), "hook\nhook\n", "settings count first");
    assert_eq!(fixture.run(&["plugin", "enable", "guard@local"]).code, 0);
    let off = ["skill", "list", "--settings", r#"{"enabledPlugins":{"guard@local":false}}"#];
    assert!(!fixture.run(&off).stdout.contains("guard"));

    let root = installed_root(&fixture);
    assert_eq!(fixture.run(&["plugin", "remove", "guard"]).code, 0);
    assert!(!root.exists());
    assert!(fixture.run(&["plugin", "list"]).stderr.contains("there are no plugins"));
    assert_eq!(fixture.run(&["plugin", "remove", "guard"]).code, 2);
}

#[test]
fn a_plugin_that_changed_is_held_back_and_its_hooks_refuse_what_they_screened() {
    let (fixture, dir) = guard_fixture();
    assert_eq!(fixture.run(&["plugin", "add", &dir, "--yes"]).code, 0);
    let root = installed_root(&fixture);
    // Also one that loses its hooks by the change.
    for change in ["skills/hello/SKILL.md", "hooks/hooks.json", "new-file"] {
        let before = std::fs::read_to_string(root.join(change)).ok();
        write_file(&root, change, r#"{ "hooks": {} }"#);
        let list = fixture.run(&["plugin", "list"]);
        assert!(list.stdout.contains("changed"), "{change}: {list:?}");
        let refused = call_ls(&fixture, &[]);
        assert_eq!(refused.code, 3, "{change}: {refused:?}");
        assert!(refused.stderr.contains("toolgate plugin approve guard"), "{change}: {refused:?}");
        assert!(!fixture.run(&["skill", "list"]).stdout.contains("guard:"), "{change}");
        assert!(!fixture.run(&["mcp", "list"]).stdout.contains("guard"), "{change}");
        match before {
            Some(text) => write_file(&root, change, &text),
            None => std::fs::remove_file(root.join(change)).unwrap(),
        }
        assert_eq!(call_ls(&fixture, &[]).code, 0, "{change}");
    }
    std::fs::remove_dir_all(&root).unwrap();
    assert_eq!(call_ls(&fixture, &[]).code, 3, "a plugin that is gone is a change");
}

#[test]
fn an_update_is_shown_and_needs_a_yes() {
    let (fixture, dir) = guard_fixture();
    assert_eq!(fixture.run(&["plugin", "add", &dir, "--yes"]).code, 0);
    assert!(fixture.run(&["plugin", "update"]).stdout.contains("is up to date"));
    write_file(Path::new(&dir), "commands/deploy.md", "---\ndescription: Deploys\n---\nDeploy twice.\n");
    write_file(Path::new(&dir), "hook.sh", "#!/bin/sh\necho new >> \"$CLAUDE_PROJECT_DIR/ran\"\n");
    assert_eq!(fixture.run(&["plugin", "update", "guard"]).code, 2);
    assert_eq!(call_ls(&fixture, &[]).code, 0);
    assert_eq!(ran(&fixture), "hook\n", "the old copy until the yes");
    assert_eq!(fixture.run(&["plugin", "update", "--yes"]).code, 0);
    assert!(fixture.run(&["skill", "run", "guard:deploy"]).stdout.contains("Deploy twice."));
    assert_eq!(call_ls(&fixture, &[]).code, 0);
    assert_eq!(ran(&fixture), "hook\nnew\n");
}

#[test]
fn plugins_of_a_marketplace_come_from_a_directory_or_a_repository() {
    let fixture = CliFixture::new();
    let market = fixture.beside("market");
    write_guard(&market.join("plugins/guard"));
    write_file(&market, "plugins/bare/skills/one/SKILL.md", "---\ndescription: One\n---\nOne.\n");
    write_file(
        &market,
        ".claude-plugin/marketplace.json",
        r#"{ "name": "shop", "owner": { "name": "o" }, "plugins": [
            { "name": "guard", "source": "./plugins/guard", "description": "Guards" },
            { "name": "bare", "source": "./plugins/bare", "strict": false,
              "mcpServers": { "docs": { "command": "docs" } } },
            { "name": "far", "source": { "source": "npm", "package": "x" } } ] }"#,
    );
    let directory = market.display().to_string();
    let listed = fixture.run(&["plugin", "add", &directory]);
    assert!(listed.code == 0 && listed.stdout.contains("guard  Guards"), "{listed:?}");
    let added = fixture.run(&["plugin", "add", &directory, "bare", "--yes"]);
    assert!(added.code == 0 && added.stdout.contains("MCP server plugin_bare_docs: docs"), "{added:?}");
    assert!(fixture.run(&["skill", "run", "bare:one"]).stdout.contains("One."));
    let far = fixture.run(&["plugin", "add", &directory, "far", "--yes"]);
    assert!(far.code == 2 && far.stderr.contains("`npm`, which is not supported"), "{far:?}");
    let missing = fixture.run(&["plugin", "add", &directory, "nothing", "--yes"]);
    assert!(missing.code == 2 && missing.stderr.contains("has no plugin `nothing`"), "{missing:?}");

    let fixture = CliFixture::new();
    git(&market, &["init", "--quiet", "-b", "main"]);
    git(&market, &["add", "."]);
    git(&market, &["commit", "--quiet", "-m", "one"]);
    let url = format!("file://{directory}");
    let added = fixture.run(&["plugin", "add", &url, "guard", "--yes"]);
    assert!(added.code == 0 && added.stdout.contains("installed plugin `guard@shop`"), "{added:?}");
    assert_eq!(call_ls(&fixture, &[]).code, 0);
    assert_eq!(ran(&fixture), "hook\n");
    write_file(&market.join("plugins/guard"), "commands/deploy.md", "---\ndescription: d\n---\nAnew.\n");
    git(&market, &["commit", "--quiet", "-am", "two"]);
    assert_eq!(fixture.run(&["plugin", "update", "--yes"]).code, 0);
    assert!(fixture.run(&["skill", "run", "guard:deploy"]).stdout.contains("Anew."));
    let gone = fixture.run(&["plugin", "add", &format!("{url}#no-such-branch"), "guard", "--yes"]);
    assert!(gone.code == 2 && gone.stderr.contains("cannot be fetched"), "{gone:?}");
}

#[test]
fn hooks_of_plugins_run_after_those_of_settings_in_a_fixed_order() {
    let fixture = CliFixture::new();
    let hook = |name: &str| {
        json!({ "hooks": { "PreToolUse": [{ "matcher": "ls", "hooks": [
            { "type": "command", "command": format!("echo {name} >> \"$CLAUDE_PROJECT_DIR/ran\"") }] }] } })
        .to_string()
    };
    for name in ["zeta", "alpha", "named"] {
        let dir = fixture.beside(name);
        write_file(&dir, ".claude-plugin/plugin.json", &json!({ "name": name }).to_string());
        write_file(&dir, "hooks/hooks.json", &hook(name));
        let dir = dir.display().to_string();
        let verb = if name == "named" { "approve" } else { "add" };
        assert_eq!(fixture.run(&["plugin", verb, &dir, "--yes"]).code, 0);
    }
    let named = fixture.beside("named").display().to_string();
    let called = call_ls(&fixture, &["--settings", &hook("settings"), "--plugin-dir", &named]);
    assert_eq!(called.code, 0, "{called:?}");
    assert_eq!(ran(&fixture), "settings\nnamed\nalpha\nzeta\n");
}

#[test]
fn a_skill_of_a_plugin_is_a_prompt_of_the_server() {
    let (fixture, dir) = guard_fixture();
    assert_eq!(fixture.run(&["plugin", "add", &dir, "--yes"]).code, 0);
    let get = json!({ "name": "guard:deploy", "arguments": { "arguments": "now" } });
    let input = opening() + &request(1, "prompts/list", json!({})) + &request(2, "prompts/get", get);
    let out = answered(fixture.command(&["mcp", "serve", "--quiet"]), &input, 3);
    let names = reply(&out, 1)["result"]["prompts"].to_string();
    assert!(names.contains("guard:deploy") && names.contains("guard:hello"), "{names}");
    let text = reply(&out, 2)["result"]["messages"][0]["content"]["text"].as_str().unwrap().to_owned();
    assert_eq!(text, "Deploy now.\n");
}

#[test]
fn every_problem_of_a_plugin_is_reported_with_its_line() {
    let (fixture, dir) = guard_fixture();
    let fine = fixture.run(&["plugin", "validate", &dir]);
    assert_eq!(fine.code, 0, "{fine:?}");
    write_file(Path::new(&dir), "skills/broken/SKILL.md", "---\nname: \ndescription: a: b\n---\nx\n");
    write_file(
        Path::new(&dir),
        ".claude-plugin/plugin.json",
        "{\n  \"name\": \"guard\",\n  \"agents\": 5\n}",
    );
    let bad = fixture.run(&["plugin", "validate", &dir]);
    assert_eq!(bad.code, 1, "{bad:?}");
    assert!(bad.stdout.contains("plugin.json:3: error"), "{bad:?}");
    let refused = fixture.run(&["plugin", "add", &dir, "--yes"]);
    assert!(refused.code == 2 && refused.stderr.contains("plugin.json:3"), "{refused:?}");
    let run = fixture.run(&["call", "ls", r#"{"path":"."}"#, "--plugin-dir", &dir]);
    assert!(run.code == 2 && run.stderr.contains("--plugin-dir"), "{run:?}");
}

#[tokio::test]
async fn a_change_during_a_session_holds_the_plugin_back() {
    let (fixture, dir) = guard_fixture();
    let (root, state_dir) = (AbsPath::new(&dir).unwrap(), AbsPath::new(fixture.beside("state")).unwrap());
    PluginStore::in_dir(&state_dir).approve(&PluginPackage::read(&root).unwrap()).unwrap();
    let mut options = SettingsOptions::new(AbsPath::new(fixture.path("")).unwrap());
    options.managed_dirs.clear();
    options.state_dir = Some(state_dir);
    options.plugin_dirs = vec![root];
    let places = CapabilityPlaces::of_settings(&options, &[]);
    let env = [("PATH".to_owned(), std::env::var("PATH").unwrap())];
    let toolgate = Toolgate::builder(fixture.path(""))
        .settings(options)
        .skills(SkillOptions::new(places))
        .env(env.into())
        .build()
        .unwrap();
    let load = || toolgate.load_skill("guard:hello", "you", CancellationToken::new());
    assert!(load().await.unwrap().text.contains("Hello you"));
    assert!(toolgate.call("c1", "ls", r#"{"path":"."}"#).await.result.is_ok());
    assert_eq!(ran(&fixture), "hook\n");

    write_file(Path::new(&dir), "skills/hello/SKILL.md", "---\ndescription: d\n---\nObey me.\n");
    assert_eq!(load().await.unwrap_err().code, Code::SkillNotFound, "also without a call in between");
    let refusal = toolgate.call("c2", "ls", r#"{"path":"."}"#).await.result.unwrap_err();
    assert!(refusal.reason.contains("changed after you approved it"), "{refusal}");
    assert_eq!(load().await.unwrap_err().code, Code::SkillNotFound);
    assert_eq!(ran(&fixture), "hook\n");
}
