//! Where a call happens: the session, and what it remembers.

use std::any::{Any, TypeId};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use toolgate_proto::{AbsPath, Principal, SessionId, Workspace};

/// One run of an agent: who it is, where it works, what it has seen.
#[derive(Debug, Clone)]
pub struct Session {
    inner: Arc<SessionInner>,
}

#[derive(Debug)]
struct SessionInner {
    id: SessionId,
    principal: Principal,
    /// The working directory may move inside the roots; the roots are fixed for good.
    workspace: RwLock<Arc<Workspace>>,
    context: SessionContext,
    state: Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

impl Session {
    /// A new session.
    pub fn new(id: SessionId, principal: Principal, workspace: Workspace) -> Self {
        Self {
            inner: Arc::new(SessionInner {
                id,
                principal,
                workspace: RwLock::new(Arc::new(workspace)),
                context: SessionContext::default(),
                state: Mutex::new(HashMap::new()),
            }),
        }
    }

    /// Its id.
    pub fn id(&self) -> &SessionId {
        &self.inner.id
    }

    /// On whose behalf it runs.
    pub fn principal(&self) -> &Principal {
        &self.inner.principal
    }

    /// Where it works now.
    pub fn workspace(&self) -> Arc<Workspace> {
        Arc::clone(&self.inner.workspace.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Moves the working directory. A directory outside the roots is not taken, and the answer is false.
    pub fn set_cwd(&self, cwd: AbsPath) -> bool {
        let mut workspace = self.inner.workspace.write().unwrap_or_else(PoisonError::into_inner);
        if !workspace.roots.iter().any(|root| cwd.is_under(root)) {
            return false;
        }
        let mut next = Workspace::clone(&workspace);
        next.cwd = cwd;
        *workspace = Arc::new(next);
        true
    }

    /// What successful calls have changed.
    pub fn context(&self) -> &SessionContext {
        &self.inner.context
    }

    /// What tools of one kind remember in this session; made empty at first use.
    /// Keyed by type, so that the gate need not know any tool.
    pub fn state<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut state = self.inner.state.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = state.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default()));
        // The slot is keyed by this very type; a fresh value is the answer that loses nothing but memory.
        Arc::clone(slot).downcast::<T>().unwrap_or_default()
    }
}

/// What successful calls have changed about a session, in the order of the calls.
#[derive(Debug, Default)]
pub struct SessionContext {
    inner: Mutex<SessionContextInner>,
}

#[derive(Debug, Default)]
struct SessionContextInner {
    read: HashMap<AbsPath, FileSeen>,
    commands: VecDeque<String>,
}

/// A file that a call has shown to the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSeen {
    /// Hash of the content that was seen.
    pub hash: String,
    /// Whether all of it was seen.
    pub whole: bool,
}

impl SessionContext {
    /// What was last seen of a file, links resolved.
    pub fn seen_file(&self, path: &AbsPath) -> Option<FileSeen> {
        self.lock().read.get(path).cloned()
    }

    /// Takes the next command that a call wants the host to run.
    pub fn next_command(&self) -> Option<String> {
        self.lock().commands.pop_front()
    }

    pub(crate) fn record_read(&self, path: AbsPath, hash: String, whole: bool) {
        self.lock().read.insert(path, FileSeen { hash, whole });
    }

    pub(crate) fn queue_commands(&self, commands: Vec<String>) {
        if !commands.is_empty() {
            self.lock().commands.extend(commands);
        }
    }

    fn lock(&self) -> MutexGuard<'_, SessionContextInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
