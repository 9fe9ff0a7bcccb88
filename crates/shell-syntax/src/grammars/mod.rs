//! Programs whose arguments are a language of their own, or whose harmlessness no list of options can tell.

mod archives;
mod awk;
mod find;
mod jq;
mod package_managers;
mod sed;
mod small_programs;
mod xargs;

pub(super) use find::{payloads as find_payloads, starting_points as starting_points_of_find};
pub(super) use small_programs::{printed_variables, read_builtin_names};
pub(super) use xargs::{XargsUse, parse as parse_xargs};

use super::expand::ShellArg;
use super::option_tables::ProgramUse;

/// Judges a use of one of these programs; `None` if the program is none of them.
pub(super) fn judge(program: &str, args: &[ShellArg]) -> Option<ProgramUse> {
    Some(match program {
        "sed" | "gsed" => sed::judge(args),
        "awk" | "gawk" | "mawk" | "nawk" => awk::judge(args),
        "find" | "gfind" => find::judge(args),
        "jq" => jq::judge(args),
        "tar" | "gtar" | "bsdtar" => archives::judge_tar(args),
        "unzip" => archives::judge_unzip(args),
        "gzip" | "bzip2" | "xz" | "zstd" => archives::judge_gzip(args),
        "echo" => small_programs::judge_echo(args),
        "printf" => small_programs::judge_printf(args),
        "test" | "[" => small_programs::judge_test(program, args),
        "date" => small_programs::judge_date(args),
        "ps" => small_programs::judge_ps(args),
        "xxd" => small_programs::judge_xxd(args),
        "cd" => small_programs::judge_cd(args),
        "pip" | "pip3" => package_managers::judge_pip(args),
        "cargo" => package_managers::judge_cargo(args)?,
        "go" => package_managers::judge_go(args)?,
        "npm" => package_managers::judge_npm(args)?,
        "man" => package_managers::judge_man(args),
        _ => return None,
    })
}

/// Whether a sed script changes files in place, and which.
pub(super) fn sed_in_place(args: &[ShellArg]) -> Option<sed::SedInPlaceEdit> {
    sed::parse_in_place(args)
}

/// Steps over a bracket expression whose `[` was just read; `None` if programs disagree on where it ends.
fn skip_bracket_expression(
    rest: &mut std::iter::Peekable<std::str::Chars<'_>>,
    delimiter: char,
) -> Option<()> {
    rest.next_if_eq(&'^');
    if rest.peek() == Some(&']') {
        return None;
    }
    loop {
        match rest.next()? {
            ']' => return Some(()),
            '\n' | '"' => return None,
            character if character == delimiter => return None,
            '\\' => {
                rest.next()
                    .filter(|next| *next != delimiter && !matches!(next, ']' | '[' | '\\' | '\n' | '"'))?;
            }
            '[' if matches!(rest.peek(), Some(':' | '.' | '=')) => {
                let colon = rest.next()?;
                while rest.next_if(char::is_ascii_alphabetic).is_some() {}
                rest.next_if_eq(&colon)?;
                rest.next_if_eq(&']')?;
            }
            _ => {}
        }
    }
}
