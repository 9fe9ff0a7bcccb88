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

use crate::files::{FileProblem, Hidden};
use crate::search::aside::Notes;
use crate::search::collect::{Collect, Key};
use crate::search::directory::{Directory, Kind, NamedEntry, as_path};
use crate::search::select::Selector;
use crate::search::{Stop, Tree};
use crate::threads::{beside, cores};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::sync::atomic::{self, AtomicBool};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;
use std::time::{Duration, Instant};
use toolgate_proto::AbsPath;

/// Bytes of directory entries that are read at once.
const ENTRIES_BUFFER: usize = 32 * 1024;
/// Files that are handed out together.
const MAX_FILES_PER_TASK: usize = 16;
/// As many threads as ripgrep would use at most.
const MOST_THREADS: usize = 12;
/// A search that takes longer than this is worth other threads.
const ALONE: Duration = Duration::from_millis(2);

/// What is done with each file that is taken.
pub(crate) trait Visit: Sync {
    /// What one thread keeps between files.
    type Scratch;
    /// What is found in one file.
    type Found: Send;

    fn scratch(&self) -> Self::Scratch;

    /// Whether looking at a file costs more than finding it, so that it is worth handing out.
    fn is_heavy(&self) -> bool;

    /// Whether the name alone rules a file out.
    fn wants(&self, file: &WalkFile<'_>) -> bool {
        let _ = file;
        true
    }

    fn file(
        &self,
        scratch: &mut Self::Scratch,
        file: &WalkFile<'_>,
    ) -> Result<Option<Self::Found>, FileProblem>;
}

/// One file of the walk.
pub(crate) struct WalkFile<'a> {
    pub(crate) directory: &'a Directory,
    pub(crate) name: &'a CStr,
    /// Below the start of the walk.
    pub(crate) relative: &'a [u8],
}

/// Walks a tree. The answer is in the collection that comes back.
pub(crate) fn walk<V: Visit, C: Collect<V::Found>>(
    tree: &Tree,
    selector: &Selector,
    visit: &V,
    collect: C,
    stop: &Stop,
) -> Result<(C, Notes), FileProblem> {
    let mut hand = Hand::new(visit);
    let mut start = Directory::start(&tree.start, hand.entries.as_mut_slice())?;
    if selector.respects_ignore_files {
        start.rules = tree.ancestor_ignore_rules();
    }
    let walk = Walk {
        from: start.path().len(),
        hidden: tree.hidden.as_ref().filter(|hidden| hidden.hides_any()),
        selector,
        visit,
        stop,
        settled: AtomicBool::new(false),
        queue: Mutex::new(Queue {
            items: BinaryHeap::new(),
            active: 0,
            idle: 0,
            over: false,
            collect,
            notes: Notes::default(),
        }),
        changed: Condvar::new(),
    };
    walk.read(start, &mut hand);
    std::thread::scope(|scope| walk.lead(scope, hand));
    let queue = walk.queue.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok((queue.collect, queue.notes))
}

struct Walk<'w, V: Visit, C> {
    /// Where in an absolute path the part below the start begins.
    from: usize,
    hidden: Option<&'w Hidden>,
    selector: &'w Selector,
    visit: &'w V,
    stop: &'w Stop,
    /// Enough is held: what lies after it need not be looked at.
    settled: AtomicBool,
    queue: Mutex<Queue<C>>,
    changed: Condvar,
}

struct Queue<C> {
    items: BinaryHeap<Reverse<Item>>,
    /// Threads that have an item in hand, and so may add others.
    active: usize,
    idle: usize,
    over: bool,
    collect: C,
    notes: Notes,
}

/// A piece of work and its place in the order.
struct Item {
    key: Key,
    work: Work,
}

enum Work {
    Enter { parent: Arc<Directory>, name: CString },
    Look { directory: Arc<Directory>, files: Vec<NamedEntry> },
}

impl Ord for Item {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key.cmp(&other.key)
    }
}

