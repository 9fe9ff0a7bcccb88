//! Protected paths, which no allow rule covers for writing, and sensitive paths, which ask with a warning.
//!
//! A protected path is one that another program trusts or runs later without asking: toolgate's own settings and records,
//! other agents' settings, version control internals, shell start-up files, editor and CI configuration, the system.
//! It is protected whether it exists or not, under every spelling (see [`crate::fold`]).

use crate::fold::{fold_name, fold_path};
use crate::rule::segment::PatternSegment;
use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;
use toolgate_proto::AbsPath;
use toolgate_proto::Workspace;
use toolgate_proto::protected_names::{
    PROTECTED_PATH_SUFFIXES, PROTECTED_STEMS, PROTECTED_SUFFIXES, SANDBOX_PROTECTED_PATHS,
    SENSITIVE_WRITE_PATTERNS, SYSTEM_DIRECTORIES, protected_names,
};
use toolgate_proto::secret_names::{
    EXAMPLE_EXTENSIONS, PACKAGE_DIRECTORIES, SECRET_STEMS, TEXT_EXTENSIONS, home_secrets, key_file_endings,
    secret_patterns,
};

/// Which paths are protected or sensitive, compiled.
#[derive(Debug, Clone)]
pub(crate) struct PathProtection {
    /// Names that settings add to [`protected_names`], folded.
    names: HashSet<String>,
    /// Single paths, folded: the ledger, the journal, the settings files in use.
    paths: Vec<String>,
    /// Patterns that settings add to [`secret_patterns`].
    secrets: SensitivePatterns,
}

/// The built-in tables, compiled once for all policies.
struct BuiltinProtection {
    names: HashSet<&'static str>,
    stems: HashSet<&'static str>,
    /// [`PROTECTED_PATH_SUFFIXES`], by their last name.
    tails: HashMap<&'static str, Vec<&'static [&'static str]>>,
    secrets: SensitivePatterns,
    changes: SensitivePatterns,
}

/// The tables of `proto::protected_names` and `proto::secret_names`, compiled once.
static BUILTIN_PROTECTION: LazyLock<BuiltinProtection> = LazyLock::new(|| {
    let mut tails: HashMap<_, Vec<_>> = HashMap::new();
    for tail in PROTECTED_PATH_SUFFIXES {
        if let Some(last) = tail.last() {
            tails.entry(*last).or_default().push(*tail);
        }
    }
    BuiltinProtection {
        names: protected_names().collect(),
        stems: PROTECTED_STEMS.iter().copied().collect(),
        tails,
        secrets: SensitivePatterns::new(secret_patterns()),
        changes: SensitivePatterns::new(SENSITIVE_WRITE_PATTERNS.iter().copied()),
    }
});

/// Gitignore patterns that match at any depth, indexed by what they begin with.
#[derive(Debug, Clone, Default)]
struct SensitivePatterns {
    by_name: HashMap<String, Vec<Vec<PatternSegment>>>,
    /// The lengths of those names as bits: most names are ruled out without hashing.
    lengths: u64,
    /// Patterns `*.ext`, by `ext`.
    by_extension: HashMap<String, Vec<Vec<PatternSegment>>>,
    /// Other patterns of one name, with their first character if it is literal.
    loose: Vec<(Option<char>, Vec<PatternSegment>)>,
    /// Other patterns of several names.
    deep: Vec<Vec<PatternSegment>>,
    /// The lengths of the extensions as bits.
    extension_lengths: u64,
}

/// The access to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadOrWrite {
    Read,
    Write,
}

impl PathProtection {
    pub(crate) fn new(paths: &[AbsPath], names: &[String], sensitive: &[String]) -> Self {
        Self {
            names: names.iter().map(|name| fold_name(name).into_owned()).collect(),
            paths: paths.iter().map(|path| fold_path(&path.to_string()).into_owned()).collect(),
            secrets: SensitivePatterns::new(sensitive.iter().map(String::as_str)),
        }
    }

    /// Why a folded path is protected, if it is.
    pub(crate) fn protected_reason(&self, path: &str, workspace: &Workspace) -> Option<String> {
        if let Some(own) = self.paths.iter().find(|own| is_under(path, own)) {
            return Some(format!("`{own}` belongs to toolgate itself"));
        }
        if let Some(why) = self.protected_name_reason(strip_workspace_roots(path, workspace)) {
            return Some(why);
        }
        let system = SYSTEM_DIRECTORIES.iter().find(|system| is_under(path, system))?;
        let roots = workspace.roots.iter().map(|root| fold_path(&root.to_string()).into_owned());
        let inside = roots.into_iter().any(|root| is_under(&root, system) && is_under(path, &root));
        (!inside).then(|| format!("`{system}` belongs to the system"))
    }

