//! `execve` of a command that may execute only some programs.
//!
//! Landlock refuses every program file that is not listed; the handler records the refusal.
//! The handler also refuses what Landlock cannot: interpreters and the dynamic loader must be executable for the kernel
//! to use them, but executed directly they would run any file that can be read. Only `env` may execute the interpreter that
//! a script names.

use super::caller_thread::CallerThread;
use super::syscall_path::{FinalSymlink, SyscallPath};
use super::{SeccompNotification, SeccompNotifyContext, SeccompResponse};
use crate::sandbox::denials::SandboxAccess;
use rustix::io::Errno;
use toolgate_proto::EntryKind;

/// `None` if the call is none of these.
pub(super) fn decide_execute(
    context: &SeccompNotifyContext,
    caller: &CallerThread,
    notification: SeccompNotification,
) -> Option<SeccompResponse> {
    let (directory, address, flags) = match notification.call {
        libc::SYS_execve => (libc::AT_FDCWD, notification.argument(0), 0),
        libc::SYS_execveat => {
            (notification.int_argument(0), notification.argument(1), notification.int_argument(4))
        }
        _ => return None,
    };
    Some(execute(context, caller, (directory, address, flags)).unwrap_or_else(SeccompResponse::Fail))
}

/// Decides an `execve` by the resolved path of the program.
fn execute(
    context: &SeccompNotifyContext,
    caller: &CallerThread,
    (directory, address, flags): (i32, u64, i32),
) -> Result<SeccompResponse, Errno> {
    let Some(programs) = context.bounds.executable() else { return Ok(SeccompResponse::Continue) };
    if flags & libc::AT_EMPTY_PATH != 0 {
        context.record_denial(caller, SandboxAccess::Execute, "a file without a path");
        return Err(Errno::ACCESS);
    }
    let path = caller.read_path(directory, address)?;
    let Some(place) = SyscallPath::of(&path, FinalSymlink::Follow) else {
        context.record_denial(caller, SandboxAccess::Execute, &path);
        return Err(Errno::ACCESS);
    };
    match place.kind {
        // The kernel returns the right error; a shell tries a name in several directories.
        EntryKind::Missing | EntryKind::Directory => Ok(SeccompResponse::Continue),
        EntryKind::File if programs.contains(&place.real) => Ok(SeccompResponse::Continue),
        // The kernel started `env` for the `#!` line of a listed script, because nothing else can start it.
        EntryKind::File
            if caller
                .program_file()
                .is_some_and(|env| context.bounds.may_start_from_env(&env, &place.real)) =>
        {
            Ok(SeccompResponse::Continue)
        }
        EntryKind::File | EntryKind::Special => {
            context.record_denial(caller, SandboxAccess::Execute, &place.real);
            Err(Errno::ACCESS)
        }
    }
}
