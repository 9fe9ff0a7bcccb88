//! Landlock's rules for files: allow-lists of directories, which cannot be subtracted from.
//!
//! "Everything but this" is therefore spelled out: each directory on the way to an exception is entered, and its
//! other entries are granted one by one.
//! What is made in such a directory later has no grant; the supervisor opens it in the command's place.

use super::SandboxNetworkAccess;
use super::path_access::{DeviceInode, SandboxPathAccess};
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

/// The newest rules that are asked for. Older kernels give what they have, and the report says what is missing.
const MAX_LANDLOCK_ABI: ABI = ABI::V6;

/// Devices that every program may use.
const ALLOWED_DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Builds the rules. `None` where the kernel has no Landlock.
///
/// With a supervisor, nothing outside the private directories is writable by itself: the supervisor makes every change
/// in the command's place, after a look at the real path. So rules by name hold for files that do not exist yet, and
/// no race between the look and the change leads elsewhere.
pub(super) fn build_ruleset(
    bounds: &mut SandboxPathAccess,
    net: SandboxNetworkAccess,
    supervised: bool,
) -> Result<Option<OwnedFd>, String> {
    let words = |error: landlock::RulesetError| error.to_string();
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(MAX_LANDLOCK_ABI))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(MAX_LANDLOCK_ABI)))
        .map_err(words)?;
    if net != SandboxNetworkAccess::Full {
        ruleset = ruleset.handle_access(AccessNet::from_all(MAX_LANDLOCK_ABI)).map_err(words)?;
    }
    let hidden = bounds.hidden_files().clone();
    let mut granter = LandlockRulesetBuilder { ruleset: ruleset.create().map_err(words)?, hidden };
    granter.grant_reads(bounds, supervised)?;
    granter.grant_programs(bounds)?;
    granter.grant_writes(bounds, supervised)?;
    for device in ALLOWED_DEVICES {
        granter.grant(&to_absolute(device), make_bitflags!(AccessFs::{ReadFile | WriteFile | IoctlDev}))?;
    }
    Ok(granter.ruleset.into())
}

fn to_absolute(path: &str) -> AbsPath {
    AbsPath::root().join(path)
}

fn is_in_system_tree(path: &AbsPath) -> bool {
    READABLE_TREES.iter().any(|tree| path.is_under(&to_absolute(tree)))
}

struct LandlockRulesetBuilder {
    ruleset: RulesetCreated,
    /// Hidden files: under another name they get no grant either.
    hidden: HashSet<DeviceInode>,
}

