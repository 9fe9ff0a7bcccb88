//! Search in the content of files.

use crate::files::{FileProblem, Hidden, open_file};
use crate::search::aside::{SkippedSummary, path_of};
use crate::search::collect::{Key, OrderedResults, ResultLimit, Size};
use crate::search::lines::{FileHits, MatchSink, Show};
use crate::search::pattern::{Lines, Pattern};
use crate::search::select::Selector;
use crate::search::walk::{Visit, WalkFile, walk};
use crate::search::{SearchProblem, Stop, Tree};
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use std::fs::File;
use std::io::{self, Read};

/// A longer line, or with matches over several lines a longer file, is not searched.
const MAX_BUFFER_BYTES: usize = 256 * 1024 * 1024;

/// The files with matches, in the order of their paths.
#[derive(Debug, Default)]
pub struct ContentSearchResult {
    /// Each file with something to show. Paths are from the start of the search; empty where that is a file.
    pub files: Vec<(Vec<u8>, FileHits)>,
    /// Whether this is all there is, and not only as much as was asked for.
    pub complete: bool,
    /// What the search met beside.
    pub aside: SkippedSummary,
}

/// Searches the files of a tree, or the one file that the tree is.
pub fn search_content(
    tree: &Tree,
    selector: &Selector,
    pattern: &Pattern,
    show: &Show,
    need: ResultLimit,
    stop: &Stop,
) -> Result<ContentSearchResult, SearchProblem> {
    let content = Content { pattern, show, need, stop, named: !tree.is_directory };
    if content.named {
        return content.search_named_file(tree);
    }
    // A file that was named was judged by itself; one that a walk comes upon may be a secret.
    let tree = &Tree { hidden: tree.hidden.as_ref().map(Hidden::for_content), ..tree.clone() };
    let (held, notes) = walk(tree, selector, &content, OrderedResults::<FileHits>::new(need), stop)?;
    if stop.is_stopped() {
        return Err(SearchProblem::Stopped);
    }
    let complete = held.is_complete();
    let held = held.into_results();
    let end: Option<&Key> = if complete { None } else { held.last_key_value().map(|(key, _)| key) };
    let aside = notes.aside(end);
    let files = held.into_iter().map(|(key, hits)| (path_of(&key), hits)).collect();
    Ok(ContentSearchResult { files, complete, aside })
}

struct Content<'s> {
    pattern: &'s Pattern,
    show: &'s Show,
    need: ResultLimit,
    stop: &'s Stop,
    /// The one file was named, so it is searched even where it holds binary data.
    named: bool,
}

/// What one thread searches with. The matcher is the thread's own: its caches are not shared.
struct Engine {
    matcher: RegexMatcher,
    searcher: Searcher,
}

impl Content<'_> {
    fn engine(&self) -> Engine {
        let mut builder = SearcherBuilder::new();
        builder
            .line_number(self.show.numbers())
            .multi_line(self.pattern.lines == Lines::Many)
            .heap_limit(Some(MAX_BUFFER_BYTES))
            .binary_detection(if self.named {
                BinaryDetection::convert(0)
            } else {
                BinaryDetection::quit(0)
            });
        if let Show::Lines(lines) = self.show {
            builder.before_context(lines.before).after_context(lines.after);
        }
        Engine { matcher: self.pattern.matcher.clone(), searcher: builder.build() }
    }

    fn search(&self, engine: &mut Engine, file: File, size: u64) -> Result<Option<FileHits>, FileProblem> {
        let Engine { matcher, searcher } = engine;
        let mut gather = MatchSink::new(matcher, self.show, self.need, self.named);
        // Files that the system makes up have no size, and yet something in them.
        let left = if size == 0 { u64::MAX } else { size };
        let reader = StoppableReader { file, left, stop: self.stop };
        searcher.search_reader(&*matcher, reader, &mut gather)?;
        Ok(gather.hits())
    }

    fn search_named_file(&self, tree: &Tree) -> Result<ContentSearchResult, SearchProblem> {
        let (file, stat) = open_file(&tree.start)?;
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        let found = self.search(&mut self.engine(), file, size);
        if self.stop.is_stopped() {
            return Err(SearchProblem::Stopped);
        }
        let files: Vec<_> = found?.map(|hits| (Vec::new(), hits)).into_iter().collect();
        let held: (usize, usize) =
            files.iter().map(|(_, hits)| (hits.units(), hits.bytes())).next().unwrap_or_default();
        let complete = held.0 < self.need.units && held.1 < self.need.bytes;
        Ok(ContentSearchResult { files, complete, aside: SkippedSummary::default() })
    }
}

impl Visit for Content<'_> {
    type Scratch = Engine;
    type Found = FileHits;

    fn scratch(&self) -> Engine {
        self.engine()
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn file(&self, engine: &mut Engine, file: &WalkFile<'_>) -> Result<Option<FileHits>, FileProblem> {
        let (opened, size) = file.directory.open_file(file.name)?;
        let found = self.search(engine, opened, size)?;
        Ok(found.map(|hits| hits.at(file.relative)))
    }
}

/// A file that can no longer be read once the search is stopped, so that a huge one does not hold it up.
struct StoppableReader<'s> {
    file: File,
    /// Until the end that it had when it was opened; to ask the system whether that is the end is a quarter of what a
    /// small file costs.
    left: u64,
    stop: &'s Stop,
}

impl Read for StoppableReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_stopped() {
            return Err(io::Error::other("the search was stopped"));
        }
        if self.left == 0 {
            return Ok(0);
        }
        let most = usize::try_from(self.left).map_or(buffer.len(), |left| left.min(buffer.len()));
        let count = self.file.read(buffer.get_mut(..most).unwrap_or_default())?;
        self.left -= count as u64;
        Ok(count)
    }
}
