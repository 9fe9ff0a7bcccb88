//! Search in the content of files: the function, its result, and how one file is read.

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

/// A longer line is not searched, nor a longer file if matches may span lines: the engine keeps either in memory.
const MAX_BUFFER_BYTES: usize = 256 * 1024 * 1024;

/// The files with matches, in the order of the walk: by path, component by component.
#[derive(Debug, Default)]
pub struct ContentSearchResult {
    /// Each file with its hits. Paths are relative to the start of the search, and empty if that is a file.
    pub files: Vec<(Vec<u8>, FileHits)>,
    /// Whether these are all results; false if the limit was reached and there may be more.
    pub complete: bool,
    /// What was hidden or could not be read.
    pub skipped: SkippedSummary,
}

/// Searches the files of a tree that the selector takes, or the one file that the tree is.
pub fn search_content(
    tree: &SearchTree,
    selector: &FileSelector,
    pattern: &SearchPattern,
    output: &ContentOutputKind,
    limit: ResultLimit,
    stop: &SearchStopFlag,
) -> Result<ContentSearchResult, SearchProblem> {
    let search = ContentSearch { pattern, output, limit, stop, is_single_file: !tree.is_directory() };
    if search.is_single_file {
        return search.search_single_file(tree);
    }
    // Policy has judged a file that the call names, but not one that the walk finds, which may hold secrets.
    let tree = &tree.for_content();
    let (results, skipped) = walk(tree, selector, &search, OrderedResults::<FileHits>::new(limit), stop)?;
    if stop.is_stopped() {
        return Err(SearchProblem::Stopped);
    }
    let complete = results.is_complete();
    let results = results.into_results();
    let end: Option<&WalkKey> = if complete { None } else { results.last_key_value().map(|(key, _)| key) };
    let skipped = skipped.summarize(end);
    let files = results.into_iter().map(|(key, hits)| (path_from_key(&key), hits)).collect();
    Ok(ContentSearchResult { files, complete, skipped })
}

/// The parameters of one search.
struct ContentSearch<'s> {
    pattern: &'s SearchPattern,
    /// What to collect of each file.
    output: &'s ContentOutputKind,
    limit: ResultLimit,
    stop: &'s SearchStopFlag,
    /// Whether the call names the file itself. Then it is searched even if it contains binary data, as in ripgrep.
    is_single_file: bool,
}

/// What one thread searches with, so that threads share no caches or buffers.
struct SearchEngine {
    /// Matches the pattern in text.
    matcher: RegexMatcher,
    /// Splits files into lines and detects binary data.
    searcher: Searcher,
}

impl ContentSearch<'_> {
    /// The engine of one thread; it keeps buffers between files.
    fn build_engine(&self) -> SearchEngine {
        let mut builder = SearcherBuilder::new();
        builder
            .line_number(self.output.has_line_numbers())
            .multi_line(self.pattern.line_mode == LineMode::Multi)
            .heap_limit(Some(MAX_BUFFER_BYTES))
            .binary_detection(if self.is_single_file {
                BinaryDetection::convert(0)
            } else {
                BinaryDetection::quit(0)
            });
        if let ContentOutputKind::Lines(lines) = self.output {
            builder.before_context(lines.before).after_context(lines.after);
        }
        SearchEngine { matcher: self.pattern.matcher.clone(), searcher: builder.build() }
    }

    /// Searches one open file.
    fn search_file(
        &self,
        engine: &mut SearchEngine,
        file: File,
        size: u64,
    ) -> Result<Option<FileHits>, FileProblem> {
        let SearchEngine { matcher, searcher } = engine;
        let mut sink = MatchSink::new(matcher, self.output, self.limit, self.is_single_file);
        // Files that the kernel generates, such as those in `/proc`, have size 0 and yet content.
        let remaining = if size == 0 { u64::MAX } else { size };
        let reader = StoppableReader { file, remaining, stop: self.stop };
        searcher.search_reader(&*matcher, reader, &mut sink)?;
        Ok(sink.into_hits())
    }

    /// Searches a tree that is only one file.
    fn search_single_file(&self, tree: &SearchTree) -> Result<ContentSearchResult, SearchProblem> {
        let (file, size) = tree.open_single_file()?;
        let found = self.search_file(&mut self.build_engine(), file, size);
        if self.stop.is_stopped() {
            return Err(SearchProblem::Stopped);
        }
        let files: Vec<_> = found?.map(|hits| (Vec::new(), hits)).into_iter().collect();
        let (units, bytes) =
            files.iter().map(|(_, hits)| (hits.units(), hits.bytes())).next().unwrap_or_default();
        let complete = units < self.limit.units && bytes < self.limit.bytes;
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

/// A reader that fails once the search is stopped, so that a huge file does not delay the end.
struct StoppableReader<'s> {
    file: File,
    /// Bytes up to the size that the file had when it was opened. Knowing the end saves the last `read`, which returns 0
    /// and takes a quarter of the time of a small file.
    remaining: u64,
    stop: &'s SearchStopFlag,
}

impl Read for StoppableReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.is_stopped() {
            return Err(io::Error::other("the search was stopped"));
        }
        if self.remaining == 0 {
            return Ok(0);
        }
        let max_bytes =
            usize::try_from(self.remaining).map_or(buffer.len(), |remaining| remaining.min(buffer.len()));
        let count = self.file.read(buffer.get_mut(..max_bytes).unwrap_or_default())?;
        self.remaining -= count as u64;
        Ok(count)
    }
}
