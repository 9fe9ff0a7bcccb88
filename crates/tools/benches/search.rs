//! Benchmarks of the search tools beside ripgrep and fd, on the same tree.
//!
//! ```text
//! scripts/install-test-tools.sh && cargo bench -p toolgate-tools --bench search [-- REPEATS [CASE]]
//! ```
//!
//! The tree (52 000 files) is created in the temporary directory at the first use and kept; `TOOLGATE_BENCH_TREE` names
//! another one.
//! The programs alternate, so that other load on the machine affects all alike; compare the ratios, not the milliseconds.
//! On a loaded machine the ratio of CPU times and that of the fastest runs are the stable ones.
//! A tool is measured as a complete call through the gate, ripgrep and fd as processes with their start.
//! The system reports the CPU time of a process in steps of ten milliseconds, so it is omitted for short runs.

#![expect(clippy::disallowed_methods, reason = "a benchmark uses real files and processes")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark panics on errors and prints its results"
)]

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use toolgate_testkit::{GateFixture, plain_gate};
use toolgate_tools::{Toolset, register};

/// Files of the large tree.
const FILE_COUNT: usize = 52_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let repeats: usize = arguments.first().map_or(7, |repeats| repeats.parse().expect("a number of repeats"));
    let only = arguments.get(1).map(String::as_str);
    let tree = std::env::var_os("TOOLGATE_BENCH_TREE").map_or_else(big_tree, PathBuf::from);
    let small = small_tree();
    let rg = program("rg");
    let fd = program("fd");
    let claude = SearchBenchFixture::new(&tree, Toolset::Claude);
    let plain = SearchBenchFixture::new(&tree, Toolset::Plain);
    let project = SearchBenchFixture::new(&small, Toolset::Claude);

    println!("tree: {} files; {}; {}", count(&tree), version(&rg), version(&fd));
    println!(
        "| case | tool ms | baseline ms | median wall ratio of pairs | ratio of the fastest | CPU ratio | goal | results |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let content = |pattern: &str| json!({ "pattern": pattern, "output_mode": "content", "head_limit": 0 });
    let searching = ["--no-require-git", "--color=never", "-n"];
    let case =
        |name: &str, goal: f64, repeats: usize, tool: &dyn Fn() -> String, baseline: &dyn Fn() -> String| {
            if only.is_none_or(|only| name.contains(only)) {
                compare(name, goal, repeats, tool, baseline);
            }
        };
    for (name, pattern, flags, input) in [
        ("literal, many hits", "unwrap()", &["-F"][..], content(r"unwrap\(\)")),
        ("literal, rare", "is_sorted_by_key", &["-F"], content("is_sorted_by_key")),
        ("regex", r"\bimpl<[A-Z][a-z]*> [A-Z]\w+ for", &[], content(r"\bimpl<[A-Z][a-z]*> [A-Z]\w+ for")),
        ("ignore case, rare", "IS_SORTED_BY_KEY", &["-i"], {
            let mut input = content("IS_SORTED_BY_KEY");
            input["-i"] = json!(true);
            input
        }),
        ("no hit", "zqxj_no_such_text", &["-F"], content("zqxj_no_such_text")),
    ] {
        let arguments = [&searching[..], flags, &["-e", pattern, "./"]].concat();
        case(name, 1.1, repeats, &|| claude.call_tool("Grep", &input), &|| run(&rg, &tree, &arguments));
    }
    let files = json!({ "pattern": r"unwrap\(\)", "head_limit": 250 });
    case(
        "250 files with a match, beside all of rg's",
        0.3,
        repeats,
        &|| claude.call_tool("Grep", &files),
        &|| run(&rg, &tree, &["--no-require-git", "-l", "-F", "unwrap()", "./"]),
    );
    let first = json!({ "pattern": r"unwrap\(\)", "output_mode": "content" });
    case(
        "first 250 lines, beside rg and head",
        2.0,
        repeats * 3,
        &|| claude.call_tool("Grep", &first),
        &|| shell(&tree, &format!("{} --no-require-git -n -F 'unwrap()' ./ | head -n 250", rg.display())),
    );
    let deep = json!({ "pattern": "value", "output_mode": "count" });
    case("a project of 100 files", 0.2, repeats * 10, &|| project.call_tool("Grep", &deep), &|| {
        run(&rg, &small, &["--no-require-git", "-c", "value", "./"])
    });
    let toml = json!({ "pattern": "**/*.toml" });
    case(
        "Glob **/*.toml newest first, beside fd -HI",
        1.1,
        repeats,
        &|| claude.call_tool("Glob", &toml),
        &|| run(&fd, &tree, &["-HI", "-E", ".git/", "-t", "f", "-g", "*.toml"]),
    );
    let all = json!({ "pattern": "**/*" });
    case("Glob **/* newest first, beside fd -HI", 1.1, repeats, &|| claude.call_tool("Glob", &all), &|| {
        run(&fd, &tree, &["-HI", "-E", ".git/", "-t", "f", "."])
    });
    case("glob **/*.toml, beside fd", 1.1, repeats, &|| plain.call_tool("glob", &toml), &|| {
        run(&fd, &tree, &["--no-require-git", "-E", "node_modules/", "-t", "f", "-g", "*.toml"])
    });
    if only.is_some() {
        return;
    }
    let rare = content("is_sorted_by_key");
    let (_, firsts) = timed(repeats, &|| claude.call_tool("Grep", &rare));
    let (_, later) = timed(repeats, &|| claude.call_tool("Grep", &rare));
    println!(
        "| warm repeats of one query, beside the first ones | {:.1} | {:.1} | {:.2} |  |  | 1.00 |  |",
        millis(median(&later)),
        millis(median(&firsts)),
        ratio(median(&later), median(&firsts))
    );
}

