//! The layout of a repository, and whether all of it is in the workspace.
//!
//! A `.git` file, a `commondir`, a symlink, an alternate object store or `core.worktree` can make git show files outside
//! the workspace. Directories outside are accepted only if they point back: a linked worktree that the main repository
//! lists, or a submodule inside its superproject.

use super::query::{GitConfigEntry, MAX_CONFIG_BYTES};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use toolgate_proto::AbsPath;

/// The most bytes of a file that contains one path.
const MAX_POINTER_BYTES: u64 = 8 << 10;

/// The most entries of a git directory that are checked for symlinks.
const MAX_ENTRIES: usize = 20_000;

/// The most alternate object stores.
const MAX_ALTERNATES: usize = 8;

/// A repository, by its real paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GitRepository {
    /// The directory that contains `.git`.
    pub(super) top: AbsPath,
    /// The git directory, with `HEAD` and the index.
    pub(super) git_dir: AbsPath,
    /// The common git directory, with objects, references and configuration; differs in a linked worktree.
    pub(super) common_dir: AbsPath,
    /// `.git` is a file.
    gitfile: bool,
}

impl GitRepository {
    /// The repository that git would find from a directory; `Err` is the reason if that is ambiguous.
    pub(super) fn discover(cwd: &AbsPath) -> Result<Option<Self>, String> {
        let mut above = Some(cwd.clone());
        while let Some(dir) = above {
            let dot_git = dir.join(".git");
            if let Ok(found) = fs::metadata(&dot_git) {
                if found.is_file() {
                    let pointed = read_pointer(&dot_git)
                        .and_then(|text| text.strip_prefix("gitdir:").map(str::trim).map(PathBuf::from))
                        .and_then(|path| canonicalize(&dir.as_path().join(path)));
                    let Some(git_dir) = pointed else {
                        return Err(format!("the file `{dot_git}` points to no repository"));
                    };
                    return Self::from_dirs(dir, git_dir, true).map(Some);
                }
                if found.is_dir()
                    && fs::symlink_metadata(dot_git.join("HEAD")).is_ok()
                    && let Some(git_dir) = canonicalize(dot_git.as_path())
                {
                    return Self::from_dirs(dir, git_dir, false).map(Some);
                }
            }
            // `safe.bareRepository=explicit` makes git ignore a bare repository.
            if fs::symlink_metadata(dir.join("HEAD")).is_ok() && dir.join("objects").as_path().is_dir() {
                return Ok(None);
            }
            above = dir.parent();
        }
        Ok(None)
    }

    /// Resolves `commondir` of a git directory.
    fn from_dirs(top: AbsPath, git_dir: AbsPath, gitfile: bool) -> Result<Self, String> {
        let pointer = git_dir.join("commondir");
        let common_dir = if fs::symlink_metadata(&pointer).is_ok() {
            read_pointer(&pointer)
                .and_then(|text| canonicalize(&git_dir.as_path().join(text.trim_end())))
                .ok_or_else(|| format!("`{pointer}` points to no directory"))?
        } else {
            git_dir.clone()
        };
        Ok(Self { top, git_dir, common_dir, gitfile })
    }

    /// Whether a path is in the workspace or in the repository.
    fn contains(&self, path: &AbsPath, roots: &[AbsPath]) -> bool {
        roots.iter().chain([&self.git_dir, &self.common_dir]).any(|root| path.is_under(root))
    }

    /// Why git would read files outside the workspace because of the repository's layout; `None` if it would not.
    pub(super) fn layout_problem(&self, roots: &[AbsPath]) -> Option<String> {
        let inside = |path: &AbsPath| roots.iter().any(|root| path.is_under(root));
        if !inside(&self.top) {
            return Some(format!("the repository `{}` is not inside the workspace", self.top));
        }
        if !inside(&self.git_dir) && !self.is_linked_worktree() && !self.is_submodule() {
            return Some(format!("`{}/.git` points outside the workspace", self.top));
        }
        let main = self.git_dir.parent().and_then(|dir| dir.parent());
        let linked = self.is_linked_worktree() && main.as_ref() == Some(&self.common_dir);
        if self.common_dir != self.git_dir && !inside(&self.common_dir) && !linked {
            return Some(format!("`{}/commondir` points outside the workspace", self.git_dir));
        }
        for config in [self.common_dir.join("config"), self.git_dir.join("config.worktree")] {
            if let Ok(found) = fs::metadata(&config)
                && (!found.is_file() || found.len() > MAX_CONFIG_BYTES)
            {
                return Some(format!("`{config}` is not a file, or too large to check"));
            }
        }
        self.find_outside_symlink(roots).or_else(|| self.find_outside_alternate(roots))
    }

    /// Whether the main repository lists this worktree: its entry points back to the `.git` file here.
    fn is_linked_worktree(&self) -> bool {
        let back = read_pointer(&self.git_dir.join("gitdir"))
            .and_then(|text| canonicalize(&self.git_dir.as_path().join(text.trim_end())));
        let named = self.git_dir.parent().is_some_and(|dir| dir.as_path().ends_with("worktrees"));
        self.gitfile && named && back == canonicalize(self.top.join(".git").as_path())
    }

    /// Whether the git directory is among the modules of a superproject that contains this work tree.
    fn is_submodule(&self) -> bool {
        let mut above = self.git_dir.parent();
        while let Some(dir) = above {
            if dir.as_path().ends_with(".git/modules")
                && let Some(superproject) = dir.parent().and_then(|git| git.parent())
            {
                return self.gitfile && self.top != superproject && self.top.is_under(&superproject);
            }
            above = dir.parent();
        }
        false
    }

