//! Ending a search: from another thread, or because it cannot start.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use toolgate_files::FileProblem;

/// Cancels a search from another thread. Clones share one flag.
#[derive(Debug, Clone, Default)]
pub struct SearchStopFlag(Arc<AtomicBool>);

impl SearchStopFlag {
    /// Tells the search to stop. Its threads notice before their next file or read, and the search returns
    /// [`SearchProblem::Stopped`].
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether [`SearchStopFlag::stop`] was called.
    pub fn is_stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Why a search has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchProblem {
    /// A [`SearchStopFlag`] stopped it.
    Stopped,
    /// The start of the tree cannot be read. Problems further down are counted in
    /// [`SkippedSummary`](crate::SkippedSummary) instead.
    File(FileProblem),
}

impl From<FileProblem> for SearchProblem {
    fn from(problem: FileProblem) -> Self {
        Self::File(problem)
    }
}
