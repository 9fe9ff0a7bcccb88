//! Where a path really leads.
//!
//! This is the kernel's walk done by hand, so that every link on the way can be shown and judged.
//! Removing `..` from the text first would be shorter and wrong: after a link, `..` is the parent of the target.

use crate::threads::parallel_map;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, fstat, openat2, readlinkat, statat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};
use toolgate_proto::{AbsPath, EntryKind, PathFact};

/// As many links as the kernel follows.
const MAX_SYMLINKS: usize = 40;
/// To find out about so many paths takes longer than to start threads for it.
const MIN_PARALLEL_PATHS: usize = 200;

enum PathStep {
    Root,
    Up,
    Down(OsString),
}

/// Finds out what is at a path. Never fails: what cannot be resolved says so in `problem`.
pub fn resolve(asked: &AbsPath) -> PathFact {
    resolve_tracking_parent_steps(asked).0
}

/// The same for each of several paths. Where there are many, several threads find out.
pub fn resolve_all(asked: &[AbsPath]) -> Vec<PathFact> {
    parallel_map(asked, MIN_PARALLEL_PATHS, resolve)
}

/// The same as [`resolve`], and every directory in which the way turned round at a `..`, of the path or of a link's target.
/// The answer depends on those as it does on the links, though neither the path nor the links show them.
pub fn resolve_tracking_parent_steps(asked: &AbsPath) -> (PathFact, Vec<AbsPath>) {
    let (mut links, mut turns) = (Vec::new(), Vec::new());
    let walked = resolve_by_components(asked.as_path(), &mut links, &mut turns);
    let (real, kind, hard_linked, problem) = match walked {
        Ok(ResolvedPath { real, kind, hard_linked }) => (AbsPath::new(real).ok(), kind, hard_linked, None),
        Err(problem) => (None, EntryKind::Missing, false, Some(problem)),
    };
    let real = real.unwrap_or_else(|| asked.lexical());
    (PathFact { asked: asked.clone(), real, links, kind, hard_linked, problem }, turns)
}

struct ResolvedPath {
    real: PathBuf,
    kind: EntryKind,
    hard_linked: bool,
}

fn resolve_by_components(
    path: &Path,
    links: &mut Vec<AbsPath>,
    turns: &mut Vec<AbsPath>,
) -> Result<ResolvedPath, String> {
    if let Some(walked) = resolve_with_openat2(path) {
        return Ok(walked);
    }
    let mut ahead: VecDeque<PathStep> = path_steps(path).collect();
    let mut real = PathBuf::from("/");
    let mut kind = EntryKind::Directory;
    let mut hard_linked = false;
    while let Some(step) = ahead.pop_front() {
        match step {
            PathStep::Root => {
                real = PathBuf::from("/");
                kind = EntryKind::Directory;
            }
            // `/..` is `/`, as the kernel has it.
            PathStep::Up if kind == EntryKind::Directory => {
                turns.extend(AbsPath::new(&real).ok());
                real.pop();
            }
            PathStep::Up => {
                return Err(format!("`{}` is not a directory, so `..` leads nowhere", real.display()));
            }
            PathStep::Down(name) => {
                if kind != EntryKind::Directory {
                    return Err(format!("`{}` is not a directory", real.display()));
                }
                real.push(&name);
                let stat = match statat(CWD, &real, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => stat,
                    Err(Errno::NOENT) => return append_missing(real, ahead),
                    Err(error) => return Err(format!("`{}`: {error}", real.display())),
                };
                match FileType::from_raw_mode(stat.st_mode) {
                    FileType::Symlink => {
                        if is_magic_link(&real) {
                            return Err(format!(
                                "`{}` is a link of the proc file system, which leads out of any directory",
                                real.display()
                            ));
                        }
                        if links.len() >= MAX_SYMLINKS {
                            return Err("there are too many links on the way".to_owned());
                        }
                        let target = readlinkat(CWD, &real, Vec::new())
                            .map_err(|error| format!("`{}`: {error}", real.display()))?;
                        if let Ok(link) = AbsPath::new(&real) {
                            links.push(link);
                        }
                        real.pop();
                        let target = PathBuf::from(OsString::from_vec(target.into_bytes()));
                        for next in path_steps(&target).collect::<Vec<_>>().into_iter().rev() {
                            ahead.push_front(next);
                        }
                        kind = EntryKind::Directory;
                    }
                    FileType::Directory => kind = EntryKind::Directory,
                    FileType::RegularFile => {
                        kind = EntryKind::File;
                        hard_linked = stat.st_nlink > 1;
                    }
                    _ => kind = EntryKind::Special,
                }
            }
        }
    }
    Ok(ResolvedPath { real, kind, hard_linked: hard_linked && kind == EntryKind::File })
}

