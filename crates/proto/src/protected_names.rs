//! Protected names: files and directories that other programs trust or run without asking.
//!
//! This is the one table. Policy asks before a protected name is written, the guard of a running command refuses it,
//! and the sandbox makes what can be named in advance read-only. Names are lower case, as policy folds paths before it
//! compares them. Names of files with secrets are in [`crate::secret_names`].

/// Names that are protected wherever they are, in groups by what trusts them.
const PROTECTED_NAME_GROUPS: &[&[&str]] = &[
    AGENT_NAMES,
    VERSION_CONTROL_NAMES,
    SHELL_NAMES,
    EDITOR_NAMES,
    TOOL_NAMES,
    KEY_DIRECTORY_NAMES,
    CI_NAMES,
];

/// Every file and directory name that is protected wherever it is.
pub fn protected_names() -> impl Iterator<Item = &'static str> {
    PROTECTED_NAME_GROUPS.iter().flat_map(|group| group.iter().copied())
}

/// Settings, instructions and servers of coding agents, toolgate's own first: they decide what an agent runs and what it is
/// allowed to do.
const AGENT_NAMES: &[&str] = &[
    ".toolgate",
    ".claude",
    ".claude.json",
    ".mcp.json",
    ".claude-plugin",
    ".lsp.json",
    ".cursor",
    ".cursorrules",
    ".gemini",
    ".codex",
    ".continue",
    ".windsurf",
    ".aider.conf.yml",
    ".goosehints",
    ".roo",
    ".cline",
    ".clinerules",
    ".windsurfrules",
    ".opencode",
    "opencode.json",
    "opencode.jsonc",
    ".kiro",
    ".qwen",
    ".amp",
    ".agents",
    ".junie",
    ".goose",
    ".trae",
    ".augment",
    ".factory",
    ".crush",
    ".crush.json",
    "crush.json",
];

/// Version control: repositories name hooks, filters, pagers and remote helpers, which their tools run.
const VERSION_CONTROL_NAMES: &[&str] = &[
    ".git",
    ".hg",
    ".svn",
    ".jj",
    ".gitconfig",
    ".gitmodules",
    ".gitattributes",
    ".hgrc",
    ".bzr",
    ".sl",
    "git~1",
    "_darcs",
    ".pijul",
    ".fossil-settings",
    ".githooks",
    ".git-hooks",
    ".arcconfig",
];

/// Start-up files of shells, login sessions and terminals, and directories whose programs those put on `PATH`.
const SHELL_NAMES: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".mkshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".logout",
    ".inputrc",
    ".envrc",
    ".xprofile",
    ".xinitrc",
    ".xsessionrc",
    ".pam_environment",
    ".autoenv",
    ".autoenv.zsh",
    ".tmux.conf",
    ".screenrc",
    ".hushlogin",
    ".xsession",
    ".xsessions",
    ".shadowenv.d",
    ".oh-my-zsh",
    ".zsh",
    ".zinit",
    ".antigen",
    ".zplug",
    ".nvm",
    ".rvm",
    ".rbenv",
    ".pyenv",
    ".asdf",
    ".sdkman",
    ".volta",
    ".rustup",
    ".forward",
    ".procmailrc",
    ".rhosts",
    ".shosts",
    ".selected_editor",
    ".lessfilter",
    ".lesskey",
    ".wezterm.lua",
    ".hammerspoon",
];

/// Editors and debuggers: their project files define tasks, plugins and commands that run when a directory is opened.
const EDITOR_NAMES: &[&str] = &[
    ".vscode",
    ".idea",
    ".devcontainer",
    ".devcontainer.json",
    ".vim",
    ".vimrc",
    ".nvimrc",
    ".exrc",
    ".emacs",
    ".emacs.d",
    ".dir-locals.el",
    ".gdbinit",
    ".lldbinit",
    ".fleet",
    ".zed",
    ".helix",
    ".kakrc",
    ".kak",
    ".lvimrc",
    ".nvim.lua",
    ".vimspector.json",
    ".nova",
    ".theia",
    ".projectile",
    ".pdbrc",
    ".rdbgrc",
    ".radare2rc",
    ".gdbearlyinit",
    ".nvim",
    ".local.vimrc",
    ".neoconf.json",
    ".emacs.desktop",
    ".dir-locals-2.el",
    ".vs",
    ".bsp",
    ".externaltoolbuilders",
    ".gitpod.yml",
    ".idx",
    ".replit",
];

