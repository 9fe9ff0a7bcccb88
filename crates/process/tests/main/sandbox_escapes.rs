//! Attempts to escape from the sandbox. Each of them succeeds outside, or is listed as one that cannot.

use super::process_bench::ProcessBench;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use toolgate_process::sandbox::{SandboxMechanism, SandboxNetworkAccess, SandboxProfile, check_bubblewrap};

/// Attempts by system call, in `tests/probe/escape.c`.
const CALLS: &[&str] = &[
    "open",
    "open-create",
    "creat",
    "open-trunc",
    "openat2",
    "open-dirfd",
    "reopen-path-handle",
    "reopen-read-handle",
    "tmpfile",
    "by-handle",
    "rename-out",
    "rename-in",
    "exchange",
    "link-in",
    "link-in-follow",
    "link-out",
    "symlink-out",
    "mkdir",
    "rmdir",
    "unlink",
    "mkfifo",
    "mknod-device",
    "mknod-char",
    "bind-out",
    "truncate",
    "chmod",
    "fchmod",
    "fchmodat2",
    "chmod-proc-fd",
    "chown",
    "lchown",
    "fchown",
    "utimes",
    "futimens",
    "setxattr",
    "setflags",
    "setuid-file",
    "setuid-chmod",
    "race-chmod",
    "race-open",
    "race-utime",
    "race-link",
    "kill",
    "pidfd-signal",
    "ptrace",
    "vm-read",
    "pidfd-getfd",
    "proc-mem",
    "proc-environ",
    "proc-root",
    "proc-fd",
    "prlimit",
    "kcmp",
    "mount",
    "bind-mount",
    "umount",
    "chroot",
    "fsopen",
    "open-tree",
    "unshare-user",
    "unshare-mount",
    "unshare-net",
    "clone-user",
    "clone3-user",
    "setns",
    "io-uring",
    "tcp",
    "tcp6",
    "mptcp",
    "tcp-fastopen",
    "tcp-listen",
    "udp",
    "udp6",
    "raw",
    "ping",
    "packet",
    "netlink-uevent",
    "netlink-audit",
    "vsock",
    "alg",
    "unix-stream",
    "unix-dgram",
    "unix-dgram-pair",
    "unix-abstract",
    "unix-link",
    "memfd-exec",
    "add-key",
    "keyctl",
    "bpf",
    "perf",
    "userfaultfd",
    "module",
    "fanotify",
    "syslog",
    "hostname",
    "new-privs",
    "iopl",
    "x32",
    "int80",
    "mptcp6",
    "raw6",
    "ping6",
    "packet-dgram",
    "netlink-generic",
    "netlink-netfilter",
    "netlink-diag",
    "netlink-connector",
    "netlink-selinux",
    "tcp-listen-unbound",
    "tcp6-listen-unbound",
    "tcp-listen-dissolved",
    "unix-raw",
    "unix-raw-flags",
    "unix-raw-pair",
    "unix-raw-sendmsg",
    "unix-dgram-sendmsg",
    "unix-dgram-sendmmsg",
    "unix-seqpacket",
    "unix-dgram-abstract",
    "unix-raw-abstract",
    "sysv-memory",
    "sysv-semaphore",
    "sysv-queue",
    "posix-queue",
    "quotactl-fd",
    "unshare-time",
    "priority-user",
    "ioprio-user",
];

/// Attempts that succeed only on a kernel with the socket family, protocol or system call.
const RARE: &[&str] = &[
    "future-470",
    "future-500",
    "future-1000",
    "udplite",
    "sctp",
    "sctp-packet",
    "smc",
    "smc-inet",
    "tipc",
    "bluetooth",
    "can",
    "xdp",
    "kcm",
    "qipcrtr",
    "vsock-dgram",
    "memfd-secret",
    "statmount",
    "listmount",
    "open-tree-attr",
    "file-setattr",
    "setxattrat",
    "setversion",
];

/// Attempts on sockets, which must fail as well if the command may use loopback.
const WITH_LOOPBACK: &[&str] = &[
    "mptcp",
    "mptcp6",
    "smc-inet",
    "sctp",
    "sctp-packet",
    "udp",
    "udp6",
    "udplite",
    "raw",
    "raw6",
    "ping",
    "ping6",
    "packet",
    "packet-dgram",
    "vsock",
    "alg",
    "unix-raw",
    "unix-raw-pair",
    "unix-dgram",
    "unix-seqpacket",
    "unix-stream",
    "unix-abstract",
    "unix-raw-abstract",
    "netlink-generic",
    "netlink-uevent",
    "tcp-fastopen",
    "tcp-listen-unbound",
    "tcp6-listen-unbound",
    "tcp-listen-dissolved",
];

