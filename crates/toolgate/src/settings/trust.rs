//! Trust: what a project brings may only tighten until the user has looked at it.
//!
//! Trust is bound to the workspace's real path and to bytes: the project's settings files and `.mcp.json` whole, and
//! everything that their hooks and servers would run ([`bind`](super::bind)).
//! A change of any of that ends the trust until the user looks again.
//! A command that cannot be resolved to bytes is not trusted with the rest: a hook refuses the calls that it is for, and
//! a server waits for `toolgate mcp approve`.

use super::bind::{CommandBinder, UnresolvedCommand};
use super::document::SettingsNode;
use super::grants::SavedGrant;
use super::merge::{MergeInput, value_at};
use super::values::SettingsValues;
use super::{SettingsError, has_allow, read::CORRECT_FILE_HINT, store};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use toolgate_files::FileStamp;
use toolgate_gate::ledger::sha256_hex;
use toolgate_policy::Layer;
use toolgate_proto::AbsPath;

/// A list of servers larger than this is not read.
const MAX_SERVER_LIST_BYTES: u64 = 16 * 1024 * 1024;

/// Whether a workspace is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TrustStatus {
    /// It is trusted as it is now.
    Trusted,
    /// It was trusted, and has changed since.
    Changed,
    /// It was never trusted.
    #[default]
    Unknown,
}

/// What a project brings that could loosen or run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustManifest {
    /// Each thing, in words, with its file.
    pub items: Vec<String>,
    /// The hash of all that is bound.
    pub sha256: String,
    /// Each file and place that trust is bound to, with its digest or target.
    pub bound: BTreeMap<String, String>,
    /// The files that belong to it beside the settings, as they were.
    pub files: Vec<(AbsPath, FileStamp)>,
    /// What its hooks and servers would run, but for programs of the system.
    pub scripts: Vec<AbsPath>,
    /// What cannot be resolved to bytes, and so is not trusted.
    pub unresolved: Vec<UnresolvedCommand>,
}

/// Where a project is, as far as binding must know.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProjectPaths<'a> {
    pub(super) root: &'a AbsPath,
    pub(super) home: Option<&'a AbsPath>,
    pub(super) search_path: Option<&'a str>,
}

impl TrustManifest {
    /// Gathers it out of the project's settings files.
    pub(super) fn collect(
        place: ProjectPaths<'_>,
        texts: &[(AbsPath, String)],
        granted: &[SavedGrant],
    ) -> Result<Self, SettingsError> {
        let root = &toolgate_files::resolve(place.root).real;
        let mut brought = Self::default();
        let mut binder = CommandBinder::new(root, place.home, place.search_path);
        let mut shapes = Vec::new();
        for (path, text) in texts {
            let node = SettingsNode::parse(text).map_err(|unreadable| SettingsError {
                file: path.to_string(),
                line: unreadable.line,
                message: unreadable.message,
                fix: CORRECT_FILE_HINT.to_owned(),
            })?;
            let said = node.value();
            let name = path.as_path().strip_prefix(place.root.as_path()).unwrap_or(path.as_path());
            binder.bind_file(&root.join(name), text.as_bytes());
            for (key, value) in find_loosening_keys(&said, path, granted) {
                brought.items.push(format!("{}: {key} {value}", name.display()));
            }
            // The file was or will be refused elsewhere if it does not fit; here it only runs nothing.
            shapes.push(serde_json::from_value::<SettingsValues>(said).unwrap_or_default());
        }
        let list = root.join(".mcp.json");
        let stamp = toolgate_files::read_file_stamp(&list);
        let mut listed = Value::Null;
        if let Ok(content) = toolgate_files::read_named_bytes(&list, MAX_SERVER_LIST_BYTES) {
            brought.items.push(format!(".mcp.json: {} bytes of servers", content.len()));
            binder.bind_file(&list, &content);
            listed = serde_json::from_slice(&content).unwrap_or_default();
        }
        bind_commands(&mut binder, &shapes, &listed);
        let CommandBinder { bound, files, scripts, unresolved, .. } = binder;
        for script in &scripts {
            let name = script.as_path().strip_prefix(root.as_path()).unwrap_or(script.as_path());
            let digest = bound.get(&format!("file {script}")).map(String::as_str).unwrap_or_default();
            brought.items.push(format!("script {} ({digest:.12}…)", name.display()));
        }
        brought.files = std::iter::once((list, stamp)).chain(files).collect();
        (brought.scripts, brought.unresolved) = (scripts, unresolved);
        brought.sha256 = digest_bound(&bound);
        brought.bound = bound;
        Ok(brought)
    }