    /// Why a folded path is protected by one of its names, if it is.
    pub(crate) fn protected_name_reason(&self, path: &str) -> Option<String> {
        for (at, name) in path_names(path) {
            // `.git::$INDEX_ALLOCATION` is an alternate data stream of `.git`.
            let name = name.split(':').next().unwrap_or(name);
            if BUILTIN_PROTECTION.names.contains(name)
                || self.names.contains(name)
                || BUILTIN_PROTECTION.stems.contains(stem(name))
                || PROTECTED_SUFFIXES.iter().any(|end| name.ends_with(end))
            {
                return Some(format!("`{name}` is trusted or run by other programs"));
            }
            let tail = BUILTIN_PROTECTION.tails.get(name).into_iter().flatten().find(|tail| {
                let before = path.get(..at + name.len()).unwrap_or("");
                let mut own = before.rsplit('/');
                tail.iter().rev().all(|name| own.next() == Some(*name))
            });
            if let Some(tail) = tail {
                return Some(format!("`{}` is trusted or run by other programs", tail.join("/")));
            }
        }
        None
    }

    /// Why a folded path is sensitive, if it is.
    pub(crate) fn sensitive_reason(&self, path: &str, touch: ReadOrWrite) -> Option<String> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let hit = BUILTIN_PROTECTION.secrets.find(path).or_else(|| self.secrets.find(path));
        let hit = hit.map(|()| format!("`{name}` may hold secrets"));
        match touch {
            ReadOrWrite::Read => hit.filter(|_| !is_text_named_after_secrets(path) && !holds_no_secret(path)),
            ReadOrWrite::Write => hit.or_else(|| {
                BUILTIN_PROTECTION
                    .changes
                    .find(path)
                    .map(|()| format!("a change of `{name}` affects other systems"))
            }),
        }
    }

    /// Whether no name of a folded directory makes its files sensitive, so that a file in it is sensitive by its own name
    /// or not at all.
    pub(crate) fn is_neutral_directory(&self, directory: &str) -> bool {
        let deep = !BUILTIN_PROTECTION.secrets.deep.is_empty() || !self.secrets.deep.is_empty();
        !deep
            && path_names(directory).all(|(_, name)| {
                !(BUILTIN_PROTECTION.secrets.has_pattern_starting_with(name)
                    || self.secrets.has_pattern_starting_with(name)
                    || is_secrets_name(name))
            })
    }

    /// The files and directories of a home directory that commands may not read.
    pub(crate) fn home_secrets(home: &AbsPath) -> Vec<AbsPath> {
        home_secrets().map(|name| home.join(name)).collect()
    }

    /// The protected paths inside a root that a sandbox can make unwritable by path.
    pub(crate) fn sandbox_protected_paths(root: &AbsPath) -> Vec<AbsPath> {
        SANDBOX_PROTECTED_PATHS.iter().map(|name| root.join(name)).collect()
    }
}

/// Whether a file only looks like one with secrets: an example to copy, or part of a published package.
fn holds_no_secret(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let example = name
        .strip_prefix(".env")
        .is_some_and(|rest| rest.rsplit('.').next().is_some_and(|end| EXAMPLE_EXTENSIONS.contains(&end)));
    // Certificates and test keys in a published package are public.
    let by_ending = key_file_endings().any(|end| name.ends_with(end));
    example || by_ending && path.split('/').any(|name| PACKAGE_DIRECTORIES.contains(&name))
}

/// Whether a file is documentation or code about secrets (`docs/secrets.md`, `src/credentials.rs`).
fn is_text_named_after_secrets(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let stem = name.split_once('.');
    let directory = path.split('/').rev().skip(1).any(is_secrets_name);
    !directory && stem.is_some_and(|(stem, rest)| is_secrets_name(stem) && TEXT_EXTENSIONS.contains(&rest))
}

/// Whether a directory or a stem is named after secrets.
fn is_secrets_name(name: &str) -> bool {
    SECRET_STEMS.contains(&name)
}

