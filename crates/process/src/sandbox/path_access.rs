//! Which paths a command may change and read: one answer for the Landlock rules and for the seccomp notification handler.

use super::SandboxProfile;
use super::guard::FileGuard;
use super::resolve_paths::{
    DeviceInode, matches_mkstemp_template, read_device_inode, resolve_entries, resolve_existing,
    resolve_links_and_targets, resolve_missing, resolve_paths,
};
use super::scan::{find_guarded_symlink_targets, find_hidden, is_repository_setting};
use crate::process::EnvProgram;
use rustix::fs::{AtFlags, CWD, statat};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock};
use toolgate_proto::AbsPath;

/// The path rights of one command, with symlinks resolved.
#[derive(Debug, Clone, Default)]
pub(super) struct SandboxPathAccess {
    /// Trees in which it may write, private ones apart.
    writable: Vec<AbsPath>,
    /// Writable trees that do not exist yet: it may create them.
    missing: Vec<AbsPath>,
    /// Single files that it may create, change and remove. A name that ends in `XXXXXX` matches every name that
    /// `mkstemp` generates from it.
    entries: Vec<AbsPath>,
    /// Its own temporary directories, in which `guard` does not apply.
    private: Vec<AbsPath>,
    /// The only trees and files that it may read; `None` permits everything that is not hidden.
    readable: Option<Vec<AbsPath>>,
    /// The only program files that it may execute; `None` permits any.
    executable: Option<Vec<AbsPath>>,
    /// Interpreters and loaders that the kernel executes with them. The command may not execute these directly, because
    /// they run any file that can be read.
    interpreters: Vec<AbsPath>,
    /// Those of them that `env` starts for a program that is a script.
    env_programs: Vec<EnvProgram>,
    /// Paths that may not be changed, as the profile names them.
    protected: Vec<AbsPath>,
    /// `protected` with symlinks resolved, and the unreadable paths, which a rename would make readable. Computed at the
    /// first change: most commands change nothing.
    write_protected: OnceLock<WriteProtectedPaths>,
    /// Paths whose contents are hidden: those of the profile, and those that the scan found.
    unreadable: Vec<AbsPath>,
    /// The paths of the profile among `unreadable`: opening one fails even where other hidden files appear empty.
    explicitly_hidden: Vec<AbsPath>,
    /// Files that were granted by name, also below an unreadable path.
    named: Vec<AbsPath>,
    /// Rules by name and pattern, applied to real paths.
    pub(super) guard: FileGuard,
    /// Masks cover the hidden files in writable trees, so that Landlock grants the trees as a whole.
    masked: bool,
    /// A tree was too large to scan for hidden files: the seccomp notification handler opens every file of it.
    unsearched: bool,
    /// The files at unreadable paths, by device and inode: a hard link to one is hidden as well.
    hidden: HashSet<DeviceInode>,
    /// Unix sockets, or directories of them, that may be connected to.
    sockets: Vec<AbsPath>,
    /// What the Landlock rules grant for writing.
    pub(super) landlock_write: Vec<AbsPath>,
    /// What the Landlock rules grant for reading in trees with hidden files.
    pub(super) landlock_read: Vec<AbsPath>,
    /// Paths whose entry was replaced after the Landlock rules were built: the rules are about inodes, not names.
    replaced: Arc<Mutex<HashSet<AbsPath>>>,
}

/// Paths that may not be changed, with symlinks resolved.
#[derive(Debug, Clone, Default)]
struct WriteProtectedPaths {
    /// Everything at and below these may not be changed.
    paths: Vec<AbsPath>,
    /// The files there, by device and inode: a hard link to one may not be changed either.
    pinned: HashSet<DeviceInode>,
}

