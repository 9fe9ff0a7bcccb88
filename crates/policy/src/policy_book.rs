//! The rule book `policy`: ordered rules on a tool's name and fields, with a default.
//!
//! Rules for a tool come before rules for `*`; among each the first whose conditions all hold decides; where none
//! does, `defaultAction` does, and a book without one has no opinion. Several books are asked independently and the
//! strictest answer counts, so that no layer can loosen another.

use crate::raw::{Layer, ProblemSeverity, RuleAction, RuleProblem};
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::HashMap;
use toolgate_proto::{RiskLevel, RuleRef, ToolIdentity};

/// A book as written, and where.
#[derive(Debug, Clone)]
pub struct RawBook {
    /// Which layer.
    pub layer: Layer,
    /// The file, for messages.
    pub file: Option<String>,
    /// The line where the book begins, from 1, where known.
    pub line: Option<usize>,
    /// The content, as JSON: `{"defaultAction": …, "rules": […]}`. What is not of this form is a fatal problem.
    pub content: Value,
    /// The lines of the rules, in order, where known.
    pub rule_lines: Vec<usize>,
    /// Only its denies and questions count, because the file it stands in is not trusted: where it says `allow` it has
    /// no opinion, and it gives no tool a risk.
    pub tighten_only: bool,
}

impl RawBook {
    /// A book of a layer.
    pub fn new(layer: Layer, content: Value) -> Self {
        Self { layer, file: None, line: None, content, rule_lines: Vec::new(), tighten_only: false }
    }
}

/// The content of a book.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BookContent {
    /// What happens to a call that no rule decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_action: Option<RuleAction>,
    /// The rules, in order.
    #[serde(default)]
    pub rules: Vec<BookRule>,
}

/// One rule of a book.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BookRule {
    /// The tool, or `*`.
    pub tool: String,
    /// What it does.
    pub action: RuleAction,
    /// How much could go wrong with this tool: `low`, `medium`, `high` (or `critical`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<RiskLevel>,
    /// What a person is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// All of these must hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<BookCondition>,
}

/// A condition on one field of the input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BookCondition {
    /// The field. Absent: the condition does not hold.
    pub param: String,
    /// How it is compared.
    pub operator: BookOperator,
    /// With what; any one of a list.
    pub value: ConditionValues,
}

/// How a field is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BookOperator {
    /// The same text.
    Equals,
    /// The text is part of it.
    Contains,
    /// The regular expression is found in it.
    Matches,
    /// It begins with the text.
    StartsWith,
}

/// One text, or several of which one must fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ConditionValues {
    /// One.
    One(String),
    /// Several.
    Several(Vec<String>),
}

/// Most bytes that one compiled expression may take.
const MAX_REGEX_BYTES: usize = 1 << 20;

/// All books, compiled.
#[derive(Debug, Clone, Default)]
pub(crate) struct PolicyBooks(Vec<PolicyBook>);

#[derive(Debug, Clone)]
struct PolicyBook {
    tighten_only: bool,
    default: Option<(RuleAction, RuleRef)>,
    by_tool: HashMap<String, Vec<CompiledBookRule>>,
    any: Vec<CompiledBookRule>,
}

#[derive(Debug, Clone)]
struct CompiledBookRule {
    action: RuleAction,
    risk: Option<RiskLevel>,
    message: Option<String>,
    tests: Vec<CompiledBookCondition>,
    reference: RuleRef,
}

#[derive(Debug, Clone)]
struct CompiledBookCondition {
    param: String,
    matcher: BookConditionMatcher,
}

#[derive(Debug, Clone)]
enum BookConditionMatcher {
    Equals(Vec<String>),
    Contains(Vec<String>),
    StartsWith(Vec<String>),
    Matches(Vec<Regex>),
}

/// What the books say of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BookDecision<'b> {
    pub(crate) action: RuleAction,
    /// A rule said it, not a default.
    pub(crate) by_rule: bool,
    pub(crate) message: Option<&'b str>,
    pub(crate) reference: &'b RuleRef,
}

impl PolicyBooks {
    pub(crate) fn compile(raw: &[RawBook], problems: &mut Vec<RuleProblem>) -> Self {
        Self(raw.iter().filter_map(|raw| PolicyBook::compile(raw, problems)).collect())
    }

