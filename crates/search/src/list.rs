//! Listings of a directory and its subdirectories, page by page, in the order of a printed tree.

use crate::directory::{NamedEntry, WalkDirectory, WalkEntryKind};
use crate::ignore_rules::IgnoreRules;
use crate::select::{DotfileHandling, ExclusionReason, FileSelection, FileSelector};
use crate::walk_worker::ENTRIES_BUFFER_BYTES;
use crate::{SearchProblem, SearchStopFlag, SearchTree};
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::sync::Arc;
use toolgate_files::{FileProblem, parallel_map};
use toolgate_proto::EntryKind;

/// A listing counts at most this many entries, and then sets [`ListingPage::uncounted`].
const MAX_COUNTED_ENTRIES: u64 = 200_000;
/// With fewer files in a directory, starting threads takes longer than reading their sizes on one thread.
const MIN_PARALLEL_FILES: usize = 256;

/// What to list, and which page of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListOptions {
    /// How many levels; 1 lists the directory alone.
    pub depth: u32,
    /// Whether to list entries whose name starts with a dot.
    pub dotted: bool,
    /// Whether to list entries that ignore files exclude.
    pub ignored: bool,
    /// How many entries to skip, for the next page.
    pub offset: u64,
    /// How many entries to return.
    pub limit: u64,
}

/// One entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedEntry {
    /// How many directories are between it and the listed one; 0 for an entry of the listed directory.
    pub level: usize,
    /// Its name, not its path.
    pub name: Vec<u8>,
    /// What it is. A symlink counts as a file.
    pub kind: EntryKind,
    /// Whether it is a symlink.
    pub is_symlink: bool,
    /// Size in bytes of a regular file; 0 for everything else.
    pub bytes: u64,
    /// Why the entries of this directory are not listed; `None` if they are or need not be.
    pub problem: Option<FileProblem>,
}

/// A page of a listing, and the totals of the whole listing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListingPage {
    /// The entries of the page.
    pub entries: Vec<ListedEntry>,
    /// The number of all entries.
    pub total: u64,
    /// The number of directories among them.
    pub directories: u64,
    /// The number of regular files among them.
    pub files: u64,
    /// Whether there are more entries than were counted.
    pub uncounted: bool,
    /// The number of entries left out because their name starts with a dot.
    pub dotted: u64,
    /// The number of entries left out because of an ignore file.
    pub ignored: u64,
    /// The number of entries that policy hides.
    pub withheld: u64,
}

/// Lists a directory and its subdirectories to a depth. All entries are counted, so that a page knows the totals.
pub fn list_tree(
    tree: &SearchTree,
    options: ListOptions,
    stop: &SearchStopFlag,
) -> Result<ListingPage, SearchProblem> {
    if !tree.is_directory() {
        return Err(FileProblem::NotDirectory.into());
    }
    let dotted = if options.dotted { DotfileHandling::Include } else { DotfileHandling::Exclude };
    let selection = FileSelection { ignored: options.ignored, dotted, ..FileSelection::default() };
    // INVARIANT: a selection without globs and types is always valid.
    let Ok(selector) = FileSelector::new(&selection) else { return Ok(ListingPage::default()) };
    let mut buffer = vec![MaybeUninit::uninit(); ENTRIES_BUFFER_BYTES];
    let mut start = WalkDirectory::open_start(tree, buffer.as_mut_slice())?;
    if selector.respects_ignore_files {
        start.rules = IgnoreRules::of_ancestors(tree);
    }
    let page = ListingPage::default();
    let mut lister = TreeLister { tree, options, selector, buffer, page, unmeasured: Vec::new() };
    // The directory that is being listed and those above it, each with the index of its next entry.
    let mut stack = vec![lister.prepare_directory(start)];
    while let Some((directory, next)) = stack.last_mut() {
        if stop.is_stopped() {
            return Err(SearchProblem::Stopped);
        }
        let directory = Arc::clone(directory);
        let Some(&entry) = directory.names.entries().get(*next) else {
            lister.read_sizes(&directory);
            stack.pop();
            continue;
        };
        *next += 1;
        if lister.page.total >= MAX_COUNTED_ENTRIES {
            lister.page.uncounted = true;
            lister.read_sizes(&directory);
            break;
        }
        if let Some(subdirectory) = lister.list_entry(&directory, entry) {
            lister.read_sizes(&directory);
            stack.push(subdirectory);
        }
    }
    Ok(lister.page)
}

