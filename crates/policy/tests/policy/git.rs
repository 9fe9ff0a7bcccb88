//! git commands that show files, under deny rules: showing a file is a read of that file.

use super::fake_workspace::{FakeWorkspace, Node, action, compile, input_of};
use serde_json::json;
use toolgate_policy::RuleAction;

pub(super) fn judge_line(line: &str, allow: &[&str], deny: &[&str], cwd: &str) -> RuleAction {
    let mut world = FakeWorkspace::new("/ws")
        .with("/ws/src/main.rs", Node::Shared)
        .with("/ws/a.txt", Node::Shared)
        .with("/ws/b.txt", Node::Shared);
    world.workspace.cwd = super::fake_workspace::abs(cwd);
    let settings = json!({ "permissions": { "allow": allow, "deny": deny } });
    let mut anchored = world.clone();
    anchored.workspace.cwd = super::fake_workspace::abs("/ws");
    let (policy, _) = compile(&settings, &anchored);
    let judgement = world.judge(&policy, "Bash", &input_of("Bash", line));
    action(&judgement)
}

const DENIED: &[&str] = &["Read(.env)", "Read(./.env)", "Read(**/.env)", "Read(//ws/.env)", "Read(.e*)"];

/// Spellings of one file, as words after `--`.
const PATHS: &[&str] = &[
    ".env",
    "./.env",
    "sub/../.env",
    "/ws/.env",
    "':(top).env'",
    "':/.env'",
    "':(top,icase).ENV'",
    "':(icase).ENV'",
    "':(glob)**/.env'",
    "':(literal).env'",
    "':(attr:x).env'",
    "'*.env'",
    "'.e*'",
    "'.en?'",
    "'[.]env'",
    "'\\.env'",
    ".en*",
    ".",
    "':/'",
    "':'",
    "':!src'",
    "':(exclude)src'",
    "':^src'",
    "src .env",
    "",
];

/// Names of the same file in the history or in the index.
const OBJECTS: &[&str] = &[
    "HEAD:.env",
    "HEAD:./.env",
    "HEAD~2:.env",
    "HEAD^{tree}:.env",
    "'HEAD^{/fix: a}:.env'",
    "main:.env",
    "@{u}:.env",
    "stash@{0}:.env",
    ":.env",
    ":0:.env",
    ":./.env",
    "v1.0:sub/../.env HEAD:.env",
];

