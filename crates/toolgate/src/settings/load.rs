//! Loading: the paths of the settings files, their order, and reading them all.
//!
//! The order is: managed files, `--settings`, the project's local files, its shared files, the user's files. In each
//! place the files of toolgate come before those of Claude Code.

use super::grants::{GrantFile, SavedGrant};
use super::lint::{SettingsProblem, lint_text, with_other_problems};
use super::node::SettingsNode;
use super::read::{CORRECT_FILE_HINT, SettingsOrigin, read_settings};
use super::trust::{
    ProjectPaths, TrustManifest, TrustStatus, TrustStore, TrustedWorkspace, collect_hook_scripts,
    describe_wide_workspace,
};
use super::{LoadedSettings, SettingsError};
use crate::plugins::{PluginSet, PluginStore};
use toolgate_files::{list_names_with_suffix, read_settings_text};
use toolgate_policy::{Layer, ProblemSeverity};
use toolgate_proto::AbsPath;
use toolgate_proto::json::JsonLimits;
use toolgate_proto::protected_names::SETTINGS_DIRECTORIES;

/// A group of settings files that `--setting-sources` selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingSource {
    /// The user's settings for all projects.
    User,
    /// The project's settings, usually under version control.
    Project,
    /// The user's settings for this project, usually not under version control.
    Local,
}

impl SettingSource {
    /// All groups, which is the default.
    pub const ALL: [Self; 3] = [Self::User, Self::Project, Self::Local];
}

impl std::str::FromStr for SettingSource {
    type Err = String;

    /// Parses one entry of a list of setting sources. The caller handles `none`, which stands for an empty list.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "user" => Ok(Self::User),
            "project" => Ok(Self::Project),
            "local" => Ok(Self::Local),
            _ => Err(format!("unknown setting source `{text}`; use user, project, local or none")),
        }
    }
}

/// Where the settings files are.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SettingsOptions {
    /// The workspace root.
    pub root: AbsPath,
    /// The home directory, for `~/` and the user's Claude Code settings.
    pub home: Option<AbsPath>,
    /// The directory of the user's toolgate settings.
    pub config_dir: Option<AbsPath>,
    /// The directory that stores trust and grants; without it no project is trusted.
    pub state_dir: Option<AbsPath>,
    /// The directories of managed settings, the strongest first.
    pub managed_dirs: Vec<AbsPath>,
    /// The groups to read. Managed files are always read.
    pub sources: Vec<SettingSource>,
    /// The value of `--settings`: a file, or a JSON object.
    pub extra: Option<String>,
    /// Settings of the administrator, as a JSON object, from the program that starts this one. Where the machine has
    /// managed files, these count as options: a command line must not stand in for the administrator.
    pub managed_extra: Option<String>,
    /// The directory that relative paths in `extra` and `mcp_configs` start from.
    pub extra_base: AbsPath,
    /// The values of `--mcp-config`, files or JSON objects: rules for their servers are not taken for misspelled.
    pub mcp_configs: Vec<String>,
    /// Treat the project as trusted.
    pub trust_workspace: bool,
    /// The `PATH` in which hooks find their programs.
    pub search_path: Option<String>,
    /// Directories of plugins for this run only.
    pub plugin_dirs: Vec<AbsPath>,
    /// The same, without their MCP servers.
    pub plugin_dirs_without_servers: Vec<AbsPath>,
    /// The checkout whose settings, servers and skills count in place of those in the workspace: the user trusts it, and
    /// the workspace is a worktree of it with another branch. Paths in its rules mean those of the workspace.
    pub config_root: Option<AbsPath>,
}

