//! Standard input and output without blocking a thread.
//!
//! A server over standard streams gets pipes from most clients, and sockets from those that run on Node.
//! Both can be polled, but the usual way (setting `O_NONBLOCK`) changes the stream for every process that shares it: a
//! standard error on the same pipe would start to lose lines.
//! So a pipe is opened again through `/proc`, which gives it flags of its own, and a socket is read and written with
//! `MSG_DONTWAIT`, which needs no flag.
//! Files and terminals go through tokio's blocking threads, where speed does not matter.

use crate::input_spin::FlushTracker;
use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::sockopt;
use rustix::net::{RecvFlags, SendFlags};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::unix::pipe;

/// The buffer size of the pipe or socket to the client. With the default of 64 KiB a client that reads many responses
/// wakes up four times as often.
const MIN_PIPE_BYTES: usize = 256 * 1024;

/// A readable stream of bytes.
pub type ByteSource = Pin<Box<dyn AsyncRead + Send>>;
/// A writable stream of bytes.
pub type ByteSink = Pin<Box<dyn AsyncWrite + Send>>;

/// The process's standard input and output. Must be called inside a runtime.
pub fn standard_streams() -> io::Result<(ByteSource, ByteSink)> {
    let input: ByteSource = match stdio_kind(io::stdin().as_fd())? {
        StdioKind::Pipe => match reopen_nonblocking("/proc/self/fd/0", OFlags::RDONLY) {
            Some(fd) => Box::pin(pipe::Receiver::from_owned_fd(fd)?),
            None => Box::pin(tokio::io::stdin()),
        },
        StdioKind::Socket => Box::pin(SharedSocket::new(io::stdin().as_fd().try_clone_to_owned()?)?),
        StdioKind::Other => Box::pin(tokio::io::stdin()),
    };
    let output: ByteSink = match stdio_kind(io::stdout().as_fd())? {
        StdioKind::Pipe => match reopen_nonblocking("/proc/self/fd/1", OFlags::WRONLY) {
            Some(fd) => {
                // An unprivileged user may have used up the allowance for pipe buffers; then the size stays.
                if rustix::pipe::fcntl_getpipe_size(&fd).is_ok_and(|size| size < MIN_PIPE_BYTES) {
                    let _ = rustix::pipe::fcntl_setpipe_size(&fd, MIN_PIPE_BYTES);
                }
                Box::pin(FlushTracker(pipe::Sender::from_owned_fd(fd)?))
            }
            None => Box::pin(tokio::io::stdout()),
        },
        StdioKind::Socket => {
            let fd = io::stdout().as_fd().try_clone_to_owned()?;
            if sockopt::socket_send_buffer_size(&fd).is_ok_and(|size| size < MIN_PIPE_BYTES) {
                let _ = sockopt::set_socket_send_buffer_size(&fd, MIN_PIPE_BYTES);
            }
            Box::pin(FlushTracker(SharedSocket::new(fd)?))
        }
        StdioKind::Other => Box::pin(tokio::io::stdout()),
    };
    Ok((input, output))
}

/// What a standard stream is.
enum StdioKind {
    /// Opened again through `/proc`.
    Pipe,
    /// Read and written with `MSG_DONTWAIT`.
    Socket,
    /// A file or a terminal.
    Other,
}

/// What a standard stream is, by `fstat`.
fn stdio_kind(fd: impl AsFd) -> io::Result<StdioKind> {
    Ok(match FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode) {
        FileType::Fifo => StdioKind::Pipe,
        FileType::Socket => StdioKind::Socket,
        _ => StdioKind::Other,
    })
}

/// Opens a pipe again, with a file description of its own. `None` without `/proc`.
fn reopen_nonblocking(path: &str, access: OFlags) -> Option<OwnedFd> {
    rustix::fs::open(path, access | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty()).ok()
}

/// A socket whose file status flags are not changed.
struct SharedSocket(AsyncFd<OwnedFd>);

impl SharedSocket {
    #[expect(unsafe_code, reason = "tokio cannot know that an owned file descriptor stays the same")]
    fn new(fd: OwnedFd) -> io::Result<Self> {
        // SAFETY: an `OwnedFd` always returns the same file descriptor, and keeps it open as long as it lives.
        let registered = unsafe { AsyncFd::register(fd) };
        registered.map(Self).map_err(io::Error::from)
    }
}

/// The error for `AsyncFd::try_io`.
fn to_io_error(errno: Errno) -> io::Error {
    // `AsyncFd::try_io` waits again on this kind, and only on this kind.
    io::Error::from(errno)
}

impl AsyncRead for SharedSocket {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut guard = ready!(self.0.poll_read_ready(cx))?;
            let read = guard.try_io(|fd| {
                let space = buf.initialize_unfilled();
                rustix::net::recv(fd.get_ref(), space, RecvFlags::DONTWAIT)
                    .map(|(read, _)| read)
                    .map_err(to_io_error)
            });
            match read {
                Ok(Ok(read)) => {
                    buf.advance(read);
                    return Poll::Ready(Ok(()));
                }
                // The client has ended: for a reader that is the end of the stream.
                Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return Poll::Ready(Ok(()));
                }
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(Err(error)) => return Poll::Ready(Err(error)),
                Err(_would_block) => {}
            }
        }
    }
}

impl AsyncWrite for SharedSocket {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        loop {
            let mut guard = ready!(self.0.poll_write_ready(cx))?;
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match guard.try_io(|fd| rustix::net::send(fd.get_ref(), bytes, flags).map_err(to_io_error)) {
                Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(done) => return Poll::Ready(done),
                Err(_would_block) => {}
            }
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The socket may be shared; it closes with the process.
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// A blocking socket stays blocking for other processes, and is read and written without blocking here.
    #[tokio::test]
    async fn a_socket_is_used_without_touching_its_flags() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let copy = ours.try_clone().unwrap();
        let mut socket = SharedSocket::new(OwnedFd::from(ours)).unwrap();
        let writer = std::thread::spawn(move || {
            use std::io::{Read, Write};
            let mut theirs = theirs;
            let mut got = vec![0; 1 << 20];
            theirs.read_exact(&mut got).unwrap();
            theirs.write_all(&got).unwrap();
        });
        let sent = vec![7; 1 << 20];
        socket.write_all(&sent).await.unwrap();
        let mut back = Vec::new();
        socket.read_to_end(&mut back).await.unwrap();
        assert!(back == sent);
        let flags = rustix::fs::fcntl_getfl(&copy).unwrap();
        assert!(!flags.contains(OFlags::NONBLOCK));
        writer.join().unwrap();
    }
}