impl SensitivePatterns {
    fn new<'a>(patterns: impl Iterator<Item = &'a str>) -> Self {
        let mut out = Self::default();
        for pattern in patterns {
            let folded = fold_path(pattern);
            let segments: Vec<PatternSegment> =
                folded.split('/').filter(|name| !name.is_empty()).filter_map(PatternSegment::parse).collect();
            match segments.first() {
                Some(PatternSegment::Literal(name)) => {
                    let rest = segments.get(1..).unwrap_or_default().to_vec();
                    out.by_name.entry(name.clone()).or_default().push(rest);
                }
                Some(PatternSegment::Many) => match segments.get(1) {
                    Some(PatternSegment::Literal(name)) => {
                        let rest = segments.get(2..).unwrap_or_default().to_vec();
                        out.by_name.entry(name.clone()).or_default().push(rest);
                    }
                    Some(PatternSegment::Glob(_)) if segments.len() == 2 => out.loose.push((None, segments)),
                    Some(PatternSegment::Glob(_) | PatternSegment::Many) => out.deep.push(segments),
                    // `**` alone makes every file sensitive.
                    None => out.loose.push((None, segments)),
                },
                Some(PatternSegment::Glob(_)) if segments.len() > 1 => out.deep.push(segments),
                Some(PatternSegment::Glob(glob)) => match glob.extension().map(str::to_owned) {
                    Some(extension) => out.by_extension.entry(extension).or_default().push(segments),
                    None => out.loose.push((glob.first_char(), segments)),
                },
                None => {}
            }
        }
        out.lengths = out.by_name.keys().fold(0, |bits, name| bits | length_bit(name));
        out.extension_lengths = out.by_extension.keys().fold(0, |bits, name| bits | length_bit(name));
        out
    }

    /// Whether a pattern begins with this name.
    fn has_pattern_starting_with(&self, name: &str) -> bool {
        self.lengths & length_bit(name) != 0 && self.by_name.contains_key(name)
    }

    /// Whether a pattern matches the path, from any of its names on.
    fn find(&self, path: &str) -> Option<()> {
        for (at, name) in path_names(path) {
            let rest = path.get(at + name.len()..).unwrap_or("").trim_start_matches('/');
            let named = if self.lengths & length_bit(name) == 0 { None } else { self.by_name.get(name) };
            if named.into_iter().flatten().any(|segments| PatternSegment::matches_path(segments, rest)) {
                return Some(());
            }
            let from_here = path.get(at..).unwrap_or("");
            if self.deep.iter().any(|segments| PatternSegment::matches_path(segments, from_here)) {
                return Some(());
            }
            if !rest.is_empty() {
                continue;
            }
            // A pattern such as `*.key` is for files; it does not apply to everything in a directory `x.key`.
            let extension = name.rsplit_once('.').map(|(_, extension)| extension);
            let extension = extension.filter(|extension| self.extension_lengths & length_bit(extension) != 0);
            let extension = extension.and_then(|extension| self.by_extension.get(extension));
            let first = name.chars().next();
            let loose = self.loose.iter().filter(|(wanted, _)| wanted.is_none() || *wanted == first);
            let mut loose = extension.into_iter().flatten().chain(loose.map(|(_, segments)| segments));
            if loose.any(|segments| PatternSegment::matches_path(segments, name)) {
                return Some(());
            }
        }
        None
    }
}

/// A name without its extensions.
fn stem(name: &str) -> &str {
    let dot = name.bytes().skip(1).position(|byte| byte == b'.');
    dot.and_then(|dot| name.get(..=dot)).unwrap_or(name)
}

/// One bit for each length of a name, so that most names are skipped without a lookup.
fn length_bit(name: &str) -> u64 {
    1 << name.len().min(63)
}

/// Each name of a path with the position where it starts.
fn path_names(path: &str) -> impl Iterator<Item = (usize, &str)> {
    // Splitting bytes is faster than splitting `str`, and a search calls this for every file.
    let mut start = 0;
    path.as_bytes().split(|byte| *byte == b'/').filter_map(move |name| {
        let at = start;
        start += name.len() + 1;
        if name.is_empty() { None } else { Some((at, path.get(at..at + name.len())?)) }
    })
}

/// The part of a folded path below the outermost root that contains it; the whole path if none does. The names above a
/// workspace must not make its files sensitive or protected.
pub(crate) fn strip_workspace_roots<'p>(path: &'p str, workspace: &Workspace) -> &'p str {
    let roots: Vec<_> =
        workspace.roots.iter().filter_map(|root| Some(fold_path(root.as_path().to_str()?))).collect();
    strip_root_prefix(path, roots.iter().map(|root| &**root))
}

