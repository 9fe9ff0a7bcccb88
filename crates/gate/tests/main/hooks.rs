//! Hooks guard, and never loosen.

use futures_util::future::BoxFuture;
use proptest::prelude::*;
use serde_json::json;
use std::sync::Arc;
use toolgate_gate::{
    CallOptions, Gate, GateParts, Hook, HookAnswer, HookCall, HookDecision, HookEvent, HookFailure,
    MemorySink, OnFailure, Session, SessionHooks, SessionLimits, Sink,
};
use toolgate_policy::RawPolicy;
use toolgate_proto::{AbsPath, Code, Principal, SourceId, ToolCall, ToolIdentity};
use toolgate_testkit::{ProbeBehaviour, ProbeTool, allow_all, session_in};

#[derive(Debug, Clone)]
enum Says {
    Answer(Box<HookAnswer>),
    Failure(HookFailure),
    Panic,
}

struct FakeHook {
    says: Says,
    on_failure: OnFailure,
}

impl Hook for FakeHook {
    fn name(&self) -> &str {
        "fake"
    }

    fn handles(&self, event: HookEvent, _tool: &ToolIdentity) -> bool {
        event == HookEvent::PreToolUse
    }

    fn on_failure(&self) -> OnFailure {
        self.on_failure
    }

    fn handle_call<'a>(&'a self, _call: HookCall<'a>) -> BoxFuture<'a, Result<HookAnswer, HookFailure>> {
        Box::pin(async {
            match self.says.clone() {
                Says::Answer(answer) => Ok(*answer),
                Says::Failure(failure) => Err(failure),
                Says::Panic => panic!("told to panic"),
            }
        })
    }
}

fn hook(says: Says, on_failure: OnFailure) -> Arc<dyn Hook> {
    Arc::new(FakeHook { says, on_failure })
}

