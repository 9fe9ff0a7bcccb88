//! Tests of the walk: how far a search goes, how many file descriptors it uses, and that it stays inside the tree.

use super::*;
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tempfile::TempDir;
use toolgate_files::{FileProblem, GrantedAccess, GrantedFiles, HiddenFileFilter, PathGrant};
use toolgate_proto::{AbsPath, EntryKind, PathScope};

/// Directories of fifty files each, all of which contain the needle.
fn create_directories(count: usize) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..count {
        let below = dir.path().join(format!("dir{number:03}"));
        std::fs::create_dir(&below).unwrap();
        for file in 0..50 {
            std::fs::write(below.join(format!("file{file:02}.txt")), "a needle\nand more\n").unwrap();
        }
    }
    dir
}

/// The tree of a directory that is granted for reading.
fn granted_tree(directory: &Path, hidden: Option<HiddenFileFilter>) -> SearchTree {
    let real = AbsPath::new(directory.canonicalize().unwrap()).unwrap();
    let grant = PathGrant::new(real.clone(), real.clone(), PathScope::Tree, GrantedAccess::Read);
    let mut files = GrantedFiles::new(vec![grant], vec![real.clone()]);
    if let Some(hidden) = hidden {
        files = files.with_hidden(hidden);
    }
    files.search_tree(&real, PathScope::Tree).unwrap()
}

fn search_needles(
    tree: &SearchTree,
    output: &ContentOutputKind,
    limit: ResultLimit,
    stop: &SearchStopFlag,
) -> Result<ContentSearchResult, SearchProblem> {
    let pattern = SearchPattern::new("needle", CaseSensitivity::Sensitive, LineMode::Single).unwrap();
    let selector = FileSelector::new(&FileSelection::default()).unwrap();
    search_content(tree, &selector, &pattern, output, limit, stop)
}

const NO_LIMIT: ResultLimit = ResultLimit { units: usize::MAX, bytes: usize::MAX };

/// A filter that counts the files that a search checks, and calls `then` at one of them.
fn counting_filter(
    at: usize,
    then: impl Fn() + Send + Sync + 'static,
) -> (HiddenFileFilter, Arc<AtomicUsize>) {
    let checked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&checked);
    let hidden = HiddenFileFilter::new(move |path| {
        if path.as_path().extension().is_some() && counter.fetch_add(1, Ordering::SeqCst) + 1 == at {
            then();
        }
        false
    });
    (hidden, checked)
}

#[test]
fn a_search_with_a_limit_stops_early_and_always_finds_the_same_files() {
    let dir = create_directories(60);
    for _ in 0..20 {
        let (hidden, checked) = counting_filter(0, || {});
        let limit = ResultLimit { units: 70, bytes: usize::MAX };
        let result = search_needles(
            &granted_tree(dir.path(), Some(hidden)),
            &ContentOutputKind::Files,
            limit,
            &SearchStopFlag::default(),
        )
        .unwrap();
        let files: Vec<String> =
            result.files.iter().map(|(path, _)| String::from_utf8(path.clone()).unwrap()).collect();
        let expected: Vec<String> =
            (0..70).map(|number| format!("dir{:03}/file{:02}.txt", number / 50, number % 50)).collect();
        assert_eq!(files, expected);
        assert!(!result.complete);
        assert!(checked.load(Ordering::SeqCst) < 500, "{checked:?} of 3000 files were checked");
    }
}

#[test]
fn every_thread_stops_before_its_next_file() {
    let dir = create_directories(60);
    let stop = SearchStopFlag::default();
    let stopper = stop.clone();
    let (hidden, checked) = counting_filter(200, move || stopper.stop());
    let tree = granted_tree(dir.path(), Some(hidden));
    assert_eq!(
        search_needles(&tree, &ContentOutputKind::Files, NO_LIMIT, &stop).unwrap_err(),
        SearchProblem::Stopped
    );
    assert!(checked.load(Ordering::SeqCst) <= 200 + 12, "{checked:?}");
}

#[test]
fn hidden_files_are_counted_and_not_found() {
    let dir = create_directories(4);
    let hidden = || {
        HiddenFileFilter::new(|path: &AbsPath| {
            let text = path.to_string();
            text.ends_with("file07.txt") || text.ends_with("dir002")
        })
    };
    let tree = granted_tree(dir.path(), Some(hidden()));
    let result =
        search_needles(&tree, &ContentOutputKind::Files, NO_LIMIT, &SearchStopFlag::default()).unwrap();
    assert_eq!(result.files.len(), 3 * 49);
    assert_eq!((result.skipped.withheld_files, result.skipped.withheld_directories), (3, 1));

    // With a limit, hidden files after the last result are not counted, however far the threads had got.
    for _ in 0..10 {
        let limit = ResultLimit { units: 60, bytes: usize::MAX };
        let result =
            search_needles(&tree, &ContentOutputKind::Files, limit, &SearchStopFlag::default()).unwrap();
        assert_eq!((result.skipped.withheld_files, result.skipped.withheld_directories), (2, 0));
    }

    let pattern = PathGlob::new("**/file0[67].txt", BareGlobScope::Here).unwrap();
    let selector = FileSelector::new(&FileSelection::default()).unwrap();
    let names =
        find_names(&tree, &selector, &pattern, NameOrder::Newest { limit: 9 }, &SearchStopFlag::default())
            .unwrap();
    assert_eq!(
        (names.total, names.skipped.withheld_files),
        (Some(3), 3),
        "a hidden file is counted only if its name matches"
    );

    let options = ListOptions { depth: 2, dotted: false, ignored: false, offset: 0, limit: 1000 };
    let list = list_tree(&tree, options, &SearchStopFlag::default()).unwrap();
    assert_eq!((list.total, list.withheld), (3 + 3 * 49, 4));

    let real = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
    let grant = PathGrant::new(real.clone(), real.clone(), PathScope::Tree, GrantedAccess::Read);
    let files = GrantedFiles::new(vec![grant], vec![real.clone()]).with_hidden(hidden());
    assert_eq!(files.list(&real).unwrap().len(), 3);
    assert_eq!(files.sibling_names(&real.join("dir001/none")).len(), 49);
    assert_eq!(files.open(&real.join("dir001/file07.txt")).unwrap_err(), FileProblem::NotGranted);
}

