//! `toolgate check`: the decision, explained, one by one and in bulk.

use super::cli_fixture::CliFixture;
use serde_json::{Value, json};

#[test]
fn the_exit_code_is_the_verdict() {
    let fixture = CliFixture::new();
    for (args, code, expected) in [
        (vec!["check", "ls"], 0, "ALLOW"),
        (vec!["check", "ls", r#"{"path":"/etc"}"#], 4, "ASK"),
        (vec!["--disallowed-tools", "ls", "check", "ls"], 3, "DENY"),
    ] {
        let output = fixture.run(&args);
        assert_eq!(output.code, code, "{args:?}: {}{}", output.stdout, output.stderr);
        assert!(output.stdout.starts_with(expected), "{}", output.stdout);
    }
}

#[test]
fn check_names_the_file_and_line_of_a_rule() {
    let fixture = CliFixture::new();
    let file = fixture.write(
        ".toolgate/settings.json",
        "{\n  \"permissions\": {\n    \"deny\": [\n      \"ls\"\n    ]\n  }\n}\n",
    );
    let output = fixture.run(&["check", "ls"]);
    assert_eq!(output.code, 3);
    assert!(
        output.stdout.contains(&format!("deny rule `ls` from project, {}:4", file.display())),
        "{}",
        output.stdout
    );
    let value: Value = serde_json::from_str(&fixture.run(&["--json", "check", "ls"]).stdout).unwrap();
    assert_eq!(value["verdict"]["verdict"], "deny");
    assert_eq!(value["verdict"]["rule"]["line"], 4);
}

#[test]
fn check_batch_prints_one_answer_per_line_in_order() {
    let fixture = CliFixture::new();
    let lines = [
        json!({ "id": "a", "tool": "ls", "input": {} }),
        json!({ "id": "b", "tool": "ls", "input": {}, "settings": { "permissions": { "deny": ["ls"] } } }),
        json!({ "id": "c", "tool": "WebSearch", "input": { "query": "x" } }),
        json!({ "id": "d", "tool": "WebSearch", "input": { "query": "x" }, "mode": "dontAsk" }),
        json!({ "id": "e", "tool": "WebSearch", "input": { "query": "x" },
                "settings": { "permissions": { "allow": ["WebSearch"] } } }),
        json!({ "id": "f", "tool": "Nonsense", "input": {} }),
        json!({ "id": "g", "tool": "mcp__a__b", "input": {} }),
        json!({ "id": "h", "tool": "mcp__a__b__c", "input": {} }),
        json!({ "id": "i", "tool": "ls", "input": {}, "settings": { "permissions": { "deny": "ls" } } }),
        json!({ "id": "j", "tool": "Read", "input": { "file_path": 1 } }),
    ];
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let output = fixture.run_with_input(&["check", "--batch", "-"], &input);
    // The settings of `i` cannot be used.
    assert_eq!(output.code, 2, "{}", output.stderr);
    let answers: Vec<(String, String)> = output
        .stdout
        .lines()
        .map(|line| {
            let value: Value = serde_json::from_str(line).unwrap();
            assert!(!value["reason"].as_str().unwrap().is_empty());
            (value["id"].as_str().unwrap().to_owned(), value["verdict"].as_str().unwrap().to_owned())
        })
        .collect();
    let wanted = [
        ("a", "allow"),
        ("b", "deny"),
        ("c", "ask"),
        ("d", "deny"),
        ("e", "allow"),
        ("f", "deny"),
        ("g", "ask"),
        ("h", "deny"),
        ("i", "deny"),
        ("j", "deny"),
    ];
    assert_eq!(answers, wanted.map(|(id, verdict)| (id.to_owned(), verdict.to_owned())));
}

#[test]
fn an_invalid_line_is_denied_and_the_rest_is_judged() {
    let fixture = CliFixture::new();
    let file = fixture.write(
        "b.jsonl",
        "{\"id\":1,\"tool\":\"ls\"}\n{\"id\":2,\"id\":3}\n\n{\"id\":4,\"tool\":\"ls\",\"x\":1}\n",
    );
    let output = fixture.run(&["check", "--batch", file.to_str().unwrap()]);
    assert_eq!(output.code, 2);
    let verdicts: Vec<Value> =
        output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(verdicts.len(), 3);
    assert_eq!(verdicts[0]["verdict"], "allow");
    assert_eq!(verdicts[1]["verdict"], "deny");
    assert!(verdicts[1]["reason"].as_str().unwrap().contains("more than once"));
    assert!(verdicts[2]["reason"].as_str().unwrap().contains("unknown field `x`"));
}

#[test]
fn redirects_of_a_fetch_are_judged_hop_by_hop() {
    let fixture = CliFixture::new();
    let check = |redirects: &[&str]| {
        let mut args = vec!["--allowed-tools", "WebFetch(domain:a.example)", "--json", "check", "WebFetch"];
        args.push(r#"{"url":"https://a.example/x"}"#);
        for redirect in redirects {
            args.extend(["--redirect", redirect]);
        }
        let output = fixture.run(&args);
        let value: Value = serde_json::from_str(&output.stdout).unwrap();
        let actions: Vec<String> = value["redirects"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|redirect| redirect["action"].as_str().unwrap().to_owned())
            .collect();
        (output.code, actions)
    };
    assert_eq!(check(&[]), (0, Vec::new()));
    assert_eq!(check(&["/y", "https://b.example/"]), (0, vec!["follow".to_owned(), "report".to_owned()]));
    assert_eq!(check(&["http://169.254.169.254/"]), (3, vec!["deny".to_owned()]));
    assert_eq!(check(&["/y", "http://a.example/"]), (3, vec!["follow".to_owned(), "deny".to_owned()]));
    // One more than a fetch follows.
    let (code, actions) = check(&["/1", "/2", "/3", "/4", "/5", "/6"]);
    assert_eq!((code, &actions[4..]), (3, &["follow".to_owned(), "deny".to_owned()][..]));
    // A fetch of a public name is made by https, so that a redirect to http leaves encryption.
    let rule = ["--allowed-tools", "WebFetch(domain:a.example)", "check", "WebFetch"];
    let first = [r#"{"url":"http://a.example/x"}"#, "--redirect", "http://a.example/y"];
    let output = fixture.run(&[&rule[..], &first].concat());
    assert!(output.code == 3 && output.stdout.contains("leave encryption"), "{}", output.stdout);
    let output = fixture.run(&["check", "Bash", r#"{"command":"ls"}"#, "--redirect", "/x"]);
    assert!(output.code == 2 && output.stderr.contains("calls with a `url`"), "{}", output.stderr);
}

#[test]
fn the_addresses_of_a_fetch_are_judged_hop_by_hop() {
    let fixture = CliFixture::new();
    let check = |url: &str, redirect: &str| {
        let rules = "WebFetch(domain:localhost:8000),WebFetch(domain:a.example),WebFetch(domain:127.0.0.1)";
        let input = serde_json::json!({ "url": url }).to_string();
        let output = fixture.run(&[
            "--allowed-tools",
            rules,
            "--json",
            "check",
            "WebFetch",
            &input,
            "--resolve",
            "--redirect",
            redirect,
        ]);
        let value: Value = serde_json::from_str(&output.stdout).unwrap();
        (output.code, value["hosts"].as_array().unwrap().clone())
    };
    let (code, hosts) = check("http://localhost:8000/", "/y");
    assert_eq!((code, hosts.len()), (0, 2), "{hosts:?}");
    assert_eq!(hosts[1]["url"], "http://localhost:8000/y");
    assert!(hosts[1]["text"].as_str().unwrap().contains("127.0.0.1 (a loopback address)"), "{hosts:?}");
    let (code, hosts) = check("http://127.0.0.1:1/", "http://127.0.0.1:1/y");
    assert_eq!((code, &hosts[0]["addresses"]), (0, &serde_json::json!(["127.0.0.1"])));
    // A name without an address ends the chain at its first hop.
    let (code, hosts) = check("https://a.example/", "/y");
    assert_eq!((code, hosts.len()), (3, 1), "{hosts:?}");
    assert!(hosts[0]["text"].as_str().unwrap().contains("does not resolve"), "{hosts:?}");
}

/// A hook that was not run is named, and nothing is said in its name; with `--run-hooks` it decides.
#[test]
fn hooks_that_were_not_run_are_named() {
    let fixture = CliFixture::new();
    let script = fixture.beside("home").join("deny.sh");
    std::fs::write(&script, "#!/bin/sh\necho 'not on Fridays' >&2\nexit 2\n").unwrap();
    let command = format!("sh {}", script.display());
    let settings = serde_json::json!({ "hooks": { "PreToolUse": [
        { "matcher": "ls", "hooks": [{ "type": "command", "command": command }] },
    ] } })
    .to_string();
    let check =
        |args: &[&str]| fixture.run(&[&["--settings", &settings, "check", "ls", "{}"], args].concat());
    let run = check(&[]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stdout.contains("not run: `") && !run.stdout.contains("objected"), "{run:?}");
    assert!(run.stderr.contains("--run-hooks"), "{run:?}");
    let run = check(&["--run-hooks"]);
    assert_eq!(run.code, 3, "{run:?}");
    assert!(run.stderr.contains("not on Fridays"), "{run:?}");
    let run = fixture.run(&["check", "ls", "{}"]);
    assert!(run.stdout.contains("none is configured for this call"), "{run:?}");
}

/// A tool that only another product has is judged in the same way with and without hooks.
#[test]
fn a_tool_that_is_not_registered_is_judged_with_run_hooks_too() {
    let fixture = CliFixture::new();
    let input = r#"{"command":"ls"}"#;
    let plain = fixture.run(&["check", "PowerShell", input]);
    let with_hooks = fixture.run(&["check", "--run-hooks", "PowerShell", input]);
    let verdict = |stdout: &str| stdout.lines().next().map(str::to_owned);
    let expected = (plain.code, verdict(&plain.stdout));
    assert_eq!((with_hooks.code, verdict(&with_hooks.stdout)), expected, "{with_hooks:?}");
    assert!(plain.stdout.starts_with("ASK  PowerShell"), "{plain:?}");
}

/// The hint names the file to edit, and editing it so allows the call.
#[test]
fn a_rule_added_where_the_hint_says_allows_the_call() {
    let fixture = CliFixture::new();
    std::os::unix::fs::symlink("/srv/elsewhere", fixture.path("link")).unwrap();
    let path = |name: &str| fixture.path(name).display().to_string();
    for (tool, input) in [
        ("Write", serde_json::json!({ "file_path": path("a.txt"), "content": "" })),
        ("Read", serde_json::json!({ "file_path": path("link") })),
        ("Bash", serde_json::json!({ "command": "make all && npm run build" })),
        ("WebFetch", serde_json::json!({ "url": "http://localhost:3000/", "prompt": "x" })),
    ] {
        let check = || fixture.run(&["check", tool, &input.to_string(), "--json"]);
        let before: serde_json::Value = serde_json::from_str(&check().stdout).unwrap();
        let flip = before["flip"].as_str().unwrap();
        let file = flip.split(" in ").nth(1).unwrap();
        let rules = before["advice"]["changes"][0]["rules"].clone();
        std::fs::create_dir_all(std::path::Path::new(file).parent().unwrap()).unwrap();
        std::fs::write(file, serde_json::json!({ "permissions": { "allow": rules } }).to_string()).unwrap();
        let after = check();
        assert_eq!(after.code, 0, "{tool}: {flip}\n{after:?}");
        std::fs::remove_file(file).unwrap();
    }
}

#[test]
fn hints_name_the_file_that_sets_what_they_advise_to_change() {
    let fixture = CliFixture::new();
    let user = fixture.beside("home/.config/toolgate/settings.json");
    std::fs::create_dir_all(user.parent().unwrap()).unwrap();
    let write = |text: &str| std::fs::write(&user, text).unwrap();
    let place = |line: usize| format!("{}:{line}", user.display());
    let new_file = fixture.path("new.txt");
    let input = serde_json::json!({ "file_path": new_file, "content": "x" }).to_string();

    write("{\n\"disabledTools\": [\n\"Bash\"]}");
    let checked = fixture.run(&["check", "Bash", r#"{"command":"ls"}"#]);
    assert!(
        checked.stdout.contains(&format!("remove `Bash` from `disabledTools` in {}", place(3))),
        "{checked:?}"
    );
    // The user is told what hides the tool; a model is not.
    let called = fixture.run(&["call", "Bash", r#"{"command":"ls"}"#]);
    let disabled = format!("tool `Bash` is disabled by the setting `disabledTools` in {}", place(3));
    assert!(called.code == 2 && called.stderr.contains(&disabled), "{called:?}");
    assert!(!called.stderr.contains("there is no tool"), "{called:?}");
    let for_model = fixture.run(&["call", "Bash", r#"{"command":"ls"}"#, "--form", "anthropic"]);
    assert!(for_model.stdout.contains("there is no tool `Bash` here"), "{for_model:?}");
    assert!(!for_model.stdout.contains("disabled") && for_model.stderr.contains(&disabled), "{for_model:?}");
    write("{\"permissions\": {\"deny\": [\n\"Bash\"]}}");
    let called = fixture.run(&["call", "Bash", r#"{"command":"ls"}"#]);
    assert!(
        called.stderr.contains("is denied by a rule (deny rule `Bash` from user, ")
            && called.stderr.contains(&place(2)),
        "{called:?}"
    );

    write("{\n\"permissions\": {\n\"defaultMode\": \"plan\"}}");
    let checked = fixture.run(&["check", "Write", &input]);
    let advice = format!("use another mode than plan: change `permissions.defaultMode` in {}", place(3));
    assert!(checked.stdout.contains(&advice), "{checked:?}");
    let given = fixture.run(&["check", "Write", &input, "--permission-mode", "dontAsk"]);
    assert!(!given.stdout.contains("permissions.defaultMode"), "the mode is not that of the file: {given:?}");

    write("{\"permissions\": {\n\"disableBypassPermissionsMode\": \"disable\"}}");
    let args = ["check", "Write", &input, "--permission-mode", "bypass"];
    let checked =
        super::cli_fixture::cli_run(fixture.command(&args).env("TOOLGATE_SANDBOXED", "1").output().unwrap());
    assert!(checked.stderr.contains(&format!("from user, {}", place(2))), "{checked:?}");
    assert!(checked.stderr.contains("disabled by `permissions.disableBypassPermissionsMode`"), "{checked:?}");
    assert!(!checked.stderr.contains("managed"), "{checked:?}");

    write("{\"sandbox\": {\n\"allowUnsandboxedCommands\": false}}");
    let command = r#"{"command":"ls","dangerouslyDisableSandbox":true}"#;
    let checked = fixture.run(&["check", "Bash", command]);
    assert!(checked.stdout.contains(&format!("false` in {}", place(2))), "{checked:?}");
}

#[test]
fn a_rule_of_an_untrusted_project_is_advised_to_be_trusted() {
    let fixture = CliFixture::new();
    let file =
        fixture.write(".toolgate/settings.json", "{\"permissions\": {\"allow\": [\n\"Bash(touch *)\"]}}");
    let place = format!("{}:2", file.display());
    let check = |command: &str| {
        fixture.run(&["check", "Bash", &serde_json::json!({ "command": command }).to_string()])
    };
    let covered = check("touch x");
    assert_eq!(covered.code, 4, "{covered:?}");
    let line = covered.stdout.lines().find(|line| line.contains("to allow it: ")).unwrap().to_owned();
    assert!(line.contains("run `toolgate trust add`") && line.contains(&place), "{line}");
    assert!(!line.contains("add the allow rule"), "{line}");
    assert!(check("mkdir x").stdout.contains("add the allow rule `Bash(mkdir x)`"));
    assert_eq!(fixture.run(&["trust", "add", "--yes"]).code, 0);
    assert_eq!(check("touch x").code, 0, "the advice was right");
}

#[test]
fn advice_about_a_rule_of_a_policy_book_does_not_ask_for_the_user_beside_it() {
    let fixture = CliFixture::new();
    let settings = r#"{"permissions":{"allow":["Bash(npm *)"]},"policy":{"rules":[{"tool":"Bash","action":"deny",
        "conditions":[{"param":"command","operator":"contains","value":"publish"}]}]}}"#;
    let output = fixture.run(&["--settings", settings, "check", "Bash", r#"{"command":"npm publish"}"#]);
    let advice = output.stdout.lines().find(|line| line.contains("to allow it:")).unwrap_or_default();
    assert!(advice.contains("remove or narrow the deny rule `tool Bash if command`"), "{}", output.stdout);
    assert!(!advice.contains("has to approve"), "{advice}");
}

/// Whatever refuses every call, or the calls of a tool, is said by each command that only looks.
#[test]
fn no_check_says_allow_where_the_call_is_known_to_be_refused() {
    let fixture = CliFixture::new();
    let anchor = fixture.path("none/anchor.log");
    let ledger = json!({ "ledger": { "required": true, "anchor": anchor } });
    let hook = |group: Value| json!({ "hooks": { "PreToolUse": [group] } });
    let handler = json!({ "type": "command", "command": "true" });
    let matcher = hook(json!({ "matcher": "ls(", "hooks": [handler] }));
    let empty = hook(json!({ "matcher": "ls", "hooks": [{ "type": "command" }] }));
    let condition = hook(
        json!({ "matcher": "ls", "hooks": [{ "type": "command", "command": "true", "if": "Bahs(x *)" }] }),
    );
    for settings in [ledger, matcher, empty, condition] {
        let text = settings.to_string();
        assert_ne!(fixture.run(&["--settings", &text, "call", "ls"]).code, 0, "{text}");
        let run = fixture.run(&["--settings", &text, "check", "ls"]);
        assert!(run.code == 3 && run.stdout.contains("the call is refused all the same"), "{run:?}");
        let run = fixture.run(&["--settings", &text, "check", "ls", "--json"]);
        let judgement: Value = serde_json::from_str(&run.stdout).unwrap();
        assert!(run.code == 3 && judgement["callRefused"].is_string(), "{run:?}");
        let doctor = fixture.run(&["--settings", &text, "doctor"]);
        assert!(doctor.code == 2 && doctor.stdout.contains("bad "), "{doctor:?}");
        let line = json!({ "id": 1, "tool": "ls" }).to_string();
        let own = json!({ "id": 1, "tool": "ls", "settings": settings }).to_string();
        let batch = ["check", "--batch", "-", "--require-allow"];
        for run in [
            fixture.run_with_input(&[&["--settings", &text], &batch[..]].concat(), &line),
            fixture.run_with_input(&batch, &own),
        ] {
            let answer: Value = serde_json::from_str(&run.stdout).unwrap();
            assert!(run.code == 3 && answer["callRefused"].is_string(), "{run:?}");
            assert_eq!(answer["verdict"], "allow", "{run:?}");
        }
    }
    // A hook that cannot run and screens other calls says nothing about this one.
    let other = hook(json!({ "matcher": "Bash", "hooks": [{ "type": "command" }] })).to_string();
    assert_eq!(fixture.run(&["--settings", &other, "check", "ls"]).code, 0);
    let handler = json!({ "type": "command", "shell": "fish", "command": "true", "if": "Bash(rm *)" });
    let selective = hook(json!({ "matcher": "Bash", "hooks": [handler] })).to_string();
    for (command, is_refused) in [("ls", false), ("rm x", true)] {
        let input = json!({ "command": command }).to_string();
        let run = fixture.run(&["--settings", &selective, "check", "Bash", &input]);
        assert_eq!(run.stdout.contains("the call is refused all the same"), is_refused, "{run:?}");
    }
}

/// What is wrong with a line is no verdict: it is an error of the line, and the exit code says so.
#[test]
fn a_line_that_cannot_be_judged_is_an_error_of_that_line() {
    let fixture = CliFixture::new();
    fixture.write("file", "");
    for (line, part) in [
        (json!({ "id": 1, "tool": "ls", "cwd": "nodir" }), "there is no such directory"),
        (json!({ "id": 1, "tool": "ls", "cwd": "file" }), "cannot be a workspace"),
        (json!({ "id": 1, "tool": "ls", "settings": "set.json" }), "must be an object"),
        (json!({ "id": 1, "tool": "ls", "settings": { "permisions": {} } }), "unknown key `permisions`"),
        (
            json!({ "id": 1, "tool": "ls", "settings": { "preApproval": { "blockedDomains": ["https://x.example"] } } }),
            "a host is expected",
        ),
    ] {
        let run = fixture.run_with_input(&["check", "--batch", "-"], &line.to_string());
        let answer: Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(
            (run.code, &answer["error"], &answer["verdict"]),
            (2, &json!(true), &json!("deny")),
            "{run:?}"
        );
        assert!(answer["reason"].as_str().unwrap().contains(part), "{run:?}");
        assert_eq!((&answer["id"], &answer["line"]), (&json!(1), &json!(1)), "{run:?}");
        assert_eq!(answer["hint"].is_string(), line["settings"].is_object(), "{run:?}");
    }
}

/// An id is a string or a number, and comes back as it was given.
#[test]
fn both_batches_give_back_the_ids_that_they_were_given() {
    let fixture = CliFixture::new();
    for id in [json!(7), json!("7"), json!("a b"), json!(1.5)] {
        let line = json!({ "id": id, "tool": "ls" }).to_string();
        let checked = fixture.run_with_input(&["check", "--batch", "-"], &line);
        assert_eq!(serde_json::from_str::<Value>(&checked.stdout).unwrap()["id"], id, "{checked:?}");
        let called = fixture.run_with_input(&["call", "--batch", "-"], &line);
        assert_eq!(
            serde_json::from_str::<Value>(&called.stdout).unwrap()["record"]["call"],
            id,
            "{called:?}"
        );
    }
    for id in [json!([1]), json!(true), json!({})] {
        let line = json!({ "id": id, "tool": "ls" }).to_string();
        for command in ["check", "call"] {
            let run = fixture.run_with_input(&[command, "--batch", "-"], &line);
            let text = format!("{}{}", run.stdout, run.stderr);
            assert!(run.code == 2 && text.contains("must be a string or a number"), "{run:?}");
        }
    }
}

/// A check is not freer than the call in a session that has the server.
#[test]
fn reading_a_resource_is_judged_without_its_server() {
    let fixture = CliFixture::new();
    let read = r#"{"server":"docs","uri":"https://docs.example/"}"#;
    let list = r#"{"server":"docs"}"#;
    for (tool, input) in
        [("ReadMcpResourceTool", read), ("ReadMcpResource", read), ("ListMcpResourcesTool", list)]
    {
        let check = |rules: &[&str]| fixture.run(&[rules, &["check", tool, input]].concat());
        for (rules, code) in [
            (&[][..], 4),
            (&["--disallowed-tools", "mcp__docs"], 3),
            (&["--disallowed-tools", "mcp__*"], 3),
            (&["--disallowed-tools", "mcp__mail"], 4),
            (&["--disallowed-tools", "ReadMcpResourceTool,ListMcpResourcesTool"], 3),
            (&["--allowed-tools", "mcp__docs"], 0),
            (&["--allowed-tools", "mcp__mail"], 4),
        ] {
            let run = check(rules);
            assert_eq!(run.code, code, "{tool} {rules:?}: {run:?}");
        }
        let settings = json!({ "permissions": { "deny": ["mcp__docs"] } });
        let input: Value = serde_json::from_str(input).unwrap();
        let line = json!({ "tool": tool, "input": input, "settings": settings }).to_string();
        let batch = fixture.run_with_input(&["check", "--batch", "-"], &line);
        let answer: Value = serde_json::from_str(&batch.stdout).unwrap();
        assert!(answer["reason"].as_str().unwrap().contains("denied by a rule"), "{batch:?}");
    }
    let refused = fixture.run(&["check", "ReadMcpResourceTool", r#"{"server":"docs"}"#]);
    assert!(refused.code == 2 && refused.stderr.contains("field `uri` is missing"), "{refused:?}");
}

/// A list of the resources of all servers names each configured one; without any, it asks.
#[test]
fn listing_resources_is_judged_for_every_configured_server() {
    let fixture = CliFixture::new();
    assert_eq!(fixture.run(&["check", "ListMcpResourcesTool"]).code, 4);
    let servers = r#"{"mcpServers":{"docs":{"command":"docs-server"},"mail":{"command":"mail-server"}}}"#;
    let check = |option: &str, rules: &str| {
        fixture.run(&["--mcp-config", servers, option, rules, "check", "ListMcpResourcesTool"]).code
    };
    assert_eq!(check("--disallowed-tools", "mcp__mail"), 3);
    assert_eq!(check("--allowed-tools", "mcp__docs"), 4);
    assert_eq!(check("--allowed-tools", "mcp__docs,mcp__mail"), 0);
}

/// Tools of the agent and of other products have one input, whether they are registered or not.
#[test]
fn a_tool_that_is_not_registered_takes_its_own_input() {
    let fixture = CliFixture::new();
    let file = fixture.write("a.txt", "one\n").display().to_string();
    let agent = json!({ "subagent_type": "Explore", "description": "d", "prompt": "p" });
    let replace = json!({ "file_path": file, "old_string": "one", "new_string": "two" });
    for (tool, input, code) in [
        ("Agent", agent.clone(), 4),
        ("Task", agent, 4),
        ("Agent", json!({ "subagent_type": "Explore" }), 2),
        ("SendMessage", json!({ "to": "agent_1", "message": "m" }), 4),
        ("Skill", json!({ "skill": "deploy" }), 4),
        ("Skill", json!({ "name": "deploy" }), 2),
        ("replace", replace.clone(), 4),
        ("replace", json!({ "file_path": file }), 2),
        ("list_directory", json!({ "path": "." }), 0),
        ("NotebookRead", json!({ "notebook_path": "a.ipynb" }), 0),
        ("NotebookRead", json!({ "notebook_path": "/etc/a.ipynb" }), 4),
    ] {
        let run = fixture.run(&["check", tool, &input.to_string()]);
        assert_eq!(run.code, code, "{tool} {input}: {run:?}");
    }
    // A rule that restricts our tool restricts those with another name.
    let replace = replace.to_string();
    assert_eq!(fixture.run(&["--disallowed-tools", "Edit", "check", "replace", &replace]).code, 3);
    let config = json!({ "setting": "shell.onTimeout", "value": "stop" }).to_string();
    assert_eq!(fixture.run(&["--tools", "Read", "check", "Config", &config]).code, 4);
}

/// Exit code 0 with --require-allow says that every call is allowed, so it needs a call.
#[test]
fn a_batch_without_a_line_is_no_allow() {
    let fixture = CliFixture::new();
    for input in ["", "\n  \n"] {
        let run = fixture.run_with_input(&["check", "--batch", "-", "--require-allow"], input);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
        assert!(run.stderr.contains("there is no call to check"), "{run:?}");
        let run = fixture.run_with_input(&["check", "--batch", "-"], input);
        assert!(run.code == 0 && run.stderr.contains("there is no call to check"), "{run:?}");
        let run = fixture.run_with_input(&["call", "--batch", "-"], input);
        assert!(run.code == 0 && run.stderr.contains("there is no call to make"), "{run:?}");
    }
    let run = fixture.run_with_input(&["check", "--batch", "-", "--require-allow"], "\n{\"tool\":\"ls\"}");
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
}

#[test]
fn a_line_that_cannot_be_read_keeps_its_own_id_and_the_rest_is_judged() {
    let fixture = CliFixture::new();
    let mut lines = b"{\"id\":1,\"tool\":\"ls\"}\n{\"id\":2,\"tool\":\"\xff\"}\n".to_vec();
    lines.extend(b"{\"input\":{\"id\":\"inner\"},\"tool\":\"ls\",\"id\":\"real\",}\n");
    lines.extend(b"{\"input\":{\"id\":\"inner\"},\"tool\":\"ls\",}\n{\"id\":5,\"tool\":\"ls\"}\n");
    std::fs::write(fixture.path("calls.jsonl"), &lines).unwrap();
    let run = fixture.run(&["check", "--batch", "calls.jsonl"]);
    assert_eq!(run.code, 2, "{run:?}");
    let answers: Vec<Value> = run.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found: Vec<_> = answers.iter().map(|answer| (&answer["id"], answer["verdict"] == "allow")).collect();
    let wanted = [
        (&json!(1), true),
        (&json!(2), false),
        (&json!("real"), false),
        (&Value::Null, false),
        (&json!(5), true),
    ];
    assert_eq!(found, wanted);
    assert_eq!(answers[1]["reason"], "the line is not valid UTF-8 (byte 17)");
    // No call of a batch is made if one line cannot be read.
    let run = fixture.run(&["call", "--batch", "calls.jsonl"]);
    assert!(run.code == 2 && run.stderr.contains("calls.jsonl:2: the line is not valid UTF-8"), "{run:?}");
}
