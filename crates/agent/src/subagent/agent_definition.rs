//! Types of subagents: built in, given on the command line or by a host, or read from files by another part.

use crate::agent_hook::AgentHookList;
use crate::agent_settings::EFFORT_LEVELS;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use toolgate_gate::SessionHooks;
use toolgate_proto::wildcard::WildcardPattern;
use toolgate_proto::{Mode, find_intended_name, tool_synonyms};

/// A type of subagents.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentDefinition {
    /// Its name.
    pub name: String,
    /// When to use it, for the model.
    pub description: String,
    /// Its whole system prompt.
    pub prompt: String,
    /// Only these tools; absent means all that the session shows.
    pub tools: Option<Vec<String>>,
    /// Not these tools.
    pub disallowed_tools: Vec<String>,
    /// Its model; absent or `inherit` means the one of the session.
    pub model: Option<String>,
    /// The most requests of one task.
    pub max_turns: Option<u32>,
    /// Its permission mode. It counts only where it is not less strict than that of the session.
    pub mode: Option<Mode>,
    /// How much effort the model makes.
    pub effort: Option<String>,
    /// Hooks for its calls and those of agents that it starts.
    pub hooks: SessionHooks,
    /// Hooks around its calls.
    pub agent_hooks: AgentHookList,
    /// Where it works, if not where its parent does.
    pub isolation: Option<AgentIsolation>,
    /// It gets the instructions that users and projects keep in files, as the main conversation does.
    pub reads_instructions: bool,
}

/// A place of its own for the work of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum AgentIsolation {
    /// A git worktree, which is removed if the agent leaves it unchanged.
    Worktree,
}

impl AgentIsolation {
    /// Reads the name of a place.
    pub fn from_name(name: &str) -> Result<Self, String> {
        match name {
            "worktree" => Ok(Self::Worktree),
            other => Err(format!("there is no isolation `{other}`; use `worktree`")),
        }
    }
}

