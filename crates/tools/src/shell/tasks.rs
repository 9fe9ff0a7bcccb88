//! The commands of a session: foreground commands while they run, and every background task.

use super::config::ShellConfig;
use super::upstream::{choose_upstream, proxy_variables};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use toolgate_files::{CommandSnapshots, ScratchDirectory};
use toolgate_gate::{HostRules, HostVerdict};
use toolgate_process::{HostDecision, ProxyHosts, RefusedHost, SandboxProxy};
use toolgate_process::{ProcessPhase, SupervisedProcess};
use toolgate_proto::{AbsPath, RightsLevel};

/// How long the end of a session waits for its processes. SIGKILL takes milliseconds; the rest is for a loaded machine.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Finished background tasks whose output can still be read.
const MAX_FINISHED_TASKS: usize = 100;

/// A proxy that commands share, and what it was started with.
#[derive(Debug)]
struct SessionProxy {
    /// The hosts of the settings.
    hosts: ProxyHosts,
    /// The variables of the environment that name proxies behind it.
    variables: BTreeMap<String, String>,
    /// The rules about hosts.
    rules: HostRules,
    /// The proxy.
    proxy: Arc<SandboxProxy>,
}

/// The shell state of a session.
#[derive(Debug, Default)]
pub(crate) struct ShellTasks {
    /// A mutex and not an async lock: it is never held across an await.
    inner: Mutex<ShellTasksInner>,
}

/// The state behind the lock of [`ShellTasks`].
#[derive(Debug, Default)]
struct ShellTasksInner {
    /// Applies to commands that start from now on.
    config: Arc<ShellConfig>,
    /// Created by the first command.
    scratch_dir: Option<Arc<SessionScratchDir>>,
    /// The proxy of the last command that needed one.
    proxy: Option<SessionProxy>,
    /// The number of commands started so far.
    count: u64,
    /// Background tasks, and finished commands with an output file, by number.
    tasks: BTreeMap<u64, Arc<ShellTask>>,
}

/// The session's private directory. It is removed when the last command that uses it is gone.
#[derive(Debug)]
pub(crate) struct SessionScratchDir {
    /// Removes the directory on drop.
    scratch: ScratchDirectory,
    /// `$TMPDIR` of the commands.
    pub(crate) temporary: AbsPath,
    /// The startup file of their shells, which reports the final working directory.
    pub(crate) startup: AbsPath,
    /// The directory of output files.
    pub(crate) output: AbsPath,
}

impl SessionScratchDir {
    /// Creates the directory, readable by the user alone, with its subdirectories and the startup file.
    fn new(config: &ShellConfig) -> std::io::Result<Self> {
        let scratch = ScratchDirectory::new(&config.temp_dir, "toolgate-")?;
        let temporary = scratch.make_dir("tmp")?;
        let startup = toolgate_process::write_startup_file(scratch.dir())?;
        let output = match &config.output_dir {
            Some(dir) => toolgate_files::make_private_dir(dir).map(|()| dir.clone())?,
            None => scratch.make_dir("out")?,
        };
        Ok(Self { scratch, temporary, startup, output })
    }

    /// The path of the directory.
    pub(crate) fn dir(&self) -> &AbsPath {
        self.scratch.dir()
    }
}

/// A command that was started; a background task if it outlives its call.
#[derive(Debug)]
pub(crate) struct ShellTask {
    /// The id that models use, `task_<number>`.
    pub(crate) id: String,
    /// Its number in the session, from 1.
    number: u64,
    /// The command line.
    pub(crate) command: String,
    /// The purpose in the model's words.
    pub(crate) description: Option<String>,
    /// Set once the command is a background task, whose end is reported as an event.
    pub(crate) background: OnceLock<()>,
    /// Set once that event was sent.
    pub(crate) end_reported: OnceLock<()>,
    /// The shell and every process that it started, owned by the supervisor.
    pub(crate) process: SupervisedProcess,
    /// Notified whenever there is more output or the phase changed.
    pub(crate) changed: watch::Receiver<()>,
    /// Keeps the private directory while the command may use it.
    _scratch_dir: Arc<SessionScratchDir>,
    /// The proxy of the command, which several commands may share.
    proxy: Option<Arc<SandboxProxy>>,
    /// Hosts that the proxy had refused before this command started; they belong to other commands.
    refused_before: Vec<RefusedHost>,
    /// Time between SIGTERM and SIGKILL when the command is stopped.
    pub(crate) grace: Duration,
    /// How the rights of the command were derived, which decides what counts as an anomaly.
    pub(crate) level: RightsLevel,
    /// The settings file that hints name.
    pub(crate) settings_file: Option<String>,
    /// What its files contained before it changed them, where settings want that.
    pub(crate) snapshots: Option<Arc<CommandSnapshots>>,
}

impl ShellTask {
    /// The same, with the snapshots of its files.
    pub(super) fn with_snapshots(mut self, snapshots: Option<Arc<CommandSnapshots>>) -> Self {
        self.snapshots = snapshots;
        self
    }

    /// The same, with the settings file that its hints name.
    pub(super) fn with_settings_file(mut self, file: Option<String>) -> Self {
        self.settings_file = file;
        self
    }

    /// Whether a process of the command still runs.
    pub(crate) fn is_live(&self) -> bool {
        !matches!(self.process.phase(), ProcessPhase::AllExited(_))
    }

    /// Hosts that the proxy has refused since the command started.
    pub(crate) fn refused_hosts(&self) -> Vec<RefusedHost> {
        let mut hosts = self.proxy.as_deref().map(SandboxProxy::refused).unwrap_or_default();
        hosts.retain(|host| !self.refused_before.contains(host));
        hosts
    }

