//! What the stages do beside the straight path: preconditions before a question, tools that require the user, timeouts of
//! tools, tools that are still expected, questions of tools, and what a call may change about its session.

use super::fussy_tool::{FussyInput, FussyTool};
use futures_util::future::BoxFuture;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use toolgate_gate::{
    ApprovalAnswer, ApprovalRequest, Approver, CallOptions, CallOutcome, Cleared, FnTool, Gate, GateParts,
    Hook, HookAnswer, HookCall, HookEvent, HookFailure, QuestionAnswer, QuestionOption, QuestionOutcome,
    QuestionRequest, RegisterError, Source, SourceTools, Tool, ToolSpec, UserQuestion, Visibility,
};
use toolgate_policy::RawPolicy;
use toolgate_proto::{
    AbsPath, CallResult, Code, CommandLine, Effect, Intent, Output, Refusal, ShellKind, SourceId, Stage,
    ToolCall, ToolIdentity, Verdict, WriteKind,
};
use toolgate_testkit::{ProbeBehaviour, ProbeTool, allow_all, session_in};

/// Says yes, and keeps what it was asked.
#[derive(Default)]
struct YesApprover(Mutex<Vec<ApprovalRequest>>);

impl YesApprover {
    fn count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl Approver for YesApprover {
    fn name(&self) -> &str {
        "yes"
    }

    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        self.0.lock().unwrap().push(request.clone());
        Box::pin(std::future::ready(ApprovalAnswer::Once))
    }
}

fn gate_asking(policy: RawPolicy) -> (Arc<Gate>, Arc<YesApprover>) {
    let approver = Arc::new(YesApprover::default());
    let approvers = vec![Arc::clone(&approver) as Arc<dyn Approver>];
    (Arc::new(Gate::new(GateParts::default().with_policy(policy).with_approvers(approvers))), approver)
}

async fn call(gate: &Gate, tool: &str, input: serde_json::Value) -> CallOutcome {
    let call = ToolCall::new("c", tool, input.to_string());
    gate.call(&session_in(&AbsPath::root()), call, CallOptions::default()).await
}

#[tokio::test]
async fn what_the_tool_would_refuse_is_refused_before_anyone_is_asked() {
    let (gate, approver) = gate_asking(RawPolicy::default());
    gate.register(SourceId::Sdk, FussyTool::new()).unwrap();
    for (input, code) in [
        (json!({ "guard": "it was not read" }), Code::NotRead),
        (json!({ "preview": "refuse" }), Code::BadArgument),
    ] {
        let refusal = call(&gate, "fussy", input).await.result.unwrap_err();
        assert_eq!((refusal.code, refusal.stage), (code, Stage::Guard));
        assert_eq!(approver.count(), 0);
    }
    // What would change is on the card, and nothing is where nothing is shown.
    assert!(call(&gate, "fussy", json!({ "preview": "+new" })).await.result.is_ok());
    assert!(call(&gate, "fussy", json!({})).await.result.is_ok());
    let asked = approver.0.lock().unwrap();
    let diffs: Vec<Option<&str>> = asked.iter().map(|request| request.card.diff.as_deref()).collect();
    assert_eq!(diffs, [Some("+new"), None]);
}

#[tokio::test]
async fn advice_to_add_a_rule_is_not_given_for_a_call_that_the_tool_would_refuse() {
    let gate = Gate::new(GateParts::default().with_policy(RawPolicy::default()));
    gate.register(SourceId::Sdk, FussyTool::new()).unwrap();
    for options in [CallOptions::default(), CallOptions::default().without_questions()] {
        let session = session_in(&AbsPath::root());
        let call = |input: serde_json::Value| {
            let call = ToolCall::new("c", "fussy", input.to_string());
            gate.call(&session, call, options.clone())
        };
        let refusal = call(json!({ "guard": "it was not read" })).await.result.unwrap_err();
        assert_eq!((refusal.code, refusal.stage), (Code::NotRead, Stage::Guard));
        assert_eq!(call(json!({})).await.result.unwrap_err().code, Code::ApprovalUnavailable);
    }
}

