//! The parallel walk over a tree, with results in one order.
//!
//! Work waits in a heap that is ordered like the result, and every thread takes the first item.
//! So the threads together advance through the tree from its first path to its last: early results come first, and as
//! soon as the limit is reached, everything after the last result cannot matter and is dropped.
//! Therefore a search returns the same results and pages however its threads are scheduled, and one with a limit stops
//! early.
//! A work-stealing walker such as ripgrep's has less contention, but would have to search the whole tree before it could
//! sort.
//!
//! The walk starts on one thread; others are started when it takes longer, because starting a thread costs more than
//! searching a small project.

use crate::collect::{ResultCollector, WalkKey};
use crate::directory::{NamedEntry, WalkDirectory, as_path};
use crate::ignore_rules::IgnoreRules;
use crate::select::FileSelector;
use crate::skipped::SkippedEntries;
use crate::walk_worker::WalkWorker;
use crate::{SearchStopFlag, SearchTree};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::ffi::{CStr, CString};
use std::sync::atomic::{self, AtomicBool};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};
use toolgate_files::{FileProblem, HiddenFileFilter, available_cores, try_spawn_scoped};
use toolgate_proto::AbsPath;

/// The number of threads that ripgrep uses at most.
const MAX_THREADS: usize = 12;
/// How long a walk runs on one thread before others are started.
const SINGLE_THREAD_TIMEOUT: Duration = Duration::from_millis(2);

/// What a search does with each file that the selector takes.
pub(crate) trait FileVisitor: Sync {
    /// What one thread reuses from file to file, such as buffers.
    type Scratch;
    /// What is found in one file.
    type Found: Send;

    /// Creates the scratch data of a new thread.
    fn scratch(&self) -> Self::Scratch;

    /// Whether visiting a file costs more than finding it, so that it is worth queueing for other threads.
    fn is_expensive(&self) -> bool;

    /// Whether the file can match by its name. Called before the check whether it is hidden, so that hidden files are
    /// counted only if they would match.
    fn matches_name(&self, file: &WalkFile<'_>) -> bool {
        let _ = file;
        true
    }

    /// Searches one file; `None` if nothing is found.
    fn visit_file(
        &self,
        scratch: &mut Self::Scratch,
        file: &WalkFile<'_>,
    ) -> Result<Option<Self::Found>, FileProblem>;
}

/// One file of the walk.
pub(crate) struct WalkFile<'a> {
    /// The directory, through which it is opened.
    pub(crate) directory: &'a WalkDirectory<'a>,
    /// Its name there.
    pub(crate) name: &'a CStr,
    /// Its path relative to the start of the walk.
    pub(crate) relative: &'a [u8],
}

/// Walks a tree, and returns the collector with the results and what was skipped.
pub(crate) fn walk<V: FileVisitor, C: ResultCollector<V::Found>>(
    tree: &SearchTree,
    selector: &FileSelector,
    visitor: &V,
    collector: C,
    stop: &SearchStopFlag,
) -> Result<(C, SkippedEntries), FileProblem> {
    let mut worker = WalkWorker::new(visitor);
    let mut start = WalkDirectory::open_start(tree, worker.entries.as_mut_slice())?;
    if selector.respects_ignore_files {
        start.rules = IgnoreRules::of_ancestors(tree);
    }
    let walk = TreeWalk {
        prefix_len: start.path().len(),
        hidden: tree.hidden().filter(|hidden| hidden.hides_any()),
        selector,
        visitor,
        stop,
        limit_reached: AtomicBool::new(false),
        queue: Mutex::new(WalkQueue {
            items: BinaryHeap::new(),
            active: 0,
            idle: 0,
            finished: false,
            collector,
            skipped: SkippedEntries::default(),
        }),
        changed: Condvar::new(),
    };
    worker.read_directory(&walk, start);
    std::thread::scope(|scope| walk.run_first_worker(scope, worker));
    let queue = walk.queue.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((queue.collector, queue.skipped))
}

/// The state of one walk, shared by its threads.
pub(crate) struct TreeWalk<'w, V: FileVisitor, C> {
    /// Length of the prefix of an absolute path up to the start of the walk.
    pub(crate) prefix_len: usize,
    /// Which files are hidden; `None` if none are.
    pub(crate) hidden: Option<&'w HiddenFileFilter>,
    /// Which entries the walk takes.
    pub(crate) selector: &'w FileSelector,
    /// What it does with files.
    pub(crate) visitor: &'w V,
    /// Set by the caller to cancel the walk.
    pub(crate) stop: &'w SearchStopFlag,
    /// Whether the collector has reached its limit. Threads read it without the lock, to check only then whether a file
    /// is after the last result.
    pub(crate) limit_reached: AtomicBool,
    /// Work and results.
    queue: Mutex<WalkQueue<'w, C>>,
    /// Signalled when items were added or the walk is finished.
    changed: Condvar,
}

