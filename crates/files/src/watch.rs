//! Watching files for changes by other programs.
//!
//! An event is a hint, not a proof: the caller compares the content of a file that may have changed.
//! Events are only collected, per file with the time of the last one, until the caller polls with
//! [`FileWatcher::take_settled`].
//! Directories are watched and not files, because editors and toolgate itself replace files instead of writing into
//! them, which a watch on the file would miss; and many files of a directory need only one watch.

use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{Event, RecursiveMode, Watcher as _};
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use toolgate_proto::AbsPath;

/// Watches files for changes by any process.
pub struct FileWatcher {
    /// The watcher of the operating system (inotify on Linux).
    system: Mutex<notify::RecommendedWatcher>,
    /// What is watched and what has happened, shared with the event handler of `system`.
    state: Arc<Mutex<WatchState>>,
}

/// What is watched and what has happened.
#[derive(Debug, Default)]
struct WatchState {
    /// The watched names in each directory.
    wanted: HashMap<PathBuf, HashSet<OsString>>,
    /// Files with an event that was not yet returned, and the time of their last event.
    touched: HashMap<PathBuf, Instant>,
    /// Directories that could not be watched. Their files are returned at every poll.
    unwatched: HashSet<PathBuf>,
}

impl FileWatcher {
    /// A watcher without files. Fails if the operating system has no watches left.
    pub fn new() -> Result<Self, String> {
        let state = Arc::new(Mutex::new(WatchState::default()));
        let shared = Arc::clone(&state);
        let system = notify::recommended_watcher(move |event: notify::Result<Event>| {
            let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
            match event {
                Ok(event) => state.record_event(&event),
                Err(_) => state.mark_all_touched(),
            }
        });
        let system = system.map_err(|error| error.to_string())?;
        Ok(Self { system: Mutex::new(system), state })
    }

    /// Watches a file, which need not exist.
    pub fn watch(&self, real: &AbsPath) {
        let (Some(dir), Some(name)) = (real.as_path().parent(), real.file_name()) else { return };
        let is_watched = {
            let mut state = self.lock_state();
            let is_watched = state.wanted.contains_key(dir);
            state.wanted.entry(dir.to_path_buf()).or_default().insert(name.to_owned());
            is_watched
        };
        if !is_watched {
            self.watch_dir(dir);
        }
    }

    /// Takes the files that may have changed and had no further event for `quiet`. Each event is returned once; files whose
    /// directory cannot be watched are returned every time.
    pub fn take_settled(&self, quiet: Duration) -> Vec<AbsPath> {
        let unwatched: Vec<PathBuf> = self.lock_state().unwatched.iter().cloned().collect();
        for dir in unwatched {
            self.watch_dir(&dir);
        }
        let mut state = self.lock_state();
        let now = Instant::now();
        let mut settled: HashSet<PathBuf> = HashSet::new();
        state.touched.retain(|path, last| {
            let is_settled = now.duration_since(*last) >= quiet;
            if is_settled {
                settled.insert(path.clone());
            }
            !is_settled
        });
        for dir in &state.unwatched {
            settled.extend(state.wanted.get(dir).into_iter().flatten().map(|name| dir.join(name)));
        }
        let mut settled: Vec<AbsPath> = settled.iter().filter_map(|path| AbsPath::new(path).ok()).collect();
        settled.sort_by(|one, other| one.as_path().cmp(other.as_path()));
        settled
    }

    /// Watches a directory, or notes that it cannot be watched.
    fn watch_dir(&self, dir: &Path) {
        let mut system = self.system.lock().unwrap_or_else(PoisonError::into_inner);
        let watched = system.watch(dir, RecursiveMode::NonRecursive);
        drop(system);
        let mut state = self.lock_state();
        match watched {
            // Events were missed while it was not watched.
            Ok(()) if state.unwatched.remove(dir) => state.mark_directory_touched(dir),
            Ok(()) => {}
            // The directory does not exist, or the limit of watches is reached.
            Err(_) => drop(state.unwatched.insert(dir.to_path_buf())),
        }
    }

