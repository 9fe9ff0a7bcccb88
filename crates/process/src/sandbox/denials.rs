//! The accesses that a sandbox refused, and the setting that would allow each.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The kind of access that a sandbox refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SandboxAccess {
    /// Creating, changing or removing a file.
    Write,
    /// Changing a protected file.
    WriteProtected,
    /// Changing the owner, mode or times of a file.
    Metadata,
    /// Reading a file.
    Read,
    /// Reading a file that a rule or a sensitive name hides.
    ReadHidden,
    /// Starting a program that the command line does not name.
    Execute,
    /// Creating an internet socket.
    Internet,
    /// Connecting to an internet address.
    Connect,
    /// Listening on an internet address.
    Listen,
    /// Connecting to a Unix socket.
    UnixSocket,
}

impl SandboxAccess {
    /// The setting that would allow it, for the message to the user. `file` is the settings file to edit.
    pub fn setting(self, file: Option<&str>) -> String {
        let place = file.map(|file| format!(" in {file}")).unwrap_or_default();
        match self {
            Self::Write | Self::Metadata => format!("`sandbox.filesystem.allowWrite`{place}"),
            Self::WriteProtected => {
                "edit the file yourself, because protected files can only be changed by the user".to_owned()
            }
            Self::Read => {
                "the deny rule or `sandbox.filesystem.denyRead` that names it (`toolgate settings` shows the \
                           file)"
                    .to_owned()
            }
            Self::ReadHidden => format!("an allow rule `Read(…)` for it{place}, where no deny rule names it"),
            Self::Execute => format!("an allow rule `Bash(…)` for the command{place}"),
            // `allowedDomains` is for hosts that the proxy reaches, which are never addresses of this machine.
            Self::Internet | Self::Connect => format!(
                "`sandbox.network.allowedDomains`{place} for other hosts, or `sandbox.network.allowLocalBinding` for this \
                 machine"
            ),
            Self::Listen => format!("`sandbox.network.allowLocalBinding`{place}"),
            Self::UnixSocket => format!("`sandbox.network.allowUnixSockets`{place}"),
        }
    }
}

impl fmt::Display for SandboxAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Write => "write",
            Self::WriteProtected => "write to the protected file",
            Self::Metadata => "change the mode, owner or times of",
            Self::Read => "read",
            Self::ReadHidden => "read the withheld file",
            Self::Execute => "start",
            Self::Internet => "use the network",
            Self::Connect => "connect to",
            Self::Listen => "listen on",
            Self::UnixSocket => "connect to the socket",
        })
    }
}

/// One access that the sandbox refused.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SandboxDenial {
    /// What the program tried to do.
    pub access: SandboxAccess,
    /// The path or address; empty for [`SandboxAccess::Internet`].
    pub target: String,
    /// The name of the process (`/proc/PID/comm`), which a program can change.
    pub program: String,
}

impl fmt::Display for SandboxDenial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` tried to {}", self.program, self.access)?;
        if !self.target.is_empty() {
            write!(f, " `{}`", self.target)?;
        }
        Ok(())
    }
}

/// The denials of one command, written by its seccomp notification handler. Bounded, because a command that retries is
/// refused the same access many times.
#[derive(Debug, Clone, Default)]
pub(crate) struct SandboxDenialLog {
    /// Shared by the handler, its threads and the command's handle.
    list: Arc<Mutex<Vec<SandboxDenial>>>,
}

/// How many denials are kept.
const MAX_DENIALS: usize = 20;

impl SandboxDenialLog {
    /// The denials so far, in order.
    pub(crate) fn all(&self) -> Vec<SandboxDenial> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Adds a denial unless it is known or the log is full.
    pub(super) fn add(&self, denial: SandboxDenial) {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        if list.len() < MAX_DENIALS && !list.contains(&denial) {
            list.push(denial);
        }
    }
}
