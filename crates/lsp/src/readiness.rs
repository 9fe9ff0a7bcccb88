//! Whether a server has indexed the project.
//!
//! A server answers before it is ready, and such an answer is silently incomplete: rust-analyzer finds no reference for
//! seconds, TypeScript two of four.
//! Servers say what they do in three ways: a status of their own (`experimental/serverStatus`), progress notifications, or
//! not at all.

use serde_json::Value;
use std::collections::HashSet;
use std::time::Duration;
use tokio::time::Instant;

/// Progress tokens that are kept. A server that opens more is no longer believed to be busy.
const MAX_PROGRESS_TOKENS: usize = 256;
/// How long a server that announces its work may take to begin it after the first file was opened.
const PROGRESS_START_TIMEOUT: Duration = Duration::from_secs(4);
/// The same for a server of which nothing is known.
const SETTLE_TIMEOUT: Duration = Duration::from_millis(500);

/// Characters of what a server says about a failure.
const MAX_FAILURE_CHARS: usize = 300;

/// How a server shows that it is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadySignal {
    /// It reports `experimental/serverStatus`.
    Status,
    /// It reports progress after the first file was opened.
    Progress,
    /// It logs how many source files it found, as pyright does; before that it knows the open files only.
    SourceFilesFound,
    /// It answers completely from the start, or waits by itself.
    Immediate,
    /// Not known: it is ready when it reports no progress shortly after the first file was opened.
    #[default]
    Unknown,
}

/// What a server has reported about its work.
#[derive(Debug)]
pub(crate) struct ServerReadiness {
    /// How the server shows that it is ready.
    signal: ReadySignal,
    /// The progress that is under way.
    active: HashSet<String>,
    /// It has logged how many source files it found.
    has_found_files: bool,
    /// Some progress has ended.
    has_finished: bool,
    /// The last status; `None` before the first.
    quiescent: Option<bool>,
    /// When the first file was opened.
    first_open: Option<Instant>,
    /// What it is doing, in its own words.
    activity: Option<String>,
    /// Why it cannot answer completely, in its own words: the project could not be loaded.
    failure: Option<String>,
    /// What it warns of, in its own words: a part of the project could not be loaded, such as the standard library.
    warning: Option<String>,
}

impl ServerReadiness {
    /// The state of a server that has reported nothing yet.
    pub(crate) fn new(signal: ReadySignal) -> Self {
        Self {
            signal,
            active: HashSet::new(),
            has_found_files: false,
            has_finished: false,
            quiescent: None,
            first_open: None,
            activity: None,
            failure: None,
            warning: None,
        }
    }

    /// Notes that a file was opened.
    pub(crate) fn note_open(&mut self) {
        self.first_open.get_or_insert_with(Instant::now);
    }

    /// Takes a `$/progress` notification.
    pub(crate) fn note_progress(&mut self, params: &Value) {
        let token = params.get("token").map(ToString::to_string).unwrap_or_default();
        let value = params.get("value");
        let text = |name: &str| value.and_then(|value| value.get(name)).and_then(Value::as_str);
        match text("kind") {
            Some("begin") => {
                if self.active.len() < MAX_PROGRESS_TOKENS {
                    self.active.insert(token);
                }
                self.activity = text("title").map(|title| title.chars().take(100).collect());
            }
            Some("end") => {
                self.active.remove(&token);
                self.has_finished = true;
                if self.active.is_empty() {
                    self.activity = None;
                }
            }
            _ => {}
        }
    }

    /// Takes a `window/logMessage` notification.
    pub(crate) fn note_log(&mut self, params: &Value) {
        let message = params.get("message").and_then(Value::as_str).unwrap_or_default();
        let is_count = message.starts_with("Found ") && message.contains(" source file");
        self.has_found_files |= is_count || message.starts_with("No source files found");
    }

    /// Takes an `experimental/serverStatus` notification.
    pub(crate) fn note_status(&mut self, params: &Value) {
        if let Some(quiescent) = params.get("quiescent").and_then(Value::as_bool) {
            self.quiescent = Some(quiescent);
        }
        let message = params.get("message").and_then(Value::as_str).unwrap_or("no reason given");
        // Several lines, of which the last often says what to do.
        let message = || message.split_whitespace().collect::<Vec<_>>().join(" ");
        let limited = || message().chars().take(MAX_FAILURE_CHARS).collect();
        let health = params.get("health").and_then(Value::as_str);
        self.failure = (health == Some("error")).then(limited);
        self.warning = (health == Some("warning")).then(limited);
    }

