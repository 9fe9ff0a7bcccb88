//! What a sandbox was seen to refuse, and which setting would allow it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A kind of access.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SandboxAccess {
    /// Changing, making or removing a file.
    Write,
    /// Changing a protected file.
    WriteProtected,
    /// Changing the owner, mode or times of a file.
    Metadata,
    /// Reading a file.
    Read,
    /// Reading a file that a rule or its name keeps back.
    ReadHidden,
    /// Starting a program that the command line does not name.
    Execute,
    /// An internet socket.
    Internet,
    /// Connecting to an internet address.
    Connect,
    /// Listening on an internet address.
    Listen,
    /// Connecting to a socket in the file system.
    UnixSocket,
}

impl SandboxAccess {
    /// The setting that would allow it.
    pub fn setting(self) -> &'static str {
        match self {
            Self::Write | Self::Metadata => "`sandbox.filesystem.allowWrite`",
            Self::WriteProtected => "none: protected files are for the person to change",
            Self::Read => "the deny rule or `sandbox.filesystem.denyRead` that names it",
            Self::ReadHidden => "an allow rule `Read(…)` for it, where no deny rule names it",
            Self::Execute => "an allow rule `Bash(…)` for the command",
            Self::Internet => {
                "`sandbox.network.allowedDomains`, or `sandbox.network.allowLocalBinding` for this machine alone"
            }
            Self::Connect => "`sandbox.network.allowedDomains`",
            Self::Listen => "`sandbox.network.allowLocalBinding`",
            Self::UnixSocket => "`sandbox.network.allowUnixSockets`",
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

/// One thing that the sandbox was seen to refuse.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SandboxDenial {
    /// What was tried.
    pub access: SandboxAccess,
    /// On what.
    pub target: String,
    /// By which program, as far as known.
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

/// The list that a warden adds to. Short: a command that is refused a thousand times says the same thing.
#[derive(Debug, Clone, Default)]
pub(crate) struct SandboxDenialLog {
    list: Arc<Mutex<Vec<SandboxDenial>>>,
}

const MAX_DENIALS: usize = 20;

impl SandboxDenialLog {
    pub(crate) fn all(&self) -> Vec<SandboxDenial> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn add(&self, refused: SandboxDenial) {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        if list.len() < MAX_DENIALS && !list.contains(&refused) {
            list.push(refused);
        }
    }
}
