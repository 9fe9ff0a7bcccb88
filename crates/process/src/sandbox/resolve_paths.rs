//! Resolving the paths of a sandbox profile, and identifying files by device and inode.

use rustix::fs::{AtFlags, CWD, FileType, statat};
use toolgate_proto::{AbsPath, EntryKind};

/// A file independent of its name: device and inode number.
pub(super) type DeviceInode = (u64, u64);

/// Whether `mkstemp` may have generated a path from a template.
pub(super) fn matches_mkstemp_template(path: &AbsPath, template: &AbsPath) -> bool {
    const TEMPLATE_SUFFIX: &str = "XXXXXX";
    let name = |path: &AbsPath| path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    let (Some(generated), Some(template_name)) = (name(path), name(template)) else { return false };
    let Some(prefix) = template_name.strip_suffix(TEMPLATE_SUFFIX) else { return false };
    let random = generated.strip_prefix(prefix).unwrap_or_default();
    random.len() == TEMPLATE_SUFFIX.len()
        && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && path.parent() == template.parent()
}

/// The real paths; for a missing path, its resolved parent and its name.
pub(super) fn resolve_paths(paths: &[AbsPath]) -> Vec<AbsPath> {
    paths.iter().map(|path| toolgate_files::resolve(path).real).collect()
}

/// The paths of entries that a command may remove and replace: their directories are resolved, and their names are not.
/// A symlink that takes the place of an entry after it was judged must not widen the grant to its target.
pub(super) fn resolve_entries(paths: &[AbsPath]) -> Vec<AbsPath> {
    let resolve_entry = |path: &AbsPath| match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => toolgate_files::resolve(&parent).real.join(name),
        _ => path.clone(),
    };
    paths.iter().map(resolve_entry).collect()
}

/// The real paths of those that do not exist.
pub(super) fn resolve_missing(paths: &[AbsPath]) -> Vec<AbsPath> {
    paths
        .iter()
        .map(toolgate_files::resolve)
        .filter(|fact| fact.problem.is_none() && fact.kind == EntryKind::Missing)
        .map(|fact| fact.real)
        .collect()
}

/// The real paths of those that exist.
pub(super) fn resolve_existing(paths: &[AbsPath]) -> Vec<AbsPath> {
    paths
        .iter()
        .map(toolgate_files::resolve)
        .filter(|fact| fact.problem.is_none() && fact.kind != EntryKind::Missing)
        .map(|fact| fact.real)
        .collect()
}

/// Each path with symlinks resolved, and the path of a symlink at its end: replacing the symlink must be refused as well.
pub(super) fn resolve_links_and_targets(paths: &[AbsPath]) -> Vec<AbsPath> {
    let mut out: Vec<AbsPath> = Vec::new();
    for path in paths {
        out.push(toolgate_files::resolve(path).real);
    }
    out.extend(resolve_entries(paths));
    out.sort();
    out.dedup();
    out
}

/// The inode at a path, if it is a regular file, which may have hard links.
pub(super) fn read_device_inode(path: &AbsPath) -> Option<DeviceInode> {
    let stat = statat(CWD, path.as_path(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
    (FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile).then_some((stat.st_dev, stat.st_ino))
}
