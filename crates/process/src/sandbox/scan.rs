//! Scans of directory trees for files that a guard hides or protects.
//!
//! Landlock grants directories and has no deny rules, so hidden files must be known when its rules are built.
//! The scan is bounded; in a larger tree the seccomp notification handler opens every file on behalf of the command.

use super::directory_listing::{ListedKind, list_directory};
use super::guard::FileGuard;
use rustix::fs::{AtFlags, CWD, FileType, statat};
use std::fs;
use std::path::Path;
use toolgate_proto::AbsPath;

/// Entries that one scan for hidden files looks at.
const MAX_HIDDEN_SCAN_ENTRIES: usize = 20_000;

/// The result of a scan for hidden files.
#[derive(Debug, Default)]
pub(super) struct HiddenFileScan {
    /// The hidden entries; those below a hidden directory are not listed.
    pub(super) paths: Vec<AbsPath>,
    /// The scan read every entry.
    pub(super) complete: bool,
}

/// Finds the entries at and below some directories that a guard hides.
pub(super) fn find_hidden<'p>(roots: impl Iterator<Item = &'p AbsPath>, guard: &FileGuard) -> HiddenFileScan {
    let mut found = HiddenFileScan { paths: Vec::new(), complete: true };
    if !guard.is_some() {
        return found;
    }
    let mut left = MAX_HIDDEN_SCAN_ENTRIES;
    let mut pending: Vec<AbsPath> = Vec::new();
    for root in roots {
        if guard.hides(root) {
            found.paths.push(root.clone());
        } else if is_directory(root) {
            pending.push(root.clone());
        }
    }
    while let Some(directory) = pending.pop() {
        let listing = list_directory(&directory, left);
        let by_name = guard.hides_only_by_name(&directory);
        for (name, kind) in &listing.entries {
            let is_directory = match kind {
                // It is decided by its target when it is opened.
                ListedKind::Symlink => continue,
                ListedKind::Directory => true,
                ListedKind::File => false,
            };
            let may_hide = !by_name || name.to_str().is_none_or(|name| guard.may_hide_name(name));
            if !may_hide && !is_directory {
                continue;
            }
            let path = directory.join(&**name);
            if may_hide && guard.hides(&path) {
                found.paths.push(path);
            } else if is_directory && !is_object_store(&path) {
                pending.push(path);
            }
        }
        if !listing.complete {
            found.complete = false;
            return found;
        }
        left -= listing.entries.len();
    }
    found
}

/// git's object store: many files, whose names are hashes and match no rule.
fn is_object_store(path: &AbsPath) -> bool {
    path.as_path().ends_with(".git/objects")
}

