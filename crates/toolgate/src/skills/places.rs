//! The places where skills, commands, agents and output styles are looked for.

use crate::settings::{SettingSource, SettingsOptions};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use toolgate_files::{FileStamp, read_file_stamp};
use toolgate_gate::ledger::sha256_hex;
use toolgate_proto::AbsPath;

/// The directories of a project that may have skills, the strongest first.
const PROJECT_FOLDERS: [&str; 3] = [".toolgate", ".claude", ".agents"];
/// How many directories above the workspace are looked at for the root of the repository.
const MAX_PARENTS: usize = 64;

/// Whose a skill is; the strongest first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CapabilityScope {
    /// The administrator's.
    Managed,
    /// The user's, for all projects.
    Personal,
    /// The project's.
    Project,
    /// A plugin's.
    Plugin,
}

impl fmt::Display for CapabilityScope {
    /// Writes the name that listings and JSON output use.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Managed => "managed",
            Self::Personal => "personal",
            Self::Project => "project",
            Self::Plugin => "plugin",
        })
    }
}

/// The content of a plugin that the user approved.
#[derive(Debug, Clone, Default)]
pub struct ApprovedFiles {
    /// The hash of all files together.
    pub sha256: String,
    /// The hash of each file.
    pub(crate) files: BTreeMap<AbsPath, String>,
}

impl ApprovedFiles {
    /// Whether a file was approved with this content.
    pub(crate) fn covers(&self, file: &AbsPath, bytes: &[u8]) -> bool {
        self.files.get(file).is_some_and(|sha256| *sha256 == sha256_hex(bytes))
    }
}

impl PartialEq for ApprovedFiles {
    /// Compares the hash of all files, which depends on each of them.
    fn eq(&self, other: &Self) -> bool {
        self.sha256 == other.sha256
    }
}

impl Eq for ApprovedFiles {}

/// The plugin that a file belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PluginIdentity {
    /// Its name, which stands before the names of its skills.
    pub name: String,
    /// Its directory.
    pub root: AbsPath,
    /// The directory for what it keeps.
    pub data: Option<AbsPath>,
    /// The content that the user approved; without it the plugin's skills pre-approve no tools.
    pub approved: Option<Arc<ApprovedFiles>>,
}

/// A place: directories and files of one owner.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CapabilityPlace {
    /// Whose it is.
    pub scope: CapabilityScope,
    /// The directory that every file must really be in; none if symlinks may lead anywhere.
    pub boundary: Option<AbsPath>,
    /// The plugin, if it is one's.
    pub plugin: Option<PluginIdentity>,
    /// What stands before the name of a skill whose name is taken: the directory below the workspace that it is for.
    pub clash_prefix: Option<String>,
    /// Directories with one directory for each skill.
    pub skills: Vec<AbsPath>,
    /// Directories that are skills themselves.
    pub skill_dirs: Vec<AbsPath>,
    /// Directories of commands, or single files.
    pub commands: Vec<AbsPath>,
    /// Directories of agents, or single files.
    pub agents: Vec<AbsPath>,
    /// Directories of output styles, or single files.
    pub output_styles: Vec<AbsPath>,
}

impl CapabilityPlace {
    /// The usual folders below a directory such as `.claude`.
    pub fn in_dir(dir: &AbsPath, scope: CapabilityScope, boundary: Option<AbsPath>) -> Self {
        Self {
            scope,
            boundary,
            plugin: None,
            clash_prefix: None,
            skills: vec![dir.join("skills")],
            skill_dirs: Vec::new(),
            commands: vec![dir.join("commands")],
            agents: vec![dir.join("agents")],
            output_styles: vec![dir.join("output-styles")],
        }
    }
}

/// All places, the strongest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct CapabilityPlaces {
    /// The places.
    pub places: Vec<CapabilityPlace>,
}

impl CapabilityPlaces {
    /// The places of a workspace: managed directories, the user's, then the workspace and the directories above it up
    /// to the root of the repository, then further directories of the session.
    pub fn of_settings(options: &SettingsOptions, additional: &[AbsPath]) -> Self {
        let mut found = Self::default();
        for dir in &options.managed_dirs {
            for dir in [dir.clone(), dir.join(".claude")] {
                found.add(CapabilityPlace::in_dir(&dir, CapabilityScope::Managed, None));
            }
        }
        if options.includes(SettingSource::User) {
            let own = options.config_dir.clone().into_iter();
            for dir in own.chain(options.home.iter().map(|home| home.join(".claude"))) {
                found.add(CapabilityPlace::in_dir(&dir, CapabilityScope::Personal, None));
            }
        }
        if options.includes(SettingSource::Project) {
            let root = toolgate_files::resolve(options.project_root()).real;
            let upwards = dirs_up_to_repository(&root);
            let boundary = upwards.last().unwrap_or(&root).clone();
            for dir in &upwards {
                found.add_project_dir(dir, &boundary);
            }
            for dir in additional {
                let dir = toolgate_files::resolve(dir).real;
                found.add_project_dir(&dir, &dir);
            }
        }
        found
    }

    /// Adds the folders of a directory of the project. Whatever they link to must be inside `boundary`: the text of a
    /// skill reaches a model, and a project must not have files read that the session may not read.
    fn add_project_dir(&mut self, dir: &AbsPath, boundary: &AbsPath) {
        for folder in PROJECT_FOLDERS {
            let dir = dir.join(folder);
            self.add(CapabilityPlace::in_dir(&dir, CapabilityScope::Project, Some(boundary.clone())));
        }
    }

    /// Adds the folders of a directory below the workspace.
    pub(super) fn add_nested(&mut self, dir: &AbsPath) {
        let before = self.places.len();
        self.add_project_dir(dir, dir);
        let prefix = dir.file_name().map(|name| name.to_string_lossy().into_owned());
        for place in self.places.iter_mut().skip(before) {
            place.clash_prefix.clone_from(&prefix);
        }
    }

    /// Whether a directory has a folder in which skills may be.
    pub(super) fn has_project_folder(dir: &AbsPath) -> bool {
        PROJECT_FOLDERS.iter().any(|folder| read_file_stamp(&dir.join(folder)) != FileStamp::Absent)
    }

    /// Adds a place, unless a stronger one has the same folders: the workspace may be the home directory.
    pub fn add(&mut self, place: CapabilityPlace) {
        if !self.places.iter().any(|other| other.plugin.is_none() && other.skills == place.skills) {
            self.places.push(place);
        }
    }
}

/// A directory and those above it, up to the one that has `.git`; only itself if none has.
fn dirs_up_to_repository(root: &AbsPath) -> Vec<AbsPath> {
    let mut dirs = vec![root.clone()];
    let mut dir = root.clone();
    for _ in 0..MAX_PARENTS {
        if read_file_stamp(&dir.join(".git")) != FileStamp::Absent {
            return dirs;
        }
        let Some(parent) = dir.parent() else { break };
        dirs.push(parent.clone());
        dir = parent;
    }
    vec![root.clone()]
}
