//! The Landlock rules of a command: an allow-list of directories and files.
//!
//! Landlock has no deny rules, so "everything but this" becomes one rule for each neighbour: every directory on the way
//! to an exception is listed, and its other entries are granted one by one.
//! An entry that is created in such a directory later has no rule; the seccomp notification handler opens it on behalf
//! of the command.

use super::SandboxNetworkAccess;
use super::path_access::SandboxPathAccess;
use super::resolve_paths::DeviceInode;
use super::system_paths::{
    INSTALLED_BESIDE, READABLE_TREES, SystemPathFd, open_paths_except, open_system_paths,
};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, Scope, make_bitflags,
};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, statat};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use toolgate_proto::AbsPath;

/// The newest Landlock ABI that is requested. On older kernels the rules are best-effort, and
/// [`super::MissingFeature`] lists what they lack.
const MAX_LANDLOCK_ABI: ABI = ABI::V6;

/// Devices that every command may use.
const ALLOWED_DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Builds the Landlock ruleset of a command. `None` if the kernel has no Landlock.
///
/// With a seccomp notification handler, only the private directories are writable by Landlock: the handler makes every
/// other change on behalf of the command, after a check of the real path. So rules by name apply to files that do not
/// exist yet, and there is no TOCTOU race between the check and the change.
pub(super) fn build_ruleset(
    bounds: &mut SandboxPathAccess,
    net: SandboxNetworkAccess,
    has_notify_handler: bool,
) -> Result<Option<OwnedFd>, String> {
    let to_message = |error: landlock::RulesetError| error.to_string();
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(MAX_LANDLOCK_ABI))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(MAX_LANDLOCK_ABI)))
        .map_err(to_message)?;
    if net != SandboxNetworkAccess::Full {
        ruleset = ruleset.handle_access(AccessNet::from_all(MAX_LANDLOCK_ABI)).map_err(to_message)?;
    }
    let hidden = bounds.hidden_files().clone();
    let mut builder = LandlockRulesetBuilder { ruleset: ruleset.create().map_err(to_message)?, hidden };
    builder.grant_reads(bounds, has_notify_handler)?;
    builder.grant_programs(bounds)?;
    builder.grant_writes(bounds, has_notify_handler)?;
    for device in ALLOWED_DEVICES {
        builder.grant(&to_absolute(device), make_bitflags!(AccessFs::{ReadFile | WriteFile | IoctlDev}))?;
    }
    Ok(builder.ruleset.into())
}

fn to_absolute(path: &str) -> AbsPath {
    AbsPath::root().join(path)
}

/// Whether a path is in one of the trees that every command may read.
fn is_in_system_tree(path: &AbsPath) -> bool {
    READABLE_TREES.iter().any(|tree| path.is_under(&to_absolute(tree)))
}

/// Adds rules to a ruleset.
struct LandlockRulesetBuilder {
    ruleset: RulesetCreated,
    /// Hidden files: a hard link to one gets no rule either.
    hidden: HashSet<DeviceInode>,
}

