//! `ps`: lists processes.
//!
//! It accepts three syntaxes of options at once (`-ef`, `aux`, `--sort`). Only letters whose meaning is known are
//! accepted, because `ps e` and the format `environ` print the environment of other processes, in which secrets are
//! common.
//!
//! Letters after a dash that are no valid set in the first syntax are read in the second one, together with all other
//! arguments: `-ex` prints environments, because `-x` exists only there.

use super::builtins::text_only_use;
use crate::option_tables::ProgramUse;
use crate::shell_arg::ShellArg;

/// Judges `ps`, which lists processes, unless its arguments ask for their environments.
pub(super) fn judge_ps(args: &[ShellArg]) -> ProgramUse {
    let mut used = text_only_use();
    let mut letters = String::new();
    let mut is_other_syntax = false;
    let mut words = args.iter();
    while let Some(arg) = words.next() {
        let Some(text) = arg.known() else {
            used.read_only = false;
            continue;
        };
        let harmless = match text {
            "-o" | "-O" | "o" | "O" | "-p" | "-u" | "-U" | "-C" | "-g" | "-G" | "-t" | "--sort"
            | "--ppid" | "--pid" | "--user" | "-eo" | "-Ao" | "axo" | "-axo" | "--format" => {
                words.next().and_then(ShellArg::known).is_some_and(|value| !value.contains("env"))
            }
            "--forest" | "--no-headers" | "--headers" | "--help" | "--version" => true,
            _ if text.starts_with("--sort=") || text.starts_with("--ppid=") || text.starts_with("--pid=") => {
                true
            }
            _ if text.starts_with("--") => false,
            _ => match text.strip_prefix('-') {
                // `-aux` is `aux`, or the processes of a user whose name is the rest.
                Some(cluster) if cluster.contains('u') => {
                    is_other_syntax = true;
                    cluster.chars().all(|flag| "auxwf".contains(flag))
                }
                Some(cluster) => cluster.chars().all(|flag| "AaefFlHjLNTMcwdxy".contains(flag)),
                None => text.chars().all(|flag| "auxwflhsvjTrn".contains(flag) || flag.is_ascii_digit()),
            },
        };
        letters.extend(text.strip_prefix('-').filter(|cluster| !cluster.starts_with('-')));
        used.read_only &= harmless;
    }
    is_other_syntax |= letters.contains(['x', 'T', 'M']);
    used.read_only &= !(is_other_syntax && letters.contains('e'));
    used
}