impl PartialOrd for Item {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for Item {}

/// What one thread works with.
struct Hand<V: Visit> {
    scratch: V::Scratch,
    entries: Vec<MaybeUninit<u8>>,
    path: Vec<u8>,
    found: Vec<(Key, V::Found)>,
    items: Vec<Item>,
    notes: Notes,
}

impl<V: Visit> Hand<V> {
    fn new(visit: &V) -> Self {
        Self {
            scratch: visit.scratch(),
            entries: vec![MaybeUninit::uninit(); ENTRIES_BUFFER],
            path: Vec::new(),
            found: Vec::new(),
            items: Vec::new(),
            notes: Notes::default(),
        }
    }
}

impl<V: Visit, C: Collect<V::Found>> Walk<'_, V, C> {
    /// The first thread's part.
    fn lead<'scope, 'env>(&'scope self, scope: &'scope Scope<'scope, 'env>, mut hand: Hand<V>) {
        let began = Instant::now();
        let mut alone = true;
        self.merge_results(&mut self.lock(), &mut hand);
        self.work(&mut hand, |waiting| {
            if alone && waiting > 1 && began.elapsed() > ALONE {
                alone = false;
                for _ in 1..threads() {
                    beside(scope, || self.work(&mut Hand::new(self.visit), |_| {}));
                }
            }
        });
    }

