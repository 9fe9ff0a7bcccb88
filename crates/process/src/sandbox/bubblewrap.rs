//! The sandbox by Bubblewrap, for users who prefer namespaces and for kernels without Landlock.
//!
//! It needs the program `bwrap` and user namespaces, and takes longer to start.
//! Bubblewrap installs the seccomp filter, but there is no seccomp notification handler: refused accesses are not
//! recorded, and a protected path that does not exist cannot be protected.

use super::seccomp_filter::{BpfProgram, SeccompAction, assemble_seccomp_filter};
use super::syscall_rules::{SyscallRuleOptions, build_rules};
use super::{MissingFeature, ProcessStartError, SandboxNetworkAccess, SandboxPathAccess};
use rustix::fs::{MemfdFlags, memfd_create};
use std::ffi::c_long;
use std::io::{Seek, Write};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use toolgate_proto::AbsPath;

/// The file descriptor from which Bubblewrap reads the seccomp filter.
pub(super) const FILTER_FD: i32 = 251;

/// Where `bwrap` is looked for. Not in `PATH`, which may contain directories of the workspace.
const BWRAP_PATHS: [&str; 3] = ["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"];

/// Namespaces that are always new, and a read-only view of the file system.
const BASE_ARGS: [&str; 15] = [
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--die-with-parent",
    "--cap-drop",
    "ALL",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
];

/// The start of a command line that runs its rest in a sandbox.
pub(super) struct BubblewrapCommand {
    /// `bwrap` and its options, up to `--`.
    pub(super) argv: Vec<String>,
    /// The filter, for [`FILTER_FD`].
    pub(super) filter: OwnedFd,
    /// What Bubblewrap cannot enforce of the profile.
    pub(super) missing: Vec<MissingFeature>,
}

/// The `bwrap` command line for some path rights and network access.
pub(super) fn build_command(
    bounds: &SandboxPathAccess,
    net: SandboxNetworkAccess,
) -> Result<BubblewrapCommand, ProcessStartError> {
    let unusable = |message: String| ProcessStartError { message, sandbox: true };
    let bwrap = find_working_bwrap().as_ref().map_err(|problem| unusable(problem.clone()))?;
    if let SandboxNetworkAccess::Loopback(Some(_)) = net {
        let message = "bubblewrap cannot restrict the network to some hosts; \
                       set `sandbox.backend` to `landlock`, or remove `sandbox.network.allowedDomains`";
        return Err(unusable(message.to_owned()));
    }
    let mut argv: Vec<String> = std::iter::once(*bwrap).chain(BASE_ARGS).map(str::to_owned).collect();
    if net != SandboxNetworkAccess::Full {
        argv.push("--unshare-net".to_owned());
    }
    let mut missing = Vec::new();
    add_mounts(bounds, &mut argv, &mut missing);
    argv.extend(["--seccomp".to_owned(), FILTER_FD.to_string(), "--".to_owned()]);
    // A network namespace keeps the command from the ports of others, but not from Unix sockets in the file system.
    let dropped_calls: &[c_long] = if net == SandboxNetworkAccess::None {
        &[]
    } else {
        missing.push(MissingFeature::Sockets);
        &[libc::SYS_connect, libc::SYS_bind]
    };
    let options = SyscallRuleOptions {
        net: if net == SandboxNetworkAccess::None {
            SandboxNetworkAccess::None
        } else {
            SandboxNetworkAccess::Full
        },
        notify: false,
        reads: false,
        programs: false,
    };
    let mut table = build_rules(options);
    table.retain(|rule| rule.action == SeccompAction::Allow || !dropped_calls.contains(&rule.call));
    Ok(BubblewrapCommand { argv, filter: write_filter_file(&assemble_seccomp_filter(&table))?, missing })
}

/// Adds the mounts: writable trees, protected paths in them, and covers for unreadable paths. A later mount covers an
/// earlier one.
fn add_mounts(bounds: &SandboxPathAccess, argv: &mut Vec<String>, missing: &mut Vec<MissingFeature>) {
    for path in bounds.writable().chain(&find_parents_of_protected(bounds)) {
        argv.extend(["--bind".to_owned(), path.to_string(), path.to_string()]);
    }
    for path in bounds.write_protected() {
        if path.as_path().exists() {
            argv.extend(["--ro-bind".to_owned(), path.to_string(), path.to_string()]);
        } else if bounds.writable().any(|root| path.is_under(root))
            && !missing.contains(&MissingFeature::AbsentPaths)
        {
            missing.push(MissingFeature::AbsentPaths);
        }
    }
    for path in bounds.unreadable().iter().filter(|path| path.as_path().exists()) {
        let text = path.to_string();
        if path.as_path().is_dir() {
            argv.extend(["--tmpfs".to_owned(), text.clone(), "--remount-ro".to_owned(), text]);
        } else {
            argv.extend(["--ro-bind".to_owned(), "/dev/null".to_owned(), text]);
        }
    }
}

/// The directories between a writable tree and a protected path in it. Renaming one would move the protected path; a
/// mount point cannot be renamed.
fn find_parents_of_protected(bounds: &SandboxPathAccess) -> Vec<AbsPath> {
    let mut out = Vec::new();
    for path in bounds.write_protected() {
        let mut above = path.parent();
        while let Some(dir) = above {
            let inside = bounds.writable().any(|root| dir.is_under(root) && dir != *root);
            if inside && dir.as_path().is_dir() {
                out.push(dir.clone());
            }
            above = dir.parent().filter(|_| inside);
        }
    }
    // Parents first: a later mount of a parent would cover the mount of its child.
    out.sort();
    out.dedup();
    out
}

/// The filter as Bubblewrap reads it: the kernel's `sock_filter` structures in sequence.
fn write_filter_file(program: &BpfProgram) -> Result<OwnedFd, ProcessStartError> {
    let mut file = std::fs::File::from(memfd_create("toolgate-filter", MemfdFlags::CLOEXEC)?);
    for instruction in program {
        let mut bytes = instruction.code.to_ne_bytes().to_vec();
        bytes.extend([instruction.jt, instruction.jf]);
        bytes.extend(instruction.k.to_ne_bytes());
        file.write_all(&bytes)?;
    }
    file.rewind()?;
    Ok(file.into())
}

/// Whether Bubblewrap is installed and works.
///
/// # Errors
/// Returns the reason for the user.
pub fn check_bubblewrap() -> Result<(), String> {
    find_working_bwrap().as_ref().map(|_| ()).map_err(Clone::clone)
}

/// The path of `bwrap` if it works, tried once per process.
fn find_working_bwrap() -> &'static Result<&'static str, String> {
    static WORKING_BWRAP: OnceLock<Result<&'static str, String>> = OnceLock::new();
    WORKING_BWRAP.get_or_init(|| {
        let found = BWRAP_PATHS.into_iter().find(|place| std::path::Path::new(place).exists());
        let bwrap = found.ok_or("bubblewrap is not installed")?;
        let tried =
            Command::new(bwrap).args(BASE_ARGS).args(["--", "/bin/true"]).stdin(Stdio::null()).output();
        match tried {
            Ok(done) if done.status.success() => Ok(bwrap),
            Ok(done) => Err(format!(
                "bubblewrap does not work on this machine: {}",
                crate::process::to_plain_text(&done.stderr).trim()
            )),
            Err(error) => Err(format!("bubblewrap does not start on this machine: {error}")),
        }
    })
}
