//! The files that set the values which refuse calls, for hints and messages.

use super::merge::value_at;
use super::node::{SettingsNode, SettingsNodeKind};
use super::{LoadedSettings, SettingsFile};
use toolgate_policy::{SettingPlace, SettingPlaces};

/// The keys of scalars that refuse calls, each with the key that hints use.
const SCALAR_KEYS: [(&str, &str); 12] = [
    ("permissions.defaultMode", "permissions.defaultMode"),
    ("permissions.denyInsteadOfPrompting", "permissions.denyInsteadOfPrompting"),
    ("permissions.riskProfile", "permissions.riskProfile"),
    ("managed.disableBypassPermissionsMode", "permissions.disableBypassPermissionsMode"),
    ("permissions.disableBypassPermissionsMode", "permissions.disableBypassPermissionsMode"),
    ("managed.disableSkillShellExecution", "disableSkillShellExecution"),
    ("disableSkillShellExecution", "disableSkillShellExecution"),
    ("managed.allowManagedPermissionRulesOnly", "allowManagedPermissionRulesOnly"),
    ("allowManagedPermissionRulesOnly", "allowManagedPermissionRulesOnly"),
    ("sandbox.allowUnsandboxedCommands", "sandbox.allowUnsandboxedCommands"),
    ("ledger.required", "ledger.required"),
    ("ledger.anchor", "ledger.anchor"),
];

/// The same for lists, whose entries have places of their own, and for those whose entries can be wrong.
const LIST_KEYS: [(&str, &str); 5] = [
    ("managed.disabledTools", "disabledTools"),
    ("disabledTools", "disabledTools"),
    ("preApproval.blockedDomains", "preApproval.blockedDomains"),
    ("preApproval.allowedDomains", "preApproval.allowedDomains"),
    ("preApproval.allowPrivate", "preApproval.allowPrivate"),
];

impl LoadedSettings {
    /// Where the values that refuse calls are set.
    pub fn setting_places(&self) -> SettingPlaces {
        let mut places = SettingPlaces::default();
        for file in &self.files {
            for (key, named) in SCALAR_KEYS {
                let path: Vec<String> = key.split('.').map(str::to_owned).collect();
                let Some(node) = find_node(&file.node, &path) else { continue };
                let value = node.value();
                let applies = value_at(&self.merged_value, &path).is_none_or(|merged| *merged == value);
                if applies && self.inactive_reason(file, key, &value).is_none() {
                    places.insert(named, place_of(file, node));
                }
            }
            add_list_places(file, &mut places);
        }
        places
    }
}

/// Adds the places of the entries of a file's lists.
pub(super) fn add_list_places(file: &SettingsFile, places: &mut SettingPlaces) {
    for (key, named) in LIST_KEYS {
        let path: Vec<String> = key.split('.').map(str::to_owned).collect();
        let Some(node) = find_node(&file.node, &path) else { continue };
        let SettingsNodeKind::List(items) = &node.kind else { continue };
        for item in items {
            if let Some(text) = item.value().as_str() {
                places.insert(format!("{named}.{text}"), place_of(file, item));
            }
        }
    }
}

/// The node at a path, if the file has it.
fn find_node<'n>(node: &'n SettingsNode, path: &[String]) -> Option<&'n SettingsNode> {
    path.iter().try_fold(node, |node, step| node.get(step))
}

/// Where a node is.
fn place_of(file: &SettingsFile, node: &SettingsNode) -> SettingPlace {
    SettingPlace::new(file.rules.layer, file.rules.file.clone(), Some(node.line))
}
