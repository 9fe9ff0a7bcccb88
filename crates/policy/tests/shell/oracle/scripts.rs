//! Generates scripts of `awk` and `sed`: mostly valid ones, with a payload that may look like a part of a pattern, a
//! string, a text or a comment.

use super::SeededRandom;

/// What `awk` starts a division or a pattern with, and what may stand before it.
const AWK_OPERANDS: &[&str] = &[
    "1",
    "1.",
    ".5",
    "1.5",
    "1e3",
    "0x1",
    "x",
    "x_1",
    "$1",
    "$ 1",
    "NR",
    "(1)",
    "(x)",
    "x[1]",
    "x++",
    "x--",
    "++x",
    "-x",
    "$x++",
    "\"s\"",
    "\"a/b\"",
    "\"\\\"\"",
    "length",
    "length()",
    "length($0)",
    "f(1)",
    "!x",
    "$NF",
    "/r/",
    "/[a]/",
    "/\"/",
    "/#/",
    "/a\\/b/",
    "/[/]/",
    "/a|b/",
    "(1 in x)",
    "$(1)",
    "$$0",
    "x y",
    "1 \"/\" 2",
    "substr($0,1)",
    "x?1:2",
    "x ~ \"a\"",
    "x ~ /a/",
    "2^3",
    "2**3",
    "x % 2",
    "rand()",
    "system",
    "-1",
    "NF",
    "$",
];

/// A slash, and what may be around it.
const AWK_SLASHES: &[&str] = &[
    "/", "/", " / ", " / ", "/ ", " /", "/=", " /= ", "\n/", " # c\n/", " / /", "//", "*", " ", " ~ /", "+/",
    "++/", "-/", "--/", "- -/", ",/", "?/", ":/", "=/", "==/", "!/", "&&/", "||/", ">/", "[/", "]/", "(/",
    ")/", "}/", "{/", ";/", "^/", "%/", "in/", " in /", "$/", "./",
];

/// Statements that do more than print.
const AWK_PAYLOADS: &[&str] = &[
    "print \"m6\" | \"sh\"",
    "print \"m6\"|\"sh\"",
    "print > \"o\"",
    "print \"x\" >> \"o\"",
    "printf(\"x\") > \"o\"",
    "printf \"x\">\"o\"",
    "print (1)(2) > \"o\"",
    "print x > \"o\" x",
    "print(1,2)>\"o\"",
    "system(\"m6\")",
    "\"m6\" | getline",
    "print length > \"o\"",
    "print /a/ > \"o\"",
    "print 1, 2 | \"sh -c m6\"",
];

/// Other statements.
const AWK_STATEMENTS: &[&str] = &[
    "print",
    "print $1",
    "x = 1",
    "x[1] = 2",
    "delete x[1]",
    "next",
    "if (x) y = 1",
    "if (1) { } else",
    "while (0)",
    "for (k in x) print k",
    "do { } while (0)",
    "y = \"a\"",
    "printf \"%d\", 1",
    "print 1 > 2 ? 3 : 4",
    "print (1 > 2)",
    "",
    "{ }",
    "gsub(/a/, \"b\")",
    "if (x)",
    "else",
    "return",
    "exit",
    "print length",
    "# c\n",
];

/// Characters that damage a script of `awk`.
const AWK_SIGNS: &[&str] = &[
    "/", "\"", "#", "\n", "\\", "(", ")", "[", "]", "{", "}", "|", ">", ";", "$", ".", "_", "+", "-", "é",
    " ", "\\/", "\\\"", "||", "%", "!", "~", ",", ":", "?",
];

/// Commands of `sed` that do nothing but print.
const SED_COMMANDS: &[&str] = &[
    "p",
    "=",
    "n",
    "N",
    "d",
    "s/a/b/",
    "s|a|b|g",
    "s/[/]/x/",
    "s/a\\/b/c/",
    "s/a/b\\/c/",
    "y/ab/cd/",
    "y/a\\/b/cde/",
    "a text",
    "a\\",
    "a\\\ntext",
    "a\\text",
    "a\\\ttext",
    "a  \\",
    "i\\  text",
    "i\\",
    "c text\\",
    "c\\\ntext\\\nmore",
    "b",
    "t",
    "bx",
    "b x",
    ":x",
    ": x",
    "q",
    "q5",
    "l 3",
    "l",
    "{p;}",
    "{",
    "}",
    "# c",
    "#n",
    "s,a,b,",
    "s.a.b.",
    "s;a;b;",
    "s;a;b;p",
    "s#a#b#",
    "s}a}b}",
    "/a/p",
    "\\,a,p",
    "\\;a;p",
    "/[]]/p",
    "/[^]]/p",
    "/a/,/b/p",
    "1~2p",
    "2,+1p",
    "$!N",
    "s/a/\\n/",
    "s/a/b\\\nc/",
    "s/\\(a\\)/\\1/",
    "z",
    "F",
    "v",
    "v 4.2",
    "1!p",
    "1 ! p",
    "s/x\\n//",
    "s/a/b/3g",
    "s/a/b/I",
    "/a/Ip",
    "/a/M p",
    "s/a/&&/",
    "0,/a/p",
    "x",
    "G",
    "h",
    "s/[[:alpha:]]/x/",
    "s/[a\\]/x/",
    "s/a/[/",
    "y/[/]/",
    "a",
    "i",
    "D",
    "P",
];

