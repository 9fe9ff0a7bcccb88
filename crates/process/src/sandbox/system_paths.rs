//! What every program needs of the system: where programs and libraries lie, and the files they look things up in.

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, statat};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use toolgate_proto::{AbsPath, EntryKind};

/// How long handles are kept. They are looked up anew after that, because files are made and replaced; until then a
/// command is started without sixty look-ups.
const CACHE_TTL: Duration = Duration::from_secs(2);

/// Trees that a command whose reads are limited may read all the same.
/// No user keeps anything of their own there, and secrets of the system lie elsewhere (`/etc/shadow`, `/var`).
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

/// Files and trees of `/etc` likewise. Listed one by one: `/etc` also holds password hashes and private keys.
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

/// Directories beside a program's own that hold what it is made of.
pub(super) const INSTALLED_BESIDE: &[&str] = &["lib", "lib64", "libexec", "share", "include"];

/// A file or tree of the system, held open only to name it.
#[derive(Debug)]
pub(super) struct SystemPathFd {
    pub(super) handle: OwnedFd,
    pub(super) kind: FileType,
}

/// Every file and tree of the system that a command whose reads are limited may read.
pub(super) fn open_system_paths() -> Arc<Vec<SystemPathFd>> {
    static CACHE: Mutex<Option<(Instant, Arc<Vec<SystemPathFd>>)>> = Mutex::new(None);
    let mut kept = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    match &*kept {
        Some((since, handles)) if since.elapsed() < CACHE_TTL => Arc::clone(handles),
        Some(_) | None => {
            let handles = Arc::new(open_readable_paths());
            *kept = Some((Instant::now(), Arc::clone(&handles)));
            handles
        }
    }
}

/// Everything but these paths, from the root down: the other entries of each directory on the way to one.
pub(super) fn open_paths_except(exceptions: &[AbsPath]) -> Vec<SystemPathFd> {
    let mut out = Vec::new();
    let mut ahead = vec![AbsPath::root()];
    while let Some(directory) = ahead.pop() {
        // What cannot be listed here cannot be reached by the command either.
        let Ok(entries) = std::fs::read_dir(directory.as_path()) else { continue };
        for entry in entries.flatten() {
            let path = directory.join(entry.file_name());
            if exceptions.contains(&path) {
                continue;
            }
            if exceptions.iter().any(|exception| exception.is_under(&path)) {
                ahead.push(path);
            } else if !entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
                // A symlink leads to a place that has its own handle, or none.
                out.extend(open_path_fd(&path));
            }
        }
    }
    out
}

fn open_path_fd(path: &AbsPath) -> Option<SystemPathFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let handle = openat(CWD, path.as_path(), flags, Mode::empty()).ok()?;
    let stat = statat(&handle, c"", AtFlags::EMPTY_PATH).ok()?;
    Some(SystemPathFd { handle, kind: FileType::from_raw_mode(stat.st_mode) })
}

fn open_readable_paths() -> Vec<SystemPathFd> {
    let mut known: Vec<AbsPath> = Vec::new();
    let mut out = Vec::new();
    for path in READABLE_TREES.iter().chain(READABLE_CONFIGURATION) {
        let fact = toolgate_files::resolve(&AbsPath::root().join(path));
        let there = fact.problem.is_none() && fact.kind != EntryKind::Missing;
        // What lies below another one is granted with it (`/bin` is `/usr/bin` on most systems).
        if !there || known.iter().any(|tree| fact.real.is_under(tree)) {
            continue;
        }
        out.extend(open_path_fd(&fact.real));
        known.push(fact.real);
    }
    out
}
