//! How calls end: the stage of a refusal, which hooks hear of it, and what a run gets and leaves behind.

use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;
use toolgate_gate::{
    CallOptions, CallOutcome, Cleared, FnTool, Gate, GateParts, Hook, HookAnswer, HookCall, HookEvent,
    HookFailure, ToolSpec,
};
use toolgate_policy::RawPolicy;
use toolgate_proto::{
    AbsPath, Code, CommandLine, Effect, Intent, Output, Refusal, SessionModifier, ShellKind, SourceId, Stage,
    ToolCall, ToolIdentity,
};
use toolgate_testkit::{ProbeBehaviour, ProbeTool, allow_all, session_in, workspace_at};

/// Answers at some events, and notes every event.
struct NotingHook {
    events: Mutex<Vec<HookEvent>>,
    answer: fn(HookEvent) -> HookAnswer,
    /// Cancelled when the hook is asked before a call.
    cancel: Option<CancellationToken>,
}

impl NotingHook {
    fn new(answer: fn(HookEvent) -> HookAnswer) -> Self {
        Self { events: Mutex::default(), answer, cancel: None }
    }
}

impl Hook for NotingHook {
    fn name(&self) -> &str {
        "noting"
    }

    fn handles(&self, _: HookEvent, _: &ToolIdentity) -> bool {
        true
    }

    fn handle_call<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, Result<HookAnswer, HookFailure>> {
        self.events.lock().unwrap().push(call.event);
        if let (HookEvent::PreToolUse, Some(cancel)) = (call.event, &self.cancel) {
            cancel.cancel();
        }
        Box::pin(std::future::ready(Ok((self.answer)(call.event))))
    }
}

fn gate_with_hook(policy: RawPolicy, hook: &Arc<NotingHook>) -> Gate {
    let hooks: Vec<Arc<dyn Hook>> = vec![Arc::clone(hook) as Arc<dyn Hook>];
    Gate::new(GateParts::default().with_policy(policy).with_hooks(hooks))
}

async fn call(gate: &Gate, tool: &str, options: CallOptions) -> CallOutcome {
    let call = ToolCall::new("c", tool, json!({ "text": "x" }).to_string());
    gate.call(&session_in(&AbsPath::root()), call, options).await
}

/// Everything that the model reads.
fn model_text(outcome: &CallOutcome) -> String {
    match &outcome.result {
        Ok(output) => output.model_text(),
        Err(refusal) => refusal.partial.as_ref().map(|partial| partial.model_text()).unwrap_or_default(),
    }
}

/// A retry is offered after a denial by a hook that says so, and neither by one that does not nor after a run.
#[tokio::test]
async fn a_retry_is_offered_only_after_a_denial_and_only_if_a_hook_says_so() {
    let retry = |event: HookEvent| match event {
        HookEvent::PermissionDenied | HookEvent::PostToolUseFailure => {
            let mut answer = HookAnswer::empty();
            answer.retry = true;
            answer
        }
        _ => HookAnswer::empty(),
    };
    let silent = |_: HookEvent| HookAnswer::empty();
    for (answer, is_denied, is_offered) in
        [(retry as fn(HookEvent) -> HookAnswer, true, true), (silent, true, false), (retry, false, false)]
    {
        let hook = Arc::new(NotingHook::new(answer));
        let mut policy = allow_all(&["guarded"]);
        if is_denied {
            policy.layers[0].deny.push("guarded(text:*)".into());
        }
        let gate = gate_with_hook(policy, &hook);
        // Its handles cannot be prepared: the tool refuses in its own guard.
        gate.register(SourceId::Sdk, RefusingTool).unwrap();
        let outcome = call(&gate, "guarded", CallOptions::default()).await;
        let stage = outcome.result.as_ref().unwrap_err().stage;
        assert_eq!(stage < Stage::Guard, is_denied);
        assert_eq!(
            model_text(&outcome).contains("offers a retry"),
            is_offered,
            "{is_denied}: {}",
            model_text(&outcome)
        );
    }
}

/// Refuses every call before it runs.
struct RefusingTool;

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
struct TextInput {
    #[expect(dead_code, reason = "the tests are about how calls end, not about their input")]
    text: String,
}

impl toolgate_gate::Tool for RefusingTool {
    type Input = TextInput;

    fn spec(&self) -> ToolSpec {
        ToolSpec::new("guarded", "Refuses.")
    }

    fn intent(&self, _: &TextInput, _: &toolgate_gate::CallContext) -> Intent {
        Intent::new("refuse", [Effect::Opaque])
    }

    async fn guard(&self, _: &TextInput, _: &toolgate_gate::CallContext) -> Result<(), Refusal> {
        Err(Refusal::new(Code::NotRead, "it was not read"))
    }

    async fn run(&self, _: TextInput, _: Cleared) -> toolgate_proto::CallResult {
        Ok(Output::text("never"))
    }
}

