//! Overrides for the git configuration by which a repository could make git run programs or show files.
//!
//! The configuration of a repository can come with an archive like any other file, and names programs: a file system
//! monitor for `git status`, a pager, an external diff, a filter.
//! Configuration in environment variables takes precedence over every file, so most overrides are constant.
//! Keys whose names the repository chooses (`filter.NAME.clean`) are taken from the effective configuration, as git lists
//! it with everything that is included, and overridden one by one.
//!
//! How much is overridden depends on what git does in the command line ([`GitUse`]):
//! if it only reads, neither the system's nor the user's configuration applies (except some harmless keys), attributes
//! come from an empty tree, no transport is allowed, and no other repository is accepted.
//! If a rule or the user allowed git to change something, the user's own helpers stay.
//!
//! The configuration may change between the query and the run (a TOCTOU race); then the sandbox is what restricts git.

mod query;
mod referenced_files;
mod repository;

use query::{
    GitConfigEntry, GitQuery, MAX_CONFIG_BYTES, MAX_INDEX_BYTES, find_git, parse_config_entries,
    parse_submodules,
};
pub use referenced_files::find_git_referenced_files;
use repository::{GitRepository, canonicalize};
use std::collections::BTreeMap;
use std::fs;
use toolgate_proto::{AbsPath, Code, GitTerms, GitUse, Refusal};

/// The most overrides: the environment of a process is limited.
const MAX_OVERRIDES: usize = 2_000;

/// A program that cannot be executed.
const NO_PROGRAM: &str = "/dev/null";

/// An empty file.
const NO_FILE: &str = "/dev/null";

/// The hash of the tree without entries, in SHA-1.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
/// The hash of the tree without entries, in SHA-256.
const EMPTY_TREE_SHA256: &str = "6ef19b41225c5369f1c104d45d8d85efa9b057b53b14b4b9b939dd74decc5321";

/// Overrides for every command.
const BASE_SETTINGS: [(&str, &str); 14] = [
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.editor", "true"),
    ("core.sshCommand", "ssh"),
    ("core.askPass", ""),
    ("core.alternateRefsCommand", ""),
    ("interactive.diffFilter", "cat"),
    ("gpg.program", "gpg"),
    ("gpg.ssh.program", "ssh-keygen"),
    ("log.showSignature", "false"),
    ("protocol.ext.allow", "never"),
    ("submodule.recurse", "false"),
    ("uploadpack.packObjectsHook", ""),
];

/// An external diff cannot be unset, only replaced: by git's own diff of the two files.
const BUILTIN_DIFF_COMMAND: &str =
    "f() { git --no-pager diff --no-index --no-ext-diff --no-textconv -- \"$2\" \"$5\"; true; }; f";

/// Further overrides if a part of the command line was allowed because git only reads: submodules have configuration of
/// their own.
const PARTIAL_READ_SETTINGS: &[(&str, &str)] = &[
    ("diff.ignoreSubmodules", "dirty"),
    ("diff.submodule", "short"),
    ("log.diffMerges", "separate"),
    ("safe.bareRepository", "explicit"),
    ("status.submoduleSummary", "false"),
];

/// Further overrides if git only reads.
const READ_ONLY_SETTINGS: &[(&str, &str)] = &[
    ("core.attributesFile", NO_FILE),
    ("core.excludesFile", NO_FILE),
    ("core.sshCommand", NO_PROGRAM),
    ("core.alternateRefsCommand", NO_PROGRAM),
    ("core.commitGraph", "true"),
    ("diff.orderFile", NO_FILE),
    ("gpg.format", "openpgp"),
    ("gpg.program", NO_PROGRAM),
    ("gpg.openpgp.program", NO_PROGRAM),
    ("gpg.x509.program", NO_PROGRAM),
    ("gpg.ssh.program", NO_PROGRAM),
    ("gpg.ssh.allowedSignersFile", NO_FILE),
    ("gpg.ssh.revocationFile", NO_FILE),
    ("mailmap.file", NO_FILE),
    ("merge.default", "text"),
    ("stash.showPatch", "false"),
];