    /// Whether these are the bytes of a file that trust is bound to.
    pub(crate) fn is_bound_content(&self, file: &AbsPath, content: &[u8]) -> bool {
        self.bound.get(&format!("file {file}")).is_some_and(|digest| *digest == sha256_hex(content))
    }

    /// Whether there is anything to trust.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

fn bind_commands(binder: &mut CommandBinder<'_>, shapes: &[SettingsValues], listed: &Value) {
    let hooks =
        || shapes.iter().flat_map(|shape| shape.hooks.values()).flatten().flat_map(|group| &group.hooks);
    let of_settings = shapes.iter().flat_map(|shape| &shape.mcp_servers);
    let of_list = listed.get("mcpServers").and_then(Value::as_object).into_iter().flatten();
    let servers: Vec<(&String, &Value)> = of_settings.chain(of_list).collect();
    if hooks().next().is_some() || !servers.is_empty() {
        for (name, value) in shapes.iter().flat_map(|shape| &shape.env) {
            if name == "PATH" {
                binder.set_search_path(value);
            }
            if let Err(why) = binder.bind_variable(name, value) {
                let what = format!("variable `{name}`");
                binder.unresolved.push(UnresolvedCommand { what, why, key: String::new() });
            }
        }
    }
    hooks().for_each(|handler| binder.bind_hook(handler));
    servers.into_iter().for_each(|(name, entry)| binder.bind_server(name, entry));
}

/// What hooks would run, but for programs of the system.
pub(super) fn collect_hook_scripts<'s>(
    place: ProjectPaths<'_>,
    shapes: impl Iterator<Item = &'s SettingsValues>,
) -> Vec<AbsPath> {
    let root = toolgate_files::resolve(place.root).real;
    let mut binder = CommandBinder::new(&root, place.home, place.search_path);
    for handler in shapes.flat_map(|shape| shape.hooks.values()).flatten().flat_map(|group| &group.hooks) {
        binder.bind_hook(handler);
    }
    binder.scripts
}

/// The keys of a settings file that wait for trust, with their values.
fn find_loosening_keys(said: &Value, path: &AbsPath, granted: &[SavedGrant]) -> Vec<(String, Value)> {
    let granted: Vec<String> =
        granted.iter().filter(|grant| grant.file == *path).map(|grant| grant.rule.clone()).collect();
    let contribution = MergeInput { value: said, layer: Layer::Project, trusted: false, granted: &granted };
    let mut out: Vec<(String, Value)> = contribution
        .inactive_keys()
        .into_iter()
        .filter_map(|key| Some((key.name(), value_at(said, &key.path)?.clone())))
        .collect();
    for (key, value) in &mut out {
        if let ("permissions.allow", Value::Array(rules)) = (key.as_str(), value) {
            rules.retain(|rule| !granted.iter().any(|granted| rule.as_str() == Some(granted)));
        }
    }
    let mode = said.get("permissions").and_then(|permissions| permissions.get("defaultMode"));
    if let Some(mode) = mode.filter(|mode| !mode.is_null()) {
        out.push(("permissions.defaultMode".to_owned(), mode.clone()));
    }
    if let Some(book) = said.get("policy").filter(|book| has_allow(book)) {
        out.push(("policy".to_owned(), book.clone()));
    }
    out
}

fn digest_bound(bound: &BTreeMap<String, String>) -> String {
    sha256_hex(serde_json::to_string(bound).unwrap_or_default().as_bytes())
}

/// One workspace that the user trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustedWorkspace {
    /// Its real path.
    pub root: AbsPath,
    /// The hash of what it brought then.
    pub sha256: String,
    /// Each file and place of it, with its digest or target.
    #[serde(default)]
    pub bound: BTreeMap<String, String>,
    /// When: milliseconds since 1970, UTC.
    pub at: u64,
}

/// A workspace as wide as the home directory that the user said yes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WideWorkspace {
    /// Its real path.
    pub root: AbsPath,
    /// When: milliseconds since 1970, UTC.
    pub at: u64,
}

/// Where trust is remembered.
#[derive(Debug, Clone)]
pub struct TrustStore {
    pub(super) file: AbsPath,
    pub(super) wide: AbsPath,
}

impl TrustStore {
    /// The store in a state directory.
    pub fn in_dir(state_dir: &AbsPath) -> Self {
        Self { file: state_dir.join("trust.json"), wide: state_dir.join("wide-workspaces.json") }
    }

    /// Every workspace that was trusted.
    pub fn list(&self) -> Result<Vec<TrustedWorkspace>, SettingsError> {
        store::load(&self.file)
    }

