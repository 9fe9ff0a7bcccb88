//! A plugin as it is in its directory: its manifest, its components, and the hash of all its files.

use super::plugin_variables::find_unusable_text;
use crate::hooks::{describe_unraised, find_group_problem, find_intended_event};
use crate::settings::values::HookGroup;
use crate::skills::{
    ApprovedFiles, CapabilityPlace, CapabilityProblem, CapabilityScope, CapabilitySeverity, CatalogProblem,
};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use toolgate_files::{FileStamp, TreeFile, list_tree_files, read_file_stamp, read_named_bytes};
use toolgate_gate::ledger::sha256_hex;
use toolgate_proto::{AbsPath, CommandLine, EntryKind, ShellKind, Workspace};
use toolgate_skills::{ComponentList, PluginManifest, read_component_json};

/// Where the manifest of a plugin is.
pub(super) const MANIFEST_FILE: &str = crate::skills::PLUGIN_MANIFEST_FILE;
/// The most bytes of a file that is hashed; the whole tree has no more.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// The keys beside the events in a list of hooks.
const HOOK_FILE_KEYS: [&str; 2] = ["description", "$schema"];
/// Ways to call a program with which one that policy knows only reads.
const READ_ONLY_TRIALS: [&str; 4] = ["", " x", " --version", " ."];

/// A server that a plugin defines.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct PluginServer {
    /// Its name in the plugin.
    pub name: String,
    /// Its definition, as written.
    pub entry: Value,
    /// The file that defines it.
    pub file: AbsPath,
}

/// A plugin that was read.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PluginPackage {
    /// What its manifest says.
    pub manifest: PluginManifest,
    /// Its real directory.
    pub root: AbsPath,
    /// Where its skills, commands, agents and output styles are.
    pub place: CapabilityPlace,
    /// Its hooks, by event, in the order in which they run.
    pub hooks: BTreeMap<String, Vec<HookGroup>>,
    /// Its MCP servers.
    pub mcp_servers: Vec<PluginServer>,
    /// Its language servers.
    pub lsp_servers: Vec<PluginServer>,
    /// The programs that it puts at the end of the search path of commands.
    pub programs: Vec<String>,
    /// What is wrong with it, and what has no effect. It is usable all the same.
    pub problems: Vec<CatalogProblem>,
    /// The hash of all its files, with their names and whether they can be executed.
    pub sha256: String,
    /// The hash of each file.
    files: BTreeMap<AbsPath, String>,
    /// The stamps of its files and directories, from just before they were read.
    pub(super) stamps: Vec<(AbsPath, FileStamp)>,
}

