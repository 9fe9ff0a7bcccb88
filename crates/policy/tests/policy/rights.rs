//! The terms of a verdict: rights, unreadable paths, hosts; and the guard and the filter that apply the rules at run time.

use super::fake_workspace::{FakeWorkspace, Node, abs, compile, input_of, judge, word};
use serde_json::{Value, json};
use toolgate_policy::RawPolicy;
use toolgate_proto::{CommandRights, NetworkAccess, PathScope, RightsLevel, Verdict, WriteRight};

#[test]
fn running_outside_the_sandbox_always_asks() {
    let world = FakeWorkspace::new("/ws");
    let call = json!({ "command": "touch x", "dangerouslyDisableSandbox": true });
    for (settings, wanted) in [
        (json!({ "allow": ["Bash(touch *)"] }), "ask"),
        (json!({ "allow": ["Bash"], "mode": "bypass" }), "ask"),
        (json!({ "allow": ["Bash"], "mode": "dontAsk" }), "deny"),
    ] {
        let (policy, _) = compile(&settings, &world);
        assert_eq!(word(&world.judge(&policy, "Bash", &call)), wanted, "{settings}");
    }
    let mut raw = RawPolicy::default();
    raw.allow_unsandboxed = false;
    assert_eq!(word(&world.judge(&raw.compile().0, "Bash", &call)), "deny");
}

#[test]
fn the_terms_list_protected_and_unreadable_paths_and_hosts() {
    let settings = json!({
        "allow": ["Bash(curl *)", "WebFetch(domain:docs.example.com)"],
        "deny": ["Read(//srv/secret/**)", "Read(~/keys)", "Read(*.pem)"],
    });
    let judgement = judge(&settings, "Bash", "curl https://api.example.com/x");
    let Verdict::Allow(terms) = judgement.verdict else { panic!("{judgement:?}") };
    assert!(!terms.unsandboxed);
    assert_eq!(terms.rights, CommandRights::for_workspace(&[abs("/ws")]));
    assert!(terms.protected.contains(&abs("/ws/.git/hooks")));
    assert!(terms.unreadable.starts_with(&[abs("/srv/secret"), abs("/home/u/keys")]));
    assert!(terms.unreadable.contains(&abs("/home/u/.ssh")));
    assert_eq!(terms.network, NetworkAccess::Hosts(vec!["api.example.com".to_owned()]));
    let judgement = judge(&json!({ "allow": ["Bash(make *)"] }), "Bash", "make all");
    let Verdict::Allow(terms) = judgement.verdict else { panic!("{judgement:?}") };
    assert_eq!(terms.network, NetworkAccess::None);
}

#[test]
fn rights_are_limited_to_the_effects_unless_the_line_was_allowed_as_a_whole() {
    let terms = |settings: &Value, text: &str| {
        let judgement = judge(settings, "Bash", text);
        let Verdict::Allow(terms) = judgement.verdict else { panic!("{text}: {judgement:?}") };
        terms
    };
    let none = json!({});
    let reads = terms(&none, "cat a.txt | timeout 5 sort");
    assert_eq!(reads.rights.level, RightsLevel::ReadOnly);
    assert_eq!((reads.rights.write, reads.network), (Vec::new(), NetworkAccess::None));
    assert_eq!(reads.rights.execute, Some(["cat", "sort", "timeout"].map(str::to_owned).to_vec()));
    assert_eq!(reads.rights.read, Some(vec![abs("/ws")]));

    let edits = json!({ "mode": "acceptEdits" });
    let writes = terms(&edits, "touch src/new.rs && rm -r old").rights;
    let right = |path: &str, scope: PathScope| WriteRight::new(abs(path), scope);
    assert_eq!(writes.level, RightsLevel::NamedWrites);
    assert_eq!(writes.write, [right("/ws/src/new.rs", PathScope::Entry), right("/ws/old", PathScope::Tree)]);

    // Mode bypass allows what would ask, and gives no wider rights than mode acceptEdits does.
    let bypassed = terms(&json!({ "mode": "bypass" }), "touch src/new.rs && rm -r old").rights;
    assert_eq!(bypassed.level, RightsLevel::NamedWrites);

    // A rule that allows a host gives no network to a line that only reads.
    let hosts = json!({ "allow": ["WebFetch(domain:docs.example.com)"] });
    assert_eq!(terms(&hosts, "cat a.txt").network, NetworkAccess::None);

    let rule = json!({ "allow": ["Bash(git commit *)", "Bash(python3 *)"] });
    let whole = terms(&rule, "python3 x.py && cat a.txt").rights;
    assert_eq!((whole.level, whole.git_data), (RightsLevel::Workspace, false));
    assert!(whole.execute.is_none() && whole.read.is_none());
    assert!(terms(&rule, "git commit -m x").rights.git_data);
}

