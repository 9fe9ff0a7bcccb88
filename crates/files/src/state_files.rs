//! Files of toolgate itself: settings that the user wrote, and private state.
//!
//! Unlike [`GrantedFiles`](crate::GrantedFiles), these functions follow symlinks and need no grant: users link their
//! settings from elsewhere, and no path here comes from a model.

use crate::folder::read_dir_if_present;
use crate::open::FileProblem;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::time::{Duration, Instant};
use toolgate_proto::AbsPath;
use toolgate_proto::timestamp::timestamp_nanos;

/// Reads a settings file as text; `None` if it does not exist. Every other failure is an error, because a file that cannot
/// be read may contain a deny rule.
pub fn read_settings_text(path: &AbsPath, max_bytes: u64) -> Result<Option<String>, FileProblem> {
    let file = match OpenOptions::new().read(true).custom_flags(nonblock_flag()).open(path.as_path()) {
        Ok(file) => file,
        Err(error) => {
            return match FileProblem::from(error) {
                FileProblem::Missing | FileProblem::NotDirectory => Ok(None),
                other => Err(other),
            };
        }
    };
    let metadata = file.metadata()?;
    if metadata.is_dir() {
        return Err(FileProblem::IsDirectory);
    }
    if !metadata.is_file() {
        return Err(FileProblem::Special);
    }
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return Err(FileProblem::Other(format!("it is larger than {max_bytes} bytes")));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| FileProblem::Other("it is not UTF-8 text".to_owned()))
}

/// Opens a file that the user named on the command line.
pub fn open_named_file(path: &AbsPath) -> Result<File, FileProblem> {
    Ok(File::open(path.as_path())?)
}

/// Writes a file that only this user can read, atomically, creating its directory if needed. If the path is a symlink, its
/// target is replaced.
pub fn write_private_file(path: &AbsPath, content: &[u8]) -> Result<(), FileProblem> {
    replace_state_file(&crate::resolve(path).real, content)
}

/// How long to wait for another process that has locked a state file. Each holds the lock for one read and one write.
const LOCK_TIMEOUT: Duration = Duration::from_secs(20);
/// How long to sleep between two attempts to lock.
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(2);

/// An exclusive lock on a state file, released when dropped.
#[derive(Debug)]
#[must_use = "dropping it releases the lock"]
pub struct StateFileLock {
    /// The lock file. Closing it releases the lock, also when the process is killed.
    _file: File,
}

/// Locks a state file for a read followed by a write. The lock is on a file `….lock` beside it, because the state file
/// itself is replaced and a lock on it would be lost.
pub fn lock_state_file(path: &AbsPath) -> Result<StateFileLock, FileProblem> {
    let parent = path.parent().unwrap_or_else(AbsPath::root);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(parent.as_path())?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    let lock_path = parent.join(name);
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(lock_path.as_path())?;
    let started = Instant::now();
    loop {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(StateFileLock { _file: file }),
            Err(Errno::WOULDBLOCK | Errno::INTR) if started.elapsed() < LOCK_TIMEOUT => {
                std::thread::sleep(LOCK_RETRY_DELAY);
            }
            Err(Errno::WOULDBLOCK | Errno::INTR) => {
                return Err(FileProblem::Other(format!(
                    "another process has held the lock file `{lock_path}` for {} seconds",
                    LOCK_TIMEOUT.as_secs()
                )));
            }
            Err(errno) => return Err(std::io::Error::from(errno).into()),
        }
    }
}

/// Creates a directory that only this user can enter, with its parents, unless it exists.
pub fn make_private_dir(dir: &AbsPath) -> std::io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir.as_path())
}

/// Replaces a state file atomically, creating its directory if needed. The new file has the mode of the old one; one that
/// is created is accessible to this user only.
pub fn replace_state_file(path: &AbsPath, content: &[u8]) -> Result<(), FileProblem> {
    replace_file(path, content, 0o600, 0o700)
}

/// Replaces a file that others may read, such as a project's settings: atomically, creating its directory if needed. The
/// new file has the mode of the old one; one that is created has the usual mode of this user's files.
pub fn replace_shared_file(path: &AbsPath, content: &[u8]) -> Result<(), FileProblem> {
    replace_file(path, content, 0o666, 0o777)
}

