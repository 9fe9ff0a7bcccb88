//! Which skills and agents may pre-approve tools and run hooks.
//!
//! A project comes from others, and a skill of it that says `allowed-tools: Bash` would allow whatever it likes; a hook of it
//! is a program that runs outside of the sandbox.
//! Such requests count only if the user saw them: `toolgate trust add` lists these files and stores the hash of each, and of
//! the files that their hooks run. One that changed since asks for nothing. Without that a skill of a project is a text like
//! any other.

use super::capability_file::{CatalogAgent, CatalogSkill};
use super::catalog::SkillCatalog;
use super::places::{CapabilityScope, PluginIdentity};
use crate::hooks::CapabilityHooks;
use crate::settings::trust::{ProjectPaths, bind_hooks};
use crate::settings::{SettingsError, state_file};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use toolgate_proto::AbsPath;

/// The skills of one workspace that the user trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct TrustedSkills {
    /// The real path of the workspace.
    root: AbsPath,
    /// The SHA-256 hash of each file.
    files: BTreeMap<String, String>,
    /// The files that hooks run, each with its digest.
    #[serde(default)]
    bound: BTreeMap<String, String>,
}

/// Which skills and agents may pre-approve tools and run hooks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkillTrust {
    /// The file of trusted skills and the workspace; without them no skill of a project is trusted.
    store: Option<(AbsPath, AbsPath)>,
    /// Trust every skill of the project (`--trust-workspace`).
    trusts_all: bool,
    /// The home directory, for `~/` in commands of hooks.
    home: Option<AbsPath>,
    /// `PATH`, for programs of hooks.
    search_path: Option<String>,
}

/// A file that asks for something.
#[derive(Debug, Clone)]
pub(crate) struct TrustSubject {
    scope: CapabilityScope,
    plugin_is_approved: bool,
    file: AbsPath,
    sha256: String,
    /// Its field `hooks`.
    hooks: Option<Value>,
}

impl TrustSubject {
    /// A skill.
    pub(crate) fn of_skill(skill: &CatalogSkill) -> Self {
        Self {
            scope: skill.scope.clone(),
            plugin_is_approved: is_approved(skill.plugin.as_deref()),
            file: skill.file.clone(),
            sha256: skill.sha256.clone(),
            hooks: skill.definition.hooks.clone(),
        }
    }

    /// An agent.
    pub(crate) fn of_agent(agent: &CatalogAgent) -> Self {
        Self {
            scope: agent.scope.clone(),
            plugin_is_approved: is_approved(agent.plugin.as_deref()),
            file: agent.file.clone(),
            sha256: agent.sha256.clone(),
            hooks: agent.definition.hooks.clone(),
        }
    }

    /// Its hooks; none if they cannot be read, since they never run then.
    fn read_hooks(&self) -> CapabilityHooks {
        let read = self.hooks.as_ref().map(|value| CapabilityHooks::read(value, false));
        read.and_then(Result::ok).unwrap_or_default()
    }
}

/// Whether a plugin is as the user approved it.
fn is_approved(plugin: Option<&PluginIdentity>) -> bool {
    plugin.is_some_and(|plugin| plugin.approved.is_some())
}

impl SkillTrust {
    /// What is stored for a workspace in a state directory.
    pub fn in_dir(state_dir: &AbsPath, root: &AbsPath) -> Self {
        let root = toolgate_files::resolve(root).real;
        Self { store: Some((state_dir.join("trusted-skills.json"), root)), ..Self::default() }
    }

    /// Trusts every skill of the project for this run.
    pub fn trusting_all(mut self, trusts_all: bool) -> Self {
        self.trusts_all = trusts_all;
        self
    }

    /// Says where programs of hooks are looked for.
    pub fn with_paths(mut self, home: Option<AbsPath>, search_path: Option<String>) -> Self {
        (self.home, self.search_path) = (home, search_path);
        self
    }

    /// Whether a skill may pre-approve tools. A store that cannot be read trusts nothing.
    pub fn is_trusted(&self, skill: &CatalogSkill) -> bool {
        self.check_file(&TrustSubject::of_skill(skill)).is_ok()
    }

    /// Why a file may not pre-approve tools.
    pub(crate) fn check_file(&self, subject: &TrustSubject) -> Result<(), String> {
        let is_trusted = match subject.scope {
            CapabilityScope::Managed | CapabilityScope::Personal => true,
            CapabilityScope::Plugin => subject.plugin_is_approved,
            CapabilityScope::Project => self.trusts_all || self.find_trusted(subject).is_some(),
        };
        match (is_trusted, &subject.scope) {
            (true, _) => Ok(()),
            (false, CapabilityScope::Plugin) => {
                Err("it belongs to a plugin that you have not approved as it is now; run `toolgate plugin approve`"
                    .to_owned())
            }
            (false, _) => Err("it belongs to a project that you have not trusted as it is now; run `toolgate trust add`"
                .to_owned()),
        }
    }