/// Whether a path is a directory, and not a symlink to one.
fn is_directory(path: &AbsPath) -> bool {
    statat(CWD, path.as_path(), AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

/// Whether a rename would move a guarded entry: an entry at or below `from` is protected at its old or new path, or is a
/// symlink that would resolve into a private directory. True as well for a tree that is too large to scan or cannot be
/// listed.
pub(super) fn moves_guarded(from: &AbsPath, to: &AbsPath, guard: &FileGuard, private: &[AbsPath]) -> bool {
    const MAX_MOVED: usize = 1_000_000;
    if !guard.is_some() {
        return false;
    }
    let mut pending = vec![(from.clone(), to.clone())];
    let mut seen = 0;
    while let Some((old, new)) = pending.pop() {
        if guard.forbids_change(&old)
            || guard.forbids_change(&new)
            || moves_link_into_private(&old, &new, private)
        {
            return true;
        }
        if !is_directory(&old) {
            continue;
        }
        let Ok(entries) = fs::read_dir(old.as_path()) else { return true };
        for entry in entries {
            let Ok(entry) = entry else { return true };
            seen += 1;
            if seen > MAX_MOVED {
                return true;
            }
            let name = entry.file_name();
            pending.push((old.join(&name), new.join(&name)));
        }
    }
    false
}

/// Whether an entry is a symlink that would resolve into one of these directories from its new path.
pub(super) fn moves_link_into_private(old: &AbsPath, new: &AbsPath, private: &[AbsPath]) -> bool {
    fs::read_link(old.as_path()).is_ok_and(|content| resolves_into(new, &content, private))
}

/// Whether a symlink at this path with this content resolves into one of these directories.
pub(super) fn resolves_into(symlink: &AbsPath, content: &Path, directories: &[AbsPath]) -> bool {
    let Some(parent) = symlink.parent() else { return true };
    let target = parent.join(content);
    // The parent directory of the symlink may not exist yet.
    [toolgate_files::resolve(&target).real, toolgate_files::resolve(&target.lexical()).real, target.lexical()]
        .iter()
        .any(|real| directories.iter().any(|directory| real.is_under(directory)))
}

/// The targets of symlinks at protected names: changing the target changes what the protected name runs. A git hook is
/// often a symlink to a script of the project, and a shell startup file one into a repository of dotfiles.
/// Scans the directories themselves and the protected directories in them, up to a limit.
pub(super) fn find_guarded_symlink_targets<'p>(
    roots: impl Iterator<Item = &'p AbsPath>,
    guard: &FileGuard,
) -> Vec<AbsPath> {
    const MAX_SYMLINK_SCAN_ENTRIES: usize = 4_000;
    // In a git directory these have many files, and only data.
    const REPOSITORY_DATA_NAMES: [&str; 4] = ["objects", "refs", "logs", "lfs"];
    // Not protected themselves, but some names in them are.
    const PARENT_NAMES: [&str; 3] = [".config", ".github", ".local"];
    let mut out = Vec::new();
    if !guard.is_some() {
        return out;
    }
    let mut pending: Vec<AbsPath> = roots.cloned().collect();
    let mut left = MAX_SYMLINK_SCAN_ENTRIES;
    while let Some(directory) = pending.pop() {
        let listing = list_directory(&directory, left);
        for (name, kind) in &listing.entries {
            let path = directory.join(&**name);
            let is = |names: &[&str]| names.iter().any(|one| **name == **one);
            match kind {
                ListedKind::Symlink if guard.protects(&path) => {
                    out.push(toolgate_files::resolve(&path).real);
                }
                ListedKind::Directory
                    if guard.protects(&path) && !is(&REPOSITORY_DATA_NAMES) || is(&PARENT_NAMES) =>
                {
                    pending.push(path);
                }
                ListedKind::Symlink | ListedKind::Directory | ListedKind::File => {}
            }
        }
        if !listing.complete {
            return out;
        }
        left -= listing.entries.len();
    }
    out
}

/// Whether a path is among the files that can make git run programs, in a git directory of any name: a directory with
/// `HEAD`, `objects` and `refs`.
pub(super) fn is_repository_setting(real: &AbsPath) -> bool {
    const SETTING_NAMES: [&str; 5] = ["hooks", "info", "commondir", "modules", "worktrees"];
    let mut ancestor = Some(real.clone());
    while let Some(path) = ancestor {
        let parent = path.parent();
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase());
        let named =
            name.is_some_and(|name| name.starts_with("config") || SETTING_NAMES.contains(&name.as_str()));
        let exists = |directory: &AbsPath, name: &str| {
            statat(CWD, directory.join(name).as_path(), AtFlags::SYMLINK_NOFOLLOW).is_ok()
        };
        if named
            && let Some(parent) = &parent
            && ["HEAD", "objects", "refs"].iter().all(|name| exists(parent, name))
        {
            return true;
        }
        ancestor = parent;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::guard::PathGuard;
    use std::sync::Arc;

    /// Hides the files of one name.
    struct HiddenName(&'static str);

    impl PathGuard for HiddenName {
        fn hides(&self, real: &AbsPath) -> bool {
            real.file_name().is_some_and(|name| name == self.0)
        }

        fn protects(&self, _: &AbsPath) -> bool {
            false
        }
    }

    #[test]
    fn a_scan_for_hidden_files_looks_at_20_000_entries() {
        let dir = tempfile::tempdir().unwrap();
        let top = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        let guard = FileGuard::new(Arc::new(HiddenName("secret")));
        fs::create_dir(top.join("more").as_path()).unwrap();
        fs::write(top.join("more/secret").as_path(), "").unwrap();
        for number in 0..19_998 {
            fs::write(top.join(format!("{number}")).as_path(), "").unwrap();
        }
        let scan = find_hidden([top.clone()].iter(), &guard);
        assert!(scan.complete);
        assert_eq!(scan.paths, [top.join("more/secret")]);
        // One more: what was not looked at may hold hidden files, and the result says so.
        fs::write(top.join("more/one").as_path(), "").unwrap();
        assert!(!find_hidden([top].iter(), &guard).complete);
    }
}
