//! The corpus of hostile paths on real files and symlinks, with calls through the gate.
//!
//! The policy crate judges the same cases without files.
//! Here a case passes only if no secret is in the result, no file outside changed, and an allowed call had its effect.
//! The directories of the corpus (`/ws`, `/outside`, …) are below a temporary directory; `/etc`, `/proc` and `/dev` are
//! those of the machine.

use super::file_fixture::memory_dir;
use rustix::fs::{CWD, FileType, Mode as Bits, mknodat};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use toolgate_files::ContentCheck;
use toolgate_gate::{CallOptions, Gate, GateParts, Session};
use toolgate_policy::{Layer, LayerRules, RawPolicy};
use toolgate_proto::{AbsPath, CallResult, Code, Mode, Principal, Refusal, ToolCall, Workspace};
use toolgate_tools::{Toolset, register};

const CORPUS: &str = include_str!("../../../policy/tests/corpus/paths.jsonl");
const SECRET: &str = "the-secret";

#[test]
fn every_case_of_the_path_corpus_passes_on_real_files() {
    let (mut passed, mut skipped, mut broken) = (0, Vec::new(), Vec::new());
    for line in CORPUS.lines().filter(|line| !line.trim().is_empty()) {
        let case: Value = serde_json::from_str(line).unwrap();
        let id = case["id"].as_str().unwrap().to_owned();
        match run_case(&case) {
            Ok(()) => passed += 1,
            Err(CaseFailure::Skipped(why)) => skipped.push(format!("{id} ({why})")),
            Err(CaseFailure::Broken(words)) => {
                broken.push(format!("{id} {}: {words}", case["why"].as_str().unwrap()));
            }
        }
    }
    println!("{passed} cases pass; {} are skipped: {}", skipped.len(), skipped.join(", "));
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(passed >= 90, "only {passed} cases ran");
}

/// Why a case did not pass.
enum CaseFailure {
    /// The case is for another system, or no tool takes such a path.
    Skipped(&'static str),
    /// The result or the files are not what the case expects.
    Broken(String),
}

/// The temporary directory with the files of one case.
struct CorpusTree {
    top: PathBuf,
    _dir: tempfile::TempDir,
}

impl CorpusTree {
    fn new() -> Self {
        let dir = memory_dir();
        let top = dir.path().canonicalize().unwrap();
        for name in ["ws", "outside", "other", "data", "home/.ssh", "tmp"] {
            std::fs::create_dir_all(top.join(name)).unwrap();
        }
        Self { top, _dir: dir }
    }

    /// Maps an absolute path of the corpus into the temporary directory. Other paths stay as they are.
    fn map_path(&self, path: &str) -> String {
        const OURS: [&str; 9] =
            ["/ws", "/w", "/outside", "/other", "/alias", "/data", "/tmp/toolgate", "/ws2", "/ws-evil"];
        let ours = OURS
            .iter()
            .any(|name| path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')));
        if ours { format!("{}{path}", self.top.display()) } else { path.to_owned() }
    }

    /// The file that a path of the corpus names, relative paths included.
    fn file_of(&self, path: &str) -> PathBuf {
        match path.strip_prefix("~/") {
            Some(rest) => self.top.join("home").join(rest),
            None => self.top.join("ws").join(self.map_path(path)),
        }
    }

    /// Everything in the tree: files with their content, symlinks with their target.
    fn snapshot(&self) -> BTreeMap<PathBuf, String> {
        fn visit(dir: &Path, found: &mut BTreeMap<PathBuf, String>) {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let kind = path.symlink_metadata().unwrap().file_type();
                let seen = if kind.is_symlink() {
                    format!("-> {}", std::fs::read_link(&path).unwrap().display())
                } else if kind.is_file() {
                    String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned()
                } else {
                    format!("{kind:?}")
                };
                if kind.is_dir() {
                    visit(&path, found);
                }
                found.insert(path, seen);
            }
        }
        let mut found = BTreeMap::new();
        visit(&self.top, &mut found);
        found
    }

