//! A recogniser of the plain subset of bash, where what is written is what runs.
//!
//! It shares no code with the parser in [`super::parser`], and it knows far less: a line that it takes has no
//! construct about which two readers could disagree.

/// Words that are not commands where a command may begin, and builtins that assign or evaluate.
const NOT_COMMANDS: &[&str] = &[
    "!",
    "[[",
    "]]",
    "case",
    "coproc",
    "do",
    "done",
    "elif",
    "else",
    "esac",
    "fi",
    "for",
    "function",
    "if",
    "in",
    "select",
    "then",
    "time",
    "until",
    "while",
    ".",
    "alias",
    "builtin",
    "command",
    "declare",
    "enable",
    "eval",
    "exec",
    "export",
    "getopts",
    "let",
    "local",
    "mapfile",
    "read",
    "readarray",
    "readonly",
    "set",
    "shopt",
    "source",
    "trap",
    "typeset",
    "unset",
];

/// What is known of the word that is being read.
#[derive(Default)]
struct PlainWord {
    /// Its value.
    text: String,
    /// It has begun, if only with an empty quote.
    begun: bool,
    /// A part of it is quoted.
    quoted: bool,
    /// It has an unquoted `*`, `?` or `[`.
    glob: bool,
}

/// What the next word is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PlainWordRole {
    Command,
    Argument,
    /// The name after `<`.
    Input,
}

/// Whether a line uses only literal words, quotes, pipes, lists, simple globs, input from literal names, and the
/// redirects `2>&1`, `>/dev/null` and `2>/dev/null`.
pub(super) fn is_plain(text: &str) -> bool {
    recognise(text).is_some()
}

fn recognise(text: &str) -> Option<()> {
    let mut rest = text;
    let mut word = PlainWord::default();
    let mut role = PlainWordRole::Command;
    while let Some(character) = rest.chars().next() {
        if !word.begun && character == '#' {
            rest = rest.find('\n').and_then(|end| rest.get(end..)).unwrap_or_default();
            continue;
        }
        if let Some(after) = take_output_redirect(rest, &word) {
            word.end_word(&mut role)?;
            rest = after;
            continue;
        }
        let after = rest.get(character.len_utf8()..)?;
        match character {
            ' ' | '\t' => word.end_word(&mut role)?,
            '\n' | ';' | '|' | '&' => {
                word.end_word(&mut role)?;
                let double = after.starts_with(character);
                // `;;`, `|&` and `&` alone are more than a list.
                let plain = match character {
                    '\n' => true,
                    ';' => !double && !after.starts_with('&'),
                    '|' => !after.starts_with('&'),
                    _ => double,
                };
                if !plain || role == PlainWordRole::Input {
                    return None;
                }
                role = PlainWordRole::Command;
                rest = if double && character != '\n' { after.get(1..)? } else { after };
                continue;
            }
            '<' => {
                let digits = word.begun && word.text.bytes().all(|byte| byte.is_ascii_digit());
                if digits || after.starts_with(['<', '>', '&', '(']) {
                    return None;
                }
                word.end_word(&mut role)?;
                // A command that begins with a redirect is read otherwise than it looks.
                if role != PlainWordRole::Argument {
                    return None;
                }
                role = PlainWordRole::Input;
            }
            '\'' => {
                let end = after.find('\'')?;
                word.quote(after.get(..end)?);
                rest = after.get(end + 1..)?;
                continue;
            }
            '"' => {
                let end = after.find(['"', '$', '`', '\\'])?;
                if !after.get(end..)?.starts_with('"') {
                    return None;
                }
                word.quote(after.get(..end)?);
                rest = after.get(end + 1..)?;
                continue;
            }
            '\\' => {
                let escaped = after.chars().next().filter(|escaped| *escaped != '\n')?;
                word.quote(escaped.encode_utf8(&mut [0; 4]));
                rest = after.get(escaped.len_utf8()..)?;
                continue;
            }
            // `{}` stands for itself.
            '{' if after.starts_with('}') => {
                word.push("{}");
                rest = after.get(1..)?;
                continue;
            }
            '$' | '`' | '(' | ')' | '{' | '}' | '>' => return None,
            '~' if !word.begun || word.text.ends_with(['=', ':']) => return None,
            '*' | '?' | '[' => {
                word.glob = true;
                word.push(character.encode_utf8(&mut [0; 4]));
            }
            _ => word.push(character.encode_utf8(&mut [0; 4])),
        }
        rest = after;
    }
    word.end_word(&mut role)?;
    (role != PlainWordRole::Input).then_some(())
}

