//! Tests of the journal: what is undone, what is refused, what is evicted.

use super::*;
use crate::fault_tests::FaultTestFixture;
use std::sync::Arc;

fn new_fixture() -> (tempfile::TempDir, FaultTestFixture) {
    let dir = tempfile::tempdir().unwrap();
    let fixture = FaultTestFixture::open(dir.path());
    (dir, fixture)
}

#[test]
fn three_files_of_one_call_are_undone_and_redone_together() {
    let (_dir, fixture) = new_fixture();
    std::fs::write(fixture.path("a"), "a1").unwrap();
    std::fs::write(fixture.path("c"), "c1").unwrap();
    fixture.change("call", "a", Some("a2")).unwrap();
    fixture.change("call", "a", Some("a3")).unwrap();
    fixture.change("call", "new/b", Some("b1")).unwrap();
    fixture.change("call", "c", None).unwrap();
    let plan = fixture.journal.plan_undo(&UndoSelector::Last(UndoFilter::default())).unwrap();
    assert_eq!(plan.conflicts, []);
    assert_eq!(plan.restores.len(), 3);
    assert_eq!(plan.restores[0].now.as_deref(), Some(&b"a3"[..]));
    assert_eq!(plan.restores[0].then.as_deref(), Some(&b"a1"[..]));
    assert_eq!(fixture.text("a").unwrap(), "a3", "a plan changes no file");
    for _ in 0..3 {
        fixture.journal.undo(&UndoSelector::Call("call".into(), None), ConflictHandling::Refuse).unwrap();
        assert_eq!(
            [fixture.text("a"), fixture.text("new/b"), fixture.text("c")],
            [Some("a1".into()), None, Some("c1".into())]
        );
        fixture.journal.redo(&UndoSelector::Call("call".into(), None), ConflictHandling::Refuse).unwrap();
        assert_eq!(
            [fixture.text("a"), fixture.text("new/b"), fixture.text("c")],
            [Some("a3".into()), Some("b1".into()), None]
        );
    }
}

#[test]
fn steps_and_sessions_select_calls_from_the_newest() {
    let (_dir, fixture) = new_fixture();
    for (call, name) in [("1", "a"), ("2", "b"), ("3", "c")] {
        fixture.change(call, name, Some("x")).unwrap();
    }
    let exist = |fixture: &FaultTestFixture| ["a", "b", "c"].map(|name| fixture.text(name).is_some());
    fixture.journal.undo(&UndoSelector::Steps(2, UndoFilter::default()), ConflictHandling::Refuse).unwrap();
    assert_eq!(exist(&fixture), [true, false, false]);
    fixture.journal.redo(&UndoSelector::Last(UndoFilter::session("s")), ConflictHandling::Refuse).unwrap();
    assert_eq!(exist(&fixture), [true, true, false], "redo starts with what was undone last");
    fixture.journal.undo(&UndoSelector::Session("s".into()), ConflictHandling::Refuse).unwrap();
    assert_eq!(exist(&fixture), [false, false, false]);
    assert_eq!(
        fixture.journal.undo(&UndoSelector::Last(UndoFilter::default()), ConflictHandling::Refuse),
        Err(UndoProblem::NoChange)
    );
    assert_eq!(
        fixture.journal.undo(&UndoSelector::Session("other".into()), ConflictHandling::Refuse),
        Err(UndoProblem::NoChange)
    );
}

#[test]
fn redo_starts_with_what_was_undone_last_even_after_the_log_was_rewritten() {
    let (_dir, fixture) = new_fixture();
    for (call, name) in [("1", "a"), ("2", "b"), ("3", "c")] {
        fixture.change(call, name, Some("x")).unwrap();
    }
    fixture.journal.undo(&UndoSelector::Call("1".into(), None), ConflictHandling::Refuse).unwrap();
    fixture.journal.undo(&UndoSelector::Call("3".into(), None), ConflictHandling::Refuse).unwrap();
    fixture.journal.with_lock(|inner| inner.log.rewrite(fixture.journal.dir.as_fd(), &inner.index)).unwrap();
    let fixture = FaultTestFixture::open(fixture.top.as_path());
    fixture.journal.redo(&UndoSelector::Last(UndoFilter::default()), ConflictHandling::Refuse).unwrap();
    assert_eq!(["a", "b", "c"].map(|name| fixture.text(name).is_some()), [false, true, true]);
}

