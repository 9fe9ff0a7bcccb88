//! Everyday commands give the same results in the sandbox as without it, through the real gate.
//!
//! Each group of command lines runs twice in workspaces with the same content: with the sandbox and the group's own
//! rules, and without the sandbox. Exit codes and output are compared line by line.

use super::shell_fixture::{ShellFixture, block_on_runtime, structured};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use toolgate_gate::{CallOptions, CallOutcome};
use toolgate_proto::Mode;
use toolgate_tools::ShellConfig;

/// Read-only command lines, which need no rule and no approval.
const READERS: &[&str] = &[
    "ls -la | wc -l",
    "ls -R src | sort",
    "cat src/a.txt src/b.txt",
    "head -n 2 src/a.txt; tail -n 1 src/b.txt",
    "wc -l src/*.txt",
    "grep -rn two src | sort",
    "grep -c '' src/a.txt src/b.txt",
    "find . -name '*.txt' -not -path './.git/*' | sort",
    "sort -r src/a.txt | uniq | head -1",
    "cut -d, -f2 src/t.csv | sort -n | tail -1",
    "awk -F, '{ sum += $2 } END { print sum }' src/t.csv",
    "sed -n '2,3p' src/a.txt",
    "tr a-z A-Z < src/a.txt",
    "diff src/a.txt src/b.txt; echo $?",
    "cmp src/a.txt src/a.txt && echo same",
    "paste -d: src/a.txt src/b.txt",
    "jq -r .name package.json",
    "jq '.scripts | keys' package.json",
    "stat -c %s src/a.txt",
    "du -a src | wc -l",
    "file src/a.txt",
    "md5sum src/a.txt && sha256sum src/a.txt | cut -c1-8",
    "od -c src/a.txt | head -1",
    "basename src/a.txt .txt; dirname src/a.txt; realpath --relative-to=. src/a.txt",
    "seq 1 5 | paste -sd+",
    "echo $((6 * 7)) ${HOME:+home}",
    "for f in src/*.txt; do wc -l \"$f\"; done",
    "while read -r line; do echo \"<$line>\"; done < src/a.txt",
    "cat <<END\nhere $((1 + 1))\nEND",
    "cat <<< 'a string'",
    "diff <(sort src/a.txt) <(sort src/b.txt) | head -2",
    "test -f src/a.txt && [ -d src ] && [[ a == a ]] && echo yes",
    "printf '%s\\n' {a..e} | tac | nl",
    "cd src && ls *.csv && cd ..",
    "which ls cat | wc -l; type cd | head -1",
    "date +%Y > /dev/null; uname -s; id -u; nproc > /dev/null; echo fine",
    "ps -o comm= | head -1 > /dev/null; echo $?",
    "echo x > \"$TMPDIR/f\" && cat \"$TMPDIR/f\"",
    "cat src/none.txt; echo $?",
    "git status --short | sort",
    "git log --oneline | wc -l",
    "git log -1 --format=%s",
    "git diff | head -8",
    "git diff --stat HEAD",
    "git show --stat HEAD --format=%s",
    "git branch --list; git tag; git stash list",
    "git rev-parse --abbrev-ref HEAD; git ls-files | wc -l",
    "git blame -s src/a.txt | head -1 | cut -c1-3 > /dev/null; echo $?",
    "git grep -n two -- src",
    "xxd src/a.txt | head -1; strings src/a.txt | head -1",
    "tar tzf src/t.tgz; zcat src/z.gz",
];

