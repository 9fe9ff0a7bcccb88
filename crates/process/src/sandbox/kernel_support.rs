//! What this machine's kernel gives, found out by trying.

use super::seccomp_filter::allow_all_program;
use super::{SandboxNetworkAccess, SandboxProfile, install_seccomp_filter};
use std::fmt;
use std::sync::OnceLock;

/// What the kernel gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelSupport {
    /// The version of Landlock's interface; 0 where there is none.
    pub landlock: u32,
    /// System calls can be filtered.
    pub filter: bool,
    /// The filter can ask a warden.
    pub seccomp_notify: bool,
}

/// Something that a confinement wants and this machine cannot enforce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MissingFeature {
    /// Writing outside the writable directories is not stopped.
    Files,
    /// Truncating files outside is not stopped.
    Truncate,
    /// Devices outside can be sent requests.
    Devices,
    /// Signals to processes outside are not stopped.
    Signals,
    /// The network is not closed.
    Network,
    /// Tracing, mounting, keys and the like are not stopped.
    Calls,
    /// The mode, owner and times of files outside can be changed.
    Metadata,
    /// New files beside a protected or unreadable path cannot be made, or read.
    Precision,
    /// A protected path that does not exist can be made.
    AbsentPaths,
    /// Sockets in the file system outside can be connected to.
    Sockets,
}

impl fmt::Display for MissingFeature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Files => "files outside the writable directories (Landlock is missing)",
            Self::Truncate => "cutting files outside short (needs Linux 6.2)",
            Self::Devices => "requests to devices (needs Linux 6.10)",
            Self::Signals => "signals to processes outside (needs Linux 6.12)",
            Self::Network => "the network (seccomp is missing)",
            Self::Calls => "tracing, mounting and other system calls (seccomp is missing)",
            Self::Metadata => "mode, owner and times of files outside (needs seccomp notification)",
            Self::AbsentPaths => "protected files that do not exist yet (bubblewrap cannot hold them)",
            Self::Sockets => "sockets in the file system (bubblewrap with a network cannot hold them)",
            Self::Precision => "new files beside protected ones (needs seccomp notification)",
        })
    }
}

impl KernelSupport {
    /// What this machine gives. Tried once.
    pub fn detect() -> Self {
        static DETECTED: OnceLock<KernelSupport> = OnceLock::new();
        *DETECTED.get_or_init(|| Self {
            landlock: landlock_version(),
            filter: try_on_thread(|| install_seccomp_filter(&allow_all_program(), false).is_ok()),
            seccomp_notify: try_on_thread(|| {
                install_seccomp_filter(&allow_all_program(), true).is_ok_and(|listener| listener.is_some())
            }),
        })
    }

    /// Whether the rights of a command can be held: its files, its programs, its network.
    pub fn enforces_rights(self) -> bool {
        self.landlock > 0 && self.filter && self.seccomp_notify
    }

    /// What of a confinement cannot be enforced here.
    pub fn missing_features(self, confinement: &SandboxProfile) -> Vec<MissingFeature> {
        let mut gaps = Vec::new();
        for (needs, gap) in [
            (1, MissingFeature::Files),
            (3, MissingFeature::Truncate),
            (5, MissingFeature::Devices),
            (6, MissingFeature::Signals),
        ] {
            if self.landlock < needs {
                gaps.push(gap);
            }
        }
        if !self.filter {
            gaps.push(MissingFeature::Calls);
            if confinement.net != SandboxNetworkAccess::Full {
                gaps.push(MissingFeature::Network);
            }
        }
        if !self.seccomp_notify {
            gaps.push(MissingFeature::Metadata);
            if !confinement.protected.is_empty() || !confinement.unreadable.is_empty() {
                gaps.push(MissingFeature::Precision);
            }
            // Without a warden one port on this machine is that port on every machine.
            if matches!(confinement.net, SandboxNetworkAccess::Loopback(_))
                && !gaps.contains(&MissingFeature::Network)
            {
                gaps.push(MissingFeature::Network);
            }
        }
        gaps
    }
}

#[expect(unsafe_code, reason = "asks the kernel for a version")]
fn landlock_version() -> u32 {
    // SAFETY: with no attributes and this flag the call only returns a number.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0, 1) };
    u32::try_from(version).unwrap_or(0)
}

/// Tries something that cannot be undone on a thread that then ends.
fn try_on_thread(attempt: impl FnOnce() -> bool + Send + 'static) -> bool {
    let thread = std::thread::Builder::new()
        .stack_size(64 * 1024)
        .spawn(move || rustix::thread::set_no_new_privs(true).is_ok() && attempt());
    thread.is_ok_and(|thread| thread.join().unwrap_or(false))
}
