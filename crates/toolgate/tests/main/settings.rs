//! Settings files: errors, layers, trust and the command line.

use super::cli_fixture::{CliFixture, cli_run};

#[test]
fn a_file_that_cannot_be_used_stops_everything_and_is_named() {
    for (text, expected) in [
        ("{ \"permissions\": { \"deny\": [\"ls\"] ", "settings.json:1: not valid JSON"),
        (
            "{\n\"permissions\": {\n\"deny\": \"ls\" } }",
            "settings.json:3: `permissions.deny` is the string \"ls\"",
        ),
        (
            "{\n\"permissions\": {},\n\"permissions\": {} }",
            "settings.json:3: the key `permissions` appears more than once",
        ),
        ("{ \"permissions\": { \"deny\": [\"not a rule((\"] } }", "settings.json:1"),
        ("[]", "must be an object"),
    ] {
        let fixture = CliFixture::new();
        fixture.write(".toolgate/settings.json", text);
        let output = fixture.run(&["call", "ls"]);
        assert_eq!(output.code, 2, "{text}: {}{}", output.stdout, output.stderr);
        assert!(output.stderr.contains(expected), "{text}: {}", output.stderr);
    }
}

#[test]
fn deny_rules_of_every_layer_and_of_claude_code_files_apply() {
    for file in [
        "ws/.toolgate/settings.json",
        "ws/.toolgate/settings.local.json",
        "ws/.claude/settings.json",
        "ws/.claude/settings.local.json",
        "home/.claude/settings.json",
        "home/.config/toolgate/settings.json",
    ] {
        let fixture = CliFixture::new();
        let path = fixture.beside(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "{ // why\n \"permissions\": { \"deny\": [\"ls\",] } }").unwrap();
        let output = fixture.run(&["check", "ls"]);
        assert_eq!(output.code, 3, "{file}: {}{}", output.stdout, output.stderr);
        assert!(output.stdout.contains(path.to_str().unwrap()), "{}", output.stdout);
        assert_eq!(fixture.run(&["--setting-sources", "none", "check", "ls"]).code, 0, "{file}");
    }
}