/// Build tools, package managers, interpreters and clients that run or load what their configuration names.
const TOOL_NAMES: &[&str] = &[
    ".husky",
    ".cargo",
    ".yarn",
    ".mvn",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pre-commit-config.yaml",
    ".pre-commit-config.yml",
    ".pypirc",
    ".netrc",
    ".curlrc",
    ".wgetrc",
    ".ripgreprc",
    ".pythonrc",
    ".irbrc",
    ".pryrc",
    ".rspec",
    ".gemrc",
    ".bundle",
    ".direnvrc",
    ".direnv",
    ".tool-versions",
    ".rtx.toml",
    ".asdfrc",
    "rust-toolchain",
    "rust-toolchain.toml",
    ".pnp.cjs",
    ".pnp.loader.mjs",
    "bunfig.toml",
    ".bazelrc",
    ".bazeliskrc",
    ".buckconfig",
    ".sbtopts",
    ".jvmopts",
    ".sdkmanrc",
    ".ghci",
    ".ocamlinit",
    ".iex.exs",
    ".rprofile",
    ".renviron",
    ".octaverc",
    ".juliarc.jl",
    ".psqlrc",
    ".sqliterc",
    ".my.cnf",
    ".mailcap",
    ".muttrc",
    ".condarc",
    ".ipython",
    ".jupyter",
    ".terraformrc",
    ".overcommit.yml",
    "captainhook.json",
    "grumphp.yml",
    "prek.toml",
    "gnumakefile",
    "bsdmakefile",
    "binding.gyp",
    "pnpmfile.js",
    "ansible.cfg",
    ".ackrc",
    ".tigrc",
    ".proverc",
    ".replyrc",
    ".erlang",
    ".rdata",
    ".sbclrc",
    ".swiplrc",
    ".guile",
    ".antrc",
    ".bazelversion",
    ".buckconfig.local",
    ".git-credentials",
];

/// Keys and lists of trusted keys: one added line opens a way in.
const KEY_DIRECTORY_NAMES: &[&str] = &[".ssh", ".gnupg"];

/// Continuous integration: what they name runs on another machine, often with secrets.
const CI_NAMES: &[&str] = &[
    ".gitlab-ci.yml",
    ".gitlab-ci.yaml",
    "jenkinsfile",
    ".travis.yml",
    ".circleci",
    ".drone.yml",
    ".woodpecker.yml",
    ".woodpecker",
    ".buildkite",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    ".appveyor.yml",
    "appveyor.yml",
    ".cirrus.yml",
    ".cirrus.star",
    ".gitlab-ci",
    "azure-pipelines.yaml",
    ".azure-pipelines",
    ".build.yml",
    ".builds",
    ".semaphore",
    ".teamcity",
    ".tekton",
    ".woodpecker.yaml",
    "cloudbuild.yaml",
    "buildspec.yml",
    "codemagic.yaml",
    "circle.yml",
];

/// Protected names with any extension or none: the part of a name before its first dot, a leading dot not counted.
pub const PROTECTED_STEMS: &[&str] = &[
    "sitecustomize",
    "usercustomize",
    "mise",
    ".mise",
    "lefthook",
    ".lefthook",
    "lefthook-local",
    ".lefthook-local",
    "simple-git-hooks",
    ".simple-git-hooks",
    "lint-staged",
    ".lintstagedrc",
    ".huskyrc",
    ".pnpmfile",
];

/// Endings of protected names.
pub const PROTECTED_SUFFIXES: &[&str] = &[".code-workspace"];

/// Protected paths of more than one name, at any depth.
pub const PROTECTED_PATH_SUFFIXES: &[&[&str]] = &[
    &[".github", "workflows"],
    &[".github", "actions"],
    &[".config", "toolgate"],
    &[".config", "fish"],
    &[".config", "git"],
    &[".config", "autostart"],
    &[".config", "systemd"],
    &[".config", "nvim"],
    &[".config", "environment.d"],
    &[".local", "state", "toolgate"],
    &[".local", "share", "toolgate"],
    &["library", "launchagents"],
    &["library", "application support", "toolgate"],
    &[".docker", "config.json"],
    &[".kube", "config"],
    &[".aws"],
    &[".config", "helix"],
    &[".config", "direnv"],
    &[".config", "gh"],
    &[".config", "pip"],
    &[".config", "mise"],
    &[".gradle", "init.gradle"],
    &[".gradle", "init.d"],
    &[".m2", "settings.xml"],
    &[".local", "bin"],
    &[".config", "zsh"],
    &[".config", "bash"],
    &[".config", "nushell"],
    &[".config", "elvish"],
    &[".config", "powershell"],
    &[".config", "tmux"],
    &[".config", "vim"],
    &[".config", "emacs"],
    &[".config", "doom"],
    &[".config", "kitty"],
    &[".config", "alacritty"],
    &[".config", "wezterm"],
    &[".config", "ghostty"],
    &[".config", "i3"],
    &[".config", "sway"],
    &[".config", "hypr"],
    &[".config", "openbox"],
    &[".config", "code"],
    &[".config", "cursor"],
    &[".config", "zed"],
    &[".config", "starship.toml"],
    &[".config", "mise.toml"],
    &[".config", "plasma-workspace"],
    &[".config", "autostart-scripts"],
    &[".local", "lib"],
    &[".local", "share", "applications"],
    &[".local", "share", "dbus-1"],
    &[".julia", "config"],
    &[".gitea", "workflows"],
    &[".forgejo", "workflows"],
    &["tools", "bazel"],
    &["gradle", "wrapper", "gradle-wrapper.properties"],
    &["gradle", "wrapper", "gradle-wrapper.jar"],
];