impl AgentDefinition {
    /// A type with a prompt and all tools.
    pub fn new(name: impl Into<String>, description: impl Into<String>, prompt: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            prompt: prompt.into(),
            tools: None,
            disallowed_tools: Vec::new(),
            model: None,
            max_turns: None,
            mode: None,
            effort: None,
            hooks: SessionHooks::default(),
            agent_hooks: AgentHookList::default(),
            isolation: None,
            reads_instructions: true,
        }
    }

    /// Tells the agent of skills for its work.
    pub fn name_skills(&mut self, skills: &[String]) {
        if !skills.is_empty() {
            let names = skills.join(", ");
            self.prompt
                .push_str(&format!("\n\nSkills for your work, to be loaded with the tool `Skill`: {names}."));
        }
    }

    /// Reads one entry of `--agents` or of a host's `agents`. A misspelled key or a wrong value is an error: without the
    /// key the agent could do more than the entry says.
    pub fn from_value(name: &str, value: &Value) -> Result<Self, String> {
        if name.is_empty() || name.starts_with('-') || name.contains([':', '/', '\n']) {
            return Err(format!("`{name}` is not a name for an agent"));
        }
        let entry = value.as_object().ok_or_else(|| format!("agent `{name}` must be an object"))?;
        Self::from_entry(name, entry).map_err(|problem| format!("agent `{name}`: {problem}"))
    }

    /// Reads the fields of an entry.
    fn from_entry(name: &str, entry: &Map<String, Value>) -> Result<Self, String> {
        for key in entry.keys().filter(|key| !ENTRY_KEYS.contains(&key.as_str())) {
            if let Some(meant) = find_intended_name(key, ENTRY_KEYS) {
                return Err(format!("unknown key `{key}`; did you mean `{meant}`?"));
            }
        }
        let description = read_text(entry, "description")?.ok_or("it has no `description`")?;
        let prompt = read_text(entry, "prompt")?.ok_or("it has no `prompt`")?;
        let mode = read_text(entry, "permissionMode")?
            .map(|mode| mode.parse::<Mode>().map_err(|unknown| unknown.to_string()));
        let isolation = read_text(entry, "isolation")?.map(|place| AgentIsolation::from_name(&place));
        let mut definition = Self {
            isolation: isolation.transpose()?,
            tools: read_names(entry, "tools")?,
            disallowed_tools: read_names(entry, "disallowedTools")?.unwrap_or_default(),
            model: read_text(entry, "model")?.filter(|model| model != "inherit"),
            max_turns: read_max_turns(entry)?,
            mode: mode.transpose()?,
            effort: read_effort(entry)?,
            ..Self::new(name, description, prompt)
        };
        definition.name_skills(&read_names(entry, "skills")?.unwrap_or_default());
        Ok(definition)
    }

    /// Reads an object of such entries.
    pub fn read_all(value: &Value) -> Result<Vec<Self>, String> {
        let entries = value.as_object().ok_or("agents must be an object")?;
        entries.iter().map(|(name, entry)| Self::from_value(name, entry)).collect()
    }

    /// The names that the type may use, out of those that the session shows.
    pub fn visible_tools(&self, shown: &BTreeSet<String>) -> BTreeSet<String> {
        let is_disallowed = |tool: &str| {
            let mut names = std::iter::once(tool).chain(tool_synonyms(tool).iter().copied());
            names.any(|name| self.disallowed_tools.iter().any(|entry| names_tool(entry, name)))
        };
        // A name of the other toolset stands for a tool of this one, unless a tool has that very name.
        let is_listed = |entry: &String, tool: &str| {
            let mut synonyms = tool_synonyms(tool).iter().filter(|name| !shown.contains(**name));
            names_tool(entry, tool) || synonyms.any(|name| names_tool(entry, name))
        };
        shown
            .iter()
            .filter(|tool| !is_disallowed(tool))
            .filter(|tool| self.tools.as_ref().is_none_or(|list| list.iter().any(|it| is_listed(it, tool))))
            .cloned()
            .collect()
    }
}

/// The keys of an entry: those that are read, and those that hosts send and that have no effect here.
const ENTRY_KEYS: [&str; 16] = [
    "background",
    "color",
    "description",
    "disallowedTools",
    "effort",
    "hooks",
    "initialPrompt",
    "isolation",
    "maxTurns",
    "mcpServers",
    "memory",
    "model",
    "permissionMode",
    "prompt",
    "skills",
    "tools",
];

/// Reads an optional text; `null` counts as absent.
fn read_text(entry: &Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match entry.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("`{key}` must be a string")),
    }
}

/// Reads an optional list of names, or a text with commas between them.
fn read_names(entry: &Map<String, Value>, key: &str) -> Result<Option<Vec<String>>, String> {
    let names: Option<Vec<String>> = match entry.get(key) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(names)) => {
            let names = names.split(',').map(|name| name.trim().to_owned());
            Some(names.filter(|name| !name.is_empty()).collect())
        }
        Some(Value::Array(names)) => names.iter().map(|name| name.as_str().map(str::to_owned)).collect(),
        Some(_) => None,
    };
    names.map(Some).ok_or_else(|| format!("`{key}` must be a list of names"))
}

/// Reads the limit of requests. Zero is no limit that an agent could work under.
fn read_max_turns(entry: &Map<String, Value>) -> Result<Option<u32>, String> {
    match entry.get("maxTurns") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let turns = value.as_u64().filter(|turns| *turns > 0);
            let turns = turns.ok_or("`maxTurns` must be a whole number from 1")?;
            Ok(Some(u32::try_from(turns).unwrap_or(u32::MAX)))
        }
    }
}

