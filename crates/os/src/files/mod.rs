//! Files, reached only through what a call was granted.
//!
//! Reading order: [`reach`] is what a call may touch, [`place`] is a directory held open, [`replace`] changes a file
//! wholly or not at all, [`held`] is what tools get to see of that.

mod reach;

mod check;
mod held;
mod lock;
mod open;
mod own;
pub(crate) mod place;
pub(crate) mod replace;
mod version;

#[cfg(not(any(test, feature = "faults")))]
mod faults;
#[cfg(any(test, feature = "faults"))]
pub mod faults;
pub(crate) mod sys;

pub use check::ContentCheck;
pub(crate) use held::read_at;
pub use held::{Held, Made, blocking};
pub(crate) use lock::lock_path_blocking;
pub use open::{FileProblem, supports_openat2};
pub(crate) use open::{open_file, open_without_symlinks};
pub use own::{
    OwnLock, Stamp, is_executable, is_system_file, list_names_with_suffix, lock_state_file, make_private_dir,
    open_named_file, read_named_bytes, read_settings_text, replace_state_file, stamp, write_private_file,
};
pub use reach::{Access, Entry, Files, Hidden, Reach, SecretFileMatcher};
pub use replace::ChangeProblem;
pub use version::{Hash, Mark, Version};

#[cfg(test)]
mod race;
#[cfg(test)]
pub(crate) mod torture;
