//! Storage for results that are too large for a model, in files that only this user can read.
//!
//! Each session has a directory of its own.
//! Clean-up removes files above an age, and then the oldest ones above a total size.

use rustix::fs::{AtFlags, CWD, FileType, statat};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};
use toolgate_proto::AbsPath;

/// After this many new files of a process, [`SpillStore::store`] cleans up.
const CLEANUP_FILE_INTERVAL: usize = 64;

/// How long and how much is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpillLimits {
    /// Files that are older are removed.
    pub age: Duration,
    /// Above this total size the oldest files are removed.
    pub bytes: u64,
}

impl Default for SpillLimits {
    /// Three days and 1 GiB.
    fn default() -> Self {
        Self { age: Duration::from_secs(3 * 24 * 3600), bytes: 1024 * 1024 * 1024 }
    }
}

/// What a clean-up removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SpillCleanupReport {
    /// How many files.
    pub files: u64,
    /// How many bytes they had.
    pub bytes: u64,
}

/// The directory in which large results are stored.
#[derive(Debug)]
pub struct SpillStore {
    /// The real path of the directory, with one subdirectory per session.
    dir: AbsPath,
    /// What clean-up removes.
    limits: SpillLimits,
    /// How many results this process has stored, to clean up now and then.
    stored_count: AtomicUsize,
}

impl SpillStore {
    /// A store in `dir`, which is created when the first result is stored.
    pub fn new(dir: AbsPath, limits: SpillLimits) -> Self {
        Self { dir: crate::resolve(&dir).real, limits, stored_count: AtomicUsize::new(0) }
    }

    /// The directory of a session, which need not exist yet.
    pub fn session_directory(&self, session: &str) -> AbsPath {
        self.dir.join(sanitize_name(session))
    }

    /// Stores a result in a new file with this extension, and returns its path.
    pub fn store(&self, session: &str, call: &str, extension: &str, content: &[u8]) -> io::Result<AbsPath> {
        let directory = self.session_directory(session);
        create_private_dir(self.dir.as_path())?;
        create_private_dir(directory.as_path())?;
        let name = format!("{}-{}.{extension}", sanitize_name(call), crate::generate_id(""));
        let path = directory.join(name);
        // `create_new` fails if the name exists, also as a symlink.
        let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(path.as_path())?;
        if let Err(error) = file.write_all(content) {
            // A truncated result would be taken for the whole one.
            let _ = fs::remove_file(path.as_path());
            return Err(error);
        }
        if self.stored_count.fetch_add(1, Ordering::Relaxed) % CLEANUP_FILE_INTERVAL
            == CLEANUP_FILE_INTERVAL - 1
        {
            // The next clean-up retries what fails now.
            let _ = self.clean_up();
        }
        Ok(path)
    }

    /// Removes the files that are over the age limit, and then the oldest until the size limit is met.
    pub fn clean_up(&self) -> io::Result<SpillCleanupReport> {
        self.clean_up_at(SystemTime::now())
    }

    /// Removes what is too old or too much, as of a time.
    fn clean_up_at(&self, now: SystemTime) -> io::Result<SpillCleanupReport> {
        let mut report = SpillCleanupReport::default();
        let mut files = Vec::new();
        let mut directories = Vec::new();
        for directory in
            list_entries(self.dir.as_path())?.into_iter().filter(|entry| entry.kind == FileType::Directory)
        {
            files.extend(
                list_entries(&directory.path)?
                    .into_iter()
                    .filter(|entry| entry.kind == FileType::RegularFile),
            );
            directories.push(directory.path);
        }
        files.sort_by(|a, b| a.modified.cmp(&b.modified).then_with(|| a.path.cmp(&b.path)));
        let mut total: u64 = files.iter().map(|file| file.bytes).sum();
        for file in files {
            let old = now.duration_since(file.modified).is_ok_and(|age| age > self.limits.age);
            if !old && total <= self.limits.bytes {
                continue;
            }
            fs::remove_file(&file.path)?;
            total -= file.bytes;
            report.files += 1;
            report.bytes += file.bytes;
        }
        for directory in directories {
            // Fails if the directory is not empty, which is what is wanted.
            let _ = fs::remove_dir(directory);
        }
        Ok(report)
    }
}

/// An entry of the store's directories.
struct SpillEntry {
    path: PathBuf,
    kind: FileType,
    bytes: u64,
    modified: SystemTime,
}

