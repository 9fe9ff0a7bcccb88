//! Programs that start others in ways that no table of options follows: `npx`, `uv run`, `tmux new`, `docker exec`.
//!
//! What such a line starts is guessed at, generously, and only shown to deny and ask rules: a guess never allows.
//! The alternative, to parse each program's options in full, would be wrong with the next release of each of them.

use super::expand::ShellArg;
use super::grammars;

/// What a runner may start.
#[derive(Debug, Default)]
pub(super) struct GuessedCommands {
    /// Words that may be a command.
    pub(super) words: Vec<Vec<ShellArg>>,
    /// Texts that may be handed to a shell.
    pub(super) texts: Vec<String>,
    /// An option names a program, so that a wildcard rule for this one does not speak of it.
    pub(super) by_option: bool,
}

/// How many places of one command are looked at.
const MAX_GUESSES: usize = 16;

/// Runners, and how many words (subcommands, images, hosts) may stand before the command.
const RUNNERS: &[(&[&str], usize)] = &[
    (&["uv"], 2),
    (
        &[
            "npx",
            "bunx",
            "pnpx",
            "uvx",
            "cross-env",
            "env-cmd",
            "dotenv",
            "dotenvx",
            "hyperfine",
            "concurrently",
            "nodemon",
            "watchexec",
            "reflex",
            "fswatch",
            "chronic",
            "ifne",
            "sem",
            "rush",
            "unbuffer",
            "expect",
            "script",
            "rr",
            "valgrind",
            "ltrace",
            "strace",
            "gdb",
            "lldb",
            "heaptrack",
            "kernprof",
            "scalene",
            "nix-shell",
            "faketime",
            "wine",
            "wine64",
            "box64",
            "qemu-x86_64",
            "qemu-aarch64",
            "tini",
            "dumb-init",
            "catatonit",
            "nsjail",
            "firejail",
            "bwrap",
            "proot",
            "fakechroot",
            "sshpass",
            "osascript",
            "wsl",
            "powershell",
            "pwsh",
            "cmd.exe",
            "dtach",
            "abduco",
            "daemonize",
            "start-stop-daemon",
            "runcon",
            "sg",
            "newgrp",
            "chpst",
            "setuidgid",
            "cgexec",
            "numactl",
            "systemd-run",
            "watch",
            "entr",
            "parallel",
            "su",
            "runuser",
            "setpriv",
            "unshare",
            "nsenter",
            "bpftrace",
            "sysdig",
            "ftrace",
            "uftrace",
            "tox",
            "nox",
        ],
        0,
    ),
    (
        &[
            "poetry",
            "pipenv",
            "pdm",
            "hatch",
            "rye",
            "pipx",
            "pixi",
            "npm",
            "pnpm",
            "yarn",
            "bun",
            "deno",
            "bundle",
            "gem",
            "perf",
            "mise",
            "asdf",
            "rbenv",
            "pyenv",
            "nodenv",
            "goenv",
            "jenv",
            "volta",
            "rustup",
            "fnm",
            "tmux",
            "screen",
            "byobu",
            "zellij",
            "doppler",
            "op",
            "infisical",
            "coverage",
            "py-spy",
            "heroku",
            "ssh",
            "autossh",
            "mosh",
            "vagrant",
            "toolbox",
            "distrobox",
            "flatpak",
            "snap",
            "guix",
            "opam",
            "rvm",
            "cargo",
            "make",
            "chroot",
            "flock",
            "arch-chroot",
            "pdsh",
            "ansible",
        ],
        1,
    ),
    (
        &[
            "docker",
            "podman",
            "nerdctl",
            "kubectl",
            "oc",
            "crictl",
            "nomad",
            "lxc",
            "lxc-attach",
            "incus",
            "machinectl",
            "multipass",
            "conda",
            "mamba",
            "micromamba",
            "nix",
            "direnv",
            "nvm",
            "aws-vault",
            "chamber",
            "sops",
            "docker-compose",
            "fly",
            "flyctl",
            "gcloud",
            "rustup",
        ],
        3,
    ),
];

/// Words that name a script of the project after which nothing is a command (`npm run curl`).
fn names_a_script(name: &str, word: &str) -> bool {
    match name {
        "npm" | "pnpm" | "yarn" | "bun" => {
            !matches!(word, "exec" | "x" | "dlx" | "node") && !word.starts_with('-')
        }
        "cargo" => !matches!(word, "watch" | "xtask" | "flamegraph" | "llvm-cov") && !word.starts_with('-'),
        "rustup" => word != "run" && !word.starts_with('-'),
        "gem" => word != "exec",
        "bundle" => word != "exec" && !word.starts_with('-'),
        "deno" => true,
        "make" => true,
        _ => false,
    }
}

