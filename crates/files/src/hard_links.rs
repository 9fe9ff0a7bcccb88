//! Every name of a file that has more than one.

use rustix::fs::{AtFlags, CWD, statat};
use std::fs;
use std::os::unix::fs::DirEntryExt;
use toolgate_proto::AbsPath;

/// Entries that are looked at. In a larger tree the other names stay unknown.
const MAX_ENTRIES: usize = 50_000;

/// The other names of a file below some directories; `None` unless every one of them was found there.
pub fn find_hard_links(file: &AbsPath, roots: &[AbsPath]) -> Option<Vec<AbsPath>> {
    let own = statat(CWD, file.as_path(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let wanted = usize::try_from(own.st_nlink).ok()?;
    let mut found = Vec::new();
    let mut left = MAX_ENTRIES;
    let mut ahead = roots.to_vec();
    while let Some(directory) = ahead.pop() {
        // Whatever a directory that cannot be listed holds: all names are known once all are counted.
        let Ok(entries) = fs::read_dir(directory.as_path()) else { continue };
        for entry in entries.flatten() {
            left = left.checked_sub(1)?;
            let kind = entry.file_type().ok()?;
            let path = directory.join(entry.file_name());
            if kind.is_dir() {
                ahead.push(path);
            } else if entry.ino() == own.st_ino && !found.contains(&path) {
                let stat = statat(CWD, path.as_path(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
                if stat.st_dev == own.st_dev {
                    found.push(path);
                }
            }
        }
        if found.len() == wanted {
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
    fn all_names_are_found_or_none_is_told() {
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
