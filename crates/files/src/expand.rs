//! The files that a shell pattern names.

use crate::resolve;
use std::fs;
use toolgate_proto::{AbsPath, EntryKind};

/// Files that one pattern may name; more are judged by the pattern.
const MAX_MATCHES: usize = 1_000;
/// Entries that are looked at for one pattern.
const MAX_ENTRIES: usize = 20_000;

/// A pattern, name by name.
pub trait ComponentPattern {
    /// How many names it has.
    fn depth(&self) -> usize;

    /// The name at a depth, if it is spelled out.
    fn literal(&self, depth: usize) -> Option<&str>;

    /// Whether a name in a directory fits at a depth.
    fn matches(&self, depth: usize, name: &str) -> bool;
}

/// Every file that a pattern names now, from the root on; `None` if there are too many to find them all.
pub fn expand_pattern(pattern: &dyn ComponentPattern) -> Option<Vec<AbsPath>> {
    let mut found = vec![AbsPath::root()];
    let mut left = MAX_ENTRIES;
    for depth in 0..pattern.depth() {
        let mut next = Vec::new();
        for directory in &found {
            if let Some(name) = pattern.literal(depth) {
                let path = directory.join(name);
                if fs::symlink_metadata(path.as_path()).is_ok() {
                    next.push(path);
                }
                continue;
            }
            // As in bash, a directory that cannot be read has no names.
            let Ok(entries) = fs::read_dir(directory.as_path()) else { continue };
            for entry in entries.flatten() {
                left = left.checked_sub(1)?;
                let name = entry.file_name();
                // A name that is no text cannot be compared, so it is not known that it does not fit.
                let text = name.to_str()?;
                if pattern.matches(depth, text) {
                    next.push(directory.join(text));
                }
            }
        }
        if depth + 1 < pattern.depth() {
            next.retain(|path| resolve(path).kind == EntryKind::Directory);
        }
        if next.len() > MAX_MATCHES {
            return None;
        }
        found = next;
    }
    found.sort();
    Some(found)
}
