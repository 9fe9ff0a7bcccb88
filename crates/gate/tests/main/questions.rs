//! Questions in the settle stage: how deep they may nest, what an answer grants, and what each answer leaves behind.

use futures_util::future::BoxFuture;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use toolgate_gate::{
    ApprovalAnswer, ApprovalRequest, Approver, CallContext, CallOptions, CallOutcome, Cleared, Gate,
    GateParts, GrantStore, Session, SessionLimits, Tool, ToolSpec,
};
use toolgate_policy::{Layer, LayerRules, RawPolicy};
use toolgate_proto::{
    AbsPath, CallResult, Code, Effect, GrantScope, Intent, Mode, Output, Principal, Refusal, RuleWidth,
    SourceId, Stage, ToolCall, Workspace,
};
use toolgate_testkit::{ProbeBehaviour, ProbeTool, allow_all, session_in};

/// How long a test waits for a call that may hang.
const MAX_WAIT: Duration = Duration::from_secs(60);

fn gate_with_probe(parts: GateParts) -> (Arc<Gate>, ProbeTool) {
    let gate = Arc::new(Gate::new(parts));
    let probe = ProbeTool::new("probe", ProbeBehaviour::Succeed);
    gate.register(SourceId::Sdk, probe.clone()).unwrap();
    (gate, probe)
}

async fn call_probe(gate: &Gate, session: &Session, id: &str, options: CallOptions) -> CallOutcome {
    let call = ToolCall::new(id, "probe", json!({ "text": id }).to_string());
    let calling = tokio::time::timeout(MAX_WAIT, gate.call(session, call, options));
    calling.await.unwrap_or_else(|_| panic!("the call `{id}` hangs"))
}

/// An approver that asks the probe about each question before it says yes, as a prompt tool does.
#[derive(Default)]
struct ConsultingApprover {
    gate: OnceLock<Arc<Gate>>,
    /// The refusal of each consultation, from the innermost on.
    refusals: Mutex<Vec<Option<(Code, String)>>>,
    /// How many questions were open at most.
    open: AtomicUsize,
    most_open: AtomicUsize,
}

impl Approver for ConsultingApprover {
    fn name(&self) -> &str {
        "consulting"
    }

    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_open.fetch_max(open, Ordering::SeqCst);
            assert!(open < 10, "questions nest without an end");
            let options = CallOptions::default().with_purpose(request.consultation());
            let gate = self.gate.get().unwrap();
            let outcome = call_probe(gate, &request.context.session, &format!("about-{open}"), options).await;
            let refusal = outcome.result.err().map(|refusal| (refusal.code, refusal.reason));
            self.refusals.lock().unwrap().push(refusal);
            self.open.fetch_sub(1, Ordering::SeqCst);
            ApprovalAnswer::Once
        })
    }
}

/// A question may be answered with the help of a tool that itself needs approval, but not with the help of one that
/// comes up while that approval is open.
#[tokio::test]
async fn a_question_about_a_question_is_asked_and_no_third_one() {
    let approver = Arc::new(ConsultingApprover::default());
    let parts = GateParts::default().with_approvers(vec![Arc::clone(&approver) as Arc<dyn Approver>]);
    let (gate, probe) = gate_with_probe(parts);
    approver.gate.set(Arc::clone(&gate)).ok().unwrap();
    let session = session_in(&AbsPath::root());
    let outcome = call_probe(&gate, &session, "first", CallOptions::default()).await;
    assert!(outcome.result.is_ok(), "{:?}", outcome.result);
    assert_eq!(approver.most_open.load(Ordering::SeqCst), 2);
    let refusals = approver.refusals.lock().unwrap().clone();
    let third = "this question came up while another of its kind was being answered".to_owned();
    assert_eq!(refusals, [Some((Code::ApprovalUnavailable, third)), None]);
    // The call and the one consultation that was approved.
    assert_eq!(probe.runs(), 2);
}