/// Command lines that a rule allows as a whole.
const WHOLE: &[&str] = &[
    "find src -name '*.txt' -exec wc -l {} + | sort",
    "find src -name '*.txt' -print0 | xargs -0 wc -l | sort",
    "cargo init -q --vcs none --name demo crate && cd crate && cargo build -q --offline && ./target/debug/demo",
    "cd crate && cargo test -q --offline 2>&1 | grep -c 'test result: ok'",
    "cd crate && cargo run -q --offline && cargo fmt && cargo check -q --offline",
    "cd crate && cargo metadata --no-deps --offline --format-version 1 | jq -r '.packages[0].name'",
    "cd crate && cargo clean -q 2> /dev/null; ls",
    "rustc --edition 2021 -o r.out - <<< 'fn main() { println!(\"rust\"); }' && ./r.out",
    "mkdir pkg && cd pkg && npm init -y > /dev/null 2>&1 && npm pkg set scripts.test='echo tested' scripts.build='node -p 6*7' 2> /dev/null && npm test --silent 2> /dev/null",
    "cd pkg && npm run build --silent && npm run 2> /dev/null | grep -c build",
    "cd pkg && npm install --silent --offline --no-audit --no-fund && ls",
    "node -e 'console.log([1, 2].map(x => x * 2))'",
    "node -e 'const fs = require(\"fs\"); fs.mkdirSync(\"nd/x\", { recursive: true }); fs.writeFileSync(\"nd/x/f\", \"node\"); fs.renameSync(\"nd/x\", \"nd/y\"); console.log(fs.readFileSync(\"nd/y/f\", \"utf8\")); fs.rmSync(\"nd\", { recursive: true })'",
    "node -e 'console.log(require(\"child_process\").execSync(\"echo child\").toString())'",
    "printf 'import unittest\\nclass T(unittest.TestCase):\\n    def test_it(self):\\n        self.assertEqual(1, 1)\\n' > test_it.py && python3 -m unittest -q test_it 2>&1 | tail -1",
    "python3 -m pytest --version > /dev/null 2>&1 && python3 -m pytest -q test_it.py | tail -1 | cut -c1-8; echo done",
    "python3 -c 'import sqlite3; c = sqlite3.connect(\"db\"); c.execute(\"create table t (a)\"); c.execute(\"insert into t values (1)\"); c.commit(); print(c.execute(\"select * from t\").fetchall())'",
    "python3 -c 'import sqlite3; c = sqlite3.connect(\"wal\"); print(c.execute(\"pragma journal_mode=wal\").fetchone()); c.execute(\"create table t (a)\"); c.commit()'",
    "python3 -m venv --without-pip venv && venv/bin/python -c 'print(1)' && rm -r venv",
    "python3 -m zipfile -c z.zip src && python3 -m zipfile -l z.zip | wc -l && python3 -m zipfile -e z.zip unz && ls unz",
    "python3 -m py_compile test_it.py && ls __pycache__ | wc -l",
    "python3 -c 'import tempfile, shutil, os; d = tempfile.mkdtemp(); open(d + \"/f\", \"w\").write(\"x\"); shutil.move(d + \"/f\", \"moved\"); shutil.move(d, \"moved_d\"); print(os.listdir(\"moved_d\"), open(\"moved\").read())'",
    "python3 -c 'import multiprocessing as m; p = m.Process(target=print, args=(1,)); p.start(); p.join(); print(p.exitcode)'",
    "python3 -c 'import os; os.makedirs(\"a/b/c\"); os.rename(\"a/b\", \"a/d\"); os.symlink(\"d\", \"a/l\"); os.link(\"src/a.txt\", \"a/h\"); print(sorted(os.listdir(\"a\")))'",
    "printf 'all: out\\nout: in\\n\\tcp in out\\nclean:\\n\\trm -f out\\n' > Makefile && echo made > in && make -s && cat out && make -s clean && ls out 2>&1 | wc -l",
    "printf 'a: b c\\n\\techo a\\nb:\\n\\techo b\\nc:\\n\\techo c\\n' > M2 && make -s -j2 -f M2 | sort",
    "printf '#include <stdio.h>\\nint main(void) { puts(\"c\"); return 0; }\\n' > c.c && cc -Wall -O2 -o c.out c.c && ./c.out",
    "cc -c -o c.o c.c && ar rcs libc1.a c.o && cc -o c2.out libc1.a && ./c2.out && strip c2.out && nm libc1.a | grep -c main",
    "perl -pi -e 's/puts/puts/' c.c && perl -ne 'print if /puts/' c.c | wc -l",
    "perl -MFile::Temp -e 'my $f = File::Temp->new; print $f \"x\"; print -e $f->filename ? 1 : 0, \"\\n\"'",
    "printf 'class H { public static void main(String[] a) { System.out.println(1); } }' > H.java && { command -v javac > /dev/null && javac H.java && java -XX:+UseSerialGC -Xshare:auto -cp . H || echo 1; }",
    "cat <<'END' > script.sh\n#!/bin/bash\necho \"from script $1\"\nEND\nchmod +x script.sh && ./script.sh arg",
    "bash -c 'echo $0 $1' a b; sh script.sh x; bash -x script.sh 2>&1 | wc -l",
    "mkfifo p && (echo through > p &) && cat p && rm p",
    "sleep 0.01 & wait && echo waited",
    "(sleep 0.05; echo late > bg.txt) & disown; for i in $(seq 100); do [ -s bg.txt ] && break; sleep 0.1; done; cat bg.txt",
    "t=$(mktemp) && echo tmp > \"$t\" && cat \"$t\" && rm \"$t\"; d=$(mktemp -d) && cd \"$d\" && echo x > y && cat y; cd - > /dev/null",
    "f=$(mktemp ./tmp.XXXXXX) && mv \"$f\" here.tmp && ls here.tmp; echo via > \"$TMPDIR/v\" && mv \"$TMPDIR/v\" v && cat v",
    "mkdir -p \"$TMPDIR/dd/e\" && echo x > \"$TMPDIR/dd/e/f\" && mv \"$TMPDIR/dd\" moved_dir && cat moved_dir/e/f && mv moved_dir \"$TMPDIR/back\" && ls \"$TMPDIR/back\"",
    "tar czf s.tgz src && mkdir un && tar xzf s.tgz -C un && find un -type f | wc -l",
    "zip -qr s.zip src && unzip -qo s.zip -d uz && diff -r src uz/src && echo same",
    "gzip -k in && gunzip -c in.gz && xz -k in && xz -dc in.xz && rm in.gz in.xz",
    "echo a | tee b.txt c.txt > /dev/null && cat b.txt c.txt",
    "cp -r src copy && mv copy moved2 && ln -s moved2 l2 && ls l2/ | wc -l && rm -r moved2 l2",
    "cp -a src copy3 && diff -r src copy3 && rm -rf copy3 && echo removed",
    "install -D -m 755 in sub/bin/tool && stat -c %a sub/bin/tool && truncate -s 10 sub/bin/tool && stat -c %s sub/bin/tool",
    "dd if=/dev/zero of=zeros bs=64k count=4 2> /dev/null && stat -c %s zeros && split -b 64k zeros piece. && ls piece.* | wc -l && cat piece.* | cmp - zeros && rm piece.*",
    "find . -maxdepth 1 -name '*.out' -delete; find . -maxdepth 1 -name '*.c' -exec cp {} {}.bak \\; && ls *.bak",
    "ls src/*.txt | xargs -I{} -n1 cp {} sub/ && ls sub | wc -l && seq 3 | xargs -P2 -I{} touch sub/p{} && ls sub/p*",
    "sed -i.orig s/made/remade/ in && cat in in.orig && sed -i '$a last' in && wc -l < in",
    "awk '{ print > (\"part_\" NR) }' src/a.txt && cat part_1 && rm part_*",
    "printf '%s\\n' 3 1 2 > n && sort -o n n && paste -sd, n && shuf -n 3 n | sort | head -1",
    "patch -p0 <<'END'\n--- n\n+++ n\n@@ -1,3 +1,3 @@\n 1\n-2\n+two\n 3\nEND\ncat n",
    "ed -s n <<< $'2s/two/2/\\nw\\nq' && cat n | tr -d '\\n'; echo",
    "vim -u NONE -N -es -c '%s/3/three/' -c 'wq' n; cat n | tail -1",
    "touch -d '2020-01-02 03:04:05 UTC' n && TZ=UTC stat -c %y n | cut -c1-19 && chmod 600 n && stat -c %a n",
    "umask 077 && echo x > private && stat -c %a private",
    "flock lock echo exclusive; timeout 5 echo in time; nice -n 5 nice; setsid true && nohup true 2> /dev/null; echo $?",
    "coproc cat; echo hi >&${COPROC[1]}; read -r x <&${COPROC[0]}; echo $x",
    "ulimit -n > /dev/null && trap 'echo bye' EXIT; (exit 3); echo $?",
    "sqlite3 s.db 'create table t (a); insert into t values (1); select * from t;' && rm s.db",
    "jq '.version = \"2.0.0\"' package.json > p2.json && jq -r .version p2.json && mv p2.json p3.json",
    "openssl rand -hex 4 | wc -c; base64 <<< x; head -c 10 /dev/urandom | wc -c",
    "git config user.name; cd src && git log -1 --format=%s && cd .. && git status --short | wc -l > /dev/null; echo $?",
    "exec 3> fd3 && echo three >&3 && exec 3>&- && cat fd3 && exec 4<> fd3 && read -r y <&4 && echo $y",
];

