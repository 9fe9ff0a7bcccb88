//! Search for files by name.

use crate::collect::{
    MtimeCutoff, MtimeNanos, NewestFiles, OrderedResults, ResultLimit, ResultSize, WalkKey,
};
use crate::directory::as_path;
use crate::select::{FileSelector, SelectionProblem};
use crate::skipped::{SkippedSummary, path_from_key};
use crate::walk::{FileVisitor, WalkFile, walk};
use crate::{SearchProblem, SearchStopFlag, SearchTree};
use globset::{GlobBuilder, GlobMatcher};
use std::path::Path;
use toolgate_files::FileProblem;

/// A glob over paths below a directory: `*` and `?` stay inside one name, `**` crosses any number of directories,
/// `{a,b}` is either, `[a-z]` and `[!a]` are one character.
#[derive(Debug, Clone)]
pub struct PathGlob {
    glob: GlobMatcher,
    /// Matches everything, so nothing needs to be matched.
    matches_all: bool,
}

/// What a pattern without a separator speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BareGlobScope {
    /// Files of that name in the directory itself, as in a shell.
    Here,
    /// Files of that name at any depth, as in an ignore file.
    Anywhere,
}

impl PathGlob {
    /// Makes a pattern ready.
    pub fn new(text: &str, bare: BareGlobScope) -> Result<Self, SelectionProblem> {
        let mut glob = text.strip_prefix('/').unwrap_or(text).to_owned();
        if bare == BareGlobScope::Anywhere && !text.contains('/') {
            glob = format!("**/{glob}");
        }
        let matcher = GlobBuilder::new(&glob)
            .literal_separator(true)
            .backslash_escape(true)
            .empty_alternates(true)
            .build()
            .map_err(|error| SelectionProblem::Glob {
                glob: text.to_owned(),
                reason: error.kind().to_string(),
            })?
            .compile_matcher();
        Ok(Self { glob: matcher, matches_all: matches!(glob.as_str(), "**" | "**/*") })
    }

    pub(crate) fn matches(&self, relative: &Path) -> bool {
        self.matches_all || self.glob.is_match(relative)
    }
}

/// Splits the directories off a pattern that it names literally: `src/**/*.rs` is `**/*.rs` in `src`.
/// The rest is to be seen from there, and always speaks of the directory itself where it has no separator.
pub fn split_literal_directories(pattern: &str) -> (&str, &str) {
    let special = pattern.find(['*', '?', '[', '{', '\\']).unwrap_or(pattern.len());
    let literal = pattern.get(..special).unwrap_or_default();
    match literal.rfind('/') {
        Some(cut) => (pattern.get(..=cut).unwrap_or_default(), pattern.get(cut + 1..).unwrap_or_default()),
        None => ("", pattern),
    }
}

/// In which order files are wanted, and how many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameOrder {
    /// Those changed last come first; of those changed at the same time, the first by name.
    Newest {
        /// As many are given.
        limit: usize,
    },
    /// By path.
    Path(ResultLimit),
}

/// The files that match.
#[derive(Debug, Default)]
pub struct NameSearchResult {
    /// Their paths from the start of the search.
    pub files: Vec<Vec<u8>>,
    /// How many there are in all, where that is known.
    pub total: Option<u64>,
    /// What the search met beside.
    pub skipped: SkippedSummary,
}

/// Finds files by name.
pub fn find_names(
    tree: &SearchTree,
    selector: &FileSelector,
    pattern: &PathGlob,
    order: NameOrder,
    stop: &SearchStopFlag,
) -> Result<NameSearchResult, SearchProblem> {
    if !tree.is_directory() {
        return Err(FileProblem::NotDirectory.into());
    }
    let answer = match order {
        NameOrder::Newest { limit: most } => {
            let floor = MtimeCutoff::new();
            let names = NewestNameVisitor { pattern, cutoff: &floor };
            let (newest, notes) = walk(tree, selector, &names, NewestFiles::new(most, &floor), stop)?;
            let total = Some(newest.total());
            let files = newest.into_sorted().iter().map(path_from_key).collect();
            NameSearchResult { files, total, skipped: notes.summarize(None) }
        }
        NameOrder::Path(need) => {
            let names = NameVisitor { pattern };
            let (held, notes) = walk(tree, selector, &names, OrderedResults::<NameMatch>::new(need), stop)?;
            let complete = held.is_complete();
            let held = held.into_results();
            let end: Option<&WalkKey> =
                if complete { None } else { held.last_key_value().map(|(key, _)| key) };
            let aside = notes.summarize(end);
            let files: Vec<_> = held.keys().map(path_from_key).collect();
            NameSearchResult { total: complete.then_some(files.len() as u64), files, skipped: aside }
        }
    };
    if stop.is_stopped() {
        return Err(SearchProblem::Stopped);
    }
    Ok(answer)
}

/// A file that matches by name.
#[derive(Debug, Clone, Copy)]
struct NameMatch {
    bytes: usize,
}

impl ResultSize for NameMatch {
    fn units(&self) -> usize {
        1
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Files by name and age, which costs a look at each.
struct NewestNameVisitor<'p> {
    pattern: &'p PathGlob,
    cutoff: &'p MtimeCutoff,
}

impl FileVisitor for NewestNameVisitor<'_> {
    type Scratch = ();
    type Found = MtimeNanos;

    fn scratch(&self) {}

    fn is_expensive(&self) -> bool {
        false
    }

    fn matches_name(&self, file: &WalkFile<'_>) -> bool {
        self.pattern.matches(as_path(file.relative))
    }

    fn visit_file(&self, (): &mut (), file: &WalkFile<'_>) -> Result<Option<MtimeNanos>, FileProblem> {
        let stat = file.directory.stat(file.name)?;
        let nanos = i64::try_from(stat.st_mtime_nsec).unwrap_or(0);
        let changed = stat.st_mtime.saturating_mul(1_000_000_000).saturating_add(nanos);
        Ok(self.cutoff.admit(changed).then_some(changed))
    }
}

/// Files by name.
struct NameVisitor<'p> {
    pattern: &'p PathGlob,
}

impl FileVisitor for NameVisitor<'_> {
    type Scratch = ();
    type Found = NameMatch;

    fn scratch(&self) {}

    fn is_expensive(&self) -> bool {
        false
    }

    fn matches_name(&self, file: &WalkFile<'_>) -> bool {
        self.pattern.matches(as_path(file.relative))
    }

    fn visit_file(&self, (): &mut (), file: &WalkFile<'_>) -> Result<Option<NameMatch>, FileProblem> {
        Ok(Some(NameMatch { bytes: file.relative.len() + 1 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literal_directories_are_split_off() {
        for (pattern, expected) in [
            ("src/**/*.rs", ("src/", "**/*.rs")),
            ("*.rs", ("", "*.rs")),
            ("a/b/c.rs", ("a/b/", "c.rs")),
            ("/abs/x*/y", ("/abs/", "x*/y")),
            ("../up/*.md", ("../up/", "*.md")),
            ("{a/b,c}/d", ("", "{a/b,c}/d")),
            ("src/", ("src/", "")),
            (r"a\[b/c", ("", r"a\[b/c")),
        ] {
            assert_eq!(split_literal_directories(pattern), expected, "{pattern}");
        }
    }
}
