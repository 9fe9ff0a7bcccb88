//! Plan mode and questions to the user, through the gate.

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use toolgate_gate::{
    ApprovalAnswer, ApprovalRequest, Approver, CallOptions, Gate, GateParts, QuestionAnswer, QuestionOutcome,
    QuestionRequest, Session,
};
use toolgate_policy::{Layer, LayerRules, ManagedRestrictions, RawPolicy};
use toolgate_proto::{AbsPath, CallResult, Code, Mode, ToolCall};
use toolgate_tools::{StateConfig, Toolset, register, set_state_config};

/// A user who gives prepared answers, and remembers what was asked.
#[derive(Default)]
struct ScriptedUser {
    approval: Option<ApprovalAnswer>,
    outcome: Option<QuestionOutcome>,
    approvals: Mutex<Vec<ApprovalRequest>>,
}

impl Approver for ScriptedUser {
    fn name(&self) -> &str {
        "user"
    }

    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        self.approvals.lock().unwrap().push(request.clone());
        Box::pin(std::future::ready(self.approval.clone().unwrap_or(ApprovalAnswer::No { message: None })))
    }

    fn ask_questions<'a>(&'a self, _request: &'a QuestionRequest) -> BoxFuture<'a, QuestionOutcome> {
        match self.outcome.clone() {
            Some(outcome) => Box::pin(std::future::ready(outcome)),
            None => Box::pin(std::future::pending()),
        }
    }
}

/// The claude toolset with rules that allow everything.
struct PlanFixture {
    gate: Gate,
    session: Session,
    root: AbsPath,
    user: Arc<ScriptedUser>,
    runtime: tokio::runtime::Runtime,
    _dir: tempfile::TempDir,
}

impl PlanFixture {
    fn new(mode: Mode, user: ScriptedUser) -> Self {
        Self::with_restrictions(mode, user, ManagedRestrictions::default())
    }

    fn with_restrictions(mode: Mode, user: ScriptedUser, managed: ManagedRestrictions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let outer = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        let root = outer.join("project");
        std::fs::create_dir(&root).unwrap();
        let mut rules = LayerRules::new(Layer::User, root.clone());
        rules.allow = ["Write", "Edit", "Bash", "Bash(*)", "ExitPlanMode"].map(Into::into).to_vec();
        let mut policy = RawPolicy::default().with_mode(mode).with_layers(vec![rules]);
        policy.managed = managed;
        let user = Arc::new(user);
        let approver: Arc<dyn Approver> = Arc::clone(&user) as Arc<dyn Approver>;
        let parts = GateParts::default()
            .with_policy(policy)
            .with_approvers(vec![approver])
            .with_approval_timeout(Duration::from_millis(300));
        let gate = Gate::new(parts);
        register(&gate, Toolset::Claude).unwrap();
        let session = super::file_fixture::session(&root, "one");
        set_state_config(&session, StateConfig::default().with_dir(Some(outer.join("state"))));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { gate, session, root, user, runtime, _dir: dir }
    }

    fn call(&self, tool: &str, input: &Value) -> CallResult {
        let call = ToolCall::new("call", tool, input.to_string());
        self.runtime.block_on(self.gate.call(&self.session, call, CallOptions::default())).result
    }

    fn write(&self) -> CallResult {
        let name = toolgate_files::generate_id("file");
        self.call("Write", &json!({ "file_path": self.root.join(name), "content": "x" }))
    }
}

#[test]
fn plan_mode_holds_back_changes_whatever_rules_and_modes_say() {
    for mode in [Mode::Default, Mode::AcceptEdits, Mode::Bypass] {
        let fixture = PlanFixture::new(mode, ScriptedUser::default());
        assert!(fixture.write().is_ok(), "{mode}");
        assert!(fixture.user.approvals.lock().unwrap().is_empty());
        fixture.call("EnterPlanMode", &json!({})).unwrap();
        assert_eq!(fixture.write().unwrap_err().code, Code::Declined, "{mode}");
        let touch = json!({ "command": "touch x" });
        assert_eq!(fixture.call("Bash", &touch).unwrap_err().code, Code::Declined, "{mode}");
        assert!(fixture.call("ls", &json!({})).is_ok());
        // A plan that is declined leaves it in force.
        let refusal = fixture.call("ExitPlanMode", &json!({ "plan": "1. change" })).unwrap_err();
        assert_eq!(refusal.code, Code::Declined);
        assert_eq!(fixture.write().unwrap_err().code, Code::Declined, "{mode}");
    }
}

