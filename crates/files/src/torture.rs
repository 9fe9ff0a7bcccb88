//! Every system call of a change fails in turn, and the process dies before each of them.
//!
//! After that a file is wholly old or wholly new, agrees with what the caller was told, nothing temporary is left,
//! and the journal opens.

use super::faults::{FaultPlan, InjectedFault, with_fault_plan};
use super::{GrantedAccess, GrantedFiles, PathGrant};
use crate::{ConflictHandling, Journal, JournalLimits, UndoFilter, UndoSelector};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toolgate_proto::{AbsPath, PathScope, SessionId};

/// A fresh directory, in memory where there is such a place: it is the order of calls that is tried here, and thousands
/// of them would otherwise wait for a disk.
pub(crate) fn scratch() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// A directory of files and a journal, in a fresh place.
pub(crate) struct FaultTestFixture {
    pub(crate) top: AbsPath,
    pub(crate) journal: Arc<Journal>,
}

impl FaultTestFixture {
    pub(crate) fn open(top: &Path) -> Self {
        let top = AbsPath::new(top.canonicalize().unwrap()).unwrap();
        std::fs::create_dir_all(top.join("ws")).unwrap();
        let journal = Journal::open(&top.join("state"), JournalLimits::default()).unwrap();
        Self { top, journal: Arc::new(journal) }
    }

    pub(crate) fn path(&self, name: &str) -> AbsPath {
        self.top.join("ws").join(name)
    }

    pub(crate) fn hands(&self, call: &str) -> GrantedFiles {
        let ws = self.top.join("ws");
        let reach =
            PathGrant { asked: ws.clone(), real: ws, scope: PathScope::Tree, access: GrantedAccess::Write };
        let recorder = self.journal.recorder(call.into(), SessionId::new("s"));
        GrantedFiles::new(vec![reach], vec![]).with_recorder(Some(recorder))
    }

    /// One change as a tool would make it; `None` removes the file.
    pub(crate) fn change(&self, call: &str, name: &str, content: Option<&'static str>) -> Result<(), String> {
        let files = self.hands(call);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime
            .block_on(files.change_file(&self.path(name), move |held| {
                let before = held.read(1 << 20).map_err(|problem| problem.to_string())?;
                match (content, before) {
                    (Some(content), before) => held.put(before.as_ref(), content.as_bytes()),
                    (None, Some(before)) => held.delete(&before),
                    (None, None) => return Ok(()),
                }
                .map(drop)
                .map_err(|problem| problem.to_string())
            }))
            .map_err(|problem| problem.to_string())?
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.path(name)).ok()
    }
}

type ExpectedContents = [Option<&'static str>; 3];

struct FaultScenario {
    name: &'static str,
    prepare: fn(&FaultTestFixture),
    act: fn(&FaultTestFixture) -> Result<(), String>,
    before: ExpectedContents,
    after: ExpectedContents,
}

const NAMES: [&str; 3] = ["a", "deep/er/b", "c"];

fn three_changes(world: &FaultTestFixture) {
    std::fs::write(world.path("a"), "old a").unwrap();
    std::fs::write(world.path("c"), "old c").unwrap();
    world.change("one", "a", Some("new a")).unwrap();
    world.change("one", "deep/er/b", Some("new b")).unwrap();
    world.change("one", "c", None).unwrap();
}

const SCENARIOS: [FaultScenario; 5] = [
    FaultScenario {
        name: "create",
        prepare: |_| {},
        act: |world| world.change("one", "deep/er/b", Some("new b")),
        before: [None, None, None],
        after: [None, Some("new b"), None],
    },
    FaultScenario {
        name: "replace",
        prepare: |world| {
            std::fs::write(world.path("a"), "old a").unwrap();
            let path = world.path("a");
            rustix::fs::setxattr(path.as_path(), "user.kept", b"1", rustix::fs::XattrFlags::empty()).unwrap();
        },
        act: |world| world.change("one", "a", Some("new a")),
        before: [Some("old a"), None, None],
        after: [Some("new a"), None, None],
    },
    FaultScenario {
        name: "delete",
        prepare: |world| std::fs::write(world.path("c"), "old c").unwrap(),
        act: |world| world.change("one", "c", None),
        before: [None, None, Some("old c")],
        after: [None, None, None],
    },
    FaultScenario {
        name: "undo",
        prepare: three_changes,
        act: |world| {
            let moved =
                world.journal.undo(&UndoSelector::Last(UndoFilter::default()), ConflictHandling::Refuse);
            moved.map(drop).map_err(|problem| problem.to_string())
        },
        before: [Some("new a"), Some("new b"), None],
        after: [Some("old a"), None, Some("old c")],
    },
    FaultScenario {
        name: "redo",
        prepare: |world| {
            three_changes(world);
            world.journal.undo(&UndoSelector::Last(UndoFilter::default()), ConflictHandling::Refuse).unwrap();
        },
        act: |world| {
            let moved =
                world.journal.redo(&UndoSelector::Last(UndoFilter::default()), ConflictHandling::Refuse);
            moved.map(drop).map_err(|problem| problem.to_string())
        },
        before: [Some("old a"), None, Some("old c")],
        after: [Some("new a"), Some("new b"), None],
    },
];

fn litter(top: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(top).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name().to_string_lossy().starts_with(".toolgate-") {
            found.push(entry.path());
        }
        if entry.file_type().unwrap().is_dir() {
            found.extend(litter(&entry.path()));
        }
    }
    found
}

