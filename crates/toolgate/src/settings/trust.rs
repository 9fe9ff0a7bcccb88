//! Trust in a project: until the user trusts it, its settings can only restrict.
//!
//! Trust is bound to the real path of the workspace and to hashes: of the project's settings files and `.mcp.json` as a
//! whole, and of the files that their hooks and servers execute ([`bind`](super::bind)).
//! A change to any of these ends the trust until the user confirms it again.
//! Trust does not cover a command whose files cannot be determined: such a hook refuses the calls that it screens, and
//! such a server waits for `toolgate mcp approve`.

use super::bind::{CommandBinder, UnresolvedCommand};
use super::grants::SavedGrant;
use super::merge::{KeyRule, MergeInput, MergeRule, value_at};
use super::node::SettingsNode;
use super::trusted_hooks::TrustedHooks;
use super::values::{HookHandler, SettingsValues};
use super::{SettingsError, SettingsNote, has_allow, read::CORRECT_FILE_HINT, state_file};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use toolgate_files::FileStamp;
use toolgate_gate::ledger::sha256_hex;
use toolgate_policy::Layer;
use toolgate_proto::{AbsPath, EntryKind};

/// A larger `.mcp.json` is not read.
const MAX_SERVER_LIST_BYTES: u64 = 16 * 1024 * 1024;

/// What a note about trust that has lapsed begins with.
const CHANGED_TRUST: &str = "this project changed after you trusted it";
/// What a note about a key without effect says if trust would give it one.
pub(super) const UNTIL_TRUSTED: &str = "has no effect until you trust this project";

impl SettingsNote {
    /// Whether trust in the project would settle it.
    pub fn is_about_trust(&self) -> bool {
        self.message.starts_with(CHANGED_TRUST) || self.message.contains(UNTIL_TRUSTED)
    }
}

/// Whether a project is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TrustStatus {
    /// The user trusted it, and it has not changed.
    Trusted,
    /// The user trusted it, and it has changed since.
    Changed,
    /// The user has not trusted it.
    #[default]
    Unknown,
}

/// What trust in a project would activate, and the hashes that trust is bound to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrustManifest {
    /// The keys and scripts that need trust, one line each, for the user.
    pub items: Vec<String>,
    /// The keys that count in no project, trusted or not.
    pub ignored: Vec<IgnoredKey>,
    /// The hash of `bound`, which is compared when the files are read again.
    pub sha256: String,
    /// Each file and path that trust is bound to, with its digest or symlink target.
    pub bound: BTreeMap<String, String>,
    /// The stamps of these files except the settings; a changed stamp makes the settings stale.
    pub files: Vec<(AbsPath, FileStamp)>,
    /// The files that hooks and servers execute, except system programs.
    pub scripts: Vec<AbsPath>,
    /// The commands whose files cannot be determined; trust does not cover them.
    pub unresolved: Vec<UnresolvedCommand>,
    /// The hooks of the project's settings files.
    pub(crate) hooks: TrustedHooks,
    /// Whether the project has a list of MCP servers, `.mcp.json`.
    pub(crate) has_server_list: bool,
}

/// A key in a project's settings that is never taken from a project.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct IgnoredKey {
    /// The file, the key and its value.
    pub what: String,
    /// Only managed settings can set it, and not the user's own.
    pub needs_managed_file: bool,
}

/// The paths that are needed to find the files of a command.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ProjectPaths<'a> {
    /// The workspace root.
    pub(crate) root: &'a AbsPath,
    /// The home directory, for `~/`.
    pub(crate) home: Option<&'a AbsPath>,
    /// `PATH`.
    pub(crate) search_path: Option<&'a str>,
}

