//! The program-list oracle: bash does with an allowed line only what was judged.
//!
//! Lines are generated from the grammar of bash, and by mutation of the lines of the corpus. Real bash runs those that
//! the policy allows in a temporary directory tree with stub programs. No program may run that
//! [`CommandAnalysis::programs`] does not list, no file may change, and no output may contain a secret.

pub(crate) mod generate;
mod mutate;
mod scratch_tree;

use super::super::policy::fake_workspace::{FakeWorkspace, abs, action, raw_policy};
use super::random_numbers::{SeededRandom, setting};
use mutate::Corpus;
use scratch_tree::ScratchTree;
use serde_json::json;
use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::{Duration, Instant};
use toolgate_policy::{Policy, RuleAction};
use toolgate_proto::{CommandLine, PathScope, ShellKind};
use toolgate_shell_syntax::{CommandAnalysis, analyse};

/// The allow rules of the oracle: the first five marker programs, and one exact command.
const RULES: &[&str] = &["Bash(m0 *)", "Bash(m1 *)", "Bash(m2 *)", "Bash(m3 *)", "Bash(m4 *)", "Bash(m5 a)"];

/// Names outside of the directory tree. A mutated line with one of them is judged, but not run.
const NOT_RUN: &[&str] = &[
    "/bin", "/usr", "/etc", "/sbin", "/lib", "/proc", "/sys", "/var", "/opt", "/root", "kill", "/dev/tcp",
    "/dev/udp", "/dev/sd",
];

/// What a search has counted.
#[derive(Default, Debug)]
struct OracleTally {
    /// Lines that were generated.
    generated: u64,
    /// Lines that rules for markers allow, or that only read.
    allowed: u64,
    /// Lines that only a rule for every command allows.
    allowed_bare: u64,
    /// Allowed lines of the plain subset.
    plain: u64,
    /// Runs of bash.
    runs: u64,
    /// Runs in which a program was started.
    ran_something: u64,
    /// Lines that show a secret through a glob or a whole tree; the runtime withholds these files.
    by_pattern: u64,
    /// Descriptions of the lines that did more than was judged.
    violations: Vec<String>,
}

/// One thread of a search.
struct Worker {
    /// The source of randomness.
    random: SeededRandom,
    /// The lines that are mutated.
    corpus: Corpus,
    /// The directory tree in which lines run.
    scratch: ScratchTree,
    /// The inputs of the policy besides the line.
    world: FakeWorkspace,
    /// The policy with [`RULES`].
    narrow: Policy,
    /// The policy with a rule that allows every command.
    bare: Policy,
    /// The hashes of the lines so far.
    seen: HashSet<u64>,
    /// What was counted.
    tally: OracleTally,
}

impl Worker {
    fn new(seed: u64) -> Self {
        let corpus = Corpus::load();
        let scratch = ScratchTree::new(program_names(&corpus));
        let mut world = FakeWorkspace::new(scratch.work().to_str().unwrap());
        world.workspace.home = Some(abs(scratch.home().to_str().unwrap()));
        let compile =
            |rules: &[&str]| raw_policy(&json!({ "permissions": { "allow": rules } }), &world).compile().0;
        let (narrow, bare) = (compile(RULES), compile(&["Bash"]));
        Self {
            random: SeededRandom::new(seed),
            corpus,
            scratch,
            world,
            narrow,
            bare,
            seen: HashSet::new(),
            tally: OracleTally::default(),
        }
    }

    /// Generates one line, and runs it if it is allowed.
    fn step(&mut self) {
        let mutated = self.random.one_in(4);
        let text =
            if mutated { self.corpus.line(&mut self.random) } else { generate::line(&mut self.random) };
        self.tally.generated += 1;
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        if !self.seen.insert(hasher.finish()) || text.contains('\0') {
            return;
        }
        let call = json!({ "command": text });
        let passes = |policy: &Policy| action(&self.world.judge(policy, "Bash", &call)) == RuleAction::Allow;
        let narrow = passes(&self.narrow);
        let bare = !narrow && !mutated && passes(&self.bare);
        if !narrow && !bare || mutated && NOT_RUN.iter().any(|name| text.contains(name)) {
            return;
        }
        let cwd = self.world.workspace.cwd.clone();
        let line = CommandLine::new(text.clone(), ShellKind::Bash, cwd);
        let analysis = analyse(&line, &self.world.workspace);
        self.tally.allowed += u64::from(narrow);
        self.tally.allowed_bare += u64::from(bare);
        self.tally.plain += u64::from(analysis.plain_syntax);
        if let Some(violation) = self.check(&text, &analysis, narrow) {
            // A background process of an earlier line may have caused it.
            if self.check(&text, &analysis, narrow).is_some() {
                self.tally.violations.push(violation);
            }
        }
    }

