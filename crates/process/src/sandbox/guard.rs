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

/// A guard that notifies an observer of each change that it does not forbid.
struct ObservingGuard {
    /// The guard that decides.
    inner: FileGuard,
    /// The observer.
    observer: ChangeObserver,
}

impl PathGuard for ObservingGuard {
    fn hides(&self, real: &AbsPath) -> bool {
        self.inner.hides(real)
    }

    fn protects(&self, real: &AbsPath) -> bool {
        let is_protected = self.inner.protects(real);
        if !is_protected {
            (self.observer)(real);
        }
        is_protected
    }

    fn hides_only_by_name(&self, directory: &AbsPath) -> bool {
        self.inner.hides_only_by_name(directory)
    }

    fn may_hide_name(&self, name: &str) -> bool {
        self.inner.may_hide_name(name)
    }
}

/// An optional [`PathGuard`]; without one nothing is hidden or protected by name.
#[derive(Clone, Default)]
pub struct FileGuard(Option<Arc<dyn PathGuard>>);

impl FileGuard {
    /// Wraps a guard.
    pub fn new(guard: Arc<dyn PathGuard>) -> Self {
        Self(Some(guard))
    }

    /// The same guard, which notifies `observer` of every entry that may be created, changed, renamed or removed, before
    /// that happens.
    pub fn with_change_observer(self, observer: ChangeObserver) -> Self {
        Self(Some(Arc::new(ObservingGuard { inner: self, observer })))
    }

    /// Whether there is a guard.
    pub(super) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    /// See [`PathGuard::hides`]; false without a guard.
    pub(super) fn hides(&self, real: &AbsPath) -> bool {
        self.0.as_ref().is_some_and(|guard| guard.hides(real))
    }

    /// See [`PathGuard::protects`]; false without a guard.
    pub(super) fn protects(&self, real: &AbsPath) -> bool {
        self.0.as_ref().is_some_and(|guard| guard.protects(real))
    }

    /// See [`PathGuard::hides_only_by_name`]; true without a guard, which hides nothing.
    pub(super) fn hides_only_by_name(&self, directory: &AbsPath) -> bool {
        self.0.as_ref().is_none_or(|guard| guard.hides_only_by_name(directory))
    }

    /// See [`PathGuard::may_hide_name`]; false without a guard.
    pub(super) fn may_hide_name(&self, name: &str) -> bool {
        self.0.as_ref().is_some_and(|guard| guard.may_hide_name(name))
    }
}

impl fmt::Debug for FileGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FileGuard").field(&self.0.is_some()).finish()
    }
}
