//! Conditions of a policy book's rules: one field of the input, compared with one or more values.

use crate::field_text::{CallFields, value_texts};
use crate::raw::RuleAction;
use crate::rule::syntax::RuleSyntaxError;
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};

/// A condition on one top-level field of the input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BookCondition {
    /// The name of the field. If the input does not have it, the condition does not hold.
    pub param: String,
    /// How its value is compared.
    pub operator: BookOperator,
    /// What it is compared with; of a list, any value may match.
    pub value: ConditionValues,
}

/// How the value of a field is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BookOperator {
    /// The value is this text.
    Equals,
    /// The value contains the text.
    Contains,
    /// The regular expression matches somewhere in the value.
    Matches,
    /// The value begins with the text.
    StartsWith,
}

/// One text, or several of which one must match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ConditionValues {
    /// A JSON string.
    One(String),
    /// A JSON list of strings.
    Several(Vec<String>),
}

/// How much memory one compiled regular expression may take.
const MAX_REGEX_BYTES: usize = 1 << 20;

/// A [`BookCondition`] with its values compiled.
#[derive(Debug, Clone)]
pub(crate) struct CompiledBookCondition {
    /// The field.
    param: String,
    /// The operator and the values.
    matcher: BookConditionMatcher,
    /// Other texts of the values of [`BookConditionMatcher::Equals`], for fields that are not strings.
    equal_texts: Vec<String>,
    /// The rule denies or asks, so that every spelling of the value counts.
    restricts: bool,
}

/// The operator with its values; any of them may match.
#[derive(Debug, Clone)]
enum BookConditionMatcher {
    Equals(Vec<String>),
    Contains(Vec<String>),
    StartsWith(Vec<String>),
    Matches(Vec<Regex>),
}

/// What is wrong with a regular expression, by the end of the parser's message, and what to write.
const REGEX_FIXES: &[(&str, &str)] = &[
    ("unclosed group", "add the missing `)`, or write `\\(` for the character"),
    ("unopened group", "add the missing `(`, or write `\\)` for the character"),
    ("unclosed character class", "add the missing `]`, or write `\\[` for the character"),
    (
        "repetition operator missing expression",
        "write what is repeated before it, such as `.*`, or escape the character with `\\`",
    ),
    ("look-around, including look-ahead and look-behind, is not supported", "write it without look-around"),
    ("backreferences are not supported", "write it without backreferences"),
    ("incomplete escape sequence, reached end of pattern prematurely", "write `\\\\` for a backslash"),
];

/// The problem of a regular expression that cannot be compiled.
fn regex_problem(value: &str, error: &regex::Error) -> RuleSyntaxError {
    let text = error.to_string();
    let Some((_, why)) = text.rsplit_once("error: ").filter(|_| matches!(error, regex::Error::Syntax(_)))
    else {
        return RuleSyntaxError::new(
            format!("the regular expression `{value}` is too large"),
            "write a shorter or simpler expression",
        );
    };
    let why = why.trim();
    let fix = REGEX_FIXES.iter().find(|(problem, _)| why == *problem).map(|(_, fix)| *fix);
    let fix = fix.unwrap_or_else(|| match why.contains("maximum number of nested") {
        true => "write it with fewer parentheses and brackets inside each other",
        false => "correct the expression",
    });
    RuleSyntaxError::new(format!("`{value}` is not a usable regular expression: {why}"), fix)
}

impl CompiledBookCondition {
    /// Compiles a condition of a rule with this action. An error says what is wrong with its values, and what to write.
    pub(crate) fn compile(condition: &BookCondition, action: RuleAction) -> Result<Self, RuleSyntaxError> {
        let values = match &condition.value {
            ConditionValues::One(value) => vec![value.clone()],
            ConditionValues::Several(values) => values.clone(),
        };
        if values.is_empty() {
            return Err(RuleSyntaxError::new(
                "a condition has no values to compare with",
                "add a value, or remove the condition",
            ));
        }
        let restricts = action != RuleAction::Allow;
        let equal_texts = match condition.operator {
            BookOperator::Equals => values.iter().flat_map(|value| value_texts(value, restricts)).collect(),
            // Part of a number or of a list is no value of its own.
            BookOperator::Contains | BookOperator::StartsWith | BookOperator::Matches => Vec::new(),
        };
        let matcher = match condition.operator {
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
                            .map_err(|error| regex_problem(value, &error))
                    })
                    .collect::<Result<_, _>>()?,
            ),
        };
        Ok(Self { param: condition.param.clone(), matcher, equal_texts, restricts })
    }

    /// Whether the condition holds. A value that is not a string is compared as its JSON text.
    pub(crate) fn holds(&self, fields: &CallFields<'_>) -> bool {
        let matches = |text: &str, is_string: bool| self.matches(text, is_string);
        match self.restricts {
            true => fields.has_restricted_text(&self.param, matches),
            false => fields.has_granted_text(&self.param, matches),
        }
    }

    /// Whether one text of the field has one of the values.
    fn matches(&self, text: &str, is_string: bool) -> bool {
        match &self.matcher {
            BookConditionMatcher::Equals(values) => {
                values.iter().any(|value| value == text)
                    || (!is_string && self.equal_texts.iter().any(|value| value == text))
            }
            BookConditionMatcher::Contains(values) => {
                values.iter().any(|value| text.contains(value.as_str()))
            }
            BookConditionMatcher::StartsWith(values) => {
                values.iter().any(|value| text.starts_with(value.as_str()))
            }
            BookConditionMatcher::Matches(values) => values.iter().any(|value| value.is_match(text)),
        }
    }
}
