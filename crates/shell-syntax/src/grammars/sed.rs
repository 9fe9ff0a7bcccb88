//! `sed`: which scripts only print.
//!
//! A script can write files (`w`, `W`, `s///w`), read them (`r`, `R`) and run programs (`e`, `s///e`), so that it is
//! harmless only if it can be parsed to its end and contains none of these.

use crate::option_tables::ProgramUse;
use crate::shell_arg::ShellArg;
use crate::word_list::WordList;
use std::iter::Peekable;
use std::slice::Iter;
use std::str::Chars;
use toolgate_proto::PathScope;

/// The arguments of `sed`.
#[derive(Default)]
struct SedCommandLine<'a> {
    /// The scripts, in order.
    scripts: Vec<ShellArg>,
    /// The files that are read.
    files: Vec<&'a ShellArg>,
    /// The files are changed (`-i`).
    in_place: bool,
    /// The suffix of the names of backup copies (`-i.bak`).
    backup: Option<String>,
    /// An option is not known.
    unknown: bool,
    /// An option gives the script, so that the first operand is a file.
    script_given: bool,
}

/// Long options without a value that change neither the script nor the files.
const FLAGS: WordList = WordList(
    "--quiet --silent --regexp-extended --separate --unbuffered --null-data --posix --sandbox --debug \
     --help --version",
);

impl<'a> SedCommandLine<'a> {
    /// Parses the arguments.
    fn parse(args: &'a [ShellArg]) -> Self {
        let mut line = Self::default();
        let mut operands = Vec::new();
        let mut options = true;
        let mut words = args.iter();
        while let Some(arg) = words.next() {
            if !options || !arg.may_be_option() {
                operands.push(arg);
            } else if arg.live.is_some() {
                line.unknown = true;
                operands.push(arg);
            } else if arg.text == "--" {
                options = false;
            } else if arg.text.starts_with("--") {
                line.parse_long_option(&arg.text, &mut words);
            } else {
                line.parse_cluster(&arg.text, &mut words);
            }
        }
        let mut operands = operands.into_iter();
        if !line.script_given {
            line.scripts.extend(operands.next().cloned());
        }
        line.files.extend(operands);
        line
    }

    /// Parses a long option.
    fn parse_long_option(&mut self, text: &str, words: &mut Iter<'_, ShellArg>) {
        if FLAGS.contains(text) {
            return;
        }
        if text == "--expression" {
            self.script_given = true;
            self.scripts.extend(words.next().cloned());
        } else if let Some(script) = text.strip_prefix("--expression=") {
            self.script_given = true;
            self.scripts.push(ShellArg::literal(script));
        } else if text == "--in-place" {
            self.in_place = true;
        } else if let Some(suffix) = text.strip_prefix("--in-place=") {
            self.in_place = true;
            self.backup = Some(suffix.to_owned());
        } else {
            self.unknown = true;
            self.script_given |= text.starts_with("--f") || text.starts_with("--e");
            self.in_place |= text.starts_with("--i");
        }
    }

    /// Parses a cluster of short options.
    fn parse_cluster(&mut self, text: &str, words: &mut Iter<'_, ShellArg>) {
        let mut cluster = text.chars().skip(1);
        while let Some(flag) = cluster.next() {
            match flag {
                'n' | 'E' | 'r' | 's' | 'u' | 'z' => continue,
                'i' => {
                    self.in_place = true;
                    self.backup = Some(cluster.collect()).filter(|suffix: &String| !suffix.is_empty());
                }
                'e' => {
                    self.script_given = true;
                    let attached: String = cluster.collect();
                    if attached.is_empty() {
                        self.scripts.extend(words.next().cloned());
                    } else {
                        self.scripts.push(ShellArg::literal(attached));
                    }
                }
                _ => {
                    self.unknown = true;
                    self.script_given |= flag == 'f';
                }
            }
            return;
        }
    }
}

/// Judges the arguments of `sed`.
pub(super) fn judge_sed(args: &[ShellArg]) -> ProgramUse {
    let line = SedCommandLine::parse(args);
    let text: Option<Vec<&str>> = line.scripts.iter().map(|script| script.known()).collect();
    let harmless = !line.unknown && text.is_some_and(|scripts| is_harmless(&scripts.join("\n")));
    ProgramUse {
        read_only: harmless && !line.in_place,
        hazard: !harmless,
        reads: line.files.into_iter().map(|file| (file.clone(), PathScope::Entry)).collect(),
        ..ProgramUse::default()
    }
}

/// What `sed -i` writes.
pub(crate) struct SedInPlaceEdit {
    /// The files that are changed.
    pub(crate) files: Vec<ShellArg>,
    /// The files beside them: backup copies, and in each directory the temporary file that is renamed to the new one.
    pub(crate) beside: Vec<ShellArg>,
    /// It writes nothing else.
    pub(crate) complete: bool,
}

