//! Variables: which may be set before a granted command without changing what it is.

use super::analysis::Live;
use super::expand::Arg;
use std::collections::HashSet;
use std::sync::LazyLock;

/// Variables that change how output looks or what a test run reports, and nothing that runs.
const HARMLESS: &[&str] = &[
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

/// Parts of names that programs look for: a variable whose name has one of them may choose what runs, where from,
/// or what words mean.
const STEERING_WORDS: &str = "AG ALIAS ALL ARGS ASDF ASKPASS AWKLIBPATH AWKPATH AWS AZURE BASH BAT BAZEL BIN BLOCKSIZE BROWSER BUN \
    BUNDLE BUNDLER BZIP2 CARGO CC CD CDPATH CMAKE CMD COLORS COMMAND COMPILER COMPOSER COMSPEC CONDA \
    CONF CONFIG CORRECT COVERAGE CPP CTEST CXX DATA DENO DIR DIRS DISPLAY DOCKER DOTNET DYLD EDITOR \
    ELECTRON EMACS ENDPOINT ENV EXA EXE EXEC EXINIT EZA FC FCEDIT FD FILE FILES FLAGS FLATPAK FORMAT \
    FPATH FTP FZF GCC GCONV GCP GDB GEM GIT GLIBC GLOBIGNORE GO GOBIN GOFLAGS GOOGLE GOPATH GOPROXY \
    GOROOT GRADLE GREP GUIX GZIP HATCH HELPER HISTFILE HOME HOOK HOOKS HOST HOSTALIASES HTTP HTTPS IFS \
    IMAGE INCLUDE INIT INPUTRC INTERPRETER JAVA JDK JQ JVM KOTLIN KUBECONFIG LD LESS LESSCLOSE LESSOPEN \
    LIB LIBC LIBRARY LIBS LINKER LLDB LOADER LOCPATH LS LUA MAIL MAKE MAKEFILES MAKEFLAGS MALLOC MAN \
    MANPAGER MANPATH MAVEN MESON MFLAGS MISE MODULE MODULES MSBUILD MYSQL MYVIMRC NINJA NIX NLSPATH NO \
    NODE NOX NPM NUGET NULLCMD NVM OPENSSL OPTARG OPTIND OPTIONS OPTS OUT OUTPUT PAGER PATH PDM PERF \
    PERL PERL5DB PERL5LIB PERL5OPT PG PGHOST PGSERVICE PHP PHPRC PIP PIPENV PLUGIN PLUGINS PNPM POETRY \
    POSIXLY POST PRE PRELOAD PROGRAM PROMPT PROXY PS1 PS2 PS4 PYENV PYTEST PYTHON PYTHONPATH \
    PYTHONSTARTUP QUOTING RBENV RC READNULLCMD REMOTE REPO REPOSITORY RESOLV RIPGREP ROOT RSH RSYNC RUBY \
    RUBYLIB RUBYOPT RUN RUNNER RUST RUSTC RUSTDOC RUSTFLAGS RUSTUP SBT SCRIPT SCRIPTS SERVER SHELL \
    SHELLOPTS SNAP SOCK SOCKET SOURCE SSH SSL STARTUP SUDO SYSTEMD TABSIZE TAR TEMP TERM TERMCAP \
    TERMINFO TIMEFORMAT TMP TMPDIR TMPPREFIX TOOL TOOLCHAIN TOOLS TOX TREE TUNABLES UNZIP UNZIPOPT URI \
    URL USER UV VALGRIND VIM VIMINIT VIRTUAL VISUAL VOLTA VSCODE WGETRC WRAPPER XDG XZ YARN ZDOTDIR \
    ZIPOPT ZSTD";

/// Whether programs may look at a name to find out what to run, where to find it, or what their words mean.
fn is_steering(name: &str) -> bool {
    static WORDS: LazyLock<HashSet<&str>> =
        LazyLock::new(|| STEERING_WORDS.split_ascii_whitespace().collect());
    let word = |word: &str| {
        let stem = word.trim_end_matches(|digit: char| digit.is_ascii_digit());
        WORDS.contains(word)
            || WORDS.contains(stem)
            // `MYPATH`, `CFLAGS`, `LDOPTS`: written together.
            || ["PATH", "FLAGS", "OPTS", "OPTIONS", "PAGER", "EDITOR", "SHELL", "HOME", "COMMAND", "PRELOAD", "PROXY", "RC", "CC", "CONFIG", "HOOK"]
                .iter()
                .any(|end| word.ends_with(end))
    };
    name.split('_').any(word) || name.is_empty()
}

/// A name in capitals that no program is known to look at.
fn is_own_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase())
        && name
            .chars()
            .all(|character| character == '_' || character.is_ascii_uppercase() || character.is_ascii_digit())
        && !is_steering(name)
}

/// Variables that hold no secret, so that printing them tells nothing that a prompt should guard.
const PRINTABLE: &[&str] = &[
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
pub(super) fn is_harmless(name: &str, value: &Arg) -> bool {
    let known = HARMLESS.contains(&name)
        || (name.starts_with("LC_") && name.len() > 3)
        || is_own_name(name) && !value.text.starts_with('-') && !value.text.contains([' ', '*']);
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
pub(super) fn is_local(name: &str, value: &Arg) -> bool {
    let lower = name
        .chars()
        .all(|character| character == '_' || character.is_ascii_lowercase() || character.is_ascii_digit());
    let steers = name.ends_with("_proxy")
        || name.starts_with("npm_")
        || name.starts_with("bash")
        || name == "_"
        || name == "histchars"
        || name == "auto_resume";
    (lower && !steers || is_own_name(name)) && is_inert(value)
}

/// Whether a value cannot turn into code where arithmetic or a subscript looks at it.
pub(super) fn is_inert(value: &Arg) -> bool {
    value.live.is_none_or(|_| value.pattern.is_some()) && !value.text.contains(['$', '`', '[', '(', '\\'])
}

/// Whether a value is a number: one that is written, or the result of arithmetic. Whatever was evaluated for it,
/// to evaluate it once more runs nothing.
pub(super) fn is_number(value: &Arg) -> bool {
    matches!(value.live, None | Some(Live::Harmless | Live::Arithmetic))
        && !value.tilde
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
    positional || PRINTABLE.contains(&name) || set_here.contains(name) || text_here.contains(name)
}
