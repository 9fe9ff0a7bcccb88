//! The program-list oracle: what bash starts must be among what the analysis lists.
//!
//! Commands are made of marker programs that only note their name; real bash runs them with a `PATH` that holds
//! nothing else but a few harmless wrappers. Wherever the analysis would let a rule allow the line, every marker
//! that ran must have been listed.

use super::dice::{Dice, setting};
use super::law::analysed;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;
use toolgate_policy::shell::{Analysis, DangerKind};

const MARKERS: &[&str] = &["m0", "m1", "m2", "m3", "m4", "m5", "m6", "m7"];
const WRAPPERS: &[&str] = &[
    "env", "timeout", "nice", "nohup", "xargs", "find", "stdbuf", "setsid", "cat", "true", "tee", "sort",
    "head",
];

fn marker(dice: &mut Dice) -> String {
    let name = dice.pick(MARKERS);
    let (first, second) = name.split_at(1);
    match dice.below(24) {
        0 => format!("\"{first}\"{second}"),
        1 => format!("{first}\\{second}"),
        2 => format!("'{name}'"),
        3 => format!("$'\\x6d'{second}"),
        4 => format!("{first}\\\n{second}"),
        5 => format!("\\{name}"),
        6 => format!("{first}''{second}"),
        7 => format!("./{name}"),
        8 => format!("\"{first}\\\n{second}\""),
        _ => name.to_owned(),
    }
}

fn blank(dice: &mut Dice) -> &'static str {
    dice.pick(&[" ", " ", " ", "  ", "\t", " \\\n"])
}

/// A word that may hide commands.
fn word(dice: &mut Dice, depth: usize) -> String {
    if depth == 0 && dice.tame {
        return dice
            .pick(&[
                "a", "b", "'c d'", "\"e\"", "f#g", "1", "-x", "--", "a=b", "*.q", "~", "{a,b}", "\\;", "$?",
                "''",
            ])
            .to_owned();
    }
    if depth == 0 {
        return dice
            .pick(&[
                "a", "b", "'c d'", "\"e\"", "f#g", "1", "-x", "--", "a=b", "*", "~", "{a,b}", "\\;", "$x",
                "\"$x\"", "$?", "''",
            ])
            .to_owned();
    }
    let inner = |dice: &mut Dice| list(dice, depth - 1);
    match dice.below(26) {
        0 => format!("$({})", inner(dice)),
        1 => format!("\"$({})\"", inner(dice)),
        2 => format!("`{}`", flat(dice)),
        3 => format!("\"`{}`\"", flat(dice)),
        4 => format!("<({})", inner(dice)),
        5 => format!("${{x:-{}}}", word(dice, depth - 1)),
        6 => format!("\"${{x:-{}}}\"", word(dice, depth - 1)),
        7 => format!("$(( 1 + $({}) ))", flat(dice)),
        8 => format!("${{a[$({})]}}", flat(dice)),
        9 => format!("$[ 1 + `{}` ]", flat(dice)),
        10 => format!("a{}b", word(dice, depth - 1)),
        11 => format!("\"a {} b\"", word(dice, depth - 1).replace('"', "")),
        12 => format!("'{}'", inner(dice).replace('\'', "")),
        13 => format!("$'{}'", inner(dice).replace(['\'', '\\'], "")),
        14 => format!("${{x#{}}}", word(dice, depth - 1)),
        15 => format!("${{x/{}/y}}", word(dice, depth - 1)),
        16 => format!("${{x:$({}):1}}", flat(dice)),
        17 => format!("{{a,{}}}", word(dice, depth - 1)),
        18 => format!("$( ({}) )", inner(dice)),
        19 => format!("$(({}) ; ({}))", flat(dice), flat(dice)),
        20 => format!("$(case a in a) {};; esac)", inner(dice)),
        21 => format!("\\$({})", flat(dice)),
        22 => format!("$(cat <<E\n$({})\nE\n)", flat(dice)),
        _ => word(dice, 0),
    }
}

/// A command without expansions, for places that are hard to nest in.
fn flat(dice: &mut Dice) -> String {
    let mut text = marker(dice).replace("\\\n", "");
    if dice.one_in(3) {
        text.push_str(dice.pick(&[" a", "; m1", " | m2", " 'b'", " && m3", " \\`m4\\`"]));
    }
    text
}

