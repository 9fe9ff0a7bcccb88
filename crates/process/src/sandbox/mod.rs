//! The sandbox of a command: Landlock for files, TCP and signals, a seccomp filter for other system calls, and a seccomp
//! notification handler for what neither can express.
//!
//! It needs no root, no namespaces and no helper program, so that it works in containers and on hardened hosts.
//! [`SandboxProfile`] says what a command may do; the command's process enters the sandbox before it executes the shell.
//!
//! Three layers, each of which only restricts:
//! - **Landlock** (`landlock_rules.rs`) knows directories. Its rules only grant, so that "everything but this" becomes
//!   a rule for each neighbour of the exception.
//! - **The seccomp filter** (`seccomp_filter.rs`, `syscall_rules.rs`) knows system calls and numbers. It cannot see
//!   paths, because they are in memory that the command can change after the check (a TOCTOU race).
//! - **The seccomp notification handler** (`seccomp_notify/`) is a thread of toolgate that the kernel asks about the
//!   system calls that the filter passes on. It reads the path once, resolves it itself, and makes the change itself or
//!   refuses it, so that a change of the arguments in between has no effect. It also records what is refused.
//!
//! What a kernel lacks is listed in [`SandboxEnforcement::missing`] and recorded; with [`SandboxProfile::required`] the
//! command does not run then.

mod bubblewrap;
mod denials;
mod directory_listing;
mod guard;
mod kernel_support;
mod landlock_rules;
mod limits;
mod mask;
mod path_access;
mod resolve_paths;
mod ruleset_cache;
mod scan;
mod seatbelt;
mod seccomp_filter;
mod seccomp_notify;
mod self_test;
mod syscall_rules;
mod system_paths;

pub use bubblewrap::check_bubblewrap;
pub use denials::{SandboxAccess, SandboxDenial};
pub use guard::{ChangeObserver, FileGuard, PathGuard};
pub use kernel_support::{KernelSupport, MissingFeature};
pub use limits::ProcessLimits;
pub use mask::MaskSupport;
pub use seatbelt::build_seatbelt_profile;
pub use self_test::{SelfTest, run_self_test};

pub(crate) use denials::SandboxDenialLog;
pub(crate) use seccomp_notify::{SeccompNotifyHandler, StartedHandler};

use crate::process::{ExecFailure, ExecStep, FoundProgram, ProcessStartError};
use mask::FileMasks;
use path_access::SandboxPathAccess;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use seccomp_filter::BpfProgram;
use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd, RawFd};
use toolgate_proto::AbsPath;

/// What a command may do: files, programs, network and resources. The default permits reading every file and nothing
/// else.
#[derive(Debug, Clone, Default)]
pub struct SandboxProfile {
    /// Directory trees in which it may write.
    pub writable: Vec<AbsPath>,
    /// Single files that it may create, change and remove, and whose missing parent directories it may create.
    pub entries: Vec<AbsPath>,
    /// Temporary directories of its own: writable, and `guard` does not apply in them.
    pub private: Vec<AbsPath>,
    /// The only trees and files that it may read, beside the system's programs and libraries; `None` permits
    /// everything that is not hidden.
    pub readable: Option<Vec<AbsPath>>,
    /// The only programs that it may execute; `None` permits any.
    pub executable: Option<Vec<FoundProgram>>,
    /// Rules by name and pattern, applied to real paths while the command runs.
    pub guard: FileGuard,
    /// Files that were granted by name: readable although they are at or below an unreadable path.
    pub named: Vec<AbsPath>,
    /// What a command finds in a file that is hidden from it.
    pub withheld: WithheldFileMode,
    /// Paths inside the writable trees that it may not create, change, rename or remove.
    pub protected: Vec<AbsPath>,
    /// Paths whose contents it may not read.
    pub unreadable: Vec<AbsPath>,
    /// Which network addresses it may connect to and listen on.
    pub net: SandboxNetworkAccess,
    /// Unix sockets, or directories of them, that it may connect to beside those in writable trees.
    pub sockets: Vec<AbsPath>,
    /// Resource limits of each process.
    pub limits: ProcessLimits,
    /// The mechanism that enforces the profile.
    pub backend: SandboxMechanism,
    /// Refuse to run the command if a part of the profile cannot be enforced.
    pub required: bool,
}

/// What a command finds in a file that is hidden from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WithheldFileMode {
    /// Permission is denied.
    #[default]
    Refused,
    /// The file is empty, so that a search goes on to the next one. The result says what was withheld.
    Empty,
}

/// Which network addresses a command may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SandboxNetworkAccess {
    /// No internet sockets.
    #[default]
    None,
    /// Loopback only: connecting to one port, or connecting to and listening on every port.
    Loopback(Option<u16>),
    /// Every address.
    Full,
}

/// The mechanism that enforces a [`SandboxProfile`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SandboxMechanism {
    /// Landlock and seccomp, set up by toolgate without privileges.
    #[default]
    Landlock,
    /// Bubblewrap, which must be installed.
    Bubblewrap,
}

