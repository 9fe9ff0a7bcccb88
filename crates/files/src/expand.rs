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

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory, and in it the names that begin with a text.
    struct NamePrefix<'p> {
        directory: Vec<&'p str>,
        prefix: &'p str,
    }

    impl ComponentPattern for NamePrefix<'_> {
        fn depth(&self) -> usize {
            self.directory.len() + 1
        }

        fn literal(&self, depth: usize) -> Option<&str> {
            self.directory.get(depth).copied()
        }

        fn matches(&self, _: usize, name: &str) -> bool {
            name.starts_with(self.prefix)
        }
    }

    #[test]
    fn a_pattern_is_expanded_up_to_1_000_matches_among_20_000_entries() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        let directory: Vec<&str> = top.to_str().unwrap().split('/').skip(1).collect();
        let count = |prefix: &str| {
            let found = expand_pattern(&NamePrefix { directory: directory.clone(), prefix });
            found.map(|found| found.len())
        };
        let create = |name: String| fs::write(top.join(name), "").unwrap();
        (0..1_000).for_each(|number| create(format!("match-{number}")));
        assert_eq!(count("match-"), Some(1_000));
        create("match-more".to_owned());
        assert_eq!(count("match-"), None);
        (0..18_999).for_each(|number| create(format!("other-{number}")));
        assert_eq!(count("match-9"), Some(111));
        create("other-more".to_owned());
        assert_eq!(count("match-9"), None);
    }
}