/// Reads the effort. Hosts may send a number, which has no effect.
fn read_effort(entry: &Map<String, Value>) -> Result<Option<String>, String> {
    if entry.get("effort").is_some_and(Value::is_number) {
        return Ok(None);
    }
    match read_text(entry, "effort")? {
        Some(effort) if !EFFORT_LEVELS.contains(&effort.as_str()) => {
            Err(format!("there is no effort `{effort}`; use one of {}", EFFORT_LEVELS.join(", ")))
        }
        effort => Ok(effort),
    }
}

/// Whether an entry of a list names a tool: itself, a server (`mcp__server`), or with `*` for any characters, as in rules.
fn names_tool(entry: &str, tool: &str) -> bool {
    let bare = entry.split('(').next().unwrap_or_default();
    let is_of_server = || bare.starts_with("mcp__") && tool.starts_with(&format!("{bare}__"));
    WildcardPattern::new(bare).matches(tool) || is_of_server()
}

/// The types on offer, by name; a later source replaces an earlier one.
#[derive(Debug, Clone)]
pub struct AgentTypes {
    /// Each type under its name.
    types: BTreeMap<String, AgentDefinition>,
}

impl Default for AgentTypes {
    /// The built-in types.
    fn default() -> Self {
        let mut types = Self { types: BTreeMap::new() };
        types.add(builtin_types());
        types
    }
}

impl AgentTypes {
    /// Adds types; one of the same name is replaced.
    pub fn add(&mut self, definitions: impl IntoIterator<Item = AgentDefinition>) {
        for definition in definitions {
            self.types.insert(definition.name.clone(), definition);
        }
    }

    /// A type by its name.
    pub fn get(&self, name: &str) -> Option<&AgentDefinition> {
        self.types.get(name)
    }

    /// All types, in name order.
    pub fn iter(&self) -> impl Iterator<Item = &AgentDefinition> {
        self.types.values()
    }
}

/// The type where a call names none.
pub(super) const DEFAULT_TYPE: &str = "general-purpose";

