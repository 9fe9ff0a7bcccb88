//! Programs whose arguments are a language of their own, or whose harmlessness no list of options can tell.

mod awk;
mod find;
mod jq;
mod managers;
mod pack;
mod sed;
mod small;
mod xargs;

pub(super) use find::{payloads as find_payloads, starts as starting_points_of_find};
pub(super) use small::{printed_variables, read_names};
pub(super) use xargs::{XargsUse, parse as parse_xargs};

use super::expand::Arg;
use super::table::Use;

/// Judges a use of one of these programs; `None` if the program is none of them.
pub(super) fn judge(program: &str, args: &[Arg]) -> Option<Use> {
    Some(match program {
        "sed" | "gsed" => sed::judge(args),
        "awk" | "gawk" | "mawk" | "nawk" => awk::judge(args),
        "find" | "gfind" => find::judge(args),
        "jq" => jq::judge(args),
        "tar" | "gtar" | "bsdtar" => pack::tar(args),
        "unzip" => pack::unzip(args),
        "gzip" | "bzip2" | "xz" | "zstd" => pack::gzip(args),
        "echo" => small::echo(args),
        "printf" => small::printf(args),
        "test" | "[" => small::test(program, args),
        "date" => small::date(args),
        "ps" => small::ps(args),
        "xxd" => small::xxd(args),
        "cd" => small::cd(args),
        "pip" | "pip3" => managers::pip(args),
        "cargo" => managers::cargo(args)?,
        "go" => managers::go(args)?,
        "npm" => managers::npm(args)?,
        "man" => managers::man(args),
        _ => return None,
    })
}

/// Whether a sed script changes files in place, and which.
pub(super) fn sed_in_place(args: &[Arg]) -> Option<sed::InPlace> {
    sed::in_place(args)
}

/// Steps over a bracket expression whose `[` was just read; `None` if programs disagree on where it ends.
fn bracket(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, delimiter: char) -> Option<()> {
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