/// A workspace whose calls are timed.
struct SearchBenchFixture {
    fixture: GateFixture,
    runtime: tokio::runtime::Runtime,
}

impl SearchBenchFixture {
    fn new(root: &Path, toolset: Toolset) -> Self {
        let gate = plain_gate(|gate| register(gate, toolset).unwrap());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        Self { fixture: GateFixture::at(root, gate).unwrap(), runtime }
    }

    /// Calls a tool and returns the number of its results.
    fn call_tool(&self, tool: &str, input: &Value) -> String {
        let output = self.runtime.block_on(self.fixture.call(tool, input)).expect("the call succeeds");
        let structured = output.structured.unwrap_or_default();
        for name in ["totalMatches", "totalLines", "numLines", "numMatches", "numFiles", "total"] {
            if let Some(number) = structured.get(name).and_then(Value::as_u64) {
                return number.to_string();
            }
        }
        "?".to_owned()
    }
}

fn run(program: &Path, at: &Path, arguments: &[&str]) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(at)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .unwrap();
    output.stdout.iter().filter(|byte| **byte == b'\n').count().to_string()
}

fn shell(at: &Path, line: &str) -> String {
    run(Path::new("sh"), at, &["-c", line])
}

/// Alternates both functions and prints one row of the table.
fn compare(name: &str, goal: f64, repeats: usize, tool: &dyn Fn() -> String, baseline: &dyn Fn() -> String) {
    let mut results = (tool(), baseline());
    let (mut walls, mut cpus) = ((Vec::new(), Vec::new()), (0, 0));
    for _ in 0..repeats {
        let before = cpu_ticks();
        let started = Instant::now();
        results.0 = tool();
        walls.0.push(started.elapsed());
        let between = cpu_ticks();
        let started = Instant::now();
        results.1 = baseline();
        walls.1.push(started.elapsed());
        let after = cpu_ticks();
        cpus.0 += between.0 - before.0;
        cpus.1 += after.1 - between.1;
    }
    let (tool, baseline) = (median(&walls.0), median(&walls.1));
    let cpu = if cpus.1 >= 10 { format!("{:.2}", cpus.0 as f64 / cpus.1 as f64) } else { String::new() };
    let mut pairs: Vec<f64> =
        walls.0.iter().zip(&walls.1).map(|(tool, baseline)| ratio(*tool, *baseline)).collect();
    pairs.sort_by(f64::total_cmp);
    let fastest = |times: &[Duration]| times.iter().min().copied().unwrap_or_default();
    println!(
        "| {name} | {:.1} | {:.1} | {:.2} | {:.2} | {cpu} | {goal:.2} | {} / {} |",
        millis(tool),
        millis(baseline),
        pairs[pairs.len() / 2],
        ratio(fastest(&walls.0), fastest(&walls.1)),
        results.0,
        results.1,
    );
}

fn timed(repeats: usize, work: &dyn Fn() -> String) -> (String, Vec<Duration>) {
    let mut result = String::new();
    let mut times = Vec::new();
    for _ in 0..repeats {
        let started = Instant::now();
        result = work();
        times.push(started.elapsed());
    }
    (result, times)
}

fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort();
    times[times.len() / 2]
}

fn ratio(tool: Duration, baseline: Duration) -> f64 {
    tool.as_secs_f64() / baseline.as_secs_f64()
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// The CPU time of this process and of its children, in clock ticks.
fn cpu_ticks() -> (u64, u64) {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let field = |number: usize| fields[number].parse::<u64>().unwrap();
    (field(11) + field(12), field(13) + field(14))
}

fn program(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| repository.join("target"), PathBuf::from);
    let tools = target.join("test-tools/bin");
    std::env::split_paths(&path)
        .chain([tools])
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
        .unwrap_or_else(|| PathBuf::from(name))
}

fn version(program: &Path) -> String {
    let output = Command::new(program).arg("--version").output();
    let output = output.expect("run scripts/install-test-tools.sh first").stdout;
    String::from_utf8_lossy(&output).lines().next().unwrap_or_default().to_owned()
}

fn count(at: &Path) -> usize {
    let entries = fs::read_dir(at).unwrap().map(Result::unwrap);
    entries.map(|entry| if entry.file_type().unwrap().is_dir() { count(&entry.path()) } else { 1 }).sum()
}

/// The large tree, created once: source-like files with rare and common words, some ignore files and deep directories.
fn big_tree() -> PathBuf {
    let top = std::env::temp_dir().join("toolgate-bench-tree-1");
    if !top.join("made").is_file() {
        eprintln!("creating {FILE_COUNT} files in {}", top.display());
        let _ = fs::remove_dir_all(&top);
        create_files(&top, FILE_COUNT, 3_500);
        fs::write(top.join("made"), "").unwrap();
    }
    top
}

fn small_tree() -> PathBuf {
    let top = std::env::temp_dir().join("toolgate-bench-small-1");
    if !top.join("made").is_file() {
        let _ = fs::remove_dir_all(&top);
        create_files(&top, 99, 12);
        fs::write(top.join("made"), "").unwrap();
    }
    top
}

fn create_files(top: &Path, files: usize, directories: usize) {
    const WORDS: &[&str] = &[
        "let",
        "mut",
        "value",
        "fn",
        "return",
        "self",
        "match",
        "Some",
        "None",
        "if",
        "else",
        "for",
        "in",
        "struct",
        "pub",
        "use",
        "crate",
        "String",
        "Vec",
        "usize",
        "=",
        "==",
        "->",
        "{",
        "}",
        "(",
        ")",
        ";",
        "&",
        "::",
        "node",
        "parent",
        "index",
        "offset",
        "buffer",
        "// compare with the one before",
        "error",
        "result",
        "Option<T>",
    ];
    const KINDS: &[&str] = &["rs", "rs", "rs", "rs", "md", "toml", "txt", "py", "js", "json"];
    let mut state = 42_u64;
    let mut next = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % bound
    };
    let mut directory_paths = vec![top.to_path_buf()];
    fs::create_dir_all(top).unwrap();
    for number in 1..directories {
        // Mostly below recent directories, so that the tree is deep as well as wide.
        let back = next(directory_paths.len().min(40));
        let directory = directory_paths[directory_paths.len() - 1 - back].join(format!("dir{number}"));
        let directory =
            if directory.components().count() > 12 { top.join(format!("dir{number}")) } else { directory };
        fs::create_dir(&directory).unwrap();
        if number % 60 == 0 {
            fs::write(directory.join(".gitignore"), "*.tmp\n/generated\ntarget/\n!keep.tmp\n").unwrap();
        }
        directory_paths.push(directory);
    }
    for number in 0..files {
        let directory = &directory_paths[next(directory_paths.len())];
        let mut text = String::new();
        // Most files are small and a few are large, as in a real repository.
        let lines = if next(20) == 0 { 200 + next(800) } else { 10 + next(110) };
        for _ in 0..lines {
            text.push_str(&"    ".repeat(next(4)));
            for _ in 0..next(9) {
                text.push_str(WORDS[next(WORDS.len())]);
                text.push(' ');
            }
            match next(40_000) {
                0 => text.push_str("is_sorted_by_key"),
                1..300 => text.push_str(".unwrap()"),
                300..340 => text.push_str("impl<T> Display for Wrapper<T>"),
                _ => {}
            }
            text.push('\n');
        }
        let kind = KINDS[next(KINDS.len())];
        fs::write(directory.join(format!("file{number}.{kind}")), text).unwrap();
    }
}
