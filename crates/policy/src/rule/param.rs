//! `Tool(param:value)`: deny and ask rules on one top-level field of the input.

use super::mcp::{McpIndex, McpPattern};
use serde_json::{Map, Value};
use std::collections::HashMap;
use toolgate_proto::ToolIdentity;
use toolgate_proto::wildcard::WildcardPattern;

/// A field of a tool's input and the value it must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ParamPattern {
    owner: ParamOwner,
    field: FieldPattern,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum ParamOwner {
    Tool(String),
    /// Tools of other servers, whose fields have no rules of their own.
    Servers(McpPattern),
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct FieldPattern {
    param: String,
    value: WildcardPattern,
}

impl FieldPattern {
    fn parse(content: &str) -> Option<Self> {
        let (param, value) = content.split_once(':')?;
        let named = param.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && param.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'));
        (named && !value.is_empty())
            .then(|| Self { param: param.to_owned(), value: WildcardPattern::new(value) })
    }

    /// A field that is absent, or no scalar, fits nothing.
    fn matches(&self, input: &Map<String, Value>) -> bool {
        input.get(&self.param).and_then(scalar_text).is_some_and(|text| self.value.matches(&text))
    }
}

/// Fields that other rule kinds speak of, with the meaning that counts.
const PRIMARY_FIELDS: [&str; 5] = ["command", "file_path", "path", "notebook_path", "url"];

/// What a content of the form `key:value` is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyedContent {
    /// A rule on a field.
    Param(ParamPattern),
    /// A field that only its own rule kind may judge.
    Primary(String),
}

/// Reads a content as `param:value`, if for this tool it is one.
/// Where contents have a grammar of their own, only the tool's known fields count as such.
pub(crate) fn parse(tool: &str, content: &str) -> Option<KeyedContent> {
    let field = FieldPattern::parse(content)?;
    let param = field.param.as_str();
    let known: Option<&[&str]> = match super::tool::family(tool) {
        "Bash" | "PowerShell" => Some(&[
            "timeout",
            "description",
            "run_in_background",
            "background",
            "dangerouslyDisableSandbox",
            "dangerously_disable_sandbox",
        ]),
        "Read" => Some(&["offset", "limit", "pages", "allow_large"]),
        "Edit" => Some(&["old_string", "new_string", "replace_all"]),
        "WebFetch" => Some(&["prompt", "offset"]),
        "Skill" => Some(&["args"]),
        "Agent" => Some(&[
            "description",
            "prompt",
            "model",
            "effort",
            "run_in_background",
            "name",
            "isolation",
            "team_name",
            "mode",
        ]),
        _ => None,
    };
    if PRIMARY_FIELDS.contains(&param) {
        return Some(KeyedContent::Primary(param.to_owned()));
    }
    if known.is_some_and(|known| !known.contains(&param)) {
        return None;
    }
    let whose = ParamOwner::Tool(super::tool::canonical_name(tool).to_owned());
    Some(KeyedContent::Param(ParamPattern { owner: whose, field }))
}

/// The same for tools of other servers. What their fields mean nobody knows, so none has a rule kind of its own.
pub(crate) fn parse_for_servers(tools: McpPattern, content: &str) -> Option<ParamPattern> {
    FieldPattern::parse(content).map(|field| ParamPattern { owner: ParamOwner::Servers(tools), field })
}

/// Parameter rules of one action.
#[derive(Debug, Clone, Default)]
pub(crate) struct ParamIndex {
    tools: HashMap<String, Vec<(u32, FieldPattern)>>,
    servers: McpIndex,
    fields_of_servers: HashMap<u32, FieldPattern>,
}

impl ParamIndex {
    pub(crate) fn add(&mut self, id: u32, pattern: ParamPattern) {
        match pattern.owner {
            ParamOwner::Tool(tool) => self.tools.entry(tool).or_default().push((id, pattern.field)),
            ParamOwner::Servers(tools) => {
                self.servers.add(id, tools);
                self.fields_of_servers.insert(id, pattern.field);
            }
        }
    }

    /// The first rule that a field of the input fits.
    pub(crate) fn find(&self, tool: &ToolIdentity, input: &Map<String, Value>) -> Option<u32> {
        if self.tools.is_empty() && self.fields_of_servers.is_empty() {
            return None;
        }
        let names = std::iter::once(tool.name.as_str()).chain(tool.also.iter().map(String::as_str));
        let own = names.filter_map(|name| self.tools.get(name)).flatten();
        let own = own.filter(|(_, field)| field.matches(input)).map(|(id, _)| *id).min();
        let fits = |id| self.fields_of_servers.get(&id).is_some_and(|field| field.matches(input));
        own.into_iter().chain(self.servers.find_broadly(tool, fits)).min()
    }
}

fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
