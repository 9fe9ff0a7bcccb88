//! What a walk met beside what it looked for: entries that policy hides, entries that cannot be read.

use crate::collect::WalkKey;
use crate::directory::WalkEntryKind;
use std::collections::BTreeMap;
use toolgate_files::FileProblem;

/// What a walk met beside what it looked for.
#[derive(Debug, Default)]
pub(crate) struct SkippedEntries {
    pub(crate) withheld: BTreeMap<WalkKey, WalkEntryKind>,
    pub(crate) unreadable: BTreeMap<WalkKey, FileProblem>,
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

impl SkippedEntries {
    /// Up to the end of the answer, so that it does not depend on how far threads had come.
    pub(crate) fn summarize(self, end: Option<&WalkKey>) -> SkippedSummary {
        let counts = |key: &WalkKey| end.is_none_or(|end| key <= end);
        let mut aside = SkippedSummary::default();
        for (key, kind) in self.withheld {
            match kind {
                _ if !counts(&key) => {}
                WalkEntryKind::Directory => aside.withheld_directories += 1,
                WalkEntryKind::File | WalkEntryKind::Symlink | WalkEntryKind::Special => {
                    aside.withheld_files += 1
                }
            }
        }
        for (key, problem) in self.unreadable.into_iter().filter(|(key, _)| counts(key)) {
            aside.unreadable += 1;
            aside.first_unreadable.get_or_insert_with(|| (path_from_key(&key), problem));
        }
        aside
    }
}

/// The path that a key stands for, below the start.
pub(crate) fn path_from_key(key: &WalkKey) -> Vec<u8> {
    let key = key.strip_suffix(&[0]).unwrap_or(key);
    key.iter().map(|byte| if *byte == 0 { b'/' } else { *byte }).collect()
}