fn redirect(dice: &mut Dice, depth: usize) -> String {
    match dice.below(9) {
        0 => ">/dev/null".to_owned(),
        1 => "2>&1".to_owned(),
        2 => "</dev/null".to_owned(),
        3 => format!("<<< {}", word(dice, depth)),
        4 => format!("> >({})", list(dice, depth.saturating_sub(1))),
        5 => format!("< <({})", list(dice, depth.saturating_sub(1))),
        6 => "&>/dev/null".to_owned(),
        7 if !dice.tame => "{v}>/dev/null".to_owned(),
        _ => "2>/dev/null".to_owned(),
    }
}

fn simple(dice: &mut Dice, depth: usize) -> String {
    let mut text = String::new();
    if dice.one_in(6) {
        text.push_str(&format!(
            "{}={}{}",
            if dice.tame { "LC_ALL" } else { dice.pick(&["A", "x", "LC_ALL", "a[0]"]) },
            word(dice, depth.saturating_sub(1)).replace('*', ""),
            blank(dice)
        ));
    }
    match dice.below(22) {
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
        _ => {}
    }
    let alone = text.is_empty();
    match dice.below(34) {
        0 => text.push_str(&format!("sh -c '{}'", flat(dice).replace('\'', ""))),
        1 if !dice.tame => text.push_str(&format!("eval {} {}", marker(dice), word(dice, 0))),
        2 => text.push_str(&format!("find . -maxdepth 0 -exec {} {{}} \\;", dice.pick(MARKERS))),
        3 => text.push_str(&format!("bash <<'E'\n{}\nE", flat(dice))),
        4 => text.push_str(&format!("x={}", word(dice, depth))),
        5 if alone && !dice.tame => {
            text.push_str(&format!("x=({} {})", word(dice, depth), word(dice, depth)))
        }
        6 if !dice.tame => text.push_str(&format!("trap '{}' EXIT", flat(dice).replace('\'', ""))),
        7 if !dice.tame => text.push_str(&format!("declare y={}", word(dice, depth))),
        8 if !dice.tame => text.push_str("$x"),
        9 => text.push_str(&format!("{{{},a}}", dice.pick(MARKERS))),
        10 => text.push_str(&format!("cat <<E\n{}\nE", word(dice, depth))),
        11 => text.push_str(&format!("cat <<-'E'\n\t$({})\n\tE", flat(dice))),
        12 if !dice.tame => text.push_str(&format!("test -v 'a[$({})]'", flat(dice).replace('\'', ""))),
        13 => text.push_str(&format!("bash -c \"{}\"", flat(dice).replace(['"', '\\'], ""))),
        14 if !dice.tame => text.push_str(&format!("printf -v 'a[$({})]' x", flat(dice).replace('\'', ""))),
        15 if alone && !dice.tame => text.push_str(&format!("(( 1 + $({}) ))", flat(dice))),
        16 => text.push_str(&format!(
            "[[ a == {} && -n {} ]]",
            word(dice, depth.saturating_sub(1)),
            word(dice, depth.saturating_sub(1))
        )),
        17 if alone => {
            text.push_str(&format!("[[ a =~ ({}|b) ]]", word(dice, 0).replace(['\'', '"', ' '], "")))
        }
        _ => text.push_str(&marker(dice)),
    }
    // A here-document ends its line, and nothing follows a compound command.
    if (text.contains('\n') && text.contains("<<")) || text.ends_with("]]") || text.ends_with("))") {
        return text;
    }
    for _ in 0..dice.below(3) {
        text.push_str(blank(dice));
        text.push_str(&word(dice, depth));
    }
    if dice.one_in(5) {
        text.push_str(blank(dice));
        text.push_str(&redirect(dice, depth));
    }
    text
}

