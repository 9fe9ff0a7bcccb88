//! Seed properties 44 to 49: what one call does.

use proptest::prelude::*;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use toolgate_gate::{CallOptions, CallOutcome, Gate};
use toolgate_policy::RawPolicy;
use toolgate_proto::{AbsPath, Code, Mode, SourceId, Stage, ToolCall, Verdict};
use toolgate_testkit::{ProbeBehaviour, ProbeTool, allow_all, gate_with, session_in};

fn call(gate: &Gate, input: &str, limits: CallOptions) -> CallOutcome {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let call = ToolCall::new("c", "probe", input);
    runtime.unwrap().block_on(gate.call(&session_in(&AbsPath::root()), call, limits))
}

fn probing(behaviour: ProbeBehaviour, policy: RawPolicy) -> (Gate, ProbeTool) {
    let (gate, _) = gate_with(policy);
    let probe = ProbeTool::new("probe", behaviour);
    gate.register(SourceId::Sdk, probe.clone()).unwrap();
    (gate, probe)
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[a-z]{0,5}".prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::hash_map("text|times|[a-z]{1,4}", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// What the probe's schema says, written a second time and by hand.
fn fits(input: &Value) -> bool {
    let Value::Object(map) = input else { return false };
    map.keys().all(|key| key == "text" || key == "times")
        && map.get("text").is_some_and(Value::is_string)
        && map.get("times").is_none_or(|times| times.as_u64().is_some_and(|n| (1..=9).contains(&n)))
}

proptest! {
    #[test]
    fn property_44_tool_invocation_parameter_validation(input in json_value()) {
        let (gate, probe) = probing(ProbeBehaviour::Succeed, allow_all(&["probe"]));
        let closed = call(&gate, &input.to_string(), CallOptions::default());
        if fits(&input) {
            prop_assert!(closed.result.is_ok(), "{input}: {:?}", closed.result);
        } else {
            let refusal = closed.result.unwrap_err();
            prop_assert_eq!(refusal.stage, Stage::Validate);
            prop_assert!(matches!(refusal.code, Code::InvalidInput | Code::NotAnObject), "{}", refusal);
            prop_assert_eq!(probe.runs(), 0);
        }
    }

    #[test]
    fn property_45_tool_invocation_description(text in "[a-z]{0,9}") {
        let (gate, _) = probing(ProbeBehaviour::Succeed, RawPolicy::default());
        let input = json!({ "text": text }).to_string();
        let call = ToolCall::new("c", "probe", input);
        let intended = gate.derive_intent(&session_in(&AbsPath::root()), &call).unwrap();
        prop_assert!(!intended.intent.summary.trim().is_empty());
    }

    #[test]
    fn property_46_tool_invocation_locations(text in "[a-z]{0,9}") {
        let (gate, _) = probing(ProbeBehaviour::Succeed, RawPolicy::default());
        let call = ToolCall::new("c", "probe", json!({ "text": text }).to_string());
        let intended = gate.derive_intent(&session_in(&AbsPath::root()), &call).unwrap();
        prop_assert_eq!(intended.intent.locations(), ["probe probe"]);
    }

    #[test]
    fn property_47_tool_invocation_confirmation_check(text in "[a-z]{0,9}", allowed in any::<bool>()) {
        let policy = if allowed { allow_all(&["probe"]) } else { RawPolicy::default() };
        let (gate, _) = probing(ProbeBehaviour::Succeed, policy);
        let call = ToolCall::new("c", "probe", json!({ "text": text }).to_string());
        let judgement = gate.check(&session_in(&AbsPath::root()), &call).unwrap();
        match judgement.verdict {
            Verdict::Allow(_) => prop_assert!(allowed),
            Verdict::Ask(question) => {
                prop_assert!(!allowed);
                prop_assert_eq!(question.tool.as_str(), "probe");
                prop_assert!(!question.description.is_empty() && !question.locations.is_empty());
            }
            Verdict::Deny(reason) => prop_assert!(false, "{}", reason),
        }
    }

    #[test]
    fn property_48_tool_invocation_abort_signal_respect(
        behaviour in prop_oneof![Just(ProbeBehaviour::Hang), Just(ProbeBehaviour::UntilCancelled)],
        before in any::<bool>(),
    ) {
        let (gate, probe) = probing(behaviour, allow_all(&["probe"]));
        let cancel = CancellationToken::new();
        if before {
            cancel.cancel();
        }
        let token = cancel.clone();
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let closed = runtime.block_on(async {
            let session = session_in(&AbsPath::root());
            let limits = CallOptions::default().with_cancel(cancel);
            let calling = gate.call(&session, ToolCall::new("c", "probe", r#"{"text":"x"}"#), limits);
            let (closed, ()) = tokio::join!(calling, async move {
                tokio::task::yield_now().await;
                token.cancel();
            });
            closed
        });
        let refusal = closed.result.unwrap_err();
        prop_assert_eq!(refusal.code, Code::Cancelled);
        prop_assert_eq!(probe.runs(), usize::from(!before));
        if behaviour == ProbeBehaviour::UntilCancelled && !before {
            prop_assert_eq!(refusal.partial.unwrap().model_text(), "partial output", "what was done so far is kept");
        }
    }

    #[test]
    fn property_49_tool_result_format(text in "[a-z]{1,9}", times in 1u8..=9) {
        let (gate, _) = probing(ProbeBehaviour::Succeed, allow_all(&["probe"]));
        let input = json!({ "text": text, "times": times }).to_string();
        let output = call(&gate, &input, CallOptions::default()).result.unwrap();
        prop_assert_eq!(output.model_text(), text.repeat(usize::from(times)));
        prop_assert!(!output.display_text().is_empty());
    }

    #[test]
    fn property_57_error_result_format_through_the_gate(
        behaviour in prop_oneof![Just(ProbeBehaviour::Fail), Just(ProbeBehaviour::Panic)],
        mode in prop_oneof![Just(Mode::Default), Just(Mode::Deny), Just(Mode::DontAsk)],
        allowed in any::<bool>(),
    ) {
        let mut policy = if allowed { allow_all(&["probe"]) } else { RawPolicy::default() };
        policy.mode = mode;
        let (gate, _) = probing(behaviour, policy);
        let refusal = call(&gate, r#"{"text":"x"}"#, CallOptions::default()).result.unwrap_err();
        prop_assert!(!refusal.reason.is_empty() && !refusal.kind.is_empty() && !refusal.hint.is_empty());
    }
}
