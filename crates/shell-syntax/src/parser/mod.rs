//! The parser of bash: text in, [`BashProgram`] out, or a [`BashParseError`].
//!
//! A recursive-descent parser that reads the text once from left to right, so that its cost grows with the text and
//! nothing else. Nesting is limited, so that no text can exhaust the stack. There is no separate tokenizer, because
//! what a character means in bash depends on the grammar around it.
//!
//! It accepts the part of bash that it is certain of. Constructs that bash may read in another way (extended globs,
//! coprocesses, translated strings, single quotes inside `"${…}"`, …) are errors: to refuse what bash accepts costs a
//! question, to misread it would let a command run that was not judged.
//!
//! This module has the cursor and the here-documents; the other modules parse commands, words and expansions.

mod arithmetic;
mod commands;
mod compound_commands;
mod expansions;
mod quotes;
mod simple_commands;
mod words;

pub(super) use commands::is_name;

use crate::analysis::DoubtKind;
use crate::bash_program::{BashProgram, HereDocumentBody, WordPiece};

/// How deep lists, quotes and expansions may be nested in one another, all counted together.
const MAX_NESTING_DEPTH: usize = 24;

/// Why a text could not be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BashParseError {
    /// Whether the text is invalid, ambiguous or nested too deeply.
    pub(super) kind: DoubtKind,
    /// The reason, for a user.
    pub(super) message: &'static str,
}

/// The result of parsing one construct.
type BashParseResult<T> = Result<T, BashParseError>;

/// Parses a whole program.
pub(super) fn parse_bash(text: &str) -> BashParseResult<BashProgram> {
    refuse_operators_across_lines(text)?;
    let mut parser = BashParser::new(text, 0, Vec::new());
    let list = parser.parse_program()?;
    Ok(BashProgram { list, here_documents: parser.here_documents })
}

/// The parser with its position in the text.
struct BashParser<'a> {
    /// The whole text.
    text: &'a str,
    /// The byte offset of the next character, always on a character boundary.
    at: usize,
    /// How deep the construct that is being parsed is nested.
    depth: usize,
    /// The here-documents whose text begins after the next newline.
    pending: Vec<PendingHereDocument>,
    /// The here-documents found so far; a pending one has an empty body.
    here_documents: Vec<HereDocumentBody>,
    /// How many `$(…)` and `<(…)` are open.
    substitutions: usize,
}

/// A here-document whose operator has been parsed and whose text has not.
struct PendingHereDocument {
    /// The line that ends it.
    delimiter: String,
    /// The delimiter is not quoted, so that the text is expanded.
    expands: bool,
    /// `<<-`: tabs at the start of each line are removed.
    strip_tabs: bool,
    /// Its index among the here-documents of the program.
    index: usize,
}

/// The error for a text that is not valid bash.
fn malformed<T>(message: &'static str) -> BashParseResult<T> {
    Err(BashParseError { kind: DoubtKind::Unparsable, message })
}

/// The error for a construct that bash may read in more than one way.
fn unclear<T>(message: &'static str) -> BashParseResult<T> {
    Err(BashParseError { kind: DoubtKind::Unclear, message })
}

/// Refuses a text in which a line continuation stands between two punctuation characters.
///
/// bash joins continued lines before it recognises operators: `<\⏎(a)` is a process substitution. The parser looks some
/// bytes ahead in many places, and one of them that did not skip a continuation would read two operators. Quotes are not
/// regarded here, because a text that is refused for no reason is asked about, and such a text is rare.
fn refuse_operators_across_lines(text: &str) -> BashParseResult<()> {
    let is_punctuation = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_punctuation);
    let mut rest = text;
    let mut before = None;
    while let Some((head, tail)) = rest.split_once("\\\n") {
        before = head.as_bytes().last().or(before);
        if is_punctuation(before) && is_punctuation(tail.as_bytes().first()) && !tail.starts_with("\\\n") {
            return unclear("an operator may continue on the next line");
        }
        rest = tail;
    }
    Ok(())
}

impl<'a> BashParser<'a> {
    /// A parser at the start of a text, which is nested `depth` deep.
    fn new(text: &'a str, depth: usize, here_documents: Vec<HereDocumentBody>) -> Self {
        Self { text, at: 0, depth, pending: Vec::new(), here_documents, substitutions: 0 }
    }

