//! Sessions that outlive their process: transcripts, and what is read back from them.

mod session_store;
mod session_summary;
mod transcript_writer;

pub use session_store::{SessionError, SessionStore, StoredSession, check_session_id};
pub use session_summary::SessionSummary;
pub use transcript_writer::{TranscriptMirror, TranscriptWriter};