    /// Runs a line; returns what it did beyond the analysis.
    fn check(&mut self, text: &str, analysis: &CommandAnalysis, narrow: bool) -> Option<String> {
        let outcome = self.scratch.run(text);
        self.tally.runs += 1;
        self.tally.ran_something += u64::from(!outcome.ran.is_empty());
        let listed = listed(analysis, narrow);
        let unlisted: Vec<&String> = outcome.ran.iter().filter(|name| !listed.contains(*name)).collect();
        if !unlisted.is_empty() {
            return Some(format!("{text:?} ran {unlisted:?}, listed {listed:?}"));
        }
        if !narrow {
            return None;
        }
        if let Some(marker) = outcome.ran.iter().find(|name| matches!(name.as_str(), "m6" | "m7")) {
            return Some(format!("{text:?} ran {marker}, which nothing allows"));
        }
        if !outcome.changed.is_empty() {
            return Some(format!("{text:?} changed {:?}", outcome.changed));
        }
        if outcome.shows_secret {
            let wide = |inferred: &toolgate_shell_syntax::InferredEffect| {
                inferred.glob.is_some()
                    || matches!(inferred.effect, toolgate_proto::Effect::Read { scope: PathScope::Tree, .. })
            };
            // The files of such a command are decided when it runs; the sandbox withholds secrets among them.
            let unknown = analysis.parts.iter().any(|part| part.reads_unknown_paths);
            if unknown || analysis.parts.iter().flat_map(|part| &part.effects).any(wide) {
                self.tally.by_pattern += 1;
                return None;
            }
            return Some(format!("{text:?} shows a secret"));
        }
        None
    }
}

/// Every word of the corpus that may be the name of a program.
fn program_names(corpus: &Corpus) -> impl Iterator<Item = &str> {
    let name = |token: &&str| {
        token.len() < 24
            && token.starts_with(|first: char| first.is_ascii_lowercase())
            && token.chars().all(|character| character.is_ascii_alphanumeric() || "-_".contains(character))
    };
    corpus.lines.iter().flatten().map(String::as_str).filter(name)
}

/// The base names of the programs that may run.
fn listed(analysis: &CommandAnalysis, narrow: bool) -> BTreeSet<String> {
    let programs = analysis.programs();
    // A shell that a rule allows reads scripts without executing them.
    let scripts = analysis
        .parts
        .iter()
        .filter(|_| !narrow)
        .flat_map(|part| &part.deny_texts)
        .filter_map(|text| text.split(' ').next());
    let names = programs.iter().map(String::as_str).chain(scripts);
    names.map(|program| program.rsplit('/').next().unwrap_or(program).to_owned()).collect()
}

/// Generates lines on all cores and runs those that are allowed.
fn search(lines: u64, seed: u64) -> OracleTally {
    let workers = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let share = lines.div_ceil(workers);
    let started = Instant::now();
    let time = Duration::from_secs(setting("TOOLGATE_ORACLE_SECONDS", 24 * 60 * 60));
    let tallies: Vec<OracleTally> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..workers)
            .map(|number| {
                scope.spawn(move || {
                    let mut worker = Worker::new(seed.wrapping_mul(1_000).wrapping_add(number));
                    while worker.tally.generated < share && started.elapsed() < time {
                        worker.step();
                        if number == 0 && worker.tally.generated.is_multiple_of(20_000) {
                            println!("{:?} {:?}", started.elapsed(), worker.tally);
                        }
                    }
                    worker.tally
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut all = OracleTally::default();
    for tally in tallies {
        all.generated += tally.generated;
        all.allowed += tally.allowed;
        all.allowed_bare += tally.allowed_bare;
        all.plain += tally.plain;
        all.runs += tally.runs;
        all.ran_something += tally.ran_something;
        all.by_pattern += tally.by_pattern;
        all.violations.extend(tally.violations);
    }
    all
}

#[test]
fn lines_that_pass_do_only_what_was_judged() {
    let lines = setting("TOOLGATE_ORACLE_LINES", 3_000);
    let started = Instant::now();
    let tally = search(lines, setting("TOOLGATE_ORACLE_SEED", 1));
    println!(
        "oracle: {} lines generated, {} allowed by rules or as read-only, {} by a rule for every command, {} plain, {} runs, {} ran a program, {} secrets by a pattern, {} violations, {} s",
        tally.generated,
        tally.allowed,
        tally.allowed_bare,
        tally.plain,
        tally.runs,
        tally.ran_something,
        tally.by_pattern,
        tally.violations.len(),
        started.elapsed().as_secs(),
    );
    assert!(
        tally.violations.is_empty(),
        "{} violations\n{}",
        tally.violations.len(),
        tally.violations.join("\n")
    );
}
