//! `Tool(param:value)`: deny and ask rules for one top-level field of the input.

use super::mcp::{McpIndex, McpPattern};
use super::syntax::RuleSyntaxError;
use super::unknown_field::{known_fields, unknown_field_problem};
use crate::field_text::{CallFields, value_texts};
use std::collections::HashMap;
use toolgate_proto::wildcard::WildcardPattern;

/// A field of a tool's input and the value that it must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ParamPattern {
    /// The tools that have the field.
    owner: ParamOwner,
    /// The field and its value.
    field: FieldPattern,
}

/// The tools that a field rule is for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ParamOwner {
    /// One tool by its present name.
    Tool(String),
    /// Tools of MCP servers. None of their fields has a rule kind of its own.
    Servers(McpPattern),
}

/// `param:value`, parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldPattern {
    /// The name of the field.
    param: String,
    /// The value as text, with wildcards.
    value: WildcardPattern,
    /// Other texts of the same value, for fields that are not strings.
    texts: Vec<String>,
}

impl FieldPattern {
    /// Parses `param:value`; `None` if the part before the colon is not a field name.
    fn parse(content: &str) -> Option<Self> {
        let (param, value) = content.split_once(':')?;
        // `-i` is a field of `Grep`.
        let word = param.strip_prefix('-').unwrap_or(param);
        let is_field_name = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        (is_field_name && !value.is_empty()).then(|| Self {
            param: param.to_owned(),
            value: WildcardPattern::new(value),
            // Field rules deny or ask; none allows.
            texts: value_texts(value, true),
        })
    }

    /// Whether the field has the value, under any of its names. A field that is absent never matches.
    fn matches(&self, fields: &CallFields<'_>) -> bool {
        fields.has_restricted_text(&self.param, |text, is_string| {
            self.value.matches(text) || (!is_string && self.texts.iter().any(|own| own == text))
        })
    }
}

/// Fields that a rule kind of their own covers: comparing `command` as text would miss what a command line runs.
const PRIMARY_FIELDS: [&str; 6] = ["command", "file_path", "path", "notebook_path", "directory", "url"];

/// What a content of the form `key:value` means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyedContent {
    /// A rule for a field.
    Param(ParamPattern),
    /// One of [`PRIMARY_FIELDS`], which needs another kind of rule.
    Primary(String),
    /// A field that the tool does not have, and what was probably meant.
    Unknown(RuleSyntaxError),
}

/// Parses a content as `param:value`. A tool whose rules have a grammar of their own only has its known fields: the
/// content of `Bash(npm run:*)` is a command.
pub(crate) fn parse(tool: &str, content: &str) -> Option<KeyedContent> {
    let field = FieldPattern::parse(content)?;
    let param = field.param.as_str();
    if PRIMARY_FIELDS.contains(&param) {
        return Some(KeyedContent::Primary(param.to_owned()));
    }
    let family = super::tool::family(tool);
    // `Bash(timeout:*)` is the older spelling of `Bash(timeout *)`; no program has a name such as `run_in_background`.
    let may_be_program = !param.contains('_') && !param.contains(|c: char| c.is_ascii_uppercase());
    if matches!(family, "Bash" | "PowerShell") && content.strip_prefix(param) == Some(":*") && may_be_program
    {
        return None;
    }
    let known = known_fields(family);
    if known.is_some_and(|known| !known.contains(&param)) {
        return unknown_field_problem(tool, content).map(KeyedContent::Unknown);
    }
    let owner = ParamOwner::Tool(super::tool::canonical_name(tool).to_owned());
    Some(KeyedContent::Param(ParamPattern { owner, field }))
}

/// Parses a content as `param:value` for tools of MCP servers, whose fields have no meaning to toolgate.
pub(crate) fn parse_for_servers(tools: McpPattern, content: &str) -> Option<ParamPattern> {
    FieldPattern::parse(content).map(|field| ParamPattern { owner: ParamOwner::Servers(tools), field })
}

/// Field rules of one action.
#[derive(Debug, Clone, Default)]
pub(crate) struct ParamIndex {
    /// Rules for one tool, by its name.
    tools: HashMap<String, Vec<(u32, FieldPattern)>>,
    /// Rules for tools of MCP servers.
    servers: McpIndex,
    /// The fields of the rules in `servers`.
    fields_of_servers: HashMap<u32, FieldPattern>,
}

impl ParamIndex {
    /// Adds a rule to the index of its owner.
    pub(crate) fn add(&mut self, id: u32, pattern: ParamPattern) {
        match pattern.owner {
            ParamOwner::Tool(tool) => self.tools.entry(tool).or_default().push((id, pattern.field)),
            ParamOwner::Servers(tools) => {
                self.servers.add(id, tools);
                self.fields_of_servers.insert(id, pattern.field);
            }
        }
    }

    /// The first rule whose field has its value in the input.
    pub(crate) fn find(&self, fields: &CallFields<'_>) -> Option<u32> {
        if self.tools.is_empty() && self.fields_of_servers.is_empty() {
            return None;
        }
        let tool = fields.tool;
        let own = tool.restricted_names().filter_map(|name| self.tools.get(name)).flatten();
        let own = own.filter(|(_, field)| field.matches(fields)).map(|(id, _)| *id).min();
        let has_value = |id| self.fields_of_servers.get(&id).is_some_and(|field| field.matches(fields));
        own.into_iter().chain(self.servers.find_broadly(tool, has_value)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_older_spelling_of_a_command_names_a_program() {
        let is_field = |content| matches!(parse("Bash", content), Some(KeyedContent::Param(_)));
        for content in ["timeout:*", "cwd:*", "ws:*", "npm run:*"] {
            assert_eq!(parse("Bash", content), None, "{content}");
        }
        for content in ["timeout:5", "run_in_background:*", "cwd:/tmp*"] {
            assert!(is_field(content), "{content}");
        }
    }
}
