//! Results that are too large for a model, kept in files that only this user may read.
//!
//! Each session has a folder of its own below one directory.
//! Files go by age, and the oldest go first where there is too much; nothing else is ever removed.

use rustix::fs::{AtFlags, CWD, FileType, statat};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};
use toolgate_proto::AbsPath;

/// How often a new file is the occasion to clean up.
const CLEANUP_FILE_INTERVAL: usize = 64;

/// How long and how much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpillLimits {
    /// Older files go.
    pub age: Duration,
    /// Where there is more, the oldest files go.
    pub bytes: u64,
}

impl Default for SpillLimits {
    /// Three days, 1 GiB.
    fn default() -> Self {
        Self { age: Duration::from_secs(3 * 24 * 3600), bytes: 1024 * 1024 * 1024 }
    }
}

/// What a clean-up removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SpillCleanupReport {
    /// Files.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The directory in which large results are kept.
#[derive(Debug)]
pub struct SpillStore {
    dir: AbsPath,
    limits: SpillLimits,
    stored_count: AtomicUsize,
}

impl SpillStore {
    /// Results are kept below `dir`, which is made when the first one comes.
    pub fn new(dir: AbsPath, limits: SpillLimits) -> Self {
        Self { dir: crate::resolve(&dir).real, limits, stored_count: AtomicUsize::new(0) }
    }

    /// The folder of a session, which need not be there yet.
    pub fn session_directory(&self, session: &str) -> AbsPath {
        self.dir.join(sanitize_name(session))
    }

    /// Keeps a result in a file of its own, and says where.
    pub fn store(&self, session: &str, call: &str, ending: &str, content: &[u8]) -> io::Result<AbsPath> {
        let folder = self.session_directory(session);
        create_private_dir(self.dir.as_path())?;
        create_private_dir(folder.as_path())?;
        let name = format!("{}-{}.{ending}", sanitize_name(call), crate::generate_id(""));
        let path = folder.join(name);
        // `create_new` refuses whatever may be at that name, a link too.
        let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(path.as_path())?;
        if let Err(error) = file.write_all(content) {
            // Half a result is worse than none: it would pass for the whole.
            let _ = fs::remove_file(path.as_path());
            return Err(error);
        }
        if self.stored_count.fetch_add(1, Ordering::Relaxed) % CLEANUP_FILE_INTERVAL
            == CLEANUP_FILE_INTERVAL - 1
        {
            // What cannot be removed now is removed another time.
            let _ = self.clean_up();
        }
        Ok(path)
    }

    /// Removes what is too old, then the oldest of what is too much.
    pub fn clean_up(&self) -> io::Result<SpillCleanupReport> {
        self.clean_up_at(SystemTime::now())
    }

    fn clean_up_at(&self, now: SystemTime) -> io::Result<SpillCleanupReport> {
        let mut swept = SpillCleanupReport::default();
        let mut files = Vec::new();
        let mut folders = Vec::new();
        for folder in
            list_entries(self.dir.as_path())?.into_iter().filter(|entry| entry.kind == FileType::Directory)
        {
            files.extend(
                list_entries(&folder.path)?.into_iter().filter(|entry| entry.kind == FileType::RegularFile),
            );
            folders.push(folder.path);
        }
        files.sort_by(|a, b| a.changed.cmp(&b.changed).then_with(|| a.path.cmp(&b.path)));
        let mut total: u64 = files.iter().map(|file| file.bytes).sum();
        for file in files {
            let old = now.duration_since(file.changed).is_ok_and(|age| age > self.limits.age);
            if !old && total <= self.limits.bytes {
                continue;
            }
            fs::remove_file(&file.path)?;
            total -= file.bytes;
            swept.files += 1;
            swept.bytes += file.bytes;
        }
        for folder in folders {
            // Only an empty one goes; an error means that it is not.
            let _ = fs::remove_dir(folder);
        }
        Ok(swept)
    }
}

struct SpillEntry {
    path: PathBuf,
    kind: FileType,
    bytes: u64,
    changed: SystemTime,
}

