//! Search: contents, names and listings of a tree that a call was granted, on ripgrep's libraries.
//!
//! The principal type is [`SearchTree`], which only `GrantedFiles::search_tree` makes: a place to start, as it was
//! judged.
//! [`search_content`] finds lines of text, [`find_names`] finds files by glob, [`list_tree`] lists entries.
//! All three walk down from the start by directory handles, under the ignore files that apply, in one order however
//! many threads take part, and keep no more than the answer needs.
//!
//! The matching engine is ripgrep's; its walker is not used.
//! That one opens everything by path, so a directory that is swapped for a symlink leads it out of the tree; it probes
//! every directory for ignore files that the listing shows not to be there; and its order is that of its threads.
//!
//! ```
//! # use toolgate_files::{GrantedAccess, GrantedFiles, PathGrant};
//! # use toolgate_proto::{AbsPath, PathScope};
//! # let dir = tempfile::tempdir().unwrap();
//! # let root = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
//! # std::fs::write(root.as_path().join("a.rs"), "fn main() {}").unwrap();
//! use toolgate_search::{ListOptions, SearchStopFlag, list_tree};
//!
//! let grant = PathGrant { asked: root.clone(), real: root.clone(), scope: PathScope::Tree, access: GrantedAccess::Read };
//! let files = GrantedFiles::new(vec![grant], vec![root.clone()]);
//! let tree = files.search_tree(&root, PathScope::Tree).unwrap();
//! let page = list_tree(&tree, &ListOptions::default(), &SearchStopFlag::default()).unwrap();
//! assert_eq!(page.entries.len(), 1);
//! ```
//!
//! This crate does not know rules: what is hidden comes with the tree.
//! Everything here blocks; callers use a thread where that matters, and [`SearchStopFlag`] to end it early.

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "this crate may touch files")]

mod collect;
mod content;
mod directory;
mod ignore_rules;
mod lines;
mod list;
mod names;
mod pattern;
mod select;
mod skipped;
mod walk;

#[cfg(test)]
mod tests;

pub use collect::ResultLimit;
pub use content::{ContentSearchResult, search_content};
pub use lines::{ContentOutputKind, FileHits, LineOutputOptions, ResultLine, ResultLineKind};
pub use list::{ListOptions, ListedEntry, ListingPage, list_tree};
pub use names::{
    BareGlobScope, NameOrder, NameSearchResult, PathGlob, find_names, split_literal_directories,
};
pub use pattern::{CaseSensitivity, LineMode, PatternProblem, SearchPattern};
pub use select::{DotfileHandling, FileSelection, FileSelector, SelectionProblem};
pub use skipped::SkippedSummary;

use ignore_rules::IgnoreRules;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use toolgate_files::FileProblem;

pub use toolgate_files::SearchTree;

fn ancestor_ignore_rules(tree: &SearchTree) -> Option<Arc<IgnoreRules>> {
    let top = ignore_rules::find_ignore_root(tree.root().unwrap_or(tree.start()));
    IgnoreRules::of_ancestors(tree.start(), &top)
}

/// Ends a search early, from another thread. Clones end the same search.
#[derive(Debug, Clone, Default)]
pub struct SearchStopFlag(Arc<AtomicBool>);

impl SearchStopFlag {
    /// Ends the search.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it is to end.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchProblem {
    /// It was stopped.
    Stopped,
    /// Where it was to start cannot be used.
    File(FileProblem),
}

impl From<FileProblem> for SearchProblem {
    fn from(problem: FileProblem) -> Self {
        Self::File(problem)
    }
}
