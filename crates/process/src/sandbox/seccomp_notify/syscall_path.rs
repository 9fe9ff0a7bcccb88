//! A place in the file system: a directory that was opened without following links, and a name in it.

use rustix::fs::{AtFlags, CWD, FileType, statat};
use rustix::io::Errno;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use toolgate_files::unchecked::{open_directory_handle, open_entry_handle};
use toolgate_proto::{AbsPath, EntryKind};

/// Whether a link at the end of a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FinalSymlink {
    Follow,
    NoFollow,
}

/// Where a path leads.
#[derive(Debug, Clone)]
pub(super) struct SyscallPath {
    /// Links resolved, the last one only where it is followed.
    pub(super) real: AbsPath,
    pub(super) kind: EntryKind,
    parent: AbsPath,
    pub(super) name: OsString,
}

impl SyscallPath {
    /// `None` where only the kernel can say: below `/proc`, at the root, or in what cannot be resolved.
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
                // What is there, without following: a link counts as a file.
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

    pub(super) fn is_pipe(&self) -> bool {
        statat(CWD, self.real.as_path(), AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Fifo)
    }

    /// A handle on the directory. Fails if a link has appeared on the way.
    pub(super) fn open_directory(&self) -> Result<OwnedFd, Errno> {
        open_directory_handle(&self.parent).map_err(to_errno)
    }

    /// A handle on the thing itself, only for naming it.
    pub(super) fn open_entry(&self) -> Result<OwnedFd, Errno> {
        open_entry_handle(&self.real).map_err(to_errno)
    }
}

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
        | FileProblem::Other(_) => Errno::ACCESS,
    }
}