/// The state of one listing.
struct TreeLister<'t> {
    tree: &'t SearchTree,
    options: ListOptions,
    /// Which dotfiles and ignored files are listed.
    selector: FileSelector,
    /// Buffer for directory entries.
    buffer: Vec<MaybeUninit<u8>>,
    /// The result so far.
    page: ListingPage,
    /// Files of the current directory whose size is not yet read, with their index in the page.
    unmeasured: Vec<(usize, NamedEntry)>,
}

impl<'t> TreeLister<'t> {
    /// Loads the ignore files of a directory and sorts its entries.
    fn prepare_directory(&self, mut directory: WalkDirectory<'t>) -> (Arc<WalkDirectory<'t>>, usize) {
        self.selector.load_ignore_rules(&mut directory);
        directory.names.sort();
        (Arc::new(directory), 0)
    }

    /// Counts an entry, adds it if it is on the page, and returns it if it is a directory whose entries are to be listed.
    fn list_entry(
        &mut self,
        directory: &WalkDirectory<'t>,
        entry: NamedEntry,
    ) -> Option<(Arc<WalkDirectory<'t>>, usize)> {
        let name = directory.names.name(entry);
        let is_dir = entry.kind == WalkEntryKind::Directory;
        match self.selector.check_listed(directory, name, is_dir) {
            Ok(()) => {}
            Err(ExclusionReason::Dotfile) => {
                self.page.dotted += 1;
                return None;
            }
            Err(ExclusionReason::Ignored) => {
                self.page.ignored += 1;
                return None;
            }
        }
        let hidden = self.tree.hidden().filter(|hidden| hidden.hides_any());
        if hidden.is_some_and(|hidden| hidden.hides(&directory.entry_path(name))) {
            self.page.withheld += 1;
            return None;
        }
        let opened = (is_dir && directory.depth() + 1 < self.options.depth as usize)
            .then(|| directory.open_subdirectory(name, self.buffer.as_mut_slice()));
        let (subdirectory, problem) = match opened {
            Some(Ok(subdirectory)) => (Some(subdirectory), None),
            Some(Err(problem)) => (None, Some(problem)),
            None => (None, None),
        };
        let position = self.page.total;
        self.page.total += 1;
        self.page.directories += u64::from(is_dir);
        self.page.files += u64::from(entry.kind == WalkEntryKind::File);
        if position >= self.options.offset && position - self.options.offset < self.options.limit {
            if entry.kind == WalkEntryKind::File {
                self.unmeasured.push((self.page.entries.len(), entry));
            }
            self.page.entries.push(listed_entry(directory, name, entry.kind, problem));
        }
        subdirectory.map(|subdirectory| self.prepare_directory(subdirectory))
    }

    /// Reads the sizes of files of one directory, on several threads if there are many: a system call for each file is
    /// what takes longest in a listing.
    fn read_sizes(&mut self, directory: &WalkDirectory<'t>) {
        let unmeasured = std::mem::take(&mut self.unmeasured);
        let size = |(_, entry): &(usize, NamedEntry)| {
            let stat = directory.stat(directory.names.name(*entry));
            stat.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0))
        };
        for (bytes, (index, _)) in
            parallel_map(&unmeasured, MIN_PARALLEL_FILES, size).into_iter().zip(unmeasured)
        {
            if let Some(entry) = self.page.entries.get_mut(index) {
                entry.bytes = bytes;
            }
        }
    }
}

/// An entry with its size, if the listing shows sizes.
fn listed_entry(
    directory: &WalkDirectory<'_>,
    name: &CStr,
    kind: WalkEntryKind,
    problem: Option<FileProblem>,
) -> ListedEntry {
    ListedEntry {
        level: directory.depth(),
        name: name.to_bytes().to_vec(),
        kind: match kind {
            WalkEntryKind::File | WalkEntryKind::Symlink => EntryKind::File,
            WalkEntryKind::Directory => EntryKind::Directory,
            WalkEntryKind::Special => EntryKind::Special,
        },
        is_symlink: kind == WalkEntryKind::Symlink,
        bytes: 0,
        problem,
    }
}
