//! Starting a command on the terms of its verdict, and following it to its end.

use super::config::ShellConfig;
use super::sandbox_profile::build_sandbox_profile;
use super::tasks::{SessionScratchDir, ShellTask, ShellTasks};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use toolgate_files::resolve;
use toolgate_gate::{CallProgress, Cleared};
use toolgate_process::SandboxProxy;
use toolgate_process::{
    CaptureOptions, CommandEnvironment, ProcessPhase, ProcessSpec, SupervisedProcess, to_plain_text,
};
use toolgate_proto::{AbsPath, Code, NetworkAccess, Refusal, RightsLevel, Terms};

pub(crate) use super::config::OnTimeout;

/// Progress is told no more often than this.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);

/// A command as a face asks for it.
#[derive(Debug, Clone)]
pub(crate) struct CommandRequest {
    pub(crate) text: String,
    pub(crate) cwd: AbsPath,
    pub(crate) description: Option<String>,
    /// The call asks to leave the sandbox.
    pub(crate) unsandboxed: bool,
    pub(crate) background: bool,
}

/// How the wait for a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandWaitOutcome {
    /// The shell ended.
    Exited,
    /// It ran out of time and was stopped.
    TimedOut,
    /// It ran out of time and goes on in the background.
    MovedToBackground,
    /// The call was cancelled, and the command stopped.
    Cancelled,
}

/// Starts a command on the terms that were granted.
pub(crate) fn start_command(order: &CommandRequest, cleared: &Cleared) -> Result<Arc<ShellTask>, Refusal> {
    let tasks = cleared.context().session.state::<ShellTasks>();
    let surroundings = tasks.config();
    if order.background && tasks.live_count() >= surroundings.max_background_tasks {
        return Err(Refusal::new(
            Code::ShellFailed,
            format!("{} commands run in the background already", surroundings.max_background_tasks),
        )
        .hint("stop one with TaskStop, or wait for one with TaskOutput"));
    }
    let place = tasks
        .scratch_dir()
        .map_err(|error| shell_failure(&format!("there is no private directory: {error}")))?;
    let leaves = order.unsandboxed && cleared.terms().unsandboxed && surroundings.sandbox.allow_unsandboxed;
    let boxed = surroundings.sandbox.enabled && !leaves;
    let proxy = match proxied_hosts(cleared.terms(), &surroundings) {
        Some(hosts) if boxed => {
            let started = tasks.proxy(&hosts, &surroundings.sandbox.denied_hosts, cleared.hosts());
            Some(
                started
                    .map_err(|error| shell_failure(&format!("the proxy could not be started: {error}")))?,
            )
        }
        Some(_) | None => None,
    };
    let number = tasks.next_number();
    let cwd = resolve(&order.cwd).real;
    let (environment, git_reads) =
        build_environment(&surroundings, &place, proxy.as_deref(), (cleared, &cwd))?;
    let command = ProcessSpec {
        text: order.text.clone(),
        cwd: cwd.clone(),
        sandbox: boxed.then(|| {
            build_sandbox_profile(
                cleared,
                (&surroundings, &place, proxy.as_deref()),
                (&environment, &git_reads, &cwd),
            )
        }),
        environment,
        startup: Some(place.startup.clone()),
        capture: CaptureOptions {
            head: surroundings.max_shown_bytes.max(1),
            tail: surroundings.max_shown_bytes,
            max_bytes: surroundings.max_output_bytes,
            file: place.output.join(toolgate_files::generate_id("output_")),
            file_at_once: order.background,
        },
    };
    let (tell, changed) = watch::channel(());
    let known: Arc<OnceLock<Weak<ShellTask>>> = Arc::default();
    let (known_there, progress) = (Arc::clone(&known), cleared.progress().clone());
    let process = SupervisedProcess::start(command, move || {
        tell.send_replace(());
        if let Some(task) = known_there.get().and_then(Weak::upgrade) {
            report_task_end(&task, &progress);
        }
    })
    .map_err(|problem| {
        let code = if problem.sandbox { Code::SandboxUnavailable } else { Code::ShellFailed };
        Refusal::new(code, format!("the command could not be started: {}", problem.message))
    })?;
    let level = cleared.terms().rights.level;
    let words = (number, order.text.clone(), order.description.clone());
    let task = Arc::new(ShellTask::new(words, process, changed, (place, proxy, surroundings.grace), level));
    let _ = known.set(Arc::downgrade(&task));
    Ok(task)
}

/// Lets a command go on in the background. From now on its end is told.
pub(crate) fn detach_task(task: &ShellTask, progress: &CallProgress) {
    let _ = task.background.set(());
    // It may have ended before anybody knew that this would be of interest.
    report_task_end(task, progress);
}

/// Tells the end of a command in the background, once.
fn report_task_end(task: &ShellTask, progress: &CallProgress) {
    if task.background.get().is_some()
        && let ProcessPhase::AllExited(_) = task.process.phase()
        && task.end_reported.set(()).is_ok()
    {
        for anomaly in super::anomalies(task) {
            progress.report_anomaly(anomaly);
        }
        progress.report_task_end(&task.id, super::task_summary(task), task.process.output_snapshot().file);
    }
}