#[test]
fn a_write_to_the_name_of_a_symlink_is_a_right_to_the_symlink_and_to_its_target() {
    let world = FakeWorkspace::new("/ws")
        .with("/ws/link", Node::Link("/ws/src/a.rs".to_owned()))
        .with("/ws/out", Node::Link("/srv/target".to_owned()));
    let writes = |mode: &str, command: &str| {
        let (policy, _) = compile(&json!({ "mode": mode }), &world);
        let judgement = world.judge(&policy, "Bash", &json!({ "command": command }));
        let Verdict::Allow(terms) = judgement.verdict else { panic!("{command}: {judgement:?}") };
        terms.rights.write.into_iter().map(|right| (right.path.to_string(), right.scope)).collect::<Vec<_>>()
    };
    let entry = |path: &str| (path.to_owned(), PathScope::Entry);
    assert_eq!(writes("acceptEdits", "rm link"), [entry("/ws/link"), entry("/ws/src/a.rs")]);
    // The mode answers instead of the user, so nothing outside of the workspace is granted.
    assert_eq!(writes("bypass", "rm out"), [entry("/ws/out")]);
    assert_eq!(writes("bypass", "rm ou*"), [entry("/ws/out")]);
}

#[test]
fn the_guard_withholds_and_protects_paths_unless_they_were_named() {
    let world = FakeWorkspace::new("/ws");
    let settings = json!({ "deny": ["Read(vault/**)", "Edit(locked/**)"], "allow": ["Read(test.pem)"] });
    let (policy, _) = compile(&settings, &world);
    let mut rights = CommandRights::for_workspace(&[abs("/ws")]);
    rights.named = vec![abs("/ws/.env")];
    let guard = policy.command_guard(&world.workspace, &rights);
    for (path, hides, protects) in [
        ("/ws/a.rs", false, false),
        ("/ws/.env", false, false),
        ("/ws/sub/.env", true, true),
        ("/ws/id_rsa", true, true),
        ("/ws/test.pem", false, false),
        ("/etc/ssl/certs/ca.pem", false, true),
        ("/home/u/.ssh/id_rsa", true, true),
        ("/ws/node_modules/x/test/server.key", false, false),
        ("/ws/.env.example", false, false),
        ("/ws/vault/x", true, true),
        ("/ws/locked/x", false, true),
        ("/ws/.git/config", false, true),
        ("/ws/.GIT/hooks/x", false, true),
        ("/ws/.git/objects/ab", false, true),
        ("/ws/.git", false, true),
        ("/ws/sub/HEAD", false, true),
        ("/ws/.mcp.json", false, true),
    ] {
        assert_eq!((guard.hides(&abs(path)), guard.protects(&abs(path))), (hides, protects), "{path}");
    }
    let mut git = CommandRights::for_workspace(&[abs("/ws")]);
    git.git_data = true;
    let guard = policy.command_guard(&world.workspace, &git);
    for (path, protects) in [
        ("/ws/.git/objects/ab/cd", false),
        ("/ws/.git/index.lock", false),
        ("/ws/.git/HEAD", false),
        ("/ws/.git/refs/heads/main.lock", false),
        ("/ws/.git/config", true),
        ("/ws/.git/config.lock", true),
        ("/ws/.git/config.worktree", true),
        ("/ws/.git/hooks/post-checkout", true),
        ("/ws/.git/info/attributes", true),
        ("/ws/.git/objects/info/alternates", true),
        ("/ws/.git/modules/x/config", true),
        ("/ws/.git/commondir", true),
        ("/ws/.git", true),
    ] {
        assert_eq!(guard.protects(&abs(path)), protects, "{path}");
    }
}

