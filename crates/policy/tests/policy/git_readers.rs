//! The option tables of git, compared with git itself: whatever the options of a reader are, it shows no denied file.
//!
//! The lines are random: options of the tables, written out, abbreviated and in clusters, with values attached or not,
//! beside words that are revisions, paths or options, so that a table that gives an option the wrong number of words is
//! found. Git runs the lines that need no approval.

use super::super::shell::random_numbers::{SeededRandom, setting};
use super::git::judge_line;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use toolgate_policy::RuleAction;
use toolgate_shell_syntax::{git_reader_options, git_readers};

/// What the denied files contain.
const SECRET: &str = "PRIVATE-TEXT";

/// The rules for the denied files.
const DENIED: &[&str] = &["Read(.env)", "Read(private/**)"];

/// Revisions, paths, and options that change what is shown.
const WORDS: &[&str] = &[
    ".env",
    ".env",
    "HEAD:.env",
    ":.env",
    "private/key~",
    "private/a..b",
    "HEAD:a.txt",
    "HEAD:a.txt",
    "HEAD",
    "HEAD~1",
    "main",
    "HEAD~1..main",
    "a.txt",
    "src",
    "blob",
    "--",
    "-p",
    "--stat",
    "-s",
    "--all",
    "--tags",
    "--stdin",
    "--batch",
    "--format=%(raw)",
    "-e",
    "TEXT",
    "1",
];

/// Options that no table has.
const UNLISTED: &[&str] = &[
    "--filters",
    "--textconv",
    "--contents",
    "--find-object",
    "--end-of-options",
    "--default",
    "--batch-command",
    "--exclude-from",
    "--indexed-objects",
    "--pathspec-from-file",
    "-f",
    "-O",
];

fn git(dir: &Path, words: &[&str]) -> Output {
    let path = std::env::var("PATH").unwrap();
    Command::new("timeout")
        .args(["10", "git"])
        .args(words)
        .current_dir(dir)
        .env_clear()
        .envs([("PATH", path.as_str()), ("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_PAGER", "cat")])
        .env("HOME", dir)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// A repository whose denied files are in the history, in a reference of their own, and staged with another text.
fn make_repository(dir: &Path) {
    for (name, text) in [
        (".env", SECRET),
        ("private/key~", SECRET),
        ("private/a..b", SECRET),
        ("a.txt", "a"),
        ("src/main.rs", "m"),
    ] {
        let path = dir.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{text}\n")).unwrap();
    }
    let set_up: &[&[&str]] = &[
        &["init", "-q", "-b", "main"],
        &["config", "user.name", "a"],
        &["config", "user.email", "a@example.com"],
        &["add", "a.txt", "src"],
        &["commit", "-qm", "one"],
        &["add", "-f", ".env", "private"],
        &["commit", "-qm", "two"],
        &["tag", "blob", "HEAD:.env"],
    ];
    for words in set_up {
        let done = git(dir, words);
        assert!(done.status.success(), "{words:?}: {done:?}");
    }
    std::fs::write(dir.join(".env"), format!("{SECRET} 2\n")).unwrap();
    assert!(git(dir, &["add", ".env"]).status.success());
}

/// One random word after a subcommand.
fn random_word(options: &[String], random: &mut SeededRandom) -> String {
    if options.is_empty() || random.one_in(2) {
        return random.pick(WORDS).to_owned();
    }
    if random.one_in(8) {
        return random.pick(UNLISTED).to_owned();
    }
    let option = &options[random.below(options.len())];
    let plain = option.trim_end_matches(['=', '?', '<']);
    if !option.starts_with("--") {
        let mut cluster = plain.to_owned();
        for _ in 0..random.below(3) {
            let other = &options[random.below(options.len())];
            cluster.extend(other.strip_prefix('-').filter(|letter| letter.len() == 1));
        }
        return if random.one_in(6) { cluster + random.pick(WORDS) } else { cluster };
    }
    let shortened =
        if random.one_in(6) { &plain[..plain.len().min(3 + random.below(plain.len()))] } else { plain };
    if random.one_in(4) { format!("{shortened}={}", random.pick(WORDS)) } else { shortened.to_owned() }
}

#[test]
fn git_shows_no_denied_file_with_any_options_of_its_readers() {
    if Command::new("git").arg("--version").output().is_err() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    make_repository(dir.path());
    let mut random = SeededRandom::new(setting("TOOLGATE_ORACLE_SEED", 1) ^ 0x617);
    let count = setting("TOOLGATE_ORACLE_GIT", 2_000);
    let readers: Vec<(&str, Vec<String>)> = git_readers()
        .into_iter()
        .map(|name| (name, git_reader_options(name)))
        .filter(|(_, options)| !options.is_empty())
        .collect();
    let (mut ran, mut worked) = (0, 0);
    let mut wrong = Vec::new();
    for _ in 0..count {
        let (name, options) = &readers[random.below(readers.len())];
        let mut words = vec![(*name).to_owned()];
        for _ in 0..=random.below(4) {
            words.push(random_word(options, &mut random));
        }
        let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
        let line = format!("git {}", quoted.join(" "));
        let allow: &[&str] = if random.one_in(2) { &["Bash(git *)"] } else { &[] };
        if judge_line(&line, allow, DENIED, "/ws") != RuleAction::Allow {
            continue;
        }
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let done = git(dir.path(), &words);
        ran += 1;
        worked += usize::from(done.status.success());
        let shown = [done.stdout, done.stderr].concat();
        if String::from_utf8_lossy(&shown).contains(SECRET) {
            wrong.push(format!("{line} with allow {allow:?}"));
        }
    }
    println!("{ran} of {count} git commands ran, {worked} with success");
    assert!(worked > 100.min(count as usize / 100), "only {worked} of {ran} commands worked");
    assert!(wrong.is_empty(), "{} of {ran} showed a denied file\n{}", wrong.len(), wrong.join("\n"));
}
