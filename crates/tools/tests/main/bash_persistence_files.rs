//! Persistence attempts through files that editors, shells and continuous integration trust.
//!
//! See `bash_persistence_attempts.rs` for what they run in.

use super::bash_persistence_attempts::PersistenceCheck::{Kept, Runs};
use super::bash_persistence_attempts::{PersistenceAttempt, attempt};

/// Through files that other programs trust, with every system call that creates or changes a file.
pub(super) const FILES: &[PersistenceAttempt] = &[
    attempt("written", Kept(".vscode/tasks.json"), "put('.vscode/tasks.json', MARK)"),
    attempt("appended", Kept(".envrc"), "open('.envrc', 'a').write(MARK)"),
    attempt("truncated", Kept(".envrc"), "os.truncate('.envrc', 0)"),
    attempt("removed", Kept(".envrc"), "os.unlink('.envrc')"),
    attempt("removed and made again", Kept(".envrc"), "os.unlink('.envrc'); put('.envrc', MARK)"),
    attempt("replaced", Kept(".envrc"), "put('x', MARK); os.replace('x', '.envrc')"),
    attempt("exchanged", Kept(".envrc"), "put('x', MARK); exchange('x', '.envrc')"),
    attempt(
        "made anew",
        Kept(".autoenv.zsh"),
        "os.open('.autoenv.zsh', os.O_CREAT | os.O_EXCL | os.O_WRONLY)",
    ),
    attempt("made as a node", Kept(".exrc"), "os.mknod('.exrc')"),
    attempt("made as a pipe", Kept(".exrc"), "os.mkfifo('.exrc')"),
    attempt(
        "made without a name and linked",
        Kept(".nvim.lua"),
        "fd = os.open('.', os.O_TMPFILE | os.O_WRONLY); os.write(fd, b'x'); link_fd(fd, '.nvim.lua')",
    ),
    attempt(
        "made without a name in the temporary directory and linked",
        Kept(".nvim.lua"),
        "fd = os.open(os.environ['TMPDIR'], os.O_TMPFILE | os.O_WRONLY); os.write(fd, b'x'); link_fd(fd, '.nvim.lua')",
    ),
    attempt("linked", Kept(".dir-locals.el"), "put('x', MARK); os.link('x', '.dir-locals.el')"),
    attempt(
        "linked from the temporary directory",
        Kept(".dir-locals.el"),
        "t = os.environ['TMPDIR'] + '/x'; put(t, MARK); os.link(t, '.dir-locals.el')",
    ),
    attempt("made a second name to write through", Kept(".envrc"), "os.link('.envrc', 'x'); put('x', MARK)"),
    attempt(
        "made a second name in the temporary directory",
        Kept(".envrc"),
        "t = os.environ['TMPDIR'] + '/x'; os.link('.envrc', t); put(t, MARK)",
    ),
    attempt("written through a symlink", Kept(".envrc"), "os.symlink('.envrc', 'x'); put('x', MARK)"),
    attempt(
        "written through a symlinked directory",
        Kept(".vscode/tasks.json"),
        "os.symlink('.vscode', 'x'); put('x/tasks.json', MARK)",
    ),
    attempt(
        "made through a symlink that leads nowhere",
        Kept(".vimrc"),
        "os.symlink('.vimrc', 'x'); put('x', MARK)",
    ),
    attempt("a symlink at the name", Kept(".helix"), "put('x/config.toml', MARK); os.symlink('x', '.helix')"),
    attempt(
        "a symlink at the directory above",
        Kept(".github"),
        "put('x/workflows/a.yml', MARK); os.rename('.github', 'old'); os.symlink('x', '.github')",
    ),
    attempt(
        "the directory renamed away and another put there",
        Kept(".vscode"),
        "os.rename('.vscode', 'old'); put('x/tasks.json', MARK); os.rename('x', '.vscode')",
    ),
    attempt(
        "the directory above renamed into place",
        Kept(".github/workflows"),
        "put('x/workflows/a.yml', MARK); os.rename('.github', 'old'); os.rename('x', '.github')",
    ),
    attempt(
        "the directory above renamed into place where there was none",
        Kept("sub/.config/fish"),
        "put('sub/x/fish/config.fish', MARK); os.rename('sub/x', 'sub/.config')",
    ),
    attempt(
        "two directories above",
        Kept("deep/.config/fish"),
        "put('x/.c/fish/config.fish', MARK); os.rename('x/.c', 'x/.config'); os.rename('x', 'deep')",
    ),
    attempt(
        "relative to a directory",
        Kept(".vscode/tasks.json"),
        "os.write(os.open('tasks.json', os.O_WRONLY | os.O_TRUNC, dir_fd=os.open('.vscode', os.O_RDONLY)), b'x')",
    ),
    attempt(
        "after a change of directory",
        Kept(".vscode/tasks.json"),
        "os.chdir('.vscode'); put('tasks.json', MARK)",
    ),
    attempt(
        "after a change of directory by descriptor",
        Kept(".vscode/launch.json"),
        "os.fchdir(os.open('.vscode', os.O_PATH)); put('launch.json', MARK)",
    ),
    attempt(
        "through the descriptor of a directory",
        Kept(".vscode/tasks.json"),
        "fd = os.open('.vscode', os.O_PATH); put('/proc/self/fd/%d/tasks.json' % fd, MARK)",
    ),
    attempt("through the working directory in proc", Kept(".envrc"), "put('/proc/self/cwd/.envrc', MARK)"),
    attempt(
        "through the root in proc",
        Kept(".envrc"),
        "put('/proc/self/root' + os.path.abspath('.envrc'), MARK)",
    ),
    attempt(
        "through a thread in proc",
        Kept(".envrc"),
        "import threading; put('/proc/self/task/%d/cwd/.envrc' % threading.get_native_id(), MARK)",
    ),
    attempt(
        "through a parent process in proc",
        Kept(".envrc"),
        "put('/proc/%d/cwd/.envrc' % os.getppid(), MARK)",
    ),
    attempt(
        "through a descriptor that was open to read",
        Kept(".envrc"),
        "fd = os.open('.envrc', os.O_RDONLY); open('/proc/self/fd/%d' % fd, 'w').write(MARK)",
    ),
    attempt(
        "through a descriptor to a path only",
        Kept(".envrc"),
        "fd = os.open('.envrc', os.O_PATH); open('/dev/fd/%d' % fd, 'w').write(MARK)",
    ),
    attempt(
        "copied in the kernel",
        Kept(".envrc"),
        "put('x', MARK * 9); a = os.open('x', os.O_RDONLY); b = os.open('.envrc', os.O_WRONLY); os.copy_file_range(a, b, 99)",
    ),
    attempt(
        "sent in the kernel",
        Kept(".envrc"),
        "put('x', MARK * 9); a = os.open('x', os.O_RDONLY); b = os.open('.envrc', os.O_WRONLY); os.sendfile(b, a, 0, 99)",
    ),
    attempt("extended", Kept(".envrc"), "os.posix_fallocate(os.open('.envrc', os.O_RDWR), 0, 9999)"),
    attempt(
        "mapped",
        Kept(".envrc"),
        "import mmap; m = mmap.mmap(os.open('.envrc', os.O_RDWR), 4); m[:4] = b'evil'; m.flush()",
    ),
    attempt(
        "opened in the older way",
        Kept(".envrc"),
        "fd = libc.syscall(2, b'.envrc', 1 | 512, 0); os.write(fd, b'x')",
    ),
    attempt(
        "created in the older way",
        Kept(".zshenv"),
        "fd = libc.syscall(85, b'.zshenv', 0o644); os.write(fd, b'x')",
    ),
    attempt(
        "opened in the newer way",
        Kept(".envrc"),
        "import struct; how = struct.pack('QQQ', 1 | 512, 0, 0); fd = libc.syscall(437, -100, b'.envrc', how, 24); os.write(fd, b'x')",
    ),
    attempt("its times changed", Kept(".envrc"), "os.utime('.envrc', (1, 1))"),
    attempt("its mode changed", Kept(".envrc"), "os.chmod('.envrc', 0o777)"),
    attempt("by a process that outlives the command", Kept(".envrc"), "later('.envrc')"),
    attempt(
        "by a thread",
        Kept(".envrc"),
        "import threading; t = threading.Thread(target=put, args=('.envrc', MARK)); t.start(); t.join()",
    ),
    attempt("by a child of a child", Kept(".envrc"), "sh('sh -c \"(sh -c \\'echo x > .envrc\\')\"')"),
    attempt(
        "in steps through other names",
        Kept(".vscode/tasks.json"),
        "os.makedirs('a/b'); put('a/b/tasks.json', MARK); os.rename('a/b', 'c'); os.rename('.vscode', 'a/v'); os.rename('c', '.vscode')",
    ),
    attempt(
        "by an archive",
        Kept(".vscode/evil.json"),
        "put('v/evil.json', MARK); sh(\"tar cf t.tar --transform 's/^v/.vscode/' v && tar xf t.tar\")",
    ),
    attempt(
        "by a compressed archive",
        Kept(".idea"),
        "import zipfile; z = zipfile.ZipFile('z.zip', 'w'); z.writestr('.idea/workspace.xml', MARK); z.close(); sh('unzip -qo z.zip')",
    ),
    attempt(
        "by python's own archives",
        Kept(".idea"),
        "import zipfile; z = zipfile.ZipFile('z.zip', 'w'); z.writestr('.idea/workspace.xml', MARK); z.close(); sh('python3 -m zipfile -e z.zip .')",
    ),
    attempt(
        "by a patch",
        Kept(".envrc"),
        "put('p', '--- a/.envrc\\n+++ b/.envrc\\n@@ -1 +1 @@\\n-# mine\\n+evil\\n'); sh('patch -p1 < p')",
    ),
    attempt(
        "by git's patches",
        Kept(".idea/x"),
        "put('p', 'diff --git a/.idea/x b/.idea/x\\nnew file mode 100755\\n--- /dev/null\\n+++ b/.idea/x\\n@@ -0,0 +1 @@\\n+evil\\n'); sh('git apply p')",
    ),
    attempt("by a branch checked out", Kept(".idea/x"), "sh('git checkout -q evil')"),
    attempt(
        "by files of a branch",
        Kept(".idea/x"),
        "sh('git restore --source=evil .idea/x || git archive evil | tar x')",
    ),
    attempt(
        "by a copy of a tree",
        Kept(".idea"),
        "put('i/workspace.xml', MARK); shutil.copytree('i', '.idea')",
    ),
    attempt("by dd", Kept(".envrc"), "sh('echo evil | dd of=.envrc')"),
    attempt("by sed", Kept(".envrc"), "sh('sed -i s/mine/evil/ .envrc')"),
    attempt("by install", Kept(".envrc"), "put('x', MARK); sh('install -m 755 x .envrc')"),
    attempt("by node", Kept(".envrc"), "sh('node -e \"fs.writeFileSync(\\'.envrc\\', \\'x\\')\"')"),
    attempt("by npm", Kept(".npmrc"), "sh('npm config set --location=project script-shell ' + MARK)"),
    attempt("another spelling of a name", Kept(".ENVRC"), "put('.ENVRC', MARK)"),
    attempt("another spelling of a directory", Kept(".VSCode"), "put('.VSCode/tasks.json', MARK)"),
    attempt(
        "a makefile before the makefile",
        Runs("make -s"),
        "put('GNUmakefile', 'all:\\n\\t' + MARK + '\\n')",
    ),
    attempt(
        "a wrapper for the compiler",
        Runs("cargo check -q --offline"),
        "put('.cargo/config.toml', '[build]\\nrustc-wrapper = \"%s\"\\n' % MARK)",
    ),
    attempt(
        "a wrapper for the compiler, in capitals of the key file",
        Runs("cargo check -q --offline"),
        "put('.cargo/config', '[build]\\nrustc-wrapper = \"%s\"\\n' % MARK)",
    ),
    attempt("a shell for scripts", Runs("npm test --silent"), "put('.npmrc', 'script-shell=%s\\n' % MARK)"),
    attempt("a start-up file of bash", Runs("HOME=$PWD bash -ic true"), "put('.bashrc', MARK + '\\n')"),
    attempt(
        "a start-up file of a login shell",
        Runs("HOME=$PWD bash -lc true"),
        "put('.profile', MARK + '\\n')",
    ),
    attempt(
        "a start-up file of python",
        Runs("PYTHONPATH=. python3 -c 1"),
        "put('sitecustomize.py', 'import os; os.system(\"%s\")\\n' % MARK)",
    ),
    attempt(
        "a start-up package of python",
        Runs("PYTHONPATH=. python3 -c 1"),
        "put('sitecustomize/__init__.py', 'import os; os.system(\"%s\")\\n' % MARK)",
    ),
    attempt(
        "a start-up file of the debugger",
        Runs("echo q | python3 -m pdb scripts/nothing.py"),
        "put('.pdbrc', '!import os; os.system(\"%s\")\\n' % MARK)",
    ),
    attempt(
        "a start-up file of the database",
        Runs("HOME=$PWD sqlite3 :memory: .quit"),
        "put('.sqliterc', '.shell %s\\n' % MARK)",
    ),
    attempt(
        "a start-up file of the editor",
        Runs("vim -u NONE -N -c 'set exrc' -c 'source .exrc' -es -c q"),
        "put('.exrc', 'silent !%s\\n' % MARK)",
    ),
    attempt("a build file that npm runs by itself", Kept("binding.gyp"), "put('binding.gyp', '{}')"),
    attempt("a key for a way in", Kept(".ssh"), "put('.ssh/authorized_keys', 'ssh-ed25519 x')"),
    attempt(
        "a configuration of ssh",
        Kept(".ssh"),
        "os.mkdir('.ssh', 0o700); put('.ssh/config', 'ProxyCommand x')",
    ),
];
