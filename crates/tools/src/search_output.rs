//! What the search tools share: running off the async thread, paths as people write them, pages, and notices.

use crate::file_refusal::{file_refusal, missing_file_refusal};
use std::fmt::Write;
use toolgate_files::FileProblem;
use toolgate_gate::Cleared;
use toolgate_proto::{AbsPath, Code, Refusal};
use toolgate_search::{SearchProblem, SearchStopFlag, SelectionProblem, SkippedSummary};

/// Bytes of results that are gathered at most, whatever is shown of them.
pub(crate) const MAX_COLLECTED_BYTES: usize = 4 * 1024 * 1024;
/// A line with its path is shorter than this, so that results which are passed over do not use up the rest.
const MAX_LINE_BYTES: usize = 16 * 1024;

/// Runs a search where blocking is fine, and stops it when the call is cancelled or given up.
pub(crate) async fn run_search<T: Send + 'static>(
    cleared: &Cleared,
    work: impl FnOnce(&SearchStopFlag) -> Result<T, SearchProblem> + Send + 'static,
) -> Result<T, SearchProblem> {
    struct StopOnDrop(SearchStopFlag);
    impl Drop for StopOnDrop {
        fn drop(&mut self) {
            self.0.stop();
        }
    }

    let stop = SearchStopFlag::default();
    let _when_given_up = StopOnDrop(stop.clone());
    let running = tokio::task::spawn_blocking(move || work(&stop));
    tokio::select! {
        biased;
        () = cleared.cancel().cancelled() => Err(SearchProblem::Stopped),
        ended = running => match ended {
            Ok(result) => result,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => Err(SearchProblem::Stopped),
            },
        },
    }
}

/// How many bytes to gather for a page that starts after `offset` results.
pub(crate) fn bytes_needed(offset: usize) -> usize {
    MAX_COLLECTED_BYTES.saturating_add(offset.saturating_mul(MAX_LINE_BYTES))
}

/// The refusal for a search that has no answer.
pub(crate) fn search_refusal(
    cleared: &Cleared,
    path: &AbsPath,
    problem: SearchProblem,
    code: Code,
) -> Refusal {
    match problem {
        SearchProblem::Stopped => Refusal::new(Code::Cancelled, "the search was cancelled"),
        SearchProblem::File(FileProblem::Missing) => missing_file_refusal(cleared.files(), path),
        SearchProblem::File(problem) => file_refusal(path, &problem, code),
    }
}

/// The refusal for globs and types that cannot be used.
pub(crate) fn selection_refusal(problem: &SelectionProblem, code: Code) -> Refusal {
    match problem {
        SelectionProblem::Glob { glob, reason: words } => {
            Refusal::new(code, format!("`{glob}` is not a glob: {words}")).hint(
                "use `*`, `**`, `?`, `[abc]`, `{a,b}`; put `\\` before such a character to mean it literally",
            )
        }
        SelectionProblem::Type { name, known } => {
            let mut near: Vec<(f64, &String)> = known
                .iter()
                .map(|known| (strsim::jaro_winkler(known, name), known))
                .filter(|(likeness, _)| *likeness > 0.7)
                .collect();
            near.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
            let near: Vec<_> = near.iter().take(3).map(|(_, known)| format!("`{known}`")).collect();
            let meant =
                if near.is_empty() { String::new() } else { format!("did you mean {}? ", near.join(" or ")) };
            Refusal::new(code, format!("there is no file type `{name}`"))
                .hint(format!("{meant}use a `glob` such as `*.{name}` for files that have no type"))
        }
    }
}

/// Writes paths the way they are shortest: from the working directory where they lie below it.
pub(crate) struct SearchPathFormatter {
    /// Before each path below the start; empty where the start is the working directory.
    start: String,
}

impl SearchPathFormatter {
    /// For results of a search that started at `asked`.
    pub(crate) fn for_search(cleared: &Cleared, asked: &AbsPath, absolute: bool) -> Self {
        // A path with `..` in it is not worth repeating before every result.
        let start = if asked.lexical() == *asked { None } else { cleared.files().real_path(asked).ok() };
        Self::new(start.as_ref().unwrap_or(asked), &cleared.context().workspace.cwd, absolute)
    }

    fn new(start: &AbsPath, cwd: &AbsPath, absolute: bool) -> Self {
        let shown = match start.as_path().strip_prefix(cwd) {
            Ok(below) if !absolute => below,
            _ => start.as_path(),
        };
        Self { start: escape_name(shown.as_os_str().as_encoded_bytes()) }
    }

    /// The words for a path below the start; for the start itself where it is empty.
    pub(crate) fn format_path(&self, relative: &[u8]) -> String {
        let relative = escape_name(relative);
        match (self.start.is_empty(), relative.is_empty()) {
            (true, true) => ".".to_owned(),
            (true, false) => relative,
            (false, true) => self.start.clone(),
            (false, false) if self.start.ends_with('/') => format!("{}{relative}", self.start),
            (false, false) => format!("{}/{relative}", self.start),
        }
    }
}

