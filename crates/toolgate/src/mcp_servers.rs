//! Discovery of the MCP servers whose tools toolgate offers.
//!
//! Servers are named, strongest source first, on the command line, in settings (managed, local, project, user), in the
//! project's `.mcp.json` and in the user's own lists. The first source that names a server defines it.
//! An untrusted project comes last, so that it cannot replace a server of the user's, and its servers do not start
//! before the user approves them: starting one runs the project's code.
//! Servers of plugins are the weakest of all, and start only if the user approved the plugin as it is now.

use crate::settings::{LoadedSettings, SettingsFile};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use toolgate_files::read_settings_text;
use toolgate_mcp::client::{ServerEntry, ServerListOrigin, are_confusable_names, read_servers};
use toolgate_policy::Layer;
use toolgate_proto::json::{JsonLimits, parse};
use toolgate_proto::{AbsPath, find_intended_name};

/// The file in the workspace root that lists the project's servers.
pub const PROJECT_MCP_SERVERS_FILE: &str = ".mcp.json";

/// The key of a list or of settings with the servers, by name.
const SERVERS_KEY: &str = "mcpServers";

/// Where to look for servers.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ServerDiscoveryOptions {
    /// The workspace root, which has the project's list.
    pub root: AbsPath,
    /// The checkout that has the project's list in place of the workspace.
    pub config_root: Option<AbsPath>,
    /// The home directory, for `.claude.json`; none skips it.
    pub home: Option<AbsPath>,
    /// The directory of the user's toolgate settings, for `mcp.json`; none skips it.
    pub config_dir: Option<AbsPath>,
    /// The values of `--mcp-config`: files, or JSON objects.
    pub given: Vec<String>,
    /// The directory that relative names in `given` start from.
    pub given_base: AbsPath,
    /// Use only the servers of `given`.
    pub strict: bool,
    /// The project is trusted: its servers start without approval.
    pub trust_workspace: bool,
    /// The environment variables that `${VAR}` in an entry refers to.
    pub env: BTreeMap<String, String>,
}

impl ServerDiscoveryOptions {
    /// The workspace's list only; no directory of the user and no `--mcp-config`.
    pub fn new(root: AbsPath) -> Self {
        Self {
            given_base: root.clone(),
            root,
            config_root: None,
            home: None,
            config_dir: None,
            given: Vec::new(),
            strict: false,
            trust_workspace: false,
            env: BTreeMap::new(),
        }
    }
}

/// The usable servers, and the problems of unusable entries.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct DiscoveredServers {
    /// The usable servers; each name occurs once.
    pub servers: Vec<ServerEntry>,
    /// One message per unreadable list or invalid entry.
    pub problems: Vec<String>,
    /// Every name in a list, also of servers that are disabled or whose entry is invalid.
    pub names: BTreeSet<String>,
}

impl DiscoveredServers {
    /// Reads all sources. An unreadable list is a problem; an unreadable `--mcp-config` is an error, because the user
    /// named it for this run.
    ///
    /// ```
    /// use toolgate::AbsPath;
    /// use toolgate::mcp_servers::{DiscoveredServers, ServerDiscoveryOptions};
    /// use toolgate::settings::LoadedSettings;
    ///
    /// let mut options = ServerDiscoveryOptions::new(AbsPath::new("/project").unwrap());
    /// options.given = vec![r#"{ "mcpServers": { "docs": { "command": "docs-server" } } }"#.to_owned()];
    /// options.strict = true;
    /// let discovered = DiscoveredServers::discover(&options, &LoadedSettings::default())?;
    /// assert_eq!(discovered.servers[0].name, "docs");
    /// # Ok::<(), String>(())
    /// ```
    pub fn discover(options: &ServerDiscoveryOptions, settings: &LoadedSettings) -> Result<Self, String> {
        let mut discovered = Self::default();
        for given in &options.given {
            let (name, text) = if given.trim_start().starts_with('{') {
                ("--mcp-config".to_owned(), given.clone())
            } else {
                let path = options.given_base.join(given);
                let text = read_settings_text(&path, JsonLimits::SETTINGS.bytes as u64)
                    .map_err(|problem| format!("{path}: {problem}"))?
                    .ok_or_else(|| format!("--mcp-config: no such file `{path}`"))?;
                (path.to_string(), text)
            };
            let value = parse(&text, JsonLimits::SETTINGS).map_err(|problem| format!("{name}: {problem}"))?;
            discovered.add(&value, &name, &options.root, options, true);
        }
        if options.strict {
            return Ok(discovered);
        }
        // An untrusted project comes last: it must not take the name of a user's server, which may screen calls.
        let from_project = |file: &SettingsFile| matches!(file.rules.layer, Layer::Project | Layer::Local);
        let trusted = |file: &SettingsFile| options.trust_workspace || !from_project(file);
        for file in settings.files.iter().filter(|file| trusted(file)) {
            discovered.add_settings_file(file, settings, options, true);
        }
        if options.trust_workspace {
            discovered.add_project_file(options, settings);
        }
        if let Some(dir) = &options.config_dir {
            discovered.add_file(&dir.join("mcp.json"), options, true);
        }
        if let Some(home) = &options.home {
            discovered.add_claude_file(&home.join(".claude.json"), options);
        }
        for file in settings.files.iter().filter(|file| !trusted(file)) {
            discovered.add_settings_file(file, settings, options, false);
        }
        if !options.trust_workspace {
            discovered.add_project_file(options, settings);
        }
        discovered.add_plugin_servers(options, settings);
        Ok(discovered)
    }

