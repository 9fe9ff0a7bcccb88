//! `date`: prints the time, or sets the clock.
//!
//! An operand that begins with `+` is a format. Any other operand, and `-s`, sets the clock of the system, so that an
//! operand whose first character is unknown is not read-only.

use super::builtins::text_only_use;
use crate::analysis::ShellExpansionKind;
use crate::option_tables::ProgramUse;
use crate::shell_arg::ShellArg;
use toolgate_proto::PathScope;

/// Judges `date`, which prints the time, unless an operand that is no format sets the clock.
pub(super) fn judge_date(args: &[ShellArg]) -> ProgramUse {
    let mut used = text_only_use();
    let mut words = args.iter();
    while let Some(arg) = words.next() {
        match arg.known() {
            Some(
                "-u" | "--utc" | "--universal" | "-R" | "--rfc-email" | "--debug" | "--help" | "--version",
            ) => {}
            Some("-d" | "--date") => used.read_only &= words.next().is_some_and(|value| !value.splits),
            Some("-r" | "--reference") => {
                let file = words.next();
                used.read_only &= file.is_some_and(|file| !file.splits);
                used.reads.extend(file.map(|file| (file.clone(), PathScope::Entry)));
            }
            Some(text) if text.starts_with('+') || text.starts_with("-I") || text.starts_with("-d") => {}
            Some(text)
                if ["--date=", "--iso-8601", "--rfc-3339="].iter().any(|option| text.starts_with(option)) => {
            }
            Some(text) => {
                used.read_only = false;
                used.hazard |= text.starts_with("-s") || text.starts_with("--s");
            }
            None => {
                used.read_only &= arg.emptied().starts_with('+')
                    && !arg.splits
                    && arg.live != Some(ShellExpansionKind::Glob)
            }
        }
    }
    used
}