impl TrustManifest {
    /// Builds the manifest from the texts of the project's settings files.
    pub(super) fn collect(
        paths: ProjectPaths<'_>,
        texts: &[(&AbsPath, &str)],
        granted: &[SavedGrant],
    ) -> Result<Self, SettingsError> {
        let root = &toolgate_files::resolve(paths.root).real;
        let mut manifest = Self::default();
        let mut binder = CommandBinder::new(root, paths.home, paths.search_path);
        let mut file_values = Vec::new();
        for (path, text) in texts {
            let node = SettingsNode::parse(text).map_err(|error| SettingsError {
                file: path.to_string(),
                line: error.line,
                message: error.message,
                fix: CORRECT_FILE_HINT.to_owned(),
            })?;
            let value = node.value();
            let name = path.as_path().strip_prefix(paths.root.as_path()).unwrap_or(path.as_path());
            binder.bind_file(&root.join(name), text.as_bytes());
            let describe = |(key, value): (String, Value)| format!("{}: {key} {value}", name.display());
            manifest.items.extend(find_loosening_keys(&value, path, granted).into_iter().map(describe));
            manifest.ignored.extend(find_ignored_keys(&value).into_iter().map(|key| {
                let value = value_at(&value, &key.path).cloned().unwrap_or_default();
                let needs_managed_file = matches!(key.rule, MergeRule::ManagedOnly(_));
                IgnoredKey { what: describe((key.name(), value)), needs_managed_file }
            }));
            manifest.hooks.add_file(&name.display().to_string(), &value);
            // A file that violates the schema is refused when it is loaded; here it has no commands.
            file_values.push(serde_json::from_value::<SettingsValues>(value).unwrap_or_default());
        }
        let server_list = root.join(".mcp.json");
        let stamp = toolgate_files::read_file_stamp(&server_list);
        let mut servers = Value::Null;
        if let Ok(content) = toolgate_files::read_named_bytes(&server_list, MAX_SERVER_LIST_BYTES) {
            manifest.items.push(format!(".mcp.json: {} bytes of servers", content.len()));
            binder.bind_file(&server_list, &content);
            manifest.has_server_list = true;
            servers = serde_json::from_slice(&content).unwrap_or_default();
        }
        bind_commands(&mut binder, &file_values, &servers);
        let CommandBinder { bound, files, scripts, unresolved, .. } = binder;
        for script in &scripts {
            let name = script.as_path().strip_prefix(root.as_path()).unwrap_or(script.as_path());
            let digest = bound.get(&format!("file {script}")).map(String::as_str).unwrap_or_default();
            manifest.items.push(format!("script {} ({digest:.12}…)", name.display()));
        }
        manifest.files = std::iter::once((server_list, stamp)).chain(files).collect();
        (manifest.scripts, manifest.unresolved) = (scripts, unresolved);
        manifest.sha256 = digest_bound(&bound);
        manifest.bound = bound;
        Ok(manifest)
    }

    /// Whether trust is bound to this content of a file.
    pub(crate) fn is_bound_content(&self, file: &AbsPath, content: &[u8]) -> bool {
        self.bound.get(&format!("file {file}")).is_some_and(|digest| *digest == sha256_hex(content))
    }

