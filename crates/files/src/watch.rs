//! Which of some files may have changed.
//!
//! Events are a hint, never a proof: whoever hears that a file may have changed looks at its content.
//! So events are only gathered, per file and with the time of the last one, and asked for when somebody wants to
//! know; nothing runs while nothing happens.
//! Directories are watched rather than files, because editors and we ourselves replace files instead of writing
//! into them; many files of one directory cost one watch.

use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{Event, RecursiveMode, Watcher as _};
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use toolgate_proto::AbsPath;

/// Watches files for changes by anybody.
pub struct FileWatcher {
    system: Mutex<notify::RecommendedWatcher>,
    state: Arc<Mutex<WatchState>>,
}

#[derive(Debug, Default)]
struct WatchState {
    /// The names of interest in each directory.
    wanted: HashMap<PathBuf, HashSet<OsString>>,
    /// When something last happened to a file.
    touched: HashMap<PathBuf, Instant>,
    /// Directories that the system does not watch for us; their files are always to be looked at.
    unwatched: HashSet<PathBuf>,
}

impl FileWatcher {
    /// A watcher of nothing yet.
    pub fn new() -> Result<Self, String> {
        let heard = Arc::new(Mutex::new(WatchState::default()));
        let ear = Arc::clone(&heard);
        let system = notify::recommended_watcher(move |event: notify::Result<Event>| {
            let mut heard = ear.lock().unwrap_or_else(PoisonError::into_inner);
            match event {
                Ok(event) => heard.record_event(&event),
                Err(_) => heard.mark_all_touched(),
            }
        });
        let system = system.map_err(|error| error.to_string())?;
        Ok(Self { system: Mutex::new(system), state: heard })
    }

    /// Watches one more file, which need not exist.
    pub fn watch(&self, real: &AbsPath) {
        let (Some(dir), Some(name)) = (real.as_path().parent(), real.file_name()) else { return };
        let known = {
            let mut heard = self.lock_state();
            let known = heard.wanted.contains_key(dir);
            heard.wanted.entry(dir.to_path_buf()).or_default().insert(name.to_owned());
            known
        };
        if !known {
            self.watch_dir(dir);
        }
    }

    /// The files to which something happened, and nothing more since `quiet`. Each is told once.
    pub fn take_settled(&self, quiet: Duration) -> Vec<AbsPath> {
        let lost: Vec<PathBuf> = self.lock_state().unwatched.iter().cloned().collect();
        for dir in lost {
            self.watch_dir(&dir);
        }
        let mut heard = self.lock_state();
        let now = Instant::now();
        let mut settled: HashSet<PathBuf> = HashSet::new();
        heard.touched.retain(|path, last| {
            let over = now.duration_since(*last) >= quiet;
            if over {
                settled.insert(path.clone());
            }
            !over
        });
        for dir in &heard.unwatched {
            settled.extend(heard.wanted.get(dir).into_iter().flatten().map(|name| dir.join(name)));
        }
        let mut settled: Vec<AbsPath> = settled.iter().filter_map(|path| AbsPath::new(path).ok()).collect();
        settled.sort_by(|one, other| one.as_path().cmp(other.as_path()));
        settled
    }

    fn watch_dir(&self, dir: &Path) {
        let mut system = self.system.lock().unwrap_or_else(PoisonError::into_inner);
        let watched = system.watch(dir, RecursiveMode::NonRecursive);
        drop(system);
        let mut heard = self.lock_state();
        match watched {
            // Whatever happened while nobody watched must be found out.
            Ok(()) if heard.unwatched.remove(dir) => heard.mark_directory_touched(dir),
            Ok(()) => {}
            // No such directory, or the system has no more watches to give.
            Err(_) => drop(heard.unwatched.insert(dir.to_path_buf())),
        }
    }

    fn lock_state(&self) -> MutexGuard<'_, WatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for FileWatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileWatcher").field("heard", &self.state).finish_non_exhaustive()
    }
}

impl WatchState {
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
                // The directory itself went, and the system's watch with it.
                self.unwatched.insert(path.clone());
                self.mark_directory_touched(path);
            }
            let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { continue };
            if self.wanted.get(dir).is_some_and(|names| names.contains(name)) {
                self.touched.insert(path.clone(), Instant::now());
            }
        }
    }

    fn mark_directory_touched(&mut self, dir: &Path) {
        let now = Instant::now();
        for name in self.wanted.get(dir).into_iter().flatten() {
            self.touched.insert(dir.join(name), now);
        }
    }

    /// Events were lost: anything may have happened.
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

    /// Waits until a file is told of.
    fn told(watcher: &FileWatcher, path: &AbsPath) -> bool {
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
    fn writes_replacements_and_removals_are_heard_and_neighbours_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let top = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        let (file, other) = (top.join("f"), top.join("g"));
        std::fs::write(&file, "1").unwrap();
        let watcher = FileWatcher::new().unwrap();
        watcher.watch(&file);
        std::fs::write(&other, "not of interest").unwrap();
        std::fs::write(&file, "2").unwrap();
        assert!(told(&watcher, &file));
        std::fs::write(top.join("tmp"), "3").unwrap();
        std::fs::rename(top.join("tmp"), &file).unwrap();
        assert!(told(&watcher, &file));
        std::fs::remove_file(&file).unwrap();
        assert!(told(&watcher, &file));
        assert!(!watcher.lock_state().touched.contains_key(other.as_path()));
    }

    #[test]
    fn what_happens_within_the_quiet_time_is_told_later_and_once() {
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
    fn a_directory_that_is_not_there_or_goes_away_is_looked_at_again() {
        let dir = tempfile::tempdir().unwrap();
        let top = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        let file = top.join("sub/f");
        let watcher = FileWatcher::new().unwrap();
        watcher.watch(&file);
        assert_eq!(
            watcher.take_settled(Duration::ZERO),
            std::slice::from_ref(&file),
            "not watched, so always to be looked at"
        );
        std::fs::create_dir(top.join("sub")).unwrap();
        assert!(told(&watcher, &file));
        std::fs::remove_dir(top.join("sub")).unwrap();
        assert!(told(&watcher, &file));
        std::fs::create_dir(top.join("sub")).unwrap();
        std::fs::write(&file, "x").unwrap();
        assert!(told(&watcher, &file));
    }
}