    /// The same without the workspace.
    fn snapshot_outside(&self) -> BTreeMap<PathBuf, String> {
        let mut all = self.snapshot();
        all.retain(|path, _| !path.starts_with(self.top.join("ws")));
        all
    }
}

fn run_case(case: &Value) -> Result<(), CaseFailure> {
    let policy = &case["policy"];
    if policy["platform"] == "windows" {
        return Err(CaseFailure::Skipped("another system's paths"));
    }
    if policy["internal"] == true || policy["op"] == "git_diff_ref" {
        return Err(CaseFailure::Skipped("no tool takes such a path"));
    }
    if policy["follow_symlinks"] == true {
        return Err(CaseFailure::Skipped("no search follows symlinks"));
    }
    let input = case["input"].as_str().unwrap();
    let op = policy["op"].as_str().unwrap();
    let allowed = case["expect"] == "allow";
    let tree = CorpusTree::new();
    create_files(&tree, policy, input, op, allowed);
    let interceptor = Arc::new(ChangeInterceptor { armed: AtomicBool::new(false), work: Mutex::new(None) });
    let (gate, session) = gate_for(&tree, policy, &interceptor);
    let call_tool = |tool: &str, input: Value| call_tool(&gate, &session, tool, &input);
    for (tool, call) in calls(&tree, op, input) {
        let before = (tree.snapshot(), tree.snapshot_outside());
        let result = match policy.get("race") {
            Some(race) => call_during_race(&tree, race, &interceptor, &|| call_tool(&tool, call.clone())),
            None => call_tool(&tool, call.clone()),
        };
        let after = (tree.snapshot(), tree.snapshot_outside());
        let result = result_of_single_file(result);
        let text = format!("{result:?}");
        let broken =
            |words: &str| Err(CaseFailure::Broken(format!("{tool} {call}: {words}; result: {text}")));
        if text.contains(SECRET) {
            return broken("the result contains the secret");
        }
        if before.1 != after.1 {
            return broken("something outside was changed");
        }
        match (allowed, &result) {
            (true, Err(_)) => return broken("it was refused"),
            (true, Ok(output)) if op == "read" && !output.model_text().contains("inside") => {
                return broken("it did not read what is there");
            }
            (true, Ok(_)) if matches!(op, "write" | "edit") && before.0 == after.0 => {
                return broken("it changed nothing");
            }
            (false, Ok(_)) if case.get("also_ok").is_none() => return broken("it was allowed"),
            (false, Err(_)) if policy.get("race").is_none() && before.0 != after.0 => {
                return broken("it was refused and changed something");
            }
            (false, Err(refusal))
                if case["strict"] == "deny" && refusal.code == Code::ApprovalUnavailable =>
            {
                return broken("it needed approval, but a rule should deny it");
            }
            _ => {}
        }
    }
    Ok(())
}

/// `read_many_files` reports an error per file; with one file that is the result of the call.
fn result_of_single_file(result: CallResult) -> CallResult {
    let output = result?;
    let error = output.structured.as_ref().map(|it| &it["files"][0]["error"]).and_then(Value::as_str);
    match error {
        Some(kind) => Err(Refusal::new(Code::FileRead, kind)),
        None => Ok(output),
    }
}

/// Creates the files of the case. Those that must not be read contain the secret.
fn create_files(tree: &CorpusTree, policy: &Value, input: &str, op: &str, allowed: bool) {
    let make = |path: &Path, text: &str| {
        // A name that no file can have (empty, or with a NUL byte) is for the tool to refuse.
        if path.parent().is_some_and(|parent| std::fs::create_dir_all(parent).is_ok()) {
            let _ = std::fs::write(path, text);
        }
    };
    for name in ["f", "f.txt", "secret.txt", ".ssh/authorized_keys"] {
        make(&tree.top.join("outside").join(name), SECRET);
    }
    make(&tree.top.join("secret.txt"), SECRET);
    make(&tree.top.join("ws/a.txt"), "inside");
    make(&tree.top.join("ws/logs/1.txt"), "inside");
    make(&tree.top.join("ws/.store/index.js"), "inside");
    make(&tree.top.join("ws/node_modules/typescript/bin/tsc"), "inside");
    for node in policy["fs"].as_array().into_iter().flatten() {
        let path = tree.file_of(node["path"].as_str().unwrap());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let to = || tree.map_path(node["to"].as_str().unwrap());
        match node["kind"].as_str().unwrap() {
            "symlink" => {
                let to = to();
                if to.starts_with('/') && !to.contains('.') {
                    let _ = std::fs::create_dir_all(&to);
                }
                symlink(to, path).unwrap();
            }
            "hardlink" => std::fs::hard_link(to(), path).unwrap(),
            "fifo" => mknodat(CWD, &path, FileType::Fifo, Bits::RUSR | Bits::WUSR, 0).unwrap(),
            "absent" => {}
            other => panic!("{other}"),
        }
    }
    let goal = tree.file_of(input);
    let ours = goal.starts_with(&tree.top);
    let there = goal.symlink_metadata().is_ok();
    if matches!(op, "read" | "edit" | "git_add") && ours && !there {
        make(&goal, if allowed || op == "edit" { "inside" } else { SECRET });
    }
}

fn calls(tree: &CorpusTree, op: &str, input: &str) -> Vec<(String, Value)> {
    let path = tree.map_path(input);
    let absolute = path.starts_with('/');
    let mut calls = Vec::new();
    let mut add = |tool: &str, input: Value| calls.push((tool.to_owned(), input));
    match op {
        "read" | "git_add" => {
            add("read_file", json!({ "path": path }));
            if absolute {
                add("Read", json!({ "file_path": path }));
            }
            add("read_many_files", json!({ "paths": [path] }));
        }
        "list" => add("ls", json!({ "path": path })),
        "write" => {
            add("write_file", json!({ "path": path, "content": "written", "overwrite": true }));
            if absolute && !tree.file_of(input).exists() {
                add("Write", json!({ "file_path": path, "content": "written once more" }));
            }
        }
        "edit" => add(
            "edit_file",
            json!({ "path": path, "edits": [{ "target": "inside", "replacement": "changed" }] }),
        ),
        "glob" => {
            let (dir, name) = path.rsplit_once('/').unwrap();
            add("Glob", json!({ "pattern": name, "path": dir }));
            add("glob", json!({ "pattern": name, "directory": dir }));
        }
        "grep" => {
            add("Grep", json!({ "pattern": SECRET, "path": path, "output_mode": "files_with_matches" }));
            add("grep", json!({ "pattern": SECRET, "directory": path }));
        }
        other => panic!("{other}"),
    }
    calls
}

/// A content check that runs a function once, between the judgement of a change and the change.
struct ChangeInterceptor {
    armed: AtomicBool,
    work: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl std::fmt::Debug for ChangeInterceptor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ChangeInterceptor")
    }
}

