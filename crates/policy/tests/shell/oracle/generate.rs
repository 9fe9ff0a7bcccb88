//! Generates lines from the grammar of bash: marker programs inside constructs that may hide them.
//!
//! In tame mode, constructs that the analysis never allows are left out, so that more lines are run.

use super::super::random_numbers::SeededRandom;

#[path = "scripts.rs"]
pub(crate) mod scripts;
#[path = "traps.rs"]
mod traps;

use traps::{SPRINGS, TRAPS};

/// Stub programs that only log their name. The rules of the oracle allow the first five, and `m5 a` exactly.
pub(crate) const MARKERS: &[&str] = &["m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7"];

/// A marker in a random spelling.
fn marker(random: &mut SeededRandom) -> String {
    // Mostly one that a rule allows, so that lines of several commands are allowed.
    let name =
        if random.tame && !random.one_in(16) { random.pick(&MARKERS[..5]) } else { random.pick(MARKERS) };
    let (first, second) = name.split_at(1);
    match random.below(if random.tame { 200 } else { 32 }) {
        0 => format!("\"{first}\"{second}"),
        1 => format!("{first}\\{second}"),
        2 => format!("'{name}'"),
        3 => format!("$'\\x6d'{second}"),
        4 => format!("{first}\\\n{second}"),
        5 => format!("\\{name}"),
        6 => format!("{first}''{second}"),
        7 => format!("./{name}"),
        8 => format!("\"{first}\\\n{second}\""),
        9 => format!("{name}\\\n"),
        10 => format!("{first}{{{second},}}"),
        _ => name.to_owned(),
    }
}

/// A marker or a reader.
fn program(random: &mut SeededRandom) -> String {
    match random.below(if random.tame { 6 } else { 10 }) {
        0 => "cat".to_owned(),
        1 => random.pick(&["head -n 1", "wc -l", "sort", "tr a b", "cut -c 1", "grep -c a"]).to_owned(),
        2 | 3 => "echo".to_owned(),
        4 => random.pick(&["printf '%s\\n'", "true", ":", "test -n", "pwd", "[ a = b ] &&"]).to_owned(),
        _ => marker(random),
    }
}

/// Blanks between words.
fn blank(random: &mut SeededRandom) -> &'static str {
    random.pick(&[" ", " ", " ", " ", " ", "  ", "\t", " \\\n", "\\\n "])
}

/// A word without nested commands.
fn leaf(random: &mut SeededRandom) -> String {
    let tame = [
        "a",
        "b",
        "'c d'",
        "\"e\"",
        "f#g",
        "#c",
        "1",
        "-x",
        "--",
        "a=b",
        "*.q",
        "{a,b}",
        "\\;",
        "$?",
        "''",
        "a.txt",
        "sub/b.txt",
        "$HOME",
        "\"$PWD\"",
        "{1..3}",
        "{c..a}",
        "{a..e..2}",
        "$'a\\tb'",
        "$#",
        "\"a  b\"",
        "a\\ b",
        "[a-c].txt",
        "{}",
        "2147483648",
        "=",
        "!",
        "$$",
    ];
    let wild = [
        "~",
        "$x",
        "\"$x\"",
        "*",
        "$1",
        "\"$@\"",
        "$AWS_SECRET_ACCESS_KEY",
        "${HOME:-$AWS_SECRET_ACCESS_KEY}",
        ".env",
        "\"${HOME:+$AWS_SECRET_ACCESS_KEY}\"",
        "./.env",
        "sub/../.env",
        ".en{v,}",
        ".en{v..v}",
        "$'.\\x65nv'",
        "~/key",
        "-v",
        "-eq",
    ];
    if random.tame || !random.one_in(3) {
        random.pick(&tame).to_owned()
    } else {
        random.pick(&wild).to_owned()
    }
}