fn run(hooks: Vec<Arc<dyn Hook>>, policy: RawPolicy) -> (Result<String, Code>, usize, Vec<String>) {
    let sink = Arc::new(MemorySink::new());
    let gate = Gate::new(
        GateParts::default()
            .with_policy(policy)
            .with_hooks(hooks)
            .with_sinks(vec![Arc::clone(&sink) as Arc<dyn Sink>]),
    );
    let probe = ProbeTool::new("probe", ProbeBehaviour::Succeed);
    gate.register(SourceId::Sdk, probe.clone()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let call = ToolCall::new("c", "probe", r#"{"text":"x"}"#);
    let closed = runtime.block_on(gate.call(&session_in(&AbsPath::root()), call, CallOptions::default()));
    let result = closed.result.map(|output| output.model_text()).map_err(|refusal| refusal.code);
    (result, probe.runs(), closed.record.revisions)
}

#[test]
fn each_failure_kind_denies_unless_the_hook_says_that_it_does_not_matter() {
    for (says, code) in [
        (Says::Failure(HookFailure::Missing("program `x`".into())), Code::HookMissing),
        (Says::Failure(HookFailure::NotStarted("no".into())), Code::HookFailed),
        (Says::Failure(HookFailure::Crashed("gone".into())), Code::HookFailed),
        (Says::Failure(HookFailure::Unreachable("gone".into())), Code::HookFailed),
        (Says::Failure(HookFailure::Misconfigured("bad".into())), Code::HookFailed),
        (Says::Failure(HookFailure::TimedOut(5)), Code::HookTimedOut),
        (Says::Failure(HookFailure::Unreadable("junk".into())), Code::HookUnreadable),
        (Says::Panic, Code::HookFailed),
    ] {
        let (result, runs, _) = run(vec![hook(says.clone(), OnFailure::Deny)], allow_all(&["probe"]));
        assert_eq!((result, runs), (Err(code), 0), "{says:?}");
        let (result, runs, _) = run(vec![hook(says.clone(), OnFailure::Continue)], allow_all(&["probe"]));
        assert_eq!((result, runs), (Ok("x".to_owned()), 1), "{says:?}");
    }
}

#[test]
fn a_rewrite_is_seen_by_the_next_hook_checked_and_recorded() {
    let to = |value: serde_json::Value| {
        hook(Says::Answer(Box::new(HookAnswer::rewrite(value.as_object().unwrap().clone()))), OnFailure::Deny)
    };
    let (result, _, revisions) =
        run(vec![to(json!({"text": "y"})), to(json!({"text": "z"}))], allow_all(&["probe"]));
    assert_eq!(result, Ok("z".to_owned()));
    assert_eq!(revisions, ["hook: fake", "hook: fake"]);
    let (result, runs, _) = run(vec![to(json!({"text": 1}))], allow_all(&["probe"]));
    assert_eq!((result, runs), (Err(Code::InvalidInput), 0));
}

fn answer() -> impl Strategy<Value = Says> {
    prop_oneof![
        Just(Says::Answer(Box::new(HookAnswer::empty()))),
        Just(Says::Answer(Box::new(HookAnswer::allow()))),
        Just(Says::Answer(Box::new(HookAnswer::ask("hm")))),
        Just(Says::Answer(Box::new(HookAnswer::defer("later")))),
        Just(Says::Answer(Box::new(HookAnswer::deny("no")))),
        Just(Says::Failure(HookFailure::Crashed("gone".into()))),
    ]
}

proptest! {
    /// Deny beats defer beats ask beats allow, in whatever order the hooks stand. A failure ends the round, so that
    /// only what came before it can beat it.
    #[test]
    fn the_strictest_hook_decides(answers in prop::collection::vec(answer(), 0..6)) {
        let decided = |wanted| {
            answers.iter().any(|says| matches!(says, Says::Answer(answer) if answer.decision == Some(wanted)))
        };
        let fails = answers.iter().any(|says| matches!(says, Says::Failure(_) | Says::Panic));
        let denies = fails || decided(HookDecision::Deny) || decided(HookDecision::Defer);
        let asks = decided(HookDecision::Ask);
        let hooks = answers.iter().map(|says| hook(says.clone(), OnFailure::Deny)).collect();
        let (result, runs, _) = run(hooks, allow_all(&["probe"]));
        prop_assert_eq!(runs, usize::from(!denies && !asks));
        if !denies && asks {
            prop_assert_eq!(result, Err(Code::ApprovalUnavailable));
        } else if !fails && decided(HookDecision::Deny) {
            prop_assert_eq!(result, Err(Code::HookDenied));
        } else if !fails && decided(HookDecision::Defer) {
            prop_assert_eq!(result, Err(Code::HookDeferred));
        }
    }

    #[test]
    fn a_hook_never_lifts_a_deny_or_an_explicit_ask(answers in prop::collection::vec(answer(), 0..5), deny in any::<bool>()) {
        let mut policy = allow_all(&["probe"]);
        if deny {
            policy.layers[0].deny.push("probe".into());
        } else {
            policy.layers[0].ask.push("probe".into());
        }
        let hooks = answers.iter().map(|says| hook(says.clone(), OnFailure::Deny)).collect();
        let (result, runs, _) = run(hooks, policy);
        prop_assert!(result.is_err());
        prop_assert_eq!(runs, 0);
    }
}

/// A gate that allows the tool `probe`, and whether a call of it in a session passes.
fn allowing_gate() -> Gate {
    let gate = Gate::new(GateParts::default().with_policy(allow_all(&["probe"])));
    gate.register(SourceId::Sdk, ProbeTool::new("probe", ProbeBehaviour::Succeed)).unwrap();
    gate
}

async fn passes(gate: &Gate, session: &Session) -> bool {
    let call = ToolCall::new("c", "probe", r#"{"text":"x"}"#);
    gate.call(session, call, CallOptions::default()).await.result.is_ok()
}

fn denying() -> Arc<dyn Hook> {
    hook(Says::Answer(Box::new(HookAnswer::deny("no"))), OnFailure::Deny)
}

#[tokio::test]
async fn hooks_of_a_turn_end_with_it_and_survive_a_reload_of_the_others() {
    let gate = allowing_gate();
    let session = session_in(&AbsPath::new("/tmp").unwrap());
    gate.begin_turn();
    gate.add_turn_hooks("skill", vec![denying()]);
    assert!(!passes(&gate, &session).await);
    gate.set_hooks(Vec::new());
    assert!(!passes(&gate, &session).await, "a reload of settings is not the end of the turn");
    // What brings hooks twice has them once.
    gate.add_turn_hooks("skill", Vec::new());
    assert!(passes(&gate, &session).await);
    gate.add_turn_hooks("skill", vec![denying()]);
    gate.end_turn();
    assert!(passes(&gate, &session).await);
    // Without a turn they hold until one ends.
    gate.add_turn_hooks("skill", vec![denying()]);
    assert!(!passes(&gate, &session).await);
    gate.begin_turn();
    assert!(passes(&gate, &session).await);
}

#[tokio::test]
async fn hooks_of_a_part_of_a_session_hold_for_it_and_the_parts_in_it() {
    let gate = allowing_gate();
    let main = session_in(&AbsPath::new("/tmp").unwrap());
    let part = |of: &Session, hooks: Vec<Arc<dyn Hook>>| {
        let limits = SessionLimits::default().with_hooks(SessionHooks::new(hooks));
        of.child(Principal::new("subagent"), limits)
    };
    let screened = part(&main, vec![denying()]);
    let inner = part(&screened, Vec::new());
    let other = part(&main, Vec::new());
    assert!(!passes(&gate, &screened).await && !passes(&gate, &inner).await);
    assert!(passes(&gate, &main).await && passes(&gate, &other).await);
}
