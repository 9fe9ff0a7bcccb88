//! A short busy wait for the next request after a response.
//!
//! A client that makes one call after the other sends the next some microseconds after a response.
//! A thread that blocks meanwhile has to be woken on an idle CPU with cold caches; on a virtual machine that takes
//! longer than the call itself.
//! So after a response, and only then, a thread that is about to block first polls standard input. The cost is CPU time
//! of at most [`SPIN_TIMEOUT`] for each response.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::AsyncWrite;
use toolgate_files::available_cores;

/// How long to poll: the time a client needs to wake up, read the response and write the next request.
const SPIN_TIMEOUT: Duration = Duration::from_micros(150);

/// A response was flushed to standard output, and no thread has polled since.
static OUTPUT_FLUSHED: AtomicBool = AtomicBool::new(false);

/// How many [`BackgroundWorkGuard`]s exist.
static BACKGROUND_WORK_COUNT: AtomicUsize = AtomicUsize::new(0);

/// While one exists, another thread works on a response: the busy wait would not notice its result, and would take a CPU
/// from it.
#[derive(Debug)]
pub struct BackgroundWorkGuard(());

impl BackgroundWorkGuard {
    /// Disables the busy wait until the guard is dropped.
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

/// Polls standard input for a moment if a response was just flushed to standard output.
/// To be called when the thread that serves both is about to block.
pub fn spin_for_input() {
    // With one CPU the client could not run meanwhile.
    let is_idle = BACKGROUND_WORK_COUNT.load(Ordering::Relaxed) == 0;
    if !OUTPUT_FLUSHED.swap(false, Ordering::Relaxed) || !is_idle || available_cores() == 1 {
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

/// A writer that notes each flush, which ends a response.
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
