//! Finding every hard link of a file.
//!
//! The kernel stores how many hard links a file has, but not where they are, so directories have to be searched.

use rustix::fs::{AtFlags, CWD, statat};
use std::fs;
use std::os::unix::fs::DirEntryExt;
use toolgate_proto::AbsPath;

/// How many directory entries are searched. In a larger tree the hard links are not found.
const MAX_ENTRIES: usize = 50_000;

/// The other hard links of a file, searched below `roots`; `None` unless every hard link was found.
pub fn find_hard_links(file: &AbsPath, roots: &[AbsPath]) -> Option<Vec<AbsPath>> {
    let own = statat(CWD, file.as_path(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let link_count = usize::try_from(own.st_nlink).ok()?;
    let mut found = Vec::new();
    let mut remaining = MAX_ENTRIES;
    let mut pending = roots.to_vec();
    while let Some(directory) = pending.pop() {
        // A directory that cannot be listed is skipped: if it has a hard link, the count is not reached.
        let Ok(entries) = fs::read_dir(directory.as_path()) else { continue };
        for entry in entries.flatten() {
            remaining = remaining.checked_sub(1)?;
            let kind = entry.file_type().ok()?;
            let path = directory.join(entry.file_name());
            if kind.is_dir() {
                pending.push(path);
            } else if entry.ino() == own.st_ino && !found.contains(&path) {
                let stat = statat(CWD, path.as_path(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
                if stat.st_dev == own.st_dev {
                    found.push(path);
                }
            }
        }
        if found.len() == link_count {
            found.retain(|path| path != file);
            return Some(found);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_hard_links_are_found_or_none_is_returned() {
        let dir = tempfile::tempdir().unwrap();
        let top = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        std::fs::create_dir_all(top.join("ws/sub")).unwrap();
        std::fs::write(top.join("ws/a"), "x").unwrap();
        std::fs::hard_link(top.join("ws/a"), top.join("ws/sub/b")).unwrap();
        let roots = [top.join("ws"), top.join("missing")];
        assert_eq!(find_hard_links(&top.join("ws/a"), &roots), Some(vec![top.join("ws/sub/b")]));
        std::fs::hard_link(top.join("ws/a"), top.join("outside")).unwrap();
        assert_eq!(find_hard_links(&top.join("ws/a"), &roots), None);
    }
}