#[test]
fn a_denied_file_is_never_shown_by_git() {
    let by_path = [
        "diff",
        "diff HEAD",
        "diff -U0 --cached",
        "diff HEAD~3 HEAD -w",
        "diff --stat -p",
        "diff-tree -p HEAD",
        "log -p",
        "log -p -3 --follow",
        "log --patch --full-diff --stat",
        "log -S x --oneline",
        "log -G x",
        "log --cc",
        "whatchanged -p",
        "reflog -p",
        "stash list -p",
        "show HEAD",
        "show main",
        "status -v",
        "grep x",
        "grep -e x HEAD",
        "grep -l x",
        "grep --untracked x",
        "grep --no-index x",
        "--literal-pathspecs diff",
        "--icase-pathspecs log -p",
    ];
    let by_object =
        ["show", "show --stat", "cat-file -p", "cat-file blob", "diff HEAD:a.txt", "grep x", "show -s HEAD"];
    let plain = [
        "git diff",
        "git diff main",
        "git diff .env",
        "git diff main .env",
        "git log -p",
        "git log -p .env",
        "git log -L 1,3:.env",
        "git log -L:f:.env",
        "git show",
        "git show abc1234",
        "git show v1.0",
        "git blame .env",
        "git blame HEAD .env",
        "git blame -w -L 1,2 HEAD~1 -- .env",
        "git annotate .env",
        "git grep x",
        "git grep x .env",
        "git grep x HEAD",
        "git cat-file -p abc1234",
        "git cat-file blob abc1234",
        "git cat-file --batch",
        "git cat-file --batch-all-objects --batch",
        "git stash show -p",
        "git stash show",
        "git range-diff main...topic",
        "git diff --no-index .env a.txt",
        "git diff --no-index a.txt .env",
        "git diff --no-index . /dev/null",
        "git status -v",
        "git for-each-ref --format='%(raw)'",
        "git tag --format '%(raw)' -l",
        "git archive HEAD",
        "git format-patch --stdout HEAD~1",
        "git fast-export HEAD",
        "git checkout-index -a --prefix=x/",
        "git unpack-file abc1234",
        "git bundle create x HEAD",
        "git blame --abbrev .env HEAD",
        "git annotate --abbrev .env HEAD",
        "git show --unified HEAD:.env HEAD:a.txt",
        "git show --all HEAD:a.txt",
        "git show --reflog HEAD:a.txt",
        "git show --branches HEAD:a.txt",
        "git show --tags -s HEAD",
        "git show --glob='refs/heads/*' HEAD:a.txt",
        "git show --glob 'refs/heads/*' HEAD:a.txt",
        "git show --stdin HEAD:a.txt",
        "git show -g HEAD:a.txt",
        "git show --walk-reflogs HEAD:a.txt",
        "git show --exclude=x --all HEAD:a.txt",
        "git cat-file --filters HEAD:.env",
        "git cat-file --filter HEAD:.env",
        "git cat-file --textc HEAD:.env",
        "git cat-file --filters --path=.env HEAD:a.txt",
        "echo 'contents HEAD:.env' | git cat-file --batch-command",
        "git cat-file --batch-c",
        "git cat-file -p blob",
        "git cat-file -p -- blob",
        "git cat-file blob blob",
        "git for-each-ref --merged --sort --format='%(raw)'",
        "git for-each-ref --form '%(raw)'",
        "git tag --form '%(raw)' -l",
        "git diff --find-object --stat HEAD",
        "git log -p --end-of-options HEAD",
        "git reset -p HEAD~1",
        "git reset --pat HEAD~1",
        "git reset -qp HEAD~1",
        "git checkout -p HEAD~1",
        "git restore -p .",
        "git add -p",
        "git add -ni",
        "git stash -p",
        "git stash push --patch",
        "git commit --dry-run -v",
        "git commit --dry-run -av",
        "git commit --dry-run --verb",
        "git commit -p",
        "git rebase --show-current-patch",
        "git am --show-current-patch=diff",
        "git worktree add x HEAD",
        "git clone . x",
        "git interpret-trailers .env",
        "git hash-object -w .env",
        "git merge-file -p .env a.txt b.txt",
        "git merge-file -pL x .env a.txt b.txt",
        "git commit -F .env",
        "git commit -aF.env",
        "git commit --fi=.env",
        "git commit -t .env",
        "git tag -F .env v1",
        "git notes add -F .env",
        "git merge -F .env x",
        "git apply .env",
        "git am .env",
        "git mv .env x",
        "git mv . x",
        "git add --pathspec-from-file=.env",
        "git archive HEAD --add-file=.env",
    ];
    let mut lines: Vec<String> = plain.iter().map(|line| (*line).to_owned()).collect();
    for command in by_path {
        lines.extend(PATHS.iter().map(|path| format!("git {command} -- {path}")));
    }
    for command in by_object {
        lines.extend(OBJECTS.iter().map(|object| format!("git {command} {object}")));
    }
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in &lines {
        for deny in DENIED {
            for allow in [&[][..], &["Bash(git *)"], &["Bash"]] {
                count += 1;
                if judge_line(line, allow, &[deny], "/ws") == RuleAction::Allow {
                    wrong.push(format!("{line:?} with allow {allow:?} and deny {deny}"));
                }
            }
        }
    }
    println!("{count} git lines that may show a denied file");
    assert!(wrong.is_empty(), "{} of {count} were allowed\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_denied_file_that_git_names_is_denied() {
    for line in [
        "git show HEAD:.env",
        "git show HEAD:./.env",
        "git cat-file -p HEAD:.env",
        "git blame .env",
        "git diff HEAD -- .env",
        "git diff .env",
        "git log -p -- .env",
        "git log -L 1,3:.env",
        "git grep x -- .env",
    ] {
        assert_eq!(judge_line(line, &["Bash"], &["Read(.env)"], "/ws"), RuleAction::Deny, "{line}");
    }
    for line in [
        "git blame --abbrev .env HEAD",
        "git blame HEAD .env",
        "git interpret-trailers .env",
        "git commit -F .env",
        "git commit --fil=.env",
        "git mv .env x",
        "git cat-file --filters HEAD:.env",
    ] {
        assert_eq!(judge_line(line, &["Bash"], &["Read(.env)"], "/ws"), RuleAction::Deny, "{line}");
    }
    // A word with the form of a revision may be the name of a file.
    for line in [
        "git blame private/key~ HEAD",
        "git blame HEAD private/key~",
        "git blame private/a..b",
        "git blame private/a^b",
        "git blame private/a@{1}",
        "git diff private/key~",
        "git log -p private/a..b",
        "git grep x private/key~",
        "git log -L 1,2:private/a:b",
        "git show private/a:b",
    ] {
        for allow in [&[][..], &["Bash"]] {
            let verdict = judge_line(line, allow, &["Read(private/**)"], "/ws");
            assert_eq!(verdict, RuleAction::Deny, "{line} with {allow:?}");
        }
    }
    // The top of the repository may be any parent directory.
    for line in
        ["git show HEAD:.env", "git show HEAD:sub/.env", "git show HEAD:./.env", "git diff -- ':/.env'"]
    {
        assert_eq!(judge_line(line, &["Bash"], &["Read(.env)"], "/ws/sub"), RuleAction::Deny, "{line}");
    }
    assert_eq!(judge_line("git diff", &[], &["Read(/private/**)"], "/ws/sub"), RuleAction::Ask);
}

#[test]
fn git_commands_that_show_no_denied_file_need_no_rule() {
    for line in [
        "git status",
        "git log --oneline -n 20",
        "git log --stat -- .env",
        "git diff --stat",
        "git diff --name-only HEAD~2",
        "git show --stat HEAD",
        "git show HEAD:src/main.rs",
        "git show HEAD:a.txt",
        "git cat-file -t HEAD:.env",
        "git cat-file -p HEAD",
        "git blame src/main.rs",
        "git diff -- src/main.rs",
        "git log -p -2 -- src/main.rs a.txt",
        "git log -L 1,9:src/main.rs",
        "git diff HEAD:a.txt HEAD:b.txt",
        "git diff --no-index a.txt b.txt",
        "git grep -n x -- src/main.rs",
        "git ls-files",
        "git ls-tree -r HEAD",
        "git rev-list --objects HEAD",
        "git branch -a",
        "git describe --tags",
        "git blame --abbrev=8 src/main.rs",
        "git diff --unified=2 -- src/main.rs",
        "git show --unified=2 HEAD:a.txt",
    ] {
        assert_eq!(judge_line(line, &[], &["Read(.env)"], "/ws"), RuleAction::Allow, "{line}");
    }
    for line in [
        "git commit -m x",
        "git commit -am 'read .env'",
        "git add src",
        "git checkout -b feature/p main",
        "git reset --hard HEAD~1",
        "git branch -d x",
        "git tag -a v1 -m x",
        "git stash push -m p",
        "git push origin main",
        "git rebase -i main",
        "git clone https://x.example/y.git",
    ] {
        assert_eq!(judge_line(line, &["Bash(git *)"], &["Read(.env)"], "/ws"), RuleAction::Allow, "{line}");
    }
    // A rule for another directory has no effect.
    for line in ["git diff", "git log -p", "git show", "git grep x"] {
        assert_eq!(judge_line(line, &[], &["Read(~/.ssh/**)"], "/ws"), RuleAction::Allow, "{line}");
        assert_eq!(judge_line(line, &[], &[], "/ws/sub"), RuleAction::Allow, "{line}");
    }
}

#[test]
fn a_rule_for_git_does_not_cover_programs_that_git_runs_or_its_configuration() {
    for line in [
        "git submodule -q foreach 'touch p'",
        "git submodule --quiet foreach ls",
        "git credential fill",
        "git credential-store get",
        "git blame --contents=/etc/shadow README",
        "git blame --contents /etc/shadow README",
        "git blame -S /etc/passwd README",
        "git config core.fsmonitor ./evil.sh",
        "git config --add core.pager x",
        "git config set core.pager x",
        "git config --global core.pager x",
        "git remote-ext origin 'sh -c x'",
        "git rebase -x 'touch p' main",
        "git rebase --exec=x main",
        "git bisect run ./x",
        "git bisect --no-checkout run x",
        "git for-each-repo --config=a.b status",
        "git hook run pre-commit",
        "git maintenance run",
        "git daemon",
        "git difftool -y",
        "git mergetool",
        "git filter-branch --tree-filter x",
        "git merge-index ./x -a",
        "git upload-pack .",
        "git clone 'ext::sh -c x' y",
        "git fetch 'ext::sh -c x'",
        "git help --web log",
        "git help -w log",
        "git -c core.pager=x log",
        "git --exec-path=. status",
        "git --config-env=core.pager=X log",
        "GIT_DIR=x git log",
        "GIT_CONFIG_COUNT=1 git log",
    ] {
        for allow in ["Bash(git *)", "Bash"] {
            assert_ne!(
                judge_line(line, &[allow], &["Bash(rm *)"], "/ws"),
                RuleAction::Allow,
                "{line} with {allow}"
            );
        }
    }
    for line in
        ["git config user.name", "git commit -m x", "git push", "git submodule update", "git bisect good"]
    {
        assert_eq!(judge_line(line, &["Bash(git *)"], &[], "/ws"), RuleAction::Allow, "{line}");
    }
}