/// Calls that come from nowhere else wait for each other's prompts, also when a prompt is open around another call.
#[tokio::test]
async fn questions_of_calls_that_arrive_together_are_open_one_at_a_time() {
    let approver = Arc::new(CountingApprover::default());
    let parts = GateParts::default().with_approvers(vec![Arc::clone(&approver) as Arc<dyn Approver>]);
    let (gate, probe) = gate_with_probe(parts);
    let session = session_in(&AbsPath::root());
    let ids: Vec<String> = (0..8).map(|number| format!("c{number}")).collect();
    let calls = ids.iter().map(|id| call_probe(&gate, &session, id, CallOptions::default()));
    for outcome in futures_util::future::join_all(calls).await {
        assert!(outcome.result.is_ok());
    }
    assert_eq!((probe.runs(), approver.most_open.load(Ordering::SeqCst)), (8, 1));
    // Each was asked about once, and told its place among those that are left.
    let mut places = approver.places.lock().unwrap().clone();
    places.dedup();
    assert_eq!(places, (1..=8).map(|number| (number, 8)).collect::<Vec<_>>());
}

/// A tool that needs approval, and that refuses a text before an approver is asked.
struct GuardedTool;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct GuardedInput {
    text: String,
}

impl Tool for GuardedTool {
    type Input = GuardedInput;

    fn spec(&self) -> ToolSpec {
        ToolSpec::new("guarded", "Refuses the text `refused`.")
    }

    fn intent(&self, input: &GuardedInput, _: &CallContext) -> Intent {
        Intent::new(format!("use {}", input.text), [Effect::State { name: input.text.clone() }])
    }

    async fn guard(&self, input: &GuardedInput, _: &CallContext) -> Result<(), Refusal> {
        match input.text.as_str() {
            "refused" => Err(Refusal::new(Code::ToolFailed, "not this")),
            _ => Ok(()),
        }
    }

    async fn run(&self, input: GuardedInput, _: Cleared) -> CallResult {
        Ok(Output::text(input.text))
    }
}

#[tokio::test]
async fn a_call_that_its_tool_refuses_is_no_question_to_come() {
    let approver = Arc::new(CountingApprover::default());
    let gate = Gate::new(GateParts::default().with_approvers(vec![approver.clone() as Arc<dyn Approver>]));
    gate.register(SourceId::Sdk, GuardedTool).unwrap();
    let session = session_in(&AbsPath::root());
    let calls = ["a", "b", "refused"].map(|text| {
        let call = ToolCall::new(text, "guarded", json!({ "text": text }).to_string());
        gate.call(&session, call, CallOptions::default())
    });
    let outcomes = futures_util::future::join_all(calls).await;
    let is_ok: Vec<bool> = outcomes.iter().map(|outcome| outcome.result.is_ok()).collect();
    assert_eq!(is_ok, [true, true, false]);
    assert_eq!(*approver.places.lock().unwrap(), [(1, 2), (2, 2)]);
}

/// Says yes after other tasks had the chance to ask.
#[derive(Default)]
struct CountingApprover {
    open: AtomicUsize,
    most_open: AtomicUsize,
    /// "n of m" of each question.
    places: Mutex<Vec<(usize, usize)>>,
}

impl Approver for CountingApprover {
    fn name(&self) -> &str {
        "counting"
    }

    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
            self.most_open.fetch_max(open, Ordering::SeqCst);
            for _ in 0..50 {
                tokio::task::yield_now().await;
            }
            let position = request.queue.position();
            self.places.lock().unwrap().push((position.number, position.total));
            self.open.fetch_sub(1, Ordering::SeqCst);
            ApprovalAnswer::Once
        })
    }
}

/// Gives answers in order, and keeps what it was asked.
struct ListedAnswers {
    answers: Mutex<Vec<ApprovalAnswer>>,
    asked: Mutex<Vec<ApprovalRequest>>,
}

impl ListedAnswers {
    fn new(answers: &[ApprovalAnswer]) -> Arc<Self> {
        let mut answers = answers.to_vec();
        answers.reverse();
        Arc::new(Self { answers: Mutex::new(answers), asked: Mutex::default() })
    }

    fn count(&self) -> usize {
        self.asked.lock().unwrap().len()
    }
}