/// Options of programs whose value is a command; a long one counts in every abbreviation of at least four letters.
const RUN_OPTIONS: &[(&[&str], &[&str])] = &[
    (&["rg"], &["--pre", "--hostname-bin"]),
    (&["sort", "gsort"], &["--compress-program"]),
    (
        &["tar", "gtar", "bsdtar"],
        &[
            "--to-command",
            "--checkpoint-action",
            "--use-compress-program",
            "--info-script",
            "--new-volume-script",
            "--rsh-command",
            "--rmt-command",
            "-I",
            "-F",
        ],
    ),
    (&["zip"], &["-TT", "--unzip-command"]),
    (&["rsync"], &["-e", "--rsh", "--rsync-path"]),
    (&["scp", "sftp"], &["-S", "-o"]),
    (&["ssh", "autossh"], &["-o"]),
    (&["man"], &["-P", "--pager", "-H", "--html", "--preprocessor"]),
    (&["fd", "fdfind"], &["-x", "-X", "--exec", "--exec-batch"]),
    (&["wget"], &["--use-askpass"]),
    (
        &["gdb"],
        &["-ex", "-iex", "--eval-command", "--init-eval-command", "--init-command", "-x", "--command"],
    ),
    (
        &["gcc", "g++", "cc", "c++", "clang", "clang++"],
        &["-wrapper", "-fplugin", "-fpass-plugin", "-specs", "-B"],
    ),
    (&["go"], &["-toolexec", "-vettool", "-exec", "--toolexec", "--vettool", "--exec"]),
    (&["cargo"], &["--config", "-Z"]),
    (&["npm", "pnpm"], &["--script-shell", "--shell", "--node-options", "-c", "--call"]),
    (&["npx", "bunx"], &["-c", "--call"]),
    (&["make", "gmake"], &["--eval", "-E"]),
    (&["docker", "podman"], &["--entrypoint", "--health-cmd"]),
    (&["bat", "batcat", "ag", "delta"], &["--pager"]),
    (&["vim", "vi", "nvim", "view", "ex", "gvim", "vimdiff"], &["-c", "--cmd", "-S"]),
    (&["emacs", "emacsclient"], &["--eval", "-eval", "-f", "--funcall", "-l", "--load"]),
    (&["less", "more"], &["+"]),
    (&["nodemon", "watchexec"], &["--exec", "-x"]),
    (&["screen"], &["-X"]),
    (&["git"], &["--upload-pack", "--receive-pack", "--exec-path", "--upload-archive"]),
    (&["perf"], &["--objdump", "--addr2line"]),
    (&["split"], &["--filter"]),
    (&["ip"], &["exec"]),
    (&["crontab"], &["-e"]),
    (&["curl"], &["--engine"]),
    (&["pytest", "py.test"], &["-p", "-c", "--pyargs"]),
    (&["nmap"], &["--script"]),
    (&["openssl"], &["-engine", "-provider"]),
    (&["php"], &["-d"]),
    (&["ansible"], &["-a", "--args"]),
];

/// Interpreters, and the options whose value is code.
const INTERPRETERS: &[(&[&str], &[&str])] = &[
    (&["python", "python2", "python3", "pypy", "pypy3", "ipython"], &["-c"]),
    (&["perl"], &["-e", "-E"]),
    (&["ruby", "lua", "luajit", "julia", "elixir", "Rscript"], &["-e"]),
    (&["node", "nodejs", "bun", "tsx", "ts-node"], &["-e", "--eval", "-p", "--print"]),
    (&["php"], &["-r"]),
    (&["deno"], &["eval"]),
    (&["osascript", "expect", "tclsh"], &["-e", "-c"]),
    (&["sqlite3", "psql", "mysql", "mariadb"], &["-c", "-e", "--command", "--execute", "-cmd"]),
    (&["vim", "vi", "nvim", "ex"], &["-c", "--cmd"]),
    (&["emacs"], &["--eval"]),
];

/// Whether a program is known to start others.
pub(super) fn is_runner(name: &str) -> bool {
    RUNNERS.iter().any(|(names, _)| names.contains(&name))
        || RUN_OPTIONS.iter().any(|(names, _)| names.contains(&name))
}

