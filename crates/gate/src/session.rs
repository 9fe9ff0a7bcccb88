//! The session: identity, workspace, and what calls have changed about it.

use crate::hook::SessionHooks;
use std::any::{Any, TypeId};
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use toolgate_policy::Policy;
use toolgate_proto::{AbsPath, CallId, Mode, Principal, SessionId, Workspace};

/// One run of an agent: its principal, its workspace, the files it has seen.
#[derive(Debug, Clone)]
pub struct Session {
    inner: Arc<SessionInner>,
}

#[derive(Debug)]
struct SessionInner {
    id: SessionId,
    principal: Principal,
    /// The working directory may change inside the roots; the roots change only by a user's word.
    workspace: RwLock<Arc<Workspace>>,
    /// The workspace to return to while the session works in a root that it entered.
    before_entry: Mutex<Option<Arc<Workspace>>>,
    context: SessionContext,
    planning: Arc<RwLock<PlanState>>,
    state: Arc<SharedSessionState>,
    limits: SessionLimits,
}

type SharedSessionState = Mutex<HashMap<TypeId, Arc<dyn Any + Send + Sync>>>;

/// What a part of a session may do less than the whole: a subagent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionLimits {
    /// Only these tools, out of those that the gate shows; absent means all of them.
    pub only: Option<BTreeSet<String>>,
    /// A mode that counts where it is stricter than that of the gate.
    pub mode: Option<Mode>,
    /// How many agents are around this one.
    pub depth: usize,
    /// The call that started this part.
    pub parent_call: Option<CallId>,
    /// Hooks for the calls of this part, beside those of the gate and of the part around it.
    pub hooks: SessionHooks,
}

impl SessionLimits {
    /// Limits the tools to these, out of those that the gate shows.
    pub fn with_tools(mut self, only: BTreeSet<String>) -> Self {
        self.only = Some(only);
        self
    }

    /// Sets a mode that counts where it is stricter than that of the gate.
    pub fn with_mode(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Adds hooks for the calls of this part.
    pub fn with_hooks(mut self, hooks: SessionHooks) -> Self {
        self.hooks = hooks;
        self
    }
}

impl Session {
    /// A new session.
    pub fn new(id: SessionId, principal: Principal, workspace: Workspace) -> Self {
        Self {
            inner: Arc::new(SessionInner {
                id,
                principal,
                workspace: RwLock::new(Arc::new(workspace)),
                before_entry: Mutex::default(),
                context: SessionContext::default(),
                planning: Arc::default(),
                state: Arc::default(),
                limits: SessionLimits::default(),
            }),
        }
    }

    /// A part of this session, with limits: the same id and the same state of tools, a principal and a working directory of
    /// its own.
    pub fn child(&self, principal: Principal, mut limits: SessionLimits) -> Self {
        // A part of a part is screened by the hooks of both.
        limits.hooks = self.inner.limits.hooks.with_inner(&limits.hooks);
        Self {
            inner: Arc::new(SessionInner {
                id: self.inner.id.clone(),
                principal,
                workspace: RwLock::new(self.workspace()),
                // A part of a session does not leave a root that another part entered.
                before_entry: Mutex::default(),
                context: SessionContext::default(),
                // Shared: planning is a property of the whole session, and a part of it cannot leave a plan alone.
                planning: Arc::clone(&self.inner.planning),
                state: Arc::clone(&self.inner.state),
                limits,
            }),
        }
    }

    /// What this part of a session may do less than the whole.
    pub fn limits(&self) -> &SessionLimits {
        &self.inner.limits
    }

