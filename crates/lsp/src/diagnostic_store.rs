//! The diagnostics that a server published, by file.

use gen_lsp_types::{Code, Diagnostic, DiagnosticSeverity, Message};
use serde_json::{Value, json};
use std::collections::HashMap;
use tokio::time::Instant;
use toolgate_proto::AbsPath;

/// Files whose diagnostics are kept; a server may publish for a whole project.
const MAX_FILES: usize = 5_000;
/// Diagnostics of one file that are kept.
pub(crate) const MAX_PER_FILE: usize = 500;
/// Characters of a message that are kept.
const MAX_MESSAGE_CHARS: usize = 1_000;

/// One problem that a server reports.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CodeProblem {
    /// How serious it is.
    pub severity: ProblemLevel,
    /// The line, from 0.
    pub line: u32,
    /// The column, from 0, in the unit of the server.
    pub character: u32,
    /// The line of its end.
    pub end_line: u32,
    /// The column of its end.
    pub end_character: u32,
    /// What the server says.
    pub message: String,
    /// Its code, such as `E0308`.
    pub code: Option<String>,
    /// The part of the server that found it.
    pub source: Option<String>,
}

/// How serious a problem is, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProblemLevel {
    /// An error.
    Error,
    /// A warning.
    Warning,
    /// An information.
    Information,
    /// A hint.
    Hint,
}

impl ProblemLevel {
    /// The word for results.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Information => "information",
            Self::Hint => "hint",
        }
    }
}

impl CodeProblem {
    /// A diagnostic without what only editors need. A missing severity counts as an error, as in editors.
    pub(crate) fn new(diagnostic: Diagnostic) -> Self {
        let message = match diagnostic.message {
            Message::String(text) => text,
            Message::MarkupContent(content) => content.value,
        };
        Self {
            severity: match diagnostic.severity {
                Some(DiagnosticSeverity::Warning) => ProblemLevel::Warning,
                Some(DiagnosticSeverity::Information) => ProblemLevel::Information,
                Some(DiagnosticSeverity::Hint) => ProblemLevel::Hint,
                Some(DiagnosticSeverity::Error | DiagnosticSeverity::Custom(_)) | None => ProblemLevel::Error,
            },
            line: diagnostic.range.start.line,
            character: diagnostic.range.start.character,
            end_line: diagnostic.range.end.line,
            end_character: diagnostic.range.end.character,
            message: message.chars().take(MAX_MESSAGE_CHARS).collect(),
            code: diagnostic.code.map(|code| match code {
                Code::Int(number) => number.to_string(),
                Code::String(text) => text,
            }),
            source: diagnostic.source,
        }
    }

    /// The problem as text: severity, code, message and source.
    pub fn describe(&self) -> String {
        let code = self.code.as_ref().map(|code| format!("[{code}]")).unwrap_or_default();
        let source = self.source.as_ref().map(|source| format!(" ({source})")).unwrap_or_default();
        format!("{}{code}: {}{source}", self.severity.as_str(), self.message)
    }

    /// The problem as a diagnostic of the protocol, for the code actions that fix it.
    pub(crate) fn to_lsp(&self) -> Value {
        let code = self.code.as_ref().map(|code| match code.parse::<i64>() {
            Ok(number) => json!(number),
            Err(_) => json!(code),
        });
        json!({
            "range": {
                "start": { "line": self.line, "character": self.character },
                "end": { "line": self.end_line, "character": self.end_character },
            },
            "severity": self.severity as u8 + 1,
            "message": self.message,
            "code": code,
            "source": self.source,
        })
    }

    /// Whether two problems are the same apart from where they stand: an edit moves what it does not touch.
    pub(crate) fn is_same_problem(&self, other: &Self) -> bool {
        self.severity == other.severity && self.message == other.message && self.code == other.code
    }
}

/// The problems of one file, as they were published last.
#[derive(Debug, Clone)]
pub(crate) struct PublishedProblems {
    /// The version of the document that they are for, if the server says so.
    pub(crate) version: Option<i32>,
    /// When they arrived.
    pub(crate) at: Instant,
    /// The problems, at most a limited number of them.
    pub(crate) problems: Vec<CodeProblem>,
}

impl PublishedProblems {
    /// Whether they are for this version of a document, which was sent at `sent`.
    /// Servers that publish no version are believed if they published after the document was sent.
    pub(crate) fn is_for(&self, version: i32, sent: Instant) -> bool {
        match self.version {
            Some(published) => published >= version,
            None => self.at >= sent,
        }
    }
}

/// The problems of all files.
#[derive(Debug, Default)]
pub(crate) struct DiagnosticStore {
    /// By the path that the server published.
    files: HashMap<AbsPath, PublishedProblems>,
    /// What it answered when it was asked. Apart from what it publishes: rust-analyzer answers with its own problems, and
    /// publishes those of the compiler.
    asked: HashMap<AbsPath, PublishedProblems>,
}