#[test]
fn the_last_call_is_selected_below_the_roots_and_undone_as_a_whole() {
    let (_dir, fixture) = new_fixture();
    fixture.change("1", "here/a", Some("x")).unwrap();
    fixture.change("1", "there/b", Some("x")).unwrap();
    fixture.change("2", "there/c", Some("x")).unwrap();
    let filter = UndoFilter { session: None, beneath: vec![fixture.path("here")] };
    let outcome =
        fixture.journal.undo(&UndoSelector::Last(filter.clone()), ConflictHandling::Refuse).unwrap();
    assert_eq!(outcome.calls, [("s".into(), "1".into())]);
    assert_eq!(
        ["here/a", "there/b", "there/c"].map(|name| fixture.text(name).is_some()),
        [false, false, true]
    );
    assert_eq!(
        fixture.journal.undo(&UndoSelector::Last(filter), ConflictHandling::Refuse),
        Err(UndoProblem::NoChange)
    );
}

#[test]
fn foreign_content_is_overwritten_only_if_forced_and_can_be_undone() {
    let (_dir, fixture) = new_fixture();
    std::fs::write(fixture.path("a"), "old").unwrap();
    std::fs::write(fixture.path("b"), "old").unwrap();
    fixture.change("call", "a", Some("new")).unwrap();
    fixture.change("call", "b", Some("new")).unwrap();
    std::fs::write(fixture.path("b"), "by the user").unwrap();
    let Err(UndoProblem::Conflicts(conflicts)) =
        fixture.journal.undo(&UndoSelector::Last(UndoFilter::default()), ConflictHandling::Refuse)
    else {
        panic!("a conflict was expected")
    };
    assert_eq!(conflicts[0].reason, "has been modified since by another program or call");
    assert_eq!(fixture.text("a").unwrap(), "new", "all or none");
    fixture.journal.undo(&UndoSelector::Last(UndoFilter::default()), ConflictHandling::Overwrite).unwrap();
    assert_eq!([fixture.text("a").unwrap(), fixture.text("b").unwrap()], ["old", "old"]);
    fixture.journal.undo(&UndoSelector::Last(UndoFilter::default()), ConflictHandling::Refuse).unwrap();
    assert_eq!(fixture.text("b").unwrap(), "by the user");
}

#[test]
fn an_earlier_call_is_not_undone_below_a_later_one() {
    let (_dir, fixture) = new_fixture();
    fixture.change("1", "a", Some("one")).unwrap();
    fixture.change("2", "a", Some("two")).unwrap();
    assert!(matches!(
        fixture.journal.undo(&UndoSelector::Call("1".into(), None), ConflictHandling::Refuse),
        Err(UndoProblem::Conflicts(_))
    ));
    fixture.journal.undo(&UndoSelector::Steps(2, UndoFilter::default()), ConflictHandling::Refuse).unwrap();
    assert_eq!(fixture.text("a"), None);
}

#[test]
fn the_oldest_changes_are_evicted_above_the_size_limit() {
    let dir = tempfile::tempdir().unwrap();
    let mut fixture = FaultTestFixture::open(dir.path());
    let limits = JournalLimits { total_bytes: 20_000, file_bytes: 20_000, changes: 100 };
    fixture.journal = Arc::new(Journal::open(&fixture.top.join("small"), limits).unwrap());
    for round in 0..20_u32 {
        // Content that does not compress: one hash after the other.
        let noise: Vec<u8> = (0..200)
            .flat_map(|n| ContentHash::of(&[round as u8, n]).to_string().into_bytes().into_iter().take(32))
            .collect();
        std::fs::write(fixture.path("a"), noise).unwrap();
        fixture.change(&round.to_string(), "a", Some("new")).unwrap();
    }
    let remaining = fixture.journal.list().unwrap();
    assert!(remaining.len() < 8 && !remaining.is_empty(), "{} changes are remaining", remaining.len());
    assert!(fixture.journal.lock_state().blobs.total_bytes() <= 20_000);
    assert_eq!(remaining[0].call.as_str(), "19");
    // Another process sees the same, and the newest change can still be undone.
    let again = Journal::open(&fixture.top.join("small"), limits).unwrap();
    assert_eq!(again.list().unwrap(), remaining);
    again.undo(&UndoSelector::Last(UndoFilter::default()), ConflictHandling::Refuse).unwrap();
    assert_eq!(std::fs::read(fixture.path("a")).unwrap().len(), 6400);

    std::fs::write(fixture.path("big"), "x".repeat(30_000)).unwrap();
    fixture.change("big", "big", Some("new")).unwrap();
    let Err(UndoProblem::Conflicts(conflicts)) =
        fixture.journal.undo(&UndoSelector::Last(UndoFilter::default()), ConflictHandling::Overwrite)
    else {
        panic!("a conflict was expected")
    };
    assert_eq!(conflicts[0].reason, "cannot be restored: its content is not stored in the journal");
}