    /// Whether the project has nothing that needs trust.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

/// Binds the commands of all hooks and servers. Variables come first, because `PATH` decides which programs run.
fn bind_commands(binder: &mut CommandBinder<'_>, files: &[SettingsValues], server_list: &Value) {
    let hooks =
        || files.iter().flat_map(|values| values.hooks.values()).flatten().flat_map(|group| &group.hooks);
    let of_settings = files.iter().flat_map(|values| &values.mcp_servers);
    let of_list = server_list.get("mcpServers").and_then(Value::as_object).into_iter().flatten();
    let servers: Vec<(&String, &Value)> = of_settings.chain(of_list).collect();
    let language_servers = || files.iter().flat_map(|values| &values.lsp_servers);
    if hooks().next().is_some() || !servers.is_empty() || language_servers().next().is_some() {
        for (name, value) in files.iter().flat_map(|values| &values.env) {
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
    language_servers().for_each(|(name, entry)| binder.bind_server(&language_server_key(name), entry));
}

/// The key of a language server among the commands whose files cannot be determined: apart from MCP servers of that name.
pub(crate) fn language_server_key(name: &str) -> String {
    format!("lsp {name}")
}

/// The files that hooks execute, except system programs.
pub(super) fn collect_hook_scripts<'s>(
    paths: ProjectPaths<'_>,
    files: impl Iterator<Item = &'s SettingsValues>,
) -> Vec<AbsPath> {
    let root = toolgate_files::resolve(paths.root).real;
    let mut binder = CommandBinder::new(&root, paths.home, paths.search_path);
    for handler in files.flat_map(|values| values.hooks.values()).flatten().flat_map(|group| &group.hooks) {
        binder.bind_hook(handler);
    }
    binder.scripts
}

/// The files that hooks run, each with its digest, and why some of them are not known.
pub(crate) fn bind_hooks<'h>(
    paths: ProjectPaths<'_>,
    handlers: impl Iterator<Item = &'h HookHandler>,
) -> (BTreeMap<String, String>, Vec<String>) {
    let root = toolgate_files::resolve(paths.root).real;
    let mut binder = CommandBinder::new(&root, paths.home, paths.search_path);
    handlers.for_each(|handler| binder.bind_hook(handler));
    let unresolved =
        binder.unresolved.into_iter().map(|command| format!("{}: {}", command.what, command.why));
    (binder.bound, unresolved.collect())
}

/// The keys of a settings file that are inactive in every project, trusted or not.
fn find_ignored_keys(value: &Value) -> Vec<&'static KeyRule> {
    MergeInput { value, layer: Layer::Project, trusted: true, granted: &[] }.inactive_keys()
}

/// The keys of a settings file that are inactive without trust and active with it, with their values.
fn find_loosening_keys(value: &Value, path: &AbsPath, granted: &[SavedGrant]) -> Vec<(String, Value)> {
    let granted: Vec<String> =
        granted.iter().filter(|grant| grant.file == *path).map(|grant| grant.rule.clone()).collect();
    let file = MergeInput { value, layer: Layer::Project, trusted: false, granted: &granted };
    let ignored = find_ignored_keys(value);
    let is_ignored = |key: &KeyRule| ignored.iter().any(|other| other.path == key.path);
    let mut out: Vec<(String, Value)> = file
        .inactive_keys()
        .into_iter()
        .filter(|key| !is_ignored(key))
        .filter_map(|key| Some((key.name(), value_at(value, &key.path)?.clone())))
        .collect();
    for (key, value) in &mut out {
        if let ("permissions.allow", Value::Array(rules)) = (key.as_str(), value) {
            rules.retain(|rule| !granted.iter().any(|granted| rule.as_str() == Some(granted)));
        }
    }
    let mode = value.get("permissions").and_then(|permissions| permissions.get("defaultMode"));
    if let Some(mode) = mode.filter(|mode| !mode.is_null()) {
        out.push(("permissions.defaultMode".to_owned(), mode.clone()));
    }
    if let Some(book) = value.get("policy").filter(|book| has_allow(book)) {
        out.push(("policy".to_owned(), book.clone()));
    }
    out
}

/// The hash of everything that trust is bound to.
fn digest_bound(bound: &BTreeMap<String, String>) -> String {
    sha256_hex(serde_json::to_string(bound).unwrap_or_default().as_bytes())
}

/// A project that the user trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct TrustedWorkspace {
    /// Its real path.
    pub root: AbsPath,
    /// The hash of `bound`.
    pub sha256: String,
    /// Each file and path that trust is bound to, with its digest or symlink target; to report what changed.
    #[serde(default)]
    pub bound: BTreeMap<String, String>,
    /// The hooks of its settings; to refuse the calls that they screened once it changed.
    #[serde(default, skip_serializing_if = "TrustedHooks::is_empty")]
    pub(crate) hooks: TrustedHooks,
    /// When: milliseconds since 1970, UTC.
    pub at: u64,
}

impl TrustedWorkspace {
    /// The paths that differ in the manifest, relative to the workspace where possible.
    fn changes(&self, manifest: &TrustManifest) -> Vec<String> {
        let mut changes: Vec<String> = Vec::new();
        for key in self.bound.keys().chain(manifest.bound.keys()) {
            let name = key.split_once(' ').map_or(key.as_str(), |(_, path)| path);
            let name = name.strip_prefix(&format!("{}/", self.root)).unwrap_or(name).to_owned();
            if self.bound.get(key) != manifest.bound.get(key) && !changes.contains(&name) {
                changes.push(name);
            }
        }
        // Files of the workspace say more than programs of the system.
        changes.sort_by_key(|name| name.starts_with('/'));
        changes
    }
}