impl DiagnosticStore {
    /// Takes what a server published for a file. A file over the limit replaces another.
    pub(crate) fn publish(&mut self, path: AbsPath, version: Option<i32>, diagnostics: Vec<Diagnostic>) {
        make_room(&mut self.files, &path);
        let problems = diagnostics.into_iter().take(MAX_PER_FILE).map(CodeProblem::new).collect();
        self.files.insert(path, PublishedProblems { version, at: Instant::now(), problems });
    }

    /// What was published last for a file.
    pub(crate) fn get(&self, path: &AbsPath) -> Option<&PublishedProblems> {
        self.files.get(path)
    }

    /// Keeps what a server answered about a version of a file.
    pub(crate) fn set_asked(&mut self, path: AbsPath, version: i32, problems: Vec<CodeProblem>) {
        make_room(&mut self.asked, &path);
        self.asked.insert(path, PublishedProblems { version: Some(version), at: Instant::now(), problems });
    }

    /// The problems of a version of a document, if they are known: what the server answered, with what it published beside
    /// that, or what it published for this version.
    pub(crate) fn known(&self, path: &AbsPath, version: i32, sent: Instant) -> Option<Vec<CodeProblem>> {
        let published = self.files.get(path);
        match self.asked.get(path).filter(|asked| asked.is_for(version, sent)) {
            Some(asked) => {
                let beside = published.map(|published| published.problems.as_slice()).unwrap_or_default();
                let mut problems = asked.problems.clone();
                problems.extend(new_problems(&asked.problems, beside));
                Some(problems)
            }
            None => published
                .filter(|published| published.is_for(version, sent))
                .map(|published| published.problems.clone()),
        }
    }
}

/// Removes a file from a full map: any, because looking for the oldest would make a flood expensive.
fn make_room(files: &mut HashMap<AbsPath, PublishedProblems>, path: &AbsPath) {
    if files.len() >= MAX_FILES && !files.contains_key(path) {
        let other = files.keys().next().cloned();
        if let Some(other) = other {
            files.remove(&other);
        }
    }
}

/// The problems of `after` that `before` does not have, each as often as it is new.
pub(crate) fn new_problems(before: &[CodeProblem], after: &[CodeProblem]) -> Vec<CodeProblem> {
    let mut known: Vec<&CodeProblem> = before.iter().collect();
    let mut new = Vec::new();
    for problem in after {
        match known.iter().position(|old| old.is_same_problem(problem)) {
            Some(index) => drop(known.swap_remove(index)),
            None => new.push(problem.clone()),
        }
    }
    new
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(line: u32, message: &str) -> CodeProblem {
        CodeProblem {
            severity: ProblemLevel::Error,
            line,
            character: 0,
            end_line: line,
            end_character: 1,
            message: message.to_owned(),
            code: None,
            source: None,
        }
    }

    #[test]
    fn only_what_an_edit_introduced_is_new() {
        let before = [problem(1, "a"), problem(2, "a"), problem(3, "b")];
        assert_eq!(new_problems(&before, &[problem(9, "a"), problem(10, "a"), problem(4, "b")]), []);
        let three = [problem(1, "a"), problem(2, "a"), problem(7, "a"), problem(8, "c")];
        assert_eq!(new_problems(&before, &three), [problem(7, "a"), problem(8, "c")]);
        assert_eq!(new_problems(&before, &[]), []);
    }

    #[tokio::test]
    async fn what_is_published_beside_an_answer_is_known_too() {
        let mut store = DiagnosticStore::default();
        let path = AbsPath::root().join("a");
        let sent = Instant::now();
        assert_eq!(store.known(&path, 1, sent), None);
        store.set_asked(path.clone(), 1, vec![problem(1, "own"), problem(2, "both")]);
        let beside = vec![problem(2, "both"), problem(3, "compiler")];
        let published = PublishedProblems { version: Some(1), at: sent, problems: beside.clone() };
        store.files.insert(path.clone(), published);
        let all = vec![problem(1, "own"), problem(2, "both"), problem(3, "compiler")];
        assert_eq!(store.known(&path, 1, sent), Some(all));
        assert_eq!(store.known(&path, 2, sent), None);
        store.asked.clear();
        assert_eq!(store.known(&path, 1, sent), Some(beside));
    }

    #[tokio::test]
    async fn a_flood_of_files_is_kept_within_the_limit() {
        let mut store = DiagnosticStore::default();
        let path = |index: usize| AbsPath::root().join(index.to_string());
        for index in 0..MAX_FILES + 10 {
            store.publish(path(index), None, Vec::new());
        }
        assert_eq!(store.files.len(), MAX_FILES);
        assert!(store.get(&path(MAX_FILES + 9)).is_some());
    }
}
