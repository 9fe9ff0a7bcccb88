//! The properties of memory that the design lists, by their numbers, on both toolsets.

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use toolgate_gate::{CallOptions, Gate, GateParts, Session};
use toolgate_policy::RawPolicy;
use toolgate_proto::{AbsPath, CallResult, Code, Mode, ToolCall};
use toolgate_tools::{StateConfig, Toolset, register, set_state_config};

/// A toolset over notes in a directory of its own.
struct MemoryFixture {
    gate: Gate,
    session: Session,
    root: AbsPath,
    runtime: tokio::runtime::Runtime,
    _dir: tempfile::TempDir,
}

impl MemoryFixture {
    fn new(toolset: Toolset, mode: Mode) -> Self {
        let dir = super::file_fixture::memory_dir();
        let outer = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        let root = outer.join("project");
        std::fs::create_dir(&root).unwrap();
        let policy = RawPolicy::default().with_mode(mode);
        let gate = Gate::new(GateParts::default().with_policy(policy));
        register(&gate, toolset).unwrap();
        let session = super::file_fixture::session(&root, "one");
        set_state_config(&session, StateConfig::default().with_dir(Some(outer.join("state"))));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { gate, session, root, runtime, _dir: dir }
    }

    fn call(&self, tool: &str, input: &Value) -> CallResult {
        let call = ToolCall::new("call", tool, input.to_string());
        self.runtime.block_on(self.gate.call(&self.session, call, CallOptions::default())).result
    }

    fn memory(&self, input: &Value) -> Value {
        self.call("memory", input).unwrap().structured.unwrap()
    }

    fn set(&self, key: &str, value: &str) {
        self.memory(&json!({ "action": "set", "key": key, "value": value }));
    }

    fn get(&self, key: &str) -> Option<String> {
        let output = self.call("memory", &json!({ "action": "get", "key": key })).unwrap();
        let value = output.structured.as_ref().unwrap()["value"].as_str().map(str::to_owned);
        assert_eq!(output.model_text(), value.as_deref().unwrap_or("key not found"));
        value
    }

    fn keys(&self) -> Vec<String> {
        let output = self.memory(&json!({ "action": "list" }));
        output["keys"].as_array().unwrap().iter().map(|key| key.as_str().unwrap().to_owned()).collect()
    }
}

thread_local! {
    /// To build a gate takes longer than to judge a case.
    static FIXTURES: [MemoryFixture; 2] = Toolset::ALL.map(|toolset| MemoryFixture::new(toolset, Mode::Default));
}

/// Runs a check with both toolsets, each with notes in a directory of its own.
fn with_each_toolset(
    check: impl Fn(&MemoryFixture) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    FIXTURES.with(|fixtures| {
        fixtures.iter().try_for_each(|fixture| {
            let dir = super::file_fixture::memory_dir();
            let state = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
            set_state_config(&fixture.session, StateConfig::default().with_dir(Some(state)));
            check(fixture)
        })
    })
}

/// Keys of any kind: paths, names that JavaScript objects have already, keys that differ in case only.
fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z]{1,3}",
        "(__proto__|constructor|\\.\\./x|/etc/passwd|a b|\\.md|--- |\"|\\\\|\n|\r\n){1,2}",
        "\\PC{1,12}",
    ]
}

/// Values of any kind, the empty one included.
fn value() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        "(\n|\r\n|---|\n---\n|key: x|\t| |a|é|🦀|\u{0}|\u{feff}){0,8}",
        any::<String>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn property_50_memory_storage_round_trip(key in key(), first in value(), second in value()) {
        with_each_toolset(|fixture| {
            for value in [first.as_str(), second.as_str()] {
                fixture.set(&key, value);
                prop_assert_eq!(fixture.get(&key), Some(value.to_owned()));
            }
            Ok(())
        })?;
    }

    #[test]
    fn property_51_memory_deletion(notes in prop::collection::btree_map(key(), value(), 1..4), at in any::<prop::sample::Index>()) {
        with_each_toolset(|fixture| {
            notes.iter().for_each(|(key, value)| fixture.set(key, value));
            let chosen = notes.keys().nth(at.index(notes.len())).unwrap();
            let deleted = fixture.memory(&json!({ "action": "delete", "key": chosen }));
            prop_assert_eq!(&deleted["deleted"], true);
            for (key, value) in &notes {
                prop_assert_eq!(fixture.get(key), (key != chosen).then(|| value.clone()));
            }
            Ok(())
        })?;
    }

    #[test]
    fn property_52_memory_key_listing(
        steps in prop::collection::vec((key(), prop::option::of(value())), 1..8),
    ) {
        with_each_toolset(|fixture| {
            let mut expected = BTreeMap::new();
            for (key, value) in &steps {
                match value {
                    Some(value) => {
                        fixture.set(key, value);
                        expected.insert(key.clone(), value.clone());
                    }
                    None => {
                        fixture.memory(&json!({ "action": "delete", "key": key }));
                        expected.remove(key);
                    }
                }
            }
            prop_assert_eq!(fixture.keys(), expected.into_keys().collect::<Vec<_>>());
            Ok(())
        })?;
    }
}