/// A path that exists and on which there is no link and no `..`, as most are: the kernel walks it in one step.
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
    // Written anew, because `a//b` and `a/./b` are `a/b`.
    Some(ResolvedPath { real: path.components().collect(), kind, hard_linked })
}

/// The rest of a path below something that does not exist yet.
fn append_missing(mut real: PathBuf, rest: VecDeque<PathStep>) -> Result<ResolvedPath, String> {
    for step in rest {
        match step {
            PathStep::Down(name) => real.push(name),
            PathStep::Up | PathStep::Root => {
                return Err(format!("`{}` does not exist, so `..` leads nowhere", real.display()));
            }
        }
    }
    Ok(ResolvedPath { real, kind: EntryKind::Missing, hard_linked: false })
}

fn path_steps(path: &Path) -> impl Iterator<Item = PathStep> + '_ {
    path.components().filter_map(|component| match component {
        Component::RootDir => Some(PathStep::Root),
        Component::ParentDir => Some(PathStep::Up),
        Component::Normal(name) => Some(PathStep::Down(name.to_owned())),
        Component::CurDir | Component::Prefix(_) => None,
    })
}

/// Links such as `/proc/self/root` and `/proc/1/fd/3` lead where their text does not say.
/// `/proc/self` and `/proc/mounts` are ordinary ones.
fn is_magic_link(link: &Path) -> bool {
    let mut below = match link.strip_prefix("/proc") {
        Ok(rest) => rest.components(),
        Err(_) => return false,
    };
    below.next().is_some() && below.next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn real(path: &Path) -> PathFact {
        resolve(&AbsPath::new(path).unwrap())
    }

    #[test]
    fn links_are_followed_shown_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("a/b")).unwrap();
        std::fs::write(top.join("a/file"), "x").unwrap();
        symlink(top.join("a/b"), top.join("to_b")).unwrap();
        symlink("loop", top.join("loop")).unwrap();

        let fact = real(&top.join("to_b/../file"));
        assert_eq!(fact.real.as_path(), top.join("a/file"), "`..` after a link is the target's parent");
        assert_eq!(fact.links, [AbsPath::new(top.join("to_b")).unwrap()]);
        assert_eq!(fact.kind, EntryKind::File);
        let (same, turns) = resolve_tracking_parent_steps(&AbsPath::new(top.join("to_b/../file")).unwrap());
        assert_eq!((same, turns), (fact, vec![AbsPath::new(top.join("a/b")).unwrap()]));

        assert_eq!(real(&top.join("new/x")).real.as_path(), top.join("new/x"));
        assert_eq!(real(&top.join("to_b/new")).real.as_path(), top.join("a/b/new"));
        assert!(real(&top.join("loop")).problem.unwrap().contains("too many links"));
        assert!(real(&top.join("a/file/x")).problem.unwrap().contains("not a directory"));
        assert!(real(&top.join("new/../x")).problem.unwrap().contains("does not exist"));
    }

    #[test]
    fn proc_magic_is_refused_and_plain_proc_is_not() {
        assert!(real(Path::new("/proc/self/root/etc/hosts")).problem.unwrap().contains("proc file system"));
        assert!(real(Path::new("/proc/self/cwd")).problem.is_some());
        assert_eq!(real(Path::new("/proc/self/status")).problem, None);
    }

    #[test]
    fn pipes_and_devices_are_special() {
        assert_eq!(real(Path::new("/dev/null")).kind, EntryKind::Special);
    }
}
