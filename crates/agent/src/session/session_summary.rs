//! What a list of sessions shows: the id, the directory, the first prompt and the time of the last line.

use super::session_store::{SessionStore, check_session_id};
use crate::conversation::{block_text, text_field};
use serde_json::Value;
use std::io::Read;
use toolgate_files::{FileStamp, list_folder, list_names_with_suffix, open_named_file, read_file_stamp};
use toolgate_proto::AbsPath;

/// How much of a transcript is read for its summary; the first prompt is at its start.
const MAX_HEAD_BYTES: u64 = 256 * 1024;
/// The longest title.
const MAX_TITLE_CHARS: usize = 120;

/// A stored session, as a list shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionSummary {
    /// Its id.
    pub id: String,
    /// The directory that it worked in.
    pub cwd: String,
    /// The start of its first prompt.
    pub title: Option<String>,
    /// When it was written to last, in nanoseconds since 1970.
    pub modified: i128,
}

impl SessionSummary {
    /// The time of the last line, as text.
    pub fn updated_at(&self) -> Option<String> {
        let time = jiff::Timestamp::from_nanosecond(self.modified).ok()?;
        Some(format!("{time:.3}"))
    }
}

impl SessionStore {
    /// The stores of every project below a base directory.
    pub fn of_all_projects(base: &AbsPath) -> Vec<Self> {
        let projects = base.join("projects");
        // A directory that cannot be listed has no session that could be resumed.
        let entries = list_folder(&projects).unwrap_or_default();
        entries
            .into_iter()
            .filter(|entry| entry.is_directory)
            .map(|entry| Self::at(projects.join(&entry.name)))
            .collect()
    }

    /// The sessions of this project, the one written to last first. Files that are no transcript are left out.
    pub fn list(&self) -> Vec<SessionSummary> {
        let names = list_names_with_suffix(self.dir(), ".jsonl").unwrap_or_default();
        let mut found: Vec<SessionSummary> = names.iter().filter_map(|name| self.summarize(name)).collect();
        found.sort_by_key(|session| std::cmp::Reverse(session.modified));
        found
    }

    /// The summary of one transcript.
    fn summarize(&self, name: &str) -> Option<SessionSummary> {
        let id = name.strip_suffix(".jsonl")?;
        check_session_id(id).ok()?;
        let path = self.dir().join(name);
        let FileStamp::Present { modified, .. } = read_file_stamp(&path) else { return None };
        let mut head = Vec::new();
        open_named_file(&path).ok()?.take(MAX_HEAD_BYTES).read_to_end(&mut head).ok()?;
        let text = String::from_utf8_lossy(&head);
        let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
        let cwd = lines.iter().map(|line| text_field(line, "cwd")).find(|cwd| !cwd.is_empty())?.to_owned();
        let title = lines.iter().find_map(first_prompt);
        Some(SessionSummary { id: id.to_owned(), cwd, title, modified })
    }
}

/// The prompt of a line, in one line; the last text is the user's own, after attached context.
fn first_prompt(line: &Value) -> Option<String> {
    let is_meta = line.get("isMeta") == Some(&Value::Bool(true));
    if text_field(line, "type") != "user" || is_meta {
        return None;
    }
    let text = match line.pointer("/message/content")? {
        Value::String(text) => text.as_str(),
        Value::Array(blocks) => blocks.iter().rev().find_map(block_text)?,
        _ => return None,
    };
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (!words.is_empty()).then(|| words.chars().take(MAX_TITLE_CHARS).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn sessions_are_listed_with_their_first_prompt_and_other_files_are_not() {
        let scratch = tempfile::tempdir().unwrap();
        let base = AbsPath::new(scratch.path()).unwrap();
        let project = AbsPath::root().join("home/me/my project");
        let store = SessionStore::new(&base, &project);
        assert!(store.list().is_empty(), "a directory that does not exist has no sessions");
        let id = "0199aa00-0000-7000-8000-000000000001";
        let prompt = json!({ "type": "user", "cwd": project, "message": { "role": "user", "content": [
            { "type": "text", "text": "context" }, { "type": "text", "text": "fix\n the test" },
        ] } });
        let mut log = toolgate_files::LineLog::open(&store.transcript_path(id).unwrap()).unwrap();
        log.append(&json!({ "type": "summary" }).to_string()).unwrap();
        log.append(&prompt.to_string()).unwrap();
        toolgate_files::write_private_file(&store.dir().join("notes.jsonl"), b"{}\n").unwrap();
        let listed = store.list();
        assert_eq!(listed.len(), 1);
        assert_eq!((listed[0].id.as_str(), listed[0].title.as_deref()), (id, Some("fix the test")));
        assert_eq!(listed[0].cwd, project.to_string());
        assert!(listed[0].updated_at().unwrap().starts_with("20"));
        let all = SessionStore::of_all_projects(&base);
        assert_eq!(all.iter().map(|store| store.list().len()).sum::<usize>(), 1);
    }
}
