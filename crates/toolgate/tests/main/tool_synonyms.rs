//! The name of a tool in one toolset means the same tool in the other, wherever settings name tools.

use super::cli_fixture::CliFixture;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use toolgate::policy::{ProblemSeverity, RawBook};
use toolgate::{
    AbsPath, Effect, Intent, Layer, LayerRules, RawPolicy, SourceId, ToolIdentity, Toolgate, Toolset, Verdict,
};
use toolgate_gate::{IntendedCall, judge_intended};
use toolgate_proto::{Workspace, tool_synonyms};

/// The built-in tools of a toolset.
fn tools_of(toolset: Toolset) -> Vec<ToolIdentity> {
    let dir = tempfile::tempdir().unwrap();
    let toolgate = Toolgate::builder(dir.path()).toolset(toolset).build().unwrap();
    let tools = toolgate.gate().registered_tools();
    tools.into_iter().filter(|tool| tool.source == SourceId::Builtin).collect()
}

/// Each tool, with each name that it has in the other toolset or in another product.
fn named_tools() -> Vec<(ToolIdentity, &'static str)> {
    let mut named = Vec::new();
    for toolset in Toolset::ALL {
        for tool in tools_of(toolset) {
            let others = tool_synonyms(tool.name.as_str()).iter().filter(|name| **name != tool.name.as_str());
            named.extend(others.map(|name| (tool.clone(), *name)));
        }
    }
    named
}

/// How a call of a tool is judged of which the effects are unknown, so that only rules for its name count.
fn judge(policy: RawPolicy, tool: &ToolIdentity) -> (&'static str, bool) {
    let intended = IntendedCall::new(tool.clone(), Map::new(), Intent::new("call", [Effect::Opaque]));
    let (policy, problems) = policy.compile();
    assert!(problems.iter().all(|problem| problem.weight < ProblemSeverity::Fatal), "{problems:?}");
    let workspace = Workspace::new(AbsPath::root());
    let verdict = judge_intended(&policy, &workspace, &intended).verdict;
    let is_explicit = matches!(&verdict, Verdict::Ask(question) if question.explicit);
    (verdict.as_str(), is_explicit)
}

/// A policy in which one place names a tool.
fn policy_naming(place: &str, name: &str) -> RawPolicy {
    let mut rules = LayerRules::new(Layer::User, AbsPath::root());
    let mut policy = RawPolicy::default();
    match place {
        "deny" => rules.deny.push(name.into()),
        "ask" => rules.ask.push(name.into()),
        "allow" => rules.allow.push(name.into()),
        "disabledTools" => policy.managed.disabled_tools.push(name.to_owned()),
        action => {
            let action = action.strip_prefix("book ").unwrap();
            let book: Value = json!({ "rules": [{ "tool": name, "action": action }] });
            policy.books.push(RawBook::new(Layer::User, book));
        }
    }
    policy.with_layers(vec![rules])
}

const PLACES: [&str; 7] = ["deny", "ask", "allow", "disabledTools", "book deny", "book ask", "book allow"];

#[test]
fn the_name_of_one_toolset_works_in_the_other_in_every_place() {
    let named = named_tools();
    let own = |name: &str| named.iter().any(|(tool, _)| tool.name.as_str() == name);
    for name in ["Bash", "shell", "Read", "read_file", "web_fetch", "write_todos", "browser_open"] {
        assert!(own(name), "{name} has no name in the other toolset");
    }
    for (tool, other) in &named {
        for place in PLACES {
            let wanted = match place {
                "deny" | "disabledTools" | "book deny" => ("deny", false),
                "ask" | "book ask" => ("ask", true),
                // An alias, or the name of its family.
                _ if tool.is_granted_as(other) => ("allow", false),
                // A program can have a tool of its own under that name.
                _ => ("ask", false),
            };
            let policy = policy_naming(place, other);
            assert_eq!(judge(policy.clone(), tool), wanted, "{place} {other} for {}", tool.name);
            let hides = policy.compile().0.hides_tool(tool);
            assert_eq!(hides, wanted.0 == "deny", "{place} {other} for {}", tool.name);
        }
    }
}

