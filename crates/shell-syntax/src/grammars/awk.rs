//! `awk`: which programs only print.
//!
//! Not a parser: a program passes if it holds no word or sign with which awk can run, write or read anything else,
//! and if no slash in it is open to two readings.

use super::super::expand::ShellArg;
use super::super::option_tables::ProgramUse;
use std::iter::Peekable;
use std::str::Chars;
use toolgate_proto::PathScope;

/// Judges the arguments.
pub(super) fn judge(args: &[ShellArg]) -> ProgramUse {
    let mut used = ProgramUse { read_only: true, ..ProgramUse::default() };
    let mut program = None;
    let mut options = true;
    let mut words = args.iter();
    while let Some(arg) = words.next() {
        if options && program.is_none() && arg.may_be_option() {
            match arg.known() {
                Some("--") => options = false,
                Some("-F" | "-v" | "--field-separator" | "--assign") => match words.next() {
                    Some(value) if !value.splits => {}
                    Some(_) | None => used.read_only = false,
                },
                Some(text)
                    if text.starts_with("-F")
                        || text.starts_with("-v")
                        || text.starts_with("--field-separator=") => {}
                Some("--version" | "--help") => {}
                Some(_) | None => {
                    used.read_only = false;
                    used.hazard = true;
                }
            }
            continue;
        }
        if program.is_none() {
            program = Some(arg);
            continue;
        }
        let assigns = arg.known().is_some_and(|text| {
            text.split_once('=').is_some_and(|(name, _)| {
                name.chars().all(|character| character == '_' || character.is_ascii_alphanumeric())
            })
        });
        // A variable can be set between files; nothing is read then.
        if !assigns {
            used.reads.push((arg.clone(), PathScope::Entry));
        }
    }
    let harmless = program.and_then(ShellArg::known).is_none_or(is_harmless)
        && program.is_none_or(|program| program.live.is_none());
    used.read_only &= harmless;
    used.hazard |= !harmless;
    used
}

/// Words after which a slash may begin a pattern: what is no variable is followed by an expression, or by nothing.
const KEYWORDS: &[&str] = &[
    "print",
    "printf",
    "return",
    "in",
    "else",
    "do",
    "case",
    "delete",
    "exit",
    "next",
    "nextfile",
    "if",
    "while",
    "for",
    "func",
    "function",
    "BEGIN",
    "END",
    "BEGINFILE",
    "ENDFILE",
    "default",
    "switch",
    "break",
    "continue",
    "length",
    "getline",
];

/// How many readings of one program are tried.
const MAX_PARSES: usize = 64;

/// Whether a program only prints.
///
/// Whether a slash divides or begins a pattern depends on the grammar, and programs differ. Where it is open, both
/// readings are followed, and each has to be harmless; a reading that comes to no end is no program at all.
pub(super) fn is_harmless(program: &str) -> bool {
    // Looked for everywhere, in strings and patterns too: what looks like a string may not be one.
    let forbidden = [
        "getline", "ENVIRON", "PROCINFO", "ARGV", "ARGC", "SYMTAB", "FUNCTAB", "@", "\\\n", "/inet", "/dev/",
    ];
    let calls_system = program.match_indices("system").any(|(at, word)| {
        program.get(at + word.len()..).is_some_and(|rest| rest.trim_start().starts_with('('))
    });
    if calls_system || forbidden.iter().any(|word| program.contains(word)) {
        return false;
    }
    let mut readings = vec![AwkParseState {
        rest: program.chars().peekable(),
        braces: 0,
        parentheses: 0,
        before: '{',
        doubled: false,
        word: String::new(),
        blank: false,
    }];
    let mut tried = 0;
    while let Some(reading) = readings.pop() {
        tried += 1;
        if tried > MAX_PARSES || !reading.read_to_end(&mut readings) {
            return false;
        }
    }
    true
}

/// One way to read a program, from some place on.
#[derive(Clone)]
struct AwkParseState<'a> {
    rest: Peekable<Chars<'a>>,
    braces: usize,
    parentheses: usize,
    /// The last character that matters: it tells division from a pattern.
    before: char,
    /// It stood twice in a row (`++`, `--`).
    doubled: bool,
    word: String,
    blank: bool,
}

/// What a slash is.
enum AwkSlashMeaning {
    Divides,
    Begins,
    Either,
}

impl<'a> AwkParseState<'a> {
    fn classify_slash(&self) -> AwkSlashMeaning {
        let incremented = matches!(self.before, '+' | '-') && self.doubled;
        if matches!(self.before, ')' | ']' | '$') || incremented || KEYWORDS.contains(&self.word.as_str()) {
            AwkSlashMeaning::Either
        } else if self.before == '_' || self.before.is_alphanumeric() {
            AwkSlashMeaning::Divides
        } else {
            AwkSlashMeaning::Begins
        }
    }

    /// Steps over a pattern whose slash was just read; `Some(false)` if it has no end.
    fn skip_pattern(&mut self) -> Option<bool> {
        loop {
            match self.rest.next() {
                Some('\\') => {
                    self.rest.next();
                }
                Some('[') => super::skip_bracket_expression(&mut self.rest, '/')?,
                Some('/') => break,
                Some('\n') | None => return Some(false),
                Some(_) => {}
            }
        }
        (self.before, self.doubled, self.blank) = ('a', false, false);
        self.word.clear();
        Some(true)
    }

