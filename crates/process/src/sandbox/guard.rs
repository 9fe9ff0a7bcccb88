//! What a command may not touch, whatever directories it was granted: asked about real paths while it runs.

use std::fmt;
use std::sync::Arc;
use toolgate_proto::AbsPath;

/// Rules for files that hold while a command runs. Asked by the supervisor about every path that is opened, created,
/// renamed or removed, with symlinks resolved; so it must be quick, and must not wait.
pub trait PathGuard: Send + Sync {
    /// Whether the content at a path is kept from the command.
    fn hides(&self, real: &AbsPath) -> bool;

    /// Whether what is at a path, or would be, may not be created, changed, renamed or removed.
    fn protects(&self, real: &AbsPath) -> bool;

    /// Whether what is in a directory is hidden by its own name or not at all, so that
    /// [`PathGuard::may_hide_name`] can tell most names apart without a look at the path.
    fn hides_only_by_name(&self, _directory: &AbsPath) -> bool {
        false
    }

    /// Whether a file of this name may be hidden, in a directory where names tell.
    fn may_hide_name(&self, _name: &str) -> bool {
        true
    }
}

/// A guard, or none.
#[derive(Clone, Default)]
pub struct FileGuard(Option<Arc<dyn PathGuard>>);

impl FileGuard {
    /// Puts a guard in place.
    pub fn new(guard: Arc<dyn PathGuard>) -> Self {
        Self(Some(guard))
    }

    pub(super) fn is_some(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn hides(&self, real: &AbsPath) -> bool {
        self.0.as_ref().is_some_and(|guard| guard.hides(real))
    }

    pub(super) fn protects(&self, real: &AbsPath) -> bool {
        self.0.as_ref().is_some_and(|guard| guard.protects(real))
    }

    pub(super) fn hides_only_by_name(&self, directory: &AbsPath) -> bool {
        self.0.as_ref().is_none_or(|guard| guard.hides_only_by_name(directory))
    }

    pub(super) fn may_hide_name(&self, name: &str) -> bool {
        self.0.as_ref().is_some_and(|guard| guard.may_hide_name(name))
    }
}

impl fmt::Debug for FileGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FileGuard").field(&self.0.is_some()).finish()
    }
}
