//! A cache of one Landlock ruleset: that of the last command with the rights of the whole workspace.
//!
//! Such commands of a session get the same rules, and building them takes as long as starting a thread.
//! A ruleset refers to inodes, so it stays valid as long as the directories that were listed for it are unchanged.

use super::SandboxNetworkAccess;
use super::landlock_rules::build_ruleset;
use super::path_access::SandboxPathAccess;
use super::resolve_paths::DeviceInode;
use rustix::fs::{AtFlags, CWD, statat};
use rustix::io::fcntl_dupfd_cloexec;
use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use toolgate_proto::AbsPath;
use toolgate_proto::timestamp::{may_timestamp_repeat, timestamp_nanos};

/// Everything that a ruleset was built from.
#[derive(Debug, PartialEq, Eq)]
struct RulesetCacheKey {
    /// Network access, which Landlock restricts as well.
    net: SandboxNetworkAccess,
    /// Hidden paths without a rule.
    landlock_exceptions: Vec<AbsPath>,
    /// Trees with rules for writing.
    writable: Vec<AbsPath>,
    /// Trees that the command may write without the handler.
    private: Vec<AbsPath>,
    /// Hidden files, whose hard links get no rule.
    hidden: HashSet<DeviceInode>,
    /// The state of the directories that were listed, and of those that have a rule.
    stamps: Vec<Option<DirectoryStamp>>,
}

/// The state of a directory: its inode, and its modification and change times.
#[derive(Debug, PartialEq, Eq)]
struct DirectoryStamp {
    /// Another directory at the same path has another inode.
    identity: DeviceInode,
    /// mtime and ctime; 0 where the entries do not matter.
    changed: Option<[i128; 2]>,
}

/// The cached ruleset, and what its construction recorded in the path rights.
struct CachedRuleset {
    key: RulesetCacheKey,
    /// A ruleset can restrict any number of processes.
    ruleset: OwnedFd,
    /// See [`SandboxPathAccess::landlock_read`].
    landlock_read: Vec<AbsPath>,
    /// See [`SandboxPathAccess::landlock_write`].
    landlock_write: Vec<AbsPath>,
}

/// The ruleset for a command: the cached one, or a new one.
pub(super) fn get_or_build_ruleset(
    bounds: &mut SandboxPathAccess,
    net: SandboxNetworkAccess,
    has_notify_handler: bool,
) -> Result<Option<OwnedFd>, String> {
    static CACHE: Mutex<Option<CachedRuleset>> = Mutex::new(None);
    let Some(key) = cache_key(bounds, net).filter(|_| has_notify_handler) else {
        return build_ruleset(bounds, net, has_notify_handler);
    };
    let mut cache = CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(cached) = cache.as_ref().filter(|cached| cached.key == key)
        && let Ok(ruleset) = fcntl_dupfd_cloexec(&cached.ruleset, 3)
    {
        bounds.landlock_read.clone_from(&cached.landlock_read);
        bounds.landlock_write.clone_from(&cached.landlock_write);
        return Ok(Some(ruleset));
    }
    let built = build_ruleset(bounds, net, has_notify_handler)?;
    if let Some(ruleset) = built.as_ref().and_then(|built| fcntl_dupfd_cloexec(built, 3).ok()) {
        let (landlock_read, landlock_write) = (bounds.landlock_read.clone(), bounds.landlock_write.clone());
        *cache = Some(CachedRuleset { key, ruleset, landlock_read, landlock_write });
    }
    Ok(built)
}

/// `None` if the rules are specific to this command.
fn cache_key(bounds: &SandboxPathAccess, net: SandboxNetworkAccess) -> Option<RulesetCacheKey> {
    let exceptions = bounds.landlock_exceptions();
    let writable: Vec<AbsPath> = bounds.writable().cloned().collect();
    let private = bounds.private().to_vec();
    let inside = |path: &AbsPath| writable.iter().any(|root| path.is_under(root));
    let is_reusable = bounds.readable().is_none()
        && bounds.executable().is_none()
        && bounds.named().is_empty()
        && !exceptions.iter().any(inside)
        && private.iter().all(|path| bounds.write_protected_in(path).is_empty());
    if !is_reusable {
        return None;
    }
    let mut listed: Vec<AbsPath> = Vec::new();
    for path in &exceptions {
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
        landlock_exceptions: exceptions,
        private,
        hidden: bounds.hidden_files().clone(),
        stamps,
        writable,
    })
}

/// The state of a directory; with `entries`, a change of its entries changes the stamp.
fn read_stamp(path: &AbsPath, entries: bool) -> Option<DirectoryStamp> {
    let stat = statat(CWD, path.as_path(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let nanos = |value: u64| i64::try_from(value).unwrap_or(0);
    // Where entries do not matter, a rule covers everything below.
    let changed = entries.then(|| {
        [
            timestamp_nanos(stat.st_mtime, nanos(stat.st_mtime_nsec)),
            timestamp_nanos(stat.st_ctime, nanos(stat.st_ctime_nsec)),
        ]
    });
    Some(DirectoryStamp { identity: (stat.st_dev, stat.st_ino), changed })
}
