//! Settings: finding, reading, merging and explaining the settings files.
//!
//! [`SettingsOptions`] says where the files are. [`LoadedSettings`] is what they contain, file by file and merged, with
//! the line of each rule for messages; [`LoadedSettings::policy`] turns it into the input of the policy compiler.
//! A file that exists and cannot be read or parsed is an error, never an empty file: it may contain a deny rule.
//!
//! Files belong to layers: managed, command line, local, project, user, the strongest first. [`merge`] declares for
//! each key how values of several files are combined.
//! An untrusted project can only restrict ([`trust`]); rules that the user granted at a prompt are stored in
//! [`grants`].
//!
//! ```
//! use toolgate::AbsPath;
//! use toolgate::settings::{LoadedSettings, SettingsOptions};
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # std::fs::create_dir(dir.path().join(".toolgate")).unwrap();
//! let file = dir.path().join(".toolgate/settings.json");
//! std::fs::write(file, r#"{ "permissions": { "deny": ["WebFetch"], "allow": ["ls"] } }"#).unwrap();
//!
//! let mut options = SettingsOptions::new(AbsPath::new(dir.path()).unwrap());
//! options.managed_dirs.clear();
//! let settings = LoadedSettings::load(&options)?;
//! let project = &settings.files[0];
//! assert_eq!(project.rules.deny[0].text, "WebFetch");
//! assert!(project.rules.allow.is_empty(), "the project is not trusted");
//! assert!(settings.notes[0].message.contains("`permissions.allow` has no effect"));
//! # Ok::<(), toolgate::settings::SettingsError>(())
//! ```

pub mod bind;
mod code_runners;
pub(crate) mod config_tool;
mod content_check;
mod effective_value;
mod entry_spelling;
mod format;
pub mod grants;
mod intended_key;
mod key_spelling;
mod key_synonyms;
mod lay_out_rules;
mod lint;
mod load;
mod mcp_names;
pub mod merge;
mod model_access;
mod node;
mod policy;
mod read;
pub mod schema;
mod setting_places;
mod shell_config;
pub(crate) mod state_file;
pub mod trust;
mod trusted_hooks;
pub mod values;
#[cfg(feature = "web")]
mod web_config;
mod web_section;
mod wrong_hooks;

pub use content_check::content_checks;
pub use effective_value::EffectiveValue;
pub use entry_spelling::SYSLOG_ANCHOR;
pub(crate) use entry_spelling::builtin_names;
pub use format::format_rules;
pub use lint::{SettingsProblem, find_unusable_hooks, lint_settings, lint_text, lint_text_of_workspace};
pub use load::{SettingSource, SettingsOptions, check_text, parse_settings_text};
pub use mcp_names::MCP_PINS_FILE;
pub use model_access::{ModelAccess, model_access};
pub use read::SettingsFile;

use crate::plugins::{KnownMarketplaces, PluginSet};
use crate::skills::CapabilityScope;
use std::collections::BTreeMap;
use std::fmt;
use toolgate_files::FileStamp;
use toolgate_policy::{Layer, RawBook};
use toolgate_proto::AbsPath;
use toolgate_proto::timestamp::may_timestamp_repeat;
use trust::{TrustManifest, TrustStatus};
use trusted_hooks::TrustedHooks;
use values::SettingsValues;

/// The settings of all files, separately and merged.
#[derive(Debug, Clone, Default)]
pub struct LoadedSettings {
    /// The files and `--settings`, the strongest first.
    pub files: Vec<SettingsFile>,
    /// Notes for the user, such as unknown or inactive keys.
    pub notes: Vec<SettingsNote>,
    /// What trust in the project would activate.
    pub trust_manifest: TrustManifest,
    /// Whether the project is trusted.
    pub trust_status: TrustStatus,
    /// The project's root, and its hooks as they were trusted, if it changed since.
    lapsed_hooks: Option<(AbsPath, TrustedHooks)>,
    /// The merged values of all files.
    merged: SettingsValues,
    /// The merged values as JSON, to find out which file's value applies.
    merged_value: serde_json::Value,
    /// The merged values of the managed files, which the command line cannot override.
    managed: SettingsValues,
    /// The directories of toolgate's own settings and state, whether they exist or not.
    own_paths: Vec<AbsPath>,
    /// The user's own file, in which an allow rule counts without trust, whether it exists or not.
    user_file: Option<AbsPath>,
    /// The files that hooks execute, except system programs.
    scripts: Vec<AbsPath>,
    /// The plugins.
    plugins: PluginSet,
    /// Why the workspace is unusually wide, if the user has not accepted it.
    wide: Option<&'static str>,
    /// Trust covers only commands that are bound to files. False with `--trust-workspace`, which covers all.
    resolved_by_bytes: bool,
    /// Each path that was read or found missing, with its stamp from just before.
    watched: Vec<(AbsPath, FileStamp)>,
    /// When the files were read, in nanoseconds since 1970.
    read_at: i128,
}

