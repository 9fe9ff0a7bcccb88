//! Sequential equivalence of batches: the files and every result come out as if each call had waited for the one before.

use super::writers;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use tokio::runtime::Runtime;
use toolgate_gate::{
    CallOptions, Gate, GateParts, Hook, HookAnswer, HookCall, HookEvent, HookFailure, Session, Sink,
};
use toolgate_proto::{AbsPath, CallResult, ToolCall, ToolIdentity};
use toolgate_testkit::{allow_all, gate_with, session_in};
use toolgate_tools::Toolset;

/// One entry of the tree that a batch starts from.
#[derive(Debug, Clone)]
enum Seed {
    File(String, String),
    Directory(String),
    Link(String, String),
    SecondName(String, String),
}

fn name() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("a"), Just("b"), Just("d"), Just("e")]
}

/// Few names, so that paths meet often.
fn path() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => name().prop_map(str::to_owned),
        4 => (name(), name()).prop_map(|(one, two)| format!("{one}/{two}")),
        1 => (name(), name(), name()).prop_map(|(one, two, three)| format!("{one}/{two}/{three}")),
        1 => (name(), name()).prop_map(|(one, two)| format!("{one}/../{two}")),
    ]
}

fn seed() -> impl Strategy<Value = Seed> {
    prop_oneof![
        4 => (path(), "[xyz\n]{0,6}").prop_map(|(path, text)| Seed::File(path, text)),
        3 => path().prop_map(Seed::Directory),
        2 => (path(), path()).prop_map(|(path, target)| Seed::Link(path, target)),
        1 => (path(), path()).prop_map(|(path, other)| Seed::SecondName(path, other)),
    ]
}

fn act() -> impl Strategy<Value = (&'static str, Value)> {
    let one = |tool: &'static str| {
        (path(), "[pqr]{0,3}").prop_map(move |(path, text)| (tool, json!({ "path": path, "text": text })))
    };
    let two = |tool: &'static str| {
        (path(), path()).prop_map(move |(from, to)| (tool, json!({ "from": from, "to": to })))
    };
    prop_oneof![
        6 => path().prop_map(|path| ("read_file", json!({ "path": path }))),
        3 => prop_oneof![Just(".".to_owned()), path()].prop_map(|path| ("ls", json!({ "path": path }))),
        2 => prop_oneof![Just(".".to_owned()), path()].prop_map(|path| ("total", json!({ "path": path }))),
        3 => path().prop_map(|path| ("read_many_files", json!({ "paths": [path, "*", "d/**"] }))),
        2 => "[pqrx]{1,2}".prop_map(|text| ("grep", json!({ "pattern": text }))),
        2 => Just(("glob", json!({ "pattern": "**/*" }))),
        5 => (path(), "[pqr\n]{0,5}", any::<bool>()).prop_map(|(path, text, over)| {
            ("write_file", json!({ "path": path, "content": text, "overwrite": over }))
        }),
        5 => (path(), "[pqrxyz]", "[pqr]{0,2}").prop_map(|(path, old, new)| {
            ("edit_file", json!({ "path": path, "edits": [{ "target": old, "replacement": new }] }))
        }),
        6 => one("put"),
        5 => one("append"),
        3 => one("remove"),
        3 => two("copy"),
        2 => name().prop_map(|name| ("note", json!({ "path": name }))),
        1 => (path(), path()).prop_map(|(path, target)| ("link", json!({ "path": path, "text": target }))),
        1 => two("rename"),
        1 => path().prop_map(|path| ("cd", json!({ "path": path }))),
        1 => Just(("put", json!({ "path": 7 }))),
        1 => Just(("nonsense", json!({}))),
    ]
}