/// Replaces a file atomically. The modes are those of a file and a directory that are created, before the umask.
fn replace_file(path: &AbsPath, content: &[u8], file_mode: u32, dir_mode: u32) -> Result<(), FileProblem> {
    let parent = path.parent().unwrap_or_else(AbsPath::root);
    fs::DirBuilder::new().recursive(true).mode(dir_mode).create(parent.as_path())?;
    let mode = match fs::symlink_metadata(path.as_path()) {
        Ok(old) if !old.is_file() => return Err(FileProblem::Special),
        Ok(old) => old.mode() & 0o777,
        Err(_) => file_mode,
    };
    let temp = parent.join(crate::generate_id(".toolgate-"));
    let result = (|| {
        let mut file = OpenOptions::new().create_new(true).write(true).mode(mode).open(temp.as_path())?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(temp.as_path(), path.as_path())?;
        // The rename is durable only after an fsync of the directory.
        File::open(parent.as_path())?.sync_all()
    })();
    if result.is_err() {
        // A temporary file that cannot be removed stays; the first error is the one to report.
        let _ = fs::remove_file(temp.as_path());
    }
    Ok(result?)
}

/// Removes a state file. One that does not exist is no error.
pub fn remove_state_file(path: &AbsPath) -> Result<(), FileProblem> {
    match fs::remove_file(path.as_path()).map_err(FileProblem::from) {
        Ok(()) | Err(FileProblem::Missing) => Ok(()),
        Err(problem) => Err(problem),
    }
}

/// Reads a file that settings name. One of more than `max_bytes` is an error.
pub fn read_named_bytes(path: &AbsPath, max_bytes: u64) -> Result<Vec<u8>, FileProblem> {
    let file = OpenOptions::new().read(true).custom_flags(nonblock_flag()).open(path.as_path())?;
    if !file.metadata()?.is_file() {
        return Err(FileProblem::Special);
    }
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return Err(FileProblem::Other(format!("it is larger than {max_bytes} bytes")));
    }
    Ok(bytes)
}

/// Whether only root can change the file at a real path: it and every directory above it belong to root, and neither
/// group nor others may write there.
pub fn is_system_file(real: &AbsPath) -> bool {
    real.as_path().ancestors().all(|path| {
        fs::symlink_metadata(path).is_ok_and(|found| found.uid() == 0 && found.mode() & 0o022 == 0)
    })
}

/// Whether a path is a regular file that at least one user may execute.
pub fn is_executable(path: &AbsPath) -> bool {
    fs::metadata(path.as_path()).is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
}

/// The names in a directory that end with `suffix` and are not dotfiles, sorted. Empty if the directory does not exist.
pub fn list_names_with_suffix(dir: &AbsPath, suffix: &str) -> Result<Vec<String>, FileProblem> {
    let Some(entries) = read_dir_if_present(dir)? else { return Ok(Vec::new()) };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(suffix) && !name.starts_with('.') {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// The metadata of a settings file, by which a change is detected without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileStamp {
    /// The file does not exist, or its metadata cannot be read.
    Absent,
    /// The file exists.
    Present {
        /// Device and inode number.
        id: (u64, u64),
        /// Size in bytes.
        size: u64,
        /// Modification time (mtime) in nanoseconds since 1970.
        modified: i128,
        /// Change time (ctime) in nanoseconds since 1970. Unlike `modified`, a program cannot set it.
        changed: i128,
    },
}

/// Reads the metadata of a file, symlinks followed.
pub fn read_file_stamp(path: &AbsPath) -> FileStamp {
    match fs::metadata(path.as_path()) {
        Ok(found) => FileStamp::Present {
            id: (found.dev(), found.ino()),
            size: found.size(),
            modified: timestamp_nanos(found.mtime(), found.mtime_nsec()),
            changed: timestamp_nanos(found.ctime(), found.ctime_nsec()),
        },
        Err(_) => FileStamp::Absent,
    }
}

/// The stamps of the files of a directory whose names end like this, hidden ones left out; none if the directory does not
/// exist. Faster than [`read_file_stamp`] for each name: the path to the directory is walked once.
pub fn list_file_stamps(dir: &AbsPath, suffix: &str) -> Result<Vec<(String, FileStamp)>, FileProblem> {
    let names = list_names_with_suffix(dir, suffix)?;
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let dir = File::open(dir.as_path())?;
    let stamp = |name: &str| match rustix::fs::statat(&dir, name, rustix::fs::AtFlags::empty()) {
        Ok(found) => {
            let size = u64::try_from(found.st_size).unwrap_or_default();
            // The types of the fields differ between architectures.
            let nanos = |seconds, part| timestamp_nanos(seconds, i64::try_from(part).unwrap_or_default());
            FileStamp::Present {
                id: (found.st_dev, found.st_ino),
                size,
                modified: nanos(found.st_mtime, found.st_mtime_nsec),
                changed: nanos(found.st_ctime, found.st_ctime_nsec),
            }
        }
        Err(_) => FileStamp::Absent,
    };
    Ok(names.into_iter().map(|name| (stamp(&name), name)).map(|(stamp, name)| (name, stamp)).collect())
}

/// Keeps an open from blocking if the path is a pipe.
fn nonblock_flag() -> i32 {
    rustix::fs::OFlags::NONBLOCK.bits().cast_signed()
}
