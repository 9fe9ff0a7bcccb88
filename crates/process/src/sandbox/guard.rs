//! Rules about file names, applied to real paths while a command runs.

use std::fmt;
use std::sync::Arc;
use toolgate_proto::AbsPath;

/// Rules for files that apply while a command runs, whatever directories it was granted. The seccomp notification handler
/// calls them for every path that is opened, created, renamed or removed, with symlinks resolved, while the command
/// waits; an implementation must not block.
pub trait PathGuard: Send + Sync {
    /// Whether the content at a path is hidden from the command.
    fn hides(&self, real: &AbsPath) -> bool;

    /// Whether the entry at a path may not be created, changed, renamed or removed.
    fn protects(&self, real: &AbsPath) -> bool;

    /// Whether the entries of a directory are hidden by their own name or not at all. Then
    /// [`PathGuard::may_hide_name`] rules out most names without the cost of [`PathGuard::hides`].
    fn hides_only_by_name(&self, _directory: &AbsPath) -> bool {
        false
    }

    /// Whether a file of this name may be hidden, in a directory for which [`PathGuard::hides_only_by_name`] is true.
    fn may_hide_name(&self, _name: &str) -> bool {
        true
    }
}

/// Is notified of the real path of an entry before a command changes it, while the command waits.
pub type ChangeObserver = Arc<dyn Fn(&AbsPath) + Send + Sync>;

/// An optional [`PathGuard`]; without one nothing is hidden or protected by name.
#[derive(Clone, Default)]
pub struct FileGuard {
    /// The guard that decides.
    guard: Option<Arc<dyn PathGuard>>,
    /// Is notified of each change that the guard does not forbid.
    observer: Option<ChangeObserver>,
}

impl FileGuard {
    /// Wraps a guard.
    pub fn new(guard: Arc<dyn PathGuard>) -> Self {
        Self { guard: Some(guard), observer: None }
    }

    /// The same guard, which notifies `observer` of every entry that may be created, changed, renamed or removed, before
    /// that happens.
    pub fn with_change_observer(self, observer: ChangeObserver) -> Self {
        Self { observer: Some(observer), ..self }
    }

    /// Whether there is a guard or an observer.
    pub(super) fn is_some(&self) -> bool {
        self.guard.is_some() || self.observer.is_some()
    }

    /// See [`PathGuard::hides`]; false without a guard.
    pub(super) fn hides(&self, real: &AbsPath) -> bool {
        self.guard.as_ref().is_some_and(|guard| guard.hides(real))
    }

    /// See [`PathGuard::protects`]; false without a guard. For questions about an entry that no command changes now.
    pub(super) fn protects(&self, real: &AbsPath) -> bool {
        self.guard.as_ref().is_some_and(|guard| guard.protects(real))
    }

    /// Whether a command may not change an entry that it is about to change. If it may, the observer is notified.
    pub(super) fn forbids_change(&self, real: &AbsPath) -> bool {
        let is_forbidden = self.protects(real);
        if let Some(observer) = self.observer.as_ref().filter(|_| !is_forbidden) {
            observer(real);
        }
        is_forbidden
    }

    /// See [`PathGuard::hides_only_by_name`]; true without a guard, which hides nothing.
    pub(super) fn hides_only_by_name(&self, directory: &AbsPath) -> bool {
        self.guard.as_ref().is_none_or(|guard| guard.hides_only_by_name(directory))
    }

    /// See [`PathGuard::may_hide_name`]; false without a guard.
    pub(super) fn may_hide_name(&self, name: &str) -> bool {
        self.guard.as_ref().is_some_and(|guard| guard.may_hide_name(name))
    }
}

impl fmt::Debug for FileGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FileGuard").field(&self.is_some()).finish()
    }
}
