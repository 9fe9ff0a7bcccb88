//! Search in a tree that a call was granted, with ripgrep's engine: lines of text, file names, directory listings.
//!
//! The principal type is [`SearchTree`], which only
//! [`GrantedFiles::search_tree`](toolgate_files::GrantedFiles::search_tree) makes, from a path that policy has judged.
//! Three functions search it:
//!
//! * [`search_content`] finds the lines that match a [`SearchPattern`];
//! * [`find_names`] finds the files whose path matches a [`PathGlob`];
//! * [`list_tree`] lists directories, level by level.
//!
//! A [`FileSelector`] narrows the first two by globs, ignore files and the file types of ripgrep.
//! Every search walks the tree by file descriptors of directories, so that a symlink that is swapped in during the walk is
//! not followed, and returns its results in one order however its threads are scheduled.
//! A search in the order of paths that has a limit stops as soon as it has the first results.
//!
//! Matching, and the meaning of ignore files, file types and counts, are those of ripgrep.
//! The directory walker of ripgrep is not used:
//! it opens everything by path, so a directory that is swapped for a symlink leads it out of the tree; it probes
//! every directory for ignore files that the listing shows to be absent; and the order of its results depends on its
//! threads.
//!
//! ```
//! # use toolgate_files::{GrantedAccess, GrantedFiles, PathGrant};
//! # use toolgate_proto::{AbsPath, PathScope};
//! # let dir = tempfile::tempdir().unwrap();
//! # let root = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
//! # std::fs::write(root.join("a.rs"), "fn main() {}\n").unwrap();
//! # std::fs::write(root.join("b.txt"), "fn in a text file\n").unwrap();
//! # let grant = PathGrant::new(root.clone(), root.clone(), PathScope::Tree, GrantedAccess::Read);
//! # let files = GrantedFiles::new(vec![grant], vec![root.clone()]);
//! use toolgate_search::{
//!     CaseSensitivity, ContentOutputKind, FileSelection, FileSelector, LineMode, ResultLimit, SearchPattern,
//!     SearchStopFlag, search_content,
//! };
//!
//! let tree = files.search_tree(&root, PathScope::Tree).unwrap();
//! let rust = FileSelection { types: vec!["rust".to_owned()], ..FileSelection::default() };
//! let result = search_content(
//!     &tree,
//!     &FileSelector::new(&rust).unwrap(),
//!     &SearchPattern::new("fn", CaseSensitivity::Sensitive, LineMode::Single).unwrap(),
//!     &ContentOutputKind::Files,
//!     ResultLimit { units: 100, bytes: 10_000 },
//!     &SearchStopFlag::default(),
//! )
//! .unwrap();
//! assert_eq!(result.files[0].0, b"a.rs");
//! assert!(result.complete && result.files.len() == 1);
//! ```
//!
//! This crate knows no rules: which files are hidden comes with the tree, and is only counted.
//! It knows no tools either: results are bytes and numbers, and how a model reads them is for the caller to decide.
//! Everything here blocks; a caller runs it on a thread for blocking work, and ends it early with a
//! [`SearchStopFlag`].

#![forbid(unsafe_code)]
#![cfg_attr(test, expect(clippy::disallowed_methods, reason = "tests create files"))]

// The three searches.
mod content;

mod lines;
mod pattern;

mod names;

mod list;

// The walk that they share.
mod walk;

mod walk_worker;

mod directory;

mod collect;
mod skipped;

// What the walk takes and leaves out.
mod select;

mod ignore_rules;

mod stop_flag;

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
pub use stop_flag::{SearchProblem, SearchStopFlag};
pub use toolgate_files::SearchTree;
