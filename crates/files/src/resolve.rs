//! Path resolution: which file a path names once every symlink on it is followed.
//!
//! [`resolve`] does in user space what the kernel does at an open, because the kernel reports only the outcome, while
//! policy judges every symlink on the path as well.
//! Removing `..` from the text first would be shorter and wrong: after a symlink, `..` is the parent of its target.

use crate::threads::parallel_map;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2, readlinkat, statat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};
use toolgate_proto::{AbsPath, EntryKind, PathFact};

/// How many symlinks may be on one path: the limit of Linux, past which the kernel fails with `ELOOP`.
const MAX_SYMLINKS: usize = 40;
/// With fewer paths, starting threads takes longer than resolving them on one thread.
const MIN_PARALLEL_PATHS: usize = 200;

/// Resolves a path, symlinks and `..` included. A path that cannot be resolved has the reason in
/// [`PathFact::problem`].
pub fn resolve(asked: &AbsPath) -> PathFact {
    resolve_tracking_parent_steps(asked).0
}

/// Resolves several paths, on several threads if there are many.
pub fn resolve_all(asked: &[AbsPath]) -> Vec<PathFact> {
    parallel_map(asked, MIN_PARALLEL_PATHS, resolve)
}

/// Resolves a path like [`resolve`], and also returns every directory that a `..` of the path or of a symlink's target
/// was applied to. The result depends on these directories as it does on the symlinks, though [`PathFact`] shows only
/// the latter.
pub fn resolve_tracking_parent_steps(asked: &AbsPath) -> (PathFact, Vec<AbsPath>) {
    let (resolved, links, parent_steps) = match resolve_with_openat2(asked.as_path()) {
        Some(resolved) => (Ok(resolved), Vec::new(), Vec::new()),
        None => {
            let mut resolver = PathResolver::new(asked.as_path());
            (resolver.run(), resolver.symlinks, resolver.parent_steps)
        }
    };
    let (real, kind, hard_linked, problem) = match resolved {
        Ok(ResolvedPath { real, kind, hard_linked }) => (AbsPath::new(real).ok(), kind, hard_linked, None),
        Err(problem) => (None, EntryKind::Missing, false, Some(problem)),
    };
    let real = real.unwrap_or_else(|| asked.lexical());
    (
        PathFact::new(asked.clone(), real, kind)
            .with_links(links)
            .with_hard_linked(hard_linked)
            .with_problem(problem),
        parent_steps,
    )
}

/// What a path resolved to.
struct ResolvedPath {
    /// The path without symlinks and `..`.
    real: PathBuf,
    /// What is there.
    kind: EntryKind,
    /// Whether it is a regular file with more than one name.
    hard_linked: bool,
}

/// One component of a path that is still to be resolved.
enum PathStep {
    /// Back to `/`: the start of an absolute path, or of an absolute symlink target.
    Root,
    /// `..`.
    Up,
    /// Into the entry of this name.
    Down(OsString),
}

/// The state of one resolution: what is resolved so far, and what is still to do.
struct PathResolver {
    /// Components that are still to be resolved; the target of a symlink is put in front.
    pending: VecDeque<PathStep>,
    /// The path so far, without symlinks.
    real: PathBuf,
    /// What is at `real`.
    kind: EntryKind,
    /// Whether the last regular file seen has more than one name.
    hard_linked: bool,
    /// Every symlink that was followed, in order.
    symlinks: Vec<AbsPath>,
    /// Every directory that was left by `..`.
    parent_steps: Vec<AbsPath>,
}

impl PathResolver {
    fn new(path: &Path) -> Self {
        Self {
            pending: path_steps(path).collect(),
            real: PathBuf::from("/"),
            kind: EntryKind::Directory,
            hard_linked: false,
            symlinks: Vec::new(),
            parent_steps: Vec::new(),
        }
    }

    /// Resolves every pending component. The error is the reason, for [`PathFact::problem`].
    fn run(&mut self) -> Result<ResolvedPath, String> {
        while let Some(step) = self.pending.pop_front() {
            match step {
                PathStep::Root => {
                    self.real = PathBuf::from("/");
                    self.kind = EntryKind::Directory;
                }
                // The kernel resolves `/..` to `/`, and `PathBuf::pop` does the same.
                PathStep::Up if self.kind == EntryKind::Directory => {
                    self.parent_steps.extend(AbsPath::new(&self.real).ok());
                    self.real.pop();
                }
                PathStep::Up => {
                    return Err(format!(
                        "`{}` is not a directory, so the `..` after it cannot be resolved",
                        self.real.display()
                    ));
                }
                PathStep::Down(name) => {
                    if let Some(missing) = self.enter(name)? {
                        return Ok(missing);
                    }
                }
            }
        }
        let hard_linked = self.hard_linked && self.kind == EntryKind::File;
        Ok(ResolvedPath { real: std::mem::take(&mut self.real), kind: self.kind, hard_linked })
    }

