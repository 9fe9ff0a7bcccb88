//! Watching a directory tree for files that other programs create, change or delete.
//!
//! Each directory has a watch of its own instead of one recursive watch, because a recursive one would also spend a watch on
//! every directory below `node_modules` or `target`, and a user has a limited number of them.
//! Events are only collected until the caller polls with [`TreeWatcher::take_changes`].

use notify::event::{AccessKind, AccessMode, CreateKind, EventKind, ModifyKind, RenameMode};
use notify::{Event, RecursiveMode, Watcher as _};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use toolgate_proto::AbsPath;

/// Directories that are watched; changes in further ones are not seen.
const MAX_WATCHED_DIRECTORIES: usize = 10_000;
/// Files that wait to be taken. With more, the next poll reports every file of the tree.
const MAX_COLLECTED_FILES: usize = 20_000;
/// Directories of build results and installed packages, which change often and by the thousand.
const SKIPPED_DIRECTORIES: &[&str] = &["node_modules", "target", "__pycache__", "venv"];

/// What happened to a file of a watched tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeChange {
    /// It is new, or was moved there.
    Created,
    /// Its content may have changed.
    Changed,
    /// It is gone.
    Deleted,
}

/// Watches the files of a directory tree for changes by any process. Directories whose names start with a dot, and those of
/// build results and installed packages, are left out; symlinks are not followed.
pub struct TreeWatcher {
    /// The top of the tree.
    root: AbsPath,
    /// The watcher of the operating system (inotify on Linux).
    system: Mutex<notify::RecommendedWatcher>,
    /// What has happened, shared with the event handler of `system`.
    state: Arc<Mutex<TreeEvents>>,
}

/// What has happened in a tree since the last poll.
#[derive(Debug, Default)]
struct TreeEvents {
    /// The files with an event, and whether the first event was a creation.
    files: BTreeMap<PathBuf, bool>,
    /// Directories that appeared. They are watched at the next poll, because the event handler runs on the thread that
    /// adds watches, and would wait for itself.
    new_directories: BTreeSet<PathBuf>,
    /// Events were lost.
    is_lost: bool,
    /// How many directories are watched.
    watched: usize,
}

impl TreeWatcher {
    /// Watches a tree from now on. Blocks while the tree is walked.
    pub fn new(root: &AbsPath) -> Result<Self, String> {
        let state = Arc::new(Mutex::new(TreeEvents::default()));
        let shared = Arc::clone(&state);
        let system = notify::recommended_watcher(move |event: notify::Result<Event>| {
            let mut state = shared.lock().unwrap_or_else(PoisonError::into_inner);
            match event {
                Ok(event) => state.record_event(&event),
                Err(_) => state.is_lost = true,
            }
        });
        let system = Mutex::new(system.map_err(|error| error.to_string())?);
        let watcher = Self { root: root.clone(), system, state };
        watcher.watch_below(root.as_path(), &mut |_| {});
        Ok(watcher)
    }

    /// Whether anything happened since the last poll. Does not block.
    pub fn has_changes(&self) -> bool {
        let state = self.lock_state();
        state.is_lost || !state.files.is_empty() || !state.new_directories.is_empty()
    }

    /// Takes what happened since the last poll, in path order. Blocks. If events were lost, every file of the tree is
    /// reported as changed.
    pub fn take_changes(&self) -> Vec<(AbsPath, TreeChange)> {
        let (mut files, new_directories, is_lost) = {
            let mut state = self.lock_state();
            let files = std::mem::take(&mut state.files);
            let new_directories = std::mem::take(&mut state.new_directories);
            (files, new_directories, std::mem::take(&mut state.is_lost))
        };
        for directory in &new_directories {
            // What was created before the watch was there has no event of its own.
            self.watch_below(directory, &mut |file| {
                files.insert(file, true);
            });
        }
        if is_lost {
            self.lock_state().watched = 0;
            self.watch_below(self.root.as_path(), &mut |file| {
                files.entry(file).or_insert(false);
            });
        }
        let change = |(path, is_new): (PathBuf, bool)| {
            let change = match (std::fs::symlink_metadata(&path), is_new) {
                (Err(_), _) => TreeChange::Deleted,
                (Ok(found), _) if found.is_dir() => return None,
                (Ok(_), true) => TreeChange::Created,
                (Ok(_), false) => TreeChange::Changed,
            };
            Some((AbsPath::new(path).ok()?, change))
        };
        files.into_iter().filter_map(change).collect()
    }

