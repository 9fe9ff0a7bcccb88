//! Which variables may be set for a command, or printed, without a question.
//!
//! A rule that allows `cargo test` was not written for `RUSTC_WRAPPER=./x cargo test`: a variable can choose the
//! program, the library or the configuration that runs. So the names that are known to be harmless are listed, and all
//! others count as settings that may steer a program.

use crate::analysis::ShellExpansionKind;
use crate::shell_arg::ShellArg;
use crate::word_list::WordList;

/// Variables that change the form of the output or what a test run reports, and nothing that runs.
const HARMLESS_VARIABLES: WordList = WordList(
    "LANG LANGUAGE NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE COLORTERM TERM COLUMNS LINES CI DEBUG \
     VERBOSE NODE_ENV RUST_BACKTRACE RUST_LOG CARGO_TERM_COLOR CARGO_INCREMENTAL PYTHONUNBUFFERED \
     PYTHONDONTWRITEBYTECODE PYTHONIOENCODING PYTHONUTF8 PYTHONHASHSEED PY_COLORS GOOS GOARCH \
     CGO_ENABLED GO111MODULE RAILS_ENV RACK_ENV MIX_ENV APP_ENV TZ SOURCE_DATE_EPOCH UV_NO_PROGRESS \
     NPM_CONFIG_LOGLEVEL LOG_LEVEL BLOCK_SIZE",
);

/// Variables that contain no secret and may be printed without a question.
const PRINTABLE_VARIABLES: WordList = WordList(
    "HOME PWD OLDPWD USER LOGNAME SHELL PATH LANG LC_ALL TERM TZ HOSTNAME HOSTTYPE OSTYPE MACHTYPE \
     UID EUID RANDOM SECONDS LINENO BASH_VERSION BASHPID PPID SHLVL COLUMNS LINES EDITOR PAGER TMPDIR \
     NODE_ENV VIRTUAL_ENV CONDA_DEFAULT_ENV GOPATH GOROOT CARGO_HOME RUSTUP_HOME JAVA_HOME NVM_DIR ? \
     # $ ! 0 - PIPESTATUS EPOCHSECONDS DISPLAY XDG_CONFIG_HOME XDG_DATA_HOME XDG_CACHE_HOME",
);

/// Whether a variable may be set for a command that a rule allows, because no program is steered by it.
///
/// The value must be plain as well: `LC_ALL=../x` makes some programs open that file.
pub(crate) fn is_harmless(name: &str, value: &ShellArg) -> bool {
    let known = HARMLESS_VARIABLES.contains(name) || (name.starts_with("LC_") && name.len() > 3);
    // Programs also open locales and time zones as paths.
    let plain = value.known().is_some_and(|text| {
        !text.contains("..")
            && !text.starts_with(['/', ':', '.'])
            && text
                .chars()
                .all(|character| character.is_ascii_alphanumeric() || "_.,:=+/-@* ".contains(character))
    });
    known && plain && (name == "TZ" || !value.text.contains('/'))
}