/// The files that `sed -i` writes; `None` without `-i`.
pub(super) fn parse_in_place(args: &[ShellArg]) -> Option<SedInPlaceEdit> {
    let line = SedCommandLine::parse(args);
    if !line.in_place {
        return None;
    }
    let mut out = SedInPlaceEdit {
        files: line.files.iter().map(|file| (*file).clone()).collect(),
        beside: Vec::new(),
        complete: true,
    };
    let backup = line.backup.unwrap_or_default();
    // In a suffix, `*` stands for the name of the file, and `/` puts the copy into another directory.
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
/// It is parsed command by command; anything that is not recognised makes it harmful.
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

/// What follows a command of a script.
enum SedParseStep {
    /// There may be another command.
    More,
    /// The script has ended.
    End,
}

/// Skips one command with its addresses; `None` if it is not harmless or not recognised.
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
        'b' | 't' | 'T' | ':' => skip_label(rest),
        's' => {
            let delimiter = skip_delimiter(rest)?;
            skip_delimited(rest, delimiter, SedDelimitedPart::Pattern)?;
            skip_delimited(rest, delimiter, SedDelimitedPart::Replacement)?;
            while rest
                .next_if(|flag| matches!(flag, 'g' | 'p' | 'i' | 'I' | 'm' | 'M') || flag.is_ascii_digit())
                .is_some()
            {}
            skip_command_end(rest)
        }
        'y' => {
            let delimiter = skip_delimiter(rest)?;
            skip_delimited(rest, delimiter, SedDelimitedPart::Replacement)?;
            skip_delimited(rest, delimiter, SedDelimitedPart::Replacement)?;
            skip_command_end(rest)
        }
        'a' | 'i' | 'c' => Some(skip_text(rest)),
        '#' => {
            while rest.next_if(|character| *character != '\n').is_some() {}
            Some(SedParseStep::More)
        }
        _ => None,
    }
}

/// Skips a label, and the end of its command; `None` if implementations may disagree on where it ends.
///
/// `}` and `#` belong to the label in some of them, which end it at a blank, at `;` or at the end of the line.
fn skip_label(rest: &mut Peekable<Chars<'_>>) -> Option<SedParseStep> {
    skip_blanks(rest);
    while rest.next_if(|character| character.is_ascii_alphanumeric() || *character == '_').is_some() {}
    let closed = rest.next_if_eq(&'}').is_some();
    while rest.next_if_eq(&'}').is_some() {}
    match rest.peek() {
        None => Some(SedParseStep::End),
        Some(';' | '\n') => Some(SedParseStep::More),
        Some(' ' | '\t') if !closed => skip_command_end(rest),
        Some(_) => None,
    }
}

/// Skips the text of `a`, `i` and `c`, which ends with the line, unless a backslash continues it.
fn skip_text(rest: &mut Peekable<Chars<'_>>) -> SedParseStep {
    loop {
        match rest.next() {
            Some('\\') => {
                rest.next();
            }
            Some('\n') => return SedParseStep::More,
            Some(_) => {}
            None => return SedParseStep::End,
        }
    }
}

/// Skips the delimiter of `s` or `y`; `None` if implementations may disagree on it.
fn skip_delimiter(rest: &mut Peekable<Chars<'_>>) -> Option<char> {
    rest.next().filter(|delimiter| !delimiter.is_alphanumeric() && !matches!(delimiter, '\\' | '\n' | ' '))
}

/// Skips blanks.
fn skip_blanks(rest: &mut Peekable<Chars<'_>>) {
    while rest.next_if(|character| matches!(character, ' ' | '\t')).is_some() {}
}

/// Skips a number.
fn skip_digits(rest: &mut Peekable<Chars<'_>>) {
    while rest.next_if(char::is_ascii_digit).is_some() {}
}

/// Skips blanks up to the end of a command; `None` if something else follows.
fn skip_command_end(rest: &mut Peekable<Chars<'_>>) -> Option<SedParseStep> {
    skip_blanks(rest);
    match rest.peek() {
        None => Some(SedParseStep::End),
        Some(';' | '\n' | '}' | '#') => Some(SedParseStep::More),
        Some(_) => None,
    }
}

/// Skips an address, if there is one.
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

/// What is between two delimiters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SedDelimitedPart {
    /// A regular expression.
    Pattern,
    /// A replacement, or one side of `y`.
    Replacement,
}

/// Skips the text up to and including the next delimiter. Implementations disagree on one inside a bracket expression,
/// so that it is refused there.
///
/// A newline is refused as well, unless a backslash precedes it: whether it ends the part differs between implementations.
fn skip_delimited(rest: &mut Peekable<Chars<'_>>, delimiter: char, part: SedDelimitedPart) -> Option<()> {
    loop {
        match rest.next()? {
            '\\' => {
                rest.next()?;
            }
            character if character == delimiter => return Some(()),
            '[' if part == SedDelimitedPart::Pattern => super::skip_bracket_expression(rest, delimiter)?,
            '\n' => return None,
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
            "/x/{s/a/b/;b};p",
            "/x/{s/a/b/;bend}",
            "b end # w x",
            "s/a/b\\\nc/",
        ] {
            check(script, true);
        }
    }

    #[test]
    fn scripts_that_write_read_or_run_are_harmful() {
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
            "b}#R w.env;}",
            "b# w x",
            "bx} w x",
            "b } w x",
            ":a}w x",
            "s/a/b\nw x/",
            "y/a/\nw x/",
        ] {
            check(script, false);
        }
    }
}
