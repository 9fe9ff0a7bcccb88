//! The environment variables of a command.
//!
//! A command inherits the environment variables of toolgate that are on an allow-list; every other environment variable is
//! withheld, above all tokens and keys.
//! Settings can pass on more by name, or by a pattern with `*`; a name that looks like a secret must be given in full.
//! Environment variables that choose programs for the shell or the dynamic linker are never inherited.

use std::collections::BTreeMap;
use std::ffi::CString;
use toolgate_files::DEFAULT_SEARCH_PATH;
use toolgate_proto::secret_names::is_secret_variable;
use toolgate_proto::wildcard::WildcardPattern;
use toolgate_proto::{AbsPath, GitTerms, Refusal};

/// Environment variables that every command inherits.
const ALLOWED_VARIABLES: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "NO_COLOR",
    "COLUMNS",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_RUNTIME_DIR",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "CARGO_TARGET_DIR",
    "RUST_BACKTRACE",
    "RUSTFLAGS",
    "GOPATH",
    "GOROOT",
    "GOCACHE",
    "GOMODCACHE",
    "GOFLAGS",
    "JAVA_HOME",
    "MAVEN_HOME",
    "GRADLE_USER_HOME",
    "NVM_DIR",
    "NODE_ENV",
    "NPM_CONFIG_CACHE",
    "PNPM_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "VOLTA_HOME",
    "PYENV_ROOT",
    "PYENV_VERSION",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "RBENV_ROOT",
    "GEM_HOME",
    "CC",
    "CXX",
    "CFLAGS",
    "CXXFLAGS",
    "LDFLAGS",
    "MAKEFLAGS",
    "PKG_CONFIG_PATH",
    "CMAKE_PREFIX_PATH",
    "MANPATH",
    "INFOPATH",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "CI",
    "ANDROID_HOME",
    "SDKROOT",
    "DOTNET_ROOT",
    "NIX_PATH",
    "SOURCE_DATE_EPOCH",
];

/// Environment variables that choose what code runs: settings can set them, but never pass on toolgate's own.
const BLOCKED_VARIABLES: &[&str] =
    &["LD_*", "DYLD_*", "BASH_FUNC_*", "BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PS4", "IFS", "GIT_*"];

/// Whether git may run helpers that a repository chooses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GitHelpers {
    /// Hooks, file watchers, pagers and external diffs of a repository do not run.
    #[default]
    Off,
    /// They run, as in the user's own shell.
    On,
}

/// The environment variables of a command.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandEnvironment {
    /// Names and values, each name once.
    entries: BTreeMap<String, String>,
    /// Names of toolgate's variables that the command does not inherit.
    pub withheld: Vec<String>,
}

impl CommandEnvironment {
    /// Filters an environment: keeps the variables that the allow-list or the patterns of `pass` match, and adds `set`.
    pub fn from_filtered(
        from: &BTreeMap<String, String>,
        pass: &[String],
        set: &BTreeMap<String, String>,
    ) -> Self {
        let mut out = Self::default();
        for (name, value) in from {
            if is_allowed_variable(name, pass) {
                out.entries.insert(name.clone(), value.clone());
            } else {
                out.withheld.push(name.clone());
            }
        }
        out.entries.entry("PATH".to_owned()).or_insert_with(|| DEFAULT_SEARCH_PATH.to_owned());
        // There is no terminal: programs must not page, colour their output or prompt.
        for (name, value) in [
            ("TERM", "dumb"),
            ("PAGER", "cat"),
            ("GIT_PAGER", "cat"),
            ("GIT_EDITOR", "true"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("DEBIAN_FRONTEND", "noninteractive"),
        ] {
            out.entries.insert(name.to_owned(), value.to_owned());
        }
        out.entries.extend(set.clone());
        out
    }

    /// Sets one variable.
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        self.entries.insert(name.to_owned(), value.into());
    }

