//! Fault injection: every system call of a change fails in turn, and the process is killed before each of them.
//!
//! Afterwards the file has either the old or the new content, as the result says; no temporary file is left; and the
//! journal opens.

use crate::faults::{FaultPlan, InjectedFault, with_fault_plan};
use crate::{ConflictHandling, Journal, JournalLimits, UndoFilter, UndoSelector};
use crate::{GrantedAccess, GrantedFiles, PathGrant};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toolgate_proto::{AbsPath, PathScope, SessionId};

/// The variable by which the parent test tells its child process what to do: scenario, call to be killed at, directory.
const CHILD_VARIABLE: &str = "TOOLGATE_TEST_KILL";

/// A new directory, in memory if possible: these tests check the order of system calls, and thousands of them would
/// otherwise wait for a disk.
pub(crate) fn new_directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// A directory with a workspace `ws` and the state of a journal.
pub(crate) struct FaultTestFixture {
    /// The directory that contains both.
    pub(crate) top: AbsPath,
    /// The journal in `top/state`.
    pub(crate) journal: Arc<Journal>,
}

impl FaultTestFixture {
    pub(crate) fn open(top: &Path) -> Self {
        let top = AbsPath::new(top.canonicalize().unwrap()).unwrap();
        std::fs::create_dir_all(top.join("ws")).unwrap();
        let journal = Journal::open(&top.join("state"), JournalLimits::default()).unwrap();
        Self { top, journal: Arc::new(journal) }
    }

    /// A path in the workspace.
    pub(crate) fn path(&self, name: &str) -> AbsPath {
        self.top.join("ws").join(name)
    }

    /// Write access to the workspace, recorded for this call.
    pub(crate) fn files(&self, call: &str) -> GrantedFiles {
        let ws = self.top.join("ws");
        let grant =
            PathGrant { asked: ws.clone(), real: ws, scope: PathScope::Tree, access: GrantedAccess::Write };
        let recorder = self.journal.recorder(call.into(), SessionId::new("s"));
        GrantedFiles::new(vec![grant], vec![]).with_recorder(Some(recorder))
    }

    /// Makes one change as a tool would; `None` deletes the file.
    pub(crate) fn change(&self, call: &str, name: &str, content: Option<&'static str>) -> Result<(), String> {
        let files = self.files(call);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime
            .block_on(files.change_file(&self.path(name), move |file| {
                let before = file.read(1 << 20).map_err(|problem| problem.to_string())?;
                match (content, before) {
                    (Some(content), before) => file.put(before.as_ref(), content.as_bytes()),
                    (None, Some(before)) => file.delete(&before),
                    (None, None) => return Ok(()),
                }
                .map(drop)
                .map_err(|problem| problem.to_string())
            }))
            .map_err(|problem| problem.to_string())?
    }

    /// The content of a file in the workspace; `None` if it does not exist.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.path(name)).ok()
    }
}

