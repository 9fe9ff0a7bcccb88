//! `plugin.json`: what a plugin brings.

use crate::capability_name::check_capability_name;
use crate::problem::CapabilityProblem;
use serde_json::{Map, Value};
use toolgate_proto::json::{JsonLimits, parse};

/// Fields of people who write manifests, which mean nothing to a runtime.
const DESCRIPTIVE_FIELDS: &[&str] = &[
    "$schema",
    "author",
    "homepage",
    "repository",
    "license",
    "keywords",
    "category",
    "tags",
    "icon",
    "displayName",
];

/// A kind of component: files, definitions in the manifest, or both.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ComponentList {
    /// Files or directories below the plugin, each beginning with `./`.
    pub paths: Vec<String>,
    /// Definitions in the manifest itself.
    pub inline: Vec<Value>,
}

/// A plugin's manifest. Absent kinds of components have their usual places.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct PluginManifest {
    /// The name of the plugin.
    pub name: String,
    /// Its version, as it is written.
    pub version: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Commands, in place of `commands/`.
    pub commands: Option<ComponentList>,
    /// Agents, in place of `agents/`.
    pub agents: Option<ComponentList>,
    /// Output styles, in place of `output-styles/`.
    pub output_styles: Option<ComponentList>,
    /// Skills, beside `skills/`.
    pub skills: Option<ComponentList>,
    /// Hooks, beside `hooks/hooks.json`.
    pub hooks: Option<ComponentList>,
    /// MCP servers, beside `.mcp.json`.
    pub mcp_servers: Option<ComponentList>,
    /// Language servers, beside `.lsp.json`.
    pub lsp_servers: Option<ComponentList>,
}

