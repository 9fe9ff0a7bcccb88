//! Which settings files there are, and in which order they count.

use super::grants::{GrantFile, SavedGrant};
use super::read::{CORRECT_FILE_HINT, SettingsOrigin, read_settings};
use super::trust::{
    ProjectPaths, TrustManifest, TrustStatus, TrustStore, collect_hook_scripts, describe_wide_workspace,
};
use super::{LoadedSettings, SettingsError, SettingsNote};
use toolgate_files::{list_names_with_suffix, read_settings_text};
use toolgate_policy::Layer;
use toolgate_proto::AbsPath;
use toolgate_proto::json::JsonLimits;
use toolgate_proto::protected_names::SETTINGS_DIRECTORIES;

/// A group of settings files that can be left out by `--setting-sources`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingSource {
    /// The person's settings for all projects.
    User,
    /// The project's shared settings.
    Project,
    /// The person's own settings for this project.
    Local,
}

impl SettingSource {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::User, Self::Project, Self::Local];
}

impl std::str::FromStr for SettingSource {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "user" => Ok(Self::User),
            "project" => Ok(Self::Project),
            "local" => Ok(Self::Local),
            _ => Err(format!("`{text}` is no setting source; use user, project, local or none")),
        }
    }
}

/// Where to look.
#[derive(Debug, Clone)]
pub struct SettingsOptions {
    /// The workspace root.
    pub root: AbsPath,
    /// The home directory.
    pub home: Option<AbsPath>,
    /// Where the person's toolgate settings live.
    pub config_dir: Option<AbsPath>,
    /// Where toolgate remembers what was trusted and granted.
    pub state_dir: Option<AbsPath>,
    /// Where the organisation's settings live.
    pub managed_dirs: Vec<AbsPath>,
    /// Which groups to read. The managed files are always read.
    pub sources: Vec<SettingSource>,
    /// `--settings`: a file, or JSON itself.
    pub extra: Option<String>,
    /// What relative names in `extra` are seen from.
    pub extra_base: AbsPath,
    /// What the project brings may loosen as well as tighten.
    pub trust_workspace: bool,
    /// Where hooks look their programs up, as `PATH` has it.
    pub search_path: Option<String>,
}

