//! Tests of the journal: what is undone, what is refused, what is forgotten.

use super::*;
use crate::torture::FaultTestFixture;

fn world() -> (tempfile::TempDir, FaultTestFixture) {
    let dir = tempfile::tempdir().unwrap();
    let world = FaultTestFixture::open(dir.path());
    (dir, world)
}

#[test]
fn three_files_of_one_call_come_back_together_and_go_again() {
    let (_dir, world) = world();
    std::fs::write(world.path("a"), "a1").unwrap();
    std::fs::write(world.path("c"), "c1").unwrap();
    world.change("call", "a", Some("a2")).unwrap();
    world.change("call", "a", Some("a3")).unwrap();
    world.change("call", "new/b", Some("b1")).unwrap();
    world.change("call", "c", None).unwrap();
    let plan = world.journal.plan_undo(&UndoSelector::Last(UndoFilter::default())).unwrap();
    assert_eq!(plan.conflicts, []);
    assert_eq!(plan.restores.len(), 3);
    assert_eq!(plan.restores[0].now.as_deref(), Some(&b"a3"[..]));
    assert_eq!(plan.restores[0].then.as_deref(), Some(&b"a1"[..]));
    assert_eq!(world.text("a").unwrap(), "a3", "a plan touches nothing");
    for _ in 0..3 {
        world.journal.undo(&UndoSelector::Call("call".into(), None), ConflictHandling::Refuse).unwrap();
        assert_eq!(
            [world.text("a"), world.text("new/b"), world.text("c")],
            [Some("a1".into()), None, Some("c1".into())]
        );
        world.journal.redo(&UndoSelector::Call("call".into(), None), ConflictHandling::Refuse).unwrap();
        assert_eq!(
            [world.text("a"), world.text("new/b"), world.text("c")],
            [Some("a3".into()), Some("b1".into()), None]
        );
    }
}

#[test]
fn steps_and_sessions_choose_calls_from_the_newest() {
    let (_dir, world) = world();
    for (call, name) in [("1", "a"), ("2", "b"), ("3", "c")] {
        world.change(call, name, Some("x")).unwrap();
    }
    let there = |world: &FaultTestFixture| ["a", "b", "c"].map(|name| world.text(name).is_some());
    world.journal.undo(&UndoSelector::Steps(2, UndoFilter::default()), ConflictHandling::Refuse).unwrap();
    assert_eq!(there(&world), [true, false, false]);
    world.journal.redo(&UndoSelector::Last(UndoFilter::session("s")), ConflictHandling::Refuse).unwrap();
    assert_eq!(there(&world), [true, true, false], "redo starts with what was undone last");
    world.journal.undo(&UndoSelector::Session("s".into()), ConflictHandling::Refuse).unwrap();
    assert_eq!(there(&world), [false, false, false]);
    assert_eq!(
        world.journal.undo(&UndoSelector::Last(UndoFilter::default()), ConflictHandling::Refuse),
        Err(UndoProblem::NoChange)
    );
    assert_eq!(
        world.journal.undo(&UndoSelector::Session("other".into()), ConflictHandling::Refuse),
        Err(UndoProblem::NoChange)
    );
}

#[test]
fn redo_begins_with_what_was_undone_last_also_after_the_journal_was_written_anew() {
    let (_dir, world) = world();
    for (call, name) in [("1", "a"), ("2", "b"), ("3", "c")] {
        world.change(call, name, Some("x")).unwrap();
    }
    world.journal.undo(&UndoSelector::Call("1".into(), None), ConflictHandling::Refuse).unwrap();
    world.journal.undo(&UndoSelector::Call("3".into(), None), ConflictHandling::Refuse).unwrap();
    world.journal.with_lock(|inner| inner.log.rewrite(world.journal.dir.as_fd(), &inner.index)).unwrap();
    let world = FaultTestFixture::open(world.top.as_path());
    world.journal.redo(&UndoSelector::Last(UndoFilter::default()), ConflictHandling::Refuse).unwrap();
    assert_eq!(["a", "b", "c"].map(|name| world.text(name).is_some()), [false, true, true]);
}

