//! Settling what a crash left unsettled.

use super::line::{Line, State};
use super::log::UnderWay;
use super::{Inner, Journal, Live, log};
use crate::files::place::{Place, remove};
use crate::files::{FileProblem, Hash, lock_path_blocking, read_at, sys};
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
            Err(Errno::WOULDBLOCK) => return self.with_lock_unrecovered(|inner| inner.blobs.count()),
            Err(error) => return Err(error.into()),
        }
        let _live = Live(live);
        self.with_lock_unrecovered(|inner| {
            inner.blobs.sweep()?;
            inner.blobs.count()?;
            for under_way in std::mem::take(&mut inner.book.under_way) {
                settle(inner, under_way)?;
            }
            Ok(())
        })
    }
}

fn settle(inner: &mut Inner, under_way: UnderWay) -> Result<(), FileProblem> {
    let UnderWay { ids, to, target, temp, at } = under_way;
    let Some(change) = ids.first().and_then(|id| inner.book.changes.get(id)).cloned() else {
        return Ok(());
    };
    let _turn = lock_path_blocking(&change.path);
    // A temporary name that the crash left: either the new content, never put in place, or the old, displaced.
    if let Ok(place) = Place::find(&change.path)
        && temp.to_string_lossy().starts_with(".toolgate-")
    {
        match remove(place.dir(), &temp, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let now = match read_at(&change.path, u64::MAX) {
        Ok(version) => version.map(|version| version.hash()),
        // Not a file any more. Whatever happened here, it was not us.
        Err(_) => Some(Hash::of(b"\0not a file")),
    };
    let before = change.before.map(|before| before.hash);
    let state = match change.state {
        // Neither means that somebody changed it later. Then it is listed, and undo will say why it refuses.
        State::Begun if now == before && now != target => State::Failed,
        State::Begun => State::Done,
        _ if now == target => to,
        former => former,
    };
    inner.append(Line::State { ids, state, at })
}
