//! Starting programs, where only listed ones may be started.
//!
//! Landlock refuses every program file that is not listed; here the refusal is seen and said.
//! It also refuses what Landlock cannot: interpreters and the dynamic loader must be executable for the kernel to use
//! them, but called by hand they would start any file that can be read.

use super::caller_thread::CallerThread;
use super::syscall_path::{FinalSymlink, SyscallPath};
use super::{SeccompNotification, SeccompNotifyContext, SeccompResponse};
use crate::sandbox::denials::SandboxAccess;
use rustix::io::Errno;
use toolgate_proto::EntryKind;

/// `None` if the call is none of these.
pub(super) fn decide(
    keeps: &SeccompNotifyContext,
    target: &CallerThread,
    question: SeccompNotification,
) -> Option<SeccompResponse> {
    let (directory, address, flags) = match question.call {
        libc::SYS_execve => (libc::AT_FDCWD, question.argument(0), 0),
        libc::SYS_execveat => (question.int_argument(0), question.argument(1), question.int_argument(4)),
        _ => return None,
    };
    Some(execute(keeps, target, (directory, address, flags)).unwrap_or_else(SeccompResponse::Fail))
}

fn execute(
    keeps: &SeccompNotifyContext,
    target: &CallerThread,
    (directory, address, flags): (i32, u64, i32),
) -> Result<SeccompResponse, Errno> {
    let Some(programs) = keeps.bounds.executable() else { return Ok(SeccompResponse::Continue) };
    if flags & libc::AT_EMPTY_PATH != 0 {
        keeps.record_denial(target, SandboxAccess::Execute, "a file without a path");
        return Err(Errno::ACCESS);
    }
    let path = target.read_path(directory, address)?;
    let Some(place) = SyscallPath::of(&path, FinalSymlink::Follow) else {
        keeps.record_denial(target, SandboxAccess::Execute, &path);
        return Err(Errno::ACCESS);
    };
    match place.kind {
        // The kernel says what is wrong; programs are looked for in several directories.
        EntryKind::Missing | EntryKind::Directory => Ok(SeccompResponse::Continue),
        EntryKind::File if programs.contains(&place.real) => Ok(SeccompResponse::Continue),
        EntryKind::File | EntryKind::Special => {
            keeps.record_denial(target, SandboxAccess::Execute, &place.real);
            Err(Errno::ACCESS)
        }
    }
}
