//! What hooks may do at each event, and that the record tells of it.

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio_util::sync::CancellationToken;
use toolgate_gate::{
    BatchedCall, CallOptions, CallOutcome, Gate, GateParts, Hook, HookAnswer, HookBatch, HookCall, HookEvent,
    HookFailure, OnFailure,
};
use toolgate_policy::RawPolicy;
use toolgate_proto::{AbsPath, Code, Event, Output, SourceId, ToolCall, ToolIdentity};
use toolgate_testkit::{ProbeBehaviour, ProbeTool, allow_all, session_in};

type AnswerFn = Arc<dyn Fn(&HookCall<'_>) -> Result<HookAnswer, HookFailure> + Send + Sync>;

struct At {
    event: HookEvent,
    say: AnswerFn,
    on_failure: OnFailure,
    runs: Arc<AtomicUsize>,
}

impl Hook for At {
    fn name(&self) -> &str {
        "at"
    }

    fn handles(&self, event: HookEvent, _tool: &ToolIdentity) -> bool {
        event == self.event
    }

    fn on_failure(&self) -> OnFailure {
        self.on_failure
    }

    fn handle_call<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<HookAnswer, HookFailure>> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        Box::pin(std::future::ready((self.say)(&call)))
    }

    fn handles_batches(&self) -> bool {
        self.event == HookEvent::PostToolBatch
    }

    fn handle_batch<'a>(&'a self, batch: HookBatch<'a>) -> BoxFuture<'a, Result<HookAnswer, HookFailure>> {
        let count = batch.calls.len();
        let mut answer = HookAnswer::empty().with_context(format!("{count} calls"));
        answer.stop = (count > 1).then(|| "too many".to_owned());
        Box::pin(std::future::ready(Ok(answer)))
    }
}

fn at(
    event: HookEvent,
    say: impl Fn(&HookCall<'_>) -> Result<HookAnswer, HookFailure> + Send + Sync + 'static,
) -> At {
    At { event, say: Arc::new(say), on_failure: OnFailure::Deny, runs: Arc::default() }
}

async fn call(policy: RawPolicy, behaviour: ProbeBehaviour, hooks: Vec<At>) -> CallOutcome {
    let hooks = hooks.into_iter().map(|hook| Arc::new(hook) as Arc<dyn Hook>).collect();
    let gate = Gate::new(GateParts::default().with_policy(policy).with_hooks(hooks));
    gate.register(SourceId::Sdk, ProbeTool::new("probe", behaviour)).unwrap();
    let call = ToolCall::new("c", "probe", r#"{"text":"x"}"#);
    gate.call(&session_in(&AbsPath::root()), call, CallOptions::default()).await
}

fn text(closed: &CallOutcome) -> String {
    match &closed.result {
        Ok(output) => output.model_text(),
        Err(refusal) => refusal.partial.as_ref().map(|partial| partial.model_text()).unwrap_or_default(),
    }
}

#[tokio::test]
async fn after_a_success_a_hook_may_object_add_and_replace() {
    for (answer, wanted) in [
        (HookAnswer::deny("run the tests"), "x\nhook `at` objects: run the tests"),
        (HookAnswer::default().with_context("by the way"), "x\nby the way"),
        (HookAnswer::default().with_updated_output(json!("hidden")), "hidden"),
        (
            HookAnswer::default()
                .with_updated_output(json!({ "content": [{ "type": "text", "text": "block" }] })),
            "block",
        ),
    ] {
        let said = answer.clone();
        let hook = at(HookEvent::PostToolUse, move |call| {
            assert!(call.ran_for.is_some() && call.result.unwrap().is_ok());
            Ok(said.clone())
        });
        let closed = call(allow_all(&["probe"]), ProbeBehaviour::Succeed, vec![hook]).await;
        assert!(closed.result.is_ok());
        assert_eq!(text(&closed), wanted);
        assert_eq!(closed.record.hooks[0].event, "PostToolUse");
    }
}

#[tokio::test]
async fn an_output_that_does_not_fit_is_refused_and_the_true_one_kept() {
    use toolgate_gate::{FnTool, ToolSpec};
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct HookedInput {}
    for (updated, wanted) in
        [(json!({ "n": 2 }), json!({ "n": 2 })), (json!({ "n": "two" }), json!({ "n": 1 }))]
    {
        let hook = at(HookEvent::PostToolUse, move |_| {
            Ok(HookAnswer::default().with_updated_output(updated.clone()))
        });
        let gate = Gate::new(
            GateParts::default().with_policy(allow_all(&["count"])).with_hooks(vec![Arc::new(hook)]),
        );
        let mut spec = ToolSpec::new("count", "Counts.");
        spec.output_schema = Some(
            json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] }),
        );
        let tool = FnTool::new(spec, |_: HookedInput, _| async {
            Ok(Output::text("1").structured(json!({ "n": 1 })))
        });
        gate.register(SourceId::Sdk, tool).unwrap();
        let call = ToolCall::new("c", "count", "{}");
        let closed = gate.call(&session_in(&AbsPath::root()), call, CallOptions::default()).await;
        assert_eq!(closed.result.unwrap().structured, Some(wanted));
    }
}

