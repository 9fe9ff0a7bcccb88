//! One directory of a walk: opened from its parent's handle, so that a link swapped in on the way leads nowhere.
//!
//! A name is looked up in a directory that is already open, and never followed where it is a link.
//! However the tree is changed meanwhile, the walk stays inside the tree that was granted: the worst that a change
//! can do is to make an entry vanish.

use crate::ignore_rules::{IgnoreRules, affects_ignore_rules};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, Stat, fstat, openat, statat};
use rustix::io::Errno;
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use toolgate_files::FileProblem;
use toolgate_files::unchecked::open_without_symlinks;
use toolgate_proto::AbsPath;

/// Deeper directories are reached by their path again (without links) instead of keeping a handle each,
/// so that a very deep tree cannot use up the process's descriptors.
const MAX_HANDLE_DEPTH: usize = 32;
const READ_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WalkEntryKind {
    File,
    Directory,
    Symlink,
    Special,
}

impl WalkEntryKind {
    fn of(file_type: FileType) -> Self {
        match file_type {
            FileType::RegularFile => Self::File,
            FileType::Directory => Self::Directory,
            FileType::Symlink => Self::Symlink,
            _ => Self::Special,
        }
    }
}

/// The entries of a directory, packed: one allocation for the names of all of them.
#[derive(Debug, Default)]
pub(crate) struct EntryNames {
    bytes: Vec<u8>,
    entries: Vec<NamedEntry>,
    /// There is an entry that bears on what is ignored here; most directories have none.
    has_ignore_files: bool,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct NamedEntry {
    start: u32,
    /// With its final NUL.
    len: u32,
    pub(crate) kind: WalkEntryKind,
}

impl EntryNames {
    fn read(handle: &OwnedFd, buffer: &mut [MaybeUninit<u8>]) -> Result<Self, FileProblem> {
        let mut names = Self::default();
        let mut dir = RawDir::new(handle, buffer);
        while let Some(entry) = dir.next() {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let file_type = match entry.file_type() {
                // Some file systems do not tell.
                FileType::Unknown => match statat(handle, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                    Err(_) => continue,
                },
                known => known,
            };
            names.push(name, WalkEntryKind::of(file_type));
        }
        Ok(names)
    }

    fn push(&mut self, name: &CStr, kind: WalkEntryKind) {
        self.has_ignore_files = self.has_ignore_files || affects_ignore_rules(name);
        let name = name.to_bytes_with_nul();
        // A directory of four gigabytes of names ends here; what follows is not walked.
        let (Ok(start), Ok(len)) = (u32::try_from(self.bytes.len()), u32::try_from(name.len())) else {
            return;
        };
        self.bytes.extend_from_slice(name);
        self.entries.push(NamedEntry { start, len, kind });
    }

    pub(crate) fn sort(&mut self) {
        let bytes = &self.bytes;
        self.entries.sort_unstable_by(|a, b| name_bytes(bytes, *a).cmp(name_bytes(bytes, *b)));
    }

    pub(crate) fn entries(&self) -> &[NamedEntry] {
        &self.entries
    }

    pub(crate) fn name(&self, entry: NamedEntry) -> &CStr {
        CStr::from_bytes_with_nul(name_bytes(&self.bytes, entry)).unwrap_or(c"")
    }

