//! File tools through the whole boundary, beside what they cannot be faster than.

#![expect(clippy::disallowed_methods, reason = "benchmarks compare with the bare system")]
#![expect(clippy::unwrap_used, reason = "a benchmark that cannot go on ends")]

use divan::Bencher;
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use toolgate_gate::{CallLimits, Gate, GateParts, Session};
use toolgate_os::{Journal, JournalLimits};
use toolgate_policy::RawPolicy;
use toolgate_proto::{AbsPath, Mode, Principal, ToolCall, Workspace};
use toolgate_tools::{Toolset, register};

fn main() {
    divan::main();
}

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
        let gate = Gate::new(GateParts {
            policy: RawPolicy { mode: Mode::Bypass, ..RawPolicy::default() },
            journal: Some(Arc::new(journal)),
            ..GateParts::default()
        });
        register(&gate, Toolset::Claude).unwrap();
        register(&gate, Toolset::Plain).unwrap();
        let workspace = Workspace { cwd: top.clone(), roots: vec![top], home: None };
        let session = Session::new("s".into(), Principal { edge: "bench".into(), name: None }, workspace);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { dir, gate, session, runtime }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }

    fn call(&self, tool: &str, input: &Value) -> usize {
        let call = ToolCall::new("c", tool, input.to_string());
        let closed = self.runtime.block_on(self.gate.call(&self.session, call, CallLimits::default()));
        closed.result.unwrap().content.len()
    }
}

#[divan::bench]
fn read_4_kb(bencher: Bencher) {
    let room = Room::new();
    std::fs::write(room.path("f"), "let a = 1; // some line of code, 41 bytes\n".repeat(98)).unwrap();
    let input = json!({ "file_path": room.path("f") });
    bencher.bench_local(|| room.call("Read", &input));
}

static GIGABYTE: LazyLock<(Room, u64)> = LazyLock::new(|| {
    let room = Room::new();
    let mut file = std::fs::File::create(room.path("big")).unwrap();
    let line = "a line of a log file, as there are many, some sixty bytes..\n";
    let block = line.repeat(16_384);
    let blocks = (1_u64 << 30) / block.len() as u64;
    for _ in 0..blocks {
        file.write_all(block.as_bytes()).unwrap();
    }
    (room, blocks * 16_384)
});

#[divan::bench(sample_count = 5, sample_size = 1)]
fn last_100_lines_of_1_gb(bencher: Bencher) {
    let (_, lines) = &*GIGABYTE;
    bencher
        .with_inputs(|| {
            // A session that has not been there: nothing is known of where lines begin.
            let room = Room::new();
            std::fs::hard_link(GIGABYTE.0.path("big"), room.path("big")).unwrap();
            room
        })
        .bench_local_refs(|room| {
            room.call("Read", &json!({ "file_path": room.path("big"), "offset": lines - 99, "limit": 100 }))
        });
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    eprintln_peak(peak);
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn last_100_lines_of_1_gb_again(bencher: Bencher) {
    let (room, lines) = &*GIGABYTE;
    let input = json!({ "file_path": room.path("big"), "offset": lines - 99, "limit": 100 });
    room.call("Read", &input);
    bencher.bench_local(|| room.call("Read", &input));
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn wc_l_of_1_gb(bencher: Bencher) {
    let path = GIGABYTE.0.path("big");
    bencher
        .bench_local(|| std::process::Command::new("wc").arg("-l").arg(&path).output().unwrap().stdout.len());
}

fn eprintln_peak(peak: &str) {
    let _ = writeln!(std::io::stderr(), "{peak}");
}

/// Ten megabytes of lines that differ.
fn ten_megabytes() -> String {
    (0..200_000).map(|n| format!("line {n:>10} of a file of ten million bytes or so...\n")).collect()
}

#[divan::bench(sample_count = 20, sample_size = 1)]
fn edit_a_line_of_10_mb(bencher: Bencher) {
    let room = Room::new();
    std::fs::write(room.path("f"), ten_megabytes()).unwrap();
    room.call("Read", &json!({ "file_path": room.path("f"), "limit": 1 }));
    let number = AtomicU64::new(0);
    bencher.bench_local(|| {
        let n = number.fetch_add(1, Ordering::Relaxed);
        let (old, new) = if n == 0 {
            ("100000 of".to_owned(), "number 1".to_owned())
        } else {
            (format!("number {n}"), format!("number {}", n + 1))
        };
        room.call("Edit", &json!({ "file_path": room.path("f"), "old_string": old, "new_string": new }))
    });
}

#[divan::bench(sample_count = 20, sample_size = 1)]
fn read_write_fsync_rename_of_10_mb(bencher: Bencher) {
    let room = Room::new();
    std::fs::write(room.path("f"), ten_megabytes()).unwrap();
    bencher.bench_local(|| {
        let bytes = std::fs::read(room.path("f")).unwrap();
        let mut file = std::fs::File::create(room.path("f.new")).unwrap();
        file.write_all(&bytes).unwrap();
        file.sync_all().unwrap();
        std::fs::rename(room.path("f.new"), room.path("f")).unwrap();
        bytes.len()
    });
}

fn thousand() -> (Room, Vec<PathBuf>) {
    let room = Room::new();
    let paths: Vec<PathBuf> = (0..1_000).map(|n| room.path(&format!("f{n}"))).collect();
    for path in &paths {
        std::fs::write(path, "a small file\n".repeat(20)).unwrap();
    }
    (room, paths)
}

#[divan::bench(sample_count = 20, sample_size = 1)]
fn read_many_1_000_small_files(bencher: Bencher) {
    let (room, paths) = thousand();
    bencher.bench_local(|| room.call("read_many_files", &json!({ "paths": paths })));
}

#[divan::bench(sample_count = 20, sample_size = 1)]
fn read_1_000_small_files_one_by_one(bencher: Bencher) {
    let (room, paths) = thousand();
    bencher.bench_local(|| {
        paths.iter().map(|path| room.call("Read", &json!({ "file_path": path }))).sum::<usize>()
    });
}
