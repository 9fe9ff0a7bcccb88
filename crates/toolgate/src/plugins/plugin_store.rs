//! What is installed and what was approved, in the state directory.

use super::package::PluginPackage;
use super::plugin_source::{PluginSource, StagedPlugin};
use crate::settings::values::HookGroup;
use crate::settings::{SettingsError, state_file};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use toolgate_proto::AbsPath;

/// How many characters of a hash name a directory.
const MAX_HASH_CHARS: usize = 16;

/// A plugin that is installed: a copy in the state directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct InstalledPlugin {
    /// Its name.
    pub name: String,
    /// The marketplace that it comes from; `local` or `git` if it comes from none.
    pub marketplace: String,
    /// Its version, as its manifest says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Where it was found.
    pub source: PluginSource,
    /// The commit, if it was fetched with git.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The directory of the copy.
    pub root: AbsPath,
    /// Whether it is switched on, unless settings say otherwise.
    pub is_enabled: bool,
    /// When it was installed: milliseconds since 1970, UTC.
    pub at: u64,
}

impl InstalledPlugin {
    /// Its full name, as in `enabledPlugins`.
    pub fn id(&self) -> String {
        format!("{}@{}", self.name, self.marketplace)
    }

    /// Whether a name means it: its own, or its full one.
    fn is_named(&self, name: &str) -> bool {
        self.name == name || self.id() == name
    }
}

/// The content of a plugin that the user approved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PluginApproval {
    /// The real directory.
    pub root: AbsPath,
    /// The name that the plugin had.
    pub name: String,
    /// The hash of all its files.
    pub sha256: String,
    /// Its hooks: if the plugin changes, the calls that these screened are refused.
    #[serde(default)]
    pub hooks: BTreeMap<String, Vec<HookGroup>>,
    /// When: milliseconds since 1970, UTC.
    pub at: u64,
}

/// The store of installed plugins and approvals. Both files are replaced atomically, under a lock.
#[derive(Debug, Clone)]
pub struct PluginStore {
    /// The file of installed plugins.
    pub(crate) file: AbsPath,
    /// The file of approvals.
    pub(crate) approvals_file: AbsPath,
    /// The directory of copies.
    dir: AbsPath,
}

impl PluginStore {
    /// The store in a state directory.
    pub fn in_dir(state_dir: &AbsPath) -> Self {
        let real = toolgate_files::resolve(state_dir).real;
        Self {
            file: state_dir.join("plugins.json"),
            approvals_file: state_dir.join("plugin-approvals.json"),
            dir: real.join("plugins"),
        }
    }

    /// Every installed plugin.
    pub fn list(&self) -> Result<Vec<InstalledPlugin>, SettingsError> {
        state_file::load_state_file(&self.file)
    }

    /// Every approval.
    pub fn approvals(&self) -> Result<Vec<PluginApproval>, SettingsError> {
        state_file::load_state_file(&self.approvals_file)
    }

    /// The installed plugin of a name.
    pub fn find(&self, name: &str) -> Result<Option<InstalledPlugin>, SettingsError> {
        Ok(self.list()?.into_iter().find(|plugin| plugin.is_named(name)))
    }

    /// The directory in which plugins are prepared; on the same file system as the copies.
    pub(super) fn staging_dir(&self) -> AbsPath {
        self.dir.join("staging")
    }

    /// Approves a plugin as it was read.
    pub fn approve(&self, package: &PluginPackage) -> Result<(), SettingsError> {
        let approval = PluginApproval {
            root: package.root.clone(),
            name: package.name().to_owned(),
            sha256: package.sha256.clone(),
            hooks: package.hooks.clone(),
            at: toolgate_files::now_millis(),
        };
        state_file::update_state_file(&self.approvals_file, |list: &mut Vec<PluginApproval>| {
            list.retain(|other| other.root != approval.root);
            list.push(approval);
        })
    }

    /// Forgets the approval of a directory. False if there was none.
    pub fn forget_approval(&self, root: &AbsPath) -> Result<bool, SettingsError> {
        state_file::update_state_file(&self.approvals_file, |list: &mut Vec<PluginApproval>| {
            let before = list.len();
            list.retain(|approval| approval.root != *root);
            list.len() < before
        })
    }