    /// Adds `mcpServers` of a settings file. A project's server whose command trust cannot bind is not trusted.
    fn add_settings_file(
        &mut self,
        file: &SettingsFile,
        settings: &LoadedSettings,
        options: &ServerDiscoveryOptions,
        trusted: bool,
    ) {
        let name = file.rules.file.clone().unwrap_or_else(|| "--settings".to_owned());
        let before = self.servers.len();
        self.add(&file.raw_value, &name, &options.root, options, trusted);
        if matches!(file.rules.layer, Layer::Project | Layer::Local) {
            for server in self.servers.iter_mut().skip(before) {
                server.trusted &= !settings.is_unresolved_server(&server.name);
            }
        }
    }

    /// Adds the project's list, as the settings enable or disable its servers.
    fn add_project_file(&mut self, options: &ServerDiscoveryOptions, settings: &LoadedSettings) {
        let path = options.config_root.as_ref().unwrap_or(&options.root).join(PROJECT_MCP_SERVERS_FILE);
        let Some(value) = self.read(&path) else { return };
        let merged = settings.merged();
        // Trust holds for the bytes that were hashed with the settings, not for a file that changed since.
        let bound = read_settings_text(&path, JsonLimits::SETTINGS.bytes as u64).is_ok_and(|text| {
            text.is_some_and(|text| settings.trust_manifest.is_bound_content(&path, text.as_bytes()))
        });
        let trusted = options.trust_workspace && bound;
        let all = merged.enable_all_project_mcp_servers == Some(true);
        let enabled = merged.enabled_mcpjson_servers.as_deref().unwrap_or_default();
        let disabled = merged.disabled_mcpjson_servers.as_deref().unwrap_or_default();
        let before = self.servers.len();
        self.add(&value, &path.to_string(), &options.root, options, trusted || all);
        let mut index = before;
        while let Some(server) = self.servers.get_mut(index) {
            if disabled.contains(&server.name) {
                self.servers.remove(index);
                continue;
            }
            if trusted && !all && settings.is_unresolved_server(&server.name) {
                server.trusted = false;
            }
            server.trusted |= enabled.contains(&server.name);
            index += 1;
        }
    }

    /// Adds a list, if it exists.
    fn add_file(&mut self, path: &AbsPath, options: &ServerDiscoveryOptions, trusted: bool) {
        if let Some(value) = self.read(path) {
            self.add(&value, &path.to_string(), &options.root, options, trusted);
        }
    }

    /// Adds the user's lists of Claude Code: first the one for this project, then the one for all projects.
    fn add_claude_file(&mut self, path: &AbsPath, options: &ServerDiscoveryOptions) {
        let Some(value) = self.read(path) else { return };
        let name = path.to_string();
        if let Some(here) = value.get("projects").and_then(|all| all.get(options.root.to_string())) {
            self.add(here, &name, &options.root, options, true);
        }
        self.add(&value, &name, &options.root, options, true);
    }

    /// Adds the servers of approved plugins, which are the weakest: one whose name could be taken for another server's is
    /// left out.
    fn add_plugin_servers(&mut self, options: &ServerDiscoveryOptions, settings: &LoadedSettings) {
        let (servers, problems) = settings.plugins().mcp_servers(&options.root, &options.env);
        self.problems.extend(problems);
        self.names.extend(servers.iter().map(|server| server.name.clone()));
        for server in servers {
            match self.servers.iter().find(|other| are_confusable_names(&other.name, &server.name)) {
                Some(other) => self.problems.push(format!(
                    "{}: server `{}` is not used, because its name could be taken for server `{}` of {}",
                    server.origin, server.name, other.name, other.origin
                )),
                None => self.servers.push(server),
            }
        }
    }