/// The content of each of [`NAMES`]; `None` if it does not exist.
type ExpectedContents = [Option<&'static str>; 3];

/// An operation that is tried with every fault.
struct FaultScenario {
    name: &'static str,
    /// Creates the files and the journal that the operation starts with.
    prepare: fn(&FaultTestFixture),
    /// The operation.
    act: fn(&FaultTestFixture) -> Result<(), String>,
    /// The files before it, and after it failed.
    before: ExpectedContents,
    /// The files after it succeeded.
    after: ExpectedContents,
}

/// The files of the scenarios.
const NAMES: [&str; 3] = ["a", "deep/er/b", "c"];

fn make_three_changes(fixture: &FaultTestFixture) {
    std::fs::write(fixture.path("a"), "old a").unwrap();
    std::fs::write(fixture.path("c"), "old c").unwrap();
    fixture.change("one", "a", Some("new a")).unwrap();
    fixture.change("one", "deep/er/b", Some("new b")).unwrap();
    fixture.change("one", "c", None).unwrap();
}

const SCENARIOS: [FaultScenario; 5] = [
    FaultScenario {
        name: "create",
        prepare: |_| {},
        act: |fixture| fixture.change("one", "deep/er/b", Some("new b")),
        before: [None, None, None],
        after: [None, Some("new b"), None],
    },
    FaultScenario {
        name: "replace",
        prepare: |fixture| {
            std::fs::write(fixture.path("a"), "old a").unwrap();
            let path = fixture.path("a");
            rustix::fs::setxattr(path.as_path(), "user.kept", b"1", rustix::fs::XattrFlags::empty()).unwrap();
        },
        act: |fixture| fixture.change("one", "a", Some("new a")),
        before: [Some("old a"), None, None],
        after: [Some("new a"), None, None],
    },
    FaultScenario {
        name: "delete",
        prepare: |fixture| std::fs::write(fixture.path("c"), "old c").unwrap(),
        act: |fixture| fixture.change("one", "c", None),
        before: [None, None, Some("old c")],
        after: [None, None, None],
    },
    FaultScenario {
        name: "undo",
        prepare: make_three_changes,
        act: |fixture| {
            let outcome =
                fixture.journal.undo(&UndoSelector::Last(UndoFilter::default()), ConflictHandling::Refuse);
            outcome.map(drop).map_err(|problem| problem.to_string())
        },
        before: [Some("new a"), Some("new b"), None],
        after: [Some("old a"), None, Some("old c")],
    },
    FaultScenario {
        name: "redo",
        prepare: |fixture| {
            make_three_changes(fixture);
            fixture
                .journal
                .undo(&UndoSelector::Last(UndoFilter::default()), ConflictHandling::Refuse)
                .unwrap();
        },
        act: |fixture| {
            let outcome =
                fixture.journal.redo(&UndoSelector::Last(UndoFilter::default()), ConflictHandling::Refuse);
            outcome.map(drop).map_err(|problem| problem.to_string())
        },
        before: [Some("old a"), None, Some("old c")],
        after: [Some("new a"), Some("new b"), None],
    },
];

/// The temporary files below a directory.
fn temporary_files(top: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(top).unwrap() {
        let entry = entry.unwrap();
        if entry.file_name().to_string_lossy().starts_with(".toolgate-") {
            found.push(entry.path());
        }
        if entry.file_type().unwrap().is_dir() {
            found.extend(temporary_files(&entry.path()));
        }
    }
    found
}

fn contents(fixture: &FaultTestFixture) -> [Option<String>; 3] {
    NAMES.map(|name| fixture.text(name))
}

/// The system calls that a scenario makes, in order.
fn list_fault_points(scenario: &FaultScenario) -> Vec<&'static str> {
    let dir = new_directory();
    let fixture = FaultTestFixture::open(dir.path());
    (scenario.prepare)(&fixture);
    let plan = FaultPlan::new(usize::MAX, InjectedFault::Nothing);
    with_fault_plan(&plan, || (scenario.act)(&fixture)).unwrap();
    assert_eq!(contents(&fixture), scenario.after.map(|text| text.map(str::to_owned)), "{}", scenario.name);
    plan.calls()
}

