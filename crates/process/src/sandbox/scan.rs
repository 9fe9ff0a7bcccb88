//! Files below a directory that a guard hides, found before a command starts.
//!
//! Landlock grants directories and cannot subtract, so what is hidden must be known when its rules are made.
//! The scan is bounded; where a tree is larger, the supervisor opens every file of it in the command's place instead.

use super::guard::FileGuard;
use rustix::fs::{AtFlags, CWD, FileType, statat};
use std::fs;
use std::path::Path;
use toolgate_proto::AbsPath;

/// Entries that one scan looks at. A tree of this size takes about as long as a shell to start.
const MAX_ENTRIES: usize = 20_000;

/// What a scan found.
#[derive(Debug, Default)]
pub(super) struct HiddenFileScan {
    /// The hidden entries. What lies below a hidden directory is not listed.
    pub(super) paths: Vec<AbsPath>,
    /// Every entry was looked at.
    pub(super) complete: bool,
}

/// Finds what a guard hides below some directories.
pub(super) fn find_hidden<'p>(roots: impl Iterator<Item = &'p AbsPath>, guard: &FileGuard) -> HiddenFileScan {
    let mut found = HiddenFileScan { paths: Vec::new(), complete: true };
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
        let by_name = guard.hides_only_by_name(&directory);
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

/// Whether anything at or below a path may not be moved to another one: it, or what it would become, is guarded, or it
/// is a symlink that would lead into a private directory. A tree that is too large to look at, or that cannot be
/// listed, may not.
pub(super) fn moves_guarded(from: &AbsPath, to: &AbsPath, guard: &FileGuard, private: &[AbsPath]) -> bool {
    const MAX_MOVED: usize = 1_000_000;
    if !guard.is_some() {
        return false;
    }
    let mut ahead = vec![(from.clone(), to.clone())];
    let mut seen = 0;
    while let Some((old, new)) = ahead.pop() {
        if guard.protects(&old) || guard.protects(&new) || moves_link_into_private(&old, &new, private) {
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
            ahead.push((old.join(&name), new.join(&name)));
        }
    }
    false
}

/// Whether an entry is a symlink that leads into one of these directories from a new place.
pub(super) fn moves_link_into_private(old: &AbsPath, new: &AbsPath, private: &[AbsPath]) -> bool {
    fs::read_link(old.as_path()).is_ok_and(|content| resolves_into(new, &content, private))
}

/// Whether a symlink with this content leads into one of these directories from its place.
pub(super) fn resolves_into(place: &AbsPath, content: &Path, directories: &[AbsPath]) -> bool {
    let Some(parent) = place.parent() else { return true };
    let target = parent.join(content);
    // The directory around the symlink may not be there yet.
    [toolgate_files::resolve(&target).real, toolgate_files::resolve(&target.lexical()).real, target.lexical()]
        .iter()
        .any(|real| directories.iter().any(|directory| real.is_under(directory)))
}

/// Where symlinks at guarded names lead: who changes the file there changes what is guarded. A hook is often a symlink
/// to a script of the project, and a start-up file in a home directory one to a collection of them.
/// Looks into the directories themselves and into guarded directories in them, as far as the bound reaches.
pub(super) fn find_guarded_symlink_targets<'p>(
    roots: impl Iterator<Item = &'p AbsPath>,
    guard: &FileGuard,
) -> Vec<AbsPath> {
    const MAX_ENTRIES: usize = 4_000;
    // In a repository's directory these hold nothing but data, and much of it.
    const REPOSITORY_DATA_NAMES: [&str; 4] = ["objects", "refs", "logs", "lfs"];
    // Not guarded themselves, but some names in them are.
    const PARENT_NAMES: [&str; 3] = [".config", ".github", ".local"];
    let mut out = Vec::new();
    if !guard.is_some() {
        return out;
    }
    let mut ahead: Vec<AbsPath> = roots.cloned().collect();
    let mut seen = 0;
    while let Some(directory) = ahead.pop() {
        let Ok(entries) = fs::read_dir(directory.as_path()) else { continue };
        for entry in entries.flatten() {
            seen += 1;
            if seen > MAX_ENTRIES {
                return out;
            }
            let Ok(kind) = entry.file_type() else { continue };
            let (name, path) = (entry.file_name(), directory.join(entry.file_name()));
            let is = |names: &[&str]| names.iter().any(|one| name == **one);
            if kind.is_symlink() && guard.protects(&path) {
                out.push(toolgate_files::resolve(&path).real);
            } else if kind.is_dir()
                && (guard.protects(&path) && !is(&REPOSITORY_DATA_NAMES) || is(&PARENT_NAMES))
            {
                ahead.push(path);
            }
        }
    }
    out
}

/// Whether a path belongs to what makes git run programs in an existing repository that is not called `.git`: a
/// directory with `HEAD`, `objects` and `refs`, whatever its name.
pub(super) fn is_repository_setting(real: &AbsPath) -> bool {
    const SETTING_NAMES: [&str; 5] = ["hooks", "info", "commondir", "modules", "worktrees"];
    let mut at = Some(real.clone());
    while let Some(path) = at {
        let parent = path.parent();
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase());
        let named =
            name.is_some_and(|name| name.starts_with("config") || SETTING_NAMES.contains(&name.as_str()));
        let there = |directory: &AbsPath, name: &str| {
            statat(CWD, directory.join(name).as_path(), AtFlags::SYMLINK_NOFOLLOW).is_ok()
        };
        if named
            && let Some(parent) = &parent
            && ["HEAD", "objects", "refs"].iter().all(|name| there(parent, name))
        {
            return true;
        }
        at = parent;
    }
    false
}
