//! No process of a command, a hook or a server outlives it.

use super::process_bench::{ProcessBench, TEST_TIMEOUT};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::io::BufRead;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::net::unix::pipe::{Receiver, Sender};
use toolgate_process::{
    HookCommand, HookProcessError, HookProgram, ProcessExit, ProcessPhase, ServerLaunch, ServerProcess,
    run_hook,
};

/// Commands whose processes ignore signals, leave the process group or the session, or stop themselves.
const STUBBORN_COMMANDS: &[&str] = &[
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
fn a_stop_ends_every_process() {
    for text in STUBBORN_COMMANDS {
        let bench = ProcessBench::new();
        let started = bench.start(text);
        started.wait_text("ready");
        started.process.send_stop(Duration::from_millis(50));
        assert!(started.process.wait_all_exited(TEST_TIMEOUT), "{text}");
        assert_eq!(bench.alive(), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn dropping_the_process_ends_everything() {
    for text in STUBBORN_COMMANDS {
        let bench = ProcessBench::new();
        let started = bench.start(text);
        started.wait_text("ready");
        let changed = started.changed;
        drop(started.process);
        // The monitor thread ends after the supervisor, and drops the channel.
        while changed.recv_timeout(TEST_TIMEOUT).is_ok() {}
        assert_eq!(bench.alive(), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn a_command_can_clean_up_after_sigterm() {
    let bench = ProcessBench::new();
    let started = bench.start("trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.01; done");
    started.wait_text("ready");
    started.process.send_stop(TEST_TIMEOUT);
    let (exit, text) = started.wait_exit();
    assert_eq!(exit, ProcessExit::Code(5));
    assert!(text.ends_with("bye\n"), "{text}");
}

#[test]
fn processes_that_outlive_the_shell_are_still_owned() {
    let bench = ProcessBench::new();
    let started = bench.start("(setsid sleep 1000 >/dev/null 2>&1 &); echo done");
    assert_eq!(started.wait_exit(), (ProcessExit::Code(0), "done\n".to_owned()));
    assert_eq!(started.process.phase(), ProcessPhase::ShellExited(ProcessExit::Code(0)));
    bench.wait_alive(1);
    started.process.send_stop(Duration::ZERO);
    assert!(started.process.wait_all_exited(TEST_TIMEOUT));
    assert_eq!(bench.alive(), Vec::<String>::new());
}

/// The process forks, starts a session and exits, in a loop.
#[test]
fn a_process_that_forks_and_exits_in_a_loop_is_killed() {
    let bench = ProcessBench::new();
    let command = "python3 -c '
import os, time
print(\"ready\", flush=True)
end = time.time() + 50
while time.time() < end:
    if os.fork(): os._exit(0)
    os.setsid()
'";
    let started = bench.start(command);
    started.wait_text("ready");
    started.process.send_stop(Duration::from_millis(5));
    assert!(started.process.wait_all_exited(TEST_TIMEOUT));
    assert_eq!(bench.alive(), Vec::<String>::new());
}

/// A tree of about a hundred processes that is still growing when it is ended.
#[test]
fn a_growing_tree_ends() {
    let bench = ProcessBench::new();
    let tree = "f() { echo x; if [ $1 -gt 0 ]; then for i in 1 2 3; do (f $(($1 - 1))) & done; fi; wait; sleep 1000; }; f 4";
    let started = bench.start(tree);
    started.wait_until(|process| process.output_snapshot().total > 20);
    started.process.send_stop(Duration::from_millis(5));
    assert!(started.process.wait_all_exited(TEST_TIMEOUT));
    assert_eq!(bench.alive(), Vec::<String>::new());
}

/// The executable of the example `hold`, which cargo builds with the tests.
fn hold() -> std::path::PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.parent().unwrap().parent().unwrap().join("examples/hold")
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

fn hook(bench: &ProcessBench, text: &str, timeout: Duration) -> HookCommand {
    HookCommand {
        program: HookProgram::Shell(text.to_owned()),
        cwd: bench.ws(),
        env: vec![
            ("PATH".to_owned(), std::env::var("PATH").unwrap()),
            ("TOOLGATE_TEST_MARK".to_owned(), bench.mark.clone()),
        ],
        stdin: Vec::new(),
        timeout,
        fault: None,
    }
}

fn start_server(bench: &ProcessBench, text: &str) -> (ServerProcess, Receiver, Sender) {
    let launch = ServerLaunch::new("bash", vec!["-c".to_owned(), text.to_owned()], bench.ws())
        .with_env([("TOOLGATE_TEST_MARK".to_owned(), bench.mark.clone())].into());
    let ambient = [("PATH".to_owned(), std::env::var("PATH").unwrap())].into();
    ServerProcess::start(&launch, &ambient).unwrap()
}

async fn wait_ready(stdout: Receiver) {
    let mut lines = BufReader::new(stdout).lines();
    while lines.next_line().await.unwrap().unwrap() != "ready" {}
}

#[test]
fn a_hook_that_starts_a_daemon_leaves_no_process() {
    for daemon in [
        "setsid sleep 1000 >/dev/null 2>&1 & echo '{}'",
        "(setsid bash -c 'trap \"\" TERM; while :; do sleep 1; done' &); echo '{}'",
        "python3 -c 'import os,time\nif os.fork()==0:\n os.setsid()\n if os.fork()==0:\n  time.sleep(1000)\n os._exit(0)'; echo '{}'",
    ] {
        let bench = ProcessBench::new();
        let output = runtime().block_on(run_hook(hook(&bench, daemon, TEST_TIMEOUT))).unwrap();
        assert_eq!((output.code, output.stdout.as_slice()), (Some(0), &b"{}\n"[..]), "{daemon}");
        bench.wait_none_alive(daemon);
    }
}

#[test]
fn a_hook_that_times_out_leaves_no_process() {
    for text in STUBBORN_COMMANDS {
        let bench = ProcessBench::new();
        let ended = runtime().block_on(run_hook(hook(&bench, text, Duration::from_millis(300))));
        assert_eq!(ended.unwrap_err(), HookProcessError::TimedOut, "{text}");
        bench.wait_none_alive(text);
    }
}

#[test]
fn a_server_that_is_stopped_leaves_no_process() {
    for text in STUBBORN_COMMANDS {
        let bench = ProcessBench::new();
        runtime().block_on(async {
            let (process, stdout, stdin) = start_server(&bench, text);
            wait_ready(stdout).await;
            drop(stdin);
            process.stop().await;
        });
        assert_eq!(bench.alive(), Vec::<String>::new(), "{text}");
    }
}

#[test]
fn a_server_that_is_dropped_leaves_no_process() {
    for text in STUBBORN_COMMANDS {
        let bench = ProcessBench::new();
        runtime().block_on(async {
            let (process, stdout, _stdin) = start_server(&bench, text);
            wait_ready(stdout).await;
            drop(process);
        });
        bench.wait_none_alive(text);
    }
}

#[test]
fn the_death_of_toolgate_ends_everything() {
    for kind in ["command", "hook", "server"] {
        for (index, text) in STUBBORN_COMMANDS.iter().enumerate() {
            let bench = ProcessBench::new();
            let mut child = Command::new(hold())
                .args([kind, bench.ws().to_string().as_str(), text, &bench.mark])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .process_group(0)
                .spawn()
                .unwrap();
            let mut line = String::new();
            std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
            assert_eq!(line, "ready\n", "{kind}: {text}");
            bench.wait_alive(1);
            let pid = Pid::from_child(&child);
            match index % 4 {
                0 => kill_process(pid, Signal::KILL).unwrap(),
                1 => kill_process_group(pid, Signal::KILL).unwrap(),
                2 => kill_process(pid, Signal::TERM).unwrap(),
                _ => drop(child.stdin.take()),
            }
            child.wait().unwrap();
            // The supervisor works on after toolgate's death, and has no process to report to.
            bench.wait_none_alive(&format!("{kind}: {text}"));
        }
    }
}

/// A server may need a moment to clean up, such as removing a container it started.
#[test]
fn a_server_can_clean_up_after_the_death_of_toolgate() {
    let bench = ProcessBench::new();
    // bash reports the death of `sleep` on standard error, whose pipe has no reader any more.
    let text =
        "exec 2> /dev/null; trap 'echo bye > farewell; exit' TERM; echo ready; while :; do sleep 0.01; done";
    let mut child = Command::new(hold())
        .args(["server", bench.ws().to_string().as_str(), text, &bench.mark])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::BufReader::new(child.stdout.take().unwrap()).read_line(&mut String::new()).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    bench.wait_none_alive(text);
    assert_eq!(std::fs::read_to_string(bench.path("ws/farewell")).unwrap(), "bye\n");
}
