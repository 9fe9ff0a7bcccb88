//! What others did to files that the model knows.
//!
//! A host that wants to know calls [`watch_reads`] once for a session, and [`changed_files`] before each turn.
//! What is told then counts as seen, as far as the diff shows all of it.

use crate::diff::unified_diff;
use crate::read_state::{ReadState, SeenFile, copy_if_small};
use std::time::Duration;
use toolgate_files::{
    FileFingerprint, FileProblem, FileSnapshot, FileWatcher, GrantedAccess, GrantedFiles, PathGrant,
};
use toolgate_gate::Session;
use toolgate_proto::{AbsPath, PathScope};

/// A save is often several events; they are over after this long.
const QUIET_PERIOD: Duration = Duration::from_millis(100);
/// Lines of one diff.
const MAX_DIFF_LINES: usize = 100;
/// A larger file is only named.
const MAX_COMPARED_BYTES: u64 = 8 << 20;

/// A file that somebody else changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    /// The file, links resolved.
    pub path: AbsPath,
    /// What happened.
    pub what: FileChange,
}

/// What happened to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileChange {
    /// It has other content. The diff is there where the former content is known.
    Modified {
        /// At most 100 lines.
        diff: Option<String>,
    },
    /// It is gone.
    Deleted,
}

/// Watches every file that the session reads from now on, and those it has read.
pub fn watch_reads(session: &Session) -> Result<(), String> {
    let watcher = FileWatcher::new()?;
    let state = ReadState::of(session);
    for path in state.paths() {
        watcher.watch(&path);
    }
    state.set_watcher(watcher);
    Ok(())
}

/// The files that others have changed since the model saw them, or since this was last asked.
/// What the session's own tools wrote is not among them.
pub fn changed_files(session: &Session) -> Vec<ChangedFile> {
    changed_files_after_quiet(session, QUIET_PERIOD)
}

/// The same with another time of quiet.
pub fn changed_files_after_quiet(session: &Session, quiet: Duration) -> Vec<ChangedFile> {
    let state = ReadState::of(session);
    let touched = state.watcher().map(|watcher| watcher.take_settled(quiet)).unwrap_or_default();
    touched
        .into_iter()
        .filter_map(|path| Some(ChangedFile { what: check_file(&state, &path)?, path }))
        .collect()
}

/// What happened to a file that was touched. `None` where nothing did.
fn check_file(state: &ReadState, path: &AbsPath) -> Option<FileChange> {
    let seen = state.get(path)?;
    let reach = PathGrant {
        asked: path.clone(),
        real: path.clone(),
        scope: PathScope::Entry,
        access: GrantedAccess::Read,
    };
    let files = GrantedFiles::new(vec![reach], Vec::new());
    match files.read(path, MAX_COMPARED_BYTES) {
        Ok(now) => check_content(state, path, &seen, now),
        Err(FileProblem::Missing) => {
            state.forget(path);
            Some(FileChange::Deleted)
        }
        // Too large to compare, or no file any more: what was seen is not what is there.
        Err(_) => {
            let same = |mark: FileFingerprint| {
                files.open_with_fingerprint(path).is_ok_and(|(_, now)| mark.is_surely_same(&now))
            };
            if seen.mark.is_some_and(same) {
                return None;
            }
            state.forget(path);
            Some(FileChange::Modified { diff: None })
        }
    }
}

fn check_content(
    state: &ReadState,
    path: &AbsPath,
    seen: &SeenFile,
    now: FileSnapshot,
) -> Option<FileChange> {
    let same = seen.mark.is_some_and(|mark| mark.is_surely_same(&now.fingerprint))
        || seen.hash.is_some_and(|hash| hash == now.hash());
    if same {
        return None;
    }
    let diff = seen
        .content
        .as_ref()
        .map(|content| unified_diff(&path.to_string(), Some(content), Some(&now.bytes), MAX_DIFF_LINES));
    let shown = diff.as_ref().is_some_and(|diff| !diff.ends_with("not shown]"));
    let whole = seen.whole && shown;
    let content = copy_if_small(&now.bytes);
    state.record_read(
        path.clone(),
        SeenFile { mark: Some(now.fingerprint), hash: Some(now.hash()), whole, content },
    );
    Some(FileChange::Modified { diff })
}