impl SettingsOptions {
    /// The workspace and the managed directories; no directory of the user.
    pub fn new(root: AbsPath) -> Self {
        Self {
            extra_base: root.clone(),
            root,
            home: None,
            config_dir: None,
            state_dir: None,
            managed_dirs: ["/etc/toolgate", "/etc/claude-code"]
                .iter()
                .filter_map(|dir| AbsPath::new(dir).ok())
                .collect(),
            sources: SettingSource::ALL.to_vec(),
            extra: None,
            managed_extra: None,
            mcp_configs: Vec::new(),
            trust_workspace: false,
            search_path: None,
            plugin_dirs: Vec::new(),
            plugin_dirs_without_servers: Vec::new(),
            config_root: None,
        }
    }

    /// The directory whose project files are read.
    pub fn project_root(&self) -> &AbsPath {
        self.config_root.as_ref().unwrap_or(&self.root)
    }

    /// Whether a group is read.
    pub(crate) fn includes(&self, source: SettingSource) -> bool {
        self.sources.contains(&source)
    }

    /// The settings files that a project can have, the strongest first, whatever [`SettingsOptions::sources`] selects.
    fn project_files(&self) -> Vec<ProjectFile> {
        let mut files = Vec::new();
        let own = self.user_file_in_root();
        for (source, layer, name) in [
            (SettingSource::Local, Layer::Local, "settings.local.json"),
            (SettingSource::Project, Layer::Project, "settings.json"),
        ] {
            for folder in SETTINGS_DIRECTORIES {
                let path = self.project_root().join(folder).join(name);
                let is_own = own.as_ref() == Some(&path);
                let is_selected = self.includes(source) && !(is_own && self.includes(SettingSource::User));
                files.push(ProjectFile { layer, path, is_selected, needs_trust: !is_own });
            }
        }
        files
    }

    /// The user's files, each with its anchor.
    fn user_files(&self) -> Vec<(AbsPath, AbsPath)> {
        let mut files = Vec::new();
        if !self.includes(SettingSource::User) {
            return files;
        }
        if let Some(dir) = &self.config_dir {
            files.push((dir.join("settings.json"), dir.clone()));
        }
        if let Some(home) = &self.home {
            let dir = home.join(".claude");
            files.push((dir.join("settings.json"), dir));
        }
        files
    }

    /// Every settings file that can exist, with its layer and its anchor, the strongest first.
    pub(super) fn all_files(&self) -> Result<Vec<(Layer, AbsPath, AbsPath)>, SettingsError> {
        let mut files = Vec::new();
        for dir in &self.managed_dirs {
            files.push((Layer::Managed, dir.join("managed-settings.json"), dir.clone()));
            let drop_in_dir = dir.join("managed-settings.d");
            let names = list_names_with_suffix(&drop_in_dir, ".json")
                .map_err(|problem| unreadable_error(&drop_in_dir, &problem))?;
            files.extend(names.into_iter().map(|name| (Layer::Managed, drop_in_dir.join(name), dir.clone())));
        }
        if let Some(extra) = self.extra.as_deref().filter(|extra| !extra.trim_start().starts_with('{')) {
            let path = self.extra_base.join(extra);
            let anchor = path.parent().unwrap_or_else(AbsPath::root);
            files.push((Layer::Cli, path, anchor));
        }
        let selected = self.project_files().into_iter().filter(|file| file.is_selected);
        files.extend(selected.map(|file| (file.layer, file.path, self.root.clone())));
        files.extend(self.user_files().into_iter().map(|(path, anchor)| (Layer::User, path, anchor)));
        Ok(files)
    }

    /// Every path that the settings in force depend on, whether it exists or not, except scripts of hooks.
    pub fn watched_paths(&self) -> Result<Vec<AbsPath>, SettingsError> {
        let mut paths: Vec<AbsPath> = self.all_files()?.into_iter().map(|(_, path, _)| path).collect();
        // Trust depends on the others as well.
        let unselected = self.project_files().into_iter().filter(|file| !file.is_selected);
        paths.extend(unselected.map(|file| file.path));
        if let Some(dir) = &self.state_dir {
            paths.extend([
                TrustStore::in_dir(dir).file,
                TrustStore::in_dir(dir).wide,
                GrantFile::in_dir(dir).file,
                PluginStore::in_dir(dir).file,
                PluginStore::in_dir(dir).approvals_file,
            ]);
        }
        Ok(paths)
    }

