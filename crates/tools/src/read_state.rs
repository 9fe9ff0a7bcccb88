//! What a session has read of each file, to refuse changes that are based on stale content.
//!
//! A file must have been read before it is changed, and must still have the content that was read.
//! The content hash decides: after a `touch`, or a save without a change, the file counts as unchanged.
//! The fingerprint (size, inode, times) is only a fast path that avoids hashing.
//!
//! The state belongs to one session.
//! A subagent is a session of its own and inherits nothing: the files that its parent has read are not in its context
//! window, so it cannot know what it would overwrite.

use crate::diff::unified_diff;
use crate::read::LineIndex;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use toolgate_files::{ContentHash, FileFingerprint, FileSnapshot, FileWatcher};
use toolgate_gate::Session;
use toolgate_proto::AbsPath;

/// Content of a larger file is not kept, so a refusal cannot show what changed in it.
const MAX_KEPT_FILE_BYTES: usize = 256 * 1024;
/// Kept content of all files of a session together.
const MAX_KEPT_TOTAL_BYTES: usize = 32 * 1024 * 1024;
/// Lines of the diff in a refusal.
const MAX_DIFF_LINES: usize = 100;

/// The files that a session has read, by real path.
#[derive(Debug, Default)]
pub struct ReadState {
    /// What was read, by real path; two symlinks to one file share an entry.
    files: Mutex<SeenFileTable>,
    /// Line starts in large files, so that the next page is found without counting lines again.
    lines: LineIndex,
    /// Watches every file in `files`; unset unless the host called [`watch_reads`](crate::watch_reads).
    watcher: OnceLock<FileWatcher>,
}

/// The table behind the lock of [`ReadState`].
#[derive(Debug, Default)]
struct SeenFileTable {
    /// Every file of the session.
    by_path: HashMap<AbsPath, SeenFile>,
    /// Sum of the kept content in `by_path`, at most [`MAX_KEPT_TOTAL_BYTES`].
    kept_bytes: usize,
}

impl SeenFileTable {
    /// Removes a file and gives its kept bytes back to the total.
    fn remove(&mut self, real: &AbsPath) {
        let content = self.by_path.remove(real).and_then(|seen| seen.content);
        self.kept_bytes -= content.map_or(0, |content| content.len());
    }
}

/// What a session has seen of one file.
#[derive(Debug, Clone)]
pub(crate) struct SeenFile {
    /// The fingerprint at the time of the read; `None` if a host seeded the state without opening the file.
    pub(crate) fingerprint: Option<FileFingerprint>,
    /// The content hash; `None` for a large file of which only some lines were read.
    pub(crate) hash: Option<ContentHash>,
    /// Whether the model has seen all of the content, with no truncated line.
    pub(crate) whole: bool,
    /// The content, if it is small enough to keep for a diff.
    pub(crate) content: Option<Arc<[u8]>>,
}

impl SeenFile {
    /// Whether the file still has the content that was seen.
    pub(crate) fn is_same_as(&self, now: &FileSnapshot) -> bool {
        self.fingerprint.is_some_and(|fingerprint| fingerprint.is_surely_same(&now.fingerprint))
            || self.hash.is_some_and(|hash| hash == now.hash())
    }
}

/// How the content on disk compares with what was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum FileFreshness {
    /// The session has not read the file.
    Unseen,
    /// The content is the one that was read.
    Same {
        /// Whether all of it was read.
        whole: bool,
    },
    /// The content differs.
    Changed {
        /// A unified diff from the read content to the current one; `None` if the read content was not kept.
        diff: Option<String>,
    },
}

impl ReadState {
    /// The state of a session.
    pub(crate) fn of(session: &Session) -> Arc<Self> {
        session.state::<Self>()
    }

    /// The lock of the table. A panic while it was held leaves the table usable, so poisoning is ignored.
    fn files(&self) -> MutexGuard<'_, SeenFileTable> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The line starts of large files.
    pub(crate) fn line_index(&self) -> &LineIndex {
        &self.lines
    }

    /// Records a read. A partial read of a file that was read completely and has not changed keeps `whole`.
    pub(crate) fn record_read(&self, real: AbsPath, mut seen: SeenFile) {
        let mut files = self.files();
        if let Some(previous) = files.by_path.get(&real)
            && previous.hash.is_some()
            && previous.hash == seen.hash
        {
            seen.whole |= previous.whole;
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

    /// Records a write by the session itself, so that its own change does not make the file stale.
    pub(crate) fn record_write(
        &self,
        real: AbsPath,
        fingerprint: Option<FileFingerprint>,
        content: &[u8],
        hash: Option<ContentHash>,
        whole: bool,
    ) {
        self.record_read(real, SeenFile { fingerprint, hash, whole, content: copy_if_small(content) });
    }

    /// Removes a file, which then counts as unread.
    pub(crate) fn forget(&self, real: &AbsPath) {
        self.files().remove(real);
    }

    /// Sets the watcher; a second one is dropped.
    pub(crate) fn set_watcher(&self, watcher: FileWatcher) {
        let _ = self.watcher.set(watcher);
    }

    /// The watcher, if the host asked for one.
    pub(crate) fn watcher(&self) -> Option<&FileWatcher> {
        self.watcher.get()
    }

    /// What was seen of a file.
    pub(crate) fn get(&self, real: &AbsPath) -> Option<SeenFile> {
        self.files().by_path.get(real).cloned()
    }

    /// The real paths of the files that were read, in no particular order.
    pub fn paths(&self) -> Vec<AbsPath> {
        self.files().by_path.keys().cloned().collect()
    }

    /// Compares the content on disk with what was read.
    pub(crate) fn compare(&self, real: &AbsPath, now: &FileSnapshot) -> FileFreshness {
        let Some(seen) = self.get(real) else { return FileFreshness::Unseen };
        if seen.is_same_as(now) {
            return FileFreshness::Same { whole: seen.whole };
        }
        let diff = seen
            .content
            .map(|content| unified_diff(&real.to_string(), Some(&content), Some(&now.bytes), MAX_DIFF_LINES));
        FileFreshness::Changed { diff }
    }
}

/// A copy of the content to keep for a diff; `None` if it is too large.
pub(crate) fn copy_if_small(content: &[u8]) -> Option<Arc<[u8]>> {
    (content.len() <= MAX_KEPT_FILE_BYTES).then(|| Arc::from(content))
}

/// Records that the session's model has seen this content of a file without a tool call, for example because the host
/// put it into the prompt. The path must be real, with symlinks resolved.
pub fn seed_read_state(session: &Session, real: &AbsPath, content: &[u8]) {
    let seen = SeenFile {
        fingerprint: None,
        hash: Some(ContentHash::of(content)),
        whole: true,
        content: copy_if_small(content),
    };
    ReadState::of(session).record_read(real.clone(), seen);
}
