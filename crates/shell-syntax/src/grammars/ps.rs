//! `ps`: lists processes.
//!
//! It accepts three syntaxes of options at once (`-ef`, `aux`, `--sort`). Only letters whose meaning is known are
//! accepted, because `ps e` and the format `environ` print the environment of other processes, in which secrets are
//! common. Where one cluster has a letter that only the BSD syntax knows, `ps` reads all of them in that syntax, in which
//! `-e` is `e`.

use super::builtins::text_only_use;
use crate::option_tables::ProgramUse;
use crate::shell_arg::ShellArg;

/// Judges `ps`, which lists processes, unless its arguments ask for their environments.
pub(super) fn judge_ps(args: &[ShellArg]) -> ProgramUse {
    let mut used = text_only_use();
    let has_letter = |wanted: char| {
        args.iter()
            .filter_map(ShellArg::known)
            .any(|text| text.starts_with('-') && !text.starts_with("--") && text.contains(wanted))
    };
    used.read_only = !(has_letter('x') && has_letter('e'));
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
                Some(cluster) => cluster.chars().all(|flag| "AaefFlHjLNTMcwdxy".contains(flag)),
                None => text.chars().all(|flag| "auxwflhsvjTrn".contains(flag) || flag.is_ascii_digit()),
            },
        };
        used.read_only &= harmless;
    }
    used
}
