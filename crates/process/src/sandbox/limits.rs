//! Resource limits of a command, and the privileges that it keeps.

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};

/// Resource limits (`setrlimit`) of each process of a command. `None` keeps toolgate's own limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ProcessLimits {
    /// Bytes of data memory of one process (`RLIMIT_DATA`).
    pub memory: Option<u64>,
    /// Processes of this user altogether (`RLIMIT_NPROC`); root is exempt.
    pub processes: Option<u64>,
    /// Bytes of one file that it writes (`RLIMIT_FSIZE`).
    pub file_size: Option<u64>,
    /// Seconds of CPU time of one process (`RLIMIT_CPU`).
    pub cpu_seconds: Option<u64>,
}

impl ProcessLimits {
    /// Sets the bytes of data memory of one process.
    pub fn with_memory(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.memory = bytes.into();
        self
    }

    /// Sets the processes of this user altogether.
    pub fn with_processes(mut self, count: impl Into<Option<u64>>) -> Self {
        self.processes = count.into();
        self
    }

    /// Sets the bytes of one file.
    pub fn with_file_size(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.file_size = bytes.into();
        self
    }

    /// Sets the seconds of CPU time of one process.
    pub fn with_cpu_seconds(mut self, seconds: impl Into<Option<u64>>) -> Self {
        self.cpu_seconds = seconds.into();
        self
    }

    /// Whether no limit is higher than in the other. It is here because only this crate must name every limit.
    pub fn is_within(&self, other: &Self) -> bool {
        let Self { memory, processes, file_size, cpu_seconds } = self;
        let within = |limit: &Option<u64>, other: &Option<u64>| match (limit, other) {
            (_, None) => true,
            (Some(limit), Some(other)) => limit <= other,
            (None, Some(_)) => false,
        };
        within(memory, &other.memory)
            && within(processes, &other.processes)
            && within(file_size, &other.file_size)
            && within(cpu_seconds, &other.cpu_seconds)
    }

    /// Sets them on this process. Never raises a limit.
    pub(super) fn apply(&self) -> Result<(), Errno> {
        let limits = [
            // No core dumps: they would be unexpected files in the workspace, with the memory of a command.
            (Resource::Core, Some(0)),
            (Resource::Data, self.memory),
            (Resource::Nproc, self.processes),
            (Resource::Fsize, self.file_size),
            (Resource::Cpu, self.cpu_seconds),
        ];
        for (resource, value) in limits {
            let Some(value) = value else { continue };
            let now = getrlimit(resource);
            let value = now.maximum.map_or(value, |maximum| maximum.min(value));
            setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) })?;
        }
        Ok(())
    }
}

/// Drops root's capabilities except those for files of the workspace. Does nothing for a user without capabilities.
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
    // With no_new_privs, an exec cannot regain a capability that is not in the permitted set.
    set_capabilities(None, sets)
}
