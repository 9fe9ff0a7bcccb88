//! What os found out about the paths of an intent, for policy to judge by.

use crate::AbsPath;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Where a session may work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Workspace {
    /// The working directory of the session, links resolved. Relative paths are seen from here.
    pub cwd: AbsPath,
    /// The workspace root and the additional directories, links resolved. Fixed when the session starts.
    pub roots: Vec<AbsPath>,
    /// The person's home directory, links resolved, where there is one.
    pub home: Option<AbsPath>,
}

/// The facts about the paths of one intent.
#[derive(Debug, Clone, Default)]
pub struct PathFacts {
    by_path: HashMap<AbsPath, PathFact>,
    /// The files that a shell pattern names now, where all of them were found.
    by_glob: HashMap<String, Vec<AbsPath>>,
}

/// What is really at a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathFact {
    /// The path as it was asked for, `..` and links and all.
    pub asked: AbsPath,
    /// Where it leads once every link and `..` is followed as the kernel does; for what does not exist yet,
    /// the deepest existing directory resolved, and the rest as spelled.
    pub real: AbsPath,
    /// Every link passed on the way, in order.
    pub links: Vec<AbsPath>,
    /// What is there.
    pub kind: EntryKind,
    /// More than one name leads to this file.
    pub hard_linked: bool,
    /// Why it could not be resolved; then `real` is not to be relied on, and the answer is never allow.
    pub problem: Option<String>,
}

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A pipe, socket or device: nothing a file tool should touch.
    Special,
    /// Nothing yet.
    Missing,
}

impl PathFacts {
    /// No facts at all: every path is unresolved.
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds what is known of one path.
    pub fn insert(&mut self, fact: PathFact) {
        self.by_path.insert(fact.asked.clone(), fact);
    }

    /// What is known of a path.
    pub fn get(&self, path: &AbsPath) -> Option<&PathFact> {
        self.by_path.get(path)
    }

    /// Adds the files that an absolute shell pattern names.
    pub fn insert_glob(&mut self, glob: String, matches: Vec<AbsPath>) {
        self.by_glob.insert(glob, matches);
    }

    /// The files that a shell pattern names. `None` where that is not known.
    pub fn glob(&self, glob: &str) -> Option<&[AbsPath]> {
        self.by_glob.get(glob).map(Vec::as_slice)
    }

    /// Every fact, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = &PathFact> {
        self.by_path.values()
    }
}
