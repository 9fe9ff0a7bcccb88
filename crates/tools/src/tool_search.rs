//! `ToolSearch`: find tools whose definitions were not sent, and load them for the session.
//!
//! A tool that is found can be called at once: its definition is in the result, and in every list of tools after it.
//! Loading shows a definition and nothing more; a call of the tool is judged as any other.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Weak;
use toolgate_gate::{CallContext, Cleared, Gate, Tool, ToolSpec};
use toolgate_proto::{CallResult, Code, Effect, Intent, Output, Refusal, ToolDefinition};

/// Tools that a search loads without `max_results`.
const DEFAULT_RESULT_COUNT: u32 = 5;
/// The parameters of BM25, as everywhere.
const TERM_SATURATION: f64 = 1.2;
const LENGTH_WEIGHT: f64 = 0.75;
/// As how many words of a description a word of a name counts.
const NAME_WORD_COUNT: usize = 3;

/// Searches the tools of a gate.
pub struct ToolSearchTool {
    /// Weak, because the gate owns the tool.
    gate: Weak<Gate>,
}

impl ToolSearchTool {
    /// The search over the tools of a gate.
    pub fn new(gate: Weak<Gate>) -> Self {
        Self { gate }
    }
}

/// Input of [`ToolSearchTool`].
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolSearchInput {
    /// Words; `+word` must occur; or `select:A,B` for exact names.
    query: String,
    /// Default 5.
    #[schemars(range(min = 1, max = 50))]
    max_results: Option<u32>,
}

impl Tool for ToolSearchTool {
    type Input = ToolSearchInput;

    fn spec(&self) -> ToolSpec {
        let mut spec = ToolSpec::new(
            "ToolSearch",
            "Finds tools that are not listed, by words of their names and descriptions, and lists them from then on. \
             Search before you say that there is no tool for something.",
        )
        .with_group(toolgate_gate::SEARCH_GROUP)
        .with_destructive(false)
        .with_idempotent(true);
        spec.title = "Search tools".to_owned();
        spec.input_examples =
            vec![json!({ "query": "github issue" }), json!({ "query": "select:mcp__github__get_issue" })];
        spec
    }

    fn intent(&self, input: &ToolSearchInput, _context: &CallContext) -> Intent {
        let effect = Effect::State { name: "listed tools".to_owned() };
        Intent::new(format!("search tools: {}", input.query), [effect])
    }

    async fn run(&self, input: ToolSearchInput, cleared: Cleared) -> CallResult {
        let Some(gate) = self.gate.upgrade() else {
            return Err(Refusal::new(Code::ToolFailed, "the gate is closed"));
        };
        let session = &cleared.context().session;
        let unlisted = gate.unlisted_definitions(session);
        let limit = input.max_results.unwrap_or(DEFAULT_RESULT_COUNT);
        let found = find_tools(&input.query, unlisted.iter().map(|(_, tool)| tool), limit as usize);
        gate.list_tools(session, found.iter().map(|tool| tool.name.as_str().to_owned()));
        let names: Vec<&str> = found.iter().map(|tool| tool.name.as_str()).collect();
        let structured = json!({ "matches": names, "query": input.query, "unlisted": unlisted.len() });
        if found.is_empty() {
            let text = format!("no tool matches; {} tools are not listed", unlisted.len());
            return Ok(Output::text(text).structured(structured));
        }
        let definitions: Vec<String> = found.iter().map(|tool| render_definition(tool).to_string()).collect();
        Ok(Output::text(definitions.join("\n")).structured(structured))
    }
}

fn render_definition(tool: &ToolDefinition) -> Value {
    json!({ "name": tool.name, "description": tool.description, "input_schema": tool.input_schema })
}

/// The tools that fit a query, the best first.
fn find_tools<'t>(
    query: &str,
    tools: impl Iterator<Item = &'t ToolDefinition>,
    limit: usize,
) -> Vec<&'t ToolDefinition> {
    if let Some(names) = query.trim().strip_prefix("select:") {
        let names: Vec<&str> = names.split(',').map(str::trim).collect();
        let is_named = |tool: &&ToolDefinition| {
            names
                .iter()
                .any(|name| tool.name.as_str() == *name || tool.aliases.iter().any(|alias| alias == name))
        };
        return tools.filter(is_named).take(limit).collect();
    }
    let (mut words, mut required) = (Vec::new(), Vec::new());
    for part in query.split_whitespace() {
        let parts = split_words(part);
        if part.starts_with('+') {
            required.extend(parts.iter().cloned());
        }
        words.extend(parts);
    }
    rank(tools, &words, &required).into_iter().take(limit).collect()
}

