//! Lists the program files that a command executes, for the rights of its sandbox.
//!
//! The sandbox permits a read-only line to execute these programs and no others. So the list has to contain every
//! wrapper and every program that a script of the system starts, and must not contain builtins: for those bash executes
//! no file, unless a wrapper such as `env` runs them.

use crate::command_part::base_name;
use crate::shell_arg::ShellArg;
use crate::word_list::WordList;
use crate::wrappers;

/// Builtins of bash: it executes no file for them, also if one of that name exists (`/bin/echo`).
const BUILTINS: WordList = WordList(
    ". : [ [[ alias bg bind break builtin caller cd command compgen complete compopt continue declare \
     dirs disown echo enable eval exec exit export false fc fg getopts hash help history jobs kill \
     let local logout mapfile popd printf pushd pwd read readarray readonly return set shift shopt \
     source suspend test times trap true type typeset ulimit umask unalias unset wait",
);

/// Programs that are shell scripts on common systems, or that start others by design, with the programs they start.
const STARTED_PROGRAMS: &[(&str, &[&str])] = &[
    ("egrep", &["grep"]),
    ("fgrep", &["grep"]),
    ("zcat", &["gzip"]),
    ("gunzip", &["gzip"]),
    ("zgrep", &["gzip", "grep", "sed", "cat", "rm", "mktemp", "expr", "egrep", "fgrep", "zcat"]),
    ("zdiff", &["gzip", "diff", "cmp", "rm", "mktemp", "sed", "expr", "cat"]),
    ("zcmp", &["gzip", "cmp", "diff", "rm", "mktemp", "sed", "expr", "cat"]),
    ("bzcat", &["bzip2"]),
    ("xzcat", &["xz"]),
    ("zstdcat", &["zstd"]),
];

/// The programs that running `args` executes, from the outermost wrapper to the command itself.
/// `inner` is what is left of `args` after transparent wrappers. `by_wrapper`: a wrapper before `args` executes them.
///
/// `exec` replaces the shell, so that the builtin behind it is a program file, as behind any other wrapper.
pub(crate) fn list_executed_programs(args: &[ShellArg], inner: &[ShellArg], by_wrapper: bool) -> Vec<String> {
    let mut programs: Vec<String> = Vec::new();
    let mut by_wrapper = by_wrapper;
    let mut rest = args;
    while let Some((word, after)) = rest.split_first() {
        // A name that is not known before it runs cannot be listed; no rule covers such a part.
        let Some(program) = word.known() else { break };
        let name = base_name(program);
        let builtin = !by_wrapper && BUILTINS.contains(program);
        if !builtin {
            add_program(&mut programs, program);
            for started in
                STARTED_PROGRAMS.iter().filter(|(script, _)| *script == name).flat_map(|(_, names)| *names)
            {
                add_program(&mut programs, started);
            }
        }
        // `xargs` without a command runs `echo`.
        if name == "xargs"
            && !matches!(wrappers::wrapper_payload(name, after), Some(wrappers::WrapperPayload::Words(_)))
        {
            add_program(&mut programs, "echo");
        }
        if rest.len() <= inner.len() {
            break;
        }
        by_wrapper |= !builtin || name == "exec";
        let skip = wrappers::skip_transparent_wrapper(name, after).unwrap_or(0);
        rest = after.get(skip..).unwrap_or_default();
    }
    programs
}

/// Adds a name, unless it is listed already.
fn add_program(programs: &mut Vec<String>, name: &str) {
    if !programs.iter().any(|program| program == name) {
        programs.push(name.to_owned());
    }
}
