//! The files that one call may use.
//!
//! [`GrantedFiles`] is a capability: it holds the real paths that policy judged, and every access of a tool goes
//! through it.
//! A path that the tool's intent did not name is refused here even if policy would have allowed it, because it was not
//! judged.

use crate::command_snapshots::CommandSnapshots;
use crate::content_check::ContentCheck;
use crate::hidden_files::HiddenFileFilter;
use crate::journal::ChangeRecorder;
use crate::open::{FileProblem, open_regular_file, open_without_symlinks};
use crate::search_tree::SearchTree;
use crate::snapshot::{FileFingerprint, FileSnapshot};
use rustix::fs::{AtFlags, Dir, FileType, OFlags, statat};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;
use toolgate_proto::{AbsPath, EntryKind, PathScope};

/// One path that a call was granted.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PathGrant {
    /// The path as the tool's intent named it.
    pub asked: AbsPath,
    /// The real path that policy judged: what `asked` resolved to.
    pub real: AbsPath,
    /// Whether the grant is for this entry alone or for everything below it.
    pub scope: PathScope,
    /// What may be done there.
    pub access: GrantedAccess,
}

impl PathGrant {
    /// Creates the grant of a path: as it was asked for, and as it was resolved when it was judged.
    pub fn new(asked: AbsPath, real: AbsPath, scope: PathScope, access: GrantedAccess) -> Self {
        Self { asked, real, scope, access }
    }
}

/// What may be done at a path. Write access includes read access, because an edit reads what it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantedAccess {
    /// Read and list.
    Read,
    /// Read, list, create, replace and delete.
    Write,
}

/// The files that one call may use: those that its intent named and policy granted.
#[derive(Debug, Clone, Default)]
pub struct GrantedFiles {
    /// Every grant by the path that was asked for. A map, because a call may name thousands of files.
    named: HashMap<AbsPath, Vec<PathGrant>>,
    /// The grants with [`PathScope::Tree`], which also cover paths below them.
    trees: Vec<PathGrant>,
    /// The roots of the session. Names of files in them may appear in hints of error messages.
    roots: Vec<AbsPath>,
    /// Which files inside a granted tree are hidden.
    hidden: Option<HiddenFileFilter>,
    /// Records changes in the journal before they are made; `None` without a journal.
    recorder: Option<ChangeRecorder>,
    /// Checks that new content has to pass before it replaces a file.
    checks: Arc<[Arc<dyn ContentCheck>]>,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DirectoryEntry {
    /// Its name in the directory.
    pub name: OsString,
    /// What it is. A symlink counts as a file, whatever its target is.
    pub kind: EntryKind,
    /// Whether it is a symlink.
    pub is_symlink: bool,
    /// Size in bytes; only meaningful for a regular file.
    pub bytes: u64,
}

impl GrantedFiles {
    /// Access to the granted paths, in a session with these roots.
    pub fn new(grants: Vec<PathGrant>, roots: Vec<AbsPath>) -> Self {
        let mut files = Self { roots, ..Self::default() };
        for grant in grants {
            if grant.scope == PathScope::Tree {
                files.trees.push(grant.clone());
            }
            files.named.entry(grant.asked.clone()).or_default().push(grant);
        }
        files
    }

    /// Records every change with this recorder, so that it can be undone.
    pub fn with_recorder(mut self, recorder: Option<ChangeRecorder>) -> Self {
        self.recorder = recorder;
        self
    }

    /// Checks all new content before it replaces a file.
    pub fn with_checks(mut self, checks: Arc<[Arc<dyn ContentCheck>]>) -> Self {
        self.checks = checks;
        self
    }

    /// The checks that every new content has to pass.
    pub(crate) fn checks(&self) -> Arc<[Arc<dyn ContentCheck>]> {
        Arc::clone(&self.checks)
    }

    /// Snapshots of the files below these directories, for a command that is about to change them; `None` without a
    /// journal.
    pub fn command_snapshots(&self, roots: Vec<AbsPath>) -> Option<CommandSnapshots> {
        Some(CommandSnapshots::new(self.recorder.clone()?, roots))
    }

    /// Records changes for undo; `None` without a journal.
    pub(crate) fn recorder(&self) -> Option<&ChangeRecorder> {
        self.recorder.as_ref()
    }

    /// Hides files from listings and searches of granted directories.
    pub fn with_hidden(mut self, hidden: HiddenFileFilter) -> Self {
        self.hidden = Some(hidden);
        self
    }

    /// Whether a file is withheld from searches of content: it is hidden, or may hold secrets. A call that names the
    /// file itself is not affected.
    pub fn may_hold_secrets(&self, path: &AbsPath) -> bool {
        self.hidden.as_ref().is_some_and(|hidden| hidden.for_content().hides(path))
    }

    /// The real path of a granted path.
    pub fn real_path(&self, asked: &AbsPath) -> Result<AbsPath, FileProblem> {
        self.find_granted(asked, |_| true)
    }

    /// The real path of a path that was granted for writing.
    pub(crate) fn writable_path(&self, asked: &AbsPath) -> Result<AbsPath, FileProblem> {
        self.find_granted(asked, |access| access == GrantedAccess::Write)
    }

    /// The real path of a path that was granted with sufficient access.
    fn find_granted(
        &self,
        asked: &AbsPath,
        suffices: impl Fn(GrantedAccess) -> bool,
    ) -> Result<AbsPath, FileProblem> {
        let named = self.named.get(asked).into_iter().flatten().find(|grant| suffices(grant.access));
        if let Some(grant) = named {
            return Ok(grant.real.clone());
        }
        // A path below a granted tree is taken as spelled; the open fails if it has a symlink in it. One with `..` could
        // lead out of the tree, so it is refused.
        let covers = |grant: &PathGrant| suffices(grant.access) && asked.is_under(&grant.real);
        if self.trees.iter().any(covers) && asked.lexical() == *asked {
            return if self.hides(asked) { Err(FileProblem::NotGranted) } else { Ok(asked.clone()) };
        }
        Err(FileProblem::NotGranted)
    }

