//! Commands with rights derived from their effects: what was not judged is not permitted.

use super::process_bench::ProcessBench;
use std::os::unix::fs::PermissionsExt;
use std::sync::Arc;
use toolgate_process::sandbox::{FileGuard, PathGuard, SandboxAccess, SandboxProfile, WithheldFileMode};
use toolgate_process::{ProcessExit, find_programs};
use toolgate_proto::AbsPath;

/// Hides `.env` in every directory, and protects `.git` and `locked`.
struct NameGuard;

impl PathGuard for NameGuard {
    fn hides(&self, real: &AbsPath) -> bool {
        real.as_path().components().any(|part| part.as_os_str() == ".env")
    }

    fn protects(&self, real: &AbsPath) -> bool {
        let guarded = [".git", "locked", ".env"];
        real.as_path().components().any(|part| guarded.iter().any(|name| part.as_os_str() == *name))
    }
}

struct RightsFixture {
    bench: ProcessBench,
}

impl RightsFixture {
    fn new() -> Self {
        let bench = ProcessBench::new();
        let write = |name: &str, text: &str| std::fs::write(bench.path(name), text).unwrap();
        std::fs::create_dir_all(bench.path("ws/sub")).unwrap();
        std::fs::create_dir_all(bench.path("ws/locked")).unwrap();
        write("ws/a.txt", "plain\n");
        write("ws/.env", "hunter2\n");
        write("ws/sub/.env", "hunter2\n");
        write("ws/sub/b.txt", "plain\n");
        write("ws/locked/c", "kept\n");
        write("outside", "hunter2\n");
        std::os::unix::fs::symlink(bench.path("outside"), bench.path("ws/link")).unwrap();
        std::os::unix::fs::symlink(".env", bench.path("ws/to_env")).unwrap();
        std::fs::hard_link(bench.path("ws/.env"), bench.path("ws/twin")).unwrap();
        Self { bench }
    }

    /// The rights of a command line that was judged to only read, with these programs.
    fn reader(&self, programs: &[&str]) -> SandboxProfile {
        let names: Vec<String> = programs.iter().map(|name| (*name).to_owned()).collect();
        let path = std::env::var("PATH").unwrap();
        SandboxProfile {
            private: vec![self.bench.path("tmp")],
            readable: Some(vec![self.bench.ws(), self.bench.path("own")]),
            executable: Some(find_programs(&names, &path, &self.bench.ws(), &[self.bench.ws()])),
            guard: FileGuard::new(Arc::new(NameGuard)),
            withheld: WithheldFileMode::Empty,
            required: true,
            ..SandboxProfile::default()
        }
    }

    /// The rights of a command line that a rule allowed as a whole.
    fn whole(&self) -> SandboxProfile {
        SandboxProfile {
            writable: vec![self.bench.ws()],
            private: vec![self.bench.path("tmp")],
            guard: FileGuard::new(Arc::new(NameGuard)),
            required: true,
            ..SandboxProfile::default()
        }
    }

    fn run(&self, text: &str, rights: SandboxProfile) -> (ProcessExit, String, Vec<(SandboxAccess, String)>) {
        let started = self.bench.start_in(text, rights);
        let (exit, output) = started.wait_exit();
        let refused = started.process.denials();
        (exit, output, refused.into_iter().map(|one| (one.access, one.target)).collect())
    }

    /// Every file in and beside the workspace, with its content.
    fn files(&self) -> Vec<(String, Vec<u8>)> {
        let mut out = Vec::new();
        let mut ahead = vec![self.bench.path("ws"), self.bench.path("outside")];
        while let Some(path) = ahead.pop() {
            let meta = std::fs::symlink_metadata(&path).unwrap();
            if meta.is_dir() {
                ahead.extend(
                    std::fs::read_dir(&path).unwrap().map(|entry| path.join(entry.unwrap().file_name())),
                );
            }
            let content = if meta.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
            out.push((path.to_string(), content));
        }
        out.sort();
        out
    }
}

