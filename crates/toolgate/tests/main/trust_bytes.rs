//! Trust is bound to file contents: a change to any file that a project's hooks and servers execute ends it.

use super::cli_fixture::CliFixture;
use super::hook_fixture::{HookFixture, text};
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

/// A project whose hooks and servers execute its files in every way that can be bound.
fn project(fixture: &HookFixture) -> SettingsOptions {
    for (name, content) in [
        ("guard.sh", "#!/bin/sh\n. ./lib/common.sh\nexit 0\n"),
        ("lib/common.sh", "check() { return 0; }\n"),
        ("hooks/screen.py", "#!/usr/bin/env python3\nimport json\nimport helper\nhelper.run()\n"),
        ("hooks/helper.py", "def run():\n    pass\n"),
        ("hooks/say.sh", "echo output\n"),
        ("hooks/inner.sh", "echo inner\n"),
        ("hooks/words.sh", "exit 0\n"),
        ("tools/serve", "#!/bin/sh\nexec cat\n"),
        ("tools/config.txt", "port 1\n"),
        ("real/linked.sh", "exit 0\n"),
        ("preload.txt", "x\n"),
    ] {
        executable(&fixture.write(name, content));
    }
    symlink("real/linked.sh", fixture.path("linked.sh")).unwrap();
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
    fixture.write(".toolgate/settings.json", &settings.to_string());
    fixture.write(".claude/settings.local.json", "{ \"permissions\": { \"ask\": [\"Other\"] } }\n");
    fixture.write(
        ".mcp.json",
        &json!({ "mcpServers": { "own": { "command": "./tools/serve", "args": ["--config=tools/config.txt"] } } }).to_string(),
    );
    let mut options = fixture.options();
    options.state_dir = Some(AbsPath::new(fixture.path("state")).unwrap());
    options.search_path = Some(std::env::var("PATH").unwrap_or_default());
    options
}

fn trust_status(options: &SettingsOptions) -> TrustStatus {
    LoadedSettings::load(options).unwrap().trust_status
}

fn trust(options: &SettingsOptions) -> TrustManifest {
    let brought = options.load_trust_manifest().unwrap();
    TrustStore::in_dir(options.state_dir.as_ref().unwrap()).add(&options.root, &brought).unwrap();
    brought
}

/// The files that trust is bound to.
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
fn changing_any_byte_of_a_bound_file_ends_trust() {
    let fixture = HookFixture::new();
    let options = project(&fixture);
    let brought = trust(&options);
    assert_eq!(brought.unresolved, [], "everything here can be bound");
    assert_eq!(trust_status(&options), TrustStatus::Trusted);
    let mut changes = 0;
    for name in BOUND {
        let path = fixture.path(name);
        let before = std::fs::read(&path).unwrap();
        // In JSON only blanks between tokens change, so that the file stays valid.
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
                trust_status(&options),
                TrustStatus::Changed,
                "{name}: {}",
                String::from_utf8_lossy(&changed)
            );
            changes += 1;
        }
        std::fs::write(&path, &before).unwrap();
        assert_eq!(trust_status(&options), TrustStatus::Trusted, "{name}: as it was");
    }
    assert!(changes > 250, "{changes}");
}

