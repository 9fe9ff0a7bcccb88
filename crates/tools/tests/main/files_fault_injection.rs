//! Fault injection: every system call of a changing tool fails in turn, and the process is killed before each of them.

use super::file_fixture::{FileFixture, leftover_files, memory_dir};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use toolgate_files::faults::{FaultPlan, InjectedFault, with_fault_plan};
use toolgate_proto::Mode;

/// A change by a tool.
struct Scenario {
    tool: &'static str,
    input: fn(&FileFixture) -> Value,
    /// The content of the file `f` before; empty if it does not exist.
    before: &'static str,
    after: &'static str,
}

const SCENARIOS: [Scenario; 5] = [
    Scenario {
        tool: "Write",
        input: |fixture| json!({ "file_path": fixture.path("f"), "content": "new\n" }),
        before: "",
        after: "new\n",
    },
    Scenario {
        tool: "Write",
        input: |fixture| json!({ "file_path": fixture.path("f"), "content": "new\n" }),
        before: "old\n",
        after: "new\n",
    },
    Scenario {
        tool: "Edit",
        input: |fixture| json!({ "file_path": fixture.path("f"), "old_string": "two", "new_string": "2" }),
        before: "one two three\n",
        after: "one 2 three\n",
    },
    Scenario {
        tool: "MultiEdit",
        input: |fixture| {
            let edits = json!([
                { "old_string": "one", "new_string": "1" }, { "old_string": "three", "new_string": "3" },
            ]);
            json!({ "file_path": fixture.path("f"), "edits": edits })
        },
        before: "one two three\n",
        after: "1 two 3\n",
    },
    Scenario {
        tool: "edit_file",
        input: |_| json!({ "path": "f", "edits": [{ "target": "two", "replacement": "2" }] }),
        before: "one two three\n",
        after: "one 2 three\n",
    },
];

fn fixture_in(dir: &Path) -> FileFixture {
    FileFixture::at(dir, Mode::Bypass, Vec::new())
}

fn prepare(fixture: &FileFixture, scenario: &Scenario) {
    if scenario.before.is_empty() {
        let _ = std::fs::remove_file(fixture.path("f"));
    } else {
        let path = fixture.put("f", scenario.before);
        fixture.call_text("Read", json!({ "file_path": path }));
    }
}

fn current_content(fixture: &FileFixture) -> String {
    std::fs::read_to_string(fixture.path("f")).unwrap_or_default()
}

#[test]
fn after_every_fault_the_file_has_the_old_or_the_new_content_and_no_temporary_file_is_left() {
    let errors = [28, 5, 13, 4].map(InjectedFault::Errno).into_iter().chain([InjectedFault::ShortWrite]);
    let faults: Vec<InjectedFault> = errors.collect();
    let mut total = 0;
    for scenario in &SCENARIOS {
        let dir = memory_dir();
        let fixture = fixture_in(dir.path());
        prepare(&fixture, scenario);
        let plan = FaultPlan::new(usize::MAX, InjectedFault::Nothing);
        with_fault_plan(&plan, || fixture.call(scenario.tool, (scenario.input)(&fixture))).unwrap();
        assert_eq!(current_content(&fixture), scenario.after);
        let points = plan.calls().len();
        println!("{}: {points} fault points", scenario.tool);
        for at in 0..points {
            for fault in &faults {
                total += 1;
                prepare(&fixture, scenario);
                let result = with_fault_plan(&FaultPlan::new(at, *fault), || {
                    fixture.call(scenario.tool, (scenario.input)(&fixture))
                });
                let expected = if result.is_ok() { scenario.after } else { scenario.before };
                assert_eq!(
                    current_content(&fixture),
                    expected,
                    "{} {fault:?} at {at}: {result:?}",
                    scenario.tool
                );
                assert_eq!(
                    leftover_files(dir.path()),
                    Vec::<PathBuf>::new(),
                    "{} {fault:?} at {at}",
                    scenario.tool
                );
            }
        }
    }
    println!("{total} faults");
}

#[test]
fn after_a_kill_at_every_system_call_the_file_has_the_old_or_the_new_content() {
    let mut total = 0;
    for (index, scenario) in SCENARIOS.iter().enumerate() {
        for at in 0.. {
            let dir = memory_dir();
            let status = std::process::Command::new(std::env::current_exe().unwrap())
                .args([
                    "--exact",
                    "main::files_fault_injection::child_that_is_killed_at_a_fault_point",
                    "--nocapture",
                ])
                .env("TOOLGATE_FAULT_SCENARIO", format!("{index} {at} {}", dir.path().display()))
                .stdout(std::process::Stdio::null())
                .status()
                .unwrap();
            if status.success() {
                assert!(at > 20, "{}: the child was not killed at {at}", scenario.tool);
                break;
            }
            total += 1;
            // Opening the journal in a new process completes or reverts the interrupted change.
            let fixture = fixture_in(dir.path());
            let text = current_content(&fixture);
            assert!(
                [scenario.before, scenario.after].contains(&text.as_str()),
                "{} {at}: {text:?}",
                scenario.tool
            );
            assert_eq!(leftover_files(dir.path()), Vec::<PathBuf>::new(), "{} at {at}", scenario.tool);
        }
    }
    println!("{total} kills");
}

/// The child process of the test above; without the environment variable it does nothing.
#[test]
fn child_that_is_killed_at_a_fault_point() {
    let Ok(instructions) = std::env::var("TOOLGATE_FAULT_SCENARIO") else { return };
    let mut words = instructions.splitn(3, ' ');
    let scenario = &SCENARIOS[words.next().unwrap().parse::<usize>().unwrap()];
    let at = words.next().unwrap().parse().unwrap();
    let fixture = fixture_in(Path::new(words.next().unwrap()));
    prepare(&fixture, scenario);
    let _ = with_fault_plan(&FaultPlan::new(at, InjectedFault::Kill), || {
        fixture.call(scenario.tool, (scenario.input)(&fixture))
    });
}
