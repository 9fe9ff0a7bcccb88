//! Frames out, in order, one line each.

use crate::fit_frame::{MAX_FRAME_BYTES, fit_frame};
use serde::Serialize;
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

/// Frames that are queued together, each a line.
#[derive(Debug, Default)]
pub(crate) struct FrameLines(Vec<u8>);

impl FrameLines {
    /// Adds a frame.
    pub(crate) fn push(&mut self, frame: &impl Serialize) {
        let start = self.0.len();
        let rendered = serde_json::to_writer(&mut self.0, frame);
        if rendered.is_err() || self.0.len() - start > MAX_FRAME_BYTES {
            // Too long, which one event in a million is: only then as a tree of values, whose long texts can be cut.
            self.0.truncate(start);
            let fitted = serde_json::to_value(frame).map(fit_frame).unwrap_or_default();
            self.0.extend_from_slice(fitted.as_bytes());
        }
        if self.0.len() > start {
            self.0.push(b'\n');
        }
    }
}

/// What waits to be written.
#[derive(Debug)]
enum QueuedFrame {
    /// Frames, each a line with its end.
    Lines(Vec<u8>),
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
        let _ = self.queue.send(QueuedFrame::Lines(to_line(fit_frame(frame))));
    }

    /// Queues frames that belong together, so that they leave together.
    pub(crate) fn write_lines(&self, lines: FrameLines) {
        if !lines.0.is_empty() {
            // As above.
            let _ = self.queue.send(QueuedFrame::Lines(lines.0));
        }
    }

    /// Queues a frame as it is. False if it is too long for that: then nothing is queued.
    pub(crate) fn write_whole(&self, frame: &Value) -> bool {
        let line = frame.to_string();
        let fits = line.len() <= MAX_FRAME_BYTES;
        if fits {
            // As above.
            let _ = self.queue.send(QueuedFrame::Lines(to_line(line)));
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

/// The bytes of a frame with the end of its line.
fn to_line(frame: String) -> Vec<u8> {
    let mut line = frame.into_bytes();
    line.push(b'\n');
    line
}

/// Writes until every writer is gone or the host no longer reads.
async fn write_frames(
    mut sink: ByteSink,
    mut frames: mpsc::UnboundedReceiver<QueuedFrame>,
    is_lost: Arc<watch::Sender<bool>>,
) {
    while let Some(first) = frames.recv().await {
        let mut batch: Vec<u8> = Vec::new();
        let mut waiting = Vec::new();
        let mut next = Some(first);
        // What is ready now leaves in one write.
        while let Some(frame) = next {
            match frame {
                QueuedFrame::Lines(lines) if batch.is_empty() => batch = lines,
                QueuedFrame::Lines(lines) => batch.extend_from_slice(&lines),
                QueuedFrame::Flush(done) => waiting.push(done),
            }
            next = frames.try_recv().ok();
        }
        let written = match sink.write_all(&batch).await {
            Ok(()) => sink.flush().await,
            Err(error) => Err(error),
        };
        if written.is_err() {
            is_lost.send_replace(true);
            return;
        }
        for done in waiting {
            let _ = done.send(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tokio::io::{AsyncBufReadExt, BufReader};

    #[tokio::test]
    async fn frames_keep_their_order_and_limit_whether_they_are_queued_alone_or_together() {
        let (near, far) = tokio::io::duplex(256);
        let writer = FrameWriter::start(Box::pin(near));
        let mut expected = Vec::new();
        for round in 0..200_u64 {
            writer.write(json!({ "type": "alone", "round": round }));
            expected.push((json!("alone"), round));
            let mut lines = FrameLines::default();
            for _ in 0..round % 5 {
                lines.push(&json!({ "type": "together", "round": round }));
                expected.push((json!("together"), round));
            }
            writer.write_lines(lines);
        }
        let mut long = FrameLines::default();
        long.push(&json!({ "type": "long", "round": 7, "text": "é\n".repeat(MAX_FRAME_BYTES) }));
        long.push(&json!({ "type": "last", "round": 8 }));
        writer.write_lines(long);
        expected.extend([(json!("long"), 7), (json!("last"), 8)]);
        let reader = tokio::spawn(async move {
            let mut lines = BufReader::new(far).lines();
            let mut seen = Vec::new();
            while let Some(line) = lines.next_line().await.unwrap() {
                assert!(line.len() <= MAX_FRAME_BYTES);
                let frame: Value = serde_json::from_str(&line).unwrap();
                seen.push((frame["type"].clone(), frame["round"].as_u64().unwrap()));
            }
            seen
        });
        assert!(writer.flush().await);
        drop(writer);
        assert_eq!(reader.await.unwrap(), expected);
    }

    #[tokio::test]
    async fn a_host_that_no_longer_reads_is_noticed_by_a_flush() {
        let (near, far) = tokio::io::duplex(64);
        let writer = FrameWriter::start(Box::pin(near));
        drop(far);
        writer.write(json!({ "type": "alone" }));
        assert!(!writer.flush().await);
        writer.wait_until_lost().await;
    }
}