#[tokio::test]
async fn a_call_that_was_cancelled_was_not_denied() {
    let cancel = CancellationToken::new();
    let hook =
        Arc::new(NotingHook { cancel: Some(cancel.clone()), ..NotingHook::new(|_| HookAnswer::empty()) });
    let gate = gate_with_hook(allow_all(&["probe"]), &hook);
    gate.register(SourceId::Sdk, ProbeTool::new("probe", ProbeBehaviour::Succeed)).unwrap();
    let outcome = call(&gate, "probe", CallOptions::default().with_cancel(cancel)).await;
    assert_eq!(outcome.result.unwrap_err().code, Code::Cancelled);
    assert_eq!(*hook.events.lock().unwrap(), [HookEvent::PreToolUse]);
    // One that a rule denies was.
    let hook = Arc::new(NotingHook::new(|_| HookAnswer::empty()));
    let mut policy = allow_all(&[]);
    policy.layers[0].deny.push("probe(text:*)".into());
    let gate = gate_with_hook(policy, &hook);
    gate.register(SourceId::Sdk, ProbeTool::new("probe", ProbeBehaviour::Succeed)).unwrap();
    assert!(call(&gate, "probe", CallOptions::default()).await.result.is_err());
    assert_eq!(*hook.events.lock().unwrap(), [HookEvent::PreToolUse, HookEvent::PermissionDenied]);
}

/// What a tool changes about its session happened, whatever a hook makes of the text.
#[tokio::test]
async fn a_hook_that_replaces_the_output_keeps_what_the_tool_changed() {
    let hook = Arc::new(NotingHook::new(|event| match event {
        HookEvent::PostToolUse => HookAnswer::empty().with_updated_output(json!("other")),
        _ => HookAnswer::empty(),
    }));
    let gate = gate_with_hook(allow_all(&["queues"]), &hook);
    let queues = FnTool::new(ToolSpec::new("queues", "Queues."), |_: TextInput, _| async {
        Ok(Output::text("own").modifier(SessionModifier::QueueCommand { command: "next".to_owned() }))
    });
    gate.register(SourceId::Sdk, queues).unwrap();
    let output = call(&gate, "queues", CallOptions::default()).await.result.unwrap();
    assert_eq!(output.model_text(), "other");
    assert_eq!(output.modifiers, [SessionModifier::QueueCommand { command: "next".to_owned() }]);
}

#[tokio::test]
async fn a_refusal_out_of_a_run_is_one_of_the_run() {
    for code in [Code::BadArgument, Code::ToolFailed, Code::NotRead] {
        let gate = Gate::new(GateParts::default().with_policy(allow_all(&["fails"])));
        let fails = FnTool::new(ToolSpec::new("fails", "Fails."), move |_: TextInput, _| async move {
            Err(Refusal::new(code, "it did not work"))
        });
        gate.register(SourceId::Sdk, fails).unwrap();
        let refusal = call(&gate, "fails", CallOptions::default()).await.result.unwrap_err();
        assert_eq!((refusal.code, refusal.stage), (code, Stage::Run));
    }
}

/// The hooks of events that a tool raises are in the record of its call, and one that denies refuses the event.
#[tokio::test]
async fn hooks_that_a_tool_raises_are_recorded() {
    for is_denied in [false, true] {
        let answer: fn(HookEvent) -> HookAnswer = match is_denied {
            true => |event| match event {
                HookEvent::TaskCreated => HookAnswer::deny("no more tasks"),
                _ => HookAnswer::empty(),
            },
            false => |_| HookAnswer::empty(),
        };
        let hook = Arc::new(NotingHook::new(answer));
        let gate = gate_with_hook(allow_all(&["raises"]), &hook);
        let raises =
            FnTool::new(ToolSpec::new("raises", "Raises."), |_: TextInput, cleared: Cleared| async move {
                let fields: Map<String, Value> = Map::new();
                cleared.run_hooks(HookEvent::TaskCreated, &fields).await?;
                Ok(Output::text("raised"))
            });
        gate.register(SourceId::Sdk, raises).unwrap();
        let outcome = call(&gate, "raises", CallOptions::default()).await;
        assert_eq!(outcome.result.is_err(), is_denied);
        let events: Vec<&str> = outcome.record.hooks.iter().map(|hook| hook.event.as_str()).collect();
        let last = if is_denied { "PostToolUseFailure" } else { "PostToolUse" };
        assert_eq!(events, ["PreToolUse", "TaskCreated", last]);
    }
}

/// The rules for files go with a command, and with a server that outlives its call.
#[tokio::test]
async fn a_run_that_starts_commands_gets_the_rules_for_files() {
    let gate = Gate::new(GateParts::default().with_policy(allow_all(&["Bash", "runs", "rests"])));
    let exec = || {
        let text = "true".to_owned();
        let command = CommandLine::new(text, ShellKind::Bash, AbsPath::root());
        vec![Effect::Exec { command }]
    };
    for (name, effects, has_guard) in [("runs", exec(), true), ("rests", vec![], false)] {
        let tool = FnTool::new(ToolSpec::new(name, "Tells."), |_: TextInput, cleared: Cleared| async move {
            Ok(Output::text(format!("{:?}", cleared.file_guard())))
        })
        .intent(move |_, _| Intent::new("tell", effects.clone()));
        gate.register(SourceId::Sdk, tool).unwrap();
        let text = call(&gate, name, CallOptions::default()).await.result.unwrap().model_text();
        assert_eq!(text, format!("FileGuard({has_guard})"));
    }
    assert_eq!(format!("{:?}", gate.file_guard(&workspace_at(&AbsPath::root()))), "FileGuard(true)");
}
