//! Which paths a command may change and read: one place that says so, for Landlock's rules and for the warden.

use rustix::fs::{AtFlags, CWD, FileType, statat};
use std::collections::HashSet;
use toolgate_proto::AbsPath;

/// The bounds of one command, with links resolved.
#[derive(Debug, Clone, Default)]
pub(super) struct Bounds {
    writable: Vec<AbsPath>,
    /// Inside those, what may not be changed: protected paths, and unreadable ones, which a new name would make
    /// readable.
    barred: Vec<AbsPath>,
    unreadable: Vec<AbsPath>,
    /// The files at barred paths, by device and number: the same file under another name stays as it is.
    pinned: HashSet<(u64, u64)>,
    /// The files at unreadable paths likewise.
    hidden: HashSet<(u64, u64)>,
    /// Sockets that may be connected to.
    sockets: Vec<AbsPath>,
    /// What Landlock grants for writing below the writable directories.
    pub(super) native_write: Vec<AbsPath>,
    /// What Landlock grants for reading where unreadable paths lie inside a writable directory.
    pub(super) native_read: Vec<AbsPath>,
}

impl Bounds {
    pub(super) fn new(writable: &[AbsPath], protected: &[AbsPath], unreadable: &[AbsPath]) -> Self {
        let real = |paths: &[AbsPath]| -> Vec<AbsPath> {
            let mut out: Vec<AbsPath> = Vec::new();
            for path in paths {
                // Both where it leads and where it stands: a link at a protected place must not be replaced.
                out.push(crate::resolve(path).real);
                if let (Some(parent), Some(name)) = (path.parent(), path.file_name()) {
                    out.push(crate::resolve(&parent).real.join(name));
                }
            }
            out.sort();
            out.dedup();
            out
        };
        let writable: Vec<AbsPath> = writable
            .iter()
            .map(crate::resolve)
            .filter(|fact| fact.problem.is_none() && fact.kind != toolgate_proto::EntryKind::Missing)
            .map(|fact| fact.real)
            .collect();
        let unreadable = real(unreadable);
        let mut barred = real(protected);
        barred.extend(unreadable.iter().cloned());
        let pinned = barred.iter().filter_map(identity).collect();
        let hidden = unreadable.iter().filter_map(identity).collect();
        Self {
            writable,
            barred,
            unreadable,
            pinned,
            hidden,
            sockets: Vec::new(),
            native_write: Vec::new(),
            native_read: Vec::new(),
        }
    }

    pub(super) fn with_sockets(mut self, sockets: &[AbsPath]) -> Self {
        self.sockets = sockets.iter().map(|path| crate::resolve(path).real).collect();
        self
    }

    /// Whether a socket at a path, links resolved, may be connected to.
    pub(super) fn may_connect(&self, real: &AbsPath) -> bool {
        self.may_write(real) || self.may_read(real) && self.sockets.iter().any(|path| real.is_under(path))
    }

    pub(super) fn writable(&self) -> &[AbsPath] {
        &self.writable
    }

    pub(super) fn barred(&self) -> &[AbsPath] {
        &self.barred
    }

    pub(super) fn unreadable(&self) -> &[AbsPath] {
        &self.unreadable
    }

    /// Whether unreadable paths lie inside a writable directory, so that reading there must be decided one by one.
    pub(super) fn reads_are_mixed(&self) -> bool {
        self.unreadable.iter().any(|path| self.writable.iter().any(|root| path.is_under(root)))
    }

    /// Whether the content at a path, links resolved, may be changed.
    pub(super) fn may_write(&self, real: &AbsPath) -> bool {
        self.writable.iter().any(|root| real.is_under(root)) && !self.bars(real)
    }

    /// Whether the entry itself may be removed, renamed or replaced.
    /// A directory above something protected may not: it would take that along.
    pub(super) fn may_replace(&self, real: &AbsPath) -> bool {
        self.may_write(real)
            && !self.writable.contains(real)
            && !self.barred.iter().any(|path| path.is_under(real))
    }

    pub(super) fn may_read(&self, real: &AbsPath) -> bool {
        !self.unreadable.iter().any(|path| real.is_under(path))
            && !identity(real).is_some_and(|file| self.hidden.contains(&file))
    }

    /// Whether Landlock lets this be changed without anybody's help.
    pub(super) fn writes_natively(&self, real: &AbsPath) -> bool {
        self.native_write.iter().any(|granted| real.is_under(granted))
    }

    /// The same for reading.
    pub(super) fn reads_natively(&self, real: &AbsPath) -> bool {
        self.unreadable.is_empty()
            || !self.writable.iter().any(|root| real.is_under(root))
            || self.native_read.iter().any(|granted| real.is_under(granted))
    }

    /// Whether this very file must stay as it is, under whatever name.
    pub(super) fn pins(&self, device: u64, number: u64) -> bool {
        self.pinned.contains(&(device, number))
    }

    fn bars(&self, real: &AbsPath) -> bool {
        self.barred.iter().any(|path| real.is_under(path))
            || identity(real).is_some_and(|file| self.pinned.contains(&file))
    }
}

/// Which file is at a path, if it is one of which there may be other names.
fn identity(path: &AbsPath) -> Option<(u64, u64)> {
    let stat = statat(CWD, path.as_path(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
    (FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile).then_some((stat.st_dev, stat.st_ino))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protected_paths_hold_by_place_by_parent_and_by_other_names() {
        let dir = tempfile::tempdir().unwrap();
        let top = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        std::fs::create_dir_all(top.join(".git/hooks")).unwrap();
        std::fs::write(top.join(".git/config"), "x").unwrap();
        std::fs::hard_link(top.join(".git/config"), top.join("twin")).unwrap();
        let protected = [top.join(".git/hooks"), top.join(".git/config"), top.join(".mcp.json")];
        let bounds = Bounds::new(std::slice::from_ref(&top), &protected, &[top.join(".env")]);
        for (path, write, replace) in [
            ("a", true, true),
            (".git", true, false),
            (".git/HEAD", true, true),
            (".git/config", false, false),
            (".git/hooks/pre-commit", false, false),
            (".mcp.json", false, false),
            (".env", false, false),
            ("twin", false, false),
            ("", true, false),
            ("../else", false, false),
        ] {
            let path = top.join(path).lexical();
            assert_eq!((bounds.may_write(&path), bounds.may_replace(&path)), (write, replace), "{path}");
        }
        assert!(!bounds.may_read(&top.join(".env")) && bounds.may_read(&top.join("a")));
    }
}
