//! A resolved path argument: its parent directory is opened without following symlinks, and the entry is used by name.

use rustix::fs::{AtFlags, CWD, FileType, statat};
use rustix::io::Errno;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use toolgate_files::unchecked::{open_directory_handle, open_entry_handle};
use toolgate_proto::{AbsPath, EntryKind};

/// Whether a symlink at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FinalSymlink {
    /// The path means the target.
    Follow,
    /// The path means the symlink itself.
    NoFollow,
}

/// A path argument with its symlinks resolved.
#[derive(Debug, Clone)]
pub(super) struct SyscallPath {
    /// The real path; a symlink at the end is resolved only with [`FinalSymlink::Follow`].
    pub(super) real: AbsPath,
    /// What exists there; a symlink that is not followed counts as a file.
    pub(super) kind: EntryKind,
    /// The parent of `real`.
    parent: AbsPath,
    /// The last component of `real`.
    pub(super) name: OsString,
}

impl SyscallPath {
    /// `None` where only the kernel can resolve: below `/proc`, at the root, or after an error.
    pub(super) fn of(path: &AbsPath, last: FinalSymlink) -> Option<Self> {
        let fact = match last {
            FinalSymlink::Follow => toolgate_files::resolve(path),
            FinalSymlink::NoFollow => {
                let name = path.file_name()?;
                let parent = toolgate_files::resolve(&path.parent()?);
                if parent.problem.is_some() {
                    return None;
                }
                let real = parent.real.join(name);
                // A symlink counts as a file.
                let mut fact = toolgate_files::resolve(&real);
                if !fact.links.is_empty() || fact.problem.is_some() {
                    fact.kind = EntryKind::File;
                    fact.problem = None;
                }
                fact.real = real;
                fact
            }
        };
        let proc = AbsPath::root().join("proc");
        if fact.problem.is_some() || fact.real.is_under(&proc) || path.is_under(&proc) {
            return None;
        }
        let (parent, name) = (fact.real.parent()?, fact.real.file_name()?.to_owned());
        Some(Self { real: fact.real, kind: fact.kind, parent, name })
    }

    /// Whether the entry is a named pipe.
    pub(super) fn is_pipe(&self) -> bool {
        statat(CWD, self.real.as_path(), AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo)
    }

    /// Opens the parent directory. Fails if a symlink has appeared on the way.
    pub(super) fn open_directory(&self) -> Result<OwnedFd, Errno> {
        open_directory_handle(&self.parent).map_err(to_errno)
    }

    /// Opens the entry itself with `O_PATH`.
    pub(super) fn open_entry(&self) -> Result<OwnedFd, Errno> {
        open_entry_handle(&self.real).map_err(to_errno)
    }
}

/// The error number for a failed open; what has no better one is a permission error.
fn to_errno(problem: toolgate_files::FileProblem) -> Errno {
    use toolgate_files::FileProblem;
    match problem {
        FileProblem::Missing => Errno::NOENT,
        FileProblem::IsDirectory => Errno::ISDIR,
        FileProblem::NotDirectory => Errno::NOTDIR,
        FileProblem::Special
        | FileProblem::Denied
        | FileProblem::SymlinkOnPath
        | FileProblem::NotGranted
        | FileProblem::Other(_)
        | _ => Errno::ACCESS,
    }
}