#[tokio::test]
async fn after_a_failure_a_hook_is_told_and_cannot_undo_it() {
    let hook = at(HookEvent::PostToolUseFailure, |call| {
        assert!(call.result.unwrap().is_err());
        Ok(HookAnswer::allow().with_context("try harder"))
    });
    let closed = call(allow_all(&["probe"]), ProbeBehaviour::Fail, vec![hook]).await;
    assert_eq!(closed.result.as_ref().unwrap_err().code, Code::ToolFailed);
    assert_eq!(text(&closed), "try harder");
}

#[tokio::test]
async fn a_hook_that_fails_after_the_run_hides_nothing() {
    for (on_failure, wanted) in [
        (OnFailure::Deny, "x\nhook `at` failed after the call: it gave no answer in 5 ms"),
        (OnFailure::Continue, "x"),
    ] {
        let mut hook = at(HookEvent::PostToolUse, |_| Err(HookFailure::TimedOut(5)));
        hook.on_failure = on_failure;
        let closed = call(allow_all(&["probe"]), ProbeBehaviour::Succeed, vec![hook]).await;
        assert_eq!(text(&closed), wanted);
        assert_eq!(closed.record.hooks[0].ended, "timed_out");
    }
}

#[tokio::test]
async fn after_a_denial_a_hook_may_offer_a_retry_in_one_sentence() {
    let hook = at(HookEvent::PermissionDenied, |_| Ok(HookAnswer::default().with_retry(true)));
    let closed = call(RawPolicy::default(), ProbeBehaviour::Succeed, vec![hook]).await;
    assert_eq!(closed.result.as_ref().unwrap_err().code, Code::ApprovalUnavailable);
    assert_eq!(text(&closed), "A hook offers a retry: you may call `probe` again.");
}

#[tokio::test]
async fn a_hook_may_answer_the_question_that_no_rule_asked_and_no_other() {
    let allow = || {
        at(HookEvent::PermissionRequest, |call| {
            assert!(call.question.is_some());
            Ok(HookAnswer::allow())
        })
    };
    let closed = call(RawPolicy::default(), ProbeBehaviour::Succeed, vec![allow()]).await;
    assert!(closed.result.is_ok());
    assert_eq!(closed.record.approval.unwrap().by, "hook: at");
    // A rule requires the user.
    let mut asking = allow_all(&["probe"]);
    asking.layers[0].ask.push("probe".into());
    let closed = call(asking, ProbeBehaviour::Succeed, vec![allow()]).await;
    assert_eq!(closed.result.unwrap_err().code, Code::ApprovalUnavailable);
    assert!(closed.record.hooks[0].detail.as_ref().unwrap().contains("does not count"));
    // A rule denies: no approver is asked.
    let mut denying = allow_all(&["probe"]);
    denying.layers[0].deny.push("probe(*)".into());
    let hook = allow();
    let runs = Arc::clone(&hook.runs);
    assert!(call(denying, ProbeBehaviour::Succeed, vec![hook]).await.result.is_err());
    assert_eq!(runs.load(Ordering::SeqCst), 0);
    // And it may say no, or fail, which is no as well.
    let no = at(HookEvent::PermissionRequest, |_| Ok(HookAnswer::deny("not today")));
    let closed = call(RawPolicy::default(), ProbeBehaviour::Succeed, vec![no]).await;
    let refusal = closed.result.unwrap_err();
    assert_eq!((refusal.code, refusal.hint.as_str()), (Code::Declined, "not today"));
    let broken = at(HookEvent::PermissionRequest, |_| Err(HookFailure::Crashed("gone".into())));
    let closed = call(RawPolicy::default(), ProbeBehaviour::Succeed, vec![broken]).await;
    assert_eq!(closed.result.unwrap_err().code, Code::HookFailed);
}

#[tokio::test]
async fn a_hook_may_stop_the_agent_and_speak_to_the_user() {
    let stop = at(HookEvent::PreToolUse, |_| {
        Ok(HookAnswer::default().with_stop("enough").with_message("I stopped it"))
    });
    let closed = call(allow_all(&["probe"]), ProbeBehaviour::Succeed, vec![stop]).await;
    assert_eq!(closed.result.unwrap_err().code, Code::HookStopped);
    assert_eq!(closed.stop.as_deref(), Some("hook `at`: enough"));
    assert_eq!(closed.messages, ["I stopped it"]);
    let after = at(HookEvent::PostToolUse, |_| Ok(HookAnswer::default().with_stop("done")));
    let closed = call(allow_all(&["probe"]), ProbeBehaviour::Succeed, vec![after]).await;
    assert!(closed.result.is_ok());
    assert_eq!(closed.stop.as_deref(), Some("hook `at`: done"));
}

