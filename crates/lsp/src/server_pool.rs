//! The servers of a session: which server serves which file, one instance per server and project root, started at the first
//! call that needs it, restarted after a crash, shut down when idle.

use crate::language_server::{LanguageServer, ServerUse};
use crate::launch_options::LaunchOptions;
use crate::server_entry::LspServerEntry;
use crate::server_program::{find_server_program, has_server_program};
use crate::server_status::{InstanceStatus, RunningServer, ServerStatus, StatusBoard};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use toolgate_files::{FileStamp, read_file_stamp, resolve, run_blocking};
use toolgate_proto::{AbsPath, Code, EntryKind, Refusal};

/// The first wait after a crash; it doubles with each further one.
const MIN_RESTART_BACKOFF: Duration = Duration::from_millis(500);
/// The longest wait.
const MAX_RESTART_BACKOFF: Duration = Duration::from_secs(60);
/// A call waits for a restart that is this near, and is refused otherwise.
const RESTART_WAIT_TIMEOUT: Duration = Duration::from_secs(2);
/// A server that ran this long before it crashed starts with a clean record.
const STABLE_RUN_TIMEOUT: Duration = Duration::from_secs(300);
/// How long to wait before another look at a server that a long call uses.
const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// How long a server that is not used stays.
pub const DEFAULT_IDLE_TIMEOUT: Duration = Duration::from_secs(600);

/// What a pool is made of.
#[derive(Clone)]
#[non_exhaustive]
pub struct PoolOptions {
    /// The servers, strongest first: of several for an extension the first that is installed is used.
    pub servers: Vec<LspServerEntry>,
    /// How they are started.
    pub launch: LaunchOptions,
    /// A file whose change makes every server start anew at the next call (`toolgate lsp restart`).
    pub restart_file: Option<AbsPath>,
    /// The directory of the status files that `toolgate lsp status` reads.
    pub status_dir: Option<AbsPath>,
    /// How long a server that is not used stays.
    pub idle_timeout: Duration,
    /// How long a call waits for a server that is indexing before it answers with what there is.
    pub ready_timeout: Duration,
    /// How long the result of an edit waits for diagnostics; zero turns them off.
    pub diagnostics_timeout: Duration,
}

impl PoolOptions {
    /// Options with the defaults.
    pub fn new(servers: Vec<LspServerEntry>, launch: LaunchOptions) -> Self {
        Self {
            servers,
            launch,
            restart_file: None,
            status_dir: None,
            idle_timeout: DEFAULT_IDLE_TIMEOUT,
            ready_timeout: Duration::from_secs(15),
            diagnostics_timeout: Duration::from_millis(1_500),
        }
    }
}

/// The servers of a session.
pub struct ServerPool {
    /// The configured servers, strongest first.
    servers: RwLock<Arc<[Arc<LspServerEntry>]>>,
    /// Called when the configured servers change.
    on_change: OnceLock<Box<dyn Fn() + Send + Sync>>,
    /// The runtime of the servers, once one was started.
    runtime: OnceLock<tokio::runtime::Handle>,
    /// What the pool was made with.
    options: PoolOptions,
    /// One for each server and root that a call has asked for.
    slots: Mutex<BTreeMap<(String, AbsPath), Arc<ServerSlot>>>,
    /// How many servers run, for the quick check whether an edit needs anything of them.
    running: Arc<AtomicUsize>,
    /// Cancelled when no server may start any more; ends the starts that are under way.
    closed: CancellationToken,
    /// The restart file as it was at the last call.
    restart_stamp: Mutex<FileStamp>,
    /// Where other processes read what the servers do.
    board: Option<Arc<StatusBoard>>,
    /// Reports that were made for it.
    reports: Mutex<u64>,
}

/// The place of one server for one root.
struct ServerSlot {
    /// How the server is configured.
    entry: Arc<LspServerEntry>,
    /// The directory that it serves.
    root: AbsPath,
    /// Held while it is started, so that calls that arrive together start it once.
    starting: tokio::sync::Mutex<()>,
    /// Held while the process of a server that crashed is ended.
    reaping: tokio::sync::Mutex<()>,
    /// The server, from its start until it is ended.
    live: Mutex<Option<Arc<LanguageServer>>>,
    /// How it has failed.
    record: Mutex<CrashRecord>,
}