    /// The user's file that is at the path of a project's file, because the workspace is the home directory. It needs
    /// no trust, so that its hooks keep running.
    fn user_file_in_root(&self) -> Option<AbsPath> {
        let home = self.home.as_ref()?;
        let is_root = toolgate_files::resolve(home).real == toolgate_files::resolve(self.project_root()).real;
        is_root.then(|| self.project_root().join(".claude").join("settings.json"))
    }

    /// The manifest of what needs trust, whether the project is trusted or not. It is that of all files of the project,
    /// whatever [`SettingsOptions::sources`] selects: trust that is given with fewer sources holds with all of them.
    pub fn load_trust_manifest(&self) -> Result<TrustManifest, SettingsError> {
        let mut files = Vec::new();
        for file in self.project_files() {
            if let Some(text) = read(&file.path)? {
                files.push((file, text));
            }
        }
        self.collect_manifest(&files, &self.load_grants()?)
    }

    /// The manifest of files that were read.
    fn collect_manifest(
        &self,
        files: &[(ProjectFile, String)],
        granted: &[SavedGrant],
    ) -> Result<TrustManifest, SettingsError> {
        let texts = files.iter().filter(|(file, _)| file.needs_trust);
        let texts: Vec<(&AbsPath, &str)> = texts.map(|(file, text)| (&file.path, text.as_str())).collect();
        TrustManifest::collect(self.project_paths(), &texts, granted)
    }

    /// The paths that are needed to find the files of commands.
    fn project_paths(&self) -> ProjectPaths<'_> {
        ProjectPaths {
            root: self.project_root(),
            home: self.home.as_ref(),
            search_path: self.search_path.as_deref(),
        }
    }

    /// The rules that the user granted in this workspace.
    fn load_grants(&self) -> Result<Vec<SavedGrant>, SettingsError> {
        match &self.state_dir {
            Some(dir) => GrantFile::in_dir(dir).list_for_workspace(self.project_root()),
            None => Ok(Vec::new()),
        }
    }

    /// The project as it was trusted, before it changed.
    fn find_former_trust(&self) -> Result<Option<TrustedWorkspace>, SettingsError> {
        match &self.state_dir {
            Some(dir) => TrustStore::in_dir(dir).find(self.project_root()),
            None => Ok(None),
        }
    }

    /// The directories of toolgate's settings and state: those of this process, and the default ones, which a process
    /// without the same environment variables would use. The files of a project are protected by their names.
    fn own_paths(&self) -> Vec<AbsPath> {
        let mut paths: Vec<AbsPath> = self.managed_dirs.clone();
        paths.extend(self.config_dir.iter().chain(&self.state_dir).cloned());
        if let Some(home) = &self.home {
            paths.extend([".config/toolgate", ".local/state/toolgate"].map(|name| home.join(name)));
        }
        paths
    }

    /// Why the workspace needs acceptance, if the user has not given it.
    fn unaccepted_width(&self) -> Result<Option<&'static str>, SettingsError> {
        let Some(width) = describe_wide_workspace(&self.root, self.home.as_ref()) else { return Ok(None) };
        let accepted = match &self.state_dir {
            _ if self.trust_workspace => true,
            Some(dir) => TrustStore::in_dir(dir).is_accepted_wide(&self.root)?,
            None => false,
        };
        Ok((!accepted).then_some(width))
    }

    /// Whether the project is trusted.
    fn trust_status(&self, manifest: &TrustManifest) -> Result<TrustStatus, SettingsError> {
        if self.trust_workspace {
            return Ok(TrustStatus::Trusted);
        }
        match &self.state_dir {
            Some(dir) => TrustStore::in_dir(dir).trust_status(self.project_root(), manifest),
            None => Ok(TrustStatus::Unknown),
        }
    }
}