    /// The strictest answer.
    pub(crate) fn strictest_decision<'b>(
        &'b self,
        tool: &ToolIdentity,
        input: &Map<String, Value>,
    ) -> Option<BookDecision<'b>> {
        let answers = self.0.iter().filter_map(|book| book.decide(tool, input));
        // `max_by_key` would take the last of equals; the first book is the strongest layer. A question by a rule is
        // stricter than one by default, which mode bypass skips.
        let weight = |answer: &BookDecision<'b>| (answer.action, answer.by_rule);
        answers.fold(None, |strictest: Option<BookDecision<'b>>, answer| match strictest {
            Some(strictest) if weight(&strictest) >= weight(&answer) => Some(strictest),
            Some(_) | None => Some(answer),
        })
    }

    /// The risk that a book gives a tool, whatever its conditions.
    pub(crate) fn risk(&self, tool: &ToolIdentity) -> Option<RiskLevel> {
        let own = |book: &PolicyBook| {
            let names = std::iter::once(tool.name.as_str()).chain(tool.also.iter().map(String::as_str));
            names.filter_map(|name| book.by_tool.get(name)).flatten().find_map(|rule| rule.risk)
        };
        self.0.iter().filter(|book| !book.tighten_only).filter_map(own).max()
    }

    /// Whether a book denies the tool whatever it is called with.
    pub(crate) fn always_denies(&self, tool: &ToolIdentity) -> bool {
        self.0.iter().any(|book| {
            book.candidates(tool)
                .next()
                .is_some_and(|rule| rule.tests.is_empty() && rule.action == RuleAction::Deny)
        })
    }
}

impl PolicyBook {
    fn compile(raw: &RawBook, problems: &mut Vec<RuleProblem>) -> Option<Self> {
        let reference = |text: String, action: &str, line: Option<usize>| RuleRef {
            text,
            action: action.to_owned(),
            layer: raw.layer.to_string(),
            file: raw.file.clone(),
            line: line.or(raw.line),
        };
        // serde would also take a list for a struct, field by field: whoever wrote one meant something else.
        let read = match has_misplaced_array(&raw.content) {
            true => Err("a list stands where an object is meant".to_owned()),
            false => serde_json::from_value(raw.content.clone()).map_err(|error| error.to_string()),
        };
        let content: BookContent = match read {
            Ok(content) => content,
            Err(error) => {
                problems.push(RuleProblem {
                    rule: reference("policy".to_owned(), "deny", None),
                    weight: ProblemSeverity::Fatal,
                    message: format!("the policy book cannot be read: {error}"),
                    fix: "write `{\"defaultAction\": \"ask\", \"rules\": [{\"tool\": …, \"action\": …}]}`"
                        .to_owned(),
                });
                return None;
            }
        };
        let mut book = Self {
            tighten_only: raw.tighten_only,
            default: content
                .default_action
                .map(|action| (action, reference("defaultAction".to_owned(), &action.to_string(), None))),
            by_tool: HashMap::new(),
            any: Vec::new(),
        };
        if content.default_action == Some(RuleAction::Allow) {
            problems.push(RuleProblem {
                rule: reference("defaultAction".to_owned(), "allow", None),
                weight: ProblemSeverity::Warning,
                message: "a default of `allow` lets every tool run that no rule names".to_owned(),
                fix: "write `ask`, and a rule for each tool that may run".to_owned(),
            });
        }
        for (at, rule) in content.rules.into_iter().enumerate() {
            let line = raw.rule_lines.get(at).copied();
            let reference = reference(describe(&rule), &rule.action.to_string(), line);
            let tests: Result<Vec<CompiledBookCondition>, String> =
                rule.conditions.iter().map(CompiledBookCondition::compile).collect();
            let tests = match tests {
                Ok(tests) => tests,
                Err(message) => {
                    // An allow rule that is lost leaves the call to a later rule or the default: never looser.
                    let weight = if rule.action == RuleAction::Allow {
                        ProblemSeverity::Warning
                    } else {
                        ProblemSeverity::Fatal
                    };
                    problems.push(RuleProblem {
                        rule: reference,
                        weight,
                        message,
                        fix: "write a shorter or simpler expression".to_owned(),
                    });
                    continue;
                }
            };
            let compiled = CompiledBookRule {
                action: rule.action,
                risk: rule.risk,
                message: rule.message,
                tests,
                reference,
            };
            if rule.tool == "*" {
                book.any.push(compiled);
            } else {
                book.by_tool.entry(rule.tool).or_default().push(compiled);
            }
        }
        Some(book)
    }

