//! What single stages add to a call: the hints of resolve, the stage of a tool's refusal, output of a call that was ended.

use serde_json::json;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolgate_gate::{CallOptions, Gate, Session};
use toolgate_proto::{AbsPath, Code, Refusal, SourceId, Stage, ToolCall};
use toolgate_testkit::{ProbeBehaviour, ProbeTool, allow_all, gate_with, session_in};

async fn refusal(gate: &Gate, session: &Session, tool: &str, options: CallOptions) -> Refusal {
    let call = ToolCall::new("c", tool, json!({ "text": "x" }).to_string());
    gate.call(session, call, options).await.result.unwrap_err()
}

#[tokio::test]
async fn an_unknown_tool_is_refused_with_the_nearest_or_all_that_there_are() {
    let session = session_in(&AbsPath::root());
    let (gate, _) = gate_with(allow_all(&[]));
    let none = refusal(&gate, &session, "prob", CallOptions::default()).await;
    assert_eq!((none.code, none.hint.as_str()), (Code::UnknownTool, "no tools are available"));
    for name in ["probe", "other"] {
        gate.register(SourceId::Sdk, ProbeTool::new(name, ProbeBehaviour::Succeed)).unwrap();
    }
    let near = refusal(&gate, &session, "prob", CallOptions::default()).await;
    assert_eq!(near.hint, "did you mean `probe`?");
    let far = refusal(&gate, &session, "something_else_entirely", CallOptions::default()).await;
    assert!(
        far.hint == "the tools are other, probe" || far.hint == "the tools are probe, other",
        "{}",
        far.hint
    );
    assert_eq!((near.stage, far.stage), (Stage::Resolve, Stage::Resolve));
}

#[tokio::test]
async fn a_refusal_of_a_tool_happened_in_the_run() {
    let (gate, sink) = gate_with(allow_all(&["fail"]));
    gate.register(SourceId::Sdk, ProbeTool::new("fail", ProbeBehaviour::Fail)).unwrap();
    let refused = refusal(&gate, &session_in(&AbsPath::root()), "fail", CallOptions::default()).await;
    assert_eq!((refused.code, refused.stage), (Code::ToolFailed, Stage::Run));
    let stages: Vec<Stage> = sink.records().pop().unwrap().stages.iter().map(|mark| mark.stage).collect();
    assert!(stages.contains(&Stage::Run), "{stages:?}");
}

/// A call that is cancelled, and one that runs out of time, hand over what the tool had.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_ended_hands_over_its_partial_output() {
    let session = session_in(&AbsPath::root());
    let (gate, _) = gate_with(allow_all(&["patient"]));
    gate.register(SourceId::Sdk, ProbeTool::new("patient", ProbeBehaviour::UntilCancelled)).unwrap();
    let short = CallOptions::default().with_timeout(Some(Duration::from_millis(30)));
    let late = refusal(&gate, &session, "patient", short).await;
    assert_eq!((late.code, late.stage), (Code::DeadlinePassed, Stage::Run));
    assert_eq!(late.partial.unwrap().model_text(), "partial output");
    let cancel = CancellationToken::new();
    let options = CallOptions::default().with_cancel(cancel.clone());
    let (ended, ()) = tokio::join!(refusal(&gate, &session, "patient", options), async {
        // The probe runs once the call waits for it.
        tokio::task::yield_now().await;
        cancel.cancel();
    });
    assert_eq!(ended.code, Code::Cancelled);
}
