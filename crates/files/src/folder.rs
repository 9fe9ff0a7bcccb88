//! Listing of directories that extend toolgate: skills, commands, plugins.
//!
//! Unlike [`GrantedFiles`](crate::GrantedFiles), these functions follow symlinks and need no grant: no path here comes
//! from a model. Whether a path that a symlink leads to may be used is the caller's decision, which is why each entry
//! says that it is one.

use crate::open::FileProblem;
use std::fs;
use std::path::Path;
use toolgate_proto::AbsPath;

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderEntry {
    /// Its name; bytes that are not UTF-8 are replaced, and such a name cannot be opened.
    pub name: String,
    /// Whether it is a directory, or a symlink to one.
    pub is_directory: bool,
    /// Whether it is a symlink.
    pub is_symlink: bool,
}

/// Opens a directory for listing; `None` if it does not exist, or is no directory.
pub(crate) fn read_dir_if_present(dir: &AbsPath) -> Result<Option<fs::ReadDir>, FileProblem> {
    match fs::read_dir(dir.as_path()).map_err(FileProblem::from) {
        Ok(entries) => Ok(Some(entries)),
        Err(FileProblem::Missing | FileProblem::NotDirectory) => Ok(None),
        Err(other) => Err(other),
    }
}

/// The entries of a directory in name order; none if it does not exist.
pub fn list_folder(dir: &AbsPath) -> Result<Vec<FolderEntry>, FileProblem> {
    let Some(entries) = read_dir_if_present(dir)? else { return Ok(Vec::new()) };
    let mut list = Vec::new();
    for entry in entries {
        let entry = entry?;
        let kind = entry.file_type()?;
        let is_directory = if kind.is_symlink() { is_directory(&entry.path()) } else { kind.is_dir() };
        list.push(FolderEntry {
            name: entry.file_name().to_string_lossy().into_owned(),
            is_directory,
            is_symlink: kind.is_symlink(),
        });
    }
    list.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(list)
}

/// Makes a directory in one that exists; one that is there already is no error.
pub fn make_directory(dir: &AbsPath) -> Result<(), FileProblem> {
    match fs::create_dir(dir.as_path()) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(error.into()),
        _ => Ok(()),
    }
}

/// Whether a path is a directory, through symlinks.
fn is_directory(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_listed_in_name_order_with_what_they_are() {
        let dir = tempfile::tempdir().unwrap();
        let root = AbsPath::new(dir.path()).unwrap();
        assert_eq!(list_folder(&root.join("missing")).unwrap(), []);
        fs::create_dir(dir.path().join("b")).unwrap();
        fs::write(dir.path().join("c"), "").unwrap();
        std::os::unix::fs::symlink("b", dir.path().join("a")).unwrap();
        let listed: Vec<(String, bool, bool)> = list_folder(&root)
            .unwrap()
            .into_iter()
            .map(|entry| (entry.name, entry.is_directory, entry.is_symlink))
            .collect();
        assert_eq!(
            listed,
            [("a".to_owned(), true, true), ("b".to_owned(), true, false), ("c".to_owned(), false, false)]
        );
    }
}
