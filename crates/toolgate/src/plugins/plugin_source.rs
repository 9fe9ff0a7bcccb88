//! Where plugins come from: a directory or a git repository, with one plugin or a marketplace in it.

use super::package::{MANIFEST_FILE, PluginPackage};
use super::plugin_store::PluginStore;
use crate::skills::CatalogProblem;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use toolgate_files::{
    FileStamp, ScratchDirectory, copy_tree, list_tree_files, read_file_stamp, read_named_bytes,
};
use toolgate_process::{GitFetch, check_git_url, fetch_git};
use toolgate_proto::AbsPath;
use toolgate_skills::{MarketplaceEntry, PluginManifest, PluginMarketplace, PluginOrigin};

/// Where the list of a marketplace is.
const MARKETPLACE_FILE: &str = ".claude-plugin/marketplace.json";
/// A larger list or manifest is not read.
const MAX_LIST_BYTES: u64 = 16 * 1024 * 1024;
/// The marketplaces of plugins that come from none; no marketplace may have these names.
const OWN_MARKETPLACES: [&str; 3] = ["local", "git", "skills-dir"];

/// Where a plugin or a marketplace is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum PluginSource {
    /// A directory of this machine.
    Directory {
        /// Its path.
        path: AbsPath,
    },
    /// A git repository.
    Git {
        /// Its address.
        url: String,
        /// The branch, tag or commit; absent means the default branch.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reference: Option<String>,
    },
}

impl fmt::Display for PluginSource {
    /// Writes the source as it can be given again.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory { path } => write!(f, "{path}"),
            Self::Git { url, reference: None } => f.write_str(url),
            Self::Git { url, reference: Some(reference) } => write!(f, "{url}#{reference}"),
        }
    }
}

impl PluginSource {
    /// Reads what a user gives: a directory, an address of a repository with `#` and a branch or tag, or `owner/name` of
    /// GitHub. `directory` is the text as a path.
    pub fn parse(text: &str, directory: &AbsPath) -> Result<Self, String> {
        let is_url = text.contains("://");
        let is_scp = text.split_once(':').is_some_and(|(host, _)| host.contains('@') && !host.contains('/'));
        if is_url || is_scp {
            let (url, reference) = match text.split_once('#') {
                Some((url, reference)) => (url, Some(reference.to_owned())),
                None => (text, None),
            };
            check_git_url(url, true).map_err(|problem| format!("`{text}` cannot be used: {problem}"))?;
            return Ok(Self::Git { url: url.to_owned(), reference });
        }
        if read_file_stamp(directory) != FileStamp::Absent {
            return Ok(Self::Directory { path: toolgate_files::resolve(directory).real });
        }
        let fits = |part: &str| {
            !part.is_empty()
                && !part.starts_with(['-', '.'])
                && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        };
        match text.split_once('/') {
            Some((owner, name)) if fits(owner) && fits(name) => {
                Ok(Self::Git { url: format!("https://github.com/{text}.git"), reference: None })
            }
            _ => Err(format!("there is no directory `{directory}`")),
        }
    }

    /// Whether both are the same place, whatever branch.
    pub(super) fn is_same_place(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Git { url: one, .. }, Self::Git { url: other, .. }) => one == other,
            (one, other) => one == other,
        }
    }

    /// Whether it is on this machine, so that it may refer to other places of this machine.
    fn is_local(&self) -> bool {
        match self {
            Self::Directory { .. } => true,
            Self::Git { url, .. } => url.starts_with("file://"),
        }
    }

    /// Brings the source onto this machine. Nothing of it runs.
    pub async fn fetch(
        &self,
        store: &PluginStore,
        env: &BTreeMap<String, String>,
    ) -> Result<SourceContent, String> {
        match self {
            Self::Directory { path } => SourceContent::read(self.clone(), path.clone(), None, None),
            Self::Git { url, reference } => {
                let scratch = new_scratch(store)?;
                let commit = fetch_repository(url, reference.as_deref(), true, scratch.dir(), env).await?;
                let dir = scratch.dir().join("repository");
                SourceContent::read(self.clone(), dir, Some(commit), Some(scratch))
            }
        }
    }
}

/// A source that is on this machine.
#[derive(Debug)]
#[non_exhaustive]
pub struct SourceContent {
    /// The source.
    pub source: PluginSource,
    /// Its list of plugins, if it is a marketplace.
    pub marketplace: Option<PluginMarketplace>,
    /// What is wrong with the list.
    pub problems: Vec<CatalogProblem>,
    /// Its directory.
    dir: AbsPath,
    /// The commit, if it was fetched.
    commit: Option<String>,
    /// Removes what was fetched.
    _scratch: Option<ScratchDirectory>,
}

