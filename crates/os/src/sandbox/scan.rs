//! Files below a directory that a guard hides, found before a command starts.
//!
//! Landlock grants directories and cannot subtract, so what is hidden must be known when its rules are made.
//! The scan is bounded; where a tree is larger, the supervisor opens every file of it in the command's place instead.

use super::guard::FileGuard;
use rustix::fs::{AtFlags, CWD, FileType, statat};
use std::fs;
use toolgate_proto::AbsPath;

/// Entries that one scan looks at. A tree of this size takes about as long as a shell to start.
const MAX_ENTRIES: usize = 20_000;

/// What a scan found.
#[derive(Debug, Default)]
pub(super) struct HiddenFiles {
    /// The hidden entries. What lies below a hidden directory is not listed.
    pub(super) paths: Vec<AbsPath>,
    /// Every entry was looked at.
    pub(super) complete: bool,
}

/// Finds what a guard hides below some directories.
pub(super) fn find_hidden<'p>(roots: impl Iterator<Item = &'p AbsPath>, guard: &FileGuard) -> HiddenFiles {
    let mut found = HiddenFiles { paths: Vec::new(), complete: true };
    if !guard.is_some() {
        return found;
    }
    let mut left = MAX_ENTRIES;
    let mut ahead: Vec<AbsPath> = Vec::new();
    for root in roots {
        if guard.hides(root) {
            found.paths.push(root.clone());
        } else if is_directory(root) {
            ahead.push(root.clone());
        }
    }
    while let Some(directory) = ahead.pop() {
        // What cannot be listed here cannot be listed by the command either.
        let Ok(entries) = fs::read_dir(directory.as_path()) else { continue };
        let by_name = guard.names_tell(&directory);
        for entry in entries.flatten() {
            if left == 0 {
                found.complete = false;
                return found;
            }
            left -= 1;
            let Ok(kind) = entry.file_type() else { continue };
            // A symlink is judged by where it leads when it is opened.
            if kind.is_symlink() {
                continue;
            }
            let name = entry.file_name();
            let may_hide = !by_name || name.to_str().is_none_or(|name| guard.may_hide_name(name));
            if !may_hide && !kind.is_dir() {
                continue;
            }
            let path = directory.join(name);
            if may_hide && guard.hides(&path) {
                found.paths.push(path);
            } else if kind.is_dir() && !is_object_store(&path) {
                ahead.push(path);
            }
        }
    }
    found
}

/// Where git keeps contents under names that it makes itself: many, and none of them tells anything.
fn is_object_store(path: &AbsPath) -> bool {
    path.as_path().ends_with(".git/objects")
}

fn is_directory(path: &AbsPath) -> bool {
    statat(CWD, path.as_path(), AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory)
}

/// Whether anything at or below a path may not be moved to another one: it, or what it would become, is guarded.
/// A tree that is too large to look at may not.
pub(super) fn moves_guarded(from: &AbsPath, to: &AbsPath, guard: &FileGuard) -> bool {
    const MAX_MOVED: usize = 1_000_000;
    if !guard.is_some() {
        return false;
    }
    let mut ahead = vec![(from.clone(), to.clone())];
    let mut seen = 0;
    while let Some((old, new)) = ahead.pop() {
        if guard.protects(&old) || guard.protects(&new) {
            return true;
        }
        if !is_directory(&old) {
            continue;
        }
        let Ok(entries) = fs::read_dir(old.as_path()) else { continue };
        for entry in entries.flatten() {
            seen += 1;
            if seen > MAX_MOVED {
                return true;
            }
            let name = entry.file_name();
            ahead.push((old.join(&name), new.join(&name)));
        }
    }
    false
}
