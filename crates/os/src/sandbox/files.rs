//! Landlock's rules for files: allow-lists of directories, which cannot be subtracted from.
//!
//! "Everything but this" is therefore spelled out: each directory on the way to an exception is entered, and its
//! other entries are granted one by one.
//! What is made in such a directory later has no grant; the warden fills that in.

use super::Net;
use super::bounds::Bounds;
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, Scope, make_bitflags,
};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, statat};
use std::ffi::OsStr;
use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use toolgate_proto::AbsPath;

/// The newest rules that are asked for. Older kernels give what they have, and the report says what is missing.
const NEWEST: ABI = ABI::V6;

/// Devices that every program may use.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Builds the rules. `None` where the kernel has no Landlock.
pub(super) fn ruleset(bounds: &mut Bounds, net: Net) -> Result<Option<OwnedFd>, String> {
    let words = |error: landlock::RulesetError| error.to_string();
    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(NEWEST))
        .and_then(|ruleset| ruleset.scope(Scope::from_all(NEWEST)))
        .map_err(words)?;
    if net != Net::Full {
        ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST)).map_err(words)?;
    }
    let mut granter = Granter { ruleset: ruleset.create().map_err(words)? };

    let read = make_bitflags!(AccessFs::{ReadFile | ReadDir | Execute});
    let root = AbsPath::root();
    if bounds.unreadable().is_empty() {
        granter.grant(&root, read)?;
    } else {
        // Names stay visible, contents do not: a directory that cannot be listed breaks every shell pattern.
        granter.grant(&root, AccessFs::ReadDir.into())?;
        let mut granted = Vec::new();
        granter.all_but(&root, bounds.unreadable(), read, &mut granted)?;
        bounds.native_read = granted;
    }

    let write = make_bitflags!(AccessFs::{
        WriteFile | RemoveDir | RemoveFile | MakeDir | MakeReg | MakeSock | MakeFifo | MakeSym | Refer | Truncate
    });
    let mut granted = Vec::new();
    for path in bounds.writable() {
        granter.all_but(path, bounds.barred(), write, &mut granted)?;
    }
    bounds.native_write = granted;
    for device in DEVICES {
        if let Ok(device) = AbsPath::new(device) {
            granter.grant(&device, make_bitflags!(AccessFs::{ReadFile | WriteFile | IoctlDev}))?;
        }
    }
    Ok(granter.ruleset.into())
}

struct Granter {
    ruleset: RulesetCreated,
}

impl Granter {
    /// Grants everything below a directory but the exceptions.
    fn all_but(
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
        self.all_but_below(path, None, &below, access, granted)
    }

    /// The same, with the exceptions as seen from the directory. None of them is the directory itself.
    fn all_but_below(
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
            self.all_but_below(&path.join(name), kind, &below, access, granted)?;
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
            Some(kind) => kind,
            None => match statat(&handle, c"", AtFlags::EMPTY_PATH) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(_) => return Ok(()),
            },
        };
        // Rights that only directories have make the kernel refuse the rule of a file.
        let access = match kind {
            FileType::Directory => access,
            _ => access & AccessFs::from_file(NEWEST),
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