/// A settings file that a project can have.
struct ProjectFile {
    /// Its layer.
    layer: Layer,
    /// Where it is, whether it exists or not.
    path: AbsPath,
    /// Whether its settings count. The others are read only for the manifest.
    is_selected: bool,
    /// Whether trust is bound to it. False for the user's own file in the home directory.
    needs_trust: bool,
}

impl ProjectFile {
    /// Its text. A file that is not selected must not stop the commands that do not want it: where it cannot be used it
    /// counts as missing, which ends trust that was bound to it.
    fn read(&self) -> Result<Option<String>, SettingsError> {
        if self.is_selected {
            return read(&self.path);
        }
        let is_usable = |text: &String| SettingsNode::parse(text).is_ok();
        Ok(read(&self.path).ok().flatten().filter(is_usable))
    }
}

impl LoadedSettings {
    /// Reads every settings file. A file that exists and cannot be used is an error, which lists the problems of all
    /// files.
    pub fn load(options: &SettingsOptions) -> Result<Self, SettingsError> {
        Self::load_until_error(options).map_err(|error| with_other_problems(error, options))
    }

    /// The same; the error is about the first problem only.
    pub(super) fn load_until_error(options: &SettingsOptions) -> Result<Self, SettingsError> {
        let read_at = i128::from(toolgate_files::now_millis()) * 1_000_000;
        let user_file = options.user_files().into_iter().next().map(|(file, _)| file);
        let mut settings = Self { read_at, user_file, ..Self::default() };
        if let Some(dir) = &options.state_dir {
            settings.watch_state_files(dir);
        }
        let mut loader =
            SettingsLoader { settings, granted: options.load_grants()?, home: options.home.clone() };
        for dir in &options.managed_dirs {
            loader.load_managed_dir(dir)?;
        }
        if let Some(text) = &options.managed_extra {
            loader.load_managed_extra(text, options)?;
        }
        if let Some(extra) = &options.extra {
            loader.load_extra(extra, options)?;
        }
        let files = loader.read_project_files(options)?;
        let manifest = options.collect_manifest(&files, &loader.granted)?;
        let trust_status = options.trust_status(&manifest)?;
        for (file, text) in files.iter().filter(|(file, _)| file.is_selected) {
            // Only a convention keeps the local file out of version control, so it needs trust like the project file. The
            // user's own file stands for the project's only where the user's settings are left out, and restricts there.
            let trusted = trust_status == TrustStatus::Trusted && file.needs_trust;
            loader.load_file_text(file.layer, &file.path, &options.root, trusted, text)?;
        }
        for (path, anchor) in options.user_files() {
            loader.load_file(Layer::User, &path, &anchor, true)?;
        }
        let mut settings = loader.settings;
        settings.watched.extend(manifest.files.clone());
        settings.own_paths = options.own_paths();
        settings.wide = options.unaccepted_width()?;
        settings.resolved_by_bytes = !options.trust_workspace;
        settings.trust_manifest = manifest;
        settings.trust_status = trust_status;
        settings.merge_files()?;
        let with_hooks =
            settings.files.iter().filter(|file| settings.are_hooks_active(file)).map(|file| &file.values);
        settings.scripts = collect_hook_scripts(options.project_paths(), with_hooks);
        if trust_status != TrustStatus::Unknown {
            settings.scripts.extend(settings.trust_manifest.scripts.clone());
        }
        settings.load_plugins(options)?;
        if trust_status == TrustStatus::Changed
            && let Some(former) = options.find_former_trust()?
        {
            let is_in_use = files.iter().any(|(file, _)| file.is_selected);
            settings.apply_lapsed_trust(&former, options, is_in_use);
        }
        Ok(settings)
    }

