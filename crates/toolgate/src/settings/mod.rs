//! Settings: which files there are, what stands in them, and what follows for the gate.
//!
//! Raw and resolved are two types.
//! [`LoadedSettings`] is what was found, file by file, with the line of each rule; [`LoadedSettings::policy`] turns it into what
//! the policy engine compiles.
//! A file that is there but cannot be read is an error, never an empty file: it may hold a deny.
//!
//! Among files the stronger layer wins (managed, command line, local, project, user): of single values the strongest
//! counts, lists are pooled, objects are merged key by key.
//! What a project brings may only tighten until it is trusted ([`trust`]); rules that a person granted at a prompt
//! are remembered in [`grants`].

pub mod bind;
mod content_check;
mod document;
mod effective_value;
pub mod grants;
mod locate;
pub mod merge;
mod policy;
mod programs;
mod read;
pub mod schema;
mod shell_config;
mod store;
pub mod trust;
#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make their own files")]
mod untrusted_project_property;
pub mod values;

pub use content_check::content_checks;
pub use effective_value::EffectiveValue;
pub use locate::{SettingSource, SettingsOptions, check_text};
pub use read::SettingsFile;

use std::collections::BTreeMap;
use std::fmt;
use toolgate_files::FileStamp;
use toolgate_policy::{Layer, RawBook};
use toolgate_proto::AbsPath;
use toolgate_proto::timestamp::may_timestamp_repeat;
use trust::{TrustManifest, TrustStatus};
use values::SettingsValues;

/// Everything that was configured.
#[derive(Debug, Clone, Default)]
pub struct LoadedSettings {
    /// The files and other origins, strongest first.
    pub files: Vec<SettingsFile>,
    /// What should be known about them.
    pub notes: Vec<SettingsNote>,
    /// What the project brings that could loosen.
    pub trust_manifest: TrustManifest,
    /// Whether that is trusted.
    pub trust_status: TrustStatus,
    /// All files as one.
    merged: SettingsValues,
    /// The same as it would be written.
    merged_value: serde_json::Value,
    /// The managed files as one.
    managed: SettingsValues,
    /// toolgate's own settings and state, in use or not.
    own_paths: Vec<AbsPath>,
    /// What hooks run, but for programs of the system.
    scripts: Vec<AbsPath>,
    /// What is so wide about the workspace, where the user has not said yes to it.
    wide: Option<&'static str>,
    /// Trust holds for bytes only; not where the user trusts the workspace for one run.
    resolved_by_bytes: bool,
    /// Every place that was looked at, there or not, and what it was like just before it was read.
    watched: Vec<(AbsPath, FileStamp)>,
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

impl LoadedSettings {
    /// The settings of all files as one, by the rule of each key. Entries that stay with their file are in
    /// [`SettingsFile::values`].
    pub fn merged(&self) -> &SettingsValues {
        &self.merged
    }

    /// Merges the files.
    fn merge_files(&mut self) -> Result<(), SettingsError> {
        let files: Vec<_> = self.files.iter().map(SettingsFile::merge_input).collect();
        let managed: Vec<_> = files.iter().filter(|file| file.layer == Layer::Managed).copied().collect();
        let shape = |merged: serde_json::Value| {
            serde_json::from_value::<SettingsValues>(merged).map_err(|error| SettingsError {
                file: "settings".to_owned(),
                line: 1,
                message: format!("the files do not fit together: {error}"),
                fix: read::CORRECT_FILE_HINT.to_owned(),
            })
        };
        let merged = merge::merge(&files);
        (self.merged, self.managed) = (shape(merged.clone())?, shape(merge::merge(&managed))?);
        self.merged_value = merged;
        let mode = &self.merged.permissions.default_mode;
        let mut waiting = Vec::new();
        for file in self.files.iter().filter(|file| !file.trusted) {
            let said = &file.values.permissions.default_mode;
            if said.is_some() && said != mode {
                waiting.push((file, "permissions.defaultMode"));
            }
            if file.book.as_ref().is_some_and(|book| has_allow(&book.content)) {
                waiting.push((file, "policy"));
            }
        }
        let notes: Vec<SettingsNote> = waiting
            .into_iter()
            .map(|(file, key)| SettingsNote {
                file: file.rules.file.clone().unwrap_or_default(),
                line: file.node.nearest_node(&key.split('.').collect::<Vec<_>>()).line,
                message: match key {
                    "policy" => read::inactive_key_message("policy` with `allow"),
                    key => read::inactive_key_message(key),
                },
            })
            .collect();
        self.notes.extend(notes);
        Ok(())
    }

    /// Paths that no rule pre-approves for writing: a change of the settings, or of what hooks run, is a change of the
    /// answer.
    pub fn protected_paths(&self) -> Vec<AbsPath> {
        let files = self.files.iter().filter_map(|file| file.rules.file.as_ref());
        let mut paths: Vec<AbsPath> = files.filter_map(|file| AbsPath::new(file).ok()).collect();
        paths.extend(self.own_paths.iter().chain(&self.scripts).cloned());
        paths.sort_unstable();
        paths.dedup();
        paths
    }

    /// Files of toolgate's own that hold secrets, and so are not for commands to read.
    pub fn secret_paths(state_dir: &AbsPath) -> Vec<AbsPath> {
        vec![state_dir.join("mcp-credentials.json")]
    }