fn command(dice: &mut Dice, depth: usize) -> String {
    if depth == 0 {
        return simple(dice, 0);
    }
    let inner = |dice: &mut Dice| list(dice, depth - 1);
    match dice.below(28) {
        0 => format!("( {}\n)", inner(dice)),
        1 => format!("{{ {}\n}}", inner(dice)),
        2 => format!("if {}\nthen {}\nelse {}\nfi", inner(dice), inner(dice), inner(dice)),
        3 => format!("while {}\ndo {}\nbreak; done", inner(dice), inner(dice)),
        4 => {
            format!("for x in {} {}\ndo {}\ndone", word(dice, depth - 1), word(dice, depth - 1), inner(dice))
        }
        5 => format!(
            "case {} in {}) {}\n;; *) {}\nesac",
            word(dice, depth - 1),
            word(dice, 0),
            inner(dice),
            inner(dice)
        ),
        6 if !dice.tame => format!("f() {{ {}\n}}; f", inner(dice)),
        7 if dice.one_in(6) => format!("((({})))", inner(dice)),
        8 => format!("( ( {}\n) )", inner(dice)),
        9 if !dice.tame => format!("function g {{ {}\n}}\ng", inner(dice)),
        10 => format!("until {}\ndo break; done", inner(dice)),
        11 if dice.one_in(8) => format!("coproc {}", simple(dice, 0)),
        12 => format!("( {}\n) {}", inner(dice), redirect(dice, depth - 1)),
        _ => simple(dice, depth),
    }
}

pub(crate) fn list(dice: &mut Dice, depth: usize) -> String {
    let mut text = command(dice, depth);
    for _ in 0..dice.below(3) {
        let joint = if text.contains("<<") {
            "\n"
        } else {
            dice.pick(&["; ", " && ", " || ", " | ", " & ", "\n", ";", "&&", "|& ", " # x\n"])
        };
        text.push_str(joint);
        text.push_str(&command(dice, depth));
    }
    text
}

/// A line, sometimes damaged.
pub(crate) fn line(dice: &mut Dice) -> String {
    dice.tame = !dice.one_in(3);
    let depth = dice.below(3) + 1;
    let mut text = list(dice, depth);
    if dice.one_in(3) {
        for _ in 0..=dice.below(2) {
            let mut characters: Vec<char> = text.chars().collect();
            let at = dice.below(characters.len().max(1));
            if dice.one_in(2) && at < characters.len() {
                characters.remove(at);
            } else {
                let sign = dice.pick(&[
                    "'", "\"", "\\", "`", "$", "(", ")", "{", "}", ";", "&", "|", "<", ">", "#", "\n", " ",
                    "!", "[", "]", "=",
                ]);
                characters.splice(at..at, sign.chars());
            }
            text = characters.into_iter().collect();
        }
    }
    text
}

