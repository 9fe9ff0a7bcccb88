//! Benchmarks of the file tools through the gate, each beside a lower bound that does the bare work.
//!
//! ```text
//! cargo bench -p toolgate-tools --bench files [-- REPEATS [CASE]]
//! ```
//!
//! Tool and lower bound alternate, so that other load on the machine affects both alike; compare the ratios.
//! The temporary directory needs a gigabyte of free space.

#![expect(clippy::disallowed_methods, reason = "a benchmark uses real files and processes")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark panics on errors and prints its results"
)]

use serde_json::{Value, json};
use std::cell::{Cell, RefCell};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use toolgate_files::{Journal, JournalLimits};
use toolgate_gate::{CallOptions, Gate, GateParts, Session};
use toolgate_policy::RawPolicy;
use toolgate_proto::{AbsPath, Mode, Principal, ToolCall, Workspace};
use toolgate_tools::{Toolset, register, watch_reads};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let repeats: usize = arguments.first().map_or(9, |repeats| repeats.parse().expect("a number of repeats"));
    println!("| case | tool | lower bound | median ratio of pairs | ratio of the fastest | goal |");
    println!("|---|---|---|---|---|---|");
    let cases: [(&str, Case); 5] = [
        ("read", read_4_kb),
        ("last", last_lines_of_a_gigabyte),
        ("edit", edit_ten_megabytes),
        ("many", read_a_thousand),
        ("watch", watch_five_thousand),
    ];
    for (_, case) in cases.iter().filter(|(name, _)| arguments.get(1).is_none_or(|only| only == name)) {
        case(repeats);
    }
}

/// A benchmark, called with the number of repetitions.
type Case = fn(usize);

/// A workspace with a gate, a session and a journal.
struct FileBenchFixture {
    dir: tempfile::TempDir,
    gate: Gate,
    session: Session,
    runtime: tokio::runtime::Runtime,
}

impl FileBenchFixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        let journal = Journal::open(&top.join("state"), JournalLimits::default()).unwrap();
        let gate = Gate::new(
            GateParts::default()
                .with_policy(RawPolicy::default().with_mode(Mode::Bypass))
                .with_journal(Arc::new(journal)),
        );
        register(&gate, Toolset::Claude).unwrap();
        register(&gate, Toolset::Plain).unwrap();
        let session = session(&top);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { dir, gate, session, runtime }
    }

    /// Replaces the session with one that has read nothing.
    fn reset_session(&mut self) {
        self.session = session(&self.session.workspace().cwd);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn call(&self, tool: &str, input: &Value) -> usize {
        let call = ToolCall::new("c", tool, input.to_string());
        let outcome = self.runtime.block_on(self.gate.call(&self.session, call, CallOptions::default()));
        outcome.result.unwrap().content.len()
    }
}

fn session(top: &AbsPath) -> Session {
    let workspace = Workspace::new(top.clone());
    Session::new("s".into(), Principal::new("bench"), workspace)
}

fn read_4_kb(repeats: usize) {
    let fixture = FileBenchFixture::new();
    std::fs::write(fixture.path("f"), "let a = 1; // some line of code, 41 bytes\n".repeat(98)).unwrap();
    let input = json!({ "file_path": fixture.path("f") });
    let bare = fixture.path("f");
    compare(
        "Read of 4 KB, beside the bare read",
        "≤ 60 µs",
        repeats * 200,
        &|| fixture.call("Read", &input),
        &|| std::fs::read(&bare).unwrap().len(),
    );
}

fn last_lines_of_a_gigabyte(repeats: usize) {
    let repeats = repeats.min(5);
    let fixture = RefCell::new(FileBenchFixture::new());
    let big = fixture.borrow().path("big");
    let lines = write_gigabyte(&big);
    let input = json!({ "file_path": big, "offset": lines - 99, "limit": 100 });
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let read = || {
        fixture.borrow_mut().reset_session();
        fixture.borrow().call("Read", &input)
    };
    let wc = || Command::new("wc").arg("-l").arg(&big).output().unwrap().stdout.len();
    compare("last 100 lines of 1 GB, beside `wc -l`", "≤ 1.5", repeats, &read, &wc);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("?").trim();
    println!("| … peak memory of the whole process | {peak} | | | | < 64 MB |");
    let again = || fixture.borrow().call("Read", &input);
    compare("… again in the same session", "", repeats, &again, &wc);
}

fn write_gigabyte(path: &Path) -> u64 {
    let mut file = std::fs::File::create(path).unwrap();
    let block = "a line of a log file, as there are many, some sixty bytes..\n".repeat(16_384);
    let blocks = (1_u64 << 30) / block.len() as u64;
    for _ in 0..blocks {
        file.write_all(block.as_bytes()).unwrap();
    }
    blocks * 16_384
}

