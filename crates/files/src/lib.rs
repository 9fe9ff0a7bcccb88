//! File access without TOCTOU races: resolve, judge, open, replace, undo.
//!
//! A check of a path followed by an open of the same path has a race between the two (TOCTOU): a symlink that is
//! swapped in after the check redirects the open.
//! This crate removes the race by splitting the work in three:
//!
//! 1. [`resolve()`] follows a path symlink by symlink, as the kernel would, and reports the real path together with every
//!    symlink on it. Policy judges the real path.
//! 2. [`GrantedFiles`] is the capability that a call gets: it opens the real paths that were granted and no others,
//!    with symlinks forbidden in every component (`openat2` with `RESOLVE_NO_SYMLINKS`, or one `openat` with
//!    `O_NOFOLLOW` per component on kernels without `openat2`). A symlink that appears in between makes the open fail.
//! 3. [`LockedFile`] replaces the content of a file atomically: write to an unnamed temporary file, `fsync`, exchange
//!    names with `renameat2`, then compare what was displaced with what the caller had read. If another process was
//!    faster, the exchange is reverted and the change is refused.
//!
//! [`Journal`] stores what each change displaced, so that the changes of a call can be undone together; a change that
//! a crash interrupted is settled when the journal is next opened.
//!
//! ```
//! use toolgate_files::{FileProblem, GrantedAccess, GrantedFiles, PathGrant, resolve};
//! use toolgate_proto::{AbsPath, PathScope};
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let root = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
//! let notes = root.join("notes.txt");
//! std::fs::write(&notes, "text").unwrap();
//! let fact = resolve(&notes);
//!
//! // Policy judges `fact.real` here, and grants it.
//! let grant = PathGrant::new(fact.asked, fact.real, PathScope::Entry, GrantedAccess::Read);
//! let files = GrantedFiles::new(vec![grant], vec![root.clone()]);
//! assert!(files.open(&notes).is_ok());
//! assert_eq!(files.open(&root.join("other.txt")).unwrap_err(), FileProblem::NotGranted);
//!
//! // A symlink that is swapped in after the judgement is not followed.
//! std::fs::remove_file(&notes).unwrap();
//! std::os::unix::fs::symlink("/etc/hosts", &notes).unwrap();
//! assert_eq!(files.open(&notes).unwrap_err(), FileProblem::SymlinkOnPath);
//! ```
//!
//! The crate knows no rules, no tools and no async runtime beyond `spawn_blocking`: what is allowed is decided before
//! a grant is made, and ids of calls and sessions are only labels in the journal.

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "this crate may touch files")]

// From a path to an open file.
mod resolve;

mod open;

mod granted_files;

mod hidden_files;
mod search_path;
mod search_tree;

// From new content to a replaced file.
mod snapshot;

mod locked_file;

mod content_check;
mod lock;

mod replace;

mod anchored_path;
mod copy_metadata;

// Undo and redo.
mod journal;

// Files of toolgate itself: settings, state, logs, large results.
mod stamp_watch;
mod state_files;

mod append_log;
mod command_snapshots;
mod folder;
mod scratch;
mod single_line_file;
mod spill;
mod tree;

// Questions about files that are not opened.
mod directory_watch;
mod expand;
mod hard_links;
mod tree_watch;
mod watch;

// System calls, and what tests inject into them.
mod sys;

#[cfg(not(any(test, feature = "faults")))]
mod faults;
#[cfg(any(test, feature = "faults"))]
pub mod faults;

mod generate_id;
mod line_log;
mod threads;

#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod symlink_race;

pub use append_log::{AppendLog, LogEnd, LogSegment, append_line};
pub use command_snapshots::{CommandChanges, CommandSnapshots};
pub use content_check::ContentCheck;
pub use directory_watch::{DirectoryChanges, DirectoryWatch};
pub use expand::{ComponentPattern, expand_pattern};
pub use folder::{FolderEntry, list_folder, make_directory};
pub use generate_id::{generate_id, generate_uuid, now_millis, random_bytes};
pub use granted_files::{DirectoryEntry, GrantedAccess, GrantedFiles, PathGrant};
pub use hard_links::find_hard_links;
pub use hidden_files::{HiddenFileFilter, SecretFileMatcher};
pub use journal::{
    ChangeRecorder, ChangeState, ConflictHandling, ContentDescriptor, FileRestore, Journal, JournalChange,
    JournalLimits, MovedChanges, UndoAvailability, UndoConflict, UndoFilter, UndoOutcome, UndoPlan,
    UndoProblem, UndoSelector,
};
pub use line_log::{LineLog, read_log_lines};
pub use locked_file::{AppliedFileChange, LockedFile, run_blocking};
pub use open::{FileProblem, supports_openat2};
pub use replace::ChangeProblem;
pub use resolve::{resolve, resolve_all, resolve_tracking_parent_steps};
pub use scratch::ScratchDirectory;
pub use search_path::{DEFAULT_SEARCH_PATH, SearchPath};
pub use search_tree::{IgnoreFile, SearchTree};
pub use snapshot::{ContentHash, FileFingerprint, FileSnapshot};
pub use spill::{SpillCleanupReport, SpillLimits, SpillStore};
pub use stamp_watch::StampWatch;
pub use state_files::{
    FileStamp, StateFileLock, is_executable, is_system_file, list_file_stamps, list_names_with_suffix,
    lock_state_file, make_private_dir, open_named_file, read_file_stamp, read_named_bytes,
    read_settings_text, remove_state_file, replace_shared_file, replace_state_file, write_private_file,
};
pub use threads::{available_cores, parallel_map, try_spawn_scoped};
pub use tree::{TreeFile, copy_tree, list_tree_files, move_tree, remove_tree};
pub use tree_watch::{TreeChange, TreeWatcher};
pub use watch::FileWatcher;

pub(crate) use lock::lock_path_blocking;
pub(crate) use locked_file::read_snapshot;

/// `O_PATH` handles without a grant, for the sandbox: its seccomp notification handler checks paths itself.
///
/// Such a handle names a file for `*at` system calls and cannot read or write it.
/// A tidy rule keeps every other caller out.
pub mod unchecked {
    pub use crate::open::{open_directory_handle, open_entry_handle};
}
