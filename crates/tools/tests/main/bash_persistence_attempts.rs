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

pub(super) const fn attempt(
    name: &'static str,
    check: PersistenceCheck,
    code: &'static str,
) -> PersistenceAttempt {
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
