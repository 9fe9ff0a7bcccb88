//! Which skills of a project may pre-approve tools.
//!
//! A project comes from others, and a skill of it that says `allowed-tools: Bash` would allow whatever it likes.
//! Its request counts only if the user saw it: `toolgate trust add` lists these skills and stores the hash of each, and a
//! skill that changed since asks for nothing. Without that a skill of a project is a text like any other.

use super::capability_file::CatalogSkill;
use super::catalog::SkillCatalog;
use super::places::CapabilityScope;
use crate::settings::{SettingsError, state_file};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use toolgate_proto::AbsPath;

/// The skills of one workspace that the user trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct TrustedSkills {
    /// The real path of the workspace.
    root: AbsPath,
    /// The SHA-256 hash of each file.
    files: BTreeMap<String, String>,
}

/// Which skills may pre-approve tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillTrust {
    /// The file of trusted skills and the workspace; without them no skill of a project is trusted.
    store: Option<(AbsPath, AbsPath)>,
    /// Trust every skill of the project (`--trust-workspace`).
    trusts_all: bool,
}

impl SkillTrust {
    /// What is stored for a workspace in a state directory.
    pub fn in_dir(state_dir: &AbsPath, root: &AbsPath) -> Self {
        let root = toolgate_files::resolve(root).real;
        Self { store: Some((state_dir.join("trusted-skills.json"), root)), trusts_all: false }
    }

    /// Trusts every skill of the project for this run.
    pub fn trusting_all(mut self, trusts_all: bool) -> Self {
        self.trusts_all = trusts_all;
        self
    }

    /// Whether a skill may pre-approve tools. A store that cannot be read trusts nothing.
    pub fn is_trusted(&self, skill: &CatalogSkill) -> bool {
        match skill.scope {
            CapabilityScope::Managed | CapabilityScope::Personal => return true,
            CapabilityScope::Plugin => {
                return skill.plugin.as_ref().is_some_and(|plugin| plugin.approved.is_some());
            }
            CapabilityScope::Project => {}
        }
        let Some((file, root)) = &self.store else { return self.trusts_all };
        let stored: Vec<TrustedSkills> = state_file::load_state_file(file).unwrap_or_default();
        let key = skill.file.to_string();
        let is_stored = |trusted: &TrustedSkills| {
            trusted.root == *root && trusted.files.get(&key).is_some_and(|sha256| *sha256 == skill.sha256)
        };
        self.trusts_all || stored.iter().any(is_stored)
    }

    /// Trusts the skills of a catalog as they are now. Returns the requests that this makes effective, one line each.
    pub fn trust_catalog(&self, catalog: &SkillCatalog) -> Result<Vec<String>, SettingsError> {
        let requests = list_requests(catalog);
        let Some((file, root)) = &self.store else { return Ok(Vec::new()) };
        let files: BTreeMap<String, String> =
            requests.iter().map(|(skill, _)| (skill.file.to_string(), skill.sha256.clone())).collect();
        state_file::update_state_file(file, |list: &mut Vec<TrustedSkills>| {
            list.retain(|trusted| trusted.root != *root);
            if !files.is_empty() {
                list.push(TrustedSkills { root: root.clone(), files });
            }
        })?;
        Ok(requests.into_iter().map(|(_, line)| line).collect())
    }

    /// Trusts no skill of this workspace any more.
    pub fn forget(&self) -> Result<(), SettingsError> {
        let Some((file, root)) = &self.store else { return Ok(()) };
        state_file::update_state_file(file, |list: &mut Vec<TrustedSkills>| {
            list.retain(|trusted| trusted.root != *root)
        })
    }

    /// What the skills of the project ask for, one line each.
    pub fn describe_requests(catalog: &SkillCatalog) -> Vec<String> {
        list_requests(catalog).into_iter().map(|(_, line)| line).collect()
    }
}

/// The skills of the project that ask for tools, each with a line for the user.
fn list_requests(catalog: &SkillCatalog) -> Vec<(&CatalogSkill, String)> {
    let skills = catalog.skills().filter(|skill| skill.scope == CapabilityScope::Project);
    skills
        .filter(|skill| !skill.definition.allowed_tools.is_empty())
        .map(|skill| {
            let line = format!(
                "skill `{}`: allowed-tools {} ({:.12}…)",
                skill.name,
                skill.definition.allowed_tools.join(", "),
                skill.sha256
            );
            (skill.as_ref(), line)
        })
        .collect()
}
