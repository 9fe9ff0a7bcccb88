//! Tables of programs that run other code, and of shell builtins, which trust needs to find the files of a command.

use toolgate_proto::AbsPath;

/// Programs that run code whose files their command line does not name: package runners, task runners, container and
/// remote shells. Commands of these cannot be bound to files.
pub(super) const CODE_RUNNERS: &[&str] = &[
    "npx",
    "npm",
    "pnpm",
    "pnpx",
    "yarn",
    "bunx",
    "pipx",
    "uvx",
    "uv",
    "poetry",
    "pipenv",
    "hatch",
    "tox",
    "nox",
    "make",
    "gmake",
    "just",
    "task",
    "cargo",
    "go",
    "gradle",
    "gradlew",
    "mvn",
    "mvnw",
    "ant",
    "bazel",
    "rake",
    "bundle",
    "composer",
    "docker",
    "podman",
    "nix",
    "nix-shell",
    "pre-commit",
    "dotnet",
    "mise",
    "asdf",
    "direnv",
    "corepack",
    "volta",
    "rustup",
    "xargs",
    "parallel",
    "eval",
    "ssh",
];

/// Programs that run the command in their arguments.
pub(super) const COMMAND_WRAPPERS: &[&str] =
    &["env", "nohup", "nice", "timeout", "time", "stdbuf", "setsid", "sudo", "command", "exec"];

/// Interpreters, and their options that take code as text.
pub(super) const INTERPRETERS: &[(&str, &[&str])] = &[
    ("bash", &["-c"]),
    ("sh", &["-c"]),
    ("dash", &["-c"]),
    ("zsh", &["-c"]),
    ("ksh", &["-c"]),
    ("fish", &["-c"]),
    ("python", &["-c"]),
    ("pypy", &["-c"]),
    ("node", &["-e", "--eval", "-p", "--print"]),
    ("nodejs", &["-e", "--eval", "-p", "--print"]),
    ("ruby", &["-e"]),
    ("perl", &["-e", "-E"]),
    ("php", &["-r"]),
    ("lua", &["-e"]),
    ("deno", &[]),
    ("bun", &["-e", "--eval"]),
    ("tsx", &["-e"]),
    ("ts-node", &["-e"]),
    ("Rscript", &["-e"]),
    ("pwsh", &[]),
    ("java", &[]),
    ("osascript", &["-e"]),
    ("tclsh", &[]),
];

/// Options of interpreters whose value is the next argument, which is then not the script.
pub(super) const OPTIONS_WITH_VALUE: &[&str] =
    &["-W", "-X", "-I", "-r", "--require", "--import", "--loader", "-O", "-cp", "-classpath"];

/// Commands that the shell executes itself, so that no program is looked up.
pub(super) const SHELL_BUILTINS: &[&str] = &[
    "echo",
    "printf",
    "exit",
    "true",
    "false",
    "test",
    "[",
    "[[",
    ":",
    "cd",
    "read",
    "export",
    "set",
    "unset",
    "return",
    "shift",
    "local",
    "declare",
    "wait",
    "trap",
    "umask",
    "pwd",
    "type",
    "command",
    "exec",
    "break",
    "continue",
    "let",
    "((",
    "readonly",
    "typeset",
    "kill",
    "jobs",
    "hash",
    "getopts",
    "mapfile",
    "readarray",
    "shopt",
    "ulimit",
];

/// Builtins whose arguments name variables that they set.
pub(super) const ASSIGNING_BUILTINS: &[&str] = &[
    "export",
    "declare",
    "typeset",
    "readonly",
    "local",
    "read",
    "mapfile",
    "readarray",
    "getopts",
    "printf",
    "let",
    "unset",
];

/// Whether a variable selects the program files or the libraries of every command.
pub(super) fn selects_programs(variable: &str) -> bool {
    variable == "PATH" || variable.starts_with("LD_")
}

/// File extensions of code.
pub(super) const CODE_EXTENSIONS: &[&str] = &[
    "sh", "bash", "zsh", "py", "js", "mjs", "cjs", "ts", "mts", "cts", "jsx", "tsx", "rb", "pl", "pm", "php",
    "lua", "r", "ps1", "awk", "sed", "jq", "tcl",
];

/// Environment variables that choose where code is loaded from.
pub(super) const LOADER_VARIABLES: &[&str] = &[
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONSTARTUP",
    "NODE_PATH",
    "NODE_OPTIONS",
    "PERL5LIB",
    "PERL5OPT",
    "RUBYLIB",
    "RUBYOPT",
    "BASH_ENV",
    "ENV",
    "CLASSPATH",
    "GIT_DIR",
    "JAVA_TOOL_OPTIONS",
    "LUA_PATH",
    "PATH",
];

/// Whether a file contains code, by its extension or a `#!` line.
pub(super) fn is_code(path: &AbsPath, text: &str) -> bool {
    let ending = path.as_path().extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    ending.is_some_and(|ending| CODE_EXTENSIONS.contains(&ending.as_str())) || text.starts_with("#!")
}

/// The entry of [`INTERPRETERS`] for a program name, without a version such as `python3.12`.
pub(super) fn find_interpreter(name: &str) -> Option<(&'static str, &'static [&'static str])> {
    let plain = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    INTERPRETERS.iter().find(|(known, _)| *known == name || *known == plain).copied()
}

/// The variable assignments at the start of a simple command.
pub(super) fn parse_assignments(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.split_whitespace().map_while(|word| {
        let (name, value) = word.split_once('=')?;
        is_variable_name(name).then_some((name, value))
    })
}

/// Whether a text can be the name of a shell variable.
pub(super) fn is_variable_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