#[tokio::test]
async fn the_user_is_asked_where_the_tool_requires_it_and_only_there() {
    let (gate, approver) = gate_asking(allow_all(&["fussy"]));
    gate.register(SourceId::Sdk, FussyTool::new()).unwrap();
    assert!(call(&gate, "fussy", json!({})).await.result.is_ok());
    assert_eq!(approver.count(), 0);
    assert!(call(&gate, "fussy", json!({ "user": true })).await.result.is_ok());
    assert_eq!(approver.count(), 1);
    assert!(approver.0.lock().unwrap()[0].requires_user);
    // A tool that demands one for every call needs not say so for each.
    let mut always = FussyTool::new();
    always.spec = always.spec.with_required_interaction(true);
    gate.register(SourceId::Sdk, always).unwrap();
    for user in [false, true] {
        assert!(call(&gate, "fussy", json!({ "user": user })).await.result.is_ok());
    }
    assert_eq!(approver.count(), 3);
}

/// A hook's consent does not stand in for the user where a rule or the tool requires it; otherwise it does, and the rules
/// that it remembers are granted.
#[tokio::test]
async fn a_hook_answers_for_no_user() {
    struct ConsentingHook(Vec<String>);
    impl Hook for ConsentingHook {
        fn name(&self) -> &str {
            "consenting"
        }
        fn handles(&self, event: HookEvent, _: &ToolIdentity) -> bool {
            event == HookEvent::PermissionRequest
        }
        fn handle_call<'a>(&'a self, _: HookCall<'a>) -> BoxFuture<'a, Result<HookAnswer, HookFailure>> {
            let mut answer = HookAnswer::allow();
            answer.remember.clone_from(&self.0);
            Box::pin(std::future::ready(Ok(answer)))
        }
    }
    let mut explicit = allow_all(&[]);
    explicit.layers[0].ask.push("fussy".into());
    for (policy, input, remember, by, answer) in [
        (RawPolicy::default(), json!({}), vec![], "hook: consenting", "once"),
        (RawPolicy::default(), json!({}), vec!["fussy".to_owned()], "hook: consenting", "session"),
        (RawPolicy::default(), json!({ "user": true }), vec![], "yes", "once"),
        (explicit, json!({}), vec![], "yes", "once"),
    ] {
        let approver = Arc::new(YesApprover::default());
        let parts = GateParts::default()
            .with_policy(policy)
            .with_hooks(vec![Arc::new(ConsentingHook(remember.clone()))])
            .with_approvers(vec![Arc::clone(&approver) as Arc<dyn Approver>]);
        let gate = Gate::new(parts);
        gate.register(SourceId::Sdk, FussyTool::new()).unwrap();
        let outcome = call(&gate, "fussy", input.clone()).await;
        assert!(outcome.result.is_ok());
        let approval = outcome.record.approval.unwrap();
        assert_eq!((approval.by.as_str(), approval.answer.as_str()), (by, answer), "{input}");
        assert_eq!(gate.granted_rules(), remember, "{input}");
        // The record says where a consent did not count.
        let is_ignored =
            outcome.record.hooks[0].detail.as_ref().is_some_and(|text| text.contains("does not count"));
        assert_eq!(is_ignored, by == "yes", "{input}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_timeout_of_a_tool_counts_where_the_caller_sets_none() {
    let (gate, _) = gate_asking(allow_all(&["fussy"]));
    let mut tool = FussyTool::new();
    tool.spec = tool.spec.with_timeout(Duration::from_secs(10));
    gate.register(SourceId::Sdk, tool).unwrap();
    assert!(call(&gate, "fussy", json!({ "millis": 9_000 })).await.result.is_ok());
    let started = Instant::now();
    let refusal = call(&gate, "fussy", json!({ "millis": 3_600_000 })).await.result.unwrap_err();
    assert_eq!((refusal.code, refusal.stage), (Code::DeadlinePassed, Stage::Run));
    assert!(started.elapsed() < Duration::from_secs(3_600), "{:?}", started.elapsed());
    // A deadline of the caller counts instead.
    let options = CallOptions::default().with_timeout(Some(Duration::from_secs(7_200)));
    let long = ToolCall::new("c", "fussy", json!({ "millis": 3_600_000 }).to_string());
    assert!(gate.call(&session_in(&AbsPath::root()), long, options).await.result.is_ok());
}

#[tokio::test]
async fn a_tool_says_how_its_use_and_its_result_are_shown() {
    let (gate, approver) = gate_asking(RawPolicy::default());
    gate.register(SourceId::Sdk, FussyTool::new()).unwrap();
    let own = call(&gate, "fussy", json!({ "display": "its own" })).await.result.unwrap();
    assert_eq!(own.display_text(), "its own");
    let rendered = call(&gate, "fussy", json!({})).await.result.unwrap();
    assert_eq!(rendered.display_text(), "rendered fussed");
    let asked = approver.0.lock().unwrap();
    let titles: Vec<&str> = asked.iter().map(|request| request.question.description.as_str()).collect();
    assert_eq!(titles, ["use its own", "make a fuss"]);
}

/// Only a built-in tool that has asked the user brings an answer of the user.
#[tokio::test]
async fn a_rule_is_granted_by_a_built_in_tool_that_asks_and_by_no_other() {
    let plugin = || SourceId::Plugin { plugin: "p".to_owned() };
    for (source, asks, is_granted) in [
        (SourceId::Builtin, true, true),
        (SourceId::Builtin, false, false),
        (SourceId::Sdk, true, false),
        (SourceId::Sdk, false, false),
        (plugin(), true, false),
    ] {
        let (gate, _) = gate_asking(allow_all(&["fussy"]));
        let mut tool = FussyTool::new();
        tool.spec = tool.spec.with_required_interaction(asks);
        gate.register(source.clone(), tool).unwrap();
        let outcome = call(&gate, "fussy", json!({ "grant": "probe" })).await;
        assert_eq!(gate.granted_rules().len(), usize::from(is_granted), "{source:?} {asks}");
        let is_reported = outcome.messages.iter().any(|message| message.contains("was not granted"));
        assert_eq!(is_reported, !is_granted, "{source:?} {asks}");
    }
}

/// A file with several names is judged under each of them, where all are known.
#[test]
fn a_write_is_judged_under_every_name_of_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let outer = dir.path().canonicalize().unwrap();
    let root = outer.join("ws");
    std::fs::create_dir(&root).unwrap();
    for name in ["a", "guarded", "plain"] {
        std::fs::write(root.join(name), "x").unwrap();
    }
    std::fs::hard_link(root.join("a"), root.join("second")).unwrap();
    std::fs::hard_link(root.join("guarded"), root.join("other")).unwrap();
    std::fs::write(outer.join("outside"), "x").unwrap();
    std::fs::hard_link(outer.join("outside"), root.join("linked")).unwrap();
    let root = AbsPath::new(root).unwrap();
    let mut policy = allow_all(&["Edit"]);
    policy.layers[0].anchor = root.clone();
    policy.layers[0].deny.push("Edit(guarded)".into());
    let (gate, _) = gate_asking(policy);
    let verdict = |name: &str| {
        let mut tool = FussyTool::new();
        tool.effects = vec![Effect::Write { path: root.join(name), kind: WriteKind::Edit }];
        gate.register(SourceId::Sdk, tool).unwrap();
        let call = ToolCall::new("c", "fussy", "{}");
        gate.check(&session_in(&root), &call).unwrap().verdict.as_str()
    };
    assert_eq!(verdict("plain"), "allow");
    assert_eq!(verdict("a"), "allow", "both names are in the workspace");
    assert_eq!(verdict("other"), "deny", "its other name is denied");
    assert_eq!(verdict("linked"), "ask", "its other name is not known");
}

/// The patterns of a command are expanded as bash would, and each file is judged.
#[test]
fn the_files_that_a_pattern_matches_are_judged() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join("sub/deep")).unwrap();
    for name in ["a.txt", "b.md", "secret.txt", "sub/a.txt", "sub/secret.txt", "sub/deep/secret.txt"] {
        std::fs::write(root.join(name), "x").unwrap();
    }
    let root = AbsPath::new(root).unwrap();
    let mut policy = allow_all(&[]);
    policy.layers[0].anchor = root.clone();
    policy.layers[0].deny.extend(["Read(//**/secret.txt)".into()]);
    let (gate, _) = gate_asking(policy);
    let is_denied = |text: &str| {
        let command = CommandLine::new(text, ShellKind::Bash, root.clone());
        let mut tool = FussyTool::new();
        tool.effects = vec![Effect::Exec { command }];
        gate.register(SourceId::Sdk, tool).unwrap();
        let call = ToolCall::new("c", "fussy", "{}");
        matches!(gate.check(&session_in(&root), &call).unwrap().verdict, Verdict::Deny(_))
    };
    for (text, wanted) in [
        ("cat secret.txt", true),
        ("cat *.txt", true),
        ("cat *.md", false),
        ("cat a*", false),
        ("cat sub/*.txt", true),
        ("cat sub/a*", false),
        ("cat */secret.txt", true),
        ("cat s*/d*/*", true),
        ("cat s*/d*/a*", false),
        ("cat x*/*.txt", false),
    ] {
        assert_eq!(is_denied(text), wanted, "{text}");
    }
}

