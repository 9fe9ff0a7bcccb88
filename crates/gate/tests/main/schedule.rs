//! How a batch behaves: limits, cancellation, people, order.

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, sleep};
use toolgate_gate::{
    ApprovalAnswer, ApprovalRequest, Approver, CallOptions, CallOutcome, FnTool, Gate, GateParts, Hook,
    HookAnswer, HookBatch, HookCall, HookEvent, HookFailure, MemorySink, Session, Sink, ToolSpec,
};
use toolgate_policy::RawPolicy;
use toolgate_proto::{
    AbsPath, Code, CommandLine, Effect, Intent, Output, PathScope, SessionModifier, ShellKind, SourceId,
    ToolCall, WriteKind,
};
use toolgate_testkit::{allow_all, session_in};

#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TouchInput {
    /// What it touches: `r PATH`, `w PATH`, `x` (a command that reads only), `?` (unknown), `ask`.
    touch: String,
    /// How long it takes.
    millis: u64,
}

/// What happened inside the tool, in order: `+id` where a run begins, `-id` where it ends.
type Diary = Arc<Mutex<Vec<String>>>;

struct Bench {
    gate: Arc<Gate>,
    session: Session,
    sink: Arc<MemorySink>,
    diary: Diary,
    most: Arc<AtomicUsize>,
}

impl Bench {
    fn new(parts: GateParts) -> Self {
        let sink = Arc::new(MemorySink::new());
        let sinks: Vec<Arc<dyn Sink>> = vec![Arc::clone(&sink) as Arc<dyn Sink>];
        let gate = Gate::new(parts.with_sinks(sinks).with_grace(Duration::from_millis(5)));
        let (diary, most) = (Diary::default(), Arc::new(AtomicUsize::new(0)));
        for (name, read_only) in [("work", false), ("look", true), ("held", false)] {
            let (pages, most, now) = (Arc::clone(&diary), Arc::clone(&most), Arc::new(AtomicUsize::new(0)));
            let mut spec = ToolSpec::new(name, "Works.");
            spec.read_only = read_only;
            let tool = FnTool::new(spec, move |input: TouchInput, cleared| {
                let (pages, most, now) = (Arc::clone(&pages), Arc::clone(&most), Arc::clone(&now));
                async move {
                    let id = cleared.call().to_string();
                    pages.lock().unwrap().push(format!("+{id}"));
                    most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    tokio::select! {
                        () = sleep(Duration::from_millis(input.millis)) => {}
                        () = cleared.cancel().cancelled() => {}
                    }
                    now.fetch_sub(1, Ordering::SeqCst);
                    pages.lock().unwrap().push(format!("-{id}"));
                    let queued = SessionModifier::QueueCommand { command: id.clone() };
                    Ok(Output::text(id).modifier(queued))
                }
            });
            gate.register(SourceId::Sdk, tool.intent(|input, _| Intent::new("work", [effect(&input.touch)])))
                .unwrap();
        }
        Self { gate: Arc::new(gate), session: session_in(&AbsPath::root()), sink, diary, most }
    }

    fn allowing() -> Self {
        Self::new(GateParts::default().with_policy(allow_all(&["work", "look"])))
    }

    async fn run(&self, calls: Vec<ToolCall>) -> Vec<CallOutcome> {
        self.gate.call_batch(&self.session, calls, CallOptions::default()).await
    }

    fn diary(&self) -> String {
        self.diary.lock().unwrap().join(" ")
    }
}

/// A directory with the files `a`, `b`, `c`, `z` and `0` to `39`, and `d/x`. Nothing is ever written to them.
fn place() -> &'static AbsPath {
    static PLACE: LazyLock<(tempfile::TempDir, AbsPath)> = LazyLock::new(|| {
        let dir = tempfile::tempdir().unwrap();
        let top = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        std::fs::create_dir(top.join("d")).unwrap();
        let names = (0..40).map(|name| name.to_string());
        for name in names.chain(["a", "b", "c", "z", "d/x"].map(str::to_owned)) {
            std::fs::write(top.join(name), "x").unwrap();
        }
        (dir, top)
    });
    &PLACE.1
}

