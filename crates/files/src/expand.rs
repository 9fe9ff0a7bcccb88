//! Expansion of a shell pattern to the files that match it, as the shell would expand it.

use crate::resolve;
use std::fs;
use toolgate_proto::{AbsPath, EntryKind};

/// A pattern that matches more files is not expanded; policy then judges the pattern itself.
const MAX_MATCHES: usize = 1_000;
/// How many directory entries are compared for one pattern.
const MAX_ENTRIES: usize = 20_000;

/// An absolute path pattern, component by component. The grammar of patterns belongs to the caller.
pub trait ComponentPattern {
    /// How many components it has.
    fn depth(&self) -> usize;

    /// The component at a depth if it has no wildcard, so that the directory need not be listed.
    fn literal(&self, depth: usize) -> Option<&str>;

    /// Whether a name matches the component at a depth.
    fn matches(&self, depth: usize, name: &str) -> bool;
}

/// Every existing path that a pattern matches, sorted; `None` if there are too many to find them all.
pub fn expand_pattern(pattern: &dyn ComponentPattern) -> Option<Vec<AbsPath>> {
    let mut found = vec![AbsPath::root()];
    let mut remaining = MAX_ENTRIES;
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
            // As in bash, a directory that cannot be listed has no matches.
            let Ok(entries) = fs::read_dir(directory.as_path()) else { continue };
            for entry in entries.flatten() {
                remaining = remaining.checked_sub(1)?;
                let name = entry.file_name();
                // A name that is not UTF-8 cannot be compared and might match, so the expansion is not known.
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
