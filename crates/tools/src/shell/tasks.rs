//! The commands of one session.

use super::config::ShellConfig;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use toolgate_files::ScratchDirectory;
use toolgate_gate::{HostRules, HostVerdict};
use toolgate_process::{HostDecision, RefusedHost, SandboxProxy};
use toolgate_process::{ProcessPhase, SupervisedProcess};
use toolgate_proto::{AbsPath, RightsLevel};

/// How long the end of a session may take. Killing everything takes milliseconds.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// Finished tasks whose output can still be asked for.
const MAX_FINISHED_TASKS: usize = 100;

/// What a session knows of its commands.
#[derive(Debug, Default)]
pub(crate) struct ShellTasks {
    inner: Mutex<ShellTasksInner>,
}

#[derive(Debug, Default)]
struct ShellTasksInner {
    config: Arc<ShellConfig>,
    scratch_dir: Option<Arc<SessionScratchDir>>,
    proxy: Option<(Vec<String>, HostRules, Arc<SandboxProxy>)>,
    count: u64,
    tasks: BTreeMap<u64, Arc<ShellTask>>,
}

/// The session's private directory.
#[derive(Debug)]
pub(crate) struct SessionScratchDir {
    scratch: ScratchDirectory,
    /// The temporary directory of commands.
    pub(crate) temporary: AbsPath,
    /// The startup file of their shells.
    pub(crate) startup: AbsPath,
    /// Where long output goes.
    pub(crate) output: AbsPath,
}

impl SessionScratchDir {
    fn new(surroundings: &ShellConfig) -> std::io::Result<Self> {
        let scratch = ScratchDirectory::new(&surroundings.temp_dir, "toolgate-")?;
        let temporary = scratch.make_dir("tmp")?;
        let startup = toolgate_process::write_startup_file(scratch.dir())?;
        let output = match &surroundings.output_dir {
            Some(dir) => toolgate_files::make_private_dir(dir).map(|()| dir.clone())?,
            None => scratch.make_dir("out")?,
        };
        Ok(Self { scratch, temporary, startup, output })
    }

    /// Where it is.
    pub(crate) fn dir(&self) -> &AbsPath {
        self.scratch.dir()
    }
}

/// A command that was started.
#[derive(Debug)]
pub(crate) struct ShellTask {
    pub(crate) id: String,
    number: u64,
    /// The command line.
    pub(crate) command: String,
    /// What it is for, in the model's words.
    pub(crate) description: Option<String>,
    /// It runs in the background, and its end is told.
    pub(crate) background: OnceLock<()>,
    /// Its end was told.
    pub(crate) end_reported: OnceLock<()>,
    pub(crate) process: SupervisedProcess,
    /// Changes whenever there is more output or the phase changed.
    pub(crate) changed: watch::Receiver<()>,
    /// Kept while a command may need them.
    _scratch_dir: Arc<SessionScratchDir>,
    proxy: Option<Arc<SandboxProxy>>,
    /// Hosts that the proxy had refused before this command started.
    refused_before: Vec<RefusedHost>,
    /// How long it may take to end by itself when it is told to.
    pub(crate) grace: Duration,
    /// How its rights were cut.
    pub(crate) level: RightsLevel,
}

impl ShellTask {
    pub(crate) fn is_live(&self) -> bool {
        !matches!(self.process.phase(), ProcessPhase::AllExited(_))
    }

    /// Hosts that the proxy has refused since the command started.
    pub(crate) fn refused_hosts(&self) -> Vec<RefusedHost> {
        let mut hosts = self.proxy.as_deref().map(SandboxProxy::refused).unwrap_or_default();
        hosts.retain(|host| !self.refused_before.contains(host));
        hosts
    }

    /// Waits until something holds of the command.
    pub(crate) async fn wait_until(&self, mut done: impl FnMut(&SupervisedProcess) -> bool) {
        let mut changed = self.changed.clone();
        while !done(&self.process) {
            // The sender lives in the pump; its end is the command's.
            if changed.changed().await.is_err() {
                return;
            }
        }
    }
}

