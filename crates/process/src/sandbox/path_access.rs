//! Which paths a command may change and read: one place that says so, for Landlock's rules and for the supervisor.

use super::SandboxProfile;
use super::guard::FileGuard;
use super::scan::{find_guarded_symlink_targets, find_hidden, is_repository_setting};
use rustix::fs::{AtFlags, CWD, FileType, statat};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock};
use toolgate_proto::{AbsPath, EntryKind};

/// The bounds of one command, with symlinks resolved.
#[derive(Debug, Clone, Default)]
pub(super) struct SandboxPathAccess {
    /// Trees in which it may write.
    writable: Vec<AbsPath>,
    /// Trees that are not there yet: it may make them.
    missing: Vec<AbsPath>,
    /// Single entries that it may create, change and remove. A name that ends in `XXXXXX` stands for every name that
    /// `mkstemp` makes of it.
    entries: Vec<AbsPath>,
    /// Its own temporary directories: nothing in there is guarded.
    private: Vec<AbsPath>,
    /// The only trees and files that it may read; `None` is everything that is not hidden.
    readable: Option<Vec<AbsPath>>,
    /// The only program files that it may execute; `None` is any.
    executable: Option<Vec<AbsPath>>,
    /// What those need beside themselves: interpreters and loaders. Not to be called by hand.
    interpreters: Vec<AbsPath>,
    /// Inside those, what may not be changed.
    protected: Vec<AbsPath>,
    /// The same with symlinks resolved, and with the unreadable paths, which a new name would make readable. Worked out
    /// when something is first to be changed: most commands change nothing.
    write_protected: OnceLock<WriteProtectedPaths>,
    unreadable: Vec<AbsPath>,
    /// Of those, the ones that were spelled out: a command that opens one is told so.
    explicitly_hidden: Vec<AbsPath>,
    /// What was granted by name, wherever it lies.
    named: Vec<AbsPath>,
    /// Rules by name and pattern, asked about real paths.
    pub(super) guard: FileGuard,
    /// Hidden files in writable trees are covered, so that Landlock grants the trees as a whole.
    masked: bool,
    /// A tree was too large to be searched for hidden files: the supervisor opens every file of it.
    unsearched: bool,
    /// The files at unreadable paths, by device and number: under another name they are hidden as well.
    hidden: HashSet<DeviceInode>,
    /// Sockets that may be connected to.
    sockets: Vec<AbsPath>,
    /// What Landlock grants for writing.
    pub(super) landlock_write: Vec<AbsPath>,
    /// What Landlock grants for reading where hidden files lie among others.
    pub(super) landlock_read: Vec<AbsPath>,
    /// Paths where something else is by now than when Landlock's rules were made: those are about files, not names.
    replaced: Arc<Mutex<HashSet<AbsPath>>>,
}

/// Paths that may not be changed.
#[derive(Debug, Clone, Default)]
struct WriteProtectedPaths {
    paths: Vec<AbsPath>,
    /// The files there, by device and number: the same file under another name stays as it is.
    pinned: HashSet<DeviceInode>,
}

/// A file, whatever it is called: device and inode number.
pub(super) type DeviceInode = (u64, u64);

