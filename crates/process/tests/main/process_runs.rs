//! A command's result is the shell's own.

use super::bench_desk::Desk;
use toolgate_process::ProcessExit;

fn check(text: &str, exit: ProcessExit, output: &str) {
    let desk = Desk::new();
    let (ended, wrote) = desk.start(text).ended();
    assert_eq!((ended, wrote.as_str()), (exit, output), "{text}");
}

#[test]
fn the_exit_and_the_order_of_output_are_the_shells() {
    check("echo a; echo b >&2; echo c", ProcessExit::Code(0), "a\nb\nc\n");
    check("exit 3", ProcessExit::Code(3), "");
    check("false", ProcessExit::Code(1), "");
    check("kill -TERM $$", ProcessExit::Signal(15), "");
    check("set -e; false; echo no", ProcessExit::Code(1), "");
    check("set -x; true", ProcessExit::Code(0), "+ true\n");
    check("cat", ProcessExit::Code(0), "");
    check("trap 'echo own' EXIT; exit 4", ProcessExit::Code(4), "own\n");
    check("echo \"$0 $# $-\" | tr -d ' '", ProcessExit::Code(0), "/bin/bash0hBc\n");
    check("exec sh -c 'exit 9'", ProcessExit::Code(9), "");
    check("bash -c 'trap -p'; echo \"${BASH_ENV-unset}\"", ProcessExit::Code(0), "unset\n");
    check("printf '\\033[31mred\\033[0m\\r\\n'", ProcessExit::Code(0), "red\n");
    check("yes | head -1", ProcessExit::Code(0), "y\n");
    check(
        "no-such-program",
        ProcessExit::Code(127),
        "/bin/bash: line 1: no-such-program: command not found\n",
    );
}

#[test]
fn the_working_directory_is_told_and_the_command_text_is_not_changed() {
    let desk = Desk::new();
    let started = desk.start("mkdir 'a b'; cd 'a b'; echo \"$BASH_EXECUTION_STRING\"");
    let (exit, text) = started.ended();
    assert_eq!(exit, ProcessExit::Code(0));
    assert_eq!(text, "mkdir 'a b'; cd 'a b'; echo \"$BASH_EXECUTION_STRING\"\n");
    assert_eq!(started.process.cwd(), Some(desk.path("ws/a b")));
    let started = desk.start("cd /; exec true");
    started.ended();
    assert_eq!(started.process.cwd(), None);
}

#[test]
fn long_output_is_in_the_file_whole() {
    let desk = Desk::new();
    let mut command = desk.command("seq 1 100000");
    command.capture.head = 100;
    command.capture.tail = 50;
    let started = desk.start_command(command);
    started.ended();
    let written = started.process.output_snapshot();
    let all: String = (1..=100_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(std::fs::read_to_string(written.file.clone().unwrap()).unwrap(), all);
    assert_eq!(written.total, all.len() as u64);
    assert!(all.as_bytes().starts_with(&written.head) && all.as_bytes().ends_with(&written.tail));
    assert_eq!(written.omitted_bytes(), written.total - 150);
    assert_eq!(started.process.read_output_from(3, 4).unwrap(), b"\n3\n4".as_slice()[..4].to_vec());
}

#[test]
fn too_much_output_ends_the_command() {
    let desk = Desk::new();
    let mut command = desk.command("yes");
    command.capture.max_bytes = 1_000_000;
    let started = desk.start_command(command);
    started.ended();
    assert!(started.process.is_over_output_limit());
    assert_eq!(started.process.output_snapshot().total, 1_000_000);
    assert!(started.process.wait_all_exited(super::bench_desk::LONG));
    assert_eq!(desk.alive(), Vec::<String>::new());
}

#[test]
fn a_start_that_fails_says_at_which_step() {
    let desk = Desk::new();
    let mut command = desk.command("true");
    command.cwd = desk.path("nowhere");
    let problem = toolgate_process::SupervisedProcess::start(command, || ()).unwrap_err();
    assert!(problem.message.starts_with("the working directory could not be entered"), "{problem:?}");
    let mut command = desk.command("true");
    command.text = "echo a\0b".to_owned();
    assert!(toolgate_process::SupervisedProcess::start(command, || ()).is_err());
}

#[test]
fn nothing_of_toolgates_own_handles_reaches_the_command() {
    let desk = Desk::new();
    let (_, text) = desk.start("ls -1 /proc/self/fd | tr '\\n' ' '").ended();
    // 3 is the directory that ls itself reads.
    assert_eq!(text, "0 1 2 250 3 ");
}