/// Commands of `sed` that do more.
const SED_PAYLOADS: &[&str] =
    &["w o", "e m6", "s/a/m6/e", "s/.*/m6/e", "s/a/b/w o", "W o", "s/a/b/pw o", "1e m6", "r .env", "R .env"];

/// What may stand between two commands of `sed`.
const SED_JOINTS: &[&str] =
    &[";", ";", ";", "\n", "\n", " ; ", "}", " ", "", "\\\n", "\\", ";}", "#\n", "{", "' -e '", "\r"];

/// Characters that damage a script of `sed`.
const SED_SIGNS: &[&str] = &[
    "/", "\\", "[", "]", "\n", ";", "{", "}", "#", ",", "!", " ", "e", "w", "\\\n", "s", "a", "1", "$", "~",
    "+", "M", "I", "\\/", "[:", ":]", "^", "é",
];

/// A script of `awk`, without quotes of the shell.
fn awk_script(random: &mut SeededRandom) -> String {
    let mut statements = Vec::new();
    for _ in 0..2 + random.below(4) {
        statements.push(match random.below(7) {
            0 | 1 => random.pick(AWK_PAYLOADS).to_owned(),
            2 => random.pick(AWK_STATEMENTS).to_owned(),
            3 => format!("print {}", awk_expression(random)),
            4 => format!("if ({}) {}", awk_expression(random), random.pick(AWK_STATEMENTS)),
            _ => format!("y = {}", awk_expression(random)),
        });
    }
    let body = statements.join(random.pick(&["; ", "; ", ";", "\n", " "]));
    let text = match random.below(8) {
        0 => body,
        1 => format!("{{ {body} }}"),
        2 => format!("{} {{ {body} }}", awk_expression(random)),
        3 => format!("function f(x) {{ {body} }}\nBEGIN {{ f(1) }}"),
        4 => format!("BEGIN {{ if (1) {{ {body} }} }}"),
        5 => format!("BEGIN {{ {body} }}\n{} {{ print }}", awk_expression(random)),
        _ => format!("BEGIN {{ {body} }}"),
    };
    damaged(random, text, AWK_SIGNS)
}

/// An expression of `awk` with a slash.
fn awk_expression(random: &mut SeededRandom) -> String {
    let mut text = random.pick(AWK_OPERANDS).to_owned();
    for _ in 0..=random.below(2) {
        text.push_str(random.pick(AWK_SLASHES));
        text.push_str(random.pick(AWK_OPERANDS));
    }
    text
}

/// A script of `sed`, without quotes of the shell around it.
fn sed_script(random: &mut SeededRandom) -> String {
    let mut text = String::new();
    for _ in 0..1 + random.below(4) {
        text.push_str(if random.one_in(3) { random.pick(SED_PAYLOADS) } else { random.pick(SED_COMMANDS) });
        text.push_str(random.pick(SED_JOINTS));
    }
    damaged(random, text, SED_SIGNS)
}

/// A script, damaged once in two times.
fn damaged(random: &mut SeededRandom, text: String, signs: &[&str]) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    for _ in 0..random.below(3).saturating_sub(usize::from(random.one_in(2))) {
        let at = random.below(characters.len().max(1));
        if random.one_in(3) && at < characters.len() {
            characters.remove(at);
        } else {
            characters.splice(at..at, random.pick(signs).chars());
        }
    }
    characters.into_iter().collect()
}

/// The arguments of a random use of `awk`, or of `sed`, as bash reads them.
pub(crate) fn arguments(random: &mut SeededRandom, program: &str) -> String {
    if program == "awk" {
        let before = random.pick(&["", "", "", "", "-F: ", "-v x=1 ", "-F '/' "]);
        let after = random.pick(&["a.txt", "a.txt", "x=1 a.txt", "a.txt 1=a.txt", "=a.txt", "< a.txt"]);
        format!("{before}'{}' {after}", awk_script(random))
    } else {
        let before = random.pick(&["", "", "-n ", "-E ", "-s ", "-z ", "--posix "]);
        format!("{before}-e '{}' a.txt", sed_script(random))
    }
}

/// A use of one of these programs.
pub(crate) fn command(random: &mut SeededRandom) -> String {
    let program = random.pick(&["awk", "sed"]);
    format!("{program} {}", arguments(random, program))
}