impl Approver for ListedAnswers {
    fn name(&self) -> &str {
        "listed"
    }

    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        self.asked.lock().unwrap().push(request.clone());
        let answer = self.answers.lock().unwrap().pop().unwrap_or(ApprovalAnswer::No { message: None });
        Box::pin(std::future::ready(answer))
    }
}

/// Keeps rules in memory, or cannot.
#[derive(Default)]
struct MemoryGrants {
    is_broken: bool,
    rules: Mutex<Vec<String>>,
}

impl GrantStore for MemoryGrants {
    fn write_rules(&self, rules: &[String], _workspace: &Workspace) -> Result<String, String> {
        if self.is_broken {
            return Err("the disk is full".to_owned());
        }
        self.rules.lock().unwrap().extend(rules.iter().cloned());
        Ok("memory".to_owned())
    }
}

fn parts(approver: &Arc<ListedAnswers>) -> GateParts {
    GateParts::default().with_approvers(vec![Arc::clone(approver) as Arc<dyn Approver>])
}

/// The rule that a question about the probe offers.
async fn offered_rule() -> String {
    let approver = ListedAnswers::new(&[]);
    let (gate, _) = gate_with_probe(parts(&approver));
    call_probe(&gate, &session_in(&AbsPath::root()), "x", CallOptions::default()).await;
    let asked = approver.asked.lock().unwrap();
    let rules = asked[0].card.rules_of_width(RuleWidth::Exact);
    assert_eq!(rules.len(), 1);
    rules[0].clone()
}

#[tokio::test]
async fn only_rules_that_were_offered_are_granted() {
    let offered = offered_rule().await;
    let other = "Bash(*)".to_owned();
    for (rules, is_granted) in [
        (vec![offered.clone()], true),
        (vec![], false),
        (vec![other.clone()], false),
        (vec![offered.clone(), other], false),
    ] {
        for lasting in [false, true] {
            let answer = match lasting {
                true => ApprovalAnswer::Always { rules: rules.clone() },
                false => ApprovalAnswer::Session { rules: rules.clone() },
            };
            let approver = ListedAnswers::new(&[answer, ApprovalAnswer::No { message: None }]);
            let store = Arc::new(MemoryGrants::default());
            let (gate, probe) = gate_with_probe(parts(&approver).with_grant_store(store.clone()));
            let session = session_in(&AbsPath::root());
            let first = call_probe(&gate, &session, "x", CallOptions::default()).await;
            assert!(first.result.is_ok(), "{rules:?}");
            let recorded = match (is_granted, lasting) {
                (false, _) => "once",
                (true, false) => "session",
                (true, true) => "always",
            };
            let approval = first.record.approval.unwrap();
            assert_eq!((approval.by.as_str(), approval.answer.as_str()), ("listed", recorded));
            let second = call_probe(&gate, &session, "x", CallOptions::default()).await;
            assert_eq!(second.result.is_ok(), is_granted, "{rules:?}");
            assert_eq!((probe.runs(), approver.count()), if is_granted { (2, 1) } else { (1, 2) });
            let written = if is_granted && lasting { rules.clone() } else { Vec::new() };
            assert_eq!(*store.rules.lock().unwrap(), written);
            assert_eq!(gate.granted_rules().len(), usize::from(is_granted));
            assert_eq!(
                first.messages.iter().any(|text| text.contains("remembered in memory")),
                !written.is_empty()
            );
        }
    }
}

#[tokio::test]
async fn rules_that_cannot_be_written_last_for_the_session_and_the_user_is_told() {
    let offered = offered_rule().await;
    for store in [None, Some(Arc::new(MemoryGrants { is_broken: true, ..MemoryGrants::default() }))] {
        let approver = ListedAnswers::new(&[ApprovalAnswer::Always { rules: vec![offered.clone()] }]);
        let parts = match &store {
            Some(store) => parts(&approver).with_grant_store(store.clone()),
            None => parts(&approver),
        };
        let (gate, _) = gate_with_probe(parts);
        let session = session_in(&AbsPath::root());
        let first = call_probe(&gate, &session, "x", CallOptions::default()).await;
        let why = if store.is_some() { "the disk is full" } else { "there is no file for remembered rules" };
        assert_eq!(first.messages, [format!("this counts for the session only: {why}")]);
        assert!(call_probe(&gate, &session, "x", CallOptions::default()).await.result.is_ok());
        assert_eq!(approver.count(), 1);
    }
}