impl SandboxPathAccess {
    /// Resolves the paths of a profile, and scans its trees for hidden files.
    pub(super) fn new(profile: &SandboxProfile) -> Self {
        let writable = resolve_existing(&profile.writable);
        let private = resolve_existing(&profile.private);
        let readable = profile.readable.as_ref().map(|paths| {
            // The command may read what it writes.
            resolve_paths(paths)
                .into_iter()
                .chain(writable.iter().chain(&private).cloned())
                .collect::<Vec<_>>()
        });
        let named = resolve_paths(&profile.named);
        // A missing path matters only in a writable tree, where it could be created.
        let is_relevant = |path: &&AbsPath| {
            writable.iter().any(|root| path.is_under(root))
                || statat(CWD, path.as_path(), AtFlags::SYMLINK_NOFOLLOW).is_ok()
        };
        let unreadable: Vec<AbsPath> = profile.unreadable.iter().filter(is_relevant).cloned().collect();
        let mut unreadable = resolve_links_and_targets(&unreadable);
        unreadable.retain(|path| !named.contains(path));
        let explicitly_hidden = unreadable.clone();
        let searched: Vec<AbsPath> = match &readable {
            Some(paths) => paths.iter().filter(|path| !private.contains(path)).cloned().collect(),
            None => writable.clone(),
        };
        let found = find_hidden(searched.iter(), &profile.guard);
        unreadable.extend(found.paths);
        unreadable.sort();
        unreadable.dedup();
        let hidden = unreadable.iter().filter_map(read_device_inode).collect();
        let programs = || profile.executable.iter().flatten();
        Self {
            missing: resolve_missing(&profile.writable),
            entries: resolve_entries(&profile.entries),
            executable: profile
                .executable
                .as_ref()
                .map(|programs| programs.iter().map(|program| program.file.clone()).collect()),
            interpreters: programs().flat_map(|program| program.interpreters.iter().cloned()).collect(),
            env_programs: programs().flat_map(|program| program.env_programs.iter().cloned()).collect(),
            sockets: resolve_paths(&profile.sockets),
            guard: profile.guard.clone(),
            masked: false,
            unsearched: !found.complete,
            writable,
            private,
            readable,
            protected: profile.protected.clone(),
            write_protected: OnceLock::new(),
            unreadable,
            explicitly_hidden,
            named,
            hidden,
            landlock_write: Vec::new(),
            landlock_read: Vec::new(),
            replaced: Arc::default(),
        }
    }

    /// Records that the entry at a path was removed, renamed or replaced.
    pub(super) fn note_replaced(&self, real: &AbsPath) {
        if self.landlock_read.iter().any(|granted| real.is_under(granted))
            && let Ok(mut replaced) = self.replaced.lock()
        {
            replaced.insert(real.clone());
        }
    }

    /// Whether the entry at a path, or a parent of it, was replaced.
    fn is_replaced(&self, real: &AbsPath) -> bool {
        let Ok(replaced) = self.replaced.lock() else { return false };
        let mut ancestor = Some(real.clone()).filter(|_| !replaced.is_empty());
        while let Some(path) = ancestor {
            if replaced.contains(&path) {
                return true;
            }
            ancestor = path.parent();
        }
        false
    }

    /// Whether a socket at a path, symlinks resolved, may be connected to.
    pub(super) fn may_connect(&self, real: &AbsPath) -> bool {
        self.may_write(real) || self.may_read(real) && self.sockets.iter().any(|path| real.is_under(path))
    }

    /// Trees in which it may write, private ones included.
    pub(super) fn writable(&self) -> impl Iterator<Item = &AbsPath> + Clone {
        self.writable.iter().chain(&self.private)
    }

    /// Its own temporary directories.
    pub(super) fn private(&self) -> &[AbsPath] {
        &self.private
    }

    /// The only trees and files that it may read; `None` permits all that are not hidden.
    pub(super) fn readable(&self) -> Option<&[AbsPath]> {
        self.readable.as_deref()
    }

    /// The only program files that it may execute; `None` permits any.
    pub(super) fn executable(&self) -> Option<&[AbsPath]> {
        self.executable.as_deref()
    }

    /// Interpreters and loaders that the kernel executes with those programs.
    pub(super) fn interpreters(&self) -> &[AbsPath] {
        &self.interpreters
    }

    /// Whether a process that runs this file may execute a program because it is the `env` of a script. Where the command
    /// may start `env` itself, with any arguments, it may not.
    pub(super) fn may_start_from_env(&self, env: &AbsPath, program: &AbsPath) -> bool {
        let is_listed = self.executable.as_ref().is_none_or(|programs| programs.contains(env));
        !is_listed && self.env_programs.iter().any(|one| one.env == *env && one.program == *program)
    }