impl ContentCheck for ChangeInterceptor {
    fn check(&self, _: &AbsPath, _: &[u8]) -> Result<(), Vec<String>> {
        if self.armed.swap(false, Ordering::SeqCst)
            && let Some(work) = self.work.lock().unwrap().take()
        {
            work();
        }
        Ok(())
    }
}

/// Makes the call while another program replaces a path, as the case describes.
fn call_during_race(
    tree: &CorpusTree,
    race: &Value,
    interceptor: &Arc<ChangeInterceptor>,
    call: &dyn Fn() -> CallResult,
) -> CallResult {
    let path = tree.file_of(race["path"].as_str().unwrap());
    if race["kind"] == "content-changed" {
        let arm: Box<dyn FnOnce() + Send> =
            Box::new(move || std::fs::write(path, "another program's").unwrap());
        *interceptor.work.lock().unwrap() = Some(arm);
        interceptor.armed.store(true, Ordering::SeqCst);
        return call();
    }
    let to = tree.map_path(race["to"].as_str().unwrap());
    let aside = path.with_extension("aside");
    let exchange = move || {
        if path.symlink_metadata().is_ok() && std::fs::rename(&path, &aside).is_err() {
            return false;
        }
        symlink(&to, &path).is_ok()
    };
    if race["after"] == "mkdir" {
        // Another program could watch for the new directory; this thread polls for it.
        let path = tree.file_of(race["path"].as_str().unwrap());
        let over = AtomicBool::new(false);
        return std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    if path.is_dir() && exchange() {
                        break;
                    }
                }
            });
            let result = call();
            over.store(true, Ordering::SeqCst);
            result
        });
    }
    *interceptor.work.lock().unwrap() = Some(Box::new(move || assert!(exchange())));
    interceptor.armed.store(true, Ordering::SeqCst);
    call()
}

fn gate_for(tree: &CorpusTree, policy: &Value, interceptor: &Arc<ChangeInterceptor>) -> (Gate, Session) {
    let abs = |path: PathBuf| AbsPath::new(path).unwrap();
    let root = abs(tree.top.join("ws"));
    let list = |name: &str| -> Vec<String> {
        policy[name].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let rules = |name: &str| {
        let rules = list(name).into_iter();
        rules.map(|rule| rule.replace("(//", &format!("(/{}/", tree.top.display())).into()).collect()
    };
    let mut layer = LayerRules::new(Layer::Cli, root.clone());
    (layer.allow, layer.deny) = (rules("allow"), rules("deny"));
    let mode = policy["mode"].as_str().unwrap().parse::<Mode>().unwrap();
    let mut raw = RawPolicy::default().with_mode(mode).with_layers(vec![layer]);
    (raw.protected_names, raw.sensitive) = (list("protected"), list("sensitive"));
    let gate = Gate::new(
        GateParts::default()
            .with_policy(raw)
            .with_content_checks(vec![Arc::clone(interceptor) as Arc<dyn ContentCheck>]),
    );
    register(&gate, Toolset::Claude).unwrap();
    register(&gate, Toolset::Plain).unwrap();
    let workspace = Workspace::new(root).with_home(abs(tree.top.join("home")));
    (gate, Session::new("s".into(), Principal::new("test"), workspace))
}

fn call_tool(gate: &Gate, session: &Session, tool: &str, input: &Value) -> CallResult {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let call = ToolCall::new("c", tool, input.to_string());
    runtime.block_on(gate.call(session, call, CallOptions::default())).result
}
