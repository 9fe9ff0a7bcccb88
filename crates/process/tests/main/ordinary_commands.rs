//! Ordinary commands of developers have the same results in the sandbox as outside.

use super::process_bench::ProcessBench;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use toolgate_process::ProcessExit;
use toolgate_process::sandbox::{SandboxMechanism, SandboxProfile, check_bubblewrap};

const ORDINARY_COMMANDS: &[&str] = &[
    "ls -la",
    "pwd",
    "echo hello > a.txt && cat a.txt",
    "cat /etc/hostname > /dev/null && wc -l < /etc/passwd > n && test -s n",
    "mkdir -p src/deep/er && touch src/deep/er/x && find . -name x",
    "cp -r src copy && mv copy moved && rm -r moved && ls",
    "cp -a src copy2 && diff -r src copy2 && echo same",
    "ln -s a.txt l && readlink l && cat l && rm l",
    "ln a.txt h && cat h && rm h",
    "chmod +x a.txt && stat -c %a a.txt && chmod 644 a.txt",
    "touch -d '2020-01-02 03:04:05 UTC' a.txt && TZ=UTC stat -c %y a.txt",
    "seq 1 1000 | sort -rn | head -3",
    "grep -rn hello . | sort",
    "sed -i s/hello/bye/ a.txt && cat a.txt",
    "awk 'BEGIN { print 6 * 7 }'",
    "t=$(mktemp) && echo tmp > \"$t\" && cat \"$t\" && rm \"$t\"",
    "d=$(mktemp -d) && cd \"$d\" && echo x > y && cat y",
    "tar czf s.tgz src && mkdir un && tar xzf s.tgz -C un && find un -type f",
    "gzip -k a.txt && gunzip -c a.txt.gz",
    "cat <<'END' > script.sh\n#!/bin/bash\necho \"from script $1\"\nEND\nchmod +x script.sh && ./script.sh arg",
    "mkfifo p && (echo through > p &) && cat p && rm p",
    "sleep 0.01 & wait && echo waited",
    "(echo sub; exit 3); echo $?",
    "echo a | tee b.txt c.txt && cat b.txt c.txt",
    "diff <(echo 1) <(echo 2); echo $?",
    "git init -q repo && cd repo && git config user.name n && git config user.email e && echo 1 > f && git add . && git commit -qm one && git log --format=%s",
    "cd repo && git checkout -q -b b2 && echo 2 > f && git commit -qam two && git diff HEAD~1 --stat && git status --short",
    "cd repo && git stash list && git branch && git tag v1 && git describe --tags",
    "git clone -q repo cloned && ls cloned && git -C cloned log --oneline | wc -l",
    "cd repo && git worktree add -q ../tree && ls ../tree && git worktree remove ../tree",
    "python3 -c 'print(sum(range(10)))'",
    "python3 -c 'import tempfile, json; f = tempfile.NamedTemporaryFile(); json.dump([1], open(f.name, \"w\")); print(open(f.name).read())'",
    "python3 -c 'import subprocess; print(subprocess.check_output([\"echo\", \"sub\"]).decode())'",
    "python3 -c 'import sqlite3; c = sqlite3.connect(\"db\"); c.execute(\"create table t (a)\"); c.execute(\"insert into t values (1)\"); c.commit(); print(c.execute(\"select * from t\").fetchall())'",
    "python3 -c 'import socket; a, b = socket.socketpair(); a.send(b\"x\"); print(b.recv(1))'",
    "python3 -c 'import threading; t = threading.Thread(target=print, args=(\"thread\",)); t.start(); t.join()'",
    "node -e 'console.log([1, 2].map(x => x * 2))'",
    "node -e 'require(\"fs\").writeFileSync(\"n.txt\", \"node\"); console.log(require(\"fs\").readFileSync(\"n.txt\", \"utf8\"))'",
    "node -e 'console.log(require(\"child_process\").execSync(\"echo child\").toString())'",
    "mkdir pkg && cd pkg && npm init -y > /dev/null && npm run env --silent > /dev/null && ls",
    "printf 'all: out\\nout: in\\n\\tcp in out\\n' > Makefile && echo made > in && make -s && cat out",
    "printf 'a: b c\\n\\techo a\\nb:\\n\\techo b\\nc:\\n\\techo c\\n' > M2 && make -s -j2 -f M2 | sort",
    "printf '#include <stdio.h>\\nint main(void) { puts(\"c\"); return 0; }\\n' > c.c && cc -o c.out c.c && ./c.out",
    "cargo init -q --vcs none --name demo crate && cd crate && cargo build -q --offline && ./target/debug/demo && cargo test -q --offline 2>&1 | grep -c 'test result: ok'",
    "cd crate && cargo fmt && cargo run -q --offline",
    "xargs -n1 echo <<< 'a b c'",
    "timeout 5 echo in time",
    "env | grep -c ^PATH=",
    "date +%Y > /dev/null && uname > /dev/null && id -u > /dev/null && nproc > /dev/null && echo fine",
    "kill -0 $$ && (sleep 5 & kill $!; wait $! 2>/dev/null; echo killed)",
    "echo done > /dev/null && head -c 10 /dev/urandom | wc -c",
    "umask 077 && echo x > private && stat -c %a private",
    "install -m 755 a.txt bin.txt && stat -c %a bin.txt",
    "python3 -c 'import asyncio\nasync def run(): return await (await asyncio.create_subprocess_exec(\"true\")).wait()\nprint(asyncio.run(run()))'",
    "python3 -c 'import selectors, os; r, w = os.pipe(); s = selectors.DefaultSelector(); s.register(r, 1); os.write(w, b\"x\"); print(len(s.select(1)))'",
    "python3 -c 'import mmap; m = mmap.mmap(-1, 4096); m[0] = 7; print(m[0])'",
    "python3 -c 'import os, signal; signal.signal(signal.SIGUSR1, lambda *a: print(\"signal\")); os.kill(os.getpid(), signal.SIGUSR1)'",
    "python3 -c 'import fcntl; f = open(\"lock\", \"w\"); fcntl.flock(f, fcntl.LOCK_EX); fcntl.lockf(f, fcntl.LOCK_EX); print(\"locked\")'",
    "python3 -c 'import resource, os, time; print(resource.getrlimit(resource.RLIMIT_NOFILE)[0] > 0, os.sched_getaffinity(0) != set(), time.clock_gettime(1) > 0)'",
    "python3 -c 'import concurrent.futures as f; print(list(f.ThreadPoolExecutor(4).map(abs, [-1, -2])))'",
    "python3 -c 'import shutil, os; open(\"big\", \"wb\").write(bytes(100000)); shutil.copyfile(\"big\", \"big2\"); print(os.stat(\"big2\").st_size)'",
    "python3 -m venv --without-pip venv && venv/bin/python -c 'print(1)' && rm -r venv",
    "node -e 'const { Worker, isMainThread } = require(\"worker_threads\"); new Worker(\"console.log(1)\", { eval: true })'",
    "node -e 'const z = require(\"zlib\"); console.log(z.gunzipSync(z.gzipSync(\"zip\")).toString())'",
    "node -e 'require(\"fs\").watch(\".\").close(); setTimeout(() => console.log(\"timer\"), 5)'",
    "printf '#include <pthread.h>\\n#include <stdio.h>\\nstatic void *f(void *a) { puts(a); return 0; }\\nint main(void) { pthread_t t; pthread_create(&t, 0, f, \"thread\"); pthread_join(t, 0); return 0; }\\n' > t.c && gcc -O2 -g -pthread -o t.out t.c && ./t.out && ar rcs t.a t.out && rm t.c t.out t.a",
    "cd crate && cargo check -q --offline && cargo build -q --offline --release && ./target/release/demo",
    "dd if=/dev/zero of=zeros bs=64k count=4 2> /dev/null && stat -c %s zeros && fallocate -l 8192 room && stat -c %s room && sync zeros",
    "nice -n 5 nice && ionice 2> /dev/null; setsid true && nohup true 2> /dev/null; echo $?",
    "ulimit -n > /dev/null && trap 'echo bye' EXIT; coproc cat; echo hi >&${COPROC[1]}; read -r x <&${COPROC[0]}; echo $x",
    "find . -maxdepth 1 -name 'a.*' -newer /etc/hostname -print0 | xargs -0 -r stat -c %n | sort | wc -l",
    "cp --reflink=auto a.txt r.txt && cp --sparse=always zeros s.bin && cmp zeros s.bin && mv r.txt /dev/shm/../../$PWD/r2.txt && cat r2.txt",
    "flock lock echo exclusive && mktemp -u > /dev/null && tail -n1 a.txt && df . > /dev/null && du -s . > /dev/null && free > /dev/null && uptime > /dev/null && echo shown",
    "rm -rf repo cloned crate pkg src && ls | wc -l",
];

