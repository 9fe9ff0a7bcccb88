//! Starting a command on the terms of its verdict, and following it to its end.

use super::rights::confinement;
use super::surroundings::Surroundings;
use super::tasks::{Place, Task, Tasks};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use toolgate_gate::{Cleared, Progress};
use toolgate_os::process::{CaptureOptions, Command, Environment, Phase, Process, to_plain_text};
use toolgate_os::{SandboxProxy, resolve};
use toolgate_proto::{AbsPath, Code, Network, Refusal, RightsLevel, Terms};

pub(crate) use super::surroundings::OnTimeout;

/// Progress is told no more often than this.
const BEAT: Duration = Duration::from_millis(50);

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
pub(crate) enum Ended {
    /// The shell ended.
    ByItself,
    /// It ran out of time and was stopped.
    OutOfTime,
    /// It ran out of time and goes on in the background.
    MovedToBackground,
    /// The call was cancelled, and the command stopped.
    Cancelled,
}

/// Starts a command on the terms that were granted.
pub(crate) fn start(order: &CommandRequest, cleared: &Cleared) -> Result<Arc<Task>, Refusal> {
    let tasks = cleared.scene().session.state::<Tasks>();
    let surroundings = tasks.surroundings();
    if order.background && tasks.live() >= surroundings.most_tasks {
        return Err(Refusal::new(
            Code::ShellFailed,
            format!("{} commands run in the background already", surroundings.most_tasks),
        )
        .hint("stop one with TaskStop, or wait for one with TaskOutput"));
    }
    let place = tasks.place().map_err(|error| failed(&format!("there is no private directory: {error}")))?;
    let leaves = order.unsandboxed && cleared.terms().unsandboxed && surroundings.sandbox.allow_unsandboxed;
    let boxed = surroundings.sandbox.enabled && !leaves;
    let proxy = match hosts(cleared.terms(), &surroundings) {
        Some(hosts) if boxed => {
            let started = tasks.proxy(&hosts, &surroundings.sandbox.denied_hosts, cleared.hosts());
            Some(started.map_err(|error| failed(&format!("the proxy could not be started: {error}")))?)
        }
        Some(_) | None => None,
    };
    let number = tasks.next();
    let cwd = resolve(&order.cwd).real;
    let (environment, git_reads) = environment(&surroundings, &place, proxy.as_deref(), (cleared, &cwd))?;
    let command = Command {
        text: order.text.clone(),
        cwd: cwd.clone(),
        confinement: boxed.then(|| {
            confinement(cleared, (&surroundings, &place, proxy.as_deref()), (&environment, &git_reads, &cwd))
        }),
        environment,
        startup: Some(place.startup.clone()),
        keeping: CaptureOptions {
            head: surroundings.shown_output.max(1),
            tail: surroundings.shown_output,
            most: surroundings.most_output,
            file: place.output.join(toolgate_os::fresh_id("output_")),
            file_at_once: order.background,
        },
    };
    let (tell, changed) = watch::channel(());
    let known: Arc<OnceLock<Weak<Task>>> = Arc::default();
    let (known_there, progress) = (Arc::clone(&known), cleared.progress().clone());
    let process = Process::start(command, move || {
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
    let task = Arc::new(Task::new(words, process, changed, (place, proxy, surroundings.grace), level));
    let _ = known.set(Arc::downgrade(&task));
    Ok(task)
}

/// Lets a command go on in the background. From now on its end is told.
pub(crate) fn detach_task(task: &Task, progress: &Progress) {
    let _ = task.background.set(());
    // It may have ended before anybody knew that this would be of interest.
    report_task_end(task, progress);
}

/// Tells the end of a command in the background, once.
fn report_task_end(task: &Task, progress: &Progress) {
    if task.background.get().is_some()
        && let Phase::Gone(_) = task.process.phase()
        && task.end_told.set(()).is_ok()
    {
        for anomaly in super::anomalies(task) {
            progress.report_anomaly(anomaly);
        }
        progress.report_task_end(&task.id, super::listing(task), task.process.written().file);
    }
}

/// The hosts that go through the proxy; `None` where the network is open, or closed. Where rules open hosts the list
/// may be empty: the proxy asks them.
fn hosts(terms: &Terms, surroundings: &Surroundings) -> Option<Vec<String>> {
    let listed = match terms.rights.level {
        RightsLevel::Workspace => surroundings.sandbox.hosts.clone(),
        // What was judged by its effects reaches no host that its effects do not name.
        RightsLevel::ReadOnly | RightsLevel::NamedWrites => Vec::new(),
    };
    match &terms.network {
        Network::Full => None,
        Network::None if listed.is_empty() => None,
        Network::None => Some(listed),
        Network::Hosts(hosts) => Some(hosts.iter().cloned().chain(listed).collect()),
    }
}

fn failed(message: &str) -> Refusal {
    Refusal::new(Code::ShellFailed, message)
}

/// What a command knows, and which paths outside the workspace git must read for it.
fn environment(
    surroundings: &Surroundings,
    place: &Place,
    proxy: Option<&SandboxProxy>,
    (cleared, cwd): (&Cleared, &AbsPath),
) -> Result<(Environment, Vec<AbsPath>), Refusal> {
    let mut environment = Environment::cut(&surroundings.environment, &surroundings.pass, &surroundings.set);
    if let (None, Some(home)) = (environment.get("HOME"), &cleared.scene().workspace.home) {
        environment.set("HOME", home.to_string());
    }
    environment.temporary(&place.temporary);
    let roots = &cleared.scene().workspace.roots;
    let git_reads = environment.git(surroundings.git, cleared.terms().git, cwd, roots)?;
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
pub(crate) async fn follow(task: &Task, cleared: &Cleared, most: Duration, lapse: OnTimeout) -> Ended {
    let deadline = Instant::now() + most;
    let mut told = Told { offset: 0 };
    loop {
        let running = task.process.phase() == Phase::Running;
        told.tell(task, cleared.progress(), running);
        if !running {
            // What the shell did not wait for may be about to end as well.
            let gone = task.until(|process| matches!(process.phase(), Phase::Gone(_)));
            let _ = tokio::time::timeout(BEAT, gone).await;
            return Ended::ByItself;
        }
        let mut changed = task.changed.clone();
        changed.mark_unchanged();
        if task.process.phase() != Phase::Running {
            continue;
        }
        let more = async {
            // A channel that is closed means the end, which the phase says as well.
            let _ = changed.changed().await;
            let beat = sleep(BEAT);
            tokio::select! {
                () = beat => {}
                () = task.until(|process| process.phase() != Phase::Running) => {}
            }
        };
        tokio::select! {
            biased;
            () = cleared.cancel().cancelled() => {
                end(task).await;
                return Ended::Cancelled;
            }
            () = sleep_until(deadline) => return match lapse {
                OnTimeout::Stop => {
                    end(task).await;
                    Ended::OutOfTime
                }
                OnTimeout::Background => Ended::MovedToBackground,
            },
            () = more => {}
        }
    }
}

/// Stops a command and waits until nothing is left of it.
pub(crate) async fn end(task: &Task) {
    task.process.stop(task.grace);
    let gone = task.until(|process| matches!(process.phase(), Phase::Gone(_)));
    // Only a process that even SIGKILL does not end is left after this, and it stays owned.
    let _ = tokio::time::timeout(task.grace + Duration::from_secs(4), gone).await;
}

/// How far the output was told.
struct Told {
    offset: u64,
}

impl Told {
    /// Passes on whole lines, and at the end the rest.
    fn tell(&mut self, task: &Task, progress: &Progress, running: bool) {
        const MOST: usize = 64 * 1024;
        let Ok(bytes) = task.process.written_from(self.offset, MOST) else { return };
        let whole = match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => last + 1,
            None if running && bytes.len() < MOST => 0,
            None => bytes.len(),
        };
        let whole = if running { whole } else { bytes.len() };
        let text = bytes.get(..whole).unwrap_or_default();
        if !text.is_empty() {
            progress.say(to_plain_text(text));
            self.offset += whole as u64;
        }
        // A flood is shown from its latest end on: whoever watches cannot read it anyway.
        let total = task.process.written().total;
        if total.saturating_sub(self.offset) > 4 * MOST as u64 {
            progress.say(format!("[{} bytes not shown here]", total - self.offset));
            self.offset = total;
        }
    }
}
