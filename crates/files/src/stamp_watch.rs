//! Noticing whether any of many files changed, without looking at each of them every time.
//!
//! The directories of the files are watched with inotify, and the queue is read by the caller itself: the kernel adds an
//! event before the system call that made the change returns, so a change that is over is seen by the next check. (A
//! watcher with a thread of its own, as in [`FileWatcher`](crate::FileWatcher), would see it a moment later.)
//! The stamps of all files are compared as well, at most every two seconds, because a few changes have no event:
//! writes through a memory map, through another hard link, or on another machine.
//! Where directories cannot be watched, the stamps are compared every time.

use crate::state_files::{FileStamp, read_file_stamp};
use rustix::fs::inotify;
use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use toolgate_proto::AbsPath;
use toolgate_proto::timestamp::may_timestamp_repeat;

/// How long the stamps of watched files are not compared.
const FULL_CHECK_INTERVAL: Duration = Duration::from_secs(2);
/// Fewer files are compared every time: that costs no more than the queue.
const MIN_WATCHED_FILES: usize = 8;
/// From this check on directories are watched: a process that makes one call needs no watches.
const MIN_WATCHED_CHECKS: u32 = 3;
/// More directories are not watched, because a user has a limited number of watches.
const MAX_WATCHED_DIRECTORIES: usize = 1024;
/// Room for events of one read.
const EVENT_BYTES: usize = 4096;

/// Files with the stamps that they had.
#[derive(Debug, Default)]
pub struct StampWatch {
    /// Files and directories, each with its stamp from just before it was read.
    stamps: Vec<(AbsPath, FileStamp)>,
    /// When all of them had been read, in nanoseconds since 1970.
    read_at: i128,
    state: Mutex<StampWatchState>,
}

/// What the checks have found so far.
#[derive(Debug, Default)]
struct StampWatchState {
    /// How often it was asked.
    checks: u32,
    /// Once true, it stays so.
    is_changed: bool,
    /// The queue of events, if every directory is watched.
    queue: Option<OwnedFd>,
    /// When the stamps were compared last.
    compared_at: Option<Instant>,
}

impl StampWatch {
    /// Watches files with these stamps, which were read at `read_at`. A directory among them is a change when an entry of it
    /// comes or goes.
    pub fn new(stamps: Vec<(AbsPath, FileStamp)>, read_at: i128) -> Self {
        Self { stamps, read_at, state: Mutex::default() }
    }

    /// Whether a file may have changed since its stamp was taken.
    pub fn has_changed(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.checks = state.checks.saturating_add(1);
        if state.is_changed || self.stamps.is_empty() {
            return state.is_changed;
        }
        let is_new = state.queue.is_none()
            && state.checks == MIN_WATCHED_CHECKS
            && self.stamps.len() >= MIN_WATCHED_FILES;
        if is_new {
            // The stamps are compared below, so a change before the watch is seen as well.
            state.queue = self.watch_directories().ok();
        }
        let has_events = state.queue.as_ref().is_some_and(take_events);
        let is_due = state.compared_at.is_none_or(|then| then.elapsed() >= FULL_CHECK_INTERVAL);
        // An event is only a hint: other files of the same directories change as well.
        if has_events || is_due || is_new || state.queue.is_none() {
            state.compared_at = Some(Instant::now());
            state.is_changed = self.differs();
        }
        state.is_changed
    }

    /// Compares every stamp.
    fn differs(&self) -> bool {
        self.stamps.iter().any(|(path, then)| {
            let is_uncertain = match then {
                // Written so shortly before it was read that a second write may have the same time.
                FileStamp::Present { changed, .. } => may_timestamp_repeat(*changed, self.read_at),
                FileStamp::Absent => false,
            };
            is_uncertain || read_file_stamp(path) != *then
        })
    }

    /// Watches the directory of each file, and each directory itself.
    fn watch_directories(&self) -> rustix::io::Result<OwnedFd> {
        use inotify::WatchFlags;
        let queue = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK)?;
        let events = WatchFlags::MODIFY
            | WatchFlags::ATTRIB
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE
            | WatchFlags::MOVE_SELF;
        let mut dirs: BTreeSet<AbsPath> = BTreeSet::new();
        for (path, _) in &self.stamps {
            // What is not there can only come with the first directory above it that is there.
            let mut dir = Some(path.clone());
            while let Some(missing) = dir.as_ref().filter(|dir| !dir.as_path().is_dir()) {
                dir = missing.parent();
            }
            dirs.extend(dir);
        }
        if dirs.len() > MAX_WATCHED_DIRECTORIES {
            return Err(rustix::io::Errno::NOSPC);
        }
        for dir in &dirs {
            inotify::add_watch(&queue, dir.as_path(), events)?;
        }
        Ok(queue)
    }
}