/// Environment variables that are set if git only reads.
const READ_ONLY_VARIABLES: &[(&str, &str)] = &[
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_SYSTEM", NO_FILE),
    ("GIT_CONFIG_GLOBAL", NO_FILE),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_ASKPASS", NO_PROGRAM),
    ("SSH_ASKPASS", NO_PROGRAM),
    ("GIT_SSH_COMMAND", NO_PROGRAM),
    ("GIT_SEQUENCE_EDITOR", "true"),
    // Missing objects are not fetched, and no transport is allowed.
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    // git then accepts only repositories in `safe.directory`, which names this one alone.
    ("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1"),
];

/// Keys of the user's configuration that still apply if git only reads: they name no program and no file.
const PRESERVED_USER_SETTINGS: &[&str] = &[
    "advice.*",
    "blame.blankboundary",
    "blame.coloring",
    "blame.date",
    "blame.showemail",
    "blame.showroot",
    "branch.sort",
    "core.abbrev",
    "core.autocrlf",
    "core.checkstat",
    "core.commentchar",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.precomposeunicode",
    "core.quotepath",
    "core.safecrlf",
    "core.symlinks",
    "core.trustctime",
    "core.whitespace",
    "diff.algorithm",
    "diff.context",
    "diff.indentheuristic",
    "diff.interhunkcontext",
    "diff.mnemonicprefix",
    "diff.noprefix",
    "diff.renamelimit",
    "diff.renames",
    "format.pretty",
    "grep.*",
    "i18n.commitencoding",
    "i18n.logoutputencoding",
    "init.defaultbranch",
    "log.abbrevcommit",
    "log.date",
    "log.decorate",
    "log.follow",
    "log.mailmap",
    "merge.conflictstyle",
    "pretty.*",
    "push.default",
    "remote.pushdefault",
    "status.*",
    "tag.sort",
    "user.email",
    "user.name",
    "versionsort.suffix",
];

/// The overrides for one command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct GitSetup {
    /// Configuration keys and values, in order; git uses the last value of a key.
    pub(super) settings: Vec<(String, String)>,
    /// Environment variables.
    pub(super) variables: Vec<(String, String)>,
    /// Files and directories outside the workspace that git needs to read.
    pub(super) reads: Vec<AbsPath>,
}

/// The overrides for a command in a directory, by what git does in it.
pub(super) fn prepare_git(
    terms: GitTerms,
    cwd: &AbsPath,
    roots: &[AbsPath],
    environment: &BTreeMap<String, String>,
) -> Result<GitSetup, Refusal> {
    match terms.usage {
        GitUse::Absent => Ok(GitSetup { settings: read_settings_without_git(cwd), ..GitSetup::default() }),
        GitUse::Granted => Ok(prepare_granted(cwd, environment)),
        GitUse::GrantedReads => {
            Ok(prepare_read_only(GitTerms { usage: GitUse::Reads, ..terms }, cwd, roots, environment)
                .unwrap_or_else(|_| prepare_granted(cwd, environment)))
        }
        GitUse::Mixed | GitUse::Reads => prepare_read_only(terms, cwd, roots, environment).map_err(|why| {
            let message = format!("git cannot be limited to reading here: {why}");
            Refusal::new(Code::ShellFailed, message)
                .hint("add the directory to the workspace, or add an allow rule for this command")
        }),
    }
}

/// The overrides for a command that a rule or the user allowed: the user's helpers stay, those of the repository are
/// overridden.
fn prepare_granted(cwd: &AbsPath, environment: &BTreeMap<String, String>) -> GitSetup {
    let rows = find_git(environment.get("PATH").map_or("", String::as_str))
        .and_then(|git| GitQuery::start(&git, CONFIG_LIST_ARGS, cwd, environment, ("", MAX_CONFIG_BYTES)))
        .and_then(GitQuery::finish)
        .and_then(|answer| parse_config_entries(&answer.output));
    let settings = match rows {
        Some(rows) => {
            let mut settings = base_settings();
            settings.extend(override_repository_settings(&rows, GitUse::Granted));
            settings
        }
        None => read_settings_without_git(cwd),
    };
    GitSetup { settings, ..GitSetup::default() }
}

