//! The approval card: everything that an approver is shown about one question, and nothing twice.
//!
//! A card is built once, by the gate, from the question of policy and the input of the call.
//! A terminal, an MCP client, a host program and a web page all show the same card, so that no channel leaves out what
//! another shows. [`ApprovalCard::render`] lays it out as text for a given width and height.
//!
//! The input comes from a model and may try to mislead. Text is escaped when it is laid out, not here: programs get what
//! would run, unchanged.

mod card_line;
mod split_line;

pub use card_line::{CardLine, CardLineKind, CardSize, columns_of, wrap_columns};

use crate::{ApprovalQuestion, Effect, Risk, RiskWarning, RuleSuggestion, ToolName, VerdictReason, fit_line};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use split_line::{has_commands, split_line};

/// The longest command that stands in the action; a longer one gets lines of its own.
const MAX_ACTION_COMMAND_CHARS: usize = 120;
/// The longest rule that is spelled out although the card shows its command.
const MAX_REPEATED_RULE_CHARS: usize = 60;
/// The most characters of a rule that are shown.
const MAX_RULE_CHARS: usize = 300;
/// The field in which a model describes its call. It has no effect on the call.
const DESCRIPTION_FIELD: &str = "description";
/// The field with the command line of a call whose effects are not known.
const COMMAND_FIELD: &str = "command";

/// Everything that an approver is shown about one question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ApprovalCard {
    /// The tool of the call.
    pub tool: ToolName,
    /// What the call would do, as the object of "wants to".
    pub action: String,
    /// How much damage the call can do.
    pub risk: Risk,
    /// Dangers that policy found.
    pub warnings: Vec<RiskWarning>,
    /// Why an approval is needed, with the rule that demands it.
    pub reason: VerdictReason,
    /// The command line, unchanged, in pieces that each begin with a simple command, or the commands as they were given
    /// where there is no line. Empty if the action says it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// Effects that the action and the commands do not say, with the target of symlinks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<String>,
    /// The arguments that nothing above shows, the model's own description last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arguments: Vec<CardArgument>,
    /// What would change, as a unified diff. It stands for the arguments that it is made from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Allow rules that can be remembered with the answer, all together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleSuggestion>,
    /// Why no rule can be remembered, if none can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_rule_reason: Option<String>,
    /// For how long they can be remembered. Empty if there is no rule, or no way to keep one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<GrantScope>,
}

/// One argument of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CardArgument {
    /// The name of the field.
    pub name: String,
    /// The text of a string, or the JSON of another value.
    pub text: String,
}

/// For how long a rule is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantScope {
    /// Until the session ends. Not offered where no further call can follow.
    Session,
    /// For good, in this project.
    Project,
}

/// What a card shows beside the question.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct CardContent<'a> {
    /// The input that would run.
    pub input: &'a Map<String, Value>,
    /// What would change, as a unified diff, if the tool can say.
    pub diff: Option<&'a str>,
    /// The simple commands of a command line, in order.
    pub commands: &'a [String],
    /// For how long a rule can be remembered.
    pub scopes: &'a [GrantScope],
}

impl<'a> CardContent<'a> {
    /// Creates the content of a question about a call without a diff and without commands.
    pub fn new(input: &'a Map<String, Value>, scopes: &'a [GrantScope]) -> Self {
        Self { input, diff: None, commands: &[], scopes }
    }

    /// Sets the change of a file.
    pub fn with_diff(mut self, diff: Option<&'a str>) -> Self {
        self.diff = diff;
        self
    }

    /// Sets the commands.
    pub fn with_commands(mut self, commands: &'a [String]) -> Self {
        self.commands = commands;
        self
    }
}

