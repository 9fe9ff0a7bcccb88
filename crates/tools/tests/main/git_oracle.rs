//! Real git with the environment of a read-only command line, in hostile repositories: no program that the repository
//! names runs, and no file outside the workspace is shown.

use super::git_repositories::{GitFixture, SECRET, SeededRng};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::{Command, Stdio};
use toolgate_policy::Workspace;
use toolgate_process::{CommandEnvironment, GitHelpers};
use toolgate_proto::{AbsPath, CommandLine, GitTerms, GitUse, ShellKind};
use toolgate_shell_syntax::{analyse, git_readers};

/// Command lines with every read-only git command.
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
    "git log --format='%h %N %an'",
    "git log --unified --min-parents=1",
    "git show --all --branches",
    "git show --reflog HEAD:a.txt",
    "git show --tags --unified=1 HEAD",
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
    "git blame --abbrev a.txt HEAD",
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
    "git tag --sort=-creatordate --format='%(refname) %(contents)'",
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
fn every_read_only_git_command_is_tested_and_needs_no_approval() {
    let here = AbsPath::new("/ws").unwrap();
    let workspace = Workspace::new(here.clone());
    for line in LINES {
        let command = CommandLine::new((*line).to_owned(), ShellKind::Bash, here.clone());
        let analysis = analyse(&command, &workspace);
        assert!(analysis.doubt.is_none() && analysis.parts.iter().all(|part| part.only_reads()), "{line}");
    }
    let tried: BTreeSet<&str> = LINES.iter().flat_map(|line| line.split_whitespace()).collect();
    let missing: Vec<&str> = git_readers().into_iter().filter(|name| !tried.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn read_only_git_runs_no_program_and_shows_no_file_from_outside() {
    let combinations = setting("TOOLGATE_ORACLE_GIT", 240);
    let seed = setting("TOOLGATE_ORACLE_SEED", 1);
    let each = if combinations > 1000 { 40 } else { 24 };
    let dir = tempfile::tempdir().unwrap();
    let fixture = GitFixture::new(dir.path().canonicalize().unwrap());
    let mut rng = SeededRng::new(seed as u64);
    let mut wrong: Vec<String> = Vec::new();
    let (mut ran, mut refused, mut worked) = (0, 0, 0);
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut features: BTreeSet<&str> = BTreeSet::new();
    let mut number = 0;
    while ran < combinations && number < combinations {
        number += 1;
        let repository = fixture.repository(number, &mut rng);
        features.extend(&repository.features);
        let usage = if rng.below(5) == 0 { GitUse::Mixed } else { GitUse::Reads };
        let terms = GitTerms::new(usage).with_searches(true);
        // A mixed command line keeps the user's own programs, so none are configured for it.
        fixture.write_user_config(usage == GitUse::Reads && rng.below(2) == 0);
        let _ = fs::remove_file(fixture.run_log());
        let from = BTreeMap::from([
            ("PATH".to_owned(), std::env::var("PATH").unwrap()),
            ("HOME".to_owned(), fixture.dir.join("home").display().to_string()),
        ]);
        let mut environment = CommandEnvironment::from_filtered(&from, &[], &BTreeMap::new());
        let made = environment.restrict_git(
            GitHelpers::Off,
            terms,
            &abs(&repository.cwd),
            &[abs(&repository.workspace)],
        );
        let mut report = |line: &str, what: String| {
            wrong.push(format!("#{number} {usage:?} {:?}: `{line}` {what}", repository.features));
        };
        if let Ok(log) = fs::read_to_string(fixture.run_log()) {
            report("the query of the configuration", format!("ran {log:?}"));
        }
        if let Err(refusal) = made {
            refused += 1;
            let last = repository.features.last().copied().unwrap_or_default();
            *reasons
                .entry(format!("{last}: {}", refusal.reason.replace(&fixture.dir.display().to_string(), "")))
                .or_default() += 1;
            continue;
        }
        for _ in 0..each {
            let line = LINES[rng.below(LINES.len())];
            let _ = fs::remove_file(fixture.run_log());
            let done = Command::new("timeout")
                .args(["20", "bash", "-c", line])
                .current_dir(&repository.cwd)
                .env_clear()
                .envs(environment.variables())
                .stdin(Stdio::null())
                .output()
                .unwrap();
            ran += 1;
            worked += usize::from(done.status.success());
            if let Ok(log) = fs::read_to_string(fixture.run_log()) {
                report(line, format!("ran {log:?}"));
            }
            for text in [&done.stdout, &done.stderr] {
                let text = String::from_utf8_lossy(text);
                // A search shows its own pattern, which is not the secret.
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
    assert!(worked * 2 > ran, "only {worked} of {ran} commands worked, so the test shows nothing");
    assert!(wrong.is_empty(), "{} of {ran}\n{}", wrong.len(), wrong.join("\n"));
}

/// Each setting is necessary: without it, a program of the repository runs or a file outside is shown.
#[test]
fn without_any_one_of_the_git_settings_a_program_runs_or_a_file_is_shown() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = GitFixture::new(dir.path().canonicalize().unwrap());
    fixture.write_user_config(false);
    let all = fixture.all_at_once();
    let from = BTreeMap::from([
        ("PATH".to_owned(), std::env::var("PATH").unwrap()),
        ("HOME".to_owned(), fixture.dir.join("home").display().to_string()),
    ]);
    let mut environment = CommandEnvironment::from_filtered(&from, &[], &BTreeMap::new());
    let terms = GitTerms::new(GitUse::Reads);
    environment.restrict_git(GitHelpers::Off, terms, &abs(&all.cwd), &[abs(&all.workspace)]).unwrap();
    let whole: BTreeMap<String, String> =
        environment.variables().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    let happens = |line: &str, without: &str| {
        let _ = fs::remove_file(fixture.run_log());
        let mut variables = whole.clone();
        variables.remove(without);
        for (name, _) in whole.iter().filter(|(_, value)| match without.strip_suffix('*') {
            Some(section) => value.starts_with(section),
            None => value.eq_ignore_ascii_case(without),
        }) {
            // A setting that git does not read.
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
        fixture.run_log().exists() || text.contains(SECRET)
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

/// In repositories that are not hostile the output is the same, except for the user's own pagers and the like.
#[test]
fn git_output_is_unchanged_in_ordinary_repositories() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = GitFixture::new(dir.path().canonicalize().unwrap());
    fixture.write_user_config(false);
    let from = BTreeMap::from([
        ("PATH".to_owned(), std::env::var("PATH").unwrap()),
        ("HOME".to_owned(), fixture.dir.join("home").display().to_string()),
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
    for (turn, ordinary) in fixture.ordinary().into_iter().enumerate() {
        for usage in [GitUse::Reads, GitUse::Mixed] {
            let plain = CommandEnvironment::from_filtered(&from, &[], &BTreeMap::new());
            let mut bound = plain.clone();
            let roots = [abs(&ordinary.workspace)];
            let terms = GitTerms::new(usage).with_searches(true);
            let outside = bound.restrict_git(GitHelpers::Off, terms, &abs(&ordinary.cwd), &roots);
            let outside = outside.unwrap_or_else(|refusal| panic!("{:?}: {refusal:?}", ordinary.features));
            for path in outside {
                assert!(!path.is_under(&roots[0]), "{path}");
            }
            // These show the time of day or the settings themselves.
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
fn a_repository_around_the_workspace_is_refused_unless_a_rule_grants_git() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = GitFixture::new(dir.path().canonicalize().unwrap());
    fixture.write_user_config(false);
    let top = fixture.dir.join("templates/plain");
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
        let terms = GitTerms::new(usage);
        assert_eq!(
            environment.restrict_git(GitHelpers::Off, terms, &cwd, &roots).is_ok(),
            passes,
            "{usage:?}"
        );
    }
}

#[test]
fn a_git_configuration_that_never_ends_is_a_timeout() {
    let dir = tempfile::tempdir().unwrap();
    let fixture = GitFixture::new(dir.path().canonicalize().unwrap());
    fixture.write_user_config(false);
    let repository = fixture.dir.join("templates/plain");
    assert!(Command::new("mkfifo").arg(repository.join("pipe")).status().unwrap().success());
    let config = repository.join(".git/config");
    let text = fs::read_to_string(&config).unwrap() + "[include]\n\tpath = ../pipe\n";
    fs::write(&config, text).unwrap();
    let from = BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]);
    let mut environment = CommandEnvironment::from_filtered(&from, &[], &BTreeMap::new());
    let terms = GitTerms::new(GitUse::Reads);
    assert!(
        environment.restrict_git(GitHelpers::Off, terms, &abs(&repository), &[abs(&repository)]).is_err()
    );
    // Of several queries one reports the timeout; the others are ended as well.
    let works_there = |process: &fs::DirEntry| {
        fs::read_link(process.path().join("cwd")).is_ok_and(|cwd| cwd.starts_with(&repository))
    };
    let left: Vec<_> =
        fs::read_dir("/proc").unwrap().flatten().filter(works_there).map(|process| process.path()).collect();
    assert!(left.is_empty(), "processes are left: {left:?}");
}