#[test]
fn replacing_a_bound_file_ends_trust() {
    let fixture = HookFixture::new();
    let options = project(&fixture);
    trust(&options);
    let changed = |what: &str| assert_eq!(trust_status(&options), TrustStatus::Changed, "{what}");
    let same = |what: &str| assert_eq!(trust_status(&options), TrustStatus::Trusted, "{what}");
    // A symlink to another file with the same content.
    std::fs::copy(fixture.path("real/linked.sh"), fixture.path("real/twin.sh")).unwrap();
    std::fs::remove_file(fixture.path("linked.sh")).unwrap();
    symlink("real/twin.sh", fixture.path("linked.sh")).unwrap();
    changed("the target of a symlink");
    std::fs::remove_file(fixture.path("linked.sh")).unwrap();
    symlink("real/linked.sh", fixture.path("linked.sh")).unwrap();
    same("the symlink as it was");
    // A directory that becomes a symlink.
    std::fs::rename(fixture.path("hooks"), fixture.path("hooks2")).unwrap();
    symlink("hooks2", fixture.path("hooks")).unwrap();
    changed("a directory behind a symlink");
    std::fs::remove_file(fixture.path("hooks")).unwrap();
    std::fs::rename(fixture.path("hooks2"), fixture.path("hooks")).unwrap();
    same("the directory as it was");
    // A script that is missing or not executable.
    std::fs::rename(fixture.path("hooks/say.sh"), fixture.path("hooks/gone.sh")).unwrap();
    changed("a missing script");
    std::fs::rename(fixture.path("hooks/gone.sh"), fixture.path("hooks/say.sh")).unwrap();
    std::fs::set_permissions(fixture.path("guard.sh"), std::fs::Permissions::from_mode(0o644)).unwrap();
    changed("a program that may not be executed");
    executable(&fixture.path("guard.sh"));
    same("executable again");
    // A module that takes precedence over the standard library.
    fixture.write("hooks/json.py", "print('planted')\n");
    changed("a module beside a script");
    std::fs::remove_file(fixture.path("hooks/json.py")).unwrap();
    fixture.write("hooks/re/__init__.py", "");
    changed("a package beside a script");
    std::fs::remove_dir_all(fixture.path("hooks/re")).unwrap();
    // A new settings file.
    fixture.write(".claude/settings.json", "{}");
    changed("a new settings file");
    std::fs::remove_file(fixture.path(".claude/settings.json")).unwrap();
    same("without it");
    // A program earlier in the search path.
    let mut other = options.clone();
    fixture.write("bin/python3", "#!/bin/sh\n");
    executable(&fixture.path("bin/python3"));
    other.search_path =
        Some(format!("{}:{}", fixture.path("bin").display(), options.search_path.clone().unwrap()));
    assert_eq!(trust_status(&other), TrustStatus::Changed, "another python3 comes first");
    // Files that are not executed may change.
    fixture.write("src/main.rs", "fn main() {}\n");
    fixture.write("README.md", "changed\n");
    same("other files");
}

#[test]
fn a_command_that_cannot_be_resolved_to_files_is_reported_and_not_trusted() {
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
        ("./missing.sh", "program `./missing.sh` not found"),
        ("no-such-program-anywhere", "program `no-such-program-anywhere` not found"),
        ("sh hooks", "is not a file"),
        ("eval \"$(cat)\"", ""),
        ("PATH=./bin guard", "PATH"),
        // Assignments in every place where a shell or a wrapper takes one.
        ("env PATH=./bin ls", "PATH"),
        ("env \"PATH=./bin\" ls", "PATH"),
        ("sudo PATH=./bin ls", "PATH"),
        ("exec env PATH=./bin ls", "PATH"),
        ("export PATH=./bin; ls", "PATH"),
        ("PATH+=:./bin; ls", ""),
        ("declare -x PATH=./bin; ls", "PATH"),
        ("read -r PATH < hooks/x.sh; ls", "PATH"),
        ("printf -v PATH ./bin; ls", "PATH"),
        ("export \"$NAME=./bin\"; ls", ""),
        ("for PATH in ./bin; do ls; done", ""),
        ("hash -p ./hooks/x.sh ls; ls", "hash"),
        ("env PYTHONPATH=./lib python3 hooks/x.sh", "PYTHONPATH"),
        ("export LD_PRELOAD=./x.so; ls", "LD_PRELOAD"),
        // The directory decides which file a relative name means.
        ("cd \"$SOMEWHERE\" && sh hooks/x.sh", "directory"),
        ("env -C hooks sh x.sh", ""),
        ("cd hooks; sh x.sh", "is not a file"),
        ("pushd hooks; sh hooks/x.sh", ""),
        ("bash -c 'npx x'", "`npx` runs code"),
        ("cat | sh", "runs what it reads"),
    ] {
        let fixture = HookFixture::new();
        fixture.write("hooks/x.sh", "");
        fixture.write(
            ".toolgate/settings.json",
            &json!({ "permissions": { "allow": ["Deploy"] }, "hooks": { "PreToolUse": [hook(command)] } })
                .to_string(),
        );
        let mut options = fixture.options();
        options.state_dir = Some(AbsPath::new(fixture.path("state")).unwrap());
        options.search_path = Some(std::env::var("PATH").unwrap_or_default());
        let brought = trust(&options);
        assert_eq!(brought.unresolved.len(), 1, "{command}");
        assert!(brought.unresolved[0].why.contains(why), "{command}: {}", brought.unresolved[0].why);
        // The rest is trusted; the calls that the hook screens are refused.
        let toolgate = fixture.build(options);
        let outcome = HookFixture::call(&toolgate, "ship");
        assert_eq!(
            outcome.result.as_ref().unwrap_err().code,
            Code::HookFailed,
            "{command}: {}",
            text(&outcome)
        );
        assert!(text(&outcome).contains("trust does not cover this hook"), "{command}: {}", text(&outcome));
    }
}

