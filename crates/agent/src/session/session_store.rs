//! Where transcripts are, and how a conversation is read back from one.
//!
//! One file for each session, in one directory for each project: `projects/<working directory, other characters as
//! `-`>/<id>.jsonl`. This is the layout that agent SDKs list sessions from.

use crate::conversation::{ConversationMessage, block_type, text_field};
use serde_json::Value;
use std::collections::BTreeSet;
use toolgate_files::{FileProblem, FileStamp, list_names_with_suffix, read_file_stamp, read_log_lines};
use toolgate_proto::AbsPath;

/// The largest transcript that is read.
const MAX_TRANSCRIPT_BYTES: u64 = 512 * 1024 * 1024;
/// The longest name of a project's directory; a longer one is cut and gets a hash.
const MAX_PROJECT_CHARS: usize = 200;

/// The transcripts of one project.
#[derive(Debug, Clone)]
pub struct SessionStore {
    /// The directory of the transcripts.
    dir: AbsPath,
}

/// A session as it was stored.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct StoredSession {
    /// Its lines.
    pub lines: Vec<Value>,
}

/// Why a session cannot be resumed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// There is none of that id.
    #[error("No conversation found with session ID: {0}")]
    Unknown(String),
    /// The id is not one.
    #[error("`{0}` is not the id of a session; it must be a UUID")]
    InvalidId(String),
    /// It has no message of that id.
    #[error("the session has no message `{0}`")]
    UnknownMessage(String),
    /// More would be left out than the turn that was named.
    #[error("Resume rejected by --resume-drops-turn: {0}")]
    DropsMore(String),
    /// Its file cannot be read.
    #[error("the transcript `{path}` cannot be read: {problem}")]
    Unreadable {
        /// The file.
        path: String,
        /// Why.
        problem: String,
    },
}

/// Checks that a text is a UUID: it becomes a part of a path.
pub fn check_session_id(id: &str) -> Result<(), SessionError> {
    let groups: Vec<usize> = id.split('-').map(str::len).collect();
    let fits = groups == [8, 4, 4, 4, 12] && id.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    if fits { Ok(()) } else { Err(SessionError::InvalidId(id.to_owned())) }
}

impl SessionStore {
    /// The transcripts of the project at `cwd`, below a base directory.
    pub fn new(base: &AbsPath, cwd: &AbsPath) -> Self {
        Self { dir: base.join("projects").join(project_name(&cwd.to_string())) }
    }

    /// The transcripts in a directory.
    pub(super) fn at(dir: AbsPath) -> Self {
        Self { dir }
    }

    /// The directory of the transcripts.
    pub(super) fn dir(&self) -> &AbsPath {
        &self.dir
    }

    /// The file of a session.
    pub fn transcript_path(&self, id: &str) -> Result<AbsPath, SessionError> {
        check_session_id(id)?;
        Ok(self.dir.join(format!("{id}.jsonl")))
    }

    /// Whether a session of this id is stored here.
    pub fn contains(&self, id: &str) -> bool {
        self.transcript_path(id).is_ok_and(|path| read_file_stamp(&path) != FileStamp::Absent)
    }

    /// Reads a session.
    pub fn load(&self, id: &str) -> Result<StoredSession, SessionError> {
        let path = self.transcript_path(id)?;
        if read_file_stamp(&path) == FileStamp::Absent {
            return Err(SessionError::Unknown(id.to_owned()));
        }
        StoredSession::read_file(&path)
    }

    /// The session that was written to last, with the time of that.
    pub fn newest(&self) -> Option<(String, i128)> {
        let names = list_names_with_suffix(&self.dir, ".jsonl").ok()?;
        let stamped = names.iter().filter_map(|name| {
            let id = name.strip_suffix(".jsonl")?;
            check_session_id(id).ok()?;
            match read_file_stamp(&self.dir.join(name)) {
                FileStamp::Present { modified, .. } => Some((id.to_owned(), modified)),
                FileStamp::Absent => None,
            }
        });
        stamped.max_by_key(|(_, modified)| *modified)
    }
}

impl StoredSession {
    /// Reads a transcript; an empty session if there is none.
    pub fn read_file(path: &AbsPath) -> Result<Self, SessionError> {
        let unreadable = |problem: FileProblem| SessionError::Unreadable {
            path: path.to_string(),
            problem: problem.to_string(),
        };
        let lines = read_log_lines(path, MAX_TRANSCRIPT_BYTES).map_err(unreadable)?.unwrap_or_default();
        // A line that cannot be read is one of another program or version: it is not part of the conversation.
        Ok(Self { lines: lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect() })
    }

