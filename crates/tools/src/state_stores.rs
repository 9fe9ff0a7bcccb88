//! The stores of a session: where they are, and opening them when a call first needs one.

use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use toolgate_files::{ContentHash, FileStamp, read_file_stamp, run_blocking};
use toolgate_gate::{CallContext, Cleared, Session};
use toolgate_proto::{AbsPath, Code, Effect, Refusal};
use toolgate_state::{
    DueSchedule, MemoryError, MemoryStore, ScheduleError, ScheduleOwner, ScheduleStore, TaskError, TaskStore,
};

/// Characters of a project's name in the name of its directory.
const MAX_NAME_CHARS: usize = 32;
/// Characters of the hash in the name of a directory.
const HASH_CHARS: usize = 16;

/// Where the stores of a session are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateConfig {
    /// The directory of the stores, shared by processes. Without one they last as long as the session.
    pub dir: Option<AbsPath>,
    /// The task list of every task tool, in place of those of the project and the session.
    pub task_list: Option<String>,
}

impl StateConfig {
    /// The same, with the stores in a directory.
    pub fn with_dir(mut self, dir: Option<AbsPath>) -> Self {
        self.dir = dir;
        self
    }

    /// The same, with one list for every task tool.
    pub fn with_task_list(mut self, task_list: Option<String>) -> Self {
        self.task_list = task_list;
        self
    }
}

/// Sets where the stores of a session are. Call it before the first call: an open store is closed.
pub fn set_state_config(session: &Session, config: StateConfig) {
    *session.state::<StateStores>().lock() = OpenStores { config, ..OpenStores::default() };
}

/// The open stores of a session.
#[derive(Debug, Default)]
pub(crate) struct StateStores {
    /// Guards opening as well, so that parallel calls share one store instead of opening the files twice.
    inner: Mutex<OpenStores>,
}

/// The stores opened so far, and where they are.
#[derive(Debug, Default)]
struct OpenStores {
    /// Where the stores are, and which task list the tools use.
    config: StateConfig,
    /// The task store, which contains all lists.
    tasks: Option<Arc<TaskStore>>,
    /// The schedules of all projects.
    schedules: Option<Arc<ScheduleStore>>,
    /// Notes of this project.
    project_memory: Option<Arc<MemoryStore>>,
    /// Notes of the user, shared by all projects.
    user_memory: Option<Arc<MemoryStore>>,
}

impl StateStores {
    /// Locks the stores. Ignores poisoning, because a panic while opening leaves the slot empty.
    fn lock(&self) -> MutexGuard<'_, OpenStores> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store of tasks, opened at the first use.
    fn open_tasks(&self) -> Result<Arc<TaskStore>, TaskError> {
        let mut open = self.lock();
        if let Some(store) = &open.tasks {
            return Ok(Arc::clone(store));
        }
        let store = match &open.config.dir {
            Some(dir) => TaskStore::open(dir)?,
            None => TaskStore::in_memory()?,
        };
        Ok(Arc::clone(open.tasks.insert(Arc::new(store))))
    }

    /// The store of schedules, opened at the first use.
    fn open_schedules(&self) -> Result<Arc<ScheduleStore>, ScheduleError> {
        let mut open = self.lock();
        if let Some(store) = &open.schedules {
            return Ok(Arc::clone(store));
        }
        let store = match &open.config.dir {
            Some(dir) => ScheduleStore::open(dir)?,
            None => ScheduleStore::in_memory()?,
        };
        Ok(Arc::clone(open.schedules.insert(Arc::new(store))))
    }

    /// The notes of a scope, opened at the first use; `None` without a directory.
    fn open_memory(
        &self,
        scope: MemoryScope,
        project: &AbsPath,
    ) -> Result<Option<Arc<MemoryStore>>, MemoryError> {
        let mut open = self.lock();
        let Some(dir) = open.config.dir.as_ref().map(|dir| memory_dir(dir, scope, project)) else {
            return Ok(None);
        };
        let slot = match scope {
            MemoryScope::Project => &mut open.project_memory,
            MemoryScope::User => &mut open.user_memory,
        };
        if let Some(store) = slot {
            return Ok(Some(Arc::clone(store)));
        }
        Ok(Some(Arc::clone(slot.insert(Arc::new(MemoryStore::open(&dir)?)))))
    }
}

/// Whose notes are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum MemoryScope {
    /// Notes about one project.
    #[default]
    Project,
    /// Notes of the user, for all projects.
    User,
}

/// The directory of the notes of a scope. A project is known by its directory, so that nothing in it can bring notes along.
pub fn memory_dir(state_dir: &AbsPath, scope: MemoryScope, project: &AbsPath) -> AbsPath {
    let dir = state_dir.join("memory");
    match scope {
        MemoryScope::User => dir.join("user"),
        MemoryScope::Project => {
            let name = project.file_name().unwrap_or_default().to_string_lossy();
            let name: String =
                name.chars().filter(|c| c.is_ascii_alphanumeric()).take(MAX_NAME_CHARS).collect();
            let hash = ContentHash::of(project.as_path().as_os_str().as_encoded_bytes()).to_string();
            let hash: String = hash.chars().take(HASH_CHARS).collect();
            dir.join("projects").join(format!("{name}-{hash}"))
        }
    }
}

/// What a call that changes notes does. Notes of the user reach every project, so policy asks about them.
pub(crate) fn memory_effect(scope: MemoryScope) -> Effect {
    let name = match scope {
        MemoryScope::Project => "memory",
        MemoryScope::User => "user memory",
    };
    Effect::State { name: name.to_owned() }
}

