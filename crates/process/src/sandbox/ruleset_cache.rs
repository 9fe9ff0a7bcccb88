//! A cache of one Landlock ruleset: that of the last command with the rights of the whole workspace.
//!
//! Such commands of a session get the same rules, and building them takes as long as starting a thread.
//! A ruleset refers to inodes, so it stays valid as long as the directories that were listed for it are unchanged.

use super::SandboxNetworkAccess;
use super::directory_listing::DirectoryStamp;
use super::landlock_rules::build_ruleset;
use super::path_access::SandboxPathAccess;
use super::resolve_paths::DeviceInode;
use rustix::fs::{AtFlags, CWD, statat};
use rustix::io::fcntl_dupfd_cloexec;
use std::collections::HashSet;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};
use toolgate_proto::AbsPath;

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
    /// The state of the directories that were listed.
    stamps: Vec<DirectoryStamp>,
    /// The writable trees themselves: a rule covers everything below, so that their entries do not matter.
    roots: Vec<Option<DeviceInode>>,
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
    // Without a stamp, an entry that comes right after the rules were made could stay unnoticed.
    let stamps: Vec<DirectoryStamp> = listed.iter().map(DirectoryStamp::read).collect::<Option<_>>()?;
    let identity = |path: &AbsPath| statat(CWD, path.as_path(), AtFlags::SYMLINK_NOFOLLOW).ok();
    let roots = writable.iter().map(|path| identity(path).map(|stat| (stat.st_dev, stat.st_ino))).collect();
    Some(RulesetCacheKey {
        net,
        landlock_exceptions: exceptions,
        private,
        hidden: bounds.hidden_files().clone(),
        stamps,
        roots,
        writable,
    })
}