#[test]
fn a_command_with_read_rights_reads() {
    let world = RightsFixture::new();
    for (text, wanted) in [
        ("cat a.txt sub/b.txt", "plain\nplain\n"),
        ("cat < a.txt; ls sub", "plain\nb.txt\n"),
        ("cd sub && cat ../a.txt", "plain\n"),
        ("echo x > \"$TMPDIR/f\" && cat \"$TMPDIR/f\"", "x\n"),
        ("cat /etc/passwd > /dev/null && echo fine", "fine\n"),
        ("cat <<< here", "here\n"),
        ("cat <(echo sub)", "sub\n"),
    ] {
        let (exit, output, refused) = world.run(text, world.reader(&["cat", "ls"]));
        assert_eq!((exit, output.as_str()), (ProcessExit::Code(0), wanted), "{text}: {refused:?}");
    }
}

/// A command line that was judged to only read does something else: nothing is written, executed or sent, and no secret is
/// shown.
#[test]
fn what_the_analysis_missed_is_refused() {
    let loader = std::fs::read_dir("/lib64").ok().and_then(|entries| {
        let names = entries.flatten().map(|entry| entry.path().display().to_string());
        names.into_iter().find(|name| name.contains("ld-"))
    });
    let loader = loader.unwrap_or_else(|| "/lib/ld-linux.so".to_owned());
    let mut attempts: Vec<String> = [
        "touch p",
        "echo x > q",
        "echo x >> a.txt",
        ": > a.txt",
        "/usr/bin/touch p",
        "command touch p",
        "exec touch p",
        "cp a.txt p",
        "mkdir p",
        "rm a.txt",
        "mv a.txt p",
        "ln a.txt p",
        "ln -s a.txt p",
        "chmod 777 a.txt",
        "sh -c 'echo x > p'",
        "bash -c 'touch p'",
        "python3 -c 'open(\"p\", \"w\")'",
        "perl -e 'open F, \">p\"'",
        "cat /usr/bin/touch > \"$TMPDIR/t\"; chmod +x \"$TMPDIR/t\"; \"$TMPDIR/t\" p",
        "enable -f /usr/lib/bash/mkdir mkdir; mkdir p",
        "exec 3<>/dev/tcp/127.0.0.1/1; echo x >&3",
        "cat ../outside",
        "cat link",
        "cat .env",
        "cat sub/.env",
        "cat to_env",
        "cat twin",
        "cat < .env",
        "mapfile x < .env; echo \"${x[@]}\"",
        "cat ~/.ssh/id_rsa",
        "cat /etc/shadow",
        "cat /proc/1/environ",
        "cat /proc/self/root/etc/shadow",
        "cat /proc/self/cwd/.env",
        "kill -9 1",
        "trap 'touch p' EXIT",
        "coproc touch p; wait",
        "touch p & wait",
    ]
    .map(str::to_owned)
    .to_vec();
    attempts.push(format!("{loader} /usr/bin/touch p"));
    attempts.push(format!("{loader} /usr/bin/cat ../outside"));
    for text in attempts {
        let world = RightsFixture::new();
        let before = world.files();
        let (exit, output, refused) = world.run(&text, world.reader(&["cat"]));
        assert_eq!(world.files(), before, "{text}: {output}");
        assert!(!output.contains("hunter2"), "{text}: {output}");
        assert!(!output.contains("root:"), "{text}: {output}");
        if text.contains("touch") && !text.contains("trap") && !text.contains('&') {
            let started = refused.iter().any(|(access, _)| *access == SandboxAccess::Execute);
            assert!(started || exit != ProcessExit::Code(0), "{text}: {exit:?} {refused:?} {output}");
        }
    }
}

#[test]
fn a_program_that_is_not_listed_is_named() {
    let world = RightsFixture::new();
    let (_, _, refused) = world.run("cat a.txt; touch p", world.reader(&["cat"]));
    let touch = toolgate_files::resolve(&AbsPath::new("/usr/bin/touch").unwrap()).real.to_string();
    assert_eq!(refused, [(SandboxAccess::Execute, touch)]);
}

