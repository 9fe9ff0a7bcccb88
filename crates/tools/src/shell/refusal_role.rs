//! Whether an access that the sandbox refused made a command fail.
//!
//! Programs try much that they do not need: a cache that they cannot write, a socket that nothing answers on.
//! A refusal is taken for the cause only if the command failed and said so itself: the last part of its output names what
//! was refused and reports no other failure after that, or it failed and printed nothing.
//! Where another program than the one of the command line was refused something, a script may have gone on, so that the
//! refusal is only a possible cause.
//! Otherwise the refusal is mentioned and not blamed.

use toolgate_process::ProcessExit;
use toolgate_process::sandbox::{SandboxAccess, SandboxDenial};

/// The output is searched from this many bytes before its end: programs report what stopped them last.
const MAX_SEARCHED_BYTES: usize = 8 * 1024;

/// The words of a refused access to a file, in lower case.
const FILE_WORDS: &[&str] = &[
    "permission denied",
    "not permitted",
    "permissionerror",
    "read-only file system",
    "access denied",
    "access is denied",
    "eacces",
    "eperm",
    "erofs",
    "cannot execute",
];

/// The words of a refused connection, in lower case.
const NETWORK_WORDS: &[&str] = &[
    "permission denied",
    "not permitted",
    "permissionerror",
    "unreachable",
    "connection",
    "could not connect",
    "failed to connect",
    "could not resolve",
    "couldn't resolve",
    "name resolution",
    "getaddrinfo",
    "enotfound",
    "eacces",
    "eperm",
    "socket",
    "network",
];

/// Commands of the shell whose failure has nothing to do with files or the network.
const INNER_COMMANDS: &[&str] = &["false", "true", "exit", "return", "test", "[", "[[", ":"];

/// Words of failures that have another cause than a refusal, in lower case. Words such as `error` are not among them,
/// because programs also report the failure of what they started.
const OTHER_FAILURE_WORDS: &[&str] = &[
    "no such file",
    "not found",
    "is a directory",
    "not a directory",
    "file exists",
    "already exists",
    "no space left",
    "timed out",
    "syntax error",
    "syntaxerror",
    "traceback",
    "panicked at",
    "assertion",
    "undefined reference",
    "unrecognized option",
    "invalid option",
    "usage:",
];

/// Keywords that end a compound command, whose last command is before them.
const CLOSING_KEYWORDS: &[&str] = &["done", "fi", "esac", "}"];

/// Programs that start others, which a command line need not name.
const LAUNCHERS: &[&str] = &[
    ".", "source", "sh", "bash", "dash", "zsh", "env", "xargs", "make", "npm", "npx", "yarn", "pnpm",
    "cargo", "go", "node", "python", "python3", "ruby", "perl",
];

/// What a refused access had to do with the end of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefusalRole {
    /// The command failed because of it, or still runs.
    Cause,
    /// The last thing that the command reported, perhaps about a program that it went on after.
    PossibleCause,
    /// The command succeeded without it.
    Harmless,
    /// The command failed, and nothing shows that this was the reason.
    Unrelated,
}

/// The role of a refusal, by how the command ended and what it wrote.
pub(super) fn refusal_role(
    denial: &SandboxDenial,
    exit: Option<ProcessExit>,
    command: &str,
    output: &str,
) -> RefusalRole {
    match exit {
        None => RefusalRole::Cause,
        Some(ProcessExit::Code(0)) => RefusalRole::Harmless,
        Some(_) if ends_with_inner_command(command) || is_before_last_command(denial, command) => {
            RefusalRole::Unrelated
        }
        Some(_) if output.trim().is_empty() && names_program(command, &denial.program) => RefusalRole::Cause,
        Some(_) if mentions_refusal(denial, output) => match names_denial(failing_command(command), denial) {
            true => RefusalRole::Cause,
            false => RefusalRole::PossibleCause,
        },
        Some(_) => RefusalRole::Unrelated,
    }
}

/// Whether a line at the end of the output speaks of the refusal, and none after it of another failure.
fn mentions_refusal(denial: &SandboxDenial, output: &str) -> bool {
    let mut start = output.len().saturating_sub(MAX_SEARCHED_BYTES);
    while !output.is_char_boundary(start) {
        start += 1;
    }
    let end = output.get(start..).unwrap_or_default();
    let says = |line: &str, words: &[&str]| words.iter().any(|word| line.to_lowercase().contains(word));
    let name = target_name(denial);
    let is_mention = |line: &str| match denial.access {
        SandboxAccess::Internet | SandboxAccess::Connect | SandboxAccess::Listen => says(line, NETWORK_WORDS),
        SandboxAccess::UnixSocket
        | SandboxAccess::Write
        | SandboxAccess::WriteProtected
        | SandboxAccess::Metadata
        | SandboxAccess::Read
        | SandboxAccess::ReadHidden
        | SandboxAccess::Execute => !name.is_empty() && line.contains(name) && says(line, FILE_WORDS),
    };
    let mut from_end = end.lines().rev();
    from_end.find(|line| is_mention(line) || says(line, OTHER_FAILURE_WORDS)).is_some_and(is_mention)
}

/// The last part of the path that was refused.
fn target_name(denial: &SandboxDenial) -> &str {
    denial.target.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}

/// Whether a command names the program that was refused something, or what it was refused.
fn names_denial(command: &str, denial: &SandboxDenial) -> bool {
    let name = target_name(denial);
    names_program(command, &denial.program) || (!name.is_empty() && command.contains(name))
}