    /// Keeps the hooks of a project that changed after it was trusted, so that they refuse the calls that they screened, and
    /// adds the note about it where anything of the project is in use.
    fn apply_lapsed_trust(
        &mut self,
        former: &TrustedWorkspace,
        options: &SettingsOptions,
        has_selected_files: bool,
    ) {
        let hooks = former
            .hooks
            .clone()
            .of_sources(options.includes(SettingSource::Project), options.includes(SettingSource::Local));
        self.lapsed_hooks = Some((options.root.clone(), hooks));
        let refuses = crate::hooks::refuses_after_lapse(self);
        let manifest = &self.trust_manifest;
        let is_in_use = !manifest.is_empty() && (has_selected_files || manifest.has_server_list);
        if refuses || is_in_use {
            let note = former.changed_note(manifest, refuses);
            self.notes.insert(0, note);
        }
    }

    /// Watches the files in which trust, grants and plugins are kept.
    fn watch_state_files(&mut self, dir: &AbsPath) {
        self.watch(&TrustStore::in_dir(dir).file);
        self.watch(&TrustStore::in_dir(dir).wide);
        self.watch(&GrantFile::in_dir(dir).file);
        self.watch(&PluginStore::in_dir(dir).file);
        self.watch(&PluginStore::in_dir(dir).approvals_file);
    }

    /// Reads the plugins, whose files are protected like those of hooks. They watch their files themselves, which are many.
    fn load_plugins(&mut self, options: &SettingsOptions) -> Result<(), SettingsError> {
        self.plugins = PluginSet::load(options, self.merged())?;
        self.scripts.extend(self.plugins.approved_roots());
        self.notes.extend(self.plugins.notes());
        Ok(())
    }
}

/// Collects files while they are read.
struct SettingsLoader {
    /// What was read so far.
    settings: LoadedSettings,
    /// The rules that the user granted in this workspace.
    granted: Vec<SavedGrant>,
    /// The home directory, for `~/`.
    home: Option<AbsPath>,
}

impl SettingsLoader {
    /// The project's settings files that exist. Each is read once: the bytes whose trust is checked must be the bytes that
    /// are used.
    fn read_project_files(
        &mut self,
        options: &SettingsOptions,
    ) -> Result<Vec<(ProjectFile, String)>, SettingsError> {
        let mut files = Vec::new();
        for file in options.project_files() {
            // Where no trust is stored, nothing depends on files that do not count.
            if !file.is_selected && options.state_dir.is_none() {
                continue;
            }
            self.settings.watch(&file.path);
            if let Some(text) = file.read()? {
                files.push((file, text));
            }
        }
        Ok(files)
    }

    /// Adds `managed-settings.json` of a directory, then the files in `managed-settings.d` in the order of their names,
    /// so that an administrator can split settings into files that packages install.
    fn load_managed_dir(&mut self, dir: &AbsPath) -> Result<(), SettingsError> {
        self.load_file(Layer::Managed, &dir.join("managed-settings.json"), dir, true)?;
        let drop_in_dir = dir.join("managed-settings.d");
        self.settings.watch(&drop_in_dir);
        let names = list_names_with_suffix(&drop_in_dir, ".json");
        for name in names.map_err(|problem| unreadable_error(&drop_in_dir, &problem))? {
            self.load_file(Layer::Managed, &drop_in_dir.join(name), dir, true)?;
        }
        Ok(())
    }

    /// Adds a file, if it exists.
    fn load_file(
        &mut self,
        layer: Layer,
        path: &AbsPath,
        anchor: &AbsPath,
        trusted: bool,
    ) -> Result<(), SettingsError> {
        self.settings.watch(path);
        match read(path)? {
            Some(text) => self.load_file_text(layer, path, anchor, trusted, &text),
            None => Ok(()),
        }
    }

    /// Adds a file whose text was read already.
    fn load_file_text(
        &mut self,
        layer: Layer,
        path: &AbsPath,
        anchor: &AbsPath,
        trusted: bool,
        text: &str,
    ) -> Result<(), SettingsError> {
        let name = path.to_string();
        let granted: Vec<String> =
            self.granted.iter().filter(|grant| grant.file == *path).map(|grant| grant.rule.clone()).collect();
        let home = self.home.clone();
        self.load_text(
            text,
            &SettingsOrigin { layer, name: &name, anchor, home: home.as_ref(), trusted, granted: &granted },
        )
    }