/// How far the sandbox of a running command is enforced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxEnforcement {
    /// Refused accesses are recorded: a seccomp notification handler runs.
    pub observed: bool,
    /// What this kernel or mechanism cannot enforce.
    pub missing: Vec<MissingFeature>,
}

/// A profile turned into what starting a command needs.
pub(crate) struct PreparedSandbox {
    /// The program and arguments that go before the shell and its arguments.
    pub(crate) argv_prefix: Vec<String>,
    /// What the command's process applies to itself.
    pub(crate) setup: SandboxSetup,
    /// To be started by the caller before the command executes; `None` if the kernel has no user notification.
    pub(crate) notify_handler: Option<SeccompNotifyHandler>,
    /// How far the profile will be enforced.
    pub(crate) enforced: SandboxEnforcement,
}

impl SandboxProfile {
    /// Turns the profile into what starting a command needs, with the mechanism it names.
    pub(crate) fn prepare(self) -> Result<PreparedSandbox, ProcessStartError> {
        match self.backend {
            SandboxMechanism::Landlock => self.prepare_landlock(),
            SandboxMechanism::Bubblewrap => self.prepare_bubblewrap(),
        }
    }

    /// Prepares a `bwrap` command line; there is no seccomp notification handler then.
    fn prepare_bubblewrap(self) -> Result<PreparedSandbox, ProcessStartError> {
        let bounds = SandboxPathAccess::new(&self);
        let bubblewrap::BubblewrapCommand { argv, filter, missing } =
            bubblewrap::build_command(&bounds, self.net)?;
        self.check_required(&missing)?;
        let setup = SandboxSetup {
            ruleset: None,
            program: None,
            listener_socket: None,
            filter_file: Some(crate::process::dup_to_high_fd(filter)?),
            masks: None,
            limits: self.limits,
        };
        let enforced = SandboxEnforcement { observed: false, missing };
        Ok(PreparedSandbox { argv_prefix: argv, setup, notify_handler: None, enforced })
    }

    /// Fails if the profile must be enforced as a whole, and cannot be.
    fn check_required(&self, missing: &[MissingFeature]) -> Result<(), ProcessStartError> {
        if !self.required || missing.is_empty() {
            return Ok(());
        }
        let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
        let message = format!(
            "the sandbox is required, and this machine cannot enforce: {}; run `toolgate doctor` for details",
            missing.join("; ")
        );
        Err(ProcessStartError { message, sandbox: true })
    }

    /// Prepares Landlock rules, masks, a seccomp filter and its notification handler, as far as the kernel has them.
    fn prepare_landlock(self) -> Result<PreparedSandbox, ProcessStartError> {
        let kernel = KernelSupport::detect();
        let missing = kernel.missing_features(&self);
        self.check_required(&missing)?;
        let unusable = |message: String| ProcessStartError { message, sandbox: true };
        let mut bounds = SandboxPathAccess::new(&self);
        let masks = FileMasks::new(&bounds.maskable_files(), MaskSupport::detect());
        if masks.is_some() {
            bounds.set_masked();
        }
        let ruleset = if kernel.landlock > 0 {
            ruleset_cache::get_or_build_ruleset(&mut bounds, self.net, kernel.seccomp_notify)
                .map_err(unusable)?
        } else {
            None
        };
        let options = syscall_rules::SyscallRuleOptions {
            net: self.net,
            notify: kernel.seccomp_notify,
            reads: bounds.needs_read_notify(),
            programs: bounds.executable().is_some(),
        };
        let program = kernel.filter.then(|| syscall_rules::build_program(options));
        let (listener_socket, notify_handler) = if kernel.seccomp_notify {
            let (ours, theirs) =
                socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
            let landlock = ruleset.is_some();
            (
                Some(crate::process::dup_to_high_fd(theirs)?),
                Some(SeccompNotifyHandler::new(ours, bounds, (self.net, self.withheld), landlock)),
            )
        } else {
            (None, None)
        };
        let ruleset = ruleset.map(crate::process::dup_to_high_fd).transpose()?;
        let setup =
            SandboxSetup { ruleset, program, listener_socket, filter_file: None, masks, limits: self.limits };
        let enforced = SandboxEnforcement { observed: kernel.seccomp_notify, missing };
        Ok(PreparedSandbox { argv_prefix: Vec::new(), setup, notify_handler, enforced })
    }
}

/// What the process of a command applies to itself before it executes.
pub(crate) struct SandboxSetup {
    /// The Landlock rules; `None` without Landlock or with Bubblewrap.
    ruleset: Option<OwnedFd>,
    /// The seccomp filter; `None` without seccomp or with Bubblewrap.
    program: Option<BpfProgram>,
    /// Where the filter's listener is sent, for the seccomp notification handler.
    listener_socket: Option<OwnedFd>,
    /// The filter as a file, for Bubblewrap, which installs it itself.
    filter_file: Option<OwnedFd>,
    /// Mounts that cover hidden files.
    masks: Option<FileMasks>,
    /// Resource limits, with every mechanism.
    limits: ProcessLimits,
}

