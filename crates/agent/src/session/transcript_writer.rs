//! Writes the transcript of a session and those of its subagents, line by line as things happen.

use super::session_store::StoredSession;
use crate::agent_event::{AgentEvent, AgentObserver, AgentOrigin};
use crate::transcript_path::agent_transcript_path;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
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
    /// The file of the main conversation.
    path: AbsPath,
    /// That file and what it ends with.
    state: Mutex<TranscriptState>,
    /// The files of subagents, by their ids.
    agents: Mutex<BTreeMap<String, AgentTranscript>>,
    /// Gets each line too, once it is set.
    mirror: OnceLock<TranscriptMirror>,
}

/// Gets each line of a transcript, with its file.
pub type TranscriptMirror = Box<dyn Fn(&AbsPath, &Value) + Send + Sync>;

/// The transcript of a subagent.
#[derive(Default)]
struct AgentTranscript {
    /// The file, while the agent works.
    log: Option<LineLog>,
    /// The id of the last line: an agent that is resumed goes on from there.
    last_id: Option<String>,
}

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
            path: path.clone(),
            state: Mutex::new(state),
            agents: Mutex::default(),
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

    /// Writes a line of the main conversation, or of a subagent, with the fields that every line has.
    fn write(&self, agent: Option<&str>, kind: &str, id: &str, more: Map<String, Value>) {
        let mut state = self.lock();
        let Some(agent_id) = agent else {
            let line = self.build_line((kind, id), state.last_id.as_deref(), None, more);
            state.append(&line);
            self.pass_on(&self.path, &line);
            state.last_id = Some(id.to_owned());
            return;
        };
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        let transcript = agents.entry(agent_id.to_owned()).or_default();
        let line = self.build_line((kind, id), transcript.last_id.as_deref(), agent, more);
        let path = agent_transcript_path(&self.path, agent_id);
        let written = match &mut transcript.log {
            Some(log) => log.append(&line.to_string()),
            None => LineLog::open(&path).and_then(|log| transcript.log.insert(log).append(&line.to_string())),
        };
        if let Err(problem) = written {
            state.problem.get_or_insert(problem);
        }
        self.pass_on(&path, &line);
        transcript.last_id = Some(id.to_owned());
    }

    /// Closes the file of a subagent that ended: many may work in one session.
    fn close_agent(&self, agent_id: &str) {
        let mut agents = self.agents.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(transcript) = agents.get_mut(agent_id) {
            transcript.log = None;
        }
    }

    /// A line with the fields that every line has.
    fn build_line(
        &self,
        (kind, id): (&str, &str),
        parent: Option<&str>,
        agent: Option<&str>,
        more: Map<String, Value>,
    ) -> Value {
        let mut line = Map::new();
        let mut add = |key: &str, value: Value| drop(line.insert(key.to_owned(), value));
        add("type", json!(kind));
        add("uuid", json!(id));
        add("parentUuid", json!(parent));
        add("sessionId", json!(self.session_id));
        add("timestamp", json!(timestamp_now()));
        add("cwd", json!(self.cwd));
        add("version", json!(self.version));
        add("userType", json!("external"));
        add("isSidechain", json!(agent.is_some()));
        if let Some(agent) = agent {
            add("agentId", json!(agent));
        }
        line.extend(more);
        Value::Object(line)
    }

    /// Passes a line on, where one wants it.
    fn pass_on(&self, path: &AbsPath, line: &Value) {
        if let Some(mirror) = self.mirror.get() {
            mirror(path, line);
        }
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
        let agent = origin.agent_id.as_deref();
        match event {
            AgentEvent::Prompted { id, message } => {
                let more = Map::from_iter([("message".to_owned(), json!(message))]);
                self.write(agent, "user", id, more);
            }
            AgentEvent::TaskEnded { task, .. } => self.close_agent(&task.task_id),
            AgentEvent::Messaged(message) => {
                let more = Map::from_iter([
                    ("message".to_owned(), json!(message)),
                    ("isMeta".to_owned(), json!(true)),
                ]);
                self.write(agent, "user", &toolgate_files::generate_uuid(), more);
            }
            AgentEvent::BlockFinished { message, model, block, usage } => {
                let message = json!({
                    "id": message, "type": "message", "role": "assistant", "model": model, "content": [block],
                    "stop_reason": null, "usage": usage,
                });
                let more = Map::from_iter([("message".to_owned(), message)]);
                self.write(agent, "assistant", &toolgate_files::generate_uuid(), more);
            }
            AgentEvent::CallFinished(call) => {
                let message = json!({ "role": "user", "content": [call.block] });
                let mut more = Map::from_iter([("message".to_owned(), message)]);
                if let Ok(output) = &call.outcome.result
                    && let Some(structured) = &output.structured
                {
                    more.insert("toolUseResult".to_owned(), structured.clone());
                }
                self.write(agent, "user", &toolgate_files::generate_uuid(), more);
            }
            AgentEvent::Compacted { trigger, tokens_before, messages } => {
                let metadata = json!({ "trigger": trigger, "preTokens": tokens_before });
                let more = Map::from_iter([
                    ("subtype".to_owned(), json!("compact_boundary")),
                    ("compactMetadata".to_owned(), metadata),
                ]);
                self.write(agent, "system", &toolgate_files::generate_uuid(), more);
                for message in messages {
                    let more = Map::from_iter([
                        ("message".to_owned(), json!(message)),
                        ("isCompactSummary".to_owned(), json!(true)),
                    ]);
                    let kind = match message.role {
                        crate::conversation::MessageRole::User => "user",
                        crate::conversation::MessageRole::Assistant => "assistant",
                    };
                    self.write(agent, kind, &toolgate_files::generate_uuid(), more);
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
