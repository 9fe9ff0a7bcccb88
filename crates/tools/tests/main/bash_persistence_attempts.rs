//! Persistence attempts: what a program that a rule allows may leave behind for another program to execute later.
//!
//! Each is Python, run in a repository with a submodule at `lib`, a worktree at `tree`, bare repositories below
//! `fixtures`, and files that editors, shells and continuous integration trust. See `bash_persistence.rs` for the prelude.

use PersistenceCheck::{Git, Kept, Runs};

/// How the test detects that an attempt succeeded.
#[derive(Clone, Copy)]
pub(super) enum PersistenceCheck {
    /// The marker program runs when the user works with git in this directory.
    Git(&'static str),
    /// The marker program runs when the user runs this line.
    Runs(&'static str),
    /// This path, or something below it, changed.
    Kept(&'static str),
}

/// One attempt.
pub(super) struct PersistenceAttempt {
    pub(super) name: &'static str,
    pub(super) check: PersistenceCheck,
    /// Python code that makes the attempt.
    pub(super) code: &'static str,
}

const fn attempt(name: &'static str, check: PersistenceCheck, code: &'static str) -> PersistenceAttempt {
    PersistenceAttempt { name, check, code }
}

/// Through git: hooks, configuration, other repositories.
pub(super) const GIT: &[PersistenceAttempt] = &[
    attempt("a new hook", Git("."), "put('.git/hooks/pre-commit', HOOK, 0o755)"),
    attempt(
        "a hook renamed into place",
        Git("."),
        "put('h', HOOK, 0o755); os.rename('h', '.git/hooks/pre-commit')",
    ),
    attempt("a hook by hard link", Git("."), "put('h', HOOK, 0o755); os.link('h', '.git/hooks/pre-commit')"),
    attempt(
        "a hook by symlink",
        Git("."),
        "put('h', HOOK, 0o755); os.symlink(os.path.abspath('h'), '.git/hooks/pre-commit')",
    ),
    attempt(
        "the directory of hooks replaced",
        Git("."),
        "put('hs/pre-commit', HOOK, 0o755); os.rename('.git/hooks', 'old'); os.rename('hs', '.git/hooks')",
    ),
    attempt(
        "the directory of hooks as a symlink",
        Git("."),
        "put('hs/pre-commit', HOOK, 0o755); os.rename('.git/hooks', '.git/old'); os.symlink('../hs', '.git/hooks')",
    ),
    attempt(
        "the directory of hooks exchanged",
        Git("."),
        "put('hs/pre-commit', HOOK, 0o755); exchange('hs', '.git/hooks')",
    ),
    attempt("a hook made executable", Git("."), "os.chmod('.git/hooks/post-commit', 0o755)"),
    attempt(
        "a hook made executable through a descriptor",
        Git("."),
        "os.fchmod(os.open('.git/hooks/post-commit', os.O_RDONLY), 0o755)",
    ),
    attempt(
        "a hook made executable through an empty path",
        Git("."),
        "fd = os.open('.git/hooks/post-commit', os.O_PATH); libc.fchmodat(fd, b'', 0o755, 0x1000) == 0 or os.chmod('/proc/self/fd/%d' % fd, 0o755)",
    ),
    attempt("a script of a symlinked hook", Git("."), "put('scripts/check.sh', HOOK, 0o755)"),
    attempt(
        "a script of a symlinked hook, replaced",
        Git("."),
        "put('h', HOOK, 0o755); os.rename('h', 'scripts/check.sh')",
    ),
    attempt(
        "the directory of a symlinked hook's script, replaced",
        Git("."),
        "put('s2/check.sh', HOOK, 0o755); os.rename('scripts', 's1'); os.rename('s2', 'scripts')",
    ),
    attempt("a file that the configuration includes", Git("."), "put('shared.gitconfig.inc', CONFIG)"),
    attempt(
        "a hook where core.hooksPath leads",
        Git("lib"),
        "put('lib/tools/checks/pre-commit', HOOK, 0o755)",
    ),
    attempt("an appended configuration", Git("."), "open('.git/config', 'a').write(CONFIG)"),
    attempt(
        "a replaced configuration",
        Git("."),
        "put('c', open('.git/config').read() + CONFIG); os.replace('c', '.git/config')",
    ),
    attempt(
        "a configuration through a lock file",
        Git("."),
        "put('.git/config.lock', open('.git/config').read() + CONFIG); os.rename('.git/config.lock', '.git/config')",
    ),
    attempt("a configuration by git", Git("."), "sh('git config core.fsmonitor ' + MARK)"),
    attempt(
        "a configuration by git, named",
        Git("."),
        "sh('git config --file .git/config core.fsmonitor ' + MARK)",
    ),
    attempt("an include by git", Git("."), "put('c', CONFIG); sh('git config include.path ../c')"),
    attempt(
        "a global configuration",
        Kept("../home/.gitconfig"),
        "sh('git config --global core.fsmonitor ' + MARK)",
    ),
    attempt("a configuration of the worktree", Git("."), "put('.git/config.worktree', CONFIG)"),
    attempt(
        "a configuration of a linked worktree",
        Git("tree"),
        "put('.git/worktrees/tree/config.worktree', CONFIG)",
    ),
    attempt(
        "another common directory",
        Git("."),
        "repo('elsewhere'); put('.git/commondir', '../elsewhere\\n')",
    ),
    attempt(
        "another common directory of a worktree",
        Git("tree"),
        "shutil.copytree('.git', 'g'); open('g/config', 'a').write(CONFIG); put('.git/worktrees/tree/commondir', '../../../g\\n')",
    ),
    attempt("a new worktree entry", Kept(".git/worktrees/evil"), "put('.git/worktrees/evil/gitdir', 'x')"),
    attempt(
        "attributes of the repository",
        Kept(".git/info/attributes"),
        "put('.git/info/attributes', '* filter=x\\n')",
    ),
    attempt("attributes of the tree", Kept(".gitattributes"), "put('.gitattributes', '* filter=x\\n')"),
    attempt(
        "alternates",
        Kept(".git/objects/info/alternates"),
        "put('.git/objects/info/alternates', '/x\\n')",
    ),
    attempt(
        "a configuration of a submodule",
        Git("lib"),
        "open('.git/modules/lib/config', 'a').write(CONFIG)",
    ),
    attempt(
        "a hook of a submodule",
        Git("lib"),
        "put('.git/modules/lib/hooks/post-index-change', HOOK, 0o755); put('.git/modules/lib/hooks/post-checkout', HOOK, 0o755)",
    ),
    attempt("a submodule that points elsewhere", Git("lib"), "repo('r'); put('lib/.git', 'gitdir: ../r\\n')"),
    attempt(
        "a submodule's pointer replaced by a repository",
        Git("lib"),
        "os.unlink('lib/.git'); repo('lib/.git', work='..')",
    ),
    attempt(
        "a worktree that points elsewhere",
        Git("tree"),
        "repo('r'); put('tree/.git', 'gitdir: ../r\\n')",
    ),
    attempt(
        "the list of submodules",
        Kept(".gitmodules"),
        "open('.gitmodules', 'a').write('[submodule \"x\"]\\n')",
    ),
    attempt("a repository in a directory", Git("sub"), "repo('sub/.git', work='..')"),
    attempt(
        "a repository moved into place",
        Git("sub"),
        "repo('sub/g', work='..'); os.rename('sub/g', 'sub/.git')",
    ),
    attempt(
        "a repository moved with its parent",
        Git("planted"),
        "repo('p/.git', work='..'); os.rename('p', 'planted')",
    ),
    attempt(
        "a repository from the temporary directory",
        Git("planted"),
        "t = os.environ['TMPDIR']; repo(t + '/p/.git', work='..'); os.rename(t + '/p', 'planted')",
    ),
    attempt(
        "a repository copied from the temporary directory",
        Git("planted"),
        "t = os.environ['TMPDIR']; repo(t + '/p/.git', work='..'); shutil.move(t + '/p', 'planted')",
    ),
    attempt(
        "a symlink to a repository in the temporary directory",
        Git("planted"),
        "t = os.environ['TMPDIR']; repo(t + '/p/.git', work='..'); os.symlink(t + '/p', 'planted')",
    ),
    attempt(
        "a relative symlink to a repository in the temporary directory, moved to where it leads there",
        Git("planted"),
        "t = os.environ['TMPDIR']; repo(t + '/p/.git', work='..'); os.symlink(os.path.relpath(t + '/p', '.'), 'sub/l'); os.rename('sub/l', 'planted')",
    ),
    attempt(
        "the same with a directory around it",
        Git("d/planted"),
        "t = os.environ['TMPDIR']; repo(t + '/p/.git', work='..'); os.makedirs('sub/d'); os.symlink(os.path.relpath(t + '/p', 'd'), 'sub/d/planted'); os.rename('sub/d', 'd')",
    ),
    attempt(
        "a symlink made in the temporary directory",
        Git("planted"),
        "t = os.environ['TMPDIR']; repo(t + '/p/.git', work='..'); os.symlink(t + '/p', t + '/l'); os.rename(t + '/l', 'planted')",
    ),
    attempt(
        "a symlink made in the temporary directory, linked",
        Git("planted"),
        "t = os.environ['TMPDIR']; repo(t + '/p/.git', work='..'); os.symlink(t + '/p', t + '/l'); os.link(t + '/l', 'planted', follow_symlinks=False)",
    ),
    attempt(
        "a symlink at the name of a repository",
        Git("sub"),
        "repo('r', work='..'); os.symlink('../r', 'sub/.git')",
    ),
    attempt(
        "a symlink at the name to the temporary directory",
        Git("sub"),
        "t = os.environ['TMPDIR']; repo(t + '/r', work=os.path.abspath('sub')); os.symlink(t + '/r', 'sub/.git')",
    ),
    attempt(
        "a file that points to a repository",
        Git("sub"),
        "repo('r'); put('sub/.git', 'gitdir: ../r\\n')",
    ),
    attempt(
        "a file that points to the temporary directory",
        Git("sub"),
        "t = os.environ['TMPDIR']; repo(t + '/r', work=os.path.abspath('sub')); put('sub/.git', 'gitdir: %s/r\\n' % t)",
    ),
    attempt("a bare repository", Git("planted"), "repo('planted')"),
    attempt("a bare repository with a symlink for HEAD", Git("planted"), "repo('planted', head='link')"),
    attempt("a bare repository with a HEAD moved into place", Git("planted"), "repo('planted', head='move')"),
    attempt("a bare repository with a linked HEAD", Git("planted"), "repo('planted', head='hard')"),
    attempt(
        "a bare repository exchanged",
        Git("sub"),
        "repo('planted', head='h'); put('x', 'ref: refs/heads/m\\n'); os.rename('planted/h', 'planted/HEAD'); exchange('planted', 'sub')",
    ),
    attempt(
        "a bare repository by git",
        Git("planted"),
        "sh('git init -q --bare planted'); sh('git -C planted config core.bare false; git -C planted config core.worktree .; git -C planted config core.fsmonitor ' + MARK)",
    ),
    attempt(
        "a configuration of an existing bare repository",
        Git("fixtures/plain"),
        "put('fixtures/plain/config', '[core]\\n\\tworktree = .\\n\\tbare = false\\n' + CONFIG)",
    ),
    attempt(
        "a configuration moved into an existing bare repository",
        Git("fixtures/plain"),
        "put('c', '[core]\\n\\tworktree = .\\n\\tbare = false\\n' + CONFIG); os.replace('c', 'fixtures/plain/config')",
    ),
    attempt(
        "a hook of an existing bare repository",
        Runs("git push -q fixtures/bare.git HEAD:refs/heads/n"),
        "put('fixtures/bare.git/hooks/post-receive', HOOK, 0o755)",
    ),
    attempt(
        "the hooks of an existing bare repository replaced",
        Runs("git push -q fixtures/plain HEAD:refs/heads/n"),
        "put('hs/post-receive', HOOK, 0o755); os.rename('fixtures/plain/hooks', 'x'); os.rename('hs', 'fixtures/plain/hooks')",
    ),
    attempt(
        "the directory above an existing bare repository moved away and back",
        Runs("git push -q fixtures/plain HEAD:refs/heads/n"),
        "os.rename('fixtures', 'x'); put('x/plain/hooks/post-receive', HOOK, 0o755); os.rename('x', 'fixtures')",
    ),
    attempt("git init", Git("sub"), "sh('git init -q sub'); sh('git -C sub config core.fsmonitor ' + MARK)"),
    attempt(
        "git init with a template",
        Git("sub"),
        "put('t/hooks/pre-commit', HOOK, 0o755); sh('git init -q --template=t sub')",
    ),
    attempt(
        "git init with a directory apart",
        Git("sub"),
        "sh('git init -q --separate-git-dir=apart sub'); open('apart/config', 'a').write(CONFIG)",
    ),
    attempt("git clone", Git("planted"), "sh('git clone -q -c core.fsmonitor=%s . planted' % MARK)"),
    attempt("git worktree", Kept(".git/worktrees/planted"), "sh('git worktree add -q planted')"),
    attempt(
        "git submodule",
        Kept(".gitmodules"),
        "sh('git -c protocol.file.allow=always submodule --quiet add ./fixtures/bare.git planted')",
    ),
    attempt(
        "cargo new",
        Git("planted"),
        "sh('cargo new -q planted'); open('planted/.git/config', 'a').write(CONFIG)",
    ),
    attempt("another spelling in capitals", Kept("sub/.GIT"), "repo('sub/.GIT', work='..')"),
    attempt("another spelling, mixed", Kept("sub/.Git"), "put('sub/.Git/config', CONFIG)"),
    attempt(
        "another spelling with an invisible character",
        Kept("sub/.g\u{200c}it"),
        "put('sub/.g\\u200cit/config', CONFIG)",
    ),
    attempt("another spelling, full width", Kept("sub/\u{ff0e}git"), "put('sub/\\uff0egit/config', CONFIG)"),
    attempt("another spelling with a dot at its end", Kept("sub/.git."), "put('sub/.git./config', CONFIG)"),
    attempt("another spelling with a blank at its end", Kept("sub/.git "), "put('sub/.git /config', CONFIG)"),
    attempt(
        "another spelling as a stream",
        Kept("sub/.git::$INDEX_ALLOCATION"),
        "put('sub/.git::$INDEX_ALLOCATION/config', CONFIG)",
    ),
    attempt("a short name of Windows", Kept("sub/GIT~1"), "put('sub/GIT~1/config', CONFIG)"),
    attempt(
        "an archive with a hook",
        Git("."),
        "put('a/.x/hooks/pre-commit', HOOK, 0o755); sh(\"tar cf t.tar -C a --transform 's/[.]x/.git/' . && tar xf t.tar\")",
    ),
    attempt(
        "a repository from an archive",
        Git("planted"),
        "repo('p', head='H'); sh(\"tar cf t.tar --transform 's,^p/H$,planted/HEAD,;s,^p,planted,' p && tar xf t.tar\")",
    ),
    attempt(
        "a stash of the index for another directory",
        Kept(".git/index"),
        "sh('git rm -q --cached f.txt')",
    ),
    attempt(
        "an index replaced",
        Kept(".git/index"),
        "shutil.copy('.git/index', 'i'); open('i', 'ab').write(b'x'); os.replace('i', '.git/index')",
    ),
    attempt(
        "a branch moved",
        Kept(".git/refs"),
        "sh('git branch evil'); put('.git/refs/heads/evil', open('.git/refs/heads/main').read())",
    ),
    attempt("a branch checked out", Kept(".git/HEAD"), "put('.git/HEAD', 'ref: refs/heads/other\\n')"),
];

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

/// Command lines that combine the allowed program with a write that needs approval, and the file that they try to write.
pub(super) const LINES: &[(&str, &str)] = &[
    ("python3 -c 'print(1)' > .git/hooks/pre-commit", ".git/hooks"),
    ("python3 -c 'print(1)' | tee .envrc", ".envrc"),
    ("python3 -c 'print(1)' >> .git/config", ".git/config"),
    ("python3 -c 'print(1)' > .vscode/../.envrc", ".envrc"),
    ("cd .git && python3 -c 'open(\"config\", \"a\").write(\"x\")'", ".git/config"),
    ("cd .vscode && python3 -c 'open(\"tasks.json\", \"a\").write(\"x\")'", ".vscode"),
    ("python3 -c 'print(1)'; git config core.fsmonitor evil", ".git/config"),
    ("x=.envrc; python3 -c 'print(1)' > $x", ".envrc"),
    ("python3 -c 'print(1)' > .env[r]c", ".envrc"),
    ("exec 3<> .envrc; python3 -c 'import os; os.write(3, b\"x\")'", ".envrc"),
    ("python3 - > .zshenv <<< 'print(1)'", ".zshenv"),
    ("python3 -m zipfile -c .idea scripts", ".idea"),
];
