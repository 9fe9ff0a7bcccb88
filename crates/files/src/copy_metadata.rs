//! Copying a file's metadata to the file that replaces it.

use crate::replace::ChangeProblem;
use crate::sys;
use rustix::fs::Mode;
use rustix::io::Errno;
use std::ffi::CStr;
use std::os::fd::{AsFd, OwnedFd};

/// Copies mode, owner and extended attributes, as far as this process may.
///
/// An owner or attribute that needs privileges is skipped: the alternative is to refuse an edit of every file that
/// belongs to another user.
pub(crate) fn copy_metadata(old: &OwnedFd, new: &OwnedFd) -> Result<(), ChangeProblem> {
    let (old, new) = (old.as_fd(), new.as_fd());
    let (old_stat, new_stat) = (sys::fstat(old)?, sys::fstat(new)?);
    let mut mode = old_stat.st_mode & 0o7777;
    if (old_stat.st_uid, old_stat.st_gid) != (new_stat.st_uid, new_stat.st_gid) {
        match sys::fchown(new, old_stat.st_uid, old_stat.st_gid) {
            Ok(()) => {}
            // The new file belongs to this user, so the set-user-ID and set-group-ID bits would let other users run it as
            // this one.
            Err(Errno::PERM) => mode &= 0o777,
            Err(error) => return Err(error.into()),
        }
    }
    let names = match sys::list_xattrs(old) {
        Ok(names) => names,
        Err(Errno::OPNOTSUPP | Errno::PERM | Errno::RANGE) => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    for name in names.split_inclusive(|byte| *byte == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
        let copied = sys::get_xattr(old, name).and_then(|value| sys::set_xattr(new, name, &value));
        match copied {
            Ok(()) | Err(Errno::OPNOTSUPP | Errno::PERM | Errno::ACCESS | Errno::NODATA) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // Last, because the kernel clears the set-user-ID and set-group-ID bits when the owner changes.
    sys::fchmod(new, Mode::from_raw_mode(mode))?;
    Ok(())
}
