//! The session: identity, workspace, and what calls have changed about it.

use std::any::{Any, TypeId};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use toolgate_proto::{AbsPath, Principal, SessionId, Workspace};

/// One run of an agent: its principal, its workspace, the files it has seen.
#[derive(Debug, Clone)]
pub struct Session {
    inner: Arc<SessionInner>,
}

#[derive(Debug)]
struct SessionInner {
    id: SessionId,
    principal: Principal,
    /// The working directory may change inside the roots; the roots are fixed.
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

    /// Its current workspace.
    pub fn workspace(&self) -> Arc<Workspace> {
        Arc::clone(&self.inner.workspace.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the working directory. Returns false for a directory outside the roots.
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

    /// State of one type that tools or edges keep in this session; empty at first use.
    /// Keyed by type, so that the gate does not know any tool.
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
    /// What was last seen of a file, by its real path.
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
