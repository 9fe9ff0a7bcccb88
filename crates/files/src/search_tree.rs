//! What a call may search: a granted file or directory, handed from [`GrantedFiles`](crate::GrantedFiles) to the search.

use crate::HiddenFileFilter;
use toolgate_proto::AbsPath;

/// A file, or a directory with all below it, that a call may search.
///
/// Only [`GrantedFiles::search_tree`](crate::GrantedFiles::search_tree) makes one, from a path that was judged: code
/// that holds a `SearchTree` cannot point it elsewhere.
#[derive(Debug, Clone)]
pub struct SearchTree {
    start: AbsPath,
    is_directory: bool,
    root: Option<AbsPath>,
    hidden: Option<HiddenFileFilter>,
}

impl SearchTree {
    pub(crate) fn new(
        start: AbsPath,
        is_directory: bool,
        root: Option<AbsPath>,
        hidden: Option<HiddenFileFilter>,
    ) -> Self {
        Self { start, is_directory, root, hidden }
    }

    /// Where the search starts, symlinks resolved.
    pub fn start(&self) -> &AbsPath {
        &self.start
    }

    /// Whether it is a directory, and not a file.
    pub fn is_directory(&self) -> bool {
        self.is_directory
    }

    /// The root of the session that holds it, where there is one: ignore files count from there on.
    pub fn root(&self) -> Option<&AbsPath> {
        self.root.as_ref()
    }

    /// The files below it that are hidden, if any are.
    pub fn hidden(&self) -> Option<&HiddenFileFilter> {
        self.hidden.as_ref()
    }

    /// The same tree for a search of contents, where files that may hold secrets are hidden as well.
    #[must_use]
    pub fn for_content(&self) -> Self {
        Self { hidden: self.hidden.as_ref().map(HiddenFileFilter::for_content), ..self.clone() }
    }
}
