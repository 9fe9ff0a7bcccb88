//! The walk: several threads, one order.
//!
//! Work waits in a heap that is ordered like the answer, and every thread takes the first piece of it.
//! So the threads together advance through the tree from its first path to its last, whoever does what: results come
//! early in the order first, and as soon as enough of them are held, everything that lies after the last of those can
//! no longer matter and is dropped.
//! That is why the same question gets the same answer and the same pages, however the threads were scheduled, and why
//! a search with a limit stops early.
//!
//! One thread starts; others join only when there turns out to be work for them, because starting a thread costs more
//! than searching a small project.

use crate::collect::{ResultCollector, WalkKey};
use crate::directory::{NamedEntry, WalkDirectory, WalkEntryKind, as_path};
use crate::select::FileSelector;
use crate::skipped::SkippedEntries;
use crate::{SearchStopFlag, SearchTree};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::sync::atomic::{self, AtomicBool};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};
use toolgate_files::{FileProblem, HiddenFileFilter};
use toolgate_files::{available_cores, try_spawn_scoped};
use toolgate_proto::AbsPath;

/// Bytes of directory entries that are read at once.
const ENTRIES_BUFFER_BYTES: usize = 32 * 1024;
/// Files that are handed out together.
const MAX_FILES_PER_TASK: usize = 16;
/// As many threads as ripgrep would use at most.
const MAX_THREADS: usize = 12;
/// A search that takes longer than this is worth other threads.
const SINGLE_THREAD_TIMEOUT: Duration = Duration::from_millis(2);

/// What is done with each file that is taken.
pub(crate) trait FileVisitor: Sync {
    /// What one thread keeps between files.
    type Scratch;
    /// What is found in one file.
    type Found: Send;

    fn scratch(&self) -> Self::Scratch;

    /// Whether looking at a file costs more than finding it, so that it is worth handing out.
    fn is_expensive(&self) -> bool;

    /// Whether the name alone rules a file out.
    fn matches_name(&self, file: &WalkFile<'_>) -> bool {
        let _ = file;
        true
    }

    fn visit_file(
        &self,
        scratch: &mut Self::Scratch,
        file: &WalkFile<'_>,
    ) -> Result<Option<Self::Found>, FileProblem>;
}

/// One file of the walk.
pub(crate) struct WalkFile<'a> {
    pub(crate) directory: &'a WalkDirectory,
    pub(crate) name: &'a CStr,
    /// Below the start of the walk.
    pub(crate) relative: &'a [u8],
}

/// Walks a tree. The answer is in the collection that comes back.
pub(crate) fn walk<V: FileVisitor, C: ResultCollector<V::Found>>(
    tree: &SearchTree,
    selector: &FileSelector,
    visit: &V,
    collect: C,
    stop: &SearchStopFlag,
) -> Result<(C, SkippedEntries), FileProblem> {
    let mut hand = WalkWorker::new(visit);
    let mut start = WalkDirectory::open_start(tree.start(), hand.entries.as_mut_slice())?;
    if selector.respects_ignore_files {
        start.rules = crate::ancestor_ignore_rules(tree);
    }
    let walk = TreeWalk {
        from: start.path().len(),
        hidden: tree.hidden().filter(|hidden| hidden.hides_any()),
        selector,
        visitor: visit,
        stop,
        limit_reached: AtomicBool::new(false),
        queue: Mutex::new(WalkQueue {
            items: BinaryHeap::new(),
            active: 0,
            idle: 0,
            finished: false,
            collector: collect,
            skipped: SkippedEntries::default(),
        }),
        changed: Condvar::new(),
    };
    walk.read_directory(start, &mut hand);
    std::thread::scope(|scope| walk.run_first_worker(scope, hand));
    let queue = walk.queue.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((queue.collector, queue.skipped))
}

struct TreeWalk<'w, V: FileVisitor, C> {
    /// Where in an absolute path the part below the start begins.
    from: usize,
    hidden: Option<&'w HiddenFileFilter>,
    selector: &'w FileSelector,
    visitor: &'w V,
    stop: &'w SearchStopFlag,
    /// Enough is held: what lies after it need not be looked at.
    limit_reached: AtomicBool,
    queue: Mutex<WalkQueue<C>>,
    changed: Condvar,
}

struct WalkQueue<C> {
    items: BinaryHeap<Reverse<WalkItem>>,
    /// Threads that have an item in hand, and so may add others.
    active: usize,
    idle: usize,
    finished: bool,
    collector: C,
    skipped: SkippedEntries,
}

/// A piece of work and its place in the order.
struct WalkItem {
    key: WalkKey,
    task: WalkTask,
}

enum WalkTask {
    ReadDirectory { parent: Arc<WalkDirectory>, name: CString },
    VisitFiles { directory: Arc<WalkDirectory>, files: Vec<NamedEntry> },
}

