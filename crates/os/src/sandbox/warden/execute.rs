//! Starting programs, where only listed ones may be started.
//!
//! Landlock refuses every program file that is not listed; here the refusal is seen and said.
//! It also refuses what Landlock cannot: interpreters and the dynamic loader must be executable for the kernel to use
//! them, but called by hand they would start any file that can be read.

use super::place::{Last, Place};
use super::target::Target;
use super::{Answer, Question, SeccompNotifyContext};
use crate::sandbox::refused::Access;
use rustix::io::Errno;
use toolgate_proto::EntryKind;

/// `None` if the call is none of these.
pub(super) fn decide(keeps: &SeccompNotifyContext, target: &Target, question: Question) -> Option<Answer> {
    let (directory, address, flags) = match question.call {
        libc::SYS_execve => (libc::AT_FDCWD, question.word(0), 0),
        libc::SYS_execveat => (question.int(0), question.word(1), question.int(4)),
        _ => return None,
    };
    Some(execute(keeps, target, (directory, address, flags)).unwrap_or_else(Answer::Fail))
}

fn execute(
    keeps: &SeccompNotifyContext,
    target: &Target,
    (directory, address, flags): (i32, u64, i32),
) -> Result<Answer, Errno> {
    let Some(programs) = keeps.bounds.executable() else { return Ok(Answer::Go) };
    if flags & libc::AT_EMPTY_PATH != 0 {
        keeps.refuse(target, Access::Execute, "a file without a path");
        return Err(Errno::ACCESS);
    }
    let path = target.path(directory, address)?;
    let Some(place) = Place::of(&path, Last::Follow) else {
        keeps.refuse(target, Access::Execute, &path);
        return Err(Errno::ACCESS);
    };
    match place.kind {
        // The kernel says what is wrong; programs are looked for in several directories.
        EntryKind::Missing | EntryKind::Directory => Ok(Answer::Go),
        EntryKind::File if programs.contains(&place.real) => Ok(Answer::Go),
        EntryKind::File | EntryKind::Special => {
            keeps.refuse(target, Access::Execute, &place.real);
            Err(Errno::ACCESS)
        }
    }
}