/// A word that may contain commands.
pub(crate) fn word(random: &mut SeededRandom, depth: usize) -> String {
    if depth == 0 {
        return if random.one_in(if random.tame { 24 } else { 4 }) {
            let spring = random.pick(SPRINGS);
            if random.one_in(2) { format!("\"{spring}\"") } else { spring.to_owned() }
        } else {
            leaf(random)
        };
    }
    let inner = |random: &mut SeededRandom| ended(list(random, depth - 1));
    let nested = |random: &mut SeededRandom| word(random, depth - 1);
    // Forms that are allowed if their content is.
    let form = if random.tame && !random.one_in(8) {
        [0, 1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 17, 18, 20, 22, 32, 33, 34, 50, 50, 50, 50]
            [random.below(23)]
    } else {
        random.below(46)
    };
    match form {
        0 => format!("$({})", inner(random)),
        1 => format!("\"$({})\"", inner(random)),
        2 => format!("`{}`", flat(random)),
        3 => format!("\"`{}`\"", flat(random)),
        4 => format!("<({})", inner(random)),
        5 => format!("${{HOME:-{}}}", nested(random)),
        6 => format!("\"${{HOME:+{}}}\"", nested(random)),
        7 => format!("$(( 1 + $({}) ))", flat(random)),
        8 => format!("${{a[$({})]}}", flat(random)),
        9 => format!("$[ 1 + `{}` ]", flat(random)),
        10 => format!("a{}b", nested(random)),
        11 => format!("\"a {} b\"", nested(random).replace('"', "")),
        12 => format!("'{}'", inner(random).replace('\'', "")),
        13 => format!("$'{}'", inner(random).replace(['\'', '\\'], "")),
        14 => {
            let operator = random
                .pick(&["#", "##", "%", "%%", "/", "//", "/#", "/%", "^", "^^", ",", ",,", "-", "+", ":?"]);
            format!("${{HOME{operator}{}}}", nested(random))
        }
        15 => format!("${{HOME/{}/{}}}", nested(random), nested(random)),
        16 => format!("${{HOME:$({}):1}}", flat(random)),
        17 => format!("{{a,{}}}", nested(random)),
        18 => format!("$( ({}) )", inner(random)),
        19 => format!("$(({}) ; ({}))", flat(random), flat(random)),
        20 => format!("$(case a in a) {};; esac)", inner(random)),
        21 => format!("\\$({})", flat(random)),
        22 => format!("$(cat <<E\n$({})\nE\n)", flat(random)),
        23 => format!("\"${{HOME:+{}}}\"", random.pick(SPRINGS)),
        24 => format!("$(({}))", arithmetic(random)),
        25 => format!("$[{}]", arithmetic(random)),
        26 => format!("\"$(({}))\"", arithmetic(random)),
        27 => format!("${{PIPESTATUS[{}]}}", arithmetic(random)),
        28 => format!("${{HOME:{}}}", arithmetic(random)),
        29 => format!("$(\\\n{})", inner(random)),
        30 => format!("$\\\n({})", inner(random)),
        31 => format!(">({})", inner(random)),
        32 => format!("${{HOME:+${{HOME:-{}}}}}", nested(random)),
        33 => format!("\"${{HOME:-\"{}\"}}\"", nested(random).replace('"', "")),
        34 => format!("${{HOME:+'{}'}}", flat(random).replace('\'', "")),
        35 => format!("$(( {} ) )", flat(random)),
        36 => "$(< a.txt)".to_owned(),
        _ => word(random, 0),
    }
}

/// A list for the inside of parentheses: the delimiter of a here-document needs a line of its own.
fn ended(mut list: String) -> String {
    if list.contains("<<") {
        list.push('\n');
    }
    list
}

/// An arithmetic expression, also one with quotes that have no meaning there.
fn arithmetic(random: &mut SeededRandom) -> String {
    let code = flat(random).replace('\n', "");
    match random.below(if random.tame { 22 } else { 16 }) {
        0 => format!("echo '$({code}))'"),
        1 => format!("echo \\) '$({code})'"),
        2 => format!("echo \"$({code})\""),
        3 => format!("'$({code})'"),
        4 => format!("1 + $({code})"),
        5 => "y".to_owned(),
        6 => format!("a[$({code})]"),
        7 => "a[y]".to_owned(),
        8 => "y=1".to_owned(),
        9 => "(1 + (2))".to_owned(),
        10 => format!("1 ) ; ( {code} "),
        11 => format!("`{code}`"),
        12 => "x$y".to_owned(),
        13 => format!("1 # {code}"),
        14 => "1 <(2)".to_owned(),
        15 => format!("\"1\" + {}", random.pick(SPRINGS)),
        16 => "RANDOM % 3".to_owned(),
        17 => "1 << 2".to_owned(),
        _ => {
            random.pick(&["1", "1 + 2", "2 * (3 - 1)", " 0 ", "16#ff", "1 ? 2 : 3", "1, 2", "-1"]).to_owned()
        }
    }
}

