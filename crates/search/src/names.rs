//! Search for files by path glob, sorted by path or by modification time.

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
use toolgate_proto::timestamp::timestamp_nanos;

/// A glob for paths relative to a directory: `*` and `?` match within one name, `**` matches any number of directories,
/// `{a,b}` matches either, `[a-z]` and `[!a]` match one character.
#[derive(Debug, Clone)]
pub struct PathGlob {
    /// The compiled glob.
    glob: GlobMatcher,
    /// Whether the glob matches every path, so that the matcher need not run.
    matches_all: bool,
}

/// Which files a glob without a separator matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BareGlobScope {
    /// Files of that name in the directory itself, as in a shell.
    Here,
    /// Files of that name at any depth, as in an ignore file.
    Anywhere,
}

impl PathGlob {
    /// Compiles a glob.
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

    /// Whether a path relative to the directory matches.
    pub(crate) fn matches(&self, relative: &Path) -> bool {
        self.matches_all || self.glob.is_match(relative)
    }
}

/// Splits a glob after its last directory without a wildcard, where the search can start: `src/**/*.rs` is `**/*.rs` in
/// `src/`. A rest without a separator is for files in that directory itself ([`BareGlobScope::Here`]).
pub fn split_literal_directories(pattern: &str) -> (&str, &str) {
    let special = pattern.find(['*', '?', '[', '{', '\\']).unwrap_or(pattern.len());
    let literal = pattern.get(..special).unwrap_or_default();
    match literal.rfind('/') {
        Some(end) => (pattern.get(..=end).unwrap_or_default(), pattern.get(end + 1..).unwrap_or_default()),
        None => ("", pattern),
    }
}

/// How files are sorted, and how many are returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameOrder {
    /// By modification time, newest first; files of the same time in the order of their paths.
    Newest {
        /// How many files to return.
        limit: usize,
    },
    /// By path, component by component.
    Path(ResultLimit),
}

/// The files that match a glob.
#[derive(Debug, Default)]
pub struct NameSearchResult {
    /// Their paths relative to the start of the search.
    pub files: Vec<Vec<u8>>,
    /// How many files match; `None` if the search ended at its limit.
    pub total: Option<u64>,
    /// What was hidden or could not be read.
    pub skipped: SkippedSummary,
}

/// Finds the files of a directory tree whose path matches a glob.
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
    let result = match order {
        NameOrder::Newest { limit } => {
            let cutoff = MtimeCutoff::new();
            let visitor = NewestNameVisitor { pattern, cutoff: &cutoff };
            let (newest, skipped) = walk(tree, selector, &visitor, NewestFiles::new(limit, &cutoff), stop)?;
            let total = Some(newest.total());
            let files = newest.into_sorted().iter().map(path_from_key).collect();
            NameSearchResult { files, total, skipped: skipped.summarize(None) }
        }
        NameOrder::Path(limit) => {
            let visitor = NameVisitor { pattern };
            let collector = OrderedResults::<NameMatch>::new(limit);
            let (results, skipped) = walk(tree, selector, &visitor, collector, stop)?;
            let complete = results.is_complete();
            let results = results.into_results();
            let end: Option<&WalkKey> =
                if complete { None } else { results.last_key_value().map(|(key, _)| key) };
            let skipped = skipped.summarize(end);
            let files: Vec<_> = results.keys().map(path_from_key).collect();
            NameSearchResult { total: complete.then_some(files.len() as u64), files, skipped }
        }
    };
    if stop.is_stopped() {
        return Err(SearchProblem::Stopped);
    }
    Ok(result)
}

/// A file whose path matches; the path itself is its key.
#[derive(Debug, Clone, Copy)]
struct NameMatch {
    /// Length of the path and its line end in the output.
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

/// Finds files by path and reads their modification time, which costs a system call for each.
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
        let nanos = timestamp_nanos(stat.st_mtime, nanos);
        // The cutoff is one atomic number, which ends in the year 2262; times beyond are ordered as its limits.
        let limit = if nanos < 0 { MtimeNanos::MIN } else { MtimeNanos::MAX };
        let mtime = MtimeNanos::try_from(nanos).unwrap_or(limit);
        Ok(self.cutoff.admit(mtime).then_some(mtime))
    }
}

/// Finds files by path alone.
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
