//! Contents, named by their hash and compressed.

use super::Kept;
use super::log::private_dir;
use crate::files::place::{open_regular, remove};
use crate::files::replace::temporary_name;
use crate::files::{FileProblem, Hash, Version, sys};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, statat};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;

/// The fastest level still halves source code; a higher one would be felt at every edit of a large file.
const LEVEL: i32 = 1;

#[derive(Debug)]
pub(super) struct Blobs {
    dir: OwnedFd,
    sizes: BTreeMap<Hash, u64>,
    total: u64,
}

impl Blobs {
    pub(super) fn open(within: BorrowedFd<'_>) -> Result<Self, FileProblem> {
        let dir = private_dir(within, OsStr::new("blobs"))?;
        Ok(Self { dir, sizes: BTreeMap::new(), total: 0 })
    }

    /// Finds out what is there.
    pub(super) fn count(&mut self) -> Result<(), FileProblem> {
        for entry in Dir::read_from(&self.dir)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let Some(hash) = Hash::from_hex(&name) else { continue };
            if let Ok(stat) = statat(&self.dir, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
                && FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            {
                self.note(hash, u64::try_from(stat.st_size).unwrap_or(0));
            }
        }
        Ok(())
    }

    /// All of them together, compressed.
    pub(super) fn bytes(&self) -> u64 {
        self.total
    }

    fn note(&mut self, hash: Hash, bytes: u64) {
        let former = self.sizes.insert(hash, bytes).unwrap_or(0);
        self.total = self.total + bytes - former;
    }

    /// Stores a version, unless it is there already or not wanted.
    pub(super) fn keep(&mut self, version: &Version, wanted: bool) -> Result<Kept, FileProblem> {
        let bytes = version.bytes.len() as u64;
        let kept = Kept { hash: version.hash, bytes, mode: version.mode, stored: wanted };
        if !wanted {
            return Ok(kept);
        }
        let name = file_name(version.hash);
        if self.sizes.contains_key(&version.hash) && open_regular(self.dir.as_fd(), &name).is_ok() {
            return Ok(kept);
        }
        let packed = zstd::bulk::compress(&version.bytes, LEVEL)?;
        let temp = temporary_name();
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW;
        let file = sys::openat(self.dir.as_fd(), &temp, flags, Mode::from_raw_mode(0o600))?;
        let stored =
            sys::write_all(&file, &packed).and_then(|()| sys::rename(self.dir.as_fd(), &temp, &name));
        if let Err(error) = stored {
            let _ = remove(self.dir.as_fd(), &temp, AtFlags::empty());
            return Err(error.into());
        }
        self.note(version.hash, packed.len() as u64);
        Ok(kept)
    }

    /// The content, checked against its hash.
    pub(super) fn load(&self, kept: &Kept) -> Result<Vec<u8>, FileProblem> {
        if !kept.stored {
            return Err(FileProblem::Other("its content was not kept".to_owned()));
        }
        let file = open_regular(self.dir.as_fd(), &file_name(kept.hash))?;
        let size = u64::try_from(sys::fstat(file.as_fd())?.st_size).unwrap_or(0);
        let packed = sys::read_all(file.as_fd(), size, u64::MAX)?;
        let room = usize::try_from(kept.bytes).unwrap_or(usize::MAX);
        let bytes = zstd::bulk::decompress(&packed, room)?;
        if Hash::of(&bytes) != kept.hash {
            return Err(FileProblem::Other("its content in the journal is damaged".to_owned()));
        }
        Ok(bytes)
    }

    /// Throws out what nobody needs.
    pub(super) fn retain(&mut self, needed: impl Fn(&Hash) -> bool) -> Result<(), FileProblem> {
        let gone: Vec<Hash> = self.sizes.keys().filter(|hash| !needed(hash)).copied().collect();
        gone.into_iter().try_for_each(|hash| self.drop_one(hash))
    }

    /// Throws out one.
    pub(super) fn drop_one(&mut self, hash: Hash) -> Result<(), FileProblem> {
        match remove(self.dir.as_fd(), &file_name(hash), AtFlags::empty()) {
            Ok(()) | Err(rustix::io::Errno::NOENT) => {}
            Err(error) => return Err(error.into()),
        }
        self.total -= self.sizes.remove(&hash).unwrap_or(0);
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

fn file_name(hash: Hash) -> OsString {
    OsString::from(hash.to_string())
}
