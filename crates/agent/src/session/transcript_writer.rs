//! Writes the transcript of a session, line by line as things happen.

use super::session_store::StoredSession;
use crate::agent_event::{AgentEvent, AgentObserver, AgentOrigin};
use crate::conversation::ConversationMessage;
use serde_json::{Map, Value, json};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use toolgate_files::{FileProblem, LineLog};
use toolgate_proto::AbsPath;

/// Writes a transcript. What cannot be written is remembered, and does not stop the agent.
pub struct TranscriptWriter {
    /// The session, which every line names.
    session_id: String,
    /// Where it works, which every line names.
    cwd: AbsPath,
    /// Our version, which every line names.
    version: &'static str,
    /// The file and what it ends with.
    state: Mutex<TranscriptState>,
    /// Gets each line too, once it is set.
    mirror: OnceLock<TranscriptMirror>,
}

/// Gets each line of a transcript.
pub type TranscriptMirror = Box<dyn Fn(&Value) + Send + Sync>;

/// The file and where it stands.
struct TranscriptState {
    /// The file.
    log: LineLog,
    /// The id of the last line, which the next one names as its parent.
    last_id: Option<String>,
    /// Why a line could not be written, if one could not.
    problem: Option<FileProblem>,
}

impl TranscriptWriter {
    /// Opens the transcript of a session. `before` is what it goes on from.
    pub fn open(
        path: &AbsPath,
        session_id: &str,
        cwd: &AbsPath,
        before: &StoredSession,
    ) -> Result<Self, FileProblem> {
        let log = LineLog::open(path)?;
        let state = TranscriptState { log, last_id: before.last_id().map(str::to_owned), problem: None };
        Ok(Self {
            session_id: session_id.to_owned(),
            cwd: cwd.clone(),
            version: env!("CARGO_PKG_VERSION"),
            state: Mutex::new(state),
            mirror: OnceLock::new(),
        })
    }

    /// Passes each further line on as well.
    pub fn set_mirror(&self, mirror: TranscriptMirror) {
        let _ = self.mirror.set(mirror);
    }

    /// Copies the lines of another session, which this one is a fork of.
    pub fn copy_lines(&self, session: &StoredSession) {
        let mut state = self.lock();
        for line in &session.lines {
            let mut line = line.clone();
            if let Some(fields) = line.as_object_mut() {
                fields.insert("sessionId".to_owned(), json!(self.session_id));
            }
            state.append(&line);
        }
    }

    /// The first problem with writing.
    pub fn problem(&self) -> Option<String> {
        self.lock().problem.as_ref().map(ToString::to_string)
    }

    /// Writes a line with the fields that every line has.
    fn write(&self, kind: &str, id: &str, more: Map<String, Value>) {
        let mut state = self.lock();
        let mut line = Map::new();
        let mut add = |key: &str, value: Value| drop(line.insert(key.to_owned(), value));
        add("type", json!(kind));
        add("uuid", json!(id));
        add("parentUuid", json!(state.last_id));
        add("sessionId", json!(self.session_id));
        add("timestamp", json!(timestamp_now()));
        add("cwd", json!(self.cwd));
        add("version", json!(self.version));
        add("userType", json!("external"));
        add("isSidechain", json!(false));
        line.extend(more);
        let line = Value::Object(line);
        state.append(&line);
        if let Some(mirror) = self.mirror.get() {
            mirror(&line);
        }
        state.last_id = Some(id.to_owned());
    }

    /// Writes a prompt.
    fn write_message(&self, id: &str, message: &ConversationMessage) {
        let more = Map::from_iter([("message".to_owned(), json!(message))]);
        self.write("user", id, more);
    }

    /// The file; a line is written whole or not at all.
    fn lock(&self) -> MutexGuard<'_, TranscriptState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TranscriptState {
    /// Appends a line, and keeps the first problem.
    fn append(&mut self, line: &Value) {
        if let Err(problem) = self.log.append(&line.to_string()) {
            self.problem.get_or_insert(problem);
        }
    }
}

impl AgentObserver for TranscriptWriter {
    fn observe(&self, origin: &AgentOrigin, event: &AgentEvent) {
        if origin.agent_id.is_some() {
            return;
        }
        match event {
            AgentEvent::Prompted { id, message } => self.write_message(id, message),
            AgentEvent::Messaged(message) => {
                let more = Map::from_iter([
                    ("message".to_owned(), json!(message)),
                    ("isMeta".to_owned(), json!(true)),
                ]);
                self.write("user", &toolgate_files::generate_uuid(), more);
            }
            AgentEvent::BlockFinished { message, model, block, usage } => {
                let message = json!({
                    "id": message, "type": "message", "role": "assistant", "model": model, "content": [block],
                    "stop_reason": null, "usage": usage,
                });
                let more = Map::from_iter([("message".to_owned(), message)]);
                self.write("assistant", &toolgate_files::generate_uuid(), more);
            }
            AgentEvent::CallFinished(call) => {
                let message = json!({ "role": "user", "content": [call.block] });
                let mut more = Map::from_iter([("message".to_owned(), message)]);
                if let Ok(output) = &call.outcome.result
                    && let Some(structured) = &output.structured
                {
                    more.insert("toolUseResult".to_owned(), structured.clone());
                }
                self.write("user", &toolgate_files::generate_uuid(), more);
            }
            AgentEvent::Compacted { trigger, tokens_before, messages } => {
                let metadata = json!({ "trigger": trigger, "preTokens": tokens_before });
                let more = Map::from_iter([
                    ("subtype".to_owned(), json!("compact_boundary")),
                    ("compactMetadata".to_owned(), metadata),
                ]);
                self.write("system", &toolgate_files::generate_uuid(), more);
                for message in messages {
                    let more = Map::from_iter([
                        ("message".to_owned(), json!(message)),
                        ("isCompactSummary".to_owned(), json!(true)),
                    ]);
                    let kind = match message.role {
                        crate::conversation::MessageRole::User => "user",
                        crate::conversation::MessageRole::Assistant => "assistant",
                    };
                    self.write(kind, &toolgate_files::generate_uuid(), more);
                }
            }
            _ => {}
        }
    }
}

/// The time in the form that JavaScript writes.
fn timestamp_now() -> String {
    let millis = i64::try_from(toolgate_files::now_millis()).unwrap_or_default();
    match jiff::Timestamp::from_millisecond(millis) {
        Ok(now) => format!("{now:.3}"),
        Err(_) => String::new(),
    }
}