/// The entries of a directory; symlinks are not followed. Empty if the directory does not exist.
fn list_entries(dir: &Path) -> io::Result<Vec<SpillEntry>> {
    let mut found = Vec::new();
    let listed = match fs::read_dir(dir) {
        Ok(listed) => listed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(error),
    };
    for entry in listed {
        let entry = entry?;
        // `DirEntry::metadata` does not follow symlinks.
        let Ok(metadata) = entry.metadata() else { continue };
        found.push(SpillEntry {
            path: entry.path(),
            kind: FileType::from_raw_mode(metadata.mode()),
            bytes: metadata.len(),
            modified: metadata.modified()?,
        });
    }
    Ok(found)
}

/// Creates a directory that only this user can enter. One that exists must belong to this user and must not be a symlink.
fn create_private_dir(dir: &Path) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(dir) {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return DirBuilder::new().recursive(true).mode(0o700).create(dir);
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(error),
    }
    let stat = statat(CWD, dir, AtFlags::SYMLINK_NOFOLLOW)?;
    let is_own = stat.st_uid == rustix::process::geteuid().as_raw();
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory || !is_own {
        return Err(io::Error::other(format!(
            "`{}` is not a directory that belongs to this user",
            dir.display()
        )));
    }
    if stat.st_mode & 0o077 != 0 {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// A single path component made of an id, which a client may have chosen: no separators, no `..`, not too long.
fn sanitize_name(id: &str) -> String {
    let name: String = id
        .chars()
        .take(64)
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' })
        .collect();
    if name.is_empty() { "_".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new_store(dir: &tempfile::TempDir, limits: SpillLimits) -> SpillStore {
        SpillStore::new(AbsPath::new(dir.path()).unwrap().join("state/results"), limits)
    }

    #[test]
    fn only_the_user_can_read_stored_results() {
        let dir = tempfile::tempdir().unwrap();
        let store = new_store(&dir, SpillLimits::default());
        let path = store.store("../../evil session", "call/1", "txt", "whole".as_bytes()).unwrap();
        assert!(path.is_under(&store.session_directory("../../evil session")), "{path}");
        assert!(path.is_under(&store.dir) && path.lexical() == path);
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(path.as_path()), 0o600);
        assert_eq!(mode(path.parent().unwrap().as_path()), 0o700);
        assert_eq!(mode(store.dir.as_path()), 0o700);
        let other = store.store("../../evil session", "call/1", "txt", b"again").unwrap();
        assert_ne!(path, other);
    }

    #[test]
    fn a_symlink_instead_of_a_session_directory_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let store = new_store(&dir, SpillLimits::default());
        store.store("a", "c", "txt", b"x").unwrap();
        std::os::unix::fs::symlink(dir.path(), store.session_directory("b")).unwrap();
        assert!(store.store("b", "c", "txt", b"x").is_err());
    }

    #[test]
    fn old_files_are_removed_and_then_the_oldest_above_the_size_limit() {
        let dir = tempfile::tempdir().unwrap();
        let limits = SpillLimits { age: Duration::from_secs(100), bytes: 25 };
        let store = new_store(&dir, limits);
        let now = SystemTime::now();
        let mut paths = Vec::new();
        for (session, age) in [("one", 200), ("two", 50), ("two", 40), ("two", 30)] {
            let path = store.store(session, "c", "txt", &[b'x'; 10]).unwrap();
            let file = OpenOptions::new().write(true).open(path.as_path()).unwrap();
            file.set_modified(now - Duration::from_secs(age)).unwrap();
            paths.push(path);
        }
        let report = store.clean_up_at(now).unwrap();
        assert_eq!(report, SpillCleanupReport { files: 2, bytes: 20 });
        let exist: Vec<bool> = paths.iter().map(|path| path.as_path().exists()).collect();
        assert_eq!(exist, [false, false, true, true]);
        assert!(!store.session_directory("one").as_path().exists(), "an empty directory is removed as well");
        assert_eq!(store.clean_up_at(now).unwrap(), SpillCleanupReport::default());
    }

    #[test]
    fn cleaning_up_an_empty_store_removes_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(
            new_store(&dir, SpillLimits::default()).clean_up().unwrap(),
            SpillCleanupReport::default()
        );
    }
}
