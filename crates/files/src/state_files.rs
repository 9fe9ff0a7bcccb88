//! toolgate's own files: settings in, private state out. No call of a model comes this way.

use super::open::FileProblem;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::time::{Duration, Instant};
use toolgate_proto::AbsPath;
use toolgate_proto::timestamp::timestamp_nanos;

/// Reads a settings file as text. A file that is not there is `None`; any other trouble is an error,
/// because a file that cannot be read may hold a deny rule.
pub fn read_settings_text(path: &AbsPath, most_bytes: u64) -> Result<Option<String>, FileProblem> {
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
    file.take(most_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        return Err(FileProblem::Other(format!("it is larger than {most_bytes} bytes")));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| FileProblem::Other("it is not UTF-8 text".to_owned()))
}

/// Opens a file that the person named on the command line.
pub fn open_named_file(path: &AbsPath) -> Result<File, FileProblem> {
    Ok(File::open(path.as_path())?)
}

/// Writes a file that only this user may read, wholly or not at all, making its directory where needed. Where the path
/// is a symlink its target is replaced.
pub fn write_private_file(path: &AbsPath, content: &[u8]) -> Result<(), FileProblem> {
    replace_state_file(&crate::resolve(path).real, content)
}

/// How long another process may hold a file of toolgate's own. Each holds it for one read and one write.
const LOCK_TIMEOUT: Duration = Duration::from_secs(20);
const LOCK_RETRY_DELAY: Duration = Duration::from_millis(2);

/// Keeps other processes from changing a file of toolgate's own, until it is dropped.
#[derive(Debug)]
#[must_use = "the lock is held as long as this is"]
pub struct StateFileLock {
    // Closing it releases the lock, also where the process is killed.
    _file: File,
}

/// Locks a file of toolgate's own: what is read, changed and written under the lock is not lost to another process.
/// The lock is on a file beside it, since the file itself is replaced.
pub fn lock_state_file(path: &AbsPath) -> Result<StateFileLock, FileProblem> {
    let parent = path.parent().unwrap_or_else(AbsPath::root);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(parent.as_path())?;
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".lock");
    let beside = parent.join(name);
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed())
        .open(beside.as_path())?;
    let started = Instant::now();
    loop {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(StateFileLock { _file: file }),
            Err(Errno::WOULDBLOCK | Errno::INTR) if started.elapsed() < LOCK_TIMEOUT => {
                std::thread::sleep(LOCK_RETRY_DELAY);
            }
            Err(Errno::WOULDBLOCK | Errno::INTR) => {
                return Err(FileProblem::Other(format!("another process holds {beside}")));
            }
            Err(errno) => return Err(std::io::Error::from(errno).into()),
        }
    }
}

/// Makes a directory that only this user may enter, where it is not there yet.
pub fn make_private_dir(dir: &AbsPath) -> std::io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir.as_path())
}

/// Replaces a file of toolgate's own wholly or not at all, making its directory where needed. The new file has the
/// old one's mode, or else is for this user only.
pub fn replace_state_file(path: &AbsPath, content: &[u8]) -> Result<(), FileProblem> {
    let parent = path.parent().unwrap_or_else(AbsPath::root);
    fs::DirBuilder::new().recursive(true).mode(0o700).create(parent.as_path())?;
    let mode = match fs::symlink_metadata(path.as_path()) {
        Ok(old) if !old.is_file() => return Err(FileProblem::Special),
        Ok(old) => old.mode() & 0o777,
        Err(_) => 0o600,
    };
    let beside = parent.join(crate::generate_id(".toolgate-"));
    let written = (|| {
        let mut file = OpenOptions::new().create_new(true).write(true).mode(mode).open(beside.as_path())?;
        file.write_all(content)?;
        file.sync_all()?;
        fs::rename(beside.as_path(), path.as_path())?;
        // The new name lasts only once its directory is on disk as well.
        File::open(parent.as_path())?.sync_all()
    })();
    if written.is_err() {
        // Nothing more can be done about a leftover than to try.
        let _ = fs::remove_file(beside.as_path());
    }
    Ok(written?)
}

/// Reads a file of the workspace that settings name, links followed, up to a size.
pub fn read_named_bytes(path: &AbsPath, most_bytes: u64) -> Result<Vec<u8>, FileProblem> {
    let file = OpenOptions::new().read(true).custom_flags(nonblock_flag()).open(path.as_path())?;
    if !file.metadata()?.is_file() {
        return Err(FileProblem::Special);
    }
    let mut bytes = Vec::new();
    file.take(most_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        return Err(FileProblem::Other(format!("it is larger than {most_bytes} bytes")));
    }
    Ok(bytes)
}

/// Whether only the system's administrator can change what is at a real path: it and every directory above belong to
/// root, and no one else may write there.
pub fn is_system_file(real: &AbsPath) -> bool {
    real.as_path().ancestors().all(|path| {
        fs::symlink_metadata(path).is_ok_and(|found| found.uid() == 0 && found.mode() & 0o022 == 0)
    })
}

/// Whether a file may be executed by anyone.
pub fn is_executable(path: &AbsPath) -> bool {
    fs::metadata(path.as_path()).is_ok_and(|found| found.is_file() && found.mode() & 0o111 != 0)
}

/// The names in a directory that end so, in order. A directory that is not there has none.
pub fn list_names_with_suffix(dir: &AbsPath, suffix: &str) -> Result<Vec<String>, FileProblem> {
    let entries = match fs::read_dir(dir.as_path()) {
        Ok(entries) => entries,
        Err(error) => {
            return match FileProblem::from(error) {
                FileProblem::Missing | FileProblem::NotDirectory => Ok(Vec::new()),
                other => Err(other),
            };
        }
    };
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

/// What a file looked like, so that a change can be seen without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileStamp {
    /// Nothing is there, or nothing that can be looked at.
    Absent,
    /// A file of this identity, size and times.
    Present {
        /// Device and number.
        id: (u64, u64),
        /// Bytes.
        size: u64,
        /// Last change of content, in nanoseconds.
        modified: i128,
        /// Last change of anything, in nanoseconds; cannot be set back.
        changed: i128,
    },
}

/// Looks at a file without reading it.
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

fn nonblock_flag() -> i32 {
    rustix::fs::OFlags::NONBLOCK.bits().cast_signed()
}