#[test]
fn without_kernel_enforcement_only_plain_lines_are_allowed_as_read_only() {
    let world = FakeWorkspace::new("/ws");
    let policy = RawPolicy::default().compile().0;
    for (line, wanted) in [
        ("cat a.txt | sort && ls src", "allow"),
        ("for f in a b; do cat $f; done", "ask"),
        ("cat $(ls)", "ask"),
        ("find . -name x | xargs cat", "ask"),
    ] {
        assert_eq!(word(&world.judge(&policy, "Bash", &input_of("Bash", line))), wanted, "{line}");
    }
}

#[test]
fn a_search_shows_no_file_that_a_rule_denies_or_asks_about() {
    let world = FakeWorkspace::new("/ws");
    let settings = json!({ "deny": ["Read(.env)", "Read(vault/**)"], "ask": ["Read(//ws/notes/**)"] });
    let (policy, _) = compile(&settings, &world);
    let filter = policy.read_filter(&world.workspace);
    for hidden in ["/ws/.env", "/ws/a/.ENV", "/ws/a/vault/x", "/ws/notes/x", "/ws/a/../.env"] {
        assert!(filter.is_hidden(&abs(hidden)), "{hidden}");
    }
    for shown in ["/ws/a.rs", "/ws/vault.md", "/ws/environment"] {
        assert!(!filter.is_hidden(&abs(shown)), "{shown}");
    }
    assert!(filter.is_sensitive(&abs("/ws/x.pem")) && !filter.is_sensitive(&abs("/ws/x.rs")));
    assert_eq!(word(&world.judge(&policy, "Grep", &json!({ "path": "." }))), "allow");
    assert_eq!(word(&world.judge(&policy, "Bash", &json!({ "command": "grep -r x ." }))), "ask");
    // A file that is sensitive by its name alone is withheld by the sandbox, so the search need not ask.
    let (plain, _) = compile(&json!({}), &world);
    assert_eq!(word(&world.judge(&plain, "Bash", &json!({ "command": "grep -r x ." }))), "allow");
    let (dotted, _) = compile(&json!({ "deny": ["Read(./.env)", "Read(./vault/**)"] }), &world);
    for (command, wanted) in [
        ("rg x src", "allow"),
        ("rg x", "ask"),
        ("grep -r x src", "allow"),
        ("grep -r x .", "ask"),
        ("cat .env", "deny"),
        ("cat src/.env", "deny"),
    ] {
        assert_eq!(word(&world.judge(&dotted, "Bash", &json!({ "command": command }))), wanted, "{command}");
    }
    let (hidden, _) = compile(&json!({ "deny": ["Read(.env)"] }), &world);
    for (command, wanted) in [
        ("rg x", "allow"),
        ("rg -n x src", "allow"),
        ("rg --hidden x", "ask"),
        ("rg -uu x", "ask"),
        ("rg -t rust x", "allow"),
        ("rg -tpy x src", "allow"),
        ("rg --type-add 'x:.env' -tx x", "ask"),
        ("rg --type-add='x:.env' --type x x", "ask"),
        ("rg -tsh x", "ask"),
        ("grep -r x src", "ask"),
    ] {
        assert_eq!(word(&world.judge(&hidden, "Bash", &json!({ "command": command }))), wanted, "{command}");
    }
    assert_eq!(word(&world.judge(&policy, "Bash", &json!({ "command": "cat v*" }))), "allow");
    // What a glob matches decides whether it may be an option.
    let (free, _) = compile(&json!({}), &world);
    let dashed = world.clone().with("/ws/-o.txt", Node::Shared).with("/ws/!", Node::Shared);
    for (command, with_dash) in [
        ("sort *.txt", "ask"),
        ("rg foo *.txt", "ask"),
        ("nm ?o.*", "ask"),
        ("find *", "ask"),
        ("find [!a-z]", "ask"),
        ("for f in *.txt; do sort \"$f\"; done", "ask"),
        ("sort *.md", "allow"),
        ("sort ./*.txt", "allow"),
    ] {
        let judged = |world: &FakeWorkspace| {
            word(&world.judge(&free, "Bash", &json!({ "command": command }))).to_owned()
        };
        assert_eq!(judged(&world), "allow", "{command}");
        assert_eq!(judged(&dashed), with_dash, "{command}");
    }
    let (ruled, _) = compile(&json!({ "allow": ["Bash(sort *)"] }), &world);
    assert_eq!(word(&dashed.judge(&ruled, "Bash", &json!({ "command": "sort *.txt" }))), "ask");
    assert_eq!(word(&world.judge(&policy, "Bash", &json!({ "command": "cat v*/*" }))), "ask");
}
