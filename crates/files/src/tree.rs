//! Whole directories of a plugin: listed, copied, removed.
//!
//! A tree is taken as it is or not at all: a symlink that leads out of it, a pipe or a device is an error that names the
//! entry, because what a user approves must be what is used later.

use crate::open::FileProblem;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use toolgate_proto::AbsPath;

/// The most files of a tree.
const MAX_TREE_FILES: usize = 5_000;
/// The most bytes of all files together.
const MAX_TREE_BYTES: u64 = 64 * 1024 * 1024;
/// The deepest nesting.
const MAX_TREE_DEPTH: usize = 24;

/// A file of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeFile {
    /// Its path below the root.
    pub path: String,
    /// Whether it may be executed.
    pub is_executable: bool,
    /// Its size in bytes.
    pub size: u64,
}

/// Lists the files of a tree in the order of their paths, without `.git`. A symlink to a file inside the tree is that
/// file.
pub fn list_tree_files(root: &AbsPath) -> Result<Vec<TreeFile>, FileProblem> {
    let root = crate::resolve(root).real;
    let mut listing = TreeListing { root: &root, files: Vec::new(), bytes: 0 };
    listing.add_dir(&root, "", 0)?;
    listing.files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(listing.files)
}

/// Copies the files of a tree into a directory that does not exist yet, which only this user can change.
pub fn copy_tree(root: &AbsPath, files: &[TreeFile], target: &AbsPath) -> Result<(), FileProblem> {
    crate::make_private_dir(target)?;
    for file in files {
        let to = target.join(&file.path);
        if let Some(parent) = to.parent() {
            crate::make_private_dir(&parent)?;
        }
        let content = crate::read_named_bytes(&root.join(&file.path), MAX_TREE_BYTES)?;
        fs::write(to.as_path(), content)?;
        let mode = if file.is_executable { 0o700 } else { 0o600 };
        fs::set_permissions(to.as_path(), fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// Moves a directory that toolgate made to a name that is free. False if the name is taken.
pub fn move_tree(from: &AbsPath, to: &AbsPath) -> Result<bool, FileProblem> {
    if let Some(parent) = to.parent() {
        crate::make_private_dir(&parent)?;
    }
    match fs::rename(from.as_path(), to.as_path()) {
        Ok(()) => Ok(true),
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::DirectoryNotEmpty | std::io::ErrorKind::AlreadyExists
            ) =>
        {
            Ok(false)
        }
        Err(error) => Err(error.into()),
    }
}

/// Removes a directory that toolgate made, with everything in it. One that is not there is no error.
pub fn remove_tree(dir: &AbsPath) -> Result<(), FileProblem> {
    match fs::remove_dir_all(dir.as_path()) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The files of a directory tree, collected up to limits.
struct TreeListing<'r> {
    root: &'r AbsPath,
    files: Vec<TreeFile>,
    bytes: u64,
}

impl TreeListing<'_> {
    /// Adds a directory and everything below it.
    fn add_dir(&mut self, dir: &AbsPath, prefix: &str, depth: usize) -> Result<(), FileProblem> {
        if depth > MAX_TREE_DEPTH {
            return Err(problem(prefix, "is nested too deeply"));
        }
        for entry in crate::list_folder(dir)? {
            let path = format!("{prefix}{}", entry.name);
            let absolute = dir.join(&entry.name);
            if entry.is_symlink && (entry.is_directory || !crate::resolve(&absolute).real.is_under(self.root))
            {
                return Err(problem(&path, "is a symlink to a directory, or leads out of the plugin"));
            }
            if entry.is_directory {
                if entry.name != ".git" {
                    self.add_dir(&absolute, &format!("{path}/"), depth + 1)?;
                }
                continue;
            }
            let found =
                fs::metadata(absolute.as_path()).map_err(|error| problem(&path, &error.to_string()))?;
            if !found.is_file() {
                return Err(problem(&path, "is not a regular file"));
            }
            self.bytes += found.len();
            let is_executable = found.permissions().mode() & 0o111 != 0;
            self.files.push(TreeFile { path, is_executable, size: found.len() });
            if self.files.len() > MAX_TREE_FILES || self.bytes > MAX_TREE_BYTES {
                let limit = format!("more than {MAX_TREE_FILES} files or {MAX_TREE_BYTES} bytes");
                return Err(FileProblem::Other(format!("the plugin has {limit}")));
            }
        }
        Ok(())
    }
}

/// A problem of one path of the tree.
fn problem(path: &str, what: &str) -> FileProblem {
    FileProblem::Other(format!("`{path}` {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_is_copied_as_it_is_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let root = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        let tree = root.join("tree");
        fs::create_dir_all(tree.join("a/.git").as_path()).unwrap();
        fs::write(tree.join("a/x").as_path(), "x").unwrap();
        fs::write(tree.join("a/.git/config").as_path(), "").unwrap();
        std::os::unix::fs::symlink("a/x", tree.join("y").as_path()).unwrap();
        let files = list_tree_files(&tree).unwrap();
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        assert_eq!(paths, ["a/x", "y"]);
        copy_tree(&tree, &files, &root.join("copy")).unwrap();
        assert_eq!(fs::read_to_string(root.join("copy/y").as_path()).unwrap(), "x");
        assert!(move_tree(&root.join("copy"), &root.join("a/b")).unwrap());
        copy_tree(&tree, &files, &root.join("copy")).unwrap();
        assert!(!move_tree(&root.join("copy"), &root.join("a/b")).unwrap(), "the name is taken");
        remove_tree(&root.join("copy")).unwrap();
        remove_tree(&root.join("copy")).unwrap();
        for (name, target) in [("out", "../secret"), ("dir", "a"), ("gone", "nothing")] {
            fs::write(root.join("secret").as_path(), "s").unwrap();
            std::os::unix::fs::symlink(target, tree.join(name).as_path()).unwrap();
            assert!(list_tree_files(&tree).is_err(), "{name}");
            fs::remove_file(tree.join(name).as_path()).unwrap();
        }
    }
}
