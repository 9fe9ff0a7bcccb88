//! Detection of the kernel features that the sandbox needs, by trying each once.

use super::seccomp_filter::allow_all_filter;
use super::seccomp_notify::can_pass_descriptors;
use super::{SandboxNetworkAccess, SandboxProfile, install_seccomp_filter};
use std::fmt;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

/// The sandbox features of the running kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelSupport {
    /// The version of the Landlock ABI; 0 without Landlock.
    pub landlock: u32,
    /// seccomp filters can be installed.
    pub filter: bool,
    /// seccomp user notification is available, with file descriptors for the caller (Linux 5.9).
    pub seccomp_notify: bool,
}

/// A part of a profile that this machine cannot enforce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum MissingFeature {
    /// Writing outside the writable trees is not prevented.
    Files,
    /// Truncating files outside is not prevented.
    Truncate,
    /// `ioctl` on devices outside is not prevented.
    Devices,
    /// Signals to processes outside are not prevented.
    Signals,
    /// Network access is not prevented.
    Network,
    /// Tracing, mounting, keyrings and similar system calls are not prevented.
    Calls,
    /// The mode, owner and times of files outside can be changed.
    Metadata,
    /// New files beside a protected or unreadable path cannot be created or read.
    Precision,
    /// A protected path that does not exist can be created.
    AbsentPaths,
    /// Unix sockets outside can be connected to.
    Sockets,
}

impl fmt::Display for MissingFeature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Files => "files outside the writable directories (Landlock is missing)",
            Self::Truncate => "truncation of files outside (needs Linux 6.2)",
            Self::Devices => "requests to devices (needs Linux 6.10)",
            Self::Signals => "signals to processes outside (needs Linux 6.12)",
            Self::Network => "the network (seccomp is missing)",
            Self::Calls => "tracing, mounting and other system calls (seccomp is missing)",
            Self::Metadata => "mode, owner and times of files outside (needs seccomp notification)",
            Self::AbsentPaths => "protected files that do not exist yet (bubblewrap cannot protect them)",
            Self::Sockets => "Unix sockets (bubblewrap cannot restrict them when it permits the network)",
            Self::Precision => "new files beside protected ones (needs seccomp notification)",
        })
    }
}

impl KernelSupport {
    /// Begins to try the features on a thread of their own, so that the caller can do something else meanwhile.
    pub fn begin_detection() {
        let mut trial = SECCOMP_TRIAL.lock().unwrap_or_else(PoisonError::into_inner);
        if trial.is_none() && DETECTED.get().is_none() {
            *trial = start_seccomp_trial();
        }
    }

    /// The features of the running kernel, tried once per process.
    pub fn detect() -> Self {
        *DETECTED.get_or_init(|| {
            let begun = SECCOMP_TRIAL.lock().unwrap_or_else(PoisonError::into_inner).take();
            let trial = begun.or_else(start_seccomp_trial).and_then(|trial| trial.join().ok());
            let (filter, seccomp_notify) = trial.unwrap_or((false, false));
            Self { landlock: landlock_version(), filter, seccomp_notify }
        })
    }

    /// Whether the rights of a command can be enforced: its files, its programs, its network.
    pub fn enforces_rights(self) -> bool {
        self.landlock > 0 && self.filter && self.seccomp_notify
    }

    /// The parts of a profile that cannot be enforced with Landlock and seccomp on this kernel.
    pub fn missing_features(self, profile: &SandboxProfile) -> Vec<MissingFeature> {
        let mut missing = Vec::new();
        for (abi, feature) in [
            (1, MissingFeature::Files),
            (3, MissingFeature::Truncate),
            (5, MissingFeature::Devices),
            (6, MissingFeature::Signals),
        ] {
            if self.landlock < abi {
                missing.push(feature);
            }
        }
        if !self.filter {
            missing.push(MissingFeature::Calls);
            if profile.net != SandboxNetworkAccess::Full {
                missing.push(MissingFeature::Network);
            }
        }
        if !self.seccomp_notify {
            missing.push(MissingFeature::Metadata);
            if !profile.protected.is_empty() || !profile.unreadable.is_empty() {
                missing.push(MissingFeature::Precision);
            }
            // Landlock restricts ports, not addresses: without a handler, one loopback port is that port of every host.
            if matches!(profile.net, SandboxNetworkAccess::Loopback(_))
                && !missing.contains(&MissingFeature::Network)
            {
                missing.push(MissingFeature::Network);
            }
        }
        missing
    }
}

/// The version of the Landlock ABI; 0 if the system call does not exist or Landlock is disabled.
#[expect(unsafe_code, reason = "the version query has no safe form")]
fn landlock_version() -> u32 {
    // SAFETY: with no attributes and this flag the call only returns a number.
    let version = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0, 1) };
    u32::try_from(version).unwrap_or(0)
}

/// What was detected in this process.
static DETECTED: OnceLock<KernelSupport> = OnceLock::new();
/// The trial that was begun and that no caller has waited for yet.
static SECCOMP_TRIAL: Mutex<Option<SeccompTrial>> = Mutex::new(None);

/// Tells whether a seccomp filter can be installed, and whether one with a listener that passes descriptors can.
type SeccompTrial = JoinHandle<(bool, bool)>;

/// Tries seccomp filters. A filter cannot be removed, so they are tried on a thread of their own; `None` if none can be
/// started.
fn start_seccomp_trial() -> Option<SeccompTrial> {
    let attempt = || {
        if rustix::thread::set_no_new_privs(true).is_err() {
            return (false, false);
        }
        match install_seccomp_filter(&allow_all_filter(), true) {
            Ok(listener) => (true, listener.is_some_and(|listener| can_pass_descriptors(&listener))),
            Err(_) => (install_seccomp_filter(&allow_all_filter(), false).is_ok(), false),
        }
    };
    std::thread::Builder::new().stack_size(64 * 1024).spawn(attempt).ok()
}
