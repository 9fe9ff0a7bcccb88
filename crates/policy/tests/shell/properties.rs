//! Properties of the analysis of every line.

use super::corpus::cases;
use super::line_classes::lines;
use super::simple_policy::{Answer, SimpleRules, analysed, judge};
use proptest::prelude::*;
use toolgate_shell_syntax::CommandAnalysis;

/// Text before and after a line that changes nothing about what the line runs.
const WRAPPINGS: &[(&str, &str)] = &[
    ("( ", "\n)"),
    ("{ ", "\n}"),
    ("true; ", ""),
    ("true && ", ""),
    ("true\n", ""),
    ("if true\nthen ", "\nfi"),
    ("for i in a\ndo ", "\ndone"),
    ("case a in a) ", "\n;; esac"),
    ("echo $( ", "\n)"),
    ("echo \"$( ", "\n)\""),
    ("cat <(", "\n)"),
    ("echo ${x:-$( ", "\n)}"),
    ("f() { ", "\n}"),
    ("while ", "\ndo break; done"),
    ("", "\ntrue"),
    ("a=$( ", "\n)"),
];

/// Words and redirects of the plain subset of bash.
const PLAIN: &[&str] = &[
    "a",
    "-x",
    "'b c'",
    "\"d e\"",
    "f\\ g",
    "*.rs",
    "[a-c]?",
    "<a.txt",
    "2>&1",
    ">/dev/null",
    "2> /dev/null",
    "'$x'",
    "\\$x",
    "a=b",
    "HEAD~1",
    "'`a`'",
    "{}",
    "--k=v",
    "x#y",
];

/// Expansions, substitutions, assignments, compound commands, functions, here-documents and output redirects.
const NOT_PLAIN: &[&str] = &[
    "$x",
    "\"$x\"",
    "${x}",
    "\"${x:-a}\"",
    "$(a)",
    "\"$(a)\"",
    "`a`",
    "\"`a`\"",
    "$((1))",
    "$[1]",
    "<(a)",
    ">(a)",
    "$'a'",
    "$\"a\"",
    "{a,b}",
    "{1..3}",
    "~",
    "~/a",
    "a=~",
    ">f",
    ">>f",
    ">|f",
    "&>f",
    "&>/dev/null",
    "2>f",
    ">&f",
    ">&2",
    "<>f",
    "3<f",
    "3>/dev/null",
    "<<<a",
    "<<E\na\nE\n",
    "<<-E\na\nE\n",
    "<&3",
    "; x=1",
    "; x=1 ls",
    "; x+=1",
    "; x[0]=1",
    "; x=(a)",
    "; export x=1",
    "; declare x",
    "; (ls)",
    "; { ls; }",
    "; if ls; then ls; fi",
    "; while ls; do ls; done",
    "; for x in a; do ls; done",
    "; case a in a) ls;; esac",
    "; [[ a ]]",
    "; ((1))",
    "; f() { ls; }",
    "; f() ( ls )",
    "; function f { ls; }",
    "; ! ls",
    "; time ls",
    "; coproc ls",
    "& ls",
    "|& ls",
    "; select x in a; do ls; done",
    "; eval a",
    "a\\\nb",
];

/// Words before a simple command that do not change which command runs.
const PREFIXES: &[&str] = &[
    "time ",
    "nohup ",
    "nice -n 5 ",
    "timeout 9 ",
    "command ",
    "env ",
    "sudo ",
    "LC_ALL=C ",
    "A=b ",
    "! ",
    "exec ",
    "\\\n",
    "  ",
];