fn effect(touch: &str) -> Effect {
    let path = |text: &str| place().join(text);
    match touch.split_once(' ') {
        Some(("r", name)) => Effect::Read { path: path(name), scope: PathScope::Entry },
        Some(("w", name)) => Effect::Write { path: path(name), kind: WriteKind::Edit },
        _ if matches!(touch, "sleep 0.2" | "make") => {
            Effect::Exec { command: CommandLine::new(touch, ShellKind::Bash, AbsPath::root()) }
        }
        None if touch == "ask" => Effect::Ask,
        _ => Effect::Opaque,
    }
}

fn call(id: impl ToString, tool: &str, touch: &str, millis: u64) -> ToolCall {
    ToolCall::new(id.to_string(), tool, json!({ "touch": touch, "millis": millis }).to_string())
}

#[tokio::test(start_paused = true)]
async fn eight_commands_that_read_only_take_as_long_as_one() {
    let bench = Bench::allowing();
    let started = Instant::now();
    let closed = bench.run((0..8).map(|id| call(id, "work", "sleep 0.2", 200)).collect()).await;
    assert_eq!(started.elapsed(), Duration::from_millis(200));
    assert!(closed.iter().all(|closed| closed.result.is_ok()));

    let started = Instant::now();
    bench.run((0..8).map(|id| call(id, "work", "make", 200)).collect()).await;
    assert_eq!(started.elapsed(), Duration::from_millis(1600), "what make touches is not known");
}

#[tokio::test(start_paused = true)]
async fn only_conflicting_calls_wait() {
    for (calls, wanted) in [
        (vec![("r a", 20), ("r a", 10)], "+0 +1 -1 -0"),
        (vec![("w a", 20), ("w b", 10)], "+0 +1 -1 -0"),
        (vec![("w a", 20), ("r a", 10)], "+0 -0 +1 -1"),
        (vec![("r a", 20), ("w a", 10), ("r b", 5)], "+0 +2 -2 -0 +1 -1"),
        (vec![("w d", 20), ("w d/x", 10)], "+0 -0 +1 -1"),
        (vec![("r a", 20), ("?", 10), ("r a", 5)], "+0 -0 +1 -1 +2 -2"),
        (vec![("w a", 20), ("r a", 10), ("w a", 5), ("w c", 1)], "+0 +3 -3 -0 +1 -1 +2 -2"),
    ] {
        let bench = Bench::allowing();
        bench
            .run(
                calls
                    .iter()
                    .enumerate()
                    .map(|(id, (touch, millis))| call(id, "work", touch, *millis))
                    .collect(),
            )
            .await;
        assert_eq!(bench.diary(), wanted, "{calls:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_more_calls_go_on_at_once_than_the_limit() {
    for limit in [1, 3, 10] {
        let bench =
            Bench::new(GateParts::default().with_policy(allow_all(&["work"])).with_max_concurrency(limit));
        bench.run((0..40).map(|id| call(id, "work", &format!("r {id}"), 10)).collect()).await;
        assert_eq!(bench.most.load(Ordering::SeqCst), limit);
        let begun: Vec<usize> = bench
            .diary()
            .split(' ')
            .filter_map(|line| line.strip_prefix('+'))
            .map(|id| id.parse().unwrap())
            .collect();
        assert!(begun.is_sorted(), "slots are given in the order of the calls: {begun:?}");
    }
}

/// Answers when the test lets it, and remembers who asked.
struct Slow {
    go: Semaphore,
    asked: Mutex<Vec<String>>,
    at_once: AtomicUsize,
    most: AtomicUsize,
    is_asked: Notify,
    /// The last one is given for good.
    answers: Mutex<Vec<ApprovalAnswer>>,
}

impl Slow {
    fn new(answers: impl IntoIterator<Item = ApprovalAnswer>) -> Arc<Self> {
        Arc::new(Self {
            answers: Mutex::new(answers.into_iter().collect()),
            go: Semaphore::new(0),
            asked: Mutex::default(),
            at_once: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
            is_asked: Notify::new(),
        })
    }
}

struct AskedSlowly(Arc<Slow>);

impl Approver for AskedSlowly {
    fn name(&self) -> &str {
        "slow"
    }

    fn ask<'a>(&'a self, request: &'a ApprovalRequest) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async {
            let slow = &self.0;
            slow.asked.lock().unwrap().push(request.call.to_string());
            slow.most.fetch_max(slow.at_once.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            slow.is_asked.notify_one();
            slow.go.acquire().await.unwrap().forget();
            slow.at_once.fetch_sub(1, Ordering::SeqCst);
            let mut answers = slow.answers.lock().unwrap();
            if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() }
        })
    }
}

