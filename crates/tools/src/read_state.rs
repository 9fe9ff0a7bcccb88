//! What a session has seen of each file.
//!
//! A file must have been read before it is changed, and must still be what was read.
//! Whether it is, is told by its content (a hash); time and size are only the fast way to know that nothing
//! happened, so a `touch` is no change.
//!
//! The state belongs to one session.
//! A subagent is a session of its own and shares nothing: what its parent has read is not in its context, so it
//! cannot know what it would overwrite.

use crate::diff::unified_diff;
use crate::read::LineIndex;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use toolgate_files::{ContentHash, FileFingerprint, FileSnapshot, FileWatcher};
use toolgate_gate::Session;
use toolgate_proto::AbsPath;

/// Content up to this size is kept, for telling what changed.
const MAX_KEPT_FILE_BYTES: usize = 256 * 1024;
/// All kept contents together.
const MAX_KEPT_TOTAL_BYTES: usize = 32 * 1024 * 1024;
/// Lines of a diff in a refusal.
const MAX_DIFF_LINES: usize = 100;

/// What a session has seen, by real path.
#[derive(Debug, Default)]
pub struct ReadState {
    files: Mutex<SeenFileTable>,
    lines: LineIndex,
    /// Hears of changes, where the host wants to know of them.
    watcher: OnceLock<FileWatcher>,
}

#[derive(Debug, Default)]
struct SeenFileTable {
    by_path: HashMap<AbsPath, SeenFile>,
    /// All kept contents together.
    kept_bytes: usize,
}

impl SeenFileTable {
    fn remove(&mut self, real: &AbsPath) {
        let content = self.by_path.remove(real).and_then(|seen| seen.content);
        self.kept_bytes -= content.map_or(0, |content| content.len());
    }
}

/// What was seen of one file.
#[derive(Debug, Clone)]
pub(crate) struct SeenFile {
    /// Its outward signs then; a host that seeds the state may not know them.
    pub(crate) mark: Option<FileFingerprint>,
    /// Hash of its content; not taken of files so large that reading them twice would be felt.
    pub(crate) hash: Option<ContentHash>,
    /// All of it was seen.
    pub(crate) whole: bool,
    /// The content, where small.
    pub(crate) content: Option<Arc<[u8]>>,
}

/// How what is there compares with what was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileFreshness {
    /// Never seen.
    Unseen,
    /// The same; `whole` says whether all of it was seen.
    Same { whole: bool },
    /// Different. The diff says how, where the former content is known.
    Changed { diff: Option<String> },
}

impl ReadState {
    /// The state of a session.
    pub(crate) fn of(session: &Session) -> Arc<Self> {
        session.state::<Self>()
    }

    fn files(&self) -> MutexGuard<'_, SeenFileTable> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where lines of large files begin.
    pub(crate) fn line_index(&self) -> &LineIndex {
        &self.lines
    }

    /// Remembers what was seen. Seeing a part of an unchanged file does not make one forget that all was seen.
    pub(crate) fn record_read(&self, real: AbsPath, mut seen: SeenFile) {
        let mut files = self.files();
        if let Some(former) = files.by_path.get(&real)
            && former.hash.is_some()
            && former.hash == seen.hash
        {
            seen.whole |= former.whole;
        }
        files.remove(&real);
        let size = seen.content.as_ref().map_or(0, |content| content.len());
        if files.kept_bytes + size > MAX_KEPT_TOTAL_BYTES {
            seen.content = None;
        } else {
            files.kept_bytes += size;
        }
        if let Some(watcher) = self.watcher.get() {
            watcher.watch(&real);
        }
        files.by_path.insert(real, seen);
    }

    /// Remembers what the session itself has written.
    pub(crate) fn record_write(
        &self,
        real: AbsPath,
        mark: Option<FileFingerprint>,
        content: &[u8],
        hash: Option<ContentHash>,
        whole: bool,
    ) {
        self.record_read(real, SeenFile { mark, hash, whole, content: copy_if_small(content) });
    }

    pub(crate) fn forget(&self, real: &AbsPath) {
        self.files().remove(real);
    }

    /// The first watcher stays.
    pub(crate) fn set_watcher(&self, watcher: FileWatcher) {
        let _ = self.watcher.set(watcher);
    }

    pub(crate) fn watcher(&self) -> Option<&FileWatcher> {
        self.watcher.get()
    }

    /// What was seen of a file.
    pub(crate) fn get(&self, real: &AbsPath) -> Option<SeenFile> {
        self.files().by_path.get(real).cloned()
    }

    /// Every file that was seen.
    pub fn paths(&self) -> Vec<AbsPath> {
        self.files().by_path.keys().cloned().collect()
    }

    /// Compares what is there with what was seen.
    pub(crate) fn compare(&self, real: &AbsPath, now: &FileSnapshot) -> FileFreshness {
        let Some(seen) = self.get(real) else { return FileFreshness::Unseen };
        let same = seen.mark.is_some_and(|mark| mark.is_surely_same(&now.fingerprint))
            || seen.hash.is_some_and(|hash| hash == now.hash());
        if same {
            return FileFreshness::Same { whole: seen.whole };
        }
        let diff = seen
            .content
            .map(|content| unified_diff(&real.to_string(), Some(&content), Some(&now.bytes), MAX_DIFF_LINES));
        FileFreshness::Changed { diff }
    }
}

/// Content to keep, where it is small.
pub(crate) fn copy_if_small(content: &[u8]) -> Option<Arc<[u8]>> {
    (content.len() <= MAX_KEPT_FILE_BYTES).then(|| Arc::from(content))
}

/// Tells a session that its model has seen this content of a file, as when a host put it into the prompt.
/// The path must be real: links resolved.
pub fn seed_read_state(session: &Session, real: &AbsPath, content: &[u8]) {
    let seen = SeenFile {
        mark: None,
        hash: Some(ContentHash::of(content)),
        whole: true,
        content: copy_if_small(content),
    };
    ReadState::of(session).record_read(real.clone(), seen);
}