/// Real commands: those that only read, or whose writes are all known, overlap with others; the rest are barriers.
fn command() -> impl Strategy<Value = (&'static str, Value)> {
    let on_one = |format: fn(String) -> String| path().prop_map(format);
    let on_two = |format: fn((String, String)) -> String| (path(), path()).prop_map(format);
    let line = prop_oneof![
        3 => on_one(|path| format!("cat {path}")),
        2 => on_one(|path| format!("ls {path}")),
        1 => Just("ls".to_owned()),
        1 => Just("cat *".to_owned()),
        1 => Just("find . -type f | sort".to_owned()),
        1 => Just("grep -r x . | sort".to_owned()),
        1 => on_one(|path| format!("wc -c {path}")),
        1 => on_one(|path| format!("sort {path} | uniq")),
        2 => (path(), "[pqr]{1,3}").prop_map(|(path, text)| format!("echo {text} > {path}")),
        1 => (path(), "[pqr]{1,3}").prop_map(|(path, text)| format!("echo {text} >> {path}")),
        1 => on_one(|path| format!("ls > {path}")),
        1 => on_two(|(from, to)| format!("cat {from} > {to}")),
        1 => on_two(|(from, to)| format!("cp {from} {to}")),
        1 => on_two(|(from, to)| format!("mv {from} {to}")),
        1 => on_one(|path| format!("rm -f {path}")),
        1 => on_one(|path| format!("touch {path}")),
        1 => on_one(|path| format!("mkdir -p {path}")),
        1 => on_two(|(dir, path)| format!("cd {dir} && cat {path}")),
        1 => on_one(|path| format!("python3 -c 'open(\"{path}\", \"a\").write(\"q\")'")),
    ];
    line.prop_map(|line| ("shell", json!({ "command": line })))
}

fn plant(root: &Path, seeds: &[Seed]) {
    // What does not fit (a file where a directory is) is left out, in both trees alike.
    for seed in seeds {
        let (Seed::File(path, _) | Seed::Directory(path) | Seed::Link(path, _) | Seed::SecondName(path, _)) =
            seed;
        let path = root.join(path);
        let _ = fs::create_dir_all(path.parent().unwrap());
        let _ = match seed {
            Seed::File(_, text) => fs::write(&path, text),
            Seed::Directory(_) => fs::create_dir_all(&path),
            Seed::Link(_, target) => symlink(target, &path),
            Seed::SecondName(_, other) => fs::hard_link(root.join(other), &path),
        };
    }
}

/// One world: a tree, a session in it, and what came of the calls.
struct LawFixture {
    dir: tempfile::TempDir,
    session: Session,
}

impl LawFixture {
    fn new(seeds: &[Seed]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        plant(root.as_path(), seeds);
        Self { session: session_in(&root), dir }
    }

    /// A result as text, without the name of the temporary directory.
    fn describe_result(&self, result: &CallResult) -> String {
        let text = match result {
            Ok(output) => format!("ok {} {:?}", output.model_text(), timeless(&output.structured)),
            Err(refusal) => format!("{refusal} | {}", refusal.hint),
        };
        text.replace(&self.dir.path().canonicalize().unwrap().display().to_string(), "ROOT")
    }

    fn end(&self) -> (String, String) {
        let cwd = self.session.workspace().cwd.to_string();
        let root = self.dir.path().canonicalize().unwrap();
        (writers::snapshot(&root), cwd.replace(&root.display().to_string(), "ROOT"))
    }
}

/// A structured result without what differs between any two runs.
fn timeless(structured: &Option<Value>) -> Option<Value> {
    let mut value = structured.clone();
    if let Some(Value::Object(fields)) = &mut value {
        fields.retain(|name, _| !name.to_lowercase().contains("duration"));
    }
    value
}

/// Names of everything that may run without a question.
fn granted() -> toolgate_policy::RawPolicy {
    let real = ["Write", "Edit", "Bash"];
    allow_all(&writers::NAMES.iter().copied().chain(real).collect::<Vec<_>>())
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap()
    })
}

fn equip(gate: Gate) -> Arc<Gate> {
    toolgate_tools::register(&gate, Toolset::Plain).unwrap();
    writers::register(&gate);
    Arc::new(gate)
}

fn check(gate: &Arc<Gate>, seeds: &[Seed], acts: &[(&str, Value)]) -> Result<(), TestCaseError> {
    let calls: Vec<ToolCall> = acts
        .iter()
        .enumerate()
        .map(|(index, (tool, input))| ToolCall::new(format!("c{index}"), *tool, input.to_string()))
        .collect();
    let (together, apart) = (LawFixture::new(seeds), LawFixture::new(seeds));
    runtime().block_on(async {
        let batch = gate.call_batch(&together.session, calls.clone(), CallOptions::default()).await;
        prop_assert_eq!(batch.len(), calls.len());
        for (call, closed) in calls.into_iter().zip(&batch) {
            prop_assert_eq!(&closed.record.call, &call.id);
            let one = gate.call(&apart.session, call.clone(), CallOptions::default()).await;
            prop_assert_eq!(
                together.describe_result(&closed.result),
                apart.describe_result(&one.result),
                "{} {} {}",
                call.id,
                call.name,
                call.input
            );
        }
        prop_assert_eq!(together.end(), apart.end());
        Ok(())
    })
}