    /// Reads to the end and tells whether all was harmless; other readings are left for later.
    fn read_to_end(mut self, others: &mut Vec<AwkParseState<'a>>) -> bool {
        while let Some(character) = self.rest.next() {
            match character {
                '"' => {
                    loop {
                        match self.rest.next() {
                            Some('\\') => {
                                self.rest.next();
                            }
                            Some('"') => break,
                            Some('\n') | None => return false,
                            Some(_) => {}
                        }
                    }
                    (self.before, self.doubled, self.blank) = ('a', false, false);
                    self.word.clear();
                    continue;
                }
                '/' => match self.classify_slash() {
                    AwkSlashMeaning::Divides => {}
                    AwkSlashMeaning::Begins => match self.skip_pattern() {
                        Some(true) => continue,
                        Some(false) | None => return false,
                    },
                    AwkSlashMeaning::Either => {
                        let mut other = self.clone();
                        match other.skip_pattern() {
                            Some(true) => others.push(other),
                            // Without an end it can only be a division.
                            Some(false) => {}
                            None => return false,
                        }
                    }
                },
                '#' => {
                    while self.rest.next_if(|next| *next != '\n').is_some() {}
                    continue;
                }
                '{' => self.braces += 1,
                '}' => self.braces = self.braces.saturating_sub(1),
                '(' => self.parentheses += 1,
                ')' => self.parentheses = self.parentheses.saturating_sub(1),
                '|' if self.rest.next_if_eq(&'|').is_none() => return false,
                // In a statement it may be a redirect; in parentheses or in a pattern it compares.
                '>' if self.rest.next_if_eq(&'=').is_none()
                    && (self.parentheses == 0 && self.braces > 0 || self.rest.peek() == Some(&'>')) =>
                {
                    return false;
                }
                ' ' | '\t' => {
                    self.blank = true;
                    continue;
                }
                _ => {}
            }
            if character == '_' || character.is_alphanumeric() {
                if !(self.before == '_' || self.before.is_alphanumeric()) || self.blank {
                    self.word.clear();
                }
                self.word.push(character);
            } else {
                self.word.clear();
            }
            self.doubled = character == self.before && !self.blank;
            self.blank = false;
            self.before = character;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(program: &str, harmless: bool) {
        assert_eq!(is_harmless(program), harmless, "{program:?}");
    }

    #[test]
    fn programs_that_print_are_harmless() {
        for program in [
            "{print $1}",
            "{print $1, $NF}",
            "NR==1",
            "/foo/ {print}",
            "$3 > 5 {print $1}",
            "{sum += $1} END {print sum/NR}",
            "/a|b/",
            "BEGIN{FS=\":\"} {print $2}",
            "{ if ($1 > 2 || $2 >= 3) print \"x > y | z\" }",
            "!seen[$0]++",
            "{printf \"%s\\n\", $1}",
            "length($0) > 80",
            "{gsub(/x/, \"y\"); print}",
            "$1 ~ /[0-9]+/",
            "NR>=10 && NR<=20",
            "END{print NR}",
            "{print ($1+$2)/2}",
            "{print ($1+$2)/2, $3/4}",
            "{a[$1]+=$2} END{for (k in a) print k, a[k]/NR}",
            "{n++; s+=$1} END{print s/n}",
            "{print $1/$2}",
            "{print length($0)/2}",
            "{x=$1; x++ ; print x}",
        ] {
            check(program, true);
        }
    }

    #[test]
    fn programs_that_write_or_run_are_not() {
        for program in [
            "{print | \"sh\"}",
            "BEGIN{\"date\" | getline x}",
            "BEGIN{system(\"ls\")}",
            "{print > \"out\"}",
            "{print >> \"out\"}",
            "{print >\"out\"}",
            "@include \"x\"",
            "{print |& \"x\"}",
            "BEGIN{print ENVIRON[\"A\"]}",
            "{if (x) /\"/ ; print | \"sh\" \"/ }",
            "{getline < \"x\"}",
            "{print $1 > $2}",
            "BEGIN { while ((\"ls\" | getline l) > 0) print l }",
            "{ a = \"x\" ; print a > a }",
            "{print\"a\">\"b\"}",
            "{x = (1) /\"/ ; print > \"y\" #\"/}",
            "$1 >> 2",
            "/[]/]/ {print > \"x\"}",
            "BEGIN{printf \"x\" > \"o\"}",
            "BEGIN { x++ / 1; print \"touch p\" | \"sh\"; y / 1 }",
            "BEGIN { x-- / 1; print \"touch p\" | \"sh\"; y / 1 }",
            "BEGIN { (x) / 1; print > \"y\"; y / 1 }",
            "BEGIN { $/ 1; print > \"y\"; y / 1 }",
            "BEGIN { length / 1; print > \"y\"; y / 1 }",
            "BEGIN{ARGV[1]=\"/etc/passwd\";ARGC=2}{print}",
            "BEGIN{SYMTAB[\"AR\" \"GV\"]}",
            "{print > \"/dev/stderr\"}",
        ] {
            check(program, false);
        }
    }
}
