//! The result of `Grep`: a page of lines for the model, and the same as structured data.

use super::GrepOutputMode;
use crate::search::{PathFormatter, ResultPage, search_notices};
use serde_json::{Map, Value, json};
use toolgate_proto::{Output, format_count};
use toolgate_search::{ContentOutputKind, ContentSearchResult, FileHits, ResultLine, ResultLineKind};

/// Renders one search result.
pub(super) struct GrepRenderer<'a> {
    /// Everything that the search collected; a page of it is shown.
    pub(super) result: &'a ContentSearchResult,
    /// Formats the paths relative to the working directory.
    pub(super) paths: &'a PathFormatter,
    /// What the search collected of each file, which decides how many lines a file has.
    pub(super) output_kind: &'a ContentOutputKind,
    /// Lines to skip.
    pub(super) offset: usize,
    /// Lines to show.
    pub(super) limit: usize,
    /// Characters to show.
    pub(super) max_chars: usize,
}

impl GrepRenderer<'_> {
    /// The page as text, as a summary for the user and as structured data.
    pub(super) fn output(&self, mode: GrepOutputMode) -> Output {
        let page = ResultPage::from_lines(self.lines(), self.offset, self.limit, self.max_chars);
        let total: Option<usize> = self.result.complete.then(|| self.lines().count());
        let noun = match mode {
            GrepOutputMode::Content => "lines",
            GrepOutputMode::FilesWithMatches => "files",
            GrepOutputMode::Count => "counts",
        };
        let mut text = vec![page.text.clone()];
        if page.shown == 0 {
            text = vec![match total {
                Some(total) if total > 0 => format!("[there are only {total} {noun}]"),
                _ => "no matches found".to_owned(),
            }];
        }
        text.extend(page.continuation_notice(noun, self.offset, total.map(|total| total as u64)));
        text.extend(search_notices(&self.result.skipped, self.paths));

        let files = self.files_on_page(&page);
        let display = match (files.len(), mode) {
            (0, _) => "found nothing".to_owned(),
            (count, GrepOutputMode::Content) => {
                format!(
                    "found {} in {}",
                    format_count(page.shown as u64, "line", "lines"),
                    format_count(count as u64, "file", "files")
                )
            }
            (count, _) => format!("found {}", format_count(count as u64, "file", "files")),
        };
        let structured = self.structured(mode, &page, total, &files);
        Output::text(text.join("\n")).display(display).structured(structured)
    }

    /// The page as data. A total that is not known is left out rather than null.
    fn structured(
        &self,
        mode: GrepOutputMode,
        page: &ResultPage,
        total: Option<usize>,
        files: &[String],
    ) -> Value {
        let mut fields = Map::new();
        let mut put = |name: &str, value: Value| {
            fields.insert(name.to_owned(), value);
        };
        put("mode", json!(mode));
        put("numFiles", json!(files.len()));
        put("filenames", json!(files));
        match mode {
            GrepOutputMode::FilesWithMatches => put("totalFiles", json!(total)),
            GrepOutputMode::Content => {
                put("content", json!(page.text));
                put("numLines", json!(page.shown));
                put("totalLines", json!(total));
            }
            GrepOutputMode::Count => {
                let counts = self.result.files.iter().skip(self.offset).take(page.shown);
                put("content", json!(page.text));
                put("numMatches", json!(counts.map(|(_, hits)| hits.count).sum::<u64>()));
                put("totalFiles", json!(total));
            }
        }
        if page.has_more() {
            put("appliedLimit", json!(page.shown));
        }
        if self.offset > 0 {
            put("appliedOffset", json!(self.offset));
        }
        fields.retain(|_, value| !value.is_null());
        Value::Object(fields)
    }

    /// Whether `--` separates the files, as in ripgrep's output with context lines.
    fn has_separators(&self) -> bool {
        matches!(self.output_kind, ContentOutputKind::Lines(lines) if lines.before > 0 || lines.after > 0)
    }

    /// Every line of the result, of which a page is shown.
    fn lines(&self) -> impl Iterator<Item = String> {
        let has_separators = self.has_separators();
        self.result.files.iter().enumerate().flat_map(move |(index, (file, hits))| {
            let path = self.paths.format_path(file);
            let separator = (has_separators && index > 0).then(|| "--".to_owned());
            separator.into_iter().chain(self.file_lines(path, hits))
        })
    }

    /// The lines of one file in the requested output mode.
    fn file_lines(&self, path: String, hits: &FileHits) -> Vec<String> {
        match self.output_kind {
            ContentOutputKind::Files => vec![path],
            ContentOutputKind::LineCounts | ContentOutputKind::MatchCounts => {
                vec![format!("{path}:{}", hits.count)]
            }
            ContentOutputKind::Lines(_) => {
                let mut lines: Vec<String> =
                    hits.lines.iter().map(|line| render_content_line(&path, line)).collect();
                if hits.binary {
                    lines.push(format!("[{path} is a binary file with matches; the rest is not shown]"));
                }
                lines
            }
        }
    }

    /// The files with at least one line on the page. Counts lines as [`Self::lines`] makes them, without rendering.
    fn files_on_page(&self, page: &ResultPage) -> Vec<String> {
        let has_separators = self.has_separators();
        let shown = self.offset..self.offset + page.shown;
        let mut line_count = 0;
        let mut files = Vec::new();
        for (index, (file, hits)) in self.result.files.iter().enumerate() {
            line_count += usize::from(has_separators && index > 0);
            let start = line_count;
            line_count += match self.output_kind {
                ContentOutputKind::Files | ContentOutputKind::LineCounts | ContentOutputKind::MatchCounts => {
                    1
                }
                ContentOutputKind::Lines(_) => hits.lines.len() + usize::from(hits.binary),
            };
            if start < shown.end && line_count > shown.start {
                files.push(self.paths.format_path(file));
            }
        }
        files
    }
}

/// A line in ripgrep's format: `path:12:text` for a match, `path-12-text` for context.
fn render_content_line(path: &str, line: &ResultLine) -> String {
    let separator = match line.kind {
        ResultLineKind::Match => ':',
        ResultLineKind::Context => '-',
        ResultLineKind::Gap => return "--".to_owned(),
    };
    match line.number {
        Some(number) => format!("{path}{separator}{number}{separator}{}", line.text),
        None => format!("{path}{separator}{}", line.text),
    }
}