/// Every tool of one toolset only has a name in the other, or none of the other does the same.
#[test]
fn every_tool_of_the_plain_toolset_is_paired() {
    let claude: BTreeSet<String> =
        tools_of(Toolset::Claude).into_iter().map(|tool| tool.name.to_string()).collect();
    for tool in tools_of(Toolset::Plain).iter().filter(|tool| !claude.contains(tool.name.as_str())) {
        let mut others = tool_synonyms(tool.name.as_str()).iter();
        assert!(others.any(|name| claude.contains(*name)), "{} has no name in claude", tool.name);
    }
}

/// An allow rule for a name of the plain toolset covers the tool that is registered under it, and no other.
#[test]
fn an_allow_rule_covers_the_named_tool_only() {
    for tool in tools_of(Toolset::Claude).iter().chain(&tools_of(Toolset::Plain)) {
        for name in tools_of(Toolset::Plain).iter().map(|tool| tool.name.as_str()) {
            let is_same = tool.is_granted_as(name) && !tool.requires_interaction;
            for place in ["allow", "book allow"] {
                let is_allowed = judge(policy_naming(place, name), tool).0 == "allow";
                assert_eq!(is_allowed, is_same, "{place} {name} for {}", tool.name);
            }
        }
        // A tool of another source has the name by chance.
        let mut foreign = tool.clone().with_also(Vec::new());
        foreign.source = SourceId::Sdk;
        for other in tool_synonyms(tool.name.as_str()).iter().filter(|name| **name != tool.name.as_str()) {
            assert_eq!(judge(policy_naming("allow", other), &foreign).0, "ask", "{other} for {}", tool.name);
        }
    }
}

/// A rule that restricts a tool by either name restricts its whole family in the same way: `Monitor` runs commands too.
#[test]
fn a_restriction_by_either_name_restricts_the_same_tools() {
    for tool in tools_of(Toolset::Claude).iter().chain(&tools_of(Toolset::Plain)) {
        for (one, other) in [("Bash", "shell"), ("Read", "read_file"), ("Edit", "edit_file")] {
            for place in PLACES.into_iter().filter(|place| !place.contains("allow")) {
                let [one, other] = [one, other].map(|name| judge(policy_naming(place, name), tool));
                assert_eq!(one, other, "{place} for {}", tool.name);
            }
        }
    }
}

#[test]
fn settings_and_arguments_take_the_names_of_both_toolsets() {
    let fixture = CliFixture::new();
    fixture.write("a.txt", "shown");
    let hook = json!({ "hooks": { "PreToolUse": [{ "matcher": "shell", "hooks": [
        { "type": "command", "command": "echo refused >&2; exit 2" }] }] } });
    for settings in [
        json!({ "permissions": { "deny": ["shell"] } }),
        json!({ "permissions": { "deny": ["shell(*)"] } }),
        json!({ "permissions": { "deny": ["run_shell_command"] } }),
        json!({ "permissions": { "deny": ["sh*"] } }),
        json!({ "permissions": { "ask": ["shell"] } }),
        json!({ "disabledTools": ["shell"] }),
        json!({ "managed": { "disabledTools": ["shell"] } }),
        json!({ "policy": { "rules": [{ "tool": "shell", "action": "deny" }] } }),
        hook,
    ] {
        let output =
            fixture.run(&["--settings", &settings.to_string(), "call", "Bash", r#"{"command":"echo ran"}"#]);
        assert!(output.code != 0 && !output.stdout.contains("ran"), "{settings}: {output:?}");
    }
    let write = r#"{"file_path":"new.txt","content":"x"}"#;
    let denied = fixture.run(&["--disallowed-tools", "write_file", "call", "Write", write]);
    assert!(denied.code != 0 && !fixture.path("new.txt").exists(), "{denied:?}");
    let listed = |args: &[&str]| -> Vec<String> {
        let output = fixture.run(&[args, &["tools", "--format", "json"]].concat());
        let tools: Value = serde_json::from_str(&output.stdout).unwrap();
        tools["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    };
    for (toolset, name, wanted) in [
        ("claude", "Read", "Read"),
        ("claude", "read_file", "Read"),
        ("claude", "shell", "Bash"),
        ("plain", "Read", "read_file"),
        ("plain", "Bash", "shell"),
    ] {
        assert_eq!(listed(&["--toolset", toolset, "--tools", name]), [wanted], "{toolset} {name}");
    }
}