#[test]
fn in_mode_dont_ask_plan_mode_denies_changes() {
    let fixture = PlanFixture::new(Mode::DontAsk, ScriptedUser::default());
    fixture.call("EnterPlanMode", &json!({})).unwrap();
    assert!(fixture.write().is_err());
}

#[test]
fn an_approved_plan_is_kept_and_ends_plan_mode() {
    for mode in [Mode::Default, Mode::Plan] {
        let user = ScriptedUser { approval: Some(ApprovalAnswer::Once), ..ScriptedUser::default() };
        let fixture = PlanFixture::new(mode, user);
        fixture.call("EnterPlanMode", &json!({})).unwrap();
        let output = fixture.call("ExitPlanMode", &json!({ "plan": "1. change" })).unwrap();
        let structured = output.structured.unwrap();
        let file = structured["filePath"].as_str().unwrap();
        assert_eq!(std::fs::read_to_string(file).unwrap(), "1. change\n");
        {
            let asked = fixture.user.approvals.lock().unwrap();
            let [request] = asked.as_slice() else { panic!("one question, for the plan") };
            assert_eq!(request.card.diff.as_deref(), Some("1. change"), "the plan is shown");
            assert!(request.question.suggestions.is_empty(), "nothing else is granted with it");
            assert!(request.requires_user);
        }
        assert!(fixture.write().is_ok());
        assert_eq!(fixture.user.approvals.lock().unwrap().len(), 1);
    }
}

#[test]
fn a_managed_plan_mode_is_not_left_and_the_user_is_not_asked() {
    let mut managed = ManagedRestrictions::default();
    managed.require_plan_mode = true;
    let user = ScriptedUser { approval: Some(ApprovalAnswer::Once), ..ScriptedUser::default() };
    let fixture = PlanFixture::with_restrictions(Mode::Plan, user, managed);
    let refusal = fixture.call("ExitPlanMode", &json!({ "plan": "1. change" })).unwrap_err();
    assert_eq!(refusal.code, Code::DeniedByMode);
    assert!(refusal.reason.contains("managed settings require plan mode"), "{}", refusal.reason);
    assert!(fixture.user.approvals.lock().unwrap().is_empty());
    // Not even a session that says that it has left.
    fixture.session.leave_plan_mode();
    assert!(fixture.write().is_ok(), "the user approves this one change");
    assert_eq!(fixture.user.approvals.lock().unwrap().len(), 1);
}

fn question() -> Value {
    let option = |label: &str| json!({ "label": label, "description": "d" });
    json!({ "questions": [
        { "question": "Which?", "header": "Choice", "options": [option("a"), option("b")] },
        { "question": "What else?", "header": "More", "options": [option("c"), option("d")], "multiSelect": true },
    ] })
}

fn answered(first: &str, second: &[&str], text: Option<&str>) -> QuestionOutcome {
    QuestionOutcome::Answered(vec![
        QuestionAnswer::new(vec![first.to_owned()]),
        QuestionAnswer::new(second.iter().map(|label| (*label).to_owned()).collect())
            .with_text(text.map(str::to_owned)),
    ])
}

#[test]
fn answers_reach_the_model_as_text() {
    for mode in [Mode::Default, Mode::Plan, Mode::Bypass] {
        let user = ScriptedUser {
            outcome: Some(answered("b", &["c", "d"], Some("and e"))),
            ..ScriptedUser::default()
        };
        let fixture = PlanFixture::new(mode, user);
        let output = fixture.call("AskUserQuestion", &question()).unwrap();
        assert_eq!(
            output.structured.unwrap()["answers"],
            json!({ "Which?": "b", "What else?": "c, d, and e" })
        );
        assert!(fixture.user.approvals.lock().unwrap().is_empty());
    }
}