    /// The paths that may not be changed, with symlinks resolved.
    pub(super) fn write_protected(&self) -> &[AbsPath] {
        &self.write_protected_paths().paths
    }

    /// The write-protected paths if one of them is inside a directory, else none. Cheaper than computing them always.
    pub(super) fn write_protected_in(&self, directory: &AbsPath) -> &[AbsPath] {
        let inside = |path: &AbsPath| path.is_under(directory);
        let any = self.protected.iter().chain(&self.unreadable).any(inside);
        if any { self.write_protected() } else { &[] }
    }

    /// Computes the write-protected paths at the first use.
    fn write_protected_paths(&self) -> &WriteProtectedPaths {
        self.write_protected.get_or_init(|| {
            let mut paths = resolve_links_and_targets(&self.protected);
            // A symlink to a root or above it must not protect the whole root.
            let symlinked = find_guarded_symlink_targets(self.writable.iter(), &self.guard).into_iter();
            paths.extend(symlinked.filter(|path| !self.writable.iter().any(|root| root.is_under(path))));
            paths.extend(self.unreadable.iter().cloned());
            let pinned = paths.iter().filter_map(read_device_inode).collect();
            WriteProtectedPaths { paths, pinned }
        })
    }

    /// The hidden paths.
    pub(super) fn unreadable(&self) -> &[AbsPath] {
        &self.unreadable
    }

    /// Whether a hidden path was named by a rule or a setting, and not only matched by a sensitive name.
    pub(super) fn is_explicitly_hidden(&self, real: &AbsPath) -> bool {
        self.explicitly_hidden.iter().any(|path| real.is_under(path))
    }

    /// The files that were granted by name.
    pub(super) fn named(&self) -> &[AbsPath] {
        &self.named
    }

    /// The hidden files in writable trees, which are better masked than excepted from the Landlock rules. None if only
    /// some files may be read: no files are created there.
    pub(super) fn maskable_files(&self) -> Vec<AbsPath> {
        let inside = |path: &&AbsPath| self.writable.iter().any(|root| path.is_under(root));
        let hidden = self.unreadable.iter().filter(|_| self.readable.is_none());
        hidden.filter(inside).cloned().collect()
    }

    /// Records that masks cover the [`SandboxPathAccess::maskable_files`].
    pub(super) fn set_masked(&mut self) {
        self.masked = true;
    }

    /// The hidden paths that the Landlock rules must not grant.
    pub(super) fn landlock_exceptions(&self) -> Vec<AbsPath> {
        let masked = if self.masked { self.maskable_files() } else { Vec::new() };
        self.unreadable.iter().filter(|path| !masked.contains(path)).cloned().collect()
    }

    /// The hidden files by device and inode.
    pub(super) fn hidden_files(&self) -> &HashSet<DeviceInode> {
        &self.hidden
    }

    /// Whether a tree was too large to scan for hidden files.
    pub(super) fn is_unsearched(&self) -> bool {
        self.unsearched
    }

    /// Whether the seccomp notification handler must decide about reading as well: hidden files are in writable or
    /// readable trees.
    pub(super) fn needs_read_notify(&self) -> bool {
        let trees: Vec<&AbsPath> = match &self.readable {
            Some(paths) => paths.iter().collect(),
            None => self.writable.iter().collect(),
        };
        self.unsearched || self.unreadable.iter().any(|path| trees.iter().any(|root| path.is_under(root)))
    }

    /// Whether the content at a path, symlinks resolved, may be changed.
    pub(super) fn may_write(&self, real: &AbsPath) -> bool {
        if self.private.iter().any(|root| real.is_under(root)) {
            return !self.is_write_protected(real);
        }
        let mut trees = self.writable.iter().chain(&self.missing);
        let granted = trees.any(|root| real.is_under(root)) || self.is_entry(real);
        granted
            && !self.is_write_protected(real)
            && !self.guard.forbids_change(real)
            && !self.sets_up_repository(real)
    }

    /// Whether a directory may be created at a path: also a parent of an entry that may be written.
    pub(super) fn may_make_directory(&self, real: &AbsPath) -> bool {
        let is_parent_of_entry = || {
            self.entries.iter().chain(&self.missing).any(|entry| entry.is_under(real))
                && !self.guard.forbids_change(real)
        };
        self.may_write(real) || is_parent_of_entry() && !self.is_write_protected(real)
    }