#[test]
fn a_project_may_only_tighten_until_it_is_trusted() {
    let fixture = CliFixture::new();
    fixture.write(
        ".toolgate/settings.json",
        r#"{"permissions":{"allow":["WebSearch"],"defaultMode":"bypass"}}"#,
    );
    let output = fixture.run(&["check", "WebSearch", r#"{"query":"x"}"#]);
    assert_eq!(output.code, 4, "{}", output.stdout);
    assert!(output.stderr.contains("has no effect until you trust this project"), "{}", output.stderr);
    let trusted = ["--trust-workspace", "check", "WebSearch", r#"{"query":"x"}"#];
    // Root may use mode bypass only in a sandbox.
    let output = fixture.command(&trusted).env("TOOLGATE_SANDBOXED", "1").output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn settings_can_be_given_on_the_command_line() {
    let fixture = CliFixture::new();
    let file = fixture.write("extra.json", r#"{"disabledTools":["ls"]}"#);
    for settings in [file.to_str().unwrap(), r#"{"disabledTools":["ls"]}"#] {
        let output = fixture.run(&["--settings", settings, "call", "ls"]);
        assert_eq!(output.code, 2);
        assert!(
            output.stderr.contains("tool `ls` is disabled by the setting `disabledTools` in "),
            "{}",
            output.stderr
        );
    }
    assert!(fixture.run(&["--settings", "nowhere.json", "call", "ls"]).stderr.contains("no such file"));
    assert_eq!(fixture.run(&["--setting-sources", "sun", "call", "ls"]).code, 2);
}

#[test]
fn an_additional_directory_belongs_to_the_workspace() {
    let fixture = CliFixture::new();
    std::fs::create_dir(fixture.beside("more")).unwrap();
    let input = format!(r#"{{"path":"{}"}}"#, fixture.beside("more").display());
    assert_eq!(fixture.run(&["call", "ls", &input]).code, 4);
    assert_eq!(fixture.run(&["--add-dir", "../more", "call", "ls", &input]).code, 0);
    let settings =
        format!(r#"{{"permissions":{{"additionalDirectories":["{}"]}}}}"#, fixture.beside("more").display());
    assert_eq!(fixture.run(&["--settings", &settings, "call", "ls", &input]).code, 0);
}

#[test]
fn a_project_can_restrict_the_sandbox_and_only_the_user_can_extend_it() {
    let run = |fixture: &CliFixture, command: &str| {
        let input = serde_json::json!({ "command": command }).to_string();
        fixture.run_unasked("Bash", &input)
    };
    let outside = "echo x > ../beside";
    let fixture = CliFixture::new();
    fixture.write(
        ".toolgate/settings.json",
        r#"{ "sandbox": { "enabled": false, "filesystem": { "allowWrite": [".."], "denyRead": ["secret"] } } }"#,
    );
    fixture.write("secret", "hunter2");
    assert_eq!(run(&fixture, outside).code, 1);
    let output = run(&fixture, "cat secret");
    assert!(output.code == 1 && !output.stdout.contains("hunter2"), "{}{}", output.stdout, output.stderr);
    assert!(output.stderr.contains("withheld from the command"), "{}", output.stderr);

    let fixture = CliFixture::new();
    let path = fixture.beside("home/.config/toolgate/settings.json");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let allowed = fixture.beside("elsewhere");
    std::fs::create_dir(&allowed).unwrap();
    let text = serde_json::json!({
        "env": { "GREETING": "hello" },
        "sandbox": { "filesystem": { "allowWrite": [allowed] }, "limits": { "fileSizeBytes": 1000 } },
    });
    std::fs::write(path, text.to_string()).unwrap();
    let output = run(&fixture, "echo $GREETING > ../elsewhere/x && cat ../elsewhere/x");
    assert_eq!((output.code, output.stdout.trim()), (0, "hello"), "{}", output.stderr);
    assert_ne!(run(&fixture, "head -c 2000 /dev/zero > large").code, 0);

    let fixture = CliFixture::new();
    fixture.write(".toolgate/settings.json", r#"{ "sandbox": { "enabled": "no" } }"#);
    let output = run(&fixture, "true");
    assert!(output.code == 2 && output.stderr.contains("`sandbox.enabled`"), "{}", output.stderr);
}

/// Rules that begin with `/` start from the real directory, however the user reaches it.
#[test]
fn rules_of_files_that_are_reached_through_parent_steps_work() {
    let fixture = CliFixture::new();
    let rules = r#"{"permissions":{"deny":["Edit(/src/**)"]}}"#;
    fixture.write("src/a.txt", "a");
    fixture.write("team.json", rules);
    let write = |name: &str| format!(r#"{{"file_path":"{}","content":"x"}}"#, fixture.path(name).display());
    let in_src =
        |args: &[&str]| cli_run(fixture.command(args).current_dir(fixture.path("src")).output().unwrap());
    for args in [
        ["--settings", "../team.json", "--cwd", ".."],
        ["--settings", "../src/../team.json", "--cwd", "../src/.."],
    ] {
        for (name, code) in [("src/new.txt", 3), ("new.txt", 4)] {
            let output = in_src(&[&args[..], &["check", "Write", &write(name)]].concat());
            assert_eq!(output.code, code, "{args:?} {name}: {}{}", output.stdout, output.stderr);
        }
    }
    let checked = in_src(&["settings", "check", "../team.json"]);
    assert_eq!(checked.code, 0, "{}{}", checked.stdout, checked.stderr);
    // The project's own file.
    fixture.write(".claude/settings.json", rules);
    let output = in_src(&["--cwd", "..", "check", "Write", &write("src/new.txt")]);
    assert_eq!(output.code, 3, "{}{}", output.stdout, output.stderr);
}

#[test]
fn a_problem_of_a_host_list_names_its_file_line_and_key() {
    let fixture = CliFixture::new();
    let text = "{\"preApproval\": {\n\"blockedDomains\": [\n\"https://evil.example\"]}}";
    let file = fixture.write("hosts.json", text).display().to_string();
    for args in
        [&["settings", "check", file.as_str()][..], &["--settings", file.as_str(), "call", "ls", "{}"]]
    {
        let output = fixture.run(args);
        let text = output.stdout + &output.stderr;
        assert_ne!(output.code, 0, "{args:?}: {text}");
        for part in ["hosts.json:3", "`preApproval.blockedDomains`", "did you mean `evil.example`?"] {
            assert!(text.contains(part), "{args:?}: {part} is not in {text}");
        }
    }
}
