//! What a command costs: `scripts/bench-shell.sh`, or `cargo bench -p toolgate-process --bench commands [starts] [idle] [flood]`.
//!
//! Three measurements: how much longer a shell takes to start in the sandbox than by itself, how fast large output is
//! captured, and how much CPU time and memory idle commands use.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::panic,
    reason = "a benchmark prints, panics at the first error, and starts processes"
)]

use std::collections::BTreeMap;
use std::process::{Command as Plain, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use toolgate_process::sandbox::{FileGuard, PathGuard, SandboxProfile};
use toolgate_process::{
    CaptureOptions, CommandEnvironment, ProcessPhase, ProcessSpec, SupervisedProcess, find_programs,
    write_startup_file,
};
use toolgate_proto::AbsPath;

const BENCH_TIMEOUT: Duration = Duration::from_secs(120);

/// A workspace like that of an ordinary project.
struct BenchWorkspace {
    _dir: tempfile::TempDir,
    ws: AbsPath,
    startup: AbsPath,
}

impl BenchWorkspace {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let top = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        let ws = top.join("ws");
        std::fs::create_dir_all(ws.join(".git/hooks")).unwrap();
        std::fs::create_dir_all(top.join("tmp")).unwrap();
        // As many entries as the root of an ordinary project.
        for n in 0..30 {
            std::fs::write(ws.join(format!("file-{n}")), "x").unwrap();
        }
        let startup = write_startup_file(&top).unwrap();
        Self { _dir: dir, ws, startup }
    }

    fn command(&self, text: &str, rights: Rights, max_bytes: u64) -> ProcessSpec {
        // The same for the plain shell: without `HOME`, bash looks the user up.
        let set = BTreeMap::from([
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("HOME".to_owned(), "/root".to_owned()),
        ]);
        let protected = [".git/hooks", ".git/config", ".toolgate", ".mcp.json", ".claude/settings.json"];
        let file = self.ws.parent().unwrap().join(toolgate_files::generate_id("out_"));
        ProcessSpec {
            text: text.to_owned(),
            cwd: self.ws.clone(),
            environment: CommandEnvironment::from_filtered(&BTreeMap::new(), &[], &set),
            startup: Some(self.startup.clone()),
            capture: CaptureOptions { head: 30_000, tail: 30_000, max_bytes, file, file_at_once: false },
            sandbox: match rights {
                Rights::Free => None,
                Rights::Workspace => Some(SandboxProfile {
                    writable: vec![self.ws.clone()],
                    protected: protected.iter().map(|name| self.ws.join(name)).collect(),
                    guard: FileGuard::new(Arc::new(EnvGuard)),
                    ..self.profile()
                }),
                Rights::ReadOnly => Some(SandboxProfile {
                    readable: Some(vec![self.ws.clone(), self.startup.clone()]),
                    executable: Some(find_programs(
                        &["true", "ls", "git"].map(str::to_owned),
                        "/usr/local/bin:/usr/bin:/bin",
                        &self.ws,
                        std::slice::from_ref(&self.ws),
                    )),
                    guard: FileGuard::new(Arc::new(EnvGuard)),
                    ..self.profile()
                }),
            },
        }
    }

    fn profile(&self) -> SandboxProfile {
        let secrets =
            [".ssh", ".gnupg", ".aws", ".netrc", ".npmrc", ".docker/config.json", ".git-credentials"];
        let home = AbsPath::new("/root").unwrap();
        SandboxProfile {
            private: vec![self.ws.parent().unwrap().join("tmp")],
            unreadable: secrets.iter().map(|name| home.join(name)).collect(),
            ..SandboxProfile::default()
        }
    }

    fn run(&self, text: &str, rights: Rights, max_bytes: u64) -> SupervisedProcess {
        let process = SupervisedProcess::start(self.command(text, rights, max_bytes), || ())
            .unwrap_or_else(|problem| panic!("{}", problem.message));
        assert!(process.wait_all_exited(BENCH_TIMEOUT));
        process
    }
}

/// The rights of a command.
#[derive(Clone, Copy)]
enum Rights {
    /// It runs without a sandbox.
    Free,
    /// A rule allowed it as a whole.
    Workspace,
    /// It was judged to only read.
    ReadOnly,
}

/// Hides `.env`, as the default rules do.
struct EnvGuard;

impl PathGuard for EnvGuard {
    fn hides(&self, real: &AbsPath) -> bool {
        real.file_name().is_some_and(|name| name == ".env")
    }

    fn protects(&self, real: &AbsPath) -> bool {
        self.hides(real)
    }
}

type TimedWork<'a> = (String, Box<dyn FnMut() + 'a>);

