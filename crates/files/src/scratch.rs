//! A private temporary directory that is removed when it is dropped.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use toolgate_proto::AbsPath;

/// A temporary directory that only this user can enter, removed with its content when dropped.
#[derive(Debug)]
pub struct ScratchDirectory {
    /// Its real path.
    dir: AbsPath,
    /// Whether it stays when dropped.
    keep: bool,
}

impl ScratchDirectory {
    /// Creates one in `parent`, named by the prefix and a random part.
    pub fn new(parent: &AbsPath, prefix: &str) -> io::Result<Self> {
        let dir = parent.join(crate::generate_id(prefix));
        // `create` fails if the name exists, so no other user can have prepared the directory.
        fs::DirBuilder::new().mode(0o700).create(dir.as_path())?;
        Ok(Self { dir: crate::resolve(&dir).real, keep: false })
    }

    /// Its real path.
    pub fn dir(&self) -> &AbsPath {
        &self.dir
    }

    /// Keeps the directory when this is dropped.
    pub fn keep(&mut self) {
        self.keep = true;
    }

    /// Removes it now, although other owners of this value are left, unless it is kept.
    pub fn remove(&self) {
        if !self.keep {
            // A failure leaves files behind in the system's temporary directory, which the system cleans up.
            let _ = fs::remove_dir_all(self.dir.as_path());
        }
    }

    /// Writes a file in it, creating the directories of a relative path.
    pub fn write(&self, name: &str, content: &str) -> io::Result<AbsPath> {
        let path = self.dir.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent.as_path())?;
        }
        fs::write(path.as_path(), content)?;
        Ok(path)
    }

    /// Creates a directory in it.
    pub fn make_dir(&self, name: &str) -> io::Result<AbsPath> {
        let path = self.dir.join(name);
        fs::DirBuilder::new().mode(0o700).create(path.as_path())?;
        Ok(path)
    }

    /// Creates a symlink in it.
    pub fn create_symlink(&self, name: &str, target: &str) -> io::Result<()> {
        std::os::unix::fs::symlink(target, self.dir.join(name).as_path())
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        self.remove();
    }
}
