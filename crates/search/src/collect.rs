//! What is kept of what a walk finds: as much as the answer needs, however large the tree is.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// A place in the order of a walk. See [`super::open_directory::WalkDirectory`].
pub(crate) type WalkKey = Box<[u8]>;

/// Where results go. Called under the walk's lock, in whatever order they are found.
pub(crate) trait ResultCollector<F>: Send {
    /// Whether results are wanted in the order of the walk.
    const IN_ORDER: bool;

    fn add(&mut self, key: WalkKey, found: F);

    /// Once enough is held: the last place that matters. Later additions can only move it towards the start.
    fn end(&self) -> Option<&WalkKey>;

    /// Something that lies after the end was left undone.
    fn mark_truncated(&mut self);
}

/// How large one result is.
pub(crate) trait ResultSize {
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
    limit: ResultLimit,
    results: BTreeMap<WalkKey, F>,
    units: usize,
    bytes: usize,
    truncated: bool,
}

impl<F: ResultSize> OrderedResults<F> {
    pub(crate) fn new(limit: ResultLimit) -> Self {
        Self { limit, results: BTreeMap::new(), units: 0, bytes: 0, truncated: false }
    }

    fn reaches_limit(&self, units: usize, bytes: usize) -> bool {
        units >= self.limit.units || bytes >= self.limit.bytes
    }

    /// Whether this is all there is. Where enough is held there may be more, and whether some thread happened to
    /// see that there is not must not change the answer.
    pub(crate) fn is_complete(&self) -> bool {
        !self.truncated && !self.reaches_limit(self.units, self.bytes)
    }

    pub(crate) fn into_results(self) -> BTreeMap<WalkKey, F> {
        self.results
    }
}

impl<F: ResultSize + Send> ResultCollector<F> for OrderedResults<F> {
    const IN_ORDER: bool = true;

    fn add(&mut self, key: WalkKey, found: F) {
        self.units += found.units();
        self.bytes += found.bytes();
        self.results.insert(key, found);
        while let Some(last) = self.results.last_entry() {
            let (units, bytes) = (self.units - last.get().units(), self.bytes - last.get().bytes());
            if units < self.limit.units && bytes < self.limit.bytes {
                break;
            }
            last.remove();
            (self.units, self.bytes, self.truncated) = (units, bytes, true);
        }
    }

    fn end(&self) -> Option<&WalkKey> {
        if self.reaches_limit(self.units, self.bytes) {
            self.results.last_key_value().map(|(key, _)| key)
        } else {
            None
        }
    }

    fn mark_truncated(&mut self) {
        self.truncated = true;
    }
}

/// When a file was changed last, in nanoseconds.
pub(crate) type MtimeNanos = i64;

/// What the threads of a walk for the newest files share, so that old ones need not be handed in at all.
#[derive(Debug)]
pub(crate) struct MtimeCutoff {
    /// Files older than this cannot be among the newest any more.
    oldest: AtomicI64,
    /// How many were.
    rejected_count: AtomicU64,
}

impl MtimeCutoff {
    pub(crate) fn new() -> Self {
        Self { oldest: AtomicI64::new(i64::MIN), rejected_count: AtomicU64::new(0) }
    }

    /// Whether a file may still matter. One that does not is counted.
    pub(crate) fn admit(&self, changed: MtimeNanos) -> bool {
        let admits = changed >= self.oldest.load(Ordering::Relaxed);
        if !admits {
            self.rejected_count.fetch_add(1, Ordering::Relaxed);
        }
        admits
    }
}

/// The files that were changed last, and how many there are in all.
#[derive(Debug)]
pub(crate) struct NewestFiles<'f> {
    limit: usize,
    cutoff: &'f MtimeCutoff,
    /// The oldest that is kept is on top; of two equally old ones, the later name.
    kept: BinaryHeap<(Reverse<MtimeNanos>, WalkKey)>,
    total: u64,
}

impl<'f> NewestFiles<'f> {
    pub(crate) fn new(limit: usize, cutoff: &'f MtimeCutoff) -> Self {
        Self { limit, cutoff, kept: BinaryHeap::new(), total: 0 }
    }

    pub(crate) fn total(&self) -> u64 {
        self.total + self.cutoff.rejected_count.load(Ordering::Relaxed)
    }

    pub(crate) fn into_sorted(self) -> Vec<WalkKey> {
        self.kept.into_sorted_vec().into_iter().map(|(_, key)| key).collect()
    }
}

impl ResultCollector<MtimeNanos> for NewestFiles<'_> {
    const IN_ORDER: bool = false;

    fn add(&mut self, key: WalkKey, changed: MtimeNanos) {
        self.total += 1;
        self.kept.push((Reverse(changed), key));
        if self.kept.len() > self.limit {
            self.kept.pop();
            if let Some((Reverse(oldest), _)) = self.kept.peek() {
                self.cutoff.oldest.store(*oldest, Ordering::Relaxed);
            }
        }
    }

    fn end(&self) -> Option<&WalkKey> {
        None
    }

    fn mark_truncated(&mut self) {}
}
