//! Types of subagents: built in, given on the command line or by a host, or read from files by another part.

use crate::agent_hook::AgentHookList;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use toolgate_gate::SessionHooks;
use toolgate_proto::Mode;
use toolgate_proto::wildcard::WildcardPattern;

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

    /// Reads one entry of `--agents` or of a host's `agents`.
    pub fn from_value(name: &str, value: &Value) -> Result<Self, String> {
        if name.is_empty() || name.starts_with('-') || name.contains([':', '/', '\n']) {
            return Err(format!("`{name}` is not a name for an agent"));
        }
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let description =
            text("description").ok_or_else(|| format!("agent `{name}` has no `description`"))?;
        let prompt = text("prompt").ok_or_else(|| format!("agent `{name}` has no `prompt`"))?;
        let list = |key: &str| match value.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(names)) => Ok(Some(
                names.split(',').map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()).collect(),
            )),
            Some(Value::Array(names)) => names
                .iter()
                .map(|name| name.as_str().map(str::to_owned))
                .collect::<Option<Vec<String>>>()
                .map(Some)
                .ok_or_else(|| format!("`{key}` of agent `{name}` must be a list of names")),
            Some(_) => Err(format!("`{key}` of agent `{name}` must be a list of names")),
        };
        let mode = match text("permissionMode") {
            Some(mode) => Some(mode.parse::<Mode>().map_err(|unknown| format!("agent `{name}`: {unknown}"))?),
            None => None,
        };
        let isolation = match text("isolation") {
            Some(place) => Some(
                AgentIsolation::from_name(&place).map_err(|problem| format!("agent `{name}`: {problem}"))?,
            ),
            None => None,
        };
        let skills = list("skills")?.unwrap_or_default();
        let mut definition = Self {
            isolation,
            tools: list("tools")?,
            disallowed_tools: list("disallowedTools")?.unwrap_or_default(),
            model: text("model").filter(|model| model != "inherit"),
            max_turns: value
                .get("maxTurns")
                .and_then(Value::as_u64)
                .and_then(|turns| u32::try_from(turns).ok()),
            mode,
            effort: text("effort"),
            ..Self::new(name, description, prompt)
        };
        definition.name_skills(&skills);
        Ok(definition)
    }

    /// Reads an object of such entries.
    pub fn read_all(value: &Value) -> Result<Vec<Self>, String> {
        let entries = value.as_object().ok_or("agents must be an object")?;
        entries.iter().map(|(name, entry)| Self::from_value(name, entry)).collect()
    }

    /// The names that the type may use, out of those that the session shows.
    pub fn visible_tools(&self, shown: &BTreeSet<String>) -> BTreeSet<String> {
        let named = |names: &[String], tool: &String| names.iter().any(|name| names_tool(name, tool));
        shown
            .iter()
            .filter(|tool| !named(&self.disallowed_tools, tool))
            .filter(|tool| self.tools.as_ref().is_none_or(|names| named(names, tool)))
            .cloned()
            .collect()
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
}
