//! Package managers: the few questions that run no code of the project.
//!
//! Each of them reads settings and libraries that its arguments do not name, so that the files are decided when it
//! runs. Such a use is allowed only where the kernel limits what can be read.

use crate::option_tables::ProgramUse;
use crate::option_tables::versions::{
    GO_VERSION_FILES, JAVASCRIPT_VERSION_FILES, PYTHON_VERSION_FILES, RUST_VERSION_FILES,
};
use crate::shell_arg::ShellArg;
use toolgate_proto::PathScope;

/// Judges a use of a package manager; `None` if it is not one of the known questions.
pub(super) fn judge_package_manager(program: &str, args: &[ShellArg]) -> Option<ProgramUse> {
    match program {
        "pip" | "pip3" => Some(judge_pip(args)),
        "cargo" => judge_cargo(args),
        "go" => judge_go(args),
        "npm" => judge_npm(args),
        _ => None,
    }
}

/// A question whose arguments are all known, and which reads more than they name.
fn query_use(chosen_by: &'static [&'static str]) -> ProgramUse {
    ProgramUse { read_only: true, reads_beyond_args: true, chosen_by, ..ProgramUse::default() }
}

/// The arguments, if all of them are known.
pub(super) fn known_words(args: &[ShellArg]) -> Option<Vec<&str>> {
    args.iter().map(ShellArg::known).collect()
}

/// Whether every word is one of the options, has one of the prefixes, or, if `names`, is the name of a package.
///
/// A name may be scoped (`@a/b`), as for npm.
pub(super) fn are_all_allowed(words: &[&str], options: &[&str], prefixes: &[&str], names: bool) -> bool {
    words.iter().all(|word| {
        options.contains(word)
            || prefixes.iter().any(|prefix| word.starts_with(prefix))
            || names
                && word.starts_with(|first: char| first.is_alphanumeric() || first == '@')
                && word.chars().all(|character| character.is_alphanumeric() || "_.-@/".contains(character))
    })
}

/// Options of `pip list` and `pip freeze` that change the form of the output.
const PIP_OUTPUT_OPTIONS: &[&str] = &[
    "--local",
    "-l",
    "--user",
    "-v",
    "-q",
    "--verbose",
    "--quiet",
    "--disable-pip-version-check",
    "--no-color",
];

/// Judges `pip show`, `pip list` and `pip freeze`, which list what is installed. Code of the project runs only if its
/// own environment is active, and then the kernel limits it to reading.
fn judge_pip(args: &[ShellArg]) -> ProgramUse {
    let words = known_words(args);
    let harmless = match words.as_deref().and_then(<[_]>::split_first) {
        Some((&"show", rest)) => {
            let (options, names): (Vec<&str>, Vec<&str>) =
                rest.iter().partition(|word| word.starts_with('-'));
            are_all_allowed(&options, &["-f", "--files", "-v", "--verbose", "-q"], &[], false)
                && are_all_allowed(&names, &[], &[], true)
                && names.iter().all(|name| !name.contains('/'))
        }
        Some((&"list", rest)) => {
            let options =
                [PIP_OUTPUT_OPTIONS, &["--not-required", "-e", "--editable", "--include-editable"]].concat();
            are_all_allowed(rest, &options, &["--format=", "--exclude="], false)
        }
        Some((&"freeze", rest)) => {
            let options = [PIP_OUTPUT_OPTIONS, &["--all", "--exclude-editable"]].concat();
            are_all_allowed(rest, &options, &["--exclude="], false)
        }
        _ => false,
    };
    if harmless {
        ProgramUse { helpers: &["env", "python3", "python"], ..query_use(PYTHON_VERSION_FILES) }
    } else {
        ProgramUse::default()
    }
}

/// Judges `cargo metadata --no-deps`: without dependencies nothing is resolved, fetched or compiled.
fn judge_cargo(args: &[ShellArg]) -> Option<ProgramUse> {
    let words = known_words(args)?;
    let (&"metadata", rest) = words.split_first()? else { return None };
    let mut reads = Vec::new();
    let mut harmless = rest.contains(&"--no-deps");
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        match *word {
            "--no-deps" | "--format-version=1" | "-q" | "--quiet" | "--offline" | "--locked" | "--frozen"
            | "-v" => {}
            "--format-version" => harmless &= rest.next() == Some(&"1"),
            "--manifest-path" => {
                reads.extend(rest.next().map(|file| (ShellArg::literal(*file), PathScope::Entry)))
            }
            _ => match word.strip_prefix("--manifest-path=") {
                Some(file) => reads.push((ShellArg::literal(file), PathScope::Entry)),
                None => harmless = false,
            },
        }
    }
    harmless.then(|| ProgramUse {
        reads,
        looks_in: &["~/.cargo/config.toml", "~/.rustup"],
        ..query_use(RUST_VERSION_FILES)
    })
}

/// Judges `go env NAME`. Without a name it runs compilers, and with `-w` it writes.
fn judge_go(args: &[ShellArg]) -> Option<ProgramUse> {
    let words = known_words(args)?;
    let (&"env", names) = words.split_first()? else { return None };
    // Addresses and command lines may contain passwords.
    let is_printable = |name: &&str| {
        !matches!(*name, "GOPROXY" | "GOAUTH" | "GOGCCFLAGS" | "GOCACHEPROG")
            && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
            && (name.starts_with("GO") || name.starts_with("CGO_"))
    };
    (!names.is_empty() && names.iter().all(is_printable))
        .then(|| ProgramUse { looks_in: &["~/.config/go", "/usr/local/go"], ..query_use(GO_VERSION_FILES) })
}

/// Judges `npm ls`, which reads manifests and `.npmrc`, and runs no script.
fn judge_npm(args: &[ShellArg]) -> Option<ProgramUse> {
    let words = known_words(args)?;
    let (&"ls" | &"list", rest) = words.split_first()? else { return None };
    let flags = [
        "--all",
        "-a",
        "--json",
        "--long",
        "-l",
        "--parseable",
        "-p",
        "--prod",
        "--production",
        "--dev",
        "--link",
        "--unicode",
        "-g",
        "--global",
    ];
    let mut harmless = true;
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        harmless &= match *word {
            "--depth" => rest.next().is_some_and(|depth| depth.bytes().all(|byte| byte.is_ascii_digit())),
            word => are_all_allowed(&[word], &flags, &["--depth=", "--omit=", "--include=", "--only="], true),
        };
    }
    harmless.then(|| ProgramUse { helpers: &["env", "node"], ..query_use(JAVASCRIPT_VERSION_FILES) })
}
