//! Contents, named by their hash.
//!
//! Small ones are compressed as they come.
//! A large one is first stored as it is, because compressing it would be felt at every edit of a large file, and is
//! compressed a moment later, when nobody waits for it.

use super::ContentDescriptor;
use super::log::open_private_dir;
use crate::anchored_path::{open_regular_at, unlink_with_retry};
use crate::replace::temporary_name;
use crate::{ContentHash, FileProblem, FileSnapshot, sys};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, statat};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

/// The fastest level still halves source code.
const COMPRESSION_LEVEL: i32 = 1;
/// Content this large is stored as it is first.
const MIN_RAW_BLOB_BYTES: usize = 1 << 20;
/// What the name of content that is stored as it is ends with.
const RAW_SUFFIX: &str = ".raw";

#[derive(Debug)]
pub(super) struct BlobStore {
    dir: OwnedFd,
    stored: BTreeMap<ContentHash, BlobEntry>,
    total: u64,
}

/// A content that is there.
#[derive(Debug, Clone, Copy)]
struct BlobEntry {
    /// What it takes on the disk.
    bytes: u64,
    encoding: BlobEncoding,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BlobEncoding {
    Raw,
    Compressed,
}

impl BlobStore {
    pub(super) fn open(within: BorrowedFd<'_>) -> Result<Self, FileProblem> {
        let dir = open_private_dir(within, OsStr::new("blobs"))?;
        Ok(Self { dir, stored: BTreeMap::new(), total: 0 })
    }

    /// Finds out what is there.
    pub(super) fn scan(&mut self) -> Result<(), FileProblem> {
        for entry in Dir::read_from(&self.dir)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let (digits, form) = match name.strip_suffix(RAW_SUFFIX) {
                Some(digits) => (digits, BlobEncoding::Raw),
                None => (name.as_str(), BlobEncoding::Compressed),
            };
            let Some(hash) = ContentHash::from_hex(digits) else { continue };
            if let Ok(stat) = statat(&self.dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
                && FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            {
                self.insert_entry(
                    hash,
                    BlobEntry { bytes: u64::try_from(stat.st_size).unwrap_or(0), encoding: form },
                );
            }
        }
        Ok(())
    }

    /// All of them together, as they are on the disk.
    pub(super) fn total_bytes(&self) -> u64 {
        self.total
    }

    fn insert_entry(&mut self, hash: ContentHash, stored: BlobEntry) {
        let former = self.stored.insert(hash, stored).map_or(0, |former| former.bytes);
        self.total = self.total + stored.bytes - former;
    }

    /// Stores a version, unless it is there already or not wanted.
    pub(super) fn store(
        &mut self,
        version: &FileSnapshot,
        wanted: bool,
    ) -> Result<ContentDescriptor, FileProblem> {
        let (hash, bytes) = (version.hash(), version.bytes.len() as u64);
        let kept = ContentDescriptor { hash, bytes, mode: version.mode, stored: wanted };
        if !wanted || self.open_blob(hash).is_ok() {
            return Ok(kept);
        }
        let packed;
        let (content, form) = if is_large(&version.bytes) {
            (&version.bytes, BlobEncoding::Raw)
        } else {
            packed = zstd::bulk::compress(&version.bytes, COMPRESSION_LEVEL)?;
            (&packed, BlobEncoding::Compressed)
        };
        self.write_blob(hash, content, form)?;
        Ok(kept)
    }

    fn write_blob(
        &mut self,
        hash: ContentHash,
        content: &[u8],
        form: BlobEncoding,
    ) -> Result<(), FileProblem> {
        let temp = temporary_name();
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW;
        let file = sys::openat(self.dir.as_fd(), &temp, flags, Mode::from_raw_mode(0o600))?;
        let name = blob_file_name(hash, form);
        let stored =
            sys::write_all(&file, content).and_then(|()| sys::rename(self.dir.as_fd(), &temp, &name));
        if let Err(error) = stored {
            let _ = unlink_with_retry(self.dir.as_fd(), &temp, AtFlags::empty());
            return Err(error.into());
        }
        self.insert_entry(hash, BlobEntry { bytes: content.len() as u64, encoding: form });
        Ok(())
    }

    /// Another process may have packed it or thrown it out since it was counted.
    fn open_blob(&self, hash: ContentHash) -> Result<(OwnedFd, BlobEncoding), FileProblem> {
        let form = self.stored.get(&hash).map_or(BlobEncoding::Compressed, |stored| stored.encoding);
        let other = if form == BlobEncoding::Raw { BlobEncoding::Compressed } else { BlobEncoding::Raw };
        let open =
            |form| open_regular_at(self.dir.as_fd(), &blob_file_name(hash, form)).map(|file| (file, form));
        open(form).or_else(|_| open(other))
    }

