//! Which ignore files count in a directory, and what they say.
//!
//! The order is ripgrep's: `.rgignore` before `.ignore` before `.gitignore` before `.git/info/exclude`, and within
//! each kind the nearest directory first.
//! `.gitignore` counts outside of a repository as well.
//! Two files that git knows do not count, because they lie outside of the tree: the person's global one, and the
//! exclude file of a repository whose `.git` is a file that points elsewhere.
//! An ignore file is read from the handle of its directory; one that is a link or no regular file does not count.

use crate::directory::{WalkDirectory, as_path};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{AtFlags, CWD, OFlags, statat};
use std::ffi::CStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;
use toolgate_files::unchecked::open_without_symlinks;
use toolgate_proto::AbsPath;

/// More of an ignore file is not read.
const MAX_IGNORE_FILE_BYTES: u64 = 1024 * 1024;
/// Strongest first.
const IGNORE_FILE_NAMES: [&CStr; 3] = [c".rgignore", c".ignore", c".gitignore"];
const GIT_EXCLUDE_PATH: [&CStr; 3] = [c".git", c"info", c"exclude"];
const IGNORE_KIND_COUNT: usize = IGNORE_FILE_NAMES.len() + 1;

/// The ignore files of one directory, on top of those above it.
#[derive(Debug)]
pub(crate) struct IgnoreRules {
    above: Option<Arc<IgnoreRules>>,
    /// Where in an absolute path the part begins that these files speak of.
    from: usize,
    kinds: [Gitignore; IGNORE_KIND_COUNT],
}

/// What the ignore files say about an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IgnoreDecision {
    Unmatched,
    Ignore,
    Include,
}

impl IgnoreRules {
    /// The rules of the directories above where a walk starts, from `top` down.
    pub(crate) fn of_ancestors(start: &AbsPath, top: &AbsPath) -> Option<Arc<Self>> {
        let mut way: Vec<AbsPath> = Vec::new();
        let mut at = start.parent();
        while let Some(directory) = at.filter(|directory| directory.is_under(top)) {
            at = directory.parent();
            way.push(directory);
        }
        way.iter().rev().fold(None, |above, directory| {
            let read = |names: &[&CStr]| {
                let names = names.iter().map(|name| as_path(name.to_bytes()));
                let path = names.fold(directory.clone(), |path, name| path.join(name));
                open_without_symlinks(&path, OFlags::RDONLY).ok().map(|(handle, _)| File::from(handle))
            };
            let from = directory.as_path().as_os_str().len() + usize::from(directory.parent().is_some());
            Self::extend(above, from, read)
        })
    }

    /// The rules in a directory whose entries are known.
    pub(crate) fn of(directory: &WalkDirectory) -> Option<Arc<Self>> {
        let above = directory.rules.clone();
        if !directory.names.has_ignore_files() {
            return above;
        }
        Self::extend(above, directory.path().len(), |names| match names {
            [name] => directory.open_file(name).ok().map(|(file, _)| file),
            names => {
                let path = names.iter().fold(AbsPath::new(as_path(directory.path())).ok()?, |path, name| {
                    path.join(as_path(name.to_bytes()))
                });
                open_without_symlinks(&path, OFlags::RDONLY).ok().map(|(handle, _)| File::from(handle))
            }
        })
    }

    fn extend(
        above: Option<Arc<Self>>,
        from: usize,
        read: impl Fn(&[&CStr]) -> Option<File>,
    ) -> Option<Arc<Self>> {
        let [custom, ignore, git] =
            IGNORE_FILE_NAMES.map(|name| read(&[name]).map_or_else(Gitignore::empty, parse_ignore_file));
        let exclude = read(&GIT_EXCLUDE_PATH).map_or_else(Gitignore::empty, parse_ignore_file);
        let kinds = [custom, ignore, git, exclude];
        if kinds.iter().all(Gitignore::is_empty) {
            return above;
        }
        Some(Arc::new(Self { above, from, kinds }))
    }

    /// What these rules and those above say about an absolute path.
    pub(crate) fn decide(&self, path: &[u8], is_dir: bool) -> IgnoreDecision {
        let mut said = [IgnoreDecision::Unmatched; IGNORE_KIND_COUNT];
        let mut at = Some(self);
        while let Some(rules) = at {
            let relative = as_path(path.get(rules.from..).unwrap_or_default());
            for (said, kind) in said.iter_mut().zip(&rules.kinds) {
                if *said == IgnoreDecision::Unmatched && !kind.is_empty() {
                    *said = match kind.matched(relative, is_dir) {
                        Match::None => IgnoreDecision::Unmatched,
                        Match::Ignore(_) => IgnoreDecision::Ignore,
                        Match::Whitelist(_) => IgnoreDecision::Include,
                    };
                }
            }
            at = rules.above.as_deref();
        }
        said.into_iter().find(|said| *said != IgnoreDecision::Unmatched).unwrap_or(IgnoreDecision::Unmatched)
    }
}

/// Whether an entry of this name is an ignore file, or may hold one.
pub(crate) fn affects_ignore_rules(name: &CStr) -> bool {
    name.to_bytes().first() == Some(&b'.')
        && IGNORE_FILE_NAMES.iter().chain(GIT_EXCLUDE_PATH.iter().take(1)).any(|file| *file == name)
}

/// How far up ignore files count: to the top of the repository that holds `base`, or to `base` where there is none.
pub(crate) fn find_ignore_root(base: &AbsPath) -> AbsPath {
    let mut at = Some(base.clone());
    while let Some(directory) = at {
        if statat(CWD, directory.join(".git").as_path(), AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            return directory;
        }
        at = directory.parent();
    }
    base.clone()
}

/// A line that cannot be used is left out and the others count, as in git.
fn parse_ignore_file(file: File) -> Gitignore {
    // Paths are handed in relative to the directory of the file, so the root is empty.
    let mut builder = GitignoreBuilder::new("");
    if !file.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Gitignore::empty();
    }
    for (index, line) in BufReader::new(file.take(MAX_IGNORE_FILE_BYTES)).lines().enumerate() {
        let Ok(line) = line else { break };
        let line = if index == 0 { line.trim_start_matches('\u{feff}') } else { &line };
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