impl PluginPackage {
    /// Reads a plugin. Nothing of it runs. The error lists what makes it unusable.
    ///
    /// ```
    /// use toolgate::AbsPath;
    /// use toolgate::plugins::PluginPackage;
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let root = AbsPath::new(dir.path().canonicalize().unwrap().join("tidy")).unwrap();
    /// # std::fs::create_dir_all(root.join(".claude-plugin").as_path()).unwrap();
    /// # let write = |name: &str, text: &str| std::fs::write(root.join(name).as_path(), text).unwrap();
    /// write(".claude-plugin/plugin.json", r#"{ "name": "tidy", "mcpServers": { "docs": { "command": "docs" } } }"#);
    /// let before = PluginPackage::read(&root).unwrap();
    /// assert_eq!(before.mcp_servers[0].name, "docs");
    ///
    /// write("README.md", "Another file.");
    /// assert_ne!(PluginPackage::read(&root).unwrap().sha256, before.sha256);
    /// ```
    pub fn read(root: &AbsPath) -> Result<Self, Vec<CatalogProblem>> {
        let found = toolgate_files::resolve(root);
        let refuse = |message: String| {
            let problem = CapabilityProblem::error(1, message);
            vec![CatalogProblem { file: root.clone(), problem }]
        };
        if found.kind != EntryKind::Directory {
            return Err(refuse("there is no such directory".to_owned()));
        }
        let root = found.real;
        let listed = list_tree_files(&root)
            .map_err(|problem| refuse(format!("the plugin cannot be used: {problem}")))?;
        let mut reader = PackageReader::new(root, &listed);
        reader
            .hash_files(&listed)
            .map_err(|problem| refuse(format!("the plugin cannot be used: {problem}")))?;
        // What was listed must be what is watched from now on.
        if list_tree_files(&reader.package.root).ok().as_ref() != Some(&listed) {
            return Err(refuse("the plugin changed while it was read".to_owned()));
        }
        reader.read_components();
        let package = reader.package;
        let is_error = |found: &&CatalogProblem| found.problem.severity == CapabilitySeverity::Error;
        match reader.is_usable {
            true => Ok(package),
            false => Err(package.problems.iter().filter(is_error).cloned().collect()),
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.manifest.name
    }

    /// Whether anything of it would run outside of the gate.
    pub fn runs_anything(&self) -> bool {
        !self.hooks.is_empty()
            || !self.mcp_servers.is_empty()
            || !self.lsp_servers.is_empty()
            || !self.programs.is_empty()
    }

    /// The content that an approval of this package covers.
    pub(crate) fn approved_files(&self) -> ApprovedFiles {
        ApprovedFiles { sha256: self.sha256.clone(), files: self.files.clone() }
    }
}

/// Reads the parts of a plugin one after the other.
struct PackageReader {
    /// What was read so far.
    package: PluginPackage,
    /// Every file by its path below the root.
    names: BTreeSet<String>,
    /// False once something was found without which the plugin must not be used.
    is_usable: bool,
}

impl PackageReader {
    /// A reader that has read nothing.
    fn new(root: AbsPath, listed: &[TreeFile]) -> Self {
        let mut place = CapabilityPlace::in_dir(&root, CapabilityScope::Plugin, Some(root.clone()));
        place.skills.clear();
        Self {
            package: PluginPackage {
                manifest: PluginManifest::default(),
                place,
                root,
                hooks: BTreeMap::new(),
                mcp_servers: Vec::new(),
                lsp_servers: Vec::new(),
                programs: Vec::new(),
                problems: Vec::new(),
                sha256: String::new(),
                files: BTreeMap::new(),
                stamps: Vec::new(),
            },
            names: listed.iter().map(|file| file.path.clone()).collect(),
            is_usable: true,
        }
    }

    /// Hashes every file, and notes the stamps of files and directories.
    fn hash_files(&mut self, listed: &[TreeFile]) -> Result<(), toolgate_files::FileProblem> {
        let root = self.package.root.clone();
        let mut dirs = BTreeSet::from([root.clone()]);
        for file in listed {
            let mut dir = root.join(&file.path).parent();
            while let Some(inside) = dir.filter(|dir| dir.is_under(&root) && dirs.insert(dir.clone())) {
                dir = inside.parent();
            }
        }
        self.package.stamps = dirs.into_iter().map(|dir| (dir.clone(), read_file_stamp(&dir))).collect();
        let mut rows = Vec::with_capacity(listed.len());
        for file in listed {
            let path = root.join(&file.path);
            self.package.stamps.push((path.clone(), read_file_stamp(&path)));
            let digest = sha256_hex(&read_named_bytes(&path, MAX_FILE_BYTES)?);
            rows.push(json!([file.path, file.is_executable, digest]));
            self.package.files.insert(path, digest);
            let program = file.path.strip_prefix("bin/").filter(|name| !name.contains('/'));
            if let Some(name) = program.filter(|_| file.is_executable) {
                self.package.programs.push(name.to_owned());
            }
        }
        self.package.sha256 = sha256_hex(Value::Array(rows).to_string().as_bytes());
        Ok(())
    }

