//! The policy book (`policy`): ordered rules on a tool's name and the fields of its input, with a default.
//!
//! Rules for a tool are tried before rules for `*`, and the first rule whose conditions all hold decides. If none does,
//! `defaultAction` decides, and a book without it has no opinion. Every layer has a book of its own; each is evaluated
//! independently and the strictest answer counts, so that no layer can loosen another.
//!
//! ```json
//! {
//!   "defaultAction": "ask",
//!   "rules": [
//!     { "tool": "Bash", "action": "deny", "message": "no publishing from here",
//!       "conditions": [{ "param": "command", "operator": "contains", "value": "publish" }] }
//!   ]
//! }
//! ```

use crate::book_condition::{BookCondition, CompiledBookCondition};
use crate::book_shape::{BookShapeProblem, find_shape_problems};
use crate::book_tool::{BookTool, find_misspelled_param, is_for_tool};
use crate::compile::invalid_rule_severity;
use crate::field_text::CallFields;
use crate::raw::{Layer, ProblemSeverity, RuleAction, RuleProblem, UnmatchableRules};
use crate::rule::mcp::McpPattern;
use crate::rule::syntax::RuleSyntaxError;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::HashMap;
use toolgate_proto::{RiskLevel, RuleRef, ToolIdentity, tool_synonyms};

/// A policy book as written, with its origin.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RawBook {
    /// The layer that the book belongs to.
    pub layer: Layer,
    /// The file that contains it, for messages.
    pub file: Option<String>,
    /// The line where the book begins, from 1, if known.
    pub line: Option<usize>,
    /// The content as JSON: `{"defaultAction": …, "rules": […]}`. Anything else is a fatal problem.
    pub content: Value,
    /// The line of each rule, in order, as far as known.
    pub rule_lines: Vec<usize>,
    /// The line of each value by its JSON pointer, such as `/rules/0/action`, as far as known.
    pub value_lines: HashMap<String, usize>,
    /// The file is not trusted, so that only deny and ask answers count: an `allow` is no opinion, and `risk` is
    /// ignored.
    pub tighten_only: bool,
}

impl RawBook {
    /// A trusted book without file and lines.
    pub fn new(layer: Layer, content: Value) -> Self {
        Self {
            layer,
            file: None,
            line: None,
            content,
            rule_lines: Vec::new(),
            value_lines: HashMap::new(),
            tighten_only: false,
        }
    }

    /// Says whether the book can only make the policy stricter.
    pub fn with_tighten_only(mut self, tighten_only: bool) -> Self {
        self.tighten_only = tighten_only;
        self
    }

    /// The reference to the rule at a position.
    pub(crate) fn rule_reference(&self, index: usize, rule: &BookRule) -> RuleRef {
        self.reference(describe(rule), &rule.action.to_string(), self.rule_lines.get(index).copied())
    }

    /// The reference to a rule of this book; without a line of its own it gets that of the book.
    fn reference(&self, text: String, action: &str, line: Option<usize>) -> RuleRef {
        RuleRef::new(text, action, self.layer.to_string()).with_place(self.file.clone(), line.or(self.line))
    }
}

/// The content of a policy book.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BookContent {
    /// The answer for a call that no rule decides; without it the book has no opinion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_action: Option<RuleAction>,
    /// The rules, in the order in which they are tried.
    #[serde(default)]
    pub rules: Vec<BookRule>,
}

/// One rule of a policy book.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BookRule {
    /// The name of the tool, `*` for every tool, or `mcp__server` and names of MCP tools with `*` as in `permissions`.
    pub tool: String,
    /// The answer if every condition holds.
    pub action: RuleAction,
    /// The risk of the tool, which replaces the one derived from its effects: `low`, `medium`, `high` or `critical`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk: Option<RiskLevel>,
    /// The reason to show instead of the built-in one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Conditions on the input, which must all hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<BookCondition>,
}

/// The policy books of all layers, strongest layer first.
#[derive(Debug, Clone, Default)]
pub(crate) struct PolicyBooks(Vec<PolicyBook>);

/// One compiled book.
#[derive(Debug, Clone)]
struct PolicyBook {
    /// See [`RawBook::tighten_only`].
    tighten_only: bool,
    /// `defaultAction`, with the reference that messages show.
    default: Option<(RuleAction, RuleRef)>,
    /// Rules for one tool, by the first of its [`tool_synonyms`]: in both toolsets the same rule is the first.
    by_tool: HashMap<String, Vec<CompiledBookRule>>,
    /// Rules for tools of MCP servers whose names they do not give.
    by_server: Vec<(McpPattern, CompiledBookRule)>,
    /// Rules for `*`.
    any: Vec<CompiledBookRule>,
}

/// A [`BookRule`] with its conditions compiled.
#[derive(Debug, Clone)]
struct CompiledBookRule {
    /// Its position in the book.
    at: usize,
    /// The name of the tool as the book spells it.
    tool: String,
    /// The answer if every condition holds.
    action: RuleAction,
    /// The risk that the rule gives its tool.
    risk: Option<RiskLevel>,
    /// The reason to show instead of the built-in one.
    message: Option<String>,
    /// The rule decides if all of them hold.
    conditions: Vec<CompiledBookCondition>,
    /// The rule's origin, for messages.
    reference: RuleRef,
}

