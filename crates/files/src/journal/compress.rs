//! Compressing large contents when nobody waits for it.

use super::Journal;
use super::blob_store::compress_blob;
use crate::FileProblem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Edits of large files come in bursts; the processor is theirs until there was none for so long,
const COMPRESSION_IDLE_DELAY: Duration = Duration::from_secs(1);
/// or until so much time has passed.
const MAX_COMPRESSION_DELAY: Duration = Duration::from_secs(30);

impl Journal {
    /// Compresses what is stored as it is, in a while, on a thread of its own. A program that ends before leaves it to
    /// the next one.
    pub(super) fn schedule_compression(self: &Arc<Self>) {
        self.large_contents.fetch_add(1, Ordering::SeqCst);
        if self.compressing.swap(true, Ordering::SeqCst) {
            return;
        }
        let journal = Arc::downgrade(self);
        let waiting = move || {
            let began = Instant::now();
            let count = || journal.upgrade().map(|journal| journal.large_contents.load(Ordering::SeqCst));
            let mut before = count();
            loop {
                std::thread::sleep(COMPRESSION_IDLE_DELAY);
                let now = count();
                if now == before || began.elapsed() > MAX_COMPRESSION_DELAY {
                    break;
                }
                before = now;
            }
            // Of the thread, not of the process.
            let _ = rustix::process::setpriority_process(None, 10);
            if let Some(journal) = journal.upgrade() {
                // What cannot be compressed now stays as it is, which is only larger.
                let _ = journal.compress_raw_blobs();
                journal.compressing.store(false, Ordering::SeqCst);
            }
        };
        let name = "toolgate-journal".to_owned();
        if std::thread::Builder::new().name(name).spawn(waiting).is_err() {
            self.compressing.store(false, Ordering::SeqCst);
        }
    }

    /// Compresses all that is stored as it is. Others may use the journal meanwhile.
    pub(super) fn compress_raw_blobs(&self) -> Result<(), FileProblem> {
        while let Some((hash, raw)) = self.with_lock(|inner| Ok(inner.blobs.first_raw()))? {
            let packed = raw.ok().and_then(|raw| compress_blob(hash, &raw));
            self.with_lock(|inner| inner.blobs.put_compressed(hash, packed.as_deref()))?;
        }
        Ok(())
    }
}