/// Whether a variable is local to the line: its name is in lower case, which programs do not read from their
/// environment, and its value is no code wherever the shell might evaluate it.
pub(crate) fn is_local(name: &str, value: &ShellArg) -> bool {
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

/// Parts of the names of variables that steer shells, loaders, compilers, interpreters and their tools.
const STEERING_NAME_PARTS: WordList = WordList(
    "ALIAS ANDROID ANSIBLE ARG ASKPASS AWK AWS AZURE BASH BIN BROWSER BUNDLE CARGO CHILD CLANG CMAKE \
     CMD COMMAND COMP CONF COPROC CPP CXX DIR DISPLAY DOCKER DOTNET DYLD EDIT EMACS ENV EXE FIELD \
     FIGNORE FILE FILTER FLAG FORMAT FUNC GCC GCONV GEM GIT GLIBC GLOB GNU GRADLE GREP HELM HIST HOME \
     HOOK HOST IGNORE INCLUDE INIT INPUT INTERP JAVA JDK JQ KEY KUBE LAUNCH LD_ LESS LIB LINK LOAD \
     LOC MAIL MAKE MALLOC MANPATH MAVEN MODULE MVN NLS NODE NPM OPEN OPT PAGER PASS PATH PERL PHP PIP \
     PLUGIN POSIX PRE PROG PROMPT PROXY PYTHON READLINE REPLY RIPGREP RUBY RUNNER RUST SCRIPT SECRET \
     SHELL SOCK SOURCE SSH SSL START SUDO TAR_ TERM TERRAFORM TIME TMOUT TMP TOKEN TOOL TRACE URL URI \
     VISUAL WRAP XDG YARN ZIP ZSH MERGE OCAML JULIA ROFF RSH RSYNC SVN",
);

/// Short names that steer shells and build tools.
const STEERING_NAMES: WordList =
    WordList("CC AS AR LD NM FC CI _ IFS LEX YACC SH RM CP MV GO MAGIC TAPE MANROFFSEQ MANSECT EMAIL LV");

/// Beginnings of the names of variables that steer programs.
const STEERING_PREFIXES: WordList = WordList("PS LC_ GO R_ VIM LS LANG PG BAT_ XZ_ TCL ERL LUA PROC_ DPKG");

/// Programs that read no variable besides those that the lists above name. Without a rule any other program counts as
/// steered by a variable that is set for it: the lists above are for the tools of projects, and miss names such as
/// `MAGIC`.
const UNSTEERED_READERS: WordList = WordList(
    "ls cat tac head tail wc nl cut paste tr sort uniq comm join fold fmt expand unexpand rev od base64 base32 \
     md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum diff cmp seq factor expr numfmt stat du \
     df realpath readlink basename dirname uname nproc whoami id date sleep echo printf pwd test [ true false grep \
     egrep fgrep find sed awk gawk mawk jq which git read",
);

/// Whether a program that only reads does so whatever variables are set for it, apart from those that steer programs.
pub(crate) fn is_unsteered_reader(program: &str) -> bool {
    UNSTEERED_READERS.contains(program)
}

/// Whether no known program reads a variable of this name; only code of the project itself may.
/// A list of harmless names would ask about every variable of a project, so that the names that steer programs are
/// described instead, generously.
pub(crate) fn is_neutral(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    !STEERING_NAMES.contains(&upper)
        && !STEERING_PREFIXES.iter().any(|prefix| upper.starts_with(prefix))
        && !upper.ends_with("RC")
        && !STEERING_NAME_PARTS.iter().any(|part| upper.contains(part))
}

/// Whether a variable may be set for a command that a rule allows, although the rule does not mention the variable:
/// it steers no known program, and its value is no file, no option and no address.
pub(crate) fn is_setting(name: &str, value: &ShellArg) -> bool {
    let plain = value.known().is_some_and(|text| {
        !text.starts_with(['-', '.', '+'])
            && text.chars().all(|character| character.is_ascii_alphanumeric() || "_.-+".contains(character))
    });
    plain && is_neutral(name)
}

/// Whether a value contains no code that arithmetic or a subscript could evaluate.
///
/// Arithmetic expands `$(…)`, backquotes and subscripts in the value of a variable.
pub(crate) fn is_inert(value: &ShellArg) -> bool {
    value.live.is_none_or(|_| value.pattern.is_some()) && !value.text.contains(['$', '`', '[', '(', '\\'])
}

/// Whether a value is a number: a literal one, or the result of arithmetic. Evaluating it again runs nothing,
/// whatever was evaluated to get it.
pub(crate) fn is_number(value: &ShellArg) -> bool {
    matches!(value.live, None | Some(ShellExpansionKind::Harmless | ShellExpansionKind::Arithmetic))
        && !value.tilde
        // An empty value is no number, and `$!` may be empty.
        && (value.live.is_some() || !value.text.is_empty())
        && !value.variables.iter().any(|name| name == "!")
        && value.emptied().bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

/// Whether a variable contains a number whatever is assigned to it.
pub(crate) fn is_counter(name: &str) -> bool {
    matches!(name, "RANDOM" | "SRANDOM" | "UID" | "EUID" | "PPID" | "LINENO" | "BASHPID" | "EPOCHSECONDS")
}

/// Whether a variable of this name may be printed without a question, whatever its value.
pub(crate) fn is_printable(name: &str) -> bool {
    // The shell of a command line has no positional arguments, so that these are empty.
    let positional =
        matches!(name, "@" | "*") || name.bytes().all(|byte| byte.is_ascii_digit()) && !name.is_empty();
    positional || PRINTABLE_VARIABLES.contains(name)
}
