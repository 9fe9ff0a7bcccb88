//! The time of a command line's analysis: everyday lines, and lines made to be slow.
//!
//! Goals: 30 µs for a typical line, 10 ms for the worst 64 KB.

#![expect(clippy::unwrap_used, reason = "a benchmark that cannot set itself up should stop")]

use divan::{Bencher, black_box};
use toolgate_policy::Workspace;
use toolgate_proto::{AbsPath, CommandLine, ShellKind};
use toolgate_shell_syntax::analyse;

fn main() {
    divan::main();
}

const TYPICAL: &[(&str, &str)] = &[
    ("status", "git status --short"),
    ("pipeline", "grep -rn --include='*.rs' 'fn main' src | sort | uniq -c | head -n 20"),
    ("test run", "NO_COLOR=1 cargo test -p policy 2>&1 | tail -n 40"),
    ("commit", "git add -A && git commit -m \"$(cat <<'EOF'\nfix: handle x\n\nlonger text\nEOF\n)\""),
    ("loop", "for f in a b c; do if [ -f \"$f\" ]; then wc -l < a.txt; fi; done"),
    (
        "ten commands",
        "cd src && ls -la; cat main.rs | head -n 5; git log --oneline -n 3; git diff --stat; wc -l *.rs; \
         find . -name '*.rs' -newer a; sed -n 1,5p a; echo done",
    ),
];

/// Elements of lines that have made parsers slow, repeated up to the length of the benchmark.
const HOSTILE: &[(&str, &str)] = &[
    ("words", "a "),
    ("commands", "a;"),
    ("pipes", "a|"),
    ("substitutions", "$(a) "),
    ("open substitutions", "$("),
    ("open parentheses", "("),
    ("open arithmetic", "$(("),
    ("deep quotes", "\"$(echo "),
    ("open braces", "{"),
    ("brace lists", "{a,"),
    ("brace products", "{a,b}"),
    ("open parameters", "${a:-"),
    ("backquotes", "`a` "),
    ("backslashes", "\\"),
    ("quotes", "'a' "),
    ("open cases", "case a in a) "),
    ("open ifs", "if a; then "),
    ("open groups", "{ "),
    ("functions", "f() { "),
    ("redirects", ">b "),
    ("here-documents", "<<a "),
    ("assignments", "a=b "),
    ("subscripts", "a[b"),
    ("wrappers", "env "),
    ("long word", "a"),
    ("globs", "*[a]?"),
    ("continued lines", "\\\n"),
    ("dollars", "$"),
    ("shell texts", "sh -c "),
    ("change of directory", "cd a; "),
];

fn names(lines: &'static [(&'static str, &'static str)]) -> Vec<&'static str> {
    lines.iter().map(|(name, _)| *name).collect()
}

fn line(text: String) -> CommandLine {
    CommandLine::new(text, ShellKind::Bash, AbsPath::new("/ws").unwrap())
}

fn workspace() -> Workspace {
    let root = AbsPath::new("/ws").unwrap();
    Workspace::new(root).with_home(AbsPath::new("/home/ann").ok())
}

fn of(lines: &'static [(&'static str, &'static str)], name: &str) -> &'static str {
    lines.iter().find(|(other, _)| *other == name).unwrap().1
}

#[divan::bench(args = names(TYPICAL))]
fn typical(bencher: Bencher<'_, '_>, name: &str) {
    let (line, workspace) = (line(of(TYPICAL, name).to_owned()), workspace());
    bencher.bench(|| analyse(black_box(&line), &workspace));
}

/// The longest line that is analysed in full.
#[divan::bench(args = names(HOSTILE), sample_count = 20)]
fn hostile_10_000_characters(bencher: Bencher<'_, '_>, name: &str) {
    let text: String = of(HOSTILE, name).chars().cycle().take(10_000).collect();
    let (line, workspace) = (line(text), workspace());
    bencher.bench(|| analyse(black_box(&line), &workspace));
}

#[divan::bench(args = names(HOSTILE), sample_count = 20)]
fn hostile_64_kb(bencher: Bencher<'_, '_>, name: &str) {
    let text: String = of(HOSTILE, name).chars().cycle().take(65_536).collect();
    let (line, workspace) = (line(text), workspace());
    bencher.bench(|| analyse(black_box(&line), &workspace));
}
