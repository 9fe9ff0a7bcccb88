//! What the servers of this and of other toolgates do.
//!
//! Each toolgate whose servers run keeps a file in the state directory, which `toolgate lsp status` reads. Nothing is asked
//! of another process: one that hangs must not make the command hang.

use serde::{Deserialize, Serialize};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use toolgate_files::{
    FileProblem, generate_id, list_names_with_suffix, read_named_bytes, remove_state_file, write_private_file,
};
use toolgate_proto::AbsPath;

/// The end of the names of status files.
const STATUS_SUFFIX: &str = ".json";
/// The most bytes of a status file that are read.
const MAX_STATUS_BYTES: u64 = 1 << 20;
/// The most bytes of `/proc/PID/stat` that are read.
const MAX_STAT_BYTES: u64 = 4_096;
/// How often a file is written for what changes with every call, such as the number of open files.
const REPORT_INTERVAL: Duration = Duration::from_secs(2);

/// A configured server of a toolgate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ServerStatus {
    /// Its name.
    pub server: String,
    /// The program.
    pub command: String,
    /// The file of the program; `None` if it is not installed.
    pub program: Option<AbsPath>,
    /// The extensions that it serves.
    pub extensions: Vec<String>,
    /// The file that configures it; `None` for the table of well-known servers.
    pub origin: Option<String>,
    /// How to install it.
    pub install: Option<String>,
    /// Its instances.
    pub instances: Vec<InstanceStatus>,
}

/// One running or failed instance of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct InstanceStatus {
    /// The directory that it serves.
    pub root: AbsPath,
    /// Its process; `None` if it does not run.
    pub pid: Option<u32>,
    /// Its own name and version.
    pub title: Option<String>,
    /// The unit of its columns.
    pub columns: Option<String>,
    /// Whether it has finished indexing.
    pub ready: bool,
    /// What it is doing.
    pub activity: Option<String>,
    /// Files that are open.
    pub open_files: usize,
    /// How often it crashed.
    pub crashes: u32,
    /// Why it ended last.
    pub last_error: Option<String>,
    /// Its last messages.
    pub log: Vec<String>,
    /// What its sandbox refused.
    pub sandbox_denials: Vec<String>,
}

/// An instance of a server that a running toolgate has started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunningServer {
    /// The name of the server.
    pub server: String,
    /// The process of the toolgate that started it.
    pub toolgate_pid: u32,
    /// What it does.
    #[serde(flatten)]
    pub instance: InstanceStatus,
}

/// The content of a status file.
#[derive(Debug, Serialize, Deserialize)]
struct StatusReport {
    /// The process that wrote it.
    pid: u32,
    /// When that process was started, because numbers of processes are used again.
    started: u64,
    /// Its servers.
    servers: Vec<RunningServer>,
}

/// The status file of one toolgate. It is there while a server has been started and the toolgate runs.
#[derive(Debug)]
pub(crate) struct StatusBoard {
    /// The file.
    file: AbsPath,
    /// What was written last. The lock is held while the file is written.
    written: Mutex<WrittenReport>,
}

/// What the status file has.
#[derive(Debug, Default)]
struct WrittenReport {
    /// The number of the report.
    number: u64,
    /// When it was written.
    at: Option<Instant>,
    /// The servers that it lists.
    servers: Vec<RunningServer>,
    /// No report follows any more.
    is_closed: bool,
}

impl WrittenReport {
    /// Whether these servers differ from the written ones in what matters, or at all and for some time.
    fn is_due(&self, servers: &[RunningServer]) -> bool {
        let matters = |running: &RunningServer| {
            let instance = &running.instance;
            (running.server.clone(), instance.root.clone(), instance.pid, instance.ready, instance.crashes)
        };
        let is_old = self.at.is_none_or(|at| at.elapsed() >= REPORT_INTERVAL);
        !servers.iter().map(matters).eq(self.servers.iter().map(matters)) || is_old && servers != self.servers
    }
}

impl StatusBoard {
    /// The board of this process in a directory. Nothing is written yet.
    pub(crate) fn new(dir: &AbsPath) -> Self {
        Self { file: dir.join(format!("{}{STATUS_SUFFIX}", generate_id(""))), written: Mutex::default() }
    }

    /// Whether a report is worth the writing: a server started, ended or became ready, or the last report is old.
    pub(crate) fn is_due(&self, servers: &[RunningServer]) -> bool {
        match self.written.try_lock() {
            Ok(written) => written.is_due(servers),
            // A report is written just now, and may be an older one.
            Err(_) => true,
        }
    }

