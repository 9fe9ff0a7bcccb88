//! Starts a command with the environment and the sandbox that its verdict grants.
//!
//! Environment variables come from toolgate's own, filtered by name, so that secrets stay outside.
//! Git gets further variables that switch off programs which the repository's configuration names.

use super::config::ShellConfig;
use super::follow_command::report_task_end;
use super::sandbox_profile::build_sandbox_profile;
use super::tasks::{SessionScratchDir, ShellTask, ShellTasks};
use std::sync::{Arc, OnceLock, Weak};
use tokio::sync::watch;
use toolgate_files::{CommandSnapshots, resolve};
use toolgate_gate::Cleared;
use toolgate_process::{
    CaptureOptions, CommandEnvironment, ProcessSpec, ProxyHosts, SandboxProxy, SupervisedProcess,
};
use toolgate_proto::{AbsPath, Code, NetworkAccess, Refusal, RightsLevel, Terms, format_count};

/// A command as a toolset adapter requests it.
#[derive(Debug, Clone)]
pub(crate) struct CommandRequest {
    /// The bash command line.
    pub(crate) text: String,
    /// The directory in which it starts; may contain symlinks.
    pub(crate) cwd: AbsPath,
    /// The purpose in the model's words, for lists of tasks.
    pub(crate) description: Option<String>,
    /// The call asks to run outside the sandbox, which the terms of its verdict may refuse.
    pub(crate) unsandboxed: bool,
    /// The call returns without waiting for the command.
    pub(crate) background: bool,
}

/// Starts a command on the terms that were granted.
pub(crate) fn start_command(request: &CommandRequest, cleared: &Cleared) -> Result<Arc<ShellTask>, Refusal> {
    let tasks = cleared.context().session.state::<ShellTasks>();
    let config = tasks.config();
    check_background_limit(request, &tasks, &config)?;
    let scratch_dir = tasks.scratch_dir().map_err(|error| {
        shell_failure(format!("the session's private directory could not be created: {error}"))
    })?;
    let is_sandboxed = is_sandboxed(request, cleared, &config);
    let proxy = if is_sandboxed { start_proxy(&tasks, &config, cleared)? } else { None };
    let number = tasks.next_number();
    let cwd = resolve(&request.cwd).real;
    let (environment, git_reads) =
        build_environment(&config, &scratch_dir, proxy.as_deref(), (cleared, &cwd))?;
    let snapshots = (config.snapshots && is_sandboxed).then(|| open_snapshots(cleared)).flatten();
    let spec = ProcessSpec {
        text: request.text.clone(),
        cwd: cwd.clone(),
        sandbox: is_sandboxed.then(|| {
            build_sandbox_profile(
                cleared,
                (&config, &scratch_dir, proxy.as_deref()),
                snapshots.as_ref(),
                (&environment, &git_reads, &cwd),
            )
        }),
        environment,
        startup: Some(scratch_dir.startup.clone()),
        capture: CaptureOptions {
            head: config.max_shown_bytes.max(1),
            tail: config.max_shown_bytes,
            max_bytes: config.max_output_bytes,
            file: scratch_dir.output.join(toolgate_files::generate_id("output_")),
            file_at_once: request.background,
        },
    };
    let refused_before = proxy.as_deref().map(SandboxProxy::refused).unwrap_or_default();
    let (sender, changed) = watch::channel(());
    // The callback needs the task, which does not exist before the process. It holds a weak reference, so that the
    // process does not keep its own task alive.
    let started_task: Arc<OnceLock<Weak<ShellTask>>> = Arc::default();
    let (callback_task, progress) = (Arc::clone(&started_task), cleared.progress().clone());
    let process = SupervisedProcess::start(spec, move || {
        sender.send_replace(());
        if let Some(task) = callback_task.get().and_then(Weak::upgrade) {
            record_late_changes(&task);
            report_task_end(&task, &progress);
        }
    })
    .map_err(|problem| {
        let code = if problem.sandbox { Code::SandboxUnavailable } else { Code::ShellFailed };
        Refusal::new(code, format!("the command could not be started: {}", problem.message))
    })?;
    let command = (number, request.text.clone(), request.description.clone());
    let (directory, proxy) = ((scratch_dir, config.grace), (proxy, refused_before));
    let task = ShellTask::new(command, process, changed, directory, proxy, cleared.terms().rights.level)
        .with_settings_file(config.settings_file.clone());
    let task = Arc::new(task.with_snapshots(snapshots));
    let _ = started_task.set(Arc::downgrade(&task));
    Ok(task)
}

