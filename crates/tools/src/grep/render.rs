//! What the claude face shows of an answer: a page of lines for the model, and the same as data.

use super::GrepOutputMode;
use crate::search_output::{SearchPathFormatter, SearchResultPage, format_count, search_notices};
use serde_json::{Value, json};
use toolgate_proto::Output;
use toolgate_search::{ContentOutputKind, ContentSearchResult, FileHits, ResultLine, ResultLineKind};

/// An answer in the shape of the claude face.
pub(super) struct GrepRenderer<'a> {
    pub(super) answer: &'a ContentSearchResult,
    pub(super) paths: &'a SearchPathFormatter,
    pub(super) show: &'a ContentOutputKind,
    pub(super) offset: usize,
    pub(super) limit: usize,
    pub(super) max_chars: usize,
}

impl GrepRenderer<'_> {
    pub(super) fn output(&self, mode: GrepOutputMode) -> Output {
        let page = SearchResultPage::from_lines(self.lines(), self.offset, self.limit, self.max_chars);
        let total: Option<usize> = self.answer.complete.then(|| self.lines().count());
        let what = match mode {
            GrepOutputMode::Content => "lines",
            GrepOutputMode::FilesWithMatches => "files",
            GrepOutputMode::Count => "counts",
        };
        let mut text = vec![page.text.clone()];
        if page.shown == 0 {
            text = vec![match total {
                Some(total) if total > 0 => format!("[there are only {total} {what}]"),
                _ => "no matches found".to_owned(),
            }];
        }
        text.extend(page.continuation_notice(what, self.offset, total.map(|total| total as u64), "offset"));
        text.extend(search_notices(&self.answer.skipped, self.paths));

        let files = self.files_on_page(&page);
        let mut structured = json!({ "mode": mode, "numFiles": files.len(), "filenames": files });
        if let Value::Object(fields) = &mut structured {
            let mut put = |name: &str, value: Value| {
                fields.insert(name.to_owned(), value);
            };
            match mode {
                GrepOutputMode::FilesWithMatches => {
                    put("totalFiles", json!(total));
                }
                GrepOutputMode::Content => {
                    put("content", json!(page.text));
                    put("numLines", json!(page.shown));
                    put("totalLines", json!(total));
                }
                GrepOutputMode::Count => {
                    let counts = self.answer.files.iter().skip(self.offset).take(page.shown);
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
        }
        let display = match format_count(files.len() as u64, "file", "files") {
            Some(files) if mode == GrepOutputMode::Content => {
                format!("found {} lines in {files}", page.shown)
            }
            Some(files) => format!("found {files}"),
            None => "found nothing".to_owned(),
        };
        Output::text(text.join("\n")).display(display).structured(structured)
    }

    /// Every line of the answer, of which a page is shown.
    fn lines(&self) -> impl Iterator<Item = String> {
        let gaps =
            matches!(self.show, ContentOutputKind::Lines(lines) if lines.before > 0 || lines.after > 0);
        self.answer.files.iter().enumerate().flat_map(move |(index, (file, hits))| {
            let path = self.paths.format_path(file);
            let gap = (gaps && index > 0).then(|| "--".to_owned());
            gap.into_iter().chain(self.file_lines(path, hits))
        })
    }

    fn file_lines(&self, path: String, hits: &FileHits) -> Vec<String> {
        match self.show {
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

    /// The files that a page speaks of.
    fn files_on_page(&self, page: &SearchResultPage) -> Vec<String> {
        let gaps =
            matches!(self.show, ContentOutputKind::Lines(lines) if lines.before > 0 || lines.after > 0);
        let shown = self.offset..self.offset + page.shown;
        let mut at = 0;
        let mut files = Vec::new();
        for (index, (file, hits)) in self.answer.files.iter().enumerate() {
            at += usize::from(gaps && index > 0);
            let start = at;
            at += match self.show {
                ContentOutputKind::Files | ContentOutputKind::LineCounts | ContentOutputKind::MatchCounts => {
                    1
                }
                ContentOutputKind::Lines(_) => hits.lines.len() + usize::from(hits.binary),
            };
            if start < shown.end && at > shown.start {
                files.push(self.paths.format_path(file));
            }
        }
        files
    }
}

fn render_content_line(path: &str, line: &ResultLine) -> String {
    let mark = match line.kind {
        ResultLineKind::Match => ':',
        ResultLineKind::Context => '-',
        ResultLineKind::Gap => return "--".to_owned(),
    };
    match line.number {
        Some(number) => format!("{path}{mark}{number}{mark}{}", line.text),
        None => format!("{path}{mark}{}", line.text),
    }
}
