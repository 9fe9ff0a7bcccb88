//! The blob store: contents of files, one file each, named by their hash.
//!
//! Small contents are compressed at once.
//! A large one is stored raw first, because compressing it would delay the edit that displaces it, and is compressed in
//! the background (see [`compress`](super::compress)).

use super::ContentDescriptor;
use super::log::open_private_dir;
use crate::anchored_path::{open_regular_at, unlink_name};
use crate::replace::temporary_name;
use crate::{ContentHash, FileProblem, FileSnapshot, sys};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, statat};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

/// The fastest level of zstd. It halves source code; higher levels gain a few percent and take several times as long.
const COMPRESSION_LEVEL: i32 = 1;
/// Content of this size is stored raw first.
const MIN_RAW_BLOB_BYTES: usize = 1 << 20;
/// The suffix of the name of a raw blob.
const RAW_SUFFIX: &str = ".raw";

/// The stored contents.
#[derive(Debug)]
pub(super) struct BlobStore {
    /// The directory of the blobs.
    dir: OwnedFd,
    /// The blobs that this process knows of. Another process may have compressed or removed one since.
    stored: BTreeMap<ContentHash, BlobEntry>,
    /// The size on disk of all blobs in `stored`.
    total: u64,
}

/// One blob.
#[derive(Debug, Clone, Copy)]
struct BlobEntry {
    /// Size on disk.
    bytes: u64,
    /// How it is stored.
    encoding: BlobEncoding,
}

/// How a blob is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlobEncoding {
    /// As it is, in a file with the suffix [`RAW_SUFFIX`].
    Raw,
    /// Compressed with zstd.
    Compressed,
}

impl BlobStore {
    /// Opens or creates the store in the directory of the journal. [`BlobStore::scan`] finds the blobs.
    pub(super) fn open(parent: BorrowedFd<'_>) -> Result<Self, FileProblem> {
        let dir = open_private_dir(parent, OsStr::new("blobs"))?;
        Ok(Self { dir, stored: BTreeMap::new(), total: 0 })
    }

    /// Lists the blobs that are on disk.
    pub(super) fn scan(&mut self) -> Result<(), FileProblem> {
        for entry in Dir::read_from(&self.dir)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let (digits, encoding) = match name.strip_suffix(RAW_SUFFIX) {
                Some(digits) => (digits, BlobEncoding::Raw),
                None => (name.as_str(), BlobEncoding::Compressed),
            };
            let Some(hash) = ContentHash::from_hex(digits) else { continue };
            if let Ok(stat) = statat(&self.dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
                && FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            {
                self.insert_entry(
                    hash,
                    BlobEntry { bytes: u64::try_from(stat.st_size).unwrap_or(0), encoding },
                );
            }
        }
        Ok(())
    }

    /// The size on disk of all blobs.
    pub(super) fn total_bytes(&self) -> u64 {
        self.total
    }

    /// Adds or replaces the entry of a blob.
    fn insert_entry(&mut self, hash: ContentHash, stored: BlobEntry) {
        let former = self.stored.insert(hash, stored).map_or(0, |former| former.bytes);
        self.total = self.total + stored.bytes - former;
    }

    /// Stores the content of a snapshot, unless it is already stored or `wanted` is false.
    pub(super) fn store(
        &mut self,
        snapshot: &FileSnapshot,
        wanted: bool,
    ) -> Result<ContentDescriptor, FileProblem> {
        let (hash, bytes) = (snapshot.hash(), snapshot.bytes.len() as u64);
        let descriptor = ContentDescriptor { hash, bytes, mode: snapshot.mode, stored: wanted };
        if !wanted || self.open_blob(hash).is_ok() {
            return Ok(descriptor);
        }
        let compressed;
        let (content, encoding) = if is_large(&snapshot.bytes) {
            (&snapshot.bytes, BlobEncoding::Raw)
        } else {
            compressed = zstd::bulk::compress(&snapshot.bytes, COMPRESSION_LEVEL)?;
            (&compressed, BlobEncoding::Compressed)
        };
        self.write_blob(hash, content, encoding)?;
        Ok(descriptor)
    }

    /// Writes a blob to a temporary file and renames it, so that a blob is complete if it has its name.
    fn write_blob(
        &mut self,
        hash: ContentHash,
        content: &[u8],
        encoding: BlobEncoding,
    ) -> Result<(), FileProblem> {
        let temp = temporary_name();
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW;
        let file = sys::openat(self.dir.as_fd(), &temp, flags, Mode::from_raw_mode(0o600))?;
        let name = blob_file_name(hash, encoding);
        let stored =
            sys::write_all(&file, content).and_then(|()| sys::rename(self.dir.as_fd(), &temp, &name));
        if let Err(error) = stored {
            let _ = unlink_name(self.dir.as_fd(), &temp, AtFlags::empty());
            return Err(error.into());
        }
        self.insert_entry(hash, BlobEntry { bytes: content.len() as u64, encoding });
        Ok(())
    }

    /// Opens a blob in the encoding that is known, else in the other: another process may have compressed it since.
    fn open_blob(&self, hash: ContentHash) -> Result<(OwnedFd, BlobEncoding), FileProblem> {
        let encoding = self.stored.get(&hash).map_or(BlobEncoding::Compressed, |stored| stored.encoding);
        let other = if encoding == BlobEncoding::Raw { BlobEncoding::Compressed } else { BlobEncoding::Raw };
        let open = |encoding| {
            open_regular_at(self.dir.as_fd(), &blob_file_name(hash, encoding)).map(|file| (file, encoding))
        };
        open(encoding).or_else(|_| open(other))
    }

