//! Every system call of a changing tool fails in turn, and the process dies before each of them.

use super::files_room::{Room, litter, scratch};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use toolgate_files::faults::{FaultPlan, InjectedFault, with_fault_plan};
use toolgate_proto::Mode;

struct Scenario {
    tool: &'static str,
    input: fn(&Room) -> Value,
    /// What is in the file `f` before; nothing where empty.
    before: &'static str,
    after: &'static str,
}

const SCENARIOS: [Scenario; 5] = [
    Scenario {
        tool: "Write",
        input: |room| json!({ "file_path": room.path("f"), "content": "new\n" }),
        before: "",
        after: "new\n",
    },
    Scenario {
        tool: "Write",
        input: |room| json!({ "file_path": room.path("f"), "content": "new\n" }),
        before: "old\n",
        after: "new\n",
    },
    Scenario {
        tool: "Edit",
        input: |room| json!({ "file_path": room.path("f"), "old_string": "two", "new_string": "2" }),
        before: "one two three\n",
        after: "one 2 three\n",
    },
    Scenario {
        tool: "MultiEdit",
        input: |room| {
            let edits = json!([
                { "old_string": "one", "new_string": "1" }, { "old_string": "three", "new_string": "3" },
            ]);
            json!({ "file_path": room.path("f"), "edits": edits })
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

fn room_in(dir: &Path) -> Room {
    Room::at(dir, Mode::Bypass, Vec::new())
}

fn prepare(room: &Room, scenario: &Scenario) {
    if scenario.before.is_empty() {
        let _ = std::fs::remove_file(room.path("f"));
    } else {
        let path = room.put("f", scenario.before);
        room.said("Read", json!({ "file_path": path }));
    }
}

fn now(room: &Room) -> String {
    std::fs::read_to_string(room.path("f")).unwrap_or_default()
}

#[test]
fn each_failing_call_leaves_the_old_or_the_new_and_no_litter() {
    let errors = [28, 5, 13, 4].map(InjectedFault::Errno).into_iter().chain([InjectedFault::ShortWrite]);
    let faults: Vec<InjectedFault> = errors.collect();
    let mut total = 0;
    for scenario in &SCENARIOS {
        let dir = scratch();
        let room = room_in(dir.path());
        prepare(&room, scenario);
        let plan = FaultPlan::new(usize::MAX, InjectedFault::Nothing);
        with_fault_plan(&plan, || room.call(scenario.tool, (scenario.input)(&room))).unwrap();
        assert_eq!(now(&room), scenario.after);
        let points = plan.calls().len();
        println!("{}: {points} fault points", scenario.tool);
        for at in 0..points {
            for fault in &faults {
                total += 1;
                prepare(&room, scenario);
                let result = with_fault_plan(&FaultPlan::new(at, *fault), || {
                    room.call(scenario.tool, (scenario.input)(&room))
                });
                let expected = if result.is_ok() { scenario.after } else { scenario.before };
                assert_eq!(now(&room), expected, "{} {fault:?} at {at}: {result:?}", scenario.tool);
                assert_eq!(litter(dir.path()), Vec::<PathBuf>::new(), "{} {fault:?} at {at}", scenario.tool);
            }
        }
    }
    println!("{total} faults");
}

#[test]
fn a_kill_before_each_call_leaves_the_old_or_the_new_and_no_litter() {
    let mut total = 0;
    for (index, scenario) in SCENARIOS.iter().enumerate() {
        for at in 0.. {
            let dir = scratch();
            let status = std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "main::files_torture::dies_when_told_to", "--nocapture"])
                .env("TORTURE", format!("{index} {at} {}", dir.path().display()))
                .stdout(std::process::Stdio::null())
                .status()
                .unwrap();
            if status.success() {
                assert!(at > 20, "{}: the child outlived its kill at {at}", scenario.tool);
                break;
            }
            total += 1;
            // A new process opens the journal, which settles what was left unsettled.
            let room = room_in(dir.path());
            let text = now(&room);
            assert!(
                [scenario.before, scenario.after].contains(&text.as_str()),
                "{} {at}: {text:?}",
                scenario.tool
            );
            assert_eq!(litter(dir.path()), Vec::<PathBuf>::new(), "{} at {at}", scenario.tool);
        }
    }
    println!("{total} kills");
}

/// The child of the test above; without its instructions it has nothing to do.
#[test]
fn dies_when_told_to() {
    let Ok(told) = std::env::var("TORTURE") else { return };
    let mut words = told.splitn(3, ' ');
    let scenario = &SCENARIOS[words.next().unwrap().parse::<usize>().unwrap()];
    let at = words.next().unwrap().parse().unwrap();
    let room = room_in(Path::new(words.next().unwrap()));
    prepare(&room, scenario);
    let _ = with_fault_plan(&FaultPlan::new(at, InjectedFault::Kill), || {
        room.call(scenario.tool, (scenario.input)(&room))
    });
}