impl SandboxSetup {
    /// The file descriptors that the command's process needs until it has entered the sandbox.
    pub(crate) fn raw_fds(&self) -> [Option<RawFd>; 3] {
        [&self.ruleset, &self.listener_socket, &self.filter_file]
            .map(|fd| fd.as_ref().map(AsRawFd::as_raw_fd))
    }

    /// The flags that the command's process must be cloned with.
    pub(crate) fn clone_flags(&self) -> c_int {
        self.masks.as_ref().map_or(0, FileMasks::clone_flags)
    }

    /// Gives up the ownership of file descriptors that were closed by number.
    pub(crate) fn forget_fds(self) {
        for fd in [self.ruleset, self.listener_socket, self.filter_file].into_iter().flatten() {
            let _ = fd.into_raw_fd();
        }
    }

    /// Enters the sandbox. INVARIANT: makes system calls and nothing else.
    pub(crate) fn apply(&self) -> Result<(), ExecFailure> {
        let failed = |step| move |errno| ExecFailure { step, errno };
        self.limits.apply().map_err(|errno| failed(ExecStep::Limits)(errno.raw_os_error()))?;
        if let Some(masks) = &self.masks {
            masks.apply().map_err(failed(ExecStep::FileSandbox))?;
        }
        // Bubblewrap may need root's privileges to set up, and drops them itself.
        if self.filter_file.is_none() {
            limits::drop_privileges().map_err(|errno| failed(ExecStep::Privileges)(errno.raw_os_error()))?;
        }
        rustix::thread::set_no_new_privs(true)
            .map_err(|errno| failed(ExecStep::Privileges)(errno.raw_os_error()))?;
        if let Some(file) = &self.filter_file {
            dup_filter_fd(file).map_err(failed(ExecStep::SeccompFilter))?;
        }
        if let Some(ruleset) = &self.ruleset {
            restrict_self(ruleset).map_err(failed(ExecStep::FileSandbox))?;
        }
        if let Some(program) = &self.program {
            let listener = install_seccomp_filter(program, self.listener_socket.is_some())
                .map_err(failed(ExecStep::SeccompFilter))?;
            if let (Some(listener_socket), Some(listener)) = (&self.listener_socket, listener) {
                seccomp_notify::send_listener(listener_socket.as_fd(), listener.as_fd())
                    .map_err(failed(ExecStep::SeccompListener))?;
            }
        }
        Ok(())
    }
}

/// Moves the filter to the file descriptor that an argument of Bubblewrap names.
#[expect(unsafe_code, reason = "dup2 to a file descriptor that is not in use")]
fn dup_filter_fd(file: &OwnedFd) -> Result<(), c_int> {
    // SAFETY: plain numbers, in the new process's own file descriptor table.
    match unsafe { libc::dup2(file.as_raw_fd(), bubblewrap::FILTER_FD) } {
        -1 => Err(crate::process::last_errno()),
        _ => Ok(()),
    }
}

#[expect(
    unsafe_code,
    reason = "landlock_restrict_self has no safe form that does not close the file descriptor"
)]
/// Restricts this thread with Landlock. Needs `no_new_privs`.
fn restrict_self(ruleset: &OwnedFd) -> Result<(), c_int> {
    // SAFETY: plain numbers.
    match unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) } {
        0 => Ok(()),
        _ => Err(crate::process::last_errno()),
    }
}

/// Installs a seccomp filter on this thread and everything it starts. With `listen`, returns the listener on which the
/// kernel sends notifications.
#[expect(unsafe_code, reason = "seccomp has no safe form")]
fn install_seccomp_filter(program: &BpfProgram, listen: bool) -> Result<Option<OwnedFd>, c_int> {
    use std::os::fd::FromRawFd;
    let filter = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| libc::E2BIG)?,
        filter: program.as_ptr().cast_mut(),
    };
    // With WAIT_KILLABLE_RECV (Linux 5.19) a signal does not restart a call that the handler already works on.
    let attempts: &[libc::c_ulong] = if listen {
        &[
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV,
            libc::SECCOMP_FILTER_FLAG_NEW_LISTENER,
        ]
    } else {
        &[0]
    };
    let mut last = libc::EINVAL;
    for flags in attempts {
        // SAFETY: the kernel reads the program, which outlives the call.
        let done = unsafe {
            libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, *flags, &raw const filter)
        };
        match c_int::try_from(done) {
            // SAFETY: the kernel has just opened this file descriptor, and nothing else owns it.
            Ok(fd) if done >= 0 => return Ok(listen.then(|| unsafe { OwnedFd::from_raw_fd(fd) })),
            _ => last = crate::process::last_errno(),
        }
    }
    Err(last)
}