impl LandlockRulesetBuilder {
    /// Rules for reading: everything but the hidden paths, or only the readable ones.
    fn grant_reads(
        &mut self,
        bounds: &mut SandboxPathAccess,
        has_notify_handler: bool,
    ) -> Result<(), String> {
        let read = make_bitflags!(AccessFs::{ReadFile | ReadDir});
        let mut granted = Vec::new();
        match bounds.readable() {
            None if bounds.landlock_exceptions().is_empty() => self.grant(&AbsPath::root(), read)?,
            None => {
                // Names stay visible, contents do not: shell patterns fail in a directory that cannot be listed.
                self.grant(&AbsPath::root(), AccessFs::ReadDir.into())?;
                let exceptions = bounds.landlock_exceptions();
                let inside = |path: &AbsPath| bounds.writable().any(|root| path.is_under(root));
                if exceptions.iter().any(inside) {
                    self.grant_all_except(&AbsPath::root(), &exceptions, read, &mut granted)?;
                } else {
                    for SystemPathFd { fd, kind } in open_paths_except(&exceptions).iter() {
                        self.add_rule(fd.as_fd(), *kind, read)?;
                    }
                    // The writable trees may have been created after `open_paths_except` cached its list.
                    for path in bounds.writable() {
                        self.grant(path, read)?;
                        granted.push(path.clone());
                    }
                }
                for path in bounds.private() {
                    self.grant(path, read)?;
                }
            }
            Some(paths) => {
                for SystemPathFd { fd, kind } in open_system_paths().iter() {
                    self.add_rule(fd.as_fd(), *kind, read)?;
                }
                for path in paths {
                    self.grant(path, AccessFs::ReadDir.into())?;
                    if !(bounds.is_unsearched() && has_notify_handler) || bounds.private().contains(path) {
                        self.grant_all_except(path, bounds.unreadable(), read, &mut granted)?;
                    }
                }
            }
        }
        for path in bounds.named().iter().filter(|path| !bounds.guard.hides(path)) {
            self.grant(path, read)?;
            granted.push(path.clone());
        }
        bounds.landlock_read = granted;
        Ok(())
    }

    /// Rules for executing: any program, or only the listed ones.
    fn grant_programs(&mut self, bounds: &SandboxPathAccess) -> Result<(), String> {
        let run = make_bitflags!(AccessFs::{ReadFile | Execute});
        let Some(programs) = bounds.executable() else {
            return self.grant(&AbsPath::root(), AccessFs::Execute.into());
        };
        for file in programs.iter().chain(bounds.interpreters()) {
            self.grant(file, run)?;
            // The libraries of a program may be outside the system's directories.
            let prefix = file.parent().and_then(|directory| directory.parent());
            if bounds.readable().is_some() && file.as_path().ends_with(".cargo/bin/rustup") {
                // rustup reads from it which toolchain is the default.
                let home = prefix.as_ref().and_then(AbsPath::parent);
                let settings = home.map(|home| home.join(".rustup/settings.toml"));
                self.grant(&settings.unwrap_or_else(|| file.clone()), AccessFs::ReadFile.into())?;
            }
            for name in INSTALLED_BESIDE.iter().filter(|_| bounds.readable().is_some()) {
                if let Some(prefix) = prefix.as_ref().filter(|prefix| !is_in_system_tree(prefix)) {
                    self.grant(&prefix.join(name), make_bitflags!(AccessFs::{ReadFile | ReadDir}))?;
                }
            }
        }
        Ok(())
    }

    /// Rules for writing: the private directories; without a seccomp notification handler, every writable tree.
    fn grant_writes(
        &mut self,
        bounds: &mut SandboxPathAccess,
        has_notify_handler: bool,
    ) -> Result<(), String> {
        let write = make_bitflags!(AccessFs::{
            WriteFile | RemoveDir | RemoveFile | MakeDir | MakeReg | MakeSock | MakeFifo | MakeSym | Refer | Truncate
        });
        let mut granted = Vec::new();
        for path in bounds.private() {
            self.grant_all_except(path, bounds.write_protected_in(path), write, &mut granted)?;
        }
        let trees = bounds.writable().filter(|path| !bounds.private().contains(path));
        for path in trees {
            if has_notify_handler {
                // `bind` continues in the caller, and a socket file has no content to protect.
                self.grant(path, AccessFs::MakeSock.into())?;
            } else {
                self.grant_all_except(path, bounds.write_protected(), write, &mut granted)?;
            }
        }
        bounds.landlock_write = granted;
        Ok(())
    }

