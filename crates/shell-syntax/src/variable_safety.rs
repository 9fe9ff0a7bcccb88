//! Variables: which may be set before a granted command without changing what it is.

use super::analysis::ShellExpansionKind;
use super::expand::ShellArg;
use std::collections::HashSet;

/// Variables that change how output looks or what a test run reports, and nothing that runs.
const HARMLESS_VARIABLES: &[&str] = &[
    "LANG",
    "LANGUAGE",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "TERM",
    "COLUMNS",
    "LINES",
    "CI",
    "DEBUG",
    "VERBOSE",
    "NODE_ENV",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "CARGO_TERM_COLOR",
    "CARGO_INCREMENTAL",
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONIOENCODING",
    "PYTHONUTF8",
    "PYTHONHASHSEED",
    "PY_COLORS",
    "GOOS",
    "GOARCH",
    "CGO_ENABLED",
    "GO111MODULE",
    "RAILS_ENV",
    "RACK_ENV",
    "MIX_ENV",
    "APP_ENV",
    "TZ",
    "SOURCE_DATE_EPOCH",
    "UV_NO_PROGRESS",
    "NPM_CONFIG_LOGLEVEL",
    "LOG_LEVEL",
    "BLOCK_SIZE",
];

/// Variables that hold no secret, so that printing them tells nothing that a prompt should guard.
const PRINTABLE_VARIABLES: &[&str] = &[
    "HOME",
    "PWD",
    "OLDPWD",
    "USER",
    "LOGNAME",
    "SHELL",
    "PATH",
    "LANG",
    "LC_ALL",
    "TERM",
    "TZ",
    "HOSTNAME",
    "HOSTTYPE",
    "OSTYPE",
    "MACHTYPE",
    "UID",
    "EUID",
    "RANDOM",
    "SECONDS",
    "LINENO",
    "BASH_VERSION",
    "BASHPID",
    "PPID",
    "SHLVL",
    "COLUMNS",
    "LINES",
    "EDITOR",
    "PAGER",
    "TMPDIR",
    "NODE_ENV",
    "VIRTUAL_ENV",
    "CONDA_DEFAULT_ENV",
    "GOPATH",
    "GOROOT",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "JAVA_HOME",
    "NVM_DIR",
    "?",
    "#",
    "$",
    "!",
    "0",
    "-",
    "PIPESTATUS",
    "EPOCHSECONDS",
    "DISPLAY",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_CACHE_HOME",
];

/// Whether a variable may be set before a command that a rule allows.
pub(super) fn is_harmless(name: &str, value: &ShellArg) -> bool {
    let known = HARMLESS_VARIABLES.contains(&name) || (name.starts_with("LC_") && name.len() > 3);
    // Locales and time zones are also read as paths.
    let plain = value.known().is_some_and(|text| {
        !text.contains("..")
            && !text.starts_with(['/', ':', '.'])
            && text
                .chars()
                .all(|character| character.is_ascii_alphanumeric() || "_.,:=+/-@* ".contains(character))
    });
    known && plain && (name == "TZ" || !value.text.contains('/'))
}

/// Whether a variable that only this line uses may be set: in lower case, so that no program looks at it,
/// and to a text that stays text wherever the shell might evaluate it.
pub(super) fn is_local(name: &str, value: &ShellArg) -> bool {
    let lower = name
        .chars()
        .all(|character| character == '_' || character.is_ascii_lowercase() || character.is_ascii_digit());
    let steers = name.ends_with("_proxy")
        || name.starts_with("npm_")
        || name.starts_with("bash")
        || name == "_"
        || name == "histchars"
        || name == "auto_resume";
    lower && !steers && is_inert(value)
}

