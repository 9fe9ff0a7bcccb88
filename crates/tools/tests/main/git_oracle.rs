//! Real git, started as a line that only reads is started, in hostile repositories: no program of the repository's
//! choice runs, and no file from outside the workspace is shown.

use super::git_repositories::{Dice, Ground, SECRET};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Command, Stdio};
use toolgate_policy::Workspace;
use toolgate_process::{CommandEnvironment, GitHelpers};
use toolgate_proto::{AbsPath, CommandLine, GitTerms, GitUse, ShellKind};
use toolgate_shell_syntax::{analyse, git_readers};

/// Forms of every reader.
const LINES: &[&str] = &[
    "git status",
    "git status -sb --ignored",
    "git status --porcelain=v2 -uall",
    "git status -v",
    "git --no-pager status --show-stash",
    "git diff",
    "git diff HEAD",
    "git diff --cached",
    "git diff --stat HEAD~1",
    "git diff main topic",
    "git diff -- a.txt",
    "git diff --submodule=short",
    "git diff --no-index a.txt b.txt",
    "git diff -w --word-diff HEAD~1 -- src a.txt",
    "git diff --check",
    "git diff-tree -p HEAD",
    "git diff-tree -r --cc HEAD",
    "git diff-index --cached -p HEAD",
    "git diff-index -p --ignore-submodules HEAD",
    "git diff-files -p --ignore-submodules=dirty",
    "git log",
    "git log -p",
    "git log -p -m --stat",
    "git log --cc --all",
    "git log --oneline --graph --all -n 20",
    "git log -p --diff-merges=on",
    "git log -S one --oneline",
    "git log -L 1,2:a.txt",
    "git log --follow -p a.txt",
    "git log --format='%G? %GS %GK %N %an'",
    "git log --notes --source --decorate=full",
    "git log -g -p",
    "git whatchanged -p",
    "git reflog",
    "git reflog show -p main",
    "git show",
    "git show HEAD:a.txt",
    "git show v1 topic",
    "git show --stat HEAD~1",
    "git show stash@{0}",
    "git rev-list --objects --all",
    "git rev-list --count HEAD",
    "git shortlog -sne HEAD",
    "git blame a.txt",
    "git blame -w -C -C a.txt",
    "git blame HEAD~1 -- a.txt",
    "git annotate a.txt",
    "git rev-parse HEAD --show-toplevel",
    "git rev-parse --git-dir --git-common-dir",
    "git ls-files -s",
    "git ls-files -m -o --exclude-standard",
    "git ls-files --eol",
    "git ls-tree -r -l HEAD",
    "git describe --tags --always --dirty",
    "git describe --contains HEAD~1",
    "git describe --all --broken",
    "git merge-base main topic",
    "git cat-file -p HEAD",
    "git cat-file -p HEAD:a.txt",
    "git cat-file -t HEAD:b.txt",
    "git cat-file --batch-check --batch-all-objects",
    "git name-rev HEAD",
    "git for-each-ref --format='%(refname) %(contents:subject) %(upstream)'",
    "git show-ref -d",
    "git show-branch --all",
    "git count-objects -vH",
    "git check-ignore -v new.txt a.txt",
    "git check-attr -a a.txt src/main.rs",
    "git grep -n one",
    "git grep -n --untracked one",
    "git grep one HEAD",
    "git grep --no-index -n one",
    "git grep -n OUTSIDE",
    "git range-diff main~1..main main~1..topic",
    "git cherry -v topic",
    "git var GIT_EDITOR",
    "git var -l",
    "git version --build-options",
    "git branch -avv",
    "git branch --contains HEAD~1",
    "git branch --merged",
    "git tag -n3",
    "git tag --sort=-creatordate --format='%(refname) %(signature)'",
    "git remote -v",
    "git remote show -n origin",
    "git remote get-url origin",
    "git stash list -p",
    "git stash show -p",
    "git stash show",
    "git worktree list",
    "git submodule status",
    "git notes list",
    "git notes show",
    "git config --list",
    "git config --get-regexp '.*'",
    "git config user.name",
    "git config get core.pager",
    "git symbolic-ref HEAD",
    "git help",
    "git help -a",
    "git log --oneline | head -n 3; git status -s && git diff | wc -l",
];

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn abs(path: &std::path::Path) -> AbsPath {
    AbsPath::new(path).unwrap()
}