fn asking(slow: &Arc<Slow>, limit: usize) -> Bench {
    Bench::new(
        GateParts::default()
            .with_policy(allow_all(&["work"]))
            .with_approvers(vec![Arc::new(AskedSlowly(Arc::clone(slow)))])
            .with_max_concurrency(limit),
    )
}

#[tokio::test]
async fn a_call_that_waits_for_approval_holds_up_no_unrelated_call() {
    let slow = Slow::new([ApprovalAnswer::Once]);
    let bench = asking(&slow, 1);
    let mut batch = bench.gate.batch(&bench.session, CallOptions::default());
    batch.push(call("asked", "held", "w a", 0));
    batch.push(call("related", "work", "r a", 0));
    batch.push(call("free", "work", "w b", 0));
    let first = batch.next().await.unwrap();
    assert_eq!(first.outcome.record.call.as_str(), "free");
    slow.go.add_permits(1);
    let rest: Vec<String> = [batch.next().await, batch.next().await]
        .into_iter()
        .map(|finished| finished.unwrap().outcome.record.call.to_string())
        .collect();
    assert_eq!(rest, ["asked", "related"]);
    assert!(batch.next().await.is_none());
    assert_eq!(batch.finish().await.len(), 3, "all results, also those given before");
}

#[tokio::test]
async fn the_user_is_asked_one_question_at_a_time() {
    let slow = Slow::new([ApprovalAnswer::Once]);
    let bench = asking(&slow, 10);
    slow.go.add_permits(5);
    let calls = (0..5).map(|id| call(id, "held", &format!("w {id}"), 1)).collect();
    let closed = bench.run(calls).await;
    assert!(closed.iter().all(|closed| closed.result.is_ok()));
    assert_eq!(slow.most.load(Ordering::SeqCst), 1);
    assert_eq!(*slow.asked.lock().unwrap(), ["0", "1", "2", "3", "4"]);
}

#[tokio::test]
async fn a_change_of_rules_while_a_question_waits_may_answer_it() {
    let slow = Slow::new([ApprovalAnswer::Once]);
    let bench = asking(&slow, 10);
    let mut batch = bench.gate.batch(&bench.session, CallOptions::default());
    batch.push(call("first", "held", "w a", 0));
    batch.push(call("second", "held", "w b", 0));
    slow.is_asked.notified().await;
    // Both wait now: one is being asked about, the other waits for the prompt lock.
    tokio::task::yield_now().await;
    bench.gate.set_policy(allow_all(&["work", "held"]));
    slow.go.add_permits(1);
    let closed = batch.finish().await;
    assert!(closed.iter().all(|closed| closed.result.is_ok()));
    assert_eq!(*slow.asked.lock().unwrap(), ["first"]);
}