    /// The byte `ahead` bytes after the position.
    fn peek_raw(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    /// The next byte outside of quotes. A backslash before a newline, which continues the line, is skipped.
    fn peek(&mut self) -> Option<u8> {
        while self.peek_raw(0) == Some(b'\\') && self.peek_raw(1) == Some(b'\n') {
            self.at += 2;
        }
        self.peek_raw(0)
    }

    /// Whether `expected` comes next. An operator that continues on the next line is not recognised here;
    /// [`refuse_operators_across_lines`] has refused it.
    fn is_next(&mut self, expected: &str) -> bool {
        self.peek();
        self.text.as_bytes().get(self.at..).is_some_and(|rest| rest.starts_with(expected.as_bytes()))
    }

    /// Skips `expected` if it comes next; returns whether it does.
    fn consume(&mut self, expected: &str) -> bool {
        let is_next = self.is_next(expected);
        if is_next {
            self.at += expected.len();
        }
        is_next
    }

    /// Skips and returns the next character.
    fn bump(&mut self) -> Option<char> {
        let character = self.text.get(self.at..).and_then(|rest| rest.chars().next())?;
        self.at += character.len_utf8();
        Some(character)
    }

    /// The text from `start` to the position.
    fn text_since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// Parses with `inner` one level deeper; an error if that is too deep.
    ///
    /// All kinds of nesting share one counter, because each of them uses the stack.
    fn with_nesting<T>(&mut self, inner: impl FnOnce(&mut Self) -> BashParseResult<T>) -> BashParseResult<T> {
        if self.depth >= MAX_NESTING_DEPTH {
            return Err(BashParseError { kind: DoubtKind::TooDeep, message: "it is nested too deeply" });
        }
        self.depth += 1;
        let result = inner(self);
        self.depth -= 1;
        result
    }

    /// Skips blanks and line continuations.
    fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    /// Skips blanks and a comment after them.
    fn skip_blanks_and_comment(&mut self) {
        self.skip_blanks();
        if self.peek_raw(0) == Some(b'#') {
            // A backslash does not continue a comment.
            while self.peek_raw(0).is_some_and(|byte| byte != b'\n') {
                self.at += 1;
            }
        }
    }

    /// Skips blanks, comments and newlines, and parses the here-documents that begin after a newline.
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

    /// Parses the delimiter of a here-document, whose text begins after the next newline; returns its index.
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
        let index = self.here_documents.len();
        self.here_documents.push(HereDocumentBody::default());
        self.pending.push(PendingHereDocument { delimiter, expands, strip_tabs, index });
        Ok(index)
    }

    /// Parses the texts of the here-documents whose operators are on the line that just ended.
    fn parse_here_documents(&mut self) -> BashParseResult<()> {
        if self.substitutions > 0 && self.pending.len() > 1 {
            // bash 5.2 prints the substitution that it has parsed and parses that again; it mixes up several texts.
            return unclear("one line of a substitution has several here-documents");
        }
        for pending in std::mem::take(&mut self.pending) {
            let text = self.take_here_text(&pending)?;
            let body = if pending.expands {
                self.parse_here_text(&text)?
            } else {
                HereDocumentBody { pieces: vec![WordPiece::Literal { text, quoted: true }] }
            };
            if let Some(slot) = self.here_documents.get_mut(pending.index) {
                *slot = body;
            }
        }
        Ok(())
    }

    /// Skips the lines of a here-document and its delimiter; returns the lines.
    ///
    /// The delimiter is compared with whole lines, after tabs have been removed for `<<-`.
    fn take_here_text(&mut self, pending: &PendingHereDocument) -> BashParseResult<String> {
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
                return Ok(text);
            }
            // In a substitution bash also accepts `EOF)` as the end of the text.
            if line.starts_with(&pending.delimiter) {
                return unclear("a line of a here-document begins with its delimiter");
            }
            if ended {
                return malformed("a here-document has no end");
            }
            // bash joins such a line with the next one, which is then no delimiter.
            if pending.expands && line.ends_with('\\') {
                return unclear("a here-document continues a line");
            }
            self.at += 1;
            text.push_str(line);
            text.push('\n');
        }
    }

    /// Parses a text that is not a part of this one, such as the content of backquotes with its escapes removed.
    ///
    /// The here-documents inside get indices of the same program.
    fn parse_nested_text<T>(
        &mut self,
        text: &str,
        parse: impl FnOnce(&mut BashParser<'_>) -> BashParseResult<T>,
    ) -> BashParseResult<T> {
        refuse_operators_across_lines(text)?;
        self.with_nesting(|outer| {
            let mut inner = BashParser::new(text, outer.depth, std::mem::take(&mut outer.here_documents));
            inner.substitutions = outer.substitutions;
            let result = parse(&mut inner);
            outer.here_documents = inner.here_documents;
            result
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Result<(), DoubtKind>) {
        assert_eq!(parse_bash(text).map(|_| ()).map_err(|error| error.kind), expected, "{text:?}");
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
            "[[ -n <\\\n(m5) ]]",
            "[[ a =~ <\\\n\\\n(m5) ]]",
            "echo `echo <\\\n(m5)`",
            "a |\\\n| b",
            "2>&-cat",
            "a <& -cat",
            "a >&-\\\ncat",
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