    /// Loads content and verifies its hash. Content that was not stored for this change may be there because of another
    /// one: what a call wrote is stored when the next call changes the file.
    pub(super) fn load(&self, descriptor: &ContentDescriptor) -> Result<Vec<u8>, FileProblem> {
        let (file, encoding) = match self.open_blob(descriptor.hash) {
            Err(_) if !descriptor.stored => {
                return Err(FileProblem::Other("its content is not stored in the journal".to_owned()));
            }
            found => found?,
        };
        let size = u64::try_from(sys::fstat(file.as_fd())?.st_size).unwrap_or(0);
        let stored = sys::read_all(file.as_fd(), size, u64::MAX)?;
        let max_bytes = usize::try_from(descriptor.bytes).unwrap_or(usize::MAX);
        let bytes = match encoding {
            BlobEncoding::Raw => stored,
            BlobEncoding::Compressed => zstd::bulk::decompress(&stored, max_bytes)?,
        };
        if ContentHash::of(&bytes) != descriptor.hash {
            return Err(FileProblem::Other("its content in the journal is corrupted".to_owned()));
        }
        Ok(bytes)
    }

    /// A raw blob that is to be compressed, if there is one.
    pub(super) fn first_raw(&self) -> Option<(ContentHash, Result<OwnedFd, FileProblem>)> {
        let (hash, _) = self.stored.iter().find(|(_, stored)| stored.encoding == BlobEncoding::Raw)?;
        Some((*hash, open_regular_at(self.dir.as_fd(), &blob_file_name(*hash, BlobEncoding::Raw))))
    }

    /// Replaces a raw blob by its compressed encoding. `None` means that compressing failed: the blob stays raw, and this
    /// process does not try again.
    pub(super) fn put_compressed(
        &mut self,
        hash: ContentHash,
        compressed: Option<&[u8]>,
    ) -> Result<(), FileProblem> {
        let Some(stored) = self.stored.get(&hash).copied() else { return Ok(()) };
        match compressed {
            Some(compressed) => {
                self.write_blob(hash, compressed, BlobEncoding::Compressed)?;
                unlink_name(self.dir.as_fd(), &blob_file_name(hash, BlobEncoding::Raw), AtFlags::empty())
                    .or_else(ignore_missing)?;
            }
            None => self.insert_entry(hash, BlobEntry { encoding: BlobEncoding::Compressed, ..stored }),
        }
        Ok(())
    }

    /// Removes the blobs for which `needed` is false.
    pub(super) fn retain(&mut self, needed: impl Fn(&ContentHash) -> bool) -> Result<(), FileProblem> {
        let unneeded: Vec<ContentHash> = self.stored.keys().filter(|hash| !needed(hash)).copied().collect();
        unneeded.into_iter().try_for_each(|hash| self.remove_blob(hash))
    }

    /// Removes one blob, in whichever encoding it is.
    pub(super) fn remove_blob(&mut self, hash: ContentHash) -> Result<(), FileProblem> {
        for encoding in [BlobEncoding::Compressed, BlobEncoding::Raw] {
            unlink_name(self.dir.as_fd(), &blob_file_name(hash, encoding), AtFlags::empty())
                .or_else(ignore_missing)?;
        }
        self.total -= self.stored.remove(&hash).map_or(0, |stored| stored.bytes);
        Ok(())
    }

    /// Removes temporary files of a process that crashed while it wrote a blob.
    pub(super) fn remove_temporary_files(&self) -> Result<(), FileProblem> {
        for entry in Dir::read_from(&self.dir)? {
            let name = OsString::from_vec(entry?.file_name().to_bytes().to_vec());
            if name.to_string_lossy().starts_with(".toolgate-") {
                let _ = unlink_name(self.dir.as_fd(), &name, AtFlags::empty());
            }
        }
        Ok(())
    }
}

/// Compresses a raw blob. `None` if it cannot be read or does not match its hash.
pub(super) fn compress_blob(hash: ContentHash, raw: &OwnedFd) -> Option<Vec<u8>> {
    let size = u64::try_from(sys::fstat(raw.as_fd()).ok()?.st_size).ok()?;
    let bytes = sys::read_all(raw.as_fd(), size, u64::MAX).ok()?;
    (ContentHash::of(&bytes) == hash).then(|| zstd::bulk::compress(&bytes, COMPRESSION_LEVEL).ok())?
}

/// Whether content is stored raw first.
pub(super) fn is_large(content: &[u8]) -> bool {
    content.len() >= MIN_RAW_BLOB_BYTES
}

/// A file that is gone already counts as removed.
fn ignore_missing(error: rustix::io::Errno) -> Result<(), rustix::io::Errno> {
    if error == rustix::io::Errno::NOENT { Ok(()) } else { Err(error) }
}

/// The name of a blob, by its hash.
fn blob_file_name(hash: ContentHash, encoding: BlobEncoding) -> OsString {
    match encoding {
        BlobEncoding::Raw => OsString::from(format!("{hash}{RAW_SUFFIX}")),
        BlobEncoding::Compressed => OsString::from(hash.to_string()),
    }
}