/// The entries of a directory, links as links. A directory that is not there has none.
fn list_entries(dir: &Path) -> io::Result<Vec<SpillEntry>> {
    let mut found = Vec::new();
    let listed = match fs::read_dir(dir) {
        Ok(listed) => listed,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        Err(error) => return Err(error),
    };
    for entry in listed {
        let entry = entry?;
        // `DirEntry::metadata` does not follow links.
        let Ok(metadata) = entry.metadata() else { continue };
        found.push(SpillEntry {
            path: entry.path(),
            kind: FileType::from_raw_mode(metadata.mode()),
            bytes: metadata.len(),
            changed: metadata.modified()?,
        });
    }
    Ok(found)
}

/// Makes a directory that only this user may enter. One that is there must be this user's own, and no link.
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
    let own = stat.st_uid == rustix::process::geteuid().as_raw();
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory || !own {
        return Err(io::Error::other(format!("`{}` is not a directory of this user's", dir.display())));
    }
    if stat.st_mode & 0o077 != 0 {
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

/// A name that is one plain component, whatever a client chose for an id.
fn sanitize_name(id: &str) -> String {
    let plain: String = id
        .chars()
        .take(64)
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' })
        .collect();
    if plain.is_empty() { "_".to_owned() } else { plain }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spill(dir: &tempfile::TempDir, limits: SpillLimits) -> SpillStore {
        SpillStore::new(AbsPath::new(dir.path()).unwrap().join("state/results"), limits)
    }

    #[test]
    fn only_the_user_may_read_what_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let spill = spill(&dir, SpillLimits::default());
        let path = spill.store("../../evil session", "call/1", "txt", "whole".as_bytes()).unwrap();
        assert!(path.is_under(&spill.session_directory("../../evil session")), "{path}");
        assert!(path.is_under(&spill.dir) && path.lexical() == path);
        assert_eq!(fs::read_to_string(&path).unwrap(), "whole");
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode(path.as_path()), 0o600);
        assert_eq!(mode(path.parent().unwrap().as_path()), 0o700);
        assert_eq!(mode(spill.dir.as_path()), 0o700);
        let other = spill.store("../../evil session", "call/1", "txt", b"again").unwrap();
        assert_ne!(path, other);
    }

    #[test]
    fn a_link_in_the_place_of_a_folder_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let spill = spill(&dir, SpillLimits::default());
        spill.store("a", "c", "txt", b"x").unwrap();
        std::os::unix::fs::symlink(dir.path(), spill.session_directory("b")).unwrap();
        assert!(spill.store("b", "c", "txt", b"x").is_err());
    }

    #[test]
    fn the_old_go_and_then_the_oldest_of_too_much() {
        let dir = tempfile::tempdir().unwrap();
        let limits = SpillLimits { age: Duration::from_secs(100), bytes: 25 };
        let spill = spill(&dir, limits);
        let now = SystemTime::now();
        let mut paths = Vec::new();
        for (session, age) in [("one", 200), ("two", 50), ("two", 40), ("two", 30)] {
            let path = spill.store(session, "c", "txt", &[b'x'; 10]).unwrap();
            let file = OpenOptions::new().write(true).open(path.as_path()).unwrap();
            file.set_modified(now - Duration::from_secs(age)).unwrap();
            paths.push(path);
        }
        let swept = spill.clean_up_at(now).unwrap();
        assert_eq!(swept, SpillCleanupReport { files: 2, bytes: 20 });
        let there: Vec<bool> = paths.iter().map(|path| path.as_path().exists()).collect();
        assert_eq!(there, [false, false, true, true]);
        assert!(!spill.session_directory("one").as_path().exists(), "an empty folder goes as well");
        assert_eq!(spill.clean_up_at(now).unwrap(), SpillCleanupReport::default());
    }

    #[test]
    fn cleaning_up_where_nothing_was_kept_is_nothing() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(spill(&dir, SpillLimits::default()).clean_up().unwrap(), SpillCleanupReport::default());
    }
}
