//! How much of the machine a command may use, and which privileges it keeps.

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

/// Limits on each process of a command. `None` leaves what toolgate itself has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessLimits {
    /// Bytes of memory for data of one process.
    pub memory: Option<u64>,
    /// Processes of this user, all together; the system administrator is exempt.
    pub processes: Option<u64>,
    /// Bytes of one file.
    pub file_size: Option<u64>,
    /// Seconds of processor time of one process.
    pub cpu_seconds: Option<u64>,
}

impl ProcessLimits {
    /// Sets them on this process. Never raises one.
    pub(super) fn apply(&self) -> Result<(), Errno> {
        let wanted = [
            // A dump of a command's memory is a file that nobody asked for.
            (Resource::Core, Some(0)),
            (Resource::Data, self.memory),
            (Resource::Nproc, self.processes),
            (Resource::Fsize, self.file_size),
            (Resource::Cpu, self.cpu_seconds),
        ];
        for (resource, value) in wanted {
            let Some(value) = value else { continue };
            let now = getrlimit(resource);
            let value = now.maximum.map_or(value, |most| most.min(value));
            setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })?;
        }
        Ok(())
    }
}

/// Gives up what the system administrator has beyond files of the workspace. For anybody else this does nothing.
pub(super) fn drop_privileges() -> Result<(), Errno> {
    let kept = CapabilitySet::CHOWN
        | CapabilitySet::DAC_OVERRIDE
        | CapabilitySet::FOWNER
        | CapabilitySet::FSETID
        | CapabilitySet::KILL
        | CapabilitySet::SETGID
        | CapabilitySet::SETUID
        | CapabilitySet::NET_BIND_SERVICE;
    let mut sets = capabilities(None)?;
    if sets.permitted.is_empty() {
        return Ok(());
    }
    sets.effective &= kept;
    sets.permitted &= kept;
    sets.inheritable &= kept;
    // With no_new_privs an exec cannot bring back what is not in the permitted set.
    set_capabilities(None, sets)
}
