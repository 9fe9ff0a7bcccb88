//! Nothing of a command outlives its end.

use super::bench_desk::{Desk, LONG};
use std::time::Duration;
use toolgate_process::{ProcessExit, ProcessPhase};

/// Commands whose processes do not want to go.
const STUBBORN: &[&str] = &[
    "echo ready; sleep 1000",
    "sleep 1000 & echo ready; wait",
    "trap '' TERM INT HUP; echo ready; while :; do sleep 1; done",
    "setsid sleep 1000 & echo ready; wait",
    "setsid bash -c 'trap \"\" TERM; echo ready; while :; do sleep 1; done' & wait",
    "(setsid bash -c '(sleep 1000 &) ; echo ready' &) ; sleep 1000",
    "python3 -c 'import os,time\nif os.fork()==0:\n os.setsid()\n if os.fork()==0:\n  print(\"ready\",flush=True)\n  time.sleep(1000)\n os._exit(0)\ntime.sleep(1000)'",
    "nohup sleep 1000 >/dev/null 2>&1 & disown; echo ready; sleep 1000",
    "sleep 1000 & kill -STOP $!; echo ready; wait",
    "echo ready; kill -STOP $$",
];

#[test]
fn a_stop_reaches_every_process() {
    for text in STUBBORN {
        let desk = Desk::new();
        let started = desk.start(text);
        started.until_text("ready");
        started.process.send_stop(Duration::from_millis(50));
        assert!(started.process.wait_all_exited(LONG), "{text}");
        assert_eq!(desk.alive(), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn dropping_the_handle_ends_everything() {
    for text in STUBBORN {
        let desk = Desk::new();
        let started = desk.start(text);
        started.until_text("ready");
        let changed = started.changed;
        drop(started.process);
        // The pump ends with the keeper, and the channel with the pump.
        while changed.recv_timeout(LONG).is_ok() {}
        assert_eq!(desk.alive(), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn a_polite_command_may_clean_up_after_itself() {
    let desk = Desk::new();
    let started = desk.start("trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.01; done");
    started.until_text("ready");
    started.process.send_stop(LONG);
    let (exit, text) = started.ended();
    assert_eq!(exit, ProcessExit::Code(5));
    assert!(text.ends_with("bye\n"), "{text}");
}

#[test]
fn what_a_shell_leaves_behind_is_still_owned() {
    let desk = Desk::new();
    let started = desk.start("(setsid sleep 1000 >/dev/null 2>&1 &); echo done");
    assert_eq!(started.ended(), (ProcessExit::Code(0), "done\n".to_owned()));
    assert_eq!(started.process.phase(), ProcessPhase::ShellExited(ProcessExit::Code(0)));
    desk.wait_alive(1);
    started.process.send_stop(Duration::ZERO);
    assert!(started.process.wait_all_exited(LONG));
    assert_eq!(desk.alive(), Vec::<String>::new());
}

/// One process that is always another: it forks, leaves its session and exits, over and over.
#[test]
fn a_process_that_hops_is_caught() {
    let desk = Desk::new();
    let hopper = "python3 -c '
import os, time
print(\"ready\", flush=True)
end = time.time() + 50
while time.time() < end:
    if os.fork(): os._exit(0)
    os.setsid()
'";
    let started = desk.start(hopper);
    started.until_text("ready");
    started.process.send_stop(Duration::from_millis(5));
    assert!(started.process.wait_all_exited(LONG));
    assert_eq!(desk.alive(), Vec::<String>::new());
}

/// A tree of about a hundred processes that is still growing when it is told to end.
#[test]
fn a_growing_tree_ends() {
    let desk = Desk::new();
    let tree = "f() { echo x; if [ $1 -gt 0 ]; then for i in 1 2 3; do (f $(($1 - 1))) & done; fi; wait; sleep 1000; }; f 4";
    let started = desk.start(tree);
    started.until(|process| process.output_snapshot().total > 20);
    started.process.send_stop(Duration::from_millis(5));
    assert!(started.process.wait_all_exited(LONG));
    assert_eq!(desk.alive(), Vec::<String>::new());
}

/// The program of the example `hold`, which cargo builds beside the tests.
fn hold() -> std::path::PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().parent().unwrap().join("examples/hold")
}

#[test]
fn toolgates_own_death_ends_everything() {
    use rustix::process::{Pid, Signal, kill_process, kill_process_group};
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};
    for (index, text) in STUBBORN.iter().enumerate() {
        let desk = Desk::new();
        let mut child = Command::new(hold())
            .args([desk.ws().to_string().as_str(), text, &desk.mark])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "{text}");
        desk.wait_alive(1);
        let pid = Pid::from_child(&child);
        match index % 4 {
            0 => kill_process(pid, Signal::KILL).unwrap(),
            1 => kill_process_group(pid, Signal::KILL).unwrap(),
            2 => kill_process(pid, Signal::TERM).unwrap(),
            _ => drop(child.stdin.take()),
        }
        child.wait().unwrap();
        // The keeper works on after toolgate's death; it has no one left to tell.
        let started = std::time::Instant::now();
        while !desk.alive().is_empty() {
            assert!(started.elapsed() < LONG, "{text}: {:?}", desk.alive());
            std::thread::yield_now();
        }
    }
}
