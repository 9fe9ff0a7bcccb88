//! Entries that a walk skipped: hidden ones, and ones that cannot be read.

use crate::collect::WalkKey;
use crate::directory::WalkEntryKind;
use std::collections::BTreeMap;
use toolgate_files::FileProblem;

/// Every entry that a walk skipped, by its key in the order of the walk.
#[derive(Debug, Default)]
pub(crate) struct SkippedEntries {
    /// Entries that policy hides.
    pub(crate) withheld: BTreeMap<WalkKey, WalkEntryKind>,
    /// Entries that could not be opened or read, and why.
    pub(crate) unreadable: BTreeMap<WalkKey, FileProblem>,
}

/// How many entries a search skipped, for the note at the end of its result.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkippedSummary {
    /// Files that policy hides.
    pub withheld_files: u64,
    /// Directories that policy hides; what they contain is not counted.
    pub withheld_directories: u64,
    /// Entries that could not be read.
    pub unreadable: u64,
    /// The first of these, relative to the start of the search, and why it could not be read.
    pub first_unreadable: Option<(Vec<u8>, FileProblem)>,
}

impl SkippedEntries {
    /// Counts the entries up to `end`, the last result, so that the counts do not depend on how far the threads had got.
    /// `None` counts all.
    pub(crate) fn summarize(self, end: Option<&WalkKey>) -> SkippedSummary {
        let is_counted = |key: &WalkKey| end.is_none_or(|end| key <= end);
        let mut summary = SkippedSummary::default();
        for (key, kind) in self.withheld {
            match kind {
                _ if !is_counted(&key) => {}
                WalkEntryKind::Directory => summary.withheld_directories += 1,
                WalkEntryKind::File | WalkEntryKind::Symlink | WalkEntryKind::Special => {
                    summary.withheld_files += 1
                }
            }
        }
        for (key, problem) in self.unreadable.into_iter().filter(|(key, _)| is_counted(key)) {
            summary.unreadable += 1;
            summary.first_unreadable.get_or_insert_with(|| (path_from_key(&key), problem));
        }
        summary
    }
}

/// The path of a key, relative to the start of the walk.
pub(crate) fn path_from_key(key: &WalkKey) -> Vec<u8> {
    let key = key.strip_suffix(&[0]).unwrap_or(key);
    key.iter().map(|byte| if *byte == 0 { b'/' } else { *byte }).collect()
}
