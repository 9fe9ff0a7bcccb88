//! The programs that a line executes, and a helper that runs lines in real bash.

use super::simple_policy::analysed;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

/// Runs a line in real bash with only these variables set, until all of its processes have ended or five seconds have
/// passed. The process group is killed then, so that no process outlives its case.
pub(crate) fn bash(text: &str, directory: &Path, variables: &[(&str, &Path)]) {
    let mut child = Command::new("/bin/bash")
        .args(["--norc", "--noprofile", "-c", text])
        .env_clear()
        .envs(variables.iter().copied())
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut output = child.stdout.take().unwrap();
    let (done, ended) = mpsc::channel();
    // Every process that the line starts has the pipe open, unless its output is redirected.
    let reader = std::thread::spawn(move || {
        let _ = std::io::copy(&mut output, &mut std::io::sink());
        let _ = done.send(());
    });
    let _ = ended.recv_timeout(Duration::from_secs(5));
    // The shell has not been reaped, so that its process id still names it and its process group.
    let group = format!("-{}", child.id());
    let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
    let _ = child.wait();
    let _ = reader.join();
}

#[test]
fn wrappers_and_their_commands_are_listed_and_builtins_are_not() {
    for (text, programs) in [
        ("ls -l | wc -l", "ls wc"),
        ("cd a && echo b; true; [ -f c ] && pwd", ""),
        ("env echo a", "env echo"),
        ("timeout 5 nice -n 3 cat a", "timeout nice cat"),
        ("command cat a; builtin echo a", "cat"),
        ("command env -u A printf a", "env printf"),
        ("find . -name a -exec wc -l {} + | xargs -n 1 test", "find wc xargs test"),
        ("find . | xargs", "find xargs echo"),
        ("ls | xargs env X=1 sort", "ls xargs env sort"),
        ("bash -c 'echo a; m1 b'", "bash m1"),
        ("env bash -c 'echo a; m1 b'", "env bash m1"),
        ("exec echo a", "echo"),
        ("./m0; ../a/m1 b", "./m0 ../a/m1"),
        ("echo $(m0 `m1`) <(m2) \"${x:-$(m3)}\" $((1 + $(m4)))", "m0 m1 m2 m3 m4"),
        ("cat <<E\n$(m0)\nE", "m0 cat"),
        ("time m0; ! m1; { m2; }; (m3)", "m0 m1 m2 m3"),
        ("zcat a.gz | egrep x", "zcat gzip egrep grep"),
    ] {
        let mut found = analysed(text).programs();
        let mut expected: Vec<&str> = programs.split_whitespace().collect();
        found.sort();
        expected.sort_unstable();
        assert_eq!(found, expected, "{text}");
    }
}