#[test]
fn the_oldest_changes_are_evicted_above_the_count_limit() {
    let dir = tempfile::tempdir().unwrap();
    let mut fixture = FaultTestFixture::open(dir.path());
    let limits = JournalLimits { changes: 10, ..JournalLimits::default() };
    fixture.journal = Arc::new(Journal::open(&fixture.top.join("few"), limits).unwrap());
    for round in 0..15 {
        fixture.change(&round.to_string(), "a", Some(["one", "two"][round % 2])).unwrap();
    }
    let remaining = fixture.journal.list().unwrap();
    assert!((8..=10).contains(&remaining.len()) && remaining[0].call.as_str() == "14", "{remaining:?}");
    // Content that an evicted change and a remaining one share is still stored.
    fixture.journal.undo(&UndoSelector::Steps(5, UndoFilter::default()), ConflictHandling::Refuse).unwrap();
    assert_eq!(fixture.text("a").unwrap(), "two");
}

/// The default limits. What happens at a limit is shown by the two tests above, with small ones.
#[test]
fn the_journal_keeps_512_mb_20_000_changes_and_files_of_64_mb() {
    let limits = JournalLimits::default();
    assert_eq!(
        (limits.total_bytes, limits.changes, limits.file_bytes),
        (512 * 1024 * 1024, 20_000, 64 * 1024 * 1024)
    );
}

#[test]
fn two_processes_share_one_journal() {
    let (_dir, fixture) = new_fixture();
    let other = FaultTestFixture {
        top: fixture.top.clone(),
        journal: Arc::new(Journal::open(&fixture.top.join("state"), JournalLimits::default()).unwrap()),
    };
    fixture.change("1", "a", Some("one")).unwrap();
    other.change("2", "a", Some("two")).unwrap();
    fixture.change("3", "a", Some("three")).unwrap();
    let ids: Vec<u64> = other.journal.list().unwrap().iter().map(|change| change.id).collect();
    assert_eq!(ids, [3, 2, 1]);
    other.journal.undo(&UndoSelector::Steps(2, UndoFilter::default()), ConflictHandling::Refuse).unwrap();
    assert_eq!(fixture.text("a").unwrap(), "one");
    assert_eq!(fixture.journal.list().unwrap(), other.journal.list().unwrap());
}

#[test]
fn large_content_is_stored_raw_then_compressed_and_restored_from_either() {
    let (_dir, fixture) = new_fixture();
    // Keeps the background thread from compressing; only the test does.
    fixture.journal.compressing.store(true, Ordering::SeqCst);
    let big = "some line of a file.....\n\n".repeat(1 << 15).repeat(2).get(..1 << 20).unwrap().to_owned();
    let blobs = fixture.top.join("state/journal/blobs");
    let is_raw = || blobs.join(format!("{}.raw", ContentHash::of(big.as_bytes()))).as_path().exists();
    for compressed in [false, true] {
        std::fs::write(fixture.path("big"), &big).unwrap();
        fixture.change("call", "big", Some("small")).unwrap();
        if compressed {
            fixture.journal.compress_raw_blobs().unwrap();
            assert!(fixture.journal.lock_state().blobs.total_bytes() < big.len() as u64 / 10);
        }
        assert_eq!(is_raw(), !compressed);
        // A journal that is opened now knows the blob in its present encoding; `fixture` may know it in the other.
        let other = Journal::open(&fixture.top.join("state"), JournalLimits::default()).unwrap();
        other.undo(&UndoSelector::Last(UndoFilter::default()), ConflictHandling::Refuse).unwrap();
        assert_eq!(fixture.text("big").unwrap(), big);
    }
}

#[test]
fn a_truncated_line_or_corrupted_blob_is_detected_and_affects_nothing_else() {
    let (_dir, fixture) = new_fixture();
    std::fs::write(fixture.path("a"), "old a").unwrap();
    fixture.change("1", "a", Some("new a")).unwrap();
    let lines = fixture.top.join("state/journal/changes.jsonl");
    let mut text = std::fs::read_to_string(&lines).unwrap();
    text.push_str("{\"op\":\"beg");
    std::fs::write(&lines, text).unwrap();
    let again = FaultTestFixture::open(fixture.top.as_path());
    again.change("2", "b", Some("new b")).unwrap();
    assert_eq!(again.journal.list().unwrap().len(), 2);
    let blob = fixture.top.join("state/journal/blobs").join(ContentHash::of(b"old a").to_string());
    std::fs::write(blob, zstd::bulk::compress(b"evil!", 1).unwrap()).unwrap();
    let Err(UndoProblem::Conflicts(conflicts)) =
        again.journal.undo(&UndoSelector::Call("1".into(), None), ConflictHandling::Overwrite)
    else {
        panic!("a conflict was expected")
    };
    assert_eq!(conflicts[0].reason, "cannot be restored: its content in the journal is corrupted");
}