/// Several threads read the sizes in a large directory, in parts if directories are between the files.
#[test]
fn each_file_is_listed_with_its_own_size() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..900 {
        std::fs::write(dir.path().join(format!("f{number:03}")), "x".repeat(number)).unwrap();
    }
    for number in [100, 700] {
        let below = dir.path().join(format!("f{number}d"));
        std::fs::create_dir(&below).unwrap();
        std::fs::write(below.join("1"), "x").unwrap();
    }
    let tree = granted_tree(dir.path(), None);
    for (offset, limit) in [(0, 2_000), (100, 450), (899, 2)] {
        let options = ListOptions { depth: 2, dotted: false, ignored: false, offset, limit };
        let list = list_tree(&tree, options, &SearchStopFlag::default()).unwrap();
        assert_eq!((list.total, list.entries.len() as u64), (904, limit.min(904 - offset)));
        for entry in list.entries.iter().filter(|entry| entry.kind == EntryKind::File) {
            let name = std::str::from_utf8(&entry.name).unwrap();
            assert_eq!(entry.bytes, name.trim_start_matches('f').parse::<u64>().unwrap(), "{name}");
        }
    }
}

#[test]
fn open_file_descriptors_do_not_grow_with_the_tree() {
    let dir = create_directories(200);
    let mut deep = dir.path().join("deep");
    for _ in 0..300 {
        std::fs::create_dir(&deep).unwrap();
        std::fs::write(deep.join("f.txt"), "needle").unwrap();
        deep.push("d");
    }
    let max_open = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&max_open);
    let hidden = HiddenFileFilter::new(move |_| {
        let open = std::fs::read_dir("/proc/self/fd").unwrap().count();
        seen.fetch_max(open, Ordering::SeqCst);
        false
    });
    let tree = granted_tree(dir.path(), Some(hidden));
    let result =
        search_needles(&tree, &ContentOutputKind::Files, NO_LIMIT, &SearchStopFlag::default()).unwrap();
    assert_eq!(result.files.len(), 200 * 50 + 300);
    assert_eq!(result.skipped, SkippedSummary::default());
    // Other tests of this process have files open as well; one descriptor per directory would be five hundred.
    assert!(max_open.load(Ordering::SeqCst) < 250, "{max_open:?}");
}

#[test]
fn a_directory_that_is_swapped_for_a_symlink_does_not_lead_outside() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret.txt"), "outside needle").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    std::fs::create_dir(top.join("kept")).unwrap();
    std::fs::write(top.join("kept/secret.txt"), "inside needle").unwrap();
    std::os::unix::fs::symlink(outside.path(), top.join("link")).unwrap();
    let finished = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !finished.load(Ordering::Relaxed) {
                // An atomic exchange: at every moment `kept` is either the directory or the symlink.
                let (a, b) = (top.join("kept"), top.join("link"));
                let _ = rustix::fs::renameat_with(
                    rustix::fs::CWD,
                    &a,
                    rustix::fs::CWD,
                    &b,
                    rustix::fs::RenameFlags::EXCHANGE,
                );
            }
        });
        let output = ContentOutputKind::Lines(LineOutputOptions::default());
        let mut inside = 0;
        for _ in 0..2_000 {
            let result =
                search_needles(&granted_tree(&top, None), &output, NO_LIMIT, &SearchStopFlag::default())
                    .unwrap();
            for (path, hits) in &result.files {
                assert_eq!(hits.lines[0].text, "inside needle", "{}", path.escape_ascii());
                inside += 1;
            }
        }
        finished.store(true, Ordering::Relaxed);
        assert!(inside > 0);
    });
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct SizedPiece(usize, usize);

impl collect::ResultSize for SizedPiece {
    fn units(&self) -> usize {
        self.0
    }

    fn bytes(&self) -> usize {
        self.1
    }
}

proptest! {
    #[test]
    fn the_first_results_up_to_the_limit_are_kept_in_whatever_order_they_come(
        pieces in prop::collection::btree_map(prop::collection::vec(any::<u8>(), 0..4), (1..4usize, 0..9usize), 0..40)
            .prop_flat_map(|pieces| {
                let pieces: Vec<_> = pieces.into_iter().collect();
                (Just(pieces.clone()), Just(pieces).prop_shuffle())
            }),
        units in 1..30usize,
        bytes in 1..60usize,
    ) {
        let (in_order, shuffled) = pieces;
        let limit = ResultLimit { units, bytes };
        let mut results = collect::OrderedResults::new(limit);
        for (key, (units, bytes)) in shuffled {
            collect::ResultCollector::add(&mut results, key.into(), SizedPiece(units, bytes));
        }
        let complete = results.is_complete();
        let kept: Vec<Vec<u8>> = results.into_results().into_keys().map(Vec::from).collect();
        let mut expected = Vec::new();
        let (mut sum_units, mut sum_bytes) = (0, 0);
        for (key, (more_units, more_bytes)) in &in_order {
            if sum_units >= units || sum_bytes >= bytes {
                break;
            }
            expected.push(key.clone());
            sum_units += more_units;
            sum_bytes += more_bytes;
        }
        prop_assert_eq!(complete, sum_units < units && sum_bytes < bytes);
        prop_assert_eq!(kept, expected);
    }
}
