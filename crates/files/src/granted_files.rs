//! What one call may touch.

use super::content_check::ContentCheck;
use super::open::{FileProblem, open_regular_file, open_without_symlinks};
use super::snapshot::{FileFingerprint, FileSnapshot};
use crate::journal::ChangeRecorder;
use crate::search_tree::SearchTree;
use rustix::fs::{AtFlags, Dir, FileType, OFlags, statat};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;
use toolgate_proto::{AbsPath, EntryKind, PathScope};

/// One path that a call was granted, where it really leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathGrant {
    /// As the tool's intent named it.
    pub asked: AbsPath,
    /// Where it leads, as judged.
    pub real: AbsPath,
    /// Only this entry, or all below it.
    pub scope: PathScope,
    /// What may be done there.
    pub access: GrantedAccess,
}

/// What may be done at a path. Who may write may also read: an edit has to know what it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantedAccess {
    /// Look.
    Read,
    /// Look, and change.
    Write,
}

/// The files that one call may touch: those its intent named, and nothing else.
#[derive(Debug, Clone, Default)]
pub struct GrantedFiles {
    /// What was asked for by name. A call may name thousands of files.
    named: HashMap<AbsPath, Vec<PathGrant>>,
    /// Whole directories, and all below them.
    trees: Vec<PathGrant>,
    /// Where looking around is free: the session's roots.
    roots: Vec<AbsPath>,
    /// What policy keeps out of sight inside a tree that was granted.
    hidden: Option<HiddenFileFilter>,
    /// Where changes are recorded before they are made.
    recorder: Option<ChangeRecorder>,
    /// What contents must pass before they are put in place.
    checks: Arc<[Arc<dyn ContentCheck>]>,
}

/// Says which files below a granted directory are kept out of sight: those a deny rule for reading names.
/// A call for such a file by its own path is refused before it runs; this is for calls that name only the directory.
#[derive(Clone)]
pub struct HiddenFileFilter {
    hides: Option<HiddenPathPredicate>,
    secrets: Option<Arc<dyn SecretFileMatcher>>,
    /// What may be a secret is kept out of sight too.
    quoting: bool,
}

type HiddenPathPredicate = Arc<dyn Fn(&AbsPath) -> bool + Send + Sync>;

/// Tells which files may hold secrets: they may be listed but not quoted. It is asked from several threads.
pub trait SecretFileMatcher: Send + Sync {
    /// Whether this file may.
    fn is_secret(&self, path: &AbsPath) -> bool;

    /// Whether [`SecretFileMatcher::is_secret_name`] tells of the files in this directory. It is asked once, and spares a search
    /// to ask for each file by its path.
    fn can_decide_by_name(&self, directory: &AbsPath) -> bool;

    /// Whether a file of this name may be one. Where not, it is none.
    fn is_secret_name(&self, name: &str) -> bool;
}

impl HiddenFileFilter {
    /// Hides the paths for which `hides` is true. It is asked from several threads, for each file of a walk.
    pub fn new(hides: impl Fn(&AbsPath) -> bool + Send + Sync + 'static) -> Self {
        Self { hides: Some(Arc::new(hides)), ..Self::nothing() }
    }

    /// Hides nothing.
    pub fn nothing() -> Self {
        Self { hides: None, secrets: None, quoting: false }
    }

    /// The same, and these may be listed but not quoted.
    pub fn with_secret_files(mut self, secrets: impl SecretFileMatcher + 'static) -> Self {
        self.secrets = Some(Arc::new(secrets));
        self
    }

    /// The same for whoever would quote what it finds.
    pub(crate) fn for_content(&self) -> Self {
        Self { quoting: true, ..self.clone() }
    }

    fn secrets(&self) -> Option<&dyn SecretFileMatcher> {
        self.secrets.as_deref().filter(|_| self.quoting)
    }

    /// Whether this path is kept out of sight.
    pub fn hides(&self, path: &AbsPath) -> bool {
        self.hides.as_ref().is_some_and(|hides| hides(path))
            || self.secrets().is_some_and(|secrets| secrets.is_secret(path))
    }

    /// Whether any path may be kept out of sight: where none is, none need be built to ask about.
    pub fn hides_any(&self) -> bool {
        self.hides.is_some() || self.secrets().is_some()
    }

    /// Whether [`HiddenFileFilter::may_hide_name`] tells of the files in this directory.
    pub fn can_decide_by_name(&self, directory: &AbsPath) -> bool {
        self.hides.is_none() && self.secrets().is_none_or(|secrets| secrets.can_decide_by_name(directory))
    }

    /// Whether a file of this name may be kept out of sight. Where not, it is not.
    pub fn may_hide_name(&self, name: &[u8]) -> bool {
        match str::from_utf8(name) {
            Ok(name) => self.secrets().is_some_and(|secrets| secrets.is_secret_name(name)),
            Err(_) => true,
        }
    }
}

impl std::fmt::Debug for HiddenFileFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hidden")
    }
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryEntry {
    /// Its name.
    pub name: OsString,
    /// What it is; a link counts as what it is, not as what it leads to.
    pub kind: EntryKind,
    /// It is a link.
    pub is_symlink: bool,
    /// Size in bytes, for files.
    pub bytes: u64,
}

