//! Settling what a crash left unsettled.

use super::line::{ChangeState, JournalLine};
use super::log::InFlightChange;
use super::{InProgressLock, Journal, JournalState, log};
use crate::anchored_path::{AnchoredPath, unlink_with_retry};
use crate::{ContentHash, FileProblem, lock_path_blocking, read_snapshot, sys};
use rustix::fs::{AtFlags, FlockOperation};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::AsFd;

impl Journal {
    /// Goes through what was announced and not ended. Does nothing while another process is at work.
    pub(super) fn recover(&self) -> Result<(), FileProblem> {
        let live = log::open_private_file(self.dir.as_fd(), OsStr::new("live"))?;
        match sys::flock(live.as_fd(), FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return self.with_lock_unrecovered(|inner| inner.blobs.scan()),
            Err(error) => return Err(error.into()),
        }
        let _live = InProgressLock(live);
        self.with_lock_unrecovered(|inner| {
            inner.blobs.remove_temporary_files()?;
            inner.blobs.scan()?;
            for under_way in std::mem::take(&mut inner.index.in_flight) {
                recover_change(inner, under_way)?;
            }
            Ok(())
        })
    }
}

fn recover_change(inner: &mut JournalState, under_way: InFlightChange) -> Result<(), FileProblem> {
    let InFlightChange { ids, to, target, temp, at } = under_way;
    let Some(change) = ids.first().and_then(|id| inner.index.changes.get(id)).cloned() else {
        return Ok(());
    };
    let _turn = lock_path_blocking(&change.path);
    // A temporary name that the crash left: either the new content, never put in place, or the old, displaced.
    if let Ok(place) = AnchoredPath::open_parent(&change.path)
        && temp.to_string_lossy().starts_with(".toolgate-")
    {
        match unlink_with_retry(place.dir(), &temp, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let now = match read_snapshot(&change.path, u64::MAX) {
        Ok(version) => version.map(|version| version.hash()),
        // Not a file any more. Whatever happened here, it was not us.
        Err(_) => Some(ContentHash::of(b"\0not a file")),
    };
    let before = change.before.map(|before| before.hash);
    let state = match change.state {
        // Neither means that somebody changed it later. Then it is listed, and undo will say why it refuses.
        ChangeState::Begun if now == before && now != target => ChangeState::Failed,
        ChangeState::Begun => ChangeState::Done,
        _ if now == target => to,
        former => former,
    };
    inner.append(JournalLine::State { ids, state, at })
}
