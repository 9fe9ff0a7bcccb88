//! The syntax tree of a settings file, with line numbers for messages.
//!
//! Comments and trailing commas are accepted, because users write these files by hand.
//! Everything else is as strict as for calls: of two equal keys, one could hide the deny rules of the other.

use jsonc_parser::ast::{ObjectPropName, Value as Ast};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde_json::{Map, Number, Value};
use toolgate_proto::json::JsonLimits;

/// A value and the line on which it starts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SettingsNode {
    /// The line, from 1.
    pub(crate) line: usize,
    /// The value.
    pub(crate) kind: SettingsNodeKind,
}

/// The value of a node.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SettingsNodeKind {
    /// A string, number, boolean or null.
    Scalar(Value),
    /// An array.
    List(Vec<SettingsNode>),
    /// An object, in the order of the file; each key occurs once.
    Object(Vec<(String, SettingsNode)>),
}

/// Why a text cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SettingsParseError {
    /// The line, from 1.
    pub(crate) line: usize,
    /// The message for the user.
    pub(crate) message: String,
}

impl SettingsNode {
    /// Parses JSON with comments and trailing commas, and nothing else.
    pub(crate) fn parse(text: &str) -> Result<Self, SettingsParseError> {
        let limits = JsonLimits::SETTINGS;
        if text.len() > limits.bytes {
            return Err(SettingsParseError {
                line: 1,
                message: format!("the file has {} bytes; the limit is {}", text.len(), limits.bytes),
            });
        }
        let options = ParseOptions {
            allow_comments: true,
            allow_trailing_commas: true,
            allow_loose_object_property_names: false,
            allow_missing_commas: false,
            allow_single_quoted_strings: false,
            allow_hexadecimal_numbers: false,
            allow_unary_plus_numbers: false,
            allow_bare_decimal_point_numbers: false,
            allow_non_finite_numbers: false,
            allow_extended_string_escapes: false,
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let parsed =
            parse_to_ast(text, &CollectOptions::default(), &options).map_err(|error| SettingsParseError {
                line: error.line_display(),
                message: format!("not valid JSON: {}", error.kind()),
            })?;
        let lines = SettingsLineIndex::of(text);
        match parsed.value {
            Some(value) => convert(&value, &lines, limits.depth),
            None => Err(SettingsParseError {
                line: 1,
                message: "the file is empty; it must contain at least {}".to_owned(),
            }),
        }
    }

    /// The value of a key, if this is an object that has it.
    pub(crate) fn get(&self, key: &str) -> Option<&SettingsNode> {
        match &self.kind {
            SettingsNodeKind::Object(fields) => {
                fields.iter().find(|(name, _)| name == key).map(|(_, node)| node)
            }
            SettingsNodeKind::Scalar(_) | SettingsNodeKind::List(_) => None,
        }
    }

    /// The plain JSON value.
    pub(crate) fn value(&self) -> Value {
        match &self.kind {
            SettingsNodeKind::Scalar(value) => value.clone(),
            SettingsNodeKind::List(items) => items.iter().map(SettingsNode::value).collect(),
            SettingsNodeKind::Object(fields) => Value::Object(
                fields.iter().map(|(key, node)| (key.clone(), node.value())).collect::<Map<_, _>>(),
            ),
        }
    }

    /// The node at a path of keys and indices, or its deepest ancestor that exists.
    pub(crate) fn nearest_node(&self, steps: &[&str]) -> &SettingsNode {
        let Some((step, rest)) = steps.split_first() else { return self };
        let below = match &self.kind {
            SettingsNodeKind::Object(_) => self.get(step),
            SettingsNodeKind::List(items) => step.parse::<usize>().ok().and_then(|index| items.get(index)),
            SettingsNodeKind::Scalar(_) => None,
        };
        below.map_or(self, |node| node.nearest_node(rest))
    }

    /// Whether this is neither an array nor an object.
    pub(crate) fn is_scalar(&self) -> bool {
        matches!(self.kind, SettingsNodeKind::Scalar(_))
    }

    /// The value in a message, such as `the string "x"` or `an array`.
    pub(crate) fn describe(&self) -> String {
        toolgate_proto::json::describe(&self.value())
    }
}

/// Converts the parser's tree, and refuses duplicate keys and deep nesting.
fn convert(
    ast: &Ast<'_>,
    lines: &SettingsLineIndex,
    depth: usize,
) -> Result<SettingsNode, SettingsParseError> {
    let line = lines.line_at(start_offset(ast));
    let deeper = || {
        depth.checked_sub(1).ok_or_else(|| SettingsParseError {
            line,
            message: "arrays and objects are nested too deeply".to_owned(),
        })
    };
    let kind = match ast {
        Ast::StringLit(text) => SettingsNodeKind::Scalar(Value::String(text.value.clone().into_owned())),
        Ast::NumberLit(number) => {
            let number: Number = number.value.parse().map_err(|_| SettingsParseError {
                line,
                message: format!("`{}` is out of range", number.value),
            })?;
            SettingsNodeKind::Scalar(Value::Number(number))
        }
        Ast::BooleanLit(flag) => SettingsNodeKind::Scalar(Value::Bool(flag.value)),
        Ast::NullKeyword(_) => SettingsNodeKind::Scalar(Value::Null),
        Ast::Array(array) => {
            let depth = deeper()?;
            SettingsNodeKind::List(
                array.elements.iter().map(|item| convert(item, lines, depth)).collect::<Result<_, _>>()?,
            )
        }
        Ast::Object(object) => {
            let depth = deeper()?;
            let mut fields: Vec<(String, SettingsNode)> = Vec::new();
            for property in &object.properties {
                let name = match &property.name {
                    ObjectPropName::String(text) => text.value.clone().into_owned(),
                    ObjectPropName::Word(word) => word.value.to_owned(),
                };
                if fields.iter().any(|(other, _)| *other == name) {
                    return Err(SettingsParseError {
                        line: lines.line_at(property.range.start),
                        message: format!("the key `{name}` appears more than once"),
                    });
                }
                fields.push((name, convert(&property.value, lines, depth)?));
            }
            SettingsNodeKind::Object(fields)
        }
    };
    Ok(SettingsNode { line, kind })
}

/// The byte offset at which a value starts.
fn start_offset(ast: &Ast<'_>) -> usize {
    match ast {
        Ast::StringLit(node) => node.range.start,
        Ast::NumberLit(node) => node.range.start,
        Ast::BooleanLit(node) => node.range.start,
        Ast::Object(node) => node.range.start,
        Ast::Array(node) => node.range.start,
        Ast::NullKeyword(node) => node.range.start,
    }
}

/// Maps byte offsets to lines.
struct SettingsLineIndex {
    /// The offset of each line except the first.
    starts: Vec<usize>,
}

impl SettingsLineIndex {
    /// The lines of a text.
    fn of(text: &str) -> Self {
        Self { starts: text.match_indices('\n').map(|(at, _)| at + 1).collect() }
    }