/// The answer of a book about a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BookDecision<'b> {
    /// The answer.
    pub(crate) action: RuleAction,
    /// A rule decided, not `defaultAction`.
    pub(crate) by_rule: bool,
    /// The rule's own reason.
    pub(crate) message: Option<&'b str>,
    /// The rule or the default that decided.
    pub(crate) reference: &'b RuleRef,
}

impl PolicyBooks {
    /// Compiles all books. An invalid one is reported and makes the policy unusable.
    pub(crate) fn compile(
        raw: &[RawBook],
        unmatchable: UnmatchableRules,
        problems: &mut Vec<RuleProblem>,
    ) -> Self {
        Self(raw.iter().filter_map(|raw| PolicyBook::compile(raw, unmatchable, problems)).collect())
    }

    /// The strictest answer of all books.
    pub(crate) fn strictest_decision<'b>(&'b self, fields: &CallFields<'_>) -> Option<BookDecision<'b>> {
        let answers = self.0.iter().filter_map(|book| book.decide(fields));
        // Not `max_by_key`, which returns the last of equals: the first book is that of the strongest layer. An ask by a
        // rule is stricter than one by default, which mode bypass allows.
        let strictness = |answer: &BookDecision<'b>| (answer.action, answer.by_rule);
        answers.fold(None, |strictest: Option<BookDecision<'b>>, answer| match strictest {
            Some(strictest) if strictness(&strictest) >= strictness(&answer) => Some(strictest),
            Some(_) | None => Some(answer),
        })
    }

    /// The highest risk that a trusted book gives the tool, whatever the conditions of the rule.
    pub(crate) fn risk(&self, tool: &ToolIdentity) -> Option<RiskLevel> {
        let own = |book: &PolicyBook| book.rules_for(tool).into_iter().find_map(|rule| rule.risk);
        self.0.iter().filter(|book| !book.tighten_only).filter_map(own).max()
    }

    /// Whether a book denies the tool with every input.
    pub(crate) fn always_denies(&self, tool: &ToolIdentity) -> bool {
        self.0.iter().any(|book| {
            book.candidates(tool)
                .next()
                .is_some_and(|rule| rule.conditions.is_empty() && rule.action == RuleAction::Deny)
        })
    }
}

impl PolicyBook {
    /// Compiles one book; `None` if its content is not valid.
    fn compile(
        raw: &RawBook,
        unmatchable: UnmatchableRules,
        problems: &mut Vec<RuleProblem>,
    ) -> Option<Self> {
        // Lists are refused before: serde would accept one as a struct, field by field.
        let shape = find_shape_problems(&raw.content);
        if !shape.is_empty() {
            problems.extend(shape.into_iter().map(|problem| Self::invalid(raw, problem)));
            Self::report_other_problems(raw, unmatchable, problems);
            return None;
        }
        let content: BookContent = match serde_json::from_value(raw.content.clone()) {
            Ok(content) => content,
            Err(error) => {
                let (message, fix) = (error.to_string(), "correct the book".to_owned());
                let problem = BookShapeProblem { pointer: String::new(), message, fix };
                problems.push(Self::invalid(raw, problem));
                return None;
            }
        };
        let default_reference =
            |action: RuleAction| raw.reference("defaultAction".to_owned(), &action.to_string(), None);
        if content.default_action == Some(RuleAction::Allow) {
            problems.push(RuleProblem {
                rule: default_reference(RuleAction::Allow),
                weight: ProblemSeverity::Warning,
                message: "a default of `allow` allows every tool that no rule names".to_owned(),
                fix: "write `ask`, and a rule for each tool that may run".to_owned(),
            });
        }
        let default = content.default_action.map(|action| (action, default_reference(action)));
        let mut book = Self { default, ..Self::empty(raw) };
        for (at, rule) in content.rules.into_iter().enumerate() {
            let line = raw.rule_lines.get(at).copied();
            let reference = raw.reference(describe(&rule), &rule.action.to_string(), line);
            book.add(at, rule, reference, unmatchable, problems);
        }
        Some(book)
    }

    /// A book without rules.
    fn empty(raw: &RawBook) -> Self {
        Self {
            tighten_only: raw.tighten_only,
            default: None,
            by_tool: HashMap::new(),
            by_server: Vec::new(),
            any: Vec::new(),
        }
    }

    /// A fatal problem of the book, at the line of its value or of the nearest one around it.
    fn invalid(raw: &RawBook, problem: BookShapeProblem) -> RuleProblem {
        let ancestors = std::iter::successors(Some(problem.pointer.as_str()), |pointer| {
            pointer.rsplit_once('/').map(|(above, _)| above)
        });
        let line = ancestors.filter_map(|pointer| raw.value_lines.get(pointer).copied()).next();
        RuleProblem {
            rule: raw.reference("policy".to_owned(), "deny", line),
            weight: ProblemSeverity::Fatal,
            message: format!("the policy book is not valid: {}", problem.message),
            fix: problem.fix,
        }
    }

