//! One thread of a walk: it lists directories and visits files without the lock.

use crate::collect::{ResultCollector, WalkKey};
use crate::directory::{NamedEntry, WalkDirectory, WalkEntryKind, as_path};
use crate::skipped::SkippedEntries;
use crate::walk::{FileVisitor, TreeWalk, WalkFile, WalkItem, WalkTask};
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use toolgate_files::FileProblem;
use toolgate_proto::AbsPath;

/// Size of the buffer for one read of directory entries.
pub(crate) const ENTRIES_BUFFER_BYTES: usize = 32 * 1024;
/// How many expensive files are queued as one item.
const MAX_FILES_PER_TASK: usize = 16;

/// The buffers of one thread, and what it has found since it last had the lock.
pub(crate) struct WalkWorker<'w, V: FileVisitor> {
    /// The visitor's own data.
    scratch: V::Scratch,
    /// Buffer for directory entries.
    pub(crate) entries: Vec<MaybeUninit<u8>>,
    /// Buffer for the absolute path of the current entry.
    path: Vec<u8>,
    /// Results that are not yet in the collector.
    pub(crate) found: Vec<(WalkKey, V::Found)>,
    /// Items that are not yet in the queue.
    pub(crate) items: Vec<WalkItem<'w>>,
    /// Skipped entries that are not yet merged.
    pub(crate) skipped: SkippedEntries,
}

impl<'w, V: FileVisitor> WalkWorker<'w, V> {
    pub(crate) fn new(visitor: &V) -> Self {
        Self {
            scratch: visitor.scratch(),
            entries: vec![MaybeUninit::uninit(); ENTRIES_BUFFER_BYTES],
            path: Vec::new(),
            found: Vec::new(),
            items: Vec::new(),
            skipped: SkippedEntries::default(),
        }
    }

    /// Works on one item of the queue.
    pub(crate) fn run_task<C: ResultCollector<V::Found>>(
        &mut self,
        walk: &TreeWalk<'w, V, C>,
        item: WalkItem<'w>,
    ) {
        match item.task {
            WalkTask::ReadDirectory { parent, name } => {
                match parent.open_subdirectory(&name, self.entries.as_mut_slice()) {
                    Ok(directory) => self.read_directory(walk, directory),
                    // It was removed or replaced after its parent was listed.
                    Err(FileProblem::Missing | FileProblem::NotDirectory | FileProblem::SymlinkOnPath) => {}
                    Err(problem) => {
                        self.skipped.unreadable.insert(item.key, problem);
                    }
                }
            }
            WalkTask::VisitFiles { directory, files } => {
                for entry in files {
                    let name = directory.names.name(entry);
                    if !self.visit_entry(walk, &directory, name) {
                        break;
                    }
                }
            }
        }
    }

    /// Queues the subdirectories and files of a directory that the walk takes; files that are cheap to visit are visited
    /// at once.
    pub(crate) fn read_directory<C: ResultCollector<V::Found>>(
        &mut self,
        walk: &TreeWalk<'w, V, C>,
        mut directory: WalkDirectory<'w>,
    ) {
        walk.selector.load_ignore_rules(&mut directory);
        directory.can_decide_by_name = walk.hidden.is_some_and(|hidden| {
            AbsPath::new(as_path(directory.path())).is_ok_and(|path| hidden.can_decide_by_name(&path))
        });
        if C::IN_ORDER {
            directory.names.sort();
        }
        let directory = Arc::new(directory);
        let mut batch: Vec<NamedEntry> = Vec::new();
        for &entry in directory.names.entries() {
            let is_dir = match entry.kind {
                WalkEntryKind::Directory => true,
                WalkEntryKind::File => false,
                // Symlinks are not followed: their target may be outside of the tree.
                WalkEntryKind::Symlink | WalkEntryKind::Special => continue,
            };
            let name = directory.names.name(entry);
            self.set_path(&directory, name);
            let rules = directory.rules.as_deref();
            if !walk.selector.includes(rules, &self.path, walk.prefix_len, name.to_bytes(), is_dir) {
                continue;
            }
            if is_dir {
                self.queue_files(&directory, &mut batch);
                self.queue_directory(walk, &directory, name);
            } else if walk.visitor.is_expensive() {
                batch.push(entry);
                if batch.len() == MAX_FILES_PER_TASK {
                    self.queue_files(&directory, &mut batch);
                }
            } else {
                self.visit_entry(walk, &directory, name);
            }
        }
        self.queue_files(&directory, &mut batch);
    }

    /// Queues a subdirectory whose path is in the buffer, unless it is hidden.
    fn queue_directory<C: ResultCollector<V::Found>>(
        &mut self,
        walk: &TreeWalk<'w, V, C>,
        parent: &Arc<WalkDirectory<'w>>,
        name: &CStr,
    ) {
        let key = parent.entry_key(name, &[0]).into();
        if walk.is_hidden(&self.path) {
            self.skipped.withheld.insert(key, WalkEntryKind::Directory);
            return;
        }
        let task = WalkTask::ReadDirectory { parent: Arc::clone(parent), name: name.to_owned() };
        self.items.push(WalkItem { key, task });
    }

    /// Queues a batch of files as one item, and empties the batch.
    fn queue_files(&mut self, directory: &Arc<WalkDirectory<'w>>, batch: &mut Vec<NamedEntry>) {
        let Some(first) = batch.first() else { return };
        let key = directory.entry_key(directory.names.name(*first), &[]).into();
        let task = WalkTask::VisitFiles { directory: Arc::clone(directory), files: std::mem::take(batch) };
        self.items.push(WalkItem { key, task });
    }

    /// Visits one file. False if neither it nor a file after it can matter.
    fn visit_entry<C: ResultCollector<V::Found>>(
        &mut self,
        walk: &TreeWalk<'w, V, C>,
        directory: &WalkDirectory<'w>,
        name: &CStr,
    ) -> bool {
        if walk.stop.is_stopped() {
            return false;
        }
        let key = || WalkKey::from(directory.entry_key(name, &[]));
        if walk.limit_reached.load(Ordering::Relaxed) {
            let key = key();
            let mut queue = walk.lock();
            if queue.collector.end().is_some_and(|end| key > *end) {
                queue.collector.mark_truncated();
                return false;
            }
        }
        self.set_path(directory, name);
        let relative = self.path.get(walk.prefix_len..).unwrap_or_default();
        let file = WalkFile { directory, name, relative };
        if !walk.visitor.matches_name(&file) {
            return true;
        }
        if walk.is_hidden_file(directory, name, &self.path) {
            self.skipped.withheld.insert(key(), WalkEntryKind::File);
            return true;
        }
        match walk.visitor.visit_file(&mut self.scratch, &file) {
            Ok(Some(found)) => self.found.push((key(), found)),
            Ok(None) | Err(FileProblem::Missing | FileProblem::SymlinkOnPath | FileProblem::Special) => {}
            Err(problem) => {
                self.skipped.unreadable.insert(key(), problem);
            }
        }
        true
    }

    /// Puts the absolute path of an entry into the buffer.
    fn set_path(&mut self, directory: &WalkDirectory<'_>, name: &CStr) {
        self.path.clear();
        self.path.extend_from_slice(directory.path());
        self.path.extend_from_slice(name.to_bytes());
    }
}
