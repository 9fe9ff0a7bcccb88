//! `awk`: which programs only print.
//!
//! Not a parser: a program passes if it holds no word or sign with which awk can run, write or read anything else,
//! and if no slash in it is open to two readings.

use super::super::expand::Arg;
use super::super::table::Use;
use toolgate_proto::Scope;

/// Judges the arguments.
pub(super) fn judge(args: &[Arg]) -> Use {
    let mut used = Use { read_only: true, ..Use::default() };
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
            used.reads.push((arg.clone(), Scope::Entry));
        }
    }
    let harmless = program.and_then(Arg::known).is_none_or(is_harmless)
        && program.is_none_or(|program| program.live.is_none());
    used.read_only &= harmless;
    used.hazard |= !harmless;
    used
}

/// Words after which a slash begins a pattern.
const KEYWORDS: &[&str] = &[
    "print", "printf", "return", "in", "else", "do", "case", "delete", "exit", "next", "nextfile", "if",
    "while", "for", "func", "function", "BEGIN", "END",
];

/// Whether a program only prints.
pub(super) fn is_harmless(program: &str) -> bool {
    // Looked for everywhere, in strings and patterns too: what looks like a string may not be one.
    let forbidden = ["getline", "ENVIRON", "PROCINFO", "@", "\\\n", "/inet"];
    let calls_system = program.match_indices("system").any(|(at, word)| {
        program.get(at + word.len()..).is_some_and(|rest| rest.trim_start().starts_with('('))
    });
    if calls_system || forbidden.iter().any(|word| program.contains(word)) {
        return false;
    }
    let mut rest = program.chars().peekable();
    let (mut braces, mut parentheses) = (0_usize, 0_usize);
    // The last character that matters: it tells division from a pattern.
    let mut before = '{';
    let mut word = String::new();
    let mut blank = false;
    while let Some(character) = rest.next() {
        match character {
            '"' => {
                loop {
                    match rest.next() {
                        Some('\\') => {
                            rest.next();
                        }
                        Some('"') => break,
                        Some('\n') | None => return false,
                        Some(_) => {}
                    }
                }
                before = 'a';
                continue;
            }
            '/' if before == ')' || before == ']' => return false,
            // After a keyword a pattern follows, after any other word a division.
            '/' if KEYWORDS.contains(&word.as_str()) => return false,
            '/' if !(before.is_alphanumeric() || matches!(before, '_' | '$')) => {
                loop {
                    match rest.next() {
                        Some('\\') => {
                            rest.next();
                        }
                        Some('[') => {
                            if super::bracket(&mut rest, '/').is_none() {
                                return false;
                            }
                        }
                        Some('/') => break,
                        Some('\n') | None => return false,
                        Some(_) => {}
                    }
                }
                before = 'a';
                continue;
            }
            '#' => {
                while rest.next_if(|next| *next != '\n').is_some() {}
                continue;
            }
            '{' => braces += 1,
            '}' => braces = braces.saturating_sub(1),
            '(' => parentheses += 1,
            ')' => parentheses = parentheses.saturating_sub(1),
            '|' if rest.next_if_eq(&'|').is_none() => return false,
            // In a statement it may be a redirect; in parentheses or in a pattern it compares.
            '>' if rest.next_if_eq(&'=').is_none()
                && (parentheses == 0 && braces > 0 || rest.peek() == Some(&'>')) =>
            {
                return false;
            }
            ' ' | '\t' => {
                blank = true;
                continue;
            }
            _ => {}
        }
        if character == '_' || character.is_alphanumeric() {
            if !(before == '_' || before.is_alphanumeric()) || blank {
                word.clear();
            }
            word.push(character);
        } else {
            word.clear();
        }
        blank = false;
        before = character;
    }
    true
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
        ] {
            check(program, false);
        }
    }
}
