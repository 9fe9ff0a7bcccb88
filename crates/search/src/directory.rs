//! One directory of a walk, opened through the file descriptor of its parent.
//!
//! A name is looked up in a directory that is already open, with `O_NOFOLLOW`, so a symlink that is swapped in is refused.
//! However the tree changes during the walk, the walk stays inside the tree that was granted; at worst an entry is
//! missing.

use crate::ignore_rules::{IgnoreRules, affects_ignore_rules};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, Stat, fstat, openat, statat};
use std::ffi::{CStr, OsStr};
use std::fs::File;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use toolgate_files::{FileProblem, SearchTree};
use toolgate_proto::AbsPath;

/// Directories below this depth are opened again by path (without symlinks) instead of keeping their file descriptor, so
/// that a very deep tree cannot use up the descriptors of the process.
const MAX_HANDLE_DEPTH: usize = 32;
/// How entries are opened. `O_NONBLOCK`, because the open of a pipe would block.
const READ_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// What a directory entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WalkEntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symlink, whatever its target is.
    Symlink,
    /// A pipe, socket or device.
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

/// The entries of a directory, with one allocation for all names: a large tree would otherwise need one per file.
#[derive(Debug, Default)]
pub(crate) struct EntryNames {
    /// All names, each with a NUL after it.
    bytes: Vec<u8>,
    /// One per entry, in the order of the listing until [`EntryNames::sort`].
    entries: Vec<NamedEntry>,
    /// Whether an entry is an ignore file or may contain one; most directories have none.
    has_ignore_files: bool,
}

/// One entry: its kind, and where its name is in [`EntryNames`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamedEntry {
    /// Where the name begins.
    start: u32,
    /// Its length with the NUL.
    len: u32,
    /// What the entry is.
    pub(crate) kind: WalkEntryKind,
}

impl EntryNames {
    /// Reads all entries of an open directory.
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
                // Some file systems do not report it.
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

    /// Adds an entry, and notes whether the directory has ignore files.
    fn push(&mut self, name: &CStr, kind: WalkEntryKind) {
        self.has_ignore_files = self.has_ignore_files || affects_ignore_rules(name);
        let name = name.to_bytes_with_nul();
        // A directory with more than 4 GiB of names is truncated here.
        let (Ok(start), Ok(len)) = (u32::try_from(self.bytes.len()), u32::try_from(name.len())) else {
            return;
        };
        self.bytes.extend_from_slice(name);
        self.entries.push(NamedEntry { start, len, kind });
    }

    /// Sorts the entries by name, as bytes.
    pub(crate) fn sort(&mut self) {
        let bytes = &self.bytes;
        self.entries.sort_unstable_by(|a, b| name_bytes(bytes, *a).cmp(name_bytes(bytes, *b)));
    }

    /// The entries, in the order of the directory until [`EntryNames::sort`].
    pub(crate) fn entries(&self) -> &[NamedEntry] {
        &self.entries
    }

    /// The name of an entry.
    pub(crate) fn name(&self, entry: NamedEntry) -> &CStr {
        CStr::from_bytes_with_nul(name_bytes(&self.bytes, entry)).unwrap_or(c"")
    }

    /// Whether an entry is an ignore file or may contain one.
    pub(crate) fn has_ignore_files(&self) -> bool {
        self.has_ignore_files
    }
}

/// The bytes of a name in the buffer that all names share.
fn name_bytes(bytes: &[u8], entry: NamedEntry) -> &[u8] {
    let start = entry.start as usize;
    bytes.get(start..start + entry.len as usize).unwrap_or_default()
}

/// A directory that a walk has listed.
#[derive(Debug)]
pub(crate) struct WalkDirectory<'t> {
    /// The tree that it is in, which opens it again if its descriptor was not kept.
    tree: &'t SearchTree,
    /// Absolute path, with a separator at its end.
    path: Vec<u8>,
    /// The names from the start of the walk to here, each followed by a NUL. Compared as bytes, such keys are in the order
    /// of a walk that visits the entries of each directory by name, because no name contains a NUL.
    key: Vec<u8>,
    /// The open directory; `None` below [`MAX_HANDLE_DEPTH`].
    handle: Option<OwnedFd>,
    /// How many levels below the start of the walk.
    depth: usize,
    /// Whether [`HiddenFileFilter::may_hide_name`](toolgate_files::HiddenFileFilter::may_hide_name) is enough to rule out
    /// files here.
    pub(crate) can_decide_by_name: bool,
    /// The entries.
    pub(crate) names: EntryNames,
    /// The ignore files that apply here, once they are loaded; before, those that apply in the parent.
    pub(crate) rules: Option<Arc<IgnoreRules>>,
}