/// The refusal of an operation on notes.
pub(crate) fn memory_refusal(error: &MemoryError) -> Refusal {
    let refusal = Refusal::new(Code::Memory, error.to_string());
    match error {
        MemoryError::Secret(_) => refusal.hint("leave the credential out, and name where it is kept instead"),
        MemoryError::TooLong { .. } => refusal.hint("shorten it, or keep it as several notes"),
        MemoryError::File { .. } | MemoryError::Index(_) => {
            refusal.hint("ask the user to look at the directory that `toolgate memory path` prints")
        }
        _ => refusal,
    }
}

/// Runs an operation on notes on a thread for blocking work.
pub(crate) async fn with_memory<T: Send + 'static>(
    cleared: &Cleared,
    scope: MemoryScope,
    work: impl FnOnce(&MemoryStore) -> Result<T, MemoryError> + Send + 'static,
) -> Result<Result<T, MemoryError>, Refusal> {
    let stores = stores_of(cleared.context());
    let project = project_of(&cleared.context().session);
    let done = run_blocking(move || match stores.open_memory(scope, &project) {
        Ok(Some(store)) => Some(work(&store)),
        Ok(None) => None,
        Err(error) => Some(Err(error)),
    });
    let no_dir =
        || Refusal::new(Code::Memory, "there is no directory for memory").hint("set TOOLGATE_STATE_DIR");
    done.await.map_err(|problem| Refusal::new(Code::Memory, problem.to_string()))?.ok_or_else(no_dir)
}

/// Where the approved plans of a session are kept; `None` without a state directory.
pub(crate) fn plan_dir(session: &Session) -> Option<AbsPath> {
    session.state::<StateStores>().lock().config.dir.as_ref().map(|dir| dir.join("plans"))
}

/// The directory by which a session knows its project.
fn project_of(session: &Session) -> AbsPath {
    let workspace = session.workspace();
    workspace.roots.first().unwrap_or(&workspace.cwd).clone()
}

/// The list of tools that change one task at a time: all sessions of a project share it.
pub fn shared_task_list(session: &Session) -> String {
    let stores = session.state::<StateStores>();
    let named = stores.lock().config.task_list.clone();
    named.unwrap_or_else(|| project_of(session).to_string())
}

/// The list of tools that replace all tasks at once. Each session has its own, because two that replace one list would
/// remove each other's tasks.
pub fn own_task_list(session: &Session) -> String {
    let stores = session.state::<StateStores>();
    let named = stores.lock().config.task_list.clone();
    named.unwrap_or_else(|| format!("session {}", session.id()))
}

/// Runs an operation of the task store on a thread for blocking work.
pub(crate) async fn with_tasks<T: Send + 'static>(
    cleared: &Cleared,
    work: impl FnOnce(&TaskStore) -> Result<T, TaskError> + Send + 'static,
) -> Result<Result<T, TaskError>, Refusal> {
    let stores = stores_of(cleared.context());
    run_blocking(move || stores.open_tasks().and_then(|store| work(&store)))
        .await
        .map_err(|problem| Refusal::new(Code::Todo, problem.to_string()))
}

/// The schedules of a session's project, whichever session made them.
pub fn schedule_owner(session: &Session) -> ScheduleOwner {
    ScheduleOwner::new(project_of(session).to_string())
}

/// Runs an operation of the store of schedules on a thread for blocking work, with the time in milliseconds.
pub(crate) async fn with_schedules<T: Send + 'static>(
    cleared: &Cleared,
    work: impl FnOnce(&ScheduleStore, i64) -> Result<T, ScheduleError> + Send + 'static,
) -> Result<Result<T, ScheduleError>, Refusal> {
    let stores = stores_of(cleared.context());
    run_blocking(move || stores.open_schedules().and_then(|store| work(&store, now())))
        .await
        .map_err(|problem| Refusal::new(Code::Schedule, problem.to_string()))
}

/// Takes the schedules that are due in a session: its own, and the lasting ones of the project. The caller gives their
/// prompts to its agent ([`scheduled_prompt`](crate::scheduled_prompt)); no other process gets them.
pub fn claim_due_schedules(session: &Session) -> Result<Vec<DueSchedule>, ScheduleError> {
    claim_schedules(session, ScheduleStore::claim_due)
}

/// The same, of those only that the session has made: for a program that drives the session and expects no other work.
pub fn claim_own_schedules(session: &Session) -> Result<Vec<DueSchedule>, ScheduleError> {
    claim_schedules(session, ScheduleStore::claim_own)
}

/// Takes schedules that are due.
fn claim_schedules(
    session: &Session,
    claim: impl Fn(&ScheduleStore, &ScheduleOwner, i64) -> Result<Vec<DueSchedule>, ScheduleError>,
) -> Result<Vec<DueSchedule>, ScheduleError> {
    let stores = session.state::<StateStores>();
    let file = stores.lock().config.dir.as_ref().map(|dir| dir.join("schedules.db"));
    // Most sessions have no schedules, and looking for them must not make a store.
    if file.is_some_and(|file| read_file_stamp(&file) == FileStamp::Absent) {
        return Ok(Vec::new());
    }
    let owner = schedule_owner(session).with_session(session.id().to_string());
    claim(&*stores.open_schedules()?, &owner, now())
}

/// The time in milliseconds since 1970.
fn now() -> i64 {
    i64::try_from(toolgate_files::now_millis()).unwrap_or(i64::MAX)
}

/// Returns the stores of the calling session, created empty at the first use.
fn stores_of(context: &CallContext) -> Arc<StateStores> {
    context.session.state::<StateStores>()
}
