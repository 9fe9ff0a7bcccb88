//! Eviction: the oldest changes are forgotten when the journal is over its limits.

use super::{Journal, JournalLimits, JournalState, log};
use crate::FileProblem;
use std::os::fd::AsFd;

impl Journal {
    /// Removes the oldest changes, and the blobs that only they use, if the journal is over a limit.
    pub(super) fn evict_oldest(&self) -> Result<(), FileProblem> {
        let JournalLimits { total_bytes, changes, .. } = self.limits;
        {
            let inner = self.lock_state();
            if inner.blobs.total_bytes() <= total_bytes && inner.index.changes.len() <= changes {
                return Ok(());
            }
        }
        self.compress_raw_blobs()?;
        self.with_lock(|inner| {
            let JournalState { log, blobs, index } = inner;
            let mut references = index.count_references();
            // Blobs that no change refers to: a crash, or an eviction by another process, left them behind.
            blobs.retain(|hash| references.contains_key(hash))?;
            // Down to four fifths of the limits: each eviction rewrites the log, so it should not run at every change.
            while blobs.total_bytes() > total_bytes / 5 * 4 || index.changes.len() > changes / 5 * 4 {
                let Some(oldest) = index.oldest_finished_id().and_then(|id| index.changes.remove(&id)) else {
                    break;
                };
                for hash in log::stored_hashes(&oldest) {
                    let remaining = references.get(&hash).copied().unwrap_or(0).saturating_sub(1);
                    references.insert(hash, remaining);
                    if remaining == 0 {
                        blobs.remove_blob(hash)?;
                    }
                }
            }
            log.rewrite(self.dir.as_fd(), index)
        })
    }
}
