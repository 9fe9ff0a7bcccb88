//! Commands that run the code on their standard input: an exact rule for one of them names the interpreter only, and
//! would allow every program that a later line pipes into it.

use crate::lint::ARBITRARY_CODE_RUNNERS;

/// Further programs that run code or commands from standard input if no operand names a file.
const OTHER_INTERPRETERS: &[&str] = &[
    "ash", "yash", "mksh", "nu", "xonsh", "elvish", "ts-node", "tsx", "luajit", "R", "Rscript", "tclsh",
    "wish", "guile", "racket", "sbcl", "clisp", "ghci", "erl", "iex", "irb", "pry", "scala", "jshell",
    "groovy", "raku", "octave", "gnuplot", "ed", "ex", "lldb", "m4", "ftp", "sftp", "lftp", "batch",
];

/// Programs whose first operand is a host, a user or a database, and that read their commands from standard input.
const SESSION_PROGRAMS: &[&str] =
    &["ssh", "psql", "mysql", "mariadb", "sqlite3", "duckdb", "su", "sftp", "at"];

/// Options with which a program gets its commands from the line or from a file.
const PROGRAM_OPTIONS: &[&str] = &["-c", "-e", "-f", "--command", "--execute", "--file"];

/// Programs that read a file of commands, which may be standard input.
const COMMAND_FILE_READERS: &[&str] = &[
    "make",
    "gmake",
    "bmake",
    "ninja",
    "just",
    "task",
    "cmake",
    "rake",
    "ant",
    "awk",
    "gawk",
    "mawk",
    "nawk",
    "sed",
    "crontab",
    "kubectl",
    "ansible-playbook",
];

/// Names of standard input.
const INPUT_NAMES: &[&str] = &["-", "-f-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

/// Whether a command runs what it reads from standard input, so that a rule for exactly its words allows any code.
pub(super) fn runs_standard_input<'w>(mut words: impl Iterator<Item = &'w str>) -> bool {
    let Some(program) = words.next().map(|program| program.rsplit('/').next().unwrap_or(program)) else {
        return false;
    };
    let words: Vec<&str> = words.collect();
    let names_input = words.iter().any(|word| INPUT_NAMES.contains(word) || word.ends_with("=-"));
    if COMMAND_FILE_READERS.contains(&program) {
        return names_input;
    }
    let operands = words.iter().filter(|word| !word.starts_with('-')).count();
    if SESSION_PROGRAMS.contains(&program) {
        let option = |word: &str| word.split_once('=').map_or(word.to_owned(), |(name, _)| name.to_owned());
        return operands <= 1 && !words.iter().any(|word| PROGRAM_OPTIONS.contains(&option(word).as_str()));
    }
    is_interpreter(program) && (operands == 0 || names_input || reads_after_options(program, &words))
}

/// Whether a program runs code that it reads. Programs that only act on the files that they name, such as `rm`, are
/// runners of arbitrary code for other reasons.
fn is_interpreter(program: &str) -> bool {
    const OTHER_RUNNERS: &[&str] = &[
        "find", "git", "docker", "podman", "rm", "curl", "wget", "dd", "chmod", "chown", "tee", "ln", "env",
        "time", "watch",
    ];
    let runs_code = ARBITRARY_CODE_RUNNERS.contains(&program) && !OTHER_RUNNERS.contains(&program);
    // `python3.12` is `python3` as well.
    let unversioned = program.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    runs_code
        || OTHER_INTERPRETERS.contains(&program)
        || matches!(unversioned, "python" | "pypy" | "perl" | "lua")
}

/// Whether a shell reads its code from standard input although it has operands: `bash -s -- x`, `sh -o pipefail`.
fn reads_after_options(program: &str, words: &[&str]) -> bool {
    if !program.ends_with("sh") {
        return false;
    }
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        match *word {
            "-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file" => {
                rest.next();
            }
            "--" => return rest.next().is_none(),
            word if word.starts_with("--") => {}
            word if word.starts_with(['-', '+']) => {
                if word.contains('c') {
                    return false;
                }
                if word.contains('s') {
                    return true;
                }
            }
            _ => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreters_without_a_program_run_standard_input() {
        for command in [
            "sh",
            "/bin/bash",
            "sh -x",
            "bash -s",
            "bash -s -- x",
            "sh -es x",
            "bash -o pipefail",
            "python3",
            "python3.12 -u",
            "python3 - x",
            "node -",
            "deno run -",
            "ssh host",
            "psql db",
            "sqlite3 x.db",
            "make -f -",
            "awk -f -",
            "crontab -",
            "at now",
            "su",
            "sudo -s",
            "perl",
            "ruby /dev/stdin",
            "parallel",
            "xargs",
        ] {
            assert!(runs_standard_input(command.split(' ')), "{command}");
        }
        for command in [
            "sh build.sh",
            "bash -c make",
            "bash -ec make",
            "python3 a.py",
            "python3 -m pytest",
            "node a.js",
            "ssh host uptime",
            "psql -c x db",
            "psql --file=a.sql db",
            "make",
            "make x",
            "git commit -F -",
            "curl -o - https://x.example",
            "npm run build",
            "rm",
            "awk x f",
            "sudo make",
        ] {
            assert!(!runs_standard_input(command.split(' ')), "{command}");
        }
    }
}