#[test]
fn env_starts_the_interpreter_of_a_listed_script_and_nothing_else_does() {
    let world = RightsFixture::new();
    let script = world.bench.path("bin/hello");
    std::fs::create_dir_all(world.bench.path("bin")).unwrap();
    std::fs::write(&script, "#!/usr/bin/env sh\necho hello \"$@\"\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let script = script.to_string();
    let run = |text: &str, programs: &[&str]| world.run(text, world.reader(programs));
    let (exit, output, refused) = run(&format!("{script} you"), &[&script]);
    assert_eq!((exit, output.as_str(), refused), (ProcessExit::Code(0), "hello you\n", Vec::new()));
    for (text, programs) in [
        ("/usr/bin/env sh -c 'echo more'", &[script.as_str()][..]),
        ("env sh -c 'echo more'", &[&script]),
        ("sh -c 'echo more'", &[&script]),
        // Where a command may start `env`, it may start it with anything.
        ("env sh -c 'echo more'", &[&script, "env"]),
        ("env sh -c 'echo more'", &["env"]),
    ] {
        let (exit, output, refused) = run(text, programs);
        assert!(!output.contains("more\n") && exit != ProcessExit::Code(0), "{text}: {output}");
        assert!(refused.iter().any(|(access, _)| *access == SandboxAccess::Execute), "{text}: {refused:?}");
    }
}

/// A search continues after a hidden file, and the hidden file is reported.
#[test]
fn a_search_goes_past_what_is_withheld() {
    let world = RightsFixture::new();
    let (exit, output, refused) =
        world.run("grep -rl e . | sort; grep -r hunter2 .; echo $?", world.reader(&["grep", "sort"]));
    assert_eq!(exit, ProcessExit::Code(0));
    assert!(!output.contains("hunter2") && output.ends_with("1\n"), "{output}");
    let withheld: Vec<&String> = refused
        .iter()
        .filter(|(access, _)| *access == SandboxAccess::ReadHidden)
        .map(|(_, path)| path)
        .collect();
    assert!(withheld.iter().any(|path| path.ends_with("ws/.env")), "{refused:?}");
    assert!(withheld.iter().any(|path| path.ends_with("ws/sub/.env")), "{refused:?}");
}

#[test]
fn named_entries_can_be_written_and_no_others() {
    for (text, entries, trees, works) in [
        ("echo x > new", &["new"][..], &[][..], true),
        ("echo x > a.txt", &["a.txt"], &[], true),
        ("echo x > other", &["new"], &[], false),
        ("mkdir -p d/e && echo x > d/e/f", &["d/e/f"], &[], true),
        ("mkdir -p d/x", &["d/e/f"], &[], false),
        ("rm a.txt", &["a.txt"], &[], true),
        ("rm -r sub", &[], &["sub"], false),
        // A symlink is an entry of its own, and no way to its target.
        ("ln -s a.txt l && rm l", &["l"], &[], true),
        ("ln -s a.txt l && echo x > l", &["l"], &[], false),
        ("mv a.txt b.txt", &["a.txt", "b.txt"], &[], true),
        ("mv a.txt b.txt", &["a.txt"], &[], false),
        ("cp a.txt locked/c", &["locked/c"], &[], false),
        // A tree that does not exist yet.
        ("mkdir tree && cp a.txt tree/x && rm -r tree/x", &[], &["tree"], true),
        ("cp a.txt trees", &[], &["tree"], false),
        // The template of a temporary file.
        ("echo x > sedAb3dE9 && mv sedAb3dE9 a.txt && cat a.txt", &["sedXXXXXX", "a.txt"], &[], true),
        ("echo x > sedAb3dE", &["sedXXXXXX"], &[], false),
        ("echo x > sub/sedAb3dE9", &["sedXXXXXX"], &[], false),
        // Landlock rules are about inodes: a new file under an old name is read as well.
        ("rm a.txt && echo x > a.txt && cat a.txt", &["a.txt"], &[], true),
    ] {
        let world = RightsFixture::new();
        let path = |name: &&str| world.bench.ws().join(name);
        let rights = SandboxProfile {
            entries: entries.iter().map(path).collect(),
            writable: trees.iter().map(path).collect(),
            ..world.reader(&["mkdir", "rm", "mv", "cp", "cat", "ln"])
        };
        let (exit, output, refused) = world.run(text, rights);
        assert_eq!(exit == ProcessExit::Code(0), works, "{text}: {output} {refused:?}");
    }
}

/// Rules by name apply to files that do not exist yet, for every system call that creates one.
#[test]
fn guarded_names_cannot_be_made_changed_or_moved() {
    for text in [
        "mkdir .git",
        "mkdir -p x/.git/hooks",
        "echo x > .git",
        "ln -s sub .git",
        "ln a.txt .git",
        "mv sub .git",
        "mv a.txt x && mv x .git",
        "mkdir x && mv x sub/.git",
        "mkfifo .git",
        "python3 -c \"import os; os.mkdir('.git')\"",
        "python3 -c \"import os; os.rename('sub', '.git')\"",
        "python3 -c \"import os; os.symlink('sub', '.git')\"",
        "python3 -c \"import os; os.mknod('.git')\"",
        "python3 -c \"import os; os.open('.git', os.O_CREAT | os.O_RDWR)\"",
        "cp a.txt .git",
        "tar cf t.tar a.txt --transform 's/a.txt/.git/' && tar xf t.tar",
        "install -m 644 a.txt .git",
        "echo x > locked/c",
        "rm locked/c",
        "rm -rf locked",
        "mv locked elsewhere",
        "mv locked/c c",
        "ln locked/c c && echo x > c",
        "chmod 000 locked/c",
        "truncate -s 0 locked/c",
        "echo x > locked/new",
        "mv .env e && cat e",
        "ln .env e && cat e",
        "mv sub s2 && cat s2/.env",
        "cp .env e; cat e",
        "python3 -c \"print(open('.env').read())\"",
        "python3 -c \"print(open('twin').read())\"",
        "echo x > .env",
        "cat to_env",
        "d=locked; cd $d && echo x > c",
        "exec 3< locked; echo x > /proc/self/fd/3/c",
        "cd locked && echo x > \"$PWD/c\"",
    ] {
        let world = RightsFixture::new();
        let before: Vec<_> = world.files();
        let kept = |files: &[(String, Vec<u8>)]| -> Vec<(String, Vec<u8>)> {
            let guarded = |name: &str| [".git", "locked", ".env"].iter().any(|part| name.contains(part));
            files.iter().filter(|(name, _)| guarded(name)).cloned().collect()
        };
        let (_, output, refused) = world.run(text, world.whole());
        assert_eq!(kept(&world.files()), kept(&before), "{text}: {output} {refused:?}");
        assert!(!output.contains("hunter2"), "{text}: {output}");
    }
}

/// Two threads that change a path while the seccomp notification handler checks it create no protected name.
#[test]
fn a_race_between_look_and_change_makes_no_guarded_name() {
    let world = RightsFixture::new();
    let source = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <stdio.h>
#include <fcntl.h>
static char path[8] = "x_git";
static volatile int done;
static void *flip(void *unused) {
    while (!done) { path[0] = '.'; path[1] = 'g'; memcpy(path + 1, "git\0", 4); memcpy(path, "x_git\0", 6); }
    return unused;
}
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, flip, 0);
    for (int i = 0; i < 3000; i++) { mkdir(path, 0700); rmdir("x_git"); int fd = open(path, O_CREAT | O_WRONLY, 0600); if (fd >= 0) close(fd); unlink("x_git"); }
    done = 1;
    pthread_join(thread, 0);
    struct stat st;
    puts(lstat(".git", &st) == 0 ? "MADE" : "none");
    return 0;
}
"#;
    std::fs::write(world.bench.path("ws/race.c"), source).unwrap();
    let (exit, output, _) = world.run("cc -O1 -pthread -o race race.c && ./race", world.whole());
    assert_eq!((exit, output.as_str()), (ProcessExit::Code(0), "none\n"));
}

/// A cached Landlock ruleset is not used after the directory has changed.
#[test]
fn a_file_created_beside_a_hidden_one_is_read_by_the_next_command() {
    let world = RightsFixture::new();
    let home = world.bench.path("home");
    std::fs::create_dir(&home).unwrap();
    std::fs::write(home.join("secret"), "hunter2").unwrap();
    let run = |text: &str| {
        let rights = SandboxProfile { unreadable: vec![home.join("secret")], ..world.whole() };
        world.run(text, rights)
    };
    for round in 0..3 {
        let name = format!("new{round}");
        assert_ne!(run(&format!("cat ../home/{name}")).0, ProcessExit::Code(0));
        std::fs::write(home.join(&name), "made").unwrap();
        let (exit, output, _) = run(&format!("cat ../home/{name}"));
        assert_eq!((exit, output.as_str()), (ProcessExit::Code(0), "made"));
        // The hidden file is another inode now.
        std::fs::write(home.join("other"), "hunter2").unwrap();
        std::fs::rename(home.join("other"), home.join("secret")).unwrap();
        let (_, output, _) = run("cat ../home/secret");
        assert!(!output.contains("hunter2"), "{output}");
    }
}