impl SettingsOptions {
    /// The usual places for a workspace.
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
            trust_workspace: false,
            search_path: None,
        }
    }

    fn includes(&self, source: SettingSource) -> bool {
        self.sources.contains(&source)
    }

    /// The project's own files, strongest first, with the layer of each.
    fn project_files(&self) -> Vec<(Layer, AbsPath)> {
        let mut files = Vec::new();
        let own = self.user_files_in_root();
        for (source, layer, name) in [
            (SettingSource::Local, Layer::Local, "settings.local.json"),
            (SettingSource::Project, Layer::Project, "settings.json"),
        ] {
            if self.includes(source) {
                let all = SETTINGS_DIRECTORIES.map(|folder| (layer, self.root.join(folder).join(name)));
                files.extend(all.into_iter().filter(|(_, file)| !own.contains(file)));
            }
        }
        files
    }

    /// The person's files, with what each is anchored at.
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

    /// Files of the user's own that lie where a project's would: in a workspace that is the home directory they stay
    /// the user's, and the hooks in them go on screening calls.
    fn user_files_in_root(&self) -> Vec<AbsPath> {
        let Some(home) = self.home.as_ref().filter(|_| self.includes(SettingSource::User)) else {
            return Vec::new();
        };
        if toolgate_files::resolve(home).real != toolgate_files::resolve(&self.root).real {
            return Vec::new();
        }
        vec![self.root.join(".claude").join("settings.json")]
    }

    /// What the project brings that could loosen, whether it is trusted or not.
    pub fn load_trust_manifest(&self) -> Result<TrustManifest, SettingsError> {
        let mut texts = Vec::new();
        for (_, path) in self.project_files() {
            if let Some(text) = read(&path)? {
                texts.push((path, text));
            }
        }
        TrustManifest::collect(self.project_paths(), &texts, &self.load_grants()?)
    }

    fn project_paths(&self) -> ProjectPaths<'_> {
        ProjectPaths { root: &self.root, home: self.home.as_ref(), search_path: self.search_path.as_deref() }
    }

    fn load_grants(&self) -> Result<Vec<SavedGrant>, SettingsError> {
        match &self.state_dir {
            Some(dir) => GrantFile::in_dir(dir).list_for_workspace(&self.root),
            None => Ok(Vec::new()),
        }
    }

    /// Says what changed since the project was trusted.
    fn changed_trust_note(&self, brought: &TrustManifest) -> Result<SettingsNote, SettingsError> {
        let changes = match &self.state_dir {
            Some(dir) => TrustStore::in_dir(dir).changes(&self.root, brought)?,
            None => Vec::new(),
        };
        let named: Vec<String> = changes.iter().take(3).map(|name| format!("`{name}`")).collect();
        let more = match changes.len().saturating_sub(named.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let what = if named.is_empty() { String::new() } else { format!(" ({}{more})", named.join(", ")) };
        Ok(SettingsNote {
            file: self.root.to_string(),
            line: 1,
            message: format!(
                "what this project brings has changed since it was trusted{what}: it is off, and calls that its hooks \
                 screen are refused; look at it with `toolgate trust show` and run `toolgate trust add`"
            ),
        })
    }

    /// The directories of toolgate's own settings and state, where this process looks and where another would with other
    /// variables. The files of a project are protected by name.
    fn own_paths(&self) -> Vec<AbsPath> {
        let mut paths: Vec<AbsPath> = self.managed_dirs.clone();
        paths.extend(self.config_dir.iter().chain(&self.state_dir).cloned());
        if let Some(home) = &self.home {
            paths.extend([".config/toolgate", ".local/state/toolgate"].map(|name| home.join(name)));
        }
        paths
    }

    /// What is so wide about the workspace, where the user has not said yes to it.
    fn unaccepted_width(&self) -> Result<Option<&'static str>, SettingsError> {
        let Some(width) = describe_wide_workspace(&self.root, self.home.as_ref()) else { return Ok(None) };
        let accepted = match &self.state_dir {
            _ if self.trust_workspace => true,
            Some(dir) => TrustStore::in_dir(dir).is_accepted_wide(&self.root)?,
            None => false,
        };
        Ok((!accepted).then_some(width))
    }

    fn trust_status(&self, brought: &TrustManifest) -> Result<TrustStatus, SettingsError> {
        if self.trust_workspace {
            return Ok(TrustStatus::Trusted);
        }
        match &self.state_dir {
            Some(dir) => TrustStore::in_dir(dir).trust_status(&self.root, brought),
            None => Ok(TrustStatus::Unknown),
        }
    }
}