/// How a server has failed so far.
#[derive(Debug, Clone, Default)]
struct CrashRecord {
    /// How often it crashed or did not start.
    crashes: u32,
    /// When it may be started again.
    not_before: Option<Instant>,
    /// Why it ended last.
    last_error: Option<String>,
}

/// Locks a value; a panic of another thread cannot leave it half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ServerPool {
    /// A pool in which no server runs yet.
    pub fn new(options: PoolOptions) -> Arc<Self> {
        let board = options.status_dir.as_ref().map(|dir| Arc::new(StatusBoard::new(dir)));
        Arc::new(Self {
            restart_stamp: Mutex::new(
                options.restart_file.as_ref().map_or(FileStamp::Absent, read_file_stamp),
            ),
            servers: RwLock::new(options.servers.iter().cloned().map(Arc::new).collect()),
            on_change: OnceLock::new(),
            runtime: OnceLock::new(),
            options,
            slots: Mutex::default(),
            running: Arc::default(),
            closed: CancellationToken::new(),
            board,
            reports: Mutex::default(),
        })
    }

    /// The configured servers as they are now.
    fn configured(&self) -> Arc<[Arc<LspServerEntry>]> {
        Arc::clone(&self.servers.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the configured servers. One that is gone or different is ended; the others go on.
    pub fn set_servers(&self, servers: Vec<LspServerEntry>) {
        let before = self.configured();
        if before.iter().map(|entry| &**entry).eq(&servers) {
            return;
        }
        let keep = |entry: LspServerEntry| {
            let same = before.iter().find(|other| ***other == entry);
            same.map_or_else(|| Arc::new(entry.clone()), Arc::clone)
        };
        let now: Arc<[Arc<LspServerEntry>]> = servers.into_iter().map(keep).collect();
        *self.servers.write().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&now);
        let mut ended = Vec::new();
        lock(&self.slots).retain(|_, slot| {
            let is_kept = now.iter().any(|entry| **entry == *slot.entry);
            if !is_kept {
                ended.push(Arc::clone(slot));
            }
            is_kept
        });
        if let Some(runtime) = self.runtime.get() {
            let running = Arc::clone(&self.running);
            runtime.spawn(async move {
                for slot in ended {
                    slot.shut_down(&running).await;
                }
            });
        }
        if let Some(on_change) = self.on_change.get() {
            on_change();
        }
    }

    /// Calls this when the configured servers change. Only the first one is kept.
    pub(crate) fn set_change_callback(&self, on_change: impl Fn() + Send + Sync + 'static) {
        let _ = self.on_change.set(Box::new(on_change));
    }

    /// Whether any server runs.
    pub fn has_running(&self) -> bool {
        self.running.load(Ordering::Relaxed) > 0
    }

    /// Whether the program of at least one server is installed.
    pub fn has_installed(&self) -> bool {
        has_server_program(self.configured().iter().map(|entry| &**entry), &self.options.launch.env)
    }

    /// What the pool was made with.
    pub(crate) fn options(&self) -> &PoolOptions {
        &self.options
    }

    /// The file of a server's program.
    fn find_program(&self, entry: &LspServerEntry) -> Option<AbsPath> {
        find_server_program(entry, &self.options.launch.env)
    }

    /// The server for a file: the first installed one of those for its extension.
    fn find_entry(&self, path: &AbsPath) -> Result<Arc<LspServerEntry>, Refusal> {
        let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        let configured = self.configured();
        let candidates: Vec<_> =
            configured.iter().filter(|entry| entry.language_of(&name).is_some()).collect();
        if let Some(entry) = candidates.iter().find(|entry| self.find_program(entry).is_some()) {
            return Ok(Arc::clone(entry));
        }
        let unavailable = |reason: String| Refusal::new(Code::LspUnavailable, reason);
        let Some(first) = candidates.first() else {
            return Err(unavailable(format!("no language server is configured for `{name}`")).hint(
                "configure one in `lspServers` of `~/.config/toolgate/settings.json`, or use Grep and Read",
            ));
        };
        let commands: Vec<_> = candidates.iter().map(|entry| format!("`{}`", entry.command)).collect();
        let refusal = unavailable(format!(
            "the language server for `{name}` is not installed: none of {} is in PATH",
            commands.join(", ")
        ));
        Err(match &first.install {
            Some(install) => {
                refusal.hint(format!("ask the user to run `{install}`; until then use Grep and Read"))
            }
            None => refusal.hint("ask the user to install it; until then use Grep and Read"),
        })
    }

    /// The root of the project of a file: the outermost directory with a marker of the language, inside the workspace root.
    fn find_root(entry: &LspServerEntry, path: &AbsPath, workspace_root: &AbsPath) -> AbsPath {
        if let Some(folder) = &entry.workspace_folder {
            return workspace_root.join(folder).lexical();
        }
        let mut found = None;
        let mut directory = path.parent();
        while let Some(current) = directory.filter(|current| current.is_under(workspace_root)) {
            let is_marked = |marker: &String| resolve(&current.join(marker)).kind == EntryKind::File;
            if entry.root_markers.iter().any(is_marked) {
                found = Some(current.clone());
            }
            directory = current.parent();
        }
        found.unwrap_or_else(|| workspace_root.clone())
    }

    /// The place of a server for a root, made at the first call.
    fn slot(&self, entry: &Arc<LspServerEntry>, root: AbsPath) -> Arc<ServerSlot> {
        let mut slots = lock(&self.slots);
        let slot = slots.entry((entry.name.clone(), root.clone())).or_insert_with(|| {
            Arc::new(ServerSlot {
                entry: Arc::clone(entry),
                root,
                starting: tokio::sync::Mutex::default(),
                reaping: tokio::sync::Mutex::default(),
                live: Mutex::default(),
                record: Mutex::default(),
            })
        });
        Arc::clone(slot)
    }

    /// The running server for a file, if there is one. Never starts one.
    pub(crate) fn running_for(&self, path: &AbsPath, workspace_root: &AbsPath) -> Option<ServerUse> {
        let entry = &self.find_entry(path).ok()?;
        let root = Self::find_root(entry, path, workspace_root);
        let slot = lock(&self.slots).get(&(entry.name.clone(), root)).cloned()?;
        slot.running()
    }

    /// The server for a file, started if it does not run.
    pub(crate) async fn ensure_running(
        self: &Arc<Self>,
        path: &AbsPath,
        workspace_root: &AbsPath,
    ) -> Result<ServerUse, Refusal> {
        let entry = &self.find_entry(path)?;
        let _ = self.runtime.set(tokio::runtime::Handle::current());
        let root = Self::find_root(entry, path, workspace_root);
        let slot = self.slot(entry, root);
        self.apply_restart_file().await;
        if let Some(live) = slot.running() {
            return Ok(live);
        }
        let sandbox = self.options.launch.permission.check_start(entry).map_err(|why| {
            Refusal::new(
                Code::LspUnavailable,
                format!("language server `{}` may not start: {why}", entry.name),
            )
            .hint(
                "it runs code of the project; ask the user to run `toolgate trust add` if that is acceptable",
            )
        })?;
        let _starting = slot.starting.lock().await;
        if let Some(live) = slot.running() {
            return Ok(live);
        }
        slot.collect_crash(&self.running).await;
        slot.check_may_start(self.closed.is_cancelled()).await?;
        let launch = &self.options.launch;
        let starting = LanguageServer::start(Arc::clone(entry), slot.root.clone(), launch, sandbox);
        let started = tokio::select! {
            biased;
            () = self.closed.cancelled() => return Err(slot.refusal("toolgate is ending")),
            started = starting => started,
        };
        let live = match started {
            Ok(live) => Arc::new(live),
            Err(reason) => {
                slot.note_failure(&reason);
                self.publish_status();
                let refusal = slot.refusal(&reason);
                // The file that was found may be a placeholder, as those of rustup are.
                return Err(match &entry.install {
                    Some(install) => refusal.hint(format!(
                        "if its program is incomplete, ask the user to run `{install}`; until it works use Grep and Read"
                    )),
                    None => refusal,
                });
            }
        };
        let server_use = ServerUse::new(&live);
        let watched = Arc::clone(&live);
        tokio::spawn(async move { watched.watch_when_asked().await });
        *lock(&slot.live) = Some(Arc::clone(&live));
        self.running.fetch_add(1, Ordering::SeqCst);
        self.publish_status();
        let watching = watch_server(
            Arc::clone(&slot),
            Arc::clone(&live),
            self.options.idle_timeout,
            Arc::clone(&self.running),
        );
        let pool = Arc::downgrade(self);
        tokio::spawn(async move {
            watching.await;
            if let Some(pool) = pool.upgrade() {
                pool.publish_status();
            }
        });
        if self.closed.is_cancelled() {
            slot.shut_down(&self.running).await;
            return Err(slot.refusal("toolgate is ending"));
        }
        Ok(server_use)
    }

    /// Ends servers, by name or all, and forgets their crashes: the next call starts them again. Returns how many ran.
    pub async fn restart(&self, name: Option<&str>) -> usize {
        let slots: Vec<_> = lock(&self.slots).values().cloned().collect();
        let mut count = 0;
        for slot in slots.iter().filter(|slot| name.is_none_or(|name| slot.entry.name == name)) {
            count += usize::from(slot.shut_down(&self.running).await);
            *lock(&slot.record) = CrashRecord::default();
        }
        count
    }

    /// Restarts every server if the user asked for it since the last call.
    async fn apply_restart_file(&self) {
        let Some(file) = &self.options.restart_file else { return };
        let stamp = read_file_stamp(file);
        let is_new = {
            let mut seen = lock(&self.restart_stamp);
            let is_new = *seen != stamp;
            *seen = stamp;
            is_new
        };
        if is_new {
            self.restart(None).await;
        }
    }

    /// Ends every server, for good.
    pub async fn close(&self) {
        self.closed.cancel();
        let slots: Vec<_> = lock(&self.slots).values().cloned().collect();
        let ending = slots.iter().map(|slot| slot.shut_down(&self.running));
        futures_util::future::join_all(ending).await;
        // A server that crashed just now is ended by the task that watches it.
        for slot in &slots {
            let _reaped = slot.reaping.lock().await;
        }
        if let Some(board) = self.board.clone() {
            let _ = run_blocking(move || board.close()).await;
        }
    }

    /// Lets other processes know what the servers do, without waiting for it.
    pub(crate) fn publish_status(&self) {
        let Some(board) = &self.board else { return };
        // Held until the servers were looked at, so that a higher number is a later look.
        let mut number = lock(&self.reports);
        *number += 1;
        let slots: Vec<_> = lock(&self.slots).values().cloned().collect();
        let running = |slot: &Arc<ServerSlot>| {
            // Messages are of no use without their times, and change all the time.
            let instance = InstanceStatus { log: Vec::new(), ..slot.status() };
            RunningServer { server: slot.entry.name.clone(), toolgate_pid: std::process::id(), instance }
        };
        let is_listed =
            |running: &RunningServer| running.instance.pid.is_some() || running.instance.last_error.is_some();
        let servers: Vec<_> = slots.iter().map(running).filter(is_listed).collect();
        if board.is_due(&servers) {
            let (board, number) = (Arc::clone(board), *number);
            tokio::task::spawn_blocking(move || board.write(number, servers));
        }
    }

    /// The configured servers and their instances.
    pub fn status(&self) -> Vec<ServerStatus> {
        let slots: Vec<_> = lock(&self.slots).values().cloned().collect();
        let status = |entry: &Arc<LspServerEntry>| ServerStatus {
            server: entry.name.clone(),
            command: entry.command.clone(),
            program: self.find_program(entry),
            extensions: entry.languages.keys().cloned().collect(),
            origin: entry.origin.clone(),
            install: entry.install.clone(),
            instances: slots
                .iter()
                .filter(|slot| slot.entry.name == entry.name)
                .map(|slot| slot.status())
                .collect(),
        };
        self.configured().iter().map(status).collect()
    }
}