/// A command without expansions, for constructs in which nesting is hard.
fn flat(random: &mut SeededRandom) -> String {
    let mut text = marker(random).replace("\\\n", "");
    if random.one_in(3) {
        text.push_str(random.pick(&[" a", "; m1", " | m2", " 'b'", " && m3", " \\`m4\\`", " \"c\"", " # x"]));
    }
    text
}

/// A redirect.
fn redirect(random: &mut SeededRandom, depth: usize) -> String {
    let less = depth.saturating_sub(1);
    match random.below(22) {
        0 => ">/dev/null".to_owned(),
        1 => "2>&1".to_owned(),
        2 => "</dev/null".to_owned(),
        3 => format!("<<< {}", word(random, depth)),
        4 => format!("> >({})", list(random, less)),
        5 => format!("< <({})", list(random, less)),
        6 => "&>/dev/null".to_owned(),
        7 if !random.tame => "{v}>/dev/null".to_owned(),
        8 => "< a.txt".to_owned(),
        9 => "2147483648</dev/null".to_owned(),
        10 => "3</dev/null 4>&1".to_owned(),
        11 => "2\\\n>/dev/null".to_owned(),
        12 if !random.tame => format!("> {}", word(random, 0)),
        13 if !random.tame => random
            .pick(&[">&2147483648", ">| o", ">>o", "<>o", "&>>o", ">&1-2", ">o{a,}", ">\\\n>o"])
            .to_owned(),
        14 => ">&2".to_owned(),
        15 => "2>&-".to_owned(),
        16 => format!("< {}", word(random, 0)),
        _ => "2>/dev/null".to_owned(),
    }
}

/// A test in double brackets.
fn condition(random: &mut SeededRandom, depth: usize) -> String {
    let one = |random: &mut SeededRandom| word(random, depth);
    let form = if random.tame && !random.one_in(8) {
        [0, 1, 2, 5, 9, 10, 11, 13, 14, 15][random.below(10)]
    } else {
        random.below(16)
    };
    match form {
        0 => format!("{} == {}", one(random), one(random)),
        1 => format!("-n {}", one(random)),
        2 => format!("a =~ ({}|b)", word(random, 0).replace(['\'', '"', ' '], "")),
        3 => format!("a =~ <({})", flat(random)),
        4 => format!("a =~ (x|<({}))", flat(random)),
        5 => format!("{} =~ ^[a-z]+$", one(random)),
        6 => format!("{} -eq {}", one(random), one(random)),
        7 => format!("y -{} 0", random.pick(&["eq", "ne", "lt", "le", "gt", "ge"])),
        8 => format!("-v {}", one(random)),
        9 => format!("a < {}", one(random)),
        10 => format!("-f {} && ! -d sub", word(random, 0)),
        11 => format!("( {} ) || a == b", one(random)),
        12 => format!("a =~ b&&-v {}", one(random)),
        13 => format!("-n <({})", flat(random)),
        14 => format!("{} -gt 3", random.pick(&["1", "$?", "$#", "$y", "$((1))", "${#HOME}"])),
        _ => format!("{} != *{}", one(random), word(random, 0)),
    }
}