fn disabled_tool(name: &str) -> impl Tool + use<> {
    let run = |_: FussyInput, _: Cleared| async { Ok(Output::text("never")) };
    FnTool::new(ToolSpec::new(name, "Is not there."), run).enabled(|_| false)
}

/// A source whose tool comes late, or never.
#[derive(Default)]
struct LateSource {
    tools: OnceLock<Arc<SourceTools>>,
    /// What becomes of a tool that is waited for.
    problem: Option<&'static str>,
    waits: AtomicUsize,
}

impl Source for LateSource {
    fn id(&self) -> SourceId {
        SourceId::Plugin { plugin: "late".to_owned() }
    }

    fn tools(&self, _: &SourceTools) -> Result<(), RegisterError> {
        Ok(())
    }

    fn start(&self, tools: &Arc<SourceTools>) -> Result<(), RegisterError> {
        let _ = self.tools.set(Arc::clone(tools));
        Ok(())
    }

    fn expects_tool(&self, name: &str) -> Option<SourceId> {
        name.starts_with("late").then(|| self.id())
    }

    fn wait_for_tool<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<Refusal>> {
        self.waits.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            match self.problem {
                Some(problem) => {
                    if name == "late_disabled" {
                        self.tools.get().unwrap().register(disabled_tool(name)).unwrap();
                    }
                    Some(Refusal::new(Code::RemoteUnavailable, problem))
                }
                None if name == "late_gone" => None,
                None => {
                    let probe = ProbeTool::new(name, ProbeBehaviour::Succeed);
                    self.tools.get().unwrap().register(probe).unwrap();
                    None
                }
            }
        })
    }
}

