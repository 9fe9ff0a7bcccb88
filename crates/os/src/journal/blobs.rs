//! Contents, named by their hash.
//!
//! Small ones are compressed as they come.
//! A large one is first stored as it is, because compressing it would be felt at every edit of a large file, and is
//! compressed a moment later, when nobody waits for it.

use super::Kept;
use super::log::private_dir;
use crate::files::place::{open_regular_at, remove};
use crate::files::replace::temporary_name;
use crate::files::{FileProblem, Hash, Version, sys};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, statat};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

/// The fastest level still halves source code.
const LEVEL: i32 = 1;
/// Content this large is stored as it is first.
const LARGE: usize = 1 << 20;
/// What the name of content that is stored as it is ends with.
const RAW: &str = ".raw";

#[derive(Debug)]
pub(super) struct BlobStore {
    dir: OwnedFd,
    stored: BTreeMap<Hash, BlobEntry>,
    total: u64,
}

/// A content that is there.
#[derive(Debug, Clone, Copy)]
struct BlobEntry {
    /// What it takes on the disk.
    bytes: u64,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Raw,
    Packed,
}

impl BlobStore {
    pub(super) fn open(within: BorrowedFd<'_>) -> Result<Self, FileProblem> {
        let dir = private_dir(within, OsStr::new("blobs"))?;
        Ok(Self { dir, stored: BTreeMap::new(), total: 0 })
    }

    /// Finds out what is there.
    pub(super) fn count(&mut self) -> Result<(), FileProblem> {
        for entry in Dir::read_from(&self.dir)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let (digits, form) = match name.strip_suffix(RAW) {
                Some(digits) => (digits, Form::Raw),
                None => (name.as_str(), Form::Packed),
            };
            let Some(hash) = Hash::from_hex(digits) else { continue };
            if let Ok(stat) = statat(&self.dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
                && FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            {
                self.note(hash, BlobEntry { bytes: u64::try_from(stat.st_size).unwrap_or(0), form });
            }
        }
        Ok(())
    }

    /// All of them together, as they are on the disk.
    pub(super) fn bytes(&self) -> u64 {
        self.total
    }

    fn note(&mut self, hash: Hash, stored: BlobEntry) {
        let former = self.stored.insert(hash, stored).map_or(0, |former| former.bytes);
        self.total = self.total + stored.bytes - former;
    }

    /// Stores a version, unless it is there already or not wanted.
    pub(super) fn keep(&mut self, version: &Version, wanted: bool) -> Result<Kept, FileProblem> {
        let (hash, bytes) = (version.hash(), version.bytes.len() as u64);
        let kept = Kept { hash, bytes, mode: version.mode, stored: wanted };
        if !wanted || self.find(hash).is_ok() {
            return Ok(kept);
        }
        let packed;
        let (content, form) = if is_large(&version.bytes) {
            (&version.bytes, Form::Raw)
        } else {
            packed = zstd::bulk::compress(&version.bytes, LEVEL)?;
            (&packed, Form::Packed)
        };
        self.put(hash, content, form)?;
        Ok(kept)
    }

    fn put(&mut self, hash: Hash, content: &[u8], form: Form) -> Result<(), FileProblem> {
        let temp = temporary_name();
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW;
        let file = sys::openat(self.dir.as_fd(), &temp, flags, Mode::from_raw_mode(0o600))?;
        let name = file_name(hash, form);
        let stored =
            sys::write_all(&file, content).and_then(|()| sys::rename(self.dir.as_fd(), &temp, &name));
        if let Err(error) = stored {
            let _ = remove(self.dir.as_fd(), &temp, AtFlags::empty());
            return Err(error.into());
        }
        self.note(hash, BlobEntry { bytes: content.len() as u64, form });
        Ok(())
    }

    /// Another process may have packed it or thrown it out since it was counted.
    fn find(&self, hash: Hash) -> Result<(OwnedFd, Form), FileProblem> {
        let form = self.stored.get(&hash).map_or(Form::Packed, |stored| stored.form);
        let other = if form == Form::Raw { Form::Packed } else { Form::Raw };
        let open = |form| open_regular_at(self.dir.as_fd(), &file_name(hash, form)).map(|file| (file, form));
        open(form).or_else(|_| open(other))
    }