/// Runs the works in turn, so that other load affects all of them alike. Prints each with its ratio to the first.
fn measure(count: usize, mut works: Vec<TimedWork<'_>>) {
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); works.len()];
    for _ in 0..count {
        for ((_, work), times) in works.iter_mut().zip(&mut times) {
            let start = Instant::now();
            work();
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    let mut first = None;
    for ((name, _), mut times) in works.into_iter().zip(times) {
        times.sort_by(f64::total_cmp);
        let at = |part: usize| times.get(times.len() / part).copied().unwrap_or(0.0);
        let (median, tenth) = (at(2), at(10));
        let (base_median, base_tenth) = *first.get_or_insert((median, tenth));
        println!(
            "{name:46} median {median:8.3} ms ({:.2}x)   best tenth {tenth:8.3} ms ({:.2}x)",
            median / base_median,
            tenth / base_tenth
        );
    }
}

fn plain(bench: &BenchWorkspace, text: &str) {
    let mut bash = Plain::new("/bin/bash");
    bash.args(["--norc", "--noprofile", "-c", text]).current_dir(&bench.ws).stdin(Stdio::null());
    bash.env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", "/root")
        .env("SHELL", "/bin/bash");
    bash.output().unwrap();
}

fn bwrap(text: &str) {
    let mut bwrap = Plain::new("bwrap");
    bwrap.args(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-net", "/bin/bash"]);
    bwrap.args(["--norc", "--noprofile", "-c", text]).stdin(Stdio::null()).output().unwrap();
}

fn starts(bench: &BenchWorkspace) {
    let has_bwrap = Plain::new("bwrap").arg("--version").output().is_ok();
    if !has_bwrap {
        println!("bwrap is not installed");
    }
    for text in ["true", "ls > /dev/null", "git --version > /dev/null"] {
        let mut works: Vec<TimedWork<'_>> = vec![
            (format!("`{text}`: plain spawn of bash"), Box::new(move || plain(bench, text))),
            (format!("`{text}`: supervised"), Box::new(move || drop(bench.run(text, Rights::Free, 1 << 20)))),
            (
                format!("`{text}`: sandboxed, workspace rights"),
                Box::new(move || drop(bench.run(text, Rights::Workspace, 1 << 20))),
            ),
            (
                format!("`{text}`: sandboxed, read-only rights"),
                Box::new(move || drop(bench.run(text, Rights::ReadOnly, 1 << 20))),
            ),
        ];
        if has_bwrap {
            works.push((format!("`{text}`: bubblewrap by itself"), Box::new(move || bwrap(text))));
        }
        measure(300, works);
    }
}

fn flood(bench: &BenchWorkspace) {
    let gigabyte = "head -c 1000000000 /dev/zero | tr '\\0' 'x'";
    let tee = bench.ws.parent().unwrap().join("tee");
    let by_tee = || {
        let text = format!("{gigabyte} | tee {tee} > /dev/null");
        assert!(Plain::new("/bin/bash").args(["-c", &text]).status().unwrap().success());
        std::fs::remove_file(&tee).unwrap();
    };
    let sandboxed = || {
        let process = bench.run(gigabyte, Rights::Workspace, 2_000_000_000);
        let written = process.output_snapshot();
        assert_eq!(written.total, 1_000_000_000);
        std::fs::remove_file(written.file.unwrap()).unwrap();
    };
    measure(
        5,
        vec![
            ("1 GB: command | tee file > /dev/null".to_owned(), Box::new(by_tee)),
            ("1 GB: captured in the sandbox".to_owned(), Box::new(sandboxed)),
        ],
    );
    println!("most memory of this program: {} MB", status("VmHWM:") / 1024);
}

/// A number of `/proc/self/status`.
fn status(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// CPU time that this program and its supervisors have used, in clock ticks.
fn ticks() -> u64 {
    let me = std::process::id();
    let mut sum = 0;
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(text) = std::fs::read_to_string(entry.path().join("stat")) else { continue };
        let Some((head, rest)) = text.rsplit_once(") ") else { continue };
        let fields: Vec<u64> = rest.split(' ').map(|field| field.parse().unwrap_or(0)).collect();
        let mine = head.starts_with(&format!("{me} ")) || fields.get(1) == Some(&u64::from(me));
        if mine {
            sum += fields.get(11).unwrap_or(&0) + fields.get(12).unwrap_or(&0);
        }
    }
    sum
}

fn idle(bench: &BenchWorkspace) {
    let before = status("VmRSS:");
    let tasks: Vec<SupervisedProcess> = (0..64)
        .map(|_| {
            SupervisedProcess::start(bench.command("sleep 1000", Rights::Workspace, 1 << 20), || ())
                .unwrap_or_else(|problem| panic!("{}", problem.message))
        })
        .collect();
    let (start, wall) = (ticks(), Instant::now());
    std::thread::sleep(Duration::from_secs(5));
    let used = ticks() - start;
    println!(
        "64 idle commands: {used} clock ticks (of 10 ms) in {:.1} s, {} kB more memory",
        wall.elapsed().as_secs_f64(),
        status("VmRSS:").saturating_sub(before)
    );
    assert!(tasks.iter().all(|task| task.phase() == ProcessPhase::Running));
    let wall = Instant::now();
    for task in &tasks {
        task.send_stop(Duration::ZERO);
    }
    assert!(tasks.iter().all(|task| task.wait_all_exited(BENCH_TIMEOUT)));
    println!("ending them: {:.1} ms", wall.elapsed().as_secs_f64() * 1e3);
}

fn main() {
    let bench = BenchWorkspace::new();
    let wanted: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    if wants("starts") {
        starts(&bench);
    }
    if wants("idle") {
        idle(&bench);
    }
    if wants("flood") {
        flood(&bench);
    }
    // For tracing a few starts.
    if wanted.iter().any(|wanted| wanted == "once") {
        for _ in 0..20 {
            bench.run("true", Rights::Workspace, 1 << 20);
        }
    }
}