    /// Reads the manifest and everything that it names.
    fn read_components(&mut self) {
        self.read_manifest();
        if !self.is_usable {
            return;
        }
        let manifest = self.package.manifest.clone();
        let commands = self.find_paths(manifest.commands.as_ref());
        let agents = self.find_paths(manifest.agents.as_ref());
        let styles = self.find_paths(manifest.output_styles.as_ref());
        let place = &mut self.package.place;
        for (own, named) in
            [(&mut place.commands, commands), (&mut place.agents, agents), (&mut place.output_styles, styles)]
        {
            // A manifest replaces the usual directory, except for skills.
            if let Some(named) = named {
                *own = named;
            }
        }
        let usual = self.package.root.join("skills");
        let mut skills = vec![usual];
        skills.extend(self.find_paths(manifest.skills.as_ref()).unwrap_or_default());
        if self.names.contains("SKILL.md") {
            skills.push(self.package.root.clone());
        }
        for dir in skills {
            let is_skill = self.contains(&dir.join("SKILL.md"));
            let place = &mut self.package.place;
            let list = if is_skill { &mut place.skill_dirs } else { &mut place.skills };
            if !list.contains(&dir) {
                list.push(dir);
            }
        }
        for (value, file) in self.read_definitions("hooks/hooks.json", manifest.hooks.as_ref(), true) {
            self.add_hooks(&value, &file);
        }
        for (value, file) in self.read_definitions(".mcp.json", manifest.mcp_servers.as_ref(), false) {
            let servers = self.read_servers(&value, "mcpServers", &file);
            add_servers(&mut self.package.mcp_servers, servers, &mut self.package.problems);
        }
        for (value, file) in self.read_definitions(".lsp.json", manifest.lsp_servers.as_ref(), false) {
            let servers = self.read_servers(&value, "lspServers", &file);
            add_servers(&mut self.package.lsp_servers, servers, &mut self.package.problems);
        }
        self.check_programs();
        if self.names.contains("settings.json") {
            let message = "settings of a plugin have no effect";
            self.add(self.package.root.join("settings.json"), CapabilityProblem::note(1, message));
        }
        let dirs = ["skills/", "commands/", "agents/", "output-styles/"];
        let has_usual = self.names.iter().any(|name| dirs.iter().any(|dir| name.starts_with(dir)));
        let has_any = has_usual || manifest.has_components() || self.package.runs_anything();
        if !has_any && !self.names.contains("SKILL.md") && !self.names.contains(MANIFEST_FILE) {
            let root = self.package.root.clone();
            self.refuse(root, 1, "there is no plugin in this directory".to_owned());
        }
    }

    /// Reads the manifest. Without one the plugin has the name of its directory.
    fn read_manifest(&mut self) {
        let root = self.package.root.clone();
        let file = root.join(MANIFEST_FILE);
        let (manifest, problems) = match self.names.contains(MANIFEST_FILE) {
            true => match self.read_bytes(&file) {
                Some(bytes) => PluginManifest::read(&bytes),
                None => return,
            },
            false => {
                let name = root.file_name().unwrap_or_default().to_string_lossy().into_owned();
                PluginManifest::read(json!({ "name": name }).to_string().as_bytes())
            }
        };
        for problem in problems {
            self.add(file.clone(), problem);
        }
        match manifest {
            Some(manifest) => self.package.manifest = manifest,
            None => self.is_usable = false,
        }
    }

    /// The paths of a kind of component. One that is not there is an error, and the others are used.
    fn find_paths(&mut self, list: Option<&ComponentList>) -> Option<Vec<AbsPath>> {
        let list = list?;
        let mut found = Vec::new();
        for path in &list.paths {
            let inside = path.trim_start_matches("./").trim_end_matches('/');
            let absolute = match inside.is_empty() {
                true => self.package.root.clone(),
                false => self.package.root.join(inside),
            };
            match self.contains(&absolute) {
                true => found.push(absolute),
                false => {
                    let message = format!("`{}` is not in the plugin", path.escape_debug());
                    self.add(self.package.root.join(MANIFEST_FILE), CapabilityProblem::error(1, message));
                }
            }
        }
        Some(found)
    }