    pub(crate) fn has_ignore_files(&self) -> bool {
        self.has_ignore_files
    }
}

fn name_bytes(bytes: &[u8], entry: NamedEntry) -> &[u8] {
    let start = entry.start as usize;
    bytes.get(start..start + entry.len as usize).unwrap_or_default()
}

/// A directory on the way.
#[derive(Debug)]
pub(crate) struct WalkDirectory {
    /// Absolute, with a separator at its end.
    path: Vec<u8>,
    /// From the start of the walk, each name followed by a NUL: compared as bytes, keys are in the order of a walk
    /// that takes the entries of each directory by name, because no name holds a NUL.
    key: Vec<u8>,
    handle: Option<OwnedFd>,
    depth: usize,
    /// What is kept out of sight here can be told by names.
    pub(crate) can_decide_by_name: bool,
    pub(crate) names: EntryNames,
    /// The ignore files that count here.
    pub(crate) rules: Option<Arc<IgnoreRules>>,
}

impl WalkDirectory {
    /// Opens the directory where a walk starts.
    pub(crate) fn open_start(real: &AbsPath, buffer: &mut [MaybeUninit<u8>]) -> Result<Self, FileProblem> {
        let (handle, _) = open_without_symlinks(real, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let names = EntryNames::read(&handle, buffer)?;
        let mut path = real.as_path().as_os_str().as_bytes().to_vec();
        if path.last() != Some(&b'/') {
            path.push(b'/');
        }
        Ok(Self {
            path,
            key: Vec::new(),
            handle: Some(handle),
            depth: 0,
            can_decide_by_name: false,
            names,
            rules: None,
        })
    }

    /// Opens a directory in this one.
    pub(crate) fn open_subdirectory(
        &self,
        name: &CStr,
        buffer: &mut [MaybeUninit<u8>],
    ) -> Result<Self, FileProblem> {
        let handle = self.open(name, READ_FLAGS | OFlags::DIRECTORY)?;
        let names = EntryNames::read(&handle, buffer)?;
        let path = [self.path.as_slice(), name.to_bytes(), b"/"].concat();
        let key = self.entry_key(name, &[0]);
        let depth = self.depth + 1;
        let handle = (depth < MAX_HANDLE_DEPTH).then_some(handle);
        Ok(Self { path, key, handle, depth, can_decide_by_name: false, names, rules: self.rules.clone() })
    }

    /// Opens a regular file in this directory, and tells its size.
    pub(crate) fn open_file(&self, name: &CStr) -> Result<(File, u64), FileProblem> {
        let handle = self.open(name, READ_FLAGS)?;
        let stat = fstat(&handle)?;
        // It was one when the directory was read; a pipe that took its place would never end.
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok((File::from(handle), u64::try_from(stat.st_size).unwrap_or(0))),
            _ => Err(FileProblem::Special),
        }
    }

    /// What the system says about an entry of this directory, a link not followed.
    pub(crate) fn stat(&self, name: &CStr) -> Result<Stat, FileProblem> {
        match &self.handle {
            Some(handle) => Ok(statat(handle, name, AtFlags::SYMLINK_NOFOLLOW)?),
            None => {
                let here = AbsPath::new(as_path(&self.path)).map_err(|_| FileProblem::Missing)?;
                let (handle, _) = open_without_symlinks(&here, OFlags::RDONLY | OFlags::DIRECTORY)?;
                Ok(statat(handle, name, AtFlags::SYMLINK_NOFOLLOW)?)
            }
        }
    }

    fn open(&self, name: &CStr, flags: OFlags) -> Result<OwnedFd, FileProblem> {
        match &self.handle {
            Some(handle) => match openat(handle, name, flags, Mode::empty()) {
                Err(Errno::LOOP | Errno::MLINK) => Err(FileProblem::SymlinkOnPath),
                opened => Ok(opened?),
            },
            None => Ok(open_without_symlinks(&self.entry_path(name), flags)?.0),
        }
    }

    pub(crate) fn path(&self) -> &[u8] {
        &self.path
    }

    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// The place of an entry of this directory in the order of the walk.
    pub(crate) fn entry_key(&self, name: &CStr, end: &[u8]) -> Vec<u8> {
        [self.key.as_slice(), name.to_bytes(), end].concat()
    }

    /// The path of an entry of this directory.
    pub(crate) fn entry_path(&self, name: &CStr) -> AbsPath {
        let path = [self.path.as_slice(), name.to_bytes()].concat();
        AbsPath::new(as_path(&path)).unwrap_or_else(|_| AbsPath::root())
    }
}

pub(crate) fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
