//! Which settings files there are, and in which order they count.

use super::read::{Origin, read_settings};
use super::{Settings, SettingsError};
use toolgate_os::read_settings_text;
use toolgate_policy::Layer;
use toolgate_proto::AbsPath;
use toolgate_proto::json::Limits;

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
}

impl SettingsOptions {
    /// The usual places for a workspace.
    pub fn new(root: AbsPath) -> Self {
        Self {
            extra_base: root.clone(),
            root,
            home: None,
            config_dir: None,
            managed_dirs: ["/etc/toolgate", "/etc/claude-code"]
                .iter()
                .filter_map(|dir| AbsPath::new(dir).ok())
                .collect(),
            sources: SettingSource::ALL.to_vec(),
            extra: None,
            trust_workspace: false,
        }
    }
}

impl Settings {
    /// Reads every settings file there is. One that is there and cannot be used is an error.
    pub fn load(options: &SettingsOptions) -> Result<Self, SettingsError> {
        let mut loading = Loading { settings: Self::default(), home: options.home.clone() };
        for dir in &options.managed_dirs {
            loading.file(Layer::Managed, &dir.join("managed-settings.json"), dir, true)?;
        }
        if let Some(extra) = &options.extra {
            loading.extra(extra, options)?;
        }
        let root = &options.root;
        let wants = |source| options.sources.contains(&source);
        for folder in [".toolgate", ".claude"] {
            if wants(SettingSource::Local) {
                // Kept out of version control by convention only, so it is no more trusted than the project.
                let path = root.join(folder).join("settings.local.json");
                loading.file(Layer::Local, &path, root, options.trust_workspace)?;
            }
        }
        for folder in [".toolgate", ".claude"] {
            if wants(SettingSource::Project) {
                let path = root.join(folder).join("settings.json");
                loading.file(Layer::Project, &path, root, options.trust_workspace)?;
            }
        }
        if wants(SettingSource::User) {
            if let Some(dir) = &options.config_dir {
                loading.file(Layer::User, &dir.join("settings.json"), dir, true)?;
            }
            if let Some(home) = &options.home {
                let dir = home.join(".claude");
                // A workspace that is the home directory itself has read this file as the project's.
                if !(wants(SettingSource::Project) && home == root) {
                    loading.file(Layer::User, &dir.join("settings.json"), &dir, true)?;
                }
            }
        }
        Ok(loading.settings)
    }
}

struct Loading {
    settings: Settings,
    home: Option<AbsPath>,
}

impl Loading {
    fn file(
        &mut self,
        layer: Layer,
        path: &AbsPath,
        anchor: &AbsPath,
        trusted: bool,
    ) -> Result<(), SettingsError> {
        let name = path.to_string();
        let text =
            read_settings_text(path, Limits::SETTINGS.bytes as u64).map_err(|problem| SettingsError {
                file: name.clone(),
                line: 1,
                message: format!("cannot be read: {problem}"),
                fix:
                    "make it readable or remove it; nothing runs until then, because it may hold a deny rule"
                        .to_owned(),
            })?;
        match text {
            Some(text) => {
                let home = self.home.clone();
                self.text(&text, &Origin { layer, name: &name, anchor, home: home.as_ref(), trusted })
            }
            None => Ok(()),
        }
    }

    fn extra(&mut self, extra: &str, options: &SettingsOptions) -> Result<(), SettingsError> {
        if extra.trim_start().starts_with('{') {
            let origin = Origin {
                layer: Layer::Cli,
                name: "--settings",
                anchor: &options.extra_base,
                home: options.home.as_ref(),
                trusted: true,
            };
            return self.text(extra, &origin);
        }
        let path = options.extra_base.join(extra);
        let before = self.settings.files.len();
        let anchor = path.parent().unwrap_or_else(AbsPath::root);
        self.file(Layer::Cli, &path, &anchor, true)?;
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

    fn text(&mut self, text: &str, origin: &Origin<'_>) -> Result<(), SettingsError> {
        let file = read_settings(text, origin, &mut self.settings.notes)?;
        self.settings.files.push(file);
        Ok(())
    }
}