    /// Locks the state; a panic of another thread leaves it usable.
    fn lock_state(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for FileWatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileWatcher").field("state", &self.state).finish_non_exhaustive()
    }
}

impl WatchState {
    /// Notes an event of the operating system.
    fn record_event(&mut self, event: &Event) {
        if event.need_rescan() {
            self.mark_all_touched();
            return;
        }
        match event.kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => {}
            EventKind::Access(_) => return,
            EventKind::Any
            | EventKind::Create(_)
            | EventKind::Modify(_)
            | EventKind::Remove(_)
            | EventKind::Other => {}
        }
        for path in &event.paths {
            if self.wanted.contains_key(path) && event.kind.is_remove() {
                // The directory itself was removed, and its watch with it.
                self.unwatched.insert(path.clone());
                self.mark_directory_touched(path);
            }
            let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { continue };
            if self.wanted.get(dir).is_some_and(|names| names.contains(name)) {
                self.touched.insert(path.clone(), Instant::now());
            }
        }
    }

    /// Notes that every watched file of a directory may have changed.
    fn mark_directory_touched(&mut self, dir: &Path) {
        let now = Instant::now();
        for name in self.wanted.get(dir).into_iter().flatten() {
            self.touched.insert(dir.join(name), now);
        }
    }

    /// Notes that every watched file may have changed, because events were lost.
    fn mark_all_touched(&mut self) {
        let dirs: Vec<PathBuf> = self.wanted.keys().cloned().collect();
        for dir in dirs {
            self.mark_directory_touched(&dir);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Polls until a file is returned.
    fn is_reported(watcher: &FileWatcher, path: &AbsPath) -> bool {
        let end = Instant::now() + Duration::from_secs(20);
        while Instant::now() < end {
            if watcher.take_settled(Duration::ZERO).contains(path) {
                return true;
            }
            std::thread::yield_now();
        }
        false
    }

    #[test]
    fn writes_replacements_and_removals_are_reported_for_watched_files_only() {
        let dir = tempfile::tempdir().unwrap();
        let top = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        let (file, other) = (top.join("f"), top.join("g"));
        std::fs::write(&file, "1").unwrap();
        let watcher = FileWatcher::new().unwrap();
        watcher.watch(&file);
        std::fs::write(&other, "not watched").unwrap();
        std::fs::write(&file, "2").unwrap();
        assert!(is_reported(&watcher, &file));
        std::fs::write(top.join("tmp"), "3").unwrap();
        std::fs::rename(top.join("tmp"), &file).unwrap();
        assert!(is_reported(&watcher, &file));
        std::fs::remove_file(&file).unwrap();
        assert!(is_reported(&watcher, &file));
        assert!(!watcher.lock_state().touched.contains_key(other.as_path()));
    }

    #[test]
    fn an_event_within_the_quiet_time_is_reported_later_and_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap().join("f");
        let watcher = FileWatcher::new().unwrap();
        watcher.watch(&file);
        watcher.lock_state().touched.insert(file.as_path().to_path_buf(), Instant::now());
        assert_eq!(watcher.take_settled(Duration::from_secs(3600)), []);
        assert_eq!(watcher.take_settled(Duration::ZERO), [file]);
        assert_eq!(watcher.take_settled(Duration::ZERO), []);
    }

    #[test]
    fn a_directory_that_is_missing_or_removed_is_watched_when_it_exists_again() {
        let dir = tempfile::tempdir().unwrap();
        let top = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        let file = top.join("sub/f");
        let watcher = FileWatcher::new().unwrap();
        watcher.watch(&file);
        assert_eq!(
            watcher.take_settled(Duration::ZERO),
            std::slice::from_ref(&file),
            "not watched, so reported at every poll"
        );
        std::fs::create_dir(top.join("sub")).unwrap();
        assert!(is_reported(&watcher, &file));
        std::fs::remove_dir(top.join("sub")).unwrap();
        assert!(is_reported(&watcher, &file));
        std::fs::create_dir(top.join("sub")).unwrap();
        std::fs::write(&file, "x").unwrap();
        assert!(is_reported(&watcher, &file));
    }
}