/// Work that is left, and results so far.
pub(crate) struct WalkQueue<'w, C> {
    /// Items, the first in the order of the walk on top.
    items: BinaryHeap<Reverse<WalkItem<'w>>>,
    /// Threads that work on an item, and so may add others.
    active: usize,
    /// Threads that wait for items.
    idle: usize,
    /// Whether all threads are to return.
    finished: bool,
    /// The results so far.
    pub(crate) collector: C,
    /// What was skipped so far.
    skipped: SkippedEntries,
}

/// A piece of work and its place in the order of the walk.
pub(crate) struct WalkItem<'w> {
    /// The key of the first path that the task is about.
    pub(crate) key: WalkKey,
    /// What to do.
    pub(crate) task: WalkTask<'w>,
}

/// What one thread does at a time.
pub(crate) enum WalkTask<'w> {
    /// List the entry of this name in `parent`, which is a directory.
    ReadDirectory { parent: Arc<WalkDirectory<'w>>, name: CString },
    /// Search these files of a directory.
    VisitFiles { directory: Arc<WalkDirectory<'w>>, files: Vec<NamedEntry> },
}

impl Ord for WalkItem<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

impl PartialOrd for WalkItem<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for WalkItem<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for WalkItem<'_> {}

impl<'w, V: FileVisitor, C: ResultCollector<V::Found>> TreeWalk<'w, V, C> {
    /// Runs the first thread, which starts the others if the walk takes long.
    fn run_first_worker<'scope, 'env>(
        &'scope self,
        scope: &'scope Scope<'scope, 'env>,
        mut worker: WalkWorker<'w, V>,
    ) {
        let started = Instant::now();
        let mut is_alone = true;
        self.merge_results(&mut self.lock(), &mut worker);
        self.run_worker(&mut worker, |queued| {
            if is_alone && queued > 1 && started.elapsed() > SINGLE_THREAD_TIMEOUT {
                is_alone = false;
                for _ in 1..thread_count() {
                    try_spawn_scoped(scope, || self.run_worker(&mut WalkWorker::new(self.visitor), |_| {}));
                }
            }
        });
    }

    /// Runs items until the walk is finished. `after_each` gets the number of queued items.
    fn run_worker(&self, worker: &mut WalkWorker<'w, V>, mut after_each: impl FnMut(usize)) {
        let _end_on_panic = EndWalkOnPanic(self);
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
                    worker.run_task(self, item);
                    queue = self.lock();
                    queue.active -= 1;
                    self.merge_results(&mut queue, worker);
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

    /// Takes the first item. If it is after the last result, so are all others, and all are dropped.
    fn next_item(&self, queue: &mut WalkQueue<'w, C>) -> Option<WalkItem<'w>> {
        let first = &queue.items.peek()?.0;
        if queue.collector.end().is_some_and(|end| first.key > *end) {
            queue.items.clear();
            queue.collector.mark_truncated();
            return None;
        }
        queue.items.pop().map(|item| item.0)
    }

    /// Moves what a worker has found and queued to the shared state.
    fn merge_results(&self, queue: &mut WalkQueue<'w, C>, worker: &mut WalkWorker<'w, V>) {
        for (key, found) in worker.found.drain(..) {
            queue.collector.add(key, found);
        }
        if queue.collector.end().is_some() {
            self.limit_reached.store(true, atomic::Ordering::Relaxed);
        }
        queue.skipped.withheld.append(&mut worker.skipped.withheld);
        queue.skipped.unreadable.append(&mut worker.skipped.unreadable);
        if !worker.items.is_empty() {
            queue.items.extend(worker.items.drain(..).map(Reverse));
            if queue.idle > 0 {
                self.changed.notify_all();
            }
        }
    }

    /// Whether a file is hidden. Builds and checks the path only if the name does not decide it.
    pub(crate) fn is_hidden_file(&self, directory: &WalkDirectory<'_>, name: &CStr, path: &[u8]) -> bool {
        let is_ruled_out = |hidden: &HiddenFileFilter| {
            directory.can_decide_by_name && !hidden.may_hide_name(name.to_bytes())
        };
        !self.hidden.is_none_or(is_ruled_out) && self.is_hidden(path)
    }

    /// Whether a path is hidden. One that cannot be checked counts as hidden.
    pub(crate) fn is_hidden(&self, path: &[u8]) -> bool {
        self.hidden.is_some_and(|hidden| AbsPath::new(as_path(path)).map_or(true, |path| hidden.hides(&path)))
    }

    /// Locks the queue; a panic of another thread leaves it usable.
    pub(crate) fn lock(&self) -> MutexGuard<'_, WalkQueue<'w, C>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ends the walk if a thread panics: the item of that thread stays active, and the others would wait for it forever.
struct EndWalkOnPanic<'a, 'w, V: FileVisitor, C: ResultCollector<V::Found>>(&'a TreeWalk<'w, V, C>);

impl<V: FileVisitor, C: ResultCollector<V::Found>> Drop for EndWalkOnPanic<'_, '_, V, C> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().finished = true;
            self.0.changed.notify_all();
        }
    }
}

/// How many threads walk a tree.
fn thread_count() -> usize {
    available_cores().min(MAX_THREADS)
}