/// As many batches as in every test run, or their share of a soak (`cargo xtask soak-schedule`), which says how many
/// the main property gets.
fn cases(usual: u32) -> ProptestConfig {
    let soak = std::env::var("TOOLGATE_SOAK_BATCHES").ok().and_then(|text| text.parse::<u32>().ok());
    let cases = soak.map_or(usual, |batches| batches / (USUAL / usual));
    ProptestConfig { cases, max_shrink_iters: 2_000, ..ProptestConfig::default() }
}

/// Batches of the main property in every test run.
const USUAL: u32 = 2_000;

/// Rewrites the input of `put` and `copy`, so that effects are not what they seemed.
struct Redirect;

impl Hook for Redirect {
    fn name(&self) -> &str {
        "redirect"
    }

    fn handles(&self, event: HookEvent, _tool: &ToolIdentity) -> bool {
        event == HookEvent::PreToolUse
    }

    fn handle_call<'a>(
        &'a self,
        call: HookCall<'a>,
    ) -> futures_util::future::BoxFuture<'a, Result<HookAnswer, HookFailure>> {
        let mut input: Map<String, Value> = call.input.clone();
        let rewritten = match input.get("path").and_then(Value::as_str) {
            Some(path) if path.starts_with('a') => {
                input.insert("path".into(), json!(path.replacen('a', "b", 1)));
                true
            }
            _ => false,
        };
        Box::pin(async move {
            tokio::task::yield_now().await;
            Ok(if rewritten { HookAnswer::rewrite(input) } else { HookAnswer::empty() })
        })
    }
}

proptest! {
    #![proptest_config(cases(USUAL))]

    #[test]
    fn the_batch_equals_one_by_one(seeds in vec(seed(), 0..10), acts in vec(act(), 2..14)) {
        static GATE: OnceLock<Arc<Gate>> = OnceLock::new();
        let gate = GATE.get_or_init(|| equip(gate_with(granted()).0));
        check(gate, &seeds, &acts)?;
    }
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn the_batch_equals_one_by_one_with_real_commands(
        seeds in vec(seed(), 2..10),
        acts in vec(prop_oneof![act().boxed(), command().boxed()], 2..8),
    ) {
        static GATE: OnceLock<Arc<Gate>> = OnceLock::new();
        let gate = GATE.get_or_init(|| equip(gate_with(granted()).0));
        check(gate, &seeds, &acts)?;
    }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn the_batch_equals_one_by_one_though_a_hook_rewrites_inputs(
        seeds in vec(seed(), 0..10),
        acts in vec(act(), 2..10),
    ) {
        static GATE: OnceLock<Arc<Gate>> = OnceLock::new();
        let gate = GATE.get_or_init(|| {
            equip(Gate::new(GateParts::default().with_policy(granted()).with_hooks(vec![Arc::new(Redirect)]).with_sinks(Vec::<Arc<dyn Sink>>::new())))
        });
        check(gate, &seeds, &acts)?;
    }
}

/// A call that waits may find its file gone, and is then told of the neighbours: none may have come meanwhile that was
/// not there in its turn.
#[test]
fn no_call_overtakes_one_that_will_miss_its_file() {
    let gate = equip(gate_with(granted()).0);
    let path = |name: &str| json!({ "path": name, "text": "x" });
    for missing in ["append", "read_file"] {
        let input = if missing == "append" { path("a") } else { json!({ "path": "a" }) };
        let acts = [("remove", path("a")), (missing, input), ("put", path("ab")), ("put", path("b/b"))];
        for _ in 0..200 {
            check(&gate, &[Seed::File("a".into(), "y".into())], &acts).unwrap();
        }
    }
}

/// A property that held because nothing ever overlapped would be worth nothing.
#[test]
fn writers_of_different_files_do_overlap() {
    let gate = equip(gate_with(granted()).0);
    let world = LawFixture::new(&[]);
    let overlap = world.session.state::<writers::Overlap>();
    runtime().block_on(async {
        // One processor that others keep busy may take many rounds to show it.
        for _ in 0..20_000 {
            if overlap.most.load(Ordering::SeqCst) > 1 {
                break;
            }
            let calls = (0..8)
                .map(|index| {
                    let input = json!({ "path": format!("f{index}"), "text": "x" });
                    ToolCall::new(format!("c{index}"), "put", input.to_string())
                })
                .collect();
            let closed = gate.call_batch(&world.session, calls, CallOptions::default()).await;
            assert!(closed.iter().all(|closed| closed.result.is_ok()));
        }
    });
    assert!(overlap.most.load(Ordering::SeqCst) > 1);
}