    /// Resolves one name in the current directory. A result means that nothing exists there, which ends the resolution.
    fn enter(&mut self, name: OsString) -> Result<Option<ResolvedPath>, String> {
        if self.kind != EntryKind::Directory {
            return Err(format!("`{}` is not a directory", self.real.display()));
        }
        self.real.push(&name);
        let stat = match statat(CWD, &self.real, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return self.append_missing().map(Some),
            Err(error) => return Err(format!("`{}`: {error}", self.real.display())),
        };
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => self.follow_symlink()?,
            FileType::Directory => self.kind = EntryKind::Directory,
            FileType::RegularFile => {
                self.kind = EntryKind::File;
                self.hard_linked = stat.st_nlink > 1;
            }
            _ => self.kind = EntryKind::Special,
        }
        Ok(None)
    }

    /// Replaces the symlink at `real` by its target: back to its directory, with the target's components to do next.
    fn follow_symlink(&mut self) -> Result<(), String> {
        if is_magic_link(&self.real) {
            return Err(format!(
                "`{}` is a magic link of the proc file system, which refers to an open file and not to a path",
                self.real.display()
            ));
        }
        if self.symlinks.len() >= MAX_SYMLINKS {
            return Err(format!("there are too many symlinks on the path (more than {MAX_SYMLINKS})"));
        }
        let target = readlinkat(CWD, &self.real, Vec::new())
            .map_err(|error| format!("`{}`: {error}", self.real.display()))?;
        self.symlinks.extend(AbsPath::new(&self.real).ok());
        self.real.pop();
        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
        for next in path_steps(&target).collect::<Vec<_>>().into_iter().rev() {
            self.pending.push_front(next);
        }
        self.kind = EntryKind::Directory;
        Ok(())
    }

    /// Appends the rest of a path below something that does not exist yet, as it is spelled.
    fn append_missing(&mut self) -> Result<ResolvedPath, String> {
        let mut real = std::mem::take(&mut self.real);
        for step in std::mem::take(&mut self.pending) {
            match step {
                PathStep::Down(name) => real.push(name),
                PathStep::Up | PathStep::Root => {
                    return Err(format!(
                        "`{}` does not exist, so the `..` after it cannot be resolved",
                        real.display()
                    ));
                }
            }
        }
        Ok(ResolvedPath { real, kind: EntryKind::Missing, hard_linked: false })
    }
}

/// Resolves a path that exists and has no symlink and no `..` on it, as most have none, in one system call. `None`
/// leaves it to [`PathResolver`].
fn resolve_with_openat2(path: &Path) -> Option<ResolvedPath> {
    if path.components().any(|component| component == Component::ParentDir) {
        return None;
    }
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let fd = openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve).ok()?;
    let stat = fstat(&fd).ok()?;
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => EntryKind::Directory,
        FileType::RegularFile => EntryKind::File,
        FileType::Symlink => return None,
        _ => EntryKind::Special,
    };
    let hard_linked = kind == EntryKind::File && stat.st_nlink > 1;
    // Collected from its components, because `a//b` and `a/./b` are `a/b`.
    Some(ResolvedPath { real: path.components().collect(), kind, hard_linked })
}

/// The components of a path that resolution has to follow.
fn path_steps(path: &Path) -> impl Iterator<Item = PathStep> + '_ {
    path.components().filter_map(|component| match component {
        Component::RootDir => Some(PathStep::Root),
        Component::ParentDir => Some(PathStep::Up),
        Component::Normal(name) => Some(PathStep::Down(name.to_owned())),
        Component::CurDir | Component::Prefix(_) => None,
    })
}

/// Whether a symlink is one of the kernel's magic links, such as `/proc/self/root` and `/proc/1/fd/3`: they refer to
/// an open file and not to the path that `readlink` returns. `/proc/self` and `/proc/mounts` are ordinary symlinks.
fn is_magic_link(symlink: &Path) -> bool {
    let mut below = match symlink.strip_prefix("/proc") {
        Ok(rest) => rest.components(),
        Err(_) => return false,
    };
    below.next().is_some() && below.next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn resolve_path(path: &Path) -> PathFact {
        resolve(&AbsPath::new(path).unwrap())
    }

    #[test]
    fn symlinks_are_followed_reported_and_limited() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("a/b")).unwrap();
        std::fs::write(top.join("a/file"), "x").unwrap();
        symlink(top.join("a/b"), top.join("to_b")).unwrap();
        symlink("loop", top.join("loop")).unwrap();

        let fact = resolve_path(&top.join("to_b/../file"));
        assert_eq!(fact.real.as_path(), top.join("a/file"), "`..` after a symlink is the target's parent");
        assert_eq!(fact.links, [AbsPath::new(top.join("to_b")).unwrap()]);
        assert_eq!(fact.kind, EntryKind::File);
        let (same, parent_steps) =
            resolve_tracking_parent_steps(&AbsPath::new(top.join("to_b/../file")).unwrap());
        assert_eq!((same, parent_steps), (fact, vec![AbsPath::new(top.join("a/b")).unwrap()]));

        assert_eq!(resolve_path(&top.join("new/x")).real.as_path(), top.join("new/x"));
        assert_eq!(resolve_path(&top.join("to_b/new")).real.as_path(), top.join("a/b/new"));
        assert!(resolve_path(&top.join("loop")).problem.unwrap().contains("too many symlinks"));
        assert!(resolve_path(&top.join("a/file/x")).problem.unwrap().contains("not a directory"));
        assert!(resolve_path(&top.join("new/../x")).problem.unwrap().contains("does not exist"));
    }

    #[test]
    fn magic_links_of_proc_are_refused_and_ordinary_symlinks_of_proc_are_followed() {
        let fact = resolve_path(Path::new("/proc/self/root/etc/hosts"));
        assert!(fact.problem.unwrap().contains("proc file system"));
        assert!(resolve_path(Path::new("/proc/self/cwd")).problem.is_some());
        assert_eq!(resolve_path(Path::new("/proc/self/status")).problem, None);
    }

    #[test]
    fn pipes_and_devices_are_special() {
        assert_eq!(resolve_path(Path::new("/dev/null")).kind, EntryKind::Special);
    }
}