    /// Parses a list; a problem is recorded.
    fn read(&mut self, path: &AbsPath) -> Option<Value> {
        let text = match read_settings_text(path, JsonLimits::SETTINGS.bytes as u64) {
            Ok(text) => text?,
            Err(problem) => {
                self.problems.push(format!("{path}: {problem}"));
                return None;
            }
        };
        match parse(&text, JsonLimits::SETTINGS) {
            Ok(value) => Some(value),
            Err(problem) => {
                self.problems.push(format!("{path}: {}", describe_damaged_list(&problem.to_string())));
                None
            }
        }
    }

    /// Adds the servers whose names are not taken.
    fn add(
        &mut self,
        value: &Value,
        file: &str,
        base: &AbsPath,
        options: &ServerDiscoveryOptions,
        trusted: bool,
    ) {
        let keys = value.as_object().into_iter().flat_map(|list| list.keys());
        for key in keys.filter(|key| find_intended_name(key, [SERVERS_KEY]).is_some()) {
            self.problems.push(format!("{file}: unknown key `{key}`; did you mean `{SERVERS_KEY}`?"));
        }
        let Some(servers) = value.get(SERVERS_KEY) else { return };
        self.names.extend(servers.as_object().into_iter().flat_map(|servers| servers.keys().cloned()));
        let origin = ServerListOrigin::new(file, base, &options.env).with_trusted(trusted);
        let (servers, problems) = read_servers(servers, &origin);
        self.problems.extend(problems);
        for server in servers {
            if !self.servers.iter().any(|other| other.name == server.name) {
                self.servers.push(server);
            }
        }
    }
}

/// The problem of a list that cannot be parsed, with the way to repair it. `problem` has the position.
pub fn describe_damaged_list(problem: &str) -> String {
    format!(
        "the file is damaged, and none of its servers is used: {problem}; repair it, or move it away and add the servers \
         again with `toolgate mcp add`"
    )
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests make their own files")]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_source_defines_a_server_and_an_untrusted_project_comes_last() {
        let dir = tempfile::tempdir().unwrap();
        let root = AbsPath::new(dir.path().canonicalize().unwrap()).unwrap();
        let write = |name: &str, text: &str| {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap().as_path()).unwrap();
            std::fs::write(path.as_path(), text).unwrap();
        };
        write(
            ".mcp.json",
            r#"{"mcpServers": {"a": {"command": "project"}, "b": {"command": "project"}, "z": {"command": "project"}}}"#,
        );
        write(
            "config/mcp.json",
            r#"{"mcpServers": {"b": {"command": "user"}, "c": {"command": "${X:-d}"}}}"#,
        );
        write("broken/mcp.json", r#"{"mcpServers": {"#);
        let mut options = ServerDiscoveryOptions::new(root.clone());
        options.config_dir = Some(root.join("config"));
        options.given = vec![r#"{"mcpServers": {"a": {"command": "given"}}}"#.to_owned()];
        let found = DiscoveredServers::discover(&options, &LoadedSettings::default()).unwrap();
        let seen: Vec<(&str, bool)> =
            found.servers.iter().map(|server| (server.name.as_str(), server.trusted)).collect();
        // `b` is the user's: an untrusted project cannot take the name.
        assert_eq!(seen, [("a", true), ("b", true), ("c", true), ("z", false)]);
        options.strict = true;
        assert_eq!(
            DiscoveredServers::discover(&options, &LoadedSettings::default()).unwrap().servers.len(),
            1
        );
        options.given = vec!["no-such-file.json".to_owned()];
        assert!(
            DiscoveredServers::discover(&options, &LoadedSettings::default())
                .unwrap_err()
                .contains("no such file")
        );
        (options.given, options.strict) = (Vec::new(), false);
        options.config_dir = Some(root.join("broken"));
        let found = DiscoveredServers::discover(&options, &LoadedSettings::default()).unwrap();
        assert_eq!((found.servers.len(), found.problems.len()), (3, 1));
        for key in ["mcpServrs", "mcp_servers", "mcpServer"] {
            options.given = vec![format!(r#"{{"{key}": {{"a": {{"command": "given"}}}}}}"#)];
            options.strict = true;
            let found = DiscoveredServers::discover(&options, &LoadedSettings::default()).unwrap();
            let wanted = format!("--mcp-config: unknown key `{key}`; did you mean `mcpServers`?");
            assert_eq!((found.servers.len(), found.problems), (0, vec![wanted]));
        }
    }
}
