//! Settings files: each layer counts, and none is lost.

use super::desk::Desk;

#[test]
fn a_file_that_cannot_be_used_stops_everything_and_is_named() {
    for (text, says) in [
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
        let desk = Desk::new();
        desk.write(".toolgate/settings.json", text);
        let said = desk.run(&["call", "ls"]);
        assert_eq!(said.code, 2, "{text}: {}{}", said.out, said.err);
        assert!(said.err.contains(says), "{text}: {}", said.err);
    }
}

#[test]
fn every_layer_denies_and_the_claude_style_files_count() {
    for file in [
        "ws/.toolgate/settings.json",
        "ws/.toolgate/settings.local.json",
        "ws/.claude/settings.json",
        "ws/.claude/settings.local.json",
        "home/.claude/settings.json",
        "home/.config/toolgate/settings.json",
    ] {
        let desk = Desk::new();
        let path = desk.beside(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "{ // why\n \"permissions\": { \"deny\": [\"ls\",] } }").unwrap();
        let said = desk.run(&["check", "ls"]);
        assert_eq!(said.code, 3, "{file}: {}{}", said.out, said.err);
        assert!(said.out.contains(path.to_str().unwrap()), "{}", said.out);
        assert_eq!(desk.run(&["--setting-sources", "none", "check", "ls"]).code, 0, "{file}");
    }
}

#[test]
fn a_project_may_only_tighten_until_it_is_trusted() {
    let desk = Desk::new();
    desk.write(
        ".toolgate/settings.json",
        r#"{"permissions":{"allow":["WebSearch"],"defaultMode":"bypass"}}"#,
    );
    let said = desk.run(&["check", "WebSearch", r#"{"query":"x"}"#]);
    assert_eq!(said.code, 4, "{}", said.out);
    assert!(said.err.contains("has no effect until the workspace is trusted"), "{}", said.err);
    assert_eq!(desk.run(&["--trust-workspace", "check", "WebSearch", r#"{"query":"x"}"#]).code, 0);
}

#[test]
fn settings_may_be_given_on_the_command_line() {
    let desk = Desk::new();
    let file = desk.write("extra.json", r#"{"disabledTools":["ls"]}"#);
    for settings in [file.to_str().unwrap(), r#"{"disabledTools":["ls"]}"#] {
        let said = desk.run(&["--settings", settings, "call", "ls"]);
        assert_eq!(said.code, 2);
        assert!(said.err.contains("there is no tool `ls` here"), "{}", said.err);
    }
    assert!(desk.run(&["--settings", "nowhere.json", "call", "ls"]).err.contains("there is no such file"));
    assert_eq!(desk.run(&["--setting-sources", "sun", "call", "ls"]).code, 2);
}

#[test]
fn an_additional_directory_may_be_worked_in() {
    let desk = Desk::new();
    std::fs::create_dir(desk.beside("more")).unwrap();
    let input = format!(r#"{{"path":"{}"}}"#, desk.beside("more").display());
    assert_eq!(desk.run(&["call", "ls", &input]).code, 4);
    assert_eq!(desk.run(&["--add-dir", "../more", "call", "ls", &input]).code, 0);
    let settings =
        format!(r#"{{"permissions":{{"additionalDirectories":["{}"]}}}}"#, desk.beside("more").display());
    assert_eq!(desk.run(&["--settings", &settings, "call", "ls", &input]).code, 0);
}

#[test]
fn a_project_may_tighten_the_sandbox_and_only_the_person_may_loosen_it() {
    let run = |desk: &Desk, command: &str| {
        let input = serde_json::json!({ "command": command }).to_string();
        desk.run_unasked("Bash", &input)
    };
    let outside = "echo x > ../beside";
    let desk = Desk::new();
    desk.write(
        ".toolgate/settings.json",
        r#"{ "sandbox": { "enabled": false, "filesystem": { "allowWrite": [".."], "denyRead": ["secret"] } } }"#,
    );
    desk.write("secret", "hunter2");
    assert_eq!(run(&desk, outside).code, 1);
    let said = run(&desk, "cat secret");
    assert!(said.code == 1 && !said.out.contains("hunter2"), "{}{}", said.out, said.err);
    assert!(said.err.contains("withheld from the command"), "{}", said.err);

    let desk = Desk::new();
    let path = desk.beside("home/.config/toolgate/settings.json");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let allowed = desk.beside("elsewhere");
    std::fs::create_dir(&allowed).unwrap();
    let text = serde_json::json!({
        "env": { "GREETING": "hello" },
        "sandbox": { "filesystem": { "allowWrite": [allowed] }, "limits": { "fileSizeBytes": 1000 } },
    });
    std::fs::write(path, text.to_string()).unwrap();
    let said = run(&desk, "echo $GREETING > ../elsewhere/x && cat ../elsewhere/x");
    assert_eq!((said.code, said.out.trim()), (0, "hello"), "{}", said.err);
    assert_ne!(run(&desk, "head -c 2000 /dev/zero > large").code, 0);

    let desk = Desk::new();
    desk.write(".toolgate/settings.json", r#"{ "sandbox": { "enabled": "no" } }"#);
    let said = run(&desk, "true");
    assert!(said.code == 2 && said.err.contains("`sandbox.enabled`"), "{}", said.err);
}
