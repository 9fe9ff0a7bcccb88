//! Search programs that skip hidden names: names that begin with a dot.
//!
//! `rg x` does not open `.env`, so a deny rule for `.env` need not make it ask; `rg --hidden x` does.
//!
//! `rg` and `fd` also open a hidden name that an ignore file of the project lists with `!`. What these files contain is
//! not known here, so that the answer is only good where the kernel withholds the file in any case.

use toolgate_shell_syntax::CommandPart;

/// Whether a search program skips hidden names, because no option makes it include them.
pub(crate) fn skips_hidden_names(part: &CommandPart) -> bool {
    let including_flags = match part.program.as_deref() {
        Some("rg") => "u.",
        Some("fd") => "uH",
        Some("ag") => "uat",
        Some("tree") => "a",
        Some(_) | None => return false,
    };
    let includes_hidden = |word: &str| match word.strip_prefix("--") {
        Some(long) => ["h", "u", "a"].into_iter().any(|start| long.starts_with(start)),
        None => word.strip_prefix('-').is_some_and(|flags| flags.contains(|c| including_flags.contains(c))),
    };
    part.argv.iter().all(|word| word.live.is_none() && !includes_hidden(&word.text))
        && !(part.program.as_deref() == Some("rg")
            && (has_glob_for_hidden_names(part) || has_type_for_hidden_names(part)))
}

/// Whether a search program opens hidden names that an ignore file of the project lists with `!`.
pub(crate) fn obeys_ignore_files(part: &CommandPart) -> bool {
    matches!(part.program.as_deref(), Some("rg" | "fd" | "fdfind" | "ag"))
}

/// The types of `rg` whose patterns are nothing but extensions of source code and documents.
const EXTENSION_TYPES: &[&str] = &[
    "c",
    "cpp",
    "css",
    "csv",
    "dart",
    "elixir",
    "go",
    "h",
    "haskell",
    "html",
    "java",
    "js",
    "json",
    "kotlin",
    "lua",
    "markdown",
    "md",
    "py",
    "python",
    "rust",
    "sass",
    "scala",
    "sql",
    "swift",
    "toml",
    "ts",
    "txt",
    "typescript",
    "xml",
    "yaml",
    "zig",
];

/// Whether a type of `rg` may match a hidden name: `rg` opens what a type matches although it is hidden. A type that
/// the line itself defines may match any name.
fn has_type_for_hidden_names(part: &CommandPart) -> bool {
    let mut words = part.argv.iter().map(|word| word.text.as_str());
    while let Some(word) = words.next() {
        let name = match word.split_once('=') {
            Some(("--type-add", _)) => return true,
            Some(("--type", name)) => Some(name),
            _ if word == "--type-add" => return true,
            _ if word == "--type" => words.next(),
            _ => match word
                .strip_prefix('-')
                .filter(|rest| !rest.starts_with('-'))
                .and_then(|rest| rest.split_once('t'))
            {
                Some((_, "")) => words.next(),
                attached => attached.map(|(_, name)| name),
            },
        };
        if name.is_some_and(|name| !EXTENSION_TYPES.contains(&name)) {
            return true;
        }
    }
    false
}

/// Whether a `--glob` of `rg` may match a hidden name: `rg` opens what a glob matches although it is hidden.
fn has_glob_for_hidden_names(part: &CommandPart) -> bool {
    let mut words = part.argv.iter().map(|word| word.text.as_str());
    while let Some(word) = words.next() {
        let glob = match word.split_once('=') {
            Some(("--glob" | "--iglob", glob)) => Some(glob),
            _ if matches!(word, "--glob" | "--iglob") => words.next(),
            _ => match word
                .strip_prefix('-')
                .filter(|rest| !rest.starts_with('-'))
                .and_then(|rest| rest.split_once('g'))
            {
                Some((_, "")) => words.next(),
                attached => attached.map(|(_, glob)| glob),
            },
        };
        if glob.is_some_and(may_match_hidden_name) {
            return true;
        }
    }
    false
}

/// Whether a glob could match a name that begins with a dot. If that is not certain, the answer is yes.
fn may_match_hidden_name(glob: &str) -> bool {
    let name = glob.rsplit('/').next().unwrap_or(glob);
    // `*.rs` is for an extension and matches no hidden name, but `*.env` matches `.env`.
    let is_extension = name.strip_prefix("*.").is_some_and(|extension| {
        !extension.starts_with("env") && extension.chars().all(|character| character.is_ascii_alphanumeric())
    });
    let is_plain = name.starts_with(|first: char| first == '_' || first.is_alphanumeric());
    !glob.starts_with('!') && !is_extension && !is_plain
}
