//! Directory listings, cached for the scans that precede every command.
//!
//! Listing a directory takes ten times as long as `stat`, and few directories of a workspace change between two commands.
//! A listing stays valid while the directory has the same inode and the same times: every entry that comes, goes or is
//! renamed changes its mtime and ctime, and no program can set the ctime.

use super::resolve_paths::DeviceInode;
use rustix::fs::{AtFlags, CWD, FileType, statat, statfs};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};
use toolgate_proto::AbsPath;
use toolgate_proto::timestamp::{may_timestamp_repeat, timestamp_nanos};

/// Entries in the cache, of all directories together: twice what one scan reads. Beyond, the cache starts anew.
const MAX_CACHED_ENTRIES: usize = 40_000;

/// The state of a directory: another one at the same path, or a change of its entries, changes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DirectoryStamp {
    identity: DeviceInode,
    /// mtime and ctime.
    changed: [i128; 2],
}

impl DirectoryStamp {
    /// Reads the state of a directory; `None` for anything else, and for a directory that has changed so recently that
    /// another change may leave its times as they are.
    pub(super) fn read(path: &AbsPath) -> Option<Self> {
        let now = i128::from(toolgate_files::now_millis()) * 1_000_000;
        let stat = statat(CWD, path.as_path(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let nanos = |value: u64| i64::try_from(value).unwrap_or(0);
        let changed = [
            timestamp_nanos(stat.st_mtime, nanos(stat.st_mtime_nsec)),
            timestamp_nanos(stat.st_ctime, nanos(stat.st_ctime_nsec)),
        ];
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        let is_settled = !changed.iter().any(|changed| may_timestamp_repeat(*changed, now));
        (is_directory && is_settled).then_some(Self { identity: (stat.st_dev, stat.st_ino), changed })
    }
}

/// What an entry of a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListedKind {
    Directory,
    Symlink,
    /// A file, or anything else that has no entries.
    File,
}

/// The entries of a directory, in no order.
#[derive(Debug, Default)]
pub(super) struct DirectoryListing {
    pub(super) entries: Vec<(Box<OsStr>, ListedKind)>,
    /// Every entry is there.
    pub(super) complete: bool,
}

/// A listing, and the state of the directory before it was read.
struct CachedListing {
    stamp: DirectoryStamp,
    listing: Arc<DirectoryListing>,
}

/// The listings of this process.
#[derive(Default)]
struct ListingCache {
    directories: HashMap<AbsPath, CachedListing>,
    /// The entries of all of them.
    entry_count: usize,
}

impl ListingCache {
    /// Adds a listing, in place of an older one of the same directory.
    fn insert(&mut self, directory: &AbsPath, cached: CachedListing) {
        if self.entry_count + cached.listing.entries.len() > MAX_CACHED_ENTRIES {
            *self = Self::default();
        }
        self.entry_count += cached.listing.entries.len();
        if let Some(old) = self.directories.insert(directory.clone(), cached) {
            self.entry_count -= old.listing.entries.len();
        }
    }
}

/// Lists a directory, at most `max_entries` of it. A directory that cannot be listed has no entries: a command cannot list
/// it either.
pub(super) fn list_directory(directory: &AbsPath, max_entries: usize) -> Arc<DirectoryListing> {
    static CACHE: Mutex<Option<ListingCache>> = Mutex::new(None);
    let lock_cache = || CACHE.lock().unwrap_or_else(PoisonError::into_inner);
    let stamp = DirectoryStamp::read(directory);
    if let Some(stamp) = stamp
        && let Some(cached) = lock_cache().as_ref().and_then(|cache| cache.directories.get(directory))
        && cached.stamp == stamp
        && cached.listing.entries.len() <= max_entries
    {
        return Arc::clone(&cached.listing);
    }
    let listing = Arc::new(read_entries(directory, max_entries));
    if let Some(stamp) = stamp.filter(|_| listing.complete && keeps_directory_times(directory)) {
        let cached = CachedListing { stamp, listing: Arc::clone(&listing) };
        lock_cache().get_or_insert_default().insert(directory, cached);
    }
    listing
}

/// Whether the file system of a directory is a local one that is known to change the directory's times with its entries.
/// Network file systems and those of user programs (FUSE) may not.
fn keeps_directory_times(directory: &AbsPath) -> bool {
    /// The magic numbers of ext4, XFS, Btrfs, tmpfs, overlayfs, F2FS and ZFS.
    const KNOWN_FILE_SYSTEMS: [u64; 7] =
        [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x794c_7630, 0xf2f5_2010, 0x2fc1_2fc1];
    statfs(directory.as_path()).is_ok_and(|found| {
        u64::try_from(found.f_type).is_ok_and(|magic| KNOWN_FILE_SYSTEMS.contains(&(magic & 0xffff_ffff)))
    })
}

/// Reads the entries of a directory.
fn read_entries(directory: &AbsPath, max_entries: usize) -> DirectoryListing {
    let mut listing = DirectoryListing { entries: Vec::new(), complete: true };
    let Ok(entries) = fs::read_dir(directory.as_path()) else { return listing };
    for entry in entries.flatten() {
        if listing.entries.len() == max_entries {
            listing.complete = false;
            break;
        }
        let Ok(kind) = entry.file_type() else { continue };
        let kind = match (kind.is_symlink(), kind.is_dir()) {
            (true, _) => ListedKind::Symlink,
            (false, true) => ListedKind::Directory,
            (false, false) => ListedKind::File,
        };
        listing.entries.push((entry.file_name().into_boxed_os_str(), kind));
    }
    listing
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::time::{Duration, SystemTime};

    /// A change of a directory.
    #[derive(Debug, Clone)]
    enum Change {
        Create(u8),
        Remove(u8),
        Rename(u8, u8),
        /// Nothing changes, and the times become old enough for the cache.
        Settle,
    }

    fn change() -> impl Strategy<Value = Change> {
        prop_oneof![
            (0u8..5).prop_map(Change::Create),
            (0u8..5).prop_map(Change::Remove),
            (0u8..5, 0u8..5).prop_map(|(from, to)| Change::Rename(from, to)),
            Just(Change::Settle),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]

        #[test]
        fn a_cached_listing_is_that_of_the_directory(changes in prop::collection::vec(change(), 1..12)) {
            let dir = tempfile::tempdir().unwrap();
            let path = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
            let file = |name: u8| path.join(name.to_string());
            for change in changes {
                match change {
                    Change::Create(name) => fs::write(file(name), "").unwrap(),
                    Change::Remove(name) => drop(fs::remove_file(file(name))),
                    Change::Rename(from, to) => drop(fs::rename(file(from), file(to))),
                    Change::Settle => std::thread::sleep(Duration::from_millis(25)),
                }
                let listed: BTreeSet<Box<OsStr>> =
                    list_directory(&path, 100).entries.iter().map(|(name, _)| name.clone()).collect();
                let real: BTreeSet<Box<OsStr>> =
                    fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name().into_boxed_os_str()).collect();
                prop_assert_eq!(listed, real);
            }
        }
    }

    #[test]
    fn a_settled_directory_is_listed_from_the_cache_and_a_full_one_is_cut() {
        let dir = tempfile::tempdir().unwrap();
        let path = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        for name in ["a", "b", "c"] {
            fs::write(path.join(name), "").unwrap();
        }
        let started = SystemTime::now();
        while DirectoryStamp::read(&path).is_none() {
            assert!(
                started.elapsed().unwrap() < Duration::from_secs(60),
                "the times of the directory never settle"
            );
            std::thread::sleep(Duration::from_millis(5));
        }
        let first = list_directory(&path, 10);
        assert!(first.complete);
        assert!(Arc::ptr_eq(&first, &list_directory(&path, 10)));
        let cut = list_directory(&path, 2);
        assert_eq!((cut.entries.len(), cut.complete), (2, false));
    }
}
