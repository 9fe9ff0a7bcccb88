//! What stands in one settings file.

use super::document::{SettingsNode, SettingsNodeKind};
use super::merge::{MergeInput, MergeRule};
use super::schema::{check, settings_check_schema};
use super::values::SettingsValues;
use super::{SettingsError, SettingsNote};
use serde_json::Value;
use toolgate_policy::{Layer, LayerRules, RawBook, RawRule};
use toolgate_proto::{AbsPath, Mode};

/// What to do about a file that cannot be used.
pub(super) const CORRECT_FILE_HINT: &str =
    "correct the file; nothing runs until then, because it may hold a deny rule";

/// One settings file, or another origin of settings, taken apart.
#[derive(Debug, Clone)]
pub struct SettingsFile {
    /// Its rules, as far as they count.
    pub rules: LayerRules,
    /// Its book `policy`, as far as it counts.
    pub book: Option<RawBook>,
    /// What counts of it, whatever other files say. See [`merge`](super::merge).
    pub values: SettingsValues,
    /// All of it as written, unknown keys included.
    pub raw_value: Value,
    /// Whether what loosens in it counts.
    pub trusted: bool,
    /// What it says, with paths made absolute.
    pub(super) normalized_value: Value,
    /// Allow rules of it that the user granted at a prompt.
    granted: Vec<String>,
    /// Where each line is.
    pub(crate) node: SettingsNode,
}

impl SettingsFile {
    /// The file as merging takes it.
    pub(super) fn merge_input(&self) -> MergeInput<'_> {
        MergeInput {
            value: &self.normalized_value,
            layer: self.rules.layer,
            trusted: self.trusted,
            granted: &self.granted,
        }
    }
}

/// Where a text of settings came from.
pub(super) struct SettingsOrigin<'a> {
    pub(super) layer: Layer,
    /// The name for messages.
    pub(super) name: &'a str,
    /// What `/path` patterns are anchored at, and relative directories seen from.
    pub(super) anchor: &'a AbsPath,
    /// What `~/` means.
    pub(super) home: Option<&'a AbsPath>,
    /// Whether allow rules and other loosening settings count.
    pub(super) trusted: bool,
    /// Allow rules that the person granted here before, which count in any case.
    pub(super) granted: &'a [String],
}

pub(super) fn read_settings(
    text: &str,
    origin: &SettingsOrigin<'_>,
    notes: &mut Vec<SettingsNote>,
) -> Result<SettingsFile, SettingsError> {
    let wrong = |line: usize, message: String| SettingsError {
        file: origin.name.to_owned(),
        line,
        message,
        fix: CORRECT_FILE_HINT.to_owned(),
    };
    let node = SettingsNode::parse(text).map_err(|unreadable| wrong(unreadable.line, unreadable.message))?;
    let findings = check(&node, settings_check_schema());
    if let Some((line, message)) = findings.wrong.into_iter().next() {
        return Err(wrong(line, message));
    }
    for (line, key) in findings.unknown {
        let message = format!("`{key}` is not known to toolgate and has no effect");
        notes.push(SettingsNote { file: origin.name.to_owned(), line, message });
    }
    let whole = node.value();
    let mut said = whole.clone();
    make_paths_absolute(&mut said, origin);
    check_mode(&node, origin)?;
    let contribution =
        MergeInput { value: &said, layer: origin.layer, trusted: origin.trusted, granted: origin.granted };
    for key in contribution.inactive_keys() {
        let path: Vec<&str> = key.path.iter().map(String::as_str).collect();
        let message = match key.rule {
            MergeRule::ManagedOnly(_) => format!("`{}` counts in managed settings only", key.name()),
            MergeRule::UserOnly(_) => {
                format!("`{}` counts in your own settings only, not in a project's", key.name())
            }
            _ => inactive_key_message(&key.name()),
        };
        notes.push(SettingsNote {
            file: origin.name.to_owned(),
            line: node.nearest_node(&path).line,
            message,
        });
    }
    let shape: SettingsValues = serde_json::from_value(contribution.effective_values())
        .map_err(|error| wrong(node.line, error.to_string()))?;
    let mut rules = LayerRules::new(origin.layer, origin.anchor.clone());
    rules.file = Some(origin.name.to_owned());
    let mut allowed = shape.permissions.allow.clone();
    rules.allow = read_rules(&node, "allow");
    rules.allow.retain(|rule| {
        let counts = allowed.iter().position(|counted| *counted == rule.text);
        counts.map(|at| allowed.swap_remove(at)).is_some()
    });
    rules.ask = read_rules(&node, "ask");
    rules.deny = read_rules(&node, "deny");
    Ok(SettingsFile {
        rules,
        book: node
            .get("policy")
            .filter(|node| !node.value().is_null())
            .map(|node| read_rule_book(node, origin)),
        values: shape,
        raw_value: whole,
        trusted: origin.trusted,
        normalized_value: said,
        granted: origin.granted.to_vec(),
        node,
    })
}