#[tokio::test]
async fn scopes_are_offered_where_they_can_last() {
    for (is_last, has_store, scopes) in [
        (false, false, &[GrantScope::Session][..]),
        (false, true, &[GrantScope::Session, GrantScope::Project]),
        (true, true, &[GrantScope::Project]),
        (true, false, &[]),
    ] {
        let approver = ListedAnswers::new(&[]);
        let parts = match has_store {
            true => parts(&approver).with_grant_store(Arc::new(MemoryGrants::default())),
            false => parts(&approver),
        };
        let (gate, _) = gate_with_probe(parts);
        let options = CallOptions::default().with_last_call(is_last);
        call_probe(&gate, &session_in(&AbsPath::root()), "x", options).await;
        assert_eq!(approver.asked.lock().unwrap()[0].card.scopes, scopes, "{is_last} {has_store}");
    }
}

#[tokio::test]
async fn each_answer_has_its_refusal_and_its_record() {
    let message = ApprovalAnswer::No { message: Some("use the other one".to_owned()) };
    for (answer, code, reason, hint, recorded) in [
        (ApprovalAnswer::No { message: None }, Code::Declined, "declined by listed", None, "no"),
        (message, Code::Declined, "declined by listed", Some("use the other one"), "no"),
        (
            ApprovalAnswer::Later,
            Code::ApprovalPending,
            "and the question was handed to listed",
            None,
            "later",
        ),
    ] {
        let approver = ListedAnswers::new(&[answer]);
        let (gate, probe) = gate_with_probe(parts(&approver));
        let outcome = call_probe(&gate, &session_in(&AbsPath::root()), "x", CallOptions::default()).await;
        let refusal = outcome.result.unwrap_err();
        assert_eq!(refusal.code, code);
        assert!(refusal.reason.contains(reason), "{}", refusal.reason);
        if let Some(hint) = hint {
            assert_eq!(refusal.hint, hint);
        }
        assert_eq!(outcome.record.approval.unwrap().answer, recorded);
        assert_eq!(probe.runs(), 0);
    }
}

#[tokio::test]
async fn a_revision_is_recorded_and_what_runs_is_the_revised_input() {
    let input = json!({ "text": "other" }).as_object().unwrap().clone();
    let approver = ListedAnswers::new(&[ApprovalAnswer::Revise { input }, ApprovalAnswer::Once]);
    let (gate, _) = gate_with_probe(parts(&approver));
    let outcome = call_probe(&gate, &session_in(&AbsPath::root()), "x", CallOptions::default()).await;
    assert_eq!(outcome.result.unwrap().model_text(), "other");
    assert_eq!(outcome.record.revisions, ["approver: listed"]);
    assert_eq!(outcome.record.approval.unwrap().answer, "once");
    // The second question was about the revised input.
    let asked = approver.asked.lock().unwrap();
    let texts: Vec<&str> = asked.iter().map(|request| request.input["text"].as_str().unwrap()).collect();
    assert_eq!(texts, ["x", "other"]);
    assert_ne!(asked[0].input_sha256, asked[1].input_sha256);
    assert_ne!(asked[0].id, asked[1].id);
}

#[tokio::test]
async fn a_call_that_may_not_ask_is_refused_without_a_question() {
    let approver = ListedAnswers::new(&[ApprovalAnswer::Once]);
    let (gate, probe) = gate_with_probe(parts(&approver));
    let session = session_in(&AbsPath::root());
    let outcome = call_probe(&gate, &session, "x", CallOptions::default().without_questions()).await;
    let refusal = outcome.result.unwrap_err();
    assert_eq!((refusal.code, probe.runs(), approver.count()), (Code::ApprovalUnavailable, 0, 0));
    assert!(refusal.reason.ends_with("and this call may not ask"), "{}", refusal.reason);
    assert!(refusal.hint.contains("probe"), "{}", refusal.hint);
    // Where no question is needed, it runs.
    gate.set_policy(allow_all(&["probe"]));
    let outcome = call_probe(&gate, &session, "x", CallOptions::default().without_questions()).await;
    assert!(outcome.result.is_ok());
}