impl GrantedFiles {
    /// Hands that reach these paths.
    pub fn new(reach: Vec<PathGrant>, roots: Vec<AbsPath>) -> Self {
        let mut files = Self { roots, ..Self::default() };
        for reach in reach {
            if reach.scope == PathScope::Tree {
                files.trees.push(reach.clone());
            }
            files.named.entry(reach.asked.clone()).or_default().push(reach);
        }
        files
    }

    /// The same, with every change recorded.
    pub fn with_recorder(mut self, recorder: Option<ChangeRecorder>) -> Self {
        self.recorder = recorder;
        self
    }

    /// The same, with every new content checked.
    pub fn with_checks(mut self, checks: Arc<[Arc<dyn ContentCheck>]>) -> Self {
        self.checks = checks;
        self
    }

    pub(crate) fn checks(&self) -> Arc<[Arc<dyn ContentCheck>]> {
        Arc::clone(&self.checks)
    }

    pub(crate) fn recorder(&self) -> Option<&ChangeRecorder> {
        self.recorder.as_ref()
    }

    /// The same hands, with some files kept out of sight.
    pub fn with_hidden(mut self, hidden: HiddenFileFilter) -> Self {
        self.hidden = Some(hidden);
        self
    }

    /// Whether a file may hold secrets, so that it may be listed but not quoted unless it was named by itself.
    pub fn may_hold_secrets(&self, path: &AbsPath) -> bool {
        self.hidden.as_ref().is_some_and(|hidden| hidden.for_content().hides(path))
    }

    /// Where a granted path really leads.
    pub fn real_path(&self, asked: &AbsPath) -> Result<AbsPath, FileProblem> {
        self.find_granted(asked, |_| true)
    }

    /// The same for a path that was granted for writing.
    pub(crate) fn writable_path(&self, asked: &AbsPath) -> Result<AbsPath, FileProblem> {
        self.find_granted(asked, |access| access == GrantedAccess::Write)
    }

    fn find_granted(
        &self,
        asked: &AbsPath,
        fits: impl Fn(GrantedAccess) -> bool,
    ) -> Result<AbsPath, FileProblem> {
        let named = self.named.get(asked).into_iter().flatten().find(|reach| fits(reach.access));
        if let Some(reach) = named {
            return Ok(reach.real.clone());
        }
        let below = |reach: &PathGrant| fits(reach.access) && asked.is_under(&reach.real);
        if self.trees.iter().any(below) && asked.lexical() == *asked {
            return if self.hides(asked) { Err(FileProblem::NotGranted) } else { Ok(asked.clone()) };
        }
        Err(FileProblem::NotGranted)
    }

    /// Opens a regular file for reading.
    pub fn open(&self, asked: &AbsPath) -> Result<File, FileProblem> {
        open_regular_file(&self.real_path(asked)?).map(|(file, _)| file)
    }

    /// The same, with the file's outward signs.
    pub fn open_with_fingerprint(&self, asked: &AbsPath) -> Result<(File, FileFingerprint), FileProblem> {
        open_regular_file(&self.real_path(asked)?).map(|(file, stat)| (file, FileFingerprint::of(&stat)))
    }

    /// Reads all of a regular file, up to so many bytes.
    pub fn read(&self, asked: &AbsPath, most: u64) -> Result<FileSnapshot, FileProblem> {
        let (file, _) = open_regular_file(&self.real_path(asked)?)?;
        FileSnapshot::read(file.as_fd(), most)
    }

    /// The names beside a granted path, for telling what may have been meant. Only inside the roots.
    pub fn sibling_names(&self, asked: &AbsPath) -> Vec<OsString> {
        let parent = match self.real_path(asked).ok().and_then(|real| real.parent()) {
            Some(parent) if self.roots.iter().any(|root| parent.is_under(root)) => parent,
            _ => return Vec::new(),
        };
        let entries = list_directory(&parent).unwrap_or_default();
        entries.into_iter().map(|entry| entry.name).filter(|name| !self.hides(&parent.join(name))).collect()
    }

    /// A file or directory to search: all below it, if the call was granted the tree; else for a listing of the
    /// directory alone.
    pub fn search_tree(&self, asked: &AbsPath, scope: PathScope) -> Result<SearchTree, FileProblem> {
        let granted = |reach: &PathGrant| reach.asked == *asked || asked.is_under(&reach.real);
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

    fn hides(&self, path: &AbsPath) -> bool {
        self.hidden.as_ref().is_some_and(|hidden| hidden.hides(path))
    }

    /// The entries of a directory, in name order.
    pub fn list(&self, asked: &AbsPath) -> Result<Vec<DirectoryEntry>, FileProblem> {
        let real = self.real_path(asked)?;
        let mut entries = list_directory(&real)?;
        entries.retain(|entry| !self.hides(&real.join(&entry.name)));
        Ok(entries)
    }
}

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
        // An entry that vanishes between the two calls is simply not there any more.
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
    fn only_what_was_granted_can_be_reached() {
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