    /// Why the hooks of a file may not run: the file is not trusted, or a file that they run changed since.
    pub(crate) fn check_hooks(&self, subject: &TrustSubject) -> Result<(), String> {
        self.check_file(subject)?;
        if subject.scope != CapabilityScope::Project || self.trusts_all {
            return Ok(());
        }
        let trusted = self.find_trusted(subject).ok_or("it is not trusted any more")?;
        let (bound, unresolved) = self.bind(std::iter::once(subject), &trusted.root);
        if let Some(why) = unresolved.first() {
            return Err(format!(
                "trust does not cover its hooks, because the files that they run are unknown: {why}; name a script of \
                 the project"
            ));
        }
        let changed = bound.iter().find(|(name, digest)| trusted.bound.get(*name) != Some(*digest));
        match changed {
            None => Ok(()),
            Some((name, _)) => {
                let name = name.strip_prefix("file ").unwrap_or(name);
                Err(format!("{name} changed after you trusted it; run `toolgate trust add`"))
            }
        }
    }

    /// What is stored of the workspace of a file, if the file is as it was.
    fn find_trusted(&self, subject: &TrustSubject) -> Option<TrustedSkills> {
        let (file, root) = self.store.as_ref()?;
        let stored: Vec<TrustedSkills> = state_file::load_state_file(file).unwrap_or_default();
        let key = subject.file.to_string();
        let is_stored = |trusted: &TrustedSkills| {
            trusted.root == *root && trusted.files.get(&key).is_some_and(|sha256| *sha256 == subject.sha256)
        };
        stored.into_iter().find(is_stored)
    }

    /// The files that hooks run, and why some of them are not known.
    fn bind<'s>(
        &self,
        subjects: impl Iterator<Item = &'s TrustSubject>,
        root: &AbsPath,
    ) -> (BTreeMap<String, String>, Vec<String>) {
        let paths = ProjectPaths { root, home: self.home.as_ref(), search_path: self.search_path.as_deref() };
        let hooks: Vec<CapabilityHooks> = subjects.map(TrustSubject::read_hooks).collect();
        bind_hooks(paths, hooks.iter().flat_map(CapabilityHooks::handlers))
    }

    /// Trusts the skills and agents of a catalog as they are now. Returns the requests that this makes effective, one line
    /// each.
    pub fn trust_catalog(&self, catalog: &SkillCatalog) -> Result<Vec<String>, SettingsError> {
        let requests = list_requests(catalog);
        let Some((file, root)) = &self.store else { return Ok(Vec::new()) };
        let files: BTreeMap<String, String> =
            requests.iter().map(|(subject, _)| (subject.file.to_string(), subject.sha256.clone())).collect();
        let (bound, _) = self.bind(requests.iter().map(|(subject, _)| subject), root);
        state_file::update_state_file(file, |list: &mut Vec<TrustedSkills>| {
            list.retain(|trusted| trusted.root != *root);
            if !files.is_empty() {
                list.push(TrustedSkills { root: root.clone(), files, bound });
            }
        })?;
        Ok(requests.into_iter().flat_map(|(_, lines)| lines).collect())
    }

    /// Trusts no skill of this workspace any more.
    pub fn forget(&self) -> Result<(), SettingsError> {
        let Some((file, root)) = &self.store else { return Ok(()) };
        state_file::update_state_file(file, |list: &mut Vec<TrustedSkills>| {
            list.retain(|trusted| trusted.root != *root)
        })
    }

    /// What the hooks of a skill run, one line each.
    pub fn describe_hooks(skill: &CatalogSkill) -> Vec<String> {
        TrustSubject::of_skill(skill).read_hooks().describe()
    }

    /// What the skills and agents of the project ask for, one line each.
    pub fn describe_requests(catalog: &SkillCatalog) -> Vec<String> {
        list_requests(catalog).into_iter().flat_map(|(_, lines)| lines).collect()
    }
}

/// The skills and agents of the project that ask for tools or hooks, each with lines for the user.
fn list_requests(catalog: &SkillCatalog) -> Vec<(TrustSubject, Vec<String>)> {
    let mut found = Vec::new();
    for skill in catalog.skills().filter(|skill| skill.scope == CapabilityScope::Project) {
        let subject = TrustSubject::of_skill(skill);
        let title = format!("skill `{}`", skill.name);
        let tools = &skill.definition.allowed_tools;
        let mut lines = describe_hooks(&subject, &title);
        if !tools.is_empty() {
            lines.push(format!("{title}: allowed-tools {} ({:.12}…)", tools.join(", "), skill.sha256));
        }
        found.push((subject, lines));
    }
    for agent in catalog.agents().filter(|agent| agent.scope == CapabilityScope::Project) {
        let subject = TrustSubject::of_agent(agent);
        let lines = describe_hooks(&subject, &format!("agent `{}`", agent.name));
        found.push((subject, lines));
    }
    found.retain(|(_, lines)| !lines.is_empty());
    found
}

/// The hooks of a file, one line each.
fn describe_hooks(subject: &TrustSubject, title: &str) -> Vec<String> {
    let lines = subject.read_hooks().describe();
    lines.into_iter().map(|line| format!("{title}: {line} ({:.12}…)", subject.sha256)).collect()
}