/// Lines that are not allowed, with their rules and their verdict.
fn refused() -> Vec<(String, SimpleRules, Answer)> {
    let mut all = Vec::new();
    for (case, rules, line) in cases() {
        let answer = judge(&analysed(&line.text), &rules);
        if case["expect"] != "allow" {
            all.push((line.text, rules, answer));
        }
    }
    let read_only = SimpleRules { read_only: true, ..SimpleRules::default() };
    for text in
        lines(include_str!("cases/asked.txt")).into_iter().chain(lines(include_str!("cases/asked-git.txt")))
    {
        all.push((text, read_only.clone(), Answer::Ask));
    }
    let deny = ["curl *", "curl", "rm *", "git push *"].map(str::to_owned).to_vec();
    let rules = SimpleRules { allow: vec!["*".to_owned()], deny, read_only: true, ..SimpleRules::default() };
    for text in lines(include_str!("cases/denied.txt")) {
        all.push((text, rules.clone(), Answer::Deny));
    }
    all
}

/// Whether a line is complete. An incomplete line, or one that ends in a comment, changes if text is appended.
fn is_whole(analysis: &CommandAnalysis, text: &str) -> bool {
    analysis.doubt.is_none() && !text.contains('#')
}

#[test]
fn wrapping_a_refused_line_never_lets_it_pass() {
    let mut tried = 0;
    for (text, rules, answer) in refused() {
        // An incomplete line may become complete inside other text.
        let whole = is_whole(&analysed(&text), &text);
        for (before, after) in WRAPPINGS.iter().filter(|_| whole) {
            let wrapped = format!("{before}{text}{after}");
            let now = judge(&analysed(&wrapped), &rules);
            tried += 1;
            assert!(now != Answer::Allow, "{wrapped:?} passes with {rules:?}");
            if answer == Answer::Deny {
                assert_eq!(now, Answer::Deny, "{wrapped:?} with {rules:?}");
            }
        }
        let simple = !text.contains(['\n', ';', '|', '&', '(', '{', '!', '='])
            && whole
            && !text.starts_with(['>', '<']);
        for before in PREFIXES.iter().filter(|_| simple) {
            let prefixed = format!("{before}{}", text.trim_start());
            let now = judge(&analysed(&prefixed), &rules);
            tried += 1;
            let words = ["if ", "while ", "case ", "for ", "f()", "function ", "select ", "[["];
            if words.iter().any(|word| text.contains(word)) {
                continue;
            }
            assert!(now != Answer::Allow, "{prefixed:?} passes with {rules:?}");
            if answer == Answer::Deny {
                assert_eq!(now, Answer::Deny, "{prefixed:?} with {rules:?}");
            }
        }
        let quoted = format!("sh -c '{}'", text.replace('\'', "'\\''"));
        let now = judge(&analysed(&quoted), &SimpleRules { read_only: false, ..rules.clone() });
        assert!(now != Answer::Allow, "{quoted:?} passes with {rules:?}");
    }
    println!("{tried} wrapped lines");
}

#[test]
fn harmless_respelling_changes_nothing() {
    let read_only = SimpleRules { read_only: true, ..SimpleRules::default() };
    let allowed = lines(include_str!("cases/free.txt")).into_iter().map(|text| (text, read_only.clone()));
    let corpus = cases().into_iter().map(|(_, rules, line)| (line.text, rules));
    for (text, rules) in allowed.chain(corpus) {
        let analysis = analysed(&text);
        let answer = judge(&analysis, &rules);
        let respelled = [format!("  {text}"), format!("\n{text}"), format!("{text}  "), format!("{text}\n")];
        for other in respelled.into_iter().filter(|_| !text.contains("<<")) {
            assert_eq!(judge(&analysed(&other), &rules), answer, "{other:?}");
        }
        // Quotes around plain words, and more blanks between them.
        let plain = |word: &str| {
            !word.is_empty()
                && word
                    .chars()
                    .all(|character| character.is_alphanumeric() || "-_./,:@%+".contains(character))
        };
        if analysis.parts.len() == 1 && analysis.doubt.is_none() && text.split(' ').all(plain) {
            for quote in ["'", "\""] {
                let words: Vec<String> =
                    text.split(' ').map(|word| format!("{quote}{word}{quote}")).collect();
                let other = words.join("   ");
                assert_eq!(judge(&analysed(&other), &rules), answer, "{other:?}");
            }
        }
    }
}