impl Ord for WalkItem {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

impl PartialOrd for WalkItem {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for WalkItem {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for WalkItem {}

/// What one thread works with.
struct WalkWorker<V: FileVisitor> {
    scratch: V::Scratch,
    entries: Vec<MaybeUninit<u8>>,
    path: Vec<u8>,
    found: Vec<(WalkKey, V::Found)>,
    items: Vec<WalkItem>,
    skipped: SkippedEntries,
}

impl<V: FileVisitor> WalkWorker<V> {
    fn new(visit: &V) -> Self {
        Self {
            scratch: visit.scratch(),
            entries: vec![MaybeUninit::uninit(); ENTRIES_BUFFER_BYTES],
            path: Vec::new(),
            found: Vec::new(),
            items: Vec::new(),
            skipped: SkippedEntries::default(),
        }
    }
}

impl<V: FileVisitor, C: ResultCollector<V::Found>> TreeWalk<'_, V, C> {
    /// The first thread's part.
    fn run_first_worker<'scope, 'env>(
        &'scope self,
        scope: &'scope Scope<'scope, 'env>,
        mut hand: WalkWorker<V>,
    ) {
        let began = Instant::now();
        let mut alone = true;
        self.merge_results(&mut self.lock(), &mut hand);
        self.run_worker(&mut hand, |waiting| {
            if alone && waiting > 1 && began.elapsed() > SINGLE_THREAD_TIMEOUT {
                alone = false;
                for _ in 1..thread_count() {
                    try_spawn_scoped(scope, || self.run_worker(&mut WalkWorker::new(self.visitor), |_| {}));
                }
            }
        });
    }

    /// Takes the first piece of work, again and again.
    fn run_worker(&self, hand: &mut WalkWorker<V>, mut after_each: impl FnMut(usize)) {
        let _others_must_know = EndWalkOnPanic(self);
        let mut queue = self.lock();
        while !queue.finished {
            if self.stop.is_stopped() {
                queue.finished = true;
                break;
            }
            match self.next_item(&mut queue) {
                Some(item) => {
                    queue.active += 1;
                    drop(queue);
                    self.run_task(item, hand);
                    queue = self.lock();
                    queue.active -= 1;
                    self.merge_results(&mut queue, hand);
                    after_each(queue.items.len());
                }
                None if queue.active == 0 => queue.finished = true,
                None => {
                    queue.idle += 1;
                    queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
                    queue.idle -= 1;
                }
            }
        }
        drop(queue);
        self.changed.notify_all();
    }

    fn next_item(&self, queue: &mut WalkQueue<C>) -> Option<WalkItem> {
        let first = &queue.items.peek()?.0;
        if queue.collector.end().is_some_and(|end| first.key > *end) {
            queue.items.clear();
            queue.collector.mark_truncated();
            return None;
        }
        queue.items.pop().map(|item| item.0)
    }

    /// Puts what a thread has made where all can see it.
    fn merge_results(&self, queue: &mut WalkQueue<C>, hand: &mut WalkWorker<V>) {
        for (key, found) in hand.found.drain(..) {
            queue.collector.add(key, found);
        }
        if queue.collector.end().is_some() {
            self.limit_reached.store(true, atomic::Ordering::Relaxed);
        }
        queue.skipped.withheld.append(&mut hand.skipped.withheld);
        queue.skipped.unreadable.append(&mut hand.skipped.unreadable);
        if !hand.items.is_empty() {
            queue.items.extend(hand.items.drain(..).map(Reverse));
            if queue.idle > 0 {
                self.changed.notify_all();
            }
        }
    }

    fn run_task(&self, item: WalkItem, hand: &mut WalkWorker<V>) {
        match item.task {
            WalkTask::ReadDirectory { parent, name } => {
                match parent.open_subdirectory(&name, hand.entries.as_mut_slice()) {
                    Ok(directory) => self.read_directory(directory, hand),
                    // It has gone, or something else has taken its place.
                    Err(FileProblem::Missing | FileProblem::NotDirectory | FileProblem::SymlinkOnPath) => {}
                    Err(problem) => {
                        hand.skipped.unreadable.insert(item.key, problem);
                    }
                }
            }
            WalkTask::VisitFiles { directory, files } => {
                for entry in files {
                    let name = directory.names.name(entry);
                    if !self.visit_entry(&directory, name, hand) {
                        break;
                    }
                }
            }
        }
    }

