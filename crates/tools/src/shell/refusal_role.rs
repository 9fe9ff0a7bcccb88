//! Whether an access that the sandbox refused made a command fail.
//!
//! Programs try much that they do not need: a cache that they cannot write, a socket that nothing answers on.
//! A refusal is taken for the cause only if the command failed and said so itself: the last part of its output names what
//! was refused, or it failed and printed nothing.
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

/// What a refused access had to do with the end of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefusalRole {
    /// The command failed because of it, or still runs.
    Cause,
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
        Some(_) if ends_with_inner_command(command) => RefusalRole::Unrelated,
        Some(_) if output.trim().is_empty() && names_program(command, &denial.program) => RefusalRole::Cause,
        Some(_) if mentions_refusal(denial, output) => RefusalRole::Cause,
        Some(_) => RefusalRole::Unrelated,
    }
}

/// Whether a line at the end of the output speaks of the refusal.
fn mentions_refusal(denial: &SandboxDenial, output: &str) -> bool {
    let mut start = output.len().saturating_sub(MAX_SEARCHED_BYTES);
    while !output.is_char_boundary(start) {
        start += 1;
    }
    let end = output.get(start..).unwrap_or_default();
    let says = |line: &str, words: &[&str]| words.iter().any(|word| line.to_lowercase().contains(word));
    match denial.access {
        SandboxAccess::Internet | SandboxAccess::Connect | SandboxAccess::Listen => {
            end.lines().any(|line| says(line, NETWORK_WORDS))
        }
        SandboxAccess::UnixSocket
        | SandboxAccess::Write
        | SandboxAccess::WriteProtected
        | SandboxAccess::Metadata
        | SandboxAccess::Read
        | SandboxAccess::ReadHidden
        | SandboxAccess::Execute => {
            let name = denial.target.trim_end_matches('/').rsplit('/').next().unwrap_or_default();
            end.lines().any(|line| !name.is_empty() && line.contains(name) && says(line, FILE_WORDS))
        }
    }
}

/// Whether the command line names the program that was refused something.
fn names_program(command: &str, program: &str) -> bool {
    !program.is_empty() && command.contains(program)
}

/// Whether the last command of the line can fail for reasons of its own only.
fn ends_with_inner_command(command: &str) -> bool {
    let last = command.rsplit([';', '\n']).map(str::trim).find(|part| !part.is_empty()).unwrap_or_default();
    let is_simple = !last.contains(['&', '|', '(', ')', '<', '>', '$', '`', '\'', '"', '{', '}']);
    is_simple && last.split_whitespace().next().is_some_and(|word| INNER_COMMANDS.contains(&word))
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
            (Some(ProcessExit::Signal(9)), "make", said, RefusalRole::Cause),
        ] {
            assert_eq!(refusal_role(&write("/etc/x"), exit, command, output), role, "{command}: {output}");
        }
        let long = format!("{said}{}", "ä".repeat(MAX_SEARCHED_BYTES));
        let unrelated = refusal_role(&write("/etc/x"), Some(ProcessExit::Code(1)), "make", &long);
        assert_eq!(unrelated, RefusalRole::Unrelated, "long before the end");
    }
}
