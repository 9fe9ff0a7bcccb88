//! Seed properties 1 to 5: what is registered is what is there.

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use toolgate_gate::{CallOptions, FnTool, RegisterError, RegisteredTool, Registry, ToolSpec};
use toolgate_proto::{
    AbsPath, Code, DefinitionFormat, Intent, Output, SessionModifier, SourceId, ToolCall, render_definitions,
};
use toolgate_testkit::{ProbeBehaviour, ProbeTool, allow_all, gate_with, session_in};

fn name() -> impl Strategy<Value = String> {
    "[A-Za-z_][A-Za-z0-9_-]{0,12}"
}

fn registered(source: SourceId, name: &str) -> RegisteredTool {
    RegisteredTool::new(source, ProbeTool::new(name, ProbeBehaviour::Succeed)).unwrap()
}

proptest! {
    #[test]
    fn property_01_tool_registration_and_retrieval(name in name(), alias in name()) {
        prop_assume!(name != alias);
        let mut registry = Registry::new();
        let probe = ProbeTool::new(&name, ProbeBehaviour::Succeed).alias(&alias);
        let tool = registry.register(RegisteredTool::new(SourceId::Sdk, probe).unwrap()).unwrap();
        prop_assert!(Arc::ptr_eq(registry.get(&name).unwrap(), &tool));
        prop_assert!(Arc::ptr_eq(registry.get(&alias).unwrap(), &tool));
    }

    #[test]
    fn property_02_tool_replacement(name in name()) {
        let mut registry = Registry::new();
        registry.register(registered(SourceId::Sdk, &name)).unwrap();
        let second = registry.register(registered(SourceId::Sdk, &name)).unwrap();
        prop_assert!(Arc::ptr_eq(registry.get(&name).unwrap(), &second));
        prop_assert_eq!(registry.list().count(), 1);
    }

    #[test]
    fn property_03_tool_unregistration(names in btree_set(name(), 1..8), pick in any::<prop::sample::Index>()) {
        let mut registry = Registry::new();
        for name in &names {
            registry.register(registered(SourceId::Sdk, name)).unwrap();
        }
        let gone = pick.get(&names.iter().cloned().collect::<Vec<_>>()).clone();
        prop_assert!(!registry.unregister(&SourceId::Builtin, &gone), "another source's tool stays");
        prop_assert!(registry.unregister(&SourceId::Sdk, &gone));
        prop_assert!(registry.get(&gone).is_none());
        prop_assert!(!registry.unregister(&SourceId::Sdk, &gone));
        prop_assert_eq!(registry.list().count(), names.len() - 1);
    }

    #[test]
    fn property_04_tool_list_ordering_and_consistency(names in vec(name(), 0..20)) {
        let mut registry = Registry::new();
        for name in &names {
            registry.register(registered(SourceId::Sdk, name)).unwrap();
        }
        let list = || -> Vec<String> {
            registry.list().map(|tool| tool.identity().name.to_string()).collect()
        };
        let mut expected = names;
        expected.sort();
        expected.dedup();
        prop_assert_eq!(list(), expected);
        prop_assert_eq!(list(), list());
    }

    #[test]
    fn property_05_schema_generation_completeness(names in btree_set(name(), 0..10)) {
        let (gate, _) = gate_with(allow_all(&[]));
        for name in &names {
            gate.register(SourceId::Sdk, ProbeTool::new(name, ProbeBehaviour::Succeed)).unwrap();
        }
        let session = session_in(&toolgate_proto::AbsPath::root());
        let definitions = gate.definitions(&session);
        let listed: Vec<&str> = definitions.iter().map(|tool| tool.name.as_str()).collect();
        prop_assert_eq!(&listed, &names.iter().map(String::as_str).collect::<Vec<_>>());
        for format in DefinitionFormat::ALL {
            let rendered = render_definitions(&definitions, format);
            prop_assert_eq!(
                rendered.to_string(),
                render_definitions(&gate.definitions(&session), format).to_string(),
                "the same tools give the same bytes"
            );
            for (path, index) in names.iter().zip(0usize..) {
                let (tool, schema) = match format {
                    DefinitionFormat::Anthropic => (&rendered[index], &rendered[index]["input_schema"]),
                    DefinitionFormat::Openai => (&rendered[index]["function"], &rendered[index]["function"]["parameters"]),
                    DefinitionFormat::Gemini => {
                        let tool = &rendered[0]["functionDeclarations"][index];
                        (tool, &tool["parameters"])
                    }
                    DefinitionFormat::Mcp => (&rendered["tools"][index], &rendered["tools"][index]["inputSchema"]),
                    DefinitionFormat::Json => (&rendered["tools"][index], &rendered["tools"][index]["input_schema"]),
                    other => panic!("`{other}` is not covered"),
                };
                prop_assert_eq!(tool["name"].as_str(), Some(path.as_str()));
                prop_assert_eq!(tool["description"].as_str().unwrap(), format!("The probe {path}."));
                prop_assert_eq!(&schema["properties"]["text"]["type"], "string");
                prop_assert_eq!(&schema["required"][0], "text");
            }
        }
    }

    #[test]
    fn a_name_has_one_owner_whatever_the_order(name in name(), as_alias in any::<bool>()) {
        let mut registry = Registry::new();
        registry.register(registered(SourceId::Builtin, &name)).unwrap();
        let server = SourceId::Mcp { server: "other".into(), tool: name.clone() };
        let probe = if as_alias {
            ProbeTool::new("newcomer", ProbeBehaviour::Succeed).alias(&name)
        } else {
            ProbeTool::new(&name, ProbeBehaviour::Succeed)
        };
        prop_assume!(name != "newcomer");
        let error = registry.register(RegisteredTool::new(server, probe).unwrap()).unwrap_err();
        let said = error.to_string();
        prop_assert!(matches!(error, RegisterError::Collision { .. }), "{}", said);
        prop_assert!(said.contains("built-in") && said.contains("MCP server `other`"), "{said}");
    }
}