    /// Goes through the entries of a directory.
    fn read_directory(&self, mut directory: WalkDirectory, hand: &mut WalkWorker<V>) {
        self.selector.load_ignore_rules(&mut directory);
        directory.can_decide_by_name = self.hidden.is_some_and(|hidden| {
            AbsPath::new(as_path(directory.path())).is_ok_and(|path| hidden.can_decide_by_name(&path))
        });
        if C::IN_ORDER {
            directory.names.sort();
        }
        let directory = Arc::new(directory);
        let names = &directory.names;
        let mut run: Vec<NamedEntry> = Vec::new();
        for &entry in names.entries() {
            let is_dir = match entry.kind {
                WalkEntryKind::Directory => true,
                WalkEntryKind::File => false,
                // Links are not followed, so nothing outside of the tree is reached through one.
                WalkEntryKind::Symlink | WalkEntryKind::Special => continue,
            };
            let name = names.name(entry);
            let bytes = name.to_bytes();
            hand.path.clear();
            hand.path.extend_from_slice(directory.path());
            hand.path.extend_from_slice(bytes);
            let rules = directory.rules.as_deref();
            if !self.selector.includes(rules, &hand.path, self.from, bytes, is_dir) {
                continue;
            }
            if is_dir {
                self.queue_files(&directory, &mut run, hand);
                let key = directory.entry_key(name, &[0]).into();
                if self.is_hidden(&hand.path) {
                    hand.skipped.withheld.insert(key, WalkEntryKind::Directory);
                    continue;
                }
                let work = WalkTask::ReadDirectory { parent: Arc::clone(&directory), name: name.to_owned() };
                hand.items.push(WalkItem { key, task: work });
            } else if self.visitor.is_expensive() {
                run.push(entry);
                if run.len() == MAX_FILES_PER_TASK {
                    self.queue_files(&directory, &mut run, hand);
                }
            } else {
                self.visit_entry(&directory, name, hand);
            }
        }
        self.queue_files(&directory, &mut run, hand);
    }

    fn queue_files(
        &self,
        directory: &Arc<WalkDirectory>,
        run: &mut Vec<NamedEntry>,
        hand: &mut WalkWorker<V>,
    ) {
        let Some(first) = run.first() else { return };
        let key = directory.entry_key(directory.names.name(*first), &[]).into();
        let work = WalkTask::VisitFiles { directory: Arc::clone(directory), files: std::mem::take(run) };
        hand.items.push(WalkItem { key, task: work });
    }

    /// Looks at one file. False where nothing after it needs a look.
    fn visit_entry(&self, directory: &WalkDirectory, name: &CStr, hand: &mut WalkWorker<V>) -> bool {
        if self.stop.is_stopped() {
            return false;
        }
        let key = || WalkKey::from(directory.entry_key(name, &[]));
        if self.limit_reached.load(atomic::Ordering::Relaxed) {
            let key = key();
            let mut queue = self.lock();
            if queue.collector.end().is_some_and(|end| key > *end) {
                queue.collector.mark_truncated();
                return false;
            }
        }
        hand.path.clear();
        hand.path.extend_from_slice(directory.path());
        hand.path.extend_from_slice(name.to_bytes());
        let relative = hand.path.get(self.from..).unwrap_or_default();
        let file = WalkFile { directory, name, relative };
        if !self.visitor.matches_name(&file) {
            return true;
        }
        if self.is_hidden_file(directory, name, &hand.path) {
            hand.skipped.withheld.insert(key(), WalkEntryKind::File);
            return true;
        }
        match self.visitor.visit_file(&mut hand.scratch, &file) {
            Ok(Some(found)) => hand.found.push((key(), found)),
            Ok(None) | Err(FileProblem::Missing | FileProblem::SymlinkOnPath | FileProblem::Special) => {}
            Err(problem) => {
                hand.skipped.unreadable.insert(key(), problem);
            }
        }
        true
    }

    fn is_hidden_file(&self, directory: &WalkDirectory, name: &CStr, path: &[u8]) -> bool {
        let passes = |hidden: &HiddenFileFilter| {
            directory.can_decide_by_name && !hidden.may_hide_name(name.to_bytes())
        };
        !self.hidden.is_none_or(passes) && self.is_hidden(path)
    }

    fn is_hidden(&self, path: &[u8]) -> bool {
        self.hidden.is_some_and(|hidden| {
            // A path that cannot be judged is not shown.
            AbsPath::new(as_path(path)).map_or(true, |path| hidden.hides(&path))
        })
    }

    fn lock(&self) -> MutexGuard<'_, WalkQueue<C>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread that panics ends the walk: its item will never be handed in, and the others would wait for it.
struct EndWalkOnPanic<'a, 'w, V: FileVisitor, C: ResultCollector<V::Found>>(&'a TreeWalk<'w, V, C>);

impl<V: FileVisitor, C: ResultCollector<V::Found>> Drop for EndWalkOnPanic<'_, '_, V, C> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().finished = true;
            self.0.changed.notify_all();
        }
    }
}

fn thread_count() -> usize {
    available_cores().min(MAX_THREADS)
}