#[test]
fn the_last_call_is_looked_for_beneath_the_roots_and_moved_over_as_a_whole() {
    let (_dir, world) = world();
    world.change("1", "here/a", Some("x")).unwrap();
    world.change("1", "there/b", Some("x")).unwrap();
    world.change("2", "there/c", Some("x")).unwrap();
    let among = UndoFilter { session: None, beneath: vec![world.path("here")] };
    let moved = world.journal.undo(&UndoSelector::Last(among.clone()), ConflictHandling::Refuse).unwrap();
    assert_eq!(moved.calls, [("s".into(), "1".into())]);
    assert_eq!(["here/a", "there/b", "there/c"].map(|name| world.text(name).is_some()), [false, false, true]);
    assert_eq!(
        world.journal.undo(&UndoSelector::Last(among), ConflictHandling::Refuse),
        Err(UndoProblem::NoChange)
    );
}

#[test]
fn work_of_others_is_not_overwritten_unless_forced_and_then_can_be_had_back() {
    let (_dir, world) = world();
    std::fs::write(world.path("a"), "old").unwrap();
    std::fs::write(world.path("b"), "old").unwrap();
    world.change("call", "a", Some("new")).unwrap();
    world.change("call", "b", Some("new")).unwrap();
    std::fs::write(world.path("b"), "by a person").unwrap();
    let Err(UndoProblem::Conflicts(conflicts)) =
        world.journal.undo(&UndoSelector::Last(UndoFilter::default()), ConflictHandling::Refuse)
    else {
        panic!("a conflict was expected")
    };
    assert_eq!(conflicts[0].reason, "has been changed since by someone else");
    assert_eq!(world.text("a").unwrap(), "new", "all or none");
    world.journal.undo(&UndoSelector::Last(UndoFilter::default()), ConflictHandling::Overwrite).unwrap();
    assert_eq!([world.text("a").unwrap(), world.text("b").unwrap()], ["old", "old"]);
    world.journal.undo(&UndoSelector::Last(UndoFilter::default()), ConflictHandling::Refuse).unwrap();
    assert_eq!(world.text("b").unwrap(), "by a person");
}

#[test]
fn an_earlier_call_is_not_undone_from_under_a_later_one() {
    let (_dir, world) = world();
    world.change("1", "a", Some("one")).unwrap();
    world.change("2", "a", Some("two")).unwrap();
    assert!(matches!(
        world.journal.undo(&UndoSelector::Call("1".into(), None), ConflictHandling::Refuse),
        Err(UndoProblem::Conflicts(_))
    ));
    world.journal.undo(&UndoSelector::Steps(2, UndoFilter::default()), ConflictHandling::Refuse).unwrap();
    assert_eq!(world.text("a"), None);
}

#[test]
fn the_oldest_changes_are_forgotten_when_the_room_is_used_up() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = FaultTestFixture::open(dir.path());
    let limits = JournalLimits { total_bytes: 20_000, file_bytes: 20_000, changes: 100 };
    world.journal = Arc::new(Journal::open(&world.top.join("small"), limits).unwrap());
    for round in 0..20_u32 {
        // Content that does not compress: one hash after the other.
        let noise: Vec<u8> = (0..200)
            .flat_map(|n| ContentHash::of(&[round as u8, n]).to_string().into_bytes().into_iter().take(32))
            .collect();
        std::fs::write(world.path("a"), noise).unwrap();
        world.change(&round.to_string(), "a", Some("new")).unwrap();
    }
    let left = world.journal.list().unwrap();
    assert!(left.len() < 8 && !left.is_empty(), "{} changes are left", left.len());
    assert!(world.journal.lock_state().blobs.total_bytes() <= 20_000);
    assert_eq!(left[0].call.as_str(), "19");
    // Another opening sees the same, and the newest change can still be undone.
    let again = Journal::open(&world.top.join("small"), limits).unwrap();
    assert_eq!(again.list().unwrap(), left);
    again.undo(&UndoSelector::Last(UndoFilter::default()), ConflictHandling::Refuse).unwrap();
    assert_eq!(std::fs::read(world.path("a")).unwrap().len(), 6400);

    std::fs::write(world.path("big"), "x".repeat(30_000)).unwrap();
    world.change("big", "big", Some("new")).unwrap();
    let Err(UndoProblem::Conflicts(conflicts)) =
        world.journal.undo(&UndoSelector::Last(UndoFilter::default()), ConflictHandling::Overwrite)
    else {
        panic!("a conflict was expected")
    };
    assert_eq!(conflicts[0].reason, "cannot come back: its content was not kept");
}