impl LandlockRulesetBuilder {
    /// Reading: everything but what is hidden, or only what is listed.
    fn grant_reads(&mut self, bounds: &mut SandboxPathAccess, supervised: bool) -> Result<(), String> {
        let read = make_bitflags!(AccessFs::{ReadFile | ReadDir});
        let mut granted = Vec::new();
        match bounds.readable() {
            None if bounds.landlock_exceptions().is_empty() => self.grant(&AbsPath::root(), read)?,
            None => {
                // Names stay visible, contents do not: a directory that cannot be listed breaks every shell pattern.
                self.grant(&AbsPath::root(), AccessFs::ReadDir.into())?;
                let left_out = bounds.landlock_exceptions();
                let inside = |path: &AbsPath| bounds.writable().any(|root| path.is_under(root));
                if left_out.iter().any(inside) {
                    self.grant_all_except(&AbsPath::root(), &left_out, read, &mut granted)?;
                } else {
                    for SystemPathFd { handle, kind } in open_paths_except(&left_out).iter() {
                        self.add_rule(handle.as_fd(), *kind, read)?;
                    }
                    // What was made since the others were looked up.
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
                for SystemPathFd { handle, kind } in open_system_paths().iter() {
                    self.add_rule(handle.as_fd(), *kind, read)?;
                }
                for path in paths {
                    self.grant(path, AccessFs::ReadDir.into())?;
                    if !(bounds.is_unsearched() && supervised) || bounds.private().contains(path) {
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

    /// Executing: any program, or only what is listed.
    fn grant_programs(&mut self, bounds: &SandboxPathAccess) -> Result<(), String> {
        let run = make_bitflags!(AccessFs::{ReadFile | Execute});
        let Some(programs) = bounds.executable() else {
            return self.grant(&AbsPath::root(), AccessFs::Execute.into());
        };
        for file in programs.iter().chain(bounds.interpreters()) {
            self.grant(file, run)?;
            // What a program is made of may lie outside the system's directories.
            let prefix = file.parent().and_then(|directory| directory.parent());
            if bounds.readable().is_some() && file.as_path().ends_with(".cargo/bin/rustup") {
                // It reads which toolchain is the default one.
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

    /// Writing: the private directories; without a supervisor, all that is granted.
    fn grant_writes(&mut self, bounds: &mut SandboxPathAccess, supervised: bool) -> Result<(), String> {
        let write = make_bitflags!(AccessFs::{
            WriteFile | RemoveDir | RemoveFile | MakeDir | MakeReg | MakeSock | MakeFifo | MakeSym | Refer | Truncate
        });
        let mut granted = Vec::new();
        for path in bounds.private() {
            self.grant_all_except(path, bounds.write_protected_in(path), write, &mut granted)?;
        }
        let trees = bounds.writable().filter(|path| !bounds.private().contains(path));
        for path in trees {
            if supervised {
                // A socket holds nothing and runs nothing; the kernel makes it where it is bound.
                self.grant(path, AccessFs::MakeSock.into())?;
            } else {
                self.grant_all_except(path, bounds.write_protected(), write, &mut granted)?;
            }
        }
        bounds.landlock_write = granted;
        Ok(())
    }

    /// Grants everything below a directory but the exceptions.
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

    /// The same, with the exceptions as seen from the directory. None of them is the directory itself.
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
        // What cannot be listed here cannot be reached by the command either.
        let Ok(entries) = fs::read_dir(path.as_path()) else { return Ok(()) };
        for entry in entries.flatten() {
            let kind = entry.file_type().ok();
            // A link leads to a place that has its own grant, or none.
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

    fn grant(&mut self, path: &AbsPath, access: BitFlags<AccessFs>) -> Result<(), String> {
        self.grant_as(path, None, access)
    }

    /// Grants an entry that was listed as a directory or as something else.
    fn grant_as(
        &mut self,
        path: &AbsPath,
        kind: Option<FileType>,
        access: BitFlags<AccessFs>,
    ) -> Result<(), String> {
        let mut flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        if kind == Some(FileType::Directory) {
            // Fails if it has become something else in the meantime.
            flags |= OFlags::DIRECTORY;
        }
        // What is gone or out of our own reach needs no grant.
        let Ok(handle) = openat(CWD, path.as_path(), flags, Mode::empty()) else { return Ok(()) };
        let kind = match kind {
            Some(kind) if kind == FileType::Directory || self.hidden.is_empty() => kind,
            Some(_) | None => match statat(&handle, c"", AtFlags::EMPTY_PATH) {
                Ok(stat) if self.hidden.contains(&(stat.st_dev, stat.st_ino)) => return Ok(()),
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(_) => return Ok(()),
            },
        };
        self.add_rule(handle.as_fd(), kind, access)
    }

    fn add_rule(
        &mut self,
        handle: BorrowedFd<'_>,
        kind: FileType,
        access: BitFlags<AccessFs>,
    ) -> Result<(), String> {
        // Rights that only directories have make the kernel refuse the rule of a file.
        let access = match kind {
            FileType::Directory => access,
            _ => access & AccessFs::from_file(MAX_LANDLOCK_ABI),
        };
        if access.is_empty() {
            return Ok(());
        }
        (&mut self.ruleset)
            .add_rule(PathBeneath::new(handle, access))
            .map(|_| ())
            .map_err(|error| error.to_string())
    }
}
