//! Places in files that a server answers with, checked against policy before they are shown.
//!
//! A place inside the workspace is shown with its line of text; one outside only with its path; one in a file that policy
//! hides is only counted.

use crate::document_text::{ColumnUnit, DocumentText};
use crate::uri_path::to_path;
use gen_lsp_types::{Range, Uri};
use serde_json::{Value, json};
use std::collections::{HashMap, HashSet};
use toolgate_files::GrantedFiles;
use toolgate_proto::AbsPath;

/// Places of one answer that are shown.
const MAX_PLACES: usize = 500;
/// Characters of a line that are shown.
const MAX_SNIPPET_CHARS: usize = 200;
/// A larger file is shown without its text.
const MAX_FILE_BYTES: u64 = 8 << 20;

/// A place as the server names it.
#[derive(Debug, Clone)]
pub(crate) struct RawPlace {
    /// The file.
    pub(crate) uri: Uri,
    /// Absent where the server names the file only.
    pub(crate) range: Option<Range>,
    /// What stands before the text: the kind and the name of a symbol.
    pub(crate) label: Option<String>,
}

/// A place that may be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundPlace {
    /// The file.
    pub(crate) path: AbsPath,
    /// From 1.
    pub(crate) line: Option<usize>,
    /// From 1, in characters; `None` outside the workspace, where the text is not read.
    pub(crate) column: Option<usize>,
    /// The text of the line, without indentation; `None` where the file is not read.
    pub(crate) snippet: Option<String>,
    /// The kind and the name of a symbol.
    pub(crate) label: Option<String>,
}

/// The places of one answer.
#[derive(Debug, Default)]
pub(crate) struct PlaceList {
    /// Those that may be shown.
    pub(crate) places: Vec<FoundPlace>,
    /// How many policy withholds.
    pub(crate) withheld: usize,
    /// How many are not shown because there are too many.
    pub(crate) surplus: usize,
}

/// Reads files for an answer, each once.
pub(crate) struct PlaceReader {
    /// What the call may read.
    files: GrantedFiles,
    /// The workspace root of the call.
    root: Option<AbsPath>,
    /// The unit of the columns of the server.
    unit: ColumnUnit,
    /// The files that were read; `None` for one that cannot be read.
    texts: HashMap<AbsPath, Option<DocumentText>>,
}

impl PlaceReader {
    /// A reader for the answer of one call.
    pub(crate) fn new(files: GrantedFiles, root: Option<AbsPath>, unit: ColumnUnit) -> Self {
        Self { files, root, unit, texts: HashMap::new() }
    }

    /// Checks and reads places. Blocks.
    pub(crate) fn read(&mut self, raw: Vec<RawPlace>) -> PlaceList {
        let mut list = PlaceList::default();
        // Servers name a place twice. Compared as they name it, because comparing paths with each other takes longer than
        // all the rest of an answer with many places.
        let mut seen = HashSet::new();
        for place in raw {
            let start = place.range.map(|range| (range.start.line, range.start.character));
            if !seen.insert((place.uri.0.clone(), start, place.label.clone())) {
                continue;
            }
            let Some(path) = to_path(&place.uri) else {
                list.withheld += 1;
                continue;
            };
            if list.places.len() >= MAX_PLACES {
                list.surplus += 1;
                continue;
            }
            match self.read_place(path, &place) {
                Some(found) => list.places.push(found),
                None => list.withheld += 1,
            }
        }
        list
    }

    /// One place; `None` if policy hides its file.
    fn read_place(&mut self, path: AbsPath, place: &RawPlace) -> Option<FoundPlace> {
        let line = place.range.map(|range| range.start.line as usize + 1);
        let label = place.label.clone();
        let is_inside = self.root.as_ref().is_some_and(|root| path.is_under(root));
        let is_granted = self.files.real_path(&path).is_ok();
        if !is_granted && !is_inside {
            return Some(FoundPlace { path, line, column: None, snippet: None, label });
        }
        if !is_granted || self.files.may_hold_secrets(&path) {
            return None;
        }
        let unit = self.unit;
        let text = self.texts.entry(path.clone()).or_insert_with(|| {
            let snapshot = self.files.read(&path, MAX_FILE_BYTES).ok()?;
            Some(DocumentText::new(String::from_utf8_lossy(&snapshot.bytes).into_owned()))
        });
        let start = place.range.map(|range| range.start);
        let found = text.as_ref().zip(start).and_then(|(text, start)| {
            let (line, column) = text.character_position(start, unit)?;
            let snippet: String = text.line(line)?.trim().chars().take(MAX_SNIPPET_CHARS).collect();
            Some((column + 1, snippet))
        });
        let (column, snippet) = found.unzip();
        Some(FoundPlace { path, line, column, snippet, label })
    }
}

impl FoundPlace {
    /// The place as one line: `path:line:column: label: text`.
    pub(crate) fn render(&self, cwd: &AbsPath) -> String {
        let mut text = shown_path(&self.path, cwd);
        for number in [self.line, self.column].into_iter().flatten() {
            text.push_str(&format!(":{number}"));
        }
        for part in [&self.label, &self.snippet].into_iter().flatten() {
            text.push_str(": ");
            text.push_str(part);
        }
        text
    }

    /// The place in the structured form of a result.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "filePath": self.path,
            "line": self.line,
            "character": self.column,
            "symbol": self.label,
            "text": self.snippet,
        })
    }
}

impl PlaceList {
    /// The places, one per line, and what is not shown.
    pub(crate) fn render(&self, cwd: &AbsPath) -> String {
        let mut lines: Vec<String> = self.places.iter().map(|place| place.render(cwd)).collect();
        if self.surplus > 0 {
            lines.push(format!("[{} more are not shown]", self.surplus));
        }
        if self.withheld > 0 {
            lines.push(format!("[{} withheld by policy]", self.withheld));
        }
        lines.join("\n")
    }

    /// Whether the server named no place at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.places.is_empty() && self.withheld == 0
    }
}

/// A path for a result: relative inside the working directory.
pub(crate) fn shown_path(path: &AbsPath, cwd: &AbsPath) -> String {
    match path.as_path().strip_prefix(cwd.as_path()) {
        Ok(relative) if !relative.as_os_str().is_empty() => relative.display().to_string(),
        _ => path.to_string(),
    }
}
