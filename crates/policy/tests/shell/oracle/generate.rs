//! Generates lines from the grammar of bash: marker programs inside constructs that may hide them.
//!
//! In tame mode, constructs that the analysis never allows are left out, so that more lines are run.

use super::super::dice::Dice;

#[path = "scripts.rs"]
pub(crate) mod scripts;
#[path = "traps.rs"]
mod traps;

use traps::{SPRINGS, TRAPS};

/// Stub programs that only log their name. The rules of the oracle allow the first five, and `m5 a` exactly.
pub(crate) const MARKERS: &[&str] = &["m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7"];

/// A marker in a random spelling.
fn marker(dice: &mut Dice) -> String {
    // Mostly one that a rule allows, so that lines of several commands are allowed.
    let name = if dice.tame && !dice.one_in(16) { dice.pick(&MARKERS[..5]) } else { dice.pick(MARKERS) };
    let (first, second) = name.split_at(1);
    match dice.below(if dice.tame { 200 } else { 32 }) {
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
fn program(dice: &mut Dice) -> String {
    match dice.below(if dice.tame { 6 } else { 10 }) {
        0 => "cat".to_owned(),
        1 => dice.pick(&["head -n 1", "wc -l", "sort", "tr a b", "cut -c 1", "grep -c a"]).to_owned(),
        2 | 3 => "echo".to_owned(),
        4 => dice.pick(&["printf '%s\\n'", "true", ":", "test -n", "pwd", "[ a = b ] &&"]).to_owned(),
        _ => marker(dice),
    }
}

/// Blanks between words.
fn blank(dice: &mut Dice) -> &'static str {
    dice.pick(&[" ", " ", " ", " ", " ", "  ", "\t", " \\\n", "\\\n "])
}

/// A word without nested commands.
fn leaf(dice: &mut Dice) -> String {
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
    if dice.tame || !dice.one_in(3) { dice.pick(&tame).to_owned() } else { dice.pick(&wild).to_owned() }
}

/// A word that may contain commands.
pub(crate) fn word(dice: &mut Dice, depth: usize) -> String {
    if depth == 0 {
        return if dice.one_in(if dice.tame { 24 } else { 4 }) {
            let spring = dice.pick(SPRINGS);
            if dice.one_in(2) { format!("\"{spring}\"") } else { spring.to_owned() }
        } else {
            leaf(dice)
        };
    }
    let inner = |dice: &mut Dice| ended(list(dice, depth - 1));
    let nested = |dice: &mut Dice| word(dice, depth - 1);
    // Forms that are allowed if their content is.
    let form = if dice.tame && !dice.one_in(8) {
        [0, 1, 2, 3, 4, 5, 6, 11, 12, 13, 14, 15, 17, 18, 20, 22, 32, 33, 34, 50, 50, 50, 50][dice.below(23)]
    } else {
        dice.below(46)
    };
    match form {
        0 => format!("$({})", inner(dice)),
        1 => format!("\"$({})\"", inner(dice)),
        2 => format!("`{}`", flat(dice)),
        3 => format!("\"`{}`\"", flat(dice)),
        4 => format!("<({})", inner(dice)),
        5 => format!("${{HOME:-{}}}", nested(dice)),
        6 => format!("\"${{HOME:+{}}}\"", nested(dice)),
        7 => format!("$(( 1 + $({}) ))", flat(dice)),
        8 => format!("${{a[$({})]}}", flat(dice)),
        9 => format!("$[ 1 + `{}` ]", flat(dice)),
        10 => format!("a{}b", nested(dice)),
        11 => format!("\"a {} b\"", nested(dice).replace('"', "")),
        12 => format!("'{}'", inner(dice).replace('\'', "")),
        13 => format!("$'{}'", inner(dice).replace(['\'', '\\'], "")),
        14 => {
            let operator = dice
                .pick(&["#", "##", "%", "%%", "/", "//", "/#", "/%", "^", "^^", ",", ",,", "-", "+", ":?"]);
            format!("${{HOME{operator}{}}}", nested(dice))
        }
        15 => format!("${{HOME/{}/{}}}", nested(dice), nested(dice)),
        16 => format!("${{HOME:$({}):1}}", flat(dice)),
        17 => format!("{{a,{}}}", nested(dice)),
        18 => format!("$( ({}) )", inner(dice)),
        19 => format!("$(({}) ; ({}))", flat(dice), flat(dice)),
        20 => format!("$(case a in a) {};; esac)", inner(dice)),
        21 => format!("\\$({})", flat(dice)),
        22 => format!("$(cat <<E\n$({})\nE\n)", flat(dice)),
        23 => format!("\"${{HOME:+{}}}\"", dice.pick(SPRINGS)),
        24 => format!("$(({}))", arithmetic(dice)),
        25 => format!("$[{}]", arithmetic(dice)),
        26 => format!("\"$(({}))\"", arithmetic(dice)),
        27 => format!("${{PIPESTATUS[{}]}}", arithmetic(dice)),
        28 => format!("${{HOME:{}}}", arithmetic(dice)),
        29 => format!("$(\\\n{})", inner(dice)),
        30 => format!("$\\\n({})", inner(dice)),
        31 => format!(">({})", inner(dice)),
        32 => format!("${{HOME:+${{HOME:-{}}}}}", nested(dice)),
        33 => format!("\"${{HOME:-\"{}\"}}\"", nested(dice).replace('"', "")),
        34 => format!("${{HOME:+'{}'}}", flat(dice).replace('\'', "")),
        35 => format!("$(( {} ) )", flat(dice)),
        36 => "$(< a.txt)".to_owned(),
        _ => word(dice, 0),
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
fn arithmetic(dice: &mut Dice) -> String {
    let code = flat(dice).replace('\n', "");
    match dice.below(if dice.tame { 22 } else { 16 }) {
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
        15 => format!("\"1\" + {}", dice.pick(SPRINGS)),
        16 => "RANDOM % 3".to_owned(),
        17 => "1 << 2".to_owned(),
        _ => dice.pick(&["1", "1 + 2", "2 * (3 - 1)", " 0 ", "16#ff", "1 ? 2 : 3", "1, 2", "-1"]).to_owned(),
    }
}

/// A command without expansions, for constructs in which nesting is hard.
fn flat(dice: &mut Dice) -> String {
    let mut text = marker(dice).replace("\\\n", "");
    if dice.one_in(3) {
        text.push_str(dice.pick(&[" a", "; m1", " | m2", " 'b'", " && m3", " \\`m4\\`", " \"c\"", " # x"]));
    }
    text
}

/// A redirect.
fn redirect(dice: &mut Dice, depth: usize) -> String {
    let less = depth.saturating_sub(1);
    match dice.below(22) {
        0 => ">/dev/null".to_owned(),
        1 => "2>&1".to_owned(),
        2 => "</dev/null".to_owned(),
        3 => format!("<<< {}", word(dice, depth)),
        4 => format!("> >({})", list(dice, less)),
        5 => format!("< <({})", list(dice, less)),
        6 => "&>/dev/null".to_owned(),
        7 if !dice.tame => "{v}>/dev/null".to_owned(),
        8 => "< a.txt".to_owned(),
        9 => "2147483648</dev/null".to_owned(),
        10 => "3</dev/null 4>&1".to_owned(),
        11 => "2\\\n>/dev/null".to_owned(),
        12 if !dice.tame => format!("> {}", word(dice, 0)),
        13 if !dice.tame => dice
            .pick(&[">&2147483648", ">| o", ">>o", "<>o", "&>>o", ">&1-2", ">o{a,}", ">\\\n>o"])
            .to_owned(),
        14 => ">&2".to_owned(),
        15 => "2>&-".to_owned(),
        16 => format!("< {}", word(dice, 0)),
        _ => "2>/dev/null".to_owned(),
    }
}

/// A test in double brackets.
fn condition(dice: &mut Dice, depth: usize) -> String {
    let one = |dice: &mut Dice| word(dice, depth);
    let form = if dice.tame && !dice.one_in(8) {
        [0, 1, 2, 5, 9, 10, 11, 13, 14, 15][dice.below(10)]
    } else {
        dice.below(16)
    };
    match form {
        0 => format!("{} == {}", one(dice), one(dice)),
        1 => format!("-n {}", one(dice)),
        2 => format!("a =~ ({}|b)", word(dice, 0).replace(['\'', '"', ' '], "")),
        3 => format!("a =~ <({})", flat(dice)),
        4 => format!("a =~ (x|<({}))", flat(dice)),
        5 => format!("{} =~ ^[a-z]+$", one(dice)),
        6 => format!("{} -eq {}", one(dice), one(dice)),
        7 => format!("y -{} 0", dice.pick(&["eq", "ne", "lt", "le", "gt", "ge"])),
        8 => format!("-v {}", one(dice)),
        9 => format!("a < {}", one(dice)),
        10 => format!("-f {} && ! -d sub", word(dice, 0)),
        11 => format!("( {} ) || a == b", one(dice)),
        12 => format!("a =~ b&&-v {}", one(dice)),
        13 => format!("-n <({})", flat(dice)),
        14 => format!("{} -gt 3", dice.pick(&["1", "$?", "$#", "$y", "$((1))", "${#HOME}"])),
        _ => format!("{} != *{}", one(dice), word(dice, 0)),
    }
}

/// A simple command.
fn simple(dice: &mut Dice, depth: usize) -> String {
    let mut text = String::new();
    if dice.one_in(if dice.tame { 24 } else { 6 }) {
        let name = if dice.tame {
            "LC_ALL"
        } else {
            dice.pick(&["A", "x", "LC_ALL", "a[0]", "a[y]", "a[x y]", "y+"])
        };
        let value = word(dice, depth.saturating_sub(1)).replace('*', "");
        text.push_str(&format!("{name}={value}{}", blank(dice)));
    }
    if dice.one_in(if dice.tame { 30 } else { 12 }) {
        text.push_str(&redirect(dice, 0));
        text.push(' ');
    }
    match dice.below(if dice.tame { 80 } else { 30 }) {
        0 => text.push_str("env "),
        1 => text.push_str("env -u A B=c "),
        2 => text.push_str("timeout 5 "),
        3 => text.push_str("nice -n 5 "),
        4 => text.push_str("time "),
        5 => text.push_str("command "),
        6 if !dice.tame => text.push_str("exec "),
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
    let form = if dice.tame && !dice.one_in(4) {
        [4, 10, 11, 16, 17, 21, 22, 23, 60, 60, 60, 60][dice.below(12)]
    } else {
        dice.below(60)
    };
    match form {
        0 => text.push_str(&format!("sh -c '{}'", flat(dice).replace('\'', ""))),
        1 if !dice.tame => text.push_str(&format!("eval {} {}", marker(dice), word(dice, 0))),
        2 => text.push_str(&format!("find . -maxdepth 0 -exec {} {{}} \\;", dice.pick(MARKERS))),
        3 => text.push_str(&format!("bash <<'E'\n{}\nE", flat(dice))),
        4 => text.push_str(&format!("x={}", word(dice, depth))),
        5 if alone => text.push_str(&format!("x=({} {})", word(dice, less), word(dice, less))),
        6 if !dice.tame => text.push_str(&format!("trap '{}' EXIT", flat(dice).replace('\'', ""))),
        7 if !dice.tame => text.push_str(&format!("declare y={}", word(dice, depth))),
        8 if !dice.tame => text.push_str("$x"),
        9 => text.push_str(&format!("{{{},a}}", dice.pick(MARKERS))),
        10 => text.push_str(&format!("cat <<E\n{}\nE", word(dice, depth))),
        11 => text.push_str(&format!("cat <<-'E'\n\t$({})\n\tE", flat(dice))),
        12 => text.push_str(&format!("test -v 'a[$({})]'", flat(dice).replace('\'', ""))),
        13 => text.push_str(&format!("bash -c \"{}\"", flat(dice).replace(['"', '\\'], ""))),
        14 => text.push_str(&format!("printf -v 'a[$({})]' x", flat(dice).replace('\'', ""))),
        15 if alone => text.push_str(&format!("(({}))", arithmetic(dice))),
        16..=19 => text.push_str(&format!("[[ {} ]]", condition(dice, less))),
        20 if !dice.tame => text.push_str(dice.pick(&[
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
        21 => text.push_str(&format!("cat <<\"E\" <<F\n$({})\nE\n{}\nF", flat(dice), word(dice, less))),
        22 => text.push_str(&format!("cat <<E | {}\n{}\nE", marker(dice).replace("\\\n", ""), word(dice, 0))),
        23 => text.push_str(&format!("grep -e {} a.txt", word(dice, less))),
        24 => text.push_str(&format!("y={}", word(dice, less))),
        25 => text.push_str(dice.pick(TRAPS.get(..9).unwrap_or(TRAPS))),
        26 if dice.one_in(3) => text.push_str(&format!("a[{}]={}", arithmetic(dice), word(dice, 0))),
        27 if dice.one_in(3) => text.push_str(&format!("m0[{}] a", word(dice, 0))),
        28 => text.push_str(&scripts::command(dice)),
        _ => text.push_str(&program(dice)),
    }
    // Nothing may follow a here-document on its line, nor a compound command.
    let assigns = dice.tame && (text.starts_with("x=") || text.starts_with("y="));
    if (text.contains('\n') && text.contains("<<")) || text.ends_with("]]") || text.ends_with("))") || assigns
    {
        return text;
    }
    for _ in 0..dice.below(4) {
        text.push_str(blank(dice));
        text.push_str(&word(dice, depth));
    }
    if dice.one_in(5) {
        text.push_str(blank(dice));
        text.push_str(&redirect(dice, depth));
    }
    text
}

/// A command of any kind.
fn command(dice: &mut Dice, depth: usize) -> String {
    if depth == 0 {
        return simple(dice, 0);
    }
    let inner = |dice: &mut Dice| list(dice, depth - 1);
    let nested = |dice: &mut Dice| word(dice, depth - 1);
    let form = if dice.tame && !dice.one_in(6) {
        [0, 1, 2, 3, 4, 6, 7, 10, 12, 14, 15, 16, 21, 23, 24, 24, 50, 50, 50, 50][dice.below(20)]
    } else {
        dice.below(44)
    };
    match form {
        0 => format!("( {}\n)", inner(dice)),
        1 => format!("{{ {}\n}}", inner(dice)),
        2 => format!("if {}\nthen {}\nelse {}\nfi", inner(dice), inner(dice), inner(dice)),
        3 => format!("while {}\ndo {}\nbreak; done", inner(dice), inner(dice)),
        4 | 5 => format!("for x in {} {}\ndo {}\ndone", nested(dice), nested(dice), inner(dice)),
        6 | 7 => {
            let (subject, pattern, other) = (nested(dice), nested(dice), word(dice, 0));
            let end = dice.pick(&[";;", ";&", ";;&"]);
            format!("case {subject} in {pattern}) {}\n{end} ({other}|a) {}\nesac", inner(dice), inner(dice))
        }
        8 if !dice.tame => format!("f() {{ {}\n}}; f", inner(dice)),
        9 => format!("((({})))", inner(dice)),
        10 => format!("( ( {}\n) )", inner(dice)),
        11 if !dice.tame => format!("function g {{ {}\n}}\ng", inner(dice)),
        12 => format!("until {}\ndo break; done", inner(dice)),
        13 if dice.one_in(8) => format!("coproc {}", simple(dice, 0)),
        14 => format!("( {}\n) {}", inner(dice), redirect(dice, depth - 1)),
        15 => format!("{{ {}\n}} {}", inner(dice), redirect(dice, depth - 1)),
        16 => format!("for ((i=0;i<2;i++)); do {}\ndone", inner(dice)),
        17 => format!("for (({};;)); do {}\nbreak; done", arithmetic(dice).replace(';', ""), inner(dice)),
        18 => format!("select x in {}; do {}\nbreak; done </dev/null", nested(dice), inner(dice)),
        19 => format!("(({}))", arithmetic(dice)),
        20 => format!("((echo {}); {})", nested(dice), inner(dice)),
        21 | 22 => {
            let trap = dice.pick(TRAPS);
            let spring = dice.pick(SPRINGS);
            let end = if trap.starts_with("for ") { "\ndone" } else { "" };
            let joint = if end.is_empty() { "; " } else { " " };
            let use_of = match dice.below(14) {
                0 => format!("case {spring} in a) m0;; esac"),
                1 => format!("case a in {spring}) m0;; esac"),
                2 => format!("cat <<E\n{spring}\nE"),
                3 => format!("cat <<< {spring}"),
                4 => format!("x={spring}"),
                5 => format!("[[ {} ]]", condition(dice, 0)),
                6 => format!("for i in {spring}; do m0; done"),
                7 => format!("cat < {spring}"),
                8 => format!("LC_ALL={spring} m0"),
                9 => format!("x={spring}; echo $((x))"),
                10 => format!("m0 \"{}\"", nested(dice).replace('"', "")),
                11 => format!("timeout {spring} m0"),
                12 => format!("{} {spring} cat a.txt", dice.pick(&["nice -n", "stdbuf -o", "timeout -k 1"])),
                _ => format!("echo {spring}"),
            };
            format!("{trap}{joint}{use_of}{end}")
        }
        23 => format!("if [[ {} ]]; then {}\nfi", condition(dice, depth - 1), inner(dice)),
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
            let (one, two) = (dice.pick(&values), if dice.one_in(2) { "" } else { dice.pick(&values) });
            let change =
                ["", "", "", "", "; f=.env", "; read f <<< .env", "; for f in .env; do :; done", "; cd sub"];
            let change = dice.pick(&change);
            let user = dice.pick(&[
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
                dice.pick(&["\"$f\"", "\"$f\"", "$f", "\"${f}\"", "\"$f\"x", "<\"$f\"", "\"$f\" \"$f\""]);
            let again = if dice.one_in(3) { format!("; {}", inner(dice)) } else { String::new() };
            match dice.below(4) {
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
        _ => simple(dice, depth),
    }
}

/// Commands joined by operators.
pub(crate) fn list(dice: &mut Dice, depth: usize) -> String {
    let mut text = command(dice, depth);
    for _ in 0..dice.below(3) {
        let joint = if text.contains("<<") {
            "\n"
        } else {
            let joints =
                ["; ", " && ", " || ", " | ", " & ", "\n", ";", "&&", "|& ", " # x\n", " &\\\n& ", "|\\\n|"];
            dice.pick(if dice.tame { &joints[..10] } else { &joints })
        };
        text.push_str(joint);
        text.push_str(&command(dice, depth));
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
pub(crate) fn line(dice: &mut Dice) -> String {
    dice.tame = !dice.one_in(3);
    let depth = if dice.tame {
        [0, 1, 1, 1, 2, 2, 3][dice.below(7)]
    } else {
        dice.below(3) + usize::from(!dice.one_in(4))
    };
    let mut text = list(dice, depth);
    if dice.one_in(3) {
        for _ in 0..=dice.below(2) {
            text = damage(dice, &text);
        }
    }
    text
}

/// Removes a random character, or inserts a random operator.
pub(crate) fn damage(dice: &mut Dice, text: &str) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    let at = dice.below(characters.len().max(1));
    if dice.one_in(2) && at < characters.len() {
        characters.remove(at);
    } else {
        let sign = dice.pick(SIGNS);
        characters.splice(at..at, sign.chars());
    }
    characters.into_iter().collect()
}
