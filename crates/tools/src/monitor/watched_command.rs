//! A command whose lines become events.

use super::MAX_LINE_CHARS;
use super::monitor_events::MonitorEvents;
use crate::shell::{ShellTask, task_summary};
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::watch;
use toolgate_proto::fit_line;

/// Time between SIGTERM and SIGKILL at the timeout.
const STOP_GRACE: Duration = Duration::from_secs(1);
/// Bytes that are read at once. A line that is longer is split.
const MAX_CHUNK_BYTES: usize = 64 * 1024;

/// A command whose lines become events.
pub(super) struct WatchedCommand {
    /// What stands before each line.
    pub(super) name: String,
    /// Notified whenever there is more output.
    pub(super) changed: watch::Receiver<()>,
    /// Weak: the session owns its tasks, and watching must not keep one beyond it.
    pub(super) task: Weak<ShellTask>,
    /// Where the lines go.
    pub(super) events: Arc<MonitorEvents>,
}

impl WatchedCommand {
    /// Follows the command to its end, or stops it at the timeout.
    pub(super) async fn follow(mut self, timeout: Duration) {
        let mut lines = LineSplitter::default();
        let deadline = tokio::time::sleep(timeout);
        tokio::pin!(deadline);
        let mut timed_out = false;
        loop {
            let is_over = tokio::select! {
                biased;
                () = &mut deadline, if !timed_out => {
                    timed_out = true;
                    if let Some(task) = self.task.upgrade() {
                        task.process.send_stop(STOP_GRACE);
                    }
                    false
                }
                // The callback of the process owns the sender, and is dropped when the process has ended.
                changed = self.changed.changed() => changed.is_err(),
            };
            let Some(task) = self.task.upgrade() else { return };
            let is_over = is_over || !task.is_live();
            for line in lines.read(&task, is_over) {
                self.events.push(format!("[{}] {line}", self.name));
            }
            if is_over {
                let why = if timed_out { "its time is over" } else { "it has ended" };
                self.events.push(format!("[{}] {why}: {}", self.name, task_summary(&task)));
                return;
            }
        }
    }
}

/// Splits output into lines.
#[derive(Default)]
struct LineSplitter {
    /// Bytes of the output that have become lines.
    offset: u64,
}

impl LineSplitter {
    /// The lines since the last read; after the end of the command also an incomplete one.
    fn read(&mut self, task: &ShellTask, is_over: bool) -> Vec<String> {
        let mut lines = Vec::new();
        while let Ok(bytes) = task.process.read_output_from(self.offset, MAX_CHUNK_BYTES) {
            let len = match bytes.iter().rposition(|byte| *byte == b'\n') {
                Some(last) => last + 1,
                None if is_over || bytes.len() >= MAX_CHUNK_BYTES => bytes.len(),
                None => 0,
            };
            if len == 0 {
                break;
            }
            self.offset += len as u64;
            let text = String::from_utf8_lossy(bytes.get(..len).unwrap_or_default()).into_owned();
            let shown = text.lines().filter(|line| !line.trim().is_empty());
            lines.extend(shown.map(|line| fit_line(line, MAX_LINE_CHARS)));
        }
        lines
    }
}