/// The words of a command are files of the directory in which it runs, also after `cd`.
#[test]
fn a_command_after_cd_is_bound_to_the_files_of_that_directory() {
    for command in ["cd sub && sh x.sh", "(cd sub && sh x.sh)", "cd sub && timeout 5 ./x.sh"] {
        let fixture = HookFixture::new();
        executable(&fixture.write("sub/x.sh", "#!/bin/sh\nexit 0\n"));
        executable(&fixture.write("x.sh", "#!/bin/sh\nexit 0\n"));
        fixture.write(
            ".toolgate/settings.json",
            &json!({ "hooks": { "PreToolUse": [hook(command)] } }).to_string(),
        );
        let mut options = fixture.options();
        options.state_dir = Some(AbsPath::new(fixture.path("state")).unwrap());
        options.search_path = Some(std::env::var("PATH").unwrap_or_default());
        let brought = trust(&options);
        assert_eq!(brought.unresolved, [], "{command}");
        fixture.write("x.sh", "#!/bin/sh\nexit 1\n");
        assert_eq!(trust_status(&options), TrustStatus::Trusted, "{command}: another file");
        fixture.write("sub/x.sh", "#!/bin/sh\nexit 1\n");
        assert_eq!(trust_status(&options), TrustStatus::Changed, "{command}");
    }
}