/// Like [`strip_workspace_roots`], for roots that are folded already.
pub(crate) fn strip_root_prefix<'p, 'r>(path: &'p str, roots: impl Iterator<Item = &'r str>) -> &'p str {
    let rests = roots.filter_map(|root| is_under(path, root).then(|| path.get(root.len()..)).flatten());
    rests.max_by_key(|rest| rest.len()).unwrap_or(path)
}

/// Whether a path in text form is `root` or below it.
pub(crate) fn is_under(path: &str, root: &str) -> bool {
    root == "/" || path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workspace(root: &str) -> Workspace {
        let root = AbsPath::new(root).unwrap();
        Workspace::new(root)
    }

    #[test]
    fn what_others_trust_is_protected() {
        let ledger = AbsPath::new("/var/lib/toolgate/ledger").unwrap();
        let guarded = PathProtection::new(&[ledger], &["deploy.toml".into()], &[]);
        let check =
            |path: &str, root: &str| guarded.protected_reason(&fold_path(path), &workspace(root)).is_some();
        for path in [
            "/ws/.git",
            "/ws/.git/config",
            "/ws/sub/.git/hooks/post-checkout",
            "/ws/.Claude/settings.json",
            "/ws/.g\u{200c}it/config",
            "/ws/.github/workflows/ci.yml",
            "/ws/.mcp.json",
            "/home/u/.bashrc",
            "/etc/passwd",
            "/ws/Jenkinsfile",
            "/var/lib/toolgate/ledger/x",
            "/ws/DEPLOY.toml",
            "/home/u/.ssh/authorized_keys",
            "/ws/.git::$INDEX_ALLOCATION/config",
            "/home/u/.config/fish/config.fish",
        ] {
            assert!(check(path, "/ws"), "{path}");
        }
        for path in [
            "/ws/.github/ISSUE_TEMPLATE.md",
            "/ws/docs/.claude-notes.md",
            "/ws/src/main.rs",
            "/ws/.gitignore",
            "/ws/src/settings.json",
            "/ws/workflows/a.yml",
            "/ws/etc/passwd",
            "/ws/Makefile",
        ] {
            assert!(!check(path, "/ws"), "{path}");
        }
        assert!(!check("/usr/src/app/a.rs", "/usr/src/app") && check("/usr/src/b.rs", "/usr/src/app"));
        assert!(check("/etc/passwd", "/"));
    }

    #[test]
    fn what_commands_may_not_read_in_the_home_directory_is_sensitive() {
        let guarded = PathProtection::new(&[], &[], &[]);
        let check = |path: String| guarded.sensitive_reason(&path, ReadOrWrite::Read).is_some();
        for name in home_secrets() {
            assert!(check(format!("/home/u/{name}")) && check(format!("/home/u/{name}/x")), "{name}");
        }
    }

    #[test]
    fn secrets_are_sensitive_and_near_misses_are_not() {
        let guarded = PathProtection::new(
            &[],
            &[],
            &["*.vault".into(), "conf*/keys".into(), "**/live?/db/*.txt".into()],
        );
        let check = |path: &str| guarded.sensitive_reason(&fold_path(path), ReadOrWrite::Read).is_some();
        for path in [
            "/ws/.env",
            "/ws/a/.env.local",
            "/ws/keys/server.pem",
            "/home/u/.ssh/id_rsa",
            "/ws/secrets/db.txt",
            "/ws/credentials.json",
            "/ws/x.vault",
            "/ws/a/conf.d/keys",
            "/ws/live1/db/users.txt",
            "/ws/ID_RSA.pub",
            "/home/u/.aws/credentials",
            "/home/u/.git-credentials",
            "/ws/.pgpass",
            "/home/u/.config/gh/hosts.yml",
            "/etc/shadow",
            "/proc/self/environ",
            "/home/u/.ssh",
        ] {
            assert!(check(path), "{path}");
        }
        for path in [
            "/ws/environment.md",
            "/ws/Secrets.md",
            "/ws/src/credentials.rs",
            "/ws/id_card.txt",
            "/ws/src/secrets.rs.bak/x",
            "/ws/monkey",
            "/ws/conf.d/a/keys",
            "/ws/keys",
        ] {
            assert!(!check(path), "{path}");
        }
        assert!(guarded.sensitive_reason("/ws/db/seeds/a.sql", ReadOrWrite::Read).is_none());
        assert!(guarded.sensitive_reason("/ws/db/seeds/a.sql", ReadOrWrite::Write).is_some());
    }
}