    /// What must be said yes to, where the workspace is as wide as the home directory and the user has not yet.
    pub fn wide_question(&self) -> Option<String> {
        self.wide.map(|width| {
            format!(
                "the workspace is {width}, so tools could read and change everything in it; work in a project's \
                 directory, or say yes once with `toolgate trust workspace`"
            )
        })
    }

    /// The question about a workspace as wide as the home directory, until the user says yes to it. Names of files may
    /// be listed; everything else asks, whatever rules and modes say.
    fn wide_book(&self) -> Option<RawBook> {
        let message = self.wide_question()?;
        let rules = serde_json::json!([
            { "tool": "ls", "action": "allow" },
            { "tool": "*", "action": "ask", "message": message },
        ]);
        let mut book = RawBook::new(Layer::Default, serde_json::json!({ "rules": rules }));
        book.tighten_only = true;
        Some(book)
    }

    /// Whether a project that is not trusted forbids anything, which may be the tool that screens calls for the user.
    pub(crate) fn has_untrusted_denials(&self) -> bool {
        self.files.iter().filter(|file| !file.trusted).any(|file| {
            let shape = &file.values;
            let rules = [&file.rules.deny, &file.rules.ask].into_iter().any(|rules| !rules.is_empty());
            let tools = [&shape.disabled_tools, &shape.managed.disabled_tools];
            rules || file.book.is_some() || tools.into_iter().any(|tools| !tools.is_empty())
        })
    }

    /// Why a hook of a trusted project is not trusted itself.
    pub(crate) fn unresolved_hook(&self, handler: &values::HookHandler) -> Option<String> {
        if !self.resolved_by_bytes {
            return None;
        }
        let key = bind::hook_key(handler);
        let unresolved = &self.trust_manifest.unresolved;
        let found = unresolved.iter().find(|it| it.key == key || it.key.is_empty());
        found.map(|it| {
            format!(
                "what it runs cannot be bound to bytes: {}; name a script of the project, or move the hook to your own \
                 settings",
                it.why
            )
        })
    }

    /// Whether a server of a trusted project is not trusted itself.
    pub(crate) fn is_unresolved_server(&self, name: &str) -> bool {
        let unresolved = &self.trust_manifest.unresolved;
        self.resolved_by_bytes && unresolved.iter().any(|it| it.key == name || it.key.is_empty())
    }

    /// The layers found, for showing.
    pub fn layers(&self) -> Vec<(Layer, Option<String>)> {
        self.files.iter().map(|file| (file.rules.layer, file.rules.file.clone())).collect()
    }

    /// Environment variables for commands and hooks; of each, the strongest file's.
    pub fn env(&self) -> BTreeMap<String, String> {
        self.merged().env.clone()
    }

    /// Whether the hooks of a file count.
    pub(crate) fn are_hooks_active(&self, file: &SettingsFile) -> bool {
        if self.managed.disable_all_hooks == Some(true) {
            return false;
        }
        let managed_only = self.merged().allow_managed_hooks_only == Some(true);
        file.rules.layer == Layer::Managed
            || !managed_only && self.merged().disable_all_hooks != Some(true) && !file.values.hooks.is_empty()
    }

    /// The lists of addresses that HTTP hooks may use; an address must be in each.
    pub(crate) fn http_hook_urls(&self) -> Vec<Vec<String>> {
        self.files.iter().filter_map(|file| file.values.allowed_http_hook_urls.clone()).collect()
    }

    /// Of the variables that a hook lists, those that every file lets it.
    pub(crate) fn http_hook_variables(&self, listed: &[String]) -> Vec<String> {
        let lists: Vec<&Vec<String>> =
            self.files.iter().filter_map(|file| file.values.http_hook_allowed_env_vars.as_ref()).collect();
        listed.iter().filter(|name| lists.iter().all(|list| list.contains(name))).cloned().collect()
    }

    /// Whether a file has changed, come or gone since it was read. Looks at each, and reads none.
    pub(crate) fn is_stale(&self) -> bool {
        self.watched.iter().any(|(path, then)| {
            let unsettled = match then {
                // Written so shortly before it was read that a second write may carry the same time.
                FileStamp::Present { changed, .. } => may_timestamp_repeat(*changed, self.read_at),
                FileStamp::Absent => false,
            };
            unsettled || toolgate_files::read_file_stamp(path) != *then
        })
    }

    /// Looks at a place just before it is read.
    fn watch(&mut self, path: &AbsPath) {
        let mut seen = (path.clone(), toolgate_files::read_file_stamp(path));
        // What is missing with its directory can only come with it, and one look serves all that would be in there.
        while let (path, FileStamp::Absent) = &seen
            && let Some(above) =
                path.parent().filter(|above| toolgate_files::read_file_stamp(above) == FileStamp::Absent)
        {
            seen.0 = above;
        }
        if !self.watched.contains(&seen) {
            self.watched.push(seen);
        }
    }

    /// The MCP servers whose tools are hooks.
    pub fn hook_servers(&self) -> Vec<String> {
        crate::hooks::hook_tool_servers(self)
    }
}

/// Whether a rule book allows anything.
fn has_allow(book: &serde_json::Value) -> bool {
    let allows = |value: Option<&serde_json::Value>| value.and_then(|it| it.as_str()) == Some("allow");
    let rules = book.get("rules").and_then(serde_json::Value::as_array);
    allows(book.get("defaultAction")) || rules.into_iter().flatten().any(|rule| allows(rule.get("action")))
}
