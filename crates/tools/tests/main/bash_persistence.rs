//! A sandboxed program gains no persistence: it leaves nothing that another program runs later without approval.
//!
//! A rule allows `python3`, and no approver is available. The program makes every attempt that we know of to leave code
//! for the user's next `git`, `cd`, editor, package manager, shell or agent. The same attempts without the sandbox show
//! that they work.

use super::bash_persistence_attempts::{GIT, LINES, PersistenceAttempt, PersistenceCheck};
use super::bash_persistence_files::FILES;
use super::shell_fixture::{ShellFixture, block_on_runtime, output};
use std::fmt::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use toolgate_proto::Mode;

const PRELUDE: &str = r#"
import ctypes, os, shutil, subprocess, sys, time
HOOK = '#!/bin/sh\n%s\n' % MARK
CONFIG = '[core]\n\tfsmonitor = %s\n' % MARK
libc = ctypes.CDLL(None, use_errno=True)
def put(path, text, mode=0o644):
    if os.path.dirname(path): os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w') as f: f.write(text)
    if mode != 0o644: os.chmod(path, mode)
def sh(line):
    subprocess.run(line, shell=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
def exchange(a, b):
    if libc.renameat2(-100, a.encode(), -100, b.encode(), 2): raise OSError(ctypes.get_errno(), 'exchange')
def link_fd(fd, path):
    if libc.linkat(-100, b'/proc/self/fd/%d' % fd, -100, path.encode(), 0x400) and libc.linkat(fd, b'', -100, path.encode(), 0x1000):
        raise OSError(ctypes.get_errno(), 'link')
def repo(path, work='.', head='plain'):
    os.makedirs(path + '/objects'); os.makedirs(path + '/refs/heads')
    put(path + '/config', '[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = %s\n' % work + CONFIG)
    put(path + '/hooks/pre-commit', HOOK, 0o755)
    text = 'ref: refs/heads/main\n'
    if head == 'plain': put(path + '/HEAD', text)
    elif head == 'link': os.symlink('refs/heads/main', path + '/HEAD')
    elif head == 'move': put(path + '/x', text); os.rename(path + '/x', path + '/HEAD')
    elif head == 'hard': put('x', text); os.link('x', path + '/HEAD')
    else: put(path + '/' + head, text)
def later(path):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for fd in range(3): os.close(fd)
            time.sleep(0.2)
            put(path, MARK)
        os._exit(0)
"#;

/// Files that some program executes or trusts without asking.
const NAMES: &str = "
    .git .git/hooks/post-merge .hg/hgrc .svn/x .jj/x .bzr/x .sl/x _darcs/prefs/defaults .pijul/config .hgrc .gitconfig
    .config/git/config .gitmodules .githooks/pre-commit .git-hooks/pre-commit .arcconfig .husky/pre-commit .huskyrc
    lefthook.yml lefthook.toml .lefthook.toml lefthook-local.yml .pre-commit-config.yaml .lintstagedrc
    .lintstagedrc.js lint-staged.config.js .simple-git-hooks.json simple-git-hooks.js .overcommit.yml captainhook.json
    grumphp.yml prek.toml
    .envrc .autoenv .autoenv.zsh .tool-versions .mise.toml mise.toml mise.local.toml .mise.local.toml .config/mise.toml
    .config/mise/config.toml .rtx.toml .asdfrc .direnvrc .config/direnv/direnvrc .shadowenv.d/x.lisp .env
    .bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin .zlogout
    .kshrc .cshrc .tcshrc .login .inputrc .xprofile .xinitrc .xsession .xsessionrc .pam_environment .tmux.conf
    .config/fish/config.fish .config/zsh/.zshrc .config/tmux/tmux.conf .config/starship.toml .config/nushell/env.nu
    .config/environment.d/x.conf .config/autostart/x.desktop .config/systemd/user/x.service .local/bin/ls
    .local/share/applications/x.desktop .oh-my-zsh/custom/x.zsh .zsh/x.zsh .nvm/nvm.sh .pyenv/shims/python
    .asdf/asdf.sh .rustup/settings.toml .forward .rhosts .selected_editor .lessfilter
    .vscode/extensions.json .idea/workspace.xml .devcontainer/devcontainer.json .devcontainer.json .vim/vimrc .vimrc
    .nvimrc .nvim.lua .nvim/init.lua .exrc .lvimrc .local.vimrc .config/nvim/init.lua .emacs .emacs.d/init.el
    .emacs.desktop .dir-locals.el .dir-locals-2.el .config/emacs/init.el .helix/languages.toml .zed/tasks.json
    .config/zed/settings.json .fleet/run.json .kakrc .vs/tasks.vs.json .bsp/x.json .neoconf.json .gitpod.yml
    project.code-workspace .config/code/user/settings.json
    .gdbinit .gdbearlyinit .lldbinit .pdbrc .rdbgrc .radare2rc
    .npmrc .yarnrc .yarnrc.yml .yarn/releases/x.cjs .pnpmfile.cjs .pnpmfile.mjs .pnp.cjs bunfig.toml binding.gyp
    GNUmakefile .cargo/config.toml rust-toolchain rust-toolchain.toml sitecustomize.py usercustomize.py .pythonrc
    .ipython/profile_default/startup/x.py .jupyter/x.py .condarc .config/pip/pip.conf .irbrc .pryrc .rspec .gemrc
    .bundle/config .proverc .ghci .ocamlinit .iex.exs .erlang .Rprofile .Renviron .RData .octaverc .juliarc.jl
    .julia/config/startup.jl .sbclrc .mvn/extensions.xml .sdkmanrc .sbtopts .jvmopts .bazelrc .bazeliskrc .bazelversion
    .buckconfig tools/bazel gradle/wrapper/gradle-wrapper.properties .gradle/init.d/x.gradle .m2/settings.xml
    .psqlrc .sqliterc .my.cnf .mailcap .terraformrc ansible.cfg .curlrc .wgetrc .netrc .ackrc .tigrc
    .toolgate/settings.json .claude/settings.json .claude/hooks/x.sh .claude.json .claude-plugin/plugin.json .mcp.json
    .lsp.json .cursor/mcp.json .cursorrules .gemini/settings.json .codex/config.toml .continue/config.json
    .windsurf/x .windsurfrules .clinerules/x .roo/mcp.json .opencode/x opencode.json .kiro/settings/mcp.json .qwen/x
    .amp/settings.json .agents/x .junie/x .goosehints .aider.conf.yml .config/toolgate/settings.json
    .github/workflows/x.yml .github/actions/x/action.yml .gitlab-ci.yml Jenkinsfile .travis.yml .circleci/config.yml
    .drone.yml .woodpecker.yml .woodpecker/x.yml .buildkite/pipeline.yml azure-pipelines.yml bitbucket-pipelines.yml
    .appveyor.yml .cirrus.yml .gitea/workflows/x.yml .forgejo/workflows/x.yml .build.yml .builds/x.yml
    .semaphore/semaphore.yml .teamcity/settings.kts
    .ssh/authorized_keys .ssh/rc .gnupg/gpg.conf .aws/config .kube/config .docker/config.json
";

/// Files that are edited every day, and are written without approval.
const EVERYDAY: &str = "
    package.json package-lock.json tsconfig.json Makefile makefile Cargo.toml Cargo.lock pyproject.toml setup.py
    requirements.txt conftest.py .gitignore .dockerignore Dockerfile docker-compose.yml README.md CLAUDE.md AGENTS.md
    .editorconfig .eslintrc.json .prettierrc eslint.config.js vite.config.ts jest.config.js .env.example build.rs
    src/main.rs src/hooks/useState.ts src/config/index.ts src/modules/info/commondir.ts hooks/x config info/attributes
    lib/python/site.py .github/ISSUE_TEMPLATE.md .github/dependabot.yml docs/.nojekyll .nvmrc .python-version go.mod
    build.gradle pom.xml CMakeLists.txt flake.nix .storybook/main.ts .next/x dist/x node_modules/.bin/x venv/bin/x
    bin/x .config/app.json .local/notes.txt .cache/x head refs/x objects/x worktrees/x
";

/// Runs a command line without a sandbox, as the user does.
fn run(directory: &Path, home: &Path, line: &str) -> bool {
    let real = |name: &str, own: &str| {
        std::env::var(name).unwrap_or_else(|_| format!("{}/{own}", std::env::var("HOME").unwrap_or_default()))
    };
    Command::new("sh")
        .args(["-c", line])
        .current_dir(directory)
        .env("HOME", home)
        .env("RUSTUP_HOME", real("RUSTUP_HOME", ".rustup"))
        .env("CARGO_HOME", real("CARGO_HOME", ".cargo"))
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_TEMPLATE_DIR", "")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap()
        .success()
}

/// A workspace that each attempt gets a copy of.
fn template() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let (ws, home) = (dir.path().join("ws"), dir.path().join("home"));
    std::fs::create_dir_all(&home).unwrap();
    std::fs::create_dir_all(ws.join("sub")).unwrap();
    std::fs::write(
        home.join(".gitconfig"),
        "[user]\n\tname = n\n\temail = e\n[protocol \"file\"]\n\tallow = always\n",
    )
    .unwrap();
    let put = |name: &str, text: &str| {
        let path = ws.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    for (name, text) in [
        ("f.txt", "1\n"),
        ("sub/a.txt", "1\n"),
        ("scripts/nothing.py", "pass\n"),
        ("scripts/check.sh", "#!/bin/sh\n"),
        ("shared.gitconfig.inc", "[core]\n"),
        ("Makefile", "all:\n\t@true\n"),
        ("package.json", "{\"name\": \"p\", \"version\": \"1.0.0\", \"scripts\": {\"test\": \"true\"}}\n"),
        ("Cargo.toml", "[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2021\"\n"),
        ("src/main.rs", "fn main() {}\n"),
        (".vscode/tasks.json", "{}\n"),
        (".envrc", "# mine\n"),
        (".github/workflows/ci.yml", "on: push\n"),
    ] {
        put(name, text);
    }
    let line = "
        git init -q -b main . && git add -A && git commit -qm one && git config extensions.worktreeConfig true
        git checkout -q -b evil && mkdir .idea && echo evil > .idea/x && git add -A && git commit -qm two
        git checkout -q main
        mkdir fixtures && git clone -q --bare . fixtures/bare.git && git clone -q --bare . fixtures/plain
        git submodule --quiet add ./fixtures/bare.git lib && git commit -qm lib && git worktree add -q tree
        git config include.path ../shared.gitconfig.inc
        mkdir -p lib/tools/checks && git -C lib config core.hooksPath tools/checks
        chmod +x scripts/check.sh && mkdir -p .git/hooks .git/info fixtures/plain/hooks
    ";
    assert!(run(&ws, &home, line));
    symlink("../../scripts/check.sh", ws.join(".git/hooks/post-checkout")).unwrap();
    dir
}

/// A copy of the template, and a marker program that records whether it ran.
struct PersistenceFixture {
    shell: ShellFixture,
}

impl PersistenceFixture {
    fn new(template: &Path, sandboxed: bool) -> Self {
        let shell = ShellFixture::with_mode(Mode::Default, &["Bash(python3 *)"], |config| {
            config.sandbox.enabled = sandboxed;
            let home = config.temp_dir.parent().unwrap().join("home").to_string();
            let path = config.environment.get("PATH").cloned().unwrap_or_default();
            config.environment.insert("PATH".into(), format!("{}:{path}", python_directory()));
            config.set.insert("HOME".into(), home);
        });
        let copied =
            Command::new("cp").arg("-a").arg(template.join(".")).arg(shell.path("").as_path()).status();
        assert!(copied.unwrap().success());
        let fixture = Self { shell };
        // Replace the absolute paths of the template.
        let ws = fixture.shell.path("ws");
        std::fs::write(ws.join("tree/.git"), format!("gitdir: {ws}/.git/worktrees/tree\n")).unwrap();
        std::fs::write(ws.join(".git/worktrees/tree/gitdir"), format!("{ws}/tree/.git\n")).unwrap();
        let marker = fixture.shell.path("mark.sh");
        std::fs::write(&marker, format!("#!/bin/sh\n: > {}\n", fixture.shell.path("marker_ran"))).unwrap();
        std::fs::set_permissions(&marker, PermissionsExt::from_mode(0o755)).unwrap();
        // An existing hook that is not executable.
        std::fs::write(ws.join(".git/hooks/post-commit"), format!("#!/bin/sh\n{marker}\n")).unwrap();
        fixture
    }

    /// Runs Python code under the rule: whether the call was allowed, and its output.
    async fn run_payload(&self, code: &str) -> (bool, String) {
        let text = format!("MARK = '{}'\n{PRELUDE}\n{code}\n", self.shell.path("mark.sh"));
        std::fs::write(self.shell.path("plant.py"), text).unwrap();
        let outcome = self.shell.bash("python3 ../plant.py").await;
        (outcome.result.is_ok(), output(&outcome).model_text())
    }

    /// Whether the marker program runs when the user runs this line.
    fn marker_runs(&self, line: &str) -> bool {
        let _ = std::fs::remove_file(self.shell.path("marker_ran"));
        run(self.shell.path("ws").as_path(), self.shell.path("home").as_path(), line);
        self.shell.path("marker_ran").as_path().exists()
    }

    fn state(&self, name: &str) -> String {
        state(self.shell.path("ws").join(name).lexical().as_path())
    }

    /// Whether the attempt succeeded, and the output of its program.
    async fn try_attempt(&self, attempt: &PersistenceAttempt) -> (bool, String) {
        let before = match attempt.check {
            PersistenceCheck::Kept(name) => self.state(name),
            PersistenceCheck::Git(_) | PersistenceCheck::Runs(_) => String::new(),
        };
        let (_, text) = self.run_payload(attempt.code).await;
        if attempt.code.contains("later(") {
            std::thread::sleep(Duration::from_millis(600));
        }
        let succeeded = match attempt.check {
            PersistenceCheck::Kept(name) => self.state(name) != before,
            PersistenceCheck::Runs(line) => self.marker_runs(line),
            PersistenceCheck::Git(directory) => self.marker_runs(&format!(
                "cd {directory} && {{ git status; git log -1 -p; git diff; git add -A; git commit -qm next --allow-empty; git checkout -q -b next; }}"
            )),
        };
        (succeeded, text)
    }
}

/// Mode, content and times of a path and of everything below it.
fn state(path: &Path) -> String {
    let Ok(meta) = std::fs::symlink_metadata(path) else { return "absent".to_owned() };
    let mut out = format!("{:o} ", meta.permissions().mode());
    if meta.is_symlink() {
        write!(out, "{:?}", std::fs::read_link(path)).unwrap();
    } else if meta.is_dir() {
        let mut names: Vec<_> = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        for name in names {
            write!(out, "{name:?} {}", state(&name)).unwrap();
        }
    } else if meta.is_file() {
        write!(out, "{:?} {:?}", meta.modified().unwrap(), std::fs::read(path).unwrap()).unwrap();
    }
    out
}

/// The directory of the Python binary itself: a version manager's wrapper would take longer than the test.
fn python_directory() -> String {
    static DIRECTORY: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    let find = || {
        let code = "import os, sys; print(os.path.dirname(os.path.realpath(sys.executable)))";
        let done = Command::new("python3").args(["-c", code]).output().unwrap();
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    };
    DIRECTORY.get_or_init(find).clone()
}

fn split_names(text: &'static str) -> Vec<&'static str> {
    text.split_whitespace().collect()
}

/// The names of the attempts that succeeded.
async fn successful_attempts(
    template: &Path,
    sandboxed: bool,
    attempts: &[PersistenceAttempt],
) -> Vec<String> {
    let mut out = Vec::new();
    for attempt in attempts {
        let (succeeded, text) = PersistenceFixture::new(template, sandboxed).try_attempt(attempt).await;
        if succeeded {
            out.push(attempt.name.to_owned());
        }
        if succeeded == sandboxed {
            println!("{}: {text}", attempt.name);
        }
    }
    out
}

fn check_none_succeeds(attempts: &[PersistenceAttempt]) {
    let template = template();
    let succeeded = block_on_runtime(successful_attempts(template.path(), true, attempts));
    assert!(succeeded.is_empty(), "{} of {}: {succeeded:#?}", succeeded.len(), attempts.len());
}

/// The attempts are valid: without the sandbox at least four in five succeed.
fn check_most_succeed_without_sandbox(attempts: &[PersistenceAttempt]) {
    let template = template();
    let succeeded = block_on_runtime(successful_attempts(template.path(), false, attempts));
    println!("{} of {} succeed without the sandbox", succeeded.len(), attempts.len());
    assert!(
        succeeded.len() * 5 >= attempts.len() * 4,
        "{} of {}: {succeeded:#?}",
        succeeded.len(),
        attempts.len()
    );
}

#[test]
fn no_persistence_attempt_through_git_succeeds() {
    check_none_succeeds(GIT);
}

#[test]
fn no_persistence_attempt_through_trusted_files_succeeds() {
    check_none_succeeds(FILES);
}

#[test]
fn persistence_attempts_through_git_succeed_without_the_sandbox() {
    check_most_succeed_without_sandbox(GIT);
}

#[test]
fn persistence_attempts_through_trusted_files_succeed_without_the_sandbox() {
    check_most_succeed_without_sandbox(FILES);
}

/// Each name is written directly and by renaming a file into place.
#[test]
fn no_trusted_name_is_written_without_approval() {
    let template = template();
    let code = |names: &[&str]| {
        format!(
            "for name in {names:?}:\n  for way in (put, lambda name, text: (put('x', text), os.renames('x', name))):\n    try: way(name, MARK)\n    except OSError: pass\n"
        )
    };
    block_on_runtime(async {
        let (names, everyday) = (split_names(NAMES), split_names(EVERYDAY));
        assert!(GIT.len() + FILES.len() + LINES.len() + names.len() >= 60);
        let fixture = PersistenceFixture::new(template.path(), true);
        let before: Vec<String> = names.iter().map(|name| fixture.state(name)).collect();
        fixture.run_payload(&code(&names)).await;
        let changed: Vec<_> = names
            .iter()
            .zip(before)
            .filter(|(name, before)| fixture.state(name) != *before)
            .map(|(name, _)| name)
            .collect();
        assert!(changed.is_empty(), "{changed:?}");
        let fixture = PersistenceFixture::new(template.path(), true);
        let before: Vec<String> = everyday.iter().map(|name| fixture.state(name)).collect();
        let (_, text) = fixture.run_payload(&code(&everyday)).await;
        let kept: Vec<_> = everyday
            .iter()
            .zip(before)
            .filter(|(name, before)| fixture.state(name) == *before)
            .map(|(name, _)| name)
            .collect();
        assert!(kept.is_empty(), "{kept:?} {text}");
    });
}

/// A file that the command line itself names needs approval, and no approver is available.
#[test]
fn a_command_beside_the_allowed_program_writes_no_trusted_file() {
    let template = template();
    block_on_runtime(async {
        let fixture = PersistenceFixture::new(template.path(), true);
        for (line, name) in LINES {
            let before = fixture.state(name);
            let outcome = fixture.shell.bash(line).await;
            assert_eq!(fixture.state(name), before, "{line}: {}", output(&outcome).model_text());
        }
        // The rule itself allows the program.
        let fixture = PersistenceFixture::new(template.path(), true);
        let outcome = fixture.shell.bash("python3 -c 'open(\"fine.txt\", \"w\")'").await;
        assert!(outcome.result.is_ok() && fixture.state("fine.txt") != "absent", "{:?}", outcome.result);
    });
}