fn prepare(root: &Path) {
    let bin = root.join("bin");
    fs::create_dir_all(&bin).unwrap();
    fs::create_dir_all(root.join("work")).unwrap();
    for name in MARKERS {
        for place in [bin.join(name), root.join("work").join(name)] {
            fs::write(&place, format!("#!/bin/sh\necho {name} >> \"$MARKER_LOG\"\necho z\n")).unwrap();
            fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }
    for name in WRAPPERS {
        if let Some(real) =
            ["/usr/bin", "/bin"].iter().map(|dir| Path::new(dir).join(name)).find(|path| path.exists())
        {
            symlink(real, bin.join(name)).unwrap();
        }
    }
    symlink("/bin/bash", bin.join("bash")).unwrap();
    symlink("/bin/bash", bin.join("sh")).unwrap();
}

/// Runs a line in real bash with only these variables set, until all that it started has ended or the time is up.
/// What is still running then is killed with its process group, so that no line outlives its case.
pub(crate) fn bash(text: &str, directory: &Path, variables: &[(&str, &Path)]) {
    let mut child = Command::new("/bin/bash")
        .args(["--norc", "--noprofile", "-c", text])
        .env_clear()
        .envs(variables.iter().copied())
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut output = child.stdout.take().unwrap();
    let (done, ended) = mpsc::channel();
    // Everything that the line starts holds the pipe open, unless it is redirected.
    let reader = std::thread::spawn(move || {
        let _ = std::io::copy(&mut output, &mut std::io::sink());
        let _ = done.send(());
    });
    let _ = ended.recv_timeout(Duration::from_secs(5));
    // The shell has not been waited for, so its number is still its own and its group's.
    let group = format!("-{}", child.id());
    let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
    let _ = child.wait();
    let _ = reader.join();
}

/// Runs a line and tells which markers ran.
fn started(root: &Path, number: u64, text: &str) -> BTreeSet<String> {
    let log = root.join(format!("log-{number}"));
    let variables = [("PATH", root.join("bin")), ("HOME", root.join("work")), ("MARKER_LOG", log.clone())];
    let variables: Vec<(&str, &Path)> =
        variables.iter().map(|(name, value)| (*name, value.as_path())).collect();
    bash(text, &root.join("work"), &variables);
    let ran = fs::read_to_string(&log).unwrap_or_default();
    let _ = fs::remove_file(&log);
    ran.lines().map(str::to_owned).collect()
}

fn listed(analysis: &Analysis) -> BTreeSet<String> {
    let programs = analysis.programs();
    programs.iter().map(|program| program.rsplit('/').next().unwrap_or(program).to_owned()).collect()
}

#[test]
fn wrappers_and_what_they_run_are_listed_and_builtins_of_the_shell_are_not() {
    for (text, programs) in [
        ("ls -l | wc -l", "ls wc"),
        ("cd a && echo b; true; [ -f c ] && pwd", ""),
        ("env echo a", "env echo"),
        ("timeout 5 nice -n 3 cat a", "timeout nice cat"),
        ("command cat a; builtin echo a", "cat"),
        ("command env -u A printf a", "env printf"),
        ("find . -name a -exec wc -l {} + | xargs -n 1 test", "find wc xargs test"),
        ("find . | xargs", "find xargs echo"),
        ("ls | xargs env X=1 sort", "ls xargs env sort"),
        ("bash -c 'echo a; m1 b'", "bash m1"),
        ("env bash -c 'echo a; m1 b'", "env bash m1"),
        ("exec echo a", "echo"),
        ("./m0; ../a/m1 b", "./m0 ../a/m1"),
        ("echo $(m0 `m1`) <(m2) \"${x:-$(m3)}\" $((1 + $(m4)))", "m0 m1 m2 m3 m4"),
        ("cat <<E\n$(m0)\nE", "m0 cat"),
        ("time m0; ! m1; { m2; }; (m3)", "m0 m1 m2 m3"),
        ("zcat a.gz | egrep x", "zcat gzip egrep grep"),
    ] {
        let mut found = analysed(text).programs();
        let mut expected: Vec<&str> = programs.split_whitespace().collect();
        found.sort();
        expected.sort_unstable();
        assert_eq!(found, expected, "{text}");
    }
}

#[test]
fn every_program_that_bash_starts_is_listed() {
    let cases = setting("TOOLGATE_ORACLE_CASES", 300);
    let mut dice = Dice::new(setting("TOOLGATE_ORACLE_SEED", 1));
    let root = tempfile::tempdir().unwrap();
    prepare(root.path());
    let (mut doubted, mut hidden, mut ran_something, mut silent) = (0, 0, 0, 0);
    let mut missed = Vec::new();
    for number in 0..cases {
        let text = line(&mut dice);
        let analysis = analysed(&text);
        let ran = started(root.path(), number, &text);
        ran_something += u64::from(!ran.is_empty());
        if analysis.doubt.is_some() {
            doubted += 1;
            continue;
        }
        let names = listed(&analysis);
        let unlisted: Vec<&String> = ran.iter().filter(|name| !names.contains(*name)).collect();
        // It may say so: of a program that it cannot know, or of a builtin that evaluates text.
        let says_so = if dice.tame {
            analysis.dangers.iter().any(|danger| danger.kind == DangerKind::HiddenProgram)
        } else {
            analysis.parts.iter().any(|part| part.allow_text.is_none())
        };
        if says_so {
            hidden += 1;
            silent += u64::from(!unlisted.is_empty());
            continue;
        }
        if !unlisted.is_empty() {
            missed.push(format!("{unlisted:?} of {text:?}\nlisted {names:?}"));
        }
    }
    println!(
        "{cases} lines, {ran_something} ran something, {doubted} doubted, {hidden} with an unknown part ({silent} of them ran more than listed)"
    );
    assert!(
        missed.is_empty(),
        "{} of {cases} lines ran more than was listed\n{}",
        missed.len(),
        missed.join("\n\n")
    );
}
