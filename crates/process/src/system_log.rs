//! The system log, over the socket that `syslog` programs listen on.

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// Where the socket is on every usual system.
const DEFAULT_SYSTEM_LOG_SOCKET: &str = "/dev/log";

/// Facility `auth` (4) with severity `notice` (5), as one number: the records are about what was permitted.
const AUTH_NOTICE_PRIORITY: u8 = 4 * 8 + 5;

/// The system log of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemLog {
    /// The socket.
    socket: PathBuf,
}

impl Default for SystemLog {
    fn default() -> Self {
        Self::at(Path::new(DEFAULT_SYSTEM_LOG_SOCKET))
    }
}

impl SystemLog {
    /// A system log that listens on this socket.
    pub fn at(socket: &Path) -> Self {
        Self { socket: socket.to_path_buf() }
    }

    /// Whether a program listens on the socket.
    pub fn check_ready(&self) -> io::Result<()> {
        self.connect().map(drop)
    }

    /// Sends one line. Waits for no answer, because the protocol has none; a full queue is an error.
    pub fn send(&self, line: &str) -> io::Result<()> {
        let message = format!("<{AUTH_NOTICE_PRIORITY}>toolgate[{}]: {line}", std::process::id());
        self.connect()?.send(message.as_bytes()).map(drop)
    }

    /// Connects; a log that was restarted has a new socket, so this is done for each line.
    fn connect(&self) -> io::Result<UnixDatagram> {
        let socket = UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        socket.connect(&self.socket).map_err(|error| {
            io::Error::new(
                error.kind(),
                format!("no system log listens on {}: {error}", self.socket.display()),
            )
        })?;
        Ok(socket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_arrives_with_its_priority_and_a_missing_log_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let log = SystemLog::at(&path);
        assert!(log.check_ready().unwrap_err().to_string().contains("no system log listens"));
        let listener = UnixDatagram::bind(&path).unwrap();
        log.check_ready().unwrap();
        log.send("one line").unwrap();
        let mut buffer = [0; 256];
        let size = listener.recv(&mut buffer).unwrap();
        let text = String::from_utf8_lossy(&buffer[..size]).into_owned();
        assert!(text.starts_with("<37>toolgate[") && text.ends_with("]: one line"), "{text}");
    }
}