    /// Watches a directory and those below it, and passes the files on.
    fn watch_below(&self, top: &Path, add_file: &mut dyn FnMut(PathBuf)) {
        let mut waiting = vec![top.to_path_buf()];
        while let Some(directory) = waiting.pop() {
            if self.lock_state().watched >= MAX_WATCHED_DIRECTORIES {
                return;
            }
            // Watched before it is read: a file that is created in between is found twice instead of never.
            let mut system = self.system.lock().unwrap_or_else(PoisonError::into_inner);
            let watched = system.watch(&directory, RecursiveMode::NonRecursive);
            drop(system);
            if watched.is_ok() {
                self.lock_state().watched += 1;
            }
            let Ok(entries) = std::fs::read_dir(&directory) else { continue };
            for entry in entries.flatten() {
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() && is_watched_name(&entry.file_name()) => {
                        waiting.push(entry.path());
                    }
                    Ok(kind) if kind.is_file() => add_file(entry.path()),
                    _ => {}
                }
            }
        }
    }

    /// Locks the state; a panic of another thread leaves it usable.
    fn lock_state(&self) -> MutexGuard<'_, TreeEvents> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for TreeWatcher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TreeWatcher").field("root", &self.root).finish_non_exhaustive()
    }
}

/// Whether a directory with this name is watched.
fn is_watched_name(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    !name.starts_with('.') && !SKIPPED_DIRECTORIES.contains(&name.as_ref())
}

impl TreeEvents {
    /// Notes an event of the operating system.
    fn record_event(&mut self, event: &Event) {
        if event.need_rescan() {
            self.is_lost = true;
            return;
        }
        let is_new = match event.kind {
            EventKind::Access(AccessKind::Close(AccessMode::Write)) => false,
            EventKind::Access(_) => return,
            EventKind::Create(_) | EventKind::Modify(ModifyKind::Name(RenameMode::To)) => true,
            EventKind::Any | EventKind::Modify(_) | EventKind::Remove(_) | EventKind::Other => false,
        };
        for path in &event.paths {
            let is_directory = event.kind == EventKind::Create(CreateKind::Folder)
                || (is_new && std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()));
            if is_directory {
                if path.file_name().is_some_and(is_watched_name) {
                    self.new_directories.insert(path.clone());
                }
                continue;
            }
            if self.files.len() >= MAX_COLLECTED_FILES {
                self.files.clear();
                self.is_lost = true;
            }
            // The rename of a file is reported once for each name, and once for both.
            let is_pair = event.kind == EventKind::Modify(ModifyKind::Name(RenameMode::Both));
            if !is_pair {
                self.files.entry(path.clone()).or_insert(is_new);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    /// Polls until a change of this path is reported.
    fn next_change(watcher: &TreeWatcher, path: &AbsPath) -> Option<TreeChange> {
        let end = Instant::now() + Duration::from_secs(20);
        while Instant::now() < end {
            let changes = watcher.take_changes();
            if let Some((_, change)) = changes.iter().find(|(changed, _)| changed == path) {
                return Some(*change);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        None
    }

    /// A tree with `old`, and its watcher.
    fn tree() -> (tempfile::TempDir, AbsPath, TreeWatcher) {
        let dir = tempfile::tempdir().unwrap();
        let root = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        std::fs::create_dir_all(root.join("sub/node_modules")).unwrap();
        std::fs::write(root.join("sub/old"), "1").unwrap();
        let watcher = TreeWatcher::new(&root).unwrap();
        assert!(!watcher.has_changes());
        (dir, root, watcher)
    }

    #[test]
    fn files_that_are_created_changed_moved_and_deleted_are_reported() {
        let (_dir, root, watcher) = tree();
        std::fs::write(root.join("new"), "1").unwrap();
        assert_eq!(next_change(&watcher, &root.join("new")), Some(TreeChange::Created));
        std::fs::write(root.join("sub/old"), "2").unwrap();
        assert_eq!(next_change(&watcher, &root.join("sub/old")), Some(TreeChange::Changed));
        std::fs::rename(root.join("sub/old"), root.join("moved")).unwrap();
        assert_eq!(next_change(&watcher, &root.join("moved")), Some(TreeChange::Created));
        std::fs::remove_file(root.join("moved")).unwrap();
        assert_eq!(next_change(&watcher, &root.join("moved")), Some(TreeChange::Deleted));
    }

    #[test]
    fn directories_that_appear_are_watched_and_those_of_packages_are_not() {
        let (_dir, root, watcher) = tree();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::write(root.join("a/b/first"), "1").unwrap();
        assert_eq!(next_change(&watcher, &root.join("a/b/first")), Some(TreeChange::Created));
        std::fs::write(root.join("a/b/second"), "1").unwrap();
        assert_eq!(next_change(&watcher, &root.join("a/b/second")), Some(TreeChange::Created));
        std::fs::write(root.join("sub/node_modules/x"), "1").unwrap();
        std::fs::write(root.join("last"), "1").unwrap();
        let end = Instant::now() + Duration::from_secs(20);
        let mut seen = Vec::new();
        while !seen.contains(&root.join("last")) && Instant::now() < end {
            seen.extend(watcher.take_changes().into_iter().map(|(path, _)| path));
        }
        assert!(!seen.contains(&root.join("sub/node_modules/x")), "{seen:?}");
    }

    #[test]
    fn lost_events_report_every_file() {
        let (_dir, root, watcher) = tree();
        watcher.lock_state().is_lost = true;
        assert!(watcher.has_changes());
        assert_eq!(watcher.take_changes(), [(root.join("sub/old"), TreeChange::Changed)]);
        assert!(!watcher.has_changes());
    }
}