    /// The problems of the rules of a book that cannot be used as a whole.
    fn report_other_problems(raw: &RawBook, unmatchable: UnmatchableRules, problems: &mut Vec<RuleProblem>) {
        let mut unused = Self::empty(raw);
        let rules = raw.content.get("rules").and_then(Value::as_array).into_iter().flatten().enumerate();
        let rules = rules.filter(|(_, rule)| find_shape_problems(&json!({ "rules": [rule] })).is_empty());
        for (at, rule) in rules {
            if let Ok(rule) = BookRule::deserialize(rule) {
                let reference = raw.rule_reference(at, &rule);
                unused.add(at, rule, reference, unmatchable, problems);
            }
        }
    }

    /// Compiles and adds one rule. An invalid allow rule is skipped: a later rule or the default then decides, which is
    /// never looser.
    fn add(
        &mut self,
        at: usize,
        rule: BookRule,
        reference: RuleRef,
        unmatchable: UnmatchableRules,
        problems: &mut Vec<RuleProblem>,
    ) {
        let action = rule.action;
        let tool = BookTool::parse(&rule.tool, action).map_err(|RuleSyntaxError { message, fix }| {
            let (rule, weight) = (reference.clone(), unmatchable.severity(action));
            problems.push(RuleProblem { rule, weight, message, fix });
        });
        if tool == Ok(BookTool::Any) {
            for condition in &rule.conditions {
                let rule = reference.clone();
                problems.extend(find_misspelled_param(&condition.param, action, unmatchable, rule));
            }
        }
        let conditions: Result<Vec<CompiledBookCondition>, RuleSyntaxError> =
            rule.conditions.iter().map(|it| CompiledBookCondition::compile(it, rule.action)).collect();
        let conditions = match conditions {
            Ok(conditions) => conditions,
            Err(RuleSyntaxError { message, fix }) => {
                let weight = invalid_rule_severity(rule.action);
                problems.push(RuleProblem { rule: reference, weight, message, fix });
                return;
            }
        };
        let BookRule { tool: name, risk, message, .. } = rule;
        let compiled = CompiledBookRule { at, tool: name, action, risk, message, conditions, reference };
        match tool {
            Ok(BookTool::Any) => self.any.push(compiled),
            Ok(BookTool::Servers(pattern)) => self.by_server.push((pattern, compiled)),
            Ok(BookTool::Name(name)) => {
                self.by_tool.entry(first_synonym(&name).to_owned()).or_default().push(compiled);
            }
            Err(()) => {}
        }
    }

    /// The rules to try, in order: for the tool's own names, for its other names, for every tool.
    fn candidates<'b>(&'b self, tool: &ToolIdentity) -> impl Iterator<Item = &'b CompiledBookRule> {
        self.rules_for(tool).into_iter().chain(&self.any)
    }

    /// The rules that name the tool or its server. One for another tool of its family counts unless it allows.
    fn rules_for<'b>(&'b self, tool: &ToolIdentity) -> Vec<&'b CompiledBookRule> {
        let mut keys: Vec<&str> = Vec::with_capacity(1 + tool.also.len());
        for name in tool.names().filter(|_| !self.by_tool.is_empty()) {
            let key = first_synonym(name);
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let rules = keys.into_iter().filter_map(|key| self.by_tool.get(key)).flatten();
        let rules = rules.filter(|rule| match rule.action {
            RuleAction::Allow => tool.is_granted_as(&rule.tool),
            RuleAction::Ask | RuleAction::Deny => tool.is_restricted_as(&rule.tool),
        });
        let mut rules: Vec<&'b CompiledBookRule> = rules.collect();
        let of_server =
            self.by_server.iter().filter(|(pattern, rule)| is_for_tool(pattern, rule.action, tool));
        let named = rules.len();
        rules.extend(of_server.map(|(_, rule)| rule));
        if rules.len() > named {
            // A rule for the tool and one for its server are tried as they are written: neither names it better.
            rules.sort_by_key(|rule| rule.at);
        }
        rules
    }

    /// The answer of this book, if it has an opinion.
    fn decide<'b>(&'b self, fields: &CallFields<'_>) -> Option<BookDecision<'b>> {
        let holds =
            |rule: &&CompiledBookRule| rule.conditions.iter().all(|condition| condition.holds(fields));
        let rule = self.candidates(fields.tool).find(holds);
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

/// The name under which rules for a tool are kept.
fn first_synonym(name: &str) -> &str {
    tool_synonyms(name).first().copied().unwrap_or(name)
}

/// How messages refer to a rule, which has no text form of its own.
fn describe(rule: &BookRule) -> String {
    let conditions: Vec<String> = rule.conditions.iter().map(|condition| condition.param.clone()).collect();
    if conditions.is_empty() {
        format!("tool {}", rule.tool)
    } else {
        format!("tool {} if {}", rule.tool, conditions.join(" and "))
    }
}