#[test]
fn an_interrupted_change_is_settled_before_the_first_change_of_a_lazily_opened_journal() {
    let (_dir, fixture) = new_fixture();
    std::fs::write(fixture.path("a"), "old a").unwrap();
    fixture.change("1", "a", Some("new a")).unwrap();
    let log = fixture.top.join("state/journal/changes.jsonl");
    // As after a crash between the change and the line that ends it.
    let text = std::fs::read_to_string(&log).unwrap();
    let ended = text.trim_end().rfind('\n').unwrap();
    std::fs::write(&log, text.get(..=ended).unwrap()).unwrap();
    let journal = Journal::open_lazily(&fixture.top.join("state"), JournalLimits::default()).unwrap();
    let again = FaultTestFixture { top: fixture.top.clone(), journal: Arc::new(journal) };
    again.change("2", "a", Some("newer a")).unwrap();
    let states: Vec<ChangeState> = again.journal.list().unwrap().iter().map(|change| change.state).collect();
    assert_eq!(states, [ChangeState::Done, ChangeState::Done]);
}

/// The state of each change, oldest first.
fn states(fixture: &FaultTestFixture) -> Vec<(String, ChangeState)> {
    let changes = fixture.journal.list().unwrap();
    let name = |call: &CallId| call.as_str().get(..5).unwrap_or(call.as_str()).to_owned();
    changes.iter().rev().map(|change| (name(&change.call), change.state)).collect()
}

/// `undo` and `redo` of the last call.
fn undo_last(fixture: &FaultTestFixture, how: ConflictHandling) -> Result<UndoOutcome, UndoProblem> {
    fixture.journal.undo(&UndoSelector::Last(UndoFilter::default()), how)
}

#[test]
fn undoing_a_forced_undo_makes_the_call_done_again() {
    use ChangeState::{Done, Undone};
    let (_dir, fixture) = new_fixture();
    std::fs::write(fixture.path("a"), "one").unwrap();
    std::fs::write(fixture.path("b"), "one").unwrap();
    fixture.change("first", "a", Some("two")).unwrap();
    fixture.change("first", "b", Some("two")).unwrap();
    std::fs::write(fixture.path("a"), "two, user").unwrap();
    let texts = |fixture: &FaultTestFixture| ["a", "b"].map(|name| fixture.text(name).unwrap());
    let expect = |fixture: &FaultTestFixture, wanted: &[(&str, ChangeState)]| {
        let wanted: Vec<(String, ChangeState)> =
            wanted.iter().map(|(call, state)| ((*call).to_owned(), *state)).collect();
        assert_eq!(states(fixture), wanted);
    };
    for rewritten in [false, true] {
        undo_last(&fixture, ConflictHandling::Overwrite).unwrap();
        assert_eq!(texts(&fixture), ["one", "one"]);
        let undone = [("first", Undone), ("first", Undone), ("undo_", Done), ("undo_", Done)];
        let before = if rewritten { &[("undo_", Undone), ("undo_", Undone)][..] } else { &[] };
        expect(&fixture, &[&undone[..2], before, &undone[2..]].concat());
        // The whole run is taken back, also in the file that had the content of the call.
        undo_last(&fixture, ConflictHandling::Refuse).unwrap();
        assert_eq!(texts(&fixture), ["two, user", "two"]);
        let done = [("first", Done), ("first", Done), ("undo_", Undone), ("undo_", Undone)];
        expect(&fixture, &[&done[..2], before, &done[2..]].concat());
        assert!(matches!(undo_last(&fixture, ConflictHandling::Refuse), Err(UndoProblem::Conflicts(_))));
        if !rewritten {
            // Redoing the undo undoes the call, and all of it survives a rewritten log.
            fixture
                .journal
                .redo(&UndoSelector::Last(UndoFilter::default()), ConflictHandling::Refuse)
                .unwrap();
            expect(&fixture, &undone);
            undo_last(&fixture, ConflictHandling::Refuse).unwrap();
            expect(&fixture, &done);
            let rewrite =
                |inner: &mut JournalState| inner.log.rewrite(fixture.journal.dir.as_fd(), &inner.index);
            fixture.journal.with_lock(rewrite).unwrap();
            let again = FaultTestFixture::open(fixture.top.as_path());
            assert_eq!(again.journal.list().unwrap(), fixture.journal.list().unwrap());
        }
    }
}