/// Work in a directory with a file of secrets: new files work, and the secrets stay where they are.
const BESIDE: &[&str] = &[
    "ls -a | grep -c 'env$'",
    "printf '#include <stdio.h>\\nint main(void) { puts(\"beside\"); return 0; }\\n' > b.c && cc -o b.out b.c && ./b.out && rm b.out",
    "echo 'echo script' > s.sh && chmod +x s.sh && bash s.sh && ./s.sh",
    "mkdir d && cp b.c d && mv d e && ls e && rm -r e",
    "python3 -c 'open(\"f\", \"w\").write(\"x\"); import os; os.rename(\"f\", \"g\"); print(open(\"g\").read())'",
    "tar cf - src | tar tf - | wc -l",
    "cargo init -q --vcs none --name beside crate2 && cd crate2 && cargo run -q --offline",
    "cp .env.example .copied && cat .copied",
    "grep -rc x src/a.txt; find . -name '*.sh' | sort",
];

/// git under `Bash(git *)`, which may write objects, references and the index.
const GIT: &[&str] = &[
    "git add -A && git status --short | sort",
    "git commit -qm 'all of it' && git log --oneline | wc -l",
    "git checkout -q -b topic && git branch --show-current",
    "git mv src/b.txt src/c.txt && git commit -qam moved && git show --stat --format=%s",
    "git rm -q --cached src/c.txt && git status --short && git reset -q && git status --short",
    "git tag v1 && git tag -a v2 -m two && git tag | sort && git describe --tags",
    "git switch -q main && git merge -q --no-edit topic && git log -1 --format=%s",
    "git checkout -q -b side HEAD~1 && git commit -q --allow-empty -m side && git rebase -q main && git log --format=%s -2",
    "git switch -q main && git merge -q --no-ff --no-edit side && git log --merges --oneline | wc -l",
    "git cherry-pick --allow-empty side 2>&1 | grep -c . > /dev/null; git cherry-pick --abort 2> /dev/null; git status --short",
    "printf 'six\\n' >> src/a.txt && git stash -q && git stash list | wc -l && git stash pop -q && git diff --stat",
    "git commit -qm 'one file' src/a.txt && git show --stat --format=%s | head -1",
    "printf 'seven\\n' >> src/a.txt && git add -u && git diff --cached --stat && git commit -qm seven",
    "git rebase -q --onto HEAD~1 HEAD~1 && git log -1 --format=%s",
    "git commit -q --amend --allow-empty -m amended && git log -1 --format=%s",
    "git revert --no-edit HEAD~1 -m 1 2>&1 | grep -c . > /dev/null; git revert --abort 2> /dev/null; git status --short",
    "git reset -q --hard HEAD && git clean -fdq && git status --short | wc -l",
    "git notes add -m note && git notes show && git update-ref refs/heads/x HEAD && git branch && git update-ref -d refs/heads/x",
    "git gc -q && git fsck 2>&1 | grep -vc dangling; git log --oneline | wc -l",
    "git reflog | wc -l && git rev-parse --verify -q HEAD@{1} > /dev/null && echo there",
    "git bisect start HEAD HEAD~2 > /dev/null 2>&1 && git bisect reset > /dev/null 2>&1 && git branch --show-current",
    "git archive HEAD | tar t | wc -l; git format-patch -1 --stdout | grep -c ^Subject",
    "git restore --source=HEAD~1 src && git status --short | wc -l; git checkout -q -- . && git status --short",
    "git pull -q ./fixtures/bare.git main 2>&1 | wc -l; git push -q ./fixtures/bare.git HEAD:refs/heads/pushed && git ls-remote ./fixtures/bare.git | wc -l",
    "git fetch -q ./fixtures/bare.git && git log -1 --format=%s FETCH_HEAD",
];

