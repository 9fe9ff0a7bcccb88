//! The plugins of a session: which there are, which are approved as they are now, and what is held back.

use super::known_marketplaces::KnownMarketplaces;
use super::package::PluginPackage;
use super::plugin_store::{InstalledPlugin, PluginApproval, PluginStore, are_confusable};
use crate::settings::values::{HookGroup, SettingsValues};
use crate::settings::{SettingsError, SettingsNote, SettingsOptions};
use crate::skills::{CapabilityPlace, CatalogProblem, PluginIdentity};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use toolgate_files::{FileStamp, StampWatch};
use toolgate_proto::AbsPath;

/// What holds for a plugin now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PluginStatus {
    /// The user approved it as it is, and all of it is in effect.
    Active,
    /// It was named on the command line and never approved: its texts are offered, and nothing of it runs.
    NotApproved,
    /// It is not as it was approved: it is held back.
    Changed,
    /// It is installed and switched off.
    Disabled,
    /// It cannot be used, or another plugin has its name.
    Unusable,
}

impl fmt::Display for PluginStatus {
    /// Writes the word that listings and JSON output use.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Active => "active",
            Self::NotApproved => "not approved",
            Self::Changed => "changed",
            Self::Disabled => "disabled",
            Self::Unusable => "unusable",
        })
    }
}

/// A plugin of a session.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PluginEntry {
    /// Its name.
    pub name: String,
    /// Where it comes from, for `name@marketplace`; none if the command line named its directory.
    pub marketplace: Option<String>,
    /// Its directory.
    pub root: AbsPath,
    /// What holds for it.
    pub status: PluginStatus,
    /// What it brings, if it can be read.
    pub package: Option<Arc<PluginPackage>>,
    /// What is wrong with it.
    pub problems: Vec<CatalogProblem>,
    /// The hooks that the user approved.
    approved_hooks: BTreeMap<String, Vec<HookGroup>>,
    /// The directory for what it keeps.
    data: Option<AbsPath>,
}

impl PluginEntry {
    /// Its full name.
    pub fn id(&self) -> String {
        match &self.marketplace {
            Some(marketplace) => format!("{}@{marketplace}", self.name),
            None => self.name.clone(),
        }
    }

    /// Why it does not have its full effect, and what to do about it; none if it has.
    pub fn describe_standing(&self) -> Option<String> {
        let what = match &self.marketplace {
            Some(_) => self.name.clone(),
            None => self.root.to_string(),
        };
        match self.status {
            PluginStatus::Active | PluginStatus::Disabled => None,
            PluginStatus::NotApproved => Some(format!(
                "nothing of plugin `{}` runs, and its skills pre-approve no tools, until you run `toolgate plugin \
                 approve {what}`",
                self.name
            )),
            PluginStatus::Changed => Some(format!(
                "plugin `{}` changed after you approved it, so it is held back, and the calls that its hooks screen \
                 are refused; check it with `toolgate plugin show {what}`, then run `toolgate plugin approve {what}`",
                self.name
            )),
            PluginStatus::Unusable => {
                let first = self.problems.first().map(ToString::to_string).unwrap_or_default();
                Some(format!("plugin `{}` is not used: {first}", self.name))
            }
        }
    }

    /// What its files belong to. Only an approved plugin has its approved content in it.
    pub(crate) fn identity(&self) -> PluginIdentity {
        let approved = match (self.status, &self.package) {
            (PluginStatus::Active, Some(package)) => Some(Arc::new(package.approved_files())),
            _ => None,
        };
        PluginIdentity { name: self.name.clone(), root: self.root.clone(), data: self.data.clone(), approved }
    }
}

impl PluginEntry {
    /// Its hooks, if it has any that matter.
    fn planned_hooks(&self) -> Option<PlannedPluginHooks<'_>> {
        let (events, refusal_reason) = match (self.status, &self.package) {
            (PluginStatus::Active, Some(package)) => (&package.hooks, None),
            (PluginStatus::Changed, _) => (&self.approved_hooks, self.describe_standing()),
            _ => return None,
        };
        Some(PlannedPluginHooks { identity: Arc::new(self.identity()), events, refusal_reason })
    }
}

