//! Trust holds for bytes: what a project would run is bound down to the files, and a change of any of them ends it.

use super::desk::Desk;
use super::hook_desk::{HookDesk, text};
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use toolgate::settings::trust::{TrustManifest, TrustStatus, TrustStore};
use toolgate::settings::{LoadedSettings, SettingsOptions};
use toolgate::{AbsPath, Code, Mode};

fn hook(command: &str) -> Value {
    json!({ "hooks": [{ "type": "command", "command": command }] })
}

fn executable(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A project that runs its own code in every way that can be bound.
fn project(desk: &HookDesk) -> SettingsOptions {
    for (name, content) in [
        ("guard.sh", "#!/bin/sh\n. ./lib/common.sh\nexit 0\n"),
        ("lib/common.sh", "check() { return 0; }\n"),
        ("hooks/screen.py", "#!/usr/bin/env python3\nimport json\nimport helper\nhelper.run()\n"),
        ("hooks/helper.py", "def run():\n    pass\n"),
        ("hooks/say.sh", "echo said\n"),
        ("hooks/inner.sh", "echo inner\n"),
        ("hooks/words.sh", "exit 0\n"),
        ("tools/serve", "#!/bin/sh\nexec cat\n"),
        ("tools/config.txt", "port 1\n"),
        ("real/linked.sh", "exit 0\n"),
        ("preload.txt", "x\n"),
    ] {
        executable(&desk.write(name, content));
    }
    symlink("real/linked.sh", desk.path("linked.sh")).unwrap();
    let settings = json!({
        "permissions": { "allow": ["Deploy"], "deny": ["Nothing"] },
        "env": { "EXTRA_FILE": "preload.txt" },
        "hooks": { "PreToolUse": [
            hook("./guard.sh --fast"),
            hook("python3 hooks/screen.py"),
            hook("true && sh \"$CLAUDE_PROJECT_DIR\"/hooks/say.sh | cat"),
            hook("bash -c 'sh hooks/inner.sh'"),
            hook("env A=1 ./linked.sh"),
            { "hooks": [{ "type": "command", "command": "sh", "args": ["${CLAUDE_PROJECT_DIR}/hooks/words.sh"] }] },
        ] },
    });
    desk.write(".toolgate/settings.json", &settings.to_string());
    desk.write(".claude/settings.local.json", "{ \"permissions\": { \"ask\": [\"Other\"] } }\n");
    desk.write(
        ".mcp.json",
        &json!({ "mcpServers": { "own": { "command": "./tools/serve", "args": ["--config=tools/config.txt"] } } }).to_string(),
    );
    let mut options = desk.options();
    options.state_dir = Some(AbsPath::new(desk.path("state")).unwrap());
    options.search_path = Some(std::env::var("PATH").unwrap_or_default());
    options
}

fn standing(options: &SettingsOptions) -> TrustStatus {
    LoadedSettings::load(options).unwrap().trust_status
}

fn trust(options: &SettingsOptions) -> TrustManifest {
    let brought = options.load_trust_manifest().unwrap();
    TrustStore::in_dir(options.state_dir.as_ref().unwrap()).add(&options.root, &brought).unwrap();
    brought
}

/// The bytes that matter: every one of these files, wherever a byte changes.
const BOUND: &[&str] = &[
    ".toolgate/settings.json",
    ".claude/settings.local.json",
    ".mcp.json",
    "guard.sh",
    "lib/common.sh",
    "hooks/screen.py",
    "hooks/helper.py",
    "hooks/say.sh",
    "hooks/inner.sh",
    "hooks/words.sh",
    "tools/serve",
    "tools/config.txt",
    "real/linked.sh",
    "preload.txt",
];

#[test]
fn a_change_of_any_byte_that_matters_ends_the_trust() {
    let desk = HookDesk::new();
    let options = project(&desk);
    let brought = trust(&options);
    assert_eq!(brought.unresolved, [], "everything here can be bound");
    assert_eq!(standing(&options), TrustStatus::Trusted);
    let mut changes = 0;
    for name in BOUND {
        let path = desk.path(name);
        let before = std::fs::read(&path).unwrap();
        // Blanks between tokens, so that a settings file stays one that can be read.
        let is_json = name.ends_with(".json");
        let mut variants: Vec<Vec<u8>> = vec![[&before[..], b"\n"].concat(), [b" ", &before[..]].concat()];
        if !is_json {
            for at in 0..before.len() {
                let mut changed = before.clone();
                changed[at] ^= 1;
                variants.push(changed);
            }
            variants.extend([before[..before.len() - 1].to_vec(), Vec::new(), [&before[..], b"\0"].concat()]);
        }
        for changed in variants {
            std::fs::write(&path, &changed).unwrap();
            assert_eq!(
                standing(&options),
                TrustStatus::Changed,
                "{name}: {}",
                String::from_utf8_lossy(&changed)
            );
            changes += 1;
        }
        std::fs::write(&path, &before).unwrap();
        assert_eq!(standing(&options), TrustStatus::Trusted, "{name}: as it was");
    }
    assert!(changes > 250, "{changes}");
}

#[test]
fn another_file_in_the_place_of_a_bound_one_ends_the_trust() {
    let desk = HookDesk::new();
    let options = project(&desk);
    trust(&options);
    let changed = |what: &str| assert_eq!(standing(&options), TrustStatus::Changed, "{what}");
    let same = |what: &str| assert_eq!(standing(&options), TrustStatus::Trusted, "{what}");
    // A symlink that leads elsewhere, even to the same bytes.
    std::fs::copy(desk.path("real/linked.sh"), desk.path("real/twin.sh")).unwrap();
    std::fs::remove_file(desk.path("linked.sh")).unwrap();
    symlink("real/twin.sh", desk.path("linked.sh")).unwrap();
    changed("the target of a symlink");
    std::fs::remove_file(desk.path("linked.sh")).unwrap();
    symlink("real/linked.sh", desk.path("linked.sh")).unwrap();
    same("the symlink as it was");
    // A directory that becomes a symlink.
    std::fs::rename(desk.path("hooks"), desk.path("hooks2")).unwrap();
    symlink("hooks2", desk.path("hooks")).unwrap();
    changed("a directory behind a symlink");
    std::fs::remove_file(desk.path("hooks")).unwrap();
    std::fs::rename(desk.path("hooks2"), desk.path("hooks")).unwrap();
    same("the directory as it was");
    // A script that is no longer there, or no longer a program.
    std::fs::rename(desk.path("hooks/say.sh"), desk.path("hooks/gone.sh")).unwrap();
    changed("a missing script");
    std::fs::rename(desk.path("hooks/gone.sh"), desk.path("hooks/say.sh")).unwrap();
    std::fs::set_permissions(desk.path("guard.sh"), std::fs::Permissions::from_mode(0o644)).unwrap();
    changed("a program that may not be executed");
    executable(&desk.path("guard.sh"));
    same("executable again");
    // A module that python would take before its own.
    desk.write("hooks/json.py", "print('planted')\n");
    changed("a module beside a script");
    std::fs::remove_file(desk.path("hooks/json.py")).unwrap();
    desk.write("hooks/re/__init__.py", "");
    changed("a package beside a script");
    std::fs::remove_dir_all(desk.path("hooks/re")).unwrap();
    // A new settings file.
    desk.write(".claude/settings.json", "{}");
    changed("a new settings file");
    std::fs::remove_file(desk.path(".claude/settings.json")).unwrap();
    same("without it");
    // A program that would be found first.
    let mut other = options.clone();
    desk.write("bin/python3", "#!/bin/sh\n");
    executable(&desk.path("bin/python3"));
    other.search_path =
        Some(format!("{}:{}", desk.path("bin").display(), options.search_path.clone().unwrap()));
    assert_eq!(standing(&other), TrustStatus::Changed, "another python3 comes first");
    // What does not run may change.
    desk.write("src/main.rs", "fn main() {}\n");
    desk.write("README.md", "changed\n");
    same("other files");
}

#[test]
fn what_cannot_be_resolved_to_bytes_is_named_and_not_trusted() {
    for (command, why) in [
        ("npx some-guard", "`npx` runs code that the command does not name"),
        ("make guard", "`make` runs code"),
        ("cargo run -q", "`cargo` runs code"),
        ("python3 -m guard", "does not name by its file"),
        ("python3 -", "does not name by its file"),
        ("bash", "runs what it reads"),
        ("python3", "runs what it reads"),
        ("$GUARD", "is not known before it runs"),
        ("python3 \"$SCRIPT\"", "is not known before it runs"),
        ("python3 missing.py", "is not a file"),
        ("./missing.sh", "there is no program"),
        ("no-such-program-anywhere", "there is no program"),
        ("sh hooks", "is not a file"),
        ("eval \"$(cat)\"", ""),
        ("PATH=./bin guard", "PATH"),
        ("bash -c 'npx x'", "`npx` runs code"),
        ("cat | sh", "runs what it reads"),
    ] {
        let desk = HookDesk::new();
        desk.write("hooks/x.sh", "");
        desk.write(
            ".toolgate/settings.json",
            &json!({ "permissions": { "allow": ["Deploy"] }, "hooks": { "PreToolUse": [hook(command)] } })
                .to_string(),
        );
        let mut options = desk.options();
        options.state_dir = Some(AbsPath::new(desk.path("state")).unwrap());
        options.search_path = Some(std::env::var("PATH").unwrap_or_default());
        let brought = trust(&options);
        assert_eq!(brought.unresolved.len(), 1, "{command}");
        assert!(brought.unresolved[0].why.contains(why), "{command}: {}", brought.unresolved[0].why);
        // The rest is trusted; the calls that the hook is for are refused.
        let toolgate = desk.build(options);
        let closed = HookDesk::call(&toolgate, "ship");
        assert_eq!(
            closed.result.as_ref().unwrap_err().code,
            Code::HookFailed,
            "{command}: {}",
            text(&closed)
        );
        assert!(text(&closed).contains("cannot be bound to bytes"), "{command}: {}", text(&closed));
    }
}

#[test]
fn a_form_that_cannot_be_bound_is_said_when_a_project_is_trusted() {
    let desk = Desk::new();
    desk.write(
        ".mcp.json",
        &json!({ "mcpServers": { "far": { "command": "npx", "args": ["-y", "server"] }, "near": { "command": "cat" } } }).to_string(),
    );
    desk.write(
        ".toolgate/settings.json",
        &json!({ "hooks": { "PreToolUse": [hook("npx guard")] } }).to_string(),
    );
    let said = desk.run(&["trust", "add", "--yes"]);
    assert_eq!(said.code, 0, "{}", said.err);
    for part in ["not trusted: hook `npx guard`", "not trusted: server `far`", "your own settings"] {
        assert!(said.out.contains(part), "{part}: {}", said.out);
    }
    let listed = desk.run(&["mcp", "list"]);
    let line = |name: &str| listed.out.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(line("far").contains("held back"), "{}", listed.out);
    assert!(!line("near").contains("held back"), "{}", listed.out);
}

#[test]
fn calls_that_a_projects_hooks_screen_are_refused_while_its_trust_has_lapsed() {
    let desk = HookDesk::new();
    let mut options = desk.options();
    options.state_dir = Some(AbsPath::new(desk.path("state")).unwrap());
    options.search_path = Some(std::env::var("PATH").unwrap_or_default());
    // The rule is the user's own, so that only the hook stands in the way.
    options.extra = Some(json!({ "permissions": { "allow": ["Deploy"] } }).to_string());
    executable(&desk.write("guard.sh", "#!/bin/sh\nexit 0\n"));
    let settings = json!({ "hooks": { "PreToolUse": [hook("./guard.sh")] } }).to_string();
    desk.write(".toolgate/settings.json", &settings);
    trust(&options);
    let toolgate = desk.build(options.clone());
    assert!(HookDesk::call(&toolgate, "a").result.is_ok());
    let refused = |what: &str| {
        let closed = HookDesk::call(&toolgate, "b");
        assert_eq!(closed.result.as_ref().unwrap_err().code, Code::HookFailed, "{what}: {}", text(&closed));
        assert!(text(&closed).contains("toolgate trust add"), "{what}: {}", text(&closed));
    };
    desk.write("guard.sh", "#!/bin/sh\nexit 0 # changed\n");
    refused("the script changed");
    // A hook that was taken out in the meantime screens all the same.
    desk.write(".toolgate/settings.json", "{}");
    refused("the hook is gone");
    std::fs::remove_file(desk.path(".toolgate/settings.json")).unwrap();
    refused("the file is gone");
    desk.write(".toolgate/settings.json", &settings);
    refused("the file is back, the script is not");
    // Another session refuses as well.
    let other = desk.build(options.clone());
    assert!(HookDesk::call(&other, "c").result.is_err());
    trust(&options);
    assert!(HookDesk::call(&toolgate, "d").result.is_ok(), "trusted again");
}

#[test]
fn a_rule_granted_at_a_prompt_keeps_the_trust() {
    let desk = HookDesk::new();
    let options = project(&desk);
    trust(&options);
    let store = toolgate::settings::grants::GrantFile::in_dir(options.state_dir.as_ref().unwrap());
    store.add(&options.root, &["WebSearch".to_owned()]).unwrap();
    assert_eq!(standing(&options), TrustStatus::Trusted, "toolgate wrote it itself");
    assert!(store.revoke(&options.root, "WebSearch").unwrap());
    assert_eq!(standing(&options), TrustStatus::Trusted);
    // Not if it had changed before.
    desk.write(".toolgate/settings.local.json", "{ }");
    assert_eq!(standing(&options), TrustStatus::Changed);
    store.add(&options.root, &["WebSearch".to_owned()]).unwrap();
    assert_eq!(standing(&options), TrustStatus::Changed);
}

#[test]
fn what_hooks_run_and_what_toolgate_keeps_is_protected_from_writing() {
    let desk = Desk::new();
    executable(&desk.write("hooks/guard.sh", "#!/bin/sh\n. ./hooks/lib.sh\n"));
    desk.write("hooks/lib.sh", "true\n");
    desk.write("hooks/other.txt", "x\n");
    desk.write(
        ".toolgate/settings.json",
        &json!({ "hooks": { "PreToolUse": [hook("hooks/guard.sh")] } }).to_string(),
    );
    assert_eq!(desk.run(&["trust", "add", "--yes"]).code, 0);
    let write = |path: &std::path::Path| {
        let input = json!({ "file_path": path, "content": "x" }).to_string();
        desk.run(&[
            "check",
            "Write",
            &input,
            "--permission-mode",
            "acceptEdits",
            "--add-dir",
            desk.beside("").to_str().unwrap(),
        ])
    };
    assert_eq!(write(&desk.path("hooks/other.txt")).code, 0);
    for path in [
        desk.path("hooks/guard.sh"),
        desk.path("hooks/lib.sh"),
        desk.beside("state/trust.json"),
        desk.beside("state/grants.json"),
        desk.beside("state/mcp-servers.json"),
        desk.beside("state/ledger/ledger.jsonl"),
        desk.beside("home/.config/toolgate/mcp.json"),
        desk.beside("home/.local/state/toolgate/trust.json"),
        desk.beside("home/.claude/settings.json"),
        desk.path(".mcp.json"),
    ] {
        let said = write(&path);
        assert_eq!(said.code, 4, "{}: {} {}", path.display(), said.out, said.err);
    }
}

#[test]
fn a_workspace_as_wide_as_home_is_asked_about_once() {
    let desk = Desk::new();
    std::fs::write(desk.beside("home/notes.txt"), "x\n").unwrap();
    let read = json!({ "file_path": desk.beside("home/notes.txt") }).to_string();
    let home = desk.beside("home");
    let above = desk.beside("");
    for cwd in [home.to_str().unwrap(), above.to_str().unwrap(), "/"] {
        for mode in ["default", "acceptEdits", "bypass"] {
            let said = desk.run(&["--cwd", cwd, "check", "Read", &read, "--permission-mode", mode]);
            assert_eq!(said.code, 4, "{cwd} {mode}: {}", said.out);
            assert!(said.out.contains("toolgate trust workspace"), "{cwd}: {}", said.out);
        }
        let said = desk.run(&["--cwd", cwd, "call", "Read", &read]);
        assert_ne!(said.code, 0, "{cwd}");
        assert!(said.err.contains("toolgate trust workspace"), "{cwd}: {}", said.err);
        assert_eq!(desk.run(&["--cwd", cwd, "trust", "workspace"]).code, 2, "there is no terminal to ask at");
        assert_eq!(desk.run(&["--cwd", cwd, "trust", "workspace", "--yes"]).code, 0, "{cwd}");
        let said = desk.run(&["--cwd", cwd, "call", "Read", &read]);
        assert_eq!(said.code, 0, "{cwd}: {}", said.err);
        assert_eq!(desk.run(&["--cwd", cwd, "trust", "remove"]).code, 0);
        assert_ne!(desk.run(&["--cwd", cwd, "call", "Read", &read]).code, 0, "{cwd}: taken back");
        assert_eq!(
            desk.run(&["--cwd", cwd, "--trust-workspace", "call", "Read", &read]).code,
            0,
            "for one run"
        );
    }
    assert_eq!(desk.run(&["check", "ls"]).code, 0, "a project is not asked about");
}

#[test]
fn the_users_hooks_screen_calls_in_the_home_directory_too() {
    let desk = Desk::new();
    std::fs::create_dir(desk.beside("home/.claude")).unwrap();
    let settings = json!({ "hooks": { "PreToolUse": [hook("echo no >&2; exit 2")] } }).to_string();
    std::fs::write(desk.beside("home/.claude/settings.json"), settings).unwrap();
    let home = desk.beside("home");
    let home = home.to_str().unwrap();
    assert_eq!(desk.run(&["--cwd", home, "trust", "workspace", "--yes"]).code, 0);
    for cwd in [home, desk.path("").to_str().unwrap()] {
        let said = desk.run(&["--cwd", cwd, "call", "ls"]);
        assert!(said.err.contains("TG-301"), "{cwd}: {}", said.err);
    }
}

#[test]
fn processes_that_approve_at_once_lose_nothing() {
    let desk = Desk::new();
    let names: Vec<String> = (0..8).map(|index| format!("server{index}")).collect();
    let rounds = 4;
    for round in 0..rounds {
        let children: Vec<_> = names
            .iter()
            .map(|name| {
                let name = format!("{name}-{round}");
                desk.command(&["mcp", "add", &name, "cat"])
                    .stdout(std::process::Stdio::null())
                    .spawn()
                    .unwrap()
            })
            .collect();
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
    }
    let pins: Value =
        serde_json::from_str(&std::fs::read_to_string(desk.beside("state/mcp-servers.json")).unwrap())
            .unwrap();
    let list = desk.beside("home/.config/toolgate/mcp.json");
    let list: Value = serde_json::from_str(&std::fs::read_to_string(list).unwrap()).unwrap();
    assert_eq!(pins.as_object().unwrap().len(), names.len() * rounds);
    assert_eq!(list["mcpServers"].as_object().unwrap().len(), names.len() * rounds);

    // Trust and grants of eight projects at once.
    for round in 0..rounds {
        let children: Vec<_> = names
            .iter()
            .map(|name| {
                let dir = format!("{name}-{round}");
                desk.write(
                    &format!("{dir}/.toolgate/settings.json"),
                    r#"{"permissions":{"allow":["WebSearch"]}}"#,
                );
                let cwd = desk.path(&dir);
                desk.command(&["--cwd", cwd.to_str().unwrap(), "trust", "add", "--yes"])
                    .stdout(std::process::Stdio::null())
                    .spawn()
                    .unwrap()
            })
            .collect();
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
    }
    assert_eq!(desk.run(&["trust", "list"]).out.lines().count(), names.len() * rounds);
    let left: Vec<String> = std::fs::read_dir(desk.beside("state"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with(".toolgate-"))
        .collect();
    assert!(left.is_empty(), "temporary files are left: {left:?}");
}

#[test]
fn threads_that_grant_at_once_lose_nothing() {
    let desk = HookDesk::new();
    let state = AbsPath::new(desk.path("state")).unwrap();
    let root = AbsPath::new(desk.path("")).unwrap();
    std::thread::scope(|scope| {
        for index in 0..8 {
            let (state, root) = (state.clone(), root.clone());
            scope.spawn(move || {
                // A store of its own, as another process would have it.
                let store = toolgate::settings::grants::GrantFile::in_dir(&state);
                for round in 0..4 {
                    store.add(&root, &[format!("Bash(run {index} {round})")]).unwrap();
                }
            });
        }
    });
    let store = toolgate::settings::grants::GrantFile::in_dir(&state);
    assert_eq!(store.list_for_workspace(&root).unwrap().len(), 32);
    let file = std::fs::read_to_string(desk.path(".toolgate/settings.local.json")).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    assert_eq!(file["permissions"]["allow"].as_array().unwrap().len(), 32);
}

#[test]
fn a_damaged_state_file_is_named_and_never_replaced() {
    for (file, args) in [
        ("trust.json", &["trust", "add", "--yes"][..]),
        ("trust.json", &["check", "ls"]),
        ("grants.json", &["grants"]),
        ("wide-workspaces.json", &["trust", "remove"]),
        ("mcp-servers.json", &["mcp", "add", "x", "cat"]),
    ] {
        let desk = Desk::new();
        desk.write(".toolgate/settings.json", r#"{"permissions":{"allow":["WebSearch"]}}"#);
        let damaged = "[{\"root\": \"/x\", ";
        std::fs::write(desk.beside("state").join(file), damaged).unwrap();
        let said = desk.run(args);
        assert_ne!(said.code, 0, "{file}");
        for part in [file, "damaged", "move it away"] {
            assert!(said.err.contains(part), "{file}: {part}: {}", said.err);
        }
        assert_eq!(std::fs::read_to_string(desk.beside("state").join(file)).unwrap(), damaged, "{file}");
    }
}

#[test]
fn an_untrusted_project_lifts_neither_a_mode_nor_a_book_nor_a_switch() {
    for (user, project, call, wanted) in [
        (
            json!({ "permissions": { "defaultMode": "plan" } }),
            json!({ "permissions": { "defaultMode": "default" } }),
            "Write",
            Mode::Plan,
        ),
        (
            json!({ "permissions": { "defaultMode": "deny" } }),
            json!({ "permissions": { "defaultMode": "acceptEdits" } }),
            "Write",
            Mode::Deny,
        ),
        (
            json!({ "permissions": { "defaultMode": "dontAsk" } }),
            json!({ "permissions": { "defaultMode": "plan" } }),
            "Write",
            Mode::DontAsk,
        ),
        (
            json!({ "permissions": { "defaultMode": "acceptEdits" } }),
            json!({ "permissions": { "defaultMode": "plan" } }),
            "Write",
            Mode::Plan,
        ),
        (
            json!({ "permissions": { "defaultMode": "bypass", "disableBypassPermissionsMode": "disable" } }),
            json!({ "permissions": { "defaultMode": "acceptEdits" } }),
            "Write",
            Mode::Bypass,
        ),
        (
            json!({}),
            json!({ "policy": { "defaultAction": "allow", "rules": [{ "tool": "Write", "action": "allow" }] } }),
            "Write",
            Mode::Default,
        ),
        (
            json!({}),
            json!({ "policy": { "rules": [{ "tool": "Bash", "action": "allow" }] } }),
            "Bash",
            Mode::Default,
        ),
        (
            json!({ "permissions": { "disableBypassPermissionsMode": true } }),
            json!({ "permissions": { "disableBypassPermissionsMode": false } }),
            "Write",
            Mode::Default,
        ),
    ] {
        let desk = HookDesk::new();
        desk.write("config/settings.json", &user.to_string());
        desk.write(".toolgate/settings.json", &project.to_string());
        let mut options = desk.options();
        options.config_dir = Some(AbsPath::new(desk.path("config")).unwrap());
        let settings = LoadedSettings::load(&options).unwrap();
        assert_eq!(settings.policy(None).mode, wanted, "{user} {project}");
        let toolgate = desk.build(options);
        let input = match call {
            "Write" => json!({ "file_path": desk.path("x"), "content": "x" }),
            _ => json!({ "command": "npm test" }),
        };
        let judged = toolgate.check(call, &input.to_string()).unwrap();
        assert_ne!(judged.verdict.as_str(), "allow", "{user} {project}");
    }
}

#[test]
fn a_mode_on_the_command_line_lifts_no_managed_mode() {
    let desk = HookDesk::new();
    desk.write("managed/managed-settings.json", r#"{"permissions":{"defaultMode":"plan"}}"#);
    let settings = LoadedSettings::load(&desk.options()).unwrap();
    assert_eq!(settings.policy(Some(Mode::Bypass)).mode, Mode::Plan);
    assert_eq!(settings.policy(Some(Mode::Deny)).mode, Mode::Deny);
    assert_eq!(settings.policy(None).mode, Mode::Plan);
}