/// Not tried outside the sandbox: they would leave a mount, or kill the test.
const NOT_TRIED_OUTSIDE: &[&str] = &["mount", "bind-mount"];

/// Attempts by command. `OUT` is the directory outside, `PRIV` the unreadable one, `PID` a process outside.
const COMMANDS: &[&str] = &[
    "echo x > OUT/fresh",
    "echo x >> OUT/victim",
    "ln -s OUT l && echo x > l/fresh",
    "cd OUT && touch fresh",
    "echo x > /proc/self/root/OUT/fresh",
    "echo x > ../out/fresh",
    "mkdir -p OUT/a/b",
    "rm -rf OUT/victim",
    "chmod -R 777 OUT",
    "cp -f /etc/hostname OUT/victim",
    "mv OUT/victim .",
    "kill -9 PID",
    "kill -9 -- -1; sleep 0.05",
    "echo 1000 > /proc/PID/oom_score_adj",
    "python3 -c 'open(\"OUT/fresh\",\"w\")'",
    // Protected files that exist and that do not.
    "echo x >> .git/config",
    "echo x > .git/hooks/pre-commit",
    "mkdir -p .git/hooks/x",
    "rm -f .git/config",
    "rm -rf .git",
    "mv .git other && echo x >> other/config",
    "mv .git/hooks .git/h2",
    "mkdir evil; echo x > evil/config; mv -f evil/config .git/config",
    "rm -rf .git/hooks; mkdir evil; ln -s ../evil .git/hooks",
    "ln .git/config twin && echo x >> twin",
    "cp --remove-destination /etc/hostname .git/config",
    "echo x > .mcp.json",
    "touch .mcp.json",
    "ln -s /etc/hostname .mcp.json",
    "mkfifo .mcp.json",
    "mkdir .mcp.json",
    "mkdir x; echo y > x/settings.json; mv x .claude",
    "mkdir x; echo y > x/settings.json; ln -s x .claude",
    "mkdir .claude; echo y > .claude/settings.json",
    "mkdir .claude; ln -s ../y .claude/settings.json",
    "mkdir .claude; echo y > y; mv y .claude/settings.json",
    "echo x > /proc/self/cwd/.git/config",
    "cd .git && echo x > config",
    "echo x > .//.git/../.git/config",
    "ln -s .git g && echo x > g/config",
    "chmod 777 .git/config",
    "truncate -s 0 .git/config",
    "sed -i s/a/b/ .git/config",
    "git config --file .git/config user.name x",
    "exec 3< .git/config; echo x > /proc/self/fd/3",
    "tar cf t.tar -C .git config && tar xf t.tar -C .git --unlink-first",
    // Unreadable files, in the workspace and outside.
    "cat .env",
    "cat < .env",
    "cp .env y && cat y",
    "ln .env y && cat y",
    "mv .env y && cat y",
    "ln -s .env y; cat y",
    "cat /proc/self/root$PWD/.env",
    "cat /proc/self/cwd/.env",
    "exec 3< .env; cat <&3",
    "dd if=.env",
    "grep . .env",
    ". ./.env && echo $SECRET",
    "tar cf - .env",
    "mkdir sub; mv .env sub/; cat sub/.env",
    "cat PRIV/key",
    "cat PRIV/*",
    "ln -s PRIV l; cat l/key",
    "base64 -d <(base64 PRIV/key)",
    "find PRIV -type f -exec cat {} +",
    "cd PRIV && cat key",
    "head -c 100 /proc/self/root/PRIV/key",
    "cp -r PRIV mine; cat mine/key",
    "mv PRIV mine; cat mine/key",
    "cat /proc/PID/environ",
];

struct EscapeFixture {
    bench: ProcessBench,
    outside: PathBuf,
    child: Child,
    port: u16,
    _listeners: (TcpListener, UnixListener, UnixDatagram, UnixListener, UnixDatagram, std::os::fd::OwnedFd),
}

