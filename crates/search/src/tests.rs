//! What only the engine can show: how far a search goes, what it holds, and that it stays inside.

use super::*;
use proptest::prelude::*;
use std::path::Path;
use std::sync::atomic::AtomicUsize;
use tempfile::TempDir;
use toolgate_files::HiddenFileFilter;
use toolgate_files::{GrantedFiles, PathGrant};
use toolgate_proto::AbsPath;
use toolgate_proto::{EntryKind, PathScope};

/// Directories of fifty files each, all of which hold the needle.
fn forest(directories: usize) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..directories {
        let below = dir.path().join(format!("dir{number:03}"));
        std::fs::create_dir(&below).unwrap();
        for file in 0..50 {
            std::fs::write(below.join(format!("file{file:02}.txt")), "a needle\nand more\n").unwrap();
        }
    }
    dir
}

fn granted(at: &Path, hidden: Option<HiddenFileFilter>) -> SearchTree {
    let real = AbsPath::new(at.canonicalize().unwrap()).unwrap();
    let reach = PathGrant {
        asked: real.clone(),
        real: real.clone(),
        scope: PathScope::Tree,
        access: toolgate_files::GrantedAccess::Read,
    };
    let mut files = GrantedFiles::new(vec![reach], vec![real.clone()]);
    if let Some(hidden) = hidden {
        files = files.with_hidden(hidden);
    }
    files.search_tree(&real, PathScope::Tree).unwrap()
}

fn needles(
    tree: &SearchTree,
    show: &ContentOutputKind,
    need: ResultLimit,
    stop: &SearchStopFlag,
) -> Result<ContentSearchResult, SearchProblem> {
    let pattern = SearchPattern::new("needle", CaseSensitivity::Sensitive, LineMode::Single).unwrap();
    let selector = FileSelector::new(&FileSelection::default()).unwrap();
    search_content(tree, &selector, &pattern, show, need, stop)
}

const ALL: ResultLimit = ResultLimit { units: usize::MAX, bytes: usize::MAX };

/// Counts how many files a search asks about, and does something at one of them.
fn counting(at: usize, then: impl Fn() + Send + Sync + 'static) -> (HiddenFileFilter, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&asked);
    let hidden = HiddenFileFilter::new(move |path| {
        if path.as_path().extension().is_some() && counter.fetch_add(1, Ordering::SeqCst) + 1 == at {
            then();
        }
        false
    });
    (hidden, asked)
}

#[test]
fn a_search_with_a_limit_stops_early_and_always_with_the_same_files() {
    let dir = forest(60);
    for _ in 0..20 {
        let (hidden, asked) = counting(0, || {});
        let need = ResultLimit { units: 70, bytes: usize::MAX };
        let answer = needles(
            &granted(dir.path(), Some(hidden)),
            &ContentOutputKind::Files,
            need,
            &SearchStopFlag::default(),
        )
        .unwrap();
        let files: Vec<String> =
            answer.files.iter().map(|(path, _)| String::from_utf8(path.clone()).unwrap()).collect();
        let expected: Vec<String> =
            (0..70).map(|number| format!("dir{:03}/file{:02}.txt", number / 50, number % 50)).collect();
        assert_eq!(files, expected);
        assert!(!answer.complete);
        assert!(asked.load(Ordering::SeqCst) < 500, "{asked:?} of 3000 files were looked at");
    }
}

#[test]
fn every_thread_stops_at_the_next_file() {
    let dir = forest(60);
    let stop = SearchStopFlag::default();
    let stopper = stop.clone();
    let (hidden, asked) = counting(200, move || stopper.stop());
    let tree = granted(dir.path(), Some(hidden));
    assert_eq!(needles(&tree, &ContentOutputKind::Files, ALL, &stop).unwrap_err(), SearchProblem::Stopped);
    assert!(asked.load(Ordering::SeqCst) <= 200 + 12, "{asked:?}");
}