#[test]
fn no_more_changes_are_remembered_than_there_may_be() {
    let dir = tempfile::tempdir().unwrap();
    let mut world = FaultTestFixture::open(dir.path());
    let limits = JournalLimits { changes: 10, ..JournalLimits::default() };
    world.journal = Arc::new(Journal::open(&world.top.join("few"), limits).unwrap());
    for round in 0..15 {
        let texts = ["one", "two"];
        world.change(&round.to_string(), "a", Some(texts[round % 2])).unwrap();
    }
    let left = world.journal.list().unwrap();
    assert!((8..=10).contains(&left.len()) && left[0].call.as_str() == "14", "{left:?}");
    // A content that a forgotten change and a remembered one share is still there.
    world.journal.undo(&UndoSelector::Steps(5, UndoFilter::default()), ConflictHandling::Refuse).unwrap();
    assert_eq!(world.text("a").unwrap(), "two");
}

#[test]
fn two_openings_share_one_journal() {
    let (_dir, world) = world();
    let other = FaultTestFixture {
        top: world.top.clone(),
        journal: Arc::new(Journal::open(&world.top.join("state"), JournalLimits::default()).unwrap()),
    };
    world.change("1", "a", Some("one")).unwrap();
    other.change("2", "a", Some("two")).unwrap();
    world.change("3", "a", Some("three")).unwrap();
    let ids: Vec<u64> = other.journal.list().unwrap().iter().map(|change| change.id).collect();
    assert_eq!(ids, [3, 2, 1]);
    other.journal.undo(&UndoSelector::Steps(2, UndoFilter::default()), ConflictHandling::Refuse).unwrap();
    assert_eq!(world.text("a").unwrap(), "one");
    assert_eq!(world.journal.list().unwrap(), other.journal.list().unwrap());
}

#[test]
fn large_content_is_stored_as_it_is_then_packed_and_comes_back_either_way() {
    let (_dir, world) = world();
    // Nobody packs but the test.
    world.journal.compressing.store(true, Ordering::SeqCst);
    let big = "some line of a file.....\n\n".repeat(1 << 15).repeat(2).get(..1 << 20).unwrap().to_owned();
    let blobs = world.top.join("state/journal/blobs");
    let raw = || blobs.join(format!("{}.raw", ContentHash::of(big.as_bytes()))).as_path().exists();
    for packed in [false, true] {
        std::fs::write(world.path("big"), &big).unwrap();
        world.change("call", "big", Some("small")).unwrap();
        if packed {
            world.journal.compress_raw_blobs().unwrap();
            assert!(world.journal.lock_state().blobs.total_bytes() < big.len() as u64 / 10);
        }
        assert_eq!(raw(), !packed);
        // Another process knows it in the other form.
        let other = Journal::open(&world.top.join("state"), JournalLimits::default()).unwrap();
        other.undo(&UndoSelector::Last(UndoFilter::default()), ConflictHandling::Refuse).unwrap();
        assert_eq!(world.text("big").unwrap(), big);
    }
}

#[test]
fn a_damaged_line_or_blob_is_noticed_and_harms_nothing_else() {
    let (_dir, world) = world();
    std::fs::write(world.path("a"), "old a").unwrap();
    world.change("1", "a", Some("new a")).unwrap();
    let lines = world.top.join("state/journal/changes.jsonl");
    let mut text = std::fs::read_to_string(&lines).unwrap();
    text.push_str("{\"op\":\"beg");
    std::fs::write(&lines, text).unwrap();
    let again = FaultTestFixture::open(world.top.as_path());
    again.change("2", "b", Some("new b")).unwrap();
    assert_eq!(again.journal.list().unwrap().len(), 2);
    let blob = world.top.join("state/journal/blobs").join(ContentHash::of(b"old a").to_string());
    std::fs::write(blob, zstd::bulk::compress(b"evil!", 1).unwrap()).unwrap();
    let Err(UndoProblem::Conflicts(conflicts)) =
        again.journal.undo(&UndoSelector::Call("1".into(), None), ConflictHandling::Overwrite)
    else {
        panic!("a conflict was expected")
    };
    assert_eq!(conflicts[0].reason, "cannot come back: its content in the journal is damaged");
}