/// The hosts that go through the proxy; `None` where the network is open, or closed. Where rules open hosts the list
/// may be empty: the proxy asks them.
fn proxied_hosts(terms: &Terms, surroundings: &ShellConfig) -> Option<Vec<String>> {
    let listed = match terms.rights.level {
        RightsLevel::Workspace => surroundings.sandbox.hosts.clone(),
        // What was judged by its effects reaches no host that its effects do not name.
        RightsLevel::ReadOnly | RightsLevel::NamedWrites => Vec::new(),
    };
    match &terms.network {
        NetworkAccess::Full => None,
        NetworkAccess::None if listed.is_empty() => None,
        NetworkAccess::None => Some(listed),
        NetworkAccess::Hosts(hosts) => Some(hosts.iter().cloned().chain(listed).collect()),
    }
}

fn shell_failure(message: &str) -> Refusal {
    Refusal::new(Code::ShellFailed, message)
}

/// What a command knows, and which paths outside the workspace git must read for it.
fn build_environment(
    surroundings: &ShellConfig,
    place: &SessionScratchDir,
    proxy: Option<&SandboxProxy>,
    (cleared, cwd): (&Cleared, &AbsPath),
) -> Result<(CommandEnvironment, Vec<AbsPath>), Refusal> {
    let mut environment =
        CommandEnvironment::from_filtered(&surroundings.environment, &surroundings.pass, &surroundings.set);
    if let (None, Some(home)) = (environment.get("HOME"), &cleared.context().workspace.home) {
        environment.set("HOME", home.to_string());
    }
    environment.set_temp_dir(&place.temporary);
    let roots = &cleared.context().workspace.roots;
    let git_reads = environment.restrict_git(surroundings.git, cleared.terms().git, cwd, roots)?;
    environment.set("TOOLGATE", "1");
    if let Some(proxy) = proxy {
        let address = proxy.url();
        for name in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            environment.set(name, address.clone());
        }
        if surroundings.sandbox.local_binding {
            // This machine is reached directly, so that a server of the command's own answers for itself.
            for name in ["no_proxy", "NO_PROXY"] {
                environment.set(name, "localhost,127.0.0.1,::1".to_owned());
            }
        }
    }
    Ok((environment, git_reads))
}

/// Waits for a command's shell to end, telling its output on the way.
pub(crate) async fn follow_command(
    task: &ShellTask,
    cleared: &Cleared,
    most: Duration,
    lapse: OnTimeout,
) -> CommandWaitOutcome {
    let deadline = Instant::now() + most;
    let mut told = CommandOutputReporter { offset: 0 };
    loop {
        let running = task.process.phase() == ProcessPhase::Running;
        told.report_output(task, cleared.progress(), running);
        if !running {
            // What the shell did not wait for may be about to end as well.
            let gone = task.wait_until(|process| matches!(process.phase(), ProcessPhase::AllExited(_)));
            let _ = tokio::time::timeout(PROGRESS_INTERVAL, gone).await;
            return CommandWaitOutcome::Exited;
        }
        let mut changed = task.changed.clone();
        changed.mark_unchanged();
        if task.process.phase() != ProcessPhase::Running {
            continue;
        }
        let more = async {
            // A channel that is closed means the end, which the phase says as well.
            let _ = changed.changed().await;
            let beat = sleep(PROGRESS_INTERVAL);
            tokio::select! {
                () = beat => {}
                () = task.wait_until(|process| process.phase() != ProcessPhase::Running) => {}
            }
        };
        tokio::select! {
            biased;
            () = cleared.cancel().cancelled() => {
                stop_task(task).await;
                return CommandWaitOutcome::Cancelled;
            }
            () = sleep_until(deadline) => return match lapse {
                OnTimeout::Stop => {
                    stop_task(task).await;
                    CommandWaitOutcome::TimedOut
                }
                OnTimeout::Background => CommandWaitOutcome::MovedToBackground,
            },
            () = more => {}
        }
    }
}

/// Stops a command and waits until nothing is left of it.
pub(crate) async fn stop_task(task: &ShellTask) {
    task.process.send_stop(task.grace);
    let gone = task.wait_until(|process| matches!(process.phase(), ProcessPhase::AllExited(_)));
    // Only a process that even SIGKILL does not end is left after this, and it stays owned.
    let _ = tokio::time::timeout(task.grace + Duration::from_secs(4), gone).await;
}

/// How far the output was told.
struct CommandOutputReporter {
    offset: u64,
}

impl CommandOutputReporter {
    /// Passes on whole lines, and at the end the rest.
    fn report_output(&mut self, task: &ShellTask, progress: &CallProgress, running: bool) {
        const MAX_CHUNK_BYTES: usize = 64 * 1024;
        let Ok(bytes) = task.process.read_output_from(self.offset, MAX_CHUNK_BYTES) else { return };
        let whole = match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => last + 1,
            None if running && bytes.len() < MAX_CHUNK_BYTES => 0,
            None => bytes.len(),
        };
        let whole = if running { whole } else { bytes.len() };
        let text = bytes.get(..whole).unwrap_or_default();
        if !text.is_empty() {
            progress.report(to_plain_text(text));
            self.offset += whole as u64;
        }
        // A flood is shown from its latest end on: whoever watches cannot read it anyway.
        let total = task.process.output_snapshot().total;
        if total.saturating_sub(self.offset) > 4 * MAX_CHUNK_BYTES as u64 {
            progress.report(format!("[{} bytes not shown here]", total - self.offset));
            self.offset = total;
        }
    }
}
