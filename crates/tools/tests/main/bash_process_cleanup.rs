//! No process is left, however a command ends: 200 random combinations of commands and endings.

use super::bash_properties::wait_until_gone;
use super::shell_fixture::{ShellFixture, block_on_runtime, live_processes};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use serde_json::json;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use toolgate_gate::CallOptions;

/// How a command is made to end, with the milliseconds until then.
#[derive(Debug, Clone, Copy)]
enum Ending {
    Timeout(u64),
    Cancel(u64),
    CallDeadline(u64),
    FutureDropped(u64),
    TaskStopped(u64),
    SessionEnded(u64),
    ShellKilled,
}

/// Parts of commands that leave processes: background jobs, sessions of their own, ignored signals.
const PIECES: &[&str] = &[
    "sleep 1000 &",
    "setsid sleep 1000 &",
    "(sleep 1000 & sleep 1000) &",
    "(setsid bash -c 'trap \"\" TERM; sleep 1000; sleep 1000' &) ;",
    "nohup sleep 1000 >/dev/null 2>&1 &",
    "trap '' TERM INT HUP;",
    "bash -c 'bash -c \"sleep 1000; :\" & wait' &",
    "sleep 1000 | cat &",
    "{ sleep 1000 & kill -STOP $!; };",
    "(while :; do sleep 0.01; done) &",
    "coproc sleep 1000;",
    "(yes > /dev/null &) ;",
];

const LAST: &[&str] =
    &["wait", "sleep 1000", "while :; do sleep 0.05; done", "true", "cat /dev/zero > /dev/null"];

fn scenario() -> impl Strategy<Value = (String, Ending)> {
    let pieces = prop::collection::vec(prop::sample::select(PIECES), 0..4);
    let last = prop::sample::select(LAST);
    let moment = 0u64..60;
    let ending = prop_oneof![
        moment.clone().prop_map(|ms| Ending::Timeout(ms + 1)),
        moment.clone().prop_map(Ending::Cancel),
        moment.clone().prop_map(|ms| Ending::CallDeadline(ms + 1)),
        moment.clone().prop_map(Ending::FutureDropped),
        moment.clone().prop_map(Ending::TaskStopped),
        moment.prop_map(Ending::SessionEnded),
        Just(Ending::ShellKilled),
    ];
    (pieces, last, ending).prop_map(|(pieces, last, ending)| (format!("{} {last}", pieces.join(" ")), ending))
}

/// Runs a command to its ending and returns the marker of its processes.
async fn run_scenario(command: &str, ending: Ending) -> String {
    // Many of these ignore SIGTERM, so most of the time would be spent in the grace period.
    let fixture = ShellFixture::with(|config| config.grace = Duration::from_millis(100));
    let marker = fixture.marker.clone();
    let input = json!({ "command": command });
    let millis = Duration::from_millis;
    match ending {
        Ending::Timeout(ms) => {
            fixture.call("Bash", json!({ "command": command, "timeout": ms })).await;
        }
        Ending::Cancel(ms) => {
            let cancel = CancellationToken::new();
            let options = CallOptions::default().with_cancel(cancel.clone());
            let later = async {
                tokio::time::sleep(millis(ms)).await;
                cancel.cancel();
            };
            tokio::join!(fixture.call_within("Bash", input, options), later);
        }
        Ending::CallDeadline(ms) => {
            let options = CallOptions::default().with_timeout(Some(millis(ms)));
            fixture.call_within("Bash", input, options).await;
        }
        Ending::FutureDropped(ms) => {
            let _ = tokio::time::timeout(millis(ms), fixture.call("Bash", input)).await;
        }
        Ending::TaskStopped(ms) => {
            fixture.call("Bash", json!({ "command": command, "run_in_background": true })).await;
            tokio::time::sleep(millis(ms)).await;
            fixture.call("TaskStop", json!({ "task_id": "task_1" })).await;
        }
        Ending::SessionEnded(ms) => {
            fixture.call("Bash", json!({ "command": command, "run_in_background": true })).await;
            tokio::time::sleep(millis(ms)).await;
        }
        Ending::ShellKilled => {
            fixture.call("Bash", json!({ "command": format!("{command} & kill -9 $$") })).await;
        }
    }
    drop(fixture);
    marker
}

#[test]
fn no_process_survives_two_hundred_random_endings() {
    block_on_runtime(async {
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let scenarios = scenario();
        let mut ended = 0;
        for _ in 0..200 {
            let (command, ending) = scenarios.new_tree(&mut runner).unwrap().current();
            let marker = run_scenario(&command, ending).await;
            // A call that was dropped, or that its gate gave up, returns before the supervisor has killed everything.
            if matches!(ending, Ending::FutureDropped(_) | Ending::Cancel(_) | Ending::CallDeadline(_)) {
                wait_until_gone(&marker).await;
            }
            assert_eq!(live_processes(&marker), Vec::<String>::new(), "{ending:?} {command}");
            ended += 1;
        }
        assert_eq!(ended, 200);
    });
}
