//! The last steps of a new process before it executes its program.
//!
//! INVARIANT: [`exec_program`] runs in memory shared with toolgate, so it makes system calls and nothing else.

use crate::sandbox::SandboxSetup;
use rustix::io::Errno;
use std::ffi::{CStr, CString, c_char, c_int};
use std::io;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::ptr::null;

/// The file descriptor on which bash reports its working directory at its exit.
/// High, because commands use low numbers for redirections of their own.
pub(super) const CWD_REPORT_FD: RawFd = 250;

/// The interpreter of an executable file that is neither a binary nor starts with `#!`, as `execvp` chooses it.
const SCRIPT_SHELL: &CStr = c"/bin/sh";

/// The file descriptors that a new process gets, as toolgate holds them: all above [`CWD_REPORT_FD`], so that `dup2`
/// to the standard streams overwrites none of them.
pub(super) struct ChildStdio {
    /// Becomes standard input.
    pub(super) stdin: OwnedFd,
    /// Becomes standard output.
    pub(super) stdout: OwnedFd,
    /// Becomes standard error; `None` sends it to standard output, which keeps the order of both.
    pub(super) stderr: Option<OwnedFd>,
    /// Becomes [`CWD_REPORT_FD`].
    pub(super) cwd_report: Option<OwnedFd>,
}

/// A program ready to be executed: everything that needs memory was allocated before the process is cloned.
pub(super) struct ExecRequest {
    /// The file to execute; relative to `cwd`.
    program: CString,
    /// Owns the strings of `argv_pointers`. The first one is the name that the program sees.
    argv: Vec<CString>,
    /// `argv` for `execve`, with a null pointer at the end.
    argv_pointers: Vec<*const c_char>,
    /// The arguments for [`SCRIPT_SHELL`] when the kernel does not know the format of `program`.
    script_argv_pointers: Vec<*const c_char>,
    /// Owns the strings of `envp_pointers`.
    envp: Vec<CString>,
    /// `envp` for `execve`, with a null pointer at the end.
    envp_pointers: Vec<*const c_char>,
    /// The working directory, entered before the sandbox, so that it need not be readable in it.
    cwd: CString,
    stdio: ChildStdio,
    /// Entered last, because the steps before it need system calls that the sandbox refuses.
    sandbox: Option<SandboxSetup>,
}

impl ExecRequest {
    /// Prepares the pointers that `execve` needs.
    pub(super) fn new(
        program: CString,
        argv: Vec<CString>,
        envp: Vec<CString>,
        cwd: CString,
        stdio: ChildStdio,
        sandbox: Option<SandboxSetup>,
    ) -> Self {
        let mut request = Self {
            program,
            argv,
            argv_pointers: Vec::new(),
            script_argv_pointers: Vec::new(),
            envp,
            envp_pointers: Vec::new(),
            cwd,
            stdio,
            sandbox,
        };
        // A `CString` keeps its bytes on the heap, so that these pointers stay valid when `request` moves.
        let pointers = |texts: &[CString]| texts.iter().map(|text| text.as_ptr()).chain([null()]).collect();
        request.argv_pointers = pointers(&request.argv);
        request.envp_pointers = pointers(&request.envp);
        request.script_argv_pointers = [SCRIPT_SHELL.as_ptr(), request.program.as_ptr()]
            .into_iter()
            .chain(request.argv_pointers.iter().skip(1).copied())
            .collect();
        request
    }

    /// The flags that the new process must be cloned with.
    pub(super) fn clone_flags(&self) -> c_int {
        self.sandbox.as_ref().map_or(0, SandboxSetup::clone_flags)
    }

    /// Every file descriptor that the new process needs.
    pub(super) fn raw_fds(&self) -> [Option<RawFd>; 7] {
        let [ruleset, listener_socket, filter] =
            self.sandbox.as_ref().map_or([None; 3], SandboxSetup::raw_fds);
        [
            Some(self.stdio.stdin.as_raw_fd()),
            Some(self.stdio.stdout.as_raw_fd()),
            self.stdio.stderr.as_ref().map(AsRawFd::as_raw_fd),
            self.stdio.cwd_report.as_ref().map(AsRawFd::as_raw_fd),
            ruleset,
            listener_socket,
            filter,
        ]
    }

    /// Closes them in the supervisor, once the program has its copies.
    #[expect(unsafe_code, reason = "closes file descriptors by number, in the supervisor's own table")]
    pub(super) fn close_fds(&self) {
        for fd in self.raw_fds().into_iter().flatten() {
            // SAFETY: the supervisor has its own file descriptor table, and uses none of these again.
            unsafe { libc::close(fd) };
        }
    }

    /// Gives up the ownership of file descriptors that were closed by number.
    pub(super) fn forget_fds(self) {
        let ChildStdio { stdin, stdout, stderr, cwd_report } = self.stdio;
        for fd in [Some(stdin), Some(stdout), stderr, cwd_report].into_iter().flatten() {
            let _ = fd.into_raw_fd();
        }
        if let Some(sandbox) = self.sandbox {
            sandbox.forget_fds();
        }
    }
}