    /// Finds a symlink in the git directory that points outside: git would follow it to objects or configuration.
    fn find_outside_symlink(&self, roots: &[AbsPath]) -> Option<String> {
        let directories = [
            self.git_dir.clone(),
            self.common_dir.clone(),
            self.git_dir.join("info"),
            self.common_dir.join("info"),
            self.common_dir.join("objects"),
            self.common_dir.join("objects/info"),
            self.common_dir.join("objects/pack"),
        ];
        let mut seen = 0;
        for directory in directories {
            let Ok(entries) = fs::read_dir(&directory) else { continue };
            for entry in entries.flatten() {
                seen += 1;
                if seen > MAX_ENTRIES {
                    return Some(format!("`{directory}` has too many entries to check"));
                }
                let is_symlink = entry.file_type().is_ok_and(|kind| kind.is_symlink());
                if is_symlink && canonicalize(&entry.path()).is_none_or(|real| !self.contains(&real, roots)) {
                    return Some(format!("`{}` points outside the repository", entry.path().display()));
                }
            }
        }
        None
    }

    /// Finds an alternate object store outside: git would show objects of another repository.
    fn find_outside_alternate(&self, roots: &[AbsPath]) -> Option<String> {
        let mut stores = vec![self.common_dir.join("objects")];
        let mut at = 0;
        while let Some(store) = stores.get(at).cloned() {
            at += 1;
            let list = store.join("info/alternates");
            if fs::symlink_metadata(&list).is_err() {
                continue;
            }
            let Some(text) = read_pointer(&list) else {
                return Some(format!("`{list}` cannot be read"));
            };
            for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
                let Some(borrowed) = canonicalize(&store.as_path().join(line)) else {
                    return Some(format!("`{list}` names an object store that cannot be found"));
                };
                if !self.contains(&borrowed, roots) || stores.len() >= MAX_ALTERNATES {
                    return Some(format!("`{list}` borrows objects from outside the workspace"));
                }
                if !stores.contains(&borrowed) {
                    stores.push(borrowed);
                }
            }
        }
        None
    }

    /// Why git would read files outside the workspace because of the configuration; `None` if it would not.
    pub(super) fn config_problem(&self, rows: &[GitConfigEntry], roots: &[AbsPath]) -> Option<String> {
        let points_back = rows.iter().any(|row| row.of_repository && row.key() == "core.worktree");
        let inside = roots.iter().any(|root| self.git_dir.is_under(root));
        if !inside && !self.is_linked_worktree() && !points_back {
            return Some(format!("`{}` does not point back to `{}`", self.git_dir, self.top));
        }
        for row in rows.iter().filter(|row| row.of_repository) {
            let file = row.origin.strip_prefix("file:").map(|file| self.top.as_path().join(file));
            if file.and_then(|file| canonicalize(&file)).is_none_or(|file| !self.contains(&file, roots)) {
                return Some(format!("the configuration includes `{}`, outside the workspace", row.origin));
            }
            // git reads every file of this multi-valued key, so that an override cannot remove one.
            if row.key() == "blame.ignorerevsfile" {
                let file = canonicalize(&self.top.as_path().join(&row.value));
                if row.value.starts_with('~') || file.is_some_and(|file| !self.contains(&file, roots)) {
                    return Some(format!("`blame.ignoreRevsFile` points to `{}`", row.value));
                }
            }
            if row.key() == "core.worktree" {
                let worktree = canonicalize(&self.git_dir.as_path().join(&row.value));
                if worktree.as_ref() != Some(&self.top) {
                    return Some(format!("`core.worktree` points to `{}`", row.value));
                }
            }
        }
        None
    }

    /// A directory of the index that was replaced by a symlink to a directory outside: `git grep` follows it.
    /// `names` is the output of `git ls-files -z --full-name`.
    pub(super) fn find_followed_symlink(&self, names: &[u8], roots: &[AbsPath]) -> Option<PathBuf> {
        let mut known: HashSet<&[u8]> = HashSet::new();
        for name in names.split(|byte| *byte == 0) {
            let slashes = name.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
            for directory in slashes.filter_map(|at| name.get(..at)) {
                if !known.insert(directory) {
                    continue;
                }
                let path = self.top.as_path().join(OsStr::from_bytes(directory));
                let is_symlink = fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink());
                if is_symlink && canonicalize(&path).is_none_or(|real| !self.contains(&real, roots)) {
                    return Some(path);
                }
            }
        }
        None
    }

    /// Whether the user owns the repository, as git checks it.
    pub(super) fn is_owned(&self) -> bool {
        let user = rustix::process::geteuid().as_raw();
        let owned = |path: &AbsPath| fs::symlink_metadata(path).is_ok_and(|found| found.uid() == user);
        owned(&self.top) && owned(&self.git_dir) && owned(&self.top.join(".git"))
    }

    /// The git directories outside the workspace, which git needs to read.
    pub(super) fn outside_paths(&self, roots: &[AbsPath]) -> Vec<AbsPath> {
        let mut out: Vec<AbsPath> = Vec::new();
        for dir in [&self.common_dir, &self.git_dir] {
            if !roots.iter().chain(&out).any(|root| dir.is_under(root)) {
                out.push(dir.clone());
            }
        }
        out
    }
}

/// The real path, if it exists.
pub(super) fn canonicalize(path: &Path) -> Option<AbsPath> {
    AbsPath::new(fs::canonicalize(path).ok()?).ok()
}

/// A small text file.
fn read_pointer(path: &AbsPath) -> Option<String> {
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    let file = fs::File::open(path).ok()?;
    let read = file.take(MAX_POINTER_BYTES + 1).read_to_string(&mut text).ok()?;
    (read as u64 <= MAX_POINTER_BYTES).then_some(text)
}
