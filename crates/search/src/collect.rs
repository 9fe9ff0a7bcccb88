//! Collectors of results: they keep as many as the limit allows, however large the tree is.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// A place in the order of a walk: the names from the start, separated by NULs (see
/// [`WalkDirectory::entry_key`](crate::directory::WalkDirectory::entry_key)).
pub(crate) type WalkKey = Box<[u8]>;

/// Collects results. Called under the lock of the walk, in the order in which threads find them.
pub(crate) trait ResultCollector<F>: Send {
    /// Whether the order of the walk matters. If not, directories need not be sorted.
    const IN_ORDER: bool;

    /// Adds a result.
    fn add(&mut self, key: WalkKey, found: F);

    /// The key of the last result, once the limit is reached; nothing after it can matter. Further additions only move it
    /// towards the start.
    fn end(&self) -> Option<&WalkKey>;

    /// Notes that part of the tree after [`ResultCollector::end`] was not searched.
    fn mark_truncated(&mut self);
}

/// The size of a result, for [`ResultLimit`].
pub(crate) trait ResultSize {
    /// In lines or files, whichever the search returns.
    fn units(&self) -> usize;

    /// In bytes of output.
    fn bytes(&self) -> usize;
}

/// How much a search returns. It ends when either limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResultLimit {
    /// Lines or files, whichever the search returns.
    pub units: usize,
    /// Bytes of output, about.
    pub bytes: usize,
}

/// The first results in the order of the walk.
#[derive(Debug)]
pub(crate) struct OrderedResults<F> {
    /// When there are enough.
    limit: ResultLimit,
    /// The first results so far.
    results: BTreeMap<WalkKey, F>,
    /// Their units.
    units: usize,
    /// Their bytes.
    bytes: usize,
    /// Whether a result was dropped, or part of the tree not searched.
    truncated: bool,
}

impl<F: ResultSize> OrderedResults<F> {
    pub(crate) fn new(limit: ResultLimit) -> Self {
        Self { limit, results: BTreeMap::new(), units: 0, bytes: 0, truncated: false }
    }

    /// Whether so many results are as many as the limit allows.
    fn reaches_limit(&self, units: usize, bytes: usize) -> bool {
        units >= self.limit.units || bytes >= self.limit.bytes
    }

    /// Whether these are all results. False as soon as the limit is reached, even if there happens to be no further result:
    /// otherwise it would depend on how far the threads had got.
    pub(crate) fn is_complete(&self) -> bool {
        !self.truncated && !self.reaches_limit(self.units, self.bytes)
    }

    /// The results in the order of their paths.
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

/// A modification time in nanoseconds since 1970.
pub(crate) type MtimeNanos = i64;

/// The modification time below which a file cannot be among the newest, shared by the threads of a walk so that they need
/// not take the lock for older files.
#[derive(Debug)]
pub(crate) struct MtimeCutoff {
    /// The oldest time among the newest files so far, once there are enough.
    oldest: AtomicI64,
    /// How many files were older.
    rejected_count: AtomicU64,
}

impl MtimeCutoff {
    pub(crate) fn new() -> Self {
        Self { oldest: AtomicI64::new(i64::MIN), rejected_count: AtomicU64::new(0) }
    }

    /// Whether a file may be among the newest. One that is not is counted.
    pub(crate) fn admit(&self, mtime: MtimeNanos) -> bool {
        let admits = mtime >= self.oldest.load(Ordering::Relaxed);
        if !admits {
            self.rejected_count.fetch_add(1, Ordering::Relaxed);
        }
        admits
    }
}

/// The files that were modified last, and the number of all files.
#[derive(Debug)]
pub(crate) struct NewestFiles<'f> {
    /// How many files to keep.
    limit: usize,
    /// What the threads check before they add a file.
    cutoff: &'f MtimeCutoff,
    /// The files; on top the oldest, and of two equally old ones the later in the order of the walk.
    kept: BinaryHeap<(Reverse<MtimeNanos>, WalkKey)>,
    /// How many files were added.
    total: u64,
}

impl<'f> NewestFiles<'f> {
    pub(crate) fn new(limit: usize, cutoff: &'f MtimeCutoff) -> Self {
        Self { limit, cutoff, kept: BinaryHeap::new(), total: 0 }
    }

    /// How many files matched, those that were too old included.
    pub(crate) fn total(&self) -> u64 {
        self.total + self.cutoff.rejected_count.load(Ordering::Relaxed)
    }

    /// The files, newest first.
    pub(crate) fn into_sorted(self) -> Vec<WalkKey> {
        self.kept.into_sorted_vec().into_iter().map(|(_, key)| key).collect()
    }
}

impl ResultCollector<MtimeNanos> for NewestFiles<'_> {
    const IN_ORDER: bool = false;

    fn add(&mut self, key: WalkKey, mtime: MtimeNanos) {
        self.total += 1;
        self.kept.push((Reverse(mtime), key));
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
