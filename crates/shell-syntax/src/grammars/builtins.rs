//! `echo`, `printf` and `cd`, the programs that print variables, and uses of `tee` and `tput` that only print.
//!
//! The arguments of `echo` and `printf` are text, so that their values select nothing; what matters is whether they
//! contain a secret, which [`VariableTracker::is_printable`] decides.
//!
//! [`VariableTracker::is_printable`]: crate::variable_tracker::VariableTracker::is_printable

use crate::option_tables::ProgramUse;
use crate::shell_arg::ShellArg;
use crate::working_dirs::is_null_or_stream_device;
use toolgate_proto::PathScope;

/// A use whose arguments are only printed or compared.
pub(super) fn text_only_use() -> ProgramUse {
    ProgramUse { read_only: true, text: true, ..ProgramUse::default() }
}

/// Judges a builtin; `None` if it is none of this file. `echo` prints whatever its arguments are.
pub(super) fn judge_builtin(program: &str, args: &[ShellArg]) -> Option<ProgramUse> {
    match program {
        "echo" => Some(text_only_use()),
        "printf" => Some(judge_printf(args)),
        "cd" => Some(judge_cd(args)),
        _ => None,
    }
}

/// Judges `printf`, which prints unless `-v` makes it set a variable, whose subscript it would evaluate.
fn judge_printf(args: &[ShellArg]) -> ProgramUse {
    match args.split_first() {
        Some((first, _)) if !first.may_be_option() => text_only_use(),
        Some((first, rest))
            if first.known() == Some("--") && rest.first().is_some_and(|format| format.live.is_none()) =>
        {
            text_only_use()
        }
        Some(_) => ProgramUse { hazard: true, unknown: true, text: true, ..ProgramUse::default() },
        None => ProgramUse::default(),
    }
}

/// Judges `cd`, which only changes where the rest of the line runs. The visitor tracks that directory.
fn judge_cd(args: &[ShellArg]) -> ProgramUse {
    let operands: Vec<&ShellArg> =
        args.iter().skip_while(|arg| matches!(arg.text.as_str(), "-L" | "-P" | "--")).collect();
    match operands.as_slice() {
        [] => ProgramUse { read_only: true, ..ProgramUse::default() },
        [directory] if directory.live.is_none() && directory.text != "-" => ProgramUse {
            read_only: !directory.text.starts_with('-'),
            reads: vec![((*directory).clone(), PathScope::Entry)],
            ..ProgramUse::default()
        },
        _ => ProgramUse { unknown: true, ..ProgramUse::default() },
    }
}

/// Judges `tee` without a file: to the null device or one of its own streams it writes nothing. `None` for any other use,
/// whose files are in `edits`.
pub(super) fn judge_tee(args: &[ShellArg]) -> Option<ProgramUse> {
    let is_harmless = |arg: &ShellArg| {
        arg.known()
            .is_some_and(|text| matches!(text, "-a" | "-i" | "--append") || is_null_or_stream_device(text))
    };
    args.iter().all(is_harmless).then(text_only_use)
}

/// Judges `tput` with the name of a capability that is a number or a text. `init` and `reset` may run a program that the
/// description of the terminal names, and change the terminal.
pub(super) fn judge_tput(args: &[ShellArg]) -> Option<ProgramUse> {
    let words: Vec<&str> = args.iter().map(ShellArg::known).collect::<Option<_>>()?;
    let harmless = match words.as_slice() {
        ["cols" | "lines" | "colors" | "bold" | "sgr0" | "smul" | "rmul" | "rev"] => true,
        ["setaf" | "setab", color] => color.bytes().all(|byte| byte.is_ascii_digit()),
        _ => false,
    };
    harmless.then(text_only_use)
}

/// The variables whose values `printenv` or `declare -p` prints; `None` if it is used in another way.
pub(crate) fn printed_variables<'a>(program: &str, args: &'a [ShellArg]) -> Option<Vec<&'a str>> {
    let names = match (program, args.split_first()) {
        ("printenv", Some(_)) => args,
        ("declare" | "typeset", Some((option, names))) if option.known() == Some("-p") => names,
        _ => return None,
    };
    let plain = |name: &&str| {
        !name.is_empty()
            && name.chars().all(|character| character == '_' || character.is_ascii_alphanumeric())
    };
    let names: Option<Vec<&str>> = names.iter().map(|name| name.known().filter(plain)).collect();
    names.filter(|names| !names.is_empty())
}
