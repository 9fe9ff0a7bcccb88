//! `sed`: which scripts only print.
//!
//! The script language can write files (`w`, `W`, `s///w`), read them (`r`, `R`) and run programs (`e`, `s///e`),
//! so a script counts as harmless only if it is read to its end and holds none of these.

use super::super::expand::ShellArg;
use super::super::option_tables::ProgramUse;
use std::iter::Peekable;
use std::str::Chars;
use toolgate_proto::PathScope;

#[derive(Default)]
struct SedCommandLine<'a> {
    scripts: Vec<ShellArg>,
    files: Vec<&'a ShellArg>,
    in_place: bool,
    /// What the names of the copies that are kept end with.
    backup: Option<String>,
    unknown: bool,
}

fn parse(args: &[ShellArg]) -> SedCommandLine<'_> {
    let mut line = SedCommandLine::default();
    let mut operands = Vec::new();
    let mut options = true;
    let mut given = false;
    let mut words = args.iter();
    while let Some(arg) = words.next() {
        if !options || !arg.may_be_option() {
            operands.push(arg);
            continue;
        }
        if arg.live.is_some() {
            line.unknown = true;
            operands.push(arg);
            continue;
        }
        match arg.text.as_str() {
            "--" => options = false,
            "--quiet" | "--silent" | "--regexp-extended" | "--separate" | "--unbuffered" | "--null-data"
            | "--posix" | "--sandbox" | "--debug" | "--help" | "--version" => {}
            "-e" | "--expression" => {
                given = true;
                line.scripts.extend(words.next().cloned());
            }
            "--in-place" => line.in_place = true,
            text if text.starts_with("--in-place=") => {
                line.in_place = true;
                line.backup = text.strip_prefix("--in-place=").map(str::to_owned);
            }
            text if text.starts_with("--expression=") => {
                given = true;
                line.scripts.extend(text.strip_prefix("--expression=").map(ShellArg::literal));
            }
            text if text.starts_with("--") => {
                line.unknown = true;
                given |= text.starts_with("--f") || text.starts_with("--e");
                line.in_place |= text.starts_with("--i");
            }
            text => {
                let mut cluster = text.chars().skip(1);
                while let Some(flag) = cluster.next() {
                    match flag {
                        'n' | 'E' | 'r' | 's' | 'u' | 'z' => {}
                        'i' => {
                            line.in_place = true;
                            let attached: String = cluster.collect();
                            line.backup = (!attached.is_empty()).then_some(attached);
                            break;
                        }
                        'e' => {
                            given = true;
                            let attached: String = cluster.collect();
                            if attached.is_empty() {
                                line.scripts.extend(words.next().cloned());
                            } else {
                                line.scripts.push(ShellArg::literal(attached));
                            }
                            break;
                        }
                        _ => {
                            line.unknown = true;
                            given |= flag == 'f';
                            break;
                        }
                    }
                }
            }
        }
    }
    let mut operands = operands.into_iter();
    if !given {
        line.scripts.extend(operands.next().cloned());
    }
    line.files.extend(operands);
    line
}

/// Judges the arguments.
pub(super) fn judge(args: &[ShellArg]) -> ProgramUse {
    let line = parse(args);
    let text: Option<Vec<&str>> = line.scripts.iter().map(|script| script.known()).collect();
    let harmless = !line.unknown && text.is_some_and(|scripts| is_harmless(&scripts.join("\n")));
    ProgramUse {
        read_only: harmless && !line.in_place,
        hazard: !harmless,
        reads: line.files.into_iter().map(|file| (file.clone(), PathScope::Entry)).collect(),
        ..ProgramUse::default()
    }
}

/// What `sed -i` writes, if all that happens is that.
pub(in super::super) struct SedInPlaceEdit {
    /// The files that are changed.
    pub(in super::super) files: Vec<ShellArg>,
    /// What beside them: the copies that are kept, and for each directory the temporary file that becomes the new one.
    pub(in super::super) beside: Vec<ShellArg>,
    /// Those are all.
    pub(in super::super) complete: bool,
}

