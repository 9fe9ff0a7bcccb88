//! The parser of bash: text in, [`BashProgram`] out, or a [`BashParseError`].
//!
//! It goes once from left to right, never back, so that its cost grows with the text and nothing else;
//! nesting is limited, so that no text can exhaust the stack.
//! It reads the part of bash that it is certain of. Whatever bash might read in another way (extended globs,
//! coprocesses, translated strings, single quotes inside `"${…}"`, …) is a fault and not a guess: to refuse what
//! bash accepts costs a question, to misread it would cost the boundary.

mod commands;
mod quotes;
mod words;

pub(super) use commands::is_name;

use super::analysis::DoubtKind;
use super::syntax::{BashProgram, HereDocumentBody};

/// How deep lists, quotes and expansions may be nested in one another, all counted together.
const MAX_NESTING_DEPTH: usize = 24;

/// Why a text was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BashParseError {
    pub(super) kind: DoubtKind,
    pub(super) what: &'static str,
}

type BashParseResult<T> = Result<T, BashParseError>;

/// Reads a whole program.
pub(super) fn parse_bash(text: &str) -> BashParseResult<BashProgram> {
    let mut reader = BashParser::new(text, 0, Vec::new());
    let list = reader.parse_program()?;
    Ok(BashProgram { list, bodies: reader.bodies })
}

/// Where the reader is in the text.
struct BashParser<'a> {
    text: &'a str,
    /// Byte offset, always on a character boundary.
    at: usize,
    depth: usize,
    /// Here-documents whose text begins after the next newline.
    pending: Vec<PendingHereDocument>,
    bodies: Vec<HereDocumentBody>,
    /// How many `$(…)` and `<(…)` are around.
    substitutions: usize,
}

/// A here-document that was announced.
struct PendingHereDocument {
    delimiter: String,
    expands: bool,
    strip_tabs: bool,
    number: usize,
}

fn malformed<T>(what: &'static str) -> BashParseResult<T> {
    Err(BashParseError { kind: DoubtKind::Unparsable, what })
}

fn unclear<T>(what: &'static str) -> BashParseResult<T> {
    Err(BashParseError { kind: DoubtKind::Unclear, what })
}

impl<'a> BashParser<'a> {
    fn new(text: &'a str, depth: usize, bodies: Vec<HereDocumentBody>) -> Self {
        Self { text, at: 0, depth, pending: Vec::new(), bodies, substitutions: 0 }
    }