    /// Takes the first piece of work, again and again.
    fn work(&self, hand: &mut Hand<V>, mut after_each: impl FnMut(usize)) {
        let _others_must_know = EndWalkOnPanic(self);
        let mut queue = self.lock();
        while !queue.over {
            if self.stop.is_stopped() {
                queue.over = true;
                break;
            }
            match self.next(&mut queue) {
                Some(item) => {
                    queue.active += 1;
                    drop(queue);
                    self.perform(item, hand);
                    queue = self.lock();
                    queue.active -= 1;
                    self.merge_results(&mut queue, hand);
                    after_each(queue.items.len());
                }
                None if queue.active == 0 => queue.over = true,
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

    fn next(&self, queue: &mut Queue<C>) -> Option<Item> {
        let first = &queue.items.peek()?.0;
        if queue.collect.end().is_some_and(|end| first.key > *end) {
            queue.items.clear();
            queue.collect.cut();
            return None;
        }
        queue.items.pop().map(|item| item.0)
    }

    /// Puts what a thread has made where all can see it.
    fn merge_results(&self, queue: &mut Queue<C>, hand: &mut Hand<V>) {
        for (key, found) in hand.found.drain(..) {
            queue.collect.add(key, found);
        }
        if queue.collect.end().is_some() {
            self.settled.store(true, atomic::Ordering::Relaxed);
        }
        queue.notes.withheld.append(&mut hand.notes.withheld);
        queue.notes.unreadable.append(&mut hand.notes.unreadable);
        if !hand.items.is_empty() {
            queue.items.extend(hand.items.drain(..).map(Reverse));
            if queue.idle > 0 {
                self.changed.notify_all();
            }
        }
    }

    fn perform(&self, item: Item, hand: &mut Hand<V>) {
        match item.work {
            Work::Enter { parent, name } => {
                match parent.enter(&name, hand.entries.as_mut_slice()) {
                    Ok(directory) => self.read(directory, hand),
                    // It has gone, or something else has taken its place.
                    Err(FileProblem::Missing | FileProblem::NotDirectory | FileProblem::Moved) => {}
                    Err(problem) => {
                        hand.notes.unreadable.insert(item.key, problem);
                    }
                }
            }
            Work::Look { directory, files } => {
                for entry in files {
                    let name = directory.names.name(entry);
                    if !self.look(&directory, name, hand) {
                        break;
                    }
                }
            }
        }
    }

    /// Goes through the entries of a directory.
    fn read(&self, mut directory: Directory, hand: &mut Hand<V>) {
        self.selector.load_ignore_rules(&mut directory);
        directory.names_tell = self.hidden.is_some_and(|hidden| {
            AbsPath::new(as_path(directory.path())).is_ok_and(|path| hidden.names_tell(&path))
        });
        if C::IN_ORDER {
            directory.names.sort();
        }
        let directory = Arc::new(directory);
        let names = &directory.names;
        let mut run: Vec<NamedEntry> = Vec::new();
        for &entry in names.entries() {
            let is_dir = match entry.kind {
                Kind::Directory => true,
                Kind::File => false,
                // Links are not followed, so nothing outside of the tree is reached through one.
                Kind::Link | Kind::Special => continue,
            };
            let name = names.name(entry);
            let bytes = name.to_bytes();
            hand.path.clear();
            hand.path.extend_from_slice(directory.path());
            hand.path.extend_from_slice(bytes);
            let rules = directory.rules.as_deref();
            if !self.selector.takes(rules, &hand.path, self.from, bytes, is_dir) {
                continue;
            }
            if is_dir {
                self.queue_files(&directory, &mut run, hand);
                let key = directory.key_of(name, &[0]).into();
                if self.is_hidden(&hand.path) {
                    hand.notes.withheld.insert(key, Kind::Directory);
                    continue;
                }
                let work = Work::Enter { parent: Arc::clone(&directory), name: name.to_owned() };
                hand.items.push(Item { key, work });
            } else if self.visit.is_heavy() {
                run.push(entry);
                if run.len() == MAX_FILES_PER_TASK {
                    self.queue_files(&directory, &mut run, hand);
                }
            } else {
                self.look(&directory, name, hand);
            }
        }
        self.queue_files(&directory, &mut run, hand);
    }

    fn queue_files(&self, directory: &Arc<Directory>, run: &mut Vec<NamedEntry>, hand: &mut Hand<V>) {
        let Some(first) = run.first() else { return };
        let key = directory.key_of(directory.names.name(*first), &[]).into();
        let work = Work::Look { directory: Arc::clone(directory), files: std::mem::take(run) };
        hand.items.push(Item { key, work });
    }

    /// Looks at one file. False where nothing after it needs a look.
    fn look(&self, directory: &Directory, name: &CStr, hand: &mut Hand<V>) -> bool {
        if self.stop.is_stopped() {
            return false;
        }
        let key = || Key::from(directory.key_of(name, &[]));
        if self.settled.load(atomic::Ordering::Relaxed) {
            let key = key();
            let mut queue = self.lock();
            if queue.collect.end().is_some_and(|end| key > *end) {
                queue.collect.cut();
                return false;
            }
        }
        hand.path.clear();
        hand.path.extend_from_slice(directory.path());
        hand.path.extend_from_slice(name.to_bytes());
        let relative = hand.path.get(self.from..).unwrap_or_default();
        let file = WalkFile { directory, name, relative };
        if !self.visit.wants(&file) {
            return true;
        }
        if self.is_hidden_file(directory, name, &hand.path) {
            hand.notes.withheld.insert(key(), Kind::File);
            return true;
        }
        match self.visit.file(&mut hand.scratch, &file) {
            Ok(Some(found)) => hand.found.push((key(), found)),
            Ok(None) | Err(FileProblem::Missing | FileProblem::Moved | FileProblem::Special) => {}
            Err(problem) => {
                hand.notes.unreadable.insert(key(), problem);
            }
        }
        true
    }

    fn is_hidden_file(&self, directory: &Directory, name: &CStr, path: &[u8]) -> bool {
        let passes = |hidden: &Hidden| directory.names_tell && !hidden.may_hide_name(name.to_bytes());
        !self.hidden.is_none_or(passes) && self.is_hidden(path)
    }

    fn is_hidden(&self, path: &[u8]) -> bool {
        self.hidden.is_some_and(|hidden| {
            // A path that cannot be judged is not shown.
            AbsPath::new(as_path(path)).map_or(true, |path| hidden.hides(&path))
        })
    }

    fn lock(&self) -> MutexGuard<'_, Queue<C>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A thread that panics ends the walk: its item will never be handed in, and the others would wait for it.
struct EndWalkOnPanic<'a, 'w, V: Visit, C: Collect<V::Found>>(&'a Walk<'w, V, C>);

impl<V: Visit, C: Collect<V::Found>> Drop for EndWalkOnPanic<'_, '_, V, C> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().over = true;
            self.0.changed.notify_all();
        }
    }
}

fn threads() -> usize {
    cores().min(MOST_THREADS)
}
