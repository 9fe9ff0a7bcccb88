//! Snapshots of files: content at some moment, and whether the file still has it.
//!
//! A [`FileFingerprint`] (device, inode, size and modification time) answers cheaply and not always; a [`ContentHash`]
//! or the bytes of a [`FileSnapshot`] answer surely and cost a read.

use crate::open::FileProblem;
use crate::sys;
use crate::threads::try_spawn_scoped;
use rustix::fs::Stat;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use toolgate_proto::timestamp::{may_timestamp_repeat, timestamp_nanos};

/// The metadata by which an unchanged file is recognized without reading it: the same fingerprint means the same content,
/// unless the file was modified again within the resolution of its timestamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFingerprint {
    /// Device number.
    dev: u64,
    /// Inode number. With `dev` it tells a replaced file from a modified one.
    ino: u64,
    /// Size in bytes.
    pub bytes: u64,
    /// Modification time in seconds and nanoseconds.
    mtime: (i64, i64),
    /// Whether the file was modified so shortly before the fingerprint was taken that a further modification might get
    /// the same time.
    is_recent: bool,
}

/// With less content, starting a thread takes longer than hashing.
const MIN_PARALLEL_HASH_BYTES: usize = 1 << 20;
/// How often a file is read again that was modified during the read.
const MAX_READ_ATTEMPTS: usize = 3;

impl FileFingerprint {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self::taken_at(stat, SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default())
    }

    /// The same, taken so long after 1970.
    fn taken_at(stat: &Stat, now: Duration) -> Self {
        let mtime = (stat.st_mtime, i64::try_from(stat.st_mtime_nsec).unwrap_or(0));
        Self {
            dev: stat.st_dev,
            ino: stat.st_ino,
            bytes: u64::try_from(stat.st_size).unwrap_or(0),
            mtime,
            is_recent: may_timestamp_repeat(
                timestamp_nanos(mtime.0, mtime.1),
                i128::try_from(now.as_nanos()).unwrap_or(i128::MAX),
            ),
        }
    }

    /// Whether the content is surely the same at a later fingerprint. False means only that the content has to be
    /// compared.
    pub fn is_surely_same(&self, later: &Self) -> bool {
        !self.is_recent && self.has_same_metadata(later)
    }

    /// Whether the metadata is the same, recent or not.
    pub(crate) fn has_same_metadata(&self, later: &Self) -> bool {
        (self.dev, self.ino, self.bytes, self.mtime) == (later.dev, later.ino, later.bytes, later.mtime)
    }
}

/// The BLAKE3 hash of a file's content.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// Hashes these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).into())
    }

    /// Parses 64 hexadecimal digits; `None` for anything else.
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
        // Every read reports its hash, and `{:02x}` for each byte would take longer than hashing a small file.
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

/// The content of a file at one moment, read completely.
#[derive(Debug, Clone)]
pub struct FileSnapshot {
    /// The whole content.
    pub bytes: Vec<u8>,
    /// The hash of `bytes`, computed on first use: for a large file it takes longer than reading.
    hash: OnceLock<ContentHash>,
    /// The fingerprint from before the read, so that a modification during the read is noticed later.
    pub fingerprint: FileFingerprint,
    /// How many hard links the file has.
    pub hard_links: u64,
    /// Permission bits, those for set-user-ID, set-group-ID and sticky included.
    pub mode: u32,
}

/// Equal content and metadata; whether the hash has been computed yet does not matter.
impl PartialEq for FileSnapshot {
    fn eq(&self, other: &Self) -> bool {
        let metadata = |snapshot: &Self| (snapshot.fingerprint, snapshot.hard_links, snapshot.mode);
        metadata(self) == metadata(other) && self.bytes == other.bytes
    }
}

impl Eq for FileSnapshot {}

impl FileSnapshot {
    /// Reads an open file of at most `max_bytes`. A file that is modified during the read is read again, a few times.
    pub(crate) fn read(fd: BorrowedFd<'_>, max_bytes: u64) -> Result<Self, FileProblem> {
        let mut stat = sys::fstat(fd)?;
        for _ in 0..MAX_READ_ATTEMPTS {
            let before = FileFingerprint::of(&stat);
            if before.bytes > max_bytes {
                return Err(too_large_problem(before.bytes, max_bytes));
            }
            let bytes = sys::read_all(fd, before.bytes, max_bytes)?;
            if bytes.len() as u64 > max_bytes {
                return Err(too_large_problem(bytes.len() as u64, max_bytes));
            }
            stat = sys::fstat(fd)?;
            let after = FileFingerprint::of(&stat);
            if before.has_same_metadata(&after) && bytes.len() as u64 == after.bytes {
                return Ok(Self {
                    hash: OnceLock::new(),
                    bytes,
                    fingerprint: before,
                    hard_links: stat.st_nlink,
                    mode: stat.st_mode & 0o7777,
                });
            }
        }
        Err(FileProblem::Other(format!(
            "it was modified during each of {MAX_READ_ATTEMPTS} attempts to read it"
        )))
    }

    /// The hash of the content, computed at the first call.
    pub fn hash(&self) -> ContentHash {
        *self.hash.get_or_init(|| ContentHash::of(&self.bytes))
    }

    /// Runs `work` while another thread computes the hash of large content, which the caller will need afterwards.
    pub fn hash_during<T>(&self, work: impl FnOnce() -> T) -> T {
        if self.bytes.len() < MIN_PARALLEL_HASH_BYTES {
            return work();
        }
        std::thread::scope(|scope| {
            try_spawn_scoped(scope, || self.hash());
            work()
        })
    }

    /// Whether an open file still has this content. Reads the file only if its fingerprint does not decide it.
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

/// The problem of a file that exceeds a limit.
fn too_large_problem(bytes: u64, max_bytes: u64) -> FileProblem {
    FileProblem::Other(format!("it has {bytes} bytes, more than the limit of {max_bytes}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether the fingerprint of a file with this modification time proves at this time that its content is the same.
    fn is_surely_unchanged(modified: Duration, now: Duration) -> bool {
        let dir = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(dir.path().join("f")).unwrap();
        file.set_modified(UNIX_EPOCH + modified).unwrap();
        let fingerprint = || FileFingerprint::taken_at(&sys::fstat(file.as_fd()).unwrap(), now);
        fingerprint().is_surely_same(&fingerprint())
    }

    #[test]
    fn a_recent_modification_time_proves_nothing() {
        let (whole_second, nanos) = (Duration::from_secs(1_700_000_000), Duration::from_nanos(1));
        let now = whole_second + Duration::from_nanos(123_456_789);
        assert!(!is_surely_unchanged(now, now));
        assert!(!is_surely_unchanged(whole_second, now), "the file system may keep whole seconds");
        assert!(is_surely_unchanged(whole_second - Duration::from_secs(3), now));
        assert!(is_surely_unchanged(whole_second - Duration::from_secs(1) + nanos, now));
    }

    #[test]
    fn a_fingerprint_that_is_taken_now_knows_an_old_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = std::fs::File::create(dir.path().join("f")).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(3600)).unwrap();
        let fingerprint = || FileFingerprint::of(&sys::fstat(file.as_fd()).unwrap());
        assert!(fingerprint().is_surely_same(&fingerprint()));
    }
}