/// Command lines whose writes the analysis knows; they need no rule in the mode that accepts edits.
const NAMED: &[&str] = &[
    "touch new.txt && ls new.txt",
    "touch a1 a2 'a 3' && ls a*",
    "mkdir -p deep/er/est && ls -R deep",
    "mkdir d1 d2 && rmdir d2 && ls -d d*",
    "echo one > f1 && echo two >> f1 && cat f1",
    "printf 'a\\nb\\n' > f2 && wc -l < f2",
    "cat src/a.txt > f3 && diff src/a.txt f3 && echo same",
    "cat <<'END' > f4\nhere\nEND\ncat f4",
    "sort src/a.txt > f5 && head -1 f5",
    "cp src/a.txt f7 && cat f7",
    "cp src/a.txt src/b.txt deep && ls deep",
    "cp -r src tree && diff -r src tree && echo same",
    "cp -r src/. flat 2> /dev/null || mkdir flat; ls -d flat",
    "cp -a src tree2 && ls tree2",
    "mv f7 f8 && ls f8",
    "mv f8 deep/ && ls deep",
    "mv tree2 tree3 && ls tree3",
    "mv tree3 deep && ls deep/tree3",
    "mv deep/a.txt deep/b.txt d1 && ls d1",
    "rm f1 && ls f1 2> /dev/null || echo wait_until_gone",
    "rm -f f2 f3 none && ls f2 2> /dev/null || echo wait_until_gone",
    "rm -r tree && ls tree 2> /dev/null || echo wait_until_gone",
    "rm -rf deep flat && ls -d deep 2> /dev/null || echo wait_until_gone",
    "rm -r d1/*.txt && ls d1",
    "sed -i s/here/there/ f4 && cat f4",
    "sed -i -e s/there/where/ -e '$a end' f4 f5 && cat f4",
    "sed -i.bak s/where/here/ f4 && cat f4 f4.bak",
    "sed --in-place=.old s/end/END/ f4 && cat f4.old | tail -1",
    "sed -i -E 's/(E)ND/\\1/' ./src/../f4 && tail -1 f4",
    "cd src && sed -i s/ONE/one/ a.txt && cat a.txt && cd ..",
    "cat src/a.txt | sort -r > f9 && rm f9 && ls f9 2> /dev/null || echo wait_until_gone",
    "mkdir -p x/y && echo 1 > x/y/z && cat x/y/z && mv x w && cat w/y/z && rm -r w",
    "touch l1 && mv l1 l2 && mv l2 l1 && rm l1; ls l1 2> /dev/null || echo wait_until_gone",
];

