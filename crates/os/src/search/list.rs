//! A listing of a directory and what is below it, in the order of a tree.

use crate::files::FileProblem;
use crate::search::directory::{Directory, Kind, NamedEntry};
use crate::search::select::{Dotted, LeftOut, Selection, Selector};
use crate::search::{SearchProblem, Stop, Tree};
use crate::threads::each;
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::sync::Arc;
use toolgate_proto::EntryKind;

/// Entries are counted up to here; a listing that goes on says so.
const MAX_COUNTED_ENTRIES: u64 = 200_000;
const ENTRIES_BUFFER: usize = 32 * 1024;
/// With fewer files in a directory, starting a thread takes longer than it saves.
const MANY: usize = 256;

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
pub struct Listed {
    /// How far below the directory that was asked for.
    pub level: usize,
    /// Its name.
    pub name: Vec<u8>,
    /// What it is; a link counts as a file.
    pub kind: EntryKind,
    /// It is a link.
    pub link: bool,
    /// Size in bytes, for files.
    pub bytes: u64,
    /// Why what is below is not listed.
    pub problem: Option<FileProblem>,
}

/// A page of a listing, and what there is in all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListingPage {
    /// The page.
    pub entries: Vec<Listed>,
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
pub fn list_tree(tree: &Tree, options: ListOptions, stop: &Stop) -> Result<ListingPage, SearchProblem> {
    if !tree.is_directory {
        return Err(FileProblem::NotDirectory.into());
    }
    let dotted = if options.dotted { Dotted::Take } else { Dotted::Leave };
    let selection = Selection { ignored: options.ignored, dotted, ..Selection::default() };
    // INVARIANT: a selection without globs and types has nothing in it that could be wrong.
    let Ok(selector) = Selector::new(&selection) else { return Ok(ListingPage::default()) };
    let mut buffer = vec![MaybeUninit::uninit(); ENTRIES_BUFFER];
    let mut start = Directory::start(&tree.start, buffer.as_mut_slice())?;
    if selector.respects_ignore_files {
        start.rules = tree.ancestor_ignore_rules();
    }
    let answer = ListingPage::default();
    let mut listing = TreeLister { tree, options, selector, buffer, answer, unmeasured: Vec::new() };
    // Directories that are being listed, with how far each has come.
    let mut way = vec![listing.open(start)];
    while let Some((directory, next)) = way.last_mut() {
        if stop.is_stopped() {
            return Err(SearchProblem::Stopped);
        }
        let directory = Arc::clone(directory);
        let Some(&entry) = directory.names.entries().get(*next) else {
            listing.measure(&directory);
            way.pop();
            continue;
        };
        *next += 1;
        if listing.answer.total >= MAX_COUNTED_ENTRIES {
            listing.answer.uncounted = true;
            listing.measure(&directory);
            break;
        }
        if let Some(below) = listing.entry(&directory, entry) {
            listing.measure(&directory);
            way.push(below);
        }
    }
    Ok(listing.answer)
}

struct TreeLister<'t> {
    tree: &'t Tree,
    options: ListOptions,
    selector: Selector,
    buffer: Vec<MaybeUninit<u8>>,
    answer: ListingPage,
    /// Files of the directory at hand whose size is not yet known, and where in the answer they are.
    unmeasured: Vec<(usize, NamedEntry)>,
}

impl TreeLister<'_> {
    fn open(&self, mut directory: Directory) -> (Arc<Directory>, usize) {
        self.selector.load_ignore_rules(&mut directory);
        directory.names.sort();
        (Arc::new(directory), 0)
    }

    /// Lists one entry, and opens it where what is below is wanted too.
    fn entry(&mut self, directory: &Directory, entry: NamedEntry) -> Option<(Arc<Directory>, usize)> {
        let name = directory.names.name(entry);
        let is_dir = entry.kind == Kind::Directory;
        match self.selector.lists(directory, name, is_dir) {
            Ok(()) => {}
            Err(LeftOut::Dotted) => {
                self.answer.dotted += 1;
                return None;
            }
            Err(LeftOut::Ignored) => {
                self.answer.ignored += 1;
                return None;
            }
        }
        let hidden = self.tree.hidden.as_ref().filter(|hidden| hidden.hides_any());
        if hidden.is_some_and(|hidden| hidden.hides(&directory.join(name))) {
            self.answer.withheld += 1;
            return None;
        }
        let below = (is_dir && directory.depth() + 1 < self.options.depth as usize)
            .then(|| directory.enter(name, self.buffer.as_mut_slice()));
        let (below, problem) = match below {
            Some(Ok(below)) => (Some(below), None),
            Some(Err(problem)) => (None, Some(problem)),
            None => (None, None),
        };
        let place = self.answer.total;
        self.answer.total += 1;
        self.answer.directories += u64::from(is_dir);
        self.answer.files += u64::from(entry.kind == Kind::File);
        if place >= self.options.offset && place - self.options.offset < self.options.limit {
            if entry.kind == Kind::File {
                self.unmeasured.push((self.answer.entries.len(), entry));
            }
            self.answer.entries.push(listed(directory, name, entry.kind, problem));
        }
        below.map(|below| self.open(below))
    }

    /// Finds out the sizes of files of one directory: what takes longest in a listing, so many are shared out.
    fn measure(&mut self, directory: &Directory) {
        let unmeasured = std::mem::take(&mut self.unmeasured);
        let size = |(_, entry): &(usize, NamedEntry)| {
            let stat = directory.stat(directory.names.name(*entry));
            stat.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0))
        };
        for (bytes, (place, _)) in each(&unmeasured, MANY, size).into_iter().zip(unmeasured) {
            if let Some(entry) = self.answer.entries.get_mut(place) {
                entry.bytes = bytes;
            }
        }
    }
}

fn listed(directory: &Directory, name: &CStr, kind: Kind, problem: Option<FileProblem>) -> Listed {
    Listed {
        level: directory.depth(),
        name: name.to_bytes().to_vec(),
        kind: match kind {
            Kind::File | Kind::Link => EntryKind::File,
            Kind::Directory => EntryKind::Directory,
            Kind::Special => EntryKind::Special,
        },
        link: kind == Kind::Link,
        bytes: 0,
        problem,
    }
}
