//! What a walk met beside what it looked for: entries that policy hides, entries that cannot be read.

use crate::files::FileProblem;
use crate::search::collect::Key;
use crate::search::directory::Kind;
use std::collections::BTreeMap;

/// What a walk met beside what it looked for.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) withheld: BTreeMap<Key, Kind>,
    pub(crate) unreadable: BTreeMap<Key, FileProblem>,
}

/// The same, for those who asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkippedSummary {
    /// Files that policy keeps out of sight.
    pub withheld_files: u64,
    /// Directories that policy keeps out of sight.
    pub withheld_directories: u64,
    /// Entries that could not be read.
    pub unreadable: u64,
    /// The first of them, from the start of the search, and why.
    pub first_unreadable: Option<(Vec<u8>, FileProblem)>,
}

impl Notes {
    /// Up to the end of the answer, so that it does not depend on how far threads had come.
    pub(crate) fn aside(self, end: Option<&Key>) -> SkippedSummary {
        let counts = |key: &Key| end.is_none_or(|end| key <= end);
        let mut aside = SkippedSummary::default();
        for (key, kind) in self.withheld {
            match kind {
                _ if !counts(&key) => {}
                Kind::Directory => aside.withheld_directories += 1,
                Kind::File | Kind::Link | Kind::Special => aside.withheld_files += 1,
            }
        }
        for (key, problem) in self.unreadable.into_iter().filter(|(key, _)| counts(key)) {
            aside.unreadable += 1;
            aside.first_unreadable.get_or_insert_with(|| (path_of(&key), problem));
        }
        aside
    }
}

/// The path that a key stands for, below the start.
pub(crate) fn path_of(key: &Key) -> Vec<u8> {
    let key = key.strip_suffix(&[0]).unwrap_or(key);
    key.iter().map(|byte| if *byte == 0 { b'/' } else { *byte }).collect()
}
