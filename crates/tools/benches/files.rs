//! File tools through the whole boundary, beside what they cannot be faster than, in one run.
//!
//! ```text
//! cargo bench -p toolgate-tools --bench files [-- REPEATS [CASE]]
//! ```
//!
//! Ours and theirs take turns, so that what else the machine does hits both alike; read the ratios.
//! A gigabyte of room is needed in the temporary directory.

#![expect(clippy::disallowed_methods, reason = "a benchmark is made of real files and processes")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a benchmark may"
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
    println!("| case | ours | theirs | ratio, of pairs | of the fastest | goal |");
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

/// What is measured, so many times.
type Case = fn(usize);

struct Room {
    dir: tempfile::TempDir,
    gate: Gate,
    session: Session,
    runtime: tokio::runtime::Runtime,
}

impl Room {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        let journal = Journal::open(&top.join("state"), JournalLimits::default()).unwrap();
        let gate = Gate::new(
            GateParts::default()
                .with_policy(RawPolicy { mode: Mode::Bypass, ..RawPolicy::default() })
                .with_journal(Arc::new(journal)),
        );
        register(&gate, Toolset::Claude).unwrap();
        register(&gate, Toolset::Plain).unwrap();
        let session = session(&top);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { dir, gate, session, runtime }
    }

    /// A session that has seen nothing.
    fn forget(&mut self) {
        self.session = session(&self.session.workspace().cwd);
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn call(&self, tool: &str, input: &Value) -> usize {
        let call = ToolCall::new("c", tool, input.to_string());
        let closed = self.runtime.block_on(self.gate.call(&self.session, call, CallOptions::default()));
        closed.result.unwrap().content.len()
    }
}

fn session(top: &AbsPath) -> Session {
    let workspace = Workspace { cwd: top.clone(), roots: vec![top.clone()], home: None };
    Session::new("s".into(), Principal::new("bench"), workspace)
}

fn read_4_kb(repeats: usize) {
    let room = Room::new();
    std::fs::write(room.path("f"), "let a = 1; // some line of code, 41 bytes\n".repeat(98)).unwrap();
    let input = json!({ "file_path": room.path("f") });
    let bare = room.path("f");
    pairs(
        "Read of 4 KB, beside the bare read",
        "≤ 60 µs",
        repeats * 200,
        &|| room.call("Read", &input),
        &|| std::fs::read(&bare).unwrap().len(),
    );
}

fn last_lines_of_a_gigabyte(repeats: usize) {
    let repeats = repeats.min(5);
    let room = RefCell::new(Room::new());
    let big = room.borrow().path("big");
    let lines = write_gigabyte(&big);
    let input = json!({ "file_path": big, "offset": lines - 99, "limit": 100 });
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let ours = || {
        room.borrow_mut().forget();
        room.borrow().call("Read", &input)
    };
    let wc = || Command::new("wc").arg("-l").arg(&big).output().unwrap().stdout.len();
    pairs("last 100 lines of 1 GB, beside `wc -l`", "≤ 1.5", repeats, &ours, &wc);
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("?").trim();
    println!("| … most memory of the whole process then | {peak} | | | | < 64 MB |");
    let again = || room.borrow().call("Read", &input);
    pairs("… once more in the same session", "", repeats, &again, &wc);
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
    let room = Room::new();
    let text: String =
        (0..200_000).map(|n| format!("line {n:>10} of a file of ten million bytes or so...\n")).collect();
    for name in ["f", "g"] {
        std::fs::write(room.path(name), &text).unwrap();
    }
    room.call("Read", &json!({ "file_path": room.path("f"), "limit": 1 }));
    let number = Cell::new(0);
    let ours = || {
        let n = number.get();
        number.set(n + 1);
        let (old, new) = match n {
            0 => ("100000 of".to_owned(), "number 1".to_owned()),
            n => (format!("number {n}"), format!("number {}", n + 1)),
        };
        room.call("Edit", &json!({ "file_path": room.path("f"), "old_string": old, "new_string": new }))
    };
    let theirs = || {
        let bytes = std::fs::read(room.path("g")).unwrap();
        let mut file = std::fs::File::create(room.path("g.new")).unwrap();
        file.write_all(&bytes).unwrap();
        file.sync_all().unwrap();
        std::fs::rename(room.path("g.new"), room.path("g")).unwrap();
        bytes.len()
    };
    pairs("Edit of a line in 10 MB, beside read, write, fsync, rename", "≤ 2", repeats * 2, &ours, &theirs);
}

fn read_a_thousand(repeats: usize) {
    let room = Room::new();
    let paths: Vec<PathBuf> = (0..1_000).map(|n| room.path(&format!("f{n}"))).collect();
    for path in &paths {
        std::fs::write(path, "a small file\n".repeat(20)).unwrap();
    }
    let one_by_one =
        || paths.iter().map(|path| room.call("Read", &json!({ "file_path": path }))).sum::<usize>();
    let many = || room.call("read_many_files", &json!({ "paths": paths }));
    pairs("read_many_files of 1 000, beside 1 000 times Read", "≤ 0.33", repeats, &many, &one_by_one);
}

/// What watching costs while nothing happens.
fn watch_five_thousand(_: usize) {
    let room = Room::new();
    watch_reads(&room.session).unwrap();
    let paths: Vec<PathBuf> = (0..5_000).map(|n| room.path(&format!("d{}/f{n}", n % 50))).collect();
    for path in &paths {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x\n").unwrap();
    }
    for some in paths.chunks(1_000) {
        room.call("read_many_files", &json!({ "paths": some }));
    }
    // What was just written is still being reported.
    std::thread::sleep(Duration::from_secs(2));
    let (before, began) = (cpu(), Instant::now());
    std::thread::sleep(Duration::from_secs(5));
    let share = (cpu() - before).as_secs_f64() / began.elapsed().as_secs_f64() * 100.0;
    println!("| watching 5 000 files while nothing happens | {share:.3} % of a core | | | | none |");
}

fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap(), u32::try_from(time.tv_nsec).unwrap())
}

fn pairs(name: &str, goal: &str, repeats: usize, ours: &dyn Fn() -> usize, theirs: &dyn Fn() -> usize) {
    let timed = |work: &dyn Fn() -> usize| {
        let began = Instant::now();
        std::hint::black_box(work());
        began.elapsed()
    };
    let _ = (timed(ours), timed(theirs));
    let times: Vec<(Duration, Duration)> = (0..repeats).map(|_| (timed(ours), timed(theirs))).collect();
    let ratio = |(ours, theirs): &(Duration, Duration)| ours.as_secs_f64() / theirs.as_secs_f64();
    let mut ratios: Vec<f64> = times.iter().map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let (mut mine, mut others): (Vec<Duration>, Vec<Duration>) = times.into_iter().unzip();
    mine.sort();
    others.sort();
    println!(
        "| {name} | {} | {} | {:.2} | {:.2} | {goal} |",
        said(mine[mine.len() / 2]),
        said(others[others.len() / 2]),
        ratios[ratios.len() / 2],
        ratio(&(mine[0], others[0])),
    );
}

fn said(time: Duration) -> String {
    match time.as_micros() {
        micros @ 0..10_000 => format!("{micros} µs"),
        micros => format!("{} ms", micros / 1000),
    }
}
