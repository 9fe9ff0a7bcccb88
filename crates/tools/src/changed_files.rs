//! Files that other programs changed after the model has read them.
//!
//! A host that wants this calls [`watch_reads`] once per session and [`changed_files`] before each turn.
//! A reported change counts as read as far as its diff shows it: a truncated diff leaves the file partly read, so that
//! `Write` still asks for a full read.

use crate::diff::{is_truncated_diff, unified_diff};
use crate::read_state::{ReadState, SeenFile, copy_if_small};
use std::time::Duration;
use toolgate_files::{
    FileFingerprint, FileProblem, FileSnapshot, FileWatcher, GrantedAccess, GrantedFiles, PathGrant,
};
use toolgate_gate::Session;
use toolgate_proto::{AbsPath, PathScope};

/// A file is reported when it had no event for this long: an editor saves in several steps.
const SETTLE_DELAY: Duration = Duration::from_millis(100);
/// Lines of the diff of one file.
const MAX_DIFF_LINES: usize = 100;
/// A larger file is reported without a diff.
const MAX_COMPARED_BYTES: u64 = 8 << 20;

/// A file that another program changed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangedFile {
    /// The real path of the file, with symlinks resolved.
    pub path: AbsPath,
    /// What happened to it.
    pub what: FileChange,
}

/// What happened to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileChange {
    /// Its content differs from what the model has read.
    Modified {
        /// A unified diff of at most 100 lines; `None` if the previous content was too large to keep.
        diff: Option<String>,
    },
    /// It does not exist any more.
    Deleted,
}

/// Watches every file that the session has read, and every file that it reads from now on.
///
/// # Errors
///
/// Fails with a message if the operating system provides no file watcher.
pub fn watch_reads(session: &Session) -> Result<(), String> {
    let watcher = FileWatcher::new()?;
    let state = ReadState::of(session);
    for path in state.paths() {
        watcher.watch(&path);
    }
    state.set_watcher(watcher);
    Ok(())
}

/// The files that other programs changed since the model read them, or since the last call of this function.
/// Changes by the session's own tools are not reported.
pub fn changed_files(session: &Session) -> Vec<ChangedFile> {
    changed_files_after_quiet(session, SETTLE_DELAY)
}

/// Like [`changed_files`], with another delay after the last event of a file.
pub fn changed_files_after_quiet(session: &Session, quiet: Duration) -> Vec<ChangedFile> {
    let state = ReadState::of(session);
    let touched = state.watcher().map(|watcher| watcher.take_settled(quiet)).unwrap_or_default();
    touched
        .into_iter()
        .filter_map(|path| Some(ChangedFile { what: check_file(&state, &path)?, path }))
        .collect()
}

/// Compares a file that had events with what was read; `None` if the content is the same.
fn check_file(state: &ReadState, path: &AbsPath) -> Option<FileChange> {
    let seen = state.get(path)?;
    let grant = PathGrant::new(path.clone(), path.clone(), PathScope::Entry, GrantedAccess::Read);
    let files = GrantedFiles::new(vec![grant], Vec::new());
    match files.read(path, MAX_COMPARED_BYTES) {
        Ok(now) => check_content(state, path, &seen, now),
        Err(FileProblem::Missing) => {
            state.forget(path);
            Some(FileChange::Deleted)
        }
        // Too large to compare, or not a regular file any more: only the fingerprint can show that nothing changed.
        Err(_) => {
            let is_same = |fingerprint: FileFingerprint| {
                files.open_with_fingerprint(path).is_ok_and(|(_, now)| fingerprint.is_surely_same(&now))
            };
            if seen.fingerprint.is_some_and(is_same) {
                return None;
            }
            state.forget(path);
            Some(FileChange::Modified { diff: None })
        }
    }
}

/// Compares the new content, records it as seen as far as the diff shows it, and returns the change.
fn check_content(
    state: &ReadState,
    path: &AbsPath,
    seen: &SeenFile,
    now: FileSnapshot,
) -> Option<FileChange> {
    if seen.is_same_as(&now) {
        return None;
    }
    let diff = seen
        .content
        .as_ref()
        .map(|content| unified_diff(&path.to_string(), Some(content), Some(&now.bytes), MAX_DIFF_LINES));
    let is_shown = diff.as_ref().is_some_and(|diff| !is_truncated_diff(diff));
    let whole = seen.whole && is_shown;
    let content = copy_if_small(&now.bytes);
    state.record_read(
        path.clone(),
        SeenFile { fingerprint: Some(now.fingerprint), hash: Some(now.hash()), whole, content },
    );
    Some(FileChange::Modified { diff })
}