/// Words of a text in lower case; `getIssue` and `get_issue` are both two words.
fn split_words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    let mut was_lower = false;
    for c in text.chars() {
        let ends_word = !c.is_alphanumeric() || c.is_uppercase() && was_lower;
        if ends_word && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase() || c.is_numeric();
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Whether a word of a tool is what a word of the query means: the same, or its beginning (`issue` finds `issues`).
fn fits(word: &str, wanted: &str) -> bool {
    word == wanted || wanted.len() >= 3 && word.starts_with(wanted)
}

/// Orders tools by BM25 over names and descriptions. Tools without a required word, or without any, are left out.
fn rank<'t>(
    tools: impl Iterator<Item = &'t ToolDefinition>,
    words: &[String],
    required: &[String],
) -> Vec<&'t ToolDefinition> {
    let mut documents: Vec<(&ToolDefinition, HashMap<&str, usize>, usize)> = Vec::new();
    let mut tool_counts: HashMap<&str, usize> = HashMap::new();
    for tool in tools {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        let mut length = 0;
        let parts =
            [(tool.name.as_str(), NAME_WORD_COUNT), (tool.title.as_str(), 1), (tool.description.as_str(), 1)];
        for (text, weight) in parts {
            for word in split_words(text) {
                length += weight;
                for wanted in words.iter().filter(|wanted| fits(&word, wanted)) {
                    *counts.entry(wanted).or_default() += weight;
                }
            }
        }
        for wanted in counts.keys() {
            *tool_counts.entry(wanted).or_default() += 1;
        }
        documents.push((tool, counts, length));
    }
    let total = documents.len() as f64;
    let average = documents.iter().map(|(_, _, length)| *length).sum::<usize>() as f64 / total.max(1.0);
    let score = |counts: &HashMap<&str, usize>, length: usize| -> f64 {
        let length = 1.0 - LENGTH_WEIGHT + LENGTH_WEIGHT * length as f64 / average.max(1.0);
        let of_word = |(word, count): (&&str, &usize)| {
            let tools = tool_counts.get(*word).copied().unwrap_or_default() as f64;
            let rarity = ((total - tools + 0.5) / (tools + 0.5) + 1.0).ln();
            let count = *count as f64;
            rarity * count * (TERM_SATURATION + 1.0) / (count + TERM_SATURATION * length)
        };
        counts.iter().map(of_word).sum()
    };
    let mut ranked: Vec<(f64, &ToolDefinition)> = documents
        .iter()
        .filter(|(_, counts, _)| {
            !counts.is_empty() && required.iter().all(|word| counts.contains_key(word.as_str()))
        })
        .map(|(tool, counts, length)| (score(counts, *length), *tool))
        .collect();
    ranked.sort_by(|(one, left), (two, right)| {
        two.total_cmp(one).then(left.name.as_str().cmp(right.name.as_str()))
    });
    ranked.into_iter().map(|(_, tool)| tool).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolgate_proto::SourceId;

    fn tools() -> Vec<ToolDefinition> {
        [
            ("mcp__github__get_issue", "Gets an issue of a repository"),
            ("mcp__github__listIssues", "Lists the issues of a repository"),
            ("mcp__mail__send", "Sends a mail about an issue"),
            ("mcp__weather__today", "The weather"),
        ]
        .map(|(name, text)| {
            ToolDefinition::new(name.into(), text.to_owned(), json!({ "type": "object" }), SourceId::Sdk)
        })
        .to_vec()
    }

    fn names(query: &str) -> Vec<String> {
        let tools = tools();
        find_tools(query, tools.iter(), 5).into_iter().map(|tool| tool.name.as_str().to_owned()).collect()
    }

    #[test]
    fn words_find_the_tool_whose_name_has_them_first() {
        assert_eq!(names("get issue").first().unwrap(), "mcp__github__get_issue");
        assert_eq!(names("list issues").first().unwrap(), "mcp__github__listIssues");
        assert_eq!(names("issue +mail"), ["mcp__mail__send"]);
        assert_eq!(names("WEATHER"), ["mcp__weather__today"]);
        assert!(names("zebra quagga").is_empty() && names("").is_empty());
    }

    #[test]
    fn exact_names_are_selected() {
        let selected = names("select: mcp__mail__send, mcp__weather__today, unknown");
        assert_eq!(selected, ["mcp__mail__send", "mcp__weather__today"]);
    }
}