/// What stands in the names of variables that steer shells, loaders, compilers, interpreters and their tools.
const STEERING_NAME_PARTS: &[&str] = &[
    "ALIAS",
    "ANDROID",
    "ANSIBLE",
    "ARG",
    "ASKPASS",
    "AWK",
    "AWS",
    "AZURE",
    "BASH",
    "BIN",
    "BROWSER",
    "BUNDLE",
    "CARGO",
    "CHILD",
    "CLANG",
    "CMAKE",
    "CMD",
    "COMMAND",
    "COMP",
    "CONF",
    "COPROC",
    "CPP",
    "CXX",
    "DIR",
    "DISPLAY",
    "DOCKER",
    "DOTNET",
    "DYLD",
    "EDIT",
    "EMACS",
    "ENV",
    "EXE",
    "FIELD",
    "FIGNORE",
    "FILE",
    "FILTER",
    "FLAG",
    "FORMAT",
    "FUNC",
    "GCC",
    "GCONV",
    "GEM",
    "GIT",
    "GLIBC",
    "GLOB",
    "GNU",
    "GRADLE",
    "GREP",
    "HELM",
    "HIST",
    "HOME",
    "HOOK",
    "HOST",
    "IGNORE",
    "INCLUDE",
    "INIT",
    "INPUT",
    "INTERP",
    "JAVA",
    "JDK",
    "JQ",
    "KEY",
    "KUBE",
    "LAUNCH",
    "LD_",
    "LESS",
    "LIB",
    "LINK",
    "LOAD",
    "LOC",
    "MAIL",
    "MAKE",
    "MALLOC",
    "MANPATH",
    "MAVEN",
    "MODULE",
    "MVN",
    "NLS",
    "NODE",
    "NPM",
    "OPEN",
    "OPT",
    "PAGER",
    "PASS",
    "PATH",
    "PERL",
    "PHP",
    "PIP",
    "PLUGIN",
    "POSIX",
    "PRE",
    "PROG",
    "PROMPT",
    "PROXY",
    "PYTHON",
    "READLINE",
    "REPLY",
    "RIPGREP",
    "RUBY",
    "RUNNER",
    "RUST",
    "SCRIPT",
    "SECRET",
    "SHELL",
    "SOCK",
    "SOURCE",
    "SSH",
    "SSL",
    "START",
    "SUDO",
    "TAR_",
    "TERM",
    "TERRAFORM",
    "TIME",
    "TMOUT",
    "TMP",
    "TOKEN",
    "TOOL",
    "TRACE",
    "URL",
    "URI",
    "VISUAL",
    "WRAP",
    "XDG",
    "YARN",
    "ZSH",
];

/// Whether nothing is known to look at a variable of this name but what a project itself has written.
pub(super) fn is_neutral(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let short = matches!(
        upper.as_str(),
        "CC" | "AS"
            | "AR"
            | "LD"
            | "NM"
            | "FC"
            | "CI"
            | "_"
            | "IFS"
            | "LEX"
            | "YACC"
            | "SH"
            | "RM"
            | "CP"
            | "MV"
            | "GO"
    );
    let prefixed =
        ["PS", "LC_", "GO", "R_", "VIM", "LS", "LANG"].into_iter().any(|prefix| upper.starts_with(prefix));
    !short
        && !prefixed
        && !upper.ends_with("RC")
        && !STEERING_NAME_PARTS.iter().any(|steering| upper.contains(steering))
}

/// Whether a variable may be set before a command that a rule allows, although it says nothing of the variable:
/// one that steers no known program, set to a word that names no file, no option and no address.
pub(super) fn is_setting(name: &str, value: &ShellArg) -> bool {
    let plain = value.known().is_some_and(|text| {
        !text.starts_with(['-', '.', '+'])
            && text.chars().all(|character| character.is_ascii_alphanumeric() || "_.-+".contains(character))
    });
    plain && is_neutral(name)
}

/// Whether a value cannot turn into code where arithmetic or a subscript looks at it.
pub(super) fn is_inert(value: &ShellArg) -> bool {
    value.live.is_none_or(|_| value.pattern.is_some()) && !value.text.contains(['$', '`', '[', '(', '\\'])
}

/// Whether a value is a number: one that is written, or the result of arithmetic. Whatever was evaluated for it,
/// to evaluate it once more runs nothing.
pub(super) fn is_number(value: &ShellArg) -> bool {
    matches!(value.live, None | Some(ShellExpansionKind::Harmless | ShellExpansionKind::Arithmetic))
        && !value.tilde
        // Nothing at all is no number, and `$!` may be that.
        && (value.live.is_some() || !value.text.is_empty())
        && !value.variables.iter().any(|name| name == "!")
        && value.emptied().bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

/// Variables that hold a number whatever is assigned to them.
pub(super) fn is_counter(name: &str) -> bool {
    matches!(name, "RANDOM" | "SRANDOM" | "UID" | "EUID" | "PPID" | "LINENO" | "BASHPID" | "EPOCHSECONDS")
}

/// Whether a variable may be printed without a question.
pub(super) fn is_printable(name: &str, set_here: &HashSet<String>, text_here: &HashSet<String>) -> bool {
    // A line has no arguments of its own.
    let positional =
        matches!(name, "@" | "*") || name.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty();
    positional || PRINTABLE_VARIABLES.contains(&name) || set_here.contains(name) || text_here.contains(name)
}