    /// Adds the value of `--managed-settings`.
    fn load_managed_extra(&mut self, text: &str, options: &SettingsOptions) -> Result<(), SettingsError> {
        let is_managed = self.settings.files.iter().any(|file| file.rules.layer == Layer::Managed);
        let origin = SettingsOrigin {
            layer: if is_managed { Layer::Cli } else { Layer::Managed },
            name: "--managed-settings",
            anchor: &options.extra_base,
            home: options.home.as_ref(),
            trusted: true,
            granted: &[],
        };
        self.load_text(text, &origin)
    }

    /// Adds the value of `--settings`. A file that it names must exist.
    fn load_extra(&mut self, extra: &str, options: &SettingsOptions) -> Result<(), SettingsError> {
        if extra.trim_start().starts_with('{') {
            let origin = SettingsOrigin {
                layer: Layer::Cli,
                name: "--settings",
                anchor: &options.extra_base,
                home: options.home.as_ref(),
                trusted: true,
                granted: &[],
            };
            return self.load_text(extra, &origin);
        }
        let path = options.extra_base.join(extra);
        let before = self.settings.files.len();
        let anchor = path.parent().unwrap_or_else(AbsPath::root);
        self.load_file(Layer::Cli, &path, &anchor, true)?;
        if self.settings.files.len() == before {
            return Err(SettingsError {
                file: path.to_string(),
                line: 1,
                message: "no such file".to_owned(),
                fix: "give --settings a file that exists, or a JSON object".to_owned(),
            });
        }
        Ok(())
    }

    /// Reads a text and adds it.
    fn load_text(&mut self, text: &str, origin: &SettingsOrigin<'_>) -> Result<(), SettingsError> {
        let file = read_settings(text, origin, &mut self.settings.notes)?;
        self.settings.files.push(file);
        Ok(())
    }
}

/// The text of a file, or `None` if it does not exist.
pub(super) fn read(path: &AbsPath) -> Result<Option<String>, SettingsError> {
    read_settings_text(path, JsonLimits::SETTINGS.bytes as u64)
        .map_err(|problem| unreadable_error(path, &problem))
}

/// The error for a file that exists and cannot be read.
fn unreadable_error(path: &AbsPath, problem: &toolgate_files::FileProblem) -> SettingsError {
    SettingsError {
        file: path.to_string(),
        line: 1,
        message: format!("cannot read the file: {problem}"),
        fix: "make it readable or remove it; no call runs until then, because it may contain a deny rule"
            .to_owned(),
    }
}

/// The content of a settings file as JSON, without comments. The error has its line.
pub fn parse_settings_text(text: &str) -> Result<serde_json::Value, (usize, String)> {
    SettingsNode::parse(text).map(|node| node.value()).map_err(|error| (error.line, error.message))
}

/// Validates the text of a settings file, including its rules, without using it. The error is the first of
/// [`lint_text`].
///
/// ```
/// use toolgate::settings::check_text;
///
/// assert!(check_text("settings.json", r#"{ "permissions": { "deny": ["Read(.env)"] } }"#).is_ok());
///
/// let error = check_text("settings.json", "{\n  \"permissions\": { \"deny\": \"Read\" }\n}").unwrap_err();
/// assert_eq!(error.line, 2);
/// assert!(error.message.contains("`permissions.deny` is the string"));
/// ```
pub fn check_text(name: &str, text: &str) -> Result<(), SettingsError> {
    let is_fatal = |problem: &SettingsProblem| problem.weight == ProblemSeverity::Fatal;
    match lint_text(name, text).into_iter().find(is_fatal) {
        Some(problem) => Err(SettingsError {
            file: name.to_owned(),
            line: problem.line.unwrap_or(1),
            message: problem.message,
            fix: if problem.fix.is_empty() { CORRECT_FILE_HINT.to_owned() } else { problem.fix },
        }),
        None => Ok(()),
    }
}
