//! A private temporary directory that goes away by itself.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use toolgate_proto::AbsPath;

/// A temporary directory that only this user may enter, removed when dropped.
#[derive(Debug)]
pub struct ScratchDirectory {
    dir: AbsPath,
    keep: bool,
}

impl ScratchDirectory {
    /// Makes one below `parent`.
    pub fn new(parent: &AbsPath, prefix: &str) -> io::Result<Self> {
        let dir = parent.join(crate::generate_id(prefix));
        // `create` refuses a name that exists, so nobody can have put something there beforehand.
        fs::DirBuilder::new().mode(0o700).create(dir.as_path())?;
        Ok(Self { dir: crate::resolve(&dir).real, keep: false })
    }

    /// Where it is, links resolved.
    pub fn dir(&self) -> &AbsPath {
        &self.dir
    }

    /// Leaves it there when dropped.
    pub fn keep(&mut self) {
        self.keep = true;
    }

    /// Writes a file in it, making directories on the way.
    pub fn write(&self, name: &str, content: &str) -> io::Result<AbsPath> {
        let path = self.dir.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent.as_path())?;
        }
        fs::write(path.as_path(), content)?;
        Ok(path)
    }

    /// Makes a directory in it.
    pub fn make_dir(&self, name: &str) -> io::Result<AbsPath> {
        let path = self.dir.join(name);
        fs::DirBuilder::new().mode(0o700).create(path.as_path())?;
        Ok(path)
    }

    /// Puts a link in it.
    pub fn create_symlink(&self, name: &str, target: &str) -> io::Result<()> {
        std::os::unix::fs::symlink(target, self.dir.join(name).as_path())
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        if !self.keep {
            // A failure leaves litter in the temporary directory, which is what that directory is for.
            let _ = fs::remove_dir_all(self.dir.as_path());
        }
    }
}