    /// Opens a regular file for reading.
    pub fn open(&self, asked: &AbsPath) -> Result<File, FileProblem> {
        open_regular_file(&self.real_path(asked)?).map(|(file, _)| file)
    }

    /// Opens a regular file for reading, with its fingerprint at that moment.
    pub fn open_with_fingerprint(&self, asked: &AbsPath) -> Result<(File, FileFingerprint), FileProblem> {
        open_regular_file(&self.real_path(asked)?).map(|(file, stat)| (file, FileFingerprint::of(&stat)))
    }

    /// Reads a whole regular file. One of more than `max_bytes` is an error.
    pub fn read(&self, asked: &AbsPath, max_bytes: u64) -> Result<FileSnapshot, FileProblem> {
        let (file, _) = open_regular_file(&self.real_path(asked)?)?;
        FileSnapshot::read(file.as_fd(), max_bytes)
    }

    /// The names of the entries in the directory of a granted path, for a hint about a misspelled name. Empty outside of
    /// the roots: there the names themselves are not for the model to see.
    pub fn sibling_names(&self, asked: &AbsPath) -> Vec<OsString> {
        let parent = match self.real_path(asked).ok().and_then(|real| real.parent()) {
            Some(parent) if self.roots.iter().any(|root| parent.is_under(root)) => parent,
            _ => return Vec::new(),
        };
        let entries = list_directory(&parent).unwrap_or_default();
        entries.into_iter().map(|entry| entry.name).filter(|name| !self.hides(&parent.join(name))).collect()
    }

    /// A granted file or directory to search or list. [`PathScope::Tree`] needs a grant for the whole tree;
    /// [`PathScope::Entry`] is enough to list the directory itself.
    pub fn search_tree(&self, asked: &AbsPath, scope: PathScope) -> Result<SearchTree, FileProblem> {
        let granted = |grant: &PathGrant| grant.asked == *asked || asked.is_under(&grant.real);
        if scope == PathScope::Tree && !self.trees.iter().any(granted) {
            return Err(FileProblem::NotGranted);
        }
        let start = self.real_path(asked)?;
        let (_, stat) = open_without_symlinks(&start, OFlags::RDONLY)?;
        let is_directory = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => true,
            FileType::RegularFile => false,
            _ => return Err(FileProblem::Special),
        };
        let root = self.roots.iter().filter(|root| start.is_under(root)).max().cloned();
        Ok(SearchTree::new(start, is_directory, root, self.hidden.clone()))
    }

    /// Whether rules hide a path from searches and listings.
    fn hides(&self, path: &AbsPath) -> bool {
        self.hidden.as_ref().is_some_and(|hidden| hidden.hides(path))
    }

    /// The entries of a directory that are not hidden, sorted by name.
    pub fn list(&self, asked: &AbsPath) -> Result<Vec<DirectoryEntry>, FileProblem> {
        let real = self.real_path(asked)?;
        let mut entries = list_directory(&real)?;
        entries.retain(|entry| !self.hides(&real.join(&entry.name)));
        Ok(entries)
    }
}

/// The entries of a directory, opened without following symlinks.
fn list_directory(real: &AbsPath) -> Result<Vec<DirectoryEntry>, FileProblem> {
    let (fd, _) = open_without_symlinks(real, OFlags::RDONLY | OFlags::DIRECTORY)?;
    let mut entries = Vec::new();
    for entry in Dir::read_from(&fd)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let mut kind = entry.file_type();
        let mut bytes = 0;
        // An entry that was deleted between the two system calls is left out.
        if matches!(kind, FileType::RegularFile | FileType::Unknown) {
            match statat(&fd, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => {
                    kind = FileType::from_raw_mode(stat.st_mode);
                    bytes = u64::try_from(stat.st_size).unwrap_or(0);
                }
                Err(_) => continue,
            }
        }
        entries.push(DirectoryEntry {
            name: OsString::from_vec(name.to_vec()),
            kind: match kind {
                FileType::Directory => EntryKind::Directory,
                FileType::RegularFile | FileType::Symlink => EntryKind::File,
                _ => EntryKind::Special,
            },
            is_symlink: kind == FileType::Symlink,
            bytes,
        });
    }
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_granted_paths_can_be_opened() {
        let dir = tempfile::tempdir().unwrap();
        let top = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        std::fs::create_dir(top.join("tree").as_path()).unwrap();
        std::fs::write(top.join("tree/a"), "a").unwrap();
        std::fs::write(top.join("b"), "b").unwrap();
        let files = GrantedFiles::new(
            vec![PathGrant {
                asked: top.join("tree"),
                real: top.join("tree"),
                scope: PathScope::Tree,
                access: GrantedAccess::Read,
            }],
            vec![],
        );
        assert!(files.open(&top.join("tree/a")).is_ok());
        assert_eq!(files.open(&top.join("b")).unwrap_err(), FileProblem::NotGranted);
        assert_eq!(files.open(&top.join("tree/../b")).unwrap_err(), FileProblem::NotGranted);
        assert_eq!(files.list(&top).unwrap_err(), FileProblem::NotGranted);
        assert_eq!(files.list(&top.join("tree")).unwrap().len(), 1);
        assert_eq!(files.writable_path(&top.join("tree/a")).unwrap_err(), FileProblem::NotGranted);
    }
}