    /// Installs a plugin that the user approved as it was staged. An older copy stays until the next time, because a
    /// session may be using it.
    pub fn install(&self, staged: StagedPlugin) -> Result<InstalledPlugin, SettingsError> {
        let hash: String = staged.package.sha256.chars().take(MAX_HASH_CHARS).collect();
        let name = staged.package.name().to_owned();
        let versions = self.dir.join("installed").join(format!("{name}@{}", staged.marketplace));
        let root = versions.join(&hash).join(&name);
        let fail = |message: String| SettingsError {
            file: self.file.to_string(),
            line: 1,
            message,
            fix: "nothing was installed".to_owned(),
        };
        state_file::try_update_state_file(&self.file, |list: &mut Vec<InstalledPlugin>| {
            let id = format!("{name}@{}", staged.marketplace);
            check_names(list, &id, &name, &staged).map_err(&fail)?;
            let moved = toolgate_files::move_tree(&staged.package.root, &root);
            moved.map_err(|problem| fail(format!("the plugin cannot be stored: {problem}")))?;
            let package = PluginPackage::read(&root)
                .ok()
                .filter(|package| package.sha256 == staged.package.sha256)
                .ok_or_else(|| fail(format!("{root} is not what was approved; remove it and try again")))?;
            self.approve(&package)?;
            let before = list.iter().find(|other| other.id() == id);
            let plugin = InstalledPlugin {
                name: name.clone(),
                marketplace: staged.marketplace.clone(),
                version: package.manifest.version.clone(),
                source: staged.source.clone(),
                commit: staged.commit.clone(),
                root: root.clone(),
                is_enabled: before.is_none_or(|before| before.is_enabled),
                at: toolgate_files::now_millis(),
            };
            let kept = before.map(|before| before.root.clone());
            list.retain(|other| other.id() != id);
            list.push(plugin.clone());
            self.remove_versions(&versions, &[Some(root.clone()), kept]);
            Ok(plugin)
        })
    }

    /// Removes the copies of a plugin that are not used any more.
    fn remove_versions(&self, versions: &AbsPath, kept: &[Option<AbsPath>]) {
        for entry in toolgate_files::list_folder(versions).unwrap_or_default() {
            let dir = versions.join(&entry.name);
            if !kept.iter().flatten().any(|root| root.is_under(&dir)) {
                // What cannot be removed now is removed another time.
                let _ = toolgate_files::remove_tree(&dir);
            }
        }
    }

    /// Switches a plugin on or off. None if it is not installed.
    pub fn set_enabled(
        &self,
        name: &str,
        is_enabled: bool,
    ) -> Result<Option<InstalledPlugin>, SettingsError> {
        state_file::update_state_file(&self.file, |list: &mut Vec<InstalledPlugin>| {
            let plugin = list.iter_mut().find(|plugin| plugin.is_named(name))?;
            plugin.is_enabled = is_enabled;
            Some(plugin.clone())
        })
    }

    /// Removes a plugin with its copies and its approval. None if it is not installed.
    pub fn remove(&self, name: &str) -> Result<Option<InstalledPlugin>, SettingsError> {
        let removed = state_file::update_state_file(&self.file, |list: &mut Vec<InstalledPlugin>| {
            let index = list.iter().position(|plugin| plugin.is_named(name))?;
            let plugin = list.remove(index);
            // What cannot be removed now is removed when a plugin of that name is installed again.
            let _ = toolgate_files::remove_tree(&self.dir.join("installed").join(plugin.id()));
            Some(plugin)
        })?;
        if let Some(plugin) = &removed {
            self.forget_approval(&plugin.root)?;
        }
        Ok(removed)
    }
}

/// Refuses a plugin that would take the place of another one.
fn check_names(list: &[InstalledPlugin], id: &str, name: &str, staged: &StagedPlugin) -> Result<(), String> {
    for other in list {
        if other.id() != id && are_confusable(&other.name, name) {
            return Err(format!(
                "plugin `{}` is installed, and `{name}` could be taken for it; remove it first",
                other.id()
            ));
        }
        if other.marketplace == staged.marketplace
            && staged.is_of_marketplace
            && !other.source.is_same_place(&staged.source)
        {
            return Err(format!(
                "the marketplace `{}` is known from {}, and this one is another; remove `{}` first",
                other.marketplace,
                other.source,
                other.id()
            ));
        }
    }
    Ok(())
}

/// Whether two names could be taken for one another.
pub(super) fn are_confusable(one: &str, other: &str) -> bool {
    let fold = |c: char| match c {
        '-' | '_' | '.' => None,
        '0' => Some('o'),
        '1' | 'i' | 'I' => Some('l'),
        other => Some(other.to_ascii_lowercase()),
    };
    one.chars().filter_map(fold).eq(other.chars().filter_map(fold))
}