impl TrustedWorkspace {
    /// The note that the project changed since it was trusted, at the first file of it that changed and is still there.
    /// `refuses` says whether calls are refused because its hooks screened them.
    pub(super) fn changed_note(&self, manifest: &TrustManifest, refuses: bool) -> SettingsNote {
        let changes = self.changes(manifest);
        let named: Vec<String> = changes.iter().take(3).map(|name| format!("`{name}`")).collect();
        let more = match changes.len().saturating_sub(named.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let what = if named.is_empty() { String::new() } else { format!(" ({}{more})", named.join(", ")) };
        let off = match (refuses, manifest.hooks.is_empty()) {
            (true, false) => {
                "its settings and hooks are off, and the calls that its hooks screen are refused"
            }
            (true, true) => {
                "what needs trust in it is off, and the calls that its hooks screened are refused, although the hooks are \
                 gone"
            }
            (false, _) => "what needs trust in it is off",
        };
        let is_file = |path: &AbsPath| toolgate_files::resolve(path).kind == EntryKind::File;
        let bound = manifest.bound.keys().filter_map(|key| AbsPath::new(key.strip_prefix("file ")?).ok());
        let files = changes.iter().map(|name| self.root.join(name)).chain(bound);
        let file = files.filter(|path| path.is_under(&self.root)).find(is_file).unwrap_or(self.root.clone());
        SettingsNote {
            file: file.to_string(),
            line: 1,
            message: format!(
                "{CHANGED_TRUST}{what}; {off}; check it with `toolgate trust show`, then run `toolgate trust add`"
            ),
        }
    }
}

/// A workspace that contains the home directory and that the user accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WideWorkspace {
    /// Its real path.
    pub root: AbsPath,
    /// When: milliseconds since 1970, UTC.
    pub at: u64,
}

/// The store of trusted projects and accepted workspaces, in the state directory.
///
/// ```
/// use toolgate::AbsPath;
/// use toolgate::settings::SettingsOptions;
/// use toolgate::settings::trust::{TrustStatus, TrustStore};
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let base = dir.path().canonicalize().unwrap();
/// # let project = AbsPath::new(base.join("project")).unwrap();
/// # let state_dir = AbsPath::new(base.join("state")).unwrap();
/// # std::fs::create_dir_all(base.join("project/.toolgate")).unwrap();
/// # let write = |text| std::fs::write(base.join("project/.toolgate/settings.json"), text).unwrap();
/// write(r#"{ "permissions": { "allow": ["ls"] } }"#);
/// let options = SettingsOptions::new(project.clone());
/// let store = TrustStore::in_dir(&state_dir);
/// let manifest = options.load_trust_manifest()?;
/// store.add(&project, &manifest)?;
/// assert_eq!(store.trust_status(&project, &manifest)?, TrustStatus::Trusted);
///
/// // Any change ends the trust.
/// write(r#"{ "permissions": { "allow": ["Bash"] } }"#);
/// let changed = options.load_trust_manifest()?;
/// assert_eq!(store.trust_status(&project, &changed)?, TrustStatus::Changed);
/// assert_eq!(store.changes(&project, &changed)?, [".toolgate/settings.json"]);
/// # Ok::<(), toolgate::settings::SettingsError>(())
/// ```
#[derive(Debug, Clone)]
pub struct TrustStore {
    /// The file of trusted projects.
    pub(super) file: AbsPath,
    /// The file of accepted workspaces.
    pub(super) wide: AbsPath,
}

impl TrustStore {
    /// The store in a state directory.
    pub fn in_dir(state_dir: &AbsPath) -> Self {
        Self { file: state_dir.join("trust.json"), wide: state_dir.join("wide-workspaces.json") }
    }