impl PluginManifest {
    /// A manifest that says no more than a name.
    pub fn named(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Whether it names any component.
    pub fn has_components(&self) -> bool {
        let lists = [&self.commands, &self.agents, &self.output_styles, &self.skills];
        let definitions = [&self.hooks, &self.mcp_servers, &self.lsp_servers];
        lists.into_iter().chain(definitions).any(Option::is_some)
    }

    /// Adds the components of an entry of a marketplace to those of the plugin's own manifest, whose name, version and
    /// description count first.
    pub fn add_entry(&mut self, entry: &Self) {
        self.version = self.version.take().or_else(|| entry.version.clone());
        self.description = self.description.take().or_else(|| entry.description.clone());
        for (own, added) in [
            (&mut self.commands, &entry.commands),
            (&mut self.agents, &entry.agents),
            (&mut self.output_styles, &entry.output_styles),
            (&mut self.skills, &entry.skills),
            (&mut self.hooks, &entry.hooks),
            (&mut self.mcp_servers, &entry.mcp_servers),
            (&mut self.lsp_servers, &entry.lsp_servers),
        ] {
            let Some(added) = added else { continue };
            let own = own.get_or_insert_with(ComponentList::default);
            let new_paths: Vec<String> =
                added.paths.iter().filter(|path| !own.paths.contains(path)).cloned().collect();
            own.paths.extend(new_paths);
            own.inline.extend(added.inline.iter().cloned());
        }
    }

    /// The manifest as the content of a file, which [`PluginManifest::read`] reads as the same manifest.
    pub fn to_json(&self) -> Value {
        let mut fields = Map::new();
        let texts = [
            ("name", Some(&self.name)),
            ("version", self.version.as_ref()),
            ("description", self.description.as_ref()),
        ];
        for (key, text) in texts {
            if let Some(text) = text {
                fields.insert(key.to_owned(), Value::String(text.clone()));
            }
        }
        for (key, list) in [
            ("commands", &self.commands),
            ("agents", &self.agents),
            ("outputStyles", &self.output_styles),
            ("skills", &self.skills),
            ("hooks", &self.hooks),
            ("mcpServers", &self.mcp_servers),
            ("lspServers", &self.lsp_servers),
        ] {
            if let Some(list) = list {
                let paths = list.paths.iter().cloned().map(Value::String);
                fields.insert(key.to_owned(), paths.chain(list.inline.iter().cloned()).collect());
            }
        }
        Value::Object(fields)
    }

    /// Reads a manifest. An error among the problems means that the plugin cannot be used.
    pub fn read(bytes: &[u8]) -> (Option<Self>, Vec<CapabilityProblem>) {
        let value = match read_component_json(bytes) {
            Ok(value) => value,
            Err(problem) => return (None, vec![problem]),
        };
        let Value::Object(fields) = &value else {
            return (None, vec![CapabilityProblem::error(1, "the manifest is not a JSON object")]);
        };
        Self::from_fields(fields, &|key| find_key_line(bytes, key))
    }

    /// Reads the fields of a manifest, or of an entry of a marketplace.
    pub(crate) fn from_fields(
        fields: &Map<String, Value>,
        line_of: &dyn Fn(&str) -> usize,
    ) -> (Option<Self>, Vec<CapabilityProblem>) {
        let mut problems = Vec::new();
        let mut manifest = Self::default();
        let text = |key: &str, problems: &mut Vec<CapabilityProblem>| match fields.get(key) {
            None | Some(Value::Null) => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => {
                problems.push(CapabilityProblem::error(line_of(key), format!("`{key}` must be a text")));
                None
            }
        };
        match text("name", &mut problems) {
            Some(name) => match check_plugin_name(&name) {
                Ok(()) => manifest.name = name,
                Err(problem) => problems.push(CapabilityProblem::error(line_of("name"), problem)),
            },
            None if fields.get("name").is_some_and(|name| !name.is_null()) => {}
            None => problems.push(CapabilityProblem::error(1, "the manifest has no `name`")),
        }
        manifest.version = text("version", &mut problems);
        manifest.description = text("description", &mut problems);
        for (key, list, takes_inline) in [
            ("commands", &mut manifest.commands, false),
            ("agents", &mut manifest.agents, false),
            ("outputStyles", &mut manifest.output_styles, false),
            ("skills", &mut manifest.skills, false),
            ("hooks", &mut manifest.hooks, true),
            ("mcpServers", &mut manifest.mcp_servers, true),
            ("lspServers", &mut manifest.lsp_servers, true),
        ] {
            match fields.get(key).map(|value| read_components(value, takes_inline)).transpose() {
                Ok(read) => *list = read,
                Err(problem) => {
                    problems.push(CapabilityProblem::error(line_of(key), format!("`{key}`: {problem}")));
                }
            }
        }
        let known =
            ["name", "version", "description", "commands", "agents", "outputStyles", "skills", "hooks"];
        let others = ["mcpServers", "lspServers", "source", "strict"];
        for key in fields.keys().filter(|key| {
            let key = key.as_str();
            !known.contains(&key) && !others.contains(&key) && !DESCRIPTIVE_FIELDS.contains(&key)
        }) {
            let shown: String = key.chars().take(60).collect();
            let message = format!("`{shown}` is not a known field and has no effect");
            problems.push(CapabilityProblem::note(line_of(key), message));
        }
        let usable = problems.iter().all(|problem| problem.severity < crate::CapabilitySeverity::Error);
        (usable.then_some(manifest), problems)
    }
}

/// Reads a list of components: a path, a list of paths, a definition, or a list of both.
fn read_components(value: &Value, takes_inline: bool) -> Result<ComponentList, String> {
    let mut list = ComponentList::default();
    let items = match value {
        Value::Array(items) => items.as_slice(),
        Value::Null => &[],
        one => std::slice::from_ref(one),
    };
    for item in items {
        match item {
            Value::String(path) => {
                check_component_path(path)?;
                list.paths.push(path.clone());
            }
            Value::Object(_) if takes_inline => list.inline.push(item.clone()),
            _ if takes_inline => return Err("give a path, an object, or a list of these".to_owned()),
            _ => return Err("give a path or a list of paths".to_owned()),
        }
    }
    Ok(list)
}

/// Whether a path names something below the plugin; the error says why not.
pub fn check_component_path(path: &str) -> Result<(), String> {
    let shown: String = path.chars().take(80).collect::<String>().escape_debug().to_string();
    let Some(inside) = path.strip_prefix("./") else {
        return Err(format!("the path `{shown}` must begin with `./`"));
    };
    if inside.split('/').any(|part| part == "..") {
        return Err(format!("the path `{shown}` leads out of the plugin"));
    }
    if path.chars().any(char::is_control) || path.contains('\\') {
        return Err(format!("the path `{shown}` has characters that no path of a plugin may have"));
    }
    Ok(())
}

/// Names of plugins are ASCII: they are parts of tool names and of directories.
fn check_plugin_name(name: &str) -> Result<(), String> {
    check_capability_name(name)?;
    if !name.is_ascii() || name.contains(':') {
        return Err(format!(
            "the name `{}` must have ASCII letters, digits, `-`, `_` and `.` only",
            name.escape_default()
        ));
    }
    Ok(())
}

/// Reads a JSON file of a plugin strictly, such as `hooks.json` and `.mcp.json`; the error has its line.
pub fn read_component_json(bytes: &[u8]) -> Result<Value, CapabilityProblem> {
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let text =
        std::str::from_utf8(bytes).map_err(|_| CapabilityProblem::error(1, "the file is not UTF-8"))?;
    parse(text, JsonLimits::SETTINGS).map_err(|problem| {
        // The strict reader says what; the plain one knows where.
        let line = match serde_json::from_str::<serde::de::IgnoredAny>(text) {
            Ok(_) => 1,
            Err(error) => error.line().max(1),
        };
        CapabilityProblem::error(line, format!("the file is not valid JSON: {problem}"))
    })
}

/// The line on which a key first occurs.
pub(crate) fn find_key_line(bytes: &[u8], key: &str) -> usize {
    let text = String::from_utf8_lossy(bytes);
    let quoted = format!("\"{key}\"");
    text.lines().position(|line| line.contains(&quoted)).map_or(1, |index| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_component_is_read() {
        let (manifest, problems) = PluginManifest::read(
            br#"{"name": "p", "version": "1", "commands": "./cmd", "agents": ["./a.md"], "skills": ["./x", "./y"],
                "hooks": {"PreToolUse": []}, "mcpServers": ["./m.json", {"s": {}}], "author": {"name": "x"}, "zzz": 1}"#,
        );
        let manifest = manifest.unwrap();
        assert_eq!(manifest.commands.unwrap().paths, ["./cmd"]);
        assert_eq!(manifest.skills.unwrap().paths, ["./x", "./y"]);
        assert_eq!(manifest.hooks.unwrap().inline.len(), 1);
        let servers = manifest.mcp_servers.unwrap();
        assert_eq!((servers.paths.len(), servers.inline.len()), (1, 1));
        assert_eq!((problems.len(), problems[0].line), (1, 2));
    }

    #[test]
    fn an_entry_adds_components_and_the_file_says_the_same() {
        let read = |text: &str| PluginManifest::read(text.as_bytes()).0.unwrap();
        let mut own = read(r#"{"name": "p", "version": "2", "skills": "./x", "hooks": {"PreToolUse": []}}"#);
        let entry =
            read(r#"{"name": "p", "version": "1", "skills": ["./x", "./y"], "mcpServers": {"s": {}}}"#);
        own.add_entry(&entry);
        assert_eq!(own.version.as_deref(), Some("2"));
        assert_eq!(own.skills.as_ref().unwrap().paths, ["./x", "./y"]);
        assert_eq!(own.mcp_servers.as_ref().unwrap().inline.len(), 1);
        assert!(own.has_components() && !PluginManifest::named("p").has_components());
        assert_eq!(read(&own.to_json().to_string()), own);
    }

    #[test]
    fn what_leads_out_of_the_plugin_is_an_error() {
        for path in ["../x", "./../x", "./a/../../x", "/etc/passwd", "x", "~/x", "./a\\..\\b", "./a\nb"] {
            let text = serde_json::json!({ "name": "p", "commands": path }).to_string();
            let (manifest, problems) = PluginManifest::read(text.as_bytes());
            assert!(manifest.is_none() && problems.len() == 1, "{path}: {problems:?}");
        }
    }

    #[test]
    fn a_name_that_is_missing_or_misleading_is_an_error() {
        for text in [
            r#"{}"#,
            r#"{"name": 1}"#,
            r#"{"name": "rеview"}"#,
            r#"{"name": "a/b"}"#,
            "[]",
            "{",
            r#"{"name":"a","name":"b"}"#,
        ] {
            let (manifest, problems) = PluginManifest::read(text.as_bytes());
            assert!(manifest.is_none() && !problems.is_empty(), "{text}");
        }
    }
}
