//! Background compression of large contents, after the edits that displaced them.

use super::Journal;
use super::blob_store::compress_blob;
use crate::FileProblem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Compression starts when no large content was stored for this long: edits come in bursts, and should not compete with
/// it for the processor.
const COMPRESSION_IDLE_DELAY: Duration = Duration::from_secs(1);
/// Compression starts after this long even if edits go on.
const MAX_COMPRESSION_DELAY: Duration = Duration::from_secs(30);

impl Journal {
    /// Starts a thread, unless one is running, that compresses raw blobs once edits pause. If the program ends before,
    /// the blobs stay raw until a later program compresses them.
    pub(super) fn schedule_compression(self: &Arc<Self>) {
        self.large_contents.fetch_add(1, Ordering::SeqCst);
        if self.compressing.swap(true, Ordering::SeqCst) {
            return;
        }
        let journal = Arc::downgrade(self);
        let compress_later = move || {
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
            // On Linux this lowers the priority of the thread alone.
            let _ = rustix::process::setpriority_process(None, 10);
            if let Some(journal) = journal.upgrade() {
                // A blob that cannot be compressed stays raw, which costs only space.
                let _ = journal.compress_raw_blobs();
                journal.compressing.store(false, Ordering::SeqCst);
            }
        };
        let name = "toolgate-journal".to_owned();
        if std::thread::Builder::new().name(name).spawn(compress_later).is_err() {
            self.compressing.store(false, Ordering::SeqCst);
        }
    }

    /// Compresses all raw blobs. The lock is released while a blob is compressed, so that edits can go on.
    pub(super) fn compress_raw_blobs(&self) -> Result<(), FileProblem> {
        while let Some((hash, raw)) = self.with_lock(|inner| Ok(inner.blobs.first_raw()))? {
            let compressed = raw.ok().and_then(|raw| compress_blob(hash, &raw));
            self.with_lock(|inner| inner.blobs.put_compressed(hash, compressed.as_deref()))?;
        }
        Ok(())
    }
}