/// The command whose failure is that of the line: the last one, or the whole line if that cannot be told.
fn failing_command(command: &str) -> &str {
    let is_closing =
        |last: &str| last.split_whitespace().next().is_some_and(|word| CLOSING_KEYWORDS.contains(&word));
    let last =
        split_last_command(command).map(|(_, last)| last).filter(|last| is_simple(last) && !is_closing(last));
    last.filter(|_| !stops_at_failure(command)).unwrap_or(command)
}

/// Whether the shell stops at the first command that fails.
fn stops_at_failure(command: &str) -> bool {
    ["set -e", "errexit", "bash -e", "sh -e"].iter().any(|text| command.contains(text))
}

/// Whether only commands before the last one have to do with the refusal: the shell went on, and the last one failed.
fn is_before_last_command(denial: &SandboxDenial, command: &str) -> bool {
    let Some((before, last)) = split_last_command(command) else { return false };
    let word = last.split_whitespace().next().unwrap_or_default();
    let may_start_others = word.contains('/') || LAUNCHERS.contains(&word);
    // The whole line, if it is not known which of its commands failed.
    let is_last = failing_command(command) == last;
    is_last && !may_start_others && !names_denial(last, denial) && names_denial(before, denial)
}

/// The last command of a line, and what is before it.
fn split_last_command(command: &str) -> Option<(&str, &str)> {
    let command = command.trim_end_matches([';', '\n', ' ']);
    command.rsplit_once([';', '\n']).map(|(before, last)| (before, last.trim()))
}

/// Whether a text is one command without quotes, pipes and the like: a `;` before it is no part of a text in quotes.
fn is_simple(command: &str) -> bool {
    !command.contains(['&', '|', '(', ')', '<', '>', '$', '`', '\'', '"', '{', '}'])
}

/// Whether the command line names the program that was refused something.
fn names_program(command: &str, program: &str) -> bool {
    !program.is_empty() && command.contains(program)
}

/// Whether the last command of the line can fail for reasons of its own only.
fn ends_with_inner_command(command: &str) -> bool {
    let last = split_last_command(command).map_or(command.trim(), |(_, last)| last);
    is_simple(last) && last.split_whitespace().next().is_some_and(|word| INNER_COMMANDS.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_the_cause_only_of_a_failure_that_speaks_of_it() {
        let write = |target: &str| SandboxDenial {
            access: SandboxAccess::Write,
            target: target.to_owned(),
            program: "touch".to_owned(),
        };
        let said = "touch: cannot touch '/etc/x': Permission denied\n";
        for (exit, command, output, role) in [
            (Some(ProcessExit::Code(0)), "touch /etc/x", said, RefusalRole::Harmless),
            (None, "touch /etc/x", said, RefusalRole::Cause),
            (Some(ProcessExit::Code(1)), "touch /etc/x", said, RefusalRole::Cause),
            (Some(ProcessExit::Code(1)), "touch /etc/x", "", RefusalRole::Cause),
            (Some(ProcessExit::Code(2)), "make", "", RefusalRole::Unrelated),
            (Some(ProcessExit::Code(1)), "touch /etc/x; false", said, RefusalRole::Unrelated),
            (Some(ProcessExit::Code(3)), "touch /etc/x\nexit 3", said, RefusalRole::Unrelated),
            (Some(ProcessExit::Code(1)), "touch /etc/x || exit 1", said, RefusalRole::Cause),
            (
                Some(ProcessExit::Code(1)),
                "make",
                "make: x: No such file or directory\n",
                RefusalRole::Unrelated,
            ),
            (Some(ProcessExit::Code(1)), "make", "y: Permission denied\n", RefusalRole::Unrelated),
            (Some(ProcessExit::Signal(9)), "make", said, RefusalRole::PossibleCause),
        ] {
            assert_eq!(refusal_role(&write("/etc/x"), exit, command, output), role, "{command}: {output}");
        }
        let went_on = format!("{said}cat: missing: No such file or directory\n");
        let wrapped = format!("{said}make: *** [Makefile:2: all] Error 1\n");
        for (command, output, role) in [
            ("touch /etc/x; cat missing", &went_on, RefusalRole::Unrelated),
            ("touch /etc/x\ncat missing\n", &went_on, RefusalRole::Unrelated),
            ("touch /etc/x; grep -q a b", &said.to_owned(), RefusalRole::Unrelated),
            ("echo a > /etc/x; grep -q a b", &said.to_owned(), RefusalRole::Unrelated),
            ("touch /etc/x || cat missing", &went_on, RefusalRole::Unrelated),
            ("./build.sh", &went_on, RefusalRole::Unrelated),
            ("./build.sh", &said.to_owned(), RefusalRole::PossibleCause),
            ("make", &wrapped, RefusalRole::PossibleCause),
            ("cat missing; touch /etc/x", &format!("cat: missing: No such file\n{said}"), RefusalRole::Cause),
            ("set -e; touch /etc/x; cat b", &said.to_owned(), RefusalRole::Cause),
            ("for f in a x; do touch /etc/$f; done", &said.to_owned(), RefusalRole::Cause),
            ("python3 -c 'import os; touch(\"/etc/x\")'", &said.to_owned(), RefusalRole::Cause),
            ("cd a; ./build.sh", &said.to_owned(), RefusalRole::PossibleCause),
            ("touch b; sh build.sh", &said.to_owned(), RefusalRole::PossibleCause),
        ] {
            let exit = Some(ProcessExit::Code(1));
            assert_eq!(refusal_role(&write("/etc/x"), exit, command, output), role, "{command}: {output}");
        }
        let long = format!("{said}{}", "ä".repeat(MAX_SEARCHED_BYTES));
        let unrelated = refusal_role(&write("/etc/x"), Some(ProcessExit::Code(1)), "make", &long);
        assert_eq!(unrelated, RefusalRole::Unrelated, "long before the end");
    }
}
