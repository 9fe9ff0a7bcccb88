//! Files: opening without following symlinks, atomic replacement, a journal for undo, watching.
//!
//! The rest of toolgate names paths.
//! [`resolve`] says what is really at a path, symlink by symlink, as the kernel would; policy judges that real path;
//! and [`GrantedFiles`] opens exactly that path with symlinks forbidden on the whole way (`openat2` with
//! `RESOLVE_NO_SYMLINKS`, or directory by directory where the kernel has no `openat2`).
//! A symlink that is swapped in between judgement and use (a TOCTOU race) therefore makes the open fail; it cannot lead
//! to another file.
//!
//! [`LockedFile`] changes a file wholly or not at all: a temporary file, `fsync`, `rename`, and a check that the old
//! content is still the one that was read.
//! [`Journal`] keeps what was replaced, so that a call's changes can be undone together, also after a crash.
//!
//! ```
//! use toolgate_files::resolve;
//! use toolgate_proto::{AbsPath, EntryKind};
//!
//! let fact = resolve(&AbsPath::new("/usr/../no-such-file").unwrap());
//! assert_eq!(fact.real, AbsPath::new("/no-such-file").unwrap());
//! assert_eq!(fact.kind, EntryKind::Missing);
//! ```
//!
//! This crate does not know what is allowed, which tool asks, or what a session is.

#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "this crate may touch files")]

mod resolve;

mod granted_files;

pub(crate) mod anchored_path;
mod content_check;
mod lock;
mod locked_file;
mod open;
pub(crate) mod replace;
mod snapshot;
mod state_files;

#[cfg(not(any(test, feature = "faults")))]
mod faults;
#[cfg(any(test, feature = "faults"))]
pub mod faults;
pub(crate) mod sys;

pub use content_check::ContentCheck;
pub use granted_files::{
    DirectoryEntry, GrantedAccess, GrantedFiles, HiddenFileFilter, PathGrant, SecretFileMatcher,
};
pub(crate) use lock::lock_path_blocking;
pub(crate) use locked_file::read_snapshot;
pub use locked_file::{AppliedFileChange, LockedFile, run_blocking};
pub use open::{FileProblem, supports_openat2};

/// Opening without a grant, for the other crates that touch the machine. A tidy rule keeps every other crate out.
pub mod unchecked {
    pub use crate::open::{open_regular_file, open_without_symlinks};
}
pub use replace::ChangeProblem;
pub use snapshot::{ContentHash, FileFingerprint, FileSnapshot};
pub use state_files::{
    FileStamp, StateFileLock, is_executable, is_system_file, list_names_with_suffix, lock_state_file,
    make_private_dir, open_named_file, read_file_stamp, read_named_bytes, read_settings_text,
    replace_state_file, write_private_file,
};

mod append_log;
mod clock;
mod expand;
mod hard_links;
mod journal;
mod scratch;
mod search_tree;
mod spill;
mod threads;
mod watch;

pub use append_log::{AppendLog, LogEnd, LogSegment};
pub use clock::{generate_id, now_millis, random_bytes};
pub use expand::{ComponentPattern, expand_pattern};
pub use hard_links::find_hard_links;
pub use journal::{
    ChangeRecorder, ChangeState, ConflictHandling, ContentDescriptor, FileRestore, Journal, JournalChange,
    JournalLimits, UndoAvailability, UndoConflict, UndoFilter, UndoOutcome, UndoPlan, UndoProblem,
    UndoSelector,
};
pub use resolve::{resolve, resolve_all, resolve_tracking_parent_steps};
pub use scratch::ScratchDirectory;
pub use search_tree::SearchTree;
pub use spill::{SpillCleanupReport, SpillLimits, SpillStore};
pub use threads::{available_cores, parallel_map, try_spawn_scoped};
pub use watch::FileWatcher;

#[cfg(test)]
mod race;
#[cfg(test)]
pub(crate) mod torture;