#[test]
fn every_git_reader_is_among_the_lines_and_passes_unasked() {
    let here = AbsPath::new("/ws").unwrap();
    let workspace = Workspace { cwd: here.clone(), roots: vec![here.clone()], home: None };
    for line in LINES {
        let command = CommandLine {
            text: (*line).to_owned(),
            shell: ShellKind::Bash,
            cwd: here.clone(),
            unsandboxed: false,
        };
        let analysis = analyse(&command, &workspace);
        assert!(analysis.doubt.is_none() && analysis.parts.iter().all(|part| part.only_reads()), "{line}");
    }
    let tried: BTreeSet<&str> = LINES.iter().flat_map(|line| line.split_whitespace()).collect();
    let missing: Vec<&str> = git_readers().into_iter().filter(|name| !tried.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn git_that_only_reads_runs_nothing_and_shows_nothing_from_outside() {
    let combinations = setting("TOOLGATE_ORACLE_GIT", 240);
    let seed = setting("TOOLGATE_ORACLE_SEED", 1);
    let each = if combinations > 1000 { 40 } else { 24 };
    let dir = tempfile::tempdir().unwrap();
    let ground = Ground::new(dir.path().canonicalize().unwrap());
    let mut dice = Dice::new(seed as u64);
    let mut wrong: Vec<String> = Vec::new();
    let (mut ran, mut refused, mut worked) = (0, 0, 0);
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut features: BTreeSet<&str> = BTreeSet::new();
    let mut number = 0;
    while ran < combinations && number < combinations {
        number += 1;
        let hostile = ground.repository(number, &mut dice);
        features.extend(&hostile.features);
        let usage = if dice.below(5) == 0 { GitUse::Mixed } else { GitUse::Reads };
        let terms = GitTerms { usage, searches: true };
        // Where something else runs in the line as well, the user's own programs stay.
        ground.user(usage == GitUse::Reads && dice.below(2) == 0);
        let _ = fs::remove_file(ground.mark());
        let from = BTreeMap::from([
            ("PATH".to_owned(), std::env::var("PATH").unwrap()),
            ("HOME".to_owned(), ground.dir.join("home").display().to_string()),
        ]);
        let mut environment = CommandEnvironment::from_filtered(&from, &[], &BTreeMap::new());
        let made =
            environment.restrict_git(GitHelpers::Off, terms, &abs(&hostile.cwd), &[abs(&hostile.workspace)]);
        let mut report = |line: &str, what: String| {
            wrong.push(format!("#{number} {usage:?} {:?}: `{line}` {what}", hostile.features));
        };
        if let Ok(mark) = fs::read_to_string(ground.mark()) {
            report("the question itself", format!("ran {mark:?}"));
        }
        if let Err(refusal) = made {
            refused += 1;
            let last = hostile.features.last().copied().unwrap_or_default();
            *reasons
                .entry(format!("{last}: {}", refusal.reason.replace(&ground.dir.display().to_string(), "")))
                .or_default() += 1;
            continue;
        }
        for _ in 0..each {
            let line = LINES[dice.below(LINES.len())];
            let _ = fs::remove_file(ground.mark());
            let done = Command::new("timeout")
                .args(["20", "bash", "-c", line])
                .current_dir(&hostile.cwd)
                .env_clear()
                .envs(environment.variables())
                .stdin(Stdio::null())
                .output()
                .unwrap();
            ran += 1;
            worked += usize::from(done.status.success());
            if let Ok(mark) = fs::read_to_string(ground.mark()) {
                report(line, format!("ran {mark:?}"));
            }
            for text in [&done.stdout, &done.stderr] {
                let text = String::from_utf8_lossy(text);
                // A line may name what it looks for.
                if let Some(shown) = text.lines().find(|shown| shown.contains(SECRET)) {
                    report(line, format!("shows {shown:?}"));
                }
            }
        }
    }
    println!(
        "{ran} git commands ran in {number} repositories, {worked} with success; {refused} repositories were refused: {reasons:?}; \
         features: {features:?}"
    );
    assert!(worked * 2 > ran, "only {worked} of {ran} commands worked: the test tries nothing");
    assert!(wrong.is_empty(), "{} of {ran}\n{}", wrong.len(), wrong.join("\n"));
}

/// What the repository names runs as soon as one setting is taken out: each line shows that one is needed.
#[test]
fn without_any_one_of_the_settings_a_program_runs_or_a_file_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let ground = Ground::new(dir.path().canonicalize().unwrap());
    ground.user(false);
    let all = ground.all_at_once();
    let from = BTreeMap::from([
        ("PATH".to_owned(), std::env::var("PATH").unwrap()),
        ("HOME".to_owned(), ground.dir.join("home").display().to_string()),
    ]);
    let mut environment = CommandEnvironment::from_filtered(&from, &[], &BTreeMap::new());
    let terms = GitTerms { usage: GitUse::Reads, searches: false };
    environment.restrict_git(GitHelpers::Off, terms, &abs(&all.cwd), &[abs(&all.workspace)]).unwrap();
    let whole: BTreeMap<String, String> =
        environment.variables().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let happens = |line: &str, without: &str| {
        let _ = fs::remove_file(ground.mark());
        let mut variables = whole.clone();
        variables.remove(without);
        for (name, _) in whole.iter().filter(|(_, value)| match without.strip_suffix('*') {
            Some(section) => value.starts_with(section),
            None => value.eq_ignore_ascii_case(without),
        }) {
            // A setting that nobody reads.
            variables.insert(name.clone(), "toolgate.nothing".to_owned());
        }
        let done = Command::new("timeout")
            .args(["20", "bash", "-c", line])
            .current_dir(&all.cwd)
            .env_clear()
            .envs(&variables)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let text =
            String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr);
        ground.mark().exists() || text.contains(SECRET)
    };
    for (setting, line) in [
        ("core.fsmonitor", "git status"),
        ("diff.external", "git diff"),
        ("diff.t.textconv", "git diff --no-ext-diff b.txt"),
        ("filter.g.clean", "git diff --no-ext-diff"),
        ("filter.f.process", "git diff --no-ext-diff"),
        ("gpg.*", "git log --format=%G?"),
        ("core.excludesFile", "git check-ignore -v new.txt"),
        ("mailmap.file", "git log --format=%aN"),
        ("submodule.weird name.ignore", "git status"),
        ("merge.m.driver", "git log -p --diff-merges=remerge"),
    ] {
        assert!(!happens(line, "nothing at all"), "{line}");
        assert!(happens(line, setting), "`{line}` does nothing without `{setting}`");
    }
}

