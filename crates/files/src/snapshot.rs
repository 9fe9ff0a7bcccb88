//! What a file held at some moment, and how to tell whether it still does.

use super::open::FileProblem;
use super::sys;
use crate::threads::try_spawn_scoped;
use rustix::fs::Stat;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};
use toolgate_proto::timestamp::{may_timestamp_repeat, timestamp_nanos};

/// A file's outward signs: if they are the same, its content very probably is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFingerprint {
    dev: u64,
    ino: u64,
    /// Its size in bytes.
    pub bytes: u64,
    mtime: (i64, i64),
    /// The file was changed so shortly before it was looked at that a further change might bear the same time.
    is_recent: bool,
}

/// Hashing this much takes longer than starting a thread for it.
const MIN_PARALLEL_HASH_BYTES: usize = 1 << 20;

impl FileFingerprint {
    pub(crate) fn of(stat: &Stat) -> Self {
        let mtime = (stat.st_mtime, i64::try_from(stat.st_mtime_nsec).unwrap_or(0));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        Self {
            dev: stat.st_dev,
            ino: stat.st_ino,
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            mtime,
            is_recent: may_timestamp_repeat(
                timestamp_nanos(mtime.0, mtime.1),
                i128::try_from(now).unwrap_or(i128::MAX),
            ),
        }
    }

    /// Whether two looks at a file surely saw the same content. False means only that one must look closer.
    pub fn is_surely_same(&self, later: &Self) -> bool {
        !self.is_recent && self.has_same_metadata(later)
    }

    pub(crate) fn has_same_metadata(&self, later: &Self) -> bool {
        (self.dev, self.ino, self.bytes, self.mtime) == (later.dev, later.ino, later.bytes, later.mtime)
    }
}

/// The BLAKE3 hash of some content.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// Of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).into())
    }

    /// From its 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // By hand: every read tells its hash, and formatting each byte costs more than hashing.
        let digit = |nibble: u8| if nibble < 10 { b'0' + nibble } else { b'a' + nibble - 10 };
        let mut text = [0; 64];
        for (pair, byte) in text.as_chunks_mut::<2>().0.iter_mut().zip(self.0) {
            *pair = [digit(byte >> 4), digit(byte & 15)];
        }
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// The content of a file, as it was read in one piece.
#[derive(Debug, Clone)]
pub struct FileSnapshot {
    /// The content.
    pub bytes: Vec<u8>,
    /// Its hash, once somebody wanted it: of a large file it takes longer than the reading.
    hash: OnceLock<ContentHash>,
    /// The outward signs at that moment.
    pub fingerprint: FileFingerprint,
    /// How many names the file has.
    pub hard_links: u64,
    /// Permission bits.
    pub mode: u32,
}

/// The same content of the same file.
impl PartialEq for FileSnapshot {
    fn eq(&self, other: &Self) -> bool {
        let rest = |version: &Self| (version.fingerprint, version.hard_links, version.mode);
        rest(self) == rest(other) && self.bytes == other.bytes
    }
}

impl Eq for FileSnapshot {}

impl FileSnapshot {
    /// Reads all of an open file. A file that changes meanwhile is read again.
    pub(crate) fn read(fd: BorrowedFd<'_>, most: u64) -> Result<Self, FileProblem> {
        let mut stat = sys::fstat(fd)?;
        for _ in 0..3 {
            let mark = FileFingerprint::of(&stat);
            if mark.bytes > most {
                return Err(too_large_problem(mark.bytes, most));
            }
            let bytes = sys::read_all(fd, mark.bytes, most)?;
            if bytes.len() as u64 > most {
                return Err(too_large_problem(bytes.len() as u64, most));
            }
            stat = sys::fstat(fd)?;
            let after = FileFingerprint::of(&stat);
            if mark.has_same_metadata(&after) && bytes.len() as u64 == after.bytes {
                return Ok(Self {
                    hash: OnceLock::new(),
                    bytes,
                    // The earlier look: a change during the read must not hide behind it.
                    fingerprint: mark,
                    hard_links: stat.st_nlink,
                    mode: stat.st_mode & 0o7777,
                });
            }
        }
        Err(FileProblem::Other("it keeps changing while it is read".to_owned()))
    }

    /// The hash of the content.
    pub fn hash(&self) -> ContentHash {
        *self.hash.get_or_init(|| ContentHash::of(&self.bytes))
    }

    /// Does something that will want the hash in the end, while another thread takes it of large content.
    pub fn hash_during<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.bytes.len() < MIN_PARALLEL_HASH_BYTES {
            return work();
        }
        std::thread::scope(|scope| {
            try_spawn_scoped(scope, || self.hash());
            work()
        })
    }

    /// Whether this open file still holds this version.
    pub(crate) fn is_content_of(&self, fd: impl AsFd) -> Result<bool, FileProblem> {
        let now = FileFingerprint::of(&sys::fstat(fd.as_fd())?);
        if self.fingerprint.is_surely_same(&now) {
            return Ok(true);
        }
        if now.bytes != self.fingerprint.bytes {
            return Ok(false);
        }
        Ok(Self::read(fd.as_fd(), now.bytes)?.bytes == self.bytes)
    }
}

fn too_large_problem(bytes: u64, most: u64) -> FileProblem {
    FileProblem::Other(format!("it has {bytes} bytes, more than the {most} that can be changed at once"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Whether a file that was changed at this time is known by its outward signs when it is looked at now.
    fn is_known(modified: SystemTime) -> bool {
        let dir = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(dir.path().join("f")).unwrap();
        file.set_modified(modified).unwrap();
        let look = || FileFingerprint::of(&sys::fstat(file.as_fd()).unwrap());
        look().is_surely_same(&look())
    }

    #[test]
    fn a_time_that_a_further_change_might_bear_tells_nothing() {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let whole = UNIX_EPOCH + Duration::from_secs(now.as_secs());
        let nanos = Duration::from_nanos(1);
        assert!(!is_known(UNIX_EPOCH + now));
        assert!(!is_known(whole), "the file system may keep whole seconds");
        assert!(is_known(whole - Duration::from_secs(3)));
        assert!(is_known(whole - Duration::from_secs(1) + nanos));
    }
}