    /// The line of an offset, from 1.
    fn line_at(&self, offset: usize) -> usize {
        1 + self.starts.partition_point(|start| *start <= offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_known_and_comments_taken() {
        let node =
            SettingsNode::parse("{\n  // why\n  \"a\": [\n    \"x\", /* y */ \"z\",\n  ],\n}").unwrap();
        let SettingsNodeKind::List(items) = &node.get("a").unwrap().kind else { panic!("a list") };
        assert_eq!(items.iter().map(|item| item.line).collect::<Vec<_>>(), [4, 4]);
        assert_eq!(node.value().to_string(), r#"{"a":["x","z"]}"#);
    }

    #[test]
    fn what_could_be_read_two_ways_is_refused() {
        for (text, line, expected) in [
            ("{\n\"a\":1,\n\"\\u0061\":2}", 3, "`a` appears more than once"),
            ("{\"a\":1}{", 1, "not valid JSON"),
            ("{'a':1}", 1, "not valid JSON"),
            ("{\"a\":1 \"b\":2}", 1, "not valid JSON"),
            ("{\"permissions\":{\"deny\":[\"x\"]", 1, "not valid JSON"),
            ("", 1, "empty"),
        ] {
            let problem = SettingsNode::parse(text).unwrap_err();
            assert_eq!(problem.line, line, "{text}: {}", problem.message);
            assert!(problem.message.contains(expected), "{text}: {}", problem.message);
        }
        let deep = "[".repeat(5000) + &"]".repeat(5000);
        assert!(SettingsNode::parse(&deep).is_err());
    }
}
