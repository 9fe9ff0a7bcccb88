//! The corpus of hostile paths, carried out: real files and links, calls through the gate, and a look at what became
//! of every file.
//!
//! The policy crate judges the same cases on paper.
//! Here a case holds only if nothing that must not be read was said, nothing that must not be changed was changed, and
//! what must be allowed was done.
//! The names of the corpus (`/ws`, `/outside`, …) stand below a temporary directory; `/etc`, `/proc` and `/dev` are
//! the machine's own.

use super::files_room::scratch;
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
fn the_corpus_holds_when_it_is_carried_out() {
    let (mut held, mut left_out, mut broken) = (0, Vec::new(), Vec::new());
    for line in CORPUS.lines().filter(|line| !line.trim().is_empty()) {
        let case: Value = serde_json::from_str(line).unwrap();
        let id = case["id"].as_str().unwrap().to_owned();
        match carry_out(&case) {
            Ok(()) => held += 1,
            Err(Trouble::LeftOut(why)) => left_out.push(format!("{id} ({why})")),
            Err(Trouble::Broken(words)) => {
                broken.push(format!("{id} {}: {words}", case["why"].as_str().unwrap()));
            }
        }
    }
    println!("{held} cases hold; {} cannot be carried out here: {}", left_out.len(), left_out.join(", "));
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    assert!(held >= 90, "only {held} cases were carried out");
}

enum Trouble {
    /// Not a case for this machine, or not one for files.
    LeftOut(&'static str),
    Broken(String),
}

/// The directory that a case's names stand below.
struct Ground {
    top: PathBuf,
    _dir: tempfile::TempDir,
}

impl Ground {
    fn new() -> Self {
        let dir = scratch();
        let top = dir.path().canonicalize().unwrap();
        for name in ["ws", "outside", "other", "data", "home/.ssh", "tmp"] {
            std::fs::create_dir_all(top.join(name)).unwrap();
        }
        Self { top, _dir: dir }
    }

    /// A path of the corpus, here. Those of the machine and relative ones stay as they are.
    fn spell(&self, path: &str) -> String {
        const OURS: [&str; 9] =
            ["/ws", "/w", "/outside", "/other", "/alias", "/data", "/tmp/toolgate", "/ws2", "/ws-evil"];
        let ours = OURS
            .iter()
            .any(|name| path.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')));
        if ours { format!("{}{path}", self.top.display()) } else { path.to_owned() }
    }

    /// A path as the file system sees it.
    fn real(&self, path: &str) -> PathBuf {
        match path.strip_prefix("~/") {
            Some(rest) => self.top.join("home").join(rest),
            None => self.top.join("ws").join(self.spell(path)),
        }
    }

    /// Everything below it: files with their content, links with their goal.
    fn look(&self) -> BTreeMap<PathBuf, String> {
        fn walk(dir: &Path, found: &mut BTreeMap<PathBuf, String>) {
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
                    walk(&path, found);
                }
                found.insert(path, seen);
            }
        }
        let mut found = BTreeMap::new();
        walk(&self.top, &mut found);
        found
    }

    fn outside(&self) -> BTreeMap<PathBuf, String> {
        let mut all = self.look();
        all.retain(|path, _| !path.starts_with(self.top.join("ws")));
        all
    }
}

fn carry_out(case: &Value) -> Result<(), Trouble> {
    let policy = &case["policy"];
    if policy["platform"] == "windows" {
        return Err(Trouble::LeftOut("another system's paths"));
    }
    if policy["internal"] == true || policy["op"] == "git_diff_ref" {
        return Err(Trouble::LeftOut("no tool takes such a path"));
    }
    if policy["follow_symlinks"] == true {
        return Err(Trouble::LeftOut("no search follows links"));
    }
    let input = case["input"].as_str().unwrap();
    let op = policy["op"].as_str().unwrap();
    let allowed = case["expect"] == "allow";
    let ground = Ground::new();
    furnish(&ground, policy, input, op, allowed);
    let swap = Arc::new(Swap { armed: AtomicBool::new(false), work: Mutex::new(None) });
    let (gate, session) = gate_over(&ground, policy, &swap);
    let ask = |tool: &str, input: Value| ask(&gate, &session, tool, &input);
    for (tool, call) in calls(&ground, op, input) {
        let before = (ground.look(), ground.outside());
        let result = match policy.get("race") {
            Some(race) => raced(&ground, race, &swap, &|| ask(&tool, call.clone())),
            None => ask(&tool, call.clone()),
        };
        let after = (ground.look(), ground.outside());
        let result = each_refused(result);
        let said = format!("{result:?}");
        let broken = |words: &str| Err(Trouble::Broken(format!("{tool} {call}: {words}; it said {said}")));
        if said.contains(SECRET) {
            return broken("it told the secret");
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
            (false, Ok(_)) if case.get("also_ok").is_none() => return broken("it was let through"),
            (false, Err(_)) if policy.get("race").is_none() && before.0 != after.0 => {
                return broken("it was refused and changed something");
            }
            (false, Err(refusal)) if case["strict"] == "deny" && refusal.code == Code::NobodyToAsk => {
                return broken("it was asked about, and a rule denies it");
            }
            _ => {}
        }
    }
    Ok(())
}