/// A rule that changed while a question waited answers it only if that rule is about this call.
#[tokio::test]
async fn a_question_that_waited_is_judged_by_the_rules_of_now() {
    let offered = offered_rule().await;
    for (first, asked) in [(ApprovalAnswer::Session { rules: vec![offered] }, 1), (ApprovalAnswer::Once, 3)] {
        let approver = ListedAnswers::new(&[first, ApprovalAnswer::Once, ApprovalAnswer::Once]);
        let (gate, probe) = gate_with_probe(parts(&approver));
        let session = session_in(&AbsPath::root());
        let calls = ["a", "b", "c"].map(|id| call_probe(&gate, &session, id, CallOptions::default()));
        for outcome in futures_util::future::join_all(calls).await {
            assert!(outcome.result.is_ok(), "{:?}", outcome.result);
        }
        assert_eq!((probe.runs(), approver.count()), (3, asked));
    }
}

/// The rules of a call hold also when it is judged again, because the rules of the gate changed while it waited.
#[tokio::test]
async fn the_rules_of_a_call_hold_when_it_is_judged_again() {
    let offered = offered_rule().await;
    let approver =
        ListedAnswers::new(&[ApprovalAnswer::Session { rules: vec![offered] }, ApprovalAnswer::Once]);
    let (gate, probe) = gate_with_probe(parts(&approver));
    let session = session_in(&AbsPath::root());
    let mut always_ask = LayerRules::new(Layer::Cli, AbsPath::root());
    always_ask.ask = vec!["probe".into()];
    let first = call_probe(&gate, &session, "a", CallOptions::default());
    let second = call_probe(&gate, &session, "b", CallOptions::default().with_extra_rules(always_ask));
    let (first, second) = tokio::join!(first, second);
    assert!(first.result.is_ok() && second.result.is_ok(), "{:?} {:?}", first.result, second.result);
    // The rule that the first answer granted does not answer for the second call.
    assert_eq!((probe.runs(), approver.count()), (2, 2));
}

/// A check finds the tools that a call of the same session finds, and no others.
#[tokio::test]
async fn a_check_sees_the_limits_of_its_session() {
    let approver = ListedAnswers::new(&[]);
    let (gate, _probe) = gate_with_probe(parts(&approver));
    let session = session_in(&AbsPath::root());
    let call = ToolCall::new("x", "probe", json!({ "text": "x" }).to_string());
    assert!(gate.check(&session, &call).is_ok());
    let limits = SessionLimits::default().with_tools(BTreeSet::new());
    let limited = session.child(Principal::new("subagent"), limits);
    let refusal = gate.check(&limited, &call).unwrap_err();
    let called = gate.call(&limited, call, CallOptions::default()).await.result.unwrap_err();
    assert_eq!((refusal.code, refusal.stage), (called.code, called.stage));
    assert_eq!(refusal.stage, Stage::Resolve);
}

/// A denial is final: its hint is that of the judgement, and no approver hears of it.
#[tokio::test]
async fn a_denial_has_the_hint_of_the_judgement_and_asks_no_one() {
    let approver = ListedAnswers::new(&[ApprovalAnswer::Once]);
    let policy = RawPolicy::default().with_mode(Mode::DontAsk);
    let (gate, probe) = gate_with_probe(parts(&approver).with_policy(policy));
    let outcome = call_probe(&gate, &session_in(&AbsPath::root()), "x", CallOptions::default()).await;
    let refusal = outcome.result.unwrap_err();
    assert_eq!((refusal.stage, probe.runs(), approver.count()), (Stage::Judge, 0, 0));
    assert!(refusal.code == Code::DeniedByMode && refusal.hint.contains("probe"), "{refusal:?}");
}