/// A simple command.
fn simple(random: &mut SeededRandom, depth: usize) -> String {
    let mut text = String::new();
    if random.one_in(if random.tame { 24 } else { 6 }) {
        let name = if random.tame {
            "LC_ALL"
        } else {
            random.pick(&["A", "x", "LC_ALL", "a[0]", "a[y]", "a[x y]", "y+"])
        };
        let value = word(random, depth.saturating_sub(1)).replace('*', "");
        text.push_str(&format!("{name}={value}{}", blank(random)));
    }
    if random.one_in(if random.tame { 30 } else { 12 }) {
        text.push_str(&redirect(random, 0));
        text.push(' ');
    }
    match random.below(if random.tame { 80 } else { 30 }) {
        0 => text.push_str("env "),
        1 => text.push_str("env -u A B=c "),
        2 => text.push_str("timeout 5 "),
        3 => text.push_str("nice -n 5 "),
        4 => text.push_str("time "),
        5 => text.push_str("command "),
        6 if !random.tame => text.push_str("exec "),
        7 => text.push_str("! "),
        8 => text.push_str("time -p -- "),
        9 => text.push_str("stdbuf -o0 "),
        10 => text.push_str("echo | xargs "),
        11 => text.push_str("echo a | xargs -n 1 "),
        12 => text.push_str("builtin "),
        13 => text.push_str("!\\\n "),
        14 => text.push_str("time\\\n "),
        15 => text.push_str("timeout $y "),
        16 => text.push_str("nice -n $y "),
        17 => text.push_str("timeout [1m]* "),
        18 => text.push_str("stdbuf -o \"$y\" "),
        _ => {}
    }
    let alone = text.is_empty();
    let less = depth.saturating_sub(1);
    let form = if random.tame && !random.one_in(4) {
        [4, 10, 11, 16, 17, 21, 22, 23, 60, 60, 60, 60][random.below(12)]
    } else {
        random.below(60)
    };
    match form {
        0 => text.push_str(&format!("sh -c '{}'", flat(random).replace('\'', ""))),
        1 if !random.tame => text.push_str(&format!("eval {} {}", marker(random), word(random, 0))),
        2 => text.push_str(&format!("find . -maxdepth 0 -exec {} {{}} \\;", random.pick(MARKERS))),
        3 => text.push_str(&format!("bash <<'E'\n{}\nE", flat(random))),
        4 => text.push_str(&format!("x={}", word(random, depth))),
        5 if alone => text.push_str(&format!("x=({} {})", word(random, less), word(random, less))),
        6 if !random.tame => text.push_str(&format!("trap '{}' EXIT", flat(random).replace('\'', ""))),
        7 if !random.tame => text.push_str(&format!("declare y={}", word(random, depth))),
        8 if !random.tame => text.push_str("$x"),
        9 => text.push_str(&format!("{{{},a}}", random.pick(MARKERS))),
        10 => text.push_str(&format!("cat <<E\n{}\nE", word(random, depth))),
        11 => text.push_str(&format!("cat <<-'E'\n\t$({})\n\tE", flat(random))),
        12 => text.push_str(&format!("test -v 'a[$({})]'", flat(random).replace('\'', ""))),
        13 => text.push_str(&format!("bash -c \"{}\"", flat(random).replace(['"', '\\'], ""))),
        14 => text.push_str(&format!("printf -v 'a[$({})]' x", flat(random).replace('\'', ""))),
        15 if alone => text.push_str(&format!("(({}))", arithmetic(random))),
        16..=19 => text.push_str(&format!("[[ {} ]]", condition(random, less))),
        20 if !random.tame => text.push_str(random.pick(&[
            "read 'a[$(m6)]' <<< 1",
            "unset 'a[$(m6)]'",
            "declare 'a[$(m6)]=1'",
            "declare -i z=y",
            "declare -n r=y",
            "let y",
            "let 'a[$(m6)]'",
            "export a[$(m6)]=1",
            "read -r y",
            "mapfile -C m6 -c 1 z <<< a",
            "wait -p 'a[$(m6)]' -n",
            "getopts a 'b[$(m6)]' -a",
            "[ -v \"$y\" ]",
            "test \"$o\" \"$y\"",
            "printf -v \"$y\" a",
            "coproc m6",
            "alias m0=m6",
            "set -- m6",
            "shopt -s extglob",
        ])),
        21 => text.push_str(&format!("cat <<\"E\" <<F\n$({})\nE\n{}\nF", flat(random), word(random, less))),
        22 => text.push_str(&format!(
            "cat <<E | {}\n{}\nE",
            marker(random).replace("\\\n", ""),
            word(random, 0)
        )),
        23 => text.push_str(&format!("grep -e {} a.txt", word(random, less))),
        24 => text.push_str(&format!("y={}", word(random, less))),
        25 => text.push_str(random.pick(TRAPS.get(..9).unwrap_or(TRAPS))),
        26 if random.one_in(3) => text.push_str(&format!("a[{}]={}", arithmetic(random), word(random, 0))),
        27 if random.one_in(3) => text.push_str(&format!("m0[{}] a", word(random, 0))),
        28 => text.push_str(&scripts::command(random)),
        _ => text.push_str(&program(random)),
    }
    // Nothing may follow a here-document on its line, nor a compound command.
    let assigns = random.tame && (text.starts_with("x=") || text.starts_with("y="));
    if (text.contains('\n') && text.contains("<<")) || text.ends_with("]]") || text.ends_with("))") || assigns
    {
        return text;
    }
    for _ in 0..random.below(4) {
        text.push_str(blank(random));
        text.push_str(&word(random, depth));
    }
    if random.one_in(5) {
        text.push_str(blank(random));
        text.push_str(&redirect(random, depth));
    }
    text
}