// SAFETY: the pointers point into the `CString`s that move with them and are never changed, or to a constant.
#[expect(unsafe_code, reason = "raw pointers into its own strings")]
unsafe impl Send for ExecRequest {}

/// The steps between the clone of a process and the execution of its program, each of which can fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExecStep {
    /// Cloning the process.
    Clone,
    /// Moving the pipes to the standard streams.
    Stdio,
    /// Entering the working directory.
    WorkingDirectory,
    /// Setting the resource limits.
    Limits,
    /// Dropping privileges.
    Privileges,
    /// Mounting the masks, and restricting itself with Landlock.
    FileSandbox,
    /// Installing the seccomp filter.
    SeccompFilter,
    /// Sending the filter's listener to the seccomp notification handler.
    SeccompListener,
    /// Executing the program.
    Exec,
}

impl ExecStep {
    /// Every step, in the order in which they are made.
    const ALL: [Self; 9] = [
        Self::Clone,
        Self::Stdio,
        Self::WorkingDirectory,
        Self::Limits,
        Self::Privileges,
        Self::FileSandbox,
        Self::SeccompFilter,
        Self::SeccompListener,
        Self::Exec,
    ];

    /// The number that stands for it in a message of the supervisor.
    pub(super) fn to_number(self) -> i32 {
        self as i32
    }

    /// The step of a number; `None` if the number is not one of a step.
    pub(super) fn from_number(number: i32) -> Option<Self> {
        Self::ALL.into_iter().find(|step| step.to_number() == number)
    }

    /// The sandbox is what failed.
    pub(super) fn is_sandbox(self) -> bool {
        match self {
            Self::Limits
            | Self::Privileges
            | Self::FileSandbox
            | Self::SeccompFilter
            | Self::SeccompListener => true,
            Self::Clone | Self::Stdio | Self::WorkingDirectory | Self::Exec => false,
        }
    }
}

impl std::fmt::Display for ExecStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Clone => "the process could not be created",
            Self::Stdio => "the standard streams could not be set up",
            Self::WorkingDirectory => "the working directory could not be entered",
            Self::Limits => "the resource limits could not be set",
            Self::Privileges => "the privileges could not be dropped",
            Self::FileSandbox => "the file sandbox could not be entered",
            Self::SeccompFilter => "the seccomp filter could not be installed",
            Self::SeccompListener => "the seccomp listener could not be sent to its handler",
            Self::Exec => "the program could not be executed",
        })
    }
}

/// Why a new process did not become its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExecFailure {
    /// The step that failed.
    pub(crate) step: ExecStep,
    /// The error number of its system call.
    pub(crate) errno: c_int,
}

impl std::fmt::Display for ExecFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.step, io::Error::from_raw_os_error(self.errno))
    }
}

/// Executes the program in this process. Returns only if that fails.
#[expect(unsafe_code, reason = "exec and its preparation have no safe form")]
pub(super) fn exec_program(request: &ExecRequest) -> ExecFailure {
    let failed = |step| ExecFailure { step, errno: last_errno() };
    // SAFETY: this process has its own file descriptor table and signal dispositions; all pointers point into what
    // `ExecRequest::new` prepared, and nothing here allocates.
    unsafe {
        libc::setsid();
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        let stdio = &request.stdio;
        let stderr = stdio.stderr.as_ref().unwrap_or(&stdio.stdout);
        let streams = [
            (Some(&stdio.stdin), 0),
            (Some(&stdio.stdout), 1),
            (Some(stderr), 2),
            (stdio.cwd_report.as_ref(), CWD_REPORT_FD),
        ];
        for (from, to) in streams {
            if let Some(from) = from
                && libc::dup2(from.as_raw_fd(), to) < 0
            {
                return failed(ExecStep::Stdio);
            }
        }
        if libc::chdir(request.cwd.as_ptr()) != 0 {
            return failed(ExecStep::WorkingDirectory);
        }
        // Programs expect the defaults; toolgate ignores SIGPIPE, and the program that embeds it may ignore more.
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        if let Some(sandbox) = &request.sandbox
            && let Err(failure) = sandbox.apply()
        {
            return failure;
        }
        let mut none = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        let envp = request.envp_pointers.as_ptr();
        libc::execve(request.program.as_ptr(), request.argv_pointers.as_ptr(), envp);
        if last_errno() == libc::ENOEXEC {
            libc::execve(SCRIPT_SHELL.as_ptr(), request.script_argv_pointers.as_ptr(), envp);
        }
        failed(ExecStep::Exec)
    }
}

/// The error number of the last failed system call of this thread.
pub(crate) fn last_errno() -> c_int {
    Errno::from_io_error(&io::Error::last_os_error()).map_or(libc::EIO, Errno::raw_os_error)
}
