//! What holds of every sequence of calls: nothing invisible runs, and each call leaves one record.

use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolgate_gate::{CallOptions, Visibility};
use toolgate_proto::{AbsPath, Code, OutcomeRecord, SourceId, ToolCall};
use toolgate_testkit::{ProbeBehaviour, ProbeTool, allow_all, gate_with, session_in};

const NAMES: [&str; 4] = ["alpha", "beta", "gamma", "delta"];

#[derive(Debug, Clone)]
enum Act {
    Register(usize),
    Unregister(usize),
    Hide(BTreeSet<usize>),
    ShowOnly(Option<BTreeSet<usize>>),
    Call(usize),
}

fn act() -> impl Strategy<Value = Act> {
    let one = 0..NAMES.len();
    let some = prop::collection::btree_set(0..NAMES.len(), 0..3);
    prop_oneof![
        one.clone().prop_map(Act::Register),
        one.clone().prop_map(Act::Unregister),
        some.clone().prop_map(Act::Hide),
        prop::option::of(some).prop_map(Act::ShowOnly),
        one.prop_map(Act::Call),
    ]
}

fn names_of(indexes: &BTreeSet<usize>) -> BTreeSet<String> {
    indexes.iter().map(|index| NAMES[*index].to_owned()).collect()
}

proptest! {
    #[test]
    fn no_sequence_of_register_hide_and_call_runs_an_invisible_tool(acts in vec(act(), 1..40)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let (gate, sink) = gate_with(allow_all(&NAMES));
        let session = session_in(&AbsPath::root());
        let probes: Vec<ProbeTool> = NAMES.iter().map(|name| ProbeTool::new(*name, ProbeBehaviour::Succeed)).collect();
        let mut there: BTreeSet<usize> = BTreeSet::new();
        let mut visibility = Visibility::default();
        let mut calls = 0;
        for act in acts {
            match act {
                Act::Register(index) => {
                    gate.register(SourceId::Sdk, probes[index].clone()).unwrap();
                    there.insert(index);
                }
                Act::Unregister(index) => {
                    prop_assert_eq!(gate.unregister(&SourceId::Sdk, NAMES[index]), there.remove(&index));
                }
                Act::Hide(indexes) => {
                    visibility.hidden = names_of(&indexes);
                    gate.set_visibility(visibility.clone());
                }
                Act::ShowOnly(indexes) => {
                    visibility.only = indexes.as_ref().map(names_of);
                    gate.set_visibility(visibility.clone());
                }
                Act::Call(index) => {
                    let name = NAMES[index];
                    let visible = there.contains(&index)
                        && !visibility.hidden.contains(name)
                        && visibility.only.as_ref().is_none_or(|only| only.contains(name));
                    let before = probes[index].runs();
                    let call = ToolCall::new("c", name, r#"{"text":"x"}"#);
                    let closed = runtime.block_on(gate.call(&session, call, CallOptions::default()));
                    calls += 1;
                    prop_assert_eq!(probes[index].runs() - before, usize::from(visible));
                    prop_assert_eq!(closed.result.is_ok(), visible);
                    let listed = gate.definitions(&session).iter().any(|tool| tool.name.as_str() == name);
                    prop_assert_eq!(listed, visible, "what is listed is what can be called");
                }
            }
            prop_assert_eq!(sink.records().len(), calls);
        }
    }

    /// Also when the tool panics, hangs until its deadline, is cancelled, or the caller goes away.
    #[test]
    fn every_call_leaves_exactly_one_record(
        plan in vec((0usize..7, 0u64..30), 1..12),
        input in prop_oneof![Just(r#"{"text":"x"}"#), Just("{"), Just(r#"{"text":1}"#)],
    ) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let (gate, sink) = gate_with(allow_all(&["succeed", "fail", "panic", "hang", "until"]));
        for (name, behaviour) in [
            ("succeed", ProbeBehaviour::Succeed),
            ("fail", ProbeBehaviour::Fail),
            ("panic", ProbeBehaviour::Panic),
            ("hang", ProbeBehaviour::Hang),
            ("until", ProbeBehaviour::UntilCancelled),
            ("asked", ProbeBehaviour::Succeed),
        ] {
            gate.register(SourceId::Sdk, ProbeTool::new(name, behaviour)).unwrap();
        }
        let names = ["succeed", "fail", "panic", "hang", "until", "asked", "unknown"];
        let session = session_in(&AbsPath::root());
        let count = plan.len();
        runtime.block_on(async {
            let calls = plan.iter().enumerate().map(|(index, (which, wait))| {
                let (gate, session) = (&gate, &session);
                async move {
                    let cancel = CancellationToken::new();
                    let limits = CallOptions::default().with_cancel(cancel.clone()).with_timeout((wait % 3 == 0).then(|| Duration::from_millis(*wait)));
                    let call = ToolCall::new(format!("call_{index}"), names[*which], input);
                    let calling = gate.call(session, call, limits);
                    let wait = Duration::from_millis(*wait);
                    if wait.as_millis() % 3 == 1 {
                        // The caller goes away.
                        let _ = tokio::time::timeout(wait, calling).await;
                    } else {
                        tokio::join!(calling, async {
                            tokio::time::sleep(wait).await;
                            cancel.cancel();
                        });
                    }
                }
            });
            futures_util::future::join_all(calls).await;
        });
        let mut by_call: BTreeMap<String, usize> = BTreeMap::new();
        for record in sink.records() {
            *by_call.entry(record.call.to_string()).or_default() += 1;
            prop_assert!(!record.stages.is_empty());
        }
        prop_assert_eq!(by_call.len(), count);
        prop_assert!(by_call.values().all(|records| *records == 1), "{:?}", by_call);
    }
}

#[tokio::test]
async fn a_call_under_way_finishes_though_its_tool_is_hidden() {
    let (gate, sink) = gate_with(allow_all(&["until"]));
    gate.register(SourceId::Sdk, ProbeTool::new("until", ProbeBehaviour::UntilCancelled)).unwrap();
    let session = session_in(&AbsPath::root());
    let cancel = CancellationToken::new();
    let limits = CallOptions::default().with_cancel(cancel.clone());
    let call = || ToolCall::new("c", "until", r#"{"text":"x"}"#);
    let mut events = gate.events();
    let (first, second) = tokio::join!(gate.call(&session, call(), limits), async {
        // The run stage is entered when the guard stage is passed.
        while !matches!(
            events.recv().await.unwrap(),
            toolgate_proto::Event::Passed { stage: toolgate_proto::Stage::Guard, .. }
        ) {}
        gate.set_visibility(Visibility::default().with_hidden(["until".to_owned()]));
        let second = gate.call(&session, call(), CallOptions::default()).await;
        cancel.cancel();
        second
    });
    assert_eq!(second.result.unwrap_err().code, Code::UnknownTool);
    assert_eq!(first.result.unwrap_err().partial.unwrap().model_text(), "partial output");
    assert_eq!(sink.records().len(), 2);
}

// The clock stands still unless every task waits, so that a busy machine cannot end a call before its tool runs.
#[tokio::test(start_paused = true)]
async fn a_panic_is_told_apart_from_a_failure_and_from_a_timeout() {
    let (gate, sink) = gate_with(allow_all(&["panic", "fail", "hang"]));
    gate.register(SourceId::Sdk, ProbeTool::new("panic", ProbeBehaviour::Panic)).unwrap();
    gate.register(SourceId::Sdk, ProbeTool::new("fail", ProbeBehaviour::Fail)).unwrap();
    gate.register(SourceId::Sdk, ProbeTool::new("hang", ProbeBehaviour::Hang)).unwrap();
    let session = session_in(&AbsPath::root());
    for (name, wanted) in
        [("panic", Code::ToolPanicked), ("fail", Code::ToolFailed), ("hang", Code::DeadlinePassed)]
    {
        let limits = CallOptions::default().with_timeout(Some(Duration::from_millis(30)));
        let closed = gate.call(&session, ToolCall::new("c", name, r#"{"text":"x"}"#), limits).await;
        assert_eq!(closed.result.unwrap_err().code, wanted);
        let record = sink.records().pop().unwrap();
        assert!(matches!(record.outcome, OutcomeRecord::Failed { code, .. } if code == wanted));
    }
}