impl ApprovalCard {
    /// The card of a question.
    pub fn new(question: &ApprovalQuestion, content: CardContent<'_>) -> Self {
        let line = command_line(question, content);
        let pieces =
            line.map_or_else(|| content.commands.to_vec(), |line| split_line(line, content.commands));
        let (action, commands) = match (line, pieces.as_slice()) {
            (Some(line), [_]) if is_short(line) => (format!("run `{}`", line.trim()), Vec::new()),
            (Some(_), [_]) => ("run a command".to_owned(), pieces),
            (Some(_), [_, ..]) => (format!("run {} commands", pieces.len()), pieces),
            (Some(_) | None, _) => (describe_action(question), pieces),
        };
        let effects = other_effects(question, &action);
        let arguments = match content.diff {
            Some(_) => Vec::new(),
            None => other_arguments(question, content.input, line),
        };
        Self {
            tool: question.tool.clone(),
            action,
            risk: question.risk,
            warnings: distinct_warnings(question),
            reason: question.reason.clone(),
            commands,
            effects,
            arguments,
            diff: content.diff.map(str::to_owned),
            rules: question.suggestions.clone(),
            no_rule_reason: question.no_rule_reason.clone().filter(|_| question.suggestions.is_empty()),
            scopes: if question.suggestions.is_empty() { Vec::new() } else { content.scopes.to_vec() },
        }
    }

    /// The rules that an answer may remember: each as narrow as it is offered, or all in their wider form.
    pub fn rules_of_width(&self, width: RuleWidth) -> Vec<String> {
        let mut rules: Vec<String> = Vec::new();
        for suggestion in &self.rules {
            let rule = suggestion.rule_of_width(width);
            if !rules.iter().any(|other| other == rule) {
                rules.push(rule.to_owned());
            }
        }
        rules
    }

    /// A rule as an answer names it: spelled out, unless it is long and only repeats a command of the card.
    pub fn describe_rule(&self, rule: &str) -> String {
        let is_long = rule.chars().count() > MAX_REPEATED_RULE_CHARS;
        let parts = rule.strip_suffix(')').and_then(|rule| rule.split_once('(')).filter(|_| is_long);
        if let Some((tool, content)) = parts {
            let content = unescape_rule(content);
            let shown = self.shown_commands();
            if let Some(at) = shown.iter().position(|command| *command == content) {
                let which =
                    if shown.len() == 1 { "this command".to_owned() } else { format!("command {}", at + 1) };
                return format!("`{tool}(…)` for exactly {which}");
            }
        }
        format!("`{}`", fit_line(rule, MAX_RULE_CHARS))
    }

    /// The commands that the card shows, without the operators between them.
    fn shown_commands(&self) -> Vec<&str> {
        match self.action.strip_prefix("run `").and_then(|text| text.strip_suffix('`')) {
            Some(command) => vec![command],
            None => {
                self.commands.iter().map(|piece| piece.trim_end_matches([';', '&', '|']).trim()).collect()
            }
        }
    }

    /// Whether any rule can also be remembered in a wider form.
    pub fn has_wider_rules(&self) -> bool {
        self.rules.iter().any(|suggestion| suggestion.wider.is_some())
    }
}

/// Which form of the offered rules is remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleWidth {
    /// The call as it is.
    Exact,
    /// Calls of the same kind.
    Wider,
}

impl RuleSuggestion {
    /// The rule in a form; the exact one if there is no wider.
    pub fn rule_of_width(&self, width: RuleWidth) -> &str {
        match (width, &self.wider) {
            (RuleWidth::Wider, Some(wider)) => wider,
            (RuleWidth::Exact | RuleWidth::Wider, _) => &self.rule,
        }
    }

    /// Whether this suggestion offers a rule, in either form.
    pub fn offers(&self, rule: &str) -> bool {
        self.rule == rule || self.wider.as_deref() == Some(rule)
    }
}