impl<'t> WalkDirectory<'t> {
    /// Opens and lists the directory where a walk starts.
    pub(crate) fn open_start(
        tree: &'t SearchTree,
        buffer: &mut [MaybeUninit<u8>],
    ) -> Result<Self, FileProblem> {
        let handle = tree.open_directory(tree.start())?;
        let names = EntryNames::read(&handle, buffer)?;
        let mut path = tree.start().as_path().as_os_str().as_bytes().to_vec();
        if path.last() != Some(&b'/') {
            path.push(b'/');
        }
        Ok(Self {
            tree,
            path,
            key: Vec::new(),
            handle: Some(handle),
            depth: 0,
            can_decide_by_name: false,
            names,
            rules: None,
        })
    }

    /// Opens and lists a directory in this one.
    pub(crate) fn open_subdirectory(
        &self,
        name: &CStr,
        buffer: &mut [MaybeUninit<u8>],
    ) -> Result<Self, FileProblem> {
        let handle = self.open(name, READ_FLAGS | OFlags::DIRECTORY)?;
        let names = EntryNames::read(&handle, buffer)?;
        let depth = self.depth + 1;
        Ok(Self {
            tree: self.tree,
            path: [self.path.as_slice(), name.to_bytes(), b"/"].concat(),
            key: self.entry_key(name, &[0]),
            handle: (depth < MAX_HANDLE_DEPTH).then_some(handle),
            depth,
            can_decide_by_name: false,
            names,
            rules: self.rules.clone(),
        })
    }

    /// Opens a regular file in this directory, and returns its size.
    pub(crate) fn open_file(&self, name: &CStr) -> Result<(File, u64), FileProblem> {
        let handle = self.open(name, READ_FLAGS)?;
        let stat = fstat(&handle)?;
        // It was a regular file when the directory was listed; a pipe that replaced it could be read forever.
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok((File::from(handle), u64::try_from(stat.st_size).unwrap_or(0))),
            _ => Err(FileProblem::Special),
        }
    }

    /// The metadata of an entry of this directory; a symlink is not followed.
    pub(crate) fn stat(&self, name: &CStr) -> Result<Stat, FileProblem> {
        self.with_handle(|handle| Ok(statat(handle, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// Opens an entry by the file descriptor of its directory, so that no path is resolved again.
    fn open(&self, name: &CStr, flags: OFlags) -> Result<OwnedFd, FileProblem> {
        self.with_handle(|handle| Ok(openat(handle, name, flags, Mode::empty())?))
    }

    /// Calls `work` with the descriptor of this directory, which is opened again if it was not kept.
    fn with_handle<T>(
        &self,
        work: impl FnOnce(BorrowedFd<'_>) -> Result<T, FileProblem>,
    ) -> Result<T, FileProblem> {
        match &self.handle {
            Some(handle) => work(handle.as_fd()),
            None => {
                let path = AbsPath::new(as_path(&self.path)).map_err(|_| FileProblem::Missing)?;
                work(self.tree.open_directory(&path)?.as_fd())
            }
        }
    }

    /// The tree that is searched.
    pub(crate) fn tree(&self) -> &'t SearchTree {
        self.tree
    }

    /// The absolute path, with a separator at its end.
    pub(crate) fn path(&self) -> &[u8] {
        &self.path
    }

    /// How many levels it is below the start.
    pub(crate) fn depth(&self) -> usize {
        self.depth
    }

    /// The key of an entry in the order of the walk. `end` is a NUL for a directory, whose key is a prefix of those below.
    pub(crate) fn entry_key(&self, name: &CStr, end: &[u8]) -> Vec<u8> {
        [self.key.as_slice(), name.to_bytes(), end].concat()
    }

    /// The path of an entry of this directory.
    pub(crate) fn entry_path(&self, name: &CStr) -> AbsPath {
        let path = [self.path.as_slice(), name.to_bytes()].concat();
        AbsPath::new(as_path(&path)).unwrap_or_else(|_| AbsPath::root())
    }
}

/// Bytes of a path as a `Path`, which Unix does without a copy.
pub(crate) fn as_path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