fn contents(world: &FaultTestFixture) -> [Option<String>; 3] {
    NAMES.map(|name| world.text(name))
}

fn count_points(scenario: &FaultScenario) -> Vec<&'static str> {
    let dir = scratch();
    let world = FaultTestFixture::open(dir.path());
    (scenario.prepare)(&world);
    let plan = FaultPlan::new(usize::MAX, InjectedFault::Nothing);
    with_fault_plan(&plan, || (scenario.act)(&world)).unwrap();
    assert_eq!(contents(&world), scenario.after.map(|text| text.map(str::to_owned)), "{}", scenario.name);
    plan.calls()
}

#[test]
fn each_failing_call_leaves_the_old_or_the_new_and_no_litter() {
    use rustix::io::Errno;
    let faults = [Errno::NOSPC, Errno::IO, Errno::ACCESS, Errno::INTR]
        .map(|errno| InjectedFault::Errno(errno.raw_os_error()))
        .into_iter()
        .chain([InjectedFault::ShortWrite]);
    let faults: Vec<InjectedFault> = faults.collect();
    let mut total = 0;
    for scenario in &SCENARIOS {
        let calls = count_points(scenario);
        println!("{}: {} fault points: {}", scenario.name, calls.len(), calls.join(" "));
        for (at, call) in calls.iter().enumerate() {
            for fault in &faults {
                total += 1;
                check_fault(scenario, at, call, *fault);
            }
        }
    }
    println!("{total} faults");
}

fn check_fault(scenario: &FaultScenario, at: usize, call: &str, fault: InjectedFault) {
    let told = format!("{}: {fault:?} at {at} ({call})", scenario.name);
    let dir = scratch();
    let world = FaultTestFixture::open(dir.path());
    (scenario.prepare)(&world);
    let result = with_fault_plan(&FaultPlan::new(at, fault), || (scenario.act)(&world));
    let expected = if result.is_ok() { scenario.after } else { scenario.before };
    assert_eq!(contents(&world), expected.map(|text| text.map(str::to_owned)), "{told}: {result:?}");
    assert_eq!(litter(world.top.as_path()), Vec::<PathBuf>::new(), "{told}");
    if scenario.name == "create" && result.is_err() {
        assert!(!world.path("deep").as_path().exists(), "{told}: directories made for nothing stay");
    }
    if matches!(fault, InjectedFault::ShortWrite | InjectedFault::Errno(4)) {
        assert_eq!(result, Ok(()), "{told}: an interruption is no failure");
    }
    // The journal opens, and what it says agrees with the files: undo brings the old content back, or there is none.
    drop(world.journal);
    let journal = Journal::open(&world.top.join("state"), JournalLimits::default()).unwrap();
    let done = journal.list().unwrap().iter().any(|change| change.state == crate::ChangeState::Done);
    let anything = match scenario.name {
        "undo" => expected == scenario.before,
        _ => expected == scenario.after,
    };
    assert_eq!(done, anything, "{told}: {:?}", journal.list().unwrap());
}

#[test]
fn a_kill_before_each_call_leaves_the_old_or_the_new_and_no_litter() {
    let mut total = 0;
    for (index, scenario) in SCENARIOS.iter().enumerate() {
        for at in 0.. {
            let dir = scratch();
            (scenario.prepare)(&FaultTestFixture::open(dir.path()));
            let status = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "files::torture::dies_when_told_to", "--nocapture"])
                .env("TORTURE", format!("{index} {at} {}", dir.path().display()))
                .stdout(std::process::Stdio::null())
                .status()
                .unwrap();
            if status.success() {
                // It has no such point any more: every one has had its turn.
                assert!(at > 20, "{}: the child outlived its kill at {at}", scenario.name);
                break;
            }
            total += 1;
            let world = FaultTestFixture::open(dir.path());
            let now = contents(&world);
            for (file, name) in NAMES.iter().enumerate() {
                let either = [scenario.before[file], scenario.after[file]];
                assert!(
                    either.contains(&now[file].as_deref()),
                    "{} {at}: {name} is {:?}",
                    scenario.name,
                    now[file]
                );
            }
            assert_eq!(litter(world.top.as_path()), Vec::<PathBuf>::new(), "{} at {at}", scenario.name);
            finish_after_crash(scenario, &world, at);
        }
    }
    println!("{total} kills");
}

/// After a crash the same request can be made again, and then everything is new.
fn finish_after_crash(scenario: &FaultScenario, world: &FaultTestFixture, at: usize) {
    let again = (scenario.act)(world);
    let goal = scenario.after.map(|text| text.map(str::to_owned));
    assert!(contents(world) == goal, "{} at {at}: {again:?}, {:?}", scenario.name, contents(world));
}

/// The child of the test above; without its instructions it has nothing to do.
#[test]
fn dies_when_told_to() {
    let Ok(told) = std::env::var("TORTURE") else { return };
    let mut words = told.splitn(3, ' ');
    let scenario = &SCENARIOS[words.next().unwrap().parse::<usize>().unwrap()];
    let at = words.next().unwrap().parse().unwrap();
    let world = FaultTestFixture::open(Path::new(words.next().unwrap()));
    let _ = with_fault_plan(&FaultPlan::new(at, InjectedFault::Kill), || (scenario.act)(&world));
}