#[test]
fn a_name_that_providers_refuse_is_refused() {
    for name in ["", "a b", "ä", "a.b", &"x".repeat(129)] {
        assert!(
            RegisteredTool::new(SourceId::Sdk, ProbeTool::new(name, ProbeBehaviour::Succeed)).is_err(),
            "{name}"
        );
    }
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct NoFields {}

#[tokio::test]
async fn a_tool_that_is_not_enabled_is_neither_listed_nor_found() {
    let enabled = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&enabled);
    let tool = FnTool::new(ToolSpec::new("sometimes", "There at times."), |_: NoFields, _| async {
        Ok(Output::text("done"))
    })
    .intent(|_, _| Intent::none("do it"))
    .enabled(move |_| asked.load(Ordering::Relaxed));
    let (gate, _) = gate_with(allow_all(&[]));
    gate.register(SourceId::Sdk, tool).unwrap();
    let session = session_in(&AbsPath::root());
    let call = || gate.call(&session, ToolCall::new("c", "sometimes", "{}"), CallOptions::default());
    for is_enabled in [false, true, false] {
        enabled.store(is_enabled, Ordering::Relaxed);
        assert_eq!(gate.definitions(&session).len(), usize::from(is_enabled));
        let refused = call().await.result.err().map(|refusal| refusal.code);
        assert_eq!(refused, (!is_enabled).then_some(Code::UnknownTool));
        assert_eq!(gate.check(&session, &ToolCall::new("c", "sometimes", "{}")).is_ok(), is_enabled);
    }
}

/// What the author of a closure tool says about it counts for the embedding program only: a tool of a plugin that says
/// the same is asked about.
#[tokio::test]
async fn a_closure_tool_that_only_reads_has_no_effects_without_an_intent() {
    for (is_read_only, source, is_allowed) in [
        (true, SourceId::Sdk, true),
        (false, SourceId::Sdk, false),
        (true, SourceId::Plugin { plugin: "p".to_owned() }, false),
    ] {
        let spec = ToolSpec::new("look", "Looks.");
        let spec = if is_read_only { spec.read_only() } else { spec };
        let look = FnTool::new(spec, |_: NoFields, _| async { Ok(Output::text("seen")) });
        let (gate, _) = gate_with(allow_all(&[]));
        gate.register(source.clone(), look).unwrap();
        let session = session_in(&AbsPath::root());
        let call = ToolCall::new("c", "look", "{}");
        let effects = gate.derive_intent(&session, &call).unwrap().intent.effects;
        assert_eq!(effects.is_empty(), is_read_only, "{source:?}: {effects:?}");
        let refused = gate.call(&session, call, CallOptions::default()).await.result.err();
        assert_eq!(
            refused.map(|refusal| refusal.code),
            (!is_allowed).then_some(Code::ApprovalUnavailable),
            "{source:?}"
        );
    }
}

#[tokio::test]
async fn a_rule_that_a_tool_of_the_program_grants_is_refused_loudly() {
    let grants = FnTool::new(ToolSpec::new("grants", "Grants itself more."), |_: NoFields, _| async {
        let mut output = Output::text("done");
        output.modifiers.push(SessionModifier::PermissionGranted { rule: "probe".to_owned() });
        Ok(output)
    })
    .intent(|_, _| Intent::none("do it"));
    let (gate, _) = gate_with(allow_all(&[]));
    gate.register(SourceId::Sdk, grants).unwrap();
    gate.register(SourceId::Sdk, ProbeTool::new("probe", ProbeBehaviour::Succeed)).unwrap();
    let session = session_in(&AbsPath::root());
    let granted = gate.call(&session, ToolCall::new("a", "grants", "{}"), CallOptions::default()).await;
    assert!(
        granted.messages.iter().any(|message| message.contains("was not granted")),
        "{:?}",
        granted.messages
    );
    let text = granted.result.unwrap().model_text();
    assert!(text.contains("done") && text.contains("the rule `probe` was not granted"), "{text}");
    let probe = ToolCall::new("b", "probe", r#"{"text":"x"}"#);
    let refused = gate.call(&session, probe, CallOptions::default()).await.result.unwrap_err();
    assert_eq!(refused.code, Code::ApprovalUnavailable);
}