#[tokio::test]
async fn a_tool_that_a_source_expects_is_waited_for() {
    for problem in [None, Some("it does not start")] {
        let (gate, _) = gate_asking(allow_all(&["late", "late_gone", "late_hidden"]));
        let source = Arc::new(LateSource { problem, ..LateSource::default() });
        let _attached = gate.add_source(Arc::clone(&source)).unwrap();
        let text = json!({ "text": "x" });
        // A name that no source expects is not waited for.
        let code = call(&gate, "other", text.clone()).await.result.unwrap_err().code;
        assert_eq!((code, source.waits.load(Ordering::SeqCst)), (Code::UnknownTool, 0));
        // Nor is one that the user hides, whether it is there or not.
        gate.set_visibility(Visibility::default().with_hidden(["late_hidden".to_owned()]));
        let code = call(&gate, "late_hidden", text.clone()).await.result.unwrap_err().code;
        assert_eq!((code, source.waits.load(Ordering::SeqCst)), (Code::UnknownTool, 0));
        gate.register(SourceId::Sdk, ProbeTool::new("late_hidden", ProbeBehaviour::Succeed)).unwrap();
        let code = call(&gate, "late_hidden", text.clone()).await.result.unwrap_err().code;
        assert_eq!((code, source.waits.load(Ordering::SeqCst)), (Code::UnknownTool, 0));
        // Nor is one that is there and not enabled.
        gate.register(SourceId::Sdk, disabled_tool("late_off")).unwrap();
        let code = call(&gate, "late_off", json!({})).await.result.unwrap_err().code;
        assert_eq!((code, source.waits.load(Ordering::SeqCst)), (Code::UnknownTool, 0));
        // One that is expected comes, or the source says why not, or it does not come and is unknown.
        let found = call(&gate, "late", text.clone()).await.result;
        let gone = call(&gate, "late_gone", text).await.result.unwrap_err();
        assert_eq!(source.waits.load(Ordering::SeqCst), 2);
        match problem {
            None => {
                assert_eq!(found.unwrap().model_text(), "x");
                assert_eq!(gone.code, Code::UnknownTool);
            }
            Some(problem) => {
                let refusal = found.unwrap_err();
                assert_eq!((refusal.code, refusal.stage), (Code::RemoteUnavailable, Stage::Resolve));
                assert!(refusal.reason.contains(problem) && gone.reason.contains(problem));
                // One that came after all and is not enabled is unknown, like any that is hidden.
                let code = call(&gate, "late_disabled", json!({})).await.result.unwrap_err().code;
                assert_eq!(code, Code::UnknownTool);
            }
        }
    }
}