/// The hooks of a plugin that join those of settings.
#[derive(Debug)]
pub(crate) struct PlannedPluginHooks<'a> {
    /// The plugin.
    pub(crate) identity: Arc<PluginIdentity>,
    /// Its hooks.
    pub(crate) events: &'a BTreeMap<String, Vec<HookGroup>>,
    /// Why they do not run although the calls that they screen must not pass.
    pub(crate) refusal_reason: Option<String>,
}

/// The plugins of a session, in the order in which their hooks run: those of the command line as they were given, then
/// the installed ones by name.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct PluginSet {
    /// The plugins.
    pub plugins: Vec<PluginEntry>,
    /// The workspace.
    #[cfg_attr(not(feature = "lsp"), expect(dead_code, reason = "only language servers are told of it"))]
    pub(super) project: Option<AbsPath>,
    /// What the settings name although it is not installed.
    missing: Vec<String>,
    /// What is wrong with the list of allowed marketplaces.
    list_problems: Vec<String>,
    /// The stamps of all files of plugins, while they are collected.
    stamps: Vec<(AbsPath, FileStamp)>,
    /// Notices when one of them changes.
    watch: Arc<StampWatch>,
}

impl PluginSet {
    /// Finds and reads the plugins. One that the command line names and that cannot be used is an error.
    pub fn load(options: &SettingsOptions, merged: &SettingsValues) -> Result<Self, SettingsError> {
        // The time before the first stamp: a file that is written after its stamp was taken must not seem older.
        let read_at = i128::from(toolgate_files::now_millis()) * 1_000_000;
        let project = Some(toolgate_files::resolve(options.project_root()).real);
        let mut set = Self { project, ..Self::default() };
        let store = options.state_dir.as_ref().map(PluginStore::in_dir);
        let approvals = store.as_ref().map_or_else(|| Ok(Vec::new()), PluginStore::approvals)?;
        let given = options.plugin_dirs.iter().map(|dir| (dir, true));
        let given = given.chain(options.plugin_dirs_without_servers.iter().map(|dir| (dir, false)));
        if let Some((dir, _)) = given.clone().next().filter(|_| merged.disable_sideload_flags == Some(true)) {
            return Err(plugin_dir_error(dir, "settings forbid plugins on the command line".to_owned()));
        }
        for (dir, has_servers) in given {
            let package = PluginPackage::read(dir).map_err(|problems| {
                plugin_dir_error(dir, problems.first().map(ToString::to_string).unwrap_or_default())
            })?;
            let data = data_dir(options, package.name());
            let approval = find_approval(&approvals, &package.root).filter(|it| it.name == package.name());
            let mut entry = new_entry(package, approval, None, data, PluginStatus::NotApproved);
            // After the approval was compared: it is for the plugin as its files are.
            if let Some(package) = entry.package.as_mut().filter(|_| !has_servers) {
                Arc::make_mut(package).mcp_servers.clear();
            }
            set.add(entry);
        }
        let mut installed = store.as_ref().map_or_else(|| Ok(Vec::new()), PluginStore::list)?;
        installed.sort_by_key(InstalledPlugin::id);
        let known = KnownMarketplaces::read(merged.strict_known_marketplaces.as_ref());
        set.list_problems = known.problems().to_vec();
        for plugin in &installed {
            if let Err(problem) = known.check(&plugin.source) {
                set.add_forbidden(plugin, problem);
                continue;
            }
            let is_enabled = match merged.enabled_plugins.get(&plugin.id()) {
                Some(serde_json::Value::Bool(is_enabled)) => *is_enabled,
                Some(_) | None => plugin.is_enabled,
            };
            set.add_installed(plugin, find_approval(&approvals, &plugin.root), is_enabled, options);
        }
        let is_missing = |id: &&String| !installed.iter().any(|plugin| plugin.id() == **id);
        let wanted =
            merged.enabled_plugins.iter().filter(|(_, value)| **value == serde_json::Value::Bool(true));
        set.missing = wanted.map(|(id, _)| id).filter(is_missing).cloned().collect();
        set.watch = Arc::new(StampWatch::new(std::mem::take(&mut set.stamps), read_at));
        Ok(set)
    }