/// A command of any kind.
fn command(random: &mut SeededRandom, depth: usize) -> String {
    if depth == 0 {
        return simple(random, 0);
    }
    let inner = |random: &mut SeededRandom| list(random, depth - 1);
    let nested = |random: &mut SeededRandom| word(random, depth - 1);
    let form = if random.tame && !random.one_in(6) {
        [0, 1, 2, 3, 4, 6, 7, 10, 12, 14, 15, 16, 21, 23, 24, 24, 50, 50, 50, 50][random.below(20)]
    } else {
        random.below(44)
    };
    match form {
        0 => format!("( {}\n)", inner(random)),
        1 => format!("{{ {}\n}}", inner(random)),
        2 => format!("if {}\nthen {}\nelse {}\nfi", inner(random), inner(random), inner(random)),
        3 => format!("while {}\ndo {}\nbreak; done", inner(random), inner(random)),
        4 | 5 => format!("for x in {} {}\ndo {}\ndone", nested(random), nested(random), inner(random)),
        6 | 7 => {
            let (subject, pattern, other) = (nested(random), nested(random), word(random, 0));
            let end = random.pick(&[";;", ";&", ";;&"]);
            format!(
                "case {subject} in {pattern}) {}\n{end} ({other}|a) {}\nesac",
                inner(random),
                inner(random)
            )
        }
        8 if !random.tame => format!("f() {{ {}\n}}; f", inner(random)),
        9 => format!("((({})))", inner(random)),
        10 => format!("( ( {}\n) )", inner(random)),
        11 if !random.tame => format!("function g {{ {}\n}}\ng", inner(random)),
        12 => format!("until {}\ndo break; done", inner(random)),
        13 if random.one_in(8) => format!("coproc {}", simple(random, 0)),
        14 => format!("( {}\n) {}", inner(random), redirect(random, depth - 1)),
        15 => format!("{{ {}\n}} {}", inner(random), redirect(random, depth - 1)),
        16 => format!("for ((i=0;i<2;i++)); do {}\ndone", inner(random)),
        17 => format!("for (({};;)); do {}\nbreak; done", arithmetic(random).replace(';', ""), inner(random)),
        18 => format!("select x in {}; do {}\nbreak; done </dev/null", nested(random), inner(random)),
        19 => format!("(({}))", arithmetic(random)),
        20 => format!("((echo {}); {})", nested(random), inner(random)),
        21 | 22 => {
            let trap = random.pick(TRAPS);
            let spring = random.pick(SPRINGS);
            let end = if trap.starts_with("for ") { "\ndone" } else { "" };
            let joint = if end.is_empty() { "; " } else { " " };
            let use_of = match random.below(14) {
                0 => format!("case {spring} in a) m0;; esac"),
                1 => format!("case a in {spring}) m0;; esac"),
                2 => format!("cat <<E\n{spring}\nE"),
                3 => format!("cat <<< {spring}"),
                4 => format!("x={spring}"),
                5 => format!("[[ {} ]]", condition(random, 0)),
                6 => format!("for i in {spring}; do m0; done"),
                7 => format!("cat < {spring}"),
                8 => format!("LC_ALL={spring} m0"),
                9 => format!("x={spring}; echo $((x))"),
                10 => format!("m0 \"{}\"", nested(random).replace('"', "")),
                11 => format!("timeout {spring} m0"),
                12 => {
                    format!("{} {spring} cat a.txt", random.pick(&["nice -n", "stdbuf -o", "timeout -k 1"]))
                }
                _ => format!("echo {spring}"),
            };
            format!("{trap}{joint}{use_of}{end}")
        }
        23 => format!("if [[ {} ]]; then {}\nfi", condition(random, depth - 1), inner(random)),
        24 | 25 => {
            let values = [
                "a.txt",
                "*.txt",
                ".env",
                "sub/*",
                "-o",
                "o",
                "m6",
                "{a,b}.txt",
                "\"$y\"",
                "~/key",
                "'a b'",
                "-e",
            ];
            let (one, two) = (random.pick(&values), if random.one_in(2) { "" } else { random.pick(&values) });
            let change =
                ["", "", "", "", "; f=.env", "; read f <<< .env", "; for f in .env; do :; done", "; cd sub"];
            let change = random.pick(&change);
            let user = random.pick(&[
                "cat",
                "sort",
                "wc -l",
                "head -n 1",
                "m0",
                "echo",
                "grep a",
                "sort -u",
                "cat a.txt",
                "uniq",
            ]);
            let word =
                random.pick(&["\"$f\"", "\"$f\"", "$f", "\"${f}\"", "\"$f\"x", "<\"$f\"", "\"$f\" \"$f\""]);
            let again = if random.one_in(3) { format!("; {}", inner(random)) } else { String::new() };
            match random.below(4) {
                0 => format!("for f in {one} {two}; do {user} {word}{change}{again}\ndone"),
                1 => format!(
                    "for f in {one} {two}; do while true; do {user} {word}{change}\nbreak; done; {user} {word}\ndone"
                ),
                2 => format!("f=({one} {two}); {user} \"${{f[@]}}\" {word}"),
                _ => format!(
                    "for f in {one}; do for g in {two}; do {user} {word} \"$g\"{change}\ndone; done{again}"
                ),
            }
        }
        _ => simple(random, depth),
    }
}

