//! `man`: prints a manual page.
//!
//! A page that is named without a slash comes from the manual directories of the system. With a slash it would be a
//! file
//! of the project, whose macros the formatter would run; `-P`, `-H` and others name a program to start.

use super::package_managers::{are_all_allowed, known_words};
use crate::option_tables::ProgramUse;
use crate::shell_arg::ShellArg;

/// Judges `man` with the name of a page. Programs of the system format it, and without a terminal no pager starts.
pub(super) fn judge_man(args: &[ShellArg]) -> ProgramUse {
    let harmless = known_words(args).is_some_and(|words| {
        let (options, names): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with('-'));
        !names.is_empty()
            && are_all_allowed(
                &options,
                &["-w", "--where", "--path", "-k", "--apropos", "-f", "--whatis", "-a", "--all"],
                &[],
                false,
            )
            && names.iter().all(|name| {
                // With a slash it would be a file that `man` formats.
                name.chars().all(|character| character.is_alphanumeric() || "_.-+:[@".contains(character))
            })
    });
    if !harmless {
        return ProgramUse { hazard: true, ..ProgramUse::default() };
    }
    ProgramUse {
        read_only: true,
        text: true,
        helpers: &[
            "cat", "groff", "nroff", "troff", "grotty", "preconv", "tbl", "eqn", "col", "gzip", "iconv",
            "locale", "apropos", "whatis", "sh",
        ],
        looks_in: &[
            "/usr/share/man",
            "/usr/local/share/man",
            "/usr/local/man",
            "/var/cache/man",
            "/etc/manpath.config",
            "/etc/groff",
        ],
        ..ProgramUse::default()
    }
}
