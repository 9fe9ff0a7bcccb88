//! The system directories and files that every program needs: programs, libraries, and configuration without secrets.

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, statat};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use toolgate_proto::{AbsPath, EntryKind};

/// How long the opened paths are cached. Without a cache every command would open about sixty; without an expiry it would
/// miss files that are created or replaced.
const CACHE_TTL: Duration = Duration::from_secs(2);

/// Trees that a command with restricted reads may read.
/// Users keep no files there, and the system's secrets are elsewhere (`/etc/shadow`, `/var`).
pub(super) const READABLE_TREES: &[&str] = &[
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/opt",
    "/nix/store",
    "/snap",
    "/proc",
    "/sys",
    "/var/lib/dpkg",
    "/var/lib/rpm",
    "/var/lib/pacman/local",
    "/var/cache/man",
];

/// Files and trees of `/etc` that such a command may read. An allow-list, because `/etc` also has password hashes and
/// private keys.
pub(super) const READABLE_CONFIGURATION: &[&str] = &[
    "/etc/alternatives",
    "/etc/bash_completion.d",
    "/etc/ca-certificates",
    "/etc/debian_version",
    "/etc/dpkg",
    "/etc/fonts",
    "/etc/group",
    "/etc/host.conf",
    "/etc/hostname",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/java-17-openjdk",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/login.defs",
    "/etc/lsb-release",
    "/etc/magic",
    "/etc/magic.mime",
    "/etc/manpath.config",
    "/etc/man_db.conf",
    "/etc/mime.types",
    "/etc/mtab",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/tls/certs",
    "/etc/profile.d",
    "/etc/protocols",
    "/etc/python3",
    "/etc/resolv.conf",
    "/etc/rpc",
    "/etc/services",
    "/etc/shells",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
];

/// Directories beside a program's `bin` that have its libraries and data.
pub(super) const INSTALLED_BESIDE: &[&str] = &["lib", "lib64", "libexec", "share", "include"];

/// A file or tree of the system, opened with `O_PATH` for a Landlock rule.
#[derive(Debug)]
pub(super) struct SystemPathFd {
    /// Opened with `O_PATH`, which needs no right to read.
    pub(super) fd: OwnedFd,
    /// Directories take more Landlock rights than files.
    pub(super) kind: FileType,
}

/// Every file and tree of the system that a command with restricted reads may read.
pub(super) fn open_system_paths() -> Arc<Vec<SystemPathFd>> {
    static CACHE: Mutex<Option<(Instant, Arc<Vec<SystemPathFd>>)>> = Mutex::new(None);
    let mut cached = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    match &*cached {
        Some((since, paths)) if since.elapsed() < CACHE_TTL => Arc::clone(paths),
        Some(_) | None => {
            let paths = Arc::new(open_readable_paths());
            *cached = Some((Instant::now(), Arc::clone(&paths)));
            paths
        }
    }
}

/// Everything but these paths: the other entries of each directory from the root to one of them.
pub(super) fn open_paths_except(exceptions: &[AbsPath]) -> Vec<SystemPathFd> {
    let mut out = Vec::new();
    let mut pending = vec![AbsPath::root()];
    while let Some(directory) = pending.pop() {
        // A directory that toolgate cannot list, the command cannot use either.
        let Ok(entries) = std::fs::read_dir(directory.as_path()) else { continue };
        for entry in entries.flatten() {
            let path = directory.join(entry.file_name());
            if exceptions.contains(&path) {
                continue;
            }
            if exceptions.iter().any(|exception| exception.is_under(&path)) {
                pending.push(path);
            } else if !entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                // The target of a symlink has its own rule, or none.
                out.extend(open_path_fd(&path));
            }
        }
    }
    out
}

/// Opens a path with `O_PATH`; `None` if it does not exist.
fn open_path_fd(path: &AbsPath) -> Option<SystemPathFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let fd = openat(CWD, path.as_path(), flags, Mode::empty()).ok()?;
    let stat = statat(&fd, c"", AtFlags::EMPTY_PATH).ok()?;
    Some(SystemPathFd { fd, kind: FileType::from_raw_mode(stat.st_mode) })
}

/// Opens every path of both lists that exists, once.
fn open_readable_paths() -> Vec<SystemPathFd> {
    let mut known: Vec<AbsPath> = Vec::new();
    let mut out = Vec::new();
    for path in READABLE_TREES.iter().chain(READABLE_CONFIGURATION) {
        let fact = toolgate_files::resolve(&AbsPath::root().join(path));
        let exists = fact.problem.is_none() && fact.kind != EntryKind::Missing;
        // A path below another one is granted with it (`/bin` is `/usr/bin` on most systems).
        if !exists || known.iter().any(|tree| fact.real.is_under(tree)) {
            continue;
        }
        out.extend(open_path_fd(&fact.real));
        known.push(fact.real);
    }
    out
}
