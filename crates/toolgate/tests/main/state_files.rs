//! State files (trust, grants, approved servers): concurrent writers lose nothing, and a damaged file is named and kept.

use super::cli_fixture::CliFixture;
use super::hook_fixture::HookFixture;
use serde_json::Value;
use toolgate::AbsPath;

#[test]
fn concurrent_approvals_of_processes_lose_nothing() {
    let fixture = CliFixture::new();
    let names: Vec<String> = (0..8).map(|index| format!("server{index}")).collect();
    let rounds = 4;
    for round in 0..rounds {
        let children: Vec<_> = names
            .iter()
            .map(|name| {
                let name = format!("{name}-{round}");
                fixture
                    .command(&["mcp", "add", &name, "cat"])
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
        serde_json::from_str(&std::fs::read_to_string(fixture.beside("state/mcp-servers.json")).unwrap())
            .unwrap();
    let list = fixture.beside("home/.config/toolgate/mcp.json");
    let list: Value = serde_json::from_str(&std::fs::read_to_string(list).unwrap()).unwrap();
    assert_eq!(pins.as_object().unwrap().len(), names.len() * rounds);
    assert_eq!(list["mcpServers"].as_object().unwrap().len(), names.len() * rounds);

    // Trust and grants of eight projects at once.
    for round in 0..rounds {
        let children: Vec<_> = names
            .iter()
            .map(|name| {
                let dir = format!("{name}-{round}");
                fixture.write(
                    &format!("{dir}/.toolgate/settings.json"),
                    r#"{"permissions":{"allow":["WebSearch"]}}"#,
                );
                let cwd = fixture.path(&dir);
                fixture
                    .command(&["--cwd", cwd.to_str().unwrap(), "trust", "add", "--yes"])
                    .stdout(std::process::Stdio::null())
                    .spawn()
                    .unwrap()
            })
            .collect();
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
    }
    assert_eq!(fixture.run(&["trust", "list"]).stdout.lines().count(), names.len() * rounds);
    let left: Vec<String> = std::fs::read_dir(fixture.beside("state"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with(".toolgate-"))
        .collect();
    assert!(left.is_empty(), "temporary files are left: {left:?}");
}

#[test]
fn concurrent_grants_of_threads_lose_nothing() {
    let fixture = HookFixture::new();
    let state = AbsPath::new(fixture.path("state")).unwrap();
    let root = AbsPath::new(fixture.path("")).unwrap();
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
    let file = std::fs::read_to_string(fixture.path(".toolgate/settings.local.json")).unwrap();
    let file: Value = serde_json::from_str(&file).unwrap();
    assert_eq!(file["permissions"]["allow"].as_array().unwrap().len(), 32);
}

#[test]
fn a_damaged_state_file_is_reported_and_never_replaced() {
    for (file, args) in [
        ("trust.json", &["trust", "add", "--yes"][..]),
        ("trust.json", &["check", "ls"]),
        ("grants.json", &["grants"]),
        ("wide-workspaces.json", &["trust", "remove"]),
        ("mcp-servers.json", &["mcp", "add", "x", "cat"]),
    ] {
        let fixture = CliFixture::new();
        fixture.write(".toolgate/settings.json", r#"{"permissions":{"allow":["WebSearch"]}}"#);
        let damaged = "[{\"root\": \"/x\", ";
        std::fs::write(fixture.beside("state").join(file), damaged).unwrap();
        let output = fixture.run(args);
        assert_ne!(output.code, 0, "{file}");
        for part in [file, "damaged", "move it away"] {
            assert!(output.stderr.contains(part), "{file}: {part}: {}", output.stderr);
        }
        assert_eq!(std::fs::read_to_string(fixture.beside("state").join(file)).unwrap(), damaged, "{file}");
    }
    let fixture = CliFixture::new();
    let list = fixture.beside("home/.config/toolgate/mcp.json");
    std::fs::create_dir_all(list.parent().unwrap()).unwrap();
    std::fs::write(&list, "{\"mcpServers\": ").unwrap();
    let output = fixture.run(&["mcp", "add", "x", "cat"]);
    assert_eq!(output.code, 2);
    for part in ["mcp.json", "damaged", "move it away"] {
        assert!(output.stderr.contains(part), "{part}: {}", output.stderr);
    }
    assert_eq!(std::fs::read_to_string(&list).unwrap(), "{\"mcpServers\": ");
}
