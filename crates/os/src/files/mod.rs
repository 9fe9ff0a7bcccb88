//! Files, reached only through what a call was granted.
//!
//! Reading order: [`reach`] is what a call may touch, [`place`] is a directory held open, [`replace`] changes a file
//! wholly or not at all, [`held`] is what tools get to see of that.

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
pub(crate) use open::{open_regular_file, open_without_symlinks};
pub use replace::ChangeProblem;
pub use snapshot::{ContentHash, FileFingerprint, FileSnapshot};
pub use state_files::{
    FileStamp, StateFileLock, is_executable, is_system_file, list_names_with_suffix, lock_state_file,
    make_private_dir, open_named_file, read_file_stamp, read_named_bytes, read_settings_text,
    replace_state_file, write_private_file,
};

#[cfg(test)]
mod race;
#[cfg(test)]
pub(crate) mod torture;