    /// Sets every variable for the temporary directory.
    pub fn set_temp_dir(&mut self, dir: &AbsPath) {
        for name in ["TMPDIR", "TMP", "TEMP"] {
            self.set(name, dir.to_string());
        }
    }

    /// Overrides the git configuration by which a repository could make git run programs or show files, for a command line
    /// that uses git on these terms in this directory, in a workspace of these roots.
    /// Returns the paths outside the workspace that git needs to read.
    ///
    /// # Errors
    /// Refuses if git was approved only because it reads, and the repository points outside the workspace or its
    /// configuration cannot be read.
    pub fn restrict_git(
        &mut self,
        helpers: GitHelpers,
        terms: GitTerms,
        cwd: &AbsPath,
        roots: &[AbsPath],
    ) -> Result<Vec<AbsPath>, Refusal> {
        if helpers == GitHelpers::On {
            return Ok(Vec::new());
        }
        let setup = super::git::prepare_git(terms, cwd, roots, &self.entries)?;
        self.entries.extend(super::git::as_variables(&setup.settings));
        for (name, value) in setup.variables {
            self.set(&name, value);
        }
        // git uses the first proxy of the configuration, so that an override cannot replace the repository's.
        self.set("GIT_PROXY_COMMAND", "");
        // Without this, `git status` writes the index.
        self.set("GIT_OPTIONAL_LOCKS", "0");
        Ok(setup.reads)
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.entries.get(name).map(String::as_str)
    }

    /// Every variable with its value.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &str)> {
        self.entries.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// The variables as C strings for `execve`. A variable with a null byte is left out.
    pub(super) fn to_envp(&self) -> Vec<CString> {
        self.entries.iter().filter_map(|(name, value)| CString::new(format!("{name}={value}")).ok()).collect()
    }
}

fn is_allowed_variable(name: &str, pass: &[String]) -> bool {
    if BLOCKED_VARIABLES.iter().any(|pattern| matches_pattern(pattern, name)) {
        return false;
    }
    if pass.iter().any(|exact| exact == name) {
        return true;
    }
    let listed = ALLOWED_VARIABLES.contains(&name) || name.starts_with("LC_");
    (listed || pass.iter().any(|pattern| matches_pattern(pattern, name))) && !is_secret_variable(name)
}

fn matches_pattern(pattern: &str, name: &str) -> bool {
    WildcardPattern::new(pattern).matches(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(names: &[&str], pass: &[&str]) -> Vec<String> {
        let from = names.iter().map(|name| ((*name).to_owned(), "v".to_owned())).collect();
        let pass: Vec<String> = pass.iter().map(|name| (*name).to_owned()).collect();
        let cut = CommandEnvironment::from_filtered(&from, &pass, &BTreeMap::new());
        names.iter().filter(|name| cut.get(name) == Some("v")).map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn secrets_are_withheld_unless_named_in_full() {
        let names = [
            "HOME",
            "LC_ALL",
            "GITHUB_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "MY_FLAG",
            "MY_API_KEY",
            "NPM_TOKEN",
            "LD_PRELOAD",
            "BASH_FUNC_ls%%",
            "BASH_ENV",
            "GIT_SSH_COMMAND",
        ];
        assert_eq!(cut(&names, &[]), ["HOME", "LC_ALL"]);
        assert_eq!(cut(&names, &["MY_*"]), ["HOME", "LC_ALL", "MY_FLAG"]);
        assert_eq!(cut(&names, &["MY_*", "MY_API_KEY"]), ["HOME", "LC_ALL", "MY_FLAG", "MY_API_KEY"]);
        assert_eq!(cut(&names, &["*", "LD_PRELOAD"]), ["HOME", "LC_ALL", "MY_FLAG"]);
    }

    #[test]
    fn the_allow_list_has_no_secrets() {
        for name in ALLOWED_VARIABLES {
            assert!(!is_secret_variable(name), "{name}");
        }
    }
}
