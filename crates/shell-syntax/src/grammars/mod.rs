//! Programs whose arguments no option table describes: they contain a language of their own (`sed`, `awk`, `jq`,
//! `find`), or what they do depends on the combination of their arguments. One file per program or family.

mod archives;
mod awk;
mod builtins;
mod date;
mod find;
mod jq;
mod man;
mod package_managers;
mod ps;
mod read;
mod sed;
mod test;
mod xargs;
mod xxd;

pub(super) use builtins::printed_variables;
pub(super) use find::{find_payloads, starting_points_of_find};
pub(super) use read::read_builtin_names;
pub(super) use test::is_file_test;
pub(super) use xargs::{XargsUse, parse_xargs};

use crate::option_tables::ProgramUse;
use crate::shell_arg::ShellArg;

/// Judges a use of one of these programs; `None` if the program is none of them, or if a question to a package manager
/// is not one of the known ones.
pub(super) fn judge(program: &str, args: &[ShellArg]) -> Option<ProgramUse> {
    Some(match program {
        "sed" | "gsed" => sed::judge_sed(args),
        "awk" | "gawk" | "mawk" | "nawk" => awk::judge_awk(args),
        "find" | "gfind" => find::judge_find(args),
        "jq" => jq::judge_jq(args),
        "tar" | "gtar" | "bsdtar" => archives::judge_tar(args),
        "unzip" => archives::judge_unzip(args),
        "gzip" | "bzip2" | "xz" | "zstd" | "gunzip" | "bunzip2" | "unxz" | "unzstd" => {
            archives::judge_gzip(args)
        }
        "tee" => builtins::judge_tee(args)?,
        "tput" => builtins::judge_tput(args)?,
        "test" | "[" => test::judge_test(program, args),
        "date" => date::judge_date(args),
        "ps" => ps::judge_ps(args),
        "xxd" => xxd::judge_xxd(args),
        "echo" | "printf" | "cd" => builtins::judge_builtin(program, args)?,
        "pip" | "pip3" | "cargo" | "go" | "npm" => package_managers::judge_package_manager(program, args)?,
        "man" => man::judge_man(args),
        _ => return None,
    })
}

/// The files that `sed -i` changes; `None` without `-i`.
pub(super) fn sed_in_place(args: &[ShellArg]) -> Option<sed::SedInPlaceEdit> {
    sed::parse_in_place(args)
}

/// Skips a bracket expression whose `[` was just read; `None` if implementations disagree on where it ends.
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