/// The command line that the call runs.
fn command_line<'a>(question: &'a ApprovalQuestion, content: CardContent<'a>) -> Option<&'a str> {
    let declared = question.effects.iter().find_map(|effect| match effect {
        Effect::Exec { command } => Some(command.text.as_str()),
        _ => None,
    });
    // A field that does not have every command is not the line that they are parts of: it is shown as an argument, and
    // the commands as they were given.
    let field = || content.input.get(COMMAND_FIELD).and_then(Value::as_str);
    declared.or_else(|| {
        field().filter(|line| !content.commands.is_empty() && has_commands(line, content.commands))
    })
}

/// The content of a rule without the backslashes that protect parentheses.
fn unescape_rule(content: &str) -> String {
    let mut out = String::with_capacity(content.len());
    let mut chars = content.chars().peekable();
    while let Some(c) = chars.next() {
        let is_escape = c == '\\' && chars.peek().is_some_and(|next| matches!(next, '(' | ')' | '\\'));
        out.push(if is_escape { chars.next().unwrap_or(c) } else { c });
    }
    out
}

/// Whether a command fits into the action.
fn is_short(line: &str) -> bool {
    line.chars().count() <= MAX_ACTION_COMMAND_CHARS && !line.trim().contains(['\n', '\r'])
}

/// The summary of the intent, with the target where the path is a symlink.
fn describe_action(question: &ApprovalQuestion) -> String {
    let same = question.effects.iter().find(|effect| effect.to_string() == question.description);
    same.map_or_else(|| question.description.clone(), |effect| describe_effect(question, effect))
}

/// An effect, with the target where its path is a symlink.
fn describe_effect(question: &ApprovalQuestion, effect: &Effect) -> String {
    let text = effect.to_string();
    let Some(path) = effect.path() else { return text };
    let resolved = format!("{path} → ");
    match question.locations.iter().find_map(|location| location.strip_prefix(&resolved)) {
        Some(real) => format!("{text} → {real}"),
        None => text,
    }
}

/// The effects and locations that the action does not say.
fn other_effects(question: &ApprovalQuestion, action: &str) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut said: Vec<String> = Vec::new();
    for effect in &question.effects {
        let text = describe_effect(question, effect);
        said.push(effect.location());
        said.extend(effect.path().map(|_| text.clone()));
        let is_command = matches!(effect, Effect::Exec { .. });
        if !is_command && text != action && !out.contains(&text) {
            out.push(text);
        }
    }
    for location in &question.locations {
        let is_said = said.iter().any(|text| text.ends_with(location.as_str())) || action.contains(location);
        if !is_said && !out.contains(location) {
            out.push(location.clone());
        }
    }
    out
}

/// The arguments that are neither the command line nor the path or address of an effect.
fn other_arguments(
    question: &ApprovalQuestion,
    input: &Map<String, Value>,
    line: Option<&str>,
) -> Vec<CardArgument> {
    let is_said = |name: &str, value: &Value| {
        let Value::String(text) = value else { return false };
        let is_location = |effect: &Effect| {
            let is_end = name.ends_with("path") && !text.is_empty() && !text.contains("..");
            effect.location() == *text
                || is_end && effect.path().is_some_and(|path| path.as_path().ends_with(text))
        };
        line == Some(text.as_str()) || question.effects.iter().any(is_location)
    };
    let (description, others): (Vec<_>, Vec<_>) =
        input.iter().partition(|(name, _)| *name == DESCRIPTION_FIELD);
    let shown = others.into_iter().chain(description).filter(|(name, value)| !is_said(name, value));
    shown
        .map(|(name, value)| CardArgument {
            name: name.clone(),
            text: match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            },
        })
        .collect()
}

/// The warnings that the reason does not say, each once.
fn distinct_warnings(question: &ApprovalQuestion) -> Vec<RiskWarning> {
    let mut out: Vec<RiskWarning> = Vec::new();
    for warning in &question.warnings {
        if warning.text != question.reason.text && !out.iter().any(|other| other.text == warning.text) {
            out.push(warning.clone());
        }
    }
    out
}

#[cfg(test)]
mod tests;