impl LoadedSettings {
    /// Reads every settings file there is. One that is there and cannot be used is an error.
    pub fn load(options: &SettingsOptions) -> Result<Self, SettingsError> {
        let read_at = i128::from(toolgate_files::now_millis()) * 1_000_000;
        let mut settings = Self { read_at, ..Self::default() };
        if let Some(dir) = &options.state_dir {
            settings.watch(&TrustStore::in_dir(dir).file);
            settings.watch(&TrustStore::in_dir(dir).wide);
            settings.watch(&GrantFile::in_dir(dir).file);
        }
        let mut loading =
            SettingsLoader { settings, granted: options.load_grants()?, home: options.home.clone() };
        for dir in &options.managed_dirs {
            loading.load_file(Layer::Managed, &dir.join("managed-settings.json"), dir, true)?;
            let folder = dir.join("managed-settings.d");
            loading.settings.watch(&folder);
            for name in list_names_with_suffix(&folder, ".json")
                .map_err(|problem| unreadable_error(&folder, &problem))?
            {
                loading.load_file(Layer::Managed, &folder.join(name), dir, true)?;
            }
        }
        if let Some(extra) = &options.extra {
            loading.load_extra(extra, options)?;
        }
        // Read once: what is trusted is what is used.
        let (mut layers, mut texts) = (Vec::new(), Vec::new());
        for (layer, path) in options.project_files() {
            loading.settings.watch(&path);
            if let Some(text) = read(&path)? {
                layers.push(layer);
                texts.push((path, text));
            }
        }
        let brought = TrustManifest::collect(options.project_paths(), &texts, &loading.granted)?;
        let standing = options.trust_status(&brought)?;
        for (layer, (path, text)) in layers.into_iter().zip(&texts) {
            // The local file is kept out of version control by convention only, so it is no more trusted.
            loading.load_file_text(layer, path, &options.root, standing == TrustStatus::Trusted, text)?;
        }
        for (path, anchor) in options.user_files() {
            loading.load_file(Layer::User, &path, &anchor, true)?;
        }
        let mut settings = loading.settings;
        settings.watched.extend(brought.files.clone());
        if standing == TrustStatus::Changed {
            settings.notes.insert(0, options.changed_trust_note(&brought)?);
        }
        settings.own_paths = options.own_paths();
        settings.wide = options.unaccepted_width()?;
        settings.resolved_by_bytes = !options.trust_workspace;
        settings.trust_manifest = brought;
        settings.trust_status = standing;
        settings.merge_files()?;
        let counting =
            settings.files.iter().filter(|file| settings.are_hooks_active(file)).map(|file| &file.values);
        settings.scripts = collect_hook_scripts(options.project_paths(), counting);
        if standing != TrustStatus::Unknown {
            settings.scripts.extend(settings.trust_manifest.scripts.clone());
        }
        Ok(settings)
    }
}

struct SettingsLoader {
    settings: LoadedSettings,
    granted: Vec<SavedGrant>,
    home: Option<AbsPath>,
}

impl SettingsLoader {
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
                message: "there is no such file".to_owned(),
                fix: "give --settings a file that exists, or a JSON object".to_owned(),
            });
        }
        Ok(())
    }

    fn load_text(&mut self, text: &str, origin: &SettingsOrigin<'_>) -> Result<(), SettingsError> {
        let file = read_settings(text, origin, &mut self.settings.notes)?;
        self.settings.files.push(file);
        Ok(())
    }
}

/// Reads a file, if it is there.
pub(super) fn read(path: &AbsPath) -> Result<Option<String>, SettingsError> {
    read_settings_text(path, JsonLimits::SETTINGS.bytes as u64)
        .map_err(|problem| unreadable_error(path, &problem))
}

fn unreadable_error(path: &AbsPath, problem: &toolgate_files::FileProblem) -> SettingsError {
    SettingsError {
        file: path.to_string(),
        line: 1,
        message: format!("cannot be read: {problem}"),
        fix: "make it readable or remove it; nothing runs until then, because it may hold a deny rule"
            .to_owned(),
    }
}

/// Checks a text as a settings file would be, without using it: for whoever is about to write one.
pub fn check_text(name: &str, text: &str) -> Result<(), SettingsError> {
    let root = AbsPath::root();
    let origin =
        SettingsOrigin { layer: Layer::Cli, name, anchor: &root, home: None, trusted: true, granted: &[] };
    let file = read_settings(text, &origin, &mut Vec::new())?;
    let mut raw = toolgate_policy::RawPolicy::default();
    raw.layers.push(file.rules);
    let fatal =
        |problem: &toolgate_policy::RuleProblem| problem.weight == toolgate_policy::ProblemSeverity::Fatal;
    match raw.compile().1.into_iter().find(fatal) {
        Some(problem) => Err(SettingsError {
            file: name.to_owned(),
            line: problem.rule.line.unwrap_or(1),
            message: problem.message,
            fix: if problem.fix.is_empty() { CORRECT_FILE_HINT.to_owned() } else { problem.fix },
        }),
        None => Ok(()),
    }
}