/// What a use of a program may start; `None` if it is not known to start anything.
pub(super) fn guess_commands(name: &str, args: &[ShellArg]) -> Option<GuessedCommands> {
    let mut guesses = GuessedCommands::default();
    let runner = RUNNERS.iter().find(|(names, _)| names.contains(&name)).map(|(_, before)| *before);
    if let Some(before) = runner {
        guess_runner_commands(name, before, args, &mut guesses);
    }
    for options in RUN_OPTIONS.iter().filter(|(names, _)| names.contains(&name)).map(|(_, options)| *options)
    {
        guess_option_commands(options, args, &mut guesses);
    }
    if matches!(name, "make" | "gmake") {
        for arg in args {
            if let Some((variable, value)) = arg.text.split_once('=')
                && matches!(variable, "SHELL" | ".SHELLFLAGS" | "MAKEFLAGS" | "MAKE" | "CC" | "CXX")
            {
                guesses.texts.push(value.to_owned());
                guesses.by_option |= variable != "CC" && variable != "CXX";
            }
        }
    }
    for options in INTERPRETERS.iter().filter(|(names, _)| names.contains(&name)).map(|(_, options)| *options)
    {
        for code in interpreter_code(options, args) {
            guesses.texts.extend(extract_strings(&code));
        }
    }
    if matches!(name, "awk" | "gawk" | "mawk" | "nawk") {
        guesses.texts.extend(args.iter().flat_map(|arg| extract_strings(&arg.text)));
    }
    if name == "git" {
        guess_git_commands(args, &mut guesses);
    }
    let found = !guesses.words.is_empty() || !guesses.texts.is_empty() || guesses.by_option;
    found.then_some(guesses)
}

/// Every place at which the command of a runner may begin.
fn guess_runner_commands(name: &str, before: usize, args: &[ShellArg], guesses: &mut GuessedCommands) {
    let mut plain = 0;
    let mut after_option = false;
    for (at, arg) in args.iter().enumerate().take(MAX_GUESSES * 2) {
        // A text of several words is for a shell.
        if arg.text.contains([' ', '\t', '\n', ';', '|', '&']) && arg.live.is_none() {
            let text = arg.text.trim_start_matches(|first: char| first == '-' || first.is_ascii_alphabetic());
            guesses.texts.push(arg.text.clone());
            if let Some((_, value)) = text.split_once('=') {
                guesses.texts.push(value.to_owned());
            }
        }
        if arg.text == "--" {
            guesses.words.push(args.get(at + 1..).unwrap_or_default().to_vec());
            return;
        }
        if arg.text.starts_with('-') {
            after_option = true;
            continue;
        }
        if plain == 0 && names_a_script(name, &arg.text) {
            return;
        }
        if plain > before || guesses.words.len() >= MAX_GUESSES {
            return;
        }
        guesses.words.push(args.get(at..).unwrap_or_default().to_vec());
        // The word after an option may be its value, or the command.
        plain += usize::from(!after_option);
        after_option = false;
    }
}

fn guess_option_commands(options: &[&str], args: &[ShellArg], guesses: &mut GuessedCommands) {
    for (at, arg) in args.iter().enumerate() {
        let text = arg.text.as_str();
        for option in options {
            let (name, attached) = match text.split_once('=') {
                Some((name, value)) if option.len() > 2 && option.starts_with('-') => (name, Some(value)),
                _ => (text, None),
            };
            let is_long = option.starts_with("--") || option.len() > 2 && option.starts_with('-');
            let matched = name == *option || is_long && name.len() >= 4 && option.starts_with(name);
            if matched && guesses.words.len() < MAX_GUESSES {
                guesses.by_option = true;
                match attached {
                    Some(value) => guesses.texts.push(without_key(value).to_owned()),
                    None => {
                        let rest = args.get(at + 1..).unwrap_or_default();
                        guesses.texts.extend(rest.first().map(|value| without_key(&value.text).to_owned()));
                        guesses.words.push(rest.to_vec());
                    }
                }
            } else if !is_long && !text.starts_with("--") {
                // Attached to its letter: `-Igzip`, `-oProxyCommand=x`, `+!x`.
                if let Some(value) = text.strip_prefix(option).filter(|value| !value.is_empty()) {
                    guesses.by_option = true;
                    guesses.texts.push(without_key(value).to_owned());
                }
            }
        }
    }
}

/// `exec=touch x`, `ProxyCommand=x`, `:!x`: the command without what stands before it.
fn without_key(value: &str) -> &str {
    let value = value.trim_start_matches([':', '!', ' ']);
    match value.split_once('=') {
        Some((key, command)) if key.chars().all(char::is_alphanumeric) => command,
        _ => value,
    }
}

