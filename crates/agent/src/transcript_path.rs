//! Where the transcript of a session is, for hooks that read it.

use std::sync::OnceLock;
use toolgate_proto::AbsPath;

/// The transcript of a session, kept in the state of the session.
#[derive(Debug, Default)]
pub struct TranscriptPath(OnceLock<AbsPath>);

impl TranscriptPath {
    /// Sets it, once.
    pub fn set(&self, path: AbsPath) {
        let _ = self.0.set(path);
    }

    /// The path, if there is a transcript.
    pub fn get(&self) -> Option<&AbsPath> {
        self.0.get()
    }

    /// The transcript of a subagent, if there are transcripts.
    pub fn of_agent(&self, agent_id: &str) -> Option<AbsPath> {
        self.get().map(|path| agent_transcript_path(path, agent_id))
    }
}

/// The transcript of a subagent, beside that of its session, where the agent SDKs look for it.
pub(crate) fn agent_transcript_path(session: &AbsPath, agent_id: &str) -> AbsPath {
    let plain: String =
        agent_id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' }).collect();
    let path = session.to_string();
    let dir = path.strip_suffix(".jsonl").unwrap_or(&path);
    AbsPath::root().join(format!("{dir}/subagents/agent-{plain}.jsonl").trim_start_matches('/'))
}