impl EscapeFixture {
    fn new() -> Self {
        let bench = ProcessBench::new();
        let outside = bench.path("out").as_path().to_path_buf();
        std::fs::create_dir_all(outside.join("dir")).unwrap();
        std::fs::create_dir_all(bench.path("priv")).unwrap();
        std::fs::create_dir_all(bench.path("ws/.git/hooks")).unwrap();
        for (name, text) in [
            ("out/victim", "victim\n"),
            ("priv/key", "hunter2\n"),
            ("ws/.env", "SECRET=hunter2\n"),
            ("ws/.git/config", "[core]\n a = a\n"),
            ("ws/.git/HEAD", "ref: refs/heads/main\n"),
        ] {
            std::fs::write(bench.path(name), text).unwrap();
        }
        let child =
            Command::new("sleep").arg("1000").env("SECRET", "hunter2").stdin(Stdio::null()).spawn().unwrap();
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = tcp.local_addr().unwrap().port();
        let name = SocketAddr::from_abstract_name(format!("toolgate-test-{}", child.id())).unwrap();
        let datagrams =
            SocketAddr::from_abstract_name(format!("toolgate-test-dgram-{}", child.id())).unwrap();
        let listeners = (
            tcp,
            UnixListener::bind(outside.join("stream.sock")).unwrap(),
            UnixDatagram::bind(outside.join("dgram.sock")).unwrap(),
            UnixListener::bind_addr(&name).unwrap(),
            UnixDatagram::bind_addr(&datagrams).unwrap(),
            listen_for_packets(&outside.join("stream.sock.seq")),
        );
        Self { bench, outside, child, port, _listeners: listeners }
    }

    fn profile(&self) -> SandboxProfile {
        SandboxProfile {
            unreadable: vec![self.bench.ws().join(".env"), self.bench.path("priv")],
            required: true,
            ..self.bench.profile()
        }
    }

    /// Bubblewrap protects only files that exist.
    fn create_protected_files(&self) {
        for path in &self.bench.profile().protected {
            if !path.as_path().exists() {
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, "{}").unwrap();
            }
        }
    }

    /// Everything that a sandboxed command must not be able to change.
    fn state(&mut self) -> Vec<String> {
        let mut state = vec![format!("alive {}", self.child.try_wait().unwrap().is_none())];
        let mut files = vec![self.bench.path("ws/.env"), self.bench.path("priv/key")];
        files.extend(
            [".git", ".git/config", ".git/hooks", ".mcp.json", ".toolgate", ".claude/settings.json"]
                .map(|name| self.bench.ws().join(name)),
        );
        let mut paths: Vec<PathBuf> = files.iter().map(|path| path.as_path().to_path_buf()).collect();
        let mut seen = std::fs::read_dir(&self.outside).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.append(&mut seen);
        paths.push(self.outside.join("dir"));
        paths.sort();
        for path in paths {
            state.push(match std::fs::symlink_metadata(&path) {
                Ok(meta) => {
                    let text = if meta.is_file() { std::fs::read(&path).unwrap_or_default() } else { vec![] };
                    // Entries are created and removed in `.git`; the directory itself stays.
                    let changes = if path.ends_with(".git") {
                        (0, 0, 0)
                    } else {
                        (meta.ino(), meta.mtime(), meta.mtime_nsec())
                    };
                    format!(
                        "{path:?} {:o} {} {} {changes:?} {:?}",
                        meta.mode(),
                        meta.uid(),
                        if meta.is_file() { meta.nlink() } else { 0 },
                        String::from_utf8_lossy(&text)
                    )
                }
                Err(_) => format!("{path:?} missing"),
            });
        }
        state
    }
}

fn listen_for_packets(path: &Path) -> std::os::fd::OwnedFd {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};
    let packets = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    bind(&packets, &SocketAddrUnix::new(path).unwrap()).unwrap();
    listen(&packets, 8).unwrap();
    packets
}

impl Drop for EscapeFixture {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn probe() -> &'static Path {
    static PROBE: OnceLock<(tempfile::TempDir, PathBuf)> = OnceLock::new();
    let (_, path) = PROBE.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("escape");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/probe/escape.c");
        let built = Command::new("cc").args(["-w", "-O1", "-pthread", "-o"]).arg(&path).arg(source).status();
        assert!(built.unwrap().success(), "the probe is built with the machine's C compiler");
        (dir, path)
    });
    path
}