/// What follows `2>&1`, `>/dev/null` or `2>/dev/null`, if one of them is next and stands by itself.
fn take_output_redirect<'t>(rest: &'t str, word: &PlainWord) -> Option<&'t str> {
    if word.begun && word.text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let after = if let Some(after) = rest.strip_prefix("2>&1").filter(|_| !word.begun) {
        after
    } else {
        let open = match rest.strip_prefix("2>").filter(|_| !word.begun) {
            Some(open) => open,
            None => rest.strip_prefix('>')?,
        };
        open.trim_start_matches([' ', '\t']).strip_prefix("/dev/null")?
    };
    (after.is_empty() || after.starts_with([' ', '\t', '\n', ';', '|'])).then_some(after)
}

impl PlainWord {
    fn push(&mut self, text: &str) {
        self.begun = true;
        self.text.push_str(text);
    }

    fn quote(&mut self, text: &str) {
        self.push(text);
        self.quoted = true;
    }

    /// Ends the word, if one has begun; `None` if it makes the line more than plain.
    fn end_word(&mut self, role: &mut PlainWordRole) -> Option<()> {
        let word = std::mem::take(self);
        if !word.begun {
            return Some(());
        }
        match role {
            PlainWordRole::Command => {
                let assigns = word.text.contains('=') || word.text.contains('[') && word.text != "[";
                if assigns || word.glob && word.text != "[" || NOT_COMMANDS.contains(&word.text.as_str()) {
                    return None;
                }
            }
            PlainWordRole::Input if word.glob || word.text.is_empty() => return None,
            PlainWordRole::Input | PlainWordRole::Argument => {}
        }
        // More braces than a `{}` are expanded.
        if word.text.contains("{}") && !word.quoted && word.text.contains([',']) {
            return None;
        }
        *role = PlainWordRole::Argument;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::is_plain;

    #[test]
    fn words_pipes_lists_and_globs_are_plain() {
        for text in [
            "",
            "ls -la",
            "cat 'a b' \"c d\" e\\ f | sort -u | head -n 5",
            "cd src && ls; pwd || echo no\ngit status # as it is",
            "grep -rn 'foo$' src/*.rs 2>/dev/null",
            "make 2>&1 | tail",
            "wc -l <a.txt >/dev/null",
            "wc -l < 'a b.txt' > /dev/null;ls",
            "find . -name '*.rs' -exec wc -l {} +",
            "git diff HEAD~1",
            "[ -f a ] && echo yes",
            "ls [a-c]?.txt",
        ] {
            assert!(is_plain(text), "{text:?}");
        }
    }

    #[test]
    fn whatever_else_bash_has_is_not_plain() {
        for text in [
            "echo $x",
            "echo \"$x\"",
            "echo $(a)",
            "echo `a`",
            "echo \"`a`\"",
            "cat <(a)",
            "x=1",
            "x=1 ls",
            "x[0]=1 ls",
            "a >f",
            "a >>f",
            "a 2>f",
            "a &>f",
            "a >/dev/null2",
            "a >/dev/null/x",
            "a 3>/dev/null",
            "a 12>/dev/null",
            "a <<E\nE",
            "a <<<b",
            "a <>f",
            "a 3<f",
            "a <&3",
            "a < *",
            "a <",
            "< f a",
            "a < $x",
            "(a)",
            "{ a; }",
            "if a; then b; fi",
            "! a",
            "time a",
            "[[ a ]]",
            "((1))",
            "f() { a; }",
            "for x in a; do b; done",
            "case a in a) b;; esac",
            "a & b",
            "a &",
            "a |& b",
            "a ;; b",
            "echo {a,b}",
            "echo {1..3}",
            "echo ~",
            "a x=~/b",
            "ec\\\nho a",
            "$'a'",
            "echo $\"a\"",
            "echo 'a",
            "echo \"a",
            "echo a\\",
            "export a=b",
            "eval a",
            "* a",
            "\"i\"f",
            "echo \"a\\$b\"",
        ] {
            assert!(!is_plain(text), "{text:?}");
        }
    }
}