    /// The character `ahead` bytes on, whatever it is.
    fn peek_raw(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    /// The next byte outside quotes, where a backslash before a newline vanishes together with it.
    fn peek(&mut self) -> Option<u8> {
        while self.peek_raw(0) == Some(b'\\') && self.peek_raw(1) == Some(b'\n') {
            self.at += 2;
        }
        self.peek_raw(0)
    }

    /// Whether the text goes on with `expected`. Continued lines inside it are not looked for: they would make
    /// an operator unclear, and then [`BashParser::operator_is_plain`] refuses it.
    fn is_next(&mut self, expected: &str) -> bool {
        self.peek();
        self.text.as_bytes().get(self.at..).is_some_and(|rest| rest.starts_with(expected.as_bytes()))
    }

    /// Steps over `expected` if it is next.
    fn consume(&mut self, expected: &str) -> bool {
        let seen = self.is_next(expected);
        if seen {
            self.at += expected.len();
        }
        seen
    }

    /// The next whole character; steps over it.
    fn bump(&mut self) -> Option<char> {
        let character = self.text.get(self.at..).and_then(|rest| rest.chars().next())?;
        self.at += character.len_utf8();
        Some(character)
    }

    /// The text from `start` to here.
    fn text_since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// Runs `inner` one level deeper.
    fn with_nesting<T>(&mut self, inner: impl FnOnce(&mut Self) -> BashParseResult<T>) -> BashParseResult<T> {
        if self.depth >= MAX_NESTING_DEPTH {
            return Err(BashParseError { kind: DoubtKind::TooDeep, what: "it is nested too deeply" });
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Steps over blanks and continued lines.
    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    /// Steps over blanks and, at the start of a word, a comment.
    fn skip_blanks_and_comment(&mut self) {
        self.skip_blanks();
        if self.peek_raw(0) == Some(b'#') {
            // A backslash does not continue a comment.
            while self.peek_raw(0).is_some_and(|byte| byte != b'\n') {
                self.at += 1;
            }
        }
    }

    /// Steps over blanks, comments and newlines, and reads the here-documents that follow a newline.
    fn skip_newlines(&mut self) -> BashParseResult<()> {
        loop {
            self.skip_blanks_and_comment();
            if self.peek_raw(0) != Some(b'\n') {
                return Ok(());
            }
            self.at += 1;
            self.parse_here_documents()?;
        }
    }

    /// The delimiter of a here-document, whose text comes after the next newline.
    fn parse_here_delimiter(&mut self, strip_tabs: bool) -> BashParseResult<usize> {
        let start = self.at;
        let mut delimiter = String::new();
        let mut expands = true;
        loop {
            match self.peek_raw(0) {
                Some(byte) if byte.is_ascii_alphanumeric() || b"_-.:+,@%!".contains(&byte) => {
                    delimiter.push(char::from(byte));
                    self.at += 1;
                }
                Some(quote @ (b'\'' | b'"')) => {
                    expands = false;
                    self.at += 1;
                    let inner = self.at;
                    while self.peek_raw(0).is_some_and(|byte| byte != quote) {
                        self.at += 1;
                    }
                    let text = self.text_since(inner);
                    if self.peek_raw(0).is_none() || text.contains(['\\', '$', '`', '\n']) {
                        return unclear("the delimiter of a here-document is not plain");
                    }
                    delimiter.push_str(text);
                    self.at += 1;
                }
                Some(b'\\') if self.peek_raw(1).is_some_and(|byte| byte.is_ascii_alphanumeric()) => {
                    expands = false;
                    self.at += 1;
                }
                Some(b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b')') | None => break,
                Some(_) => return unclear("the delimiter of a here-document is not plain"),
            }
        }
        if self.at == start {
            return malformed("a here-document has no delimiter");
        }
        let number = self.bodies.len();
        self.bodies.push(HereDocumentBody::default());
        self.pending.push(PendingHereDocument { delimiter, expands, strip_tabs, number });
        Ok(number)
    }

    /// Reads the texts of the here-documents announced on the line that just ended.
    fn parse_here_documents(&mut self) -> BashParseResult<()> {
        if self.substitutions > 0 && self.pending.len() > 1 {
            // bash 5.2 prints what it has read of a substitution and reads it again; it mixes up several texts.
            return unclear("several here-documents of one line in a substitution");
        }
        for pending in std::mem::take(&mut self.pending) {
            let mut text = String::new();
            loop {
                let start = self.at;
                while self.peek_raw(0).is_some_and(|byte| byte != b'\n') {
                    self.at += 1;
                }
                let mut line = self.text_since(start);
                if pending.strip_tabs {
                    line = line.trim_start_matches('\t');
                }
                let ended = self.peek_raw(0).is_none();
                if line == pending.delimiter {
                    self.at += usize::from(!ended);
                    break;
                }
                // Inside a substitution bash lets `EOF)` end the text as well.
                if line.starts_with(&pending.delimiter) {
                    return unclear("a line of a here-document begins with its delimiter");
                }
                if ended {
                    return malformed("a here-document has no end");
                }
                // bash joins such a line with the next, which is then no delimiter.
                if pending.expands && line.ends_with('\\') {
                    return unclear("a here-document continues a line");
                }
                self.at += 1;
                text.push_str(line);
                text.push('\n');
            }
            let body = if pending.expands {
                self.parse_here_text(&text)?
            } else {
                HereDocumentBody { pieces: vec![super::syntax::WordPiece::Literal { text, quoted: true }] }
            };
            if let Some(slot) = self.bodies.get_mut(pending.number) {
                *slot = body;
            }
        }
        Ok(())
    }

    /// Runs a reader over a text that is not a part of this one.
    fn parse_nested_text<T>(
        &mut self,
        text: &str,
        read: impl FnOnce(&mut BashParser<'_>) -> BashParseResult<T>,
    ) -> BashParseResult<T> {
        self.with_nesting(|this| {
            let mut reader = BashParser::new(text, this.depth, std::mem::take(&mut this.bodies));
            reader.substitutions = this.substitutions;
            let result = read(&mut reader);
            this.bodies = reader.bodies;
            result
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<(), DoubtKind>) {
        assert_eq!(parse_bash(text).map(|_| ()).map_err(|fault| fault.kind), expected, "{text:?}");
    }

    #[test]
    fn what_bash_reads_is_read() {
        for text in [
            "",
            "  # nothing",
            "ls",
            "a; b & c && d || e | f |& g",
            "! a | b; ! ! a",
            "time -p a",
            "if a; then b; elif c; then d; else e; fi > out",
            "while a; do b; done; until a; do b; done",
            "for x in a b; do c; done; for x; do c; done; for x in; do c; done; for x in a\ndo\nb\ndone",
            "for x in a; { b; }",
            "for ((i=0;i<3;i++)); do b; done",
            "case a in a|b) c;; (d) e;& *) ;; esac",
            "case a in esac",
            "case a in a) b\nesac",
            "f() { a; }; function g { b; }; function h() ( c )",
            "{ a; }; ( b ); ((1+2)); (( (1) ))",
            "[[ -f a && ( b == c || ! -n $d ) ]] && e",
            "[[ $a =~ ^(x|y)+$ ]]",
            "echo $(case a in a) b;; esac)",
            "echo $( (a); (b) )",
            "echo $((a); (b))",
            "a=1 b+=2 c[1]=3 d=(x y [2]=z) e",
            "declare -a x=(1 2)",
            "echo ${a} ${a:-b} ${a##*/} ${a//x/y} ${#a} ${a[@]} ${a[1]:2:3} ${!a} ${a@Q} $# $? $1",
            "echo \"a $b ${c:-\"d\"} $(e \"f\") `g`\" 'h' $'i\\n'",
            "cat <<A <<-'B' | c\na $(b)\nA\n\tx\n\tB\nd",
            "echo $(cat <<E\nx\nE\n)",
            "a <b >c >>d >|e <>f 2>&1 &>g &>>h <<<i {fd}>j 3<&- >&2",
            "diff <(a) >(b)",
            "echo a\\\n  b \\\n c",
            "echo a#b # c ' d",
            "echo {a,b} *.rs ~/x [a-z]",
        ] {
            check(text, Ok(()));
        }
    }

    #[test]
    fn what_bash_refuses_is_refused() {
        for text in [
            "ls &&",
            "&& ls",
            "; ls",
            "ls | | wc",
            "a &&& b",
            "a ;; b",
            "if true; then ls",
            "if a; fi",
            "fi",
            "done",
            "( )",
            "{ }",
            "echo ${x",
            "echo 'a",
            "echo \"a",
            "echo `a",
            "echo $(a",
            "cat <<E\nx",
            "a )",
            "}",
            "case a in a) b",
            "for x in a; do b",
            "echo a (b)",
            "f() a",
            "a > ",
            "a > && b",
            "[[ a",
            "echo $((1",
            "ls |",
            "! ;",
            "then a",
            "a=(b",
            "esac",
            "function",
            "f(",
            "for 1 in a; do b; done",
        ] {
            assert!(parse_bash(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn what_bash_may_read_otherwise_is_refused() {
        for text in [
            "echo \"${a:-'$(b)'}\"",
            "echo $(( '1' ))",
            "ec\\\nho a",
            "!\\\n a",
            "2\\\n>b a",
            "[[ a ]]\\\n && b ]]",
            "time -\\\np a",
            "time -p\\\n a",
            "a+\\\n=b c",
            "select x in a b; do c; done",
            "echo >(2>/dev/null ! a)",
            ">/dev/null time a",
            "echo $(x=(\\;)) 'a\nb\n'",
            "coproc a",
            "ls *(e:'x':)",
            "echo $\"a\"",
            "echo ${ a; }",
            "echo ${|a}",
            "cat <<$x\n$x\n",
            "cat <<E \"a\nE\"\nE\n",
            "cat <<E\na\\\nE\nE\n",
            "echo $(cat <<E\nx\nE)\ncurl x\nE\n)",
        ] {
            check(text, Err(DoubtKind::Unclear));
        }
    }

    #[test]
    fn deep_nesting_is_refused_before_the_stack_is_exhausted() {
        let nest = |open: &str, close: &str| format!("{}a{}", open.repeat(4_000), close.repeat(4_000));
        for text in [
            nest("( ", " )"),
            nest("{ ", ";}"),
            nest("$(", ")"),
            nest("if a;then ", ";fi"),
            nest("\"${a:-", "}\""),
            nest("${a:-", "}"),
            nest("case a in a) ", ";;esac"),
            nest("f() { ", ";}"),
            nest("$((", "))"),
            nest("<(", ")"),
            nest("[[ ( ", ") ]]"),
            nest("while a;do ", ";done"),
            nest("$[", "]"),
            nest("${a[", "]}"),
        ] {
            assert!(parse_bash(&text).is_err());
        }
    }
}