#[test]
fn what_memory_refuses_is_a_memory_error() {
    let fixture = MemoryFixture::new(Toolset::Plain, Mode::Default);
    for input in [
        json!({ "action": "get" }),
        json!({ "action": "set", "key": "a" }),
        json!({ "action": "set", "key": "", "value": "x" }),
        json!({ "action": "delete" }),
        json!({ "action": "search" }),
        json!({ "action": "set", "key": "token", "value": "use ghp_0123456789abcdefghij for this" }),
        json!({ "action": "set", "key": "long", "value": "x".repeat(70_000) }),
        json!({ "action": "set", "key": "x".repeat(2_000), "value": "x" }),
    ] {
        assert_eq!(fixture.call("memory", &input).unwrap_err().kind, "MemoryError", "{input}");
    }
    assert!(fixture.keys().is_empty());
}

#[test]
fn notes_of_the_user_need_approval() {
    let fixture = MemoryFixture::new(Toolset::Claude, Mode::Default);
    let input = json!({ "action": "set", "key": "a", "value": "b", "scope": "user" });
    assert_eq!(fixture.call("memory", &input).unwrap_err().code, Code::ApprovalUnavailable);
    let input = json!({ "fact": "b", "scope": "user" });
    assert_eq!(fixture.call("save_memory", &input).unwrap_err().code, Code::ApprovalUnavailable);
    assert!(fixture.call("memory", &json!({ "action": "list", "scope": "user" })).is_ok());
}

#[test]
fn a_fact_is_remembered_once() {
    let fixture = MemoryFixture::new(Toolset::Plain, Mode::AcceptEdits);
    let save =
        |input: Value| fixture.call("save_memory", &input).unwrap().structured.unwrap()["known"] == true;
    assert!(!save(json!({ "fact": "The user likes tabs." })));
    assert!(save(json!({ "fact": "the user  likes tabs" })));
    assert_eq!(fixture.keys().len(), 1);
    // Into a file of the project this is an edit of the file.
    assert!(!save(json!({ "fact": "Use tabs", "file": "AGENTS.md" })));
    assert!(save(json!({ "fact": "use tabs.", "file": "AGENTS.md" })));
    let text = std::fs::read_to_string(fixture.root.join("AGENTS.md")).unwrap();
    assert_eq!(text, "## Remembered\n\n- Use tabs\n");
    let strict = MemoryFixture::new(Toolset::Plain, Mode::Default);
    let refusal = strict.call("save_memory", &json!({ "fact": "x", "file": "AGENTS.md" })).unwrap_err();
    assert_eq!(refusal.code, Code::ApprovalUnavailable);
}

#[test]
fn search_finds_notes_by_their_words() {
    let fixture = MemoryFixture::new(Toolset::Claude, Mode::Default);
    fixture.set("release", "Tag the commit, then run the déploy script");
    fixture.set("style", "tabs \"AND\" spaces: NEAR(x) *");
    let search = |query: &str| {
        let output = fixture.memory(&json!({ "action": "search", "query": query }));
        output["hits"]
            .as_array()
            .unwrap()
            .iter()
            .map(|hit| hit["key"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(search("deploy"), ["release"]);
    assert_eq!(search("commit tag"), ["release"]);
    assert_eq!(search("spa"), ["style"]);
    assert_eq!(search("commit elephants"), ["release"], "some of the words");
    for hostile in ["", "\"", "AND", "NEAR(", "key:", "* OR *", "-"] {
        search(hostile);
    }
}