/// The types that are always there.
fn builtin_types() -> [AgentDefinition; 3] {
    let reading =
        || Some(["Read", "Grep", "Glob", "ls", "read_many_files", "Bash"].map(str::to_owned).to_vec());
    [
        AgentDefinition::new(
            DEFAULT_TYPE,
            "for a task of several steps that needs its own search and its own changes",
            "You are a subagent: another agent gave you one task and sees only your last message. Do the task completely \
             with the tools that you have, and nothing beyond it. Then report what you did and found, with the paths and \
             lines that matter, so that the other agent can go on without reading everything again.",
        ),
        AgentDefinition {
            tools: reading(),
            mode: Some(Mode::Plan),
            reads_instructions: false,
            ..AgentDefinition::new(
                "Explore",
                "for finding things out in the code without changing anything",
                "You are a subagent that finds things out and changes nothing. Search widely, then read what matters. \
                 Answer the question with the paths and lines that show it, say what you did not find, and keep it short: \
                 another agent reads only your last message.",
            )
        },
        AgentDefinition {
            tools: reading(),
            mode: Some(Mode::Plan),
            reads_instructions: false,
            ..AgentDefinition::new(
                "Plan",
                "for working out how a change should be made, without making it",
                "You are a subagent that plans a change and does not make it. Read the code that the change touches, then \
                 give the steps in order, the files of each step, what could go wrong, and how to check the result. Another \
                 agent reads only your last message.",
            )
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn entries_are_read_and_wrong_ones_are_refused() {
        let agents = json!({ "rev": { "description": "d", "prompt": "p", "tools": ["Read", "mcp__gh"], "maxTurns": 2,
            "permissionMode": "plan", "model": "inherit" } });
        let read = AgentDefinition::read_all(&agents).unwrap();
        assert_eq!((read[0].max_turns, read[0].mode, &read[0].model), (Some(2), Some(Mode::Plan), &None));
        let shown: BTreeSet<String> =
            ["Read", "Write", "mcp__gh__issue", "mcp__ghx__y"].map(str::to_owned).into();
        assert_eq!(read[0].visible_tools(&shown).into_iter().collect::<Vec<_>>(), ["Read", "mcp__gh__issue"]);
        let visible = |disallowed: &[&str]| {
            let disallowed_tools = disallowed.iter().map(|name| (*name).to_owned()).collect();
            let agent = AgentDefinition { disallowed_tools, ..AgentDefinition::new("a", "d", "p") };
            agent.visible_tools(&shown).into_iter().collect::<Vec<_>>()
        };
        // `*` stands anywhere, as in rules: a tool that is meant to be hidden is hidden.
        assert_eq!(visible(&["mcp__*__issue", "W*e"]), ["Read", "mcp__ghx__y"]);
        assert_eq!(visible(&["mcp__gh", "Read(src/**)"]), ["Write", "mcp__ghx__y"]);
        // The names of the other toolset stand for the same tools.
        assert_eq!(visible(&["mcp__*", "write_file"]), ["Read"]);
        let only = |tools: &[&str], shown: &[&str]| {
            let tools = Some(tools.iter().map(|name| (*name).to_owned()).collect());
            let agent = AgentDefinition { tools, ..AgentDefinition::new("a", "d", "p") };
            let shown = shown.iter().map(|name| (*name).to_owned()).collect();
            agent.visible_tools(&shown).into_iter().collect::<Vec<_>>()
        };
        assert_eq!(only(&["read_file"], &["Read", "Write"]), ["Read"]);
        assert_eq!(only(&["Read"], &["read_file", "ls"]), ["read_file"]);
        assert_eq!(only(&["Read"], &["Read", "read_file"]), ["Read"]);
        for wrong in [
            json!([]),
            json!({ "a": {} }),
            json!({ "-a": { "description": "d", "prompt": "p" } }),
            json!({ "a": { "description": "d", "prompt": "p", "tools": [1] } }),
            json!({ "a": { "description": "d", "prompt": "p", "permissionMode": "loose" } }),
            json!({ "a": { "description": "d", "prompt": "p", "isolation": "remote" } }),
        ] {
            assert!(AgentDefinition::read_all(&wrong).is_err(), "{wrong}");
        }
        assert_eq!(AgentTypes::default().iter().count(), 3);
    }

    #[test]
    fn a_misspelled_key_or_a_wrong_limit_makes_an_agent_unusable() {
        for (key, value, says) in [
            ("tool", json!(["Read"]), "agent `x`: unknown key `tool`; did you mean `tools`?"),
            ("disalowedTools", json!(["Bash"]), "did you mean `disallowedTools`?"),
            ("disallowed_tools", json!(["Bash"]), "did you mean `disallowedTools`?"),
            ("permisionMode", json!("plan"), "did you mean `permissionMode`?"),
            ("max_turns", json!(1), "did you mean `maxTurns`?"),
            ("permissionMode", json!(["plan"]), "`permissionMode` must be a string"),
            ("isolation", json!(true), "`isolation` must be a string"),
            ("maxTurns", json!(0), "must be a whole number from 1"),
            ("maxTurns", json!("2"), "must be a whole number from 1"),
            ("maxTurns", json!(-1), "must be a whole number from 1"),
            ("effort", json!("ultra"), "there is no effort `ultra`; use one of none, minimal, low"),
        ] {
            let mut entry = json!({ "description": "d", "prompt": "p" });
            entry[key] = value;
            let problem = AgentDefinition::from_value("x", &entry).unwrap_err();
            assert!(problem.contains(says), "{entry}: {problem}");
        }
        for (key, value) in [
            ("criticalSystemReminder_EXPERIMENTAL", json!("x")),
            ("background", json!(true)),
            ("effort", json!("xhigh")),
            ("effort", json!(50)),
            ("maxTurns", json!(null)),
            ("mcpServers", json!([])),
        ] {
            let mut entry = json!({ "description": "d", "prompt": "p" });
            entry[key] = value;
            assert!(AgentDefinition::from_value("x", &entry).is_ok(), "{entry}");
        }
    }
}