/// A plugin that is ready to be installed: a copy that nothing else changes, so that what the user approves is what is
/// installed. It is removed when this is dropped.
#[derive(Debug)]
#[non_exhaustive]
pub struct StagedPlugin {
    /// The copy.
    pub package: PluginPackage,
    /// The marketplace, or `local` or `git`.
    pub marketplace: String,
    /// Where it comes from.
    pub source: PluginSource,
    /// The commit, if it was fetched.
    pub commit: Option<String>,
    /// Whether it is listed in a marketplace.
    pub(super) is_of_marketplace: bool,
    /// Removes the copy.
    _scratch: ScratchDirectory,
}

impl SourceContent {
    /// Reads the list of a marketplace, if there is one.
    fn read(
        source: PluginSource,
        dir: AbsPath,
        commit: Option<String>,
        scratch: Option<ScratchDirectory>,
    ) -> Result<Self, String> {
        let file = dir.join(MARKETPLACE_FILE);
        let mut content =
            Self { source, marketplace: None, problems: Vec::new(), dir, commit, _scratch: scratch };
        if read_file_stamp(&file) == FileStamp::Absent {
            return Ok(content);
        }
        let bytes = read_inside(&file, &content.dir)?;
        let (marketplace, problems) = PluginMarketplace::read(&bytes);
        let list = |problem| CatalogProblem { file: file.clone(), problem };
        content.problems = problems.into_iter().map(list).collect();
        match marketplace {
            Some(market) if OWN_MARKETPLACES.contains(&market.name.as_str()) => {
                Err(format!("{file}: a marketplace cannot have the name `{}`", market.name))
            }
            Some(market) => {
                content.marketplace = Some(market);
                Ok(content)
            }
            None => Err(content.problems.first().map(ToString::to_string).unwrap_or_default()),
        }
    }

    /// Copies a plugin of the source to where it can be shown and installed: the one of this name in a marketplace, or the
    /// only one.
    pub async fn stage(
        &self,
        name: Option<&str>,
        store: &PluginStore,
        env: &BTreeMap<String, String>,
    ) -> Result<StagedPlugin, String> {
        let Some(market) = &self.marketplace else {
            let marketplace = match &self.source {
                PluginSource::Directory { .. } => "local",
                PluginSource::Git { .. } => "git",
            };
            let staged = self.copy_plugin(&self.dir, None, store)?;
            let staged = self.new_staged(staged, marketplace, self.commit.clone(), false);
            return match name.filter(|name| *name != staged.package.name()) {
                Some(name) => Err(format!("{} has no plugin `{name}`", self.source)),
                None => Ok(staged),
            };
        };
        let name = name.ok_or("name a plugin of the marketplace")?;
        let entry = market
            .find(name)
            .ok_or_else(|| format!("the marketplace `{}` has no plugin `{name}`", market.name))?;
        let (staged, commit) = match &entry.origin {
            PluginOrigin::Path(path) => {
                let dir = self.dir.join(path.trim_start_matches("./"));
                let real = toolgate_files::resolve(&dir).real;
                if !real.is_under(&toolgate_files::resolve(&self.dir).real) {
                    return Err(format!("`{path}` leads out of the marketplace"));
                }
                (self.copy_plugin(&real, Some(entry), store)?, self.commit.clone())
            }
            PluginOrigin::Git { url, reference, commit, subdir } => {
                let scratch = new_scratch(store)?;
                let wanted = commit.as_deref().or(reference.as_deref());
                let allows_files = self.source.is_local();
                let found = fetch_repository(url, wanted, allows_files, scratch.dir(), env).await?;
                if commit.as_ref().is_some_and(|commit| !found.starts_with(commit.as_str())) {
                    return Err(format!("`{url}` gave another commit than the marketplace names"));
                }
                let repository = scratch.dir().join("repository");
                let dir = subdir.as_ref().map_or_else(|| repository.clone(), |dir| repository.join(dir));
                let real = toolgate_files::resolve(&dir).real;
                if !real.is_under(&repository) {
                    return Err(format!("the directory of plugin `{name}` leads out of its repository"));
                }
                (self.copy_plugin(&real, Some(entry), store)?, Some(found))
            }
            PluginOrigin::Unsupported(kind) => {
                return Err(format!(
                    "plugin `{name}` comes from a source of kind `{kind}`, which is not supported"
                ));
            }
            _ => return Err(format!("plugin `{name}` comes from a source that is not supported")),
        };
        Ok(self.new_staged(staged, &market.name, commit, true))
    }

