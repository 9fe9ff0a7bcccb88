//! Frames out, in order, one line each.

use crate::fit_frame::{MAX_FRAME_BYTES, fit_frame};
use serde_json::Value;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::sync::{mpsc, oneshot, watch};
use toolgate_process::ByteSink;

/// Writes frames. Clones share the stream.
#[derive(Debug, Clone)]
pub struct FrameWriter {
    /// The queue of the writing task; unbounded, so that writing never waits.
    queue: mpsc::UnboundedSender<QueuedFrame>,
    /// Whether the host stopped reading, for all that wait for it.
    is_lost: Arc<watch::Sender<bool>>,
}

/// What waits to be written.
#[derive(Debug)]
enum QueuedFrame {
    /// A frame, rendered as one line.
    Line(String),
    /// A marker in the queue; the sender fires once all earlier frames are written.
    Flush(oneshot::Sender<()>),
}

impl FrameWriter {
    /// Starts writing to a stream. Must be called inside a runtime.
    pub fn start(sink: ByteSink) -> Self {
        let (queue, frames) = mpsc::unbounded_channel();
        let is_lost = Arc::new(watch::Sender::new(false));
        tokio::spawn(write_frames(sink, frames, Arc::clone(&is_lost)));
        Self { queue, is_lost }
    }

    /// Queues a frame.
    pub fn write(&self, frame: Value) {
        // An error means that the host is gone; its reader learns that by itself.
        let _ = self.queue.send(QueuedFrame::Line(fit_frame(frame)));
    }

    /// Queues a frame as it is. False if it is too long for that: then nothing is queued.
    pub(crate) fn write_whole(&self, frame: &Value) -> bool {
        let line = frame.to_string();
        let fits = line.len() <= MAX_FRAME_BYTES;
        if fits {
            // As above.
            let _ = self.queue.send(QueuedFrame::Line(line));
        }
        fits
    }

    /// Waits until every queued frame is out. False if the host no longer reads.
    pub async fn flush(&self) -> bool {
        let (done, is_done) = oneshot::channel();
        if self.queue.send(QueuedFrame::Flush(done)).is_err() {
            return false;
        }
        is_done.await.is_ok()
    }

    /// Ends when the host no longer reads.
    pub async fn wait_until_lost(&self) {
        let mut lost = self.is_lost.subscribe();
        // An error means that the writer is gone.
        let _ = lost.wait_for(|is_lost| *is_lost).await;
    }
}

/// Writes until every writer is gone or the host no longer reads.
async fn write_frames(
    mut sink: ByteSink,
    mut frames: mpsc::UnboundedReceiver<QueuedFrame>,
    is_lost: Arc<watch::Sender<bool>>,
) {
    let mut batch: Vec<u8> = Vec::new();
    while let Some(first) = frames.recv().await {
        let mut waiting = Vec::new();
        let mut next = Some(first);
        // What is ready now leaves in one write.
        while let Some(frame) = next {
            match frame {
                QueuedFrame::Line(line) => {
                    batch.extend_from_slice(line.as_bytes());
                    batch.push(b'\n');
                }
                QueuedFrame::Flush(done) => waiting.push(done),
            }
            next = frames.try_recv().ok();
        }
        let written = match sink.write_all(&batch).await {
            Ok(()) => sink.flush().await,
            Err(error) => Err(error),
        };
        batch.clear();
        if written.is_err() {
            is_lost.send_replace(true);
            return;
        }
        for done in waiting {
            let _ = done.send(());
        }
    }
}