    /// Rules for the tool's own name, then for its other names, then for every tool.
    fn candidates<'b>(&'b self, tool: &ToolIdentity) -> impl Iterator<Item = &'b CompiledBookRule> {
        let own = self.by_tool.get(tool.name.as_str()).into_iter().flatten();
        let also: Vec<&'b CompiledBookRule> =
            tool.also.iter().filter_map(|name| self.by_tool.get(name)).flatten().collect();
        own.chain(also).chain(&self.any)
    }

    fn decide<'b>(&'b self, tool: &ToolIdentity, input: &Map<String, Value>) -> Option<BookDecision<'b>> {
        let rule = self.candidates(tool).find(|rule| rule.tests.iter().all(|test| test.holds(input)));
        let answer = match rule {
            Some(rule) => Some(BookDecision {
                action: rule.action,
                by_rule: true,
                message: rule.message.as_deref(),
                reference: &rule.reference,
            }),
            None => self.default.as_ref().map(|(action, reference)| BookDecision {
                action: *action,
                by_rule: false,
                message: None,
                reference,
            }),
        };
        answer.filter(|answer| !(self.tighten_only && answer.action == RuleAction::Allow))
    }
}

/// Whether a list stands where the book, a rule or a condition should be.
fn has_misplaced_array(content: &Value) -> bool {
    let rules = content.get("rules").and_then(Value::as_array);
    let conditions =
        |rule: &Value| rule.get("conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    content.is_array()
        || rules.is_some_and(|rules| {
            rules.iter().any(|rule| rule.is_array() || conditions(rule).iter().any(Value::is_array))
        })
}

fn describe(rule: &BookRule) -> String {
    let conditions: Vec<String> = rule.conditions.iter().map(|condition| condition.param.clone()).collect();
    if conditions.is_empty() {
        format!("tool {}", rule.tool)
    } else {
        format!("tool {} if {}", rule.tool, conditions.join(" and "))
    }
}

impl CompiledBookCondition {
    fn compile(condition: &BookCondition) -> Result<Self, String> {
        let values = match &condition.value {
            ConditionValues::One(value) => vec![value.clone()],
            ConditionValues::Several(values) => values.clone(),
        };
        if values.is_empty() {
            return Err("a condition has an empty list of values".to_owned());
        }
        let how = match condition.operator {
            BookOperator::Equals => BookConditionMatcher::Equals(values),
            BookOperator::Contains => BookConditionMatcher::Contains(values),
            BookOperator::StartsWith => BookConditionMatcher::StartsWith(values),
            BookOperator::Matches => BookConditionMatcher::Matches(
                values
                    .iter()
                    .map(|value| {
                        RegexBuilder::new(value)
                            .size_limit(MAX_REGEX_BYTES)
                            .dfa_size_limit(MAX_REGEX_BYTES)
                            .nest_limit(64)
                            .build()
                            .map_err(|_| format!("`{value}` is no expression that can be used"))
                    })
                    .collect::<Result<_, _>>()?,
            ),
        };
        Ok(Self { param: condition.param.clone(), matcher: how })
    }

    fn holds(&self, input: &Map<String, Value>) -> bool {
        let Some(value) = input.get(&self.param) else { return false };
        let text = match value {
            Value::String(text) => std::borrow::Cow::Borrowed(text.as_str()),
            other
            @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                std::borrow::Cow::Owned(other.to_string())
            }
        };
        match &self.matcher {
            BookConditionMatcher::Equals(values) => values.iter().any(|value| *value == text),
            BookConditionMatcher::Contains(values) => {
                values.iter().any(|value| text.contains(value.as_str()))
            }
            BookConditionMatcher::StartsWith(values) => {
                values.iter().any(|value| text.starts_with(value.as_str()))
            }
            BookConditionMatcher::Matches(values) => values.iter().any(|value| value.is_match(&text)),
        }
    }
}
