//! The properties of the agent loop, over generated scripts of the model, on a real gate inside this process.

use super::agent_fixture::{PROTOCOLS, ScriptedModel};
use futures_util::future::BoxFuture;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolgate::agent::conversation::text_block;
use toolgate::agent::provider::{ModelClient, ProviderConfig, ProviderCredential, SecretText};
use toolgate::agent::subagent::{AgentDefinition, AgentTypes, SubagentParts, SubagentSource};
use toolgate::agent::{
    AgentEnvironment, AgentLoop, AgentParts, AgentSettings, ModelPrice, TurnEnding, UsageMeter,
};
use toolgate::{AbsPath, Mode, ProviderApi, Toolgate};
use toolgate_gate::{
    ApprovalAnswer, ApprovalRequest, Approver, CallContext, Cleared, Gate, GateParts, MemorySink, Session,
    Sink, Tool, ToolSpec,
};
use toolgate_proto::{CallResult, Code, Effect, Intent, OutcomeRecord, Output, Refusal, SourceId, Verdict};
use toolgate_testkit::{allow_all, session_in};

/// One dollar for a million tokens in, two for a million out.
const PRICE: &str = "1/2";

/// A tool that takes a while, and notes which of its calls began and which ended.
#[derive(Clone, Default)]
struct SlowTool {
    begun: Arc<Mutex<Vec<String>>>,
    ended: Arc<Mutex<BTreeSet<String>>>,
}

/// What a call of [`SlowTool`] carries.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct SlowInput {
    millis: u64,
    #[serde(default)]
    fails: bool,
}

impl Tool for SlowTool {
    type Input = SlowInput;

    fn spec(&self) -> ToolSpec {
        ToolSpec::new("slow", "Takes a while.")
    }

    fn intent(&self, _: &SlowInput, _: &CallContext) -> Intent {
        Intent::new("wait", [Effect::State { name: "slow".to_owned() }])
    }

    async fn run(&self, input: SlowInput, cleared: Cleared) -> CallResult {
        self.begun.lock().unwrap().push(cleared.call().to_string());
        tokio::time::sleep(Duration::from_millis(input.millis)).await;
        self.ended.lock().unwrap().insert(cleared.call().to_string());
        match input.fails {
            true => Err(Refusal::new(Code::ToolFailed, "it was asked to fail")),
            false => Ok(Output::text("waited")),
        }
    }
}

/// Answers after a while: yes or no.
struct SlowApprover {
    millis: u64,
    says_yes: bool,
}

impl Approver for SlowApprover {
    fn name(&self) -> &str {
        "slow"
    }

    fn ask<'a>(&'a self, _: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(self.millis)).await;
            if self.says_yes { ApprovalAnswer::Once } else { ApprovalAnswer::No { message: None } }
        })
    }
}

fn client(model: &ScriptedModel, protocol: &str) -> ModelClient {
    let api = match protocol {
        "anthropic" => ProviderApi::Anthropic,
        "chat" => ProviderApi::OpenAiChat,
        _ => ProviderApi::OpenAiResponses,
    };
    let credential = ProviderCredential::ApiKey(SecretText::new("sk-test"));
    ModelClient::new(ProviderConfig::new(api, format!("{}/v1", model.base), credential))
}

fn build_agent(gate: &Arc<Gate>, session: &Session, client: ModelClient, meter: UsageMeter) -> AgentLoop {
    let settings = AgentSettings::new("claude-sonnet-5", "You are tested.");
    let parts = AgentParts::new(Arc::clone(gate), session.clone(), client, settings);
    AgentLoop::new(parts.with_meter(Arc::new(meter)))
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), work).await.unwrap() })
}

fn temp_root() -> (tempfile::TempDir, AbsPath) {
    let dir = tempfile::tempdir().unwrap();
    let root = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
    (dir, root)
}

/// A call that a model may make: well, badly, of a tool that fails or does not exist, with input that is no JSON.
fn any_call() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => (0u64..15).prop_map(|millis| json!({ "name": "slow", "input": { "millis": millis } })),
        1 => Just(json!({ "name": "slow", "input": { "millis": 1, "fails": true } })),
        1 => Just(json!({ "name": "slow", "input": { "millis": "many" } })),
        1 => Just(json!({ "name": "slow", "input": "{\"millis\": 1" })),
        1 => Just(json!({ "name": "no_such_tool", "input": {} })),
    ]
}