    /// Adds rules for everything below a directory but the exceptions, and their paths to `granted`.
    fn grant_all_except(
        &mut self,
        path: &AbsPath,
        exceptions: &[AbsPath],
        access: BitFlags<AccessFs>,
        granted: &mut Vec<AbsPath>,
    ) -> Result<(), String> {
        if exceptions.iter().any(|exception| path.is_under(exception)) {
            return Ok(());
        }
        let below: Vec<&Path> = exceptions
            .iter()
            .filter_map(|exception| exception.as_path().strip_prefix(path.as_path()).ok())
            .collect();
        self.grant_all_except_below(path, None, &below, access, granted)
    }

    /// The same, with the exceptions relative to the directory. None of them is the directory itself.
    fn grant_all_except_below(
        &mut self,
        path: &AbsPath,
        kind: Option<FileType>,
        exceptions: &[&Path],
        access: BitFlags<AccessFs>,
        granted: &mut Vec<AbsPath>,
    ) -> Result<(), String> {
        if exceptions.is_empty() {
            granted.push(path.clone());
            return self.grant_as(path, kind, access);
        }
        let exceptions: Vec<(&OsStr, &Path)> = exceptions
            .iter()
            .filter_map(|exception| {
                let mut parts = exception.components();
                let first = parts.next()?.as_os_str();
                Some((first, parts.as_path()))
            })
            .collect();
        // A directory that toolgate cannot list, the command cannot use either.
        let Ok(entries) = fs::read_dir(path.as_path()) else { return Ok(()) };
        for entry in entries.flatten() {
            let kind = entry.file_type().ok();
            // The target of a symlink has its own rule, or none.
            if kind.is_some_and(|kind| kind.is_symlink()) {
                continue;
            }
            let name = entry.file_name();
            let below: Vec<&Path> =
                exceptions.iter().filter(|(first, _)| *first == name).map(|(_, rest)| *rest).collect();
            if below.iter().any(|rest| rest.as_os_str().is_empty()) {
                continue;
            }
            let kind =
                kind.map(|kind| if kind.is_dir() { FileType::Directory } else { FileType::RegularFile });
            self.grant_all_except_below(&path.join(name), kind, &below, access, granted)?;
        }
        Ok(())
    }

    /// Adds a rule for a path, if it exists.
    fn grant(&mut self, path: &AbsPath, access: BitFlags<AccessFs>) -> Result<(), String> {
        self.grant_as(path, None, access)
    }

    /// Adds a rule for an entry whose type is known from the listing; `None` reads it.
    fn grant_as(
        &mut self,
        path: &AbsPath,
        kind: Option<FileType>,
        access: BitFlags<AccessFs>,
    ) -> Result<(), String> {
        let mut flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        if kind == Some(FileType::Directory) {
            // Fails if the entry has been replaced by something else since the listing.
            flags |= OFlags::DIRECTORY;
        }
        // An entry that is gone or that toolgate cannot open needs no rule.
        let Ok(fd) = openat(CWD, path.as_path(), flags, Mode::empty()) else { return Ok(()) };
        let kind = match kind {
            Some(kind) if kind == FileType::Directory || self.hidden.is_empty() => kind,
            Some(_) | None => match statat(&fd, c"", AtFlags::EMPTY_PATH) {
                Ok(stat) if self.hidden.contains(&(stat.st_dev, stat.st_ino)) => return Ok(()),
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(_) => return Ok(()),
            },
        };
        self.add_rule(fd.as_fd(), kind, access)
    }

    /// Adds a rule for an open path.
    fn add_rule(
        &mut self,
        fd: BorrowedFd<'_>,
        kind: FileType,
        access: BitFlags<AccessFs>,
    ) -> Result<(), String> {
        // The kernel rejects the rule of a file with rights that only directories have.
        let access = match kind {
            FileType::Directory => access,
            _ => access & AccessFs::from_file(MAX_LANDLOCK_ABI),
        };
        if access.is_empty() {
            return Ok(());
        }
        (&mut self.ruleset)
            .add_rule(PathBeneath::new(fd, access))
            .map(|_| ())
            .map_err(|error| error.to_string())
    }
}