/// The journal's side of a command: what it changes in the workspace is recorded.
fn open_snapshots(cleared: &Cleared) -> Option<Arc<CommandSnapshots>> {
    let roots = cleared.context().workspace.roots.clone();
    cleared.files().command_snapshots(roots).map(Arc::new)
}

/// Records what a command changed after its call was over, when its last process has ended.
fn record_late_changes(task: &ShellTask) {
    if task.background.get().is_some()
        && !task.is_live()
        && let Some(snapshots) = &task.snapshots
    {
        snapshots.record();
    }
}

/// Refuses a background command beyond the configured number, before anything is started.
fn check_background_limit(
    request: &CommandRequest,
    tasks: &ShellTasks,
    config: &ShellConfig,
) -> Result<(), Refusal> {
    if request.background && tasks.live_count() >= config.max_background_tasks {
        return Err(shell_failure(format!(
            "{} in the background already, which is the maximum",
            format_count(config.max_background_tasks as u64, "command runs", "commands run")
        ))
        .hint("stop one with TaskStop, or wait for one with TaskOutput"));
    }
    Ok(())
}

/// Only the call, its verdict and the settings together let a command run outside the sandbox.
fn is_sandboxed(request: &CommandRequest, cleared: &Cleared, config: &ShellConfig) -> bool {
    let leaves_sandbox =
        request.unsandboxed && cleared.terms().unsandboxed && config.sandbox.allow_unsandboxed;
    config.sandbox.enabled && !leaves_sandbox
}

/// The proxy for a command whose hosts are limited; `None` if its network is fully open or closed.
fn start_proxy(
    tasks: &ShellTasks,
    config: &ShellConfig,
    cleared: &Cleared,
) -> Result<Option<Arc<SandboxProxy>>, Refusal> {
    let Some(hosts) = proxied_hosts(cleared.terms(), config) else { return Ok(None) };
    let hosts = ProxyHosts { allowed: hosts, denied: config.sandbox.denied_hosts.clone() };
    let started = tasks.proxy(hosts, cleared.hosts(), &config.environment);
    started
        .map(Some)
        .map_err(|error| shell_failure(format!("the network proxy could not be started: {error}")))
}

/// The hosts that the proxy allows; `None` if no proxy is needed. An empty list still needs one if rules allow hosts:
/// the proxy asks them for each host.
fn proxied_hosts(terms: &Terms, config: &ShellConfig) -> Option<Vec<String>> {
    let configured = match terms.rights.level {
        RightsLevel::Workspace => config.sandbox.hosts.clone(),
        // A command that was judged by its effects reaches only hosts that its effects name.
        RightsLevel::ReadOnly | RightsLevel::NamedWrites => Vec::new(),
    };
    match &terms.network {
        NetworkAccess::Full => None,
        NetworkAccess::None if configured.is_empty() => None,
        NetworkAccess::None => Some(configured),
        NetworkAccess::Hosts(hosts) => Some(hosts.iter().cloned().chain(configured).collect()),
    }
}

/// The refusal for a command that could not be prepared.
fn shell_failure(message: String) -> Refusal {
    Refusal::new(Code::ShellFailed, message)
}

/// The environment of a command, and the paths outside the workspace that git must read for it.
fn build_environment(
    config: &ShellConfig,
    scratch_dir: &SessionScratchDir,
    proxy: Option<&SandboxProxy>,
    (cleared, cwd): (&Cleared, &AbsPath),
) -> Result<(CommandEnvironment, Vec<AbsPath>), Refusal> {
    let mut environment = CommandEnvironment::from_filtered(&config.environment, &config.pass, &config.set);
    if let (None, Some(home)) = (environment.get("HOME"), &cleared.context().workspace.home) {
        environment.set("HOME", home.to_string());
    }
    environment.set_temp_dir(&scratch_dir.temporary);
    let roots = &cleared.context().workspace.roots;
    let git_reads = environment.restrict_git(config.git, cleared.terms().git, cwd, roots)?;
    environment.set("TOOLGATE", "1");
    if let Some(proxy) = proxy {
        let url = proxy.url();
        for name in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"] {
            environment.set(name, url.clone());
        }
        if config.sandbox.local_binding {
            // Loopback is reached directly: through the proxy, an error of the command's own server would look like a
            // refusal of the proxy.
            for name in ["no_proxy", "NO_PROXY"] {
                environment.set(name, "localhost,127.0.0.1,::1".to_owned());
            }
        }
    }
    Ok((environment, git_reads))
}