impl ServerSlot {
    /// The server, if it runs. The use is counted under the lock that an idle server is taken out under.
    fn running(&self) -> Option<ServerUse> {
        let live = lock(&self.live);
        live.as_ref().filter(|live| live.closed_reason().is_none()).map(ServerUse::new)
    }

    /// Takes the server out if no call uses it and it was not used for this long.
    fn take_idle(&self, idle_timeout: Duration, running: &AtomicUsize) -> Option<Arc<LanguageServer>> {
        let is_idle = |live: &mut Arc<LanguageServer>| {
            live.is_unused() && live.last_used() + idle_timeout <= Instant::now()
        };
        let idle = lock(&self.live).take_if(is_idle);
        if idle.is_some() {
            running.fetch_sub(1, Ordering::SeqCst);
        }
        idle
    }

    /// Takes the server out, so that it is ended by one task only.
    fn take(&self, running: &AtomicUsize) -> Option<Arc<LanguageServer>> {
        let live = lock(&self.live).take();
        if live.is_some() {
            running.fetch_sub(1, Ordering::SeqCst);
        }
        live
    }

    /// Notes the crash of a server that has ended by itself, if there is one.
    async fn collect_crash(&self, running: &AtomicUsize) {
        let _reaping = self.reaping.lock().await;
        if lock(&self.live).as_ref().is_some_and(|live| live.closed_reason().is_some())
            && let Some(live) = self.take(running)
        {
            if live.since.elapsed() >= STABLE_RUN_TIMEOUT {
                *lock(&self.record) = CrashRecord::default();
            }
            let reason = live.reap().await;
            self.note_failure(&reason);
        }
    }

