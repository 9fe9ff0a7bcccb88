//! Agents: one Markdown file each; the body is the whole system prompt.

use crate::capability_name::check_capability_name;
use crate::field_reader::FieldReader;
use crate::front_matter::FrontMatter;
use crate::problem::{CapabilityProblem, CapabilitySeverity};
use crate::skill::first_paragraph;
use serde_json::Value;

/// Where an agent's file comes from, which decides how it gets its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentFileOrigin {
    /// A directory of the user's, the project's or the managed settings: the name is the field `name`.
    Settings,
    /// A plugin: a file without a name has that of the file.
    Plugin,
}

/// An agent, as it is written.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct AgentFile {
    /// The name by which it is started.
    pub name: String,
    /// When to use it.
    pub description: String,
    /// The only tools that it gets; absent means all.
    pub tools: Option<Vec<String>>,
    /// Tools that it does not get.
    pub disallowed_tools: Vec<String>,
    /// The model, for hosts.
    pub model: Option<String>,
    /// The permission mode that it asks for.
    pub permission_mode: Option<String>,
    /// The most turns that it may take.
    pub max_turns: Option<u64>,
    /// Where it works, if not where its parent does: `worktree`.
    pub isolation: Option<String>,
    /// Skills whose text it gets at the start.
    pub skills: Vec<String>,
    /// MCP servers that it wants: names, or definitions.
    pub mcp_servers: Option<Value>,
    /// Hooks that it wants to add, as in settings.
    pub hooks: Option<Value>,
    /// Why the agent must not be started, such as a misspelled field that was meant to restrict it.
    pub unusable: Option<String>,
    /// The system prompt.
    pub body: String,
    /// The line on which the body begins, from 1.
    pub body_line: usize,
}

impl AgentFile {
    /// Reads a file. Without a name or a description there is no agent, and a problem says so. An agent that could do more
    /// than its file says is [`unusable`](Self::unusable).
    pub fn read(
        bytes: &[u8],
        file_stem: &str,
        origin: AgentFileOrigin,
    ) -> (Option<Self>, Vec<CapabilityProblem>) {
        let front = FrontMatter::read(bytes);
        let mut fields = FieldReader::new(&front);
        let name = fields.text("name");
        let description = fields.text("description");
        let tools = fields.tools("tools");
        let mut agent = Self {
            name: name.clone().unwrap_or_else(|| file_stem.to_owned()),
            description: description.clone().unwrap_or_else(|| first_paragraph(&front.body)),
            tools,
            disallowed_tools: fields.tools("disallowedTools").unwrap_or_default(),
            model: fields.text("model"),
            permission_mode: fields.text("permissionMode"),
            max_turns: fields.limit("maxTurns"),
            isolation: fields.text("isolation"),
            skills: fields.names("skills"),
            mcp_servers: fields.value("mcpServers").cloned(),
            hooks: fields.value("hooks").cloned(),
            unusable: None,
            body: String::new(),
            body_line: front.body_line,
        };
        for ignored in ["color", "effort", "background", "memory", "initialPrompt", "version"] {
            fields.value(ignored);
        }
        let reason = match (&name, &description, origin) {
            (None, _, AgentFileOrigin::Settings) => Some("it has no `name`".to_owned()),
            (_, None, AgentFileOrigin::Settings) => Some("it has no `description`".to_owned()),
            _ => check_agent_name(&agent.name).err(),
        };
        let line = front.line_of("name");
        let mut problems = fields.finish();
        if let Some(reason) = reason {
            let message = format!("this file is not an agent: {reason}; add it to the front matter");
            problems.push(CapabilityProblem::error(line, message));
            return (None, problems);
        }
        let error = problems.iter().find(|problem| problem.severity == CapabilitySeverity::Error);
        agent.unusable = error.map(|problem| problem.message.clone());
        agent.body = front.body;
        (Some(agent), problems)
    }
}

/// A name that cannot be taken for an option or for another agent's.
fn check_agent_name(name: &str) -> Result<(), String> {
    if name.starts_with('-') || name.contains(':') {
        return Err(format!("its name `{name}` begins with `-` or has a `:`"));
    }
    // Names of agents are labels with blanks in many public files.
    check_capability_name(&name.replace(' ', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_needs_a_name_and_a_description_unless_a_plugin_brings_it() {
        let nameless = b"---\ndescription: d\n---\nprompt";
        let (agent, problems) = AgentFile::read(nameless, "stem", AgentFileOrigin::Settings);
        assert!(agent.is_none() && problems[0].message.contains("no `name`"));
        let (agent, _) = AgentFile::read(nameless, "stem", AgentFileOrigin::Plugin);
        assert_eq!(agent.map(|agent| agent.name).as_deref(), Some("stem"));
    }

    #[test]
    fn a_field_that_restricts_and_has_no_effect_makes_an_agent_unusable() {
        let read = |line: &str| {
            let text = format!("---\nname: a\ndescription: d\n{line}\n---\nprompt");
            let (agent, problems) = AgentFile::read(text.as_bytes(), "a", AgentFileOrigin::Settings);
            (agent.unwrap().unusable, problems)
        };
        for (line, meant) in [
            ("disalowedTools: Bash", "write `disallowedTools`"),
            ("disallowed-tools: Bash", "write `disallowedTools`"),
            ("tool: Read", "write `tools`"),
            ("permisionMode: plan", "write `permissionMode`"),
            ("max_turns: 2", "write `maxTurns`"),
            ("hook: x", "write `hooks`"),
            ("maxTurns: 0", "must be a whole number from 1"),
            ("maxTurns: two", "must be a whole number from 1"),
            ("disallowedTools: { Bash: true }", "is not a list of tools"),
        ] {
            let (unusable, problems) = read(line);
            assert!(unusable.is_some_and(|why| why.contains(meant)), "{line}: {problems:?}");
            assert_eq!((problems.len(), problems[0].line), (1, 4), "{line}: {problems:?}");
        }
        for (line, severity) in [
            ("modle: big", CapabilitySeverity::Warning),
            ("category: x", CapabilitySeverity::Note),
            ("allowed-domains: x", CapabilitySeverity::Note),
        ] {
            let (unusable, problems) = read(line);
            assert_eq!((unusable, problems[0].severity), (None, severity), "{line}");
        }
    }

    #[test]
    fn tools_are_a_list_or_a_text() {
        for tools in ["Read, Bash(git *), mcp__docs", "[Read, \"Bash(git *)\", mcp__docs]"] {
            let text = format!("---\nname: a\ndescription: d\ntools: {tools}\n---\n");
            let (agent, _) = AgentFile::read(text.as_bytes(), "a", AgentFileOrigin::Settings);
            assert_eq!(agent.unwrap().tools.unwrap(), ["Read", "Bash(git *)", "mcp__docs"]);
        }
    }
}