fn edit_ten_megabytes(repeats: usize) {
    let fixture = FileBenchFixture::new();
    let text: String =
        (0..200_000).map(|n| format!("line {n:>10} of a file of ten million bytes or so...\n")).collect();
    for name in ["f", "g"] {
        std::fs::write(fixture.path(name), &text).unwrap();
    }
    fixture.call("Read", &json!({ "file_path": fixture.path("f"), "limit": 1 }));
    let number = Cell::new(0);
    let edit = || {
        let n = number.get();
        number.set(n + 1);
        let (old, new) = match n {
            0 => ("100000 of".to_owned(), "number 1".to_owned()),
            n => (format!("number {n}"), format!("number {}", n + 1)),
        };
        fixture.call("Edit", &json!({ "file_path": fixture.path("f"), "old_string": old, "new_string": new }))
    };
    let baseline = || {
        let bytes = std::fs::read(fixture.path("g")).unwrap();
        let mut file = std::fs::File::create(fixture.path("g.new")).unwrap();
        file.write_all(&bytes).unwrap();
        file.sync_all().unwrap();
        std::fs::rename(fixture.path("g.new"), fixture.path("g")).unwrap();
        bytes.len()
    };
    compare(
        "Edit of a line in 10 MB, beside read, write, fsync, rename",
        "≤ 2",
        repeats * 2,
        &edit,
        &baseline,
    );
}

fn read_a_thousand(repeats: usize) {
    let fixture = FileBenchFixture::new();
    let paths: Vec<PathBuf> = (0..1_000).map(|n| fixture.path(&format!("f{n}"))).collect();
    for path in &paths {
        std::fs::write(path, "a small file\n".repeat(20)).unwrap();
    }
    let one_by_one =
        || paths.iter().map(|path| fixture.call("Read", &json!({ "file_path": path }))).sum::<usize>();
    let many = || fixture.call("read_many_files", &json!({ "paths": paths }));
    compare("read_many_files of 1 000, beside 1 000 times Read", "≤ 0.33", repeats, &many, &one_by_one);
}

/// Processor time of watching files that do not change.
fn watch_five_thousand(_: usize) {
    let fixture = FileBenchFixture::new();
    watch_reads(&fixture.session).unwrap();
    let paths: Vec<PathBuf> = (0..5_000).map(|n| fixture.path(&format!("d{}/f{n}", n % 50))).collect();
    for path in &paths {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x\n").unwrap();
    }
    for some in paths.chunks(1_000) {
        fixture.call("read_many_files", &json!({ "paths": some }));
    }
    // The watcher still processes the events of the files just written.
    std::thread::sleep(Duration::from_secs(2));
    let (before, started) = (cpu_time(), Instant::now());
    std::thread::sleep(Duration::from_secs(5));
    let share = (cpu_time() - before).as_secs_f64() / started.elapsed().as_secs_f64() * 100.0;
    println!("| watching 5 000 files while nothing happens | {share:.3} % of a core | | | | none |");
}

fn cpu_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap(), u32::try_from(time.tv_nsec).unwrap())
}

/// Alternates both functions and prints one row of the table.
fn compare(name: &str, goal: &str, repeats: usize, tool: &dyn Fn() -> usize, baseline: &dyn Fn() -> usize) {
    let timed = |work: &dyn Fn() -> usize| {
        let started = Instant::now();
        std::hint::black_box(work());
        started.elapsed()
    };
    let _ = (timed(tool), timed(baseline));
    let times: Vec<(Duration, Duration)> = (0..repeats).map(|_| (timed(tool), timed(baseline))).collect();
    let ratio = |(tool, baseline): &(Duration, Duration)| tool.as_secs_f64() / baseline.as_secs_f64();
    let mut ratios: Vec<f64> = times.iter().map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let (mut tool_times, mut baseline_times): (Vec<Duration>, Vec<Duration>) = times.into_iter().unzip();
    tool_times.sort();
    baseline_times.sort();
    println!(
        "| {name} | {} | {} | {:.2} | {:.2} | {goal} |",
        format_time(tool_times[tool_times.len() / 2]),
        format_time(baseline_times[baseline_times.len() / 2]),
        ratios[ratios.len() / 2],
        ratio(&(tool_times[0], baseline_times[0])),
    );
}

fn format_time(time: Duration) -> String {
    match time.as_micros() {
        micros @ 0..10_000 => format!("{micros} µs"),
        micros => format!("{} ms", micros / 1000),
    }
}