    /// The policy with the mode of this part of the session, if that is stricter.
    fn limit_policy(&self, policy: Arc<Policy>) -> Arc<Policy> {
        match self.inner.limits.mode.map(|mode| policy.mode().stricter(mode)) {
            Some(mode) if mode != policy.mode() => Arc::new(policy.with_mode(mode)),
            Some(_) | None => policy,
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

    /// Adds a directory to the workspace, because the user said so. It must be the real path of a directory.
    pub fn add_root(&self, root: &AbsPath) {
        self.change_roots(|roots| {
            if !roots.contains(root) {
                roots.push(root.clone());
            }
        });
    }

    /// Takes a directory out of the workspace. False for the first root, which is the project, and for one that is not in
    /// it.
    pub fn remove_root(&self, root: &AbsPath) -> bool {
        let is_further = self.workspace().roots.iter().skip(1).any(|known| known == root);
        if is_further {
            self.change_roots(|roots| {
                let mut index = 0;
                roots.retain(|known| {
                    index += 1;
                    index == 1 || known != root
                });
            });
        }
        is_further
    }

    /// Changes the roots, also of the workspace to return to.
    fn change_roots(&self, change: impl Fn(&mut Vec<AbsPath>)) {
        let mut before = self.inner.before_entry.lock().unwrap_or_else(PoisonError::into_inner);
        let mut workspace = self.inner.workspace.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = Workspace::clone(&workspace);
        // The root that was entered stays the last.
        let entered = before.as_ref().and_then(|_| next.roots.pop());
        change(&mut next.roots);
        next.roots.extend(entered);
        *workspace = Arc::new(next);
        if let Some(before) = before.as_mut() {
            change(&mut Arc::make_mut(before).roots);
        }
    }

    /// Works in a directory of the workspace, such as a git worktree, as a root of its own. Returns false for a directory
    /// outside the roots, so that a session never reaches more than before, and for a session that has entered another.
    pub fn enter_root(&self, root: AbsPath) -> bool {
        let mut before = self.inner.before_entry.lock().unwrap_or_else(PoisonError::into_inner);
        let mut workspace = self.inner.workspace.write().unwrap_or_else(PoisonError::into_inner);
        if before.is_some() || !workspace.roots.iter().any(|known| root.is_under(known)) {
            return false;
        }
        let mut next = Workspace::clone(&workspace);
        next.cwd = root.clone();
        // Last: the first root is the one by which the session knows its project.
        next.roots.push(root);
        *before = Some(Arc::clone(&workspace));
        *workspace = Arc::new(next);
        true
    }

    /// The root that the session has entered.
    pub fn entered_root(&self) -> Option<AbsPath> {
        let before = self.inner.before_entry.lock().unwrap_or_else(PoisonError::into_inner);
        before.as_ref().and_then(|_| self.workspace().roots.last().cloned())
    }

    /// Returns to the workspace as it was before [`Session::enter_root`]. False if none was entered.
    pub fn leave_root(&self) -> bool {
        let mut before = self.inner.before_entry.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(earlier) = before.take() else { return false };
        *self.inner.workspace.write().unwrap_or_else(PoisonError::into_inner) = earlier;
        true
    }

    /// Begins plan mode: from the next call on, nothing that changes something is allowed without an approval, whatever
    /// rules and modes say.
    pub fn enter_plan_mode(&self) {
        self.set_plan_state(PlanState::Planning);
    }

    /// Ends plan mode, also the one of the settings: calls are judged by the rules again, in mode default if the mode of
    /// the settings is plan.
    pub fn leave_plan_mode(&self) {
        self.set_plan_state(PlanState::Left);
    }

    fn set_plan_state(&self, state: PlanState) {
        *self.inner.planning.write().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// The rules as they apply to this session now. The limits come last, so that leaving a plan does not lift them.
    pub fn effective_policy(&self, policy: Arc<Policy>) -> Arc<Policy> {
        let state = *self.inner.planning.read().unwrap_or_else(PoisonError::into_inner);
        self.limit_policy(match (state, policy.mode()) {
            // Mode deny is stricter than any plan.
            (PlanState::Planning, Mode::Default | Mode::AcceptEdits | Mode::DontAsk | Mode::Bypass) => {
                Arc::new(policy.with_mode(Mode::Plan))
            }
            (PlanState::Left, Mode::Plan) => Arc::new(policy.with_mode(Mode::Default)),
            (PlanState::Planning, Mode::Plan | Mode::Deny) | (PlanState::Left | PlanState::Unset, _) => {
                policy
            }
        })
    }

    /// Whether the session is in plan mode under these rules.
    pub fn is_planning(&self, policy: &Arc<Policy>) -> bool {
        self.effective_policy(Arc::clone(policy)).mode() == Mode::Plan
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

/// Whether calls have begun or ended plan mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum PlanState {
    /// Neither: the mode is that of the settings.
    #[default]
    Unset,
    Planning,
    Left,
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
#[non_exhaustive]
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