#[test]
fn trust_add_lists_the_commands_that_it_does_not_cover() {
    let fixture = CliFixture::new();
    fixture.write(
        ".mcp.json",
        &json!({ "mcpServers": { "far": { "command": "npx", "args": ["-y", "server"] }, "near": { "command": "cat" } } }).to_string(),
    );
    fixture.write(
        ".toolgate/settings.json",
        &json!({ "hooks": { "PreToolUse": [hook("npx guard")] } }).to_string(),
    );
    let output = fixture.run(&["trust", "add", "--yes"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    for part in ["not trusted: hook `npx guard`", "not trusted: server `far`", "your own settings"] {
        assert!(output.stdout.contains(part), "{part}: {}", output.stdout);
    }
    let listed = fixture.run(&["mcp", "list"]);
    let line = |name: &str| listed.stdout.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert!(line("far").contains("not approved"), "{}", listed.stdout);
    assert!(!line("near").contains("not approved"), "{}", listed.stdout);
}

#[test]
fn calls_that_a_projects_hooks_screen_are_refused_after_trust_lapsed() {
    let fixture = HookFixture::new();
    let mut options = fixture.options();
    options.state_dir = Some(AbsPath::new(fixture.path("state")).unwrap());
    options.search_path = Some(std::env::var("PATH").unwrap_or_default());
    // The user's own rule allows the call, so that only the hook can refuse it.
    options.extra = Some(json!({ "permissions": { "allow": ["Deploy"] } }).to_string());
    executable(&fixture.write("guard.sh", "#!/bin/sh\nexit 0\n"));
    let settings = json!({ "hooks": { "PreToolUse": [hook("./guard.sh")] } }).to_string();
    fixture.write(".toolgate/settings.json", &settings);
    trust(&options);
    let toolgate = fixture.build(options.clone());
    assert!(HookFixture::call(&toolgate, "a").result.is_ok());
    let refused = |what: &str| {
        let outcome = HookFixture::call(&toolgate, "b");
        assert_eq!(outcome.result.as_ref().unwrap_err().code, Code::HookFailed, "{what}: {}", text(&outcome));
        assert!(text(&outcome).contains("toolgate trust add"), "{what}: {}", text(&outcome));
    };
    fixture.write("guard.sh", "#!/bin/sh\nexit 0 # changed\n");
    refused("the script changed");
    // A hook that was removed in the meantime still refuses.
    fixture.write(".toolgate/settings.json", "{}");
    refused("the hook is gone");
    std::fs::remove_file(fixture.path(".toolgate/settings.json")).unwrap();
    refused("the file is gone");
    fixture.write(".toolgate/settings.json", &settings);
    refused("the file is back, the script is not");
    // Another session refuses as well.
    let other = fixture.build(options.clone());
    assert!(HookFixture::call(&other, "c").result.is_err());
    trust(&options);
    assert!(HookFixture::call(&toolgate, "d").result.is_ok(), "trusted again");
}

#[test]
fn granting_a_rule_at_a_prompt_keeps_trust() {
    let fixture = HookFixture::new();
    let options = project(&fixture);
    trust(&options);
    let store = toolgate::settings::grants::GrantFile::in_dir(options.state_dir.as_ref().unwrap());
    store.add(&options.root, &["WebSearch".to_owned()]).unwrap();
    assert_eq!(trust_status(&options), TrustStatus::Trusted, "toolgate wrote it itself");
    assert!(store.revoke(&options.root, "WebSearch").unwrap());
    assert_eq!(trust_status(&options), TrustStatus::Trusted);
    // The write does not renew trust if the file had changed before.
    fixture.write(".toolgate/settings.local.json", "{ }");
    assert_eq!(trust_status(&options), TrustStatus::Changed);
    store.add(&options.root, &["WebSearch".to_owned()]).unwrap();
    assert_eq!(trust_status(&options), TrustStatus::Changed);
}

#[test]
fn scripts_of_hooks_and_state_of_toolgate_are_protected_from_writing() {
    let fixture = CliFixture::new();
    executable(&fixture.write("hooks/guard.sh", "#!/bin/sh\n. ./hooks/lib.sh\n"));
    fixture.write("hooks/lib.sh", "true\n");
    fixture.write("hooks/other.txt", "x\n");
    fixture.write(
        ".toolgate/settings.json",
        &json!({ "hooks": { "PreToolUse": [hook("hooks/guard.sh")] } }).to_string(),
    );
    assert_eq!(fixture.run(&["trust", "add", "--yes"]).code, 0);
    let write = |path: &std::path::Path| {
        let input = json!({ "file_path": path, "content": "x" }).to_string();
        fixture.run(&[
            "check",
            "Write",
            &input,
            "--permission-mode",
            "acceptEdits",
            "--add-dir",
            fixture.beside("").to_str().unwrap(),
        ])
    };
    assert_eq!(write(&fixture.path("hooks/other.txt")).code, 0);
    for path in [
        fixture.path("hooks/guard.sh"),
        fixture.path("hooks/lib.sh"),
        fixture.beside("state/trust.json"),
        fixture.beside("state/grants.json"),
        fixture.beside("state/mcp-servers.json"),
        fixture.beside("state/ledger/ledger.jsonl"),
        fixture.beside("home/.config/toolgate/mcp.json"),
        fixture.beside("home/.local/state/toolgate/trust.json"),
        fixture.beside("home/.claude/settings.json"),
        fixture.path(".mcp.json"),
    ] {
        let output = write(&path);
        assert_eq!(output.code, 4, "{}: {} {}", path.display(), output.stdout, output.stderr);
    }
}

#[test]
fn a_workspace_that_contains_the_home_directory_needs_acceptance_once() {
    let fixture = CliFixture::new();
    std::fs::write(fixture.beside("home/notes.txt"), "x\n").unwrap();
    let read = json!({ "file_path": fixture.beside("home/notes.txt") }).to_string();
    let home = fixture.beside("home");
    let above = fixture.beside("");
    for cwd in [home.to_str().unwrap(), above.to_str().unwrap(), "/"] {
        for mode in ["default", "acceptEdits", "bypass"] {
            let output = fixture.run(&["--cwd", cwd, "check", "Read", &read, "--permission-mode", mode]);
            assert_eq!(output.code, 4, "{cwd} {mode}: {}", output.stdout);
            assert!(output.stdout.contains("toolgate trust workspace"), "{cwd}: {}", output.stdout);
        }
        let output = fixture.run(&["--cwd", cwd, "call", "Read", &read]);
        assert_ne!(output.code, 0, "{cwd}");
        assert!(output.stderr.contains("toolgate trust workspace"), "{cwd}: {}", output.stderr);
        assert_eq!(
            fixture.run(&["--cwd", cwd, "trust", "workspace"]).code,
            2,
            "there is no terminal to ask at"
        );
        assert_eq!(fixture.run(&["--cwd", cwd, "trust", "workspace", "--yes"]).code, 0, "{cwd}");
        let output = fixture.run(&["--cwd", cwd, "call", "Read", &read]);
        assert_eq!(output.code, 0, "{cwd}: {}", output.stderr);
        assert_eq!(fixture.run(&["--cwd", cwd, "trust", "remove"]).code, 0);
        assert_ne!(fixture.run(&["--cwd", cwd, "call", "Read", &read]).code, 0, "{cwd}: removed");
        assert_eq!(
            fixture.run(&["--cwd", cwd, "--trust-workspace", "call", "Read", &read]).code,
            0,
            "for one run"
        );
    }
    assert_eq!(fixture.run(&["check", "ls"]).code, 0, "a project is not asked about");
}

#[test]
fn the_users_hooks_run_in_the_home_directory_too() {
    let fixture = CliFixture::new();
    std::fs::create_dir(fixture.beside("home/.claude")).unwrap();
    let settings = json!({ "hooks": { "PreToolUse": [hook("echo no >&2; exit 2")] } }).to_string();
    std::fs::write(fixture.beside("home/.claude/settings.json"), settings).unwrap();
    let home = fixture.beside("home");
    let home = home.to_str().unwrap();
    assert_eq!(fixture.run(&["--cwd", home, "trust", "workspace", "--yes"]).code, 0);
    for cwd in [home, fixture.path("").to_str().unwrap()] {
        let output = fixture.run(&["--cwd", cwd, "call", "ls"]);
        assert!(output.stderr.contains("TG-301"), "{cwd}: {}", output.stderr);
    }
}

#[test]
fn an_untrusted_project_relaxes_no_mode_rule_or_switch() {
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
        let fixture = HookFixture::new();
        fixture.write("config/settings.json", &user.to_string());
        fixture.write(".toolgate/settings.json", &project.to_string());
        let mut options = fixture.options();
        options.config_dir = Some(AbsPath::new(fixture.path("config")).unwrap());
        let settings = LoadedSettings::load(&options).unwrap();
        assert_eq!(settings.policy(None).mode, wanted, "{user} {project}");
        let toolgate = fixture.build(options);
        let input = match call {
            "Write" => json!({ "file_path": fixture.path("x"), "content": "x" }),
            _ => json!({ "command": "npm test" }),
        };
        let judged = toolgate.check(call, &input.to_string()).unwrap();
        assert_ne!(judged.verdict.as_str(), "allow", "{user} {project}");
    }
}

#[test]
fn a_mode_on_the_command_line_does_not_relax_a_managed_mode() {
    let fixture = HookFixture::new();
    fixture.write("managed/managed-settings.json", r#"{"permissions":{"defaultMode":"plan"}}"#);
    let settings = LoadedSettings::load(&fixture.options()).unwrap();
    assert_eq!(settings.policy(Some(Mode::Bypass)).mode, Mode::Plan);
    assert_eq!(settings.policy(Some(Mode::Deny)).mode, Mode::Deny);
    assert_eq!(settings.policy(None).mode, Mode::Plan);
}
