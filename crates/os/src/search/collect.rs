//! What is kept of what a walk finds: as much as the answer needs, however large the tree is.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// A place in the order of a walk. See [`super::directory::Directory`].
pub(crate) type Key = Box<[u8]>;

/// Where results go. Called under the walk's lock, in whatever order they are found.
pub(crate) trait Collect<F>: Send {
    /// Whether results are wanted in the order of the walk.
    const IN_ORDER: bool;

    fn add(&mut self, key: Key, found: F);

    /// Once enough is held: the last place that matters. Later additions can only move it towards the start.
    fn end(&self) -> Option<&Key>;

    /// Something that lies after the end was left undone.
    fn cut(&mut self);
}

/// How large one result is.
pub(crate) trait Size {
    /// In what the caller counts: lines, files.
    fn units(&self) -> usize;
    fn bytes(&self) -> usize;
}

/// How much of an answer is wanted. When either is reached, the search is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultLimit {
    /// Lines or files, whichever the answer consists of.
    pub units: usize,
    /// Bytes of text.
    pub bytes: usize,
}

/// The first results in the order of the walk.
#[derive(Debug)]
pub(crate) struct OrderedResults<F> {
    need: ResultLimit,
    held: BTreeMap<Key, F>,
    units: usize,
    bytes: usize,
    cut: bool,
}

impl<F: Size> OrderedResults<F> {
    pub(crate) fn new(need: ResultLimit) -> Self {
        Self { need, held: BTreeMap::new(), units: 0, bytes: 0, cut: false }
    }

    fn suffices(&self, units: usize, bytes: usize) -> bool {
        units >= self.need.units || bytes >= self.need.bytes
    }

    /// Whether this is all there is. Where enough is held there may be more, and whether some thread happened to
    /// see that there is not must not change the answer.
    pub(crate) fn is_complete(&self) -> bool {
        !self.cut && !self.suffices(self.units, self.bytes)
    }

    pub(crate) fn into_results(self) -> BTreeMap<Key, F> {
        self.held
    }
}

impl<F: Size + Send> Collect<F> for OrderedResults<F> {
    const IN_ORDER: bool = true;

    fn add(&mut self, key: Key, found: F) {
        self.units += found.units();
        self.bytes += found.bytes();
        self.held.insert(key, found);
        while let Some(last) = self.held.last_entry() {
            let (units, bytes) = (self.units - last.get().units(), self.bytes - last.get().bytes());
            if units < self.need.units && bytes < self.need.bytes {
                break;
            }
            last.remove();
            (self.units, self.bytes, self.cut) = (units, bytes, true);
        }
    }

    fn end(&self) -> Option<&Key> {
        if self.suffices(self.units, self.bytes) {
            self.held.last_key_value().map(|(key, _)| key)
        } else {
            None
        }
    }

    fn cut(&mut self) {
        self.cut = true;
    }
}

/// When a file was changed last, in nanoseconds.
pub(crate) type Changed = i64;

/// What the threads of a walk for the newest files share, so that old ones need not be handed in at all.
#[derive(Debug)]
pub(crate) struct MtimeCutoff {
    /// Files older than this cannot be among the newest any more.
    oldest: AtomicI64,
    /// How many were.
    below: AtomicU64,
}

impl MtimeCutoff {
    pub(crate) fn new() -> Self {
        Self { oldest: AtomicI64::new(i64::MIN), below: AtomicU64::new(0) }
    }

    /// Whether a file may still matter. One that does not is counted.
    pub(crate) fn admits(&self, changed: Changed) -> bool {
        let admits = changed >= self.oldest.load(Ordering::Relaxed);
        if !admits {
            self.below.fetch_add(1, Ordering::Relaxed);
        }
        admits
    }
}

/// The files that were changed last, and how many there are in all.
#[derive(Debug)]
pub(crate) struct Newest<'f> {
    most: usize,
    floor: &'f MtimeCutoff,
    /// The oldest that is kept is on top; of two equally old ones, the later name.
    kept: BinaryHeap<(Reverse<Changed>, Key)>,
    total: u64,
}

impl<'f> Newest<'f> {
    pub(crate) fn new(most: usize, floor: &'f MtimeCutoff) -> Self {
        Self { most, floor, kept: BinaryHeap::new(), total: 0 }
    }

    pub(crate) fn total(&self) -> u64 {
        self.total + self.floor.below.load(Ordering::Relaxed)
    }

    pub(crate) fn into_sorted(self) -> Vec<Key> {
        self.kept.into_sorted_vec().into_iter().map(|(_, key)| key).collect()
    }
}

impl Collect<Changed> for Newest<'_> {
    const IN_ORDER: bool = false;

    fn add(&mut self, key: Key, changed: Changed) {
        self.total += 1;
        self.kept.push((Reverse(changed), key));
        if self.kept.len() > self.most {
            self.kept.pop();
            if let Some((Reverse(oldest), _)) = self.kept.peek() {
                self.floor.oldest.store(*oldest, Ordering::Relaxed);
            }
        }
    }

    fn end(&self) -> Option<&Key> {
        None
    }

    fn cut(&mut self) {}
}
