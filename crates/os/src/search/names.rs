//! Search for files by name.

use crate::files::FileProblem;
use crate::search::aside::{SkippedSummary, path_of};
use crate::search::collect::{Changed, Key, MtimeCutoff, Newest, OrderedResults, ResultLimit, Size};
use crate::search::directory::as_path;
use crate::search::select::{SelectionProblem, Selector};
use crate::search::walk::{Visit, WalkFile, walk};
use crate::search::{SearchProblem, Stop, Tree};
use globset::{GlobBuilder, GlobMatcher};
use std::path::Path;

/// A glob over paths below a directory: `*` and `?` stay inside one name, `**` crosses any number of directories,
/// `{a,b}` is either, `[a-z]` and `[!a]` are one character.
#[derive(Debug, Clone)]
pub struct NamePattern {
    glob: GlobMatcher,
    /// Matches everything, so nothing needs to be matched.
    all: bool,
}

/// What a pattern without a separator speaks of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bare {
    /// Files of that name in the directory itself, as in a shell.
    Here,
    /// Files of that name at any depth, as in an ignore file.
    Anywhere,
}

impl NamePattern {
    /// Makes a pattern ready.
    pub fn new(text: &str, bare: Bare) -> Result<Self, SelectionProblem> {
        let mut glob = text.strip_prefix('/').unwrap_or(text).to_owned();
        if bare == Bare::Anywhere && !text.contains('/') {
            glob = format!("**/{glob}");
        }
        let matcher = GlobBuilder::new(&glob)
            .literal_separator(true)
            .backslash_escape(true)
            .empty_alternates(true)
            .build()
            .map_err(|error| SelectionProblem::Glob {
                glob: text.to_owned(),
                words: error.kind().to_string(),
            })?
            .compile_matcher();
        Ok(Self { glob: matcher, all: matches!(glob.as_str(), "**" | "**/*") })
    }

    pub(crate) fn matches(&self, relative: &Path) -> bool {
        self.all || self.glob.is_match(relative)
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
        most: usize,
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
    pub aside: SkippedSummary,
}

/// Finds files by name.
pub fn find_names(
    tree: &Tree,
    selector: &Selector,
    pattern: &NamePattern,
    order: NameOrder,
    stop: &Stop,
) -> Result<NameSearchResult, SearchProblem> {
    if !tree.is_directory {
        return Err(FileProblem::NotDirectory.into());
    }
    let answer = match order {
        NameOrder::Newest { most } => {
            let floor = MtimeCutoff::new();
            let names = NewestNameVisitor { pattern, floor: &floor };
            let (newest, notes) = walk(tree, selector, &names, Newest::new(most, &floor), stop)?;
            let total = Some(newest.total());
            let files = newest.into_sorted().iter().map(path_of).collect();
            NameSearchResult { files, total, aside: notes.aside(None) }
        }
        NameOrder::Path(need) => {
            let names = Names { pattern };
            let (held, notes) = walk(tree, selector, &names, OrderedResults::<Named>::new(need), stop)?;
            let complete = held.is_complete();
            let held = held.into_results();
            let end: Option<&Key> = if complete { None } else { held.last_key_value().map(|(key, _)| key) };
            let aside = notes.aside(end);
            let files: Vec<_> = held.keys().map(path_of).collect();
            NameSearchResult { total: complete.then_some(files.len() as u64), files, aside }
        }
    };
    if stop.is_stopped() {
        return Err(SearchProblem::Stopped);
    }
    Ok(answer)
}

/// A file that matches by name.
#[derive(Debug, Clone, Copy)]
struct Named {
    bytes: usize,
}

impl Size for Named {
    fn units(&self) -> usize {
        1
    }

    fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Files by name and age, which costs a look at each.
struct NewestNameVisitor<'p> {
    pattern: &'p NamePattern,
    floor: &'p MtimeCutoff,
}

impl Visit for NewestNameVisitor<'_> {
    type Scratch = ();
    type Found = Changed;

    fn scratch(&self) {}

    fn is_heavy(&self) -> bool {
        false
    }

    fn wants(&self, file: &WalkFile<'_>) -> bool {
        self.pattern.matches(as_path(file.relative))
    }

    fn file(&self, (): &mut (), file: &WalkFile<'_>) -> Result<Option<Changed>, FileProblem> {
        let stat = file.directory.stat(file.name)?;
        let nanos = i64::try_from(stat.st_mtime_nsec).unwrap_or(0);
        let changed = stat.st_mtime.saturating_mul(1_000_000_000).saturating_add(nanos);
        Ok(self.floor.admits(changed).then_some(changed))
    }
}

/// Files by name.
struct Names<'p> {
    pattern: &'p NamePattern,
}

impl Visit for Names<'_> {
    type Scratch = ();
    type Found = Named;

    fn scratch(&self) {}

    fn is_heavy(&self) -> bool {
        false
    }

    fn wants(&self, file: &WalkFile<'_>) -> bool {
        self.pattern.matches(as_path(file.relative))
    }

    fn file(&self, (): &mut (), file: &WalkFile<'_>) -> Result<Option<Named>, FileProblem> {
        Ok(Some(Named { bytes: file.relative.len() + 1 }))
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
