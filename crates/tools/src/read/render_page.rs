//! Renders a page of a file: its text, notes about it, and the structured output.

use super::line_number::LineNumber;
use super::page::FilePage;
use crate::text_encoding::LineEndings;
use serde_json::json;
use toolgate_proto::{AbsPath, Output, SessionModifier, format_count};

/// The output of a page. `text` is the page as the calling adapter shows it.
pub(super) fn render_page(page: &FilePage, text: String, path: &AbsPath) -> Output {
    let lines = format_count(page.lines.len() as u64, "line", "lines");
    let output = Output::text(text).display(format!("read {lines} of {path}"));
    let output = output.structured(page.structured(path));
    match page.hash {
        Some(hash) => output.modifier(SessionModifier::FileRead {
            path: page.real.clone(),
            hash: hash.to_string(),
            whole: page.is_whole(),
        }),
        None => output,
    }
}

impl FilePage {
    /// The lines with their numbers. The carriage returns of a file with CRLF line endings are left out; a note says
    /// so.
    pub(super) fn numbered_text(&self) -> String {
        let mut text = String::with_capacity(self.lines.text().len() + 8 * (self.lines.len() + 1));
        let is_crlf = self.line_endings == LineEndings::Crlf;
        let mut number = LineNumber::new(self.first);
        for line in self.lines.iter() {
            text.push_str(number.as_str());
            number.increment();
            text.push('\t');
            text.push_str(if is_crlf { line.strip_suffix('\r').unwrap_or(line) } else { line });
            text.push('\n');
        }
        text
    }

    /// The text exactly as in the file. A range that ends before the end of the file has no final line end.
    pub(super) fn raw_text(&self, count: u64) -> String {
        let mut text = self.lines.text().to_owned();
        if self.has_final_newline && self.reached_end && (self.lines.len() as u64) < count {
            text.push('\n');
        }
        text
    }

    /// What the text does not show. `field` is the input field with which the calling tool continues.
    pub(super) fn notes(&self, field: &str) -> Vec<String> {
        let mut notes = Vec::new();
        if self.lines.is_empty() {
            notes.push("the file is empty".to_owned());
        }
        if !self.reached_end {
            let next = self.first + self.lines.len() as u64;
            let total = self.total.map(|total| format!(" of {total} lines")).unwrap_or_default();
            let cause = if self.full { "the result is full: " } else { "" };
            notes.push(format!("{cause}this is a part{total}; continue with `{field}` {next}"));
        }
        if self.truncated_line {
            notes.push("long lines are truncated, so this counts as a partial view".to_owned());
        }
        if let Some(name) = self.encoding.name() {
            notes.push(format!("the file is {name}; edits keep that"));
        }
        match self.line_endings {
            LineEndings::Lf => {}
            LineEndings::Crlf => notes.push("lines end in CRLF; edits keep that".to_owned()),
            LineEndings::Mixed => notes.push("some lines end in CRLF and some in LF".to_owned()),
        }
        if self.lossy {
            notes.push(
                "invalid UTF-8 is shown as \u{fffd}; edits elsewhere keep the original bytes".to_owned(),
            );
        }
        notes
    }

    /// The page as data. The field names are those of the claude toolset's documentation.
    fn structured(&self, path: &AbsPath) -> serde_json::Value {
        let mut file = json!({
            "filePath": path,
            "content": self.lines.text(),
            "numLines": self.lines.len(),
            "startLine": self.first,
            "totalLines": self.total,
        });
        if let (true, Some(file)) = (self.full, file.as_object_mut()) {
            file.insert("truncatedByTokenCap".to_owned(), json!(true));
        }
        json!({ "type": "text", "file": file })
    }
}
