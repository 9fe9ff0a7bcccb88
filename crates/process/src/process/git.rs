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

mod overrides;
mod query;
mod referenced_files;
mod repository;
mod worktree;

use overrides::{
    EMPTY_TREE, EMPTY_TREE_SHA256, PARTIAL_READ_SETTINGS, READ_ONLY_SETTINGS, READ_ONLY_VARIABLES,
    base_settings, override_repository_settings, preserved_user_settings, read_settings_without_git,
};
use query::{
    GitConfigEntry, GitQuery, MAX_CONFIG_BYTES, MAX_INDEX_BYTES, find_git, parse_config_entries,
    parse_submodules,
};
pub use referenced_files::find_git_referenced_files;
use repository::{GitRepository, canonicalize};
use std::collections::BTreeMap;
use std::fs;
use toolgate_proto::{AbsPath, Code, GitTerms, GitUse, Refusal};
pub use worktree::{GitWorktree, GitWorktrees, WORKTREE_FOLDER, WorktreeChanges};

/// The most overrides: the environment of a process is limited.
const MAX_OVERRIDES: usize = 2_000;

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
        GitUse::GrantedReads => Ok(prepare_read_only(
            GitTerms::new(GitUse::Reads).with_searches(terms.searches),
            cwd,
            roots,
            environment,
        )
        .unwrap_or_else(|_| prepare_granted(cwd, environment))),
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

/// The overrides for a command that was allowed because git only reads in it.
///
/// # Errors
/// Returns the reason if the repository or its configuration points outside the workspace, or cannot be read.
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
    let query_env = query_environment(environment);
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
    let rows = parse_config_entries(&listed.output).ok_or("its configuration is not valid UTF-8")?;
    if let Some(why) = repository.as_ref().and_then(|found| found.config_problem(&rows, &roots)) {
        return Err(why);
    }
    if let Some(repository) = repository.as_ref().filter(|_| terms.searches) {
        let files = ask(&["ls-files", "-z", "--full-name", ":/"], "", MAX_INDEX_BYTES)?.finish();
        let files = files.ok_or("its index takes too long to read, or is too large")?;
        if let Some(symlink) = repository.find_followed_symlink(&files.output, &roots) {
            return Err(format!("`{}` points outside the workspace", symlink.display()));
        }
    }
    let mut out = read_only_setup(&rows, terms.usage, environment);
    for name in submodules {
        out.settings.push((format!("submodule.{name}.ignore"), "dirty".to_owned()));
    }
    if let Some(repository) = &repository {
        if terms.usage == GitUse::Reads {
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

/// The environment variables for a query: the user's own configuration counts, and nothing is run or fetched.
fn query_environment(environment: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    const USER_CONFIG_VARIABLES: [&str; 4] =
        ["GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL", "GIT_TEST_ASSUME_DIFFERENT_OWNER"];
    let mut out = environment.clone();
    out.extend(to_owned_pairs(READ_ONLY_VARIABLES));
    for name in USER_CONFIG_VARIABLES {
        out.remove(name);
    }
    out.insert("GIT_OPTIONAL_LOCKS".to_owned(), "0".to_owned());
    // The query must not run what it asks about: git runs the file system monitor before it reads the index.
    out.extend(as_variables(&base_settings()));
    out
}

/// The overrides that do not depend on the layout of the repository.
fn read_only_setup(
    rows: &[GitConfigEntry],
    usage: GitUse,
    environment: &BTreeMap<String, String>,
) -> GitSetup {
    let mut out = GitSetup { settings: base_settings(), ..GitSetup::default() };
    out.settings.extend(to_owned_pairs(PARTIAL_READ_SETTINGS));
    out.settings.extend(override_repository_settings(rows, usage));
    out.variables.push(("GIT_NO_LAZY_FETCH".to_owned(), "1".to_owned()));
    if usage == GitUse::Reads {
        out.settings.extend(to_owned_pairs(READ_ONLY_SETTINGS));
        out.settings.extend(preserved_user_settings(rows));
        out.variables.extend(to_owned_pairs(READ_ONLY_VARIABLES));
        if let Some(excludes) = user_excludes(rows, environment) {
            out.settings.push(("core.excludesFile".to_owned(), excludes.to_string()));
            out.reads.push(excludes);
        }
    }
    out
}

fn to_owned_pairs<'p>(pairs: &'p [(&str, &str)]) -> impl Iterator<Item = (String, String)> + use<'p> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
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

/// The hash of the empty tree in the repository's hash function.
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