    /// Counts a crash, and sets the time of the next start.
    fn note_failure(&self, reason: &str) {
        tracing::warn!(server = self.entry.name, reason, "a language server ended");
        let mut record = lock(&self.record);
        let backoff =
            MIN_RESTART_BACKOFF.saturating_mul(1 << record.crashes.min(10)).min(MAX_RESTART_BACKOFF);
        record.crashes += 1;
        record.not_before = Some(Instant::now() + backoff);
        record.last_error = Some(reason.to_owned());
    }

    /// Refuses a start after too many crashes, or waits for the end of the backoff.
    async fn check_may_start(&self, is_closed: bool) -> Result<(), Refusal> {
        if is_closed {
            return Err(self.refusal("toolgate is ending"));
        }
        let record = lock(&self.record).clone();
        let Some(error) = record.last_error else { return Ok(()) };
        let limit = if self.entry.restart_on_crash { self.entry.max_restarts } else { 0 };
        if record.crashes > limit {
            let times =
                if record.crashes == 1 { "once".to_owned() } else { format!("{} times", record.crashes) };
            return Err(
                self.refusal(&format!("it failed {times} and is not restarted any more; last: {error}"))
            );
        }
        let Some(until) = record.not_before else { return Ok(()) };
        if until.saturating_duration_since(Instant::now()) > RESTART_WAIT_TIMEOUT {
            let seconds = until.saturating_duration_since(Instant::now()).as_secs() + 1;
            return Err(self.refusal(&format!("{error}; it is restarted in {seconds} s")));
        }
        sleep_until(until).await;
        Ok(())
    }

