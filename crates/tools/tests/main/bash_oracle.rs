//! Command lines that are allowed without a rule, run in the real sandbox: even where the analysis is wrong, nothing is
//! written, no secret is shown, and no program starts that the judgement did not list.

#[path = "../../../policy/tests/shell/oracle/generate.rs"]
mod generate;
#[path = "../../../policy/tests/shell/oracle/mutate.rs"]
mod mutate;

use super::random_numbers::{SeededRandom, setting};
use super::shell_fixture::block_on_runtime;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toolgate_gate::{CallOptions, Gate, GateParts};
use toolgate_policy::{Enforcement, RawPolicy};
use toolgate_process::sandbox::KernelSupport;
use toolgate_proto::{AbsPath, Stage, ToolCall};
use toolgate_testkit::session_in;
use toolgate_tools::{ShellConfig, Toolset, register, set_shell_config};

const CORPUS: [&str; 2] = [
    include_str!("../../../policy/tests/corpus/shell.jsonl"),
    include_str!("../../../policy/tests/corpus/shell-round2.jsonl"),
];

/// Command lines whose arguments are known only at run time, and ones that read secrets: only the kernel can limit them.
const DYNAMIC: &[&str] = &[
    "ls | xargs cat",
    "find . -type f | xargs cat",
    "find . -type f -exec cat {} +",
    "cat $(ls -a)",
    "cat *",
    "for f in $(ls -a); do cat \"$f\"; done",
    "while read -r f; do cat \"$f\"; done < names",
    "ls -a | while read -r f; do cat \"$f\"; done",
    "grep -r . .",
    "grep -rn hunter2 . | head",
    "rg --hidden hunter2 .",
    "awk '{ print }' *",
    "head -n 5 sub/*",
    "wc -l $(find . -name '.e*')",
    "f=.env; cat \"$f\"",
    "files=(.env a.txt); cat \"${files[@]}\"",
    "echo .env | xargs cat",
    "printf '%s\\n' .env ../outside | xargs cat",
    "sort -u $(git ls-files 2>/dev/null) names",
    "tail -n +1 */*",
    "diff -r . sub",
    "cat names | xargs -I{} cat {}",
    "find . -name .env -exec head {} \\;",
    "stat -c %n $(ls -a)",
    "strings *",
    "od -c twin",
    "cat link",
    "cat sub/../link",
];

/// A workspace with secrets in it and beside it, and a gate without rules.
struct OracleFixture {
    dir: tempfile::TempDir,
    gate: Gate,
}

impl OracleFixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let gate = Gate::new(
            GateParts::default().with_policy(RawPolicy::default().with_enforcement(Enforcement::Kernel)),
        );
        register(&gate, Toolset::Claude).unwrap();
        let fixture = Self { dir, gate };
        for name in ["ws/sub", "ws/src", "temp", "home"] {
            std::fs::create_dir_all(fixture.path(name)).unwrap();
        }
        let write = |name: &str, text: &str| std::fs::write(fixture.path(name), text).unwrap();
        write("ws/a.txt", "plain\n");
        write("ws/.env", "S=hunter2\n");
        write("ws/sub/id_rsa", "hunter2\n");
        write("ws/sub/b.txt", "plain\n");
        write("ws/names", "a.txt\n.env\n../outside\nsub/id_rsa\n");
        write("ws/package.json", "{}\n");
        write("outside", "hunter2\n");
        std::os::unix::fs::symlink(fixture.path("outside"), fixture.path("ws/link")).unwrap();
        std::fs::hard_link(fixture.path("ws/.env"), fixture.path("ws/twin")).unwrap();
        fixture
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    /// Runs a command line if it is allowed without approval: its output, and the number of anomalies. `None` if it is not
    /// allowed.
    async fn run(&self, command: &str) -> Option<(String, usize)> {
        let session = session_in(&AbsPath::new(self.path("ws")).unwrap());
        let temp_dir = AbsPath::new(self.path("temp")).unwrap();
        let mut config = ShellConfig::new(std::env::vars().collect(), temp_dir);
        config.set = BTreeMap::from([("HOME".to_owned(), self.path("home").display().to_string())]);
        set_shell_config(&session, config);
        let input = json!({ "command": command, "timeout": 5000 });
        let call = ToolCall::new(toolgate_files::generate_id("call_"), "Bash", input.to_string());
        let outcome = self.gate.call(&session, call, CallOptions::default()).await;
        let output = match outcome.result {
            Ok(output) => output.model_text(),
            Err(refusal) if refusal.stage < Stage::Run => return None,
            Err(refusal) => refusal.partial.map(|output| output.model_text()).unwrap_or_default(),
        };
        Some((output, outcome.record.anomalies.len()))
    }

    fn snapshots(&self) -> [Vec<(PathBuf, Vec<u8>, u32)>; 3] {
        ["ws", "outside", "home"].map(|name| snapshot(&self.path(name)))
    }
}