impl ShellTasks {
    fn inner(&self) -> MutexGuard<'_, ShellTasksInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set_config(&self, surroundings: ShellConfig) {
        self.inner().config = Arc::new(surroundings);
    }

    pub(crate) fn config(&self) -> Arc<ShellConfig> {
        Arc::clone(&self.inner().config)
    }

    /// The session's private directory, made at first use.
    pub(crate) fn scratch_dir(&self) -> std::io::Result<Arc<SessionScratchDir>> {
        let mut inner = self.inner();
        if let Some(place) = &inner.scratch_dir {
            return Ok(Arc::clone(place));
        }
        let place = Arc::new(SessionScratchDir::new(&inner.config)?);
        inner.scratch_dir = Some(Arc::clone(&place));
        Ok(place)
    }

    /// A proxy that lets through these hosts, and those that rules allow.
    pub(crate) fn proxy(
        &self,
        hosts: &[String],
        denied: &[String],
        rules: &HostRules,
    ) -> std::io::Result<Arc<SandboxProxy>> {
        let mut inner = self.inner();
        if let Some((known, known_rules, proxy)) = &inner.proxy
            && known == hosts
            && known_rules.is_same(rules)
        {
            return Ok(Arc::clone(proxy));
        }
        let asked = rules.clone();
        let proxy = SandboxProxy::start(hosts.to_vec(), denied.to_vec(), move |host, port| {
            match asked.check_host(host, port) {
                HostVerdict::Allowed => HostDecision::Allow,
                HostVerdict::Denied(why) => HostDecision::Deny(why),
                HostVerdict::Undecided => HostDecision::NoMatch,
            }
        })?;
        let proxy = Arc::new(proxy);
        inner.proxy = Some((hosts.to_vec(), rules.clone(), Arc::clone(&proxy)));
        Ok(proxy)
    }

    /// The number of the next command.
    pub(crate) fn next_number(&self) -> u64 {
        let mut inner = self.inner();
        inner.count += 1;
        inner.count
    }

    /// How many run in the background.
    pub(crate) fn live_count(&self) -> usize {
        self.inner().tasks.values().filter(|task| task.is_live()).count()
    }

    /// Keeps a command that goes on in the background, or whose output may be asked for.
    pub(crate) fn retain_task(&self, task: &Arc<ShellTask>) {
        let mut inner = self.inner();
        inner.tasks.insert(task.number, Arc::clone(task));
        let finished: Vec<u64> =
            inner.tasks.iter().filter(|(_, task)| !task.is_live()).map(|(number, _)| *number).collect();
        for number in finished.iter().take(finished.len().saturating_sub(MAX_FINISHED_TASKS)) {
            inner.tasks.remove(number);
        }
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<ShellTask>> {
        self.inner().tasks.values().find(|task| task.id == id).cloned()
    }

    pub(crate) fn all(&self) -> Vec<Arc<ShellTask>> {
        self.inner().tasks.values().cloned().collect()
    }
}

impl ShellTask {
    pub(crate) fn new(
        (number, command, description): (u64, String, Option<String>),
        process: SupervisedProcess,
        changed: watch::Receiver<()>,
        (place, proxy, grace): (Arc<SessionScratchDir>, Option<Arc<SandboxProxy>>, Duration),
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
            _scratch_dir: place,
            refused_before: proxy.as_deref().map(SandboxProxy::refused).unwrap_or_default(),
            proxy,
            grace,
            level,
        }
    }
}

impl Drop for ShellTasks {
    /// The end of the session: nothing of it goes on.
    fn drop(&mut self) {
        let tasks = std::mem::take(&mut self.inner().tasks);
        for task in tasks.values() {
            task.process.send_stop(Duration::ZERO);
        }
        for task in tasks.values() {
            task.process.wait_all_exited(SHUTDOWN_TIMEOUT);
        }
    }
}