fn interpreter_code(options: &[&str], args: &[ShellArg]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, arg) in args.iter().enumerate() {
        for option in options {
            if arg.text == *option {
                found.extend(args.get(at + 1).map(|value| value.text.clone()));
            } else if let Some(value) = arg.text.strip_prefix(option) {
                found.push(value.to_owned());
            } else if !option.starts_with("--")
                && !arg.text.starts_with("--")
                && arg.text.starts_with('-')
                && option.chars().nth(1).is_some_and(|letter| arg.text.ends_with(letter))
            {
                // The last of a cluster: `perl -ne`.
                found.extend(args.get(at + 1).map(|value| value.text.clone()));
            }
        }
    }
    found
}

/// The strings in a piece of code, each by itself and all of them as one command; `!` and `\!` begin one too.
fn extract_strings(code: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut rest = code;
    while let Some(at) = rest.find(['\'', '"', '`']) {
        let Some(quote) = rest.get(at..).and_then(|rest| rest.chars().next()) else { break };
        let Some(after) = rest.get(at + 1..) else { break };
        let Some(end) = after.find(quote) else { break };
        found.extend(after.get(..end).map(str::to_owned));
        rest = after.get(end + 1..).unwrap_or_default();
        if found.len() >= MAX_GUESSES {
            break;
        }
    }
    let joined: Vec<String> =
        (0..found.len().min(4)).map(|from| found.get(from..).unwrap_or_default().join(" ")).collect();
    found.extend(joined);
    if let Some((_, command)) = code.split_once(['!', '`']) {
        found.push(command.trim_end_matches('`').to_owned());
    }
    if let Some((_, command)) = code.split_once(".shell ").or_else(|| code.split_once(".system ")) {
        found.push(command.to_owned());
    }
    // Perl and Ruby run `qx{…}` and `%x(…)`.
    for opening in ["qx", "%x"] {
        if let Some((_, command)) = code.split_once(opening) {
            found.push(command.trim_matches(|sign: char| "{}()[]<>/|!;".contains(sign)).to_owned());
        }
    }
    found
}

/// Subcommands of git that run a text or a program.
fn guess_git_commands(args: &[ShellArg], guesses: &mut GuessedCommands) {
    let position = |word: &str| args.iter().position(|arg| arg.text == word);
    let after = |at: usize| args.get(at + 1..).unwrap_or_default();
    if position("rebase").is_some() {
        for (at, arg) in args.iter().enumerate() {
            let text = arg.text.as_str();
            if text == "-x" || text == "--exec" || text.len() > 3 && "--exec".starts_with(text) {
                guesses.texts.extend(after(at).first().map(|value| value.text.clone()));
                guesses.by_option = true;
            } else if let Some(value) = text.strip_prefix("-x").or_else(|| text.strip_prefix("--exec=")) {
                guesses.texts.push(value.to_owned());
                guesses.by_option = true;
            }
        }
    }
    if position("submodule").is_some()
        && let Some(at) = position("foreach")
    {
        let words: Vec<ShellArg> =
            after(at).iter().skip_while(|arg| arg.text.starts_with('-')).cloned().collect();
        guesses.texts.push(words.iter().map(|arg| arg.text.as_str()).collect::<Vec<_>>().join(" "));
        guesses.words.push(words);
        guesses.by_option = true;
    }
    if position("bisect").is_some()
        && let Some(at) = position("run")
    {
        guesses.words.push(after(at).to_vec());
        guesses.by_option = true;
    }
    if let Some(at) = position("filter-branch") {
        guesses.texts.extend(after(at).iter().map(|arg| arg.text.clone()));
        guesses.by_option = true;
    }
    let helper = |arg: &ShellArg| {
        arg.text.starts_with("credential") || arg.text.starts_with("remote-") || arg.text.contains("ext::")
    };
    guesses.by_option |= args.iter().any(helper);
    for arg in args {
        // `-c alias.x=!cmd`, `ext::cmd`.
        if let Some((_, command)) = arg.text.split_once("=!").or_else(|| arg.text.split_once("ext::")) {
            guesses.texts.push(command.to_owned());
        }
    }
}

/// Whether a program is an interpreter that reads code from its input if it is given no file.
pub(super) fn reads_code(name: &str, args: &[ShellArg]) -> bool {
    let interpreter = INTERPRETERS.iter().take(6).any(|(names, _)| names.contains(&name))
        || matches!(name, "at" | "batch" | "sqlite3" | "psql" | "mysql" | "gdb" | "ed" | "ex" | "parallel");
    matches!(name, "at" | "batch")
        || interpreter
            && args.iter().all(|arg| arg.text.starts_with('-') || arg.text == "/dev/stdin")
            && grammars::judge(name, args).is_none()
}
