//! The ruleset of the last command that was allowed as a whole, used again while nothing that it names has changed.
//!
//! The commands of a session that get the workspace get the same rules, and to make them takes as long as to start a
//! thread. A ruleset speaks of files and not of names, so it holds as long as the directories that were listed for it
//! are as they were.

use super::Net;
use super::bounds::{DeviceInode, SandboxPathAccess};
use super::files::ruleset;
use rustix::fs::{AtFlags, CWD, statat};
use rustix::io::fcntl_dupfd_cloexec;
use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use toolgate_proto::AbsPath;

/// Everything that the rules were made from.
#[derive(Debug, PartialEq, Eq)]
struct RulesetCacheKey {
    net: Net,
    left_out: Vec<AbsPath>,
    writable: Vec<AbsPath>,
    private: Vec<AbsPath>,
    hidden: HashSet<DeviceInode>,
    /// The directories that were listed, and what has a rule of its own.
    stamps: Vec<Option<DirectoryStamp>>,
}

/// A directory as it was: device, inode number, and when its entries or it changed last.
#[derive(Debug, PartialEq, Eq)]
struct DirectoryStamp {
    identity: DeviceInode,
    changed: [(i64, i64); 2],
}

struct CachedRuleset {
    key: RulesetCacheKey,
    ruleset: OwnedFd,
    native_read: Vec<AbsPath>,
    native_write: Vec<AbsPath>,
}

/// The rules for a command, made or kept.
pub(super) fn get_or_build_ruleset(
    bounds: &mut SandboxPathAccess,
    net: Net,
    supervised: bool,
) -> Result<Option<OwnedFd>, String> {
    static KEPT: Mutex<Option<CachedRuleset>> = Mutex::new(None);
    let Some(key) = key_of(bounds, net).filter(|_| supervised) else {
        return ruleset(bounds, net, supervised);
    };
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(kept) = kept.as_ref().filter(|kept| kept.key == key)
        && let Ok(again) = fcntl_dupfd_cloexec(&kept.ruleset, 3)
    {
        bounds.native_read.clone_from(&kept.native_read);
        bounds.native_write.clone_from(&kept.native_write);
        return Ok(Some(again));
    }
    let made = ruleset(bounds, net, supervised)?;
    if let Some(ruleset) = made.as_ref().and_then(|made| fcntl_dupfd_cloexec(made, 3).ok()) {
        let (native_read, native_write) = (bounds.native_read.clone(), bounds.native_write.clone());
        *kept = Some(CachedRuleset { key, ruleset, native_read, native_write });
    }
    Ok(made)
}

/// `None` where the rules are for this command alone.
fn key_of(bounds: &SandboxPathAccess, net: Net) -> Option<RulesetCacheKey> {
    let left_out = bounds.left_out();
    let writable: Vec<AbsPath> = bounds.writable().cloned().collect();
    let private = bounds.private().to_vec();
    let inside = |path: &AbsPath| writable.iter().any(|root| path.is_under(root));
    let general = bounds.readable().is_none()
        && bounds.executable().is_none()
        && bounds.named().is_empty()
        && !left_out.iter().any(inside)
        && private.iter().all(|path| bounds.write_protected_in(path).is_empty());
    if !general {
        return None;
    }
    let mut listed: Vec<AbsPath> = Vec::new();
    for path in &left_out {
        let mut above = path.parent();
        while let Some(directory) = above.filter(|directory| !listed.contains(directory)) {
            above = directory.parent();
            listed.push(directory);
        }
    }
    let stamps =
        listed.iter().map(|path| stamp(path, true)).chain(writable.iter().map(|path| stamp(path, false)));
    let stamps = stamps.collect();
    Some(RulesetCacheKey { net, left_out, private, hidden: bounds.hidden_files().clone(), stamps, writable })
}

fn stamp(path: &AbsPath, entries: bool) -> Option<DirectoryStamp> {
    let stat = statat(CWD, path.as_path(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let nanos = |value: u64| i64::try_from(value).unwrap_or(0);
    let changed = if entries {
        [(stat.st_mtime, nanos(stat.st_mtime_nsec)), (stat.st_ctime, nanos(stat.st_ctime_nsec))]
    } else {
        // What is in it does not matter: a rule holds for all that is below.
        [(0, 0); 2]
    };
    Some(DirectoryStamp { identity: (stat.st_dev, stat.st_ino), changed })
}
