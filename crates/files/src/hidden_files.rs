//! Hidden files: entries below a granted directory that policy withholds from listings and searches.

use std::fmt;
use std::sync::Arc;
use toolgate_proto::AbsPath;

/// Decides which files below a granted directory are hidden: those for which a rule denies reading, and, from searches of
/// content, those that may hold secrets.
///
/// A call that names such a file itself is refused before it runs; this filter is for calls that name only a directory
/// above it.
#[derive(Clone)]
pub struct HiddenFileFilter {
    /// What rules hide; `None` if no rule denies reading.
    hides: Option<HiddenPathPredicate>,
    /// Which files may hold secrets.
    secrets: Option<Arc<dyn SecretFileMatcher>>,
    /// Whether `secrets` are hidden as well: true for a search of content, false for listings and file names.
    hides_secrets: bool,
}

type HiddenPathPredicate = Arc<dyn Fn(&AbsPath) -> bool + Send + Sync>;

/// Decides which files may hold secrets: they are listed, but their content is not searched. Called from several
/// threads.
pub trait SecretFileMatcher: Send + Sync {
    /// Whether this file may hold secrets.
    fn is_secret(&self, path: &AbsPath) -> bool;

    /// Whether [`SecretFileMatcher::is_secret_name`] is enough to rule out files in this directory. It is called once
    /// per directory, and saves a search from building the path of every file.
    fn can_decide_by_name(&self, directory: &AbsPath) -> bool;

    /// Whether a file of this name may hold secrets. False is final; true means that the path has to be checked.
    fn is_secret_name(&self, name: &str) -> bool;
}

impl HiddenFileFilter {
    /// Hides the paths for which `hides` is true. It is called from several threads, once for each file of a walk.
    pub fn new(hides: impl Fn(&AbsPath) -> bool + Send + Sync + 'static) -> Self {
        Self { hides: Some(Arc::new(hides)), ..Self::nothing() }
    }

    /// Hides nothing.
    pub fn nothing() -> Self {
        Self { hides: None, secrets: None, hides_secrets: false }
    }

    /// Also hides these files from searches of content.
    pub fn with_secret_files(mut self, secrets: impl SecretFileMatcher + 'static) -> Self {
        self.secrets = Some(Arc::new(secrets));
        self
    }

    /// The filter for a search of content, which also hides files that may hold secrets.
    pub(crate) fn for_content(&self) -> Self {
        Self { hides_secrets: true, ..self.clone() }
    }

    /// The matcher of secret names, where secrets are hidden.
    fn secrets(&self) -> Option<&dyn SecretFileMatcher> {
        self.secrets.as_deref().filter(|_| self.hides_secrets)
    }

    /// Whether this path is hidden.
    pub fn hides(&self, path: &AbsPath) -> bool {
        self.hides.as_ref().is_some_and(|hides| hides(path))
            || self.secrets().is_some_and(|secrets| secrets.is_secret(path))
    }

    /// Whether any path may be hidden. If not, a walk need not build paths to check.
    pub fn hides_any(&self) -> bool {
        self.hides.is_some() || self.secrets().is_some()
    }

    /// Whether [`HiddenFileFilter::may_hide_name`] is enough to rule out files in this directory.
    pub fn can_decide_by_name(&self, directory: &AbsPath) -> bool {
        self.hides.is_none() && self.secrets().is_none_or(|secrets| secrets.can_decide_by_name(directory))
    }

    /// Whether a file of this name may be hidden. False is final; true means that the path has to be checked.
    pub fn may_hide_name(&self, name: &[u8]) -> bool {
        match str::from_utf8(name) {
            Ok(name) => self.secrets().is_some_and(|secrets| secrets.is_secret_name(name)),
            Err(_) => true,
        }
    }
}

impl fmt::Debug for HiddenFileFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HiddenFileFilter").field("hides_secrets", &self.hides_secrets).finish_non_exhaustive()
    }
}