    /// Adds an installed plugin that managed settings forbid. Its files are not read.
    fn add_forbidden(&mut self, plugin: &InstalledPlugin, problem: String) {
        let problem = crate::skills::CapabilityProblem::error(1, problem);
        self.plugins.push(PluginEntry {
            name: plugin.name.clone(),
            marketplace: Some(plugin.marketplace.clone()),
            root: plugin.root.clone(),
            status: PluginStatus::Unusable,
            package: None,
            problems: vec![CatalogProblem { file: plugin.root.clone(), problem }],
            approved_hooks: BTreeMap::new(),
            data: None,
        });
    }

    /// Adds an installed plugin.
    fn add_installed(
        &mut self,
        plugin: &InstalledPlugin,
        approval: Option<&PluginApproval>,
        is_enabled: bool,
        options: &SettingsOptions,
    ) {
        let data = data_dir(options, &plugin.id());
        let marketplace = Some(plugin.marketplace.clone());
        let approved_hooks = approval.map(|approval| approval.hooks.clone()).unwrap_or_default();
        let entry = match PluginPackage::read(&plugin.root) {
            Ok(package) if package.name() == plugin.name => {
                new_entry(package, approval, marketplace, data, PluginStatus::Changed)
            }
            Ok(package) => PluginEntry {
                name: plugin.name.clone(),
                marketplace,
                root: plugin.root.clone(),
                status: PluginStatus::Changed,
                problems: Vec::new(),
                package: Some(Arc::new(package)),
                approved_hooks,
                data,
            },
            Err(problems) => PluginEntry {
                name: plugin.name.clone(),
                marketplace,
                root: plugin.root.clone(),
                // What was approved is gone, and its hooks with it.
                status: PluginStatus::Changed,
                package: None,
                problems,
                approved_hooks,
                data,
            },
        };
        self.add(match is_enabled {
            true => entry,
            false => PluginEntry { status: PluginStatus::Disabled, ..entry },
        });
    }

    /// Adds a plugin, unless one before it has its name.
    fn add(&mut self, mut entry: PluginEntry) {
        let is_taken = |other: &PluginEntry| {
            !matches!(other.status, PluginStatus::Disabled | PluginStatus::Unusable)
                && are_confusable(&other.name, &entry.name)
        };
        if entry.status != PluginStatus::Disabled
            && let Some(other) = self.plugins.iter().find(|other| is_taken(other))
        {
            let message = format!("the plugin of {} has this name, and counts instead", other.root);
            let problem = crate::skills::CapabilityProblem::warning(1, message);
            entry.problems.insert(0, CatalogProblem { file: entry.root.clone(), problem });
            entry.status = PluginStatus::Unusable;
        }
        if let Some(package) = &entry.package {
            self.stamps.extend(package.stamps.iter().cloned());
        } else {
            self.stamps.push((entry.root.clone(), toolgate_files::read_file_stamp(&entry.root)));
        }
        if entry.status == PluginStatus::Active
            && let (Some(package), Some(data)) = (&entry.package, &entry.data)
            && package.runs_anything()
        {
            // A plugin that cannot keep anything says so itself.
            let _ = toolgate_files::make_private_dir(data);
        }
        self.plugins.push(entry);
    }

    /// The plugins that are in effect with everything that they bring.
    pub(crate) fn approved(&self) -> impl Iterator<Item = (&PluginPackage, PluginIdentity)> {
        self.plugins.iter().filter(|entry| entry.status == PluginStatus::Active).filter_map(|entry| {
            let package = entry.package.as_deref()?;
            Some((package, entry.identity()))
        })
    }

    /// Where the skills, commands, agents and output styles of plugins are.
    pub fn places(&self) -> Vec<CapabilityPlace> {
        let offers_texts =
            |entry: &&PluginEntry| matches!(entry.status, PluginStatus::Active | PluginStatus::NotApproved);
        let place = |entry: &PluginEntry| {
            let mut place = entry.package.as_ref()?.place.clone();
            place.plugin = Some(entry.identity());
            Some(place)
        };
        self.plugins.iter().filter(offers_texts).filter_map(place).collect()
    }