#[tokio::test]
async fn a_batch_is_told_as_a_whole() {
    let gate = Gate::new(
        GateParts::default()
            .with_hooks(vec![Arc::new(at(HookEvent::PostToolBatch, |_| Ok(HookAnswer::empty())))]),
    );
    let session = session_in(&AbsPath::root());
    let one = BatchedCall::new("c", "probe", serde_json::Map::<String, Value>::new(), Ok(Output::text("x")));
    let cancel = CancellationToken::new();
    let end = gate.run_batch_hooks(&session, std::slice::from_ref(&one), &cancel).await;
    assert_eq!((end.stop, end.context), (None, vec!["1 calls".to_owned()]));
    let end = gate.run_batch_hooks(&session, &[one.clone(), one.clone()], &cancel).await;
    assert_eq!(end.stop.as_deref(), Some("hook `at`: too many"));
    cancel.cancel();
    assert!(gate.run_batch_hooks(&session, &[one], &cancel).await.stop.is_some());
}

#[tokio::test]
async fn subscribers_learn_of_each_hook_before_it_runs_and_how_it_ended() {
    let hooks: Vec<Arc<dyn Hook>> = vec![
        Arc::new(at(HookEvent::PreToolUse, |_| Ok(HookAnswer::default()))),
        Arc::new(at(HookEvent::PostToolUse, |_| Err(HookFailure::Crashed("it fell over".to_owned())))),
        Arc::new(at(HookEvent::PostToolBatch, |_| Ok(HookAnswer::default()))),
    ];
    let gate = Gate::new(GateParts::default().with_policy(allow_all(&["probe"])).with_hooks(hooks));
    gate.register(SourceId::Sdk, ProbeTool::new("probe", ProbeBehaviour::Succeed)).unwrap();
    let session = session_in(&AbsPath::root());
    let mut events = gate.events();
    gate.call(&session, ToolCall::new("c", "probe", r#"{"text":"x"}"#), CallOptions::default()).await;
    gate.run_batch_hooks(&session, &[], &CancellationToken::new()).await;
    let mut seen = Vec::new();
    let mut open = None;
    while let Ok(event) = events.try_recv() {
        match event {
            Event::HookStarted { run, call, event, .. } => {
                assert_eq!(open.replace(run), None, "one after the other");
                seen.push((event, call.map(|call| call.to_string()), "started".to_owned()));
            }
            Event::HookEnded { run, call, record } => {
                assert_eq!(open.take(), Some(run));
                seen.push((record.event, call.map(|call| call.to_string()), record.ended));
            }
            _ => {}
        }
    }
    let of = |event: &str, call: Option<&str>, what: &str| {
        (event.to_owned(), call.map(str::to_owned), what.to_owned())
    };
    let wanted = [
        of("PreToolUse", Some("c"), "started"),
        of("PreToolUse", Some("c"), "silent"),
        of("PostToolUse", Some("c"), "started"),
        of("PostToolUse", Some("c"), "crashed"),
        of("PostToolBatch", None, "started"),
        of("PostToolBatch", None, "silent"),
    ];
    assert_eq!(seen, wanted);
}

/// A hook that never ends.
struct Endless;

impl Hook for Endless {
    fn name(&self) -> &str {
        "endless"
    }

    fn handles(&self, event: HookEvent, _tool: &ToolIdentity) -> bool {
        event == HookEvent::PreToolUse
    }

    fn handle_call<'a>(&'a self, _call: HookCall<'a>) -> BoxFuture<'a, Result<HookAnswer, HookFailure>> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_hook_that_is_given_up_ends_as_cancelled() {
    let gate = Gate::new(
        GateParts::default().with_policy(allow_all(&["probe"])).with_hooks(vec![Arc::new(Endless)]),
    );
    gate.register(SourceId::Sdk, ProbeTool::new("probe", ProbeBehaviour::Succeed)).unwrap();
    let mut events = gate.events();
    let cancel = CancellationToken::new();
    let options = CallOptions::default().with_cancel(cancel.clone());
    let session = session_in(&AbsPath::root());
    let calling = gate.call(&session, ToolCall::new("c", "probe", r#"{"text":"x"}"#), options);
    let watching = async {
        let mut ended = None;
        while ended.is_none() {
            match events.recv().await.unwrap() {
                Event::HookStarted { .. } => cancel.cancel(),
                Event::HookEnded { record, .. } => ended = Some(record.ended),
                _ => {}
            }
        }
        ended
    };
    let (closed, ended) = futures_util::future::join(calling, watching).await;
    assert_eq!(closed.result.unwrap_err().code, Code::Cancelled);
    assert_eq!(ended.as_deref(), Some("cancelled"));
}