/// Every file with its content and mode.
fn snapshot(top: &Path) -> Vec<(PathBuf, Vec<u8>, u32)> {
    use std::os::unix::fs::PermissionsExt;
    let mut out = Vec::new();
    let mut pending = vec![top.to_path_buf()];
    while let Some(path) = pending.pop() {
        let meta = std::fs::symlink_metadata(&path).unwrap();
        if meta.is_dir() {
            pending.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        let content = if meta.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
        out.push((path, content, meta.permissions().mode()));
    }
    out.sort();
    out
}

fn is_enforced() -> bool {
    let enforced = KernelSupport::detect().enforces_rights();
    if !enforced {
        println!("skipped: this kernel does not enforce the rights of commands");
    }
    enforced
}

#[test]
fn lines_that_pass_do_nothing_but_read_in_the_sandbox() {
    if !is_enforced() {
        return;
    }
    block_on_runtime(async {
        let fixture = OracleFixture::new();
        let before = fixture.snapshots();
        let cases: Vec<String> = CORPUS
            .iter()
            .flat_map(|text| text.lines())
            .map(|line| serde_json::from_str::<Value>(line).unwrap())
            .filter_map(|case| case["input"].as_str().map(str::to_owned))
            .chain(DYNAMIC.iter().map(|line| (*line).to_owned()))
            .collect();
        let (mut ran, mut dynamic) = (0, 0);
        for line in &cases {
            let Some((output, _)) = fixture.run(line).await else { continue };
            ran += 1;
            dynamic += usize::from(DYNAMIC.contains(&line.as_str()));
            assert!(!output.contains("hunter2"), "{line}: {output}");
            assert!(fixture.snapshots() == before, "{line} changed something: {output}");
        }
        println!(
            "{ran} of {} lines ran, {dynamic} of them with arguments that are known only at run time",
            cases.len()
        );
        assert!(ran > 100 && dynamic > 8, "{ran} {dynamic}");
    });
}

/// The same for generated command lines and for mutated lines of the corpus; `cargo xtask oracle` tries more of them.
#[test]
fn generated_lines_that_pass_do_nothing_but_read_in_the_sandbox() {
    if !is_enforced() {
        return;
    }
    block_on_runtime(async {
        let fixture = OracleFixture::new();
        let before = fixture.snapshots();
        let lines = setting("TOOLGATE_SANDBOX_LINES", 4_000);
        let mut random = SeededRandom::new(setting("TOOLGATE_ORACLE_SEED", 1));
        let corpus = mutate::Corpus::load();
        let (mut ran, mut with_anomalies) = (0, Vec::new());
        for number in 0..lines {
            if number % 10_000 == 9_999 {
                println!("{number} lines, {ran} ran, {} with anomalies", with_anomalies.len());
            }
            let mutated = random.one_in(4);
            let line = if mutated { corpus.line(&mut random) } else { generate::line(&mut random) };
            if line.contains('\0') {
                continue;
            }
            let Some((output, anomalies)) = fixture.run(&line).await else { continue };
            ran += 1;
            // A program of the corpus may try more by itself: version managers start what is installed.
            if anomalies > 0 && mutated {
                println!("a program of the corpus tried more: {line:?}");
            } else if anomalies > 0 {
                println!("refused by the sandbox: {line:?}: {output}");
                with_anomalies.push(line.clone());
            }
            assert!(!output.contains("hunter2"), "{line:?}: {output}");
            assert!(fixture.snapshots() == before, "{line:?} changed something: {output}");
        }
        println!(
            "{lines} lines generated, {ran} passed and ran in the sandbox, {} tried more than their judgement predicts",
            with_anomalies.len()
        );
        assert!(with_anomalies.is_empty(), "refused by the sandbox: {with_anomalies:#?}");
        assert!(ran > 0);
    });
}
