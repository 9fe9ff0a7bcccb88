//! Ignore files: which of them apply in a directory, and what they say about an entry.
//!
//! The precedence is ripgrep's: `.rgignore` before `.ignore` before `.gitignore` before `.git/info/exclude`, and within
//! each kind the nearest directory first.
//! `.gitignore` applies outside of a git repository as well.
//! Two files that git reads are not read, because they are outside of the tree: the user's global `core.excludesFile`,
//! and the exclude file of a repository whose `.git` is a file that points elsewhere.
//! An ignore file is read through the file descriptor of its directory; a symlink or special file in its place is
//! skipped.

use crate::directory::{WalkDirectory, as_path};
use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};
use rustix::fs::{AtFlags, CWD, statat};
use std::ffi::CStr;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;
use toolgate_files::{IgnoreFile, SearchTree};
use toolgate_proto::AbsPath;

/// How much of an ignore file is read.
const MAX_IGNORE_FILE_BYTES: u64 = 1024 * 1024;
/// How many kinds of ignore files there are.
const IGNORE_KIND_COUNT: usize = IgnoreFile::ALL.len();

/// The ignore files of one directory, with those of the directories above it.
#[derive(Debug)]
pub(crate) struct IgnoreRules {
    /// The rules of the nearest directory above that has any.
    above: Option<Arc<IgnoreRules>>,
    /// Length of the prefix that is removed from an absolute path to get a path relative to this directory.
    prefix_len: usize,
    /// The rules of each kind, in the order of [`IgnoreFile::ALL`].
    kinds: [Gitignore; IGNORE_KIND_COUNT],
}

/// What the ignore files say about an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IgnoreDecision {
    /// No line matches.
    Unmatched,
    /// The entry is to be ignored.
    Ignore,
    /// A line with `!` takes the entry back in.
    Include,
}

impl IgnoreRules {
    /// The rules of the directories above the start of a search, up to the root of its git repository.
    pub(crate) fn of_ancestors(tree: &SearchTree) -> Option<Arc<Self>> {
        let top = find_ignore_root(tree.root().unwrap_or(tree.start()));
        let mut ancestors: Vec<AbsPath> = Vec::new();
        let mut next = tree.start().parent();
        while let Some(directory) = next.filter(|directory| directory.is_under(&top)) {
            next = directory.parent();
            ancestors.push(directory);
        }
        ancestors.iter().rev().fold(None, |above, directory| {
            let separator_len = usize::from(directory.parent().is_some());
            let prefix_len = directory.as_path().as_os_str().len() + separator_len;
            Self::extend(above, prefix_len, |file| tree.open_ignore_file(directory, file))
        })
    }

    /// The rules of a directory that has been listed, on top of those that it inherits.
    pub(crate) fn of(directory: &WalkDirectory<'_>) -> Option<Arc<Self>> {
        let above = directory.rules.clone();
        if !directory.names.has_ignore_files() {
            return above;
        }
        Self::extend(above, directory.path().len(), |file| match file {
            IgnoreFile::RgIgnore | IgnoreFile::Ignore | IgnoreFile::GitIgnore => {
                directory.open_file(file.entry_name()).ok().map(|(file, _)| file)
            }
            IgnoreFile::GitExclude => {
                let path = AbsPath::new(as_path(directory.path())).ok()?;
                directory.tree().open_ignore_file(&path, file)
            }
        })
    }

    /// Adds a directory's rules to those above; returns those above if it has none.
    fn extend(
        above: Option<Arc<Self>>,
        prefix_len: usize,
        open: impl Fn(IgnoreFile) -> Option<File>,
    ) -> Option<Arc<Self>> {
        let kinds = IgnoreFile::ALL.map(|file| open(file).map_or_else(Gitignore::empty, parse_ignore_file));
        if kinds.iter().all(Gitignore::is_empty) {
            return above;
        }
        Some(Arc::new(Self { above, prefix_len, kinds }))
    }

    /// What these rules and those above say about an absolute path.
    pub(crate) fn decide(&self, path: &[u8], is_dir: bool) -> IgnoreDecision {
        let mut decisions = [IgnoreDecision::Unmatched; IGNORE_KIND_COUNT];
        let mut next = Some(self);
        while let Some(rules) = next {
            let relative = as_path(path.get(rules.prefix_len..).unwrap_or_default());
            for (decision, kind) in decisions.iter_mut().zip(&rules.kinds) {
                if *decision == IgnoreDecision::Unmatched && !kind.is_empty() {
                    *decision = match kind.matched(relative, is_dir) {
                        Match::None => IgnoreDecision::Unmatched,
                        Match::Ignore(_) => IgnoreDecision::Ignore,
                        Match::Whitelist(_) => IgnoreDecision::Include,
                    };
                }
            }
            next = rules.above.as_deref();
        }
        let matched = decisions.into_iter().find(|decision| *decision != IgnoreDecision::Unmatched);
        matched.unwrap_or(IgnoreDecision::Unmatched)
    }
}

/// Whether an entry of this name is an ignore file, or a directory that may contain one.
pub(crate) fn affects_ignore_rules(name: &CStr) -> bool {
    name.to_bytes().first() == Some(&b'.') && IgnoreFile::ALL.iter().any(|file| file.entry_name() == name)
}

/// The topmost directory whose ignore files apply: the root of the git repository that contains `base`, or `base` if
/// there is none.
fn find_ignore_root(base: &AbsPath) -> AbsPath {
    let mut next = Some(base.clone());
    while let Some(directory) = next {
        if statat(CWD, directory.join(".git").as_path(), AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            return directory;
        }
        next = directory.parent();
    }
    base.clone()
}

/// Parses an ignore file. An invalid line is skipped, as in git.
fn parse_ignore_file(file: File) -> Gitignore {
    // Paths are matched relative to the directory of the file, so the root of the matcher is empty.
    let mut builder = GitignoreBuilder::new("");
    for (index, line) in BufReader::new(file.take(MAX_IGNORE_FILE_BYTES)).lines().enumerate() {
        let Ok(line) = line else { break };
        let line = if index == 0 { line.trim_start_matches('\u{feff}') } else { &line };
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
