//! Listening sockets.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use toolgate_proto::AbsPath;

/// Binds a TCP socket. Which addresses are acceptable is for the caller to decide.
pub async fn listen_tcp(address: SocketAddr) -> io::Result<tokio::net::TcpListener> {
    tokio::net::TcpListener::bind(address).await
}

/// Binds a Unix socket that only this user can connect to. A stale socket, on which no process listens, is replaced;
/// anything else at that path stays, and is an error.
pub fn listen_unix(path: &AbsPath) -> io::Result<tokio::net::UnixListener> {
    let is_stale = std::fs::symlink_metadata(path.as_path()).is_ok_and(|found| found.file_type().is_socket())
        && std::os::unix::net::UnixStream::connect(path.as_path()).is_err();
    if is_stale {
        std::fs::remove_file(path.as_path())?;
    }
    // With `chmod` after `bind`, any user could connect in between; the umask applies to `bind` itself.
    let previous_umask = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
    let listener = tokio::net::UnixListener::bind(path.as_path());
    rustix::process::umask(previous_umask);
    listener
}