/// Commands joined by operators.
pub(crate) fn list(random: &mut SeededRandom, depth: usize) -> String {
    let mut text = command(random, depth);
    for _ in 0..random.below(3) {
        let joint = if text.contains("<<") {
            "\n"
        } else {
            let joints =
                ["; ", " && ", " || ", " | ", " & ", "\n", ";", "&&", "|& ", " # x\n", " &\\\n& ", "|\\\n|"];
            random.pick(if random.tame { &joints[..10] } else { &joints })
        };
        text.push_str(joint);
        text.push_str(&command(random, depth));
    }
    text
}

/// Quotes and operators that damage a line.
const SIGNS: &[&str] = &[
    "'", "\"", "\\", "`", "$", "(", ")", "{", "}", ";", "&", "|", "<", ">", "#", "\n", " ", "!", "[", "]",
    "=", "\\\n", "$(", "${", "((", "))", "<(", "<<", "]]", "[[", "~", "*", ",", "..", "@P}", "+=", "\t", "-",
    "1",
];

/// A line, sometimes damaged.
pub(crate) fn line(random: &mut SeededRandom) -> String {
    random.tame = !random.one_in(3);
    let depth = if random.tame {
        [0, 1, 1, 1, 2, 2, 3][random.below(7)]
    } else {
        random.below(3) + usize::from(!random.one_in(4))
    };
    let mut text = list(random, depth);
    if random.one_in(3) {
        for _ in 0..=random.below(2) {
            text = damage(random, &text);
        }
    }
    text
}

/// Removes a random character, or inserts a random operator.
pub(crate) fn damage(random: &mut SeededRandom, text: &str) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    let at = random.below(characters.len().max(1));
    if random.one_in(2) && at < characters.len() {
        characters.remove(at);
    } else {
        let sign = random.pick(SIGNS);
        characters.splice(at..at, sign.chars());
    }
    characters.into_iter().collect()
}