    /// The content, checked against its hash.
    pub(super) fn load(&self, kept: &Kept) -> Result<Vec<u8>, FileProblem> {
        if !kept.stored {
            return Err(FileProblem::Other("its content was not kept".to_owned()));
        }
        let (file, form) = self.find(kept.hash)?;
        let size = u64::try_from(sys::fstat(file.as_fd())?.st_size).unwrap_or(0);
        let found = sys::read_all(file.as_fd(), size, u64::MAX)?;
        let room = usize::try_from(kept.bytes).unwrap_or(usize::MAX);
        let bytes = match form {
            Form::Raw => found,
            Form::Packed => zstd::bulk::decompress(&found, room)?,
        };
        if Hash::of(&bytes) != kept.hash {
            return Err(FileProblem::Other("its content in the journal is damaged".to_owned()));
        }
        Ok(bytes)
    }

    /// A content that is stored as it is, to be packed by whoever has time.
    pub(super) fn unpacked(&self) -> Option<(Hash, Result<OwnedFd, FileProblem>)> {
        let (hash, _) = self.stored.iter().find(|(_, stored)| stored.form == Form::Raw)?;
        Some((*hash, open_regular_at(self.dir.as_fd(), &file_name(*hash, Form::Raw))))
    }

    /// Puts the packed form in the place of the raw one. `None` where it could not be had: then it stays as it is, and
    /// is not tried again by this process.
    pub(super) fn put_compressed(&mut self, hash: Hash, packed: Option<&[u8]>) -> Result<(), FileProblem> {
        let Some(stored) = self.stored.get(&hash).copied() else { return Ok(()) };
        match packed {
            Some(packed) => {
                self.put(hash, packed, Form::Packed)?;
                remove(self.dir.as_fd(), &file_name(hash, Form::Raw), AtFlags::empty()).or_else(gone)?;
            }
            None => self.note(hash, BlobEntry { form: Form::Packed, ..stored }),
        }
        Ok(())
    }

    /// Throws out what nobody needs.
    pub(super) fn retain(&mut self, needed: impl Fn(&Hash) -> bool) -> Result<(), FileProblem> {
        let gone: Vec<Hash> = self.stored.keys().filter(|hash| !needed(hash)).copied().collect();
        gone.into_iter().try_for_each(|hash| self.remove_blob(hash))
    }

    /// Throws out one.
    pub(super) fn remove_blob(&mut self, hash: Hash) -> Result<(), FileProblem> {
        for form in [Form::Packed, Form::Raw] {
            remove(self.dir.as_fd(), &file_name(hash, form), AtFlags::empty()).or_else(gone)?;
        }
        self.total -= self.stored.remove(&hash).map_or(0, |stored| stored.bytes);
        Ok(())
    }

    /// Removes what a crash left half written.
    pub(super) fn sweep(&self) -> Result<(), FileProblem> {
        for entry in Dir::read_from(&self.dir)? {
            let name = OsString::from_vec(entry?.file_name().to_bytes().to_vec());
            if name.to_string_lossy().starts_with(".toolgate-") {
                let _ = remove(self.dir.as_fd(), &name, AtFlags::empty());
            }
        }
        Ok(())
    }
}

/// Packs a raw content. `None` where it cannot be read or is not what its name says.
pub(super) fn pack(hash: Hash, raw: &OwnedFd) -> Option<Vec<u8>> {
    let size = u64::try_from(sys::fstat(raw.as_fd()).ok()?.st_size).ok()?;
    let bytes = sys::read_all(raw.as_fd(), size, u64::MAX).ok()?;
    (Hash::of(&bytes) == hash).then(|| zstd::bulk::compress(&bytes, LEVEL).ok())?
}

/// Whether content is stored as it is first.
pub(super) fn is_large(content: &[u8]) -> bool {
    content.len() >= LARGE
}

fn gone(error: rustix::io::Errno) -> Result<(), rustix::io::Errno> {
    if error == rustix::io::Errno::NOENT { Ok(()) } else { Err(error) }
}

fn file_name(hash: Hash, form: Form) -> OsString {
    match form {
        Form::Raw => OsString::from(format!("{hash}{RAW}")),
        Form::Packed => OsString::from(hash.to_string()),
    }
}
