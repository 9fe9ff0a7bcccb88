//! Search: contents, names and listings of a tree that a call was granted.
//!
//! The principal type is [`SearchTree`], which only [`GrantedFiles::search_tree`](crate::GrantedFiles::search_tree) makes: a place to start, as it was
//! judged.
//! A walk goes down from there by handles ([`directory`]), under the ignore files that count ([`rules`]), in one
//! order however many threads take part ([`walk`]), and keeps no more than the answer needs ([`collect`]).
//! What is looked for is one of three things: text ([`content`]), files ([`names`]) or the entries themselves
//! ([`list`]).
//!
//! The engine is ripgrep's, taken as libraries; its own walker is not used.
//! That one opens everything by path, so a directory that is swapped for a link leads it out of the tree; it probes
//! every directory for ignore files that the listing shows not to be there; and its order is that of its threads.
//!
//! Everything here blocks: callers use a thread where that matters, and [`SearchStopFlag`] to end it early.

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

use crate::files::{FileProblem, HiddenFileFilter};
use ignore_rules::IgnoreRules;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use toolgate_proto::AbsPath;

/// A file, or a directory with all below it, that a call may search.
#[derive(Debug, Clone)]
pub struct SearchTree {
    pub(crate) start: AbsPath,
    pub(crate) is_directory: bool,
    /// The root of the session that holds it, where there is one: ignore files count from there on.
    pub(crate) root: Option<AbsPath>,
    pub(crate) hidden: Option<HiddenFileFilter>,
}

impl SearchTree {
    /// Whether it is a directory, and not a file.
    pub fn is_directory(&self) -> bool {
        self.is_directory
    }

    fn ancestor_ignore_rules(&self) -> Option<Arc<IgnoreRules>> {
        let top = ignore_rules::find_ignore_root(self.root.as_ref().unwrap_or(&self.start));
        IgnoreRules::of_ancestors(&self.start, &top)
    }
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