/// Answers the questions of tools as the test wants.
#[derive(Clone, Copy)]
enum QuestionBehaviour {
    Pass,
    Answer,
    AnswerLate,
    Hang,
    Panic,
}

struct QuestionApprover(QuestionBehaviour);

impl Approver for QuestionApprover {
    fn name(&self) -> &str {
        "user"
    }

    fn ask<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(std::future::ready(ApprovalAnswer::Pass))
    }

    fn ask_questions<'a>(&'a self, request: &'a QuestionRequest) -> BoxFuture<'a, QuestionOutcome> {
        Box::pin(async move {
            let answer = QuestionAnswer::new(vec!["a".to_owned()]);
            match self.0 {
                QuestionBehaviour::Pass => QuestionOutcome::Pass,
                QuestionBehaviour::Answer => QuestionOutcome::Answered(vec![answer]),
                QuestionBehaviour::AnswerLate => {
                    sleep(Duration::from_secs(9)).await;
                    QuestionOutcome::Answered(vec![answer])
                }
                QuestionBehaviour::Hang => std::future::pending().await,
                QuestionBehaviour::Panic => panic!("{} was asked", request.id),
            }
        })
    }
}

/// Asks one question, and returns the outcome as text.
async fn ask_one(cleared: Cleared) -> CallResult {
    let option = |label: &str| QuestionOption::new(label, "");
    let question = UserQuestion::new("Which?", "Choice", vec![option("a"), option("b")]);
    cleared.ask_user(vec![question]).await.map(|outcome| Output::text(format!("{outcome:?}")))
}

