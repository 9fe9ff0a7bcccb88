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
}