pub(super) fn parse_in_place(args: &[ShellArg]) -> Option<SedInPlaceEdit> {
    let line = parse(args);
    if !line.in_place {
        return None;
    }
    let mut out = SedInPlaceEdit {
        files: line.files.iter().map(|file| (*file).clone()).collect(),
        beside: Vec::new(),
        complete: true,
    };
    let backup = line.backup.unwrap_or_default();
    // A `*` stands for the name, and a `/` puts the copy elsewhere.
    out.complete &= !backup.contains(['*', '/']);
    for file in line.files {
        let Some(text) = file.known() else {
            out.complete = false;
            continue;
        };
        let directory = text.rsplit_once('/').map_or(String::new(), |(directory, _)| format!("{directory}/"));
        out.beside.push(ShellArg::literal(format!("{directory}sedXXXXXX")));
        if !backup.is_empty() {
            out.beside.push(ShellArg::literal(format!("{text}{backup}")));
        }
    }
    Some(out)
}

/// Whether a script only prints.
pub(super) fn is_harmless(script: &str) -> bool {
    let mut rest = script.chars().peekable();
    loop {
        match skip_command(&mut rest) {
            Some(SedParseStep::More) => {}
            Some(SedParseStep::End) => return true,
            None => return false,
        }
    }
}

enum SedParseStep {
    More,
    End,
}

fn skip_command(rest: &mut Peekable<Chars<'_>>) -> Option<SedParseStep> {
    while rest.next_if(|character| character.is_whitespace() || *character == ';').is_some() {}
    if rest.peek().is_none() {
        return Some(SedParseStep::End);
    }
    skip_address(rest)?;
    skip_blanks(rest);
    if rest.next_if_eq(&',').is_some() {
        skip_blanks(rest);
        rest.next_if(|character| matches!(character, '+' | '~'));
        skip_address(rest)?;
        skip_blanks(rest);
    }
    while rest.next_if(|character| matches!(character, '!' | ' ')).is_some() {}
    match rest.next()? {
        '{' => Some(SedParseStep::More),
        '}' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | 'F' => {
            skip_command_end(rest)
        }
        'l' | 'q' | 'Q' => {
            skip_blanks(rest);
            skip_digits(rest);
            skip_command_end(rest)
        }
        'b' | 't' | 'T' | ':' => {
            skip_blanks(rest);
            while rest.next_if(|character| character.is_ascii_alphanumeric() || *character == '_').is_some() {
            }
            skip_command_end(rest)
        }
        's' => {
            let delimiter = rest.next().filter(|delimiter| {
                !delimiter.is_alphanumeric() && !matches!(delimiter, '\\' | '\n' | ' ')
            })?;
            skip_delimited(rest, delimiter, SedDelimitedPart::Pattern)?;
            skip_delimited(rest, delimiter, SedDelimitedPart::Replacement)?;
            while rest
                .next_if(|flag| matches!(flag, 'g' | 'p' | 'i' | 'I' | 'm' | 'M') || flag.is_ascii_digit())
                .is_some()
            {}
            skip_command_end(rest)
        }
        'y' => {
            let delimiter = rest.next().filter(|delimiter| {
                !delimiter.is_alphanumeric() && !matches!(delimiter, '\\' | '\n' | ' ')
            })?;
            skip_delimited(rest, delimiter, SedDelimitedPart::Replacement)?;
            skip_delimited(rest, delimiter, SedDelimitedPart::Replacement)?;
            skip_command_end(rest)
        }
        'a' | 'i' | 'c' => {
            // Text to the end of the line; a line that ends with a backslash goes on.
            loop {
                match rest.next() {
                    Some('\\') => {
                        rest.next();
                    }
                    Some('\n') => return Some(SedParseStep::More),
                    Some(_) => {}
                    None => return Some(SedParseStep::End),
                }
            }
        }
        '#' => {
            while rest.next_if(|character| *character != '\n').is_some() {}
            Some(SedParseStep::More)
        }
        _ => None,
    }
}

fn skip_blanks(rest: &mut Peekable<Chars<'_>>) {
    while rest.next_if(|character| matches!(character, ' ' | '\t')).is_some() {}
}

