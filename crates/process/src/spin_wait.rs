//! Staying awake for a moment after an answer.
//!
//! A client that makes one call after the other sends the next some microseconds after an answer.
//! A thread that sleeps by then has to be woken, on a processor that was put to rest and has forgotten what it was
//! doing; on a virtual machine that takes longer than the call itself.
//! So after an answer, and only then, a thread that is about to sleep first looks out for the next call.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::AsyncWrite;
use toolgate_files::available_cores;

/// How long it looks out: what a client needs to wake up, read the answer and write the next call.
const SPIN_TIMEOUT: Duration = Duration::from_micros(150);

/// Something was written to standard output, and nobody has looked out since.
static OUTPUT_FLUSHED: AtomicBool = AtomicBool::new(false);

/// How much is being done by other threads for whoever answers.
static BACKGROUND_WORK_COUNT: AtomicUsize = AtomicUsize::new(0);

/// While this is held, another thread does something that will be answered here: whoever only looked out for the next
/// call would not hear of it, and would take a processor from it.
#[derive(Debug)]
pub struct BackgroundWorkGuard(());

impl BackgroundWorkGuard {
    /// From now on.
    pub fn begin() -> Self {
        BACKGROUND_WORK_COUNT.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for BackgroundWorkGuard {
    fn drop(&mut self) {
        BACKGROUND_WORK_COUNT.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Looks out for something on standard input, for a moment, if something was just written to standard output.
/// To be called when a thread that serves the two is about to sleep.
pub fn spin_for_input() {
    // With one processor the client could not run meanwhile.
    let alone = BACKGROUND_WORK_COUNT.load(Ordering::Relaxed) == 0;
    if !OUTPUT_FLUSHED.swap(false, Ordering::Relaxed) || !alone || available_cores() == 1 {
        return;
    }
    let (stdin, at_once) = (std::io::stdin(), Timespec { tv_sec: 0, tv_nsec: 0 });
    let began = Instant::now();
    while began.elapsed() < SPIN_TIMEOUT {
        let mut watched = [PollFd::new(&stdin, PollFlags::IN)];
        if poll(&mut watched, Some(&at_once)) != Ok(0) {
            return;
        }
        std::hint::spin_loop();
    }
}

/// Standard output: what is flushed is an answer.
pub(crate) struct FlushTracker<S>(pub(crate) S);

impl<S: AsyncWrite + Unpin> AsyncWrite for FlushTracker<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        OUTPUT_FLUSHED.store(true, Ordering::Relaxed);
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
