//! Doors for others to knock at.

use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use toolgate_proto::AbsPath;

/// Opens a TCP door.
pub async fn listen_tcp(address: SocketAddr) -> io::Result<tokio::net::TcpListener> {
    tokio::net::TcpListener::bind(address).await
}

/// Opens a Unix socket that only this user can reach. A socket that nobody serves any more is replaced; anything else
/// at that path stays, and is an error.
pub fn listen_unix(path: &AbsPath) -> io::Result<tokio::net::UnixListener> {
    let stale = std::fs::symlink_metadata(path.as_path()).is_ok_and(|found| found.file_type().is_socket())
        && std::os::unix::net::UnixStream::connect(path.as_path()).is_err();
    if stale {
        std::fs::remove_file(path.as_path())?;
    }
    // The mode must hold from the start: between bind and chmod anyone could connect.
    let before = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o177));
    let listener = tokio::net::UnixListener::bind(path.as_path());
    rustix::process::umask(before);
    listener
}