    /// Waits until a condition on the process holds, or the process has ended.
    pub(crate) async fn wait_until(&self, mut is_met: impl FnMut(&SupervisedProcess) -> bool) {
        let mut changed = self.changed.clone();
        while !is_met(&self.process) {
            // The callback of the process owns the sender and is dropped when the process has ended.
            if changed.changed().await.is_err() {
                return;
            }
        }
    }
}

impl ShellTasks {
    /// The lock of the state. A panic while it was held leaves the state usable, so poisoning is ignored.
    fn inner(&self) -> MutexGuard<'_, ShellTasksInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the configuration for commands that start from now on.
    pub(crate) fn set_config(&self, config: ShellConfig) {
        self.inner().config = Arc::new(config);
    }

    /// The current configuration.
    pub(crate) fn config(&self) -> Arc<ShellConfig> {
        Arc::clone(&self.inner().config)
    }

    /// The session's private directory, created at the first use.
    pub(crate) fn scratch_dir(&self) -> std::io::Result<Arc<SessionScratchDir>> {
        let mut inner = self.inner();
        if let Some(scratch_dir) = &inner.scratch_dir {
            return Ok(Arc::clone(scratch_dir));
        }
        let scratch_dir = Arc::new(SessionScratchDir::new(&inner.config)?);
        inner.scratch_dir = Some(Arc::clone(&scratch_dir));
        Ok(scratch_dir)
    }

    /// A proxy that allows these hosts and those that rules allow, behind the proxies that the environment names. The last
    /// one is reused if it was started with the same.
    pub(crate) fn proxy(
        &self,
        hosts: ProxyHosts,
        rules: &HostRules,
        environment: &BTreeMap<String, String>,
    ) -> std::io::Result<Arc<SandboxProxy>> {
        let variables = proxy_variables(environment);
        let mut inner = self.inner();
        if let Some(known) = &inner.proxy
            && known.hosts == hosts
            && known.variables == variables
            && known.rules.is_same(rules)
        {
            return Ok(Arc::clone(&known.proxy));
        }
        let proxy_rules = rules.clone();
        let decide = move |host: &str, port| match proxy_rules.check_host(host, port) {
            HostVerdict::Allowed { is_named_private } => HostDecision::Allow { is_named_private },
            HostVerdict::Denied(reason) => HostDecision::Deny(reason),
            HostVerdict::Undecided => HostDecision::NoMatch,
        };
        let proxy = Arc::new(SandboxProxy::start(&hosts, decide, choose_upstream(&variables))?);
        let rules = rules.clone();
        inner.proxy = Some(SessionProxy { hosts, variables, rules, proxy: Arc::clone(&proxy) });
        Ok(proxy)
    }

    /// Assigns a number to the next command.
    pub(crate) fn next_number(&self) -> u64 {
        let mut inner = self.inner();
        inner.count += 1;
        inner.count
    }

    /// The number of background tasks that still run.
    pub(crate) fn live_count(&self) -> usize {
        self.inner().tasks.values().filter(|task| task.is_live()).count()
    }

    /// Keeps a background task, or a finished command whose output file may be read. The oldest finished ones beyond
    /// [`MAX_FINISHED_TASKS`] are dropped.
    pub(crate) fn retain_task(&self, task: &Arc<ShellTask>) {
        let mut inner = self.inner();
        inner.tasks.insert(task.number, Arc::clone(task));
        let finished: Vec<u64> =
            inner.tasks.iter().filter(|(_, task)| !task.is_live()).map(|(number, _)| *number).collect();
        for number in finished.iter().take(finished.len().saturating_sub(MAX_FINISHED_TASKS)) {
            inner.tasks.remove(number);
        }
    }

    /// The task with this id.
    pub(crate) fn find(&self, id: &str) -> Option<Arc<ShellTask>> {
        self.inner().tasks.values().find(|task| task.id == id).cloned()
    }

    /// All tasks, oldest first.
    pub(crate) fn all(&self) -> Vec<Arc<ShellTask>> {
        self.inner().tasks.values().cloned().collect()
    }
}

impl ShellTask {
    /// Creates the task of a started process. The hosts are those that the proxy had refused before the process started:
    /// a quick one is refused something before its task exists, and the result reports only refusals of this command.
    pub(crate) fn new(
        (number, command, description): (u64, String, Option<String>),
        process: SupervisedProcess,
        changed: watch::Receiver<()>,
        (scratch_dir, grace): (Arc<SessionScratchDir>, Duration),
        (proxy, refused_before): (Option<Arc<SandboxProxy>>, Vec<RefusedHost>),
        level: RightsLevel,
    ) -> Self {
        Self {
            id: format!("task_{number}"),
            number,
            command,
            description,
            background: OnceLock::new(),
            end_reported: OnceLock::new(),
            process,
            changed,
            _scratch_dir: scratch_dir,
            refused_before,
            proxy,
            grace,
            level,
            settings_file: None,
            snapshots: None,
        }
    }
}

impl Drop for ShellTasks {
    /// The end of the session kills every process of its tasks and removes its private directory. All are signalled
    /// before the first wait, so that they end in parallel.
    fn drop(&mut self) {
        let scratch_dir = self.inner().scratch_dir.take();
        let tasks = std::mem::take(&mut self.inner().tasks);
        for task in tasks.values() {
            task.process.send_stop(Duration::ZERO);
        }
        let mut all_exited = true;
        for task in tasks.values() {
            all_exited &= task.process.wait_all_exited(SHUTDOWN_TIMEOUT);
        }
        // What reports the end of a task may still hold the task, and with it the directory.
        if let Some(scratch_dir) = scratch_dir.filter(|_| all_exited) {
            scratch_dir.scratch.remove();
        }
    }
}
