//! `awk`: which programs only print.
//!
//! This is no parser of the language: a program passes if it contains no word or operator with which awk can run a
//! program, or write or read another file, in any way that a slash in it may be read.

use crate::option_tables::ProgramUse;
use crate::shell_arg::ShellArg;
use crate::word_list::WordList;
use std::iter::Peekable;
use std::str::Chars;
use toolgate_proto::PathScope;

/// Judges the arguments of `awk`.
///
/// A program that is read from a file, or that an expansion makes, is not harmless.
pub(super) fn judge_awk(args: &[ShellArg]) -> ProgramUse {
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
        // `name=value` among the files sets a variable; `=x` and `1=x` are files.
        let assigns = arg.known().and_then(|text| text.split_once('=')).is_some_and(|(name, _)| {
            name.starts_with(|first: char| first == '_' || first.is_ascii_alphabetic())
                && name.chars().all(|character| character == '_' || character.is_ascii_alphanumeric())
        });
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

/// Reserved words: a slash after one of them may begin a pattern, because no variable has that name.
const KEYWORDS: WordList = WordList(
    "print printf return in else do case delete exit next nextfile if while for func function BEGIN \
     END BEGINFILE ENDFILE default switch break continue length getline",
);

/// How many readings of one program are tried: every ambiguous slash doubles them.
const MAX_PARSES: usize = 64;

/// Whether a program only prints.
///
/// Whether a slash divides or begins a pattern depends on the grammar, and implementations differ. Where it is
/// ambiguous, both readings are tried, and each has to be harmless; a reading in which a pattern has no end is no
/// valid program.
pub(super) fn is_harmless(program: &str) -> bool {
    // Searched in strings and patterns too: what looks like a string in one reading may be code in another.
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

/// One reading of a program, from some position on.
#[derive(Clone)]
struct AwkParseState<'a> {
    /// The characters that have not been read.
    rest: Peekable<Chars<'a>>,
    /// How many braces are open: outside of them is a pattern, inside are statements.
    braces: usize,
    /// How many parentheses are open: inside them `>` compares.
    parentheses: usize,
    /// The last character that is no blank, which tells a division from a pattern.
    before: char,
    /// That character came twice in a row (`++`, `--`).
    doubled: bool,
    /// The word that ends with that character.
    word: String,
    /// A blank follows that character.
    blank: bool,
}

/// What a slash means.
enum AwkSlashMeaning {
    /// It divides.
    Divides,
    /// It begins a pattern.
    Begins,
    /// Implementations may differ.
    Either,
}

impl<'a> AwkParseState<'a> {
    /// What a slash at this position means.
    fn classify_slash(&self) -> AwkSlashMeaning {
        match self.before {
            '+' | '-' if self.doubled => AwkSlashMeaning::Either,
            // Some implementations continue an expression in parentheses on the next line.
            '\n' if self.parentheses > 0 => AwkSlashMeaning::Either,
            '{' | '}' | '(' | '[' | ',' | ';' | '!' | '~' | '&' | '|' | '=' | '<' | '>' | '?' | ':' | '+'
            | '-' | '*' | '/' | '%' | '^' | '\n' => AwkSlashMeaning::Begins,
            '"' => AwkSlashMeaning::Divides,
            before if is_word_character(before) && !self.has_read_keyword() => AwkSlashMeaning::Divides,
            // Among them `)`, `]`, `$`, the end of a pattern and characters that have no meaning.
            _ => AwkSlashMeaning::Either,
        }
    }

    /// Skips a pattern whose slash was just read. `Some(false)` if it has no end, `None` if implementations disagree on
    /// where it ends.
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
        // Some implementations read a slash after a pattern as the start of another one.
        self.note_character(')');
        Some(true)
    }

    /// Skips a string whose quote was just read; returns whether it has an end.
    fn skip_string(&mut self) -> bool {
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
        self.note_character('"');
        true
    }

    /// Notes a character that is no blank.
    fn note_character(&mut self, character: char) {
        if is_word_character(character) {
            if !is_word_character(self.before) || self.blank {
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

    /// The name in the word before this position. In a word with a number it is not known where the name begins:
    /// `0in` is `0 in`.
    fn is_name(&self, wanted: impl Fn(&str) -> bool) -> bool {
        let has_number =
            self.word.starts_with(|first: char| first.is_ascii_digit()) || self.word.contains('.');
        if has_number {
            self.word.char_indices().any(|(at, _)| self.word.get(at..).is_some_and(&wanted))
        } else {
            wanted(&self.word)
        }
    }

    /// A reserved word stands before this position.
    fn has_read_keyword(&self) -> bool {
        self.is_name(|name| KEYWORDS.contains(name))
    }

    /// The word `system` has just ended. Without parentheses it runs the input as commands in some implementations.
    fn has_read_system(&self) -> bool {
        self.is_name(|name| name == "system") && !self.rest.clone().next().is_some_and(is_word_character)
    }

    /// The word `print` or `printf` has just ended inside parentheses. gawk accepts a statement in `for (…)`, where `>`
    /// writes a file; no other use of these words in parentheses is valid.
    fn has_read_print_in_parentheses(&self) -> bool {
        self.parentheses > 0
            && self.is_name(|name| matches!(name, "print" | "printf"))
            && !self.rest.clone().next().is_some_and(is_word_character)
    }

    /// Reads to the end; returns whether everything is harmless. Other readings are added to `others`.
    fn read_to_end(mut self, others: &mut Vec<AwkParseState<'a>>) -> bool {
        while let Some(character) = self.rest.next() {
            match character {
                '"' => {
                    if !self.skip_string() {
                        return false;
                    }
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
                            // A pattern without an end can only be a division.
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
                // In a statement `>` may be a redirect; in parentheses or in a pattern it compares.
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
            self.note_character(character);
            if self.has_read_system() || self.has_read_print_in_parentheses() {
                return false;
            }
        }
        true
    }
}

/// A character of names and numbers.
fn is_word_character(character: char) -> bool {
    matches!(character, '_' | '.') || character.is_ascii_alphanumeric()
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
            "{print $1*1.5/2, 1./3}",
            "/system/ {print system_time, $1}",
            "BEGIN{FS=\",\"}\n/a|b/ {print}",
        ] {
            check(program, true);
        }
    }

    #[test]
    fn programs_that_write_or_run_are_harmful() {
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
            "BEGIN { x = 1./2; print \"touch p\" | \"sh\"; y = 3/1 }",
            "BEGIN { x = 1. / 2; print > \"y\"; y = 3/1 }",
            "BEGIN { x = (1\n/ 2); print > \"y\"; y = (3\n/1) }",
            "{system}",
            "BEGIN{for(print \"x\" > \"out\";0;);}",
            "BEGIN{for(;i++<1;print \"x\" > \"out\");}",
            "BEGIN{for(;i++<1;printf \"x\" > \"out\");}",
            "BEGIN{for(i=0;i++<1;print\"x\">\"out\");}",
            "{ x = system; print x }",
            "{ x = 1 system }",
            "{ x = 1system }",
            "{ x = 1.e3system }",
            "/x/ /y/ { print > \"y\" } z/1",
            "BEGIN { if (1in/,x/) y; print length > \"o\"; print /a/ }",
            "BEGIN { if (x.1in/,x/) y; print length > \"o\"; print /a/ }",
        ] {
            check(program, false);
        }
    }
}