    /// Why the server cannot answer completely, as it says: it could not load the project.
    pub(crate) fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    /// What the server warns of. Its answers may be incomplete: rust-analyzer without the sources of the standard library
    /// finds no use inside a macro of it.
    pub(crate) fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// Whether it reports progress about something.
    pub(crate) fn is_busy(&self) -> bool {
        !self.active.is_empty()
    }

    /// What the server says that it is doing.
    pub(crate) fn activity(&self) -> Option<&str> {
        self.activity.as_deref()
    }

    /// When the server is ready, as far as is known now: `None` if only another notification can tell.
    pub(crate) fn ready_at(&self, now: Instant) -> Option<Instant> {
        if let Some(quiescent) = self.quiescent {
            return quiescent.then_some(now);
        }
        if !self.active.is_empty() {
            return None;
        }
        match self.signal {
            ReadySignal::Status => None,
            ReadySignal::SourceFilesFound => self.has_found_files.then_some(now),
            ReadySignal::Immediate => Some(now),
            _ if self.has_finished => Some(now),
            ReadySignal::Progress => Some(self.first_open.unwrap_or(now) + PROGRESS_START_TIMEOUT),
            ReadySignal::Unknown => Some(self.first_open.unwrap_or(now) + SETTLE_TIMEOUT),
        }
    }

    /// Whether it is ready now.
    pub(crate) fn is_ready(&self) -> bool {
        let now = Instant::now();
        self.ready_at(now).is_some_and(|at| at <= now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn progress(readiness: &mut ServerReadiness, token: u32, kind: &str) {
        readiness.note_progress(&json!({ "token": token, "value": { "kind": kind, "title": "Indexing" } }));
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_is_ready_when_its_own_signal_says_so_and_not_before() {
        let mut status = ServerReadiness::new(ReadySignal::Status);
        status.note_open();
        tokio::time::advance(Duration::from_secs(60)).await;
        assert!(!status.is_ready());
        progress(&mut status, 1, "begin");
        progress(&mut status, 1, "end");
        assert!(!status.is_ready());
        status.note_status(&json!({ "quiescent": true }));
        assert!(status.is_ready());
        status.note_status(&json!({ "quiescent": false, "health": "warning", "message": "old" }));
        assert!(!status.is_ready() && status.failure().is_none());
        assert_eq!(status.warning(), Some("old"));
        status.note_status(&json!({ "quiescent": true, "health": "error", "message": "no Cargo.toml" }));
        assert_eq!((status.failure(), status.warning()), (Some("no Cargo.toml"), None));
        status.note_status(&json!({ "quiescent": true, "health": "ok" }));
        assert_eq!((status.failure(), status.warning()), (None, None));

        let mut finding = ServerReadiness::new(ReadySignal::SourceFilesFound);
        finding.note_open();
        finding.note_log(&json!({ "message": "Searching for source files" }));
        tokio::time::advance(Duration::from_secs(60)).await;
        assert!(!finding.is_ready());
        finding.note_log(&json!({ "type": 3, "message": "Found 2 source files" }));
        assert!(finding.is_ready());

        let mut reporting = ServerReadiness::new(ReadySignal::Progress);
        reporting.note_open();
        assert!(!reporting.is_ready());
        progress(&mut reporting, 1, "begin");
        progress(&mut reporting, 2, "begin");
        progress(&mut reporting, 1, "end");
        tokio::time::advance(Duration::from_secs(60)).await;
        assert!(!reporting.is_ready() && reporting.activity() == Some("Indexing"));
        progress(&mut reporting, 2, "end");
        assert!(reporting.is_ready());

        let mut silent = ServerReadiness::new(ReadySignal::Unknown);
        silent.note_open();
        assert!(!silent.is_ready());
        tokio::time::advance(SETTLE_TIMEOUT).await;
        assert!(silent.is_ready());
        assert!(ServerReadiness::new(ReadySignal::Immediate).is_ready());
    }
}