/// Runs an attempt, and returns how it escaped if it did.
fn escapes(text: &str, sandboxed: Option<SandboxMechanism>, by_exit: bool) -> Option<String> {
    escapes_with(text, sandboxed, |_| SandboxNetworkAccess::None, by_exit)
}

/// The same with network access, which may depend on the port of the listener.
fn escapes_with(
    text: &str,
    sandboxed: Option<SandboxMechanism>,
    net: impl FnOnce(u16) -> SandboxNetworkAccess,
    by_exit: bool,
) -> Option<String> {
    let mut world = EscapeFixture::new();
    let net = net(world.port);
    if sandboxed == Some(SandboxMechanism::Bubblewrap) {
        world.create_protected_files();
    }
    let text = text
        .replace("OUT", &world.outside.display().to_string())
        .replace("PRIV", &world.bench.path("priv").to_string())
        .replace("PID", &world.child.id().to_string())
        .replace("PORT", &world.port.to_string());
    let before = world.state();
    let started = match sandboxed {
        Some(backend) => world.bench.start_in(&text, SandboxProfile { backend, net, ..world.profile() }),
        None => world.bench.start(&text),
    };
    let (exit, output) = started.wait_exit();
    started.process.send_stop(std::time::Duration::ZERO);
    assert!(started.process.wait_all_exited(super::process_bench::TEST_TIMEOUT), "{text}");
    let after = world.state();
    if before != after {
        let changed: Vec<_> = after.iter().filter(|line| !before.contains(line)).collect();
        return Some(format!("changed {changed:?}, {exit:?} {output}"));
    }
    if output.contains("hunter2") {
        return Some(format!("read {output}"));
    }
    assert_ne!(exit, toolgate_process::ProcessExit::Code(2 + 125 * i32::from(!by_exit)), "{text}: {output}");
    (by_exit && exit == toolgate_process::ProcessExit::Code(0)).then(|| format!("exit 0 {output}"))
}

fn call_text(name: &str) -> String {
    format!("{} {name} OUT PID PORT", probe().display())
}

#[test]
fn no_system_call_gets_out() {
    for name in CALLS.iter().chain(RARE) {
        assert_eq!(escapes(&call_text(name), Some(SandboxMechanism::Landlock), true), None, "{name}");
    }
}

#[test]
fn no_socket_but_tcp_to_this_machine_gets_out_with_loopback() {
    for name in WITH_LOOPBACK {
        for net in
            [|_| SandboxNetworkAccess::Loopback(None), |port| SandboxNetworkAccess::Loopback(Some(port))]
        {
            let way = escapes_with(&call_text(name), Some(SandboxMechanism::Landlock), net, true);
            assert_eq!(way, None, "{name} {:?}", net(1));
        }
    }
}

#[test]
fn a_call_that_is_not_known_does_not_exist() {
    let bench = ProcessBench::new();
    let ask = "python3 -c 'import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n\
               for n in (457, 458, 470, 471, 500, 548, 1000, 100000):\n  r = libc.syscall(n, -1, -1, -1, -1, -1, -1)\n  \
               print(n, r, os.strerror(ctypes.get_errno()))'";
    let (exit, output) = bench.start_in(ask, bench.profile()).wait_exit();
    assert_eq!(exit, toolgate_process::ProcessExit::Code(0), "{output}");
    assert_eq!(output.lines().count(), 8);
    for line in output.lines() {
        assert!(line.ends_with("-1 Function not implemented"), "{line}");
    }
}

#[test]
fn no_command_gets_out() {
    for text in COMMANDS {
        assert_eq!(escapes(text, Some(SandboxMechanism::Landlock), false), None, "{text}");
    }
}

