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

/// What may be shown of a file.
enum FileVisibility {
    /// It is outside the workspace: its path, without its text.
    PathOnly,
    /// Everything; `None` if it cannot be read.
    Text(Option<DocumentText>),
    /// Nothing: policy hides it.
    Withheld,
}

/// Reads files for an answer, each once.
pub(crate) struct PlaceReader {
    /// What the call may read.
    files: GrantedFiles,
    /// The workspace root of the call.
    root: Option<AbsPath>,
    /// The unit of the columns of the server.
    unit: ColumnUnit,
    /// The files so far, by the name that the server gives them; `None` for a name that is not a path. An answer names a file
    /// hundreds of times, and asking policy about each place would take longer than all the rest.
    seen_files: HashMap<String, Option<(AbsPath, FileVisibility)>>,
}

impl PlaceReader {
    /// A reader for the answer of one call.
    pub(crate) fn new(files: GrantedFiles, root: Option<AbsPath>, unit: ColumnUnit) -> Self {
        Self { files, root, unit, seen_files: HashMap::new() }
    }

    /// Checks and reads places. Blocks.
    pub(crate) fn read(&mut self, raw: Vec<RawPlace>) -> PlaceList {
        let mut list = PlaceList::default();
        // Servers name a place twice. Compared as they name it, because comparing paths with each other takes longer than
        // all the rest of an answer with many places.
        let mut seen = HashSet::new();
        for place in &raw {
            let start = place.range.map(|range| (range.start.line, range.start.character));
            if !seen.insert((place.uri.0.as_str(), start, place.label.as_deref())) {
                continue;
            }
            if list.places.len() >= MAX_PLACES {
                list.surplus += 1;
                continue;
            }
            match self.read_place(place) {
                Some(found) => list.places.push(found),
                None => list.withheld += 1,
            }
        }
        list
    }

    /// One place; `None` if policy hides its file.
    fn read_place(&mut self, place: &RawPlace) -> Option<FoundPlace> {
        if !self.seen_files.contains_key(&place.uri.0) {
            let file = to_path(&place.uri).map(|path| {
                let visibility = self.check_file(&path);
                (path, visibility)
            });
            self.seen_files.insert(place.uri.0.clone(), file);
        }
        let (path, visibility) = self.seen_files.get(&place.uri.0)?.as_ref()?;
        let start = place.range.map(|range| range.start);
        let found = match visibility {
            FileVisibility::Withheld => return None,
            FileVisibility::PathOnly => None,
            FileVisibility::Text(text) => text.as_ref().zip(start).and_then(|(text, start)| {
                let (line, column) = text.character_position(start, self.unit)?;
                let snippet: String = text.line(line)?.trim().chars().take(MAX_SNIPPET_CHARS).collect();
                Some((column + 1, snippet))
            }),
        };
        let (column, snippet) = found.unzip();
        let line = start.map(|start| start.line as usize + 1);
        Some(FoundPlace { path: path.clone(), line, column, snippet, label: place.label.clone() })
    }

    /// Whether a file may be shown, and its text if it may.
    fn check_file(&self, path: &AbsPath) -> FileVisibility {
        let is_inside = self.root.as_ref().is_some_and(|root| path.is_under(root));
        let is_granted = self.files.real_path(path).is_ok();
        if !is_granted && !is_inside {
            return FileVisibility::PathOnly;
        }
        if !is_granted || self.files.may_hold_secrets(path) {
            return FileVisibility::Withheld;
        }
        let text = self.files.read(path, MAX_FILE_BYTES).ok();
        let text = text.map(|text| String::from_utf8_lossy(&text.bytes).into_owned());
        FileVisibility::Text(text.map(DocumentText::new))
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

#[cfg(test)]
mod tests {
    use super::*;
    use gen_lsp_types::Position;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use toolgate_files::{GrantedAccess, HiddenFileFilter, PathGrant};
    use toolgate_proto::PathScope;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test makes its own files")]
    fn a_file_is_checked_once_however_often_an_answer_names_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        for name in ["a", "hidden"] {
            std::fs::write(root.join(name), "target\n".repeat(300)).unwrap();
        }
        let checks = Arc::new(AtomicUsize::new(0));
        let (counter, hidden) = (Arc::clone(&checks), root.join("hidden"));
        let filter = HiddenFileFilter::new(move |path| {
            counter.fetch_add(1, Ordering::Relaxed);
            *path == hidden
        });
        let (asked, real) = (root.clone(), root.clone());
        let grant = PathGrant::new(asked, real, PathScope::Tree, GrantedAccess::Read);
        let files = GrantedFiles::new(vec![grant], vec![root.clone()]).with_hidden(filter);
        let place = |name: &str, line: u32| {
            let position = Position { line, character: 0 };
            let range = Some(Range { start: position, end: position });
            RawPlace { uri: Uri(format!("file://{}", root.join(name))), range, label: None }
        };
        let raw = (0..200).flat_map(|line| [place("a", line), place("hidden", line)]).collect();
        let list = PlaceReader::new(files, Some(root.clone()), ColumnUnit::Utf16).read(raw);
        assert_eq!((list.places.len(), list.withheld), (200, 200));
        assert!(list.places.iter().all(|place| place.snippet.as_deref() == Some("target")));
        let count = checks.load(Ordering::Relaxed);
        assert!(count <= 6, "policy was asked {count} times about two files");
    }
}
