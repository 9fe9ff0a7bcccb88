//! Search in the content of files.

use crate::collect::{OrderedResults, ResultLimit, ResultSize, WalkKey};
use crate::lines::{ContentOutputKind, FileHits, MatchSink};
use crate::pattern::{LineMode, SearchPattern};
use crate::select::FileSelector;
use crate::skipped::{SkippedSummary, path_from_key};
use crate::walk::{FileVisitor, WalkFile, walk};
use crate::{SearchProblem, SearchStopFlag, SearchTree};
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use std::fs::File;
use std::io::{self, Read};
use toolgate_files::FileProblem;
use toolgate_files::unchecked::open_regular_file;

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
    pub skipped: SkippedSummary,
}

/// Searches the files of a tree, or the one file that the tree is.
pub fn search_content(
    tree: &SearchTree,
    selector: &FileSelector,
    pattern: &SearchPattern,
    show: &ContentOutputKind,
    need: ResultLimit,
    stop: &SearchStopFlag,
) -> Result<ContentSearchResult, SearchProblem> {
    let content = ContentSearch { pattern, show, limit: need, stop, named: !tree.is_directory() };
    if content.named {
        return content.search_named_file(tree);
    }
    // A file that was named was judged by itself; one that a walk comes upon may be a secret.
    let tree = &tree.for_content();
    let (held, notes) = walk(tree, selector, &content, OrderedResults::<FileHits>::new(need), stop)?;
    if stop.is_stopped() {
        return Err(SearchProblem::Stopped);
    }
    let complete = held.is_complete();
    let held = held.into_results();
    let end: Option<&WalkKey> = if complete { None } else { held.last_key_value().map(|(key, _)| key) };
    let aside = notes.summarize(end);
    let files = held.into_iter().map(|(key, hits)| (path_from_key(&key), hits)).collect();
    Ok(ContentSearchResult { files, complete, skipped: aside })
}

struct ContentSearch<'s> {
    pattern: &'s SearchPattern,
    show: &'s ContentOutputKind,
    limit: ResultLimit,
    stop: &'s SearchStopFlag,
    /// The one file was named, so it is searched even where it holds binary data.
    named: bool,
}

/// What one thread searches with. The matcher is the thread's own: its caches are not shared.
struct SearchEngine {
    matcher: RegexMatcher,
    searcher: Searcher,
}

impl ContentSearch<'_> {
    fn build_engine(&self) -> SearchEngine {
        let mut builder = SearcherBuilder::new();
        builder
            .line_number(self.show.has_line_numbers())
            .multi_line(self.pattern.line_mode == LineMode::Multi)
            .heap_limit(Some(MAX_BUFFER_BYTES))
            .binary_detection(if self.named {
                BinaryDetection::convert(0)
            } else {
                BinaryDetection::quit(0)
            });
        if let ContentOutputKind::Lines(lines) = self.show {
            builder.before_context(lines.before).after_context(lines.after);
        }
        SearchEngine { matcher: self.pattern.matcher.clone(), searcher: builder.build() }
    }

    fn search_file(
        &self,
        engine: &mut SearchEngine,
        file: File,
        size: u64,
    ) -> Result<Option<FileHits>, FileProblem> {
        let SearchEngine { matcher, searcher } = engine;
        let mut gather = MatchSink::new(matcher, self.show, self.limit, self.named);
        // Files that the system makes up have no size, and yet something in them.
        let left = if size == 0 { u64::MAX } else { size };
        let reader = StoppableReader { file, left, stop: self.stop };
        searcher.search_reader(&*matcher, reader, &mut gather)?;
        Ok(gather.into_hits())
    }

    fn search_named_file(&self, tree: &SearchTree) -> Result<ContentSearchResult, SearchProblem> {
        let (file, stat) = open_regular_file(tree.start())?;
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        let found = self.search_file(&mut self.build_engine(), file, size);
        if self.stop.is_stopped() {
            return Err(SearchProblem::Stopped);
        }
        let files: Vec<_> = found?.map(|hits| (Vec::new(), hits)).into_iter().collect();
        let held: (usize, usize) =
            files.iter().map(|(_, hits)| (hits.units(), hits.bytes())).next().unwrap_or_default();
        let complete = held.0 < self.limit.units && held.1 < self.limit.bytes;
        Ok(ContentSearchResult { files, complete, skipped: SkippedSummary::default() })
    }
}

impl FileVisitor for ContentSearch<'_> {
    type Scratch = SearchEngine;
    type Found = FileHits;

    fn scratch(&self) -> SearchEngine {
        self.build_engine()
    }

    fn is_expensive(&self) -> bool {
        true
    }

    fn visit_file(
        &self,
        engine: &mut SearchEngine,
        file: &WalkFile<'_>,
    ) -> Result<Option<FileHits>, FileProblem> {
        let (opened, size) = file.directory.open_file(file.name)?;
        let found = self.search_file(engine, opened, size)?;
        Ok(found.map(|hits| hits.with_path_bytes(file.relative)))
    }
}

/// A file that can no longer be read once the search is stopped, so that a huge one does not hold it up.
struct StoppableReader<'s> {
    file: File,
    /// Until the end that it had when it was opened; to ask the system whether that is the end is a quarter of what a
    /// small file costs.
    left: u64,
    stop: &'s SearchStopFlag,
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