#[test]
fn forced_runs_above_each_other_are_taken_back_one_by_one() {
    use ChangeState::{Done, Undone};
    let (_dir, fixture) = new_fixture();
    std::fs::write(fixture.path("a"), "one").unwrap();
    fixture.change("first", "a", Some("two")).unwrap();
    std::fs::write(fixture.path("a"), "user").unwrap();
    undo_last(&fixture, ConflictHandling::Overwrite).unwrap();
    std::fs::write(fixture.path("a"), "user again").unwrap();
    let state = |at: usize| states(&fixture)[at].1;
    // The undo of the undo overwrites as well, and has a change of its own.
    undo_last(&fixture, ConflictHandling::Overwrite).unwrap();
    assert_eq!(
        (fixture.text("a").unwrap().as_str(), state(0), state(1), state(2)),
        ("user", Done, Undone, Done)
    );
    undo_last(&fixture, ConflictHandling::Refuse).unwrap();
    assert_eq!(
        (fixture.text("a").unwrap().as_str(), state(0), state(1), state(2)),
        ("user again", Undone, Done, Undone)
    );
}

#[test]
fn undo_starts_with_what_took_effect_last_also_after_a_redo() {
    let (_dir, fixture) = new_fixture();
    std::fs::write(fixture.path("a"), "one").unwrap();
    fixture.change("first", "a", Some("two")).unwrap();
    undo_last(&fixture, ConflictHandling::Refuse).unwrap();
    std::fs::write(fixture.path("a"), "user").unwrap();
    let redo = |how| fixture.journal.redo(&UndoSelector::Last(UndoFilter::default()), how);
    redo(ConflictHandling::Overwrite).unwrap();
    assert_eq!(fixture.text("a").unwrap(), "two");
    // First what the redo overwrote, as its message says.
    undo_last(&fixture, ConflictHandling::Refuse).unwrap();
    assert_eq!(fixture.text("a").unwrap(), "user");
    assert_eq!(states(&fixture)[0].1, ChangeState::Undone);
    redo(ConflictHandling::Refuse).unwrap();
    assert_eq!((fixture.text("a").unwrap().as_str(), states(&fixture)[0].1), ("two", ChangeState::Done));

    // An older call that is redone behind a newer one is the last change of the file.
    fixture.change("1", "b", Some("x")).unwrap();
    std::fs::write(fixture.path("c"), "old").unwrap();
    fixture.change("2", "c", Some("new")).unwrap();
    for run in [Journal::undo, Journal::redo] {
        run(&fixture.journal, &UndoSelector::Call("1".into(), None), ConflictHandling::Refuse).unwrap();
    }
    let outcome = undo_last(&fixture, ConflictHandling::Refuse).unwrap();
    assert_eq!(outcome.calls, [("s".into(), "1".into())]);
}

#[test]
fn content_that_another_change_stored_is_found() {
    let (_dir, fixture) = new_fixture();
    fixture.change("1", "a", Some("one")).unwrap();
    fixture.change("2", "a", Some("two")).unwrap();
    std::fs::write(fixture.path("a"), "user").unwrap();
    let changes = fixture.journal.list().unwrap();
    let after = |at: usize| fixture.journal.changed_content(&changes[at], changes[at].after);
    assert_eq!(after(1).unwrap().unwrap(), b"one");
    assert_eq!(
        after(0).unwrap_err().to_string(),
        "its content is not stored in the journal",
        "no journal has what only the file had"
    );
}

#[test]
fn a_forced_run_that_fails_leaves_no_change_behind() {
    let (_dir, fixture) = new_fixture();
    for name in ["a", "dir/b"] {
        fixture.change("first", name, Some("new")).unwrap();
    }
    std::fs::write(fixture.path("a"), "user").unwrap();
    let plan = fixture.journal.plan_undo(&UndoSelector::Last(UndoFilter::default())).unwrap();
    // The second file is changed between the plan and its execution.
    std::fs::write(fixture.path("dir/b"), "changed").unwrap();
    assert!(matches!(
        fixture.journal.apply_plan(plan, ConflictHandling::Overwrite),
        Err(UndoProblem::Failed { .. })
    ));
    assert_eq!(fixture.text("a").unwrap(), "user");
    let states: Vec<ChangeState> = states(&fixture).into_iter().map(|(_, state)| state).collect();
    assert_eq!(states, [ChangeState::Done, ChangeState::Done, ChangeState::Failed, ChangeState::Failed]);
}