    /// The hooks of the plugins, in the order in which they run. Those of a plugin that was approved and changed refuse
    /// the calls that they screened.
    pub(crate) fn hooks(&self) -> Vec<PlannedPluginHooks<'_>> {
        self.plugins.iter().filter_map(PluginEntry::planned_hooks).collect()
    }

    /// The directories with programs, which go to the end of the search path of commands.
    pub(crate) fn program_dirs(&self) -> Vec<AbsPath> {
        let with_programs = self.approved().filter(|(package, _)| !package.programs.is_empty());
        with_programs.map(|(package, _)| package.root.join("bin")).collect()
    }

    /// The directories of approved plugins: what is in them runs outside of the sandbox.
    pub(crate) fn approved_roots(&self) -> Vec<AbsPath> {
        self.approved().map(|(package, _)| package.root.clone()).collect()
    }

    /// Whether a file of a plugin may have changed since it was read.
    pub(crate) fn has_changed(&self) -> bool {
        self.watch.has_changed()
    }

    /// What the user should know.
    pub(crate) fn notes(&self) -> Vec<SettingsNote> {
        let standing = |entry: &PluginEntry| {
            // Texts alone need no approval.
            let is_harmless = entry.status == PluginStatus::NotApproved
                && entry.package.as_ref().is_some_and(|package| !package.runs_anything());
            let message = entry.describe_standing().filter(|_| !is_harmless)?;
            Some(SettingsNote { file: entry.root.to_string(), line: 1, message })
        };
        let missing = self.missing.iter().map(|id| SettingsNote {
            file: "enabledPlugins".to_owned(),
            line: 1,
            message: format!(
                "plugin `{id}` is enabled and not installed; `toolgate plugin add` installs one"
            ),
        });
        let wrong = self.list_problems.iter().map(|problem| SettingsNote {
            file: "strictKnownMarketplaces".to_owned(),
            line: 1,
            message: problem.clone(),
        });
        self.plugins.iter().filter_map(standing).chain(missing).chain(wrong).collect()
    }
}

/// An entry for a package, by its approval.
fn new_entry(
    package: PluginPackage,
    approval: Option<&PluginApproval>,
    marketplace: Option<String>,
    data: Option<AbsPath>,
    unapproved: PluginStatus,
) -> PluginEntry {
    PluginEntry {
        name: package.name().to_owned(),
        marketplace,
        root: package.root.clone(),
        status: match approval {
            // The same files may have hooks of events that were not raised, and not shown, when they were approved.
            Some(approval)
                if approval.sha256 == package.sha256 && approval.hooks.keys().eq(package.hooks.keys()) =>
            {
                PluginStatus::Active
            }
            Some(_) => PluginStatus::Changed,
            None => unapproved,
        },
        problems: package.problems.clone(),
        approved_hooks: approval.map(|approval| approval.hooks.clone()).unwrap_or_default(),
        package: Some(Arc::new(package)),
        data,
    }
}

/// The approval of a directory.
fn find_approval<'a>(approvals: &'a [PluginApproval], root: &AbsPath) -> Option<&'a PluginApproval> {
    approvals.iter().find(|approval| approval.root == *root)
}

/// The directory for what a plugin keeps; that of Claude Code, so that both find it.
fn data_dir(options: &SettingsOptions, id: &str) -> Option<AbsPath> {
    let fit = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '-' };
    let id: String = id.chars().map(fit).collect();
    options.home.as_ref().map(|home| home.join(".claude/plugins/data").join(id))
}

/// The error for a directory of the command line.
fn plugin_dir_error(dir: &AbsPath, message: String) -> SettingsError {
    SettingsError {
        file: dir.to_string(),
        line: 1,
        message: format!("--plugin-dir: {message}"),
        fix: "`toolgate plugin validate` lists every problem of a plugin".to_owned(),
    }
}
