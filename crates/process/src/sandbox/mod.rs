//! The box that a command runs in: Landlock for files, TCP and signals, a system call filter for the rest, and a
//! warden for what neither can say.
//!
//! It needs no root, no namespaces and no helper program, so that it works in containers and on hardened hosts.
//! [`SandboxProfile`] says what a command may do; [`crate::process_id`] enters it on the way to the command.
//!
//! Three layers, each of which only takes away:
//! - **Landlock** (`files.rs`) knows directories. It cannot subtract, so exceptions are spelled out around.
//! - **The filter** (`filter.rs`, `calls.rs`) knows system calls and plain numbers. It cannot see paths.
//! - **The warden** (`warden/`) is a thread of toolgate that the kernel asks about the calls the filter marks. It
//!   reads the path once, resolves it itself, and makes the change itself or refuses, so that nothing the command
//!   does in between matters. It also sees what is refused, and can say so.
//!
//! What a machine lacks is known ([`SandboxEnforcement::missing`]), recorded, and with [`SandboxProfile::required`] a reason not to
//! run at all.

mod bubblewrap;
mod denials;
mod guard;
mod kernel_support;
mod landlock_rules;
mod limits;
mod mask;
mod path_access;
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
pub use guard::{FileGuard, PathGuard};
pub use kernel_support::{KernelSupport, MissingFeature};
pub use limits::ProcessLimits;
pub use mask::MaskSupport;
pub use seatbelt::build_seatbelt_profile;
pub use self_test::{SelfTest, run_self_test};

pub(crate) use denials::SandboxDenialLog;
pub(crate) use seccomp_notify::SeccompNotifyHandler;

use crate::process::{ExecFailure, ExecStep, FoundProgram, ProcessStartError};
use mask::FileMasks;
use path_access::SandboxPathAccess;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use seccomp_filter::BpfProgram;
use std::ffi::c_int;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd, RawFd};
use toolgate_proto::AbsPath;

/// What a command may do.
#[derive(Debug, Clone, Default)]
pub struct SandboxProfile {
    /// Trees in which it may write.
    pub writable: Vec<AbsPath>,
    /// Single entries that it may create, change and remove, with the directories on the way to them.
    pub entries: Vec<AbsPath>,
    /// Temporary directories of its own: writable, and nothing in them is guarded.
    pub private: Vec<AbsPath>,
    /// The only trees and files that it may read, beside the system's programs and libraries; `None` is everything
    /// that is not hidden.
    pub readable: Option<Vec<AbsPath>>,
    /// The only programs that it may execute; `None` is any.
    pub executable: Option<Vec<FoundProgram>>,
    /// Rules by name and pattern that hold while it runs.
    pub guard: FileGuard,
    /// Files that were granted by name: readable although they lie at or below an unreadable path.
    pub named: Vec<AbsPath>,
    /// What a command finds in a file that is hidden from it.
    pub withheld: WithheldFileMode,
    /// Paths that stay as they are inside those, whether they exist or not.
    pub protected: Vec<AbsPath>,
    /// Paths whose contents it may not read.
    pub unreadable: Vec<AbsPath>,
    /// What it may reach over the network.
    pub net: SandboxNetworkAccess,
    /// Sockets in the file system that it may connect to, or directories of them, beside those in writable ones.
    pub sockets: Vec<AbsPath>,
    /// How much of the machine it may use.
    pub limits: ProcessLimits,
    /// Who makes the box.
    pub backend: SandboxMechanism,
    /// Refuse to run where a part of this cannot be enforced.
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

/// What a command may reach over the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SandboxNetworkAccess {
    /// Nothing.
    #[default]
    None,
    /// This machine only: one port, or every port, and then it may listen as well.
    Loopback(Option<u16>),
    /// Everything.
    Full,
}

/// Who makes the box.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SandboxMechanism {
    /// toolgate itself, by what the kernel offers to everybody.
    #[default]
    Landlock,
    /// Bubblewrap, where it is installed.
    Bubblewrap,
}

/// What a running command is held to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SandboxEnforcement {
    /// What is refused is seen, and can be told.
    pub observed: bool,
    /// What this machine could not enforce.
    pub missing: Vec<MissingFeature>,
}

/// Everything that is needed to enter the box.
pub(crate) struct PreparedSandbox {
    /// What stands before the shell and its arguments.
    pub(crate) argv_prefix: Vec<String>,
    pub(crate) setup: SandboxSetup,
    pub(crate) notify_handler: Option<SeccompNotifyHandler>,
    pub(crate) enforced: SandboxEnforcement,
}

impl SandboxProfile {
    pub(crate) fn prepare(self) -> Result<PreparedSandbox, ProcessStartError> {
        match self.backend {
            SandboxMechanism::Landlock => self.prepare_landlock(),
            SandboxMechanism::Bubblewrap => self.prepare_bubblewrap(),
        }
    }

    fn prepare_bubblewrap(self) -> Result<PreparedSandbox, ProcessStartError> {
        let bounds = SandboxPathAccess::new(&self);
        let bubblewrap::BubblewrapCommand { argv, filter, missing } =
            bubblewrap::build_command(&bounds, self.net)?;
        self.check_required(&missing)?;
        let cage = SandboxSetup {
            ruleset: None,
            program: None,
            listener_socket: None,
            filter_file: Some(crate::process::dup_to_high_fd(filter)?),
            masks: None,
            limits: self.limits,
        };
        let enforced = SandboxEnforcement { observed: false, missing };
        Ok(PreparedSandbox { argv_prefix: argv, setup: cage, notify_handler: None, enforced })
    }

