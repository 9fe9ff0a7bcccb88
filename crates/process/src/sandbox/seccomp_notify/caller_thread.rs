//! The thread whose system call waits for a response: its arguments in memory, and its state in `/proc`.

use rustix::io::Errno;
use std::cell::OnceCell;
use std::fs::{self, File};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use toolgate_proto::AbsPath;

/// `PATH_MAX` of the kernel: a longer path fails with `ENAMETOOLONG`.
const MAX_PATH_BYTES: usize = 4096;
/// The smallest page size: a read within one page fails as a whole or not at all.
const PAGE_BYTES: u64 = 4096;

/// The thread that made a system call. Everything read here may belong to another thread with the same number, until the
/// notification is found to be still valid.
pub(super) struct CallerThread {
    /// The thread id, as toolgate sees it.
    thread: u32,
    /// `/proc/PID/status`, read at most once for each system call.
    status: OnceCell<String>,
}

impl CallerThread {
    pub(super) fn new(thread: u32) -> Self {
        Self { thread, status: OnceCell::new() }
    }

    /// A path below the thread's directory in `/proc`.
    fn proc_path(&self, name: &str) -> String {
        format!("/proc/{}/{name}", self.thread)
    }

    /// The path of a file descriptor of the caller in `/proc`, for opening the same file.
    pub(super) fn fd_path(&self, fd: i32) -> String {
        self.proc_path(&format!("fd/{fd}"))
    }

    /// The name of the thread, which the program can change.
    pub(super) fn program_name(&self) -> String {
        fs::read_to_string(self.proc_path("comm"))
            .map_or_else(|_| "?".to_owned(), |name| name.trim_end().to_owned())
    }

    /// The program file that it runs.
    pub(super) fn program_file(&self) -> Option<AbsPath> {
        fs::read_link(self.proc_path("exe")).ok().and_then(|path| AbsPath::new(path).ok())
    }

    /// Reads bytes of its memory.
    pub(super) fn read_bytes(&self, address: u64, count: usize) -> Result<Vec<u8>, Errno> {
        let memory = File::open(self.proc_path("mem")).map_err(|_| Errno::FAULT)?;
        let mut out = vec![0; count];
        memory.read_exact_at(&mut out, address).map_err(|_| Errno::FAULT)?;
        Ok(out)
    }

    /// Reads a NUL-terminated string of its memory.
    pub(super) fn read_string(&self, address: u64) -> Result<Vec<u8>, Errno> {
        if address == 0 {
            return Err(Errno::FAULT);
        }
        let memory = File::open(self.proc_path("mem")).map_err(|_| Errno::FAULT)?;
        let mut out = Vec::new();
        let mut at = address;
        while out.len() < MAX_PATH_BYTES {
            // Up to the end of the page: the next one may not be mapped.
            let count =
                usize::try_from(PAGE_BYTES - at % PAGE_BYTES).unwrap_or(1).min(MAX_PATH_BYTES - out.len());
            let mut chunk = vec![0; count];
            memory.read_exact_at(&mut chunk, at).map_err(|_| Errno::FAULT)?;
            if let Some(end) = chunk.iter().position(|byte| *byte == 0) {
                out.extend(chunk.get(..end).unwrap_or_default());
                return Ok(out);
            }
            at += count as u64;
            out.append(&mut chunk);
        }
        Err(Errno::NAMETOOLONG)
    }

    /// The directory that a relative path starts from.
    pub(super) fn base_directory(&self, directory: i32) -> Result<AbsPath, Errno> {
        let link = if directory == libc::AT_FDCWD { self.proc_path("cwd") } else { self.fd_path(directory) };
        let path = fs::read_link(link).map_err(|_| Errno::BADF)?;
        AbsPath::new(path).map_err(|_| Errno::NOTDIR)
    }

    /// A path argument, made absolute.
    pub(super) fn read_path(&self, directory: i32, address: u64) -> Result<AbsPath, Errno> {
        let text = self.read_string(address)?;
        if text.is_empty() {
            return Err(Errno::NOENT);
        }
        let path = PathBuf::from(std::ffi::OsString::from_vec(text));
        if path.is_absolute() {
            let path = self.resolve_own_proc_path(&path).unwrap_or(path);
            return AbsPath::new(path).map_err(|_| Errno::NOENT);
        }
        Ok(self.base_directory(directory)?.join(path))
    }

    /// Resolves a path through the caller's own `cwd`, `root` or `fd` in `/proc`, which means other directories for
    /// toolgate.
    fn resolve_own_proc_path(&self, path: &Path) -> Option<PathBuf> {
        let mut names = path.strip_prefix("/proc").ok()?.components();
        let owner = names.next()?.as_os_str().to_str()?;
        let own = self.thread.to_string();
        if !(owner == "self"
            || owner == "thread-self"
            || owner == own
            || Some(owner) == self.process_id_text())
        {
            return None;
        }
        let link = match names.next()?.as_os_str().to_str()? {
            name @ ("cwd" | "root") => self.proc_path(name),
            "fd" => self.proc_path(&format!("fd/{}", names.next()?.as_os_str().to_str()?)),
            _ => return None,
        };
        let rest = names.as_path();
        // The kernel follows the symlink itself; only a path below it is resolved here.
        (!rest.as_os_str().is_empty())
            .then(|| fs::read_link(link).ok())
            .flatten()
            .map(|start| start.join(rest))
    }

    /// The value of a line of `/proc/PID/status`.
    fn status_value(&self, name: &str) -> Option<&str> {
        let read = || fs::read_to_string(self.proc_path("status")).unwrap_or_default();
        let line = self.status.get_or_init(read).lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim_start_matches(':').trim())
    }

    /// The process id as `/proc` shows it.
    fn process_id_text(&self) -> Option<&str> {
        self.status_value("Tgid")
    }

    /// The process that the thread belongs to.
    pub(super) fn process_id(&self) -> Option<i32> {
        self.status_value("Tgid")?.parse().ok()
    }

    /// The umask; the strictest common one if it cannot be read.
    pub(super) fn umask(&self) -> u32 {
        self.status_value("Umask").and_then(|mask| u32::from_str_radix(mask, 8).ok()).unwrap_or(0o077)
    }

    /// Whether it has the user id of toolgate. If not, toolgate must not act on its behalf.
    pub(super) fn is_same_user(&self) -> bool {
        let mine = rustix::process::geteuid().as_raw().to_string();
        self.status_value("Uid").is_some_and(|ids| ids.split_whitespace().skip(1).all(|id| id == mine))
    }
}
