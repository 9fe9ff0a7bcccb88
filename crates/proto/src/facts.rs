//! Facts about paths: what the file system says about the paths of an intent, for policy to judge.

use crate::AbsPath;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The directories in which a session works.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Workspace {
    /// The working directory of the session, symlinks resolved. Relative paths start here.
    pub cwd: AbsPath,
    /// The workspace root and the additional directories, symlinks resolved. Fixed when the session starts, so that a
    /// symlink that appears later cannot add a root.
    pub roots: Vec<AbsPath>,
    /// The home directory of the user, symlinks resolved, if there is one.
    pub home: Option<AbsPath>,
}

impl Workspace {
    /// Creates a workspace of one directory, without a home directory. Symlinks in it are resolved already.
    pub fn new(cwd: AbsPath) -> Self {
        Self { roots: vec![cwd.clone()], cwd, home: None }
    }

    /// Sets the workspace root and the additional directories, in place of the working directory alone.
    pub fn with_roots(mut self, roots: Vec<AbsPath>) -> Self {
        self.roots = roots;
        self
    }

    /// Sets the home directory.
    pub fn with_home(mut self, home: impl Into<Option<AbsPath>>) -> Self {
        self.home = home.into();
        self
    }
}

/// The facts about the paths of one intent.
#[derive(Debug, Clone, Default)]
pub struct PathFacts {
    /// Facts by the path as it was asked for.
    by_path: HashMap<AbsPath, PathFact>,
    /// The files that a shell glob matches now, by the glob; only globs of which all matches were found.
    by_glob: HashMap<String, Vec<AbsPath>>,
}

/// What a path resolves to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PathFact {
    /// The path as it was asked for, with its `..` and symlinks.
    pub asked: AbsPath,
    /// The path after every symlink and `..` is resolved as the kernel does. Of a path that does not exist yet, the
    /// deepest existing directory is resolved, and the rest is as it was spelled.
    pub real: AbsPath,
    /// Every symlink that was followed, in order.
    pub links: Vec<AbsPath>,
    /// The type of the file.
    pub kind: EntryKind,
    /// The file has more than one hard link, so that a write changes it under another name as well.
    pub hard_linked: bool,
    /// Why the path could not be resolved. Then `real` is not reliable, and the verdict is never allow.
    pub problem: Option<String>,
}

impl PathFact {
    /// Creates the fact about a path that follows no symlink and has one name.
    pub fn new(asked: AbsPath, real: AbsPath, kind: EntryKind) -> Self {
        Self { asked, real, links: Vec::new(), kind, hard_linked: false, problem: None }
    }

    /// Sets the symlinks that were followed.
    pub fn with_links(mut self, links: Vec<AbsPath>) -> Self {
        self.links = links;
        self
    }

    /// Says whether the file has more than one hard link.
    pub fn with_hard_linked(mut self, hard_linked: bool) -> Self {
        self.hard_linked = hard_linked;
        self
    }

    /// Sets why the path could not be resolved.
    pub fn with_problem(mut self, problem: impl Into<Option<String>>) -> Self {
        self.problem = problem.into();
        self
    }
}

/// The type of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A pipe, socket or device, which file tools do not open.
    Special,
    /// No file exists at this path.
    Missing,
}

impl PathFacts {
    /// Facts about no path: every path counts as unresolved.
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds the fact about one path.
    pub fn insert(&mut self, fact: PathFact) {
        self.by_path.insert(fact.asked.clone(), fact);
    }

    /// The fact about a path, as it was asked for.
    pub fn get(&self, path: &AbsPath) -> Option<&PathFact> {
        self.by_path.get(path)
    }

    /// Adds the files that an absolute shell glob matches.
    pub fn insert_glob(&mut self, glob: String, matches: Vec<AbsPath>) {
        self.by_glob.insert(glob, matches);
    }

    /// The files that a shell glob matches; `None` if they are not known.
    pub fn glob(&self, glob: &str) -> Option<&[AbsPath]> {
        self.by_glob.get(glob).map(Vec::as_slice)
    }

    /// Every fact, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &PathFact> {
        self.by_path.values()
    }
}