/// What git says in repositories that are not hostile, the user's own pagers and the like apart.
#[test]
fn in_ordinary_repositories_git_says_what_it_always_says() {
    let dir = tempfile::tempdir().unwrap();
    let ground = Ground::new(dir.path().canonicalize().unwrap());
    ground.user(false);
    let from = BTreeMap::from([
        ("PATH".to_owned(), std::env::var("PATH").unwrap()),
        ("HOME".to_owned(), ground.dir.join("home").display().to_string()),
    ]);
    let say = |line: &str, cwd: &std::path::Path, environment: &CommandEnvironment| {
        let done = Command::new("bash")
            .args(["-c", line])
            .current_dir(cwd)
            .env_clear()
            .envs(environment.variables())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        (done.status.code(), String::from_utf8_lossy(&done.stdout).into_owned())
    };
    for (turn, ordinary) in ground.ordinary().into_iter().enumerate() {
        for usage in [GitUse::Reads, GitUse::Mixed] {
            let plain = CommandEnvironment::from_filtered(&from, &[], &BTreeMap::new());
            let mut bound = plain.clone();
            let roots = [abs(&ordinary.workspace)];
            let terms = GitTerms { usage, searches: true };
            let outside = bound.restrict_git(GitHelpers::Off, terms, &abs(&ordinary.cwd), &roots);
            let outside = outside.unwrap_or_else(|refusal| panic!("{:?}: {refusal:?}", ordinary.features));
            for path in outside {
                assert!(!path.is_under(&roots[0]), "{path}");
            }
            // The time of day, the settings themselves.
            let differs = ["git var", "git config", "git blame a", "git blame -w", "annotate"];
            let same = |line: &&&str| !differs.iter().any(|word| line.contains(word));
            for line in LINES.iter().skip(turn).step_by(4).filter(same) {
                let expected = say(line, &ordinary.cwd, &plain);
                assert_eq!(
                    say(line, &ordinary.cwd, &bound),
                    expected,
                    "{usage:?} {:?} {line}",
                    ordinary.features
                );
            }
        }
    }
}

#[test]
fn a_repository_around_the_workspace_is_refused_to_readers_and_not_to_a_rule() {
    let dir = tempfile::tempdir().unwrap();
    let ground = Ground::new(dir.path().canonicalize().unwrap());
    ground.user(false);
    let top = ground.dir.join("templates/plain");
    let (roots, cwd) = ([abs(&top.join("src"))], abs(&top.join("src")));
    let from = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]);
    for (usage, passes) in [
        (GitUse::Reads, false),
        (GitUse::Mixed, false),
        (GitUse::GrantedReads, true),
        (GitUse::Granted, true),
        (GitUse::Absent, true),
    ] {
        let mut environment = CommandEnvironment::from_filtered(&from, &[], &BTreeMap::new());
        let terms = GitTerms { usage, searches: false };
        assert_eq!(
            environment.restrict_git(GitHelpers::Off, terms, &cwd, &roots).is_ok(),
            passes,
            "{usage:?}"
        );
    }
}

#[test]
fn a_configuration_that_never_ends_is_given_up() {
    let dir = tempfile::tempdir().unwrap();
    let ground = Ground::new(dir.path().canonicalize().unwrap());
    ground.user(false);
    let repository = ground.dir.join("templates/plain");
    assert!(Command::new("mkfifo").arg(repository.join("pipe")).status().unwrap().success());
    let config = repository.join(".git/config");
    let text = fs::read_to_string(&config).unwrap() + "[include]\n\tpath = ../pipe\n";
    fs::write(&config, text).unwrap();
    let from = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]);
    let mut environment = CommandEnvironment::from_filtered(&from, &[], &BTreeMap::new());
    let terms = GitTerms { usage: GitUse::Reads, searches: false };
    assert!(
        environment.restrict_git(GitHelpers::Off, terms, &abs(&repository), &[abs(&repository)]).is_err()
    );
}
