//! Masks: mounts that cover hidden files in a mount namespace of the command.
//!
//! Landlock has no deny rules: to hide one file it grants all its neighbours one by one, and a file that is created beside
//! it later has no rule, so that a program that was just built could not be executed.
//! Where a mount namespace is available (to root, or with a user namespace), a mount covers a hidden file instead, and
//! Landlock grants the directory as a whole. The seccomp notification handler refuses the same paths by name.

use rustix::io::Errno;
use rustix::thread::{CapabilitySet, capabilities};
use std::ffi::{CStr, CString, c_int};
use std::os::unix::ffi::OsStrExt;
use std::sync::OnceLock;
use toolgate_proto::AbsPath;

/// How a mount namespace can be created on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MaskSupport {
    /// With root's privileges.
    Privileged,
    /// Without privileges, together with a user namespace.
    UserNamespace,
    /// Not at all: hidden files become exceptions in the Landlock rules.
    Absent,
}

impl MaskSupport {
    /// Tried once per process, in a child process.
    pub fn detect() -> Self {
        static DETECTED: OnceLock<MaskSupport> = OnceLock::new();
        *DETECTED.get_or_init(|| {
            let privileged =
                capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::SYS_ADMIN));
            let wanted = if privileged { Self::Privileged } else { Self::UserNamespace };
            if try_in_child(wanted) { wanted } else { Self::Absent }
        })
    }
}

/// The mounts that cover hidden files, prepared for a process that may only make system calls.
#[derive(Debug)]
pub(super) struct FileMasks {
    /// How the mount namespace is created.
    support: MaskSupport,
    /// Covered by `/dev/null`.
    files: Vec<CString>,
    /// Covered by an empty tmpfs.
    directories: Vec<CString>,
    /// The content of `/proc/self/uid_map`: this user has the same id inside the user namespace.
    user_map: CString,
    /// The content of `/proc/self/gid_map`.
    group_map: CString,
}

impl FileMasks {
    /// `None` if there is nothing to cover, or no mount namespace.
    pub(super) fn new(paths: &[AbsPath], support: MaskSupport) -> Option<Self> {
        if paths.is_empty() || support == MaskSupport::Absent {
            return None;
        }
        let (mut files, mut directories) = (Vec::new(), Vec::new());
        for path in paths {
            let text = CString::new(path.as_path().as_os_str().as_bytes()).ok()?;
            match std::fs::symlink_metadata(path.as_path()) {
                Ok(meta) if meta.is_dir() => directories.push(text),
                Ok(_) => files.push(text),
                // A missing path cannot be covered; the seccomp notification handler refuses to create it.
                Err(_) => {}
            }
        }
        let user = rustix::process::geteuid().as_raw();
        let group = rustix::process::getegid().as_raw();
        Some(Self {
            support,
            files,
            directories,
            user_map: CString::new(format!("{user} {user} 1")).ok()?,
            group_map: CString::new(format!("{group} {group} 1")).ok()?,
        })
    }

    /// The flags that the command's process must be cloned with.
    pub(super) fn clone_flags(&self) -> c_int {
        match self.support {
            MaskSupport::UserNamespace => libc::CLONE_NEWUSER | libc::CLONE_NEWNS,
            MaskSupport::Privileged | MaskSupport::Absent => 0,
        }
    }

    /// Mounts the masks. INVARIANT: makes system calls and nothing else.
    pub(super) fn apply(&self) -> Result<(), c_int> {
        const MASK_MOUNT_FLAGS: u64 = libc::MS_NODEV | libc::MS_NOSUID | libc::MS_NOEXEC | libc::MS_RDONLY;
        match self.support {
            MaskSupport::Privileged => unshare_mounts()?,
            MaskSupport::UserNamespace => {
                write_file(c"/proc/self/setgroups", c"deny")?;
                write_file(c"/proc/self/uid_map", &self.user_map)?;
                write_file(c"/proc/self/gid_map", &self.group_map)?;
            }
            MaskSupport::Absent => return Ok(()),
        }
        mount(None, c"/", None, libc::MS_REC | libc::MS_PRIVATE)?;
        for file in &self.files {
            // A device on a mount with `nodev` cannot be opened, so that reading the file fails.
            mount(Some(c"/dev/null"), file, None, libc::MS_BIND)?;
            mount(None, file, None, libc::MS_REMOUNT | libc::MS_BIND | MASK_MOUNT_FLAGS)?;
        }
        for directory in &self.directories {
            mount(Some(c"none"), directory, Some(c"tmpfs"), MASK_MOUNT_FLAGS)?;
        }
        Ok(())
    }
}

/// Gives this process a mount namespace of its own.
#[expect(unsafe_code, reason = "unshare has no safe form here")]
fn unshare_mounts() -> Result<(), c_int> {
    // SAFETY: changes the mount namespace of this process, and no memory.
    match unsafe { libc::unshare(libc::CLONE_NEWNS) } {
        0 => Ok(()),
        _ => Err(crate::process::last_errno()),
    }
}

/// `mount` without data.
#[expect(unsafe_code, reason = "mount has no safe form here")]
fn mount(source: Option<&CStr>, target: &CStr, kind: Option<&CStr>, flags: u64) -> Result<(), c_int> {
    let pointer = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: every pointer is null or points to a NUL-terminated string that outlives the call.
    let done =
        unsafe { libc::mount(pointer(source), target.as_ptr(), pointer(kind), flags, std::ptr::null()) };
    if done == 0 { Ok(()) } else { Err(crate::process::last_errno()) }
}

/// Writes a file of `/proc` in one call, as user namespace maps require.
fn write_file(path: &CStr, text: &CStr) -> Result<(), c_int> {
    use rustix::fs::{CWD, Mode, OFlags, openat};
    let number = |errno: Errno| errno.raw_os_error();
    let file = openat(CWD, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()).map_err(number)?;
    rustix::io::write(&file, text.to_bytes()).map(|_| ()).map_err(number)
}

/// Whether a child process can create a mount namespace and mount a mask.
#[expect(unsafe_code, reason = "fork has no safe form")]
fn try_in_child(support: MaskSupport) -> bool {
    let masks = FileMasks {
        support,
        files: vec![CString::from(c"/dev/null")],
        directories: Vec::new(),
        user_map: CString::new(format!("{0} {0} 1", rustix::process::geteuid().as_raw())).unwrap_or_default(),
        group_map: CString::new(format!("{0} {0} 1", rustix::process::getegid().as_raw()))
            .unwrap_or_default(),
    };
    let flags = i64::from(masks.clone_flags() | libc::SIGCHLD);
    // SAFETY: without CLONE_VM the child has a copy of the memory; it makes system calls and exits.
    unsafe {
        let pid = libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0);
        if pid == 0 {
            let code = i32::from(masks.apply().is_err());
            libc::_exit(code);
        }
        let Ok(pid) = libc::pid_t::try_from(pid) else { return false };
        if pid < 0 {
            return false;
        }
        let mut status = 0;
        while libc::waitpid(pid, &raw mut status, 0) < 0 {
            if Errno::from_io_error(&std::io::Error::last_os_error()) != Some(Errno::INTR) {
                return false;
            }
        }
        libc::WIFEXITED(status) && libc::WEXITSTATUS(status) == 0
    }
}