    /// The conversation, from the last compaction on.
    pub fn messages(&self) -> Vec<ConversationMessage> {
        let from = self.lines.iter().rposition(|line| text_field(line, "subtype") == "compact_boundary");
        let lines = self.lines.iter().skip(from.map_or(0, |boundary| boundary + 1));
        lines.filter_map(read_message).collect()
    }

    /// The same session up to and including the message of this id.
    pub fn up_to(mut self, message: &str) -> Result<Self, SessionError> {
        let place = self.lines.iter().position(|line| text_field(line, "uuid") == message);
        let place = place.ok_or_else(|| SessionError::UnknownMessage(message.to_owned()))?;
        self.lines.truncate(place + 1);
        Ok(self)
    }

    /// Checks that everything after a message belongs to the turn of one prompt.
    pub fn check_dropped_turn(&self, message: &str, prompt: &str) -> Result<(), SessionError> {
        let place = self.lines.iter().position(|line| text_field(line, "uuid") == message);
        let place = place.ok_or_else(|| SessionError::UnknownMessage(message.to_owned()))?;
        let mut after = self
            .lines
            .iter()
            .skip(place + 1)
            .filter(|line| matches!(text_field(line, "type"), "user" | "assistant"));
        if after.next().is_none_or(|line| text_field(line, "uuid") != prompt) {
            let why = format!("the turn after that message is not the one of `{prompt}`");
            return Err(SessionError::DropsMore(why));
        }
        let is_result = |message: &ConversationMessage| {
            message.content.iter().all(|block| block_type(block) == "tool_result")
        };
        let is_prompt = |line: &&Value| {
            text_field(line, "type") == "user"
                && read_message(line).is_some_and(|message| !is_result(&message))
        };
        match after.find(is_prompt) {
            None => Ok(()),
            Some(_) => {
                let why = "the session has a later message that is not part of that turn".to_owned();
                Err(SessionError::DropsMore(why))
            }
        }
    }

    /// The ids of the calls that were made before the prompt of this id.
    pub fn calls_before(&self, message: &str) -> Result<BTreeSet<String>, SessionError> {
        let place = self.lines.iter().position(|line| text_field(line, "uuid") == message);
        let place = place.ok_or_else(|| SessionError::UnknownMessage(message.to_owned()))?;
        let before = self.lines.iter().take(place).filter_map(read_message);
        let calls =
            before.flat_map(|message| message.content).filter(|block| block_type(block) == "tool_use");
        Ok(calls.map(|call| text_field(&call, "id").to_owned()).collect())
    }

    /// The id of the last line that has one.
    pub fn last_id(&self) -> Option<&str> {
        self.lines.iter().rev().map(|line| text_field(line, "uuid")).find(|id| !id.is_empty())
    }
}

/// The message of a line; none for lines of other kinds.
fn read_message(line: &Value) -> Option<ConversationMessage> {
    let is_side = line.get("isSidechain") == Some(&Value::Bool(true));
    if is_side || !matches!(text_field(line, "type"), "user" | "assistant") {
        return None;
    }
    let message = line.get("message")?;
    let content = match message.get("content")? {
        Value::String(text) => vec![crate::conversation::text_block(text.clone())],
        Value::Array(blocks) => blocks.clone(),
        _ => return None,
    };
    match text_field(message, "role") {
        "user" => Some(ConversationMessage::user(content)),
        "assistant" => Some(ConversationMessage::assistant(content)),
        _ => None,
    }
}

/// The name of a project's directory.
fn project_name(cwd: &str) -> String {
    let plain: String = cwd.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    if plain.chars().count() <= MAX_PROJECT_CHARS {
        return plain;
    }
    let hash = cwd.bytes().fold(0u32, |hash, byte| hash.wrapping_mul(31).wrapping_add(u32::from(byte)));
    let cut: String = plain.chars().take(MAX_PROJECT_CHARS).collect();
    format!("{cut}-{hash:x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_uuids_become_paths() {
        let store = SessionStore::new(&AbsPath::root(), &AbsPath::root().join("home/me/my project"));
        let id = "0199aa00-0000-7000-8000-000000000001";
        assert_eq!(
            store.transcript_path(id).unwrap().to_string(),
            format!("/projects/-home-me-my-project/{id}.jsonl")
        );
        for wrong in ["", "..", "../../x", "0199aa00-0000-7000-8000-00000000000/", "0199aa00"] {
            assert!(store.transcript_path(wrong).is_err(), "{wrong}");
        }
        assert!(project_name(&"/é".repeat(300)).len() < 220);
    }
}