#[test]
fn what_policy_hides_is_counted_and_not_found() {
    let dir = forest(4);
    let hidden = || {
        HiddenFileFilter::new(|path: &AbsPath| {
            let text = path.to_string();
            text.ends_with("file07.txt") || text.ends_with("dir002")
        })
    };
    let tree = granted(dir.path(), Some(hidden()));
    let answer = needles(&tree, &ContentOutputKind::Files, ALL, &SearchStopFlag::default()).unwrap();
    assert_eq!(answer.files.len(), 3 * 49);
    assert_eq!((answer.skipped.withheld_files, answer.skipped.withheld_directories), (3, 1));

    // With a limit, what lies after the end of the answer does not count, however far threads had come.
    for _ in 0..10 {
        let need = ResultLimit { units: 60, bytes: usize::MAX };
        let answer = needles(&tree, &ContentOutputKind::Files, need, &SearchStopFlag::default()).unwrap();
        assert_eq!((answer.skipped.withheld_files, answer.skipped.withheld_directories), (2, 0));
    }

    let pattern = PathGlob::new("**/file0[67].txt", BareGlobScope::Here).unwrap();
    let selector = FileSelector::new(&FileSelection::default()).unwrap();
    let names =
        find_names(&tree, &selector, &pattern, NameOrder::Newest { limit: 9 }, &SearchStopFlag::default())
            .unwrap();
    assert_eq!(
        (names.total, names.skipped.withheld_files),
        (Some(3), 3),
        "a name that does not match is not told"
    );

    let options = ListOptions { depth: 2, dotted: false, ignored: false, offset: 0, limit: 1000 };
    let list = list_tree(&tree, options, &SearchStopFlag::default()).unwrap();
    assert_eq!((list.total, list.withheld), (3 + 3 * 49, 4));

    let real = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
    let reach = PathGrant {
        asked: real.clone(),
        real: real.clone(),
        scope: PathScope::Tree,
        access: toolgate_files::GrantedAccess::Read,
    };
    let files = GrantedFiles::new(vec![reach], vec![real.clone()]).with_hidden(hidden());
    assert_eq!(files.list(&real).unwrap().len(), 3);
    assert_eq!(files.sibling_names(&real.join("dir001/none")).len(), 49);
    assert_eq!(files.open(&real.join("dir001/file07.txt")).unwrap_err(), FileProblem::NotGranted);
}

/// Large directories are measured by several threads, and in pieces where directories lie between the files.
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
    let tree = granted(dir.path(), None);
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
fn descriptors_do_not_grow_with_the_tree() {
    let dir = forest(200);
    let mut deep = dir.path().join("deep");
    for _ in 0..300 {
        std::fs::create_dir(&deep).unwrap();
        std::fs::write(deep.join("f.txt"), "needle").unwrap();
        deep.push("d");
    }
    let most = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&most);
    let hidden = HiddenFileFilter::new(move |_| {
        let open = std::fs::read_dir("/proc/self/fd").unwrap().count();
        seen.fetch_max(open, Ordering::SeqCst);
        false
    });
    let tree = granted(dir.path(), Some(hidden));
    let answer = needles(&tree, &ContentOutputKind::Files, ALL, &SearchStopFlag::default()).unwrap();
    assert_eq!(answer.files.len(), 200 * 50 + 300);
    assert_eq!(answer.skipped, SkippedSummary::default());
    // Other tests of this process hold some as well; a handle for each directory would be five hundred.
    assert!(most.load(Ordering::SeqCst) < 250, "{most:?}");
}

#[test]
fn a_directory_swapped_for_a_link_does_not_lead_outside() {
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret.txt"), "outside needle").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    std::fs::create_dir(top.join("kept")).unwrap();
    std::fs::write(top.join("kept/secret.txt"), "inside needle").unwrap();
    std::os::unix::fs::symlink(outside.path(), top.join("link")).unwrap();
    let over = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                // One atomic exchange: at every moment `kept` is either the directory or the link.
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
        let show = ContentOutputKind::Lines(LineOutputOptions::default());
        let mut inside = 0;
        for _ in 0..2_000 {
            let answer = needles(&granted(&top, None), &show, ALL, &SearchStopFlag::default()).unwrap();
            for (path, hits) in &answer.files {
                assert_eq!(hits.lines[0].text, "inside needle", "{}", path.escape_ascii());
                inside += 1;
            }
        }
        over.store(true, Ordering::Relaxed);
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
    fn in_whatever_order_results_come_the_first_that_suffice_are_kept(
        pieces in prop::collection::btree_map(prop::collection::vec(any::<u8>(), 0..4), (1..4usize, 0..9usize), 0..40)
            .prop_flat_map(|pieces| {
                let pieces: Vec<_> = pieces.into_iter().collect();
                (Just(pieces.clone()), Just(pieces).prop_shuffle())
            }),
        units in 1..30usize,
        bytes in 1..60usize,
    ) {
        let (in_order, shuffled) = pieces;
        let need = ResultLimit { units, bytes };
        let mut held = collect::OrderedResults::new(need);
        for (key, (units, bytes)) in shuffled {
            collect::ResultCollector::add(&mut held, key.into(), SizedPiece(units, bytes));
        }
        let complete = held.is_complete();
        let held: Vec<Vec<u8>> = held.into_results().into_keys().map(Vec::from).collect();
        let mut expected = Vec::new();
        let (mut have_units, mut have_bytes) = (0, 0);
        for (key, (more_units, more_bytes)) in &in_order {
            if have_units >= units || have_bytes >= bytes {
                break;
            }
            expected.push(key.clone());
            have_units += more_units;
            have_bytes += more_bytes;
        }
        prop_assert_eq!(complete, have_units < units && have_bytes < bytes);
        prop_assert_eq!(held, expected);
    }
}