/// Symlinks that are removed, moved and replaced: that changes the link and not its target.
const LINKS: &[&str] = &[
    "rm links/file; ls links; wc -l < src/a.txt",
    "rm links/dangling; ls links",
    "rm -r links/folder; ls links src",
    "mv links/moved links/renamed; ls links; wc -l < links/renamed",
    "mv src/b.txt links/replaced; ls links src; wc -l < src/a.txt",
    "rm links/*.glob; ls links",
    "rm -rf links; ls src",
];

/// Work in a tree with 21 000 files.
const LARGE: &[&str] = &[
    "ls many | wc -l",
    "cat many/d41/f499 src/a.txt",
    "find many -type f | wc -l",
    "grep -rl three . --include='*.txt' | sort",
    "git status --short | wc -l",
    "cd many/d7 && ls | head -2 && cd ../..",
    "printf '#include <stdio.h>\\nint main(void) { puts(\"big\"); return 0; }\\n' > big.c && cc -o big.out big.c && ./big.out",
    "touch many/d1/new && mv many/d1/new many/d2/new && ls many/d2/new && rm many/d2/new",
    "python3 -c 'import os; os.rename(\"many/d3\", \"many/e3\"); print(len(os.listdir(\"many/e3\")))'",
    "sed -i s/one/ONE/ src/a.txt && cat src/a.txt",
    "rm -r many/d5 && ls many | wc -l",
];