/// Says that a key waits for trust.
pub(super) fn inactive_key_message(key: &str) -> String {
    format!("`{key}` has no effect until the workspace is trusted (`toolgate trust`, or --trust-workspace)")
}

fn read_rule_book(node: &SettingsNode, origin: &SettingsOrigin<'_>) -> RawBook {
    let mut book = RawBook::new(origin.layer, node.value());
    book.file = Some(origin.name.to_owned());
    book.line = Some(node.line);
    book.tighten_only = !origin.trusted;
    if let Some(SettingsNode { kind: SettingsNodeKind::List(rules), .. }) = node.get("rules") {
        book.rule_lines = rules.iter().map(|rule| rule.line).collect();
    }
    book
}

/// A mode that toolgate does not know is an error: it may have been meant to be strict.
fn check_mode(node: &SettingsNode, origin: &SettingsOrigin<'_>) -> Result<(), SettingsError> {
    let place = ["permissions", "defaultMode"];
    let Some(said) = node.get("permissions").and_then(|node| node.get("defaultMode")) else { return Ok(()) };
    let SettingsNodeKind::Scalar(Value::String(text)) = &said.kind else { return Ok(()) };
    match text.parse::<Mode>() {
        Ok(_) => Ok(()),
        Err(problem) => Err(SettingsError {
            file: origin.name.to_owned(),
            line: node.nearest_node(&place).line,
            message: format!("`permissions.defaultMode`: {problem}"),
            fix: "use one of the modes named".to_owned(),
        }),
    }
}

/// The lists of paths in a settings file.
const PATH_LISTS: [&[&str]; 5] = [
    &["permissions", "additionalDirectories"],
    &["sandbox", "filesystem", "allowWrite"],
    &["sandbox", "filesystem", "denyWrite"],
    &["sandbox", "filesystem", "denyRead"],
    &["sandbox", "network", "allowUnixSockets"],
];

/// Makes paths absolute, since a relative one means something else in each file.
fn make_paths_absolute(said: &mut Value, origin: &SettingsOrigin<'_>) {
    for list in PATH_LISTS {
        let found = list.iter().try_fold(&mut *said, |value, name| value.get_mut(name));
        for path in found.and_then(Value::as_array_mut).into_iter().flatten() {
            if let Value::String(text) = path {
                *text = to_absolute(text, origin).to_string();
            }
        }
    }
}

/// A path: absolute, from home with `~/`, or from where the file is anchored. `//` at the start means the root, as in
/// rules.
fn to_absolute(text: &str, origin: &SettingsOrigin<'_>) -> AbsPath {
    match (text.strip_prefix("~/"), origin.home, text.strip_prefix("//")) {
        (Some(rest), Some(home), _) => home.join(rest),
        (_, _, Some(rest)) => origin.anchor.join(format!("/{rest}")),
        _ => origin.anchor.join(text),
    }
}

/// The rules of one list, with their lines. The file has passed its schema, so whatever is no text is not there.
fn read_rules(node: &SettingsNode, list: &str) -> Vec<RawRule> {
    let Some(SettingsNodeKind::List(items)) =
        node.get("permissions").and_then(|node| node.get(list)).map(|node| &node.kind)
    else {
        return Vec::new();
    };
    items
        .iter()
        .filter_map(|item| match &item.kind {
            SettingsNodeKind::Scalar(Value::String(text)) => {
                Some(RawRule { text: text.clone(), line: Some(item.line) })
            }
            SettingsNodeKind::Scalar(_) | SettingsNodeKind::List(_) | SettingsNodeKind::Object(_) => None,
        })
        .collect()
}
