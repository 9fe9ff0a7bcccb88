//! A listing of a directory and what is below it, in the order of a tree.

use crate::directory::{NamedEntry, WalkDirectory, WalkEntryKind};
use crate::select::{DotfileHandling, ExclusionReason, FileSelection, FileSelector};
use crate::{SearchProblem, SearchStopFlag, SearchTree};
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::sync::Arc;
use toolgate_files::FileProblem;
use toolgate_files::parallel_map;
use toolgate_proto::EntryKind;

/// Entries are counted up to here; a listing that goes on says so.
const MAX_COUNTED_ENTRIES: u64 = 200_000;
const ENTRIES_BUFFER_BYTES: usize = 32 * 1024;
/// With fewer files in a directory, starting a thread takes longer than it saves.
const MIN_PARALLEL_FILES: usize = 256;

/// What to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListOptions {
    /// How many levels; 1 is the directory alone.
    pub depth: u32,
    /// Entries whose name starts with a dot as well.
    pub dotted: bool,
    /// Entries that ignore files leave out as well.
    pub ignored: bool,
    /// Entries to pass over.
    pub offset: u64,
    /// Entries to give.
    pub limit: u64,
}

/// One entry of a listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedEntry {
    /// How far below the directory that was asked for.
    pub level: usize,
    /// Its name.
    pub name: Vec<u8>,
    /// What it is; a link counts as a file.
    pub kind: EntryKind,
    /// It is a link.
    pub is_symlink: bool,
    /// Size in bytes, for files.
    pub bytes: u64,
    /// Why what is below is not listed.
    pub problem: Option<FileProblem>,
}

/// A page of a listing, and what there is in all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListingPage {
    /// The page.
    pub entries: Vec<ListedEntry>,
    /// All entries.
    pub total: u64,
    /// Directories among them.
    pub directories: u64,
    /// Regular files among them.
    pub files: u64,
    /// There are more than were counted.
    pub uncounted: bool,
    /// Entries left out because their name starts with a dot.
    pub dotted: u64,
    /// Entries left out because of an ignore file.
    pub ignored: u64,
    /// Entries left out by policy.
    pub withheld: u64,
}

/// Lists a directory.
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
    // INVARIANT: a selection without globs and types has nothing in it that could be wrong.
    let Ok(selector) = FileSelector::new(&selection) else { return Ok(ListingPage::default()) };
    let mut buffer = vec![MaybeUninit::uninit(); ENTRIES_BUFFER_BYTES];
    let mut start = WalkDirectory::open_start(tree.start(), buffer.as_mut_slice())?;
    if selector.respects_ignore_files {
        start.rules = crate::ancestor_ignore_rules(tree);
    }
    let answer = ListingPage::default();
    let mut listing = TreeLister { tree, options, selector, buffer, page: answer, unmeasured: Vec::new() };
    // Directories that are being listed, with how far each has come.
    let mut way = vec![listing.prepare_directory(start)];
    while let Some((directory, next)) = way.last_mut() {
        if stop.is_stopped() {
            return Err(SearchProblem::Stopped);
        }
        let directory = Arc::clone(directory);
        let Some(&entry) = directory.names.entries().get(*next) else {
            listing.read_sizes(&directory);
            way.pop();
            continue;
        };
        *next += 1;
        if listing.page.total >= MAX_COUNTED_ENTRIES {
            listing.page.uncounted = true;
            listing.read_sizes(&directory);
            break;
        }
        if let Some(below) = listing.list_entry(&directory, entry) {
            listing.read_sizes(&directory);
            way.push(below);
        }
    }
    Ok(listing.page)
}

struct TreeLister<'t> {
    tree: &'t SearchTree,
    options: ListOptions,
    selector: FileSelector,
    buffer: Vec<MaybeUninit<u8>>,
    page: ListingPage,
    /// Files of the directory at hand whose size is not yet known, and where in the answer they are.
    unmeasured: Vec<(usize, NamedEntry)>,
}

impl TreeLister<'_> {
    fn prepare_directory(&self, mut directory: WalkDirectory) -> (Arc<WalkDirectory>, usize) {
        self.selector.load_ignore_rules(&mut directory);
        directory.names.sort();
        (Arc::new(directory), 0)
    }

    /// Lists one entry, and opens it where what is below is wanted too.
    fn list_entry(
        &mut self,
        directory: &WalkDirectory,
        entry: NamedEntry,
    ) -> Option<(Arc<WalkDirectory>, usize)> {
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
        let below = (is_dir && directory.depth() + 1 < self.options.depth as usize)
            .then(|| directory.open_subdirectory(name, self.buffer.as_mut_slice()));
        let (below, problem) = match below {
            Some(Ok(below)) => (Some(below), None),
            Some(Err(problem)) => (None, Some(problem)),
            None => (None, None),
        };
        let place = self.page.total;
        self.page.total += 1;
        self.page.directories += u64::from(is_dir);
        self.page.files += u64::from(entry.kind == WalkEntryKind::File);
        if place >= self.options.offset && place - self.options.offset < self.options.limit {
            if entry.kind == WalkEntryKind::File {
                self.unmeasured.push((self.page.entries.len(), entry));
            }
            self.page.entries.push(listed_entry(directory, name, entry.kind, problem));
        }
        below.map(|below| self.prepare_directory(below))
    }

    /// Finds out the sizes of files of one directory: what takes longest in a listing, so many are shared out.
    fn read_sizes(&mut self, directory: &WalkDirectory) {
        let unmeasured = std::mem::take(&mut self.unmeasured);
        let size = |(_, entry): &(usize, NamedEntry)| {
            let stat = directory.stat(directory.names.name(*entry));
            stat.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0))
        };
        for (bytes, (place, _)) in
            parallel_map(&unmeasured, MIN_PARALLEL_FILES, size).into_iter().zip(unmeasured)
        {
            if let Some(entry) = self.page.entries.get_mut(place) {
                entry.bytes = bytes;
            }
        }
    }
}

fn listed_entry(
    directory: &WalkDirectory,
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