/// Bubblewrap either confines the command, or the start fails with the reason.
#[test]
fn no_command_gets_out_of_bubblewrap() {
    if let Err(problem) = check_bubblewrap() {
        let world = EscapeFixture::new();
        let profile = SandboxProfile { backend: SandboxMechanism::Bubblewrap, ..world.profile() };
        let command = toolgate_process::ProcessSpec {
            sandbox: Some(profile),
            ..world.bench.command("echo x > ../out/victim")
        };
        let refused = toolgate_process::SupervisedProcess::start(command, || ()).unwrap_err();
        assert!(refused.sandbox && refused.message == problem, "{refused:?}");
        return;
    }
    // A sandbox that does not start would pass this test.
    let world = EscapeFixture::new();
    let inside = "echo in > inside && cat inside && bash -c 'exit 3'";
    let profile = SandboxProfile { backend: SandboxMechanism::Bubblewrap, ..world.profile() };
    let profile = SandboxProfile { required: false, ..profile };
    let (exit, output) = world.bench.start_in(inside, profile).wait_exit();
    assert_eq!((exit, output.as_str()), (toolgate_process::ProcessExit::Code(3), "in\n"));
    let mut out = Vec::new();
    for text in COMMANDS {
        out.extend(escapes(text, Some(SandboxMechanism::Bubblewrap), false).map(|how| (text, how)));
    }
    for name in CALLS.iter().chain(RARE) {
        out.extend(
            escapes(&call_text(name), Some(SandboxMechanism::Bubblewrap), true).map(|how| (name, how)),
        );
    }
    assert!(out.is_empty(), "{out:#?}");
}

#[test]
fn the_attempts_succeed_outside_the_sandbox() {
    let mut failed = Vec::new();
    let mut tried = 0;
    for name in CALLS.iter().filter(|name| !NOT_TRIED_OUTSIDE.contains(name)) {
        tried += 1;
        if escapes(&call_text(name), None, true).is_none() {
            failed.push(*name);
        }
    }
    for text in COMMANDS.iter().filter(|text| !text.contains("kill -9 -- -1")) {
        tried += 1;
        if escapes(text, None, false).is_none() {
            failed.push(text);
        }
    }
    // Some kernels lack a socket family or a system call; nearly all attempts must succeed everywhere.
    assert!(failed.len() * 6 < tried, "{} of {tried} do nothing anywhere: {failed:?}", failed.len());
    println!("{} of {tried} attempts work outside the sandbox; not: {failed:?}", tried - failed.len());
}

#[test]
fn loopback_reaches_this_machine_and_nothing_else() {
    let world = EscapeFixture::new();
    let fetch = |target: &str| format!("exec 3<>/dev/tcp/{target} && echo connected");
    let run = |text: &str, net: SandboxNetworkAccess| {
        let profile = SandboxProfile { net, ..world.profile() };
        world.bench.start_in(text, profile).wait_exit().1
    };
    let here = format!("127.0.0.1/{}", world.port);
    assert_eq!(run(&fetch(&here), SandboxNetworkAccess::Loopback(None)), "connected\n");
    assert_eq!(run(&fetch(&here), SandboxNetworkAccess::Loopback(Some(world.port))), "connected\n");
    assert!(run(&fetch(&here), SandboxNetworkAccess::Loopback(Some(1))).contains("Permission denied"));
    assert!(
        run(&fetch(&format!("192.0.2.1/{}", world.port)), SandboxNetworkAccess::Loopback(Some(world.port)))
            .contains("Permission denied")
    );
    assert!(run(&fetch("192.0.2.1/80"), SandboxNetworkAccess::Loopback(None)).contains("Permission denied"));
    assert!(
        run("echo x > /dev/udp/127.0.0.1/53", SandboxNetworkAccess::Loopback(None))
            .contains("Permission denied")
    );
    let listen = "python3 -c 'import socket; s = socket.socket(); s.bind((\"0.0.0.0\", 0)); s.listen(); print(s.getsockname()[0])'";
    assert_eq!(run(listen, SandboxNetworkAccess::Loopback(None)), "127.0.0.1\n");
    assert!(run(listen, SandboxNetworkAccess::Loopback(Some(1))).contains("PermissionError"));
    // Without `bind`, the kernel chooses a port on every interface.
    let unbound = listen.replace("s.bind((\"0.0.0.0\", 0)); ", "");
    assert_eq!(run(&unbound, SandboxNetworkAccess::Loopback(None)), "127.0.0.1\n");
    assert!(run(&unbound, SandboxNetworkAccess::Loopback(Some(1))).contains("PermissionError"));
    std::fs::create_dir(world.bench.ws().join("d")).unwrap();
    let local = "python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.bind(\"d/s\"); s.listen(); \
                 c = socket.socket(socket.AF_UNIX); c.connect(\"d/s\"); s.accept(); print(\"accepted\")'; rm -f d/s";
    for net in [
        SandboxNetworkAccess::None,
        SandboxNetworkAccess::Loopback(None),
        SandboxNetworkAccess::Loopback(Some(1)),
    ] {
        assert_eq!(run(local, net), "accepted\n");
    }
}
