//! Package managers and manuals: the few questions that run no code of the project.
//!
//! They are programs in themselves: each reads settings and libraries that its words do not name, so that which
//! files are read is decided when it runs. Only where the kernel bounds that do they pass.

use super::super::expand::Arg;
use super::super::table::Use;
use super::super::table::versions::{JAVASCRIPT, PYTHON, RUST};
use toolgate_proto::Scope;

/// A question whose words are all known, and which reads more than they name.
fn question(chosen_by: &'static [&'static str]) -> Use {
    Use { read_only: true, roams: true, chosen_by, ..Use::default() }
}

fn known(args: &[Arg]) -> Option<Vec<&str>> {
    args.iter().map(Arg::known).collect()
}

/// Whether every word is one of the options, has one of the prefixes, or is a plain name where names may stand.
fn only(words: &[&str], options: &[&str], prefixes: &[&str], names: bool) -> bool {
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
pub(super) fn pip(args: &[Arg]) -> Use {
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
    let words = known(args);
    let harmless = match words.as_deref().and_then(<[_]>::split_first) {
        Some((&"show", rest)) => {
            let (options, names): (Vec<&str>, Vec<&str>) =
                rest.iter().partition(|word| word.starts_with('-'));
            only(&options, &["-f", "--files", "-v", "--verbose", "-q"], &[], false)
                && only(&names, &[], &[], true)
                && names.iter().all(|name| !name.contains('/'))
        }
        Some((&"list", rest)) => {
            let options = [QUIET, &["--not-required", "-e", "--editable", "--include-editable"]].concat();
            only(rest, &options, &["--format=", "--exclude="], false)
        }
        Some((&"freeze", rest)) => {
            let options = [QUIET, &["--all", "--exclude-editable"]].concat();
            only(rest, &options, &["--exclude="], false)
        }
        _ => false,
    };
    if harmless { Use { helpers: &["env", "python3", "python"], ..question(PYTHON) } } else { Use::default() }
}

/// `cargo metadata --no-deps`: without dependencies nothing is resolved, fetched or compiled.
pub(super) fn cargo(args: &[Arg]) -> Option<Use> {
    let words = known(args)?;
    let (&"metadata", rest) = words.split_first()? else { return None };
    let mut reads = Vec::new();
    let mut harmless = rest.contains(&"--no-deps");
    let mut rest = rest.iter();
    while let Some(word) = rest.next() {
        match *word {
            "--no-deps" | "--format-version=1" | "-q" | "--quiet" | "--offline" | "--locked" | "--frozen"
            | "-v" => {}
            "--format-version" => harmless &= rest.next() == Some(&"1"),
            "--manifest-path" => reads.extend(rest.next().map(|file| (Arg::literal(*file), Scope::Entry))),
            _ => match word.strip_prefix("--manifest-path=") {
                Some(file) => reads.push((Arg::literal(file), Scope::Entry)),
                None => harmless = false,
            },
        }
    }
    harmless.then(|| Use { reads, looks_in: &["~/.cargo/config.toml", "~/.rustup"], ..question(RUST) })
}

/// `go env NAME`: without a name it runs compilers, with `-w` it writes.
pub(super) fn go(args: &[Arg]) -> Option<Use> {
    let words = known(args)?;
    let (&"env", names) = words.split_first()? else { return None };
    // Addresses and programs may carry passwords.
    let told = |name: &&str| {
        !matches!(*name, "GOPROXY" | "GOAUTH" | "GOGCCFLAGS" | "GOCACHEPROG")
            && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
            && (name.starts_with("GO") || name.starts_with("CGO_"))
    };
    (!names.is_empty() && names.iter().all(told))
        .then(|| Use { looks_in: &["~/.config/go", "/usr/local/go"], ..question(&[]) })
}

/// `npm ls`: reads manifests and `.npmrc`, and runs no script.
pub(super) fn npm(args: &[Arg]) -> Option<Use> {
    let words = known(args)?;
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
            word => only(&[word], &flags, &["--depth=", "--omit=", "--include=", "--only="], true),
        };
    }
    harmless.then(|| Use { helpers: &["env", "node"], ..question(JAVASCRIPT) })
}

/// `man` of a page by its name: formatted by programs of the system, without a pager where there is no terminal.
pub(super) fn man(args: &[Arg]) -> Use {
    let harmless = known(args).is_some_and(|words| {
        let (options, names): (Vec<&str>, Vec<&str>) = words.iter().partition(|word| word.starts_with('-'));
        !names.is_empty()
            && only(
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
        return Use { hazard: true, ..Use::default() };
    }
    Use {
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
        ..Use::default()
    }
}
