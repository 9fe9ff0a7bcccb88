//! A temporary directory tree with stub programs, in which real bash runs lines.

use super::generate::MARKERS;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The content of the secret files and of the secret variable, which no output may contain.
pub(crate) const SECRET: &str = "TOPSECRET";

/// How long a line may run: long for a line that ends, short because endless loops are generated too.
const LINE_TIMEOUT: Duration = Duration::from_secs(1);

/// Programs that log their name and then run the real program: wrappers, and readers that write nothing.
const REAL: &[&str] = &[
    "env", "timeout", "nice", "nohup", "xargs", "find", "stdbuf", "setsid", "cat", "true", "false", "sort",
    "head", "tail", "wc", "cut", "tr", "grep", "ls", "echo", "printf", "test", "[", "pwd", "seq", "basename",
    "dirname", "uniq", "bash", "sh", "date", "tac", "nl", "rev", "diff", "cmp", "paste", "comm", "awk",
    "sed", "jq",
];

/// What a line did.
pub(crate) struct LineOutcome {
    /// The programs that ran, by name.
    pub(crate) ran: BTreeSet<String>,
    /// The files that changed.
    pub(crate) changed: Vec<PathBuf>,
    /// The output contains a secret.
    pub(crate) shows_secret: bool,
}

/// The process group of the line that is running, and since when it runs.
type Running = Arc<Mutex<Option<(u32, Instant)>>>;

/// The tree of one worker.
pub(crate) struct ScratchTree {
    /// The directory that contains the tree, the stubs and their log.
    root: tempfile::TempDir,
    /// The files before the line ran.
    before: BTreeMap<PathBuf, (u64, i64, i64)>,
    /// The line that is running, for the thread that enforces the timeout.
    running: Running,
}

impl ScratchTree {
    pub(crate) fn new<'n>(others: impl Iterator<Item = &'n str>) -> Self {
        let root = tempfile::tempdir().unwrap();
        let bin = root.path().join("bin");
        fs::create_dir_all(&bin).unwrap();
        let log = root.path().join("log");
        let mut names: BTreeMap<&str, Option<PathBuf>> = others.map(|name| (name, None)).collect();
        names.extend(MARKERS.iter().map(|name| (*name, None)));
        for name in REAL {
            let real = ["/bin", "/usr/bin"].map(|place| Path::new(place).join(name));
            if let Some(real) = real.into_iter().find(|path| path.exists()) {
                names.insert(name, Some(real));
            }
        }
        for (name, real) in names {
            let then = match real {
                Some(real) => format!("exec {} \"$@\"", real.display()),
                None => "echo z".to_owned(),
            };
            let script = format!("#!/bin/sh\necho '{name}' >> {}\n{then}\n", log.display());
            write_program(&bin.join(name), &script);
        }
        let mut scratch = Self { root, before: BTreeMap::new(), running: Arc::default() };
        scratch.fill();
        scratch.watch();
        scratch
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.root.path().join("work")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// Restores the tree to its state before any line.
    fn fill(&mut self) {
        for place in [self.work(), self.home()] {
            let _ = fs::remove_dir_all(&place);
            fs::create_dir_all(place.join("sub")).unwrap();
        }
        let log = self.root.path().join("log");
        for name in MARKERS {
            let script = format!("#!/bin/sh\necho '{name}' >> {}\necho z\n", log.display());
            write_program(&self.work().join(name), &script);
        }
        for (name, text) in
            [("a.txt", "a 1\nb 2\n"), ("b.txt", "b\n"), ("sub/b.txt", "c\n"), ("src", "d\n"), ("1", "e\n")]
        {
            fs::write(self.work().join(name), text).unwrap();
        }
        fs::write(self.work().join(".env"), SECRET).unwrap();
        fs::write(self.home().join("key"), SECRET).unwrap();
        self.before = self.snapshot();
    }

    /// Every file of the tree with its length and modification time.
    fn snapshot(&self) -> BTreeMap<PathBuf, (u64, i64, i64)> {
        let mut found = BTreeMap::new();
        let mut open = vec![self.work(), self.home()];
        while let Some(directory) = open.pop() {
            for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
                let Ok(about) = entry.metadata() else { continue };
                if about.is_dir() {
                    open.push(entry.path());
                }
                found.insert(entry.path(), (about.len(), about.mtime(), about.mtime_nsec()));
            }
        }
        found
    }

    /// Starts a thread that kills a line after [`LINE_TIMEOUT`].
    fn watch(&self) {
        let running = Arc::downgrade(&self.running);
        std::thread::spawn(move || {
            while let Some(running) = running.upgrade() {
                let late = running.lock().unwrap().take_if(|(_, since)| since.elapsed() > LINE_TIMEOUT);
                if let Some((group, _)) = late {
                    kill_group(group);
                }
                drop(running);
                std::thread::sleep(Duration::from_millis(50));
            }
        });
    }

    /// Runs a line in real bash until all of its processes have closed their output.
    pub(crate) fn run(&mut self, text: &str) -> LineOutcome {
        let log = self.root.path().join("log");
        let _ = fs::remove_file(&log);
        let (mut output, input) = std::io::pipe().unwrap();
        let mut command = Command::new("/bin/bash");
        command
            .args(["--norc", "--noprofile", "-c", text])
            .env_clear()
            .env("PATH", self.root.path().join("bin"))
            .env("HOME", self.home())
            .env("AWS_SECRET_ACCESS_KEY", SECRET)
            .current_dir(self.work())
            .stdin(Stdio::null())
            .stdout(input.try_clone().unwrap())
            .stderr(input)
            .process_group(0);
        let mut child = command.spawn().unwrap();
        drop(command);
        *self.running.lock().unwrap() = Some((child.id(), Instant::now()));
        let mut printed = Vec::new();
        let _ = output.read_to_end(&mut printed);
        let in_time = self.running.lock().unwrap().take().is_some();
        // Only a background process can outlive its output. The shell has not been reaped, so that its process id still
        // names its process group.
        if !in_time || may_leave_processes(text) {
            kill_group(child.id());
        }
        wait_in_time(&mut child);
        let ran = fs::read_to_string(&log).unwrap_or_default().lines().map(str::to_owned).collect();
        let now = self.snapshot();
        let mut changed: Vec<PathBuf> = now
            .iter()
            .filter(|(path, about)| self.before.get(*path) != Some(about))
            .map(|(path, _)| path.clone())
            .collect();
        changed.extend(self.before.keys().filter(|path| !now.contains_key(*path)).cloned());
        if !changed.is_empty() {
            self.fill();
        }
        let shows_secret = printed.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
        LineOutcome { ran, changed, shows_secret }
    }
}

/// Creates an executable script.
fn write_program(path: &Path, script: &str) {
    fs::write(path, script).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Waits for a shell that has closed its output; one that goes on without output is killed with its process group.
fn wait_in_time(child: &mut Child) {
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > LINE_TIMEOUT {
            kill_group(child.id());
            let _ = child.wait();
            return;
        }
        std::thread::sleep(Duration::from_micros(100));
    }
}

/// Whether a line starts processes that bash does not wait for.
fn may_leave_processes(text: &str) -> bool {
    let joined = text.replace("\\\n", "");
    ["<(", ">(", "coproc", "exec"].iter().any(|start| joined.contains(start))
        || ["&&", ">&", "<&", "&>", "|&"]
            .iter()
            .fold(joined, |left, other| left.replace(other, ""))
            .contains('&')
}

/// Kills a process group.
fn kill_group(group: u32) {
    let group = format!("-{group}");
    let _ = Command::new("/bin/kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
}