/// Lists the effective configuration with the origin of each entry.
const CONFIG_LIST_ARGS: &[&str] = &["config", "-z", "--list", "--includes", "--show-scope", "--show-origin"];

fn prepare_read_only(
    terms: GitTerms,
    cwd: &AbsPath,
    roots: &[AbsPath],
    environment: &BTreeMap<String, String>,
) -> Result<GitSetup, String> {
    let roots: Vec<AbsPath> = roots.iter().filter_map(|root| canonicalize(root.as_path())).collect();
    let repository = GitRepository::discover(cwd)?;
    if let Some(why) = repository.as_ref().and_then(|repository| repository.layout_problem(&roots)) {
        return Err(why);
    }
    let mut query_env = environment.clone();
    query_env
        .extend(READ_ONLY_VARIABLES.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    for own in
        ["GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL", "GIT_TEST_ASSUME_DIFFERENT_OWNER"]
    {
        query_env.remove(own);
    }
    query_env.insert("GIT_OPTIONAL_LOCKS".to_owned(), "0".to_owned());
    // The query must not run what it asks about: git runs the file system monitor before it reads the index.
    query_env.extend(as_variables(&base_settings()));
    let git = find_git(environment.get("PATH").map_or("", String::as_str)).ok_or("git is not installed")?;
    let ask = |args: &[&str], input: &str, max: u64| {
        GitQuery::start(&git, args, cwd, &query_env, (input, max)).ok_or("git could not be started")
    };
    // Both queries at once: each costs little more than the start of a process.
    let listed = ask(CONFIG_LIST_ARGS, "", MAX_CONFIG_BYTES)?;
    let submodules = match &repository {
        Some(repository) => list_submodules(repository, &ask)?,
        None => Vec::new(),
    };
    let listed = listed.finish().ok_or("its configuration takes too long to read, or is too large")?;
    if !listed.success {
        return Err("its configuration cannot be read".to_owned());
    }
    let rows =
        parse_config_entries(&listed.output).ok_or("its configuration is not text that can be taken over")?;
    if let Some(why) = repository.as_ref().and_then(|found| found.config_problem(&rows, &roots)) {
        return Err(why);
    }
    if let Some(repository) = repository.as_ref().filter(|_| terms.searches) {
        let files = ask(&["ls-files", "-z", "--full-name", ":/"], "", MAX_INDEX_BYTES)?.finish();
        let files = files.ok_or("its index takes too long to read, or is too large")?;
        if let Some(symlink) = repository.find_followed_symlink(&files.output, &roots) {
            return Err(format!("`{}` leads outside the workspace", symlink.display()));
        }
    }
    let usage = terms.usage;
    let mut out = GitSetup { settings: base_settings(), ..GitSetup::default() };
    out.settings
        .extend(PARTIAL_READ_SETTINGS.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    out.settings.extend(override_repository_settings(&rows, usage));
    out.variables.push(("GIT_NO_LAZY_FETCH".to_owned(), "1".to_owned()));
    if usage == GitUse::Reads {
        out.settings
            .extend(READ_ONLY_SETTINGS.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        out.settings.extend(preserved_user_settings(&rows));
        let variables = READ_ONLY_VARIABLES.iter();
        out.variables.extend(variables.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        if let Some(ignored) = user_excludes(&rows, environment) {
            out.settings.push(("core.excludesFile".to_owned(), ignored.to_string()));
            out.reads.push(ignored);
        }
    }
    for name in submodules {
        out.settings.push((format!("submodule.{name}.ignore"), "dirty".to_owned()));
    }
    if let Some(repository) = &repository {
        if usage == GitUse::Reads {
            out.variables.push(("GIT_ATTR_SOURCE".to_owned(), empty_tree(&rows).to_owned()));
            if repository.is_owned() || is_trusted(&rows, &repository.top) {
                out.settings.push(("safe.directory".to_owned(), repository.top.to_string()));
            }
        }
        out.reads.extend(repository.outside_paths(&roots));
    }
    if out.settings.len() > MAX_OVERRIDES {
        return Err("its configuration names too many programs".to_owned());
    }
    Ok(out)
}

/// The names of the submodules, whose `ignore` key must be overridden so that git does not enter them.
fn list_submodules(
    repository: &GitRepository,
    ask: &impl Fn(&[&str], &str, u64) -> Result<GitQuery, &'static str>,
) -> Result<Vec<String>, &'static str> {
    const TOO_LONG_MESSAGE: &str = "its `.gitmodules` takes too long to read, or is too large";
    let file = repository.top.join(".gitmodules");
    let list = |from: &[&str]| {
        ask(&[&["config", "-z", "--name-only", "--list"], from].concat(), "", MAX_CONFIG_BYTES)
    };
    // In git's order: the file, else that of the index, else that of the last commit.
    let queries = if let Ok(found) = fs::symlink_metadata(&file) {
        if !found.is_file() || found.len() > MAX_CONFIG_BYTES {
            return Err("its `.gitmodules` is not a file, or too large");
        }
        vec![list(&["--file", &file.to_string()])?]
    } else {
        let names = ":.gitmodules\nHEAD:.gitmodules\n";
        let kept =
            ask(&["cat-file", "--batch-check"], names, MAX_CONFIG_BYTES)?.finish().ok_or(TOO_LONG_MESSAGE)?;
        if kept.output == b":.gitmodules missing\nHEAD:.gitmodules missing\n" {
            Vec::new()
        } else {
            vec![list(&["--blob", ":.gitmodules"])?, list(&["--blob", "HEAD:.gitmodules"])?]
        }
    };
    let mut names = Vec::new();
    for query in queries {
        // If git fails in the middle of the file, the part before that still counts.
        let answer = query.finish().ok_or(TOO_LONG_MESSAGE)?;
        names.extend(parse_submodules(&answer.output).ok_or("its `.gitmodules` is not text")?);
    }
    Ok(names)
}

/// Configuration as environment variables (`GIT_CONFIG_COUNT`).
pub(super) fn as_variables(settings: &[(String, String)]) -> Vec<(String, String)> {
    let mut out = vec![("GIT_CONFIG_COUNT".to_owned(), settings.len().to_string())];
    for (index, (key, value)) in settings.iter().enumerate() {
        out.push((format!("GIT_CONFIG_KEY_{index}"), key.clone()));
        out.push((format!("GIT_CONFIG_VALUE_{index}"), value.clone()));
    }
    out
}

fn base_settings() -> Vec<(String, String)> {
    BASE_SETTINGS.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// What a key of the repository's configuration is overridden with.
enum ConfigOverride {
    /// A harmless value.
    Value(&'static str),
    /// The user's own file, else none.
    UserFile,
    /// The user's own program, else this one; none if git only reads.
    UserProgram(&'static str),
}

/// The override for a key that makes git run a program or read a file; `None` for other keys.
fn find_override(row: &GitConfigEntry) -> Option<ConfigOverride> {
    use ConfigOverride::{UserFile, UserProgram, Value};
    let named = row.subsection.is_some();
    Some(match (row.section.as_str(), named, row.variable.as_str()) {
        ("diff", false, "external") | ("diff", true, "command") => Value(BUILTIN_DIFF_COMMAND),
        ("diff", true, "textconv") => Value("cat"),
        ("diff", true, "cachetextconv") | ("filter", true, "required") => Value("false"),
        ("diff", false, "orderfile") | ("mailmap", false, "file") | ("commit", false, "template") => UserFile,
        ("core", false, "excludesfile" | "attributesfile") => UserFile,
        // An empty value disables a filter and a list of helpers.
        ("filter", true, "clean" | "smudge" | "process") | ("credential", _, "helper") => Value(""),
        ("merge", false, "default") => Value("text"),
        ("remote", true, "uploadpack") => Value("git-upload-pack"),
        ("remote", true, "receivepack") => Value("git-receive-pack"),
        ("gpg", true, "program") => match row.subsection.as_deref() {
            Some("ssh") => UserProgram("ssh-keygen"),
            Some("x509") => UserProgram("gpgsm"),
            Some(_) | None => UserProgram("gpg"),
        },
        ("gpg", _, "defaultkeycommand") => UserProgram(""),
        ("alias", ..) => UserProgram("version"),
        ("pager", ..) => UserProgram("false"),
        ("sequence", false, "editor") => Value("true"),
        ("submodule", true, "update") if row.value.starts_with('!') => Value("none"),
        ("submodule", true, "ignore") => Value("dirty"),
        ("difftool" | "mergetool" | "browser" | "man" | "guitool", true, "path" | "cmd") => {
            UserProgram("false")
        }
        ("web" | "help" | "instaweb", false, "browser" | "httpd") => UserProgram("false"),
        ("core" | "interactive" | "uploadpack", false, _) => return None,
        // Names that git, or a later version of it, may use for a program.
        (
            _,
            _,
            "cmd" | "command" | "program" | "helper" | "driver" | "tunnel" | "tocmd" | "cccmd" | "headercmd",
        ) => UserProgram("false"),
        _ => return None,
    })
}

/// The overrides for the keys of the repository's configuration.
fn override_repository_settings(rows: &[GitConfigEntry], usage: GitUse) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> = Vec::new();
    for row in rows.iter().filter(|row| row.of_repository) {
        let key = row.key();
        if out.iter().any(|(known, _)| *known == key) {
            continue;
        }
        match find_override(row) {
            Some(ConfigOverride::Value(value)) => out.push((key, value.to_owned())),
            Some(ConfigOverride::UserProgram(_)) if usage == GitUse::Reads => {
                out.push((key, NO_PROGRAM.to_owned()))
            }
            Some(ConfigOverride::UserFile) if usage == GitUse::Reads => out.push((key, NO_FILE.to_owned())),
            Some(neutral @ (ConfigOverride::UserProgram(_) | ConfigOverride::UserFile)) => {
                let own = rows.iter().rfind(|own| !own.of_repository && own.key() == key);
                let otherwise =
                    if let ConfigOverride::UserProgram(program) = neutral { program } else { NO_FILE };
                out.push((key, own.map_or_else(|| otherwise.to_owned(), |own| own.value.clone())));
            }
            None => {}
        }
    }
    out
}

/// The user's harmless keys that the repository does not set.
fn preserved_user_settings(rows: &[GitConfigEntry]) -> Vec<(String, String)> {
    let listed = |key: &str| {
        PRESERVED_USER_SETTINGS.iter().any(|known| match known.strip_suffix('*') {
            Some(section) => key.starts_with(section),
            None => *known == key,
        })
    };
    rows.iter()
        .filter(|row| !row.of_repository && listed(&row.key()))
        .filter(|row| !rows.iter().any(|other| other.of_repository && other.key() == row.key()))
        .map(|row| (row.key(), row.value.clone()))
        .collect()
}

/// The user's global ignore file, if it exists.
fn user_excludes(rows: &[GitConfigEntry], environment: &BTreeMap<String, String>) -> Option<AbsPath> {
    let home = environment.get("HOME").and_then(|home| AbsPath::new(home).ok());
    let set = rows.iter().rfind(|row| !row.of_repository && row.key() == "core.excludesfile");
    let path = match set {
        Some(row) => match row.value.strip_prefix("~/") {
            Some(rest) => home?.join(rest),
            None => AbsPath::new(&row.value).ok()?,
        },
        None => match environment.get("XDG_CONFIG_HOME").and_then(|dir| AbsPath::new(dir).ok()) {
            Some(dir) => dir.join("git/ignore"),
            None => home?.join(".config/git/ignore"),
        },
    };
    let found = fs::metadata(&path).ok()?;
    (found.is_file() && found.len() <= MAX_CONFIG_BYTES).then_some(path)
}

fn empty_tree(rows: &[GitConfigEntry]) -> &'static str {
    let format = rows.iter().rfind(|row| row.of_repository && row.key() == "extensions.objectformat");
    if format.is_some_and(|row| row.value == "sha256") { EMPTY_TREE_SHA256 } else { EMPTY_TREE }
}

/// Whether the user trusts a repository of another owner.
fn is_trusted(rows: &[GitConfigEntry], top: &AbsPath) -> bool {
    let mut trusted = false;
    for row in rows.iter().filter(|row| !row.of_repository && row.key() == "safe.directory") {
        trusted = match row.value.as_str() {
            // An empty value clears the list.
            "" => false,
            "*" => true,
            value => {
                let below = value.strip_suffix("/*").and_then(|dir| canonicalize(dir.as_ref()));
                trusted
                    || below.is_some_and(|dir| top.is_under(&dir))
                    || canonicalize(value.as_ref()).as_ref() == Some(top)
            }
        };
    }
    trusted
}

/// The overrides for a command line without git, read from the configuration files without starting git.
fn read_settings_without_git(cwd: &AbsPath) -> Vec<(String, String)> {
    let mut out: Vec<(String, String)> =
        BASE_SETTINGS.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let mut above = Some(cwd.clone());
    while let Some(dir) = above {
        let config = dir.join(".git/config");
        let small = fs::metadata(&config).is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_CONFIG_BYTES);
        if small && let Ok(bytes) = fs::read(&config) {
            out.extend(parse_overrides(&String::from_utf8_lossy(&bytes)));
        }
        above = dir.parent();
    }
    out
}

/// The overrides for one configuration file.
fn parse_overrides(config: &str) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let mut section = String::new();
    let mut name = String::new();
    for line in config.lines() {
        let mut line = line.trim();
        if let Some(rest) = line.strip_prefix('[')
            && let Some((head, after)) = rest.split_once(']')
        {
            (section, name) = match head.split_once('"') {
                Some((section, name)) => {
                    let name =
                        name.strip_suffix('"').unwrap_or(name).replace("\\\"", "\"").replace("\\\\", "\\");
                    (section.trim().to_ascii_lowercase(), name)
                }
                None => match head.split_once('.') {
                    Some((section, name)) => (section.trim().to_ascii_lowercase(), name.to_ascii_lowercase()),
                    None => (head.trim().to_ascii_lowercase(), String::new()),
                },
            };
            line = after.trim();
        }
        let key = line.split(['=', ' ', '\t']).next().unwrap_or_default().to_ascii_lowercase();
        let value = match (section.as_str(), name.is_empty(), key.as_str()) {
            ("diff", true, "external") | ("diff", false, "command") => BUILTIN_DIFF_COMMAND,
            ("diff", false, "textconv") => "cat",
            // An empty value disables a filter.
            ("filter", false, "clean" | "smudge" | "process") => "",
            ("filter", false, "required") => "false",
            ("merge", false, "driver") => "false",
            ("credential", _, "helper") => "",
            ("remote", false, "uploadpack") => "git-upload-pack",
            ("remote", false, "receivepack") => "git-receive-pack",
            _ => continue,
        };
        let full =
            if name.is_empty() { format!("{section}.{key}") } else { format!("{section}.{name}.{key}") };
        out.push((full, value.to_owned()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_in_keys_that_the_repository_names_are_found() {
        let config = "[core]\n\teditor = x\n[diff]\n external = evil\n[diff \"Weird \\\"name\"]\n\tTextConv=evil\n\
                      [filter \"f\"] clean = evil\nprocess\t= evil\n[merge \"m\"]\ndriver=evil\n[credential]\nhelper = !evil\n";
        let found: Vec<String> = parse_overrides(config).into_iter().map(|(key, _)| key).collect();
        assert_eq!(
            found,
            [
                "diff.external",
                "diff.Weird \"name.textconv",
                "filter.f.clean",
                "filter.f.process",
                "merge.m.driver",
                "credential.helper"
            ]
        );
        assert_eq!(parse_overrides("[user]\nname = a\n[remote \"o\"]\nurl = x\n"), []);
    }
}
