//! Package managers and manuals: the few questions that run no code of the project.
//!
//! They are programs in themselves: each reads settings and libraries that its words do not name, so that which
//! files are read is decided when it runs. Only where the kernel bounds that do they pass.

use super::super::expand::ShellArg;
use super::super::option_tables::ProgramUse;
use super::super::option_tables::versions::{
    JAVASCRIPT_VERSION_FILES, PYTHON_VERSION_FILES, RUST_VERSION_FILES,
};
use toolgate_proto::PathScope;

/// A question whose words are all known, and which reads more than they name.
fn query_use(chosen_by: &'static [&'static str]) -> ProgramUse {
    ProgramUse { read_only: true, reads_beyond_args: true, chosen_by, ..ProgramUse::default() }
}

fn known_words(args: &[ShellArg]) -> Option<Vec<&str>> {
    args.iter().map(ShellArg::known).collect()
}

/// Whether every word is one of the options, has one of the prefixes, or is a plain name where names may stand.
fn are_all_allowed(words: &[&str], options: &[&str], prefixes: &[&str], names: bool) -> bool {
    words.iter().all(|word| {
        options.contains(word)
            || prefixes.iter().any(|prefix| word.starts_with(prefix))
            || names
                && word.starts_with(|first: char| first.is_alphanumeric() || first == '@')
                && word.chars().all(|character| character.is_alphanumeric() || "_.-@/".contains(character))
    })
}

/// `pip show`, `pip list` and `pip freeze`: they look at what is installed. Code of a project runs only if the
/// project's own environment is the active one, and then within the limits of reading.
pub(super) fn judge_pip(args: &[ShellArg]) -> ProgramUse {
    const QUIET: &[&str] = &[
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
            let options = [QUIET, &["--not-required", "-e", "--editable", "--include-editable"]].concat();
            are_all_allowed(rest, &options, &["--format=", "--exclude="], false)
        }
        Some((&"freeze", rest)) => {
            let options = [QUIET, &["--all", "--exclude-editable"]].concat();
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

/// `cargo metadata --no-deps`: without dependencies nothing is resolved, fetched or compiled.
pub(super) fn judge_cargo(args: &[ShellArg]) -> Option<ProgramUse> {
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

/// `go env NAME`: without a name it runs compilers, with `-w` it writes.
pub(super) fn judge_go(args: &[ShellArg]) -> Option<ProgramUse> {
    let words = known_words(args)?;
    let (&"env", names) = words.split_first()? else { return None };
    // Addresses and programs may carry passwords.
    let told = |name: &&str| {
        !matches!(*name, "GOPROXY" | "GOAUTH" | "GOGCCFLAGS" | "GOCACHEPROG")
            && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
            && (name.starts_with("GO") || name.starts_with("CGO_"))
    };
    (!names.is_empty() && names.iter().all(told))
        .then(|| ProgramUse { looks_in: &["~/.config/go", "/usr/local/go"], ..query_use(&[]) })
}

/// `npm ls`: reads manifests and `.npmrc`, and runs no script.
pub(super) fn judge_npm(args: &[ShellArg]) -> Option<ProgramUse> {
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

/// `man` of a page by its name: formatted by programs of the system, without a pager where there is no terminal.
pub(super) fn judge_man(args: &[ShellArg]) -> ProgramUse {
    let harmless = known_words(args).is_some_and(|words| {
        let (options, names): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with('-'));
        !names.is_empty()
            && are_all_allowed(
                &options,
                &["-w", "--where", "--path", "-k", "--apropos", "-f", "--whatis", "-a", "--all"],
                &[],
                false,
            )
            && names.iter().all(|name| {
                // A name with a slash is a file to format.
                name.chars().all(|character| character.is_alphanumeric() || "_.-+:[@".contains(character))
            })
    });
    if !harmless {
        return ProgramUse { hazard: true, ..ProgramUse::default() };
    }
    ProgramUse {
        read_only: true,
        text: true,
        helpers: &[
            "cat", "groff", "nroff", "troff", "grotty", "preconv", "tbl", "eqn", "col", "gzip", "iconv",
            "locale", "apropos", "whatis", "sh",
        ],
        looks_in: &[
            "/usr/share/man",
            "/usr/local/share/man",
            "/usr/local/man",
            "/var/cache/man",
            "/etc/manpath.config",
            "/etc/groff",
        ],
        ..ProgramUse::default()
    }
}
