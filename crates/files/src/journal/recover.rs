//! Crash recovery: changes that have begun and not ended are settled by comparing the file with both contents.

use super::line::{ChangeState, JournalLine};
use super::log::InFlightChange;
use super::{InProgressLock, Journal, JournalState, LIVE_FILE_NAME, log};
use crate::anchored_path::{AnchoredPath, unlink_name};
use crate::{ContentHash, FileProblem, lock_path_blocking, read_snapshot, sys};
use rustix::fs::{AtFlags, FlockOperation};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::AsFd;

impl Journal {
    /// Settles every change in flight. Skipped while another process has one: its own changes would look like crashed ones,
    /// so recovery waits for a later opening.
    pub(super) fn recover(&self) -> Result<(), FileProblem> {
        let live = log::open_private_file(self.dir.as_fd(), OsStr::new(LIVE_FILE_NAME))?;
        match sys::flock(live.as_fd(), FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return self.with_lock_unrecovered(|inner| inner.blobs.scan()),
            Err(error) => return Err(error.into()),
        }
        let _live = InProgressLock(live);
        self.with_lock_unrecovered(|inner| {
            inner.blobs.remove_temporary_files()?;
            inner.blobs.scan()?;
            for in_flight in std::mem::take(&mut inner.index.in_flight) {
                recover_change(inner, in_flight)?;
            }
            Ok(())
        })
    }
}

/// Removes the temporary file of an interrupted change, undo or redo, and records the state that the file shows.
fn recover_change(inner: &mut JournalState, in_flight: InFlightChange) -> Result<(), FileProblem> {
    let InFlightChange { ids, to, target, temp, at } = in_flight;
    let Some(change) = ids.first().and_then(|id| inner.index.changes.get(id)).cloned() else {
        return Ok(());
    };
    let _guard = lock_path_blocking(&change.path);
    // It has either the new content, which did not get its name, or the old content, which was displaced.
    if let Ok(path) = AnchoredPath::open_parent(&change.path)
        && temp.to_string_lossy().starts_with(".toolgate-")
    {
        match unlink_name(path.dir(), &temp, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let now = match read_snapshot(&change.path, u64::MAX) {
        Ok(snapshot) => snapshot.map(|snapshot| snapshot.hash()),
        // Not a regular file any more, which no change of ours can cause: the hash matches neither content.
        Err(_) => Some(ContentHash::of(b"\0not a file")),
    };
    let before = change.before.map(|before| before.hash);
    let state = match change.state {
        // Neither content means that another program changed the file later. The change counts as made, and an undo
        // reports the conflict.
        ChangeState::Begun if now == before && now != target => ChangeState::Failed,
        ChangeState::Begun => ChangeState::Done,
        _ if now == target => to,
        former => former,
    };
    inner.append(JournalLine::State { ids, state, at })
}