#[test]
fn each_failing_call_leaves_the_old_or_the_new_content_and_no_temporary_file() {
    use rustix::io::Errno;
    let faults = [Errno::NOSPC, Errno::IO, Errno::ACCESS, Errno::INTR]
        .map(|errno| InjectedFault::Errno(errno.raw_os_error()))
        .into_iter()
        .chain([InjectedFault::ShortWrite]);
    let faults: Vec<InjectedFault> = faults.collect();
    let mut total = 0;
    for scenario in &SCENARIOS {
        let calls = list_fault_points(scenario);
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

/// Runs a scenario with one fault, and checks that the files agree with its result.
fn check_fault(scenario: &FaultScenario, at: usize, call: &str, fault: InjectedFault) {
    let case = format!("{}: {fault:?} at {at} ({call})", scenario.name);
    let dir = new_directory();
    let fixture = FaultTestFixture::open(dir.path());
    (scenario.prepare)(&fixture);
    let result = with_fault_plan(&FaultPlan::new(at, fault), || (scenario.act)(&fixture));
    let expected = if result.is_ok() { scenario.after } else { scenario.before };
    assert_eq!(contents(&fixture), expected.map(|text| text.map(str::to_owned)), "{case}: {result:?}");
    assert_eq!(temporary_files(fixture.top.as_path()), Vec::<PathBuf>::new(), "{case}");
    if scenario.name == "create" && result.is_err() {
        assert!(
            !fixture.path("deep").as_path().exists(),
            "{case}: directories that were created for it stay"
        );
    }
    if matches!(fault, InjectedFault::ShortWrite | InjectedFault::Errno(4)) {
        assert_eq!(result, Ok(()), "{case}: an interrupted or short system call is retried");
    }
    // The journal opens, and its states agree with the files.
    drop(fixture.journal);
    let journal = Journal::open(&fixture.top.join("state"), JournalLimits::default()).unwrap();
    let done = journal.list().unwrap().iter().any(|change| change.state == crate::ChangeState::Done);
    let is_changed = match scenario.name {
        "undo" => expected == scenario.before,
        _ => expected == scenario.after,
    };
    assert_eq!(done, is_changed, "{case}: {:?}", journal.list().unwrap());
}

#[test]
fn a_kill_before_each_call_leaves_the_old_or_the_new_content_and_no_temporary_file() {
    let mut total = 0;
    for (index, scenario) in SCENARIOS.iter().enumerate() {
        for at in 0.. {
            let dir = new_directory();
            (scenario.prepare)(&FaultTestFixture::open(dir.path()));
            let status = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "fault_tests::kill_child", "--nocapture"])
                .env(CHILD_VARIABLE, format!("{index} {at} {}", dir.path().display()))
                .stdout(std::process::Stdio::null())
                .status()
                .unwrap();
            if status.success() {
                // The scenario makes fewer system calls than that, so every one was tried.
                assert!(at > 20, "{}: the child survived its kill at {at}", scenario.name);
                break;
            }
            total += 1;
            let fixture = FaultTestFixture::open(dir.path());
            let now = contents(&fixture);
            for (file, name) in NAMES.iter().enumerate() {
                let either = [scenario.before[file], scenario.after[file]];
                assert!(
                    either.contains(&now[file].as_deref()),
                    "{} {at}: {name} is {:?}",
                    scenario.name,
                    now[file]
                );
            }
            assert_eq!(
                temporary_files(fixture.top.as_path()),
                Vec::<PathBuf>::new(),
                "{} at {at}",
                scenario.name
            );
            finish_after_crash(scenario, &fixture, at);
        }
    }
    println!("{total} kills");
}

/// After a crash the same operation can be repeated, and then succeeds.
fn finish_after_crash(scenario: &FaultScenario, fixture: &FaultTestFixture, at: usize) {
    let result = (scenario.act)(fixture);
    let expected = scenario.after.map(|text| text.map(str::to_owned));
    assert!(contents(fixture) == expected, "{} at {at}: {result:?}, {:?}", scenario.name, contents(fixture));
}

/// The child process of the test above, which is killed. Does nothing in a normal test run.
#[test]
fn kill_child() {
    let Ok(arguments) = std::env::var(CHILD_VARIABLE) else { return };
    let mut words = arguments.splitn(3, ' ');
    let scenario = &SCENARIOS[words.next().unwrap().parse::<usize>().unwrap()];
    let at = words.next().unwrap().parse().unwrap();
    let fixture = FaultTestFixture::open(Path::new(words.next().unwrap()));
    let _ = with_fault_plan(&FaultPlan::new(at, InjectedFault::Kill), || (scenario.act)(&fixture));
}