#[tokio::test(start_paused = true)]
async fn a_revised_call_waits_for_what_it_now_conflicts_with() {
    let revised = json!({ "touch": "w b", "millis": 1 });
    let slow = Slow::new([
        ApprovalAnswer::Revise { input: revised.as_object().unwrap().clone() },
        ApprovalAnswer::Once,
    ]);
    let bench = asking(&slow, 10);
    let mut batch = bench.gate.batch(&bench.session, CallOptions::default());
    batch.push(call("revised", "held", "w a", 1));
    batch.push(call("other", "work", "w b", 1_000));
    slow.is_asked.notified().await;
    sleep(Duration::from_millis(1)).await;
    assert_eq!(bench.diary(), "+other");
    // The answer makes the first call conflict with the second, which runs already.
    slow.go.add_permits(2);
    let closed = batch.finish().await;
    assert!(closed.iter().all(|closed| closed.result.is_ok()));
    assert_eq!(bench.diary(), "+other -other +revised -revised");
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_asks_needs_no_slot_and_asks_alone() {
    let bench = Bench::new(GateParts::default().with_policy(allow_all(&["work"])).with_max_concurrency(1));
    bench
        .run(vec![
            call(0, "work", "ask", 50),
            call(1, "work", "ask", 50),
            call(2, "work", "r a", 10),
            call(3, "work", "r a", 10),
        ])
        .await;
    assert_eq!(bench.diary(), "+0 +2 -2 +3 -3 -0 +1 -1");
}

#[tokio::test(start_paused = true)]
async fn cancelling_the_batch_ends_what_runs_and_keeps_the_rest_from_running() {
    let bench = Bench::allowing();
    let mut batch = bench.gate.batch(&bench.session, CallOptions::default());
    for id in 0..6 {
        batch.push(call(id, "work", if id % 2 == 0 { "w a" } else { "w b" }, 1_000));
    }
    sleep(Duration::from_millis(1)).await;
    batch.cancel_all();
    batch.push(call(6, "work", "r z", 1));
    let closed = batch.finish().await;
    assert!(closed.iter().all(|closed| closed.result.as_ref().unwrap_err().code == Code::Cancelled));
    assert_eq!(bench.sink.records().len(), 7);
    assert_eq!(bench.diary(), "+0 +1 -0 -1");
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_is_dropped_leaves_a_record_of_each_call() {
    let bench = Bench::allowing();
    let mut batch = bench.gate.batch(&bench.session, CallOptions::default());
    for id in 0..30 {
        batch.push(call(id, "work", if id % 3 == 0 { "w a" } else { "?" }, 1_000));
    }
    sleep(Duration::from_millis(1)).await;
    drop(batch);
    sleep(Duration::from_millis(10)).await;
    let mut ids: Vec<usize> =
        bench.sink.records().iter().map(|record| record.call.as_str().parse().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..30).collect::<Vec<_>>());
    assert_eq!(bench.diary(), "+0", "nothing starts because something else was dropped");
}

struct Counting(AtomicUsize);

impl Hook for Counting {
    fn name(&self) -> &str {
        "counting"
    }

    fn handles(&self, _event: HookEvent, _tool: &toolgate_proto::ToolIdentity) -> bool {
        false
    }

    fn handle_call<'a>(&'a self, _call: HookCall<'a>) -> BoxFuture<'a, Result<HookAnswer, HookFailure>> {
        Box::pin(std::future::ready(Ok(HookAnswer::empty())))
    }

    fn handles_batches(&self) -> bool {
        true
    }

    fn handle_batch<'a>(&'a self, batch: HookBatch<'a>) -> BoxFuture<'a, Result<HookAnswer, HookFailure>> {
        self.0.fetch_add(1, Ordering::SeqCst);
        let ids: Vec<&str> = batch.calls.iter().map(|call| call.call.as_str()).collect();
        let words = format!("{} are over", ids.join(" "));
        let mut answer = HookAnswer::empty().with_context(words);
        if batch.calls.iter().any(|call| call.result.is_err()) {
            answer.stop = Some("one failed".to_owned());
        }
        Box::pin(std::future::ready(Ok(answer)))
    }
}

#[tokio::test(start_paused = true)]
async fn a_hook_is_told_of_a_batch_once_with_all_results_in_order() {
    let counting = Arc::new(Counting(AtomicUsize::new(0)));
    let bench = Bench::new(
        GateParts::default()
            .with_policy(allow_all(&["work"]))
            .with_hooks(vec![Arc::clone(&counting) as Arc<dyn Hook>]),
    );
    let closed = bench.run((0..4).map(|id| call(id, "work", &format!("r {id}"), 9 - id)).collect()).await;
    assert_eq!(counting.0.load(Ordering::SeqCst), 1);
    assert_eq!(closed[3].result.as_ref().unwrap().model_text(), "3\n0 1 2 3 are over");
    let queued: Vec<String> = std::iter::from_fn(|| bench.session.context().next_command()).collect();
    assert_eq!(queued, ["0", "1", "2", "3"], "commands are queued in the order of the calls");
    assert_eq!(closed[3].stop, None);
    let closed = bench.run(vec![call(9, "nothing", "r", 1)]).await;
    assert_eq!(closed[0].stop.as_deref(), Some("hook `counting`: one failed"));
    counting.0.store(1, Ordering::SeqCst);
    assert!(bench.run(Vec::new()).await.is_empty());
    assert_eq!(counting.0.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn results_come_as_they_finish_for_those_who_want_that() {
    let bench = Bench::allowing();
    let mut batch = bench.gate.batch(&bench.session, CallOptions::default());
    for id in 0..4u64 {
        batch.push(call(id, "work", &format!("r {id}"), 40 - 10 * id));
    }
    let mut places = Vec::new();
    while let Some(finished) = StreamExt::next(&mut batch).await {
        places.push(finished.place);
    }
    assert_eq!(places, [3, 2, 1, 0]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// A thousand calls, a fifth of them cancelled at any time: none is lost, doubled or moved.
    #[test]
    fn a_thousand_calls_come_back_each_once_and_in_order(
        plan in prop::collection::vec((0u8..5, 0u8..40, 0u64..6, 0u64..30), 1_000),
    ) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        let bench = Bench::allowing();
        let closed = runtime.block_on(async {
            let mut batch = bench.gate.batch(&bench.session, CallOptions::default());
            let mut late: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
            for (id, (kind, name, millis, when)) in plan.iter().enumerate() {
                let touch = match (kind, name) {
                    (0, 0) => "?".to_owned(),
                    (0 | 1, _) => format!("w {name}"),
                    _ => format!("r {name}"),
                };
                batch.push(call(id, "work", &touch, *millis));
                if *kind == 4 {
                    late.entry(*when).or_default().push(id);
                }
            }
            for (_, ids) in late {
                sleep(Duration::from_millis(1)).await;
                for id in ids {
                    assert!(batch.cancel_at(id));
                }
            }
            batch.finish().await
        });
        prop_assert_eq!(closed.len(), 1_000);
        let mut ran = 0;
        for (id, closed) in closed.iter().enumerate() {
            prop_assert_eq!(closed.record.call.as_str(), id.to_string());
            match &closed.result {
                Ok(output) => {
                    ran += 1;
                    prop_assert_eq!(output.model_text(), id.to_string());
                }
                Err(refusal) => {
                    prop_assert_eq!(refusal.code, Code::Cancelled);
                    prop_assert_eq!(plan[id].0, 4);
                }
            }
        }
        prop_assert!(ran >= 600, "{ran}");
        let mut records: Vec<usize> =
            bench.sink.records().iter().map(|record| record.call.as_str().parse().unwrap()).collect();
        records.sort_unstable();
        prop_assert_eq!(records, (0..1_000).collect::<Vec<_>>());
    }
}

#[tokio::test]
async fn an_unusable_policy_lets_no_call_of_a_batch_through() {
    let bench = Bench::new(GateParts::default().with_policy(RawPolicy::default()));
    let closed = bench.run((0..3).map(|id| call(id, "work", "?", 0)).collect()).await;
    assert!(
        closed.iter().all(|closed| closed.result.as_ref().unwrap_err().code == Code::ApprovalUnavailable)
    );
    assert_eq!(bench.diary(), "");
}