    /// Trusts a workspace as it is.
    pub fn add(&self, root: &AbsPath, brought: &TrustManifest) -> Result<(), SettingsError> {
        let root = toolgate_files::resolve(root).real;
        store::update(&self.file, |list: &mut Vec<TrustedWorkspace>| {
            list.retain(|trusted| trusted.root != root);
            let (sha256, bound) = (brought.sha256.clone(), brought.bound.clone());
            list.push(TrustedWorkspace { root, sha256, bound, at: toolgate_files::now_millis() });
        })
    }

    /// Ends the trust in a workspace. False if there was none.
    pub fn remove(&self, root: &AbsPath) -> Result<bool, SettingsError> {
        let real = toolgate_files::resolve(root).real;
        let wide = store::update(&self.wide, |list: &mut Vec<WideWorkspace>| {
            let before = list.len();
            list.retain(|known| known.root != real);
            list.len() < before
        })?;
        let trusted = store::update(&self.file, |list: &mut Vec<TrustedWorkspace>| {
            let before = list.len();
            list.retain(|trusted| trusted.root != real && trusted.root != *root);
            list.len() < before
        })?;
        Ok(trusted || wide)
    }

    /// How a workspace stands.
    pub fn trust_status(
        &self,
        root: &AbsPath,
        brought: &TrustManifest,
    ) -> Result<TrustStatus, SettingsError> {
        let real = toolgate_files::resolve(root).real;
        Ok(match self.list()?.iter().find(|trusted| trusted.root == real) {
            Some(trusted) if trusted.sha256 == brought.sha256 => TrustStatus::Trusted,
            Some(_) => TrustStatus::Changed,
            None => TrustStatus::Unknown,
        })
    }

    /// What differs from when a workspace was trusted, in words.
    pub fn changes(&self, root: &AbsPath, brought: &TrustManifest) -> Result<Vec<String>, SettingsError> {
        let real = toolgate_files::resolve(root).real;
        let list = self.list()?;
        let Some(trusted) = list.iter().find(|trusted| trusted.root == real) else { return Ok(Vec::new()) };
        let mut changes: Vec<String> = Vec::new();
        for key in trusted.bound.keys().chain(brought.bound.keys()) {
            let name = key.split_once(' ').map_or(key.as_str(), |(_, path)| path);
            let name = name.strip_prefix(&format!("{real}/")).unwrap_or(name).to_owned();
            if trusted.bound.get(key) != brought.bound.get(key) && !changes.contains(&name) {
                changes.push(name);
            }
        }
        Ok(changes)
    }

    /// Keeps the trust in a workspace whose file toolgate itself writes, such as a rule that the user granted. What was
    /// there before must be what was trusted.
    pub(super) fn update_after_own_write(
        &self,
        root: &AbsPath,
        file: &AbsPath,
        before: Option<&str>,
        after: &str,
    ) -> Result<(), SettingsError> {
        let key = format!("file {file}");
        let digest = |text: &str| sha256_hex(text.as_bytes());
        let concerns = |trusted: &TrustedWorkspace| {
            trusted.root == *root && trusted.bound.get(&key).cloned() == before.map(digest)
        };
        if !self.list()?.iter().any(concerns) {
            return Ok(());
        }
        store::update(&self.file, |list: &mut Vec<TrustedWorkspace>| {
            for trusted in list.iter_mut().filter(|trusted| concerns(trusted)) {
                trusted.bound.insert(key.clone(), digest(after));
                trusted.sha256 = digest_bound(&trusted.bound);
            }
        })
    }

    /// Remembers that the user wants to work in a workspace as wide as the home directory.
    pub fn accept_wide(&self, root: &AbsPath) -> Result<(), SettingsError> {
        let root = toolgate_files::resolve(root).real;
        store::update(&self.wide, |list: &mut Vec<WideWorkspace>| {
            list.retain(|known| known.root != root);
            list.push(WideWorkspace { root, at: toolgate_files::now_millis() });
        })
    }

    /// Whether the user said yes to such a workspace.
    pub fn is_accepted_wide(&self, root: &AbsPath) -> Result<bool, SettingsError> {
        let root = toolgate_files::resolve(root).real;
        Ok(store::load::<WideWorkspace>(&self.wide)?.iter().any(|known| known.root == root))
    }
}

/// What is so wide about a workspace that the user must say yes to it first: the whole file system, the home directory,
/// or a directory above it.
pub fn describe_wide_workspace(root: &AbsPath, home: Option<&AbsPath>) -> Option<&'static str> {
    let real = toolgate_files::resolve(root).real;
    let home = home.map(|home| toolgate_files::resolve(home).real);
    match home {
        _ if real == AbsPath::root() => Some("the whole file system"),
        Some(home) if home == real => Some("your home directory"),
        Some(home) if home.is_under(&real) => Some("a directory above your home directory"),
        _ => None,
    }
}