/// Empties the queue, and says whether anything was in it. An error counts, because a change may have been lost.
fn take_events(queue: &OwnedFd) -> bool {
    let mut room = [MaybeUninit::<u8>::uninit(); EVENT_BYTES];
    let mut reader = inotify::Reader::new(queue, &mut room);
    let mut has_some = false;
    loop {
        match reader.next() {
            Ok(_) => has_some = true,
            Err(rustix::io::Errno::AGAIN) => return has_some,
            Err(_) => return true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::now_millis;

    /// A tree of twelve files in three directories, with a watch on it that has been asked often enough to be one.
    fn watched_tree() -> (tempfile::TempDir, AbsPath, StampWatch) {
        let dir = tempfile::tempdir().unwrap();
        let root = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        let mut paths = vec![root.clone()];
        for name in ["a", "b", "c"] {
            std::fs::create_dir(root.join(name)).unwrap();
            paths.push(root.join(name));
            for index in 0..4 {
                let file = root.join(name).join(format!("f{index}"));
                std::fs::write(&file, "1").unwrap();
                paths.push(file);
            }
        }
        // Until then a second write could have the same time.
        std::thread::sleep(Duration::from_millis(50));
        let stamps = paths.into_iter().map(|path| (path.clone(), read_file_stamp(&path))).collect();
        let watch = StampWatch::new(stamps, i128::from(now_millis()) * 1_000_000);
        for _ in 0..5 {
            assert!(!watch.has_changed());
        }
        assert!(watch.state.lock().unwrap().queue.is_some());
        (dir, root, watch)
    }

    #[test]
    fn every_kind_of_change_is_seen_by_the_next_check() {
        use std::os::unix::fs::PermissionsExt;
        type FileChange = (&'static str, fn(&AbsPath));
        let changes: [FileChange; 7] = [
            ("written in place", |root| std::fs::write(root.join("a/f0"), "2").unwrap()),
            ("same size, by another handle", |root| {
                use std::io::Write;
                let mut file = std::fs::OpenOptions::new().write(true).open(root.join("b/f1")).unwrap();
                file.write_all(b"3").unwrap();
            }),
            ("replaced", |root| {
                std::fs::write(root.join("new"), "1").unwrap();
                std::fs::rename(root.join("new"), root.join("c/f2")).unwrap();
            }),
            ("removed", |root| std::fs::remove_file(root.join("c/f3")).unwrap()),
            ("added", |root| std::fs::write(root.join("b/new"), "1").unwrap()),
            ("made executable", |root| {
                std::fs::set_permissions(root.join("a/f1"), std::fs::Permissions::from_mode(0o755)).unwrap();
            }),
            ("the directory moved away", |root| {
                std::fs::rename(root.join("a"), root.join("z")).unwrap();
            }),
        ];
        for (what, change) in changes {
            let (_dir, root, watch) = watched_tree();
            change(&root);
            assert!(watch.has_changed(), "{what}");
            assert!(watch.has_changed(), "{what}: it stays so");
        }
    }

    #[test]
    fn a_change_without_an_event_is_seen_by_a_later_check() {
        let (dir, root, watch) = watched_tree();
        // The same file by a name in a directory that is not watched.
        let outside = tempfile::tempdir_in(dir.path().parent().unwrap()).unwrap();
        std::fs::hard_link(root.join("a/f0"), outside.path().join("link")).unwrap();
        std::fs::write(outside.path().join("link"), "9").unwrap();
        watch.state.lock().unwrap().compared_at =
            Some(Instant::now().checked_sub(FULL_CHECK_INTERVAL).unwrap());
        assert!(watch.has_changed());
    }

    #[test]
    fn what_happens_to_other_files_is_no_change() {
        let (_dir, root, watch) = watched_tree();
        std::fs::metadata(root.join("a/f0")).unwrap();
        std::fs::read(root.join("a/f1")).unwrap();
        assert!(!watch.has_changed());
        assert!(!StampWatch::default().has_changed());
    }
}