#[tokio::test(start_paused = true)]
async fn questions_of_a_tool_go_down_the_chain_and_silence_has_an_outcome() {
    use QuestionBehaviour::{Answer, AnswerLate, Hang, Panic, Pass};
    let answered = r#"Answered([QuestionAnswer { chosen: ["a"], text: None }])"#;
    for (chain, wanted) in [
        (&[Answer][..], Ok(answered)),
        (&[Pass, Answer, Hang], Ok(answered)),
        (&[AnswerLate], Ok(answered)),
        (&[Hang, Answer], Ok("TimedOut { after: 10s }")),
        (&[Panic, Answer], Ok(r#"Lost { why: "`user` crashed" }"#)),
        (&[Pass], Err(Code::ApprovalUnavailable)),
        (&[], Err(Code::ApprovalUnavailable)),
    ] {
        let approvers =
            chain.iter().map(|behaviour| Arc::new(QuestionApprover(*behaviour)) as Arc<dyn Approver>);
        let parts = GateParts::default()
            .with_approvers(approvers.collect())
            .with_approval_timeout(Duration::from_secs(10));
        let gate = Gate::new(parts);
        for (name, effects) in [("asks", vec![Effect::Ask]), ("silent", vec![])] {
            let tool = FnTool::new(ToolSpec::new(name, "Asks."), |_: FussyInput, cleared| ask_one(cleared))
                .intent(move |_, _| Intent::new("ask", effects.clone()));
            gate.register(SourceId::Sdk, tool).unwrap();
        }
        let result = call(&gate, "asks", json!({})).await.result;
        let answer = result.map(|output| output.model_text()).map_err(|refusal| refusal.code);
        assert_eq!(answer.as_deref().map_err(|code| *code), wanted);
        // A tool that did not say that it asks has no user.
        let refusal = call(&gate, "silent", json!({})).await.result.unwrap_err();
        assert_eq!(refusal.code, Code::ApprovalUnavailable);
    }
}

/// An approval does not hide which rule asked for it.
#[tokio::test]
async fn the_rule_that_asked_is_in_the_terms_of_the_run() {
    let mut policy = allow_all(&[]);
    policy.layers[0].ask.push("terms".into());
    let (gate, approver) = gate_asking(policy);
    let tool = FnTool::new(
        ToolSpec::new("terms", "Tells its terms."),
        |_: FussyInput, cleared: Cleared| async move {
            let reason = &cleared.terms().reason;
            Ok(Output::text(format!("{} by {:?}", reason.text, reason.rule.as_ref().map(|rule| &rule.text))))
        },
    );
    gate.register(SourceId::Sdk, tool).unwrap();
    let text = call(&gate, "terms", json!({})).await.result.unwrap().model_text();
    assert_eq!(text, r#"yes approved it by Some("terms")"#);
    assert_eq!(approver.count(), 1);
}

/// Never answers.
struct SilentApprover;

impl Approver for SilentApprover {
    fn name(&self) -> &str {
        "silent"
    }

    fn ask<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(std::future::pending())
    }
}

/// On the paused clock of the test.
#[tokio::test(start_paused = true)]
async fn a_question_waits_for_300_seconds_unless_the_builder_says_otherwise() {
    for (timeout, seconds) in [(None, 300), (Some(Duration::from_secs(7)), 7)] {
        let parts = GateParts::default().with_approvers(vec![Arc::new(SilentApprover)]);
        let parts = match timeout {
            Some(timeout) => parts.with_approval_timeout(timeout),
            None => parts,
        };
        let gate = Gate::new(parts);
        gate.register(SourceId::Sdk, FussyTool::new()).unwrap();
        let begun = Instant::now();
        let refusal = call(&gate, "fussy", json!({})).await.result.unwrap_err();
        assert_eq!((refusal.code, begun.elapsed().as_secs()), (Code::ApprovalTimedOut, seconds));
    }
}

/// On the paused clock of the test.
#[tokio::test(start_paused = true)]
async fn a_cancelled_tool_has_2_seconds_to_end_by_itself() {
    let gate = Gate::new(GateParts::default().with_policy(allow_all(&["fussy"])));
    gate.register(SourceId::Sdk, FussyTool::new()).unwrap();
    let session = session_in(&AbsPath::root());
    // The tool does not look at the cancellation: the gate waits for its end within the time, and gives it up after it.
    for (millis, waited) in [(1_900, 1_900), (2_100, 2_000)] {
        let cancel = CancellationToken::new();
        let work = ToolCall::new("c", "fussy", json!({ "millis": millis }).to_string());
        let begun = Instant::now();
        let options = CallOptions::default().with_cancel(cancel.clone());
        let (outcome, ()) = tokio::join!(gate.call(&session, work, options), async {
            tokio::task::yield_now().await;
            cancel.cancel();
        });
        assert_eq!(outcome.result.unwrap_err().code, Code::Cancelled);
        assert_eq!(begun.elapsed().as_millis(), waited);
    }
}