#[test]
fn silence_and_a_refusal_to_answer_are_outcomes_of_their_own() {
    let outcome = |user: ScriptedUser| -> Result<String, toolgate_proto::Refusal> {
        let fixture = PlanFixture::new(Mode::Bypass, user);
        let output = fixture.call("AskUserQuestion", &question())?;
        let structured = output.structured.unwrap();
        assert_eq!(structured["answers"], json!({}));
        Ok(structured["outcome"].as_str().unwrap().to_owned())
    };
    assert_eq!(outcome(ScriptedUser::default()), Ok("timed_out".to_owned()));
    let declined = Some(QuestionOutcome::Declined { message: None });
    assert_eq!(
        outcome(ScriptedUser { outcome: declined, ..ScriptedUser::default() }),
        Ok("declined".to_owned())
    );
    for (given, code) in [
        (QuestionOutcome::Pass, Code::ApprovalUnavailable),
        (QuestionOutcome::Lost { why: "gone".to_owned() }, Code::ApprovalLost),
        // Labels that were not offered, and fewer answers than questions, are no answers.
        (answered("z", &["c"], None), Code::ApprovalLost),
        (answered("a", &[], None), Code::ApprovalLost),
        (QuestionOutcome::Answered(Vec::new()), Code::ApprovalLost),
    ] {
        let user = ScriptedUser { outcome: Some(given.clone()), ..ScriptedUser::default() };
        assert_eq!(outcome(user).unwrap_err().code, code, "{given:?}");
    }
}

#[test]
fn an_answer_approves_no_call() {
    let user = ScriptedUser { outcome: Some(answered("a", &["c"], None)), ..ScriptedUser::default() };
    let fixture = PlanFixture::new(Mode::Plan, user);
    fixture.call("AskUserQuestion", &question()).unwrap();
    assert_eq!(fixture.write().unwrap_err().code, Code::Declined);
    assert!(fixture.gate.granted_rules().is_empty());
}

#[test]
fn questions_are_checked_before_they_are_asked() {
    let fixture = PlanFixture::new(Mode::Default, ScriptedUser::default());
    let option = |label: &str| json!({ "label": label, "description": "d" });
    let ask = |question: &str, header: &str, options: Value| json!({ "questions": [{ "question": question, "header": header, "options": options }] });
    for input in [
        json!({ "questions": [] }),
        ask("", "h", json!([option("a"), option("b")])),
        ask("q", "a header that is long", json!([option("a"), option("b")])),
        ask("q", "h", json!([option("a")])),
        ask("q", "h", json!([option("a"), option("a")])),
        json!({ "questions": question()["questions"], "answers": { "Which?": "a" } }),
    ] {
        assert_eq!(fixture.call("AskUserQuestion", &input).unwrap_err().kind, "ValidationError", "{input}");
    }
}

/// Rules that allow nothing that runs or writes, and a user who approves everything.
fn fixture_without_rules() -> PlanFixture {
    let approving = ScriptedUser { approval: Some(ApprovalAnswer::Once), ..ScriptedUser::default() };
    let mut fixture = PlanFixture::new(Mode::Default, approving);
    let approver: Arc<dyn Approver> = Arc::clone(&fixture.user) as Arc<dyn Approver>;
    let gate = Gate::new(GateParts::default().with_approvers(vec![approver]));
    register(&gate, Toolset::Claude).unwrap();
    fixture.gate = gate;
    fixture
}

#[test]
fn a_plan_grants_exactly_the_commands_that_were_shown_with_it() {
    let fixture = fixture_without_rules();
    fixture.call("EnterPlanMode", &json!({})).unwrap();
    let commands = ["touch made", "printf '%s' (x"];
    fixture.call("ExitPlanMode", &json!({ "plan": "1. make it", "commands": commands })).unwrap();
    let shown = fixture.user.approvals.lock().unwrap()[0].card.diff.clone().unwrap_or_default();
    let shown = format!("{shown}{:?}", fixture.user.approvals.lock().unwrap()[0].card);
    assert!(commands.iter().all(|command| shown.contains(command)), "{shown}");
    let asked = || fixture.user.approvals.lock().unwrap().len();
    assert_eq!(asked(), 1);
    fixture.call("Bash", &json!({ "command": "touch made" })).unwrap();
    assert_eq!(asked(), 1, "this one was part of the plan");
    for other in ["touch other", "touch made other", "touch made && touch other"] {
        let before = asked();
        fixture.call("Bash", &json!({ "command": other })).unwrap();
        assert_eq!(asked(), before + 1, "`{other}` was not");
    }
    for wide in ["touch *", "git push:*", "a\nb", " ls", "", "a\\b"] {
        let input = json!({ "plan": "p", "commands": [wide] });
        assert_eq!(fixture.call("ExitPlanMode", &input).unwrap_err().code, Code::BadArgument, "{wide}");
    }
}
