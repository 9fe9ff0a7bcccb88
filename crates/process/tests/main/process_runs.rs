//! The exit and the output of a command are those of its shell.

use super::process_bench::ProcessBench;
use toolgate_process::ProcessExit;

fn check(text: &str, exit: ProcessExit, output: &str) {
    let bench = ProcessBench::new();
    let (ended, output_text) = bench.start(text).wait_exit();
    assert_eq!((ended, output_text.as_str()), (exit, output), "{text}");
}

#[test]
fn the_exit_and_the_output_are_those_of_the_shell() {
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
fn the_working_directory_is_reported_and_the_command_text_is_unchanged() {
    let bench = ProcessBench::new();
    let started = bench.start("mkdir 'a b'; cd 'a b'; echo \"$BASH_EXECUTION_STRING\"");
    let (exit, text) = started.wait_exit();
    assert_eq!(exit, ProcessExit::Code(0));
    assert_eq!(text, "mkdir 'a b'; cd 'a b'; echo \"$BASH_EXECUTION_STRING\"\n");
    assert_eq!(started.process.cwd(), Some(bench.path("ws/a b")));
    let started = bench.start("cd /; exec true");
    started.wait_exit();
    assert_eq!(started.process.cwd(), None);
}

#[test]
fn long_output_is_complete_in_the_file() {
    let bench = ProcessBench::new();
    let mut command = bench.command("seq 1 100000");
    command.capture.head = 100;
    command.capture.tail = 50;
    let started = bench.start_command(command);
    started.wait_exit();
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
    let bench = ProcessBench::new();
    let mut command = bench.command("yes");
    command.capture.max_bytes = 1_000_000;
    let started = bench.start_command(command);
    started.wait_exit();
    assert!(started.process.is_over_output_limit());
    assert_eq!(started.process.output_snapshot().total, 1_000_000);
    assert!(started.process.wait_all_exited(super::process_bench::TEST_TIMEOUT));
    assert_eq!(bench.alive(), Vec::<String>::new());
}

#[test]
fn a_failed_start_names_the_step() {
    let bench = ProcessBench::new();
    let mut command = bench.command("true");
    command.cwd = bench.path("nowhere");
    let problem = toolgate_process::SupervisedProcess::start(command, || ()).unwrap_err();
    assert!(problem.message.starts_with("the working directory could not be entered"), "{problem:?}");
    let mut command = bench.command("true");
    command.text = "echo a\0b".to_owned();
    assert!(toolgate_process::SupervisedProcess::start(command, || ()).is_err());
}

#[test]
fn no_file_descriptor_of_toolgate_is_inherited() {
    let bench = ProcessBench::new();
    let (_, text) = bench.start("ls -1 /proc/self/fd | tr '\\n' ' '").wait_exit();
    // 3 is the directory that `ls` reads.
    assert_eq!(text, "0 1 2 250 3 ");
}