    /// Whether the entry itself may be removed, renamed or replaced.
    /// A parent of a protected path may not: renaming it would move the protected path.
    pub(super) fn may_replace(&self, real: &AbsPath) -> bool {
        self.may_write(real)
            && (!self.writable().any(|root| root == real) || self.is_entry(real))
            && !self.write_protected().iter().any(|path| path.is_under(real))
    }

    /// Whether a path is one of the single files that may be written.
    fn is_entry(&self, real: &AbsPath) -> bool {
        self.entries.iter().any(|entry| entry == real || matches_mkstemp_template(real, entry))
    }

    /// Whether the content at a path, symlinks resolved, may be read.
    pub(super) fn may_read(&self, real: &AbsPath) -> bool {
        let granted = self.readable.as_ref().is_none_or(|paths| paths.iter().any(|path| real.is_under(path)));
        granted && !self.hides(real)
    }

    /// Whether the content at a path, symlinks resolved, is hidden by a rule or a sensitive name.
    pub(super) fn hides(&self, real: &AbsPath) -> bool {
        if self.private.iter().any(|root| real.is_under(root)) {
            return false;
        }
        if self.named.iter().any(|path| real.is_under(path)) {
            return self.guard.hides(real);
        }
        self.unreadable.iter().any(|path| real.is_under(path))
            || read_device_inode(real).is_some_and(|file| self.hidden.contains(&file))
            || self.guard.hides(real)
    }

    /// Whether the Landlock rules let the command change this itself.
    pub(super) fn landlock_allows_write(&self, real: &AbsPath) -> bool {
        self.landlock_write.iter().any(|granted| real.is_under(granted))
    }

    /// Whether the Landlock rules let the command read this itself.
    pub(super) fn landlock_allows_read(&self, real: &AbsPath) -> bool {
        let is_in_scanned_tree = match &self.readable {
            Some(paths) => paths.iter().any(|root| real.is_under(root)),
            None => self.writable.iter().any(|root| real.is_under(root)),
        };
        let is_granted_whole = self.readable.is_none() && (self.masked || self.unreadable.is_empty());
        !is_in_scanned_tree
            || is_granted_whole
            || !self.unsearched && self.unreadable.is_empty()
            || self.landlock_read.iter().any(|granted| real.is_under(granted)) && !self.is_replaced(real)
    }

    /// Whether this inode may not be changed, under whatever name.
    pub(super) fn is_pinned_file(&self, device: u64, number: u64) -> bool {
        self.write_protected_paths().pinned.contains(&(device, number))
    }

    /// Whether a path configures programs for git in a repository that has another name than `.git`. Paths below `.git`
    /// are decided by the guard, which knows what was granted.
    fn sets_up_repository(&self, real: &AbsPath) -> bool {
        let named = || self.named.iter().any(|path| real.is_under(path));
        let is_below_dot_git = || real.as_path().components().any(|part| part.as_os_str() == ".git");
        self.guard.is_some() && is_repository_setting(real) && !named() && !is_below_dot_git()
    }

    /// Whether a path, or the file at it under another name, may not be changed.
    fn is_write_protected(&self, real: &AbsPath) -> bool {
        let protected = self.write_protected_paths();
        protected.paths.iter().any(|path| real.is_under(path))
            || read_device_inode(real).is_some_and(|file| protected.pinned.contains(&file))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protected_paths_are_refused_by_path_by_parent_and_by_hard_link() {
        let dir = tempfile::tempdir().unwrap();
        let top = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        std::fs::create_dir_all(top.join(".git/hooks")).unwrap();
        std::fs::write(top.join(".git/config"), "x").unwrap();
        std::fs::hard_link(top.join(".git/config"), top.join("twin")).unwrap();
        let protected = [top.join(".git/hooks"), top.join(".git/config"), top.join(".mcp.json")];
        let bounds = SandboxPathAccess::new(&SandboxProfile {
            writable: vec![top.clone()],
            protected: protected.to_vec(),
            unreadable: vec![top.join(".env")],
            ..SandboxProfile::default()
        });
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