    fn check_required(&self, missing: &[MissingFeature]) -> Result<(), ProcessStartError> {
        if !self.required || missing.is_empty() {
            return Ok(());
        }
        let words: Vec<String> = missing.iter().map(ToString::to_string).collect();
        let message = format!(
            "the sandbox is required, and cannot enforce here: {}; `toolgate doctor` says more",
            words.join("; ")
        );
        Err(ProcessStartError { message, sandbox: true })
    }

    fn prepare_landlock(self) -> Result<PreparedSandbox, ProcessStartError> {
        let ground = KernelSupport::detect();
        let missing = ground.missing_features(&self);
        self.check_required(&missing)?;
        let unusable = |message: String| ProcessStartError { message, sandbox: true };
        let mut bounds = SandboxPathAccess::new(&self);
        let masks = FileMasks::new(&bounds.maskable_files(), MaskSupport::detect());
        if masks.is_some() {
            bounds.set_masked();
        }
        let ruleset = if ground.landlock > 0 {
            ruleset_cache::get_or_build_ruleset(&mut bounds, self.net, ground.seccomp_notify)
                .map_err(unusable)?
        } else {
            None
        };
        let setting = syscall_rules::SyscallRuleOptions {
            net: self.net,
            notify: ground.seccomp_notify,
            reads: bounds.needs_read_notify(),
            programs: bounds.executable().is_some(),
        };
        let program = ground.filter.then(|| syscall_rules::build_program(setting));
        let (messenger, warden) = if ground.seccomp_notify {
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
        let cage = SandboxSetup {
            ruleset,
            program,
            listener_socket: messenger,
            filter_file: None,
            masks,
            limits: self.limits,
        };
        let enforced = SandboxEnforcement { observed: ground.seccomp_notify, missing };
        Ok(PreparedSandbox { argv_prefix: Vec::new(), setup: cage, notify_handler: warden, enforced })
    }
}

/// The box as the command's process enters it.
pub(crate) struct SandboxSetup {
    ruleset: Option<OwnedFd>,
    program: Option<BpfProgram>,
    /// Where the filter's handle is sent for the warden.
    listener_socket: Option<OwnedFd>,
    /// The filter as a file, for a program that installs it itself.
    filter_file: Option<OwnedFd>,
    /// Hidden files that are covered.
    masks: Option<FileMasks>,
    limits: ProcessLimits,
}

impl SandboxSetup {
    pub(crate) fn raw_fds(&self) -> [Option<RawFd>; 3] {
        [&self.ruleset, &self.listener_socket, &self.filter_file]
            .map(|handle| handle.as_ref().map(AsRawFd::as_raw_fd))
    }

    /// The flags that the command's process must be cloned with.
    pub(crate) fn clone_flags(&self) -> c_int {
        self.masks.as_ref().map_or(0, FileMasks::clone_flags)
    }

    pub(crate) fn forget_fds(self) {
        for handle in [self.ruleset, self.listener_socket, self.filter_file].into_iter().flatten() {
            let _ = handle.into_raw_fd();
        }
    }

    /// Enters the box. INVARIANT: makes system calls and nothing else. The error is a step and an error number.
    pub(crate) fn apply(&self) -> Result<(), ExecFailure> {
        let failed = |step| move |errno| ExecFailure { step, errno };
        self.limits.apply().map_err(|errno| failed(ExecStep::Limits)(errno.raw_os_error()))?;
        if let Some(masks) = &self.masks {
            masks.apply().map_err(failed(ExecStep::FileSandbox))?;
        }
        // Bubblewrap needs the system administrator's privileges to set up, and drops them itself.
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
            if let (Some(messenger), Some(listener)) = (&self.listener_socket, listener) {
                seccomp_notify::send_listener(messenger.as_fd(), listener.as_fd())
                    .map_err(failed(ExecStep::SeccompListener))?;
            }
        }
        Ok(())
    }
}

/// Puts the filter where the next program looks for it.
#[expect(unsafe_code, reason = "dup2 to a number that nobody owns yet")]
fn dup_filter_fd(file: &OwnedFd) -> Result<(), c_int> {
    // SAFETY: plain numbers, in the new process's own table.
    match unsafe { libc::dup2(file.as_raw_fd(), bubblewrap::FILTER_FD) } {
        -1 => Err(crate::process::last_errno()),
        _ => Ok(()),
    }
}

#[expect(unsafe_code, reason = "landlock_restrict_self has no safe form that leaves the handle alone")]
fn restrict_self(ruleset: &OwnedFd) -> Result<(), c_int> {
    // SAFETY: plain numbers.
    match unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset.as_raw_fd(), 0) } {
        0 => Ok(()),
        _ => Err(crate::process::last_errno()),
    }
}

/// Installs a filter on this thread and everything it starts. With a listener, the kernel asks through it.
#[expect(unsafe_code, reason = "seccomp has no safe form")]
fn install_seccomp_filter(program: &BpfProgram, listen: bool) -> Result<Option<OwnedFd>, c_int> {
    use std::os::fd::FromRawFd;
    let filter = libc::sock_fprog {
        len: u16::try_from(program.len()).map_err(|_| libc::E2BIG)?,
        filter: program.as_ptr().cast_mut(),
    };
    // With the second flag a signal does not make a call that the warden already works on start over.
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
            // SAFETY: a handle that the kernel just made for us.
            Ok(fd) if done >= 0 => return Ok(listen.then(|| unsafe { OwnedFd::from_raw_fd(fd) })),
            _ => last = crate::process::last_errno(),
        }
    }
    Err(last)
}