    /// Writes a report, unless a newer one is there or nothing changed that matters. Blocks.
    pub(crate) fn write(&self, number: u64, servers: Vec<RunningServer>) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        if written.is_closed || number < written.number || !written.is_due(&servers) {
            return;
        }
        let pid = std::process::id();
        let Some(started) = process_start(pid) else { return };
        let report = StatusReport { pid, started, servers };
        let Ok(text) = serde_json::to_vec(&report) else { return };
        // Without the file, the command does not list these servers; they work all the same.
        if write_private_file(&self.file, &text).is_ok() {
            (written.number, written.at, written.servers) = (number, Some(Instant::now()), report.servers);
        }
    }

    /// Removes the file, for good. Blocks.
    pub(crate) fn close(&self) {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        written.is_closed = true;
        if written.at.is_some() {
            let _ = remove_state_file(&self.file);
        }
    }
}

/// When a process was started, in ticks since the start of the machine; `None` if there is no such process.
fn process_start(pid: u32) -> Option<u64> {
    let stat = read_named_bytes(&AbsPath::new(format!("/proc/{pid}/stat")).ok()?, MAX_STAT_BYTES).ok()?;
    // The name of the program stands in parentheses, and may contain any character.
    let stat = String::from_utf8_lossy(&stat).into_owned();
    let (_, fields) = stat.rsplit_once(") ")?;
    // The start is field 22, and the first two are before.
    fields.split(' ').nth(19)?.parse().ok()
}

/// The servers of all toolgates that keep their status files in a directory. Files of toolgates that are gone are removed.
pub fn read_running_servers(dir: &AbsPath) -> Result<Vec<RunningServer>, FileProblem> {
    let mut servers = Vec::new();
    for name in list_names_with_suffix(dir, STATUS_SUFFIX)? {
        let file = dir.join(name);
        let report = read_named_bytes(&file, MAX_STATUS_BYTES).ok();
        let report = report.and_then(|text| serde_json::from_slice::<StatusReport>(&text).ok());
        match report {
            Some(report) if process_start(report.pid) == Some(report.started) => {
                servers.extend(report.servers);
            }
            Some(_) | None => remove_state_file(&file)?,
        }
    }
    Ok(servers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(root: &AbsPath) -> RunningServer {
        let instance = InstanceStatus {
            root: root.clone(),
            pid: Some(1),
            title: None,
            columns: None,
            ready: true,
            activity: None,
            open_files: 2,
            crashes: 0,
            last_error: None,
            log: Vec::new(),
            sandbox_denials: Vec::new(),
        };
        RunningServer { server: "fake".to_owned(), toolgate_pid: std::process::id(), instance }
    }

    #[test]
    fn reports_are_read_while_their_process_runs_and_the_newest_counts() {
        let dir = tempfile::tempdir().unwrap();
        let dir = AbsPath::new(dir.path()).unwrap().join("lsp");
        assert_eq!(read_running_servers(&dir).unwrap(), []);
        let (board, one) = (StatusBoard::new(&dir), server(&dir));
        board.write(2, vec![one.clone()]);
        board.write(1, Vec::new());
        assert_eq!(read_running_servers(&dir).unwrap(), std::slice::from_ref(&one));
        // A further open file can wait, and a crash cannot.
        let mut other = one.clone();
        other.instance.open_files += 1;
        assert!(!board.is_due(std::slice::from_ref(&other)));
        other.instance.crashes += 1;
        assert!(board.is_due(std::slice::from_ref(&other)));
        board.write(3, Vec::new());
        board.close();
        board.write(4, vec![one]);
        assert_eq!(list_names_with_suffix(&dir, STATUS_SUFFIX).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn the_file_of_a_process_that_is_gone_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let dir = AbsPath::new(dir.path()).unwrap();
        let pid = std::process::id();
        let started = process_start(pid).unwrap();
        // The number of a process that was started at another time, and a file that says nothing.
        let report = StatusReport { pid, started: started + 1, servers: vec![server(&dir)] };
        write_private_file(&dir.join("a.json"), &serde_json::to_vec(&report).unwrap()).unwrap();
        write_private_file(&dir.join("b.json"), b"{").unwrap();
        assert_eq!(read_running_servers(&dir).unwrap(), []);
        assert_eq!(list_names_with_suffix(&dir, STATUS_SUFFIX).unwrap(), Vec::<String>::new());
    }
}
