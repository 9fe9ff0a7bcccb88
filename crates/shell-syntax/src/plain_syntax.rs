//! A recogniser of the plain subset of bash, where what is written is what runs.
//!
//! It shares no code with the parser in [`crate::parser`], and it knows far less: a line that it takes has no
//! construct about which two readers could disagree.

use crate::word_list::WordList;
/// Reserved words, and builtins that assign or evaluate: none of them may begin a plain command.
const NOT_COMMANDS: WordList = WordList(
    "! [[ ]] case coproc do done elif else esac fi for function if in select then time until while . \
     alias builtin command declare enable eval exec export getopts let local mapfile read readarray \
     readonly set shopt source trap typeset unset",
);

/// The word that is being read.
#[derive(Default)]
struct PlainWord {
    /// Its value so far.
    text: String,
    /// It has begun, perhaps with nothing but an empty quoted string.
    begun: bool,
    /// A part of it is quoted.
    quoted: bool,
    /// It has an unquoted `*`, `?` or `[`.
    glob: bool,
}

/// The role of the next word.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PlainWordRole {
    /// The name of a command.
    Command,
    /// An argument of a command.
    Argument,
    /// The file name after `<`.
    Input,
}

/// Whether a line uses only literal words, quotes, pipes, lists, simple globs, input from literal names, and the
/// redirects `2>&1`, `>/dev/null` and `2>/dev/null`.
///
/// Where the kernel does not enforce rights, only such lines are allowed as reading.
pub(crate) fn is_plain_syntax(text: &str) -> bool {
    PlainRecogniser::new(text).recognise().is_some()
}

/// Reads a line from left to right. Every method returns `None` where the line is not plain.
struct PlainRecogniser<'t> {
    /// The text that has not been read.
    rest: &'t str,
    /// The word that is being read.
    word: PlainWord,
    /// The role of that word.
    role: PlainWordRole,
}

impl<'t> PlainRecogniser<'t> {
    fn new(text: &'t str) -> Self {
        Self { rest: text, word: PlainWord::default(), role: PlainWordRole::Command }
    }

    /// Reads the whole line.
    fn recognise(mut self) -> Option<()> {
        while let Some(character) = self.rest.chars().next() {
            if !self.word.begun && character == '#' {
                self.rest = self.rest.find('\n').and_then(|end| self.rest.get(end..)).unwrap_or_default();
            } else if let Some(after) = take_output_redirect(self.rest, &self.word) {
                self.word.end_word(&mut self.role)?;
                self.rest = after;
            } else {
                let after = self.rest.get(character.len_utf8()..)?;
                self.rest = self.read_character(character, after)?;
            }
        }
        self.word.end_word(&mut self.role)?;
        (self.role != PlainWordRole::Input).then_some(())
    }

    /// Reads a character that `after` follows, and what belongs to it; returns the text behind.
    fn read_character(&mut self, character: char, after: &'t str) -> Option<&'t str> {
        match character {
            ' ' | '\t' => self.word.end_word(&mut self.role)?,
            '\n' | ';' | '|' | '&' => return self.read_list_operator(character, after),
            '<' => self.read_input_redirect(after)?,
            '\'' => {
                let end = after.find('\'')?;
                self.word.quote(after.get(..end)?);
                return after.get(end + 1..);
            }
            '"' => {
                let end = after.find(['"', '$', '`', '\\'])?;
                if !after.get(end..)?.starts_with('"') {
                    return None;
                }
                self.word.quote(after.get(..end)?);
                return after.get(end + 1..);
            }
            '\\' => {
                let escaped = after.chars().next().filter(|escaped| *escaped != '\n')?;
                self.word.quote(escaped.encode_utf8(&mut [0; 4]));
                return after.get(escaped.len_utf8()..);
            }
            // `{}` is literal.
            '{' if after.starts_with('}') => {
                self.word.push("{}");
                return after.get(1..);
            }
            '$' | '`' | '(' | ')' | '{' | '}' | '>' => return None,
            '~' if !self.word.begun || self.word.text.ends_with(['=', ':']) => return None,
            '*' | '?' | '[' => {
                self.word.glob = true;
                self.word.push(character.encode_utf8(&mut [0; 4]));
            }
            _ => self.word.push(character.encode_utf8(&mut [0; 4])),
        }
        Some(after)
    }

    /// Reads a newline, `;`, `|`, `||` or `&&`. The operators `;;`, `|&` and `&` are not plain.
    fn read_list_operator(&mut self, character: char, after: &'t str) -> Option<&'t str> {
        self.word.end_word(&mut self.role)?;
        let double = after.starts_with(character);
        let plain = match character {
            '\n' => true,
            ';' => !double && !after.starts_with('&'),
            '|' => !after.starts_with('&'),
            _ => double,
        };
        if !plain || self.role == PlainWordRole::Input {
            return None;
        }
        self.role = PlainWordRole::Command;
        if double && character != '\n' { after.get(1..) } else { Some(after) }
    }

    /// Reads `<` after a command. A command that begins with a redirect is not plain.
    fn read_input_redirect(&mut self, after: &str) -> Option<()> {
        let digits = self.word.begun && self.word.text.bytes().all(|byte| byte.is_ascii_digit());
        if digits || after.starts_with(['<', '>', '&', '(']) {
            return None;
        }
        self.word.end_word(&mut self.role)?;
        if self.role != PlainWordRole::Argument {
            return None;
        }
        self.role = PlainWordRole::Input;
        Some(())
    }
}

/// The text after `2>&1`, `>/dev/null` or `2>/dev/null`, if one of them is next and is followed by a separator.
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
    /// Adds unquoted text.
    fn push(&mut self, text: &str) {
        self.begun = true;
        self.text.push_str(text);
    }

    /// Adds quoted text.
    fn quote(&mut self, text: &str) {
        self.push(text);
        self.quoted = true;
    }

    /// Ends the word, if one has begun; `None` if it is not plain in its role.
    fn end_word(&mut self, role: &mut PlainWordRole) -> Option<()> {
        let word = std::mem::take(self);
        if !word.begun {
            return Some(());
        }
        match role {
            PlainWordRole::Command => {
                let assigns = word.text.contains('=') || word.text.contains('[') && word.text != "[";
                if assigns || word.glob && word.text != "[" || NOT_COMMANDS.contains(&word.text) {
                    return None;
                }
            }
            PlainWordRole::Input if word.glob || word.text.is_empty() => return None,
            PlainWordRole::Input | PlainWordRole::Argument => {}
        }
        // A brace with a comma would be expanded.
        if word.text.contains("{}") && !word.quoted && word.text.contains([',']) {
            return None;
        }
        *role = PlainWordRole::Argument;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::is_plain_syntax;

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
            assert!(is_plain_syntax(text), "{text:?}");
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
            assert!(!is_plain_syntax(text), "{text:?}");
        }
    }
}
