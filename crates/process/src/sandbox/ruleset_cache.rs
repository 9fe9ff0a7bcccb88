//! The ruleset of the last command that was allowed as a whole, used again while nothing that it names has changed.
//!
//! The commands of a session that get the workspace get the same rules, and to make them takes as long as to start a
//! thread. A ruleset speaks of files and not of names, so it holds as long as the directories that were listed for it
//! are as they were.

use super::SandboxNetworkAccess;
use super::landlock_rules::build_ruleset;
use super::path_access::{DeviceInode, SandboxPathAccess};
use rustix::fs::{AtFlags, CWD, statat};
use rustix::io::fcntl_dupfd_cloexec;
use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use toolgate_proto::AbsPath;
use toolgate_proto::timestamp::{may_timestamp_repeat, timestamp_nanos};

/// Everything that the rules were made from.
#[derive(Debug, PartialEq, Eq)]
struct RulesetCacheKey {
    net: SandboxNetworkAccess,
    landlock_exceptions: Vec<AbsPath>,
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
    changed: Option<[i128; 2]>,
}

struct CachedRuleset {
    key: RulesetCacheKey,
    ruleset: OwnedFd,
    landlock_read: Vec<AbsPath>,
    landlock_write: Vec<AbsPath>,
}

/// The rules for a command, made or kept.
pub(super) fn get_or_build_ruleset(
    bounds: &mut SandboxPathAccess,
    net: SandboxNetworkAccess,
    supervised: bool,
) -> Result<Option<OwnedFd>, String> {
    static CACHE: Mutex<Option<CachedRuleset>> = Mutex::new(None);
    let Some(key) = cache_key(bounds, net).filter(|_| supervised) else {
        return build_ruleset(bounds, net, supervised);
    };
    let mut kept = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(kept) = kept.as_ref().filter(|kept| kept.key == key)
        && let Ok(again) = fcntl_dupfd_cloexec(&kept.ruleset, 3)
    {
        bounds.landlock_read.clone_from(&kept.landlock_read);
        bounds.landlock_write.clone_from(&kept.landlock_write);
        return Ok(Some(again));
    }
    let made = build_ruleset(bounds, net, supervised)?;
    if let Some(ruleset) = made.as_ref().and_then(|made| fcntl_dupfd_cloexec(made, 3).ok()) {
        let (native_read, native_write) = (bounds.landlock_read.clone(), bounds.landlock_write.clone());
        *kept =
            Some(CachedRuleset { key, ruleset, landlock_read: native_read, landlock_write: native_write });
    }
    Ok(made)
}

/// `None` where the rules are for this command alone.
fn cache_key(bounds: &SandboxPathAccess, net: SandboxNetworkAccess) -> Option<RulesetCacheKey> {
    let left_out = bounds.landlock_exceptions();
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
    let stamps = listed
        .iter()
        .map(|path| read_stamp(path, true))
        .chain(writable.iter().map(|path| read_stamp(path, false)));
    let stamps: Vec<Option<DirectoryStamp>> = stamps.collect();
    // An entry that comes right after the rules were made may leave the directory's times as they were.
    let now = i128::from(toolgate_files::now_millis()) * 1_000_000;
    let times = stamps.iter().flatten().filter_map(|stamp| stamp.changed).flatten();
    if times.into_iter().any(|changed| may_timestamp_repeat(changed, now)) {
        return None;
    }
    Some(RulesetCacheKey {
        net,
        landlock_exceptions: left_out,
        private,
        hidden: bounds.hidden_files().clone(),
        stamps,
        writable,
    })
}

fn read_stamp(path: &AbsPath, entries: bool) -> Option<DirectoryStamp> {
    let stat = statat(CWD, path.as_path(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let nanos = |value: u64| i64::try_from(value).unwrap_or(0);
    // Where entries do not matter, a rule holds for all that is below.
    let changed = entries.then(|| {
        [
            timestamp_nanos(stat.st_mtime, nanos(stat.st_mtime_nsec)),
            timestamp_nanos(stat.st_ctime, nanos(stat.st_ctime_nsec)),
        ]
    });
    Some(DirectoryStamp { identity: (stat.st_dev, stat.st_ino), changed })
}
