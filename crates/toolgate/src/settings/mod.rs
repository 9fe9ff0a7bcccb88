//! Settings: which files there are, what stands in them, and what follows for the gate.
//!
//! Raw and resolved are two types.
//! [`Settings`] is what was found, file by file, with the line of each rule; [`Settings::policy`] turns it into what
//! the policy engine compiles.
//! A file that is there but cannot be read is an error, never an empty file: it may hold a deny.
//!
//! Among files the stronger layer wins (managed, command line, local, project, user): of single values the strongest
//! counts, lists are pooled, objects are merged key by key.
//! What a project brings may only tighten until it is trusted ([`trust`]); rules that a person granted at a prompt
//! are remembered in [`grants`].

mod document;
mod effective;
pub mod grants;
mod guard;
mod judging;
mod locate;
mod read;
mod sandbox;
pub mod schema;
pub mod shape;
mod store;
pub mod trust;

pub use effective::Effective;
pub use guard::content_checks;
pub use judging::Judging;
pub use locate::{SettingSource, SettingsOptions, check_text};
pub use read::SettingsFile;
pub use sandbox::SandboxPart;

use std::collections::BTreeMap;
use std::fmt;
use toolgate_os::Stamp;
use toolgate_policy::{Layer, RawPolicy};
use toolgate_proto::{AbsPath, Mode};
use trust::{Brought, Standing};

/// The coarsest clock of file times that is in use, in nanoseconds.
const SETTLED: i128 = 20_000_000;

/// Everything that was configured.
#[derive(Debug, Clone, Default)]
pub struct Settings {
    /// The files and other origins, strongest first.
    pub files: Vec<SettingsFile>,
    /// What should be known about them.
    pub notes: Vec<SettingsNote>,
    /// What the project brings that could loosen.
    pub brought: Brought,
    /// Whether that is trusted.
    pub standing: Standing,
    /// Every place that was looked at, there or not, and what it was like just before it was read.
    watched: Vec<(AbsPath, Stamp)>,
    /// When they were read: nanoseconds since 1970.
    read_at: i128,
}

/// Something about a settings file that a person should know, but that stops nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsNote {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is the matter.
    pub message: String,
}

impl fmt::Display for SettingsNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

/// A settings file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}\n  hint: {fix}")]
pub struct SettingsError {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is the matter.
    pub message: String,
    /// What to do about it.
    pub fix: String,
}

impl Settings {
    /// The rules and the mode. A mode given on the command line comes first, then the strongest file's.
    pub fn policy(&self, mode: Option<Mode>) -> RawPolicy {
        let mut policy = RawPolicy {
            layers: self.files.iter().map(|file| file.rules.clone()).collect(),
            mode: mode.or_else(|| self.files.iter().find_map(|file| file.mode)).unwrap_or_default(),
            ..RawPolicy::default()
        };
        judging::gather(self.files.iter().map(|file| &file.judging), &mut policy);
        policy.managed.disabled_tools = self.disabled_tools();
        // Whoever can change the settings can change the answer.
        let files = self.files.iter().filter_map(|file| file.rules.file.as_ref());
        policy.protected_paths = files.filter_map(|file| AbsPath::new(file).ok()).collect();
        policy
    }

    /// Directories beside the workspace in which the session may work.
    pub fn additional_directories(&self) -> Vec<AbsPath> {
        self.files.iter().flat_map(|file| file.additional_directories.clone()).collect()
    }

    /// Tools that are switched off.
    pub fn disabled_tools(&self) -> Vec<String> {
        let named = |file: &SettingsFile| {
            [file.shape.disabled_tools.clone(), file.shape.managed.disabled_tools.clone()]
        };
        self.files.iter().flat_map(named).flatten().collect()
    }

    /// The layers found, for showing.
    pub fn layers(&self) -> Vec<(Layer, Option<String>)> {
        self.files.iter().map(|file| (file.rules.layer, file.rules.file.clone())).collect()
    }

    /// Only managed allow rules count. Any file may say so: it only tightens.
    pub fn managed_rules_only(&self) -> bool {
        self.files.iter().any(|file| file.judging.managed_rules_only == Some(true))
    }

    /// Mode bypass is taken away. Any file may do that: it only tightens.
    pub fn bypass_disabled(&self) -> bool {
        self.files.iter().any(|file| file.judging.disable_bypass == Some(true))
    }

    /// Whatever would be asked is denied at once.
    pub fn denies_instead_of_asking(&self) -> bool {
        self.files.iter().any(|file| file.shape.permissions.deny_instead_of_prompting == Some(true))
    }

    /// Environment variables for commands and hooks; of each, the strongest file's.
    pub fn env(&self) -> BTreeMap<String, String> {
        let mut env = BTreeMap::new();
        for file in self.files.iter().filter(|file| file.trusted) {
            for (name, value) in &file.shape.env {
                env.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        env
    }

    /// Whether the hooks of a file count.
    pub(crate) fn hooks_count(&self, file: &SettingsFile) -> bool {
        if !file.trusted {
            return false;
        }
        let managed = file.rules.layer == Layer::Managed;
        let disabled = |by: &&SettingsFile| by.trusted && by.shape.disable_all_hooks.is_some();
        if self.managed().any(|by| by.shape.disable_all_hooks == Some(true)) {
            return false;
        }
        if managed {
            return true;
        }
        let managed_only = self.managed().any(|by| by.shape.allow_managed_hooks_only == Some(true));
        let off = self.files.iter().find(disabled).and_then(|by| by.shape.disable_all_hooks);
        !managed_only && off != Some(true)
    }

    /// The lists of addresses that HTTP hooks may use; an address must be in each.
    pub(crate) fn http_hook_urls(&self) -> Vec<Vec<String>> {
        self.files.iter().filter_map(|file| file.shape.allowed_http_hook_urls.clone()).collect()
    }

    /// Of the variables that a hook lists, those that every file lets it.
    pub(crate) fn http_hook_variables(&self, listed: &[String]) -> Vec<String> {
        let lists: Vec<&Vec<String>> =
            self.files.iter().filter_map(|file| file.shape.http_hook_allowed_env_vars.as_ref()).collect();
        listed.iter().filter(|name| lists.iter().all(|list| list.contains(name))).cloned().collect()
    }

    /// Whether a file has changed, come or gone since it was read. Looks at each, and reads none.
    pub(crate) fn is_stale(&self) -> bool {
        self.watched.iter().any(|(path, then)| {
            let unsettled = match then {
                // Written so shortly before it was read that a second write may carry the same time.
                Stamp::Present { changed, .. } => changed + SETTLED > self.read_at,
                Stamp::Absent => false,
            };
            unsettled || toolgate_os::stamp(path) != *then
        })
    }

    /// Looks at a place just before it is read.
    fn watch(&mut self, path: &AbsPath) {
        let mut seen = (path.clone(), toolgate_os::stamp(path));
        // What is missing with its directory can only come with it, and one look serves all that would be in there.
        while let (path, Stamp::Absent) = &seen
            && let Some(above) = path.parent().filter(|above| toolgate_os::stamp(above) == Stamp::Absent)
        {
            seen.0 = above;
        }
        if !self.watched.contains(&seen) {
            self.watched.push(seen);
        }
    }

    /// The MCP servers whose tools are hooks.
    pub fn hook_servers(&self) -> Vec<String> {
        crate::hooks::tool_servers(self)
    }

    fn managed(&self) -> impl Iterator<Item = &SettingsFile> {
        self.files.iter().filter(|file| file.rules.layer == Layer::Managed)
    }
}
