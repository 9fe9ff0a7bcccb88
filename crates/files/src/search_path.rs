//! The directories of a search path such as `PATH`, opened once, to look for many programs in.

use crate::open::FileProblem;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use std::collections::HashSet;
use std::os::fd::{AsFd, OwnedFd};
use toolgate_proto::AbsPath;

/// The search path where an environment has none. One for all: what trust is bound to must be what is started.
pub const DEFAULT_SEARCH_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The opened directories of a search path. A name that is looked for costs one short system call in each, instead of a
/// walk from the root.
pub struct SearchPath {
    directories: Vec<SearchDirectory>,
}

/// One directory of a search path.
struct SearchDirectory {
    /// Its name, as the search path has it.
    path: AbsPath,
    /// `None` where no further file descriptor can be opened: then names are looked for by their whole paths.
    handle: Option<OwnedFd>,
}

impl SearchPath {
    /// Opens the directories of a list that is separated by colons. Relative ones are left out, because what they contain
    /// depends on who asks; so are directories that do not exist and further names of the same directory.
    pub fn open(list: &str) -> Self {
        let mut seen = HashSet::new();
        let mut directories = Vec::new();
        for path in list.split(':').filter_map(|directory| AbsPath::new(directory).ok()) {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let handle = match rustix::fs::open(path.as_path(), flags, Mode::empty()) {
                Ok(handle) => {
                    let identity = rustix::fs::fstat(&handle).map(|found| (found.st_dev, found.st_ino));
                    if identity.is_ok_and(|identity| !seen.insert(identity)) {
                        continue;
                    }
                    Some(handle)
                }
                Err(error) => match FileProblem::from(error) {
                    FileProblem::Missing | FileProblem::NotDirectory => continue,
                    _ => None,
                },
            };
            directories.push(SearchDirectory { path, handle });
        }
        Self { directories }
    }

    /// The regular files with this name that at least one user may execute, in the order of the directories.
    pub fn find_programs<'a>(&'a self, name: &'a str) -> impl Iterator<Item = AbsPath> + 'a {
        let programs = self.directories.iter().filter(move |directory| directory.has_program(name));
        programs.map(move |directory| directory.path.join(name))
    }
}

impl SearchDirectory {
    /// Whether the directory has a program with this name; symlinks are followed.
    fn has_program(&self, name: &str) -> bool {
        let found = match &self.handle {
            Some(handle) => rustix::fs::statat(handle.as_fd(), name, AtFlags::empty()),
            None => rustix::fs::statat(CWD, self.path.join(name).as_path(), AtFlags::empty()),
        };
        found.is_ok_and(|found| {
            FileType::from_raw_mode(found.st_mode) == FileType::RegularFile && found.st_mode & 0o111 != 0
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn programs_are_found_as_by_their_whole_paths_and_each_directory_counts_once() {
        let place = tempfile::tempdir().unwrap();
        let (first, second) = (place.path().join("first"), place.path().join("second"));
        for (directory, modes) in [(&first, [0o755, 0o644]), (&second, [0o700, 0o755])] {
            std::fs::create_dir(directory).unwrap();
            for (name, mode) in ["one", "two"].iter().zip(modes) {
                std::fs::write(directory.join(name), "#!/bin/sh\n").unwrap();
                let mode = std::fs::Permissions::from_mode(mode);
                std::fs::set_permissions(directory.join(name), mode).unwrap();
            }
        }
        std::fs::create_dir(first.join("three")).unwrap();
        symlink(second.join("one"), first.join("four")).unwrap();
        symlink(&first, place.path().join("again")).unwrap();
        let list = ["first", "again", "missing", "first/one", "second", "first"]
            .map(|name| place.path().join(name).display().to_string());
        let list = format!("relative::{}", list.join(":"));
        let mut by_handle = SearchPath::open(&list);
        assert_eq!(by_handle.directories.len(), 2);
        let expected = [
            ("one", vec![&first, &second]),
            ("two", vec![&second]),
            ("three", vec![]),
            ("four", vec![&first]),
        ];
        for round in ["by handle", "by path"] {
            for (name, directories) in &expected {
                let found: Vec<_> = by_handle.find_programs(name).collect();
                let wanted: Vec<_> =
                    directories.iter().map(|dir| AbsPath::new(dir.join(name)).unwrap()).collect();
                assert_eq!(found, wanted, "{name} {round}");
            }
            by_handle.directories.iter_mut().for_each(|directory| directory.handle = None);
        }
    }
}