/// A note about a settings file. It does not prevent the use of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SettingsNote {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The note.
    pub message: String,
}

impl fmt::Display for SettingsNote {
    /// Formats as `file:line: message`, like compiler diagnostics.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

/// A settings or state file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}\n  hint: {fix}")]
#[non_exhaustive]
pub struct SettingsError {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// Why it cannot be used.
    pub message: String,
    /// How to fix it.
    pub fix: String,
}

impl LoadedSettings {
    /// The merged values of all files. Keys that are not merged, such as rules and hooks, are in
    /// [`SettingsFile::values`].
    pub fn merged(&self) -> &SettingsValues {
        &self.merged
    }

    /// The merged values of all files as JSON.
    pub fn merged_json(&self) -> &serde_json::Value {
        &self.merged_value
    }

    /// The plugins, with what holds for each.
    pub fn plugins(&self) -> &PluginSet {
        &self.plugins
    }

    /// Where plugins may come from.
    pub fn known_marketplaces(&self) -> KnownMarketplaces {
        KnownMarketplaces::read(self.merged().strict_known_marketplaces.as_ref())
    }

    /// Whether the hooks of plugins run.
    pub(crate) fn are_plugin_hooks_active(&self) -> bool {
        self.managed.disable_all_hooks != Some(true)
            && self.merged().allow_managed_hooks_only != Some(true)
            && self.merged().disable_all_hooks != Some(true)
    }

    /// Whether hooks of skills and agents of this scope run.
    pub(crate) fn are_hooks_of_scope_active(&self, scope: &CapabilityScope) -> bool {
        match scope {
            CapabilityScope::Managed => self.managed.disable_all_hooks != Some(true),
            CapabilityScope::Personal | CapabilityScope::Project | CapabilityScope::Plugin => {
                self.are_plugin_hooks_active()
            }
        }
    }