    /// Every trusted project.
    pub fn list(&self) -> Result<Vec<TrustedWorkspace>, SettingsError> {
        state_file::load_state_file(&self.file)
    }

    /// Trusts a project as its manifest describes it.
    pub fn add(&self, root: &AbsPath, manifest: &TrustManifest) -> Result<(), SettingsError> {
        let root = toolgate_files::resolve(root).real;
        state_file::update_state_file(&self.file, |list: &mut Vec<TrustedWorkspace>| {
            list.retain(|trusted| trusted.root != root);
            let (sha256, bound) = (manifest.sha256.clone(), manifest.bound.clone());
            let (hooks, at) = (manifest.hooks.clone(), toolgate_files::now_millis());
            list.push(TrustedWorkspace { root, sha256, bound, hooks, at });
        })
    }

    /// Removes a project and its acceptance as a workspace. False if it was neither.
    pub fn remove(&self, root: &AbsPath) -> Result<bool, SettingsError> {
        let real = toolgate_files::resolve(root).real;
        let wide = state_file::update_state_file(&self.wide, |list: &mut Vec<WideWorkspace>| {
            let before = list.len();
            list.retain(|known| known.root != real);
            list.len() < before
        })?;
        let trusted = state_file::update_state_file(&self.file, |list: &mut Vec<TrustedWorkspace>| {
            let before = list.len();
            list.retain(|trusted| trusted.root != real && trusted.root != *root);
            list.len() < before
        })?;
        Ok(trusted || wide)
    }

    /// Whether a project is trusted as its manifest describes it.
    pub fn trust_status(
        &self,
        root: &AbsPath,
        manifest: &TrustManifest,
    ) -> Result<TrustStatus, SettingsError> {
        let real = toolgate_files::resolve(root).real;
        Ok(match self.list()?.iter().find(|trusted| trusted.root == real) {
            Some(trusted) if trusted.sha256 == manifest.sha256 => TrustStatus::Trusted,
            Some(_) => TrustStatus::Changed,
            None => TrustStatus::Unknown,
        })
    }

    /// The paths that changed since the project was trusted, relative to the workspace where possible.
    pub fn changes(&self, root: &AbsPath, manifest: &TrustManifest) -> Result<Vec<String>, SettingsError> {
        Ok(self.find(root)?.map(|trusted| trusted.changes(manifest)).unwrap_or_default())
    }

    /// The entry of a project.
    pub(super) fn find(&self, root: &AbsPath) -> Result<Option<TrustedWorkspace>, SettingsError> {
        let real = toolgate_files::resolve(root).real;
        Ok(self.list()?.into_iter().find(|trusted| trusted.root == real))
    }

    /// Updates the hash of a file that toolgate itself wrote, such as local settings with a granted rule, so that the
    /// project stays trusted. The previous content must be the trusted one: otherwise the write would hide a change.
    pub fn update_after_own_write(
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
        state_file::update_state_file(&self.file, |list: &mut Vec<TrustedWorkspace>| {
            for trusted in list.iter_mut().filter(|trusted| concerns(trusted)) {
                trusted.bound.insert(key.clone(), digest(after));
                trusted.sha256 = digest_bound(&trusted.bound);
            }
        })
    }

    /// Stores that the user accepted a workspace that contains the home directory.
    pub fn accept_wide(&self, root: &AbsPath) -> Result<(), SettingsError> {
        let root = toolgate_files::resolve(root).real;
        state_file::update_state_file(&self.wide, |list: &mut Vec<WideWorkspace>| {
            list.retain(|known| known.root != root);
            list.push(WideWorkspace { root, at: toolgate_files::now_millis() });
        })
    }

    /// Whether the user accepted such a workspace.
    pub fn is_accepted_wide(&self, root: &AbsPath) -> Result<bool, SettingsError> {
        let root = toolgate_files::resolve(root).real;
        Ok(state_file::load_state_file::<WideWorkspace>(&self.wide)?.iter().any(|known| known.root == root))
    }
}

/// Why a workspace needs the acceptance of the user: it is the whole file system, the home directory, or a directory
/// above it.
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
