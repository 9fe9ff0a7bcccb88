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
use toolgate_proto::{CallResult, Code, Effect, Intent, Output, Refusal, ToolDefinition, format_count};

/// Tools that a search loads without `max_results`.
const DEFAULT_RESULT_COUNT: u32 = 5;
/// The parameters of BM25, as everywhere.
const TERM_SATURATION: f64 = 1.2;
const LENGTH_WEIGHT: f64 = 0.75;
/// As how many words of a description a word of a name counts.
const NAME_WORD_COUNT: usize = 3;
/// Bytes that a word of a query must have for longer words with the same beginning to count.
const MIN_PREFIX_BYTES: usize = 3;

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

    /// Declares a change of the list of tools, which no rule needs to allow: a tool can be called by name without.
    fn intent(&self, input: &ToolSearchInput, _context: &CallContext) -> Intent {
        let effect = Effect::State { name: "listed tools".to_owned() };
        Intent::new(format!("search tools: {}", input.query), [effect])
    }

    /// Lists what was found for this session, and returns the definitions.
    async fn run(&self, input: ToolSearchInput, cleared: Cleared) -> CallResult {
        let Some(gate) = self.gate.upgrade() else {
            return Err(Refusal::new(Code::ToolFailed, "the gate is closed"));
        };
        let session = &cleared.context().session;
        let unlisted = gate.unlisted_tools(session);
        let limit = input.max_results.unwrap_or(DEFAULT_RESULT_COUNT);
        let found = find_tools(&input.query, unlisted.iter().map(|tool| tool.definition()), limit as usize);
        gate.list_tools(session, found.iter().map(|tool| tool.name.as_str().to_owned()));
        let names: Vec<&str> = found.iter().map(|tool| tool.name.as_str()).collect();
        let structured = json!({ "matches": names, "query": input.query, "unlisted": unlisted.len() });
        if found.is_empty() {
            let text = format!(
                "no tool matches; {} not listed",
                format_count(unlisted.len() as u64, "tool is", "tools are")
            );
            return Ok(Output::text(text).structured(structured));
        }
        let definitions: Vec<String> = found.iter().map(|tool| render_definition(tool).to_string()).collect();
        Ok(Output::text(definitions.join("\n")).structured(structured))
    }
}

/// A definition as models read them.
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
        let parts: Vec<String> = split_words(part).map(str::to_lowercase).collect();
        if part.starts_with('+') {
            required.extend(parts.iter().cloned());
        }
        words.extend(parts);
    }
    rank(tools, &words, &required).into_iter().take(limit).collect()
}

/// The words of a text; `getIssue` and `get_issue` are both two words. Parts of the text and no copies: a search reads the
/// words of every tool.
fn split_words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c: char| !c.is_alphanumeric());
        let mut was_lower = false;
        let ends_word = |(_, c): &(usize, char)| {
            let ends = !c.is_alphanumeric() || c.is_uppercase() && was_lower;
            was_lower = c.is_lowercase() || c.is_numeric();
            ends
        };
        let end = rest.char_indices().find(ends_word).map_or(rest.len(), |(at, _)| at);
        let (word, after) = rest.split_at_checked(end)?;
        rest = after;
        (!word.is_empty()).then_some(word)
    })
}

/// How often a text has a word that fits one of the query. What the words of the text are is found out only where the
/// letters occur.
fn count_word(text: &str, wanted: &str) -> usize {
    let Some(first) = wanted.bytes().next().filter(|_| text.is_ascii() && wanted.is_ascii()) else {
        return split_words(text).filter(|word| fits(word, wanted)).count();
    };
    let bytes = text.as_bytes();
    let is_word = |at: usize| {
        let end = at + wanted.len();
        let same = bytes.get(at..end).is_some_and(|part| part.eq_ignore_ascii_case(wanted.as_bytes()));
        let is_whole = || wanted.len() >= MIN_PREFIX_BYTES || is_boundary(bytes, end);
        let is_one_word = || !(at + 1..end).any(|inside| is_boundary(bytes, inside));
        same && is_boundary(bytes, at) && is_whole() && is_one_word()
    };
    memchr::memchr2_iter(first, first.to_ascii_uppercase(), bytes).filter(|at| is_word(*at)).count()
}

/// Whether a word begins or ends at a place of a text in ASCII, as [`split_words`] would have it.
fn is_boundary(text: &[u8], at: usize) -> bool {
    let before = at.checked_sub(1).and_then(|before| text.get(before));
    let (Some(before), Some(after)) = (before, text.get(at)) else { return true };
    let continues = before.is_ascii_alphanumeric() && after.is_ascii_alphanumeric();
    !continues || after.is_ascii_uppercase() && !before.is_ascii_uppercase()
}

/// Whether a word of a tool is what a word of the query, in lower case, means: the same, or its beginning (`issue` finds
/// `issues`).
fn fits(word: &str, wanted: &str) -> bool {
    if !word.is_ascii() {
        let word = word.to_lowercase();
        return word == wanted || wanted.len() >= MIN_PREFIX_BYTES && word.starts_with(wanted);
    }
    let is_long_enough = word.len() == wanted.len() || wanted.len() >= MIN_PREFIX_BYTES;
    is_long_enough && word.get(..wanted.len()).is_some_and(|start| start.eq_ignore_ascii_case(wanted))
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
        let parts =
            [(tool.name.as_str(), NAME_WORD_COUNT), (tool.title.as_str(), 1), (tool.description.as_str(), 1)];
        // In bytes: it is only compared with the length of others.
        let length: usize = parts.iter().map(|(text, weight)| text.len() * weight).sum();
        for wanted in words {
            let count: usize = parts.iter().map(|(text, weight)| count_word(text, wanted) * weight).sum();
            if count > 0 {
                counts.insert(wanted, count);
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
    use proptest::prelude::*;
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
    fn names_are_split_at_case_and_signs() {
        let words = |text: &str| split_words(text).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words("mcp__gitHub__list-Issues v2X"), ["mcp", "git", "Hub", "list", "Issues", "v2", "X"]);
        assert_eq!(words("ÜberÖl straße"), ["Über", "Öl", "straße"]);
        assert!(words("").is_empty() && words("__ -").is_empty());
        assert!(fits("Issues", "issue") && fits("ÜBER", "übe") && !fits("is", "issue") && !fits("ab", "a"));
    }

    proptest! {
        #[test]
        fn words_are_counted_as_if_the_text_were_split(text in "[aAbB1_ é]{0,24}", wanted in "[ab1]{1,4}") {
            let split = split_words(&text).filter(|word| fits(word, &wanted)).count();
            prop_assert_eq!(count_word(&text, &wanted), split);
        }
    }

    #[test]
    fn exact_names_are_selected() {
        let selected = names("select: mcp__mail__send, mcp__weather__today, unknown");
        assert_eq!(selected, ["mcp__mail__send", "mcp__weather__today"]);
    }
}