/// The ids of calls and of results, message by message, in any of the three protocols.
fn calls_and_results(body: &Value) -> (Vec<String>, Vec<String>) {
    let (mut calls, mut results) = (Vec::new(), Vec::new());
    let id = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |key: &str| body[key].as_array().cloned().unwrap_or_default();
    for message in list("messages") {
        if message["role"] == "tool" {
            results.push(id(&message["tool_call_id"]));
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            calls.push(id(&call["id"]));
        }
        for block in message["content"].as_array().into_iter().flatten() {
            match block["type"].as_str() {
                Some("tool_use") => calls.push(id(&block["id"])),
                Some("tool_result") => results.push(id(&block["tool_use_id"])),
                _ => {}
            }
        }
    }
    for item in list("input") {
        match item["type"].as_str() {
            Some("function_call") => calls.push(id(&item["call_id"])),
            Some("function_call_output") => results.push(id(&item["call_id"])),
            _ => {}
        }
    }
    (calls, results)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, max_shrink_iters: 40, ..ProptestConfig::default() })]

    #[test]
    fn tool_results_match_calls_one_to_one_in_order(
        turns in prop::collection::vec(prop::collection::vec(any_call(), 1..5), 1..4),
        protocol in prop::sample::select(PROTOCOLS.to_vec()),
    ) {
        let made: usize = turns.iter().map(Vec::len).sum();
        let mut script: Vec<Value> = turns.iter().map(|tools| json!({ "text": "Working.", "tools": tools })).collect();
        script.push(json!({ "text": "Done." }));
        let model = ScriptedModel::new(&json!({ "turns": script }));
        let (_dir, root) = temp_root();
        let sink = Arc::new(MemorySink::new());
        let parts = GateParts::default().with_policy(allow_all(&["slow"]));
        let gate = Arc::new(Gate::new(parts.with_sinks(vec![Arc::clone(&sink) as Arc<dyn Sink>])));
        let tool = SlowTool::default();
        gate.register(SourceId::Sdk, tool.clone()).unwrap();
        let session = session_in(&root);
        let agent = build_agent(&gate, &session, client(&model, protocol), UsageMeter::default());
        let report = block_on(agent.run_turn(vec![text_block("go")], &CancellationToken::new()));
        prop_assert_eq!(&report.ending, &TurnEnding::Completed, "{:?}", report.ending.message());
        let seen = model.seen();
        prop_assert_eq!(&seen["violations"], &json!([]));
        let last = seen["requests"].as_array().unwrap().last().unwrap()["body"].clone();
        let (calls, results) = calls_and_results(&last);
        prop_assert_eq!(calls.len(), made);
        prop_assert_eq!(&calls, &results);
        prop_assert_eq!(sink.records().len(), made, "one record for each call");
        let begun = tool.begun.lock().unwrap().clone();
        prop_assert_eq!(begun.iter().collect::<BTreeSet<_>>().len(), begun.len(), "no call ran twice");
    }

    #[test]
    fn no_interleaving_of_interrupt_approval_and_completion_runs_a_call_twice_or_loses_its_result(
        tools in prop::collection::vec((0u64..30, any::<bool>()), 1..4),
        (approval, says_yes) in (0u64..30, any::<bool>()),
        interrupt_after in 0u64..90,
        chunk_millis in 0u64..3,
        protocol in prop::sample::select(PROTOCOLS.to_vec()),
    ) {
        let calls: Vec<Value> = tools
            .iter()
            .map(|(millis, fails)| json!({ "name": "slow", "input": { "millis": millis, "fails": fails } }))
            .collect();
        let script = json!({ "turns": [
            { "text": "Working.", "tools": calls, "chunk_ms": chunk_millis }, { "text": "Done." }, { "text": "Done." },
        ] });
        let model = ScriptedModel::new(&script);
        let (_dir, root) = temp_root();
        let sink = Arc::new(MemorySink::new());
        let parts = GateParts::default()
            .with_sinks(vec![Arc::clone(&sink) as Arc<dyn Sink>])
            .with_approvers(vec![Arc::new(SlowApprover { millis: approval, says_yes })])
            .with_grace(Duration::from_millis(200));
        let gate = Arc::new(Gate::new(parts));
        let tool = SlowTool::default();
        gate.register(SourceId::Sdk, tool.clone()).unwrap();
        let session = session_in(&root);
        let agent = build_agent(&gate, &session, client(&model, protocol), UsageMeter::default());
        block_on(async {
            let cancel = CancellationToken::new();
            let (interrupt, turn) = (cancel.clone(), agent.run_turn(vec![text_block("go")], &cancel));
            let waiting = async move {
                tokio::time::sleep(Duration::from_millis(interrupt_after)).await;
                interrupt.cancel();
            };
            tokio::join!(turn, waiting);
            // The conversation goes on, whatever was cut.
            agent.run_turn(vec![text_block("and now?")], &CancellationToken::new()).await;
        });
        let seen = model.seen();
        prop_assert_eq!(&seen["violations"], &json!([]), "a service accepts the conversation");
        let last = seen["requests"].as_array().unwrap().last().unwrap()["body"].clone();
        let (calls, results) = calls_and_results(&last);
        prop_assert_eq!(&calls, &results, "each call has its result");
        let begun = tool.begun.lock().unwrap().clone();
        prop_assert_eq!(begun.iter().collect::<BTreeSet<_>>().len(), begun.len(), "no call ran twice");
        let mut records: BTreeMap<String, usize> = BTreeMap::new();
        for record in sink.records() {
            *records.entry(record.call.to_string()).or_default() += 1;
            if !begun.contains(&record.call.to_string()) {
                prop_assert!(!matches!(record.outcome, OutcomeRecord::Done { .. }), "{record:?}");
            }
        }
        prop_assert!(records.values().all(|count| *count == 1), "{records:?}");
        for call in &begun {
            prop_assert!(records.contains_key(call), "the record of {call} is lost");
            prop_assert!(results.contains(call), "the result of {call} is lost");
        }
    }

    #[test]
    fn budget_and_turn_limits_are_never_exceeded_by_more_than_the_call_in_flight(
        max_turns in prop::option::of(1u32..6),
        budget_micros in prop::option::of(1u32..400_000),
        usages in prop::collection::vec((1u32..100_000, 0u32..50_000), 8),
        delegates in any::<bool>(),
    ) {
        let turn = |(input, output): &(u32, u32), tools: Value| {
            json!({ "text": "Working.", "tools": tools, "usage": { "input_tokens": input, "output_tokens": output } })
        };
        let call = match delegates {
            true => json!({ "name": "Agent", "input": { "description": "d", "prompt": "p", "run_in_background": false } }),
            false => json!({ "name": "slow", "input": { "millis": 0 } }),
        };
        let inner: Vec<Value> = usages.iter().map(|usage| turn(usage, json!([]))).collect();
        let main: Vec<Value> = usages.iter().map(|usage| turn(usage, json!([call]))).collect();
        let model = ScriptedModel::new(&json!({ "lanes": [
            { "when": { "system_contains": "another agent gave you one task" }, "turns": inner }, { "turns": main },
        ] }));
        let (_dir, root) = temp_root();
        let gate = Arc::new(Gate::new(GateParts::default().with_policy(allow_all(&["slow", "Agent"]))));
        gate.register(SourceId::Sdk, SlowTool::default()).unwrap();
        let subagents = SubagentSource::default();
        let _attached = gate.add_source(subagents.clone()).unwrap();
        let session = session_in(&root);
        let budget = budget_micros.map(|micros| f64::from(micros) / 1e6);
        let meter = UsageMeter::new(ModelPrice::parse(PRICE), budget);
        let agent = build_agent(&gate, &session, client(&model, "anthropic"), meter);
        agent.update_settings(|settings| settings.max_turns = max_turns);
        subagents.connect(subagent_parts(&gate, &model, &agent, &root, AgentTypes::default()));
        let report = block_on(agent.run_turn(vec![text_block("go")], &CancellationToken::new()));
        let cost = |(input, output): &(u32, u32)| (f64::from(*input) + 2.0 * f64::from(*output)) / 1e6;
        let dearest = usages.iter().map(cost).fold(0.0, f64::max);
        if let Some(limit) = max_turns {
            prop_assert!(report.num_turns <= limit, "{} requests of {limit}", report.num_turns);
        }
        if let Some(budget) = budget {
            let spent = agent.meter().total_cost_usd();
            // The main loop has one answer in flight, and the subagent that it started meanwhile another.
            let in_flight = if delegates { 2.0 * dearest } else { dearest };
            prop_assert!(spent <= budget + in_flight + 1e-9, "${spent} of ${budget}, ${in_flight} in flight");
        }
        // Each answer that arrived is paid for: the limit was compared with what was really used.
        let seen = model.seen();
        let answered = |lane: u64| {
            let requests = seen["requests"].as_array().unwrap().iter();
            requests.filter(|request| request["status"] == 200 && request["lane"] == json!(lane)).count()
        };
        let paid: f64 = [0, 1].iter().flat_map(|lane| usages.iter().take(answered(*lane)).map(cost)).sum();
        prop_assert!((agent.meter().total_cost_usd() - paid).abs() < 1e-9);
        prop_assert!(answered(1) > 0);
    }

    #[test]
    fn a_subagent_never_has_a_permission_that_its_parent_session_lacks(
        rules in prop::collection::vec((0usize..6, 0usize..3), 0..5),
        parent_mode in prop::sample::select(vec![Mode::Default, Mode::Plan, Mode::AcceptEdits, Mode::DontAsk]),
        agent_mode in prop::option::of(prop::sample::select(vec![
            Mode::Default, Mode::Plan, Mode::AcceptEdits, Mode::Bypass, Mode::DontAsk,
        ])),
        only in prop::option::of(prop::collection::btree_set(
            prop::sample::select(vec!["Read", "Write", "Bash", "Edit", "Agent", "WebFetch"]), 1..4,
        )),
    ) {
        let (_dir, root) = temp_root();
        std::fs::write(root.join("secret.txt").as_path(), "tangerine\n").unwrap();
        let written = ["Read(secret.txt)", "Write", "Write(w.txt)", "Bash(touch *)", "Read", "Edit"];
        let mut builder = Toolgate::builder(root.as_path()).mode(parent_mode).allow("Agent");
        for (rule, list) in rules {
            builder = match list {
                0 => builder.deny(written[rule]),
                1 => builder.allow(written[rule]),
                _ => builder,
            };
        }
        let subagents = SubagentSource::default();
        let toolgate = builder.source(subagents.clone()).build().unwrap();
        let tried = [
            ("Read", json!({ "file_path": root.join("secret.txt") })),
            ("Write", json!({ "file_path": root.join("w.txt"), "content": "x" })),
            ("Write", json!({ "file_path": "/etc/toolgate-was-here", "content": "x" })),
            ("Bash", json!({ "command": "touch b.txt" })),
        ];
        // What the parent may do itself, before anything has changed.
        let allowed: Vec<bool> = tried
            .iter()
            .map(|(name, input)| {
                let judged = toolgate.check(*name, &input.to_string());
                judged.is_ok_and(|judged| matches!(judged.verdict, Verdict::Allow(_)))
            })
            .collect();
        let parent_tools: BTreeSet<String> = toolgate.tools().iter().map(|tool| tool.name.to_string()).collect();
        let tools: Vec<Value> = tried
            .iter()
            .enumerate()
            .map(|(at, (name, input))| json!({ "name": name, "input": input, "id": format!("toolu_inner_{at}") }))
            .collect();
        let input = json!({ "description": "d", "prompt": "p", "subagent_type": "tester", "run_in_background": false });
        let model = ScriptedModel::new(&json!({ "lanes": [
            { "when": { "system_contains": "You are the tester." }, "turns": [{ "tools": tools }, { "text": "Tried." }] },
            { "turns": [{ "tools": [{ "name": "Agent", "input": input }] }, { "text": "Done." }] },
        ] }));
        let mut definition = AgentDefinition::new("tester", "d", "You are the tester.");
        definition.mode = agent_mode;
        definition.tools = only.map(|only| only.into_iter().map(str::to_owned).collect());
        let mut types = AgentTypes::default();
        types.add([definition]);
        let gate = toolgate.shared_gate();
        let agent = build_agent(&gate, toolgate.session(), client(&model, "anthropic"), UsageMeter::default());
        subagents.connect(subagent_parts(&gate, &model, &agent, &root, types));
        block_on(agent.run_turn(vec![text_block("go")], &CancellationToken::new()));
        let requests = model.requests();
        let inner: Vec<&Value> =
            requests.iter().filter(|body| body["system"].to_string().contains("the tester")).collect();
        for body in &inner {
            for tool in body["tools"].as_array().into_iter().flatten() {
                let name = tool["name"].as_str().unwrap();
                prop_assert!(parent_tools.contains(name), "`{name}` is shown to the subagent only");
            }
        }
        let Some(results) = inner.get(1) else { return Ok(()) };
        let blocks: Vec<&Value> =
            results["messages"].as_array().unwrap().iter().flat_map(|message| message["content"].as_array().unwrap()).collect();
        for (at, may) in allowed.iter().enumerate() {
            let id = json!(format!("toolu_inner_{at}"));
            let result = blocks.iter().find(|block| block["tool_use_id"] == id).unwrap();
            prop_assert!(*may || result["is_error"] == json!(true), "{}: {result}", tried[at].0);
        }
        prop_assert!(allowed[1] || !root.join("w.txt").as_path().exists());
        prop_assert!(allowed[3] || !root.join("b.txt").as_path().exists());
    }
}

fn subagent_parts(
    gate: &Arc<Gate>,
    model: &ScriptedModel,
    agent: &AgentLoop,
    root: &AbsPath,
    types: AgentTypes,
) -> SubagentParts {
    let environment = AgentEnvironment::new(root.clone(), "linux");
    let meter = Arc::clone(agent.meter());
    SubagentParts::new(gate, client(model, "anthropic"), meter, types, environment, agent.settings())
}