fn skip_digits(rest: &mut Peekable<Chars<'_>>) {
    while rest.next_if(char::is_ascii_digit).is_some() {}
}

fn skip_command_end(rest: &mut Peekable<Chars<'_>>) -> Option<SedParseStep> {
    skip_blanks(rest);
    match rest.peek() {
        None => Some(SedParseStep::End),
        Some(';' | '\n' | '}' | '#') => Some(SedParseStep::More),
        Some(_) => None,
    }
}

fn skip_address(rest: &mut Peekable<Chars<'_>>) -> Option<()> {
    match rest.peek() {
        Some('$') => {
            rest.next();
        }
        Some(digit) if digit.is_ascii_digit() => {
            skip_digits(rest);
            if rest.next_if_eq(&'~').is_some() {
                skip_digits(rest);
            }
        }
        Some('/') => {
            rest.next();
            skip_delimited(rest, '/', SedDelimitedPart::Pattern)?;
            while rest.next_if(|flag| matches!(flag, 'I' | 'M')).is_some() {}
        }
        Some('\\') => {
            rest.next();
            let delimiter =
                rest.next().filter(|delimiter| !delimiter.is_alphanumeric() && *delimiter != '\n')?;
            skip_delimited(rest, delimiter, SedDelimitedPart::Pattern)?;
            while rest.next_if(|flag| matches!(flag, 'I' | 'M')).is_some() {}
        }
        Some(_) | None => {}
    }
    Some(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SedDelimitedPart {
    Pattern,
    Replacement,
}

/// Reads to the next delimiter. Whether one between brackets counts differs between programs, so there may be none.
fn skip_delimited(rest: &mut Peekable<Chars<'_>>, delimiter: char, part: SedDelimitedPart) -> Option<()> {
    loop {
        match rest.next()? {
            '\\' => {
                rest.next()?;
            }
            character if character == delimiter => return Some(()),
            '[' if part == SedDelimitedPart::Pattern => super::skip_bracket_expression(rest, delimiter)?,
            '\n' if part == SedDelimitedPart::Pattern => return None,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(script: &str, harmless: bool) {
        assert_eq!(is_harmless(script), harmless, "{script:?}");
    }

    #[test]
    fn scripts_that_print_are_harmless() {
        for script in [
            "s/foo/bar/",
            "s/a/b/gI;p",
            "1,5p",
            "$p",
            "/x/,/y/d",
            "/w.*e/p",
            "s/write/e w/g",
            "s#a#b#2p",
            "1!G;h;$!d",
            "y/abc/xyz/",
            ":a;N;$!ba;s/\\n/ /g",
            "2q",
            "/x/{p;q}",
            "10,+3p",
            "0~4d",
            "a hello w x",
            "\\,x,p",
            "s/[0-9]+/N/g",
            "1{\np\n}",
            "# w x",
            "5,$ p",
            "s/a\\/b/c/",
            "s|a|w x|",
            "l 5",
            "=",
            "s/[[:space:]]*$//",
            "s/[^a-z]//g",
            "/[\\t ]x/p",
        ] {
            check(script, true);
        }
    }

    #[test]
    fn scripts_that_write_read_or_run_are_not() {
        for script in [
            "w x",
            "1w x",
            "s/a/b/w x",
            "s/a/b/gw x",
            "s/a/b/e",
            "s/a/b/ge",
            "1e date",
            "e",
            "r /etc/passwd",
            "R x",
            "W x",
            "$!N;W x",
            "/a/w x",
            "p;w x",
            "{w x\n}",
            "a\\\nx\nw y",
            "y/a/b/w",
            "s/a/b/;w x",
            "b x w y",
            "s/[/]/w x/",
            "v",
            "s/a/b",
            "1,5w x",
            "1!w x",
            "\\xaxw y",
            "s a b w ",
            "} w x",
            "s/[]/x/;#]/y/w out",
            "s/[[:alpha:]/]/a/w x/",
            "s/[\\]/]/a/w x",
        ] {
            check(script, false);
        }
    }
}