/// Every spelling that deny and ask rules are matched against.
fn spellings(analysis: &CommandAnalysis) -> Vec<String> {
    analysis.parts.iter().flat_map(|part| part.deny_texts.clone()).collect()
}

/// Generates a simple command.
fn simple_command() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("a".to_owned()),
        Just("-x".to_owned()),
        Just("'b c'".to_owned()),
        Just("\"$x\"".to_owned()),
        Just("$(inner y)".to_owned()),
        Just("src/*.rs".to_owned()),
        Just("> out".to_owned()),
        "[a-z]{1,4}",
    ];
    ("[a-z]{3,6}x", proptest::collection::vec(word, 0..4))
        .prop_map(|(program, words)| format!("{program} {}", words.join(" ")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn nesting_never_removes_a_part(command in simple_command(), nest in proptest::collection::vec(0..WRAPPINGS.len(), 0..4)) {
        let mut text = command.clone();
        for wrapping in nest {
            let (before, after) = WRAPPINGS[wrapping];
            text = format!("{before}{text}{after}");
        }
        let wanted = spellings(&analysed(&command));
        let found = spellings(&analysed(&text));
        for spelling in wanted {
            prop_assert!(found.contains(&spelling), "{spelling:?} is missing in {text:?}: {found:?}");
        }
    }

    #[test]
    fn only_the_plain_subset_has_plain_syntax(
        words in proptest::collection::vec(proptest::sample::select(PLAIN.to_vec()), 1..6),
        joints in proptest::collection::vec(proptest::sample::select(vec![" ", " | ls ", " && ls ", "; ls ", "\nls ", " || ls "]), 6),
        other in proptest::sample::select(NOT_PLAIN.to_vec()),
        at in 0..6_usize,
    ) {
        let line = |words: &[&str]| {
            let joined = words.iter().zip(&joints).map(|(word, joint)| format!("{joint}{word}"));
            format!("ls{}", joined.collect::<String>())
        };
        let plain = line(&words);
        prop_assert!(analysed(&plain).plain_syntax, "{plain:?}");
        let mut words = words;
        words.insert(at.min(words.len()), other);
        let text = line(&words);
        prop_assert!(!analysed(&text).plain_syntax, "{text:?}");
    }

    #[test]
    fn every_text_has_one_answer(text in "[ -~\n\t]{0,60}") {
        prop_assert_eq!(analysed(&text), analysed(&text));
    }

    #[test]
    fn signs_thrown_together_have_an_answer(pieces in proptest::collection::vec(proptest::sample::select(vec![
        "'", "\"", "\\", "`", "$", "$(", "${", "$((", "((", "(", ")", "{", "}", "[[", "]]", ";", "&", "|", "<", ">", "<<", "<<<", "<(", "#", "\n", " ",
        "if", "then", "fi", "for", "in", "do", "done", "case", "esac", "while", "!", "time", "a", "rm", "=", "*", "~", "a=", "x[", "]", "é", "\u{0}", "\r", ";;", "&&", "||", "}", "))", "EOF", "-c", "sh", "env", "{a,b}", "{1..9}",
    ]), 0..40)) {
        let text = pieces.concat();
        let analysis = analysed(&text);
        prop_assert_eq!(&analysis, &analysed(&text));
        // A part that no rule can cover is not read-only.
        for part in &analysis.parts {
            prop_assert!(!part.read_only || part.allow_text.is_some());
        }
    }

    #[test]
    fn a_list_is_as_strict_as_its_strictest_part(first in simple_command(), second in simple_command()) {
        let rules = SimpleRules { allow: vec!["a*".to_owned(), "b*".to_owned(), "inner *".to_owned()], deny: vec!["*zx *".to_owned()], read_only: true, ..SimpleRules::default() };
        let whole = judge(&analysed(&format!("{first}; {second}")), &rules);
        let parts = judge(&analysed(&first), &rules).max(judge(&analysed(&second), &rules));
        prop_assert_eq!(whole, parts);
    }
}