    /// The content, checked against its hash.
    pub(super) fn load(&self, kept: &ContentDescriptor) -> Result<Vec<u8>, FileProblem> {
        if !kept.stored {
            return Err(FileProblem::Other("its content was not kept".to_owned()));
        }
        let (file, form) = self.open_blob(kept.hash)?;
        let size = u64::try_from(sys::fstat(file.as_fd())?.st_size).unwrap_or(0);
        let found = sys::read_all(file.as_fd(), size, u64::MAX)?;
        let room = usize::try_from(kept.bytes).unwrap_or(usize::MAX);
        let bytes = match form {
            BlobEncoding::Raw => found,
            BlobEncoding::Compressed => zstd::bulk::decompress(&found, room)?,
        };
        if ContentHash::of(&bytes) != kept.hash {
            return Err(FileProblem::Other("its content in the journal is damaged".to_owned()));
        }
        Ok(bytes)
    }

    /// A content that is stored as it is, to be packed by whoever has time.
    pub(super) fn first_raw(&self) -> Option<(ContentHash, Result<OwnedFd, FileProblem>)> {
        let (hash, _) = self.stored.iter().find(|(_, stored)| stored.encoding == BlobEncoding::Raw)?;
        Some((*hash, open_regular_at(self.dir.as_fd(), &blob_file_name(*hash, BlobEncoding::Raw))))
    }

    /// Puts the packed form in the place of the raw one. `None` where it could not be had: then it stays as it is, and
    /// is not tried again by this process.
    pub(super) fn put_compressed(
        &mut self,
        hash: ContentHash,
        packed: Option<&[u8]>,
    ) -> Result<(), FileProblem> {
        let Some(stored) = self.stored.get(&hash).copied() else { return Ok(()) };
        match packed {
            Some(packed) => {
                self.write_blob(hash, packed, BlobEncoding::Compressed)?;
                unlink_with_retry(
                    self.dir.as_fd(),
                    &blob_file_name(hash, BlobEncoding::Raw),
                    AtFlags::empty(),
                )
                .or_else(ignore_missing)?;
            }
            None => self.insert_entry(hash, BlobEntry { encoding: BlobEncoding::Compressed, ..stored }),
        }
        Ok(())
    }

    /// Throws out what nobody needs.
    pub(super) fn retain(&mut self, needed: impl Fn(&ContentHash) -> bool) -> Result<(), FileProblem> {
        let gone: Vec<ContentHash> = self.stored.keys().filter(|hash| !needed(hash)).copied().collect();
        gone.into_iter().try_for_each(|hash| self.remove_blob(hash))
    }

    /// Throws out one.
    pub(super) fn remove_blob(&mut self, hash: ContentHash) -> Result<(), FileProblem> {
        for form in [BlobEncoding::Compressed, BlobEncoding::Raw] {
            unlink_with_retry(self.dir.as_fd(), &blob_file_name(hash, form), AtFlags::empty())
                .or_else(ignore_missing)?;
        }
        self.total -= self.stored.remove(&hash).map_or(0, |stored| stored.bytes);
        Ok(())
    }

    /// Removes what a crash left half written.
    pub(super) fn remove_temporary_files(&self) -> Result<(), FileProblem> {
        for entry in Dir::read_from(&self.dir)? {
            let name = OsString::from_vec(entry?.file_name().to_bytes().to_vec());
            if name.to_string_lossy().starts_with(".toolgate-") {
                let _ = unlink_with_retry(self.dir.as_fd(), &name, AtFlags::empty());
            }
        }
        Ok(())
    }
}

/// Packs a raw content. `None` where it cannot be read or is not what its name says.
pub(super) fn compress_blob(hash: ContentHash, raw: &OwnedFd) -> Option<Vec<u8>> {
    let size = u64::try_from(sys::fstat(raw.as_fd()).ok()?.st_size).ok()?;
    let bytes = sys::read_all(raw.as_fd(), size, u64::MAX).ok()?;
    (ContentHash::of(&bytes) == hash).then(|| zstd::bulk::compress(&bytes, COMPRESSION_LEVEL).ok())?
}

/// Whether content is stored as it is first.
pub(super) fn is_large(content: &[u8]) -> bool {
    content.len() >= MIN_RAW_BLOB_BYTES
}

fn ignore_missing(error: rustix::io::Errno) -> Result<(), rustix::io::Errno> {
    if error == rustix::io::Errno::NOENT { Ok(()) } else { Err(error) }
}

fn blob_file_name(hash: ContentHash, form: BlobEncoding) -> OsString {
    match form {
        BlobEncoding::Raw => OsString::from(format!("{hash}{RAW_SUFFIX}")),
        BlobEncoding::Compressed => OsString::from(hash.to_string()),
    }
}