/// Programs that not every machine has; command lines with a missing one are skipped.
const OPTIONAL: &[&str] = &[
    "ed", "file", "jq", "make", "node", "npm", "openssl", "patch", "perl", "sqlite3", "strings", "vim",
    "xxd", "xz", "zip",
];

fn is_installed(program: &str) -> bool {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|directory| directory.join(program).is_file())
}

/// Creates the same content in every workspace, independent of the user's own git configuration.
fn fill_workspace(ws: &Path) {
    let line = "
        mkdir -p src && printf 'one\\ntwo\\nthree\\n' > src/a.txt && printf 'one\\n2\\nthree\\n' > src/b.txt
        printf 'x,1\\ny,20\\n' > src/t.csv && echo zipped | gzip -n > src/z.gz && tar czf src/t.tgz src/a.txt
        printf '{\"name\": \"p\", \"version\": \"1.0.0\", \"scripts\": {\"debug\": \"x\", \"test\": \"true\"}}' > package.json
        echo EXAMPLE=1 > .env.example && git init -q -b main . && git config user.name n && git config user.email e
        git add -A && git commit -qm one && echo four >> src/a.txt && git commit -qam two
        mkdir fixtures && git clone -q --bare . fixtures/bare.git && echo fixtures > .gitignore
        echo five >> src/a.txt && echo new > src/new.txt && echo SECRET=hunter2 > .env && echo .env >> .gitignore
    ";
    let done = Command::new("sh")
        .args(["-ec", line])
        .current_dir(ws)
        .env("GIT_AUTHOR_DATE", "2024-01-01T00:00:00Z")
        .env("GIT_COMMITTER_DATE", "2024-01-01T00:00:00Z")
        .status();
    assert!(done.unwrap().success());
}

/// The exit code and the output of a command, with the temporary directory replaced.
fn observed(outcome: &CallOutcome, fixture: &ShellFixture) -> (String, String) {
    let structured = structured(outcome);
    let refused = outcome.result.as_ref().err().map(|refusal| refusal.reason.clone());
    let exit = match structured["exitCode"].as_i64() {
        Some(code) => code.to_string(),
        None => refused.unwrap_or_default(),
    };
    (exit, structured["stdout"].to_string().replace(&fixture.path("").to_string(), "DIR"))
}

/// What allows the command lines of a group.
enum Permission<'a> {
    /// A mode and these rules; no approver is available.
    ByRules(Mode, &'a [&'a str]),
    /// A rule for every command, and an approver who allows the rest.
    AsWhole,
}

