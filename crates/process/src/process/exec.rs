//! The last steps of a new process before it becomes the command.
//!
//! INVARIANT: [`enter`] runs in memory shared with toolgate, so it makes system calls and nothing else.

use crate::sandbox::SandboxSetup;
use rustix::io::Errno;
use std::ffi::{CString, c_char, c_int};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::ptr::null;

/// Where the shell tells its working directory at its end. High, to be out of the way of the command's own.
pub(super) const CWD_REPORT_FD: RawFd = 250;

/// A command, ready to be executed.
pub(super) struct ExecRequest {
    argv: Vec<CString>,
    argv_pointers: Vec<*const c_char>,
    envp_pointers: Vec<*const c_char>,
    _envp: Vec<CString>,
    cwd: CString,
    /// Standard input.
    pub(super) stdin: OwnedFd,
    /// Standard output and error.
    pub(super) output: OwnedFd,
    /// For the report of the working directory.
    pub(super) cwd_report: OwnedFd,
    pub(super) sandbox: Option<SandboxSetup>,
}

impl ExecRequest {
    pub(super) fn new(
        argv: Vec<CString>,
        envp: Vec<CString>,
        cwd: CString,
        [stdin, output, cwd_report]: [OwnedFd; 3],
        sandbox: Option<SandboxSetup>,
    ) -> Self {
        let pointers =
            |texts: &[CString]| texts.iter().map(|text| text.as_ptr()).chain([null()]).collect::<Vec<_>>();
        Self {
            argv_pointers: pointers(&argv),
            envp_pointers: pointers(&envp),
            argv,
            _envp: envp,
            cwd,
            stdin,
            output,
            cwd_report,
            sandbox,
        }
    }

    /// The flags that the new process must be cloned with.
    pub(super) fn clone_flags(&self) -> c_int {
        self.sandbox.as_ref().map_or(0, SandboxSetup::clone_flags)
    }

    /// Every handle that the new process needs.
    pub(super) fn raw_fds(&self) -> [Option<RawFd>; 6] {
        let [ruleset, messenger, filter] = self.sandbox.as_ref().map_or([None; 3], SandboxSetup::raw_fds);
        [
            Some(self.stdin.as_raw_fd()),
            Some(self.output.as_raw_fd()),
            Some(self.cwd_report.as_raw_fd()),
            ruleset,
            messenger,
            filter,
        ]
    }

    /// Closes them in the keeper, once the command has its copies.
    #[expect(unsafe_code, reason = "closes handles by number, in the keeper's own table")]
    pub(super) fn close_fds(&self) {
        for fd in self.raw_fds().into_iter().flatten() {
            // SAFETY: the keeper's table is its own, and the keeper uses none of these again.
            unsafe { libc::close(fd) };
        }
    }

    /// Lets go of handles that were closed by number.
    pub(super) fn forget_fds(self) {
        for handle in [self.stdin, self.output, self.cwd_report] {
            let _ = handle.into_raw_fd();
        }
        if let Some(cage) = self.sandbox {
            cage.forget_fds();
        }
    }
}

// SAFETY: the pointers lead into the texts that travel with them, and those do not change.
#[expect(unsafe_code, reason = "raw pointers to its own texts")]
unsafe impl Send for ExecRequest {}

/// The step at which a start failed, for the message.
pub(super) fn describe_step(step: i32) -> &'static str {
    match step {
        0 => "a process could not be made",
        1 => "the standard streams could not be set up",
        2 => "the working directory could not be entered",
        3 => "the limits could not be set",
        4 => "the privileges could not be dropped",
        5 => "the file sandbox could not be entered",
        6 => "the system call filter could not be installed",
        7 => "the system call filter could not be handed over",
        _ => "the shell could not be executed",
    }
}

/// Becomes the command. Returns only if that fails: the step, and the error number.
#[expect(unsafe_code, reason = "exec and its preparation have no safe form")]
pub(super) fn exec_command(launch: &ExecRequest) -> (i32, c_int) {
    // SAFETY: this process has its own table of files and its own signal dispositions; all pointers lead to what
    // `Launch::new` prepared, and nothing here allocates.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        let streams = [
            (launch.stdin.as_raw_fd(), 0),
            (launch.output.as_raw_fd(), 1),
            (launch.output.as_raw_fd(), 2),
            (launch.cwd_report.as_raw_fd(), CWD_REPORT_FD),
        ];
        for (from, to) in streams {
            if libc::dup2(from, to) < 0 {
                return (1, last_errno());
            }
        }
        if libc::chdir(launch.cwd.as_ptr()) != 0 {
            return (2, last_errno());
        }
        // Programs expect the defaults; toolgate ignores SIGPIPE, and its host may ignore more.
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        if let Some(cage) = &launch.sandbox
            && let Err((step, errno)) = cage.apply()
        {
            return (step, errno);
        }
        let mut none = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        let Some(program) = launch.argv.first() else { return (8, libc::ENOENT) };
        libc::execve(program.as_ptr(), launch.argv_pointers.as_ptr(), launch.envp_pointers.as_ptr());
        (8, last_errno())
    }
}

pub(crate) fn last_errno() -> c_int {
    Errno::from_io_error(&std::io::Error::last_os_error()).map_or(libc::EIO, Errno::raw_os_error)
}