    /// Whether a file, or a directory with files, is in the plugin.
    fn contains(&self, path: &AbsPath) -> bool {
        self.package.files.keys().any(|file| file == path || file.is_under(path))
    }

    /// The definitions of a kind: of the usual file, of the files that the manifest names, and in the manifest itself.
    fn read_definitions(
        &mut self,
        usual: &str,
        list: Option<&ComponentList>,
        is_needed: bool,
    ) -> Vec<(Value, AbsPath)> {
        let mut files: Vec<AbsPath> = Vec::new();
        if self.names.contains(usual) {
            files.push(self.package.root.join(usual));
        }
        let before = self.package.problems.len();
        let named = self.find_paths(list).unwrap_or_default();
        files.extend(named.into_iter().filter(|file| *file != self.package.root.join(usual)));
        // A list of hooks that is missing may have been one that denies.
        if is_needed && self.package.problems.len() > before {
            self.is_usable = false;
        }
        let mut found = Vec::new();
        for file in files {
            let Some(bytes) = self.read_bytes(&file) else { continue };
            match read_component_json(&bytes) {
                Ok(value) => found.push((value, file)),
                Err(problem) => {
                    self.is_usable &= !is_needed;
                    self.add(file, problem);
                }
            }
        }
        let manifest_file = self.package.root.join(MANIFEST_FILE);
        let inline = list.map(|list| list.inline.clone()).unwrap_or_default();
        found.extend(inline.into_iter().map(|value| (value, manifest_file.clone())));
        found
    }

    /// Adds the hooks of one list. One that would screen calls and cannot be read makes the plugin unusable.
    fn add_hooks(&mut self, value: &Value, file: &AbsPath) {
        let events = value.get("hooks").unwrap_or(value);
        let Some(events) = events.as_object() else {
            return self.refuse(file.clone(), 1, "the hooks are not a JSON object".to_owned());
        };
        for (event, groups) in events {
            let unraised = describe_unraised(event);
            if HOOK_FILE_KEYS.contains(&event.as_str()) && unraised.is_some() {
                continue;
            }
            let line = self.find_line(file, event);
            if let Some(why) = unraised {
                let shown: String = event.chars().take(60).collect();
                if let Some(meant) = find_intended_event(event) {
                    let message =
                        format!("unknown event `{}`; did you mean `{meant}`?", shown.escape_debug());
                    self.refuse(file.clone(), line, message);
                    continue;
                }
                let message = format!("hooks of `{}` never run: it {why}", shown.escape_debug());
                self.add(file.clone(), CapabilityProblem::note(line, message));
                continue;
            }
            if let Some(problem) = find_unusable_text(groups) {
                self.refuse(file.clone(), line, format!("a hook of `{event}` cannot be used: {problem}"));
                continue;
            }
            let mut all = groups.as_array().into_iter().flatten();
            if let Some((problem, fix)) = all.find_map(|group| find_group_problem(event, group)) {
                self.refuse(
                    file.clone(),
                    line,
                    format!("a hook of `{event}` cannot be used: {problem}; {fix}"),
                );
                continue;
            }
            match serde_json::from_value::<Vec<HookGroup>>(groups.clone()) {
                Ok(groups) => self.package.hooks.entry(event.clone()).or_default().extend(groups),
                Err(error) => {
                    let message = format!("the hooks of `{event}` cannot be read: {error}");
                    self.refuse(file.clone(), line, message);
                }
            }
        }
    }

