//! What a call may search: a granted file or directory, and the ignore files that apply to it.

use crate::hidden_files::HiddenFileFilter;
use crate::open::{FileProblem, open_regular_file, open_without_symlinks};
use rustix::fs::OFlags;
use std::ffi::CStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use toolgate_proto::AbsPath;

/// A file, or a directory with everything below it, that a call may search.
///
/// Only [`GrantedFiles::search_tree`](crate::GrantedFiles::search_tree) makes one, from a path that was judged. It opens
/// nothing outside of the tree but the ignore files of the directories above, so code that holds a `SearchTree` cannot
/// read anything else with it.
#[derive(Debug, Clone)]
pub struct SearchTree {
    /// Where the search starts, symlinks resolved.
    start: AbsPath,
    /// Whether `start` was a directory when the tree was made, and not a regular file.
    is_directory: bool,
    /// The root of the session that `start` is in.
    root: Option<AbsPath>,
    /// Which files in the tree are hidden.
    hidden: Option<HiddenFileFilter>,
}

/// A file with rules about what a search leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IgnoreFile {
    /// `.rgignore`.
    RgIgnore,
    /// `.ignore`.
    Ignore,
    /// `.gitignore`.
    GitIgnore,
    /// `.git/info/exclude`.
    GitExclude,
}

impl IgnoreFile {
    /// All of them in ripgrep's order of precedence, strongest first.
    pub const ALL: [Self; 4] = [Self::RgIgnore, Self::Ignore, Self::GitIgnore, Self::GitExclude];

    /// The name that a directory listing shows if the file may exist: its own, or that of the directory it is in.
    pub fn entry_name(self) -> &'static CStr {
        match self {
            Self::RgIgnore => c".rgignore",
            Self::Ignore => c".ignore",
            Self::GitIgnore => c".gitignore",
            Self::GitExclude => c".git",
        }
    }

    /// The ignore file of this kind in a directory.
    fn path_in(self, directory: &AbsPath) -> AbsPath {
        directory.join(match self {
            Self::RgIgnore => ".rgignore",
            Self::Ignore => ".ignore",
            Self::GitIgnore => ".gitignore",
            Self::GitExclude => ".git/info/exclude",
        })
    }
}

impl SearchTree {
    pub(crate) fn new(
        start: AbsPath,
        is_directory: bool,
        root: Option<AbsPath>,
        hidden: Option<HiddenFileFilter>,
    ) -> Self {
        Self { start, is_directory, root, hidden }
    }

    /// Where the search starts, symlinks resolved.
    pub fn start(&self) -> &AbsPath {
        &self.start
    }

    /// Whether the tree is a directory, and not a single file.
    pub fn is_directory(&self) -> bool {
        self.is_directory
    }

    /// The root of the session that the tree is in, if it is in one. Ignore files apply from there on.
    pub fn root(&self) -> Option<&AbsPath> {
        self.root.as_ref()
    }

    /// Which files in the tree are hidden; `None` if none are.
    pub fn hidden(&self) -> Option<&HiddenFileFilter> {
        self.hidden.as_ref()
    }

    /// The same tree for a search of content, where files that may hold secrets are hidden as well.
    #[must_use]
    pub fn for_content(&self) -> Self {
        Self { hidden: self.hidden.as_ref().map(HiddenFileFilter::for_content), ..self.clone() }
    }

    /// Opens a directory of the tree for listing, without following symlinks.
    pub fn open_directory(&self, path: &AbsPath) -> Result<OwnedFd, FileProblem> {
        if !is_below(path, &self.start) {
            return Err(FileProblem::NotGranted);
        }
        open_without_symlinks(path, OFlags::RDONLY | OFlags::DIRECTORY).map(|(fd, _)| fd)
    }

    /// Opens the file that the tree is, and returns its size in bytes.
    pub fn open_single_file(&self) -> Result<(File, u64), FileProblem> {
        let (file, stat) = open_regular_file(&self.start)?;
        Ok((file, u64::try_from(stat.st_size).unwrap_or(0)))
    }

    /// Opens an ignore file of a directory in the tree or above it. `None` if it does not exist or is not a regular file.
    pub fn open_ignore_file(&self, directory: &AbsPath, file: IgnoreFile) -> Option<File> {
        if !is_below(directory, &self.start) && !is_below(&self.start, directory) {
            return None;
        }
        open_regular_file(&file.path_in(directory)).ok().map(|(file, _)| file)
    }
}

/// Whether a path is `root` or below it. A `..` in either could lead out, so then it counts as not below.
fn is_below(path: &AbsPath, root: &AbsPath) -> bool {
    path.is_under(root) && *path.to_lexical() == *path && *root.to_lexical() == *root
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_outside_of_the_tree_is_opened_but_ignore_files_above_it() {
        let dir = tempfile::tempdir().unwrap();
        let top = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        std::fs::create_dir_all(top.join("tree/below")).unwrap();
        std::fs::create_dir(top.join("beside")).unwrap();
        for directory in ["", "tree", "beside"] {
            std::fs::write(top.join(directory).join(".ignore"), "x").unwrap();
        }
        let tree = SearchTree::new(top.join("tree"), true, None, None);
        for (path, opens) in
            [("tree", true), ("tree/below", true), ("", false), ("beside", false), ("tree/../beside", false)]
        {
            assert_eq!(tree.open_directory(&top.join(path)).is_ok(), opens, "{path}");
        }
        for (path, opens) in [("tree", true), ("", true), ("beside", false), ("tree/../beside", false)] {
            let opened = tree.open_ignore_file(&top.join(path), IgnoreFile::Ignore);
            assert_eq!(opened.is_some(), opens, "{path}");
        }
        assert!(tree.open_ignore_file(&top, IgnoreFile::GitIgnore).is_none());
    }
}