/// Further commands, with programs that not every machine has.
const OPTIONAL_COMMANDS: &[(&str, &str)] = &[
    (
        "perl",
        "perl -e 'use IO::Socket::UNIX; use POSIX; my ($a, $b) = IO::Socket->socketpair(AF_UNIX, SOCK_STREAM, 0); print POSIX::floor(2.5), (fork // 9) ? wait() > 0 : exit, \"\\n\"'",
    ),
    (
        "perl",
        "perl -MFile::Temp -MTime::HiRes -e 'my $f = File::Temp->new; print $f \"x\"; Time::HiRes::sleep(0.001); print -s $f ? 1 : 0, \"\\n\"'",
    ),
    ("ruby", "ruby -e 'puts `echo ruby`; Thread.new { puts 2 }.join; File.write(\"r.txt\", \"x\")'"),
    (
        "java",
        "printf 'class H { public static void main(String[] a) throws Exception { Thread t = new Thread(() -> System.out.println(1)); t.start(); t.join(); } }' > H.java && java -XX:+UseSerialGC H.java",
    ),
    (
        "go",
        "mkdir gomod && cd gomod && printf 'package main\\nimport \"fmt\"\\nfunc main() { c := make(chan int); go func() { c <- 1 }(); fmt.Println(<-c) }\\n' > m.go && GOCACHE=$PWD/c GOFLAGS=-mod=mod go run m.go",
    ),
    ("rsync", "mkdir -p ra && echo x > ra/f && rsync -a ra/ rb/ && cat rb/f"),
    (
        "sqlite3",
        "sqlite3 s.db 'pragma journal_mode=wal; create table t (a); insert into t values (1); select * from t;'",
    ),
];