    /// Merges the files, and adds notes for values of untrusted files that only the merge shows to be inactive.
    fn merge_files(&mut self) -> Result<(), SettingsError> {
        let files: Vec<_> = self.files.iter().map(SettingsFile::merge_input).collect();
        let managed: Vec<_> = files.iter().filter(|file| file.layer == Layer::Managed).copied().collect();
        let to_values = |merged: serde_json::Value| {
            serde_json::from_value::<SettingsValues>(merged).map_err(|error| SettingsError {
                file: "settings".to_owned(),
                line: 1,
                message: format!("the settings files cannot be merged: {error}"),
                fix: read::CORRECT_FILE_HINT.to_owned(),
            })
        };
        let merged = merge::merge(&files);
        (self.merged, self.managed) = (to_values(merged.clone())?, to_values(merge::merge(&managed))?);
        self.merged_value = merged;
        let mode = &self.merged.permissions.default_mode;
        let mut inactive = Vec::new();
        for file in self.files.iter().filter(|file| !file.trusted) {
            let file_mode = &file.values.permissions.default_mode;
            if file_mode.is_some() && file_mode != mode {
                inactive.push((file, "permissions.defaultMode"));
            }
            if file.book.as_ref().is_some_and(|book| has_allow(&book.content)) {
                inactive.push((file, "policy"));
            }
        }
        let notes: Vec<SettingsNote> = inactive
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

    /// Paths that no rule and no mode pre-approves for writing: a change to settings, or to a script of a hook, would
    /// change later verdicts.
    pub fn protected_paths(&self) -> Vec<AbsPath> {
        let files = self.files.iter().filter_map(|file| file.rules.file.as_ref());
        let mut paths: Vec<AbsPath> = files.filter_map(|file| AbsPath::new(file).ok()).collect();
        paths.extend(self.own_paths.iter().chain(&self.scripts).cloned());
        paths.sort_unstable();
        paths.dedup();
        paths
    }

    /// Files of toolgate that contain secrets; commands may not read them.
    pub fn secret_paths(state_dir: &AbsPath) -> Vec<AbsPath> {
        vec![state_dir.join("mcp-credentials.json")]
    }

    /// The warning about a workspace that contains the home directory, until the user accepts it.
    pub fn wide_question(&self) -> Option<String> {
        self.wide.map(|width| {
            format!(
                "the workspace is {width}, so tools could read and change everything in it; work in a project \
                 directory, or accept this workspace once with `toolgate trust workspace`"
            )
        })
    }

    /// The rules for a workspace that contains the home directory, until the user accepts it: `ls` may list names, and
    /// every other call asks, whatever other rules and modes say.
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

    /// Whether an untrusted project denies anything: it could deny the tool of a hook that screens calls.
    pub(crate) fn has_untrusted_denials(&self) -> bool {
        self.files.iter().filter(|file| !file.trusted).any(|file| {
            let values = &file.values;
            let rules = [&file.rules.deny, &file.rules.ask].into_iter().any(|rules| !rules.is_empty());
            let tools = [&values.disabled_tools, &values.managed.disabled_tools];
            rules || file.book.is_some() || tools.into_iter().any(|tools| !tools.is_empty())
        })
    }

    /// Why trust in the project does not cover this hook, if it does not.
    pub(crate) fn unresolved_hook(&self, handler: &values::HookHandler) -> Option<String> {
        if !self.resolved_by_bytes {
            return None;
        }
        let key = bind::hook_key(handler);
        let unresolved = &self.trust_manifest.unresolved;
        let found = unresolved.iter().find(|command| command.key == key || command.key.is_empty());
        found.map(|command| {
            format!(
                "trust does not cover this hook, because the files that it runs are unknown: {}; name a script of the \
                 project, or move the hook to your own settings",
                command.why
            )
        })
    }

    /// Whether trust in the project does not cover this server.
    pub(crate) fn is_unresolved_server(&self, name: &str) -> bool {
        let unresolved = &self.trust_manifest.unresolved;
        self.resolved_by_bytes
            && unresolved.iter().any(|command| command.key == name || command.key.is_empty())
    }

    /// The layer and the name of each file.
    pub fn layers(&self) -> Vec<(Layer, Option<String>)> {
        self.files.iter().map(|file| (file.rules.layer, file.rules.file.clone())).collect()
    }

    /// Environment variables for commands and hooks; for each name, the value of the strongest file.
    pub fn env(&self) -> BTreeMap<String, String> {
        self.merged().env.clone()
    }

    /// The project's root and its hooks as they were trusted, if it changed since.
    pub(crate) fn lapsed_hooks(&self) -> Option<&(AbsPath, TrustedHooks)> {
        self.lapsed_hooks.as_ref()
    }

    /// Whether the hooks of a file run.
    pub(crate) fn are_hooks_active(&self, file: &SettingsFile) -> bool {
        if self.managed.disable_all_hooks == Some(true) {
            return false;
        }
        let managed_only = self.merged().allow_managed_hooks_only == Some(true);
        file.rules.layer == Layer::Managed
            || !managed_only && self.merged().disable_all_hooks != Some(true) && !file.values.hooks.is_empty()
    }

    /// The lists of URLs that HTTP hooks may use; a URL must match an entry of each list.
    pub(crate) fn http_hook_urls(&self) -> Vec<Vec<String>> {
        self.files.iter().filter_map(|file| file.values.allowed_http_hook_urls.clone()).collect()
    }

    /// The variables of a hook's `allowedEnvVars` that the list of every file contains as well.
    pub(crate) fn http_hook_variables(&self, listed: &[String]) -> Vec<String> {
        let lists: Vec<&Vec<String>> =
            self.files.iter().filter_map(|file| file.values.http_hook_allowed_env_vars.as_ref()).collect();
        listed.iter().filter(|name| lists.iter().all(|list| list.contains(name))).cloned().collect()
    }

    /// Whether a file was changed, created or removed since it was read. Compares stamps without reading the files.
    pub(crate) fn is_stale(&self) -> bool {
        let is_settings_file_stale = self.watched.iter().any(|(path, then)| {
            let is_uncertain = match then {
                // Written so shortly before it was read that a second write may have the same time.
                FileStamp::Present { changed, .. } => may_timestamp_repeat(*changed, self.read_at),
                FileStamp::Absent => false,
            };
            is_uncertain || toolgate_files::read_file_stamp(path) != *then
        });
        is_settings_file_stale || self.plugins.has_changed()
    }

    /// Takes the stamp of a path, just before it is read.
    fn watch(&mut self, path: &AbsPath) {
        let mut stamped = (path.clone(), toolgate_files::read_file_stamp(path));
        // A file whose directory is missing can only appear with the directory, so one stamp covers all files in it.
        while let (path, FileStamp::Absent) = &stamped
            && let Some(parent) =
                path.parent().filter(|parent| toolgate_files::read_file_stamp(parent) == FileStamp::Absent)
        {
            stamped.0 = parent;
        }
        if !self.watched.contains(&stamped) {
            self.watched.push(stamped);
        }
    }

    /// The MCP servers whose tools are hooks.
    pub fn hook_servers(&self) -> Vec<String> {
        crate::hooks::hook_tool_servers(self)
    }
}

/// Whether the rules of the key `policy` allow anything.
fn has_allow(book: &serde_json::Value) -> bool {
    let allows = |value: Option<&serde_json::Value>| value.and_then(|it| it.as_str()) == Some("allow");
    let rules = book.get("rules").and_then(serde_json::Value::as_array);
    allows(book.get("defaultAction")) || rules.into_iter().flatten().any(|rule| allows(rule.get("action")))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make their own files")]
mod untrusted_project;