/// A call for several files answers for each; here there is one.
fn each_refused(result: CallResult) -> CallResult {
    let output = result?;
    let error = output.structured.as_ref().map(|it| &it["files"][0]["error"]).and_then(Value::as_str);
    match error {
        Some(kind) => Err(Refusal::new(Code::FileRead, kind)),
        None => Ok(output),
    }
}

/// Makes what the case speaks of. What must not be read holds the secret.
fn furnish(ground: &Ground, policy: &Value, input: &str, op: &str, allowed: bool) {
    let make = |path: &Path, text: &str| {
        // Names that no file can have (a zero byte, nothing at all) are for the tool to refuse.
        if path.parent().is_some_and(|parent| std::fs::create_dir_all(parent).is_ok()) {
            let _ = std::fs::write(path, text);
        }
    };
    for name in ["f", "f.txt", "secret.txt", ".ssh/authorized_keys"] {
        make(&ground.top.join("outside").join(name), SECRET);
    }
    make(&ground.top.join("secret.txt"), SECRET);
    make(&ground.top.join("ws/a.txt"), "inside");
    make(&ground.top.join("ws/logs/1.txt"), "inside");
    make(&ground.top.join("ws/.store/index.js"), "inside");
    make(&ground.top.join("ws/node_modules/typescript/bin/tsc"), "inside");
    for node in policy["fs"].as_array().into_iter().flatten() {
        let path = ground.real(node["path"].as_str().unwrap());
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let to = || ground.spell(node["to"].as_str().unwrap());
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
    let goal = ground.real(input);
    let ours = goal.starts_with(&ground.top);
    let there = goal.symlink_metadata().is_ok();
    if matches!(op, "read" | "edit" | "git_add") && ours && !there {
        make(&goal, if allowed || op == "edit" { "inside" } else { SECRET });
    }
}

fn calls(ground: &Ground, op: &str, input: &str) -> Vec<(String, Value)> {
    let path = ground.spell(input);
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
            if absolute && !ground.real(input).exists() {
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

/// Does something once, between the judgement of a change and the change.
struct Swap {
    armed: AtomicBool,
    work: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl std::fmt::Debug for Swap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Swap")
    }
}

impl ContentCheck for Swap {
    fn check(&self, _: &AbsPath, _: &[u8]) -> Result<(), Vec<String>> {
        if self.armed.swap(false, Ordering::SeqCst)
            && let Some(work) = self.work.lock().unwrap().take()
        {
            work();
        }
        Ok(())
    }
}

fn raced(ground: &Ground, race: &Value, swap: &Arc<Swap>, call: &dyn Fn() -> CallResult) -> CallResult {
    let path = ground.real(race["path"].as_str().unwrap());
    if race["kind"] == "content-changed" {
        let arm: Box<dyn FnOnce() + Send> =
            Box::new(move || std::fs::write(path, "somebody else's").unwrap());
        *swap.work.lock().unwrap() = Some(arm);
        swap.armed.store(true, Ordering::SeqCst);
        return call();
    }
    let to = ground.spell(race["to"].as_str().unwrap());
    let aside = path.with_extension("aside");
    let exchange = move || {
        if path.symlink_metadata().is_ok() && std::fs::rename(&path, &aside).is_err() {
            return false;
        }
        symlink(&to, &path).is_ok()
    };
    if race["after"] == "mkdir" {
        // Whoever is told of the new directory swaps it at once; here, whoever sees it first.
        let path = ground.real(race["path"].as_str().unwrap());
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
    *swap.work.lock().unwrap() = Some(Box::new(move || assert!(exchange())));
    swap.armed.store(true, Ordering::SeqCst);
    call()
}

fn gate_over(ground: &Ground, policy: &Value, swap: &Arc<Swap>) -> (Gate, Session) {
    let abs = |path: PathBuf| AbsPath::new(path).unwrap();
    let root = abs(ground.top.join("ws"));
    let list = |name: &str| -> Vec<String> {
        policy[name].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let rules = |name: &str| {
        let rules = list(name).into_iter();
        rules.map(|rule| rule.replace("(//", &format!("(/{}/", ground.top.display())).into()).collect()
    };
    let mut layer = LayerRules::new(Layer::Cli, root.clone());
    (layer.allow, layer.deny) = (rules("allow"), rules("deny"));
    let gate = Gate::new(
        GateParts::default()
            .with_policy(RawPolicy {
                mode: policy["mode"].as_str().unwrap().parse::<Mode>().unwrap(),
                layers: vec![layer],
                protected_names: list("protected"),
                sensitive: list("sensitive"),
                ..RawPolicy::default()
            })
            .with_content_checks(vec![Arc::clone(swap) as Arc<dyn ContentCheck>]),
    );
    register(&gate, Toolset::Claude).unwrap();
    register(&gate, Toolset::Plain).unwrap();
    let workspace =
        Workspace { cwd: root.clone(), roots: vec![root], home: Some(abs(ground.top.join("home"))) };
    (gate, Session::new("s".into(), Principal::new("test"), workspace))
}

fn ask(gate: &Gate, session: &Session, tool: &str, input: &Value) -> CallResult {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let call = ToolCall::new("c", tool, input.to_string());
    runtime.block_on(gate.call(session, call, CallOptions::default())).result
}