impl SandboxPathAccess {
    pub(super) fn new(confinement: &SandboxProfile) -> Self {
        let writable = resolve_existing(&confinement.writable);
        let private = resolve_existing(&confinement.private);
        let readable = confinement.readable.as_ref().map(|paths| {
            let mut paths: Vec<AbsPath> =
                paths.iter().map(|path| toolgate_files::resolve(path).real).collect();
            // What is written may be read again.
            paths.extend(writable.iter().chain(&private).cloned());
            paths
        });
        let named: Vec<AbsPath> =
            confinement.named.iter().map(|path| toolgate_files::resolve(path).real).collect();
        // What is not there cannot be read; whether it can be made is asked of the writable trees.
        let there = |path: &&AbsPath| {
            writable.iter().any(|root| path.is_under(root))
                || statat(CWD, path.as_path(), AtFlags::SYMLINK_NOFOLLOW).is_ok()
        };
        let unreadable: Vec<AbsPath> = confinement.unreadable.iter().filter(there).cloned().collect();
        let mut unreadable = resolve_links_and_targets(&unreadable);
        unreadable.retain(|path| !named.contains(path));
        let explicitly_hidden = unreadable.clone();
        let searched: Vec<AbsPath> = match &readable {
            Some(paths) => paths.iter().filter(|path| !private.contains(path)).cloned().collect(),
            None => writable.clone(),
        };
        let found = find_hidden(searched.iter(), &confinement.guard);
        unreadable.extend(found.paths);
        unreadable.sort();
        unreadable.dedup();
        let hidden = unreadable.iter().filter_map(read_device_inode).collect();
        Self {
            missing: resolve_missing(&confinement.writable),
            entries: confinement.entries.iter().map(|path| toolgate_files::resolve(path).real).collect(),
            executable: confinement
                .executable
                .as_ref()
                .map(|programs| programs.iter().map(|program| program.file.clone()).collect()),
            interpreters: confinement
                .executable
                .iter()
                .flatten()
                .flat_map(|program| program.interpreters.iter().cloned())
                .collect(),
            sockets: confinement.sockets.iter().map(|path| toolgate_files::resolve(path).real).collect(),
            guard: confinement.guard.clone(),
            masked: false,
            unsearched: !found.complete,
            writable,
            private,
            readable,
            protected: confinement.protected.clone(),
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

    /// Notes that the entry at a path was removed, renamed or replaced.
    pub(super) fn note_replaced(&self, real: &AbsPath) {
        if self.landlock_read.iter().any(|granted| real.is_under(granted))
            && let Ok(mut replaced) = self.replaced.lock()
        {
            replaced.insert(real.clone());
        }
    }

    fn is_replaced(&self, real: &AbsPath) -> bool {
        let Ok(replaced) = self.replaced.lock() else { return false };
        let mut at = Some(real.clone()).filter(|_| !replaced.is_empty());
        while let Some(path) = at {
            if replaced.contains(&path) {
                return true;
            }
            at = path.parent();
        }
        false
    }

    /// Whether a socket at a path, symlinks resolved, may be connected to.
    pub(super) fn may_connect(&self, real: &AbsPath) -> bool {
        self.may_write(real) || self.may_read(real) && self.sockets.iter().any(|path| real.is_under(path))
    }

    /// Trees in which it may write, its own temporary ones among them.
    pub(super) fn writable(&self) -> impl Iterator<Item = &AbsPath> + Clone {
        self.writable.iter().chain(&self.private)
    }

    pub(super) fn private(&self) -> &[AbsPath] {
        &self.private
    }

    pub(super) fn readable(&self) -> Option<&[AbsPath]> {
        self.readable.as_deref()
    }

    pub(super) fn executable(&self) -> Option<&[AbsPath]> {
        self.executable.as_deref()
    }

    pub(super) fn interpreters(&self) -> &[AbsPath] {
        &self.interpreters
    }

    pub(super) fn write_protected(&self) -> &[AbsPath] {
        &self.write_protected_paths().paths
    }

    /// What may not be changed inside a directory, where there is anything of the kind.
    pub(super) fn write_protected_in(&self, directory: &AbsPath) -> &[AbsPath] {
        let inside = |path: &AbsPath| path.is_under(directory);
        let any = self.protected.iter().chain(&self.unreadable).any(inside);
        if any { self.write_protected() } else { &[] }
    }

    fn write_protected_paths(&self) -> &WriteProtectedPaths {
        self.write_protected.get_or_init(|| {
            let mut paths = resolve_links_and_targets(&self.protected);
            // A symlink to a root, or to what is around it, bars no more than itself.
            let symlinked = find_guarded_symlink_targets(self.writable.iter(), &self.guard).into_iter();
            paths.extend(symlinked.filter(|path| !self.writable.iter().any(|root| root.is_under(path))));
            paths.extend(self.unreadable.iter().cloned());
            let pinned = paths.iter().filter_map(read_device_inode).collect();
            WriteProtectedPaths { paths, pinned }
        })
    }

    pub(super) fn unreadable(&self) -> &[AbsPath] {
        &self.unreadable
    }

    /// Whether a hidden path was spelled out by a rule or a setting, and not only by a name that looks like a secret.
    pub(super) fn is_explicitly_hidden(&self, real: &AbsPath) -> bool {
        self.explicitly_hidden.iter().any(|path| real.is_under(path))
    }

    pub(super) fn named(&self) -> &[AbsPath] {
        &self.named
    }

    /// The hidden files that lie where new files can be made, and so are better covered than left out. Not where only
    /// some files may be read: nothing new is made there.
    pub(super) fn maskable_files(&self) -> Vec<AbsPath> {
        let inside = |path: &&AbsPath| self.writable.iter().any(|root| path.is_under(root));
        let covered = self.unreadable.iter().filter(|_| self.readable.is_none());
        covered.filter(inside).cloned().collect()
    }

    /// Notes that they are covered.
    pub(super) fn set_masked(&mut self) {
        self.masked = true;
    }

    /// What Landlock must leave out.
    pub(super) fn landlock_exceptions(&self) -> Vec<AbsPath> {
        let covered = if self.masked { self.maskable_files() } else { Vec::new() };
        self.unreadable.iter().filter(|path| !covered.contains(path)).cloned().collect()
    }

    /// The hidden files, whatever they are called.
    pub(super) fn hidden_files(&self) -> &HashSet<DeviceInode> {
        &self.hidden
    }

    pub(super) fn is_unsearched(&self) -> bool {
        self.unsearched
    }

    /// Whether the supervisor must decide about reading as well: hidden files lie where new ones can be made, or
    /// among what a search goes through.
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
            && !self.guard.protects(real)
            && !self.sets_up_repository(real)
    }

    /// Whether a directory may be made at a path: also on the way to an entry that may be written.
    pub(super) fn may_make_directory(&self, real: &AbsPath) -> bool {
        let on_the_way = || {
            self.entries.iter().chain(&self.missing).any(|entry| entry.is_under(real))
                && !self.guard.protects(real)
        };
        self.may_write(real) || on_the_way() && !self.is_write_protected(real)
    }

    /// Whether the entry itself may be removed, renamed or replaced.
    /// A directory above something protected may not: it would take that along.
    pub(super) fn may_replace(&self, real: &AbsPath) -> bool {
        self.may_write(real)
            && (!self.writable().any(|root| root == real) || self.is_entry(real))
            && !self.write_protected().iter().any(|path| path.is_under(real))
    }

    fn is_entry(&self, real: &AbsPath) -> bool {
        self.entries.iter().any(|entry| entry == real || matches_mkstemp_template(real, entry))
    }

    /// Whether the content at a path, symlinks resolved, may be read.
    pub(super) fn may_read(&self, real: &AbsPath) -> bool {
        let granted = self.readable.as_ref().is_none_or(|paths| paths.iter().any(|path| real.is_under(path)));
        granted && !self.hides(real)
    }

    /// Whether the content at a path, symlinks resolved, is kept back by a rule or a name.
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

    /// Whether Landlock lets this be changed without the supervisor.
    pub(super) fn landlock_allows_write(&self, real: &AbsPath) -> bool {
        self.landlock_write.iter().any(|granted| real.is_under(granted))
    }

    /// The same for reading.
    pub(super) fn landlock_allows_read(&self, real: &AbsPath) -> bool {
        let mixed = match &self.readable {
            Some(paths) => paths.iter().any(|root| real.is_under(root)),
            None => self.writable.iter().any(|root| real.is_under(root)),
        };
        let whole = self.readable.is_none() && (self.masked || self.unreadable.is_empty());
        !mixed
            || whole
            || !self.unsearched && self.unreadable.is_empty()
            || self.landlock_read.iter().any(|granted| real.is_under(granted)) && !self.is_replaced(real)
    }

    /// Whether this very file must stay as it is, under whatever name.
    pub(super) fn is_pinned_file(&self, device: u64, number: u64) -> bool {
        self.write_protected_paths().pinned.contains(&(device, number))
    }

    /// Whether this makes git run programs in a repository that has another name than `.git`. Those that do have it are
    /// the guard's business, which knows what was granted.
    fn sets_up_repository(&self, real: &AbsPath) -> bool {
        let named = || self.named.iter().any(|path| real.is_under(path));
        let ordinary = || real.as_path().components().any(|part| part.as_os_str() == ".git");
        self.guard.is_some() && is_repository_setting(real) && !named() && !ordinary()
    }

    fn is_write_protected(&self, real: &AbsPath) -> bool {
        let barred = self.write_protected_paths();
        barred.paths.iter().any(|path| real.is_under(path))
            || read_device_inode(real).is_some_and(|file| barred.pinned.contains(&file))
    }
}

/// Whether `mkstemp` may have made a path of a template.
fn matches_mkstemp_template(path: &AbsPath, template: &AbsPath) -> bool {
    const TEMPLATE_SUFFIX: &str = "XXXXXX";
    let name = |path: &AbsPath| path.file_name().and_then(|name| name.to_str()).map(str::to_owned);
    let (Some(made), Some(template_name)) = (name(path), name(template)) else { return false };
    let Some(prefix) = template_name.strip_suffix(TEMPLATE_SUFFIX) else { return false };
    let random = made.strip_prefix(prefix).unwrap_or_default();
    random.len() == TEMPLATE_SUFFIX.len()
        && random.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && path.parent() == template.parent()
}

fn resolve_missing(paths: &[AbsPath]) -> Vec<AbsPath> {
    paths
        .iter()
        .map(toolgate_files::resolve)
        .filter(|fact| fact.problem.is_none() && fact.kind == EntryKind::Missing)
        .map(|fact| fact.real)
        .collect()
}

fn resolve_existing(paths: &[AbsPath]) -> Vec<AbsPath> {
    paths
        .iter()
        .map(toolgate_files::resolve)
        .filter(|fact| fact.problem.is_none() && fact.kind != EntryKind::Missing)
        .map(|fact| fact.real)
        .collect()
}

/// Each path where it leads and where it stands: a symlink at a protected place must not be replaced.
fn resolve_links_and_targets(paths: &[AbsPath]) -> Vec<AbsPath> {
    let mut out: Vec<AbsPath> = Vec::new();
    for path in paths {
        out.push(toolgate_files::resolve(path).real);
        if let (Some(parent), Some(name)) = (path.parent(), path.file_name()) {
            out.push(toolgate_files::resolve(&parent).real.join(name));
        }
    }
    out.sort();
    out.dedup();
    out
}

/// Which file is at a path, if it is one of which there may be other names.
fn read_device_inode(path: &AbsPath) -> Option<DeviceInode> {
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