    /// The servers of a list, with or without the wrapper that other files have.
    fn read_servers(&mut self, value: &Value, wrapper: &str, file: &AbsPath) -> Vec<PluginServer> {
        let entries = value.get(wrapper).unwrap_or(value);
        let empty = Map::new();
        let entries = match entries.as_object() {
            Some(entries) => entries,
            None => {
                let message = format!("`{wrapper}` is not a JSON object");
                self.add(file.clone(), CapabilityProblem::error(1, message));
                &empty
            }
        };
        let mut servers = Vec::new();
        for (name, entry) in entries {
            let problem = match entry.is_object() {
                true => find_unusable_text(entry),
                false => Some("it is not a JSON object".to_owned()),
            };
            match problem {
                None => servers.push(PluginServer {
                    name: name.clone(),
                    entry: entry.clone(),
                    file: file.clone(),
                }),
                Some(problem) => {
                    let shown: String = name.chars().take(60).collect();
                    let message = format!("server `{}` is not used: {problem}", shown.escape_debug());
                    let line = self.find_line(file, name);
                    self.add(file.clone(), CapabilityProblem::error(line, message));
                }
            }
        }
        servers
    }

    /// Leaves the programs out if one has the name of a program that policy takes for a reader: with that program not
    /// installed, the plugin's would run where the reader was allowed.
    fn check_programs(&mut self) {
        let programs = self.package.programs.clone();
        for name in programs.iter().filter(|name| is_known_reader(name)) {
            let message = format!(
                "the programs in `bin` are not used, because `{}` has the name of a program that may only read",
                name.escape_debug()
            );
            let file = self.package.root.join("bin").join(name);
            self.add(file, CapabilityProblem::error(1, message));
            self.package.programs.clear();
        }
    }

    /// Reads a file whose hash is known; it must still have it.
    fn read_bytes(&mut self, file: &AbsPath) -> Option<Vec<u8>> {
        let bytes = read_named_bytes(file, MAX_FILE_BYTES).ok();
        let is_same = |bytes: &Vec<u8>| self.package.files.get(file) == Some(&sha256_hex(bytes));
        let bytes = bytes.filter(is_same);
        if bytes.is_none() {
            self.refuse(file.clone(), 1, "the file changed while it was read".to_owned());
        }
        bytes
    }

    /// The line of a file on which a name first stands between quotation marks.
    fn find_line(&mut self, file: &AbsPath, name: &str) -> usize {
        let bytes = read_named_bytes(file, MAX_FILE_BYTES).unwrap_or_default();
        let quoted = format!("\"{name}\"");
        let text = String::from_utf8_lossy(&bytes);
        text.lines().position(|line| line.contains(&quoted)).map_or(1, |index| index + 1)
    }

    /// Records a problem.
    fn add(&mut self, file: AbsPath, problem: CapabilityProblem) {
        self.package.problems.push(CatalogProblem { file, problem });
    }

    /// Records a problem without whose solution the plugin must not be used.
    fn refuse(&mut self, file: AbsPath, line: usize, message: String) {
        self.is_usable = false;
        self.add(file, CapabilityProblem::error(line, message));
    }
}

/// Adds servers whose names are not taken in the plugin.
fn add_servers(
    servers: &mut Vec<PluginServer>,
    added: Vec<PluginServer>,
    problems: &mut Vec<CatalogProblem>,
) {
    for server in added {
        match servers.iter().find(|other| other.name == server.name) {
            None => servers.push(server),
            Some(first) => {
                let message =
                    format!("server `{}` is defined twice; the one of {} counts", server.name, first.file);
                let problem = CapabilityProblem::warning(1, message);
                problems.push(CatalogProblem { file: server.file, problem });
            }
        }
    }
}

/// Whether policy lets commands with this program pass because they only read.
fn is_known_reader(program: &str) -> bool {
    let cwd = AbsPath::root();
    let workspace = Workspace::new(cwd.clone());
    READ_ONLY_TRIALS.iter().any(|rest| {
        let text = format!("{program}{rest}");
        let line = CommandLine::new(text, ShellKind::Bash, cwd.clone());
        let analysis = toolgate_shell_syntax::analyse(&line, &workspace);
        analysis.parts.iter().any(|part| part.read_only)
    })
}