    /// The refusal of a call that needs this server.
    fn refusal(&self, reason: &str) -> Refusal {
        Refusal::new(Code::LspUnavailable, format!("language server `{}`: {reason}", self.entry.name))
            .hint("see `toolgate lsp status`; until it works use Grep and Read")
    }

    /// Ends the server. True if it ran.
    async fn shut_down(&self, running: &AtomicUsize) -> bool {
        match self.take(running) {
            Some(live) => {
                live.shut_down().await;
                true
            }
            None => false,
        }
    }

    /// What it does.
    fn status(&self) -> InstanceStatus {
        let live = self.running();
        let record = lock(&self.record).clone();
        let readiness = live.as_ref().map(|live| {
            let readiness = live.state.readiness();
            (readiness.is_ready(), readiness.activity().map(str::to_owned))
        });
        let (ready, activity) = readiness.unwrap_or_default();
        InstanceStatus {
            root: self.root.clone(),
            pid: live.as_ref().and_then(|live| live.process_id()),
            title: live.as_ref().map(|live| live.title.clone()),
            columns: live.as_ref().map(|live| live.unit.as_str().to_owned()),
            ready,
            activity,
            open_files: live.as_ref().map_or(0, |live| live.open_document_count()),
            crashes: record.crashes,
            last_error: record.last_error,
            log: live.as_ref().map(|live| live.state.log_lines()).unwrap_or_default(),
            sandbox_denials: live.as_ref().map(|live| live.sandbox_denials()).unwrap_or_default(),
        }
    }
}

/// Ends the process of a server that crashed, and shuts down one that is idle.
async fn watch_server(
    slot: Arc<ServerSlot>,
    live: Arc<LanguageServer>,
    idle_timeout: Duration,
    running: Arc<AtomicUsize>,
) {
    loop {
        let idle_at = live.last_used() + idle_timeout;
        tokio::select! {
            () = live.wait_closed() => {
                // A call that arrives meanwhile waits until the crash is counted.
                let _starting = slot.starting.lock().await;
                slot.collect_crash(&running).await;
                return;
            }
            () = sleep_until(idle_at) => {
                if let Some(idle) = slot.take_idle(idle_timeout, &running) {
                    idle.shut_down().await;
                    return;
                }
                // In use: looked at again when it could be idle next.
                tokio::time::sleep(idle_timeout.min(IDLE_CHECK_INTERVAL)).await;
            }
        }
    }
}