fn is_installed(program: &str) -> bool {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|dir| dir.join(program).is_file())
}

/// Runs every command in a workspace with and in one without the sandbox, and compares the results.
fn check(backend: SandboxMechanism) {
    assert!(ORDINARY_COMMANDS.len() >= 60);
    let (free, sandboxed) = (ProcessBench::new(), ProcessBench::new());
    let installed =
        OPTIONAL_COMMANDS.iter().filter(|(program, _)| is_installed(program)).map(|(_, text)| text);
    for text in ORDINARY_COMMANDS.iter().chain(installed) {
        let expected = free.start(text).wait_exit();
        assert_eq!(expected.0, ProcessExit::Code(0), "{text}: {}", expected.1);
        let started = sandboxed.start_in(text, SandboxProfile { backend, ..sandboxed.profile() });
        let (exit, output) = started.wait_exit();
        let plain = |text: &str, bench: &ProcessBench| {
            // Names of temporary directories differ, and so do times in a directory listing.
            let text = text.replace(&bench.path("").to_string(), "DIR");
            if text.starts_with("total ") { text.lines().count().to_string() } else { text }
        };
        assert_eq!(
            (exit, plain(&output, &sandboxed)),
            (expected.0, plain(&expected.1, &free)),
            "{text}\nrefused: {:?}",
            started.process.denials()
        );
    }
}

#[test]
fn ordinary_commands_are_unchanged() {
    check(SandboxMechanism::Landlock);
}

/// Without Bubblewrap, `no_command_gets_out_of_bubblewrap` checks the error.
#[test]
fn ordinary_commands_are_unchanged_in_bubblewrap() {
    if check_bubblewrap().is_ok() {
        check(SandboxMechanism::Bubblewrap);
    }
}

/// The handler of notifications opens new files for a command: when the command executes what it has just written, no
/// copy of such a file may be open, neither in the handler nor in a process that another thread starts meanwhile.
#[test]
fn a_program_that_was_just_written_can_be_executed() {
    let bench = ProcessBench::new();
    let text = "for i in $(seq 50); do cp /bin/true t && ./t && rm t || exit; done";
    let working = AtomicUsize::new(4);
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let (bench, working) = (&bench, &working);
            scope.spawn(move || {
                let text = format!("mkdir -p w{worker} && cd w{worker} && {text}");
                let ended: Vec<_> =
                    (0..4).map(|_| bench.start_in(&text, bench.profile()).wait_exit()).collect();
                working.fetch_sub(1, Ordering::Relaxed);
                assert_eq!(ended, vec![(ProcessExit::Code(0), String::new()); 4]);
            });
        }
        while working.load(Ordering::Relaxed) > 0 {
            Command::new("true").status().unwrap();
        }
    });
}
