//! Waits for a command: reports its output as progress, and ends it on timeout or cancellation.

use super::config::OnTimeout;
use super::sandbox_notes::anomalies;
use super::task_status::task_summary;
use super::tasks::ShellTask;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until};
use toolgate_gate::{CallProgress, Cleared};
use toolgate_process::{ProcessPhase, to_plain_text};

/// Progress is reported at most this often: a command that writes byte by byte must not flood the client.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);
/// Output per progress event.
const MAX_CHUNK_BYTES: usize = 64 * 1024;
/// With more unreported output than this, the reporter skips to the end.
const MAX_BACKLOG_BYTES: u64 = 4 * MAX_CHUNK_BYTES as u64;
/// How long [`stop_task`] waits after the grace period, when every process has got SIGKILL.
const KILL_TIMEOUT: Duration = Duration::from_secs(4);

/// How the wait for a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandWaitOutcome {
    /// The shell exited.
    Exited,
    /// The command reached its timeout and was stopped.
    TimedOut,
    /// The command reached its timeout and continues in the background.
    MovedToBackground,
    /// The call was cancelled, and the command was stopped.
    Cancelled,
}

/// Waits until the shell exits, the timeout passes or the call is cancelled, and reports output meanwhile.
pub(crate) async fn follow_command(
    task: &ShellTask,
    cleared: &Cleared,
    timeout: Duration,
    on_timeout: OnTimeout,
) -> CommandWaitOutcome {
    let deadline = Instant::now() + timeout;
    let mut reporter = CommandOutputReporter { offset: 0 };
    loop {
        // Marked before the output and the phase are read, so that no change after that goes unnoticed.
        let mut changed = task.changed.clone();
        changed.mark_unchanged();
        let is_running = task.process.phase() == ProcessPhase::Running;
        reporter.report_output(task, cleared.progress(), is_running);
        if !is_running {
            // Processes that the shell did not wait for often exit with it; then they are no background task.
            let all_exited = task.wait_until(|process| matches!(process.phase(), ProcessPhase::AllExited(_)));
            let _ = tokio::time::timeout(PROGRESS_INTERVAL, all_exited).await;
            return CommandWaitOutcome::Exited;
        }
        let next_report = async {
            // A closed channel means that the process ended, which the phase shows as well.
            let _ = changed.changed().await;
            let interval = sleep(PROGRESS_INTERVAL);
            tokio::select! {
                () = interval => {}
                () = task.wait_until(|process| process.phase() != ProcessPhase::Running) => {}
            }
        };
        tokio::select! {
            biased;
            () = cleared.cancel().cancelled() => {
                stop_task(task).await;
                return CommandWaitOutcome::Cancelled;
            }
            () = sleep_until(deadline) => return match on_timeout {
                OnTimeout::Stop => {
                    stop_task(task).await;
                    CommandWaitOutcome::TimedOut
                }
                OnTimeout::Background => CommandWaitOutcome::MovedToBackground,
            },
            () = next_report => {}
        }
    }
}

/// Stops a command and waits until all its processes have exited.
pub(crate) async fn stop_task(task: &ShellTask) {
    task.process.send_stop(task.grace);
    let all_exited = task.wait_until(|process| matches!(process.phase(), ProcessPhase::AllExited(_)));
    // After this only a process in an uninterruptible system call is left; the supervisor still owns it.
    let _ = tokio::time::timeout(task.grace + KILL_TIMEOUT, all_exited).await;
}

/// Marks a command as a background task, whose end is reported as an event.
pub(crate) fn detach_task(task: &ShellTask, progress: &CallProgress) {
    let _ = task.background.set(());
    // The command may have ended before it was marked; the process callback has not reported that.
    report_task_end(task, progress);
}

/// Reports the end of a background task, once. Called whenever its process changes.
pub(super) fn report_task_end(task: &ShellTask, progress: &CallProgress) {
    if task.background.get().is_some()
        && let ProcessPhase::AllExited(_) = task.process.phase()
        && task.end_reported.set(()).is_ok()
    {
        for anomaly in anomalies(task) {
            progress.report_anomaly(anomaly);
        }
        progress.report_task_end(&task.id, task_summary(task), task.process.output_snapshot().file);
    }
}

/// Reports output of a command as progress.
struct CommandOutputReporter {
    /// Bytes of the output that were reported.
    offset: u64,
}

impl CommandOutputReporter {
    /// Reports the complete lines since the last report; after the end of the command also an incomplete one.
    fn report_output(&mut self, task: &ShellTask, progress: &CallProgress, is_running: bool) {
        let Ok(bytes) = task.process.read_output_from(self.offset, MAX_CHUNK_BYTES) else { return };
        let len = match bytes.iter().rposition(|byte| *byte == b'\n') {
            _ if !is_running => bytes.len(),
            Some(last) => last + 1,
            None if bytes.len() < MAX_CHUNK_BYTES => 0,
            None => bytes.len(),
        };
        let text = bytes.get(..len).unwrap_or_default();
        if !text.is_empty() {
            progress.report(to_plain_text(text));
            self.offset += len as u64;
        }
        // A command that writes faster than this reports would otherwise be shown later and later.
        let total = task.process.output_snapshot().total;
        if total.saturating_sub(self.offset) > MAX_BACKLOG_BYTES {
            progress.report(format!("[{} bytes not shown here]", total - self.offset));
            self.offset = total;
        }
    }
}
