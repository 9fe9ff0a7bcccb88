//! Watching one directory without a thread: what has changed in it since the last look.
//!
//! The kernel queues an event before the change is visible to other processes, so a look at the queue is as good as a
//! look at every file, and costs the same for ten files as for a hundred thousand.
//! [`FileWatcher`](crate::FileWatcher) is for files in many directories whose changes may be seen a little later.

use crate::open::FileProblem;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use toolgate_proto::AbsPath;

/// Bytes of the buffer for events; one event needs at most 272.
const EVENT_BUFFER_BYTES: usize = 4_096;

/// Events that tell that the watch is over, or that some were lost.
const LOST_EVENTS: ReadFlags = ReadFlags::QUEUE_OVERFLOW
    .union(ReadFlags::IGNORED)
    .union(ReadFlags::UNMOUNT)
    .union(ReadFlags::DELETE_SELF)
    .union(ReadFlags::MOVE_SELF);

/// What may have changed in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DirectoryChanges {
    /// The entries of these names, and no others. Names that are not UTF-8 are left out.
    Names(BTreeSet<String>),
    /// Anything: events were lost, or the directory is gone. Watch it anew.
    Unknown,
}

/// A watch on the entries of one directory, not on those below them.
#[derive(Debug)]
pub struct DirectoryWatch {
    inotify: OwnedFd,
}

impl DirectoryWatch {
    /// Watches a directory from now on. Fails if it is missing, or if the system has no watches left.
    pub fn new(dir: &AbsPath) -> Result<Self, FileProblem> {
        let problem = |errno: Errno| FileProblem::from(std::io::Error::from(errno));
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).map_err(problem)?;
        // A writer that keeps its file open is seen when it closes it.
        let wanted = WatchFlags::CLOSE_WRITE
            | WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::MOVED_TO
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        inotify::add_watch(&inotify, dir.as_path(), wanted).map_err(problem)?;
        Ok(Self { inotify })
    }

    /// Takes what has changed since the last call. Does not wait.
    pub fn take_changes(&self) -> DirectoryChanges {
        let mut names = BTreeSet::new();
        let mut buffer = [MaybeUninit::uninit(); EVENT_BUFFER_BYTES];
        let mut events = Reader::new(self.inotify.as_fd(), &mut buffer);
        loop {
            match events.next() {
                Ok(event) if event.events().intersects(LOST_EVENTS) => return DirectoryChanges::Unknown,
                Ok(event) => {
                    let name = event.file_name().and_then(|name| name.to_str().ok());
                    names.extend(name.map(str::to_owned));
                }
                Err(Errno::AGAIN) => return DirectoryChanges::Names(names),
                Err(Errno::INTR) => {}
                Err(_) => return DirectoryChanges::Unknown,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(watch: &DirectoryWatch) -> Vec<String> {
        match watch.take_changes() {
            DirectoryChanges::Names(names) => names.into_iter().collect(),
            DirectoryChanges::Unknown => panic!("events were lost"),
        }
    }

    #[test]
    fn each_change_is_seen_at_the_next_look_and_once() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("a"), "1").unwrap();
        let watch = DirectoryWatch::new(&AbsPath::new(dir.path()).unwrap()).unwrap();
        assert_eq!(names(&watch), [""; 0]);
        std::fs::write(path("a"), "2").unwrap();
        std::fs::write(path("b"), "1").unwrap();
        assert_eq!(names(&watch), ["a", "b"]);
        std::fs::rename(path("b"), path("c")).unwrap();
        std::fs::remove_file(path("a")).unwrap();
        std::fs::hard_link(path("c"), path("d")).unwrap();
        assert_eq!(names(&watch), ["a", "b", "c", "d"]);
        assert!(std::fs::read(path("c")).is_ok() && names(&watch).is_empty(), "a read is no change");
    }

    #[test]
    fn a_directory_that_is_gone_and_lost_events_are_unknown_changes() {
        let dir = tempfile::tempdir().unwrap();
        let sub = AbsPath::new(dir.path()).unwrap().join("sub");
        assert!(DirectoryWatch::new(&sub).is_err());
        std::fs::create_dir(sub.as_path()).unwrap();
        let watch = DirectoryWatch::new(&sub).unwrap();
        std::fs::remove_dir(sub.as_path()).unwrap();
        assert_eq!(watch.take_changes(), DirectoryChanges::Unknown);
    }
}