/// A name as text on one line. Control characters and bytes that are no UTF-8 are shown as escapes, so that no name
/// can pass for two lines and no two names look the same.
pub(crate) fn escape_name(name: &[u8]) -> String {
    if let Ok(plain) = std::str::from_utf8(name)
        && !plain.chars().any(char::is_control)
    {
        return plain.to_owned();
    }
    let mut words = String::new();
    for chunk in name.utf8_chunks() {
        for letter in chunk.valid().chars() {
            if letter.is_control() {
                words.extend(letter.escape_default());
            } else {
                words.push(letter);
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(words, "\\x{byte:02x}");
        }
    }
    words
}

/// Some of the lines of a result.
#[derive(Debug, Default)]
pub(crate) struct SearchResultPage {
    /// The lines, joined.
    pub(crate) text: String,
    /// How many there are in it.
    pub(crate) shown: usize,
    /// There are more lines than fit into the text.
    pub(crate) cut_by_size: bool,
    /// There are more lines than were asked for.
    pub(crate) cut_by_limit: bool,
}

impl SearchResultPage {
    /// Passes `offset` lines over and takes as many as `limit` and the size of a result allow, but at least one.
    /// Whole lines only, so that the next page starts where this one ends.
    pub(crate) fn from_lines(
        lines: impl Iterator<Item = String>,
        offset: usize,
        limit: usize,
        most_chars: usize,
    ) -> Self {
        let mut page = Self::default();
        let mut chars = 0;
        for line in lines.skip(offset) {
            if page.shown == limit {
                page.cut_by_limit = true;
                break;
            }
            chars += line.chars().count() + 1;
            if chars > most_chars && page.shown > 0 {
                page.cut_by_size = true;
                break;
            }
            if page.shown > 0 {
                page.text.push('\n');
            }
            page.text.push_str(&line);
            page.shown += 1;
        }
        page
    }

    pub(crate) fn has_more(&self) -> bool {
        self.cut_by_limit || self.cut_by_size
    }

    /// How to go on, where there is more.
    pub(crate) fn continuation_notice(
        &self,
        what: &str,
        offset: usize,
        total: Option<u64>,
        field: &str,
    ) -> Option<String> {
        let total = total.map_or_else(String::new, |total| format!(" of {total}"));
        let next = offset + self.shown;
        self.has_more().then(|| {
            format!("[{what} {} to {next}{total}; there are more: go on with `{field}` {next}]", offset + 1)
        })
    }
}

/// What else the model should know about a search.
pub(crate) fn search_notices(aside: &SkippedSummary, paths: &SearchPathFormatter) -> Vec<String> {
    let mut notices = Vec::new();
    let withheld: Vec<_> = [
        format_count(aside.withheld_directories, "directory", "directories"),
        format_count(aside.withheld_files, "file", "files"),
    ]
    .into_iter()
    .flatten()
    .collect();
    if !withheld.is_empty() {
        notices.push(format!("[{} not shown by policy]", withheld.join(" and ")));
    }
    if let (Some(entries), Some((path, problem))) =
        (format_count(aside.unreadable, "entry", "entries"), &aside.first_unreadable)
    {
        notices.push(format!(
            "[{entries} could not be read, the first is `{}`: {problem}]",
            paths.format_path(path)
        ));
    }
    notices
}

/// A number with its noun, or nothing for none.
pub(crate) fn format_count(number: u64, one: &str, many: &str) -> Option<String> {
    match number {
        0 => None,
        1 => Some(format!("1 {one}")),
        number => Some(format!("{number} {many}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_from_the_working_directory_where_they_lie_below_it() {
        let path = |path: &str| AbsPath::new(path).unwrap();
        let check = |start: &str, relative: &[u8], absolute, expected: &str| {
            let words = SearchPathFormatter::new(&path(start), &path("/ws"), absolute);
            assert_eq!(words.format_path(relative), expected);
        };
        check("/ws", b"a/b", false, "a/b");
        check("/ws/src", b"a/b", false, "src/a/b");
        check("/ws/src/f.rs", b"", false, "src/f.rs");
        check("/ws", b"", false, ".");
        check("/ws", b"a", true, "/ws/a");
        check("/wsx", b"a", false, "/wsx/a");
        check("/", b"a", false, "/a");
        check("/ws", b"a\nb\xff\x1b", false, "a\\nb\\xff\\u{1b}");
    }

    #[test]
    fn pages_follow_each_other_without_gap_or_repeat() {
        let lines = || (0..10).map(|number| format!("line {number}"));
        for (limit, most_chars) in [(3, 1000), (10, 20), (100, 15), (1, 1)] {
            let (mut offset, mut all) = (0, Vec::new());
            loop {
                let page = SearchResultPage::from_lines(lines(), offset, limit, most_chars);
                all.push(page.text.clone());
                offset += page.shown;
                if !page.has_more() {
                    break;
                }
            }
            assert_eq!(all.join("\n"), lines().collect::<Vec<_>>().join("\n"));
        }
    }
}