/// Runs the command lines with and without the sandbox, and returns those that differ.
fn differences(allowed: &Permission<'_>, lines: &[&str], prepare: impl Fn(&Path)) -> Vec<String> {
    let with_sandbox = |enabled: bool| {
        move |config: &mut ShellConfig| {
            config.environment.remove("CARGO_TARGET_DIR");
            config.sandbox.enabled = enabled;
            config.sandbox.required = enabled;
        }
    };
    let unsandboxed = ShellFixture::with(with_sandbox(false));
    let sandboxed = match allowed {
        Permission::ByRules(mode, rules) => ShellFixture::with_mode(*mode, rules, with_sandbox(true)),
        Permission::AsWhole => ShellFixture::with(with_sandbox(true)),
    };
    let mut out = Vec::new();
    block_on_runtime(async {
        for fixture in [&unsandboxed, &sandboxed] {
            fill_workspace(fixture.path("ws").as_path());
            prepare(fixture.path("ws").as_path());
        }
        let absent: Vec<_> = OPTIONAL.iter().filter(|program| !is_installed(program)).collect();
        let has = |line: &str, program: &str| {
            line.split(|c: char| !c.is_alphanumeric()).any(|word| word == program)
        };
        for line in lines.iter().filter(|line| !absent.iter().any(|program| has(line, program))) {
            let run = async |fixture: &ShellFixture| {
                let options = CallOptions::default().with_timeout(Some(Duration::from_secs(600)));
                let outcome =
                    fixture.call_within("Bash", serde_json::json!({ "command": line }), options).await;
                // The working directory would carry over to the next command line.
                fixture.session.set_cwd(fixture.path("ws"));
                outcome
            };
            let (expected, found) = (run(&unsandboxed).await, run(&sandboxed).await);
            assert!(expected.result.is_ok(), "{line}: {:?}", expected.result);
            let (expected, found) = (observed(&expected, &unsandboxed), observed(&found, &sandboxed));
            if expected != found {
                out.push(format!(
                    "{line}\n  without the sandbox: {expected:?}\n  with the sandbox:    {found:?}"
                ));
            }
        }
    });
    out
}

fn check(allowed: &Permission<'_>, lines: &[&str]) {
    let found = differences(allowed, lines, |_| ());
    assert!(found.is_empty(), "{} of {}:\n{}", found.len(), lines.len(), found.join("\n"));
}

#[test]
fn there_are_at_least_180_command_lines() {
    assert!(READERS.len() + WHOLE.len() + BESIDE.len() + GIT.len() + NAMED.len() + LARGE.len() >= 180);
}

#[test]
fn commands_that_change_symlinks_are_unchanged() {
    for mode in [Mode::AcceptEdits, Mode::Bypass] {
        let found = differences(&Permission::ByRules(mode, &[]), LINKS, |ws| {
            let line = "
                mkdir links && cd links && ln -s ../src folder && ln -s nowhere dangling
                for name in file moved replaced one.glob two.glob; do ln -s ../src/a.txt $name; done
            ";
            assert!(Command::new("sh").args(["-ec", line]).current_dir(ws).status().unwrap().success());
        });
        assert!(found.is_empty(), "{mode:?}: {}", found.join("\n"));
    }
}

#[test]
fn read_only_commands_are_unchanged_without_a_rule() {
    check(&Permission::ByRules(Mode::Default, &[]), READERS);
}

#[test]
fn toolchains_are_unchanged_when_allowed_as_a_whole() {
    check(&Permission::AsWhole, WHOLE);
}

#[test]
fn git_is_unchanged_under_a_rule() {
    check(&Permission::ByRules(Mode::AcceptEdits, &["Bash(git *)", "Bash(tar *)"]), GIT);
}

#[test]
fn predicted_writes_are_unchanged_in_the_mode_that_accepts_edits() {
    check(&Permission::ByRules(Mode::AcceptEdits, &[]), NAMED);
}

#[test]
fn work_beside_secrets_is_unchanged_under_a_rule() {
    check(&Permission::ByRules(Mode::AcceptEdits, &["Bash"]), BESIDE);
}

/// The tree is too large to search it for hidden files before a command starts.
#[test]
fn work_in_a_large_tree_is_unchanged() {
    let many = |ws: &Path| {
        for directory in 0..42 {
            let directory = ws.join(format!("many/d{directory}"));
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.join("f0"), "x\n").unwrap();
            for file in 1..500 {
                std::fs::hard_link(directory.join("f0"), directory.join(format!("f{file}"))).unwrap();
            }
        }
    };
    // Read-only command lines need no rule; the others need these.
    let allowed =
        Permission::ByRules(Mode::AcceptEdits, &["Bash(cc *)", "Bash(./big.out)", "Bash(python3 *)"]);
    let found = differences(&allowed, LARGE, many);
    assert!(found.is_empty(), "{} of {}:\n{}", found.len(), LARGE.len(), found.join("\n"));
}