    /// A staged plugin.
    fn new_staged(
        &self,
        (package, scratch): (PluginPackage, ScratchDirectory),
        marketplace: &str,
        commit: Option<String>,
        is_of_marketplace: bool,
    ) -> StagedPlugin {
        StagedPlugin {
            package,
            marketplace: marketplace.to_owned(),
            source: self.source.clone(),
            commit,
            is_of_marketplace,
            _scratch: scratch,
        }
    }

    /// Copies a plugin, writes its manifest as the marketplace completes it, and reads the copy.
    fn copy_plugin(
        &self,
        dir: &AbsPath,
        entry: Option<&MarketplaceEntry>,
        store: &PluginStore,
    ) -> Result<(PluginPackage, ScratchDirectory), String> {
        let files = list_tree_files(dir).map_err(|problem| format!("{dir}: {problem}"))?;
        let has_manifest = files.iter().any(|file| file.path == MANIFEST_FILE);
        let own = match has_manifest {
            true => {
                let file = dir.join(MANIFEST_FILE);
                let (manifest, problems) = PluginManifest::read(&read_inside(&file, dir)?);
                let first = problems.first().map(|problem| format!("{file}:{problem}"));
                Some(manifest.ok_or_else(|| first.unwrap_or_default())?)
            }
            false => None,
        };
        let manifest = join_manifests(own, entry)?;
        let name = match &manifest {
            Some(manifest) => manifest.name.clone(),
            None => dir.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        };
        let scratch = new_scratch(store)?;
        let target = scratch.dir().join(name);
        copy_tree(dir, &files, &target).map_err(|problem| format!("{dir}: {problem}"))?;
        let is_completed = entry.is_some_and(|entry| entry.manifest.has_components() || !has_manifest);
        if let Some(manifest) = manifest.filter(|_| is_completed) {
            let text = serde_json::to_string_pretty(&manifest.to_json()).unwrap_or_default();
            toolgate_files::replace_state_file(&target.join(MANIFEST_FILE), text.as_bytes())
                .map_err(|problem| format!("{target}: {problem}"))?;
        }
        let package = PluginPackage::read(&target).map_err(|problems| {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            // The copy has the files of the directory that the user knows.
            lines.join("\n").replace(&target.to_string(), &dir.to_string())
        })?;
        Ok((package, scratch))
    }
}

/// The manifest of a plugin with what its marketplace says.
fn join_manifests(
    own: Option<PluginManifest>,
    entry: Option<&MarketplaceEntry>,
) -> Result<Option<PluginManifest>, String> {
    let Some(entry) = entry else { return Ok(own) };
    let Some(mut own) = own else { return Ok(Some(entry.manifest.clone())) };
    if own.name != entry.manifest.name {
        return Err(format!(
            "the marketplace calls the plugin `{}`, and its own manifest `{}`",
            entry.manifest.name, own.name
        ));
    }
    match entry.is_strict {
        true => own.add_entry(&entry.manifest),
        false if own.has_components() => {
            return Err(
                "the marketplace describes the plugin (`strict: false`), and its own manifest does too"
                    .to_owned(),
            );
        }
        false => own = entry.manifest.clone(),
    }
    Ok(Some(own))
}

/// Reads a file that must not lead out of its directory.
fn read_inside(file: &AbsPath, dir: &AbsPath) -> Result<Vec<u8>, String> {
    if !toolgate_files::resolve(file).real.is_under(&toolgate_files::resolve(dir).real) {
        return Err(format!("{file} leads out of {dir}"));
    }
    read_named_bytes(file, MAX_LIST_BYTES).map_err(|problem| format!("{file}: {problem}"))
}

/// A directory for a copy or a repository.
fn new_scratch(store: &PluginStore) -> Result<ScratchDirectory, String> {
    let parent = store.staging_dir();
    let made =
        toolgate_files::make_private_dir(&parent).and_then(|()| ScratchDirectory::new(&parent, "plugin_"));
    made.map_err(|error| format!("cannot write to {parent}: {error}"))
}

/// Fetches a repository into `repository` of a directory, and returns the commit.
async fn fetch_repository(
    url: &str,
    reference: Option<&str>,
    allows_files: bool,
    dir: &AbsPath,
    env: &BTreeMap<String, String>,
) -> Result<String, String> {
    let target = dir.join("repository");
    toolgate_files::make_private_dir(&target)
        .map_err(|error| format!("cannot write to {target}: {error}"))?;
    let fetch = GitFetch { url, reference, allows_files, target: &target, env };
    fetch_git(&fetch).await.map_err(|problem| format!("`{url}` cannot be fetched: {problem}"))
}