/// Directories of the operating system. They are protected unless the workspace itself is inside one.
pub const SYSTEM_DIRECTORIES: &[&str] = &[
    "/etc",
    "/bin",
    "/sbin",
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/boot",
    "/sys",
    "/proc",
    "/dev",
    "/var/spool/cron",
    "/var/run",
    "/run",
    "/system",
    "/library",
    "/windows",
    "/program files",
    "/opt/homebrew",
    "/private/etc",
];

/// Patterns of files whose change has effects elsewhere: a write asks, with a warning.
pub const SENSITIVE_WRITE_PATTERNS: &[&str] =
    &["**/db/seeds/**", ".github/workflows/*.yml", ".gitlab-ci.yml", "jenkinsfile"];

/// Paths below every writable root that the sandbox makes read-only by path. They also hold where no seccomp notification
/// handler can ask policy about names, so the list has what is dangerous in any project and known in advance.
pub const SANDBOX_PROTECTED_PATHS: &[&str] = &[
    ".git/hooks",
    ".git/config",
    ".toolgate",
    ".claude",
    ".mcp.json",
    ".vscode",
    ".idea",
    ".cursor",
    ".gemini",
    ".codex",
    ".husky",
    ".cargo",
    ".devcontainer",
    ".envrc",
    ".npmrc",
    ".github/workflows",
    ".gitlab-ci.yml",
    ".pre-commit-config.yaml",
];

/// Directories of a project that have settings of toolgate, its own first.
pub const SETTINGS_DIRECTORIES: [&str; 2] = [".toolgate", ".claude"];

/// Entries of a `.git` directory that git itself writes when it commits, merges or fetches: the exceptions to the
/// protection of `.git` for a git command that was allowed. None of them names a program; `config`, `hooks`, `info`,
/// `commondir`, `modules` and `worktrees` do, or lead to what does.
pub const GIT_DATA_NAMES: &[&str] = &[
    "objects",
    "refs",
    "logs",
    "index",
    "head",
    "orig_head",
    "fetch_head",
    "merge_head",
    "merge_msg",
    "merge_mode",
    "merge_rr",
    "merge_autostash",
    "auto_merge",
    "cherry_pick_head",
    "revert_head",
    "rebase_head",
    "squash_msg",
    "commit_editmsg",
    "tag_editmsg",
    "notes_editmsg",
    "packed-refs",
    "shallow",
    "rr-cache",
    "sequencer",
    "rebase-merge",
    "rebase-apply",
    "gc.log",
    "gc.pid",
    "bisect_log",
    "bisect_start",
    "bisect_expected_rev",
    "bisect_terms",
    "bisect_names",
    "bisect_ancestors_ok",
    "lost-found",
    "lfs",
];

/// Beginnings of such entries that end in a number or a random text: copies of the index, and notes of a bisection.
pub const GIT_DATA_PREFIXES: &[&str] = &["bisect_", "index.", "sharedindex.", "next-index-"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_folded_names_and_none_twice() {
        let mut names: Vec<&str> = protected_names().collect();
        names.extend(PROTECTED_STEMS.iter().chain(GIT_DATA_NAMES));
        names.extend(PROTECTED_PATH_SUFFIXES.iter().flat_map(|path| path.iter()));
        assert!(names.iter().all(|name| *name == name.to_lowercase() && !name.contains('/')));
        let mut names: Vec<&str> = protected_names().collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    /// What the sandbox makes read-only is protected by the rules for files as well.
    #[test]
    fn the_sandbox_protects_nothing_that_policy_does_not() {
        for path in SANDBOX_PROTECTED_PATHS {
            let names: Vec<&str> = path.split('/').collect();
            let by_name = protected_names().any(|name| names.contains(&name));
            let by_path = PROTECTED_PATH_SUFFIXES.iter().any(|suffix| names.ends_with(suffix));
            assert!(by_name || by_path, "{path}");
        }
    }
}
